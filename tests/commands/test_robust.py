"""`treesens robust`: distances against every combination of values by the library, the curve, and what is refused."""

from __future__ import annotations

import csv
import itertools
import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.commands.conftest import Ran
from tests.corpus import boosted
from tests.extensions.methods.test_least_radius import training_set, xgboost_model

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
        (["--rows", "x"], "neither a row nor a range"),
        (["--rows", "5-2"], "neither a row nor a range"),
        (["--rows", "99"], "no row 99"),
        (["--range", "1", "0"], "the range is empty"),
        (["--range", "a", "1"], "`a` is not a number"),
        (["--radius", "many"], "`many` is not a number"),
    ],
)
def test_what_makes_no_sense_is_refused(tmp_path: Path, arguments: list[str], words: str, treesens: Treesens) -> None:
    model, table, *_ = made(tmp_path, rows=3)
    result = treesens("robust", str(model), "--data", str(table), "--label", "label", *arguments)
    assert result.code == 1
    assert words in result.err


def three_classes(
    folder: Path,
) -> tuple[Path, Path, Callable[[np.ndarray], np.ndarray], dict[str, list[float]], np.ndarray]:
    """A model of three classes with its predictions and cuts, and rows."""
    import xgboost as xgb

    x, y = training_set(7)
    y = y + (x[:, 1] > 2)
    names = ["f0", "f1", "f2"]
    booster = boosted(x, y, 2, 2, names=names, num_class=3, eta=0.7)
    model, table = folder / "model.json", folder / "rows.csv"
    booster.save_model(model)
    lines = [",".join(names), *(",".join(repr(float(v)) for v in row) for row in x[:6])]
    table.write_text("\n".join(lines) + "\n")
    splits = booster.trees_to_dataframe().dropna(subset=["Split"])
    cuts = {n: splits[splits["Feature"] == n]["Split"].tolist() for n in names}

    def classes(rows: np.ndarray) -> np.ndarray:
        return np.asarray(booster.predict(xgb.DMatrix(rows, feature_names=names))).argmax(axis=1)

    return model, table, classes, cuts, x[:6]


def test_targeted_distances_are_those_of_trying_all_values(tmp_path: Path, treesens: Treesens) -> None:
    model, table, classes, cuts, x = three_classes(tmp_path)
    out = tmp_path / "near.csv"
    base = ("robust", str(model), "--data", str(table), *DOMAIN, "--json")
    targeted = treesens(*base, "--targeted", "--out", str(out))
    plain = treesens(*base)
    assert targeted.code == plain.code == 0, targeted.err
    found = 0
    for record, whole, row in zip(targeted.record["rows"], plain.record["rows"], x, strict=True):
        own = int(classes(row[None])[0])
        assert {one["target"] for one in record["targets"]} == {str(c) for c in range(3) if c != own}
        for one in record["targets"]:
            wanted = int(one["target"])
            least = nearest(lambda points, c=wanted: np.where(classes(points) == c, 1, 0), cuts, row, 0)
            if least is None:
                assert one["verdict"] == "none"
                continue
            found += 1
            assert one["distance"] == one["bound"] == pytest.approx(least, rel=1e-9)
        assert "targets" not in whole
        for key in ("verdict", "distance", "bound", "closed"):
            assert record[key] == whole[key]
    assert found >= 6
    for line in csv.DictReader(out.open()):
        values = np.array([[float(line[name]) for name in ("f0", "f1", "f2")]], np.float32)
        assert int(classes(values)[0]) == int(line["target"])


def test_a_journal_answers_rows_that_were_asked_before(tmp_path: Path, treesens: Treesens) -> None:
    model, table, *_ = three_classes(tmp_path)
    journal = tmp_path / "robust.sqlite"
    base = ("robust", str(model), "--data", str(table), *DOMAIN, "--json")
    fresh = treesens(*base).record["rows"]
    first = treesens(*base, "--rows", "1-3", "--journal", str(journal)).record["rows"]
    assert answers(journal) == 3
    again = treesens(*base, "--journal", str(journal)).record["rows"]
    assert answers(journal) == len(fresh)
    for one, other in ((first, fresh[1:4]), (again, fresh)):
        assert [{**r, "seconds": 0} for r in one] == [{**r, "seconds": 0} for r in other]
    # Another norm, class or domain is another question, and other rows are another table.
    treesens(*base, "--norm", "l1", "--journal", str(journal))
    assert answers(journal) == 2 * len(fresh)
    table.write_text(table.read_text() + "0.5,0.5,0.5\n")
    treesens(*base, "--rows", "0", "--journal", str(journal))
    assert answers(journal) == 2 * len(fresh) + 1


def answers(journal: Path) -> int:
    with sqlite3.connect(journal) as db:
        return int(db.execute("SELECT COUNT(*) FROM answers").fetchone()[0])
