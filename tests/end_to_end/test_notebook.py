"""What a notebook shows and completes: public names, short representations, HTML with scores and what differs."""

from __future__ import annotations

import inspect
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import treesens as ts
from tests.corpus import boosted
from tests.extensions.studies.grids import Trained, several_classes, two_classes
from treesens.errors import UsageError


@pytest.fixture(scope="module")
def trained() -> Trained:
    return two_classes("xgboost")


def test_the_package_offers_its_public_names_alone() -> None:
    assert set(dir(ts)) == set(ts.__all__)
    for name in ts.__all__:
        assert getattr(ts, name) is not None
    alone = "import treesens as ts; print(ts.errors.UsageError.__name__, 'numpy' in __import__('sys').modules)"
    done = subprocess.run([sys.executable, "-c", alone], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["UsageError", "False"]


@pytest.mark.parametrize("function", [ts.check, ts.check_text, ts.sensitivity, ts.audit, ts.gap])
def test_options_are_named_and_typed(function: Any) -> None:
    parameters = inspect.signature(function).parameters
    assert {"time_limit", "seed", "replay"} <= set(parameters)
    for name, parameter in parameters.items():
        if parameter.kind is inspect.Parameter.VAR_KEYWORD:
            assert parameter.annotation == "Never", name
        elif name not in {"model", "data", "models"}:
            assert parameter.annotation not in {inspect.Parameter.empty, "Any"}, name


def test_answers_show_scores_and_what_differs(trained: Trained) -> None:
    answer = ts.sensitivity(trained.estimator, vary=["p"], gap=0.05, data=trained.frame, near="distance")
    shown = answer._repr_html_()
    assert answer.points is not None
    assert shown.index('<th scope="row">p</th>') < shown.index('<th scope="row">q</th>')
    assert "→ prob" in shown
    assert "nearest row" in shown
    assert "minimize distance" in shown
    text = 'model m from "m"\ndata d from "d"\ndomain from d\nquery up: find a such that prob(a) > 0.5\n'
    text += (
        "query never: find a such that prob(a) >= 0.999999\nquery many: count rows of d as a such that prob(a) > 0.5\n"
    )
    answers = ts.check_text(text, models={"m": trained.estimator}, data={"d": trained.frame})
    assert repr(answers) == "<3 answers: up: found, never: none, many: found>"
    assert answers._repr_html_().count("<tr>") == 4
    count = int((trained.scores[..., 0][trained.at_rows] > 0.5).sum())
    assert f"{count} of 90 rows" in answers["many"]._repr_html_()


def test_audits_and_gaps_show_their_table(trained: Trained, tmp_path: Path) -> None:
    audit = ts.audit(trained.estimator, trained.frame, threshold=0.3, gap=np.array([0.0, 0.1]), vary=["p", ["q", "r"]])
    assert repr(audit).startswith("<audit of 4 questions: ")
    assert audit._repr_html_().count("<tr>") == 5
    assert list(audit.frame()["varied"]) == ["p", "p", "q, r", "q, r"]
    assert audit.report(tmp_path / "r.html", date="2026-01-01").read_text().count("a data frame")
    assert (tmp_path / "r.audit.json").is_file()
    gap = ts.gap(trained.estimator, trained.frame, vary=["p"], threshold=0.3)
    chance = trained.scores[..., 0]
    scores = np.log(chance / (1 - chance)) - np.log(0.3 / 0.7)
    best = np.minimum(scores.max(axis=0), -scores.min(axis=0)).max()
    assert gap["largest_gap"][0] == pytest.approx(float(best), rel=0.03)
    assert "largest_gap" in gap._repr_html_()
    with pytest.raises(UsageError, match="is a text"):
        ts.audit(trained.estimator, trained.frame, gap="0.1")  # type: ignore[arg-type]
    with pytest.raises(UsageError, match="`time_limit` is -1"):
        ts.gap(trained.estimator, time_limit=-1)


def test_models_are_short(trained: Trained) -> None:
    loaded = ts.load(several_classes("forest").estimator)
    assert len(repr(loaded)) < 120
    assert "classes low, mid, top" in loaded._repr_html_()
    assert ts.info(trained.estimator)["trees"] == 6


def test_names_from_files_are_no_markup(trained: Trained) -> None:
    names = ["<script>alert(1)</script>", "q", "r\u202e"]
    booster = boosted(trained.frame.to_numpy(), trained.frame["p"] > 2, 3, 6, names=["a", "b", "c"])
    booster.feature_names = [name.replace("<", "(") for name in names]
    model = ts.load(booster)
    assert "\u202e" not in model._repr_html_()
    from treesens.extensions.notebook import columns_html

    assert "<script>" not in columns_html({names[0]: [names[0]]})
