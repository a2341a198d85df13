"""Additive models: subset sums (planted yes and no), and random ones against all inputs, judged by XGBoost itself."""

from __future__ import annotations

import itertools
import json
from pathlib import Path

import numpy as np
import pytest
import xgboost as xgb

import treesens as ts
from tests.corpus import margins_of, regressed
from treesens.binder.file import bind
from treesens.compiler.base.budget import Budget
from treesens.compiler.result import Result
from treesens.frontends.registry import load
from treesens.grammar.parsing.parser import parse
from treesens.solve.method import OpenQuestion
from treesens.solve.methods.registry import all_methods
from treesens.solve.options import Options
from treesens.solve.question import answer, as_asked


def stumps(folder: Path, leaves: list[tuple[float, float]]) -> Path:
    """An XGBoost model with one tree `x_i < 0.5` per pair of leaves, as the library writes it, with the leaves put in."""
    names = [f"x{i}" for i in range(len(leaves))]
    rows = np.array(list(itertools.product((0.0, 1.0), repeat=2)))
    one = json.loads(regressed(rows, np.array([0.0, 1.0, 2.0, 3.0]), 1, 1, base_score=0.0, eta=1.0).save_raw("json"))
    learner = one["learner"]
    (tree,) = learner["gradient_booster"]["model"]["trees"]
    made = []
    for i, (low, high) in enumerate(leaves):
        mine = json.loads(json.dumps(tree))
        mine |= {"id": i, "split_indices": [i, 0, 0], "split_conditions": [0.5, low, high]}
        mine["base_weights"] = [0.0, low, high]
        mine["tree_param"]["num_feature"] = str(len(leaves))
        made.append(mine)
    model = learner["gradient_booster"]["model"]
    model["trees"], model["tree_info"] = made, [0] * len(made)
    model["iteration_indptr"] = list(range(len(made) + 1))
    model["gbtree_model_param"]["num_trees"] = str(len(made))
    learner["learner_model_param"]["num_feature"] = str(len(leaves))
    learner["feature_names"], learner["feature_types"] = names, ["float"] * len(names)
    path = folder / "m.json"
    path.write_text(json.dumps(one))
    return path


def domain(count: int) -> str:
    return "\n".join(f"feature x{i}: integer in [0, 1]" for i in range(count))


def by_sums(path: Path, text: str) -> Result:
    """The answer of the method alone, whatever the time that others would get."""
    query = as_asked(bind(parse(text), path.parent, load_model=lambda *_: load(path))["q"].query, Options())
    method = next(m for m in all_methods() if m.name == "attainable sums")
    options = Options(backend="native", regions=False, tolerance=0.0)
    assert method.fits(query, options)
    result: Result | None = method.function()(OpenQuestion(query, options, answer), Budget.of(60))
    assert result is not None
    return result


def subset_sum(folder: Path, count: int, bits: int, odd: bool) -> ts.Answer:
    """Is there a subset with this sum? The numbers are even, so an odd sum is none; an even one is planted."""
    rng = np.random.default_rng(count * bits)
    numbers = (2 * rng.integers(1, 1 << (bits - 1), count)).tolist()
    target = sum(numbers[::2]) + odd
    path = stumps(folder, [(0.0, float(n)) for n in numbers])
    text = f'model m from "m"\n{domain(count)}\nquery q: find a in m such that value(a) = {target}'
    given = ts.check_text(text, models={"m": path}, backend="native")["q"]
    if given.verdict == "found":
        chosen = np.array([[given.points["a"][f"x{i}"] for i in range(count)]], float)
        assert margins_of(xgb.Booster(model_file=path), chosen)[0] == target
    return given


@pytest.mark.parametrize(("count", "bits"), [(24, 8), (24, 14), (60, 14)])
@pytest.mark.parametrize("odd", [False, True])
def test_planted_subset_sums(tmp_path: Path, count: int, bits: int, odd: bool) -> None:
    given = subset_sum(tmp_path, count, bits, odd)
    assert given.verdict == ("none" if odd else "found")
    assert [attempt.detail for attempt in given.result.attempts] == ["attainable sums"]


@pytest.mark.parametrize("seed", range(4))
def test_few_features_that_do_not_vary_are_decided_whatever_the_leaves(tmp_path: Path, seed: int) -> None:
    """The paper's polynomial case: leaves are floats, most features vary; at the largest gap that there is, and beyond it."""
    rng = np.random.default_rng(seed)
    count, kept = 14, [0, 1, 2]
    leaves = [tuple(float(np.float32(x)) for x in rng.normal(size=2)) for _ in range(count)]
    path = stumps(tmp_path, leaves)  # type: ignore[arg-type]
    free = np.array(leaves[len(kept) :])
    fixed = [sum(leaves[i][b] for i, b in zip(kept, bits, strict=True)) for bits in itertools.product((0, 1), repeat=3)]
    top, bottom = free.max(axis=1).sum(), free.min(axis=1).sum()
    for gap in (0.5, 2.0, 4.0, 6.0, 8.0, 10.0):
        truth = any(f + top >= gap and f + bottom <= -gap for f in fixed)
        text = f'model m from "m"\n{domain(count)}\nquery q: find a, b in m such that\n'
        varied = ", ".join(f"x{i}" for i in range(3, count))
        text += f"    a = b except {{{varied}}}\n    value(a) >= {gap}\n    value(b) <= {-gap}"
        given = ts.check_text(text, models={"m": path}, backend="native")["q"]
        assert given.verdict == ("found" if truth else "none"), gap
        assert str(by_sums(path, text).verdict) == given.verdict, gap


@pytest.mark.parametrize("seed", range(12))
def test_additive_models_against_all_inputs(tmp_path: Path, seed: int) -> None:
    """Pairs that differ in one or two features, with bounds to both sides, at sums that are reached and beside them."""
    rng = np.random.default_rng(seed)
    count = int(rng.integers(4, 8))
    pick = lambda: [float(x) for x in rng.integers(-20, 21, 2) / 4]  # noqa: E731
    path = stumps(tmp_path, [tuple(pick()) for _ in range(count)])  # type: ignore[misc]
    inputs = np.array(list(itertools.product((0.0, 1.0), repeat=count)))
    value = margins_of(xgb.Booster(model_file=path), inputs)
    varied = sorted(rng.choice(count, int(rng.integers(1, 3)), replace=False).tolist())
    kept = [i for i in range(count) if i not in varied]
    same = (inputs[:, None, kept] == inputs[None, :, kept]).all(axis=2)
    for _ in range(6):
        high, low = rng.choice(value, 2) + rng.choice([-0.25, 0.0, 0.25], 2)
        truth = bool((same & (value >= high)[:, None] & (value <= low)[None, :]).any())
        text = f'model m from "m"\n{domain(count)}\nquery q:\n  find a, b in m such that\n'
        text += (
            f"    a = b except {{{', '.join(f'x{i}' for i in varied)}}}\n    value(a) >= {high}\n    value(b) <= {low}"
        )
        assert by_sums(path, text).verdict == ("found" if truth else "none"), (high, low)


@pytest.mark.parametrize("seed", range(12))
@pytest.mark.parametrize("goal", ["maximize", "minimize"])
@pytest.mark.sampled
def test_the_best_sum_of_an_additive_model_is_that_of_all_inputs(tmp_path: Path, seed: int, goal: str) -> None:
    """The largest sum below a bound, which is subset sum as an optimum; the largest swing, with and without a bound."""
    rng = np.random.default_rng(seed)
    count = int(rng.integers(4, 9))
    path = stumps(tmp_path, [tuple(float(x) for x in rng.integers(-20, 21, 2) / 4) for _ in range(count)])  # type: ignore[misc]
    inputs = np.array(list(itertools.product((0.0, 1.0), repeat=count)))
    value = margins_of(xgb.Booster(model_file=path), inputs)
    best = np.max if goal == "maximize" else np.min
    varied = sorted(rng.choice(count, 2, replace=False).tolist())
    kept = [i for i in range(count) if i not in varied]
    one, other = np.nonzero((inputs[:, None, kept] == inputs[None, :, kept]).all(axis=2))
    bound = float(rng.choice(value) + rng.choice([-0.25, 0.0, 0.25]))
    free = "a = b except {" + ", ".join(f"x{i}" for i in varied) + "}"
    swing = value[one] - value[other]
    cases = [
        (f"find a in m such that value(a) <= {bound} {goal} value(a)", value[value <= bound]),
        (f"find a in m such that value(a) >= {bound} {goal} value(a)", value[value >= bound]),
        (f"find a, b in m such that {free} {goal} value(a) - value(b)", swing),
        (
            f"find a, b in m such that {free}; value(a) <= {bound} {goal} value(a) - value(b)",
            swing[value[one] <= bound],
        ),
        (f"find a, b in m such that {free}; value(b) >= {bound} {goal} value(a)", value[one][value[other] >= bound]),
    ]
    for text, reached in cases:
        result = by_sums(path, f'model m from "m"\n{domain(count)}\nquery q: {text}')
        assert result.verdict == ("found" if len(reached) else "none"), text
        if len(reached):
            assert result.objective is not None
            assert result.objective.value == result.objective.bound == best(reached), text


@pytest.mark.parametrize("seed", range(3))
def test_swings_of_a_boosted_model_of_pairs_are_those_of_the_compiled_path(tmp_path: Path, seed: int) -> None:
    """Leaves are floats and parts are pairs of features: the reduced model is asked of every path."""
    rng = np.random.default_rng(seed)
    names = [f"x{i}" for i in range(9)]
    x = rng.random((400, 9)).astype(np.float32)
    y = np.sin(6 * x).sum(axis=1) + x[:, 0] * x[:, 1] + x[:, 3] * x[:, 4]
    booster = regressed(
        x, y, 30, 2, names=names, eta=0.3, interaction_constraints="[[0, 1], [2], [3, 4], [5], [6, 7], [8]]"
    )
    path = tmp_path / "p.json"
    booster.save_model(path)
    places = "\n".join(f"feature {name}: real in [0, 1]" for name in names)
    for f in range(0, 9, 2):
        text = f'model m from "m"\n{places}\nquery q: find a, b in m such that a = b except x{f} maximize value(a) - value(b)'
        ours = ts.check_text(text, models={"m": path}, backend="native")["q"].result
        assert [a.detail for a in ours.attempts] == ["attainable sums"]
        theirs = ts.check_text(text, models={"m": path}, backend="cpsat")["q"].result
        assert ours.objective is not None
        assert theirs.objective is not None
        assert ours.objective.value == ours.objective.bound == pytest.approx(theirs.objective.value, abs=1e-5)
        pair = (
            np.array([[ours.witness.values[p][i] for i in range(9)] for p in (0, 1)], np.float32)
            if ours.witness
            else x[:2]
        )
        margins = margins_of(booster, pair)
        assert float(margins[0]) - float(margins[1]) == pytest.approx(ours.objective.value, abs=1e-4)
