"""`treesens count` and `ts.count` on a model whose every input is predicted by xgboost itself."""

from __future__ import annotations

import itertools
import json
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import treesens as ts
from tests.command import run_command
from tests.corpus import boosted, margins_of

NAMES = ["age", "sex", "hours"]


def run(*arguments: object, code: int = 0) -> subprocess.CompletedProcess[str]:
    done = run_command(Path.cwd(), "count", *map(str, arguments))
    assert done.returncode == code, done.stdout + done.stderr
    return done


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """A folder with model and table, and the share of (age, hours) that sex flips, by the rows and by all values."""
    folder, random = tmp_path_factory.mktemp("count"), np.random.default_rng(5)
    frame = pd.DataFrame({n: random.integers(0, k, 150) for n, k in zip(NAMES, (9, 2, 6), strict=True)}).astype(float)
    label = (frame["age"] + 2 * frame["sex"] + frame["hours"] + random.normal(size=150) > 7).astype(int)
    booster = boosted(frame, label, 6, path=folder / "m.json", base_score=0.5, eta=0.7)
    frame.assign(label=label).to_csv(folder / "d.csv", index=False)
    concerned = {}
    for age, hours in itertools.product(range(9), range(6)):
        rows = pd.DataFrame([[age, sex, hours] for sex in (0, 1)], columns=NAMES).astype(float)
        margins = margins_of(booster, rows)
        concerned[age, hours] = bool(margins.max() >= 0.3 and margins.min() <= -0.3)
    rows = [concerned[int(a), int(h)] for a, h in zip(frame["age"], frame["hours"], strict=True)]
    return folder, np.mean(list(concerned.values())), np.mean(rows), concerned, frame


def asked(folder: Path, *more: object, code: int = 0) -> Any:
    table = ("--data", folder / "d.csv", "--label", "label")
    done = run(folder / "m.json", *table, "-v", "sex", "--margin", "0.3", "--json", *more, code=code)
    return json.loads(done.stdout)["results"][0]


@pytest.mark.parametrize("measure", ["uniform", "rows"])
def test_shares_are_those_of_the_library(small: Any, measure: str) -> None:
    folder, by_value, by_row, *_ = small
    record = asked(folder, "--measure", measure)
    expected = by_value if measure == "uniform" else by_row
    assert 0 < expected < 1
    assert record["lower"] - 1e-12 <= expected <= record["upper"] + 1e-12
    assert record["closed"]
    assert record["upper"] - record["lower"] <= 0.11 * expected


def test_who_is_concerned_is_true_of_the_rows(small: Any) -> None:
    folder, _, _, concerned, frame = small
    record = asked(folder, "--measure", "rows")
    flips = np.array([concerned[int(a), int(h)] for a, h in zip(frame["age"], frame["hours"], strict=True)])
    assert record["rows_concerned"] == flips.sum()
    assert record["who"]
    for trait in record["who"]:
        relation, value = trait["words"].split("` ")[1].split(" ", 1)
        column = frame[trait["feature"]]
        if relation == "in":
            continue
        holds = {">=": column >= float(value), "<=": column <= float(value), "=": column == float(value)}[relation]
        assert trait["concerned"] == pytest.approx(holds[flips].mean(), abs=1e-4)
        assert trait["all"] == pytest.approx(holds.mean(), abs=1e-4)


def test_every_input_of_a_full_box_is_concerned(small: Any) -> None:
    folder, *_, concerned, _ = small
    record = asked(folder, "--measure", "uniform", "--epsilon", "0.000001")
    assert record["boxes"]
    for box in record["boxes"]:
        inside = [
            flips
            for place, flips in concerned.items()
            if _within(box["where"], dict(zip(NAMES[::2], place, strict=True)))
        ]
        assert inside
        assert all(inside)
        assert box["share"] == pytest.approx(len(inside) / len(concerned))


def _within(where: dict[str, str], values: dict[str, int]) -> bool:
    for name, words in where.items():
        relation, text = words.split(" ", 1)
        low, high = (float(t) for t in text.strip("[]").split(", ")) if relation == "in" else (float(text),) * 2
        value = values[name]
        if not {">=": value >= low, "<=": value <= high, "=": value == low, "in": low <= value <= high}[relation]:
            return False
    return True


def test_words_on_the_terminal(small: Any) -> None:
    folder, *_ = small
    table = ("--data", folder / "d.csv", "--label", "label")
    shown = run(folder / "m.json", *table, "-v", "sex", "--margin", "0.3", "--measure", "rows").stdout
    assert "% of affected inputs have " in shown
    assert "Shares are of the rows of the table" in shown
    assert run(folder / "m.json", *table, "-v", "sex", "--margin", "0.3", "--quiet").stdout == ""


def test_mistakes_end_with_a_remedy(small: Any) -> None:
    folder, *_ = small
    assert "add --data FILE" in run(folder / "m.json", "--margin", "0.3", "--measure", "rows", code=1).stderr
    assert "is unbounded" in run(folder / "m.json", "--margin", "0.3", "-v", "sex", code=1).stderr
    rules = folder / "rules.sens"
    rules.write_text("onehot {sex, age, hours}\nfeature age: integer in [0, 1]\nfeature hours: integer in [0, 1]\n")
    varied = ("-v", "sex,age", "--margin", "0.3", "--domain", rules)
    assert "vary all of `sex`, `age`, `hours`" in run(folder / "m.json", *varied, code=1).stderr
    assert "cells" in run(folder / "m.json", "--margin", "0.3", "-v", "sex", "--measure", "cells", "--json").stdout


def test_python_says_the_same(small: Any) -> None:
    folder, *_, frame = small
    record = asked(folder, "--measure", "uniform")
    found = ts.count(folder / "m.json", frame, vary=["sex"], margin=0.3)
    assert (found["lower"], found["upper"]) == ([record["lower"]], [record["upper"]])
    assert list(found.frame().columns) == ["varied", "margin", "lower", "upper", "estimate", "closed"]
    assert repr(found) == "<shares of 1 questions: 1 known precisely enough>"
    with pytest.raises(ts.errors.UsageError, match="one of: uniform, cells"):
        ts.count(folder / "m.json", frame, vary=["sex"], margin=0.3, measure="chowliu")


@pytest.fixture(scope="module")
def hard(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model about which nothing is proved in a moment."""
    folder, random = tmp_path_factory.mktemp("hard"), np.random.default_rng(1)
    rows = random.random((400, 12))
    label = (np.sin(7 * rows).sum(axis=1) + random.normal(size=400) > 3).astype(int)
    boosted(rows, label, 150, 6, path=folder / "m.json", base_score=0.5, eta=0.3)
    pd.DataFrame(rows, columns=[f"f{i}" for i in range(12)]).to_csv(folder / "d.csv", index=False)
    return folder


def test_a_limit_leaves_a_proved_interval_and_exit_code_5(hard: Path) -> None:
    precise = ("--epsilon", "0.000001", "-t", "1", "--json")
    done = run(hard / "m.json", "--data", hard / "d.csv", "-v", "f0", "--margin", "0.5", *precise, code=5)
    record = json.loads(done.stdout)["results"][0]
    assert 0 <= record["lower"] < record["upper"] <= 1
    assert not record["closed"]
    assert record["reason"] == "time"


def test_an_interruption_keeps_what_is_known(hard: Path) -> None:
    line = ["-m", "treesens", "count", hard / "m.json", "--data", hard / "d.csv", "-v", "f0", "--margin", "0.5"]
    line += ["--epsilon", "0.000001", "-t", "300", "--json"]
    process = subprocess.Popen(
        [sys.executable, *map(str, line)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    time.sleep(8)
    process.send_signal(signal.SIGINT)
    stdout, _ = process.communicate(timeout=300)
    assert process.returncode == 130
    found = json.loads(stdout)
    assert found["interrupted"]
    assert 0 <= found["results"][0]["lower"] < found["results"][0]["upper"] <= 1


def test_the_audit_has_shares_and_the_same_bytes_again(small: Any) -> None:
    folder, by_value, by_row, *_ = small
    pages = []
    page = folder / "audit.html"
    for measure in ("uniform", "uniform", "rows"):
        line = ["audit", "m.json", "--data", "d.csv", "--label", "label", "-v", "sex", "--margin", "0.3,3", "-j", "1"]
        line += ["--measure", measure, "--report", str(page), "--date", "2026-01-01", "-t", "20"]
        done = run_command(folder, *line)
        assert done.returncode == 0, done.stdout + done.stderr
        assert "share of inputs" in done.stdout
        text = page.read_text()
        assert '<th scope="col">share of inputs</th>' in text
        assert "sex flips the largest share of inputs: " in text
        assert "Shares of inputs as a picture" in text
        assert "% of affected inputs have " in text
        pages.append(text)
        first, second = (
            record["share"] for record in json.loads(page.with_suffix(".audit.json").read_text())["results"]
        )
        expected = by_row if measure == "rows" else by_value
        low, high = first["lower"], first["upper"]
        assert low - 1e-12 <= expected <= high + 1e-12
        assert (second["lower"], second["upper"]) == (0.0, 0.0)  # nothing is so far apart
    assert pages[0] == pages[1]


def test_an_audit_says_at_once_what_it_cannot_count(small: Any) -> None:
    folder, *_ = small
    rules = folder / "audit_rules.sens"
    rules.write_text("onehot {sex, age, hours}\nfeature age: integer in [0, 1]\nfeature hours: integer in [0, 1]\n")
    ends = folder / "ends.sens"
    ends.write_text("feature age: real in [0, inf)\n")
    for domain, message in ((rules, "`onehot`"), (ends, "is unbounded")):
        line = ["audit", folder / "m.json", "--data", folder / "d.csv", "--label", "label", "-v", "sex,age"]
        line += ["--measure", "uniform", "--domain", domain]
        done = run_command(folder, *map(str, line))
        assert done.returncode == 1
        assert message in done.stderr
        assert "Traceback" not in done.stderr
