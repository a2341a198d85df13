"""`treesens robust`: distances against every combination of values by the library, the curve, and what is refused."""

from __future__ import annotations

import csv
import itertools
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.commands.conftest import Ran
from tests.solve.test_radius import training_set, xgboost_model

Treesens = Callable[..., Ran]
DOMAIN = ("--range", "0", "10")
"""One width for all features."""


def made(folder: Path, seed: int = 1, rows: int = 8) -> tuple[Path, Path, Any, dict[str, list[float]], np.ndarray]:
    """A model file and a table whose label is the model's own class but for the last row."""
    booster, classes, cuts = xgboost_model(seed)
    model, table = folder / "model.json", folder / "rows.csv"
    booster.save_model(model)
    x = training_set(50 + seed, rows)[0]
    own = classes(x)
    own[-1] = 1 - own[-1]
    with table.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["f0", "f1", "f2", "label"])
        writer.writerows([*map(repr, map(float, row)), label] for row, label in zip(x, own.tolist(), strict=True))
    return model, table, classes, cuts, x


def test_distances_are_those_of_trying_all_values(tmp_path: Path, treesens: Treesens) -> None:
    model, table, classes, cuts, x = made(tmp_path)
    out = tmp_path / "near.csv"
    result = treesens(
        "robust", str(model), "--data", str(table), "--label", "label", *DOMAIN, "--json", "--out", str(out)
    )
    assert result.code == 0, result.err
    facts = result.record
    assert [record["row"] for record in facts["rows"]] == list(range(len(x)))
    found = 0
    for record, row in zip(facts["rows"], x, strict=True):
        own = int(classes(row[None])[0])
        assert record["class"] == str(own)
        least = nearest(classes, cuts, row, own)
        if least is None:
            assert record["verdict"] == "none"
            continue
        found += 1
        assert record["distance"] == record["bound"] == pytest.approx(least, rel=1e-9)
    assert found >= 4
    assert [record["correct"] for record in facts["rows"]] == [True] * (len(x) - 1) + [False]
    for point in facts["certified"]:
        robust = [r for r in facts["rows"] if r["correct"] and (r["bound"] is None or r["bound"] > point["radius"])]
        assert point["part"] == pytest.approx(len(robust) / len(x))
    written = list(csv.DictReader(out.open()))
    assert len(written) == sum(record["point"] is not None for record in facts["rows"])
    for line in written:
        values = np.array([[float(line[name]) for name in ("f0", "f1", "f2")]], np.float32)
        assert int(classes(values)[0]) != int(classes(x[int(line["row"])][None])[0])


def nearest(classes: Any, cuts: dict[str, list[float]], row: np.ndarray, own: int) -> float | None:
    """The least distance of all values in [0, 10] that may be nearest."""
    columns = []
    for i, name in enumerate(("f0", "f1", "f2")):
        at = np.array(sorted(set(cuts[name])), np.float32)
        floats = np.concatenate([at, np.nextafter(at, np.float32(-9)), row[i : i + 1]])
        columns.append(np.unique(floats[(floats >= 0) & (floats <= 10)]))
    points = np.array(list(itertools.product(*columns)), np.float32)
    other = points[classes(points) != own]
    if len(other) == 0:
        return None
    return float((np.abs(other.astype(np.float64) - row.astype(np.float64)) / 10).max(axis=1).min())


def test_rows_are_those_that_are_named_and_the_table_is_shown(tmp_path: Path, treesens: Treesens) -> None:
    model, table, *_ = made(tmp_path)
    result = treesens(
        "robust", str(model), "--data", str(table), "--label", "label", "--rows", "3,0-1", "--radius", "0,0.5"
    )
    assert result.code == 0, result.err
    lines = result.out.splitlines()
    assert [line.split()[0] for line in lines[1:4]] == ["3", "0", "1"]
    assert "certified accuracy" in result.out
    assert [line.split()[0] for line in lines[-2:]] == ["0", "0.5"]


@pytest.mark.parametrize("norm", ["l1", "l2", "l0"])
def test_other_norms_are_never_nearer_than_the_largest_allows(tmp_path: Path, norm: str, treesens: Treesens) -> None:
    model, table, *_ = made(tmp_path, rows=3)
    found = {}
    for one in ("linf", norm):
        result = treesens("robust", str(model), "--data", str(table), *DOMAIN, "--norm", one, "--json", "--rows", "0-1")
        found[one] = result.record["rows"]
    for least, record in zip(found["linf"], found[norm], strict=True):
        assert (record["verdict"] == "none") == (least["verdict"] == "none")
        if record["distance"] is not None:
            assert record["distance"] >= least["bound"] - 1e-9
            assert record["bound"] <= record["distance"] + 1e-9


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--rows", "x"], "no row and no range"),
        (["--rows", "5-2"], "no row and no range"),
        (["--rows", "99"], "no row 99"),
        (["--range", "1", "0"], "the range is empty"),
        (["--range", "a", "1"], "`a` is no number"),
        (["--radius", "many"], "`many` is no number"),
    ],
)
def test_what_makes_no_sense_is_refused(tmp_path: Path, arguments: list[str], words: str, treesens: Treesens) -> None:
    model, table, *_ = made(tmp_path, rows=3)
    result = treesens("robust", str(model), "--data", str(table), "--label", "label", *arguments)
    assert result.code == 1
    assert words in result.err
