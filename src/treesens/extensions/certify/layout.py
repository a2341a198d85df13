"""What the numbers of the engine stand for in a question: its variables, positions, groups and rows."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from math import lcm

from treesens.backends.native.tree_proof import TreeProof
from treesens.compiler.base.arrays import Int32Array
from treesens.compiler.base.units import Unit
from treesens.compiler.ir import ExactlyOne, Linear, Module, Order
from treesens.extensions.certify.statement import NoCertificate, Statement, forests_of


@dataclass(frozen=True)
class Layout:
    """Of the problem that a proof is about.

    Attributes:
        places: (point, feature) of every variable; variables beyond are Booleans of formulas, which no statement knows.
        cells: int32[positions] per variable: the cell of the question's grid with which a position begins, or ends.
        groups: the points and the tree of every group; learnt trees follow those of the model of a point.
        rows: of every row, which one of the statement it is, and how many of its units make one of a score.
        ends: whether the cells are those with which positions end: of merged cells the pass `drop-dead` keeps the last.
    """

    places: list[tuple[int, int]]
    cells: list[Int32Array]
    groups: list[tuple[tuple[int, ...], int]]
    rows: list[tuple[int, Fraction]]
    ends: bool = False


def layout_of_module(module: Module, row_dropped: tuple[int, ...], statement: Statement) -> Layout:
    """The layout of a compiled question; `row_dropped` are the bits by which the engine's rows were rounded."""
    orders, blocks = list(module.blocks_of(Order)), list(module.blocks_of(ExactlyOne))
    names = [row.name for row in statement.rows]
    rows: list[tuple[int, Fraction]] = []
    at = 0
    # A row that was rounded outward is never less than the row itself: what refutes it refutes the row.
    linear = [row for row in module.ops_of(Linear) if not row.implied]
    for row, dropped in zip(linear, row_dropped, strict=False):
        while at < len(names) and names[at] != row.name:
            at += 1
        if at == len(names):
            raise NoCertificate("a row of the engine that the statement has not")
        odd = lcm(1, *(t.coefficient.denominator for t in statement.rows[at].form.scores))
        odd //= odd & -odd
        rows.append((at, odd / Unit(row.shift - dropped).size))
        at += 1
    return Layout(
        [(b.points[0], b.feature) for b in orders],
        [b.cells for b in orders],
        [(b.points, first + int(t)) for b in blocks for first in [_first_tree(statement, b)] for t in b.tree],
        rows,
        ends=True,
    )


def _first_tree(statement: Statement, block: ExactlyOne) -> int:
    """The number of the first tree of a block's model, or of its learnt trees, which count as one more model."""
    query = statement.query
    learnt = block.model - len(query.models)
    if learnt < 0:
        return 0
    own = query.models[query.points[block.points[0]].model].n_trees
    return own + sum(forest.ensemble.n_trees for forest in forests_of(statement.rows)[:learnt])


def layout_of_trees(proof: TreeProof) -> Layout:
    """The layout of a question that the tree path has decided."""
    return Layout(proof.places, proof.cells, proof.groups, list(enumerate(proof.units)))
