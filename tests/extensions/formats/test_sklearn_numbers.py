"""Linear and logistic regression on numbers: scikit-learn's own predictions judge the kit, and all inputs of small domains."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import treesens as ts
from treesens.compiler.model.numbers import closed_over
from treesens.compiler.query.predicted_classes import sure_classes
from treesens.errors import DataError, ModelError, TreesensError
from treesens.extensions.conformance import formats as conformance

compose = pytest.importorskip("sklearn.compose")
linear = pytest.importorskip("sklearn.linear_model")
pipeline = pytest.importorskip("sklearn.pipeline")
preprocessing = pytest.importorskip("sklearn.preprocessing")
ensemble = pytest.importorskip("sklearn.ensemble")
impute = pytest.importorskip("sklearn.impute")
calibration = pytest.importorskip("sklearn.calibration")

pytestmark = pytest.mark.extensions

AGES, DEBTS, TOWNS = range(18, 40), range(0, 12), "abc"
NUMBERS = ["age", "debt"]


def rows() -> tuple[pd.DataFrame, np.ndarray]:
    random, n = np.random.default_rng(5), 240
    x = pd.DataFrame({"age": random.choice(AGES, n), "town": random.choice(list(TOWNS), n)})
    x["debt"], x["gaps"] = random.choice(DEBTS, n), np.where(random.random(n) < 0.2, np.nan, random.normal(0, 1e4, n))
    score = x.age / 8 - x.debt / 3 + (x.town == "a") + random.normal(0, 0.5, n)
    return x, np.asarray(score - score.mean())


def piped(numbers: Any, model: Any, names: list[str] | None = None, **hot: Any) -> Any:
    columns = [("numbers", numbers, names or NUMBERS), ("town", preprocessing.OneHotEncoder(**hot), ["town"])]
    return pipeline.make_pipeline(compose.ColumnTransformer(columns), model)


def filled() -> Any:
    return pipeline.make_pipeline(impute.SimpleImputer(add_indicator=True), preprocessing.StandardScaler())


MODELS: dict[str, Callable[[], Any]] = {
    "scaled": lambda: piped(preprocessing.StandardScaler(), linear.LogisticRegression(), handle_unknown="ignore"),
    "plain": lambda: piped("passthrough", linear.LogisticRegression(max_iter=2000), sparse_output=False),
    "filled": lambda: piped(filled(), linear.LogisticRegression(), ["age", "gaps"], drop="first"),
    "beside bins": lambda: pipeline.make_pipeline(
        compose.ColumnTransformer(
            [("age", "passthrough", ["age"]), ("debt", preprocessing.KBinsDiscretizer(3, strategy="uniform"), ["debt"])]
        ),
        linear.LogisticRegression(max_iter=2000),
    ),
    "values": lambda: piped(preprocessing.RobustScaler(), linear.Ridge()),
    "values, alone": lambda: linear.LinearRegression(),
    "margin of a ridge": lambda: piped(preprocessing.StandardScaler(), linear.RidgeClassifier()),
    "calibrated": lambda: calibration.CalibratedClassifierCV(
        piped(preprocessing.StandardScaler(), linear.LogisticRegression()), ensemble=False
    ),
    "beside trees": lambda: ensemble.VotingClassifier(
        [
            ("a", piped(preprocessing.MinMaxScaler(clip=True), linear.LogisticRegression())),
            ("b", piped("passthrough", ensemble.RandomForestClassifier(3, max_depth=2, random_state=1))),
        ],
        voting="soft",
    ),
    "values of a bag, alone": lambda: ensemble.BaggingRegressor(linear.Ridge(), 2, random_state=1),
}


def fitted(name: str) -> Any:
    x, score = rows()
    alone = x[NUMBERS] if "alone" in name else x
    return MODELS[name]().fit(alone, score if name.startswith("values") else (score > 0).astype(int))


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", MODELS)
def test_the_kit_finds_no_difference(name: str) -> None:
    loaded = ts.load(fitted(name))
    assert "age" in loaded.ensemble.open_features
    conformance.check(loaded, rows=15).raise_if_wrong()


def test_what_stands_around_a_linear_model_stands_around_its_pipeline() -> None:
    x, score = rows()
    voting = ensemble.VotingClassifier([("a", linear.LogisticRegression())], voting="soft")
    some = ensemble.BaggingRegressor(linear.Ridge(), 2, max_features=1, random_state=1)
    inside = {"VotingClassifier over a linear model follows": piped("passthrough", voting).fit(x, score > 0)}
    inside["only some columns"] = some.fit(x[NUMBERS], score)
    for message, made in inside.items():
        with pytest.raises(ModelError, match=message) as caught:
            ts.load(made)
        assert caught.value.remedy


def ask(model: Any, queries: str, domain: str = "domain from d\n") -> Any:
    text = f'model m from "m"\ndata d from "d"\n{domain}{queries}'
    return ts.check_text(text, models={"m": ts.load(model)}, data={"d": rows()[0]})


def every() -> pd.DataFrame:
    table = pd.DataFrame(list(itertools.product(AGES, DEBTS, TOWNS)), columns=["age", "debt", "town"])
    return table.assign(gaps=0.0)


@pytest.mark.parametrize("name", ["scaled", "plain"])
def test_answers_over_whole_numbers_are_those_of_all_inputs(name: str) -> None:
    model, table = fitted(name), every()
    shown = model.predict_proba(table)[:, 1].reshape(len(AGES), len(DEBTS), len(TOWNS))
    reach_of_town = float(np.minimum(shown.max(axis=2) - 0.5, 0.5 - shown.min(axis=2)).max())
    reach_of_debt = float(np.minimum(shown.max(axis=1) - 0.5, 0.5 - shown.min(axis=1)).max())
    margins = model.decision_function(table)
    text = "".join(
        f"query {kind}_{feature}: sensitive m to {{{feature}}} gap {reach + move:.12f}\n"
        for feature, reach in (("town", reach_of_town), ("debt", reach_of_debt))
        for kind, move in (("yes", -1e-9), ("no", 1e-9))
    )
    text += "query best: find a maximize margin(a)\nquery worst: find a minimize margin(a)\n"
    # The numbers of both points are the same: they cancel, whatever they are.
    text += "query shared: find a, b such that a = b except {town} maximize margin(a) - margin(b)\n"
    answers = ask(model, text)
    verdicts = {name: str(answers[name].verdict) for name in ("yes_town", "no_town", "yes_debt", "no_debt")}
    assert verdicts == {"yes_town": "found", "no_town": "none", "yes_debt": "found", "no_debt": "none"}
    by_town = margins.reshape(-1, len(TOWNS))
    largest = float((by_town.max(axis=1) - by_town.min(axis=1)).max())
    for question, value in (("best", margins.max()), ("worst", margins.min()), ("shared", largest)):
        objective = answers[question].result.objective
        assert objective.value == pytest.approx(value, abs=1e-9)
        assert objective.bound == pytest.approx(value, abs=1e-9)


@pytest.mark.parametrize(
    ("declared", "why"),
    [
        ("", "infinitely many values"),
        ("feature age: real\n", "infinitely many values"),
        ("feature age: integer in [0, inf]\n", "more than 4,096 values"),
        ("feature age: integer in [0, 4096]\n", "more than 4,096 values"),
        ("feature age: real in [18, 90]\n", "all real values between two ends"),
    ],
)
def test_a_number_without_a_table_is_refused_by_name(declared: str, why: str) -> None:
    with pytest.raises(TreesensError, match="E314") as caught:
        ask(
            fitted("scaled"),
            "query q: find a such that prob(a) >= 0.5\n",
            f"feature debt: integer in [0, 5]\n{declared}",
        )
    assert f"and `age` has {why} here" in str(caught.value)
    assert "feature age: integer in [LOW, HIGH]" in str(caught.value)
    assert "KBinsDiscretizer" in str(caught.value)


def test_before_a_domain_nothing_reads_its_cells() -> None:
    read, row = ts.load(fitted("scaled")).ensemble, np.array([[20.0, 0.0, 1.0, 0.0]])
    for call in (read.grid, read.bands, lambda: read.margins_emulated(row), lambda: read.leaves(row)):
        with pytest.raises(ModelError, match="the score as a number"):
            call()
    assert "age" in read.used_features


def test_rows_outside_of_the_domain_have_no_score(tmp_path: Path) -> None:
    """A table of ages holds no other age: what is read of it must not be taken for one."""
    x, score = rows()
    y = (score > 0).astype(int)
    table = x.assign(y=y)
    table.loc[0, "age"] = 55
    domain = tmp_path / "domain.sens"
    domain.write_text("feature age: integer in [18, 40]\nfeature debt: integer in [0, 12]\n")
    with pytest.raises(DataError, match="55 is not a value of the domain of `age`"):
        ts.groups(ts.load(fitted("scaled")), table, by=["town"], favourable=1, label="y", domain=domain)


SEVERAL: dict[str, Callable[[], Any]] = {
    "softmax": lambda: piped(preprocessing.StandardScaler(), linear.LogisticRegression(), handle_unknown="ignore"),
    "softmax of categories": lambda: pipeline.make_pipeline(
        compose.ColumnTransformer([("town", preprocessing.OneHotEncoder(), ["town"])]), linear.LogisticRegression()
    ),
    "raw margins of a ridge": lambda: piped(preprocessing.StandardScaler(), linear.RidgeClassifier()),
    "raw margins, one against all": lambda: piped(
        preprocessing.StandardScaler(), linear.SGDClassifier(loss="log_loss", random_state=1)
    ),
    "counted beside trees": lambda: ensemble.VotingClassifier(
        [
            ("a", piped(preprocessing.MinMaxScaler(), linear.LogisticRegression())),
            ("b", piped("passthrough", ensemble.RandomForestClassifier(3, max_depth=2, random_state=1))),
            ("c", piped("passthrough", linear.RidgeClassifier())),
        ]
    ),
}


def fitted_to_classes(name: str) -> Any:
    x, score = rows()
    return SEVERAL[name]().fit(x, np.digitize(score, [-1.5, 1.0]))


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", SEVERAL)
def test_the_kit_finds_no_difference_in_the_scores_of_classes(name: str) -> None:
    loaded = ts.load(fitted_to_classes(name))
    assert loaded.ensemble.link.name == name.split(maxsplit=1)[0]
    assert loaded.ensemble.accumulation.any_order
    conformance.check(loaded, rows=10).raise_if_wrong()


@pytest.mark.parametrize("name", ["softmax", "raw margins of a ridge"])
def test_classes_over_whole_numbers_are_those_of_all_inputs(name: str) -> None:
    model = fitted_to_classes(name)
    label = model.predict(every()).reshape(len(AGES), len(DEBTS), len(TOWNS))
    asked = [(one, other, f) for one, other in itertools.permutations(range(3), 2) for f in ("town", "debt")]
    text = "".join(f"query {f}_{one}{other}: sensitive m to {{{f}}} from {one} to {other}\n" for one, other, f in asked)
    if name == "softmax":
        best = float(model.predict_proba(every())[:, 1].max())
        text += f"query most: find a such that prob(a, 1) >= {best - 1e-9:.12f}\n"
        text += f"query more: find a such that prob(a, 1) >= {best + 1e-9:.12f}\n"
    answers = ask(model, text)
    for one, other, f in asked:
        axis = 1 if f == "debt" else 2
        meet = ((label == one).any(axis=axis) & (label == other).any(axis=axis)).any()
        assert str(answers[f"{f}_{one}{other}"].verdict) == ("found" if meet else "none"), (one, other, f)
    if name == "softmax":
        assert [str(answers[question].verdict) for question in ("most", "more")] == ["found", "none"]


def test_classes_that_only_the_order_of_additions_decides_are_not_sure() -> None:
    """Two classes of one score: the library chooses the first, another order of additions may choose the other one."""
    model = fitted_to_classes("raw margins of a ridge")
    last = model[-1]
    last.coef_[2], last.intercept_[2] = last.coef_[1], last.intercept_[1]
    loaded = closed_over(ts.load(model).ensemble, {"age": np.arange(18.0, 40.0), "debt": np.arange(12.0)})
    band = float(loaded.bands()[1])
    margins = np.array([[-1.0, 0.5, 0.5], [-1.0, 0.5, 0.5 + 3 * band], [-1.0, 0.5, 0.5 + 9 * band], [1.0, 0.5, 0.5]])
    assert sure_classes(loaded, margins) == [None, None, 2, 0]


def test_several_labels_and_targets_are_refused() -> None:
    x, score = rows()
    targets = np.stack([score, -score], axis=1)
    for made in (linear.Ridge().fit(x[NUMBERS], targets), linear.RidgeClassifier().fit(x[NUMBERS], targets > 0)):
        with pytest.raises(ModelError, match="several") as caught:
            ts.load(made)
        assert caught.value.remedy


def test_repair_says_that_coefficients_have_no_leaves(tmp_path: Path) -> None:
    x, score = rows()
    x.assign(y=(score > 0).astype(int)).to_csv(tmp_path / "d.csv", index=False)
    model, output = ts.load(fitted("scaled")), tmp_path / "out.skops"
    with pytest.raises(ModelError, match="a repair changes leaves, not coefficients") as caught:
        ts.repair(model, tmp_path / "d.csv", vary=["town"], label="y", gap=0.1, output=output)
    assert "without the columns" in str(caught.value.remedy)
