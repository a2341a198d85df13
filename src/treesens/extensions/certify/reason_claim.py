"""What the reason of a row claims, in parts that can have certificates.

No input of another class agrees with the row on the features of the reason: a proof for each class. And no feature can be
left out: for each an input of another class that agrees on the others. That no reason has fewer features is shown by inputs of
other classes, too: a reason holds a feature in which each of them differs from the row (implicit hitting sets).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from itertools import combinations
from typing import Any

import numpy as np

from treesens.compiler.base.arrays import Int32Array
from treesens.compiler.query.explained import pinned
from treesens.compiler.query.query import Query
from treesens.compiler.result import Result
from treesens.extensions.certify.parts import having, lacking
from treesens.extensions.certify.statement import set_of_cells
from treesens.extensions.certify.together import Claim, Part, open_claim

MOST_TRIED = 20_000
"""Sets of features that are looked at, to find one that hits all inputs."""

Ask = Callable[[Query], Result]
Shown = tuple[Part, frozenset[int]]
"""An input of another class, and the features on which it agrees with the row."""


def reason_claim(
    title: str,
    others: Sequence[Query],
    cells: Int32Array,
    features: Collection[int],
    ask: Ask,
    *,
    smallest: bool = False,
) -> Claim:
    """The claim that `features` are a reason of which none can be left out, and with `smallest` that no reason has fewer.

    `others` ask for an input of each other class, `cells` int32[features] are those of the row; `ask` looks for the inputs that
    show what cannot be left out.
    """
    parts = [lacking(pinned(other, cells, features)) for other in others]
    kept: list[Collection[int]] = [features for _ in others]
    shown_apart: list[Shown] = []
    for left_out in sorted(features):
        shown = _shown(others, cells, [f for f in features if f != left_out], ask)
        if shown is None:
            name = others[0].space.names[left_out]
            return open_claim(title, f"no input was found that shows that {name} cannot be left out")
        shown_apart.append(shown)
    if smallest and not _against_fewer(others, cells, len(features), shown_apart, ask):
        return open_claim(title, "it was not shown that no reason has fewer features")
    parts += [part for part, _ in shown_apart]
    kept += [agreed for _, agreed in shown_apart]
    kind = "smallest" if smallest else "reason"
    row = values_of(others[0], cells)
    return Claim(
        title, kind, parts, lambda numbers: {"features": sorted(features), "row": row, "parts": numbers}, kept=kept
    )


def values_of(query: Query, cells: Int32Array) -> list[list[Any]]:
    """The values of a row with these cells, int32[features], as a claim names them: a set for every feature."""
    grids = query.space.grid
    return [[f, set_of_cells(grid, np.arange(grid.n_cells) == cells[f])] for f, grid in enumerate(grids)]


def _shown(others: Sequence[Query], cells: Int32Array, kept: Collection[int], ask: Ask) -> Shown | None:
    """An input of another class that agrees with the row on the features that are kept, and perhaps on more."""
    for other in others:
        asked = pinned(other, cells, kept)
        witness = ask(asked).witness
        if witness is not None:
            mine = witness.cells[0]
            agreed = [f for f in range(len(mine)) if mine[f] == cells[f]]
            return having(pinned(other, cells, agreed), witness), frozenset(agreed)
    return None


def _against_fewer(others: Sequence[Query], cells: Int32Array, size: int, shown_apart: list[Shown], ask: Ask) -> bool:
    """Adds inputs of other classes until no set of fewer features has one in which each of them differs from the row; whether
    that was reached.
    """
    tried = 0
    for fewer in range(size):
        for chosen in combinations(range(len(cells)), fewer):
            tried += 1
            if tried > MOST_TRIED:
                return False
            if not any(agreed.issuperset(chosen) for _, agreed in shown_apart):
                shown = _shown(others, cells, chosen, ask)
                if shown is None:
                    return False
                shown_apart.append(shown)
    return True
