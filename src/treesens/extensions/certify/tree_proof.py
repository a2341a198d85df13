"""Proves by the tree-path search that a question about scores alone has no answer."""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING

import numpy as np

from treesens.backends.native.solver import certified
from treesens.backends.native.tree_question import RunningSearch, ask
from treesens.compiler.base.arrays import Int32Array
from treesens.compiler.query.query import Query
from treesens.runtime.kept import reuse

if TYPE_CHECKING:
    from treesens._engine import ProofFacts

_NODES = 1 << 40
"""No limit on nodes: only the time is limited."""


@dataclass(frozen=True)
class TreeProof:
    """A proof in the engine's numbers (`engine/certify/proof.hpp`), and their meaning.

    Attributes:
        found: the proof; None if no search was needed.
        failing_row: without a search, the row that fails even with every tree's best leaf; -1 if domain and clauses contradict.
        places: (point, feature) of every variable.
        cells: int32[positions] per variable: the cell at which a position begins.
        groups: the points and the tree of every group.
        units: for each row, the number of its units in a score of 1.
    """

    found: ProofFacts | None
    failing_row: int
    places: list[tuple[int, int]]
    cells: list[Int32Array]
    groups: list[tuple[tuple[int, ...], int]]
    units: list[Fraction]


def prove_on_trees(query: Query, seconds: float) -> TreeProof | None:
    """The proof that a question without an objective has no answer; None if the compiled path is needed."""
    running = reuse(query, ("tree path",), lambda: ask(query, None, 0, None))
    return None if running is None else proof_of(running, seconds)


def proof_of(running: RunningSearch, seconds: float) -> TreeProof:
    """The proof of the rows of a search."""
    search, variable = running.search, running.trees.variable
    left, places = search.left(), _places(variable)
    offset, cell = left["cell_offset"], np.array(left["cell"], np.int32)
    groups = running.trees.groups
    found = None
    if left["problem"]:
        found = certified(lambda limit: search.certify(seconds=limit, node_limit=_NODES), seconds, search.stop)
    return TreeProof(
        found,
        left["failing_row"],
        [places[v] for v in left["variable"]],
        [cell[start:end] for start, end in itertools.pairwise(offset)],
        [groups[g] for g in left["group"]],
        [1 / row.unit for row in running.question.rows],
    )


def _places(variable: Int32Array) -> dict[int, tuple[int, int]]:
    """For each variable, its first point and its feature."""
    points, features = variable.shape
    return {int(variable[p, f]): (p, f) for p in reversed(range(points)) for f in range(features)}
