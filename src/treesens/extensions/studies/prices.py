"""The price of one model compared with another on labelled rows: losses, decisions and flips, over all rows and by group."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from treesens.compiler.base.arrays import BoolArray, FloatArray, Int64Array
from treesens.compiler.model import Ensemble
from treesens.extensions.studies.losses import Labelled, area_under_curve, loss_name, losses

MOST_WAYS = 32
"""Maximum number of value combinations of the varied features to try for flips, evenly spread over those in the rows."""
_MOST_ROWS = 2000
"""Maximum number of rows that are tried for flips, evenly spread."""


@dataclass(frozen=True, eq=False)
class Moved:
    """Features by their indices, and the values `ways`, float64[ways, features], that are tried instead to find flips."""

    features: list[int]
    ways: FloatArray

    @classmethod
    def of(cls, features: Sequence[int], rows: FloatArray) -> Moved:
        """At most MOST_WAYS distinct values of some features, evenly spread over those in `rows`, float64[rows, features]."""
        ordered = sorted(features)
        return cls(ordered, _spread(np.unique(rows[:, ordered], axis=0), MOST_WAYS))


def price_of(before: Ensemble, after: Ensemble, part: Labelled, moved: Moved | None = None) -> dict[str, Any]:
    """The price of the second model compared with the first on some rows, as a `PriceRecord` in plain data; with `moved`, also
    the numbers of rows that flip. Scores are in the library's arithmetic. Raises UsageError for models without a loss.
    """
    old, new = _margins(before, part.rows), _margins(after, part.rows)
    record = _of_scores(before, old, new, part.labels, part.rows)
    record["rows_changed"] = int((old != new).any(axis=1).sum())
    record["largest_change_of_a_score"] = float(np.abs(old - new).max(initial=0.0))
    if before.classes and moved is not None:
        tried = _spread(part.rows, _MOST_ROWS)
        record["rows_tried_for_flips"] = len(tried)
        record["rows_flip_before"] = int(_flips(before, tried, moved).sum())
        record["rows_flip_after"] = int(_flips(after, tried, moved).sum())
    if part.groups:
        record["groups"] = [
            {
                "by": list(group.by),
                "values": list(group.values),
                **_of_scores(before, old[group.rows], new[group.rows], part.labels[group.rows], part.rows[group.rows]),
                **_rates(before, old, new, group.rows),
            }
            for group in part.groups
        ]
    return record


def _of_scores(
    ensemble: Ensemble, old: FloatArray, new: FloatArray, labels: FloatArray, rows: FloatArray
) -> dict[str, Any]:
    """Losses, AUC and decisions for the margins of both models, each float64[rows, outputs]."""
    name = loss_name(ensemble)
    record: dict[str, Any] = {
        "rows": len(labels),
        "loss": name,
        "loss_before": float(losses(name, old, labels).mean()),
        "loss_after": float(losses(name, new, labels).mean()),
    }
    if len(ensemble.classes) == 2:
        record["auc_before"] = area_under_curve(_score(old), labels)
        record["auc_after"] = area_under_curve(_score(new), labels)
    if ensemble.classes:
        before, after = (ensemble.predicted_classes(margins, rows) for margins in (old, new))
        record["decisions_changed"] = int((before != after).sum())
    return record


def _rates(ensemble: Ensemble, old: FloatArray, new: FloatArray, rows: Int64Array) -> dict[str, float]:
    """For each model, the share of the given rows for which it predicts the second of two classes."""
    if len(ensemble.classes) != 2:
        return {}
    one, two = (float((ensemble.predicted_classes(m[rows]) == 1).mean()) for m in (old, new))
    return {"positive_before": one, "positive_after": two}


def _margins(ensemble: Ensemble, rows: FloatArray) -> FloatArray:
    """The margins of rows in the arithmetic of the library, float64[rows, outputs]."""
    return np.asarray(ensemble.margins_emulated(rows), dtype=np.float64)


def _score(margins: FloatArray) -> FloatArray:
    """The number that ranks rows of two classes, float64[rows]: the score, or the lead of the second class."""
    return margins[:, 0] if margins.shape[1] == 1 else np.asarray(margins[:, 1] - margins[:, 0])


def _spread(rows: FloatArray, most: int) -> FloatArray:
    """All rows, or `most` evenly spread rows."""
    return rows if len(rows) <= most else rows[np.linspace(0, len(rows) - 1, most).astype(np.int64)]


def _flips(ensemble: Ensemble, rows: FloatArray, moved: Moved) -> BoolArray:
    """True for rows whose class changes with other values of the moved features, bool[rows]."""

    def classes(these: FloatArray) -> Int64Array:
        return ensemble.predicted_classes(_margins(ensemble, these), these)

    own, flips = classes(rows), np.zeros(len(rows), dtype=np.bool_)
    for way in moved.ways:
        changed = rows.copy()
        changed[:, moved.features] = way
        flips |= classes(changed) != own
    return flips
