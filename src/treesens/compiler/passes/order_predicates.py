"""order-predicates: sets the order in which predicates are emitted and branched on.

The chains p[1] <= p[2] <= … (eq. predicate_consistency) are part of the type of an order block, and every backend emits the
minimal set of constraints, between neighbours only. The remaining choice is the order of features: solvers break ties by
position, and backends with a branching order use the order of the blocks.

`by=gain` starts with the features whose guards change scores most (the sum of absolute coefficients of the leaves that require
these guards); `by=uses` sorts features by the number of rows that mention them; `by=feature` uses the model's order.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np

from treesens.compiler.base.arrays import FloatArray
from treesens.compiler.base.dyadic import Unit
from treesens.compiler.ir import Linear, Module, Order
from treesens.compiler.ir.module import leaf_implications
from treesens.compiler.ir.rewrite import rearranged
from treesens.compiler.passes.base import PassResult, Relation


@dataclass(frozen=True)
class OrderPredicates:
    by: Literal["gain", "uses", "feature"] = "gain"

    name: ClassVar[str] = "order-predicates"
    relation: ClassVar[Relation] = Relation.EQUIVALENT
    statistics_names: ClassVar[Mapping[str, str]] = {"blocks moved": "order blocks that have a new position"}

    def run(self, module: Module) -> PassResult:
        weight = _weights(module, self.by)
        numbers = [i for i, b in enumerate(module.blocks) if isinstance(b, Order)]
        ranked = sorted(numbers, key=lambda i: (-_total(module, i, weight), _feature(module, i)))
        position = np.arange(len(module.blocks), dtype=np.int32)
        blocks = list(module.blocks)
        for place, source in zip(numbers, ranked, strict=True):
            blocks[place] = module.blocks[source]
            position[source] = place
        moved = sum(a != b for a, b in zip(numbers, ranked, strict=True))
        return PassResult(rearranged(module, blocks, position), statistics={"blocks moved": moved})


def _feature(module: Module, block: int) -> tuple[int, tuple[int, ...]]:
    order = module.blocks[block]
    assert isinstance(order, Order)
    return order.feature, order.points


def _total(module: Module, block: int, weight: FloatArray) -> float:
    return float(weight[module.blocks[block].variables].sum())


def _weights(module: Module, by: str) -> FloatArray:
    """A weight per variable. Weights only determine the order of features, so floats are good enough."""
    weight = np.zeros(module.variables)
    if by == "feature":
        return weight
    leaves, literals = leaf_implications(module)
    if by == "uses":
        np.add.at(weight, literals >> 1, 1.0)
        return weight
    size = np.zeros(module.variables)
    for row in module.ops_of(Linear):
        np.add.at(size, row.variables, np.abs(Unit(row.shift).doubles(row.coefficients)))
    np.add.at(weight, literals >> 1, size[leaves])
    return weight
