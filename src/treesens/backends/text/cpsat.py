"""CP-SAT models as protocol buffer text: Boolean constraints where possible, integer rows for scores.

Score rows are scaled to fit and rounded outward (legalise/rounding.py): at precision 0 to about 2**20 (small coefficients solve
faster), from precision 1 on to as many bits as CP-SAT accepts, which is exact for most models.
"""

from __future__ import annotations

from itertools import pairwise
from typing import assert_never

from treesens.backends.base import Artifact
from treesens.backends.text.formats import variable_names
from treesens.compiler.base.budget import check_in, steadily
from treesens.compiler.ir import (
    TRUE,
    Clauses,
    Equal,
    ExactlyOne,
    Facts,
    LeafImplies,
    LeafSum,
    Linear,
    Membership,
    Module,
    Order,
)
from treesens.compiler.ir.module import leaf_implications
from treesens.compiler.legalise.rounding import floor_shift, round_row, total
from treesens.compiler.legalise.rows import op_rows

_INT_MAX = 9223372036854775807
_BITS = (26, 60)
"""Maximum sum of coefficients, by precision; CP-SAT requires it below 2**62."""


def _literal(literal: int) -> int:
    """CP-SAT encodes the negation of v as -v - 1."""
    return literal >> 1 if literal & 1 == 0 else -(literal >> 1) - 1


def _list(values: list[int]) -> str:
    return "[" + ", ".join(map(str, values)) + "]"


def _linear(variables: list[int], values: list[int], low: int, high: int, when: str = "") -> str:
    return (
        f"constraints {{ {when}linear {{ vars: {_list(variables)} coeffs: {_list(values)} domain: [{low}, {high}] }} }}"
    )


def write_cpsat(module: Module, *, precision: int = 0) -> Artifact:
    """The module as `CpModelProto` text."""
    bits = _BITS[min(precision, len(_BITS) - 1)]
    lines = [
        f'variables {{ name: "{name}" domain: [0, 1] }}' for name in steadily(variable_names("cpsat", module.variables))
    ]
    exact = True
    for block in steadily(module.blocks):
        match block:
            case Order():
                v = block.variables.tolist()
                lines += [_implies(a, b) for a, b in steadily(pairwise(v))]
            case ExactlyOne():
                variables, offset = block.variables.tolist(), block.offset.tolist()
                for t in range(len(block.tree)):
                    leaves = variables[offset[t] : offset[t + 1]]
                    lines.append(f"constraints {{ exactly_one {{ literals: {_list(leaves)} }} }}")
    leaf, implied = leaf_implications(module)
    lines += [_implies(a, _literal(b)) for a, b in steadily(zip(leaf.tolist(), implied.tolist(), strict=True))]
    for op in module.ops:
        check_in()
        match op:
            case LeafImplies() | LeafSum():
                pass  # emitted as implications above; with exactly-one they imply the aggregated rows
            case Equal():
                for a, b in steadily(zip(op.left.tolist(), op.right.tolist(), strict=True)):
                    lines += [_implies(_literal(a), _literal(b)), _implies(_literal(b), _literal(a))]
            case Clauses():
                rows = op.indptr.tolist()
                for start, end in steadily(pairwise(rows)):
                    row = [_literal(x) for x in op.literals[start:end].tolist()]
                    lines.append(f"constraints {{ bool_or {{ literals: {_list(row)} }} }}")
            case Facts():
                lines += [f"constraints {{ bool_and {{ literals: [{_literal(x)}] }} }}" for x in op.literals.tolist()]
            case Linear():
                scaled = round_row(op.coefficients, op.bound, bits=bits)
                exact = exact and scaled.exact
                when = "" if op.when == TRUE else f"enforcement_literal: {_literal(op.when)} "
                lines.append(_linear(op.variables.tolist(), scaled.coefficients.tolist(), scaled.bound, _INT_MAX, when))
            case Membership():
                for rows_of_table in op_rows(module, op):
                    bounds = rows_of_table.indptr.tolist()
                    for i in steadily(range(rows_of_table.count)):
                        part = slice(bounds[i], bounds[i + 1])
                        level = int(rows_of_table.low[i])
                        lines.append(
                            _linear(
                                rows_of_table.variables[part].tolist(),
                                rows_of_table.coefficients[part].tolist(),
                                level,
                                level,
                            )
                        )
            case _:
                assert_never(op)
    dropped = 0
    if module.objective is not None:
        # Rounded up, so that an upper bound on the rounded objective also bounds the exact one.
        coefficients = module.objective.coefficients
        dropped = max(0, total(coefficients).bit_length() - bits)
        rounded = -floor_shift(-coefficients, dropped) if dropped else coefficients
        exact = exact and dropped == 0
        negated = [-int(c) for c in rounded]
        lines.append(
            f"objective {{ vars: {_list(module.objective.variables.tolist())} coeffs: {_list(negated)} scaling_factor: -1 }}"
        )
        lines += _strategy(module)
    return Artifact(
        "cpsat",
        "\n".join(lines) + "\n",
        module.variables,
        objective_shift=0 if module.objective is None else module.objective.shift,
        objective_constant=0 if module.objective is None else module.objective.constant,
        objective_dropped=dropped,
        has_objective=module.objective is not None,
        surrogate=module.objective is not None and module.objective.surrogate,
        relaxed=not exact,
    )


def _implies(a: int, b: int) -> str:
    return f"constraints {{ enforcement_literal: {a} bool_and {{ literals: [{b}] }} }}"


def _strategy(module: Module) -> list[str]:
    """Branching in the order of the order blocks (order-predicates)."""
    variables = [v for block in module.blocks_of(Order) for v in block.variables.tolist()]
    return [f"search_strategy {{ variables: {_list(variables)} }}"] if variables else []
