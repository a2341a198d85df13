"""An emit target: each row of the module as a line of JSON, `[low, high, {variable: coefficient}]`."""

from __future__ import annotations

import json

from treesens.backends.base import Artifact
from treesens.backends.text.formats import TextFormat, variable_names
from treesens.compiler.ir import Module
from treesens.compiler.legalise.rows import to_rows

ROWS = TextFormat("treesens_stumps.rows:write", comment="# ", first=1)


def write(module: Module, *, precision: int = 0) -> Artifact:
    """The module as text; all numbers are integers, and null is an open end."""
    rows = to_rows(module)
    names, lines = variable_names("rows", rows.variables), []
    for block in rows.blocks:
        for i in range(block.count):
            part = slice(int(block.indptr[i]), int(block.indptr[i + 1]))
            terms = zip(block.variables[part].tolist(), block.coefficients[part].tolist(), strict=True)
            ends = (
                int(end[i]) if has[i] else None
                for end, has in ((block.low, block.has_low), (block.high, block.has_high))
            )
            lines.append(json.dumps([*ends, {names[variable]: int(c) for variable, c in terms}]))
    return Artifact("rows", "\n".join([*lines, ""]), rows.variables, has_objective=False)
