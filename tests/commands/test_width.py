"""Whatever the width of the terminal: tables leave out columns, lines break at blanks, and no word is cut."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from tests.commands.conftest import Ran
from tests.corpus import boosted
from treesens.report.terminal import display_width, wrapped

Run = Callable[..., Ran]
SHORT = ("age", "sex", "hours")
LONG = ("debt_to_income_ratio_of_the_household_over_12_months", "personal status and sex", "残高に対する返済の割合")
QUESTIONS = """model m from "m.json"
data d from "d.csv" label "label"
domain from d
query pair_of_applicants_that_differ_in_nothing_else: sensitive m to `{0}` gap 0.05 near d
query best:
  find a, b such that
    a = b except `{0}`
  maximize margin(a) - margin(b)
query never: sensitive m to `{1}` gap 0.49
query three:
  find a such that
    prob(a) >= 0.5
  top 3
query many: count rows of d as a such that prob(a) >= 0.5
"""
SPEC = 'models = ["m.json"]\ndata = "d.csv"\nlabel = "label"\nfeatures = "all"\nmargins = [0.5, 3.0]\ntime_limit = 5\n'
BENCH = '{"model": "m.json", "feature": 0, "margin": 0.5}\n{"model": "m.json", "feature": 1, "margin": 3}\n'
COMMANDS = (
    "check q.sens -t 5",
    "audit m.json --data d.csv --label label --gap 0.05,0.4 -t 0.5",
    "audit m.json --data d.csv --label label --gap 0.05 -t 0.5 --measure uniform --typical 95%",
    "gap m.json --data d.csv --label label -t 1",
    "compare q.sens best -b native,highs,z3 --pipelines kant;independent -t 5",
    "bench bench.jsonl --models . -b native,highs --pipelines kant;independent -t 5 -o bench.out",
    "sweep spec.toml --jobs 1",
    "robust m.json --data d.csv --label label --rows 0-3 --norm linf --radius 0.1",
    "why m.json --data d.csv --label label --row 0",
    "sets m.json --gap 0.05",
    "count m.json --data d.csv --label label --gap 0.05 -t 1 --measure cells",
    "range m.json -t 1",
    "diff m.json other.json --data d.csv --label label --gap 0.1 --set-limit 0.5 -t 2",
    "info m.json --check",
    "doctor",
)


@pytest.fixture(scope="module", params=[SHORT, LONG], ids=["short names", "long names"])
def folder(tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest) -> Path:
    names = list(request.param)
    folder = tmp_path_factory.mktemp("width")
    rng = np.random.default_rng(5)
    rows = pd.DataFrame({names[0]: rng.random(200), names[1]: rng.integers(0, 2, 200), names[2]: rng.random(200)})
    labels = (rows[names[0]] + 0.6 * rows[names[1]] + 0.2 * rng.random(200) > 0.9).astype(int)
    rows.assign(label=labels).to_csv(folder / "d.csv", index=False)
    for path, trees in (("m.json", 6), ("other.json", 8)):
        boosted(rows, labels, trees, path=folder / path)
    (folder / "q.sens").write_text(QUESTIONS.format(*names))
    (folder / "spec.toml").write_text(SPEC)
    (folder / "bench.jsonl").write_text(BENCH)
    (folder / "names").write_text("\n".join(names))
    return folder


@pytest.mark.parametrize("command", COMMANDS, ids=lambda command: command.partition(" ")[0])
@pytest.mark.sampled
def test_lines_fit_and_words_are_whole(
    folder: Path, treesens: Run, command: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(folder)
    names = (folder / "names").read_text().split("\n")
    shown = {}
    for width in ("80", "60", "10000"):
        monkeypatch.setenv("COLUMNS", width)
        ran = treesens(*command.split(" "))
        assert ran.code in {0, 5}, ran.err
        shown[width] = ran.out
    known = words(shown["10000"])
    for width in (80, 60):
        lines = shown[str(width)].split("\n")
        assert [line for line in lines if display_width(line) > width and len(line.split()) > 1] == []
        assert "…" not in shown[str(width)].replace(", …", "")
        # No piece of a name, and no word that the wide form does not have, but for numbers, which differ from run to run.
        assert words(shown[str(width)]) - known - words("left out at this width: (--json has all) input") == set()
        if names[0] in shown["10000"]:
            assert names[0] in shown[str(width)]
    assert max(map(display_width, shown["80"].split("\n"))) <= 80


def words(text: str) -> set[str]:
    """Words without punctuation and without numbers, whose last digits (times) differ from run to run."""
    found = {re.sub(r"^[^\w`(]+|[,.;:)=]+$", "", word) for word in text.split()}
    return {word for word in found if not re.search(r"\d", word) and word}


def test_wrapping_breaks_at_blanks_alone() -> None:
    text = "  note: a constraint holds by less than the band of a_name_that_is_longer_than_the_line_by_far, and so on"
    lines = wrapped(text, 30, 2)
    assert " ".join(line.strip() for line in lines) == text.strip()
    assert all(len(line) <= 30 or " " not in line.strip() for line in lines)
    assert all(line.startswith("    ") for line in lines[1:])
    assert wrapped(text, None) == [text]
    assert [display_width(text) for text in ("abc", "返済", "e\u0301")] == [3, 4, 1]


@pytest.mark.parametrize(
    "command", [c for c in COMMANDS if not c.startswith(("info", "doctor"))], ids=lambda c: c.partition(" ")[0]
)
@pytest.mark.sampled
def test_a_quiet_command_says_nothing(
    folder: Path, treesens: Run, command: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(folder)
    ran = treesens(*command.split(" "), "--quiet")
    assert ran.code in {0, 5}, ran.err
    assert ran.out == ""
