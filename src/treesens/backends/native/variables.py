"""Where the variables of a module are in the problem of the native engine."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from treesens.compiler.base.arrays import BoolArray, Int32Array, runs_of
from treesens.compiler.ir import Bool, Membership, Module, Order
from treesens.errors import BackendError


@dataclass
class Places:
    """Where the variables of a module are in the problem: order predicates, members of tables and free Booleans."""

    variable: Int32Array
    """int32[module variables]: engine variable of a predicate, member or free Boolean; -1 for leaves."""
    position: Int32Array
    """int32[module variables]: position of a predicate in its order block."""
    member: dict[int, BoolArray]
    """Of every member: which positions of its engine variable make it true."""
    size: list[int] = field(default_factory=list)
    feature: list[int] = field(default_factory=list)

    def ranges(self, literal: int) -> tuple[int, list[tuple[int, int]]]:
        """The engine variable of a literal and the runs of positions if it is true."""
        v = literal >> 1
        variable = int(self.variable[v])
        if variable < 0:
            raise BackendError("the native engine takes no clauses over leaf indicators")
        size = self.size[variable]
        if v not in self.member:  # true up to its position: asked of every cost of every row
            position = int(self.position[v])
            first, last = (position + 1, size - 1) if literal & 1 else (0, position)
            return variable, [(first, last)] if first <= last else []
        mask = self.member[v]
        low, high = runs_of(~mask if literal & 1 else mask)
        return variable, list(zip(low.tolist(), high.tolist(), strict=True))


def places_of(module: Module) -> Places:
    places = Places(np.full(module.variables, -1, np.int32), np.zeros(module.variables, np.int32), {})
    of_block: dict[int, int] = {}
    for number, block in enumerate(module.blocks):
        if isinstance(block, Order):
            of_block[number] = len(places.size)
            places.variable[block.variables] = len(places.size)
            places.position[block.variables] = np.arange(len(block.variables))
            places.size.append(len(block.cells))
            places.feature.append(block.feature)
    for table in module.ops_of(Membership):
        for i, member in enumerate(table.members):
            order = module.blocks[table.orders[i]]
            assert isinstance(order, Order)
            runs = slice(table.indptr[i], table.indptr[i + 1])
            cells = order.cells[:, None]
            places.member[int(member)] = np.any((cells >= table.low[runs]) & (cells <= table.high[runs]), axis=1)
            places.variable[member] = of_block[int(table.orders[i])]
    for free in module.blocks_of(Bool):
        for v in free.variables:
            if int(v) not in places.member:
                places.variable[v] = len(places.size)
                places.member[int(v)] = np.array([False, True])
                places.size.append(2)
                places.feature.append(len(module.features) + len(places.size))
    return places
