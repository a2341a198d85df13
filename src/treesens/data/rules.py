"""Rules that hold in a table: domains, one-hot groups, relations between columns of few values, and orders of numbers.

Dependencies and denial constraints with their exceptions are those of Chu, Ilyas and Papotti, "Discovering Denial Constraints"
(VLDB 2013), for two columns.
"""

from __future__ import annotations

from dataclasses import dataclass

from treesens.data.contingency import Contingency
from treesens.data.implications import Implications
from treesens.data.orders import mine_orders
from treesens.data.rule import Rule, RuleOptions
from treesens.data.rule_columns import ColumnDomain, column_domains, few_values, one_hot_groups
from treesens.data.tables import Table


@dataclass(frozen=True, eq=False)
class Mined:
    """What a table says: a domain per column, groups, rules, and columns that were not searched for rules."""

    table: Table
    domains: tuple[ColumnDomain, ...]
    one_hot: tuple[tuple[str, ...], ...]
    rules: tuple[Rule, ...]
    left_out: tuple[str, ...] = ()


def mine(table: Table, options: RuleOptions | None = None) -> Mined:
    """The rules of a table; its label takes no part. Each holds on all rows but its exceptions."""
    asked = options or RuleOptions()
    few = few_values(table)
    groups = one_hot_groups(few)
    varied = [column for column in few if len(column.values) > 1]
    contingency = Contingency.of(varied, table.rows)
    rules = Implications(contingency, groups, asked).mine()
    related = {frozenset((rule.left.column, rule.right.column)) for rule in rules if rule.dependency}
    orders = mine_orders(table, few, related, asked)
    compared = frozenset(side.column for rule in orders for side in (rule.left, rule.right))
    left_out = tuple(column.name for column in varied[len(contingency.columns) :])
    return Mined(table, tuple(column_domains(table, few, compared)), tuple(groups), (*rules, *orders), left_out)
