"""Dependencies and implications between columns of few values, from their contingency tables."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

import numpy as np

from treesens.compiler.base.checkpoints import steadily
from treesens.data.contingency import Contingency
from treesens.data.known_rules import Known
from treesens.data.rule import DEVIATIONS, Rule, RuleOptions, ValueSet, surprising
from treesens.data.rule_columns import FewValues


@dataclass(frozen=True, eq=False)
class Implications:
    table: Contingency
    groups: list[tuple[str, ...]]
    asked: RuleOptions

    def mine(self) -> list[Rule]:
        """Dependencies first; what follows from them, from an exact copy or from two others is left out."""
        if not self.table.columns:
            return []
        determined = self.table.dependencies(self.asked.exceptions, self._least())
        exact = self.table.dependencies(0.0, self._least())
        copies = {y for x, y in exact if x < y and (y, x) in exact}
        kept = [p for p in steadily(sorted(determined)) if self._worth(p, determined, exact, copies)]
        rules = [rule for x, y in steadily(kept) for rule in self._dependency(x, y, (y, x) in determined)]
        related = {frozenset(pair) for pair in determined} | self._grouped()
        return rules + list(self._single(kept, related, copies))

    def _least(self) -> float:
        return self.asked.least(self.table.rows)

    def _grouped(self) -> set[frozenset[int]]:
        number = {column.name: i for i, column in enumerate(self.table.columns)}
        known = [[number[name] for name in group if name in number] for group in self.groups]
        return {frozenset((x, y)) for group in known for x in group for y in group if x != y}

    def _worth(
        self, pair: tuple[int, int], determined: set[tuple[int, int]], exact: set[tuple[int, int]], copies: set[int]
    ) -> bool:
        """Whether a dependency says more than a group, the other half of an equivalence, a copy, or two others."""
        x, y = pair
        if frozenset(pair) in self._grouped() or ((y, x) in determined and y < x):
            return False
        if (y, x) in exact and pair in exact:
            return x not in copies
        if x in copies or y in copies:
            return False
        middle = (z for z in range(len(self.table.columns)) if z not in (x, y) and z not in copies)
        return not any((x, z) in exact and (z, y) in exact for z in middle)

    def _dependency(self, x: int, y: int, both: bool) -> Iterator[Rule]:
        best = self.table.best(x, y)
        left, right = self.table.columns[x], self.table.columns[y]
        if len(right.values) == 2 and not (left.missing or right.missing):
            rule = self._rule(left, np.flatnonzero(best == 1).tolist(), right, [1], both=True, dependency=True)
            if len(rule.exceptions) <= self.asked.exceptions * rule.support:
                yield rule  # says both values of y at once
                return
        for value in np.unique(best).tolist():
            chosen = np.flatnonzero(best == value).tolist()
            yield from self._rules(left, chosen, right, [value], both and len(chosen) == 1, dependency=True)

    def _rules(
        self, left: FewValues, premise: list[int], right: FewValues, conclusion: list[int], both: bool, dependency: bool
    ) -> Iterator[Rule]:
        """The rule, or the two halves of an equivalence that has too many exceptions as a whole."""
        rule = self._rule(left, premise, right, conclusion, both, dependency)
        if both and len(rule.exceptions) > self.asked.exceptions * rule.support:
            yield self._rule(left, premise, right, conclusion, False, dependency)
            yield self._rule(right, conclusion, left, premise, False, dependency)
        else:
            yield rule

    def _rule(
        self, left: FewValues, premise: list[int], right: FewValues, conclusion: list[int], both: bool, dependency: bool
    ) -> Rule:
        holds, follows = np.isin(left.codes, premise), np.isin(right.codes, conclusion)
        broken = holds ^ follows if both else holds & ~follows
        support = int((holds | follows).sum() if both else holds.sum())
        sides = [ValueSet(c.name, tuple(c.values[i] for i in v)) for c, v in ((left, premise), (right, conclusion))]
        kind: Literal["implication", "equivalence"] = "equivalence" if both else "implication"
        return Rule(kind, sides[0], sides[1], support, np.flatnonzero(broken), dependency)

    def _single(
        self, dependencies: list[tuple[int, int]], related: set[frozenset[int]], copies: set[int]
    ) -> Iterator[Rule]:
        """Implications from one value, without those that forbid nothing new.

        Those that others may follow from come first: of single values, of many rows, to a value of few rows.
        """
        found, known = [], Known(self.table)
        for x, y in steadily(dependencies):
            for value, reached in enumerate(self.table.best(x, y).tolist()):
                known.add(x, value, y, [reached])
        for x, value, y in self.table.candidates(self.asked.exceptions, self._least(), DEVIATIONS**2):
            if frozenset((x, y)) not in related and x not in copies and y not in copies:
                conclusion = self._conclusion(x, value, y)
                if conclusion:
                    reached = sum(self.table.count(y, v) for v in conclusion)
                    found.append((len(conclusion), -self.table.count(x, value), reached, x, value, y, conclusion))
        steps = {(x, v, y): goal[0] for *_, x, v, y, goal in found if len(goal) == 1 and self._exact(x, v, y, goal[0])}
        for *_, first, given, other, left in steadily(sorted(found)):
            x, value, y, conclusion = first, given, other, left
            if self._said_backwards(first, given, other, left, steps):
                x, value, y = other, 1 - left[0], first
                conclusion = [steps[x, value, y]]
            if known.add(x, value, y, conclusion):
                back = self._conclusion(y, conclusion[0], x) if len(conclusion) == 1 else []
                both = back == [value] and known.add(y, conclusion[0], x, back)
                yield from self._rules(self.table.columns[x], [value], self.table.columns[y], conclusion, both, False)

    def _exact(self, x: int, value: int, y: int, goal: int) -> bool:
        return bool(self.table.row(x, value, y)[goal] == self.table.count(x, value))

    def _said_backwards(
        self, x: int, value: int, y: int, conclusion: list[int], steps: dict[tuple[int, int, int], int]
    ) -> bool:
        """Whether one rule from y to x forbids this pair of values, and others with it: `y is 1 implies x is 2` for all of
        `x is 0 implies y is 0`, `x is 1 implies y is 0`, ..
        """
        if len(self.table.columns[y].values) != 2 or len(self.table.columns[x].values) == 2:
            return False
        return steps.get((y, 1 - conclusion[0], x), value) != value

    def _conclusion(self, x: int, value: int, y: int) -> list[int]:
        """The fewest values of y that a value of x leaves; none if they are too many or are what chance would leave."""
        counts, total = self.table.row(x, value, y), self.table.count(x, value)
        if total < self._least():
            return []
        order = np.argsort(-counts, kind="stable")
        reached = np.cumsum(counts[order])
        enough = np.flatnonzero(total - reached <= self.asked.exceptions * total)
        if not len(enough) or enough[0] >= max(1, len(counts) // 2):
            return []
        conclusion = sorted(order[: enough[0] + 1].tolist())
        outside = self.table.rows - sum(self.table.count(y, v) for v in conclusion)
        missed = int(total - reached[enough[0]])
        return conclusion if surprising(total * outside / self.table.rows, missed) else []
