"""Rows to train again with: both versions of a row break the promise by the library's predictions, and none is left out."""

from __future__ import annotations

import csv
from pathlib import Path

import numpy as np
import pytest

import treesens as ts
from tests.extensions.repair.models import GRID, NAMES, VALUES, predict, train, write_table
from treesens.errors import UsageError


@pytest.mark.parametrize("kind", ["xgboost", "lightgbm"])
def test_every_row_that_flips_is_there_in_its_two_versions(kind: str, tmp_path: Path) -> None:
    path, x, y = train(kind, tmp_path, 1)
    data = write_table(tmp_path / "d.csv", x, y)
    ts.repair(path, data, vary=["f"], label="y", gap=[0.2, 0.1], method="average", pairs=tmp_path / "p.csv")
    with (tmp_path / "p.csv").open() as file:
        header, *lines = csv.reader(file)
    assert header == [*NAMES, "y"]
    found = np.array(lines, dtype=np.float64).reshape(-1, 2, 5)
    assert (found[:, 0, 1:] == found[:, 1, 1:]).all()
    high, low = predict(path, found[:, 0, :4]), predict(path, found[:, 1, :4])
    assert (high >= 0.6).all()
    assert (low <= 0.4).all()
    # By the whole domain: a row flips if the best and the worst value of the feature are on both sides.
    scores = predict(path, GRID).reshape([len(v) for v in VALUES])
    flips = (scores.max(axis=0) >= 0.6) & (scores.min(axis=0) <= 0.4)
    own = flips[tuple(x[:, 1:].astype(int).T)]
    wanted = np.column_stack([x[own, 1:], y[own]])
    assert sorted(map(tuple, found[:, 0, 1:].tolist())) == sorted(map(tuple, wanted.tolist()))


def test_columns_are_written_as_they_were_read(tmp_path: Path) -> None:
    path, x, y = train("xgboost", tmp_path, 1)
    write_table(tmp_path / "d.csv", x, y)
    text = (tmp_path / "d.csv").read_text().splitlines()
    more = [text[0] + ",who", *(f"{line},person {n}" for n, line in enumerate(text[1:]))]
    (tmp_path / "d.csv").write_text("\n".join(more) + "\n")
    ts.repair(path, tmp_path / "d.csv", vary=["f"], label="y", gap=0.1, method="average", pairs=tmp_path / "p.csv")
    with (tmp_path / "p.csv").open() as file:
        lines = list(csv.DictReader(file))
    assert lines
    assert all(float(line["a"]) == x[int(line["who"].split()[1]), 1] for line in lines)


def test_the_file_is_no_input_and_a_direction_has_none(tmp_path: Path) -> None:
    path, x, y = train("xgboost", tmp_path, 1)
    data = write_table(tmp_path / "d.csv", x, y)
    before = data.read_bytes()
    with pytest.raises(UsageError, match="input of this run"):
        ts.repair(path, data, vary=["f"], label="y", gap=0.1, method="average", pairs=data)
    with pytest.raises(UsageError, match="direction"):
        ts.repair(path, data, increasing=["b"], label="y", method="average", pairs=tmp_path / "p.csv")
    assert data.read_bytes() == before
    assert not (tmp_path / "p.csv").exists()
