"""One model of every kind over the same features, a table, and declarations of every kind of domain."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from fractions import Fraction
from functools import cache
from pathlib import Path

import numpy as np

from tests.binder.meaning import World
from treesens.binder.file import ResolvedFile, ResolvedQuestion, bind
from treesens.compiler.base.diagnostics import Diagnostics
from treesens.compiler.base.floats import NumberType, next_down, next_up
from treesens.compiler.model import Accumulation, Ensemble, Feature, FeatureKind, ModelSource, Task
from treesens.compiler.model.grid import Grid
from treesens.data.tables import Table
from treesens.errors import DataError, ModelError
from treesens.frontends.base import LoadedModel
from treesens.grammar.parsing.parser import parse
from treesens.links import Exp, Identity, Logistic, Softmax

FEATURES = (
    Feature("x"),
    Feature("y"),
    Feature("age"),
    Feature("height"),
    Feature("sex"),
    Feature("town", FeatureKind.CATEGORICAL, 3, ("Köln", "Bonn", "Ulm")),
    Feature("gap"),
)
NAMES = tuple(f.name for f in FEATURES)

DOMAINS = """
feature x: real in [-2, 2]
feature y: real in [0, 4]
feature age: integer in [17, 27] stored as [0, 1]
feature height: real in [150, 200] stored as [0, 1]
feature sex: category {Female = 0, Male = 1}
feature gap: real in [0, 1] or missing
"""

MODELS = {
    "binary": (Logistic(), Task.BINARY, 1, (0, 1)),
    "raw": (Identity(), Task.BINARY, 1, (0, 1)),
    "multi": (Softmax(), Task.MULTICLASS, 3, ("low", "mid", "high")),
    "forest": (Identity(), Task.MULTICLASS, 3, ("low", "mid", "high")),
    "regressor": (Identity(), Task.REGRESSION, 1, ()),
    "poisson": (Exp(), Task.REGRESSION, 1, ()),
}
DATA = 'data rows from "rows"\n'


@cache
def ensemble(name: str, number_type: NumberType = NumberType.FLOAT32) -> Ensemble:
    """Trees of depth 2 that use every feature; thresholds 0.1 and 1/3 are no floats of either type."""
    link, task, outputs, classes = MODELS[name]
    rng = np.random.default_rng(sum(map(ord, name)))
    columns: dict[str, list[float]] = {
        k: [] for k in ("feature", "threshold", "left", "right", "default", "set", "leaf")
    }
    offset, leaf_tree = [0], list[int]()
    trees = 6 * outputs

    def add(*values: float) -> int:
        for column, value in zip(columns.values(), values, strict=True):
            column.append(value)
        return len(columns["feature"]) - 1

    def grow(depth: int, tree: int) -> int:
        if depth == 0:
            leaf_tree.append(tree)
            return add(-1, np.nan, -1, -1, False, -1, len(leaf_tree) - 1)
        f = int(rng.integers(len(FEATURES)))
        coded = bool(FEATURES[f].categories)
        thresholds = [0.1, 1 / 3, 0.5, 1.0] if f > 1 else [-0.5, 0.1, 1 / 3, 1.25]
        node = add(
            f, np.nan if coded else float(rng.choice(thresholds)), -1, -1, bool(rng.integers(2)), 0 if coded else -1, -1
        )
        columns["left"][node] = grow(depth - 1, tree)
        columns["right"][node] = grow(depth - 1, tree)
        return node

    for tree in range(trees):
        grow(2, tree)
        offset.append(len(columns["feature"]))
    leaves = np.round(rng.normal(size=(len(leaf_tree), 1)), 1).astype(np.float32).astype(float)
    average = 6 if name == "forest" else 1
    if name == "forest":
        leaves = np.abs(leaves).clip(0, 1)
    return Ensemble(
        name=name,
        features=FEATURES,
        number_type=number_type,
        comparison="<",
        tree_offset=np.array(offset),
        node_feature=np.array(columns["feature"]),
        threshold=np.array(columns["threshold"]),
        left=np.array(columns["left"]),
        right=np.array(columns["right"]),
        default_left=np.array(columns["default"], bool),
        node_leaf=np.array(columns["leaf"]),
        leaf_value=leaves,
        leaf_tree=np.array(leaf_tree),
        leaf_node=np.arange(len(leaf_tree)),
        tree_output=np.arange(trees) % outputs,
        tree_weight=np.ones(trees),
        base=np.full(outputs, 0.25),
        link=link,
        task=task,
        accumulation=Accumulation.FLOAT64_BASE_LAST,
        source=ModelSource("test"),
        category_set=np.array(columns["set"]),
        set_offset=np.array([0, 1]),
        set_codes=np.array([1]),
        average=average,
        classes=classes,
    ).validate()


def loaded(made: Ensemble) -> LoadedModel:
    return LoadedModel(made, "test", made.margins_emulated)


def rows() -> dict[str, np.ndarray]:
    """Eight rows; one is outside the domain of x, two have no gap."""
    return {
        "x": np.array([0.1, -0.5, 1.0, 0.1, 1.5, 0.0, -2.0, 9.0]),
        "y": np.array([0.0, 1.0, 1.0, 2.5, 4.0, 1 / 3, 0.1, 0.2]),
        "age": np.arange(8) / 10.0,
        "height": np.linspace(0, 1, 8),
        "sex": np.array([0, 1, 1, 0, 1, 0, 1, 1.0]),
        "town": np.array([0, 1, 2, 0, 1, 2, 0, 1.0]),
        "gap": np.array([0.5, np.nan, 0.1, 0.1, 1.0, np.nan, 0.0, 0.3]),
    }


def table() -> Table:
    return Table("rows", rows(), 8)


def load_model(path: Path, format: str | None) -> LoadedModel:
    if path.name not in MODELS:
        raise ModelError("there is no such model", place=str(path), remedy="check the path")
    return loaded(ensemble(path.name))


def load_table(path: Path, label: str | None, limit: int | None) -> Table:
    if path.name != "rows":
        raise DataError("there is no such table", place=str(path))
    if label is not None and label not in rows():
        raise DataError(f"the table has no column `{label}`", place=str(path), remedy="did you mean `x`?")
    return dataclasses.replace(table(), label=label)


def bound(
    text: str,
    *,
    models: Sequence[str] = tuple(MODELS),
    domains: str = DOMAINS,
    diagnostics: Diagnostics | None = None,
) -> ResolvedFile:
    """The questions of a text that follows the declarations."""
    declared = "".join(f'model {name} from "{name}"\n' for name in models)
    file = parse(declared + DATA + domains + text, "t.sens")
    return bind(file, Path(), load_model=load_model, load_table=load_table, diagnostics=diagnostics)


def one(constraints: str, points: str = "a, b", model: str = "binary", domains: str = DOMAINS) -> ResolvedQuestion:
    """The only question of a text."""
    return bound(f"query q: find {points} such that\n  {constraints}", models=(model,), domains=domains).queries[0]


@cache
def _beside(value: float) -> np.ndarray:
    """A value twice, and the floats beside it."""
    return np.array([value, value, next_up(value, NumberType.FLOAT32), next_down(value, NumberType.FLOAT32)])


def values(rng: np.random.Generator) -> dict[str, float]:
    """A legal input that likes to sit on thresholds and constants, and one float beside them."""
    pool = np.float32([-2, -0.5, 0, 0.1, 0.25, 1 / 3, 0.5, 1, 1.25, 1.5, 2]).astype(float)

    def real(low: float, high: float) -> float:
        value = rng.choice(_beside(float(rng.choice(pool))))
        return float(min(max(value, low), high))

    return {
        "x": real(-2, 2),
        "y": real(0, 4),
        "age": float(np.float32(rng.integers(0, 11) / 10)),
        "height": real(0, 1),
        "sex": float(rng.integers(2)),
        "town": float(rng.integers(3)),
        "gap": float("nan") if rng.random() < 0.3 else real(0, 1),
    }


@cache
def _listed() -> list[dict[str, float]]:
    """The rows of the table, one by one."""
    columns = {name: NumberType.FLOAT32.cast(column).tolist() for name, column in rows().items()}
    return [{name: columns[name][i] for name in NAMES} for i in range(8)]


def world(
    points: Mapping[str, str],
    inputs: Mapping[str, Mapping[str, float]],
    varied: frozenset[str] = frozenset(),
    grid: Grid | None = None,
) -> World:
    """The plain reading of the setting; `points` names the model of each point."""
    return World(
        ensembles={point: ensemble(model) for point, model in points.items()},
        values=inputs,
        rows={"rows": [dict(row) for row in _listed()]},
        units={
            "age": (Fraction(17), Fraction(27), Fraction(0), Fraction(1)),
            "height": (Fraction(150), Fraction(200), Fraction(0), Fraction(1)),
        },
        whole=frozenset({"age"}),
        categories={"sex": {"Female": 0.0, "Male": 1.0}, "town": {"Köln": 0.0, "Bonn": 1.0, "Ulm": 2.0}},
        widths={f: {"x": Fraction(4), "y": Fraction(4), "sex": None, "town": None}.get(f, Fraction(1)) for f in NAMES},
        varied=varied,
        grids=dict(zip(NAMES, grid, strict=True)) if grid else {},
    )
