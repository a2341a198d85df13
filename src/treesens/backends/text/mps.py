"""Free MPS with 17 significant digits, for HiGHS, CBC, SCIP and Gurobi. Variables are x0, x1, …; the text always minimises."""

from __future__ import annotations

from math import isfinite

import numpy as np

from treesens.backends.base import Artifact
from treesens.backends.text.formats import variable_names
from treesens.backends.text.value import told
from treesens.compiler.base.arrays import row_of
from treesens.compiler.base.budget import check_in, steadily
from treesens.compiler.base.dyadic import Unit
from treesens.compiler.ir import Module
from treesens.compiler.legalise.rounding import float_rows
from treesens.compiler.legalise.rows import to_rows


def write_mps(module: Module, *, precision: int = 0) -> Artifact:
    """The module as MPS. The objective is the negated objective of the module, without its constant."""
    rows = to_rows(module)
    names: list[str] = []
    kinds: list[str] = []
    rhs: list[str] = []
    ranges: list[str] = []
    row_ids, columns, values = [], [], []
    for block in rows.blocks:
        doubles = float_rows(block, relax=precision == 0)
        base = len(names)
        for i in steadily(range(block.count)):
            low, high = float(doubles.low[i]), float(doubles.high[i])
            name = f"r{base + i}"
            names.append(name)
            kind = "E" if low == high else "G" if isfinite(low) else "L"
            kinds.append(f" {kind} {name}")
            side = high if kind == "L" else low
            if side != 0.0:
                rhs.append(f" RHS {name} {side!r}")
            if kind == "G" and isfinite(high):
                ranges.append(f" RNG {name} {high - low!r}")
        row_ids.append(row_of(block.indptr) + base)
        columns.append(block.variables)
        values.append(doubles.coefficients)
    row_id, column, value = (np.concatenate(parts) if parts else np.zeros(0) for parts in (row_ids, columns, values))
    check_in()
    order = np.argsort(column, kind="stable")
    entries = list(
        zip(row_id[order].astype(int).tolist(), column[order].astype(int).tolist(), value[order].tolist(), strict=True)
    )
    objective: dict[int, float] = {}
    if module.objective is not None:
        weights = Unit(module.objective.shift).doubles(module.objective.coefficients)
        objective = dict(zip(module.objective.variables.tolist(), (-weights).tolist(), strict=True))
    lines = [f"* {told(module)}", "NAME treesens", "ROWS", " N obj", *kinds, "COLUMNS"]
    # Readers drop a model without columns, including its rows and contradictions: one idle column keeps it.
    x = variable_names("mps", max(1, rows.variables))
    binary = rows.binary if rows.variables else np.ones(1, bool)
    lines += _columns(x, binary, entries, objective)
    lines += ["RHS", *rhs]
    if ranges:
        lines += ["RANGES", *ranges]
    lines.append("BOUNDS")
    lines += [f" UP BND {name} 1" for name in x]
    lines.append("ENDATA")
    return Artifact(
        "mps",
        "\n".join(lines) + "\n",
        rows.variables,
        has_objective=module.objective is not None,
        surrogate=module.objective is not None and module.objective.surrogate,
        relaxed=precision == 0,
        restricted=precision > 0,
        objective_constant=0 if module.objective is None else module.objective.constant,
        objective_shift=0 if module.objective is None else module.objective.shift,
    )


def _columns(
    x: list[str], binary: np.ndarray, entries: list[tuple[int, int, float]], objective: dict[int, float]
) -> list[str]:
    lines: list[str] = []
    position = 0
    integral = False
    for v, name in steadily(enumerate(x)):
        if bool(binary[v]) != integral:
            integral = not integral
            lines.append(f" MARKER 'MARKER' '{'INTORG' if integral else 'INTEND'}'")
        # Every column is named here even if it is empty, so that solvers number columns like the module.
        lines.append(f" {name} obj {objective.get(v, 0.0)!r}")
        while position < len(entries) and entries[position][1] == v:
            lines.append(f" {name} r{entries[position][0]} {entries[position][2]!r}")
            position += 1
    if integral:
        lines.append(" MARKER 'MARKER' 'INTEND'")
    return lines
