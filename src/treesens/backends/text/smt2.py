"""SMT-LIB 2: Booleans and clauses for Boolean constraints, exact integers for linear constraints.

Clauses and implications stay clauses. Exactly-one is a disjunction plus pairwise exclusions; an exclusion is written only if no
guard separates its two leaves, since it otherwise follows from the guards (the paths to two leaves of a tree diverge at a
node). Rows are multiplied by 2**shift, so all numbers are integers; the logic is QF_LIA.
"""

from __future__ import annotations

from itertools import pairwise
from typing import assert_never

from treesens.backends.base import Artifact
from treesens.backends.text.formats import variable_names
from treesens.backends.text.value import told
from treesens.compiler.base.budget import check_in, steadily
from treesens.compiler.ir import TRUE, Clauses, Equal, ExactlyOne, Facts, LeafImplies, LeafSum, Linear, Module, Order
from treesens.compiler.ir.module import leaf_implications
from treesens.compiler.ir.ops import Membership
from treesens.compiler.legalise.rows import op_rows


def _literal(x: list[str], literal: int) -> str:
    return x[literal >> 1] if literal & 1 == 0 else f"(not {x[literal >> 1]})"


def _number(value: int) -> str:
    return str(value) if value >= 0 else f"(- {-value})"


def _sum(x: list[str], variables: list[int], values: list[int]) -> str:
    terms = [f"(ite {x[v]} {_number(int(c))} 0)" for v, c in zip(variables, values, strict=True)]
    return "0" if not terms else terms[0] if len(terms) == 1 else f"(+ {' '.join(terms)})"


def write_smt2(module: Module, *, precision: int = 0) -> Artifact:
    """The module as SMT-LIB 2 text with `(check-sat)`; exact, so `precision` has no effect."""
    del precision
    x = variable_names("smt2", module.variables)
    lines = ["(set-logic QF_LIA)", f"; {told(module)}"]
    lines += [f"(declare-const {name} Bool)" for name in steadily(x)]
    guards = guards_of(module)
    for block in steadily(module.blocks):
        match block:
            case Order():
                v = block.variables.tolist()
                lines += [f"(assert (or (not {x[a]}) {x[b]}))" for a, b in steadily(pairwise(v))]
            case ExactlyOne():
                variables, offset = block.variables.tolist(), block.offset.tolist()
                for t in range(len(block.tree)):
                    leaves = variables[offset[t] : offset[t + 1]]
                    names = " ".join(x[v] for v in leaves)
                    lines.append(f"(assert (or {names}))" if len(leaves) > 1 else f"(assert {names})")
                    lines += [f"(assert (or (not {x[a]}) (not {x[b]})))" for a, b in overlapping(leaves, guards)]
    lines += _ops(module, x)
    if module.objective is not None and module.optimises:
        total = _sum(x, module.objective.variables.tolist(), module.objective.coefficients.tolist())
        lines.append(f"(maximize {total})")
    lines.append("(check-sat)")
    return Artifact(
        "smt2",
        "\n".join(lines) + "\n",
        module.variables,
        has_objective=module.objective is not None,
        surrogate=module.objective is not None and module.objective.surrogate,
        objective_constant=0 if module.objective is None else module.objective.constant,
        objective_shift=0 if module.objective is None else module.objective.shift,
    )


def guards_of(module: Module) -> dict[int, set[int]]:
    """The literals that each leaf implies, by leaf."""
    result: dict[int, set[int]] = {}
    leaves, literals = leaf_implications(module)
    for leaf, literal in steadily(zip(leaves.tolist(), literals.tolist(), strict=True)):
        result.setdefault(leaf, set()).add(literal)
    return result


def overlapping(leaves: list[int], guards: dict[int, set[int]]) -> list[tuple[int, int]]:
    """Pairs of leaves of a tree that no guard separates; freshly lowered trees have no such pairs."""
    negated = [{g ^ 1 for g in guards.get(leaf, ())} for leaf in leaves]
    found: list[tuple[int, int]] = []
    for i, a in enumerate(leaves):
        check_in()  # a tree of thousands of leaves has millions of pairs
        implied = guards.get(a, set())
        found += [(a, b) for b, others in zip(leaves[:i], negated[:i], strict=True) if implied.isdisjoint(others)]
    return found


def _ops(module: Module, x: list[str]) -> list[str]:
    leaves, literals = leaf_implications(module)
    implied = steadily(zip(leaves.tolist(), literals.tolist(), strict=True))
    lines = [f"(assert (or (not {x[a]}) {_literal(x, b)}))" for a, b in implied]
    for op in module.ops:
        check_in()
        match op:
            case Equal():
                pairs = steadily(zip(op.left.tolist(), op.right.tolist(), strict=True))
                lines += [f"(assert (= {_literal(x, a)} {_literal(x, b)}))" for a, b in pairs]
            case Clauses():
                rows = op.indptr.tolist()
                for start, end in steadily(pairwise(rows)):
                    parts = [_literal(x, literal) for literal in op.literals[start:end].tolist()]
                    body = "false" if not parts else parts[0] if len(parts) == 1 else f"(or {' '.join(parts)})"
                    lines.append(f"(assert {body})")
            case Facts():
                lines += [f"(assert {_literal(x, literal)})" for literal in op.literals.tolist()]
            case Linear():
                row = f"(>= {_sum(x, op.variables.tolist(), op.coefficients.tolist())} {_number(op.bound)})"
                lines.append(f"(assert {row})" if op.when == TRUE else f"(assert (=> {_literal(x, op.when)} {row}))")
            case Membership():
                for block in op_rows(module, op):
                    bounds = block.indptr.tolist()
                    for i in steadily(range(block.count)):
                        part = slice(bounds[i], bounds[i + 1])
                        total = _sum(x, block.variables[part].tolist(), block.coefficients[part].tolist())
                        lines.append(f"(assert (= {total} {_number(int(block.low[i]))}))")
            case LeafImplies() | LeafSum():
                pass  # implied above; the equality of a root follows from exactly-one
            case _:
                assert_never(op)
    return lines
