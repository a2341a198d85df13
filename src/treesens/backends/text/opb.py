"""OPB, the format of pseudo-Boolean solvers: exact integers of any size, nothing rounded. Variables are x1, x2, …

Guiding objectives are omitted: a solver would optimise them, because the format cannot request the first solution only.
"""

from __future__ import annotations

from treesens.backends.base import Artifact
from treesens.backends.text.formats import variable_names
from treesens.backends.text.value import told
from treesens.compiler.base.budget import steadily
from treesens.compiler.ir import Module
from treesens.compiler.legalise.rows import to_rows


def write_opb(module: Module, *, precision: int = 0) -> Artifact:
    """The module as OPB. `precision` has no effect: the rows are exact."""
    del precision
    rows = to_rows(module)
    x = variable_names("opb", max(1, rows.variables))
    lines: list[str] = []
    for block in rows.blocks:
        variables, values, bounds = block.variables.tolist(), block.coefficients.tolist(), block.indptr.tolist()
        for i in steadily(range(block.count)):
            part = range(bounds[i], bounds[i + 1])
            low, high = int(block.low[i]), int(block.high[i])
            if block.has_low[i] and block.has_high[i] and low == high:
                lines.append(f"{_terms(x, variables, values, part, 1)} = {low} ;")
                continue
            if block.has_low[i]:
                lines.append(f"{_terms(x, variables, values, part, 1)} >= {low} ;")
            if block.has_high[i]:
                lines.append(f"{_terms(x, variables, values, part, -1)} >= {-high} ;")
    head = [f"* #variable= {rows.variables} #constraint= {len(lines)}", f"* {told(module)}"]
    real = module.optimises
    if module.objective is not None and real:
        terms = _terms(
            x,
            module.objective.variables.tolist(),
            module.objective.coefficients.tolist(),
            range(len(module.objective.variables)),
            -1,
        )
        head.append(f"min: {terms} ;")
    return Artifact("opb", "\n".join(head + lines) + "\n", rows.variables, has_objective=real)


def _terms(x: list[str], variables: list[int], values: list[int], part: range, sign: int) -> str:
    return " ".join(f"{sign * int(values[i]):+d} {x[variables[i]]}" for i in part) or f"+0 {x[0]}"
