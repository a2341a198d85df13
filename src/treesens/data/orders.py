"""Pairs of columns of numbers of which one is never the greater."""

from __future__ import annotations

import numpy as np

from treesens.compiler.base.arrays import FloatArray
from treesens.compiler.base.checkpoints import steadily
from treesens.data.rule import Rule, RuleOptions, ValueSet, surprising
from treesens.data.rule_columns import FewValues
from treesens.data.tables import Table

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
