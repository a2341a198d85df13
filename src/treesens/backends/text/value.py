"""Objectives and names in a solver's text, and a table next to the text with the meaning of every variable.

Texts omit the objective's constant and use their own units, and some texts minimise where the question maximises. Variables and
rows have generated names. The name of a question, which may come from a file, is written as a comment in safe characters.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import sqrt
from sys import float_info

from treesens.backends.base import Artifact
from treesens.backends.text.formats import format_named
from treesens.compiler.base.budget import steadily
from treesens.compiler.base.dyadic import Unit
from treesens.compiler.ir import Module
from treesens.compiler.ir.module import Bool, ExactlyOne, Order
from treesens.compiler.model.grid import FeatureGrid
from treesens.compiler.query.query import Objective, Query
from treesens.visible import label


def value_line(module: Module, artifact: Artifact, objective: Objective | None) -> str:
    """A comment that derives the question's value from z, the text's objective; empty if z does not determine the value."""
    goal, known = module.objective, format_named(artifact.format)
    if objective is None or goal is None or not module.optimises or objective.nearest is not None:
        return ""
    unit = Unit(goal.shift).size
    step = Fraction(1) if known.scaled else Unit(goal.shift - artifact.objective_dropped).size
    sign = 1 if objective.maximize else -1  # modules maximise
    factor = sign * step * (-1 if known.minimised else 1) * objective.unit
    start = goal.constant + (sum(c for c in goal.coefficients.tolist() if c > 0) if known.missing else 0)
    constant = sign * start * unit * objective.unit + objective.offset
    if max(abs(constant), abs(factor)) > float_info.max:
        return ""  # not a number that a solver prints
    sum_ = f"{float(constant)!r} {'-' if factor < 0 else '+'} {float(abs(factor))!r} z"
    value = f"the root of {sum_}" if objective.kind == "distance l2" else sum_
    what = (
        "a bound on the question's value" if objective.values or artifact.objective_dropped else "the question's value"
    )
    return f"{known.comment}{what} ({label(objective.kind)}) is {value}, with z the objective here\n"


@dataclass(frozen=True)
class ValueLine:
    """A value line that was read: `means` names the value: the root of (if `root`) `constant` + `factor` z."""

    means: str
    constant: float
    factor: float
    root: bool

    def value(self, z: float) -> float:
        """The value at an objective z of the text."""
        value = self.constant + self.factor * z
        return sqrt(max(0.0, value)) if self.root else value


_LINE = re.compile(
    r"^\S+ ((?:a bound on )?the question's value \(.*\)) is (the root of )?(\S+) ([-+]) (\S+) z, with z the objective here$",
    re.MULTILINE,
)


def read_value_line(head: str) -> ValueLine | None:
    """The value line among the comments at the top of a text; None without one."""
    found = _LINE.search(head)
    if found is None:
        return None
    means, root, constant, sign, factor = found.groups()
    return ValueLine(means, float(constant), float(f"{sign}{factor}"), root is not None)


def with_value(module: Module, artifact: Artifact, objective: Objective | None) -> str:
    """The text with the value line after the comment about the question, or at the top if there is no such comment."""
    line = value_line(module, artifact, objective)
    head, told_line, rest = artifact.text.partition(f"{told(module)}\n")
    return f"{head}{told_line}{line}{rest}" if told_line else line + artifact.text


_MOST_STEPS = 100
GUIDES = "The objective only guides the search: its value has no meaning"


def told(module: Module) -> str:
    """One comment line: the question, the pipeline that made the module, and a remark if the objective only guides."""
    steps = " -> ".join(map(label, module.provenance[:_MOST_STEPS]))
    guided = module.objective is not None and module.objective.surrogate
    return f"{label(module.name)}: {steps}" + (f". {GUIDES}" if guided else "")


def row_name(origin: str) -> str:
    """The suffix of a row's name: its origin, at most 40 letters, digits and `_`."""
    return label(origin).translate(str.maketrans("-+.", "___"))[:40]


HEAD = "variable\tpoints\tmeaning\n"


def legend(module: Module, query: Query, names: Sequence[str]) -> str:
    """The meaning of each variable of a text, in tab-separated lines; `names` holds its variable names (`Artifact.names`).

    Names beyond those of the module's variables belong to auxiliary variables of rows.

    A cell of a feature is an interval of values; a variable of an order block means `x < t`. A variable of several blocks has a
    line for each block.
    """
    lines: list[tuple[int, str, str]] = []
    for block in module.blocks:
        match block:
            case Order():
                grid = query.space.grid.features[block.feature]
                where = _points(module, block.points)
                name = label(query.space.names[block.feature])
                for variable, cell in zip(block.variables.tolist(), block.cells.tolist(), strict=False):
                    lines.append((variable, where, f"{name} {_up_to(grid, cell)}"))
            case ExactlyOne():
                where = _points(module, block.points)
                lines += [(variable, where, text) for variable, text in steadily(_leaves(block))]
            case Bool():
                lines += [(variable, "", row_name(block.name)) for variable in block.variables.tolist()]
    lines += [(v, "", "auxiliary: a part of a row") for v in range(module.variables, len(names))]
    return HEAD + "".join(f"{names[variable]}\t{where}\t{text}\n" for variable, where, text in sorted(lines))


def _points(module: Module, points: tuple[int, ...]) -> str:
    return ", ".join(label(module.points[p]) for p in points)


def _up_to(grid: FeatureGrid, cell: int) -> str:
    """The values of a cell and of all cells before it; the missing value comes last."""
    if grid.categories:
        return f"<= {cell} (a code)" if cell < grid.categories else "is not missing"
    return f"< {grid.cuts[cell]:.17g}" if cell < len(grid.cuts) else "is not missing"


def _leaves(block: ExactlyOne) -> Iterator[tuple[int, str]]:
    for number, tree in enumerate(block.tree.tolist()):
        for i in range(int(block.offset[number]), int(block.offset[number + 1])):
            yield int(block.variables[i]), f"leaf {block.leaf[i]} of tree {tree} of model {block.model}"
