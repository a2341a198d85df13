"""The audit, from the command line and from Python."""

from __future__ import annotations

import json
import threading
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner

import treesens as ts
from tests.data.settings import BENCH, model, needs_bench, table
from treesens.compiler.base.diagnostics import Diagnostics
from treesens.data.tables import Table, align_table, read_table
from treesens.errors import DataError, UsageError
from treesens.extensions.studies.audit import AuditOptions
from treesens.extensions.studies.audit_search import audit
from treesens.extensions.studies.events import gaps_of
from treesens.extensions.studies.questions import questions_of
from treesens.extensions.studies.registry import command_of

pytestmark = needs_bench
DIABETES = str(BENCH / "models/diabetes_unrobust.json"), "--data", str(BENCH / "data/diabetes/train.csv")


def run(*arguments: str) -> tuple[int, str]:
    result = CliRunner().invoke(command_of("audit"), [*DIABETES, "--label", "label", *arguments], standalone_mode=False)
    if result.exception is not None:
        raise result.exception
    return int(result.return_value), result.stdout


def test_records_have_what_the_interface_promises(tmp_path: Path) -> None:
    page = tmp_path / "report.html"
    code, text = run("--vary", "f8", "--vary", "f2,f6", "--margin", "0.5,3", "--json", "--report", str(page), "-t", "2")
    found = json.loads(text)
    assert code == 0
    assert found["data"]["rows"] == 614
    assert [(r["varied"], r["margin"]) for r in found["results"]] == [
        (["f8"], 0.5),
        (["f8"], 3.0),
        (["f2", "f6"], 0.5),
        (["f2", "f6"], 3.0),
    ]
    for record in found["results"]:
        assert record["rows"] == 614
        assert record["max_swing"] <= record["max_swing_bound"]
        assert record["verdict"] in {"found", "none"}
        assert (record["rows_flipped"] > 0) <= (record["verdict"] == "found")
        if record["verdict"] != "found":
            continue
        a, b = record["points"]["a"], record["points"]["b"]
        assert {f for f in a if a[f] != b[f]} <= set(record["varied"])
        assert record["scores"]["a"]["margin"] >= record["margin"]
        assert record["scores"]["b"]["margin"] <= -record["margin"]
        near = record["nearest_row"]
        if record["rows_flipped"]:
            assert near["distance_l2"] == 0
            assert near["index"] in record["flipped_rows"]
            assert all(near["values"][f] == a[f] for f in a if f not in record["varied"])
    html = page.read_text()
    assert "<svg" in html
    assert found["data"]["sha256"] in html
    for outside in ("http://", "https://", "<script", "fair", "compliant"):
        assert outside not in html


def test_rows_that_flip_are_those_that_the_library_flips() -> None:
    found = audit(
        model("diabetes_unrobust"),
        table("diabetes"),
        varied=[["f8"]],
        gaps=gaps_of([], ["0.5"]),
        options=AuditOptions(time_limit=20.0),
    )
    (record,) = found.records
    rows = table("diabetes").matrix([f"f{i}" for i in range(1, 9)])
    rows = np.column_stack([np.zeros(len(rows)), rows])
    tried = np.unique(rows[:, 8])
    cuts = model("diabetes_unrobust").ensemble.grid()[8].cuts
    tried = np.unique(np.concatenate([tried, cuts[(cuts >= tried.min()) & (cuts <= tried.max())]]))
    margins = []
    for value in tried:
        changed = rows.copy()
        changed[:, 8] = value
        margins.append(model("diabetes_unrobust").margins(changed)[:, 0])
    flips = (np.max(margins, axis=0) >= 0.5) & (np.min(margins, axis=0) <= -0.5)
    assert record["rows_flipped"] == flips.sum()
    assert set(record["flipped_rows"]) <= set(np.flatnonzero(flips).tolist())


def test_probability_gaps_and_margins_say_the_same() -> None:
    by_gap = audit(
        model("diabetes_unrobust"),
        table("diabetes"),
        varied=[["f2"]],
        gaps=gaps_of(["0.1"], []),
        options=AuditOptions(time_limit=20.0),
    )
    by_margin = audit(
        model("diabetes_unrobust"),
        table("diabetes"),
        varied=[["f2"]],
        gaps=gaps_of([], [repr(float(np.log(0.6 / 0.4)))]),
        options=AuditOptions(time_limit=20.0),
    )
    assert by_gap.records[0]["rows_flipped"] == by_margin.records[0]["rows_flipped"]


def test_an_interruption_keeps_what_is_there() -> None:
    stop = threading.Event()
    found = audit(
        model("diabetes_unrobust"),
        table("diabetes"),
        gaps=gaps_of([], ["0.5"]),
        options=AuditOptions(time_limit=1.0, jobs=1),
        stop=stop,
        on_record=lambda _: stop.set(),
    )
    assert found.interrupted
    assert 1 <= len(found.records) < 8


def test_a_frame_goes_in_and_a_frame_comes_out() -> None:
    frame = pd.read_csv(BENCH / "data/diabetes/train.csv")
    found = ts.audit(
        model("diabetes_unrobust"), frame, label="label", vary=["f8", ["f2", "f6"]], margin=1.0, time_limit=0.5
    )
    frame = found.frame()
    assert isinstance(frame, pd.DataFrame)
    assert list(frame["varied"]) == ["f8", "f2, f6"]
    assert (frame["max_swing"] <= frame["max_swing_bound"]).all()


def test_bad_requests_have_a_remedy() -> None:
    loaded, rows = model("diabetes_unrobust"), table("diabetes")
    with pytest.raises(UsageError, match="not positive"):
        gaps_of(["-1"], [])
    with pytest.raises(UsageError, match="either"):
        gaps_of(["0.1"], ["1"])
    with pytest.raises(UsageError, match="not a number"):
        gaps_of([], ["one"])
    with pytest.raises(UsageError, match="no feature `f99`"):
        questions_of(loaded, align_table(loaded, rows), [["f99"]], gaps_of([], ["1"]), Diagnostics())
    lacking = Table("small", {k: v for k, v in rows.columns.items() if k != "f3"}, rows.rows, "label")
    with pytest.raises(DataError, match="`f3`"):
        align_table(loaded, lacking)
    with pytest.raises(UsageError, match="more than two classes"):
        questions_of(model("iris_t100_d5"), table("iris"), [["x"]], gaps_of(["0.1"], []), Diagnostics())


def test_numbers_that_no_model_reads_are_refused_with_a_count() -> None:
    loaded, rows = model("diabetes_unrobust"), table("diabetes")
    for value in (np.inf, -np.inf, 1e60):
        column = np.array(rows.columns["f3"])
        column[[4, 9]] = value
        beyond = Table("small", {**rows.columns, "f3": column}, rows.rows, "label")
        with pytest.raises(DataError, match=r"`f3` contains infinite values.* in 2 of 614 rows") as error:
            align_table(loaded, beyond)
        assert "row 4" in (error.value.place or "")
    words = np.array(rows.columns["f3"]).astype(object)
    words[:] = [str(v) for v in words]
    words[[5, 6, 8]] = ["high", "low", "high"]
    texts = Table("small", {**rows.columns, "f3": words}, rows.rows, "label")
    aligned = align_table(loaded, texts)  # a declaration may know the words as categories
    with pytest.raises(DataError, match="`high` in row 5 \\(and text in 2 more rows\\)"):
        aligned.numbers("f3")


def test_features_that_cannot_change_are_warned_of() -> None:
    one = pd.read_csv(BENCH / "data/diabetes/train.csv", nrows=1)
    found = audit(
        model("diabetes_unrobust"),
        read_table(one, label="label"),
        varied=[["f8"], ["f2", "f6"]],
        gaps=gaps_of([], ["1"]),
        options=AuditOptions(time_limit=20.0),
    )
    (warning,) = (text for text in found.warnings if "single value" in text)
    assert "`f8`, `f2` and `f6` have a single value" in warning
    assert {r["verdict"] for r in found.records} == {"none"}
