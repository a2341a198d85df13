"""The pages to sign: three words for every feature, with figures that the library's own predictions give, too."""

from __future__ import annotations

import itertools
import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import treesens as ts
from tests.extensions.studies.whole_numbers import xgboost_of_whole_numbers
from treesens.extensions.measure.share_words import percent
from treesens.extensions.studies.report.fact_words import rarity

pytest.importorskip("jinja2")
GAPS = (0.05, 0.15, 0.3, 0.45)


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> tuple[Any, pd.DataFrame, str]:
    """A model, its rows and the text of the report about them."""
    folder: Path = tmp_path_factory.mktemp("front")
    model, frame = xgboost_of_whole_numbers()
    named = ts.load(model, protected="f2", classes={0: "granted", 1: "refused"}, favourable="granted")
    ts.audit(named, frame, gap=list(GAPS), measure="rows", shape=True).report(folder / "r.html", date="2026-01-01")
    return model, frame, (folder / "r.html").read_text()


def front_of(page: str) -> str:
    return page[page.index("<h2>Results") : page.index("<h2>Limits")]


def test_rows_are_those_that_the_library_predicts(made: Any) -> None:
    model, frame, page = made
    table = front_of(page)
    checked = 0
    for name in frame.columns:
        chances = np.stack([model.predict_proba(frame.assign(**{name: float(v)}))[:, 1] for v in range(6)])
        line = re.search(rf'<th scope="row" class="name">{name}</th>(.*?)</tr>', table)
        assert line is not None
        cells = re.findall(r'<td class="finding (\w+)" data-label="gap [\d.]+"><b>(.*?)</b>(.*?)</td>', line[1])
        for gap, (kind, word, detail) in zip(GAPS, cells, strict=True):
            flips = int(((chances.max(0) >= 0.5 + gap) & (chances.min(0) <= 0.5 - gap)).sum())
            if flips:
                assert (kind, word) == ("rows", "on rows")
                assert f"{flips} of 240 ({percent(flips / 240)})" in detail.replace("\u00a0", " ")
            else:
                assert word in {"on inputs only", "none"}
            checked += 1
    assert checked == 12


def test_swings_and_totals_are_those_of_the_library(made: Any) -> None:
    """With the table above, 30 figures of the page."""
    model, frame, page = made
    grid = pd.DataFrame(list(itertools.product(range(6), repeat=3)), columns=frame.columns, dtype=float)
    score = model.predict(grid, output_margin=True)
    chances = model.predict_proba(grid)[:, 1]
    swings: dict[str, float] = {}
    least = dict.fromkeys(GAPS, 0)
    for name in frame.columns:
        others = [grid[other] for other in frame.columns if other != name]
        groups = pd.Series(score).groupby(others)
        swings[name] = float((groups.max() - groups.min()).max())
        swing = r'.*?<td data-label="largest swing">([\d.]+) \(P ([\d.]+) to ([\d.]+)\)</td></tr>'
        shown = re.search(f'<th scope="row" class="name">{name}</th>{swing}', front_of(page))
        assert shown is not None
        assert float(shown[1]) == pytest.approx(swings[name], abs=1e-3)
        logits = [np.log(p / (1 - p)) for p in (float(shown[2]), float(shown[3]))]
        assert logits[1] - logits[0] == pytest.approx(swings[name], rel=0.02)
        ends = pd.Series(chances).groupby(others)
        for gap in GAPS:
            least[gap] += not ((ends.max() >= 0.5 + gap) & (ends.min() <= 0.5 - gap)).any()
    widest = max(swings, key=lambda name: swings[name])
    assert f"{widest} has the largest swing of the raw score found: {swings[widest]:.4g}. It is the largest" in page
    for gap in GAPS:
        flips = {}
        for name in frame.columns:
            row = np.stack([model.predict_proba(frame.assign(**{name: float(v)}))[:, 1] for v in range(6)])
            flips[name] = int(((row.max(0) >= 0.5 + gap) & (row.min(0) <= 0.5 - gap)).sum())
        some = sum(map(bool, flips.values()))
        most = max(flips, key=lambda name: flips[name])
        verb = "flips" if some == 1 else "flip"
        assert f"At gap {gap}, {some} of 3 audited features (or sets) {verb} rows of the data; {most} flips" in page
        assert f"flips most: {flips[most]} of 240 rows {'flips' if flips[most] == 1 else 'flip'}." in page
        if least[gap]:
            assert f"Of the others at gap {gap}, {least[gap]} are proved to flip no input of the domain." in page
    assert sum(least.values()) == 2


def test_what_is_protected_comes_first_in_words(made: Any) -> None:
    _, _, page = made
    table = front_of(page)
    assert (
        table.index("protected features")
        < table.index(">f2<")
        < table.index("all other features")
        < table.index(">f0<")
    )
    assert re.search(r"f2 \d → \d: P\(granted\) 0\.\d+ \((granted|refused)\) → 0\.\d+ \((granted|refused)\)", table)
    question = page[page.index("<h2>The question") : page.index("<h2>Results")]
    assert "P(refused) &gt;= 0.55 for one input" in question
    assert "class 0 is <b>granted</b> (favourable)" in question
    assert re.search(r"rows flip: \d+ of them change from refused to granted, \d+ from granted to refused", page)
    assert "Protected: f2: at gap 0.05" in page


def test_what_is_signed_stands_before_the_annex(made: Any) -> None:
    _, _, page = made
    heads = re.findall(r"<h2[^>]*>(.*?)</h2>", page)
    front = heads[: heads.index("Annex")]
    assert front == ["The question", "Results", "Limits", "What has to be trusted", "Identity", "Sign-off"]


def test_shares_are_told_as_people_say_them() -> None:
    known = [0.0, 4.83e-8, 1.617e-9, 5.005e-5, 3.2e-7, 0.00099, 0.001, 0.5, 1.0]
    assert [percent(share) for share in known] == [
        "0 %", "fewer than 1 in 10 million", "fewer than 1 in 10 million", "1 in 20,000", "1 in 3.1 million", "1 in 1,000",
        "0.1 %", "50 %", "100 %",
    ]  # fmt: skip
    bounds = {"estimate": None, "lower": 0.0, "upper": 0.0}
    assert rarity(bounds) == "0 % of inputs"
    assert rarity({**bounds, "upper": 1 / 19_500}) == "at most 1 in 19,000 of inputs", "a bound is rounded outward"
    assert rarity({**bounds, "lower": 0.123449, "upper": 0.123451}) == "12.34 % to 12.35 % of inputs"
    assert rarity({**bounds, "lower": 1 / 20_500, "upper": 1 / 19_500}) == "1 in 21,000 to 1 in 19,000 of inputs"
    assert rarity({**bounds, "upper": 0.02}) == "at most 2 % of inputs"
    assert rarity({**bounds, "lower": 0.01, "upper": 0.02}) == "1 % to 2 % of inputs"


def test_records_name_what_the_page_was_made_with(made: Any, tmp_path: Path) -> None:
    model, frame, _ = made
    ts.audit(ts.load(model, protected="f2"), frame, gap=0.1).report(tmp_path / "r.html", date="2026-01-01")
    records = json.loads((tmp_path / "r.audit.json").read_text())
    assert records["meaning"]["protected"] == ["f2"]
    assert records["results"][0]["protected"] is True


def test_the_headline_and_the_shapes_are_those_of_the_library(made: Any) -> None:
    model, frame, page = made
    cells = frame.drop_duplicates().iloc[:0].reindex(range(216))
    cells[:] = np.stack(np.unravel_index(np.arange(216), (6, 6, 6)), axis=1)
    raw = np.asarray(model.predict(cells.astype(frame.dtypes), output_margin=True), float).reshape(6, 6, 6)
    chances = np.stack([model.predict_proba(frame.assign(f2=float(v)))[:, 1] for v in range(6)])
    flips = int(((chances.max(0) >= 0.55) & (chances.min(0) <= 0.45)).sum())
    headline = page[page.index("<h1") : page.index("<h2>The question")]
    found = f"1 of 1 protected feature can change a decision: f2 ({flips} of 240 rows flip)."
    assert f'<p class="headline">At gap 0.05, {found}</p>' in headline
    shapes = page[page.index("<h2>Shape") :].partition("</ul>")[0]
    for axis, name in enumerate(("f0", "f1", "f2")):
        apart = [np.take(raw, high, axis) - np.take(raw, low, axis) for low in range(6) for high in range(low + 1, 6)]
        rise, fall = max(0.0, float(np.max(apart))), max(0.0, float(-np.min(apart)))
        word = "neither" if rise and fall else "increasing" if rise else "decreasing"
        assert f"<li>{name}: {word}; largest fall {fall:.4g}; largest rise {rise:.4g}</li>" in shapes


def test_a_band_of_other_features_only_if_there_are_any(tmp_path: Path) -> None:
    model, frame = xgboost_of_whole_numbers()
    named = ts.load(model, protected="f2")
    for vary, bands in ((["f2"], 0), (["f1", "f2"], 1)):
        ts.audit(named, data=frame, vary=vary, gap=0.05).report(tmp_path / "r.html")
        assert front_of((tmp_path / "r.html").read_text()).count("all other features") == bands
