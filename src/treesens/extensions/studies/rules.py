"""Rules that hold in a table: domains, one-hot groups, relations between columns of few values, and orders of numbers.

Dependencies and denial constraints with their exceptions are those of Chu, Ilyas and Papotti, "Discovering Denial Constraints"
(VLDB 2013), for two columns.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Literal

import numpy as np

from treesens.compiler.base.arrays import FloatArray, Int64Array
from treesens.compiler.base.budget import OutOfTime, steadily
from treesens.data.tables import Table
from treesens.extensions.studies.contingency import Contingency
from treesens.extensions.studies.rule_columns import ColumnDomain, FewValues, column_domains, few_values, one_hot_groups

DEVIATIONS = 4.0


def surprising(expected: float, observed: int) -> bool:
    """True if chance would break a rule more often: the exceptions that independent columns would have are at least four
    standard deviations more than those that there are.
    """
    return expected > 0 and expected - observed >= DEVIATIONS * expected**0.5


@dataclass(frozen=True)
class RuleOptions:
    """`rows` and `share`: the least support of a rule; `exceptions`: the share of its support that may break it."""

    exceptions: float = 0.0
    rows: int = 30
    share: float = 0.01

    def least(self, rows: int) -> float:
        """The least support in a table of so many rows."""
        return max(self.rows, self.share * rows)


@dataclass(frozen=True)
class ValueSet:
    """A column has one of these values."""

    column: str
    values: tuple[float | str, ...]


@dataclass(frozen=True, eq=False)
class Rule:
    """What holds of every row but the exceptions.

    `left` and `right` are sets of values; those of "order" (left <= right) and "equal" have none and stand for the columns.
    `support`: rows to which the premise applies (of an equivalence: either side), `exceptions` int64[..]: those that break
    the rule, by number.
    """

    kind: Literal["implication", "equivalence", "order", "equal"]
    left: ValueSet
    right: ValueSet
    support: int
    exceptions: Int64Array
    dependency: bool = False


@dataclass(frozen=True, eq=False)
class Mined:
    """What a table says: a domain per column, groups, rules, and columns that were not searched for rules.

    `unfinished` names what there was no time for.
    """

    table: Table
    domains: tuple[ColumnDomain, ...]
    one_hot: tuple[tuple[str, ...], ...]
    rules: tuple[Rule, ...]
    left_out: tuple[str, ...] = ()
    unfinished: tuple[str, ...] = ()


@dataclass
class _Stages:
    """What was left before its end."""

    left: list[str] = field(default_factory=list)

    @contextmanager
    def stage(self, name: str) -> Iterator[None]:
        """A part of the work that is lost as a whole if there is no time for it."""
        try:
            yield
        except OutOfTime:
            self.left.append(name)


def mine(table: Table, options: RuleOptions | None = None) -> Mined:
    """The rules of a table; its label takes no part. Each holds on all rows but its exceptions.

    In a block with an end (base/budget.py) the domains of the columns come in any case, and of the groups, the
    implications and the orders those that were complete by then.
    """
    asked = options or RuleOptions()
    few, stages = few_values(table), _Stages()
    varied = [column for column in few if len(column.values) > 1]
    groups: list[tuple[str, ...]] = []
    rules: list[Rule] = []
    orders: list[Rule] = []
    left_out: tuple[str, ...] = ()
    with stages.stage("one-hot groups"):
        groups = one_hot_groups(few)
    with stages.stage("dependencies and implications"):
        contingency = Contingency.of(varied, table.rows)
        left_out = tuple(column.name for column in varied[len(contingency.columns) :])
        rules = Implications(contingency, groups, asked).mine()
    related = {frozenset((rule.left.column, rule.right.column)) for rule in rules if rule.dependency}
    with stages.stage("orders"):
        orders = mine_orders(table, few, related, asked)
    compared = frozenset(side.column for rule in orders for side in (rule.left, rule.right))
    domains = tuple(column_domains(table, few, compared))
    return Mined(table, domains, tuple(groups), (*rules, *orders), left_out, tuple(stages.left))


Item = tuple[int, int]
"""A column and one of its values."""


class Known:
    """Pairs of values that no row may hold, and which value leads to which other one without exception."""

    def __init__(self, table: Contingency) -> None:
        self.table = table
        self.forbidden: dict[Item, set[Item]] = {}
        self.steps: dict[Item, set[Item]] = {}

    def add(self, x: int, value: int, y: int, conclusion: list[int]) -> bool:
        """Notes that a value of x leaves some values of y; False if this follows from what is known."""
        premise = (x, value)
        others = {(y, v) for v in range(len(self.table.columns[y].values))} - {(y, v) for v in conclusion}
        ways = [premise, *self.steps.get(premise, ())]
        if any(others <= self.forbidden.get(way, set()) for way in ways):
            return False
        self.forbidden.setdefault(premise, set()).update(others)
        for other in others:
            self.forbidden.setdefault(other, set()).add(premise)
        if len(conclusion) == 1 and self.table.row(x, value, y)[conclusion[0]] == self.table.count(x, value):
            self.steps.setdefault(premise, set()).add((y, conclusion[0]))
            if self._two(x) and self._two(y):
                self.steps.setdefault((y, 1 - conclusion[0]), set()).add((x, 1 - value))
        return True

    def _two(self, x: int) -> bool:
        return len(self.table.columns[x].values) == 2 and not self.table.columns[x].missing


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
        """True if a dependency says more than a group, the other half of an equivalence, a copy, or two others."""
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
        """True if one rule from y to x forbids this pair of values, and others with it: `y is 1 implies x is 2` for all of
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


_SAMPLE = 256
"""Rows that are looked at first: most pairs of columns fail there."""

Pair = tuple[str, str]


def mine_orders(table: Table, few: list[FewValues], related: set[frozenset[str]], asked: RuleOptions) -> list[Rule]:
    """Rules x <= y and x = y; not those that ranges, dependencies (`related`) or two other exact rules say already."""
    columns = _numbers(table, few)
    found: dict[Pair, Rule] = {}
    for x in columns:
        for y in steadily(columns):
            if x != y and frozenset((x, y)) not in related:
                rule = _order(x, table.columns[x], y, table.columns[y], asked)
                if rule is not None:
                    found[x, y] = rule
    return _told_once(columns, found, asked.exceptions)


def _numbers(table: Table, few: list[FewValues]) -> list[str]:
    """Columns of finite numbers of more than two values; of few values only if these are whole (others may be codes)."""
    kept = []
    values = {column.name: column.values for column in few}
    for name in table.inputs:
        column = table.columns[name]
        if column.dtype == object or np.isinf(column).any():
            continue
        if name not in values or (len(values[name]) > 2 and (np.array(values[name], np.float64) % 1 == 0).all()):
            kept.append(name)
    return kept


def _told_once(columns: list[str], found: dict[Pair, Rule], share: float) -> list[Rule]:
    place = {name: i for i, name in enumerate(columns)}
    exact = {pair for pair, rule in found.items() if not len(rule.exceptions)}
    twins = {y for x, y in exact if (y, x) in exact and place[x] < place[y]}
    middle = [name for name in columns if name not in twins]
    told = []
    for (x, y), rule in steadily(found.items()):
        equal = _equal(rule, found[y, x]) if (y, x) in found else None
        if equal is not None and len(equal.exceptions) <= share * equal.support:
            if place[x] < place[y] and x not in twins and (y not in twins or (x, y) in exact):
                told.append(equal)
        elif not twins & {x, y} and not any((x, z) in exact and (z, y) in exact for z in middle):
            told.append(rule)
    return told


def _equal(one: Rule, other: Rule) -> Rule:
    return Rule("equal", one.left, one.right, one.support, np.union1d(one.exceptions, other.exceptions))


def _order(x: str, left: FloatArray, y: str, right: FloatArray, asked: RuleOptions) -> Rule | None:
    sample = slice(None, None, max(1, len(left) // _SAMPLE))
    if (left[sample] > right[sample]).sum() > asked.exceptions * len(left):
        return None
    both = ~(np.isnan(left) | np.isnan(right))
    support, broken = int(both.sum()), np.flatnonzero(left > right)
    if support < asked.least(len(left)) or len(broken) > asked.exceptions * support:
        return None
    if not surprising(_expected(left[both], right[both]), len(broken)):
        return None
    return Rule("order", ValueSet(x, ()), ValueSet(y, ()), support, broken)


def _expected(left: FloatArray, right: FloatArray) -> float:
    """How many rows would have left > right if the two columns were independent."""
    return float(np.searchsorted(np.sort(right), left, side="left").mean())
