"""Rules that hold in a table: domains, one-hot groups, relations between columns of few values, and orders of numbers.

Dependencies and denial constraints with their exceptions are those of Chu, Ilyas and Papotti, "Discovering Denial Constraints"
(VLDB 2013), for two columns.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from treesens.compiler.base.checkpoints import OutOfTime
from treesens.data.contingency import Contingency
from treesens.data.implications import Implications
from treesens.data.orders import mine_orders
from treesens.data.rule import Rule, RuleOptions
from treesens.data.rule_columns import ColumnDomain, column_domains, few_values, one_hot_groups
from treesens.data.tables import Table


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

    In a block with an end (base/checkpoints.py) the domains of the columns come in any case, and of the groups, the
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
