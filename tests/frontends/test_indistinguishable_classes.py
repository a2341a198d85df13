"""Fault 41: a class that leads by the last digit of its margin was "found", and the library predicted another class.

LightGBM predicts the class of the greatest probability. 0.3 and 0.1 + 0.2 differ by 6e-17 as margins, and not as probabilities.

Classes whose probabilities are all 0 to the library: it predicts the first, and no `none` may say otherwise.
"""

from __future__ import annotations

import itertools
import re
from pathlib import Path

import numpy as np
import pytest

import treesens as ts

lightgbm = pytest.importorskip("lightgbm")
pytestmark = pytest.mark.fault
VALUES = {0: ("0.3", "0"), 1: ("-1", "0"), 2: ("0.1", "0.2")}
"""Leaf values of the two trees of each class."""


def model(
    folder: Path,
    values: dict[int, tuple[str, ...]],
    objective: str = "multiclass",
    rounds: int = 2,
    boosting: str = "gbdt",
) -> Path:
    """A booster of three classes, whose trees have the same value in both leaves."""
    rng = np.random.default_rng(0)
    x = rng.integers(0, 2, (200, 1)).astype(float)
    y = np.where(x[:, 0] > 0, rng.integers(0, 3, 200), rng.integers(0, 2, 200))
    options = {"objective": objective, "num_class": 3, "num_leaves": 2, "verbosity": -1, "min_data_in_leaf": 1}
    options |= {"boosting": boosting, "bagging_freq": 1, "bagging_fraction": 0.9, "seed": 0}
    trained = lightgbm.train(options, lightgbm.Dataset(x, y, feature_name=["x"]), num_boost_round=rounds)
    order = iter(enumerate(re.findall(r"^leaf_value=.*$", trained.model_to_string(), re.MULTILINE)))

    def written(_: re.Match[str]) -> str:
        tree, _old = next(order)
        value = values[tree % 3][tree // 3]
        return f"leaf_value={value} {value}"

    text = re.sub(r"^leaf_value=.*$", written, trained.model_to_string(), flags=re.MULTILINE)
    text = re.sub(r"^tree_sizes=.*\n", "", text, flags=re.MULTILINE)
    path = folder / "m.txt"
    path.write_text(text)
    return path


def predicted(path: Path) -> set[int]:
    """The classes that the library itself predicts."""
    return set(lightgbm.Booster(model_file=str(path)).predict([[0.0], [1.0]]).argmax(axis=1).tolist())


def verdict(path: Path, wanted: int, backend: str = "native", confirm: str | None = None) -> str:
    text = f'model m from "{path.name}"\nfeature x: integer in [0, 1]\nquery q: find a such that class(a) = {wanted}\n'
    file = path.with_name("q.sens")
    file.write_text(text)
    return str(ts.check(file, backend=backend, time_limit=5, confirm=confirm)["q"].verdict)


def test_a_lead_that_no_probability_shows_is_not_found(tmp_path: Path) -> None:
    path = model(tmp_path, VALUES)
    raw = lightgbm.Booster(model_file=str(path)).predict([[0.0]], raw_score=True)[0]
    assert 0 < raw[2] - raw[0] < 1e-15
    assert predicted(path) == {0}
    assert verdict(path, 2) != "found"
    assert verdict(path, 2, "z3") != "found"
    assert verdict(path, 0, confirm="library") != "none"


@pytest.mark.parametrize("more", ["0.2000000000000028", "0.20001", "0.5"])
def test_a_lead_that_probabilities_show_is_found(tmp_path: Path, more: str) -> None:
    path = model(tmp_path, {**VALUES, 2: ("0.1", more)})
    assert predicted(path) == {2}
    assert verdict(path, 2) == "found"
    assert verdict(path, 0) == "none"
    assert more.startswith("0.200000") or verdict(path, 0, confirm="library") == "none"


def test_the_first_class_wins_ties(tmp_path: Path) -> None:
    path = model(tmp_path, {**VALUES, 2: ("0.3", "0")})
    assert predicted(path) == {0}
    assert verdict(path, 0) == "found"
    assert verdict(path, 2) == "none"


def test_of_two_sigmoids_that_are_one_the_first_class_wins(tmp_path: Path) -> None:
    """One against all: 1 / (1 + exp(-40)) and 1 / (1 + exp(-45)) are both 1."""
    path = model(tmp_path, {0: ("40", "0"), 1: ("-1", "0"), 2: ("45", "0")}, "multiclassova")
    assert predicted(path) == {0}
    assert verdict(path, 2) != "found"
    assert verdict(path, 0, confirm="library") != "none"
    assert verdict(path, 1, confirm="library") == "none"


def test_sigmoids_that_differ_are_told_apart(tmp_path: Path) -> None:
    path = model(tmp_path, {0: ("4", "0"), 1: ("-1", "0"), 2: ("4.5", "0")}, "multiclassova")
    assert predicted(path) == {2}
    assert verdict(path, 2) == "found"
    assert verdict(path, 0, confirm="library") == "none"


def averaged(folder: Path, values: dict[int, str]) -> Path:
    """A random forest of LightGBM whose scores are averages of twenty trees: one of each class is not 0."""
    path = model(folder, {c: (value, *["0"] * 19) for c, value in values.items()}, rounds=20, boosting="rf")
    assert "average_output" in path.read_text()
    return path


def test_the_lead_of_an_average_is_that_of_the_sum_by_the_number_of_trees(tmp_path: Path) -> None:
    """The sums differ by 9e-16, so the averages that probabilities are made of differ by 4e-17."""
    path = averaged(tmp_path, {0: "6", 1: "-1", 2: repr(float(np.nextafter(6.0, 7.0)))})
    assert predicted(path) == {0}
    assert verdict(path, 2) != "found"
    assert verdict(path, 0, confirm="library") != "none"


def test_an_average_that_leads_is_found(tmp_path: Path) -> None:
    path = averaged(tmp_path, {0: "6", 1: "-1", 2: "6.01"})
    assert predicted(path) == {2}
    assert verdict(path, 2) == "found"
    assert verdict(path, 0, confirm="library") == "none"


CODES = range(3)


@pytest.mark.parametrize("objective", ["multiclassova", "multiclass"])
@pytest.mark.parametrize("seed", range(8))
@pytest.mark.sampled
def test_no_none_is_contradicted_by_the_library(objective: str, seed: int, tmp_path: Path) -> None:
    rng = np.random.default_rng(seed)
    table = np.array(list(itertools.product(CODES, repeat=2)), np.float64)
    data = lightgbm.Dataset(np.repeat(table, 6, axis=0), rng.integers(0, 3, 6 * len(table)), feature_name=["x", "y"])
    options = {"objective": objective, "num_class": 3, "num_leaves": 4, "min_data_in_leaf": 1, "verbose": -1}
    booster = lightgbm.train({**options, "num_threads": 1}, data, 2)
    trees = booster.trees_to_dataframe().query("left_child.isna()")
    for tree, size in trees.groupby("tree_index").size().items():
        for leaf in range(size):
            booster.set_leaf_output(tree, leaf, float(-rng.choice([1e12, 5e12, 4e13, 300.0, 1.0])))
    booster.save_model(tmp_path / "m.txt")
    predicted = {int(k) for k in booster.predict(table).argmax(axis=1)}
    ties = [int(k) for k in range(3) if k not in predicted]
    text = ['model m from "m.txt"', "feature x: integer in [0, 2]", "feature y: integer in [0, 2]"]
    for k in range(3):
        text += [f"query is{k}:", f"  find a in m such that class(a) = {k}"]
        text += [f"query not{k}:", f"  find a in m such that class(a) != {k}"]
    (tmp_path / "q.sens").write_text("\n".join(text) + "\n")
    for replay in ("emulated", "library"):
        answers = {
            name: one.to_dict()
            for name, one in ts.check(tmp_path / "q.sens", replay=replay, backend="native", time_limit=60).items()
        }
        for k in range(3):
            said = {"is": k in predicted, "not": predicted != {k}}
            for word, has in said.items():
                one = answers[f"{word}{k}"]
                if one["verdict"] == "found":
                    x, y = (one["points"]["a"][name] for name in ("x", "y"))
                    label = int(booster.predict(np.array([[x, y]], float)).argmax())
                    assert (label == k) == (word == "is")
                if one["verdict"] == "none" and one["proof"] == "library":
                    assert not has, f"{word}{k}: the library has such an input; it never predicts {ties}"
