"""Scorecards as CSV, against points that are looked up by hand."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

import treesens
from tests.frontends.damage import refusals
from treesens.cli import group
from treesens.errors import ModelError, TreesensError
from treesens.extensions.conformance import formats as conformance
from treesens.extensions.formats.scorecard.frontend import ScorecardFrontend
from treesens.frontends.registry import load

OPTBINNING = """,Variable,Bin,Points
0,age,"(-inf, 23.50)",338.0
1,age,"[23.50, 29.50)",305.0
2,age,"[29.50, inf)",43.0
3,age,Special,172.0
4,age,Missing,172.0
0,income,"(-inf, 26.90)",161.0
1,income,"[26.90, inf)",159.5
2,income,Special,172.0
3,income,Missing,172.0
0,job,"<StringArray>
['b']
Length: 1, dtype: str",298.0
1,job,"['a' 'c d']",126.0
2,job,Missing,172.0
"""
"""What `Scorecard.table()` of optbinning 1.0 writes by `to_csv`, shortened."""

OURS = """feature;bin;points
(base);;20.1
age;<= 30;10.2
age;> 30;30.3
code;['1' '7'];-5
code;['3'];0.5
code;other;1
"""


def written(folder: Path, text: str) -> Path:
    path = folder / "card.csv"
    path.write_text(text, encoding="utf-8")
    return path


def test_a_table_of_optbinning_is_its_points(tmp_path: Path) -> None:
    e = load(written(tmp_path, OPTBINNING)).ensemble
    assert [f.name for f in e.features] == ["age", "income", "job"]
    job = list(e.features[2].labels or ())
    for age, income, name, points in (
        (23.49, 26.9, "b", 338 + 159.5 + 298),
        (23.5, 26.8, "a", 305 + 161 + 126),
        (29.5, math.nan, "c d", 43 + 172 + 126),
        (math.nan, 1e30, "b", 172 + 159.5 + 298),
        (-1e300, -5.0, None, 338 + 161 + 172),
    ):
        row = np.array([[age, income, math.nan if name is None else job.index(name)]])
        assert e.margins_emulated(row).tolist() == [[points]]


def test_comparisons_numbers_as_categories_and_a_base(tmp_path: Path) -> None:
    e = load(written(tmp_path, OURS)).ensemble
    assert e.features[1].labels == (1, 7, 3)
    for age, code, points in (
        (30.0, 0, [20.1, 10.2, -5.0]),
        (math.nextafter(30, 31), 2, [20.1, 30.3, 0.5]),
        (7.0, 3, [20.1, 10.2, 1.0]),
    ):
        assert e.margins_emulated(np.array([[age, code]])).tolist() == [[points[0] + points[1] + points[2]]]


@pytest.mark.parametrize("text", [OPTBINNING, OURS])
def test_the_trees_are_the_table_on_every_cut(text: str, tmp_path: Path) -> None:
    conformance.check(load(written(tmp_path, text))).raise_if_wrong()


def test_a_question_about_points(tmp_path: Path) -> None:
    """Of the points of `job` 298 and 126 differ by 172: no other two inputs with the same age and income differ by more."""
    written(tmp_path, OPTBINNING)
    file = tmp_path / "q.sens"
    head = 'model m from "card.csv"\n'
    for least, verdict in ((172, "found"), (172.5, "none")):
        file.write_text(f"{head}query q: find a, b in m such that a = b except job; margin(a) - margin(b) >= {least}\n")
        assert treesens.check(file, time_limit=20)["q"].verdict == verdict


def test_a_feature_without_points_for_missing_values_must_have_one(tmp_path: Path) -> None:
    written(tmp_path, OURS)
    file = tmp_path / "q.sens"
    file.write_text(
        'model m from "card.csv"\nfeature age: real or missing\nquery q: find a in m such that margin(a) >= 1\n'
    )
    with pytest.raises(TreesensError, match="E313"):
        treesens.check(file)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('x,"[1, 2)",5', "are in no bin"),
        ('x,"(-inf, 2)",5\nx,"[1, inf)",5', "lie in two bins"),
        ('x,"(-inf, 2)",5', "from 2 on are in no bin"),
        ('x,"(-inf, inf)",many', "`many` is not a number of points"),
        ("x,somewhere,5", "`somewhere` is not a bin"),
        ("x,\"['a']\",5\nx,\"['a']\",6", "appears twice"),
        ('x,"[\'a\']",5\nx,"< 3",6', "intervals and categories"),
        ('x,"[2, 1)",5', "is empty"),
        ("x,Missing,5", "`x` has no bins"),
        ("x", "the line has 1 cells"),
        ("", "has no bins"),
    ],
)
def test_what_is_refused_names_the_line(text: str, message: str, tmp_path: Path) -> None:
    with pytest.raises(ModelError, match=message) as error:
        load(written(tmp_path, f"feature,bin,points\n{text}\n"))
    assert "card.csv" in str(error.value)
    assert error.value.remedy


def test_other_tables_are_no_scorecards() -> None:
    for head in (b"a,b,c\n1,2,3\n", b"feature,bin\n", b"", b"\xff\xfe\x00", b"bin,bin,feature,points\n", b"x\ry"):
        assert not ScorecardFrontend().recognises_bytes(head)


def test_random_damage_gives_a_typed_error_or_a_valid_model() -> None:
    frontend = ScorecardFrontend()
    assert refusals(OPTBINNING.encode(), lambda data: frontend.load(Path("damaged.csv"), data)) > 10


def test_printed_cuts_are_not_called_exact(tmp_path: Path) -> None:
    """optbinning prints 0.548 as 0.55, and gives 0.549 the points of the bin above 0.548: the table cannot say that."""
    printed = load(written(tmp_path, OPTBINNING))
    assert printed.printed
    assert "splits" in printed.notes[0]
    said = CliRunner().invoke(group, ["info", str(tmp_path / "card.csv")]).output
    assert "as printed" in said
    assert "exactly" not in said
    exact = load(written(tmp_path, OPTBINNING.replace("23.50", "23.548").replace("26.90", "26.9")))
    assert not exact.printed
    assert not any("splits" in note for note in exact.notes)
    assert "exactly" in CliRunner().invoke(group, ["info", str(tmp_path / "card.csv")]).output


def test_whole_cuts_are_no_printed_ones(tmp_path: Path) -> None:
    assert not load(written(tmp_path, OURS)).printed


def test_a_table_that_is_read_twice_is_no_library(tmp_path: Path) -> None:
    """A scorecard has no library: reading the printed table once more says nothing of the scores that optbinning gives."""
    written(tmp_path, OPTBINNING)
    (tmp_path / "q.sens").write_text('model m from "card.csv"\nquery q: find a such that value(a) <= 700\n')
    ran = CliRunner().invoke(group, ["info", str(tmp_path / "card.csv"), "--check"])
    assert "library: none" in ran.output
    assert "equal" not in ran.output
    ran = CliRunner().invoke(group, ["check", str(tmp_path / "q.sens")])
    assert "emulated replay" in ran.output
    check, replay = ["check", str(tmp_path / "q.sens")], ["--replay", "library"]
    for command in (
        [*check, *replay],
        ["range", str(tmp_path / "card.csv"), *replay],
        [*check, "--confirm", "library"],
    ):
        ran = CliRunner().invoke(group, command)
        assert isinstance(ran.exception, TreesensError)
        assert "has no Python library" in ran.exception.message
        assert ran.exception.remedy == "use --replay emulated, and not --confirm library"
