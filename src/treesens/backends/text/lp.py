"""CPLEX LP format: the same rows as the MPS writer, readable by people and by any MILP solver."""

from __future__ import annotations

from math import isfinite

from treesens.backends.base import Artifact
from treesens.backends.text.formats import variable_names
from treesens.backends.text.value import row_name, told
from treesens.compiler.base.budget import steadily
from treesens.compiler.base.dyadic import Unit
from treesens.compiler.ir import Module
from treesens.compiler.legalise.rounding import float_rows
from treesens.compiler.legalise.rows import to_rows

_PER_LINE = 12
_NOTHING = f"0 {variable_names('lp', 1)[0]}"
"""Replaces a sum without terms, which readers reject; the variable need not belong to the module."""


def _sum(x: list[str], variables: list[int], values: list[float]) -> str:
    """A linear sum, wrapped into lines, because some readers stop at 560 characters."""
    terms = [f"{'-' if c < 0 else '+'} {abs(c)!r} {x[v]}" for v, c in zip(variables, values, strict=True)]
    lines = [" ".join(terms[i : i + _PER_LINE]) for i in range(0, len(terms), _PER_LINE)]
    return "\n   ".join(lines) or _NOTHING


def write_lp(module: Module, *, precision: int = 0) -> Artifact:
    """The module as LP text."""
    rows = to_rows(module)
    x = variable_names("lp", rows.variables)
    lines = [f"\\ {told(module)}"]
    if module.objective is None:
        lines += ["Minimize", f" obj: {_NOTHING}"]
    else:
        weights = Unit(module.objective.shift).doubles(module.objective.coefficients)
        lines += ["Maximize", f" obj: {_sum(x, module.objective.variables.tolist(), weights.tolist())}"]
    lines.append("Subject To")
    number = 0
    for block in rows.blocks:
        doubles = float_rows(block, relax=precision == 0)
        variables, values, bounds = block.variables.tolist(), doubles.coefficients.tolist(), block.indptr.tolist()
        for i in steadily(range(block.count)):
            text = _sum(x, variables[bounds[i] : bounds[i + 1]], values[bounds[i] : bounds[i + 1]])
            low, high = float(doubles.low[i]), float(doubles.high[i])
            name = f"r{number}_{row_name(block.origin)}"
            if low == high:
                lines.append(f" {name}: {text} = {low!r}")
            else:
                if isfinite(low):
                    lines.append(f" {name}: {text} >= {low!r}")
                if isfinite(high):
                    lines.append(f" {name}{'_u' if isfinite(low) else ''}: {text} <= {high!r}")
            number += 1
    lines.append("Bounds")
    lines += [f" 0 <= {name} <= 1" for name in steadily(x)]
    lines.append("Binaries")
    lines += [f" {name}" for name, binary in steadily(zip(x, rows.binary.tolist(), strict=True)) if binary]
    lines.append("End")
    return Artifact(
        "lp", "\n".join(lines) + "\n", rows.variables, has_objective=module.objective is not None, relaxed=True
    )
