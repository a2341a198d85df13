"""Rows whose pairs are typical come first: what a question asks besides of a flip, read off all rows at once."""

from __future__ import annotations

import numpy as np

from treesens.compiler.base.arrays import FloatArray, Int32Array, Int64Array
from treesens.compiler.base.units import Unit
from treesens.compiler.query.query import AtLeast, Query
from treesens.data.flips import FlipQuestion, Flips
from treesens.data.rows import cells_of_rows


def pair_cells(query: Query, question: FlipQuestion, found: Flips, places: Int64Array, rows: FloatArray) -> Int32Array:
    """The cells int32[places, points, features] of rows with the sensitive cells that reach their extremes; a row that is on
    one side as it is stays as it is there.
    """
    cells = cells_of_rows(query.space.grid, rows[found.index[places]])
    result = np.repeat(cells[:, None, :], 2, axis=1)
    features = list(question.features)
    falls = question.falling(found)[places, None]
    rises = question.rising(found)[places, None] & ~falls
    own = cells[:, features]
    result[:, question.upper, features] = np.where(falls, own, found.highest_cells[places])
    result[:, question.lower, features] = np.where(rises, own, found.lowest_cells[places])
    return result.astype(np.int32)


def least_untypical(
    query: Query, question: FlipQuestion, found: Flips, places: Int64Array, rows: FloatArray
) -> Int64Array:
    """The places in the order of what their pairs lack to be typical, and otherwise as they are; only of constraints that hold
    in any case.
    """
    typical_rows = [c for c in query.constraints if isinstance(c, AtLeast) and c.form.forests and not c.form.scores]
    if not typical_rows or len(places) == 0:
        return places
    cells = pair_cells(query, question, found, places, rows)
    lacking = np.zeros(len(places))
    for row in typical_rows:
        value = np.zeros(len(places))
        for term in row.form.forests:
            scores = term.scores(np.ascontiguousarray(cells[:, term.point]))
            value += term.coefficient * Unit(term.shift).doubles(scores)
        lacking += np.maximum(0.0, float(row.bound.enclose(64)[0]) - value)
    return places[np.argsort(lacking, kind="stable")]
