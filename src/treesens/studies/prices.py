"""What a repair costs: losses, decisions and flips of labelled rows, beside the model as it was."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

import numpy as np

from treesens.compiler.base.arrays import BoolArray, FloatArray
from treesens.frontends.base import LoadedModel
from treesens.studies.losses import Labelled, area_under_curve, loss_name, losses

_MOST_WAYS = 32
"""Of the values that rows have of the varied features, for rows that flip: so many are tried, evenly spread."""
_MOST_ROWS = 2000
"""Rows that are tried for flips, evenly spread."""


def prices_of(
    before: LoadedModel, after: LoadedModel, train: Labelled, test: Labelled | None, varied: Collection[int]
) -> dict[str, Any]:
    """The prices on training rows, and on rows that were held out (the ones that count)."""
    ways = np.unique(train.rows[:, sorted(varied)], axis=0)
    ways = _spread(ways, _MOST_WAYS)
    parts = {"train": train} if test is None else {"train": train, "test": test}
    return {"prices": {name: _price(before, after, part, ways, sorted(varied)) for name, part in parts.items()}}


def _price(
    before: LoadedModel, after: LoadedModel, part: Labelled, ways: FloatArray, varied: list[int]
) -> dict[str, Any]:
    name = loss_name(before.ensemble)
    old, new = (np.asarray(m.ensemble.margins_emulated(part.rows), dtype=np.float64) for m in (before, after))
    record: dict[str, Any] = {
        "rows": len(part.rows),
        "loss": name,
        "loss_before": float(losses(name, old, part.labels).mean()),
        "loss_after": float(losses(name, new, part.labels).mean()),
        "rows_changed": int((old != new).any(axis=1).sum()),
        "largest_change_of_a_score": float(np.abs(old - new).max(initial=0.0)),
    }
    if not before.ensemble.classes:
        return record
    if len(before.ensemble.classes) == 2:
        record["auc_before"] = area_under_curve(_score(old), part.labels)
        record["auc_after"] = area_under_curve(_score(new), part.labels)
    one, two = before.ensemble.predicted_classes(old), after.ensemble.predicted_classes(new)
    record["decisions_changed"] = int((one != two).sum())
    tried = _spread(part.rows, _MOST_ROWS)
    record["rows_tried_for_flips"] = len(tried)
    record["rows_flip_before"] = int(_flips(before, tried, ways, varied).sum())
    record["rows_flip_after"] = int(_flips(after, tried, ways, varied).sum())
    return record


def _score(margins: FloatArray) -> FloatArray:
    """What ranks rows of two classes, float64[rows]: the score, or the lead of the second class."""
    return margins[:, 0] if margins.shape[1] == 1 else np.asarray(margins[:, 1] - margins[:, 0])


def _spread(rows: FloatArray, most: int) -> FloatArray:
    """The rows, or so many of them, evenly spread."""
    return rows if len(rows) <= most else rows[np.linspace(0, len(rows) - 1, most).astype(np.int64)]


def _flips(model: LoadedModel, rows: FloatArray, ways: FloatArray, varied: list[int]) -> BoolArray:
    """Which rows get another class with other values of the varied features, those that training rows have; bool[rows]."""

    def classes(these: FloatArray) -> Any:
        return model.ensemble.predicted_classes(np.asarray(model.ensemble.margins_emulated(these), dtype=np.float64))

    own, flips = classes(rows), np.zeros(len(rows), dtype=np.bool_)
    for way in ways:
        moved = rows.copy()
        moved[:, varied] = way
        flips |= classes(moved) != own
    return flips
