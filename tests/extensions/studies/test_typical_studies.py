"""Gaps and audits among typical inputs, against all pairs of a small domain."""

from __future__ import annotations

import json
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import xgboost
from click.testing import CliRunner

import treesens as ts
from tests.extensions.measure.test_typical import declared
from treesens.cli import group
from treesens.commands.schema import schema_of
from treesens.compiler.query.evaluate import holds, inputs_of
from treesens.compiler.query.query import AtLeast
from treesens.errors import UsageError
from treesens.extensions.studies.events import typical_level
from treesens.extensions.studies.report import audit_words
from treesens.grammar.parsing.parser import parse

TOPS = {"age": 4, "school": 4, "pay": 4, "coin": 1}
DOMAIN = "".join(f"feature {name}: integer in [0, {top}]\n" for name, top in TOPS.items())
LEVEL = 75


def world(seed: int) -> tuple[Any, pd.DataFrame, np.ndarray, np.ndarray]:
    """A model, its rows, every typical input, and the library's margins of these."""
    rng = np.random.default_rng(seed)
    age = rng.integers(0, 5, 70)
    school = np.minimum(age, rng.integers(0, 5, 70))
    pay = np.clip(school + rng.integers(-1, 2, 70), 0, 4)
    frame = pd.DataFrame({"age": age, "school": school, "pay": pay, "coin": rng.integers(0, 2, 70)})
    y = (frame["pay"] + 2 * frame["coin"] + frame["age"] % 2 + rng.integers(0, 2, 70) > 4).astype(int)
    model = xgboost.XGBClassifier(n_estimators=6, max_depth=3, learning_rate=0.5).fit(frame, y)
    query = (
        declared(model, frame, DOMAIN)
        .bind(parse(f"query q: find a such that a typical of d at {LEVEL} %").queries[0])
        .query
    )
    (row,) = (c for c in query.constraints if isinstance(c, AtLeast))
    inputs = np.array(list(product(*(range(top + 1) for top in TOPS.values()))), float)
    typical = inputs[[holds(row, inputs_of(query, x[None, :])) for x in inputs]]
    margins = model.predict(pd.DataFrame(typical, columns=list(TOPS)), output_margin=True)
    return model, frame, typical, np.asarray(margins, float)


def best(typical: np.ndarray, margins: np.ndarray, feature: int) -> tuple[float | None, float]:
    """The largest gap around 0 and the largest swing of pairs of typical inputs that differ in one feature at most."""
    groups: dict[bytes, list[int]] = {}
    for i, x in enumerate(np.delete(typical, feature, axis=1)):
        groups.setdefault(x.tobytes(), []).append(i)
    found = [margins[mine] for mine in groups.values()]
    gap = max(min(m.max(), -m.min()) for m in found)
    return (float(gap) if gap >= 0 else None), float(max(m.max() - m.min() for m in found))


@pytest.mark.parametrize("seed", range(3))
def test_the_largest_gap_of_typical_inputs(seed: int, tmp_path: Path) -> None:
    model, frame, typical, margins = world(seed)
    domain = tmp_path / "domain.sens"
    domain.write_text(DOMAIN)
    for number, feature in enumerate(TOPS):
        (record,) = ts.gap(model, frame, vary=[feature], domain=domain, typical=LEVEL, close=0.0, time_limit=60).records
        wanted, _ = best(typical, margins, number)
        if wanted is None:
            assert record["verdict"] == "none", record
            continue
        assert record["largest_gap"] == pytest.approx(wanted, abs=1e-5)
        assert record["largest_gap_bound"] == pytest.approx(wanted, abs=1e-5)
        assert record["typical"] == {"percent": 75.0, "way": "chow-liu"}
        points = [list(p.values()) for p in record["points"].values()]
        assert all(any(np.array_equal(p, x) for x in typical) for p in points)


@pytest.mark.parametrize("seed", range(2))
def test_the_audit_says_what_is_left_among_typical_inputs(seed: int, tmp_path: Path) -> None:
    model, frame, typical, margins = world(seed)
    domain = tmp_path / "domain.sens"
    domain.write_text(DOMAIN)
    found = ts.audit(model, frame, margin=[0.5, 1.5], domain=domain, typical=LEVEL, time_limit=20)
    seen = set()
    for record in found.records:
        part = record["typical"]
        wanted, swing = best(typical, margins, list(TOPS).index(record["varied"][0]))
        assert part["verdict"] == ("found" if wanted is not None and wanted >= record["margin"] else "none")
        assert part["max_swing"] == pytest.approx(swing, abs=1e-5)
        assert part["max_swing_bound"] == pytest.approx(swing, abs=1e-5)
        worst = [np.array(list(p.values())) for p in part["worst"]["points"].values()]
        places = [int(np.flatnonzero((typical == p).all(axis=1))[0]) for p in worst]
        assert margins[places[0]] - margins[places[1]] == pytest.approx(swing, abs=1e-5)
        if part["verdict"] == "found":
            points = [list(p.values()) for p in part["points"].values()]
            assert all(any(np.array_equal(p, x) for x in typical) for p in points)
        seen.add((record["verdict"], part["verdict"]))
    assert ("found", "none") in seen or ("found", "found") in seen


def test_the_page_shows_the_typical_pair_and_what_changes(tmp_path: Path) -> None:
    model, frame, _, _ = world(1)
    domain = tmp_path / "domain.sens"
    domain.write_text(DOMAIN)
    found = ts.audit(model, frame, margin=[0.5], domain=domain, typical=LEVEL, time_limit=20)
    page = found.report(tmp_path / "page.html").read_text()
    kept = [r["typical"]["verdict"] for r in found.records if r["verdict"] == "found"]
    assert len(kept) > 1
    assert set(kept) == {"found"}
    assert f"all {len(kept)} findings at margin 0.5 stay." in page
    assert page.count("A pair of typical inputs") == kept.count("found") > 0
    swings = [r["typical"]["max_swing"] for r in found.records]
    assert page.count("whose scores are furthest apart") == sum(swing > 0 for swing in swings) > 0


def test_the_command_line_and_its_record(tmp_path: Path) -> None:
    model, frame, _, _ = world(1)
    model.save_model(tmp_path / "m.json")
    frame.to_csv(tmp_path / "d.csv", index=False)
    given = [str(tmp_path / "m.json"), "--data", str(tmp_path / "d.csv"), "--vary", "pay", "--typical", "75%"]
    told = CliRunner().invoke(group, ["audit", *given, "--margin", "0.5"])
    assert "typical inputs" in told.stdout
    for command in ("audit", "gap"):
        done = CliRunner().invoke(group, [command, *given, "--typical-by", "isolation", "--json"])
        (record,) = json.loads(done.stdout)["results"][:1]
        assert record["typical"]["percent"] == 75
        assert record["typical"]["way"] == "isolation"
        schema = schema_of(command)
        known = schema["properties"]["results"]["items"]["properties"]["typical"]
        assert set(known["required"]) == set(record["typical"])


@pytest.mark.parametrize(
    ("level", "way", "table", "words"),
    [
        ("abc", None, True, "not a percentage"),
        ("0", None, True, "not a share of inputs"),
        ("100%", None, True, "not a share of inputs"),
        ("100/3", None, True, "no finite decimals"),
        ("95%", None, False, "learnt from rows"),
        (None, "isolation", True, "no effect without --typical"),
    ],
)
def test_what_is_no_level(level: str | None, way: str | None, table: bool, words: str) -> None:
    with pytest.raises(UsageError, match=words):
        typical_level(level, way, has_table=table)


@pytest.mark.parametrize(
    ("verdicts", "words"),
    [
        (["found"], "the finding at margin 1 stays."),
        (["found", "found"], "all 2 findings at margin 1 stay."),
        (["found", "none", "none"], "1 of 3 findings at margin 1 stays, 2 have no pair any more (proved)."),
        (["none", "unknown"], "of 2 findings at margin 1: 1 has no pair any more (proved), 1 is undecided."),
        (["found", "found", "unknown", "unknown"], "2 of 4 findings at margin 1 stay, 2 are undecided."),
    ],
)
def test_what_changes_is_said_without_what_there_is_none_of(verdicts: list[str], words: str) -> None:
    records = [
        (f"f{i}", {"verdict": "found", "typical": {"verdict": verdict, "percent": 90.0}})
        for i, verdict in enumerate(verdicts)
    ]
    (line,) = audit_words._typical_lines("margin 1", records)
    assert line == f"If only typical inputs count (90 %), {words}"
