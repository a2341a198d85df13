"""The subject `FILE.sir`: a module of the IR, which loses trees, ops, rows and variables."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, Final

import numpy as np

from treesens.compiler.base.arrays import BoolArray, indptr_of
from treesens.compiler.ir import Clauses, Equal, ExactlyOne, Facts, LeafImplies, LeafSum, Linear, Membership, Module, Op
from treesens.compiler.ir.files import read_module
from treesens.compiler.ir.module import FALSE, TRUE
from treesens.compiler.ir.rewrite import Substitution, substitute
from treesens.compiler.ir.text import print_module
from treesens.compiler.ir.verifier import verify
from treesens.errors import IRError
from treesens.extensions.reduce.ddmin import Files, Level, Subject

_FIELDS: Final[Mapping[type[Any], tuple[tuple[str, ...], tuple[str, ...]]]] = {
    LeafImplies: (("leaves", "literals"), ()),
    LeafSum: (("literals", "equality"), ("leaves",)),
    Equal: (("left", "right"), ()),
    Clauses: ((), ("literals",)),
    Membership: (("members", "orders"), ("low", "high")),
    Facts: (("literals",), ()),
    Linear: ((), ()),
}
"""The fields of an op with one entry for each row, and those whose rows `indptr` delimits. A `Linear` is one row."""


@dataclass(frozen=True, eq=False)
class Rows(Subject):
    """A module."""

    module: Module

    def files(self) -> Files | None:
        try:
            verify(self.module)
        except IRError:
            return None
        return {self.name: print_module(self.module, full=True).encode()}

    def sizes(self) -> dict[str, int]:
        ops = self.module.ops
        return {"variables": self.module.variables, "ops": len(ops), "rows": sum(map(_count, ops))}

    def levels(self) -> Sequence[Level]:
        def variables(subject: Rows) -> Sequence[int]:
            return range(subject.module.variables)

        return [
            Level("trees", Rows.trees, Rows.without_trees),
            Level("ops", lambda subject: subject.rows(whole=True), Rows.without_rows),
            Level("objective", Rows.extras, Rows.without_extras),
            Level("rows", lambda subject: subject.rows(whole=False), Rows.without_rows),
            *(Level("variables", variables, partial(Rows.fixed, to=to)) for to in (FALSE, TRUE)),
        ]

    def trees(self) -> list[tuple[int, int]]:
        """The trees of every exactly-one block, as pairs of the block and the place in it."""
        blocks = enumerate(self.module.blocks)
        return [(b, t) for b, block in blocks if isinstance(block, ExactlyOne) for t in range(len(block.tree))]

    def without_trees(self, edits: Sequence[tuple[int, int]]) -> Rows:
        """The module without some trees: their leaves add nothing to any row."""
        blocks, gone, left = list(self.module.blocks), set(edits), set[int]()
        for b, block in enumerate(blocks):
            if isinstance(block, ExactlyOne):
                kept, sizes = (
                    np.array([(b, t) not in gone for t in range(len(block.tree))], bool),
                    np.diff(block.offset),
                )
                leaves = np.repeat(kept, sizes)
                left.update(block.variables[leaves].tolist())
                blocks[b] = replace(
                    block,
                    tree=block.tree[kept],
                    offset=indptr_of(sizes[kept]),
                    leaf=block.leaf[leaves],
                    variables=block.variables[leaves],
                )
        lost = set(np.flatnonzero(self.module.leaf_variables()).tolist()) - left
        return replace(self, module=replace(self.module, blocks=tuple(blocks))).fixed(sorted(lost), FALSE)

    def extras(self) -> list[str]:
        """The fields that are no constraints and not empty."""
        return [name for name in ("objective", "warm_start", "provenance") if getattr(self.module, name)]

    def without_extras(self, names: Sequence[str]) -> Rows:
        changes: dict[str, Any] = {name: () if name == "provenance" else None for name in names}
        return replace(self, module=replace(self.module, **changes))

    def rows(self, *, whole: bool) -> list[tuple[int, range]]:
        """The rows of every op, as pairs of the op and all its rows, or one row."""
        counts = list(enumerate(map(_count, self.module.ops)))
        if whole:
            return [(op, range(count)) for op, count in counts]
        return [(op, range(row, row + 1)) for op, count in counts if count > 1 for row in range(count)]

    def without_rows(self, edits: Sequence[tuple[int, range]]) -> Rows:
        kept = [np.ones(_count(op), bool) for op in self.module.ops]
        for op, rows in edits:
            kept[op][rows.start : rows.stop] = False
        ops = (_with_rows(op, mask) for op, mask in zip(self.module.ops, kept, strict=True) if mask.any())
        return replace(self, module=replace(self.module, ops=tuple(ops)))

    def fixed(self, variables: Sequence[int], to: int) -> Rows:
        """The module in which these variables are the constant `to`."""
        free = np.ones(self.module.variables, bool)
        free[list(variables)] = False
        target = np.where(free, 2 * (np.cumsum(free) - 1), to).astype(np.int32)
        return replace(self, module=substitute(self.module, Substitution(target, int(free.sum()))))


def _count(op: Op) -> int:
    """The number of rows of an op."""
    of_rows, _ = _FIELDS[type(op)]
    if isinstance(op, Linear):
        return 1
    return len(getattr(op, of_rows[0])) if of_rows else len(op.indptr) - 1  # type: ignore[union-attr]


def _with_rows(op: Any, kept: BoolArray) -> Op:
    """An op with the marked rows, bool[rows]; an op of one row stays."""
    of_rows, of_entries = _FIELDS[type(op)]
    changes = {name: getattr(op, name)[kept] for name in of_rows}
    if of_entries:
        sizes = np.diff(op.indptr)
        changes |= {name: getattr(op, name)[np.repeat(kept, sizes)] for name in of_entries}
        changes["indptr"] = indptr_of(sizes[kept])
    made: Op = replace(op, **changes)
    return made


def read_rows(file: Path) -> Rows:
    """The subject of a `.sir` file. Raises IRError with the line or the rule."""
    return Rows(file.name, {}, (), read_module(file))
