"""Tiny models trained by XGBoost: brute force = every pipeline = every backend, with native replay."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner

import treesens as ts
from tests.questions import oracle
from treesens.binder.file import bind
from treesens.cli import group
from treesens.compiler.pipeline import PIPELINES
from treesens.grammar.parsing.parser import parse
from treesens.solve.options import Options
from treesens.solve.question import answer

KINDS = ("plain", "missing", "categories", "ties", "constant", "dart", "multiclass")


def trained(kind: str, seed: int):  # type: ignore[no-untyped-def]
    """An XGBoost model over three features with few levels, so that all cells can be tried."""
    import pandas as pd
    import xgboost

    rng = np.random.default_rng(seed)
    rows = 80
    frame = pd.DataFrame(
        {"x": rng.integers(0, 3, rows).astype(float), "y": rng.integers(0, 4, rows) / 3, "z": rng.random(rows)}
    )
    if kind == "missing":
        frame.loc[rng.random(rows) < 0.3, "y"] = np.nan
    if kind == "categories":
        frame["x"] = frame["x"].astype(int).astype("category")
    if kind == "ties":
        frame["z"] = (frame["z"] > 0.5).astype(float) * 0.1
    label = (frame["y"].fillna(0.2) + rng.normal(0, 0.3, rows) + (frame["x"].astype(float) == 1) > 0.7).astype(int)
    if kind == "constant":
        label[:] = 1
        label[0] = 0
    if kind == "multiclass":
        label = pd.Series(rng.integers(0, 3, rows))
    options = {"booster": "dart", "rate_drop": 0.3} if kind == "dart" else {}
    model = xgboost.XGBClassifier(
        n_estimators=3, max_depth=2, learning_rate=0.7, n_jobs=1, enable_categorical=kind == "categories", **options
    )
    return model.fit(frame, label), frame


def question(kind: str) -> str:
    x = "category {0, 1, 2}" if kind == "categories" else "integer in [0, 2]"
    lines = [
        'model m from "m"',
        f"feature x: {x}",
        f"feature y: real in [0, 1]{' or missing' if kind == 'missing' else ''}",
        "feature z: real in [0, 1]",
    ]
    clause = "from 0 to 1 factor 1.1" if kind == "multiclass" else "margin 0.3"
    lines += [f"query q{i}: sensitive m to {{{f}}} {clause}" for i, f in enumerate(("x", "y", "z", "x, z"))]
    return "\n".join(lines)


@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.sampled
def test_brute_force_equals_every_pipeline_and_backend(kind: str, seed: int) -> None:
    model, _ = trained(kind, seed)
    loaded = ts.load(model)
    bound = bind(parse(question(kind), "<test>"), Path(), load_model=lambda path, format: loaded)
    for item in bound.queries:
        some, _ = oracle(item.query)
        library_predict = [m.replay for m in item.models]
        runs = [("native", text) for text in PIPELINES] + [("auto", "default")]
        for backend, pipeline in runs:
            result = answer(
                item.query, Options(backend=backend, pipeline=pipeline, library_predict=library_predict, time_limit=30)
            )
            assert str(result.verdict) == ("found" if some else "none"), (item.name, backend, pipeline, result.reason)
            if some:
                assert result.witness is not None
                assert str(result.witness.replay) == "library"
            else:
                assert result.proof == "exact"


@pytest.mark.parametrize("clause", ["maximize", "minimize"])
@pytest.mark.parametrize("seed", range(3))
def test_an_objective_needs_no_constraint(tmp_path: Path, clause: str, seed: int) -> None:
    """The best margin of all inputs, by the library's own sums over every place between its thresholds."""
    model, frame = trained("plain", seed)
    model.save_model(tmp_path / "m.json")
    columns = list(frame.columns)
    trees = model.get_booster().trees_to_dataframe()
    places = {f: np.unique(trees.loc[trees["Feature"] == f, "Split"].astype(np.float32)) for f in columns}
    levels = [np.append(places[f], np.float32(10)) - np.float32(1e-3) for f in columns]
    grid = np.stack([axis.ravel() for axis in np.meshgrid(*levels)], axis=1)
    margins = model.predict(pd.DataFrame(grid, columns=columns), output_margin=True)
    text = f"query best:\n  find p in m\n  {clause} margin(p)\n"
    declared = "".join(f"feature {f}: real in [-10, 10]\n" for f in columns)
    (tmp_path / "q.sens").write_text(f'model m from "m.json"\n{declared}{text}')
    run = CliRunner().invoke(group, ["check", str(tmp_path / "q.sens"), "--json"])
    assert run.exit_code == 0, run.output
    (record,) = json.loads(run.stdout)["results"]
    best = margins.max() if clause == "maximize" else margins.min()
    assert record["verdict"] == "found"
    assert record["objective"]["value"] == pytest.approx(best, abs=1e-6)
    assert record["objective"]["bound"] == pytest.approx(best, abs=1e-6)


@pytest.mark.parametrize("backend", ["cpsat", "highs", "z3", "cbc", "scip", "gurobi"])
def test_solvers_in_workers_agree_on_trained_models(backend: str) -> None:
    for kind in ("missing", "categories", "multiclass"):
        model, _ = trained(kind, 5)
        loaded = ts.load(model)
        bound = bind(parse(question(kind), "<test>"), Path(), load_model=lambda path, format: loaded)  # noqa: B023
        for item in bound.queries[:2]:
            some, _ = oracle(item.query)
            result = answer(item.query, Options(backend=backend, time_limit=30))
            assert str(result.verdict) == ("found" if some else "none"), (kind, item.name, result.reason)
