"""Fault 8: values were printed with six digits, and a region's ends were rounded outwards: what one read was not the answer."""

from __future__ import annotations

import re
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner

from tests.asking import ask
from treesens.cli import group
from treesens.compiler.query.domain import Unit
from treesens.records.answers import typed_number

xgb = pytest.importorskip("xgboost")
pytestmark = pytest.mark.fault


def data() -> tuple[pd.DataFrame, np.ndarray[Any, Any]]:
    rng = np.random.default_rng(3)
    frame = pd.DataFrame(
        {"income": rng.normal(1e6, 2e5, 300), "ratio": rng.random(300) / 7, "age": rng.uniform(18, 80, 300)}
    )
    return frame, (frame["income"] / 1e6 + frame["ratio"] * 5 + rng.normal(0, 0.1, 300) > 1.4).astype(int).to_numpy()


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("printed")
    frame, label = data()
    model = xgb.XGBClassifier(n_estimators=30, max_depth=4).fit(frame, label)
    model.save_model(place / "m.json")
    frame.assign(label=label).to_csv(place / "d.csv", index=False)
    return place


def run(*arguments: str) -> str:
    result = CliRunner().invoke(group, arguments)
    assert result.exit_code in (0, 3, 10), result.output
    return result.output


def chance(folder: Path, point: dict[str, float]) -> float:
    model = xgb.XGBClassifier()
    model.load_model(folder / "m.json")
    return float(model.predict_proba(pd.DataFrame([point])[["income", "ratio", "age"]])[0, 1])


@pytest.mark.parametrize("feature", ["income", "ratio", "age"])
@pytest.mark.parametrize("near", ["", " near d using distance"])
def test_a_pair_typed_as_printed_answers_the_question(folder: Path, feature: str, near: str) -> None:
    file = folder / f"{feature}{len(near)}.sens"
    file.write_text(
        'model m from "m.json"\ndata d from "d.csv" label "label"\ndomain from d\n'
        f"query q: sensitive m to {feature} gap 0.05{near}\n"
    )
    text = run("check", str(file))
    if "found" not in text:
        pytest.skip("the model has no such pair")
    points: dict[str, dict[str, float]] = {"a": {}, "b": {}}
    table = text[text.index("  feature ") :].splitlines()
    for name in ("income", "ratio", "age"):
        line = next(line for line in table if line.split()[:1] == [name])
        points["a"][name], points["b"][name] = map(float, line.split()[1:3])
    assert chance(folder, points["a"]) >= 0.55 - 1e-6
    assert chance(folder, points["b"]) <= 0.45 + 1e-6
    shown = re.search(r"→ prob\s+(\S+)\s+(\S+)", text)
    assert shown is not None
    assert chance(folder, points["a"]) == pytest.approx(float(shown[1]), abs=1e-5)
    assert chance(folder, points["b"]) == pytest.approx(float(shown[2]), abs=1e-5)


def test_a_value_between_two_whole_numbers_is_not_printed_as_one(folder: Path) -> None:
    file = folder / "open.sens"
    file.write_text('model m from "m.json"\nquery q: find a such that a.age > 30; a.age < 31\n')
    line = next(line for line in run("check", str(file)).splitlines() if line.split()[:1] == ["age"])
    assert 30 < np.float32(line.split()[1]) < 31


def test_typed_units_read_back_to_the_stored_float() -> None:
    unit = Unit(Fraction(17), Fraction(90), Fraction(0), Fraction(1))
    kind = np.dtype(np.float32)
    for value in np.random.default_rng(5).random(200).astype(kind):
        typed = typed_number(unit, float(value), kind)
        assert np.float32((Fraction(repr(typed)) - 17) / 73) == value


def test_ends_of_regions_lie_inside_the_region() -> None:
    frame, label = data()
    model = xgb.XGBClassifier(n_estimators=5, max_depth=3).fit(frame, label)
    answer = ask(model, "sensitive m to income gap 0.02", "domain from d", frame).to_dict()
    ends = [
        (where, name, end)
        for where, box in answer["region"].items()
        for name, runs in box.items()
        for run_ in runs
        for end in run_
    ]
    assert ends
    for where, name, end in ends:
        moved = {p: v | ({name: end} if where in ("all", p) else {}) for p, v in answer["points"].items()}
        rows = pd.DataFrame([moved["a"], moved["b"]])[list(frame.columns)]
        above, below = model.predict_proba(rows)[:, 1]
        assert above >= 0.52 - 1e-6
        assert below <= 0.48 + 1e-6
