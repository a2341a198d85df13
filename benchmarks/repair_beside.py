"""A repair beside training again: python -m benchmarks.repair_beside [--folder DIR --feature NAME]

One XGBoost model is trained on rows in which a feature plays a part, and then made less sensitive to it in several ways:
repaired, trained within a budget, trained with pairs, and trained again as others do. Each model is saved and loaded; its
largest gap is found and bounded by `ts.gap`, its price is counted on rows that were held out. Without a folder the rows are
made up by the formula of examples/train.py; a folder has `train.csv` and `test.csv`, whose last column holds labels 0 and 1.
Figures: benchmarks/repair.md.
"""

from __future__ import annotations

import argparse
import math
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
from examples.train import LOAN, applicants

import treesens as ts
from treesens.compiler.base.arrays import FloatArray
from treesens.data.tables import read_table
from treesens.extensions.studies.losses import area_under_curve

Method = Literal["average", "blend", "leaves"]
METHODS: tuple[Method, ...] = ("average", "blend", "leaves")


@dataclass(frozen=True, eq=False)
class Rows:
    """float64[rows, features], and labels float64[rows] that are 0 or 1."""

    x: FloatArray
    y: FloatArray

    def write(self, path: Path, names: list[str]) -> Path:
        """As CSV; a missing value is empty."""
        lines = [",".join([*names, "label"])]
        for row, label in zip(self.x.tolist(), self.y.tolist(), strict=True):
            lines.append(",".join("" if math.isnan(v) else repr(v) for v in [*row, label]))
        path.write_text("\n".join(lines) + "\n")
        return path


def read(path: Path) -> tuple[list[str], Rows]:
    """The columns of a file of numbers, whose last one is the label."""
    table = read_table(path)
    columns = list(table.columns)
    held = np.column_stack([table.numbers(name) for name in columns])
    return columns[:-1], Rows(held[:, :-1], held[:, -1])


def made_up() -> tuple[list[str], Rows, Rows]:
    """Rows of applicants, and others that are held out; a part of the income counts for one sex more than for the other."""
    x, y = applicants(rows=8000, seed=3)
    random = np.random.default_rng(3)
    favoured = (x[:, 5] == 1) & (x[:, 1] > 30) & (random.random(len(x)) < 0.35)
    y = np.where(favoured, 1.0, y.astype(np.float64))
    return list(LOAN), Rows(x[:4000], y[:4000]), Rows(x[4000:], y[4000:])


class Comparison:
    """The ways to train on some rows, for one feature by its number."""

    def __init__(self, names: list[str], train: Rows, test: Rows, feature: int, given: argparse.Namespace) -> None:
        self.names, self.train, self.test, self.feature, self.given = names, train, test, feature, given
        self.options = {"objective": "binary:logistic", "max_depth": given.depth, "eta": 0.1, "seed": 1}

    def trained(
        self, path: Path, *, rows: Rows | None = None, weight: FloatArray | None = None, budget: bool = False,
        out: bool = False, **options: Any,
    ) -> Path:  # fmt: skip
        """A model that is trained on some rows; `out` makes the feature equal in all of them."""
        import xgboost

        rows = rows or self.train
        x = rows.x.copy()
        if out:
            x[:, self.feature] = 0.0
        matrix = xgboost.DMatrix(x, rows.y, weight=weight, feature_names=self.names)
        callbacks = [ts.SwingBudget(self.names[self.feature], self._swing()).xgboost(matrix)] if budget else []
        booster = xgboost.train({**self.options, **options}, matrix, self.given.rounds, callbacks=callbacks)
        booster.save_model(path)
        return path

    def _swing(self) -> float:
        """The swing around one half that the gap allows."""
        return 2 * math.log((0.5 + self.given.gap) / (0.5 - self.given.gap))

    def weights(self) -> FloatArray:
        """Weights that make the feature and the label independent (Kamiran and Calders 2012), float64[rows]; a feature of many
        values is cut into five parts of as many rows each.
        """
        values = np.nan_to_num(self.train.x[:, self.feature])
        if len(np.unique(values)) > 5:
            values = np.searchsorted(np.quantile(values, [0.2, 0.4, 0.6, 0.8]), values)
        result = np.ones(len(values))
        for value in np.unique(values):
            for label in (0.0, 1.0):
                both = (values == value) & (self.train.y == label)
                if both.any():
                    result[both] = (values == value).mean() * (self.train.y == label).mean() / both.mean()
        return result

    def ways(self, folder: Path, model: Path, data: Path) -> Iterator[tuple[str, Callable[[Path], Path]]]:
        """Each way by its name, with what makes its file."""
        alone = self.names[self.feature]
        others = [name for name in self.names if name != alone]
        signs = tuple(int(i == self.feature) for i in range(len(self.names)))
        yield "as trained", self.trained
        yield "trained without the feature", lambda path: self.trained(path, out=True)
        yield "monotone constraint", lambda path: self.trained(path, monotone_constraints=signs)
        yield (
            "interaction constraint",
            lambda path: self.trained(path, interaction_constraints=[[alone], others]),
        )
        yield "reweighing", lambda path: self.trained(path, weight=self.weights())
        yield "trained with the pairs", lambda path: self.trained(path, rows=self._with_pairs(folder, model, data))
        yield "trained within a budget", lambda path: self.trained(path, budget=True)
        for method in METHODS:
            yield f"repaired, {method}", lambda path, method=method: self._repaired(path, model, data, method)

    def _with_pairs(self, folder: Path, model: Path, data: Path) -> Rows:
        pairs = folder / "pairs.csv"
        self._repair(model, data, method="average", pairs=pairs)
        if len(pairs.read_text("utf-8").splitlines()) < 2:  # no pair breaks the promise
            return self.train
        _, more = read(pairs)
        return Rows(np.concatenate([self.train.x, more.x]), np.concatenate([self.train.y, more.y]))

    def _repaired(self, path: Path, model: Path, data: Path, method: Method) -> Path:
        self._repair(model, data, method=method, output=path)
        return path

    def _repair(self, model: Path, data: Path, **options: Any) -> None:
        ts.repair(
            model, data, vary=[self.names[self.feature]], label="label", gap=self.given.gap,
            time_limit=self.given.seconds, **options,
        )  # fmt: skip

    def line(self, way: str, path: Path, before: float | None, seconds: float) -> tuple[str, float]:
        """The line of a model's file, and its loss."""
        import xgboost

        matrix = xgboost.DMatrix(self.test.x, feature_names=self.names)
        found = np.asarray(xgboost.Booster(model_file=path).predict(matrix), dtype=np.float64)
        loss = float(-np.log(np.where(self.test.y == 1, found, 1 - found)).mean())
        low, high = self._gap(path)
        gap = f"{low:.3f}" if high - low < 0.01 else f"{low:.3f} to {high:.3f}"
        price = "" if before is None else f"{loss - before:+.4f}"
        auc = area_under_curve(found, self.test.y)
        return f"| {way} | {gap} | {loss:.4f} | {price} | {auc:.4f} | {self._flips(path):.1%} | {seconds:.1f} |", loss

    def _gap(self, path: Path) -> tuple[float, float]:
        """The largest gap around one half in probability: what a pair reaches, and a proved bound."""
        if self.names[self.feature] not in ts.load(path).ensemble.used_features:
            return 0.0, 0.0
        (one,) = ts.gap(path, vary=[self.names[self.feature]], time_limit=self.given.seconds).records
        sides = [one["largest_gap"] or 0.0, one["largest_gap_bound"] or 0.0]
        low, high = (1 / (1 + math.exp(-side)) - 0.5 for side in sides)
        return low, high

    def _flips(self, path: Path) -> float:
        """The share of held out rows with another decision for another value of the feature."""
        import xgboost

        booster, values = xgboost.Booster(model_file=path), np.unique(self.train.x[:, self.feature])
        found = []
        for value in values if len(values) <= 32 else values[np.linspace(0, len(values) - 1, 32).astype(int)]:
            moved = self.test.x.copy()
            moved[:, self.feature] = value
            found.append(booster.predict(xgboost.DMatrix(moved, feature_names=self.names)) > 0.5)
        return float((np.any(found, axis=0) & ~np.all(found, axis=0)).mean())


def main() -> None:
    """Prints the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--folder", type=Path, help="train.csv and test.csv of numbers; the last column is the label")
    parser.add_argument("--feature", default="sex")
    parser.add_argument("--gap", type=float, default=0.1)
    parser.add_argument("--rounds", type=int, default=200)
    parser.add_argument("--depth", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=30.0, help="for the search for the best leaves, and for a gap")
    given = parser.parse_args()
    if given.folder is None:
        names, train, test = made_up()
    else:
        (names, train), (_, test) = (read(given.folder / name) for name in ("train.csv", "test.csv"))
    comparison = Comparison(names, train, test, names.index(given.feature), given)
    print("| way | largest gap | log loss | price | AUC | rows that flip | seconds |")
    print("| --- | --- | --- | --- | --- | --- | --- |")
    with tempfile.TemporaryDirectory() as name:
        folder, before = Path(name), None
        data = train.write(folder / "train.csv", names)
        for number, (way, make) in enumerate(comparison.ways(folder, folder / "0.json", data)):
            start = time.perf_counter()
            path = make(folder / f"{number}.json")
            line, loss = comparison.line(way, path, before, time.perf_counter() - start)
            before = loss if before is None else before
            print(line, flush=True)


if __name__ == "__main__":
    main()
