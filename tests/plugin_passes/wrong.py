"""A plug-in pass that is wrong in one of many small ways: `wrong{case=NAME}`; and one that is right: `right{case=NAME}`.

Every case is a function from a module to what a careless author might return; None where the module has nothing to change.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from treesens.compiler.base.arrays import BoolArray, indptr_of
from treesens.compiler.ir import (
    TRUE,
    Bool,
    Clauses,
    Equal,
    ExactlyOne,
    Facts,
    LeafImplies,
    LeafSum,
    Linear,
    Membership,
    Module,
    Objective,
    Op,
    Order,
)
from treesens.compiler.ir.module import FALSE
from treesens.compiler.ir.rewrite import Substitution, contradiction, substitute
from treesens.compiler.passes.base import Forward, PassResult, Relation

Edit = Callable[[Module], PassResult | Module | None]
WRONG: dict[str, tuple[Edit, Relation]] = {}


def wrong(name: str, relation: Relation = Relation.EQUIVALENT) -> Callable[[Edit], Edit]:
    def add(edit: Edit) -> Edit:
        WRONG[name] = (edit, relation)
        return edit

    return add


def i32(*values: int) -> np.ndarray:
    return np.array(values, np.int32)


def swap(array: np.ndarray, at: int, value: np.ndarray) -> np.ndarray:
    made = array.copy()
    made[at : at + 1] = value
    return made


def in_place(module: Module, kind: type, edit: Callable[..., Op | None], last: bool = False) -> Module | None:
    """The module with one op of a kind edited (None: dropped)."""
    places = [i for i, op in enumerate(module.ops) if isinstance(op, kind) and not getattr(op, "implied", False)]
    if not places:
        return None
    at = places[-1 if last else 0]
    made = edit(module.ops[at])
    ops = [*module.ops[:at], *([] if made is None else [made]), *module.ops[at + 1 :]]
    return replace(module, ops=tuple(ops))


def rows_kept(op: Clauses | LeafSum, keep: list[int]) -> dict[str, np.ndarray]:
    parts = [slice(int(op.indptr[i]), int(op.indptr[i + 1])) for i in keep]
    field = op.literals if isinstance(op, Clauses) else op.leaves
    joined = np.concatenate([np.zeros(0, np.int32), *(field[part] for part in parts)])
    return {"indptr": indptr_of([part.stop - part.start for part in parts]), "rows": joined.astype(np.int32)}


# --- whole ops, and single rows, are lost -----------------------------------------------------------------------------------

KINDS = {
    "paths": LeafImplies,
    "sums": LeafSum,
    "equalities": Equal,
    "clauses": Clauses,
    "scores": Linear,
    "tables": Membership,
    "facts": Facts,
}
for _word, _kind in KINDS.items():

    @wrong(f"all-{_word}-lost")
    def _(module: Module, kind: type = _kind) -> Module | None:
        kept = tuple(op for op in module.ops if not isinstance(op, kind))
        return None if len(kept) == len(module.ops) else replace(module, ops=kept)


@wrong("last-path-lost")
def _(module: Module) -> Module | None:
    return in_place(module, LeafImplies, lambda op: replace(op, leaves=op.leaves[:-1], literals=op.literals[:-1]))


@wrong("half-of-the-sums-lost")
def _(module: Module) -> Module | None:
    def edit(op: LeafSum) -> LeafSum:
        half = len(op.literals) // 2
        kept = rows_kept(op, list(range(half)))
        return LeafSum(kept["indptr"], kept["rows"], op.literals[:half], op.equality[:half])

    return in_place(module, LeafSum, edit)


@wrong("last-equality-lost")
def _(module: Module) -> Module | None:
    return in_place(module, Equal, lambda op: replace(op, left=op.left[:-1], right=op.right[:-1]))


@wrong("last-clause-lost")
def _(module: Module) -> Module | None:
    def edit(op: Clauses) -> Clauses:
        kept = rows_kept(op, list(range(len(op.indptr) - 2)))
        return Clauses(kept["indptr"], kept["rows"])

    return in_place(module, Clauses, edit, last=True)


@wrong("last-fact-lost")
def _(module: Module) -> Module | None:
    return in_place(module, Facts, lambda op: Facts(op.literals[:-1]))


@wrong("first-score-lost")
def _(module: Module) -> Module | None:
    return in_place(module, Linear, lambda op: None)


@wrong("last-table-row-lost")
def _(module: Module) -> Module | None:
    def edit(op: Membership) -> Membership:
        end = int(op.indptr[-2])
        return Membership(op.members[:-1], op.orders[:-1], op.indptr[:-1], op.low[:end], op.high[:end])

    return in_place(module, Membership, edit)


# --- numbers --------------------------------------------------------------------------------------------------------------


def on_scores(name: str, edit: Callable[[Linear], Linear | None]) -> None:
    wrong(name)(lambda module: in_place(module, Linear, edit))


def scaled(op: Linear, at: int, factor: int) -> Linear:
    coefficients = op.coefficients.copy()
    if len(coefficients):
        coefficients[at] *= factor
    return replace(op, coefficients=coefficients)


on_scores("bound-lower-by-one", lambda op: replace(op, bound=op.bound - 1))
on_scores("bound-higher-by-one", lambda op: replace(op, bound=op.bound + 1))
on_scores("bound-lower", lambda op: replace(op, bound=op.bound - (1 << op.shift) // 2 - 1))
on_scores("bound-higher", lambda op: replace(op, bound=op.bound + (1 << op.shift) // 2 + 1))
on_scores("bound-negated", lambda op: replace(op, bound=-op.bound))
on_scores("coefficient-negated", lambda op: scaled(op, 0, -1))
on_scores("last-coefficient-doubled", lambda op: scaled(op, -1, 2))
on_scores("row-negated", lambda op: replace(op, coefficients=-op.coefficients))
on_scores("term-lost", lambda op: replace(op, variables=op.variables[1:], coefficients=op.coefficients[1:]))
on_scores("row-said-to-be-implied", lambda op: replace(op, implied=True))


@wrong("condition-dropped")
def _(module: Module) -> Module | None:
    places = [i for i, op in enumerate(module.ops) if isinstance(op, Linear) and op.when != TRUE]
    if not places:
        return None
    ops = [replace(op, when=TRUE) if i == places[0] else op for i, op in enumerate(module.ops)]  # type: ignore[call-arg]
    return replace(module, ops=tuple(ops))


@wrong("condition-negated")
def _(module: Module) -> Module | None:
    places = [i for i, op in enumerate(module.ops) if isinstance(op, Linear) and op.when != TRUE]
    if not places:
        return None
    ops = [
        replace(op, when=op.when ^ 1) if i == places[0] and isinstance(op, Linear) else op
        for i, op in enumerate(module.ops)
    ]
    return replace(module, ops=tuple(ops))


# --- literals -------------------------------------------------------------------------------------------------------------


@wrong("equality-negated")
def _(module: Module) -> Module | None:
    return in_place(module, Equal, lambda op: replace(op, left=swap(op.left, 0, op.left[:1] ^ 1)))


@wrong("equality-of-others")
def _(module: Module) -> Module | None:
    return in_place(module, Equal, lambda op: replace(op, right=np.roll(op.right, 1)))


@wrong("path-negated")
def _(module: Module) -> Module | None:
    return in_place(module, LeafImplies, lambda op: replace(op, literals=swap(op.literals, 0, op.literals[:1] ^ 1)))


@wrong("paths-of-others")
def _(module: Module) -> Module | None:
    return in_place(module, LeafImplies, lambda op: replace(op, literals=np.roll(op.literals, 1)))


@wrong("sum-negated")
def _(module: Module) -> Module | None:
    return in_place(module, LeafSum, lambda op: replace(op, literals=swap(op.literals, 0, op.literals[:1] ^ 1)))


@wrong("sums-of-others")
def _(module: Module) -> Module | None:
    return in_place(module, LeafSum, lambda op: replace(op, literals=np.roll(op.literals, 1)))


@wrong("leaf-of-a-sum-lost")
def _(module: Module) -> Module | None:
    def edit(op: LeafSum) -> LeafSum:
        counts = np.diff(op.indptr)
        counts[0] -= 1
        return replace(op, indptr=indptr_of(counts), leaves=op.leaves[1:])

    return in_place(module, LeafSum, edit)


@wrong("leaf-of-another-sum")
def _(module: Module) -> Module | None:
    return in_place(module, LeafSum, lambda op: replace(op, leaves=swap(op.leaves, 0, op.leaves[-1:])))


@wrong("clause-literal-negated")
def _(module: Module) -> Module | None:
    return in_place(module, Clauses, lambda op: replace(op, literals=swap(op.literals, 0, op.literals[:1] ^ 1)))


@wrong("clause-literal-lost")
def _(module: Module) -> Module | None:
    def edit(op: Clauses) -> Clauses:
        counts = np.diff(op.indptr)
        counts[0] -= 1
        return Clauses(indptr_of(counts), op.literals[1:])

    return in_place(module, Clauses, edit)


@wrong("clauses-joined")
def _(module: Module) -> Module | None:
    return in_place(module, Clauses, lambda op: Clauses(indptr_of([len(op.literals)]), op.literals))


@wrong("fact-flipped")
def _(module: Module) -> Module | None:
    return in_place(module, Facts, lambda op: Facts(swap(op.literals, 0, op.literals[:1] ^ 1)))


@wrong("fact-invented")
def _(module: Module) -> Module | None:
    return module.with_ops(Facts(i32(0))) if module.variables else None


@wrong("fact-about-the-last-variable")
def _(module: Module) -> Module | None:
    return module.with_ops(Facts(i32(2 * module.variables - 1))) if module.variables else None


@wrong("empty-clause")
def _(module: Module) -> Module:
    return module.with_ops(contradiction())


@wrong("clause-of-two-invented")
def _(module: Module) -> Module | None:
    return None if module.variables < 2 else module.with_ops(Clauses(indptr_of([2]), i32(1, 2 * module.variables - 2)))


@wrong("equality-invented")
def _(module: Module) -> Module | None:
    return None if module.variables < 2 else module.with_ops(Equal(i32(0), i32(2 * module.variables - 2)))


@wrong("table-run-wider")
def _(module: Module) -> Module | None:
    return in_place(module, Membership, lambda op: replace(op, low=np.maximum(op.low - 1, 0)))


@wrong("table-run-empty")
def _(module: Module) -> Module | None:
    return in_place(
        module, Membership, lambda op: replace(op, indptr=np.zeros_like(op.indptr), low=op.low[:0], high=op.high[:0])
    )


@wrong("table-rows-swapped")
def _(module: Module) -> Module | None:
    return in_place(module, Membership, lambda op: replace(op, members=np.roll(op.members, 1)))


# --- blocks ---------------------------------------------------------------------------------------------------------------


def with_block(module: Module, kind: type, edit: Callable[..., list]) -> Module | None:
    places = [i for i, block in enumerate(module.blocks) if isinstance(block, kind) and len(block.variables) > 1]
    if not places:
        return None
    at, (first, *more) = places[0], edit(module.blocks[places[0]])
    return replace(module, blocks=(*module.blocks[:at], first, *module.blocks[at + 1 :], *more))


@wrong("tree-lost")
def _(module: Module) -> Module | None:
    def edit(block: ExactlyOne) -> list:
        end = int(block.offset[-2])
        kept = replace(
            block,
            tree=block.tree[:-1],
            offset=block.offset[:-1],
            leaf=block.leaf[:end],
            variables=block.variables[:end],
        )
        return [kept, Bool("lost", block.variables[end:])]

    return with_block(module, ExactlyOne, edit)


@wrong("leaf-lost-from-its-tree")
def _(module: Module) -> Module | None:
    def edit(block: ExactlyOne) -> list:
        offset = block.offset.copy()
        offset[-1] -= 1
        kept = replace(block, offset=offset, leaf=block.leaf[:-1], variables=block.variables[:-1])
        return [kept, Bool("lost", block.variables[-1:])]

    return with_block(module, ExactlyOne, edit)


@wrong("chain-lost")
def _(module: Module) -> Module | None:
    def edit(block: Order) -> list:
        return [replace(block, cells=block.cells[:2], variables=block.variables[:1]), Bool("lost", block.variables[1:])]

    return with_block(module, Order, edit)


@wrong("chain-reversed")
def _(module: Module) -> Module | None:
    return with_block(module, Order, lambda block: [replace(block, variables=block.variables[::-1].copy())])


@wrong("order-blocks-rotated")
def _(module: Module) -> Module | None:
    """Tables refer to order blocks by position: unchanged ops mean something else over rotated blocks."""
    tied = sorted({i for op in module.ops_of(Membership) for i in op.orders.tolist()})
    blocks = list(module.blocks)
    for i in tied:
        mine = [j for j, block in enumerate(blocks) if isinstance(block, Order) and j != i]
        other = next((j for j in mine if len(blocks[j].cells) != len(blocks[i].cells)), None)
        if other is not None:
            blocks[i], blocks[other] = blocks[other], blocks[i]
            return replace(module, blocks=tuple(blocks))
    return None


def substituted(module: Module, edit: Callable[[np.ndarray], bool]) -> PassResult | None:
    target = np.arange(module.variables, dtype=np.int32) * 2
    if not edit(target):
        return None
    by = Substitution.compact(target)
    return PassResult(substitute(module, by), by)


def predicates(module: Module) -> list[np.ndarray]:
    tied = [op.orders.tolist() for op in module.ops_of(Membership)]
    tables = {i for orders in tied for i in orders}
    return [
        block.variables
        for i, block in enumerate(module.blocks)
        if isinstance(block, Order) and len(block.variables) and i not in tables
    ]


@wrong("last-cell-dropped")
def _(module: Module) -> PassResult | None:
    return substituted(module, lambda target: _set(target, predicates(module), -1, TRUE))


@wrong("first-cell-dropped")
def _(module: Module) -> PassResult | None:
    return substituted(module, lambda target: _set(target, predicates(module), 0, FALSE))


def _set(target: np.ndarray, blocks: list[np.ndarray], at: int, literal: int) -> bool:
    for variables in blocks[:1]:
        target[variables[at]] = literal
    return bool(blocks)


@wrong("different-predicates-merged")
def _(module: Module) -> PassResult | None:
    def edit(target: np.ndarray) -> bool:
        for variables in predicates(module):
            if len(variables) > 1:
                target[variables[1]] = target[variables[0]]
                return True
        return False

    return substituted(module, edit)


@wrong("leaf-dropped")
def _(module: Module) -> PassResult | None:
    def edit(target: np.ndarray) -> bool:
        leaves = np.flatnonzero(module.leaf_variables())
        target[leaves[:1]] = FALSE
        return len(leaves) > 1

    return substituted(module, edit)


@wrong("leaf-always-reached")
def _(module: Module) -> PassResult | None:
    def edit(target: np.ndarray) -> bool:
        leaves = np.flatnonzero(module.leaf_variables())
        target[leaves[-1:]] = TRUE
        return len(leaves) > 1

    return substituted(module, edit)


@wrong("different-leaves-merged")
def _(module: Module) -> PassResult | None:
    def edit(target: np.ndarray) -> bool:
        blocks = [block for block in module.blocks_of(ExactlyOne) if len(block.tree) > 1]
        if not blocks:
            return False
        a, b = (int(blocks[0].variables[blocks[0].offset[t]]) for t in (0, 1))
        target[max(a, b)] = 2 * min(a, b)
        return a != b

    return substituted(module, edit)


# --- objective ------------------------------------------------------------------------------------------------------------


def on_objective(name: str, edit: Callable[[Objective], Objective | None]) -> None:
    def change(module: Module) -> Module | None:
        return replace(module, objective=edit(module.objective)) if module.objective and module.optimises else None

    wrong(name)(change)


on_objective("objective-doubled", lambda goal: replace(goal, coefficients=2 * goal.coefficients))
on_objective("objective-negated", lambda goal: replace(goal, coefficients=-goal.coefficients))
on_objective("objective-constant-changed", lambda goal: replace(goal, constant=goal.constant - 1))
on_objective("objective-lost", lambda goal: None)
on_objective("objective-only-a-guide", lambda goal: replace(goal, surrogate=True))
on_objective("objective-in-other-units", lambda goal: replace(goal, shift=goal.shift + 1))
on_objective(
    "objective-term-lost", lambda goal: replace(goal, variables=goal.variables[1:], coefficients=goal.coefficients[1:])
)

# --- postsolve ------------------------------------------------------------------------------------------------------------


class Negating:
    """A postsolve that is not a substitution."""

    def recover(self, assignment: BoolArray) -> BoolArray:
        return ~assignment


@wrong("postsolve-negates")
def _(module: Module) -> PassResult | None:
    return PassResult(module, Negating()) if module.variables else None


def mapped(name: str, target: Callable[[Module], np.ndarray | None]) -> None:
    def change(module: Module) -> PassResult | None:
        made = target(module) if module.variables > 1 else None
        return None if made is None else PassResult(module, Substitution(made.astype(np.int32), module.variables))

    wrong(name)(change)


mapped("postsolve-rotated", lambda module: np.roll(np.arange(module.variables) * 2, 1))
mapped("postsolve-reversed", lambda module: (np.arange(module.variables) * 2)[::-1])
mapped(
    "postsolve-negates-the-first", lambda module: np.arange(module.variables) * 2 ^ (np.arange(module.variables) == 0)
)
mapped(
    "postsolve-forgets",
    lambda module: np.where(np.arange(module.variables) == 0, FALSE, np.arange(module.variables) * 2),
)

# --- relations ------------------------------------------------------------------------------------------------------------


@wrong("restriction-said-to-be-equisatisfiable", Relation.EQUISATISFIABLE)
def _(module: Module) -> Module:
    return module.with_ops(contradiction())


@wrong("restriction-said-to-be-a-relaxation", Relation.RELAXATION)
def _(module: Module) -> Module:
    return module.with_ops(contradiction())


@wrong("relaxation-said-to-be-a-restriction", Relation.RESTRICTION)
def _(module: Module) -> Module | None:
    return in_place(module, Linear, lambda op: None)


@wrong("forward-map-of-another-pass")
def _(module: Module) -> PassResult | None:
    # The module is unchanged, but solutions are not mapped to solutions.
    return PassResult(module, forward=Forward(np.full(module.variables, FALSE, np.int32))) if module.variables else None


# --- correct passes -------------------------------------------------------------------------------------------------------

RIGHT: dict[str, tuple[Edit, Relation]] = {}


def right(name: str, relation: Relation = Relation.EQUIVALENT) -> Callable[[Edit], Edit]:
    def add(edit: Edit) -> Edit:
        RIGHT[name] = (edit, relation)
        return edit

    return add


@right("nothing")
def _(module: Module) -> Module:
    return module


@right("duplicate-row")
def _(module: Module) -> Module | None:
    return module.with_ops(*[op for op in module.ops if isinstance(op, Linear)][:1])


@right("implied-clause")
def _(module: Module) -> Module | None:
    for variables in predicates(module):
        if len(variables) > 1:
            return module.with_ops(Clauses(indptr_of([2]), i32(2 * int(variables[0]) + 1, 2 * int(variables[1]))))
    return None


@right("weaker-row", Relation.RELAXATION)
def _(module: Module) -> Module | None:
    return in_place(module, Linear, lambda op: replace(op, bound=op.bound - 1))


@right("defined-variable")
def _(module: Module) -> PassResult | None:
    """A new variable that is the conjunction of the first two, with clauses for its definition."""
    if module.variables < 2:
        return None
    new, n = 2 * module.variables, module.variables
    clauses = Clauses(indptr_of([2, 2, 3]), i32(new ^ 1, 0, new ^ 1, 2, new, 1, 3))
    made = module.with_ops(clauses, variables=n + 1, blocks=(*module.blocks, Bool("both", i32(n))))
    back = Substitution(np.arange(n, dtype=np.int32) * 2, n + 1)
    return PassResult(made, back, forward=Forward(np.arange(n + 1, dtype=np.int32) * 2, (i32(0, 2),)))


class Recovering:
    """The identity, in code."""

    def recover(self, assignment: BoolArray) -> BoolArray:
        return assignment.copy()


@right("guessed-map")
def _(module: Module) -> PassResult:
    """Right, but its maps are code."""
    return PassResult(module, Recovering())


@right("variables-reversed")
def _(module: Module) -> PassResult | None:
    target = (np.arange(module.variables, dtype=np.int32) * 2)[::-1].copy()
    by = Substitution(target, module.variables)
    return PassResult(substitute(module, by), by)


@right("slow")
def _(module: Module) -> Module:
    """Right, but it takes longer than the time limits of tests."""
    time.sleep(0.05)
    return module


def _only_for_solvers(module: Module) -> Module | None:
    return module.with_ops(contradiction()) if "aff-reduce" in module.provenance else None


def _clause_of_leaves(module: Module) -> Module:
    """Right, but the engine takes no such clause: solvers alone search."""
    leaves = next(block for block in module.blocks if isinstance(block, ExactlyOne))
    found = leaves.variables[leaves.offset[0] : leaves.offset[1]] * 2
    return module.with_ops(Clauses(indptr_of([len(found)]), found.astype(np.int32)))


FOR_SOLVERS: dict[str, tuple[Edit, Relation]] = {
    "only-for-solvers": (_only_for_solvers, Relation.EQUIVALENT),
    "clause-of-leaves": (_clause_of_leaves, Relation.EQUIVALENT),
}
"""Cases about modules that the engine does not search."""


@dataclass(frozen=True)
class Wrong:
    """wrong on purpose, in the way that `case` names."""

    case: str = "empty-clause"
    name: ClassVar[str] = "wrong"
    cases: ClassVar[dict[str, tuple[Edit, Relation]]] = {**WRONG, **FOR_SOLVERS}

    @property
    def relation(self) -> Relation:
        return self.cases[self.case][1]

    def run(self, module: Module) -> PassResult:
        made = self.cases[self.case][0](module)
        return made if isinstance(made, PassResult) else PassResult(module if made is None else made)


@dataclass(frozen=True)
class Right(Wrong):
    """right, and a plug-in."""

    case: str = "nothing"
    name: ClassVar[str] = "right"
    cases: ClassVar[dict[str, tuple[Edit, Relation]]] = RIGHT


@dataclass(frozen=True)
class Raises:
    """raises an error."""

    name: ClassVar[str] = "raises"
    relation: ClassVar[Relation] = Relation.EQUIVALENT

    def run(self, module: Module) -> PassResult:
        raise ZeroDivisionError(f"{module.variables} variables")
