"""The subject `FILE.sir`: a module of the IR, which loses ops, rows and variables."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from pathlib import Path
from typing import Any, Final

import numpy as np

from treesens.compiler.base.arrays import indptr_of
from treesens.compiler.ir import Clauses, Equal, Facts, LeafImplies, LeafSum, Linear, Membership, Module, Op
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

    @cached_property
    def _text(self) -> str | None:
        try:
            verify(self.module)
        except IRError:
            return None
        return print_module(self.module, full=True)

    def files(self) -> Files | None:
        return None if self._text is None else {self.name: self._text.encode()}

    def sizes(self) -> dict[str, int]:
        return {
            "variables": self.module.variables,
            "ops": len(self.module.ops),
            "rows": sum(_count(op) for op in self.module.ops),
        }

    def levels(self) -> Sequence[Level]:
        return [
            Level("ops", lambda c: range(len(c.module.ops)), Rows.without_ops),
            Level("objective", lambda c: c.extras(), Rows.without_extras),
            Level("rows", lambda c: c.rows(), Rows.without_rows),
            *(
                Level("variables", lambda c: range(c.module.variables), partial(Rows.fixed, to=to))
                for to in (FALSE, TRUE)
            ),
        ]

    def _with(self, **changes: Any) -> Rows:
        return replace(self, module=replace(self.module, **changes))

    def without_ops(self, numbers: Sequence[int]) -> Rows:
        gone = set(numbers)
        return self._with(ops=tuple(op for at, op in enumerate(self.module.ops) if at not in gone))

    def extras(self) -> list[str]:
        """The fields that are no constraints and not empty."""
        return [name for name in ("objective", "warm_start", "provenance") if getattr(self.module, name)]

    def without_extras(self, names: Sequence[str]) -> Rows:
        return self._with(**{name: () if name == "provenance" else None for name in names})

    def rows(self) -> list[tuple[int, int]]:
        """The rows of the ops that have several, as pairs of the op and the row."""
        counts = enumerate(map(_count, self.module.ops))
        return [(op, row) for op, count in counts if count > 1 for row in range(count)]

    def without_rows(self, rows: Sequence[tuple[int, int]]) -> Rows:
        gone: dict[int, list[int]] = {}
        for op, row in rows:
            gone.setdefault(op, []).append(row)
        ops = (_without(op, gone[at]) if at in gone else op for at, op in enumerate(self.module.ops))
        return self._with(ops=tuple(op for op in ops if _count(op)))

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


def _without(op: Any, rows: Sequence[int]) -> Op:
    kept = np.ones(_count(op), bool)
    kept[list(rows)] = False
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
