"""Remarks: what a pass changed, and what it could not change and why (compare LLVM's -Rpass and -Rpass-missed).

`passed` derives what changed from the module before a pass and its result, so that no pass has to record it. A pass adds what
it `missed` as `PassResult.remarks`, a function that is called only if remarks are shown.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Final, Literal, get_args

import numpy as np

from treesens.compiler.base.arrays import BoolArray, Int32Array, Int64Array
from treesens.compiler.ir import Equal, ExactlyOne, Facts, Linear, Membership, Module, Op, Order
from treesens.compiler.ir.rewrite import Substitution
from treesens.compiler.ir.text import KINDS
from treesens.compiler.legalise.rows import count_rows
from treesens.compiler.passes.base import Chain, IdentityPostsolve, PassResult, Postsolve

Kind = Literal["passed", "missed"]
REMARK_KINDS: Final[tuple[Kind, ...]] = ("passed", "missed")


@dataclass(frozen=True)
class Remark:
    """`reason` says what changed, or why it did not; `count` is the number of things at `place`: a tree by its number in the
    model, a feature, a row.
    """

    kind: Kind
    reason: str
    count: int
    place: str


class Places:
    """The place of every variable of a module: its tree, or its feature."""

    def __init__(self, module: Module) -> None:
        self._names: dict[tuple[str, str], int] = {}
        self._of = np.full(module.variables, -1, np.int64)
        several = len({block.model for block in module.blocks_of(ExactlyOne)}) > 1
        for block in module.blocks:
            match block:
                case Order():
                    self._put("predicates", f"feature {module.features[block.feature].name}", block.variables)
                case ExactlyOne():
                    model = f"model {block.model}, " if several else ""
                    for i, tree in enumerate(block.tree.tolist()):
                        self._put(
                            "leaves", f"{model}tree {tree}", block.variables[block.offset[i] : block.offset[i + 1]]
                        )
                case _:
                    self._put("Booleans", block.name, block.variables)
        for table in module.ops_of(Membership):
            for member, number in zip(table.members.tolist(), table.orders.tolist(), strict=True):
                order = module.blocks[number]
                assert isinstance(order, Order)
                self._of[member] = self._number("predicates", f"feature {module.features[order.feature].name}")

    def _number(self, kind: str, name: str) -> int:
        return self._names.setdefault((kind, name), len(self._names))

    def _put(self, kind: str, name: str, variables: Int32Array) -> None:
        here = variables[self._of[variables] < 0]  # a leaf of two points is counted once
        self._of[here] = self._number(kind, name)

    def groups(self, variables: Int32Array) -> Iterator[tuple[str, BoolArray]]:
        """The places of the variables, each with a mask of its variables."""
        numbers = self._of[variables]
        names = list(self._names)
        for number in np.unique(numbers[numbers >= 0]):
            yield names[number][1], numbers == number

    def remarks(self, kind: Kind, reason: str, variables: Iterable[int] | Int32Array) -> list[Remark]:
        """One remark per place of the variables, e.g. "leaves REASON" at "tree 3"; repeated variables count once."""
        numbers, counts = np.unique(self._of[np.unique(np.asarray(variables, np.int64))], return_counts=True)
        names = list(self._names)
        return [
            Remark(kind, f"{names[number][0]} {reason}", int(count), names[number][1])
            for number, count in zip(numbers, counts, strict=True)
            if number >= 0
        ]


def passed(module: Module, result: PassResult) -> list[Remark]:
    """The changes that a pass made to `module`: variables that it fixed or merged, then rows, blocks, start and objective.

    Variables are leaf indicators and predicates of single points. They have no remarks if the postsolve of the pass is not made
    of substitutions.
    """
    after = result.module
    places = Places(module)
    found: list[Remark] = []
    target = _target(result.postsolve, module.variables)
    same = False
    if target is not None:
        same = np.array_equal(target, Substitution.identity(after.variables).target)
        found += places.remarks("passed", "fixed", np.flatnonzero(target < 0))
        kept = np.flatnonzero(target >= 0)
        _, first = np.unique(target[kept] >> 1, return_index=True)
        found += places.remarks("passed", "merged with others", np.delete(kept, first))
        if same:
            facts = np.setdiff1d(_facts(after), _facts(module))
            found += places.remarks("passed", "fixed by new facts", facts >> 1)
            pairs = np.setdiff1d(_equated(after), _equated(module))
            found += places.remarks("passed", "equated with others", pairs >> 33)
    found += _rows(module, after, same)
    found += _blocks(module, after)
    if after.warm_start is not None and module.warm_start is None:
        found.append(Remark("passed", "true variables of a new start", len(after.warm_start.variables), "module"))
    if after.objective is not None and module.objective is None:
        found.append(Remark("passed", "terms of a new objective", len(after.objective.variables), "module"))
    return found


def _target(postsolve: Postsolve, variables: int) -> Int32Array | None:
    """The literal that replaces each of the old variables, int32[variables], or None if that is not known."""
    match postsolve:
        case Substitution():
            return postsolve.target
        case IdentityPostsolve() | Chain(()):
            return Substitution.identity(variables).target
        case Chain(steps):
            target = _target(Chain(steps[:-1]), variables)
            if target is None or isinstance(steps[-1], IdentityPostsolve):
                return target
            last = _target(steps[-1], variables)
            if last is None:
                return None
            live, composed = target >= 0, target.copy()
            composed[live] = last[target[live] >> 1] ^ (target[live] & 1)
            return composed
        case _:
            return None


def _facts(module: Module) -> Int32Array:
    return np.concatenate([np.zeros(0, np.int32), *(op.literals for op in module.ops_of(Facts))])


def _equated(module: Module) -> Int64Array:
    """The pairs of equal literals, each as one number."""
    return np.concatenate(
        [np.zeros(0, np.int64), *(op.left.astype(np.int64) << 32 | op.right for op in module.ops_of(Equal))]
    )


def _rows(before: Module, after: Module, same_variables: bool) -> list[Remark]:
    """Linear rows by name, with their terms; of all other kinds the number of rows. Renumbered rows are not rewritten ones."""
    old, new = (Counter({row.name: 0 for row in one.ops_of(Linear)}) for one in (before, after))
    for counts, one in ((old, before), (new, after)):
        for row in one.ops_of(Linear):
            counts[row.name] += len(row.variables)
    found = [Remark("passed", "terms of a new row", new[name], f"row {name}") for name in new if name not in old]
    found += [Remark("passed", "terms of a dropped row", old[name], f"row {name}") for name in old if name not in new]
    found += [
        Remark("passed", "terms dropped", old[name] - new[name], f"row {name}")
        for name in new
        if name in old and new[name] < old[name]
    ]
    for kind in get_args(Op):
        old_ops, new_ops = (tuple(one.ops_of(kind)) for one in (before, after))
        less, more = (count_rows(replace(before, blocks=(), ops=ops))[0] for ops in (old_ops, new_ops))
        if less != more and kind is not Linear:
            found.append(
                Remark("passed", f"rows {'added' if more > less else 'dropped'}", abs(more - less), f"op {KINDS[kind]}")
            )
        elif less == more and same_variables and old_ops != new_ops:
            found.append(Remark("passed", "rows rewritten or moved", more, f"op {KINDS[kind]}"))
    return found


def _blocks(before: Module, after: Module) -> list[Remark]:
    """Order blocks that were joined with those of other points, or that have a new position among all order blocks."""
    old, new = ([(b.feature, b.points) for b in one.blocks_of(Order)] for one in (before, after))
    joined = Counter(feature for feature, _ in old) - Counter(feature for feature, _ in new)
    places = zip(old, new, strict=False) if sorted(old) == sorted(new) else ()
    moved = Counter(feature for other, (feature, points) in places if other != (feature, points))
    return [
        Remark("passed", f"order blocks {what}", count, f"feature {before.features[feature].name}")
        for what, counts in (("joined", joined), ("moved", moved))
        for feature, count in counts.items()
    ]
