"""The interface of a pass: a frozen dataclass whose fields are its options and whose `run` is a pure function."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, fields
from enum import Enum
from typing import TYPE_CHECKING, ClassVar, Protocol, runtime_checkable

import numpy as np

from treesens.compiler.base.arrays import BoolArray, Int32Array
from treesens.compiler.ir import Equal, Membership, Module, Order
from treesens.compiler.ir.module import ModuleSize, literal_values

if TYPE_CHECKING:
    from treesens.compiler.passes.remarks import Remark


class Relation(Enum):
    """The relation of a rewritten module to its source (docs/semantics.md)."""

    EQUIVALENT = "equivalent"
    """The same solutions, up to the postsolve."""
    EQUISATISFIABLE = "equisatisfiable"
    """The rewritten module has a solution iff the source has a solution; optimal values are equal, too."""
    RELAXATION = "relaxation"
    """Every solution is kept, and new solutions may appear: only a `none` remains valid."""
    RESTRICTION = "restriction"
    """Every solution is a solution of the original module: only a `found` remains valid."""

    def then(self, later: Relation) -> Relation | None:
        """The combined relation of two consecutive steps; None if no verdict remains valid (a relaxation of a restriction)."""
        order = [Relation.EQUIVALENT, Relation.EQUISATISFIABLE]
        if self in order and later in order:
            return order[max(order.index(self), order.index(later))]
        if self in order:
            return later
        if later in order or self is later:
            return self
        return None


class Postsolve(Protocol):
    """Maps assignments of the new module back to the old module."""

    def recover(self, assignment: BoolArray) -> BoolArray: ...


class IdentityPostsolve:
    """The postsolve of a pass that does not change the variables."""

    def recover(self, assignment: BoolArray) -> BoolArray:
        return assignment


@dataclass(frozen=True)
class Chain:
    """A sequence of postsolves, applied in reverse order."""

    steps: tuple[Postsolve, ...]

    def recover(self, assignment: BoolArray) -> BoolArray:
        for step in reversed(self.steps):
            assignment = step.recover(assignment)
        return assignment


@dataclass(frozen=True, eq=False)
class Forward:
    """Maps solutions of the old module to the new one: `target`, int32[new], has a literal per new variable, or a constant.

    Literals are over the old variables 0 .. old-1 and over definitions: variable old + k is the conjunction of the literals
    `definitions[k]`, int32[n] each, which are over the old variables and earlier definitions.
    """

    target: Int32Array
    definitions: tuple[Int32Array, ...] = ()

    def extend(self, assignment: BoolArray) -> BoolArray:
        """An assignment bool[old] with the values of the definitions, bool[old + definitions]."""
        for literals in self.definitions:
            assignment = np.append(assignment, bool(np.all(literal_values(literals, assignment))))
        return assignment

    def apply(self, assignment: BoolArray) -> BoolArray:
        """The assignment bool[new] of the new variables for an assignment bool[old]."""
        return literal_values(self.target, self.extend(assignment))


@dataclass(frozen=True)
class PassResult:
    """The result of a pass: the new module, the mapping back to the old module, and `statistics` for display.

    `proof_dependencies` lists external proofs that the rewrite uses, e.g. bounds of the native engine. A `none` needs them all.
    `forward` is needed for validation if a new variable is not the image of an old one (docs/extending.md). `remarks` says what
    the pass could not change; it is called only if remarks are shown (`passes/remarks.py`).
    """

    module: Module
    postsolve: Postsolve = field(default_factory=IdentityPostsolve)
    statistics: dict[str, int] = field(default_factory=dict)
    proof_dependencies: tuple[str, ...] = ()
    forward: Forward | None = None
    remarks: Callable[[], Iterable[Remark]] = tuple


@runtime_checkable
class Pass(Protocol):
    """A rewrite of modules. The optional class variable `statistics_names` maps every reported statistic to its meaning."""

    name: ClassVar[str]
    relation: ClassVar[Relation]

    def run(self, module: Module) -> PassResult: ...


@dataclass(frozen=True, eq=False)
class Rewrite:
    """One step of a pipeline: the pass, its input and its result. `text` is the pass with its options."""

    step: Pass
    text: str
    before: Module
    result: PassResult


def pass_text(step: Pass) -> str:
    """A pass with its options as pipeline text, e.g. `order-predicates{by=gain}`."""
    options = [f"{f.name.replace('_', '-')}={_option(getattr(step, f.name))}" for f in fields(step)]  # type: ignore[arg-type]
    return f"{step.name}{{{','.join(options)}}}" if options else step.name


def _option(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def size_of(module: Module) -> ModuleSize:
    """The numbers of variables, rows and non-zeros of a module, over its ops and typed blocks."""
    from treesens.compiler.legalise.rows import count_rows

    rows, entries = count_rows(module)
    return ModuleSize(module.variables, rows, entries)


def classes_of_equal(module: Module) -> np.ndarray:
    """For every variable, the smallest variable that the `Equal` ops equate with this variable, int64[variables].

    Only equalities between literals of the same sign merge variables; passes leave other equalities unchanged.
    """
    pairs = []
    for op in module.ops_of(Equal):
        same = (op.left & 1) == (op.right & 1)
        pairs.append(np.stack((op.left[same] >> 1, op.right[same] >> 1)))
    return smallest_of_class(module.variables, *np.concatenate([np.zeros((2, 0), np.int32), *pairs], axis=1))


def smallest_of_class(variables: int, left: np.ndarray, right: np.ndarray) -> np.ndarray:
    """For every variable, the smallest variable in its class, int64[variables]; `left[i]` and `right[i]` share a class."""
    representative = np.arange(variables, dtype=np.int64)
    while True:
        low = np.minimum(representative[left], representative[right])
        updated = representative.copy()
        np.minimum.at(updated, representative[left], low)
        np.minimum.at(updated, representative[right], low)
        updated = updated[updated]
        if np.array_equal(updated, representative):
            return representative
        representative = updated


def guard_classes(module: Module) -> np.ndarray:
    """Like `classes_of_equal`, but also merges table members whose rows are equal over equal order blocks."""
    representative = classes_of_equal(module)
    seen: dict[tuple[int, bytes, bytes, bytes, bytes], int] = {}
    for op in module.ops_of(Membership):
        for i, member in enumerate(op.members):
            runs = slice(op.indptr[i], op.indptr[i + 1])
            block = module.blocks[op.orders[i]]
            assert isinstance(block, Order)
            # The key includes feature and cells, since blocks with one cell left have no predicates that distinguish them.
            order = representative[block.variables]
            key = (
                block.feature,
                block.cells.tobytes(),
                order.tobytes(),
                op.low[runs].tobytes(),
                op.high[runs].tobytes(),
            )
            representative[member] = seen.setdefault(key, int(member))
    return representative
