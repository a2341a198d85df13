"""Determines which values of a row decide its class, and how far these values may move.

A *sufficient reason* is a set of features such that all inputs that agree with the row on this set have the same class, proved
exactly (prime implicants: Shih, Choi and Darwiche, IJCAI 2018; abductive explanations: Ignatiev, Narodytska and Marques-Silva,
AAAI 2019). Removing features one by one gives a reason that is minimal by inclusion. A smallest reason is found by implicit
hitting sets: it hits every *contrastive* set, a set of features whose change can give another class. A box around the values of
a reason, in which the class holds, is an inflated explanation (Izza, Ignatiev, Stuckey and Marques-Silva, AAAI 2024).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from treesens.backends.native.tree_question import decide_on_trees
from treesens.compiler.base.arrays import BoolArray, Int32Array, frozen
from treesens.compiler.base.budget import Budget
from treesens.compiler.query.query import CellSet, Query
from treesens.compiler.result import Proof, Result, Verdict
from treesens.extensions.methods.fewest_changes import Features, TimeUp, hitting_set
from treesens.solve.combine import TWO_ARITHMETICS, proof_of_parts
from treesens.solve.options import Options

_LOOK = 30_000
"""Work of the local search before the first proof; this search makes half of the decisions."""

Other = tuple[Query, Int32Array]
"""An input of another class, int32[1, features], with the question that it answers."""


@dataclass
class RowDecisions:
    """Decides for one row whether an input of another class agrees with the row on given features."""

    queries: list[Query]
    cells: Int32Array
    budget: Budget
    options: Options
    ask: Callable[[Query, Options, Budget], Result]
    """Solves the questions that the native search does not decide."""
    decisions: int = 0
    proof: Proof = Proof.EXACT
    """The weakest proof of all decisions."""
    known: list[Other] = field(default_factory=list)
    """The inputs of other classes that were found for this row."""
    unsettled: str = ""
    """The reason why some decision is impossible, even without a time limit."""

    def other(self, fixed: Iterable[int]) -> Other | None:
        """An input of another class that agrees with the row on the features `fixed`; None if it is proved that none exists."""
        return self.other_within({f: self._only(f) for f in fixed})

    def other_within(self, box: Mapping[int, BoolArray]) -> Other | None:
        """An input of another class in a box, bool[n_cells] by feature; features without an entry are free. None if it is
        proved that no such input exists.
        """
        for one in self.known:
            if all(mask[one[1][0, f]] for f, mask in box.items()):
                return one
        found = self._search(box)
        if found is not None:
            self.known.append(found)
        return found

    def _search(self, box: Mapping[int, BoolArray]) -> Other | None:
        sets = tuple(CellSet(0, f, mask) for f, mask in sorted(box.items()))
        proofs: list[Proof] = []
        for query in self.queries:
            found = self._decide(replace(query, constraints=(*query.constraints, *sets)))
            if not isinstance(found, Proof):
                return query, found
            proofs.append(found)
        proof = proof_of_parts(proofs)
        if proof is None:
            self.unsettled = TWO_ARITHMETICS
            raise TimeUp
        self.proof = self.proof if proof is Proof.EXACT else proof
        return None

    def _decide(self, query: Query) -> Int32Array | Proof:
        """The cells of an input of another class, or the proof that no such input exists."""
        self.decisions += 1
        if self.options.backend in {"auto", "native"}:
            found = decide_on_trees(query, self.budget, seed=self.options.seed, look=_LOOK)
            if found is not None and found.cells is not None:
                return found.cells
            if found is not None and found.none:
                return Proof.EXACT
        if self.budget.over:
            raise TimeUp
        options = replace(self.options, time_limit=self.budget.left(), regions=False)
        result = self.ask(query, options, self.budget)
        if result.witness is not None:
            return result.witness.cells
        if result.verdict is not Verdict.NONE:
            raise TimeUp
        return result.proof or Proof.BOUND

    def _only(self, feature: int) -> BoolArray:
        mask = np.zeros(self.queries[0].space.grid[feature].n_cells, bool)
        mask[self.cells[feature]] = True
        return frozen(mask, bool)

    def changed(self, cells: Int32Array) -> Features:
        """The features in which an input is outside the row's cells."""
        return frozenset(np.flatnonzero(cells[0] != self.cells).tolist())

    def without_each(self, features: Sequence[int]) -> Features:
        """A minimal subset of `features` that decides the class: each feature is dropped if the other features suffice."""
        kept = frozenset(features)
        for f in features:
            if f in kept and self.other(kept - {f}) is None:
                kept -= {f}
        return kept

    def contrastive(self, free: Features, usable: Features, found: Other) -> tuple[Features, Other]:
        """A minimal subset of `free` whose change gives another class, and an input that shows this. `found` is such an input,
        with changes in features of `free`. Features that are not usable may always change.
        """
        freed, best = self.changed(found[1]) & free, found
        for f in sorted(freed):
            if f not in freed:
                continue
            better = self.other(usable - (freed - {f}))
            if better is not None:
                freed, best = self.changed(better[1]) & freed - {f}, better
        return freed, best

    def smallest(self, usable: Features) -> Iterator[Features]:
        """Yields the minimal reasons among the usable features, smallest first, by implicit hitting sets; all usable features
        together are a reason.

        A smallest set that hits all changes and contains no known reason is a minimal reason if it decides the class, because a
        smaller reason inside the set would hit all changes, too.
        """
        to_hit: list[Features] = []
        tried: list[Features] = []
        while (candidate := hitting_set(to_hit, lambda: self.budget.over, tried)) is not None:
            found = self.other(candidate)
            if found is None:
                yield candidate
                tried.append(candidate)
                continue
            changes, _ = self.contrastive(usable - candidate, usable, found)
            to_hit.append(changes)

    def widened(self, features: Iterable[int]) -> dict[int, BoolArray]:
        """A box around the values of a reason, bool[n_cells] by feature, in which every input has the class of the row. No side
        can be moved outwards and no category can be added, unless the time limit stopped the search.
        """
        box = {f: self._only(f) for f in features}
        try:
            for f in sorted(box):
                self._widen(box, f)
        except TimeUp:
            pass
        return box

    def _widen(self, box: dict[int, BoolArray], feature: int) -> None:
        space = self.queries[0].space
        grid, legal = space.grid[feature], space.legal[feature]
        own, present = int(self.cells[feature]), grid.present_cells
        apart = range(present) if grid.categories or own >= present else ()
        if not apart:
            for end in (-1, present):
                self._move_side(box, feature, own, end, legal)
        for cell in (*apart, *range(present, grid.n_cells)):
            if legal[cell] and not box[feature][cell]:
                self._holds_with(box, feature, [cell])

    def _move_side(self, box: dict[int, BoolArray], feature: int, own: int, end: int, legal: BoolArray) -> None:
        """Moves a side of the box towards `end` while the class is preserved; a proof for a wide box covers narrower boxes."""
        step = 1 if end > own else -1
        cells = [cell for cell in range(own + step, end, step) if legal[cell]]
        stands, falls = 0, len(cells) + 1
        while falls - stands > 1:
            # The whole side is tried first, because most features of long reasons are bounded on one side only.
            tried = len(cells) if falls > len(cells) else (stands + falls) // 2
            if self._holds_with(box, feature, cells[:tried]):
                stands = tried
            else:
                falls = tried

    def _holds_with(self, box: dict[int, BoolArray], feature: int, cells: Sequence[int]) -> bool:
        """Adds cells to the box and returns True if every input of the larger box has the class."""
        mask = box[feature].copy()
        mask[list(cells)] = True
        if self.other_within({**box, feature: mask}) is not None:
            return False
        box[feature] = frozen(mask, bool)
        return True
