"""What stands beside a model: read, checked against it, and told with its place if it is wrong."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import treesens as ts
from tests.extensions.studies.whole_numbers import xgboost_of_whole_numbers
from treesens.errors import UsageError
from treesens.frontends.meaning import Meaning
from treesens.frontends.registry import load


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    model, _ = xgboost_of_whole_numbers()
    model.save_model(tmp_path / "m.json")
    return tmp_path


GOOD = 'protected = ["f1"]\nclasses = {0 = "granted", 1 = "refused"}\nfavourable = "granted"\n'


def test_the_file_of_the_model_goes_before_that_of_the_folder(folder: Path) -> None:
    assert not load(folder / "m.json").meaning
    (folder / "treesens.toml").write_text(GOOD)
    known = load(folder / "m.json").meaning
    assert (known.protected, dict(known.classes), known.favourable) == (("f1",), {"0": "granted", "1": "refused"}, "0")
    assert known.place == str(folder / "treesens.toml")
    (folder / "m.treesens.toml").write_text('protected = "f2"')
    assert load(folder / "m.json").meaning.protected == ("f2",)


def test_python_says_the_same(folder: Path) -> None:
    (folder / "treesens.toml").write_text(GOOD)
    model = ts.load(folder / "m.json", protected="f0")
    assert model.meaning.protected == ("f0",)
    assert model.meaning.favourable == "0"
    assert ts.load(xgboost_of_whole_numbers()[0]).meaning == Meaning()
    with pytest.raises(UsageError, match="no feature `f9`"):
        ts.load(folder / "m.json", protected=["f9"])


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("protectd = []", "unknown entry `protectd`"),
        ('protected = ["f1", "f9"]', "`protected`, name 2: the model has no feature `f9`"),
        ("protected = 3", "`protected` is not a list"),
        ("protected = [1]", "`protected` is not a list"),
        ('protected = ["f1"', "not valid TOML"),
        ('classes = {2 = "x"}', "no class `2`"),
        ('classes = {0 = "x", 1 = "x"}', "not the name of a single class"),
        ('classes = {0 = " "}', "not the name of a single class"),
        ('classes = {0 = "1", 1 = "0"}', "`1` is not the name of a single class"),
        ("classes = [1]", "`classes` is .*, which does not name the classes by their labels"),
        ("favourable = 7", "`favourable` is 7"),
        ("favourable = true", "`favourable` is True"),
        ("x = " + "[" * 3000, "not valid TOML"),
        ("\udcff", "cannot be read"),
    ],
)
def test_what_is_wrong_is_told_with_its_place(folder: Path, text: str, words: str) -> None:
    (folder / "treesens.toml").write_bytes(text.encode("utf-8", "surrogateescape"))
    with pytest.raises(UsageError, match=words) as raised:
        load(folder / "m.json")
    assert raised.value.place == str(folder / "treesens.toml")


def test_features_that_are_protected_are_no_change(folder: Path) -> None:
    model, frame = xgboost_of_whole_numbers()
    found: Any = ts.why(model, frame, rows=list(range(20)), protected=["f0"], also=["recourse"])
    for record in found.records:
        assert "f0" not in (record["contrast"] or [])
        assert "f0" not in record["recourse"]["changes"]
    (folder / "treesens.toml").write_text('protected = ["f0"]\nclasses = {0 = "granted"}')
    again = ts.why(folder / "m.json", frame, rows=list(range(20)), also=["recourse"]).records
    for one, other in zip(found.records, again, strict=True):
        assert one["contrast"] == other["contrast"]
        assert ("class_name" in other) is (other["class"] == "0")


def test_letters_leave_out_what_is_protected_and_know_what_is_wished_for(folder: Path) -> None:
    model, frame = xgboost_of_whole_numbers()
    (folder / "treesens.toml").write_text(GOOD)
    found: Any = ts.reasons(folder / "m.json", frame)
    assert [one["row"] for one in found.records] == [row for row, c in enumerate(model.predict(frame)) if c == 1]
    named = {reason["feature"] for one in found.records for reason in one["reasons"]}
    assert named <= {"f0", "f2"}
    again: Any = ts.reasons(model, frame, protected=["f1"], favourable="0")
    assert [one["reasons"] for one in found.records] == [one["reasons"] for one in again.records]
