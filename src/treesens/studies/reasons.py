"""Why a row has its class: features whose values alone decide it, whatever the others are, and changes that undo it.

A *sufficient reason* is a set of features such that no input that agrees with the row on them has another class: proved in
exact arithmetic (prime implicants: Shih, Choi and Darwiche, IJCAI 2018; abductive explanations: Ignatiev, Narodytska and
Marques-Silva, AAAI 2019). One that is minimal by inclusion comes from leaving out one feature after the other; a smallest one
from implicit hitting sets: it has to hit every *contrastive* set, the features of which some change gives another class.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from treesens.backends.native.direct import decide_directly
from treesens.compiler.base.arrays import Int32Array, frozen
from treesens.compiler.base.budget import Budget
from treesens.compiler.query.query import CellSet, Query
from treesens.compiler.result import Verdict, Witness
from treesens.compiler.verify import verify_cells
from treesens.data.tables import Table
from treesens.errors import UsageError
from treesens.frontends.base import LoadedModel
from treesens.solve.options import Options
from treesens.solve.question import answer
from treesens.studies.robustness import RobustOptions, RowQuestions

_LOOK = 30_000
"""Work of the local search before the first proof: half of the decisions end with one."""

Features = frozenset[int]
_Other = tuple[Query, Int32Array]
"""An input of another class, int32[1, features], and the question that it answers."""


@dataclass(frozen=True)
class Reason:
    """Why a row has its class. `features` decide it (None: those that may be used do not); `minimal` if none of them can be
    left out, `smallest` if no fewer features decide it. `contrast` names features whose change gives another class, at `point`.
    `several` are the smallest reasons, if more than one was asked for, and `complete` says whether there are no others.
    """

    row: int
    predicted: str
    features: dict[str, Any] | None
    minimal: bool
    smallest: bool
    contrast: tuple[str, ...] | None
    point: dict[str, Any] | None
    decisions: int
    reason: str
    seconds: float
    several: tuple[dict[str, Any], ...] | None = None
    complete: bool = False

    def record(self) -> dict[str, Any]:
        """The facts for JSON."""
        several = {} if self.several is None else {"reasons": list(self.several), "complete": self.complete}
        return {
            "row": self.row,
            "class": self.predicted,
            "sufficient": self.features,
            "minimal": self.minimal,
            "smallest": self.smallest,
            **several,
            "contrast": None if self.contrast is None else list(self.contrast),
            "point": self.point,
            "decisions": self.decisions,
            "reason": self.reason,
            "seconds": round(self.seconds, 6),
        }


class _TimeUp(Exception):
    """A decision was not made in the time that is left."""


@dataclass
class _Row:
    """Decisions about one row: is there an input of another class that agrees with it on some features?"""

    queries: list[Query]
    cells: Int32Array
    budget: Budget
    seed: int
    decisions: int = 0
    known: list[_Other] = field(default_factory=list)
    """Inputs of another class that were found for this row."""

    def other(self, fixed: Iterable[int]) -> _Other | None:
        """Such an input; None: it is proved that there is none."""
        kept = sorted(fixed)
        for one in self.known:
            if not (one[1][0, kept] != self.cells[kept]).any():
                return one
        found = self._search(kept)
        if found is not None:
            self.known.append(found)
        return found

    def _search(self, kept: Sequence[int]) -> _Other | None:
        for query in self.queries:
            self.decisions += 1
            sets = tuple(CellSet(0, f, self._only(query, f)) for f in kept)
            asked = replace(query, constraints=(*query.constraints, *sets))
            found = decide_directly(asked, self.budget, seed=self.seed, look=_LOOK)
            if found is not None and found.cells is not None:
                return query, found.cells
            if found is not None and found.none:
                continue
            if self.budget.over:
                raise _TimeUp
            result = answer(asked, Options(time_limit=self.budget.left(), seed=self.seed, regions=False), self.budget)
            if result.witness is not None:
                return query, result.witness.cells
            if result.verdict is not Verdict.NONE:
                raise _TimeUp
        return None

    def _only(self, query: Query, feature: int) -> Any:
        mask = np.zeros(query.space.grid[feature].n_cells, bool)
        mask[self.cells[feature]] = True
        return frozen(mask, bool)

    def changed(self, cells: Int32Array) -> Features:
        """The features in which an input leaves the cells of the row."""
        return frozenset(np.flatnonzero(cells[0] != self.cells).tolist())

    def without_each(self, features: Sequence[int]) -> Features:
        """A minimal part of features that decide the class: each is left out if the others do without it."""
        kept = frozenset(features)
        for f in features:
            if f in kept and self.other(kept - {f}) is None:
                kept -= {f}
        return kept

    def contrastive(self, free: Features, usable: Features, found: _Other) -> tuple[Features, _Other]:
        """A minimal part of `free` whose change gives another class, and such an input; `found` changes some of it. Features
        that are not usable may change anyway.
        """
        freed, known = self.changed(found[1]) & free, found
        for f in sorted(freed):
            if f not in freed:
                continue
            better = self.other(usable - (freed - {f}))
            if better is not None:
                freed, known = self.changed(better[1]) & freed - {f}, better
        return freed, known

    def smallest(self, usable: Features) -> Iterator[Features]:
        """The minimal reasons among the usable features, those of fewest features first, by implicit hitting sets; all usable
        features together are a reason.

        A set that hits all changes and holds no reason yet, of fewest features, is minimal if it decides the class: a smaller
        reason inside would hit all changes, too.
        """
        to_hit: list[Features] = []
        known: list[Features] = []
        while (candidate := hitting_set(to_hit, lambda: self.budget.over, known)) is not None:
            found = self.other(candidate)
            if found is None:
                yield candidate
                known.append(candidate)
                continue
            changes, _ = self.contrastive(usable - candidate, usable, found)
            to_hit.append(changes)


def hitting_set(sets: Sequence[Features], over: Callable[[], bool], barred: Sequence[Features] = ()) -> Features | None:
    """A smallest set with an element of each of the sets, none of which is empty, that holds none of the barred ones; None if
    there is none. Raises where `over` says so.
    """
    for size in range(len(frozenset[int]().union(*sets)) + 1):
        found = _hit(list(sets), size, over, frozenset(), barred)
        if found is not None:
            return found
    return None


def _hit(
    sets: list[Features], size: int, over: Callable[[], bool], chosen: Features, barred: Sequence[Features]
) -> Features | None:
    """`chosen` with up to `size` more elements."""
    if any(one <= chosen for one in barred):
        return None
    if not sets:
        return chosen
    if over():
        raise _TimeUp
    # Sets without a common element need one each.
    ordered: list[Features] = sorted(sets, key=len)
    apart: set[int] = set()
    needed = 0
    for one in ordered:
        if apart.isdisjoint(one):
            apart |= one
            needed += 1
    if needed > size:
        return None
    for f in sorted(ordered[0], key=lambda f: -sum(f in one for one in sets)):
        found = _hit([one for one in sets if f not in one], size - 1, over, chosen | {f}, barred)
        if found is not None:
            return found
    return None


def reasons(
    model: LoadedModel,
    table: Table,
    rows: Sequence[int],
    *,
    smallest: bool = False,
    most: int = 1,
    without: Sequence[str] = (),
    options: RobustOptions | None = None,
    stop: threading.Event | None = None,
    on_result: Callable[[Reason], None] | None = None,
) -> list[Reason]:
    """Why rows have their classes; features of `without` are in no reason. With `most` above 1 the smallest reasons, at most so
    many. A set event keeps what is known by then.

    Raises UsageError for rows and features that there are not.
    """
    options = options or RobustOptions()
    questions = RowQuestions(model, table, options)
    names = questions.of_class[0].query.space.names
    unknown = [name for name in without if name not in names]
    if unknown:
        raise UsageError(f"the model has no feature `{unknown[0]}`", remedy="its features are " + ", ".join(names[:12]))
    barred = frozenset(names.index(name) for name in without)
    result: list[Reason] = []
    for row in rows:
        if not 0 <= row < table.rows:
            raise UsageError(f"the table has no row {row}", remedy=f"its rows are 0 to {table.rows - 1}")
        if stop is not None and stop.is_set():
            break
        found = _reason(questions, row, smallest, most, barred, Budget.of(options.time_limit, stop))
        result.append(found)
        if on_result is not None:
            on_result(found)
    return result


def _reason(questions: RowQuestions, row: int, smallest: bool, most: int, barred: Features, budget: Budget) -> Reason:
    start = time.perf_counter()
    predicted = questions.predicted(row)
    bare = Reason(row, "", None, False, False, None, None, 0, "", 0.0)
    if predicted is None:
        return replace(bare, reason="a value is missing that the domain does not allow")
    bare = replace(bare, predicted=str(questions.model.ensemble.classes[predicted]))
    space = questions.of_class[0].query.space
    cells = space.grid.cells(questions.rows[row : row + 1])[0].astype(np.int32)
    outside = [space.names[f] for f, cell in enumerate(cells) if not space.legal[f][cell]]
    if outside:
        return replace(bare, reason=f"`{outside[0]}` lies outside of its domain")
    others = [asked.query for c, asked in enumerate(questions.of_class) if c != predicted]
    judge = _Row(others, cells, budget, questions.options.seed)
    try:
        found = _decided(questions, judge, row, smallest, most, barred, bare)
    except _TimeUp:
        found = replace(bare, reason=budget.reason)
    return replace(found, decisions=judge.decisions, seconds=time.perf_counter() - start)


def _decided(
    questions: RowQuestions, judge: _Row, row: int, smallest: bool, most: int, barred: Features, bare: Reason
) -> Reason:
    from treesens.report.records import label_of, points_of

    space = questions.of_class[0].query.space
    every = frozenset(range(len(space.names)))
    usable = every - barred
    free = judge.other(())
    values = questions.rows[row]
    point, contrast = None, None
    if free is not None:
        changes, (query, cells) = judge.contrastive(every, every, free)
        contrast = tuple(space.names[f] for f in sorted(changes))
        witness = verify_cells(query, cells, near=values)
        point = points_of(query, witness)["a"] if isinstance(witness, Witness) else None
    bare = replace(bare, contrast=contrast, point=point)
    if barred and judge.other(usable) is not None:
        return replace(bare, reason="the class depends on features that are left out")
    kinds = [grid.number_type.dtype for grid in space.grid]

    def shown(features: Features) -> dict[str, Any]:
        return {space.names[f]: label_of(space.domains[f], float(values[f]), kinds[f]) for f in sorted(features)}

    if most > 1:
        return _several(judge, usable, most, bare, shown)
    if free is None:
        features: Features = frozenset()
    elif smallest:
        features = next(judge.smallest(usable))
    else:
        used = questions.model.ensemble.used_features
        order = sorted(usable, key=lambda f: (space.names[f] in used, f))
        features = judge.without_each(order)
    return replace(bare, features=shown(features), minimal=True, smallest=smallest or not features)


def _several(
    judge: _Row, usable: Features, most: int, bare: Reason, shown: Callable[[Features], dict[str, Any]]
) -> Reason:
    """The smallest reasons; when the time is up, those that are known."""
    found: list[dict[str, Any]] = []
    complete, reason = False, ""
    try:
        search = judge.smallest(usable)
        while len(found) < most and (one := next(search, None)) is not None:
            found.append(shown(one))
        complete = len(found) < most or next(search, None) is None
    except _TimeUp:
        reason = judge.budget.reason if len(found) < most else ""
    first = found[0] if found else None
    known = bool(found)
    bare = replace(bare, features=first, minimal=known, smallest=known, reason=reason)
    return replace(bare, several=tuple(found), complete=complete)
