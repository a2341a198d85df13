"""The scores that `check` shows on the terminal, against what the libraries predict for the shown input."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from tests.commands.conftest import Ran
from tests.extensions.studies.grids import NAMES, labels, rows_of, several_classes, two_classes

Command = Callable[..., Ran]
DOMAINS = "".join(f"feature {name}: integer in [0, 5]\n" for name in NAMES)


def asked(treesens: Command, folder: Path, model: str, question: str) -> tuple[list[int], dict[str, str]]:
    """The input that is shown, and the score lines below it."""
    (folder / "q.sens").write_text(f'model m from "{model}"\n{DOMAINS}query q:\n  {question}\n')
    done = treesens("check", folder / "q.sens", "--trust-pickle")
    assert done.code == 0, done.err
    lines = dict(re.findall(r"^  (→ .*?|[pqr])  +(\S.*)$", done.out, re.MULTILINE))
    point = [int(lines.pop(name)) for name in NAMES]
    return point, {name.removeprefix("→ "): value for name, value in lines.items()}


def forest(folder: Path, classes: list[str]) -> Any:
    """A forest of some classes, also in a file."""
    import joblib

    ensemble = pytest.importorskip("sklearn.ensemble")
    frame = pd.DataFrame(rows_of().astype(int), columns=NAMES)
    model = ensemble.RandomForestClassifier(6, max_depth=4, random_state=1).fit(frame, labels(rows_of(), classes))
    joblib.dump(model, folder / "m.joblib")
    return model


def test_every_class_of_a_few_has_its_probability(treesens: Command, tmp_path: Path) -> None:
    model = forest(tmp_path, ["low", "mid", "top"])
    point, scores = asked(treesens, tmp_path, "m.joblib", "find a such that prob(a, mid) >= 0.5")
    assert list(scores) == ["class", "prob low", "prob mid", "prob top"]
    chance = model.predict_proba(pd.DataFrame([point], columns=NAMES))[0]
    assert [float(scores[f"prob {name}"]) for name in model.classes_] == pytest.approx(chance.tolist(), rel=1e-5)
    assert scores["class"] == model.classes_[chance.argmax()]


def test_margins_are_shown_if_the_question_is_about_margins(treesens: Command, tmp_path: Path) -> None:
    model = several_classes("xgboost").estimator
    model.save_model(tmp_path / "m.json")
    question = "find a such that margin(a, 2) >= 0.1\n  maximize margin(a, 2) - margin(a, 0)"
    point, scores = asked(treesens, tmp_path, "m.json", question)
    assert list(scores) == ["class", "margin 0", "margin 1", "margin 2"]
    raw = model.predict(np.array([point], float), output_margin=True)[0]
    assert [float(scores[f"margin {i}"]) for i in range(3)] == pytest.approx(raw.tolist(), rel=1e-5)
    _, scores = asked(treesens, tmp_path, "m.json", "find a such that class(a) = 2")
    assert list(scores) == ["class", "prob 0", "prob 1", "prob 2"]


@pytest.mark.parametrize(
    ("question", "named"),
    [
        ("prob(a, c1) >= 0.2 and prob(a, c4) >= 0.1", {"c1", "c4"}),
        ("class(a) != c2", {"c2"}),
        ("class(a) in {c3, c5}", {"c3", "c5"}),
        ("a.p = 0", set()),
    ],
)
def test_of_many_classes_those_that_are_named_or_predicted(
    treesens: Command,
    tmp_path: Path,
    question: str,
    named: set[str],
) -> None:
    model = forest(tmp_path, [f"c{i}" for i in range(6)])
    point, scores = asked(treesens, tmp_path, "m.joblib", f"find a such that {question}")
    frame = pd.DataFrame([point], columns=NAMES)
    chance = dict(zip(model.classes_, model.predict_proba(frame)[0], strict=True))
    assert list(scores) == ["class", *(f"prob {c}" for c in sorted(named | {model.predict(frame)[0]}))]
    for name, value in scores.items():
        if name != "class":
            assert float(value) == pytest.approx(chance[name.removeprefix("prob ")], rel=1e-5)


def test_points_of_two_kinds_of_models_share_a_table(treesens: Command, tmp_path: Path) -> None:
    """A score that the model of one point has not is a dash there."""
    forest(tmp_path, ["no", "yes"])
    booster = two_classes("xgboost").estimator
    booster.save_model(tmp_path / "b.json")
    text = f'model m from "m.joblib"\nmodel b from "b.json"\n{DOMAINS}'
    text += "query q: find x in m, y in b such that x = y and prob(x, yes) > 0.5 and prob(y) > 0.5\n"
    (tmp_path / "q.sens").write_text(text)
    done = treesens("check", tmp_path / "q.sens", "--trust-pickle")
    assert done.code == 0, done.err
    lines = dict(re.findall(r"^  (→ .*?|[pqr])  +(\S.*)$", done.out, re.MULTILINE))
    assert lines["→ prob yes"].split()[1] == "–"
    assert lines["→ prob"].split()[0] == "–"
    point = [[float(lines[name].split()[0]) for name in NAMES]]
    assert float(lines["→ prob"].split()[1]) == pytest.approx(float(booster.predict_proba(point)[0, 1]), rel=1e-5)
