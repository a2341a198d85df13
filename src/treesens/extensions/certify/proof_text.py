"""Translates the native engine's numbers (variables, positions, groups, rows) to the checker's numbers.

A `Layout` maps the engine's numbers to a question, compiled or decided by the tree path; `ProofText` writes the proof.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from fractions import Fraction
from math import lcm
from typing import TYPE_CHECKING, Any

import numpy as np

from treesens.compiler.base.arrays import Int32Array
from treesens.compiler.base.dyadic import Unit
from treesens.compiler.ir import ExactlyOne, Linear, Module, Order
from treesens.extensions.certify.statement import NoCertificate, Statement, forests_of
from treesens.extensions.certify.tree_proof import TreeProof

if TYPE_CHECKING:
    from treesens._engine import ProofFacts

BY_CLAUSES, BY_MESSAGES = -1, -2
"""Values of `variable` in a node that is a leaf (`engine/certify/proof.hpp`)."""


@dataclass(frozen=True)
class Layout:
    """The meaning of the engine's numbers in a proof.

    Attributes:
        places: (point, feature) of every variable; later variables are Booleans of formulas, which statements lack.
        cells: int32[positions] per variable: the cell of the question's grid at which a position begins, or ends.
        groups: the points and the tree of every group; learnt trees follow those of the model of a point.
        rows: for each row, its index in the statement, and the number of its units in a score of 1.
        ends: True if positions end at the cells; of merged cells, the pass `drop-dead` keeps the last.
    """

    places: list[tuple[int, int]]
    cells: list[Int32Array]
    groups: list[tuple[tuple[int, ...], int]]
    rows: list[tuple[int, Fraction]]
    ends: bool = False


def layout_of_module(module: Module, row_dropped: tuple[int, ...], statement: Statement) -> Layout:
    """The layout of a compiled question; `row_dropped` holds the number of bits dropped from each of the engine's rows."""
    orders, blocks = list(module.blocks_of(Order)), list(module.blocks_of(ExactlyOne))
    names = [row.name for row in statement.rows]
    rows: list[tuple[int, Fraction]] = []
    at = 0
    # Rounding outward relaxes a row, so a refutation of the rounded row also refutes the row itself.
    linear = [row for row in module.ops_of(Linear) if not row.implied]
    for row, dropped in zip(linear, row_dropped, strict=False):
        while at < len(names) and names[at] != row.name:
            at += 1
        if at == len(names):
            raise NoCertificate("a row of the engine is missing from the statement")
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
    """The index of the first tree of a block (a model or learnt trees); all learnt trees are counted as one more model."""
    query = statement.query
    learnt = block.model - len(query.models)
    if learnt < 0:
        return 0
    own = query.models[query.points[block.points[0]].model].n_trees
    return own + sum(forest.ensemble.n_trees for forest in forests_of(statement.rows)[:learnt])


def layout_of_trees(proof: TreeProof) -> Layout:
    """The layout of a question decided by the tree path."""
    return Layout(proof.places, proof.cells, proof.groups, list(enumerate(proof.units)))


class ProofText:
    """Writes a proof in the engine's numbers as nodes of a certificate.

    `layout` maps the engine's numbers; `problem` is the checker's view of the statement. Mismatches are detected when the
    certificate is checked.
    """

    def __init__(self, layout: Layout, problem: Any, statement: Statement) -> None:
        self.layout = layout
        self.problem = problem
        self.statement = statement
        self.variable = [problem.variable[place] for place in layout.places]
        self.starts: dict[int, list[int]] = {}
        self.state: dict[tuple[int, int], list[int]] = {}
        self.odd = 1
        """The factor of messages for row units with odd denominators, which arise from division by a number of trees."""

    def _starts_of(self, variable: int) -> list[int]:
        """For every position of a variable, the checker's first cell at or beyond this position."""
        feature = self.layout.places[variable][1]
        grid = self.statement.query.space.grid[feature]
        # Below the categories there are no values; the first category is used. For merged cells, so is the first cell.
        starts = [0.0 if grid.categories else -grid.number_type.max, *self.problem.cuts[feature]]
        cells = grid.cell_of(np.array(starts)).tolist()
        cells.append(grid.missing_cell if grid.missing else cells[-1])
        mine = self.layout.cells[variable]
        if self.layout.ends:
            positions = np.minimum(np.searchsorted(mine, cells, side="left"), len(mine) - 1)
        else:
            positions = np.maximum(np.searchsorted(mine, cells, side="right") - 1, 0)
        return np.searchsorted(positions, np.arange(len(mine) + 1)).tolist()  # type: ignore[no-any-return]

    def document(self, found: ProofFacts) -> dict[str, Any]:
        """The certificate's nodes, and the trees whose copies at the points are separate factors."""
        factors, apart = self._factors(found)
        weights, exponents, self.odd = self._weights(found)
        nodes: list[list[Any]] = []
        leaf = 0
        for variable, cut in zip(found["variable"], found["cut"], strict=True):
            if variable == BY_CLAUSES:
                nodes.append([])
            elif variable == BY_MESSAGES:
                messages = self._messages(found, leaf, factors)
                nodes.append([weights[leaf], exponents[leaf], self._changes(messages, exponents[leaf])])
                leaf += 1
            else:
                nodes.append(self._cut(variable, cut))
        return {"apart": sorted(apart), "nodes": nodes}

    def _cut(self, variable: int, cut: int) -> list[int]:
        if variable >= len(self.variable):
            raise NoCertificate("a choice between constraints")
        return [self.variable[variable], self._start(variable, cut + 1)]

    def _start(self, variable: int, position: int) -> int:
        if variable not in self.starts:
            self.starts[variable] = self._starts_of(variable)
        return self.starts[variable][position]

    def _factors(self, found: ProofFacts) -> tuple[list[tuple[int, ...]], set[int]]:
        """For each factor of the engine, the checker's factors; and the trees whose copies are separate factors."""
        offset, group = found["factor_offset"], found["factor_group"]
        keys = []
        for start, end in itertools.pairwise(offset):
            trees = {self.layout.groups[g][1] for g in group[start:end]}
            points = {p for g in group[start:end] for p in self.layout.groups[g][0]}
            keys.append((min(trees), tuple(sorted(points))))
        apart: set[int] = set()
        if self.problem.joint:
            apart = {t for t, points in keys if len(points) < len(self.problem.points)}
        if apart:
            self.problem.make_factors(apart)
        number = {key: i for i, key in enumerate(self.problem.factors)}
        wanted = {(t, ps) for t, points in keys for ps in self._split(t, points, apart)}
        if not wanted <= number.keys():
            raise NoCertificate("trees that the checker groups in another way")
        return [tuple(number[t, ps] for ps in self._split(t, points, apart)) for t, points in keys], apart

    def _split(self, tree: int, points: tuple[int, ...], apart: set[int]) -> list[tuple[int, ...]]:
        return [points] if self.problem.joint and tree not in apart else [(p,) for p in points]

    def _weights(self, found: ProofFacts) -> tuple[list[list[int]], list[int], int]:
        """Per leaf, the integer weights of the statement's rows and the scale's exponent of two; and the scale's odd factor.
        The scale makes messages integers in the rows' units.
        """
        leaves, flat = len(found["exponent"]), found["multiplier"]
        rows = len(flat) // max(leaves, 1)
        shifts = [tuple(found["row_shift"][leaf * rows : (leaf + 1) * rows]) for leaf in range(leaves)]
        units = {shift: self._units(shift) for shift in shifts}
        scale = lcm(1, *(unit.denominator for mine in units.values() for _, unit in mine))
        power = scale & -scale
        weights = []
        for leaf, shift in enumerate(shifts):
            mine = [0] * len(self.problem.constant)
            for multiplier, (row, unit) in zip(flat[leaf * rows : (leaf + 1) * rows], units[shift], strict=False):
                mine[row] += multiplier * int(unit * scale)
            weights.append(mine)
        return weights, [exponent + power.bit_length() - 1 for exponent in found["exponent"]], scale // power

    def _units(self, row_shift: tuple[int, ...]) -> list[tuple[int, Fraction]]:
        """For every row of the engine: its index in the statement, and the unit of the row's grid in the checker's units."""
        return [
            (row, unit / Unit(shift).size / self.problem.units[row])
            for (row, unit), shift in zip(self.layout.rows, row_shift, strict=False)
        ]

    def _messages(
        self, found: ProofFacts, leaf: int, factors: list[tuple[int, ...]]
    ) -> dict[tuple[int, int], list[int]]:
        """The messages of a leaf by factor and variable: starts of runs with their values, in the unit of the leaf."""
        result: dict[tuple[int, int], list[int]] = {}
        offset, runs = found["message_offset"], found["run_offset"]
        for m in range(offset[leaf], offset[leaf + 1]):
            variable = found["message_variable"][m]
            if variable >= len(self.variable):
                continue  # a Boolean of a formula, which statements lack
            mine = self._runs(variable, found, range(runs[m], runs[m + 1]))
            for factor in factors[found["message_factor"][m]]:
                if self.variable[variable] in self.problem.scope[factor]:
                    result[factor, self.variable[variable]] = mine
        return result

    def _runs(self, variable: int, found: ProofFacts, runs: range) -> list[int]:
        """Starts and values of runs; cells that the checker does not separate form one run, with the last value."""
        by_start = {self._start(variable, found["run_start"][r]): self.odd * found["run_value"][r] for r in runs}
        return [x for pair in sorted(by_start.items()) for x in pair]

    def _changes(self, messages: dict[tuple[int, int], list[int]], exponent: int) -> list[list[int]]:
        """The messages that differ from the messages of the previous leaf."""
        changes = []
        for key in sorted(self.state.keys() | messages.keys()):
            mine = messages.get(key, [])
            exact = [x << exponent if i % 2 else x for i, x in enumerate(mine)]
            if self.state.pop(key, []) != exact:
                changes.append([*key, *mine])
            if exact:
                self.state[key] = exact
        return changes
