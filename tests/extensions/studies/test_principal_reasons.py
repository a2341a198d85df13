"""Principal reasons of denials: against all changes of all sets of features on a grid, as the library decides them."""

from __future__ import annotations

import csv
import itertools
import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import treesens as ts
from tests.extensions.studies.grids import NAMES, Trained, regressor, several_classes, two_classes
from treesens.cli import main
from treesens.errors import UsageError

CODES = """
[p]
code = 3
phrase = "Income insufficient for amount of credit requested"
["*"]
code = "9"
phrase = "=Other"
"""


def helps(good: np.ndarray, row: tuple[int, ...], free: frozenset[int]) -> bool:
    """Whether some input that agrees with a row but on some features gets the favourable decision: all are tried."""
    return bool(good[tuple(slice(None) if f in free else row[f] for f in range(3))].any())


def check(record: dict[str, Any], good: np.ndarray, row: tuple[int, ...], usable: frozenset[int], most: int) -> None:
    """What a record says is so on the grid."""
    sets = [frozenset(s) for size in range(1, 4) for s in itertools.combinations(sorted(usable), size)]
    fewest = min((len(s) for s in sets if helps(good, row, s)), default=None)
    names = [one["feature"] for one in record["reasons"]]
    chosen = frozenset(NAMES.index(name) for name in names)
    assert chosen <= usable
    if record["suffice"] == "yes":
        assert 0 < len(chosen) <= most
        assert helps(good, row, chosen)
        assert not any(helps(good, row, chosen - {f}) for f in chosen)
        moved = list(row)
        for one in record["reasons"]:
            assert one["value"] == row[NAMES.index(one["feature"])]
            moved[NAMES.index(one["feature"])] = one["instead"]
        assert good[tuple(moved)]
    else:
        assert record["suffice"] == "no"
        assert fewest is None or fewest > most
        assert (record["needed"] is None) == (fewest is None)
        assert fewest is None or most < record["needed"] <= fewest
    rises = [one["rise"] for one in record["reasons"]]
    assert rises == sorted(rises, reverse=True)


def denied(trained: Trained, good: np.ndarray) -> list[int]:
    return np.flatnonzero(~good[trained.at_rows]).tolist()


@pytest.mark.parametrize("most", [1, 2, 4])
@pytest.mark.parametrize("protected", [(), ("q",), ("p", "r")])
@pytest.mark.parametrize("favourable", [0, 1])
@pytest.mark.parametrize("kind", ["xgboost", "histogram", "forest"])
@pytest.mark.sampled
def test_every_denial_has_the_reasons_that_all_inputs_say(
    kind: str, favourable: int, protected: tuple[str, ...], most: int
) -> None:
    trained = two_classes(kind)
    good = trained.classes == favourable
    found = ts.reasons(
        trained.estimator,
        trained.frame,
        favourable=trained.names[favourable],
        protected=protected,
        most=most,
        time_limit=60,
    )
    assert [r["row"] for r in found.records] == denied(trained, good)
    usable = frozenset(i for i, name in enumerate(NAMES) if name not in protected)
    for record in found.records:
        row = tuple(int(v) for v in trained.frame.iloc[record["row"]])
        check(record, good, row, usable, most)


@pytest.mark.parametrize("most", [1, 2, 4])
@pytest.mark.parametrize("protected", [(), ("q",)])
@pytest.mark.parametrize("kind", ["xgboost", "forest"])
def test_values_that_keep_the_decision_are_those_that_all_inputs_say(
    kind: str, protected: tuple[str, ...], most: int
) -> None:
    trained = two_classes(kind)
    good = trained.classes == 1
    usable = frozenset(i for i, name in enumerate(NAMES) if name not in protected)
    more = {"favourable": trained.names[1], "protected": protected, "most": most, "way": "values", "time_limit": 60}
    for record in ts.reasons(trained.estimator, trained.frame, **more).records:
        row = tuple(int(v) for v in trained.frame.iloc[record["row"]])
        sets = [frozenset(s) for size in range(4) for s in itertools.combinations(sorted(usable), size)]
        fewest = min((len(s) for s in sets if not helps(good, row, frozenset(range(3)) - s)), default=None)
        chosen = frozenset(NAMES.index(one["feature"]) for one in record["reasons"])
        if record["suffice"] == "yes":
            assert len(chosen) == fewest
            assert chosen <= usable
            assert not helps(good, row, frozenset(range(3)) - chosen)
            assert all(one["value"] == row[NAMES.index(one["feature"])] for one in record["reasons"])
        else:
            assert record["suffice"] == "no"
            assert (record["needed"] is None) == (fewest is None)
            assert fewest is None or most < record["needed"] <= fewest


def test_rises_are_those_of_single_features() -> None:
    trained = two_classes("xgboost")
    raw = trained.estimator.predict(trained.grid, output_margin=True).reshape(6, 6, 6)
    for record in ts.reasons(trained.estimator, trained.frame, favourable=1, time_limit=60).records:
        row = tuple(int(v) for v in trained.frame.iloc[record["row"]])
        for one in record["reasons"]:
            f = NAMES.index(one["feature"])
            along = raw[tuple(slice(None) if i == f else row[i] for i in range(3))]
            assert one["rise"] == pytest.approx(float(along.max()) - float(raw[row]), abs=1e-5)


def test_letters_have_phrases_and_codes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    trained = two_classes("xgboost")
    monkeypatch.chdir(tmp_path)
    trained.estimator.save_model("m.json")
    trained.frame.to_csv("d.csv", index=False)
    Path("codes.toml").write_text(CODES)
    words = [
        "reasons",
        "m.json",
        "--data",
        "d.csv",
        "--favourable",
        "1",
        "--codes",
        "codes.toml",
        "--out",
        "letters.csv",
        "--replay",
        "library",
    ]
    with pytest.raises(SystemExit) as ended:
        main([*words, "--json"])
    assert ended.value.code == 0
    document = json.loads(capsys.readouterr().out)
    assert document["denied"] == len(document["results"]) == document["suffice"] + document["do_not_suffice"]
    for record in document["results"]:
        assert "library" in record["replay"]
        for one in record["reasons"]:
            assert (one["code"], one["phrase"][:6]) == (("3", "Income") if one["feature"] == "p" else ("9", "=Other"))
    with Path("letters.csv").open(newline="") as file:
        lines = list(csv.DictReader(file))
    assert {line["phrase"][:7] for line in lines} <= {"Income ", "'=Other"}  # no formula for a spreadsheet
    assert len(lines) == sum(len(record["reasons"]) for record in document["results"])
    with pytest.raises(SystemExit) as ended:
        main([*words, "--rows", "0-20", "--most", "1", "--fail-on", "more"])
    assert ended.value.code in (0, 10)
    assert "denials: at most 1 reasons suffice" in " ".join(capsys.readouterr().out.split())


def test_a_cut_off_decides_instead() -> None:
    trained = two_classes("xgboost")
    good = trained.scores[..., -1] >= 0.8
    found = ts.reasons(trained.estimator, trained.frame, favourable=1, threshold=0.8, time_limit=60)
    assert [r["row"] for r in found.records] == denied(trained, good)
    for record in found.records:
        check(record, good, tuple(int(v) for v in trained.frame.iloc[record["row"]]), frozenset(range(3)), 4)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[p]\nphrase = 'x'\n", r"no phrases for `q`, `r`\n.*add \[\"q\"\] with"),
        ("[x]\nphrase = 'x'\n['*']\nphrase = 'y'\n", "no feature `x`"),
        ("[p]\ncode = 3\n", "`p` has no phrase"),
        ("[p]\nphrase = 'x'\ncod = 3\n", "a field `cod`"),
        ("[p]\nphrase = 'x'\ncode = 1.5\n", "the code of `p`"),
        ("p = 3", "`p` has no phrase"),
        ("[p", "invalid TOML"),
    ],
)
def test_codes_that_make_no_sense_are_refused(tmp_path: Path, text: str, message: str) -> None:
    trained = two_classes("xgboost")
    (tmp_path / "codes.toml").write_text(text)
    with pytest.raises(UsageError, match=message):
        ts.reasons(trained.estimator, trained.frame, favourable=1, codes=tmp_path / "codes.toml")


def test_what_makes_no_sense_has_a_remedy() -> None:
    trained = two_classes("xgboost")
    with pytest.raises(UsageError, match="no feature `z`"):
        ts.reasons(trained.estimator, trained.frame, favourable=1, protected=["z"])
    with pytest.raises(UsageError, match="no row 90"):
        ts.reasons(trained.estimator, trained.frame, favourable=1, rows=[90])
    with pytest.raises(UsageError, match="two-class models"):
        ts.reasons(several_classes("xgboost").estimator, trained.frame, favourable="0")
    with pytest.raises(UsageError, match="decides nothing"):
        ts.reasons(regressor("xgboost").estimator, trained.frame, favourable=1)
    everybody = ts.reasons(trained.estimator, trained.frame, favourable=1, protected=NAMES)
    assert {r["suffice"] for r in everybody.records} == {"no"}
    assert all(r["reasons"] == [] for r in everybody.records)
    assert isinstance(everybody.frame(), pd.DataFrame)


def test_shap_stands_beside() -> None:
    pytest.importorskip("shap")
    trained = two_classes("xgboost")
    records = ts.reasons(trained.estimator, trained.frame, favourable=1, shap=True, rows=range(30)).records
    assert all(set(r["shap"]) <= set(NAMES) for r in records)
