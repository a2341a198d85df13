"""`treesens why`: several reasons of every row, in words, as records and as a table."""

from __future__ import annotations

import csv
from collections.abc import Callable
from pathlib import Path

from tests.commands.conftest import Ran
from tests.commands.test_robust import DOMAIN, made


def test_all_rows_and_all_reasons_are_told(tmp_path: Path, treesens: Callable[..., Ran]) -> None:
    model, table, classes, _, x = made(tmp_path, rows=5)
    out = tmp_path / "why.csv"
    base = ("why", str(model), "--data", str(table), "--label", "label", "--row", "all", "--all", "9", *DOMAIN)
    result = treesens(*base, "--json", "--out", str(out))
    assert result.code == 0, result.err
    records = result.record["rows"]
    assert [record["row"] for record in records] == list(range(len(x)))
    assert [record["class"] for record in records] == [str(int(c)) for c in classes(x)]
    assert all(record["complete"] and record["reasons"][0] == record["sufficient"] for record in records)
    lines = list(csv.DictReader(out.open()))
    told = [(str(r["row"]), "; ".join(one), str(len(one))) for r in records for one in r["reasons"]]
    assert [(line["row"], line["features"], line["size"]) for line in lines] == told
    words = treesens(*base)
    assert words.code == 0
    assert words.out.count("there is no other minimal reason") == len(x)


def test_one_reason_has_a_line_per_row(tmp_path: Path, treesens: Callable[..., Ran]) -> None:
    model, table, *_ = made(tmp_path, rows=3)
    out = tmp_path / "why.csv"
    base = ("why", str(model), "--data", str(table), "--label", "label", *DOMAIN)
    result = treesens(*base, "--row", "0-2", "--json", "--out", str(out))
    assert result.code == 0, result.err
    assert all("reasons" not in record for record in result.record["rows"])
    assert [line["row"] for line in csv.DictReader(out.open())] == ["0", "1", "2"]
    wrong = treesens(*base, "--row", "some")
    assert wrong.code == 1
    assert "neither a row nor a range" in wrong.err


def test_what_stands_beside_a_reason_is_told_in_words_and_drawn(tmp_path: Path, treesens: Callable[..., Ran]) -> None:
    model, table, *_ = made(tmp_path, rows=3)
    picture = tmp_path / "why.svg"
    base = ("why", str(model), "--data", str(table), "--label", "label", "--row", "all", *DOMAIN)
    also = ("--also", "box,radius,recourse")
    records = treesens(*base, *also, "--json").record["rows"]
    words = treesens(*base, *also, "--plot", str(picture))
    assert words.code == 0, words.err
    assert picture.read_text().startswith("<?xml")
    for record in records:
        assert record["box"].keys() == record["sufficient"].keys()
        assert f"lies {record['radius']['distance']:.6g} away by linf" in words.out
        assert f"costs {record['recourse']['distance']:.6g} by l1" in words.out
    assert words.out.count("the class holds as long as") == len(records)
    wrong = treesens(*base, "--also", "anchors")
    assert wrong.code == 1
    assert "`anchors` cannot be shown with a reason" in wrong.err
