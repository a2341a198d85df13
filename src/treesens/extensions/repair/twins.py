"""Training rows that break a promise, as rows to train again with: each in the two versions that are furthest apart.

A row and its versions with other values of the features that vary get the row's own label: a model that is trained on them as
well is told that these features do not decide.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator
from fractions import Fraction
from typing import Any

import numpy as np

from treesens.data.tables import Table
from treesens.extensions.repair.pairs import Climber
from treesens.extensions.repair.proof import Asking, decided_by, questions_for
from treesens.extensions.repair.repair import Repair


def twins_of_rows(repair: Repair, table: Table, size: Fraction) -> str:
    """The pairs among the rows of an aligned and labelled table that break the promise of one size, as CSV with its columns:
    two lines for each row that flips and each set of features, with values of these features that other rows have.
    """
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    columns = list(table.columns)
    writer.writerow(columns)
    promises = [promise for promise in repair.promises(size) if not promise.is_direction]
    for asking in questions_for(repair.model, promises, decided_by(repair.options)):
        varied = set(asking.promise.varied)
        for row, *donors in _broken(repair, asking):
            for donor in donors:
                writer.writerow([_shown(table, name, donor if name in varied else row) for name in columns])
    return text.getvalue()


def _broken(repair: Repair, asking: Asking) -> Iterator[tuple[int, int, int]]:
    """Rows that break a promise, each with the rows whose values give it its highest and its lowest score."""
    rows = repair.train.rows
    climber = Climber(asking, repair.model.ensemble, repair.options.seed)
    found = climber.of_rows(repair.model.ensemble, rows, len(rows))
    values = rows[:, climber.varied]
    for row, high, low in zip(found.rows.tolist(), found.high, found.low, strict=True):
        yield row, *(_first(values, version[climber.varied]) for version in (high, low))


def _first(rows: Any, wanted: Any) -> int:
    """The first row with some values; missing ones are equal."""
    same = (rows == wanted) | (np.isnan(rows) & np.isnan(wanted))
    return int(same.all(axis=1).argmax())


def _shown(table: Table, name: str, row: int) -> Any:
    """A value as a reader of CSV takes it back: nothing for a missing one."""
    value = table.columns[name][row]
    if value is None or (isinstance(value, float) and np.isnan(value)):
        return ""
    return int(value) if isinstance(value, float) and value.is_integer() else value
