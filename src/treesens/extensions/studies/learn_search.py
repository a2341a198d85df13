"""Mines the rules of a table, and writes them as text of the language and as records."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from decimal import ROUND_CEILING, ROUND_FLOOR, Context, Decimal
from fractions import Fraction
from typing import Literal

import numpy as np

from treesens.compiler.base.arrays import BoolArray, FloatArray, Int64Array
from treesens.compiler.base.budget import Budget, OutOfTime, check_in, steadily, working_within
from treesens.compiler.base.floats import round_to_float32
from treesens.data.columns import Column
from treesens.data.tables import Table
from treesens.errors import DataError
from treesens.extensions.studies.learn import FeatureRecord, LearnOptions, RuleRecord, RulesDocument
from treesens.extensions.studies.study import Asking, Found
from treesens.grammar.printing.print_terms import Unwritable, decimal, name_text, string_text
from treesens.grammar.tree import ast

POINT = "a"
_DIGITS = 9
_LISTED = 10


def ask(asked: Asking[LearnOptions]) -> Found[RuleRecord]:
    """Mines the rules of a table and returns them as records."""
    assert asked.table is not None
    options = asked.options
    with working_within(Budget.of(options.time_limit, asked.stop)):
        mined = mine(asked.table, RuleOptions(options.exceptions, options.rows, options.share))
    document = rules_document(mined)
    return Found(document.rules, (), asked.stop.is_set(), not mined.unfinished, document)


def rules_text(mined: Mined) -> str:
    """The text of a `.sens` file: `feature` and `onehot` declarations, and a comment for each relation. A comment starts with
    `# rule:`; the text up to the next `#` is a constraint on a point `a`.
    """
    table = mined.table
    lines = [f"# mined from {table.rows:,} rows; to approve a rule, write it into a query, for each query point"]
    lines += [_declaration(domain) for domain in mined.domains]
    lines += [f"onehot {{{', '.join(_name(name) for name in group)}}}" for group in mined.one_hot]
    lines += [f"# rule: {constraint_text(rule, mined)}  # {_support(rule)}" for rule in mined.rules]
    if mined.unfinished:
        lines.append(f"# the time ran out before these searches were complete: {', '.join(mined.unfinished)}")
    if mined.left_out:
        lines.append(f"# {len(mined.left_out)} columns were not searched for relations: too many values in total")
    return "\n".join(lines) + "\n"


def first_look(table: Table) -> Mined:
    """The findings about the columns of a table. Relations are unused, so the search for them ends after one second."""
    with working_within(Budget.of(1.0)):
        return mine(table, RuleOptions())


def domain_lines(mined: Mined, names: Sequence[str]) -> list[str]:
    """The declarations of the columns in `names`."""
    return [_declaration(domain) for domain in mined.domains if domain.name in names]


def rules_document(mined: Mined) -> RulesDocument:
    """The domains, groups and rules of a table; the caller fills in the name of the table."""
    return RulesDocument(
        data="",
        rows=mined.table.rows,
        features=[FeatureRecord(feature=d.name, kind=d.kind, text=_declaration(d)) for d in mined.domains],
        onehot=[list(group) for group in mined.one_hot],
        rules=[rule_record(rule, mined) for rule in mined.rules],
        not_searched=list(mined.left_out),
        unfinished=list(mined.unfinished),
        text=rules_text(mined),
    )


def rule_record(rule: Rule, mined: Mined) -> RuleRecord:
    """A rule as a record, with its support and its exceptions."""
    return RuleRecord(
        kind=rule.kind,
        columns=[rule.left.column, rule.right.column],
        left=list(rule.left.values),
        right=list(rule.right.values),
        dependency=rule.dependency,
        support=rule.support,
        exceptions=rule.exceptions.tolist(),
        constraint=constraint_text(rule, mined),
    )


def constraint_text(rule: Rule, mined: Mined) -> str:
    """A rule as a constraint on the point `a`. A relation between numbers applies only to values that are present."""
    left, right = _side(rule.left), _side(rule.right)
    if rule.kind == "equivalence":
        return f"({left} implies {right}) and ({right} implies {left})"
    if rule.kind == "implication":
        return f"{left} implies {right}"
    relation = f"{left} {'=' if rule.kind == 'equal' else '<='} {right}"
    absent = {domain.name for domain in mined.domains if domain.missing}
    present = [f"present({_side(s)})" for s in (rule.left, rule.right) if s.column in absent]
    return f"{' and '.join(present)} implies {relation}" if present else relation


def _side(side: ValueSet) -> str:
    feature = f"{POINT}.{_name(side.column)}"
    if not side.values:
        return feature
    values = [_value(value) for value in side.values]
    return f"{feature} = {values[0]}" if len(values) == 1 else f"{feature} in {{{', '.join(values)}}}"


def _support(rule: Rule) -> str:
    count = len(rule.exceptions)
    if not count:
        return f"{rule.support:,} rows, no exception"
    rows = ", ".join(str(row) for row in rule.exceptions[:_LISTED]) + (", .." if count > _LISTED else "")
    return f"{rule.support:,} rows, {count:,} exception{'s' if count > 1 else ''}: row{'s' if count > 1 else ''} {rows}"


def _name(name: str) -> str:
    """The name of a column as the language writes it. Raises DataError for an impossible name."""
    try:
        return name_text(ast.Name(name))
    except Unwritable:
        raise DataError(
            f"the language cannot express the name of the column {name[:60]!r}",
            remedy="rename the column, or drop it from the table; a name must be one non-empty line without backquotes",
        ) from None


def _value(value: float | str) -> str:
    return string_text(value) if isinstance(value, str) else decimal(Fraction(Decimal(repr(value))))


def _declaration(domain: ColumnDomain) -> str:
    name = _name(domain.name)
    missing = " or missing" if domain.missing else ""
    match domain.kind:
        case "other":
            return f"# {name}: no domain (text with many values, no values, or infinite values)"
        case "category":
            return f"feature {name}: category {{{', '.join(map(_value, domain.values))}}}{missing}"
        case "integer":
            return f"feature {name}: integer in [{_value(domain.low)}, {_value(domain.high)}]{missing}"
        case "steps":
            ends = f"[{_value(domain.low)}, {_value(domain.high)}]"
            return f"feature {name}: integer in [0, {domain.steps}] stored as {ends}{missing}"
        case _:
            return f"feature {name}: real in [{', '.join(_ends(domain.low, domain.high))}]{missing}"


def _ends(low: float, high: float) -> Iterator[str]:
    """Decimals that enclose both numbers as float64 and as float32, which models may read: ends are never rounded inwards."""
    for value, rounding, end in ((low, ROUND_FLOOR, min), (high, ROUND_CEILING, max)):
        narrow = round_to_float32(Fraction(value))
        reached = end(value, narrow) if np.isfinite(narrow) else value
        yield decimal(Fraction(_short(Decimal(repr(value)), Decimal(reached), rounding)))


def _short(written: Decimal, reached: Decimal, rounding: str) -> Decimal:
    """A short decimal at or beyond `reached`: the number as written or, if that is not far enough out, with one more digit."""
    outward = -1 if rounding == ROUND_FLOOR else 1
    step = Decimal(1).scaleb(int(written.as_tuple().exponent) - 1)
    for short in (written, written + outward * step) if len(written.as_tuple().digits) < _DIGITS else ():
        if (short - reached) * outward >= 0:
            return short
    return Context(prec=_DIGITS, rounding=rounding).create_decimal(reached)


DEVIATIONS = 4.0


def surprising(expected: float, observed: int) -> bool:
    """True if a rule has far fewer exceptions than by chance: the number expected for independent columns exceeds the observed
    number by at least four standard deviations.
    """
    return expected > 0 and expected - observed >= DEVIATIONS * expected**0.5


@dataclass(frozen=True)
class RuleOptions:
    """A rule needs a support of `rows` rows and a `share` of all rows; a fraction `exceptions` of the support may break it."""

    exceptions: float = 0.0
    rows: int = 30
    share: float = 0.01

    def least(self, rows: int) -> float:
        """The minimum support of a rule in a table of `rows` rows."""
        return max(self.rows, self.share * rows)


@dataclass(frozen=True)
class ValueSet:
    """The statement that a column has one of these values."""

    column: str
    values: tuple[float | str, ...]


@dataclass(frozen=True, eq=False)
class Rule:
    """A rule that holds for every row except `exceptions`.

    `left` and `right` are sets of values, which are empty for "order" (left <= right) and "equal", because columns are
    compared. `support` is the number of rows to which the premise applies (for an equivalence, the rows to which at least one
    side applies), and `exceptions`, int64[..], holds the indices of the rows that break the rule.
    """

    kind: Literal["implication", "equivalence", "order", "equal"]
    left: ValueSet
    right: ValueSet
    support: int
    exceptions: Int64Array
    dependency: bool = False


@dataclass(frozen=True, eq=False)
class Mined:
    """The findings about a table: a domain per column, groups, rules, and the columns that were not searched for rules.

    `unfinished` names the searches that the time limit cut short.
    """

    table: Table
    domains: tuple[ColumnDomain, ...]
    one_hot: tuple[tuple[str, ...], ...]
    rules: tuple[Rule, ...]
    left_out: tuple[str, ...] = ()
    unfinished: tuple[str, ...] = ()


@dataclass
class _Stages:
    """The stages that the time limit cut short."""

    left: list[str] = field(default_factory=list)

    @contextmanager
    def stage(self, name: str) -> Iterator[None]:
        """Runs a stage of the work. If the time runs out, all results of the stage are lost, and its name is recorded."""
        try:
            yield
        except OutOfTime:
            self.left.append(name)


def mine(table: Table, options: RuleOptions | None = None) -> Mined:
    """Mines the rules of a table; its label column is left out. Each rule holds on all rows except its exceptions.

    In a block with a time limit (base/budget.py), the domains of the columns are always complete; groups, implications and
    orders are returned if their search ended in time.
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
    """The known pairs of values that exclude each other, and for each value, the values that it implies without exception."""

    def __init__(self, table: Contingency) -> None:
        self.table = table
        self.forbidden: dict[Item, set[Item]] = {}
        self.steps: dict[Item, set[Item]] = {}

    def add(self, x: int, value: int, y: int, conclusion: list[int]) -> bool:
        """Adds the fact that a value of x leaves only the values `conclusion` of y; False if the fact is known already."""
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
        """The dependencies, and then the implications; rules implied by two others or by an exact copy are left out."""
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
        """True if no group, equivalence, copy or pair of other dependencies implies the dependency."""
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
                yield rule  # the rule states both values of y at once
                return
        for value in np.unique(best).tolist():
            chosen = np.flatnonzero(best == value).tolist()
            yield from self._rules(left, chosen, right, [value], both and len(chosen) == 1, dependency=True)

    def _rules(
        self, left: FewValues, premise: list[int], right: FewValues, conclusion: list[int], both: bool, dependency: bool
    ) -> Iterator[Rule]:
        """The rule; an equivalence with too many exceptions as a whole is replaced by its two implications."""
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
        """Implications from single values, without those that forbid nothing new.

        Implications that may imply others are added first: fewest conclusion values, most premise rows, fewest conclusion rows.
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
        """True if one rule from y to x forbids this pair of values and other pairs too: `y is 1 implies x is 2` replaces `x is
        0 implies y is 0`, `x is 1 implies y is 0`, ..
        """
        if len(self.table.columns[y].values) != 2 or len(self.table.columns[x].values) == 2:
            return False
        return steps.get((y, 1 - conclusion[0], x), value) != value

    def _conclusion(self, x: int, value: int, y: int) -> list[int]:
        """The smallest set of values to which a value of x restricts y; empty if the set is large or may be due to chance."""
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
"""Number of rows that are checked first: most pairs of columns already fail on these rows."""

Pair = tuple[str, str]


def mine_orders(table: Table, few: list[FewValues], related: set[frozenset[str]], asked: RuleOptions) -> list[Rule]:
    """Mines rules x <= y and x = y, except those that follow from ranges, dependencies (`related`) or two other exact rules."""
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
    """The columns of finite numbers; a column with few values must have more than two, all whole (else they may be codes)."""
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
    """The number of rows that would have left > right if the two columns were independent."""
    return float(np.searchsorted(np.sort(right), left, side="left").mean())


_MOST_ITEMS = 4_000
"""Maximum number of values of all columns together; further columns are left out (the table of pairs would not fit)."""

_BLOCK = 1 << 12
"""Rows per matrix product, which then takes at most a second or two; counts below 2^24 are exact in float32."""


@dataclass(frozen=True, eq=False)
class Contingency:
    """`pairs`, int64[items, items], counts rows with both items. A column's items are its values in order, then missing."""

    columns: tuple[FewValues, ...]
    rows: int
    start: Int64Array
    pairs: Int64Array

    @classmethod
    def of(cls, columns: Sequence[FewValues], rows: int) -> Contingency:
        """The table of the first columns, up to _MOST_ITEMS items in all."""
        sizes = np.array([len(column.values) + 1 for column in columns], np.int64)
        kept = tuple(columns[: int((np.cumsum(sizes) <= _MOST_ITEMS).sum())])
        start = np.concatenate(([0], np.cumsum(sizes[: len(kept)]))).astype(np.int64)
        pairs = np.zeros((start[-1], start[-1]), np.int64)
        for first in range(0, rows, _BLOCK):
            check_in()
            block = np.zeros((min(_BLOCK, rows - first), start[-1]), np.float32)
            for i, column in enumerate(kept):
                block[np.arange(len(block)), start[i] + column.codes[first : first + _BLOCK]] = 1
            pairs += (block.T @ block).astype(np.int64)
        return cls(kept, rows, start, pairs)

    def count(self, x: int, value: int) -> int:
        """The number of rows with a value of column x."""
        item = self.start[x] + value
        return int(self.pairs[item, item])

    def row(self, x: int, value: int, y: int) -> Int64Array:
        """The numbers of rows with a value of x, by the value of y (missing values left out), int64[values of y]."""
        return self.pairs[self.start[x] + value, self.start[y] : self.start[y + 1] - 1]

    def best(self, x: int, y: int) -> Int64Array:
        """The most frequent value of y for every value of x."""
        block = self.pairs[self.start[x] : self.start[x + 1] - 1, self.start[y] : self.start[y + 1] - 1]
        best: Int64Array = np.argmax(block, axis=1)
        return best

    def _premises(self) -> Int64Array:
        """The number of rows with each item; 0 for missing."""
        counts = np.diagonal(self.pairs).copy()
        counts[self.start[1:] - 1] = 0
        return counts

    def _conclusions(self) -> Int64Array:
        """The pairs, with 0 where the second value is missing."""
        pairs = self.pairs.copy()
        pairs[:, self.start[1:] - 1] = 0
        return pairs

    def dependencies(self, exceptions: float, least: float) -> set[tuple[int, int]]:
        """Pairs of columns (x, y) in which each value of x determines one value of y, except in a share of the value's rows.

        A pair is left out if chance alone would rarely cause an exception. Suppose all rows but the first of each value of x
        drew their value of y at random: at least 16 of them must be expected to differ from the most frequent value of y.
        """
        counts = self._premises()
        best = np.maximum.reduceat(self._conclusions(), self.start[:-1], axis=1)
        missed = counts[:, None] - best
        fine = np.logical_and.reduceat(
            (missed <= exceptions * counts[:, None]) | (counts[:, None] == 0), self.start[:-1]
        )
        chance = np.maximum.reduceat(counts, self.start[:-1])
        support = np.add.reduceat(counts, self.start[:-1])
        repeated = support - np.array([len(column.values) for column in self.columns])
        fine &= (support >= least)[:, None] & (repeated[:, None] * (1 - chance / self.rows)[None, :] >= 16)
        np.fill_diagonal(fine, False)
        return {(int(x), int(y)) for x, y in np.argwhere(fine)}

    def candidates(self, exceptions: float, least: float, expected: float) -> Iterator[tuple[int, int, int]]:
        """Triples (x, value, y): x = value may exclude values of y that at least `expected` rows would have by chance."""
        counts = self._premises()
        share: FloatArray = np.diagonal(self.pairs) / self.rows
        rare = np.where(self.pairs <= exceptions * counts[:, None], share[None, :], 0.0)
        excluded = np.add.reduceat(rare, self.start[:-1], axis=1) * counts[:, None]
        for item, y in steadily(np.argwhere((excluded >= expected) & (counts >= least)[:, None]).tolist()):
            x = int(np.searchsorted(self.start, item, side="right")) - 1
            if x != y:
                yield x, int(item - self.start[x]), y


FEW = 24
"""A column with at most this many distinct values is treated as a set of values, for implications and dependencies."""

_MOST_STEPS = 10_000
_GROUP_STEPS = 20_000
"""Maximum number of columns that the search for one group tries."""


@dataclass(frozen=True, eq=False)
class FewValues:
    """A column with few values: `codes`, int64[rows], holds indices of `values`; len(values) means missing."""

    name: str
    values: tuple[float | str, ...]
    codes: Int64Array

    @property
    def missing(self) -> bool:
        return bool((self.codes == len(self.values)).any())


@dataclass(frozen=True)
class ColumnDomain:
    """The domain of a column: the `values` of a category, or the ends `low` and `high` of numbers.

    For the kind "steps", the numbers are low + k (high - low) / steps.
    """

    name: str
    kind: Literal["category", "integer", "real", "steps", "other"]
    missing: bool
    values: tuple[float | str, ...] = ()
    low: float = 0.0
    high: float = 0.0
    steps: int = 0


def absent(column: Column) -> BoolArray:
    """True for fields without a value, bool[rows]."""
    if column.dtype == object:
        return np.array([v is None for v in column], dtype=bool)
    return np.isnan(column)


def few_values(table: Table) -> list[FewValues]:
    """The columns with at most FEW values, in the order of the table; columns with infinite values are left out."""
    found = []
    for name in table.inputs:
        column = table.columns[name]
        gone = absent(column)
        distinct, codes = np.unique(column[~gone], return_inverse=True)
        if not 0 < len(distinct) <= FEW or not _tellable(distinct):
            continue
        every = np.full(len(column), len(distinct), np.int64)
        every[~gone] = codes
        found.append(FewValues(name, tuple(distinct.tolist()), every))
    return found


def _tellable(distinct: Column) -> bool:
    """True if the values can be written in the language, and remain distinct in float32, which models may read."""
    if distinct.dtype == object:
        return all(v.isprintable() and '"' not in v for v in distinct)
    with np.errstate(over="ignore"):
        narrow = distinct.astype(np.float32)
    return bool(np.isfinite(narrow).all()) and len(np.unique(narrow)) == len(distinct)


_DECIMALS = 4
"""Maximum number of decimals in amounts and rates as people write them."""


def column_domains(table: Table, few: Sequence[FewValues], unscaled: frozenset[str]) -> list[ColumnDomain]:
    """The domain of every input column; `unscaled` columns are never interpreted as steps of a scaled interval."""
    known = {column.name: column for column in few}
    return [_domain(name, table.columns[name], known.get(name), name not in unscaled) for name in table.inputs]


def _domain(name: str, column: Column, few: FewValues | None, scaled: bool) -> ColumnDomain:
    gone = absent(column)
    missing = bool(gone.any())
    present = column[~gone]
    if few is None and (present.dtype == object or not len(present) or not np.isfinite(present).all()):
        return ColumnDomain(name, "other", missing)
    distinct = np.unique(present)
    numbers = distinct.dtype != object
    whole = numbers and bool((distinct == np.trunc(distinct)).all())
    if few is not None and not (whole and distinct[-1] - distinct[0] == len(distinct) - 1):
        return ColumnDomain(name, "category", missing, few.values)
    low, high = float(distinct[0]), float(distinct[-1])
    if whole:
        return ColumnDomain(name, "integer", missing, low=low, high=high)
    steps = 0 if not scaled or _as_people_write(distinct) else _steps(distinct)
    return ColumnDomain(name, "steps" if steps else "real", missing, low=low, high=high, steps=steps)


def _as_people_write(distinct: FloatArray) -> bool:
    """True if the numbers are amounts with a few decimals, such as 28.3, and not whole numbers scaled to an interval."""
    if distinct[-1] == 1 and distinct[0] in (0, -1):
        return False
    return all(Decimal(repr(float(v))).as_tuple().exponent >= -_DECIMALS for v in distinct)  # type: ignore[operator]


def _steps(distinct: FloatArray) -> int:
    """The number of equal steps of the range if every number is within four floats of a step, otherwise 0."""
    span = distinct[-1] - distinct[0]
    count = span / np.diff(distinct).min()
    if not 2 <= count <= _MOST_STEPS:
        return 0
    steps = round(count)
    low, high = (Fraction(Decimal(repr(float(v)))) for v in (distinct[0], distinct[-1]))
    nearest = np.rint((distinct - distinct[0]) / span * steps).astype(np.int64).tolist()
    images = np.array([float(low + k * (high - low) / steps) for k in nearest])
    close = np.abs(images - distinct) <= 4 * np.spacing(np.maximum(np.abs(images), np.abs(distinct)))
    return steps if close.all() else 0


def one_hot_groups(few: Sequence[FewValues]) -> list[tuple[str, ...]]:
    """Disjoint groups of columns of zeros and ones, in which exactly one column is 1 in every row.

    Finds exact covers of the rows by columns (Knuth's algorithm X, with a limit on its steps): sets of columns such that every
    row has a 1 in exactly one column of the set.
    """
    bits = [column for column in few if column.values == (0.0, 1.0) and not column.missing]
    if not bits:
        return []
    ones = np.stack([column.codes == 1 for column in bits])
    groups, free = [], np.ones(len(bits), dtype=bool)
    for first in range(len(bits)):
        check_in()
        if free[first]:
            free[first] = False
            group = _Cover(ones, [_GROUP_STEPS]).extend([first], ones[first], free & ~(ones & ones[first]).any(axis=1))
            if group:
                free[group] = False
                groups.append(tuple(bits[i].name for i in sorted(group)))
    return groups


@dataclass(frozen=True, eq=False)
class _Cover:
    ones: BoolArray
    left: list[int]

    def extend(self, chosen: list[int], covered: BoolArray, free: BoolArray) -> list[int]:
        """A cover that extends the chosen columns by free columns; empty if none exists or the step limit is reached."""
        if covered.all():
            return chosen
        row = int(np.argmin(covered))
        for column in np.flatnonzero(free & self.ones[:, row]).tolist():
            check_in()
            self.left[0] -= 1
            if self.left[0] < 0:
                break
            apart = free & ~(self.ones & self.ones[column]).any(axis=1)
            if found := self.extend([*chosen, column], covered | self.ones[column], apart):
                return found
        return []
