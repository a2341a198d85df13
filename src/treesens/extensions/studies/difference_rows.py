"""What two models make of the rows of a table: how far apart, which classes change, and what the second model costs there."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from treesens.binder.file import ResolvedQuestion
from treesens.compiler.base.arrays import BoolArray, FloatArray, Int64Array
from treesens.compiler.model import Ensemble
from treesens.data.tables import Table
from treesens.errors import DataError, UsageError
from treesens.extensions.studies.difference_questions import averages_probabilities
from treesens.extensions.studies.losses import Labelled, labelled
from treesens.extensions.studies.prices import Moved, price_of
from treesens.frontends.base import LoadedModel

if TYPE_CHECKING:
    from treesens.extensions.studies.difference import Difference


def compare_rows(found: Difference, question: ResolvedQuestion) -> None:
    """Adds how far apart rows are at most, and which of them the models decide differently."""
    rows = question.rows["d"]
    ensembles = [model.ensemble for model in question.query.models]
    scores = [_scores(ensemble, rows) for ensemble in ensembles]
    if averages_probabilities(*ensembles):
        last = slice(None) if len(ensembles[0].classes) > 2 else slice(-1, None)
        shown = [e.probabilities(of_rows)[:, last] for e, of_rows in zip(ensembles, scores, strict=True)]
        apart = np.abs(shown[0] - shown[1]).max(axis=1)
    else:
        apart = np.abs(scores[0] - scores[1]).max(axis=1)
    rounded = _by_rounding(ensembles, rows, apart)
    differ = _classes(question, 0, scores[0], rows) != _classes(question, 1, scores[1], rows)
    different = np.flatnonzero(differ if ensembles[0].classes else differ & ~rounded)
    order = different[np.argsort(-apart[different], kind="stable")]
    found.rows, found.changed = len(rows), [int(i) for i in order]
    found.largest_on_rows = float(apart[~rounded].max(initial=0.0))
    found.rounded, found.largest_rounding = int(rounded.sum()), float(apart[rounded].max(initial=0.0))


def labels_of_rows(
    old: LoadedModel, table: Table | None, price_by: Sequence[Sequence[str]]
) -> tuple[Labelled | None, tuple[str, ...]]:
    """The labels of a table, and their groups; or a note why there are no prices. UsageError and DataError for groups without
    prices.
    """
    if table is None or table.label is None:
        if price_by:
            raise UsageError(
                "--price-by needs labelled rows", remedy="add --data FILE and --label COLUMN, or leave out --price-by"
            )
        return None, ()
    try:
        return labelled(old, table, table.label, price_by), ()
    except (UsageError, DataError) as error:
        if price_by:
            raise
        return None, (f"no prices: {error}",)


def price_on_rows(
    question: ResolvedQuestion, labels: Labelled, varied: Sequence[Sequence[str]] | None
) -> dict[str, Any]:
    """What the second model costs on the rows of the question; rows that flip are counted if features are varied."""
    old, new = (model.ensemble for model in question.query.models)
    rows = question.rows["d"]
    names = sorted({name for group in varied or () for name in group})
    moved = Moved.of([old.feature_names.index(name) for name in names], rows) if names else None
    return price_of(old, new, replace(labels, rows=rows), moved)


def _by_rounding(ensembles: Sequence[Ensemble], rows: FloatArray, apart: FloatArray) -> BoolArray:
    """The rows whose exact sums are equal while the libraries' own sums differ: bool[rows]."""
    result = np.zeros(len(rows), dtype=np.bool_)
    if averages_probabilities(*ensembles) or any(e.blend is not None for e in ensembles):
        return result
    # Sums that are farther apart than both can be off have other exact ones.
    near = np.flatnonzero((apart > 0) & (apart <= 2 * sum(float(e.band()) for e in ensembles)))
    if len(near):
        one, other = (e.margins_exact(rows[near]) for e in ensembles)
        result[near] = (one == other).all(axis=1)
    return result


def _scores(ensemble: Ensemble, rows: FloatArray) -> FloatArray:
    """Raw scores in the library's arithmetic, float64[rows, outputs]."""
    return np.asarray(ensemble.margins_emulated(rows), dtype=np.float64)


def _classes(question: ResolvedQuestion, number: int, scores: FloatArray, rows: FloatArray) -> Int64Array | FloatArray:
    """The class that a model predicts for every row; of a regressor its values themselves."""
    e = question.query.models[number].ensemble
    if not e.classes:
        return scores[:, 0]
    return e.predicted_classes(scores, rows)
