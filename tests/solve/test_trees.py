"""Questions about scores on the trees themselves: the verdicts of trying everything, and of the way through the IR."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from itertools import islice, product
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import xgboost
from sklearn.ensemble import GradientBoostingClassifier, RandomForestClassifier

import treesens as ts
from tests.corpus import boosted
from tests.data.settings import ask, needs_bench
from tests.questions import every_input, oracle, random_query
from treesens.backends.native import score_constraints, tree_question
from treesens.backends.native.tree_question import decide_on_trees, maximise_on_trees
from treesens.binder.file import bind
from treesens.compiler.base.budget import Budget
from treesens.compiler.ir.module import ModuleSize
from treesens.compiler.model.scores import leaf_values
from treesens.compiler.query.evaluate import form_value, holds
from treesens.compiler.query.query import AllOf, AnyOf, AtLeast, LinearForm, Query, ScoreTerm
from treesens.extensions.studies.running import library_of
from treesens.grammar.parsing.parser import parse
from treesens.runtime.kept import Kept
from treesens.solve import fits
from treesens.solve.methods.trees import answer_on_trees
from treesens.solve.options import Options
from treesens.solve.question import search_cells


@pytest.mark.parametrize("seed", range(24))
@pytest.mark.sampled
def test_verdicts_are_those_of_trying_every_input(seed: int) -> None:
    rng = np.random.default_rng(1000 + seed)
    asked = found = 0
    for _ in range(60):
        query = replace(random_query(rng), objective=None)
        outcome = decide_on_trees(query, Budget.of(20.0), seed=seed)
        if outcome is None:
            continue
        asked += 1
        expected, _ = oracle(query)
        assert outcome.none == (not expected)
        assert (outcome.cells is not None) == expected
        if outcome.cells is not None:
            found += 1
            inputs = [x for x in every_input(query) if np.array_equal(x.cells, outcome.cells)]
            assert len(inputs) > 0
            assert all(holds(constraint, inputs[0]) for constraint in query.constraints)
    assert asked >= 10
    assert found >= 3


@pytest.mark.parametrize("seed", range(8))
def test_disjunctions_are_decided_case_by_case(seed: int) -> None:
    """Parts of other questions over the same inputs, joined by `or`, also one inside another."""
    rng = np.random.default_rng(3000 + seed)
    split = found = none = 0
    while split < 12:
        query = replace(random_query(rng), objective=None)
        parts = [c for c in query.constraints if not isinstance(c, AnyOf | AllOf)]
        if len(parts) < 4:
            continue
        inner = AllOf((parts[1], AnyOf((parts[2], parts[3]))))
        asked = replace(query, constraints=(AnyOf((parts[0], inner)), *parts[4:]))
        result = answer_on_trees(asked, Options(time_limit=30.0, seed=seed), Budget.of(30.0))
        if result is None:
            continue
        expected, _ = oracle(asked)
        assert result.verdict == ("found" if expected else "none")
        split += 1
        found += expected
        none += not expected
    assert found
    assert none


@pytest.mark.parametrize("bits", [10, 16, 24])
def test_scores_that_are_rounded_exclude_nothing(bits: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """With whole numbers of a few bits nearly every row is rounded: proofs still hold, and points are looked at exactly."""

    for module in (tree_question, score_constraints):
        monkeypatch.setattr(module, "SCORE_BITS", bits)
    monkeypatch.setattr(tree_question, "_BUILT", Kept(32, lambda _: 0))
    rng = np.random.default_rng(70 + bits)
    rounded = none = found = 0
    for _ in range(150):
        query = replace(random_query(rng), objective=None)
        known = tree_question.bound_question(query)
        if known is None:
            continue
        rounded += any(row.rounded for row in known.rows)
        outcome = decide_on_trees(query, Budget.of(20.0))
        if outcome is None or outcome.reason == "rounding":
            continue  # a point that rounded scores allow and exact ones do not
        expected, _ = oracle(query)
        none, found = none + outcome.none, found + expected
        assert outcome.none == (not expected)
        assert (outcome.cells is not None) == expected
    assert rounded >= 5
    assert none >= 1
    assert found >= 3


@pytest.mark.parametrize("seed", range(6))
def test_a_rounded_row_allows_what_the_exact_one_does(seed: int) -> None:
    rng = np.random.default_rng(900 + seed)
    looked_at = wrong = 0
    for _ in range(40):
        query = random_query(rng)
        rows = [c for c in query.constraints if isinstance(c, AtLeast) and c.form.scores and not c.form.costs]
        for row in rows:
            finest = max(leaf_values(query.models[query.points[t.point].model], t.output)[1] for t in row.form.scores)
            made = score_constraints._row_at(query, row.form, [], finest - int(rng.integers(1, 12)))
            if made is None:
                continue
            for x in islice(every_input(query), 60):
                leaves = [query.models[p.model].leaves(x.cells[i : i + 1])[0] for i, p in enumerate(query.points)]
                total = sum(int(values[leaves[point]].sum()) for point, values in made.values.items())
                looked_at += holds(row, x)
                wrong += holds(row, x) and total < made.bound(row)
    assert wrong == 0
    assert looked_at >= 50


def test_bounds_of_one_shape_share_what_was_built(monkeypatch: pytest.MonkeyPatch) -> None:
    built: list[object] = []

    def build(*arguments: Any, **options: Any) -> object:
        built.append(real(*arguments, **options))
        return built[-1]

    real = tree_question._build
    monkeypatch.setattr(tree_question, "_build", build)
    rng = np.random.default_rng(5)
    query = next(q for q in iter(lambda: replace(random_query(rng), objective=None), None) if not _needs_ir(q))

    first = decide_on_trees(query, Budget.of(5.0))
    assert len(built) == 1
    again = decide_on_trees(replace(query, name="other"), Budget.of(5.0))
    assert first is not None
    assert again is not None
    assert first.none == again.none
    assert len(built) == 1


@pytest.fixture
def as_large(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every model counts as large: all is said on the trees."""
    monkeypatch.setattr(fits, "MANY_LEAVES", 0)


@pytest.mark.usefixtures("as_large")
@pytest.mark.parametrize("seed", range(6))
def test_all_that_is_said_of_a_large_model_is_true(seed: int) -> None:
    rng = np.random.default_rng(5000 + seed)
    asked = 0
    while asked < 12:
        query = replace(random_query(rng), objective=None)
        result = answer_on_trees(query, Options(time_limit=30.0, seed=seed), Budget.of(30.0))
        if result is None:
            continue
        asked += 1
        assert result.verdict == ("found" if oracle(query)[0] else "none")


@pytest.mark.usefixtures("as_large")
def test_a_large_model_is_open_with_how_near_the_search_came() -> None:
    rng = np.random.default_rng(11)
    x, y = rng.normal(size=(1200, 14)), rng.integers(0, 2, 1200)  # noise makes it hard
    model = ts.load(xgboost.XGBClassifier(n_estimators=350, max_depth=6, random_state=0, n_jobs=1).fit(x, y))
    still_open = 0
    for margin in (6.5, 6.75, 7.0, 7.25):
        result = ts.sensitivity(model, vary=["f0"], margin=margin, time_limit=0.1).result
        assert [a.backend for a in result.attempts] == ["native"]
        if result.verdict != "unknown":  # a pair may turn up in a tenth of a second
            continue
        still_open += 1
        assert result.reason == "time"
        assert result.near_miss is not None
        assert result.near_miss.slack_bound is not None
        assert result.near_miss.slack_bound >= 0
        # A tenth of a second may be over before the first point.
        assert (result.near_miss.best_slack or -1.0) < 0
    assert still_open > 0


def _largest_gap(inputs: np.ndarray, margins: np.ndarray, feature: int) -> float:
    """The largest gap around 0 of two of the inputs that differ in one feature at most, by trying all pairs."""
    groups: dict[bytes, list[float]] = {}
    for x, margin in zip(np.delete(inputs, feature, axis=1), margins, strict=True):
        groups.setdefault(x.tobytes(), []).append(float(margin))
    return max(min(max(mine), -min(mine)) for mine in groups.values())


@pytest.mark.usefixtures("as_large")
@pytest.mark.parametrize("seed", range(4))
def test_how_near_the_search_came_to_an_answer_about_a_large_model_is_true(seed: int) -> None:
    """Time limits that are over at once, or soon: no pair is better than what is said, and some pair is as good."""
    rng = np.random.default_rng(seed)
    x = rng.integers(0, 4, (400, 4)).astype(float)
    y = (x.sum(axis=1) + rng.normal(0, 2.0, 400) > 6).astype(int)
    booster = xgboost.XGBClassifier(n_estimators=40, max_depth=4, random_state=seed, n_jobs=1).fit(x, y)
    inputs = np.array(list(product(range(4), repeat=4)), float)  # thresholds lie between whole numbers
    margins = booster.predict(inputs, output_margin=True)
    model = ts.load(booster)
    bounded = 0
    for feature, over, limit in product(range(4), (-0.5, 0.05, 1.0), (0.0, 0.0005, 0.003)):
        margin = max(0.0, _largest_gap(inputs, margins, feature) + over)
        best = _largest_gap(inputs, margins, feature) - margin
        text = f'model m from "m"\nquery q: sensitive m to f{feature} margin {margin:.17f}'
        query = bind(parse(text, "<question>"), Path(), load_model=lambda _path, _format: model)["q"].query
        result = answer_on_trees(query, Options(time_limit=limit), Budget.of(limit))
        assert result is not None
        if result.verdict != "unknown":
            assert result.verdict == ("found" if best >= 0 else "none")
            continue
        near = result.near_miss
        assert near is not None
        if near.slack_bound is not None:
            bounded += 1
            assert near.slack_bound >= best - 1e-4
        if near.best_slack is not None:
            assert near.best_slack <= best + 1e-4
    assert bounded >= 12


def _with_goal(rng: np.random.Generator) -> Query:
    """A question about two points that optimises a sum of their scores; half of them without bounds on scores."""
    while True:
        query = random_query(rng)
        if query.objective is None or any(isinstance(c, AnyOf) for c in query.constraints):
            continue
        signs = rng.choice([Fraction(1), Fraction(-1), Fraction(2, 3), Fraction(-3, 2)], size=2)
        form = LinearForm(tuple(ScoreTerm(p, 0, signs[p]) for p in (0, 1)))
        kept = query.constraints if rng.random() < 0.5 else [c for c in query.constraints if not isinstance(c, AtLeast)]
        goal = replace(query.objective, form=form, kind="margin")
        return replace(query, constraints=tuple(kept), objective=goal)


@pytest.mark.parametrize("seed", range(12))
@pytest.mark.sampled
def test_optima_are_those_of_trying_every_input(seed: int) -> None:
    rng = np.random.default_rng(7000 + seed)
    found = 0
    for _ in range(25):
        query = _with_goal(rng)
        outcome = maximise_on_trees(query, Budget.of(20.0), seed=seed)
        if outcome is None:
            continue
        expected, best = oracle(query)
        assert query.objective is not None
        assert outcome.ended == ("optimal" if expected else "infeasible")
        assert (outcome.cells is not None) == expected
        if outcome.cells is None:
            continue
        found += 1
        reached = next(x for x in every_input(query) if np.array_equal(x.cells, outcome.cells))
        assert all(holds(constraint, reached) for constraint in query.constraints)
        assert form_value(query.objective.form, reached) == outcome.bound == best
    assert found >= 5


@pytest.mark.parametrize("bits", [10, 16, 24])
def test_optima_of_scores_that_are_rounded_lie_within_their_bounds(bits: int, monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (tree_question, score_constraints):
        monkeypatch.setattr(module, "SCORE_BITS", bits)
    monkeypatch.setattr(tree_question, "_BUILT", Kept(32, lambda _: 0))
    rng = np.random.default_rng(170 + bits)
    rounded = away = 0
    for _ in range(150):
        query = _with_goal(rng)
        known = tree_question.bound_question(query, optimises=True)
        if known is None or known.goal is None:
            continue
        outcome = maximise_on_trees(query, Budget.of(20.0))
        if outcome is None:
            continue
        expected, best = oracle(query)
        goal = query.objective
        assert goal is not None
        rounded += known.goal.rounded
        assert not (outcome.none and expected)
        if not expected:
            assert outcome.cells is None
            continue
        assert outcome.bound is not None
        assert best is not None
        assert outcome.bound >= best if goal.maximize else outcome.bound <= best
        away += outcome.bound != best
        if outcome.cells is not None:
            reached = next(x for x in every_input(query) if np.array_equal(x.cells, outcome.cells))
            assert all(holds(constraint, reached) for constraint in query.constraints)
            lost = (query.models[0].n_trees + 1) * sum(abs(t.coefficient) for t in goal.form.scores)
            assert abs(form_value(goal.form, reached) - outcome.bound) <= lost / Fraction(2) ** known.goal.shift
    assert rounded >= 5
    assert away >= 3


def _asked_of(model: object, text: str) -> Query:
    return _asked(model, f"find {text}")


def _asked(model: object, text: str) -> Query:
    lines = f'model m from "m"\nquery q: {text}'
    return bind(parse(lines, "<question>"), Path(), load_model=lambda _path, _format: model)["q"].query  # type: ignore[arg-type,return-value]


@pytest.mark.usefixtures("as_large")
@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("limit", [0.0, 20.0])
@pytest.mark.sampled
def test_optima_of_large_forests_are_those_of_scikit_learn_over_all_inputs(seed: int, limit: float) -> None:
    """Three classes with sums of thirds, which no binary number has; a limit of nothing leaves a bound that is true."""
    rng = np.random.default_rng(300 + seed)
    x = rng.integers(0, 4, (150, 4)).astype(float)
    y = np.digitize(x.sum(axis=1) + rng.normal(0, 2.0, 150), [5, 7])
    forest = RandomForestClassifier(9, random_state=seed).fit(x, y)
    inputs = np.array(list(product(np.arange(0.25, 3.0, 0.5), repeat=4)))  # thresholds are halves
    scores = forest.predict_proba(inputs)
    model = ts.load(forest)
    expected = {}
    for label in range(3):
        expected[f"a such that a.f0 >= 0 maximize margin(a, {label})"] = scores[:, label].max()
        expected[f"a such that a.f0 >= 0 minimize margin(a, {label})"] = scores[:, label].min()
        for feature in (0, 3):
            grouped = scores[:, label].reshape(6, 6, 6, 6)
            swing = np.ptp(grouped, axis=feature).max()
            expected[f"a, b such that a = b except f{feature} maximize margin(a, {label}) - margin(b, {label})"] = swing
    for text, best in expected.items():
        query = _asked_of(model, text)
        assert query.objective is not None
        result = answer_on_trees(query, Options(time_limit=limit, seed=seed, tolerance=1e-10), Budget.of(limit))
        assert result is not None
        assert result.size == ModuleSize()  # nothing was compiled
        if result.verdict == "unknown":
            assert limit == 0
            continue
        shown, sign = result.objective, 1 if query.objective.maximize else -1
        assert result.verdict == "found"
        assert shown is not None
        assert sign * shown.value <= sign * best + 1e-12
        if shown.bound is not None:
            assert sign * shown.bound >= sign * best - 1e-12
        if limit > 0:
            assert shown.bound is not None
            assert abs(shown.value - best) <= 1e-12
            assert abs(shown.bound - best) <= 1e-9


@pytest.mark.usefixtures("as_large")
def test_an_optimum_may_be_away_from_its_bound_by_the_tolerance_and_no_more() -> None:
    rng = np.random.default_rng(14)
    x = rng.normal(size=(800, 6))
    y = (x[:, 0] * x[:, 1] + rng.normal(size=800) > 0).astype(int)
    model = ts.load(xgboost.XGBClassifier(n_estimators=40, max_depth=4, random_state=0, n_jobs=1).fit(x, y))
    query = _asked_of(model, "a, b such that a = b except f0 maximize margin(a) - margin(b)")
    best = answer_on_trees(query, Options(time_limit=60.0, tolerance=0.0), Budget.of(60.0))
    assert best is not None
    assert best.objective is not None
    assert best.objective.gap == 0
    for relative, absolute in ((0.1, 0.0), (0.0, 0.3)):
        options = Options(time_limit=60.0, tolerance=relative, absolute_tolerance=absolute)
        near = answer_on_trees(query, options, Budget.of(60.0))
        assert near is not None
        assert near.objective is not None
        assert near.objective.bound is not None
        assert near.objective.value <= best.objective.value <= near.objective.bound
        assert near.objective.bound - near.objective.value <= max(relative * near.objective.value, absolute)


@pytest.mark.usefixtures("as_large")
def test_an_optimum_of_a_large_model_that_does_not_fit_is_no_fault() -> None:
    rng = np.random.default_rng(12)
    x = rng.normal(size=(300, 6))
    model = ts.load(GradientBoostingClassifier(random_state=0).fit(x, x[:, 0] * x[:, 1] > 0.1))
    query = _asked_of(model, "a such that a.f0 >= 0 maximize margin(a)")
    result = answer_on_trees(query, Options(memory_limit=1), Budget.of(5.0))
    assert result is not None
    assert (result.verdict, result.reason) == ("unknown", "memory")


@pytest.mark.usefixtures("as_large")
def test_a_large_model_that_does_not_fit_is_no_fault() -> None:
    rng = np.random.default_rng(12)
    x = rng.normal(size=(300, 6))
    model = ts.load(GradientBoostingClassifier(random_state=0).fit(x, x[:, 0] * x[:, 1] > 0.1))
    answer = ts.sensitivity(model, vary=["f5"], margin=3.0, memory_limit=1)
    assert (answer.verdict, answer.reason) == ("unknown", "memory")


def test_a_pair_within_the_band_is_followed_by_one_that_is_clear_of_it_on_the_same_trees() -> None:
    """Averages of a forest often meet a threshold exactly, and the library's sum falls short of it by a rounding."""
    again = 0
    for seed in (0, 3, 6, 7):
        rng = np.random.default_rng(seed)
        x = rng.integers(0, 4, (60, 3)).astype(float)
        y = (x.sum(axis=1) + rng.normal(0, 1.5, 60) > 4.5).astype(int)
        model = ts.load(RandomForestClassifier(10, random_state=seed).fit(x, y))
        for vary, gap in (("f0", 0.3), ("f1", 0.3), ("f1", 0.4)):
            query = _asked(model, f"sensitive m to {vary} gap {gap}")
            options = Options(time_limit=20.0, library_predict=library_of(model, "library"))
            # The method itself, with all of the time: how long its moment lasts is not what is tested.
            answer = answer_on_trees(query, options, Budget.of(20.0))
            compiled = ts.sensitivity(model, vary=[vary], gap=gap, time_limit=20, backend="native", pipeline="native")
            if answer is None:
                continue
            assert {answer.verdict, compiled.verdict} != {"found", "none"}
            if [a.termination for a in answer.attempts] == ["satisfied", "satisfied"]:
                assert answer.verdict == "found"
                assert answer.size == ModuleSize()  # nothing was compiled
                again += 1
    assert again


def _needs_ir(query: object) -> bool:
    return decide_on_trees(query, Budget.of(5.0)) is None  # type: ignore[arg-type]


@needs_bench
@pytest.mark.parametrize("feature", ["f2", "f5", "f6"])
@pytest.mark.parametrize("margin", [0.5, 1.5, 3])
def test_published_models_get_the_verdicts_of_the_way_through_the_ir(feature: str, margin: float) -> None:
    query = ask(f"query q: sensitive m to {feature} margin {margin}", "diabetes_unrobust", "diabetes")["q"].query
    options = Options(backend="native", time_limit=60)
    direct = answer_on_trees(query, options, Budget.of(60))
    assert direct is not None
    # A pipeline that is named is run.
    whole = search_cells(query, replace(options, pipeline="kant"), Budget.of(60))
    assert direct.verdict == whole.verdict
    assert direct.proof == whole.proof


@pytest.mark.parametrize("seed", range(3))
def test_points_share_the_trees_that_ask_for_nothing_that_varies(seed: int) -> None:
    """What a tree asks for is what XGBoost prints of it; the flips are those of its predictions over all inputs."""
    rng = np.random.default_rng(40 + seed)
    inputs = np.array(list(product(range(4), repeat=4)), np.float32)
    x, y = rng.integers(0, 4, (150, 4)), rng.integers(0, 4, 150)
    booster = boosted(x, y, 3, 2, num_class=4, eta=0.8, seed=seed)
    predicted = booster.predict(xgboost.DMatrix(inputs)).argmax(axis=1)
    printed = booster.trees_to_dataframe()
    declared = "".join(f"\nfeature f{i}: integer in [0, 3]" for i in range(4))
    verdicts = set()
    for varied, one, other in product(range(4), range(4), range(4)):
        if one == other:
            continue
        query = _asked(ts.load(booster), f"sensitive m to f{varied} from `{one}` to `{other}`{declared}")
        outcome = decide_on_trees(query, Budget.of(20.0))
        assert outcome is not None
        by_rest: dict[bytes, set[int]] = {}
        for rest, label in zip(np.delete(inputs, varied, axis=1), predicted.tolist(), strict=True):
            by_rest.setdefault(rest.tobytes(), set()).add(label)
        assert outcome.none == (not any({one, other} <= labels for labels in by_rest.values()))
        verdicts.add(outcome.none)
        question = tree_question.bound_question(query)
        assert question is not None
        asks = set(printed[printed.Feature == f"f{varied}"].Tree)
        apart = [((p,), t) for p in (0, 1) for t in sorted(asks)]
        shared = [((0, 1), t) for t in range(12) if t not in asks]
        assert sorted(question.trees.groups) == sorted(apart + shared)
    assert verdicts == {False, True}


@pytest.mark.parametrize("ends", ["margin(a) <= 6.5", "margin(a) <= 6.5; margin(b) >= -6.5", "margin(b) >= -6.5"])
def test_ends_that_scores_keep_anyway_do_not_hide_that_a_swing_is_too_small(ends: str) -> None:
    """The two ends of a range for one point cancel, too, and say nothing about the other point."""
    rng = np.random.default_rng(3)
    x = rng.normal(size=(2000, 8))
    y = ((x[:, 0] + x[:, 1] * x[:, 2] + rng.normal(0, 0.5, 2000)) > 0).astype(int)
    model = ts.load(xgboost.XGBClassifier(n_estimators=120, max_depth=5, random_state=0, n_jobs=1).fit(x, y))
    for feature in ("f5", "f7"):
        swing = f"a, b in m such that a = b except {feature}; margin(a) >= 4.5; margin(b) <= -4.5"
        plain, ranged = (
            decide_on_trees(_asked_of(model, text), Budget.of(60.0)) for text in (swing, f"{swing}; {ends}")
        )
        assert plain is not None
        assert ranged is not None
        assert plain.none
        assert ranged.none
        assert ranged.statistics["nodes"] <= 5 * plain.statistics["nodes"]
