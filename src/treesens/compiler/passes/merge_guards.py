"""merge-guards: gives one variable to predicates that no legal cell distinguishes.

Source: order blocks with cells that the domain forbids (facts at the ends, clauses "p[k-1] or not p[k]" for holes inside).
Target: the same blocks without these cells. Two guards such as `sex < 0.3` and `sex < 0.6` over the categories {0, 1} are
equal as predicates and share one variable; a predicate that is always true, or always false, becomes a constant.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from treesens.compiler.base.arrays import BoolArray
from treesens.compiler.ir import FALSE, TRUE, Clauses, Facts, Module, Order
from treesens.compiler.ir.rewrite import Substitution, substitute
from treesens.compiler.passes.base import Chain, PassResult, Relation
from treesens.compiler.passes.remarks import Places, Remark


@dataclass(frozen=True)
class MergeGuards:
    name: ClassVar[str] = "merge-guards"
    relation: ClassVar[Relation] = Relation.EQUIVALENT
    statistics_names: ClassVar[Mapping[str, str]] = {
        "predicates merged": "predicates that became constant or equal to another one",
    }

    def run(self, module: Module) -> PassResult:
        before = module.variables
        steps: list[Substitution] = []
        # A fact about one copy reaches the other copy through an equality, so merging is repeated to a fixed point.
        while True:
            by = _merge(module)
            if by.variables == module.variables:
                break
            steps.append(by)
            module = substitute(module, by)
        statistics = {"predicates merged": before - module.variables}
        return PassResult(module, Chain(tuple(steps)), statistics, remarks=lambda: _missed(module))


def _merge(module: Module) -> Substitution:
    true, false = _fixed(module)
    joined = _hole_clauses(module)
    target = np.arange(module.variables, dtype=np.int32) * 2
    for block in module.blocks_of(Order):
        v = block.variables
        if len(v) == 0:
            continue
        first, last = _ends(true[v], false[v])
        if first > last:
            continue  # contradictory facts are left to the backend, and nothing is merged
        target[v[:first]] = FALSE
        target[v[last:]] = TRUE
        for i in range(first + 1, last):
            if (int(v[i - 1]), int(v[i])) in joined:
                target[v[i]] = target[v[i - 1]]
    return Substitution.compact(target)


def _fixed(module: Module) -> tuple[BoolArray, BoolArray]:
    """The variables that facts make true, and those that facts make false, bool[variables] each."""
    true = np.zeros(module.variables, bool)
    false = np.zeros(module.variables, bool)
    for op in module.ops_of(Facts):
        true[op.literals[op.literals & 1 == 0] >> 1] = True
        false[op.literals[op.literals & 1 == 1] >> 1] = True
    return true, false


def _ends(true: BoolArray, false: BoolArray) -> tuple[int, int]:
    """The range of predicates in a block that facts leave open. Monotone by type: everything below a false predicate is false,
    everything above a true one is true.
    """
    down, up = np.flatnonzero(false), np.flatnonzero(true)
    return (int(down[-1]) + 1 if len(down) else 0), (int(up[0]) if len(up) else len(true))


def _missed(module: Module) -> Iterator[Remark]:
    true, false = _fixed(module)
    contradictory, separating = [np.zeros(0, np.int32)], [np.zeros(0, np.int32)]
    for block in module.blocks_of(Order):
        first, last = _ends(true[block.variables], false[block.variables])
        (contradictory if first > last else separating).append(block.variables)
    places = Places(module)
    yield from places.remarks("missed", "not merged: facts contradict each other", np.concatenate(contradictory))
    yield from places.remarks("missed", "not merged: legal cells lie on both sides", np.concatenate(separating))


def _hole_clauses(module: Module) -> set[tuple[int, int]]:
    """Pairs (p, q) with a clause "p or not q": the block type implies p <= q, so p and q are equal."""
    pairs: set[tuple[int, int]] = set()
    for op in module.ops_of(Clauses):
        for r in np.flatnonzero(np.diff(op.indptr) == 2):
            a, b = sorted(op.literals[op.indptr[r] : op.indptr[r + 1]].tolist(), key=lambda x: x & 1)
            if a & 1 == 0 and b & 1 == 1:
                pairs.add((a >> 1, b >> 1))
    # A hole of several cells is one clause on its ends: all predicates between the ends are equal, too.
    position = {int(v): (i, j) for i, b in enumerate(module.blocks_of(Order)) for j, v in enumerate(b.variables)}
    blocks = list(module.blocks_of(Order))
    for a, b in list(pairs):
        if a in position and b in position and position[a][0] == position[b][0]:
            v = blocks[position[a][0]].variables
            for j in range(position[a][1], position[b][1]):
                pairs.add((int(v[j]), int(v[j + 1])))
    return pairs
