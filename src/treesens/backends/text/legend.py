"""What every variable of a solver's text stands for: a table beside the text, for whoever reads it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from treesens.backends.text.value import row_name
from treesens.compiler.base.checkpoints import steadily
from treesens.compiler.ir import Module
from treesens.compiler.ir.types import Bool, ExactlyOne, Order
from treesens.compiler.model.grid import FeatureGrid
from treesens.compiler.query.query import Query
from treesens.visible import label

HEAD = "variable\tpoints\tmeaning\n"


def legend(module: Module, query: Query, names: Sequence[str]) -> str:
    """Tab-separated: a line per variable of a text whose names these are (`Artifact.names`), in the order of their numbers.

    Names beyond the variables of the module are those of rows that were made of it.

    A cell of a feature is an interval of values; `x < t` is what a variable of an order block says. A variable of more than
    one block has a line for each.
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
    """The values of a cell and of all before it; the missing value is after all others."""
    if grid.categories:
        return f"<= {cell} (a code)" if cell < grid.categories else "is not missing"
    return f"< {grid.cuts[cell]:.17g}" if cell < len(grid.cuts) else "is not missing"


def _leaves(block: ExactlyOne) -> Iterator[tuple[int, str]]:
    for number, tree in enumerate(block.tree.tolist()):
        for i in range(int(block.offset[number]), int(block.offset[number + 1])):
            yield int(block.variables[i]), f"leaf {block.leaf[i]} of tree {tree} of model {block.model}"
