"""Finds all minimal sets of features that can flip a decision by a gap, and all maximal sets that cannot.

More varied features only add pairs, so flipping is a monotone property, and these two families decide every set. The sets are
found like minimal unsatisfiable and maximal satisfiable subsets (`Lattice`): each step queries a large undecided set. If a pair
flips, the differing features are reduced one by one to a minimal set; a proof that no pair flips covers all subsets.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, TypeAlias

import numpy as np

from treesens.binder.file import ResolvedQuestion
from treesens.compiler.base.budget import Budget
from treesens.compiler.base.diagnostics import Diagnostics
from treesens.compiler.query.query import Query, SameExcept
from treesens.compiler.result import Verdict, answered, is_own_fault
from treesens.data.tables import align_table
from treesens.errors import UsageError
from treesens.extensions.studies.decisions import Asked, Decision, decisions_of
from treesens.extensions.studies.evidence import Border
from treesens.extensions.studies.questions import bind_study, check_features, declarations_of, pair_of
from treesens.extensions.studies.running import library_of
from treesens.extensions.studies.sets import FlippingSet, HoldingSet, OpenSet, SetOptions, SetsRecord
from treesens.extensions.studies.study import Asking, Found
from treesens.grammar.printing.printer import identity
from treesens.grammar.tree import ast
from treesens.records.answers import points_of
from treesens.solve.options import Options
from treesens.solve.question import answer
from treesens.values.verify import Witness

_MOST_FEATURES = 400
"""Maximum number of features, because the search for elements to remove recurses once per element."""


@dataclass
class MinimalSets:
    """The findings about the sets of one decision; `complete` is True if every set is decided.

    `pairs` holds verified pairs, as values by point and feature, for every set that flips. `reasons` explains why sets are
    open. `query` is the question about all features; `witnesses` holds the pairs found in this run.
    """

    decision: Decision
    names: tuple[str, ...]
    lattice: Lattice
    query: Query
    witnesses: dict[Set, Witness] = field(default_factory=dict)
    pairs: dict[Set, dict[str, Any]] = field(default_factory=dict)
    reasons: dict[Set, str] = field(default_factory=dict)
    complete: bool = False
    asked: int = 0
    seconds: float = 0.0

    def record(self) -> SetsRecord:
        """The findings as a record; sets are ordered by size."""
        lattice = self.lattice
        return SetsRecord(
            **self.decision.record(),
            complete=self.complete,
            flip=[
                FlippingSet(features=self._named(one), minimal=lattice.is_minimal(one), points=self.pairs[one])
                for one in self._ordered(lattice.having)
            ],
            hold=[
                HoldingSet(features=self._named(one), maximal=lattice.is_maximal(one))
                for one in self._ordered(lattice.lacking)
            ],
            open=[
                OpenSet(features=self._named(one), reason=self.reasons[one]) for one in self._ordered(lattice.open_sets)
            ],
            decisions=self.asked,
            seconds=round(self.seconds, 6),
        )

    def evidence(self) -> Border:
        """The evidence about all sets, or about the decided sets."""
        words = self.decision.record()
        return Border(
            "the sets of features" + (f" {words}" if words else ""),
            sorted(self.lattice.every),
            [(with_varied(self.query, one), self.witnesses.get(one)) for one in self.lattice.having],
            [with_varied(self.query, one) for one in self.lattice.lacking],
            self.complete,
        )

    def _named(self, one: Set) -> list[str]:
        return [self.names[f] for f in sorted(one)]

    def _ordered(self, sets: Sequence[Set]) -> list[Set]:
        return sorted(sets, key=lambda one: (len(one), sorted(one)))


def ask(asked: Asking[SetOptions]) -> Found[SetsRecord]:
    """Finds the sets among the features (by default, all features that the model uses) for every decision of the model.

    If the event `stop` is set, the sets decided so far are returned; `say` is called with every answer.
    """
    options, model, diagnostics = asked.options, asked.model, Diagnostics()
    gap, table = options.size, None if asked.table is None else align_table(model, asked.table)
    chosen = list(model.ensemble.used_features if options.vary is None else dict.fromkeys(options.vary))
    check_features(model, [chosen])
    if len(chosen) > _MOST_FEATURES:
        raise UsageError(f"{len(chosen)} features have too many sets", remedy="select fewer features: --features a,b,c")
    decisions = decisions_of(model.ensemble, Asked(gap.kind, options.threshold, tuple(options.classes)))
    for decision in decisions:
        decision.check(gap.size)
    finds = [pair_of(chosen, decision.event(gap).clauses) for decision in decisions]
    declared = declarations_of(model, options.real, has_table=table is not None, domain=options.domain)
    queries = [ast.Query(ast.Name(f"q{number}"), find) for number, find in enumerate(finds)]
    bound = bind_study(model, table, (*declared, *queries), diagnostics)
    predict = library_of(model, options.replay)
    how = Options(time_limit=options.time_limit, seed=options.seed, library_predict=predict, regions=False)
    results = []
    for decision, find, question in zip(decisions, finds, bound, strict=True):
        identified = identity(ast.File((*declared, ast.Query(ast.Name("q"), find))))
        results.append(_Search(decision, chosen, question, how, identified, asked).run())
    records, warnings = [one.record() for one in results], tuple(item.render() for item in diagnostics)
    evidence, complete = [[one.evidence()] for one in results], all(one.complete for one in records)
    return Found(records, warnings, asked.stop.is_set(), complete, results, evidence=evidence)


class _Search:
    def __init__(
        self,
        decision: Decision,
        chosen: Sequence[str],
        question: ResolvedQuestion,
        how: Options,
        identified: str,
        asked: Asking[SetOptions],
    ) -> None:
        self.query, self.how, self.options, self.memory = question.query, how, asked.options, asked.memory
        self.identified, self.stop, self.say = identified, asked.stop, asked.say
        names = question.query.space.names
        every = frozenset(names.index(name) for name in chosen)
        self.found = MinimalSets(decision, names, Lattice(every), self.query)

    def run(self) -> MinimalSets:
        """Searches until every set is decided or open, or the search is stopped."""
        start, found = time.perf_counter(), self.found
        try:
            while not self._enough():
                seed = found.lattice.unexplored(self.stop.is_set)
                if seed is None:
                    found.complete = not found.lattice.open_sets
                    break
                flipped = self._decide(seed)
                if flipped is not None:
                    self._shrink(flipped)
        except TimeoutError:
            pass
        found.seconds = time.perf_counter() - start
        return found

    def _enough(self) -> bool:
        most = self.options.most
        return self.stop.is_set() or (most is not None and len(self.found.lattice.having) >= most)

    def _shrink(self, flipped: Set) -> None:
        """Removes one feature after the other, as long as the remaining set flips."""
        for f in sorted(flipped):
            if self.stop.is_set():
                return
            less = flipped - {f}
            if f not in flipped or self.found.lattice.is_lacking(less) or less in self.found.lattice.open_sets:
                continue
            flipped = self._decide(less) or flipped

    def _decide(self, one: Set) -> Set | None:
        """Decides a set. Returns the features in which a pair differs; None if no pair exists, or the question stays open."""
        found = self.found
        key = f"{self.identified}\0{sorted(found.names[f] for f in one)}\0{self.options.seed}"
        record = self.memory.known(key) if self.memory is not None else None
        if record is None:
            record = answered(
                "a set of features", partial(self._ask, one), lambda reason: {"verdict": "unknown", "reason": reason}
            )
            if self.stop.is_set() and record["verdict"] == Verdict.UNKNOWN:
                return None  # an interrupted answer does not count
            if self.memory is not None and not is_own_fault(record["reason"]):
                self.memory.keep(key, record["verdict"], record)
        found.asked += 1
        self.say(f"{len(found.lattice.having)} sets that flip, {len(found.lattice.lacking)} sets that do not")
        if record["verdict"] == Verdict.NONE:
            found.lattice.lacks(one)
            return None
        if record["verdict"] != Verdict.FOUND:
            found.lattice.stays_open(one)
            found.reasons[one] = record["reason"]
            return None
        changed = frozenset(map(found.names.index, record["changed"]))
        found.lattice.has(changed)
        found.pairs[changed] = record["points"]
        return changed

    def _ask(self, one: Set) -> dict[str, Any]:
        query = with_varied(self.query, one)
        result = answer(query, self.how, Budget.of(self.options.time_limit, self.stop))
        record: dict[str, Any] = {"verdict": str(result.verdict), "reason": result.reason}
        if result.verdict is Verdict.FOUND:
            assert result.witness is not None
            left, right = result.witness.values
            differ = np.flatnonzero((left != right) & ~(np.isnan(left) & np.isnan(right)))
            self.found.witnesses[frozenset(differ.tolist())] = result.witness
            record["changed"] = [self.found.names[f] for f in differ]
            record["points"] = points_of(query, result.witness)
        return record


def with_varied(query: Query, features: Set) -> Query:
    """The question with `features` as the varied features."""
    names = tuple(query.space.names[f] for f in sorted(features))
    parts = tuple(replace(c, varied=features) if isinstance(c, SameExcept) else c for c in query.constraints)
    return replace(query, constraints=parts, varied=names)


Set: TypeAlias = frozenset[int]


@dataclass
class Lattice:
    """The subsets of `every`: the minimal sets known to have a property, the maximal sets known to lack it, and open sets."""

    every: Set
    having: list[Set] = field(default_factory=list)
    lacking: list[Set] = field(default_factory=list)
    open_sets: list[Set] = field(default_factory=list)

    def has(self, one: Set) -> None:
        """Adds a set with the property; all supersets of the set have the property too."""
        if not self.is_having(one):
            self.having = [other for other in self.having if not one <= other] + [one]
            self.open_sets = [other for other in self.open_sets if not one <= other]

    def lacks(self, one: Set) -> None:
        """Adds a set without the property; all subsets of the set lack the property too."""
        if not self.is_lacking(one):
            self.lacking = [other for other in self.lacking if not other <= one] + [one]
            self.open_sets = [other for other in self.open_sets if not other <= one]

    def stays_open(self, one: Set) -> None:
        """Adds a set whose question was not answered."""
        if one not in self.open_sets and not (self.is_having(one) or self.is_lacking(one)):
            self.open_sets.append(one)

    def is_having(self, one: Set) -> bool:
        return any(known <= one for known in self.having)

    def is_lacking(self, one: Set) -> bool:
        return any(one <= known for known in self.lacking)

    def is_minimal(self, one: Set) -> bool:
        """For a set with the property: True if every smaller subset is known to lack the property."""
        return all(self.is_lacking(one - {x}) for x in one)

    def is_maximal(self, one: Set) -> bool:
        """For a set without the property: True if every larger superset is known to have the property."""
        return all(self.is_having(one | {x}) for x in self.every - one)

    def unexplored(self, over: Callable[[], bool] = lambda: False) -> Set | None:
        """An undecided set that is maximal: every larger set is decided or open. None if every set is decided or open. Raises
        TimeoutError if `over` returns True.
        """
        removed = self._search(frozenset(), frozenset(), over)
        if removed is None:
            return None
        found = self.every - removed
        for x in sorted(removed):
            if not self.is_having(found | {x}) and found | {x} not in self.open_sets:
                found |= {x}
        return found

    def _search(self, removed: Set, kept: Set, over: Callable[[], bool]) -> Set | None:
        """Elements outside `kept` whose removal from `every` leaves an undecided set, or None."""
        if over():
            raise TimeoutError
        if any(self.every - known <= removed for known in self.lacking):
            return None
        rest = self.every - removed
        inside = [known for known in self.having if known <= rest]
        if not inside and rest not in self.open_sets:
            return removed
        # Each set with the property has to lose an element; if there is no such set, but the rest is open, any element will do.
        choices = min((known - kept for known in inside), key=len, default=rest - kept)
        for x in sorted(choices):
            found = self._search(removed | {x}, kept, over)
            if found is not None:
                return found
            kept |= {x}
        return None
