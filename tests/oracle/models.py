"""What the judge knows of a model: how its own library evaluates it. Nothing of treesens is here."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from tests.oracle.meaning import Points
from tests.oracle.spaces import Feature, Space, quoted

LIGHTGBM_ZERO = float(np.float32(1e-35))
"""LightGBM's `kZeroThreshold`."""

Columns = list[np.ndarray]
"""Inputs as the library reads them: one array per feature, float64 or objects (labels)."""


@dataclass
class Model:
    """A trained model with its library's functions of inputs (lists of columns)."""

    name: str
    frontend: str
    kind: str
    """binary, multi or regression."""
    link: str
    """logit, softmax, ova, exp or identity (forests: margins are probabilities)."""
    source: Any
    """What treesens loads: a path or a live object."""
    margins_of: Callable[[Columns], np.ndarray]
    """float64[rows, outputs]: raw scores as the library gives them."""
    classes_of: Callable[[Columns], np.ndarray] | None = None
    """int[rows]: what the library predicts, as places in `classes`."""
    leaves_of: Callable[[Columns], np.ndarray] | None = None
    classes: tuple[str, ...] = ()
    thresholds: Mapping[str, list[float]] = field(default_factory=dict)
    strict: bool = False
    """Whether a threshold belongs to the right side (`x < t` goes left)."""
    used: tuple[bool, ...] = ()
    """Which features any tree asks about."""
    categorical: bool = False
    """Whether a split asks for categories."""
    single: bool = False
    """Whether scores are float32."""
    real: type = np.float64
    """The number type of the inputs."""
    shorten: Callable[[int], Model] | None = None
    """The same model with the first trees only, made by the library."""
    trees: int = 0
    recipe: str = ""
    save: Callable[[Path], str] | None = None
    """Writes the file for a reproduction, and tells its name."""
    dyadic: bool = False
    """Whether leaves were put on a grid, so that sums may be exact."""
    sigmoid: bool = False
    """Whether probabilities are those of a sigmoid calibration: no decimal number is one of them."""
    knots: tuple[float, ...] = ()
    """The probabilities of an isotonic calibration that are exact; between them the library rounds a line."""
    celled: bool = True
    """Whether its cells are known here: not of a pipeline, nor of features that it reads as categories."""
    form: str = ""
    """The format to name for its file, if the file alone does not say what is read of it."""
    coded: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """The features that it reads as categories, with their labels (none for codes)."""

    @property
    def linear(self) -> bool:
        """Whether probabilities are the outputs themselves."""
        return self.kind != "regression" and self.link in ("identity", "calibrated")

    def output_of(self, name: str) -> int:
        return self.class_of(name)

    def class_of(self, name: str) -> int:
        return [quoted_class(c) for c in self.classes].index(name)

    def lead(self, margins: np.ndarray, wanted: int) -> np.ndarray:
        """By how much the score of a class is above all others."""
        if margins.shape[1] == 1:
            return margins[:, 0] if wanted == 1 else -margins[:, 0]
        return margins[:, wanted] - np.delete(margins, wanted, axis=1).max(axis=1)

    def points(self, columns: Columns, user: np.ndarray) -> Points:
        """Some inputs, evaluated by the library."""
        margins = self.margins_of(columns)
        classes = self.classes_of(columns) if self.classes_of else np.zeros(len(margins), int)
        band = self.band(margins)
        points = Points(user, margins, classes, self.cells(columns), band, self)
        if self.sums_of is not None and band > 0:
            points.exact, points.shift = self.sums_of(columns)
        return points

    def band(self, margins: np.ndarray) -> float:
        """How far the library's sums may be from the exact ones; 0 if they are multiples of 2^-10 by construction."""
        if self.dyadic and np.array_equal(margins * 1024, np.round(margins * 1024)):
            return 0.0
        size = float(np.max(np.abs(margins), initial=1.0))
        return size * ((2e-6 if self.single else 1e-12) * (self.trees + 2))

    def cells(self, columns: Columns) -> np.ndarray:
        """int[rows, features]: the cell of every value among the model's own thresholds; missing is a cell of its own, and so
        is every category of a feature that the model reads as categories.
        """
        out = np.zeros((len(columns[0]), len(columns)), np.int64)
        if not self.celled:
            return out
        for i, values in enumerate(columns):
            if self.feature_names[i] in self.coded:
                known = list(self.coded[self.feature_names[i]]) or [float(k) for k in range(8)]
                out[:, i] = [known.index(v) if v in known else len(known) for v in values.tolist()]
                continue
            cuts = np.unique(self.first_above(np.array(self.thresholds.get(self.feature_names[i], []), float)))
            # A threshold of infinity tells missing values from all others; LightGBM writes it as 1e300 in JSON.
            cuts = cuts[np.abs(cuts) < 1e300]
            x = values.astype(self.real).astype(float)
            if self.frontend.startswith("lightgbm"):
                x[np.abs(x) <= LIGHTGBM_ZERO] = 0.0  # as the library reads it
            out[:, i] = np.searchsorted(cuts, x, side="right")
            out[np.isnan(x), i] = len(cuts) + 1
        return out

    def first_above(self, thresholds: np.ndarray) -> np.ndarray:
        """The least number of the model's type that goes right: two thresholds between the same two numbers cut once."""
        with np.errstate(over="ignore"):
            near = thresholds.astype(self.real)
        short = near.astype(float) < thresholds if self.strict else near.astype(float) <= thresholds
        return np.where(short, np.nextafter(near, self.real(np.inf)), near).astype(float)

    feature_names: tuple[str, ...] = ()
    sums_of: Callable[[Columns], tuple[np.ndarray, int]] | None = None
    """object[rows], shift: the exact sums of the one output, from the file and the leaves that the library names."""


def quoted_class(name: str) -> str:
    return name if name.lstrip("-").isdigit() else quoted(name)


def matrix(columns: Columns, kind: type = np.float64) -> np.ndarray:
    return np.stack([c.astype(kind) for c in columns], axis=1)


def frame(columns: Columns, features: Sequence[Feature]) -> Any:
    """As a pandas frame: labels as categories of the model, numbers as float64."""
    import pandas as pd

    made = {}
    for c, f in zip(columns, features, strict=True):
        made[f.name] = pd.Categorical(c, categories=list(f.labels)) if f.codes == "label" else c
    return pd.DataFrame(made)


def training(rng: np.random.Generator, space_features: Sequence[Feature], rows: int) -> Columns:
    """Inputs to train on: values of the domain and of around it, some categories left out."""
    columns = []
    for f in space_features:
        if f.kind == "real":
            low, high = f.user[0], f.user[1]
            grid = np.concatenate([np.linspace(low, high, int(rng.integers(3, 8))), rng.uniform(low, high, 2)])
            near = np.float32(rng.uniform(low, high))
            pool: list[Any] = [*grid.tolist(), float(near), float(np.nextafter(near, np.float32(9)))]
            values = rng.choice(np.array(pool), rows)
            if f.missing_text:
                values[rng.random(rows) < 0.1] = np.nan
            columns.append(values)
            continue
        pool = [v for v in f.stored if isinstance(v, str) or not np.isnan(v)]
        if len(pool) == 1 and not isinstance(pool[0], str):
            pool = [pool[0] - 1, pool[0], pool[0] + 1]  # what is fixed now was not when the model was trained
        if f.codes == "label":
            pool = list(f.labels)
        unseen = f.kind == "category" and len(pool) > 2 and rng.random() < 0.3
        drawn = np.array(pool, dtype=object)[rng.integers(0, len(pool) - unseen, rows)]
        values = drawn if f.codes == "label" else drawn.astype(float)
        if f.missing:
            values[rng.random(rows) < 0.15] = None if f.codes == "label" else np.nan
        columns.append(values)
    return columns


def targets(rng: np.random.Generator, columns: Columns, classes: int) -> np.ndarray:
    """int[rows] or, for no classes, float64[rows]: a rule of the features with some noise."""
    total = np.zeros(len(columns[0]))
    for c in columns:
        keys = np.array([str(v) for v in c])
        weights = {k: rng.normal() for k in sorted(set(keys))}
        total += np.array([weights[k] for k in keys]) * (rng.random() + 0.2)
    total += np.where(rng.random(len(total)) < 0.1, rng.normal(size=len(total)) * 2, 0)
    if not classes:
        return np.round(total * 4) / 4
    order = np.argsort(np.argsort(total))
    labels = order * classes // len(order)
    labels[:classes] = np.arange(classes)
    return labels


def evaluate(model: Model, space: Space) -> Points:
    """The complete domain, evaluated by the library once; leaves come with it if the library tells them."""
    columns = space.stored()
    points = model.points(columns, space.user())
    if model.leaves_of is not None:
        points.leaves = np.asarray(model.leaves_of(columns)).reshape(len(columns[0]), -1)
    return points


def column_of_values(feature: Feature, value: Any) -> np.ndarray:
    """One value as a column."""
    if isinstance(value, str) or feature.codes == "label":
        return np.array([value if isinstance(value, str) else None, None], dtype=object)[:1]
    return np.array([value], float)
