"""Every study states its assumptions, at every door, and leaves one out once it is given."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import treesens as ts
from tests.command import run_command
from treesens.builtin import STUDIES
from treesens.extensions.studies.registry import CALLS, study_of

DOMAIN = "".join(f"feature {name}: real in [0, 50]\n" for name in ("f0", "f1", "f2"))
ASKED: dict[str, dict[str, Any]] = {
    "audit": {"vary": "f0"},
    "gap": {"vary": "f0"},
    "count": {"vary": "f0"},
    "sets": {"gap": 0.2},
    "range": {},
    "shape": {"features": "f0"},
    "groups": {"by": "f0", "favourable": "1"},
    "reasons": {"rows": "0", "favourable": "1"},
    "robust": {"rows": "0"},
    "why": {"rows": "0"},
    "learn": {"what": "rules"},
    "diff": {},
    "repair": {"vary": "f0", "gap": 0.3, "method": "average", "label": "y"},
}
"""The required options of every study."""
SAID = {
    "label": ("label", "y"),
    "domain": ("domain", "wide.sens"),
    "missing": ("domain", "wide.sens"),
    "whole numbers": ("domain", "wide.sens"),
    "threshold": ("threshold", "0.4"),
    "class": ("classes", "1"),
    "gap": ("gap", "0.1"),
    "unit": ("threshold", "0.4"),
    "measure": ("measure", {"count": "uniform", "groups": "rows"}),
    "norm": ("norm", "linf"),
}
"""How each choice is made: by an option and a value, which may be the assumed one."""
TABLE = {"label", "domain", "missing"}
WANTED = {
    "audit": {*TABLE, "whole numbers", "threshold", "class", "gap"},
    "gap": {*TABLE, "whole numbers", "threshold", "class", "unit"},
    "count": {*TABLE, "whole numbers", "threshold", "class", "gap", "measure"},
    "sets": {*TABLE, "whole numbers", "threshold", "class"},
    "range": {*TABLE, "whole numbers", "class"},
    "shape": {*TABLE, "whole numbers", "class"},
    "groups": {*TABLE, "whole numbers", "threshold", "measure"},
    "reasons": {*TABLE, "whole numbers", "threshold"},
    "robust": {*TABLE, "whole numbers", "norm"},
    "why": {*TABLE, "whole numbers"},
    "learn": {"label"},
    "diff": {*TABLE, "whole numbers"},
    "repair": {"domain", "missing", "threshold", "class"},
}
"""The defaults that each study assumes for a classifier of two classes and a table of whole numbers."""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model of XGBoost, its rows with labels (a column of many whole numbers among them), and a domain in a file."""
    xgboost = pytest.importorskip("xgboost")
    place = tmp_path_factory.mktemp("assumed")
    rng = np.random.default_rng(3)
    rows = pd.DataFrame(rng.integers(0, 40, (120, 3)).astype(float), columns=["f0", "f1", "f2"])
    labels = (rows["f0"] + rows["f1"] * rows["f2"] / 30 > 35).astype(int)
    xgboost.XGBClassifier(n_estimators=5, max_depth=2, random_state=0).fit(rows, labels).save_model(place / "m.json")
    rows.assign(y=labels).to_csv(place / "d.csv", index=False)
    (place / "wide.sens").write_text(DOMAIN)
    return place


def words_of(name: str, options: dict[str, Any]) -> list[str]:
    """The command of a study."""
    options = dict(options)
    first = [options.pop("what")] if "what" in options else []
    models = ["m.json"] * len(study_of(name).models)
    flags = {"rows": "--row" if name == "why" else "--rows"}
    more = [part for key, value in options.items() for part in (flags.get(key, f"--{key}"), str(value))]
    return [name, *first, *models, *(["--data", "d.csv"] if models else ["d.csv"]), *more]


def asked_with(name: str, option: str, value: Any) -> dict[str, Any]:
    return {**ASKED[name], option: value[name] if isinstance(value, dict) else value}


def documents(folder: Path, name: str, options: dict[str, Any]) -> dict[str, str]:
    """The assumptions in the JSON of a study; its terminal output states the same ones, a line for each."""
    done = run_command(folder, *words_of(name, options), "--json")
    found = {one["what"]: one["value"] for one in json.loads(done.stdout)["assumed"]}
    lines = [line.removeprefix("assumed: ") for line in done.stderr.splitlines() if line.startswith("assumed: ")]
    assert len(lines) == len(found)
    assert all(line.startswith(value) for line, value in zip(lines, found.values(), strict=True)), lines
    return found


def test_every_study_is_here() -> None:
    assert set(ASKED) == set(WANTED) == set(STUDIES.names())


@pytest.mark.parametrize("name", STUDIES.names())
def test_what_nobody_said_is_stated_by_the_command(folder: Path, name: str) -> None:
    found = documents(folder, name, ASKED[name])
    assert set(found) == WANTED[name]
    for what in WANTED[name]:
        option, value = SAID[what]
        option = "range" if option == "domain" and name in {"robust", "why"} else option
        if option == "range" or (option == "domain" and name == "diff"):
            continue
        assert what not in documents(folder, name, asked_with(name, option, value)), (what, option)


@pytest.mark.parametrize("name", [n for n in STUDIES.names() if study_of(n).call and n != "learn"])
def test_what_nobody_said_is_stated_by_the_call(folder: Path, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(folder)
    call = getattr(ts, {study: call for call, study in CALLS.items()}.get(name, name))
    options = {key: [int(value)] if key == "rows" else value for key, value in ASKED[name].items()}
    models = ["m.json"] * len(study_of(name).models)
    notes = "\n".join(call(*models, "d.csv", **options).notes)
    for value in documents(folder, name, ASKED[name]).values():
        assert f"assumed: {value}" in notes
    assert "--" not in notes
    assert notes.count("assumed: ") == len(WANTED[name])


def test_a_range_is_the_domain_of_rows(folder: Path) -> None:
    for name in ("robust", "why"):
        done = run_command(folder, *words_of(name, ASKED[name]), "--range", "0", "50", "--json")
        assert {one["what"] for one in json.loads(done.stdout)["assumed"]} == WANTED[name] - {
            "domain",
            "missing",
            "whole numbers",
        }


def test_missing_values_are_those_of_the_table(folder: Path) -> None:
    rows = pd.read_csv(folder / "d.csv")
    rows.loc[3, "f1"] = np.nan
    notes = ts.gap(folder / "m.json", rows, vary="f0", label="y").notes
    assert any("values may be missing in `f1` alone" in note for note in notes)
    assert any("no label is stated: `y` is left out" in n for n in ts.gap(folder / "m.json", rows, vary="f0").notes)
    empty = ts.gap(folder / "m.json", rows.assign(f0=np.nan), vary="f0", label="y").notes
    assert any("table's columns, and `f0`, without values there, may have all values" in note for note in empty)
    alone = ts.gap(folder / "m.json", vary="f0").notes
    assert any("all values that the model can hold are possible" in note for note in alone)


def test_the_page_says_it_in_plain_words(folder: Path) -> None:
    pytest.importorskip("jinja2")
    page = folder / "page.html"
    done = run_command(folder, *words_of("audit", ASKED["audit"]), "--report", str(page))
    assert done.returncode == 0, done.stderr
    text = page.read_text("utf-8")
    assert "Assumed, since nothing says otherwise: whole numbers for f0, f1, f2." in text
    again = folder / "again.html"
    ts.audit(folder / "m.json", folder / "d.csv", vary="f0").report(again)
    for written in (text, again.read_text("utf-8")):
        assert "Assumed, since nothing says otherwise: label: y (no input of the model, and its" in written
        assert "E403" not in written.partition("<h2>Exclusions")[2].partition("<h2>")[0]
