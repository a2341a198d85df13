"""Least L-infinity distances to another class, side by side with Veritas (PyPI: dtai-veritas), in one process on one core.

    python -m benchmarks.local --rows 50 --output out/local

Ours is the search of `treesens robust`: value = bound to the last float, the input found replayed exactly and by the library's
arithmetic. Veritas' bisection starts at 0.5 and stops at an interval of 2e-4. CPU seconds; reading models is left out for both.
"""

from __future__ import annotations

import argparse
import csv
import json
import statistics
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np
from benchmarks.published import FOLDER

PUBLISHED = tuple(
    f"{name}_{kind}" for name in ("breast_cancer", "diabetes", "ijcnn") for kind in ("robust", "unrobust")
)
WIDE = {"wide_254": (254, 100), "wide_784": (784, 100), "wide_784_large": (784, 400)}
"""Trained here: features, trees of depth 6."""
CLOSE = 2e-4
START = 0.5


@dataclass
class Side:
    """CPU seconds per row; intervals that hold the least distance, None where nothing is known."""

    seconds: list[float] = field(default_factory=list)
    intervals: list[tuple[float, float] | None] = field(default_factory=list)
    ends: list[float] = field(default_factory=list)


def train(folder: Path, name: str) -> tuple[Path, Path]:
    """A model of `WIDE` and rows that it was not trained on; kept from run to run."""
    import xgboost as xgb
    from sklearn.datasets import make_classification

    features, trees = WIDE[name]
    model, table = folder / f"{name}.json", folder / f"{name}.csv"
    if model.exists() and table.exists():
        return model, table
    x, y = make_classification(4000, features, n_informative=features // 6, random_state=0)
    x = ((x - x.min(axis=0)) / (x.max(axis=0) - x.min(axis=0))).astype(np.float32)
    names = [f"f{i}" for i in range(features)]
    booster = xgb.train(
        {"max_depth": 6, "objective": "binary:logistic", "eta": 0.2, "nthread": 1, "seed": 0},
        xgb.DMatrix(x[:3500], y[:3500], feature_names=names),
        num_boost_round=trees,
    )
    folder.mkdir(parents=True, exist_ok=True)
    booster.save_model(model)
    with table.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(names)
        writer.writerows([repr(float(v)) for v in row] for row in x[3500:])
    return model, table


def ours(model: Path, table: Path, rows: list[int], seconds: float) -> Side:
    """Every row by the search of `treesens robust`; binding and compiling count for the first one."""
    from treesens.compiler.result import Verdict
    from treesens.data.tables import read_table
    from treesens.extensions.studies.robust import RobustOptions
    from treesens.extensions.studies.robust_search import ask as robustness
    from treesens.extensions.studies.study import Asking
    from treesens.frontends.registry import load

    loaded, data = load(model, None), read_table(table)
    options = RobustOptions(rows=rows, time_limit=seconds, range=(Fraction(0), Fraction(1)))
    side = Side()
    last = time.process_time()

    def note(row: Any) -> None:
        nonlocal last
        now = time.process_time()
        side.seconds.append(now - last)
        last = now
        none = row.verdict is Verdict.NONE
        known = None if row.bound is None or (row.distance is None and not none) else (row.bound, row.distance)
        side.intervals.append((np.inf, np.inf) if none else known)

    robustness(Asking((loaded,), data, options, advance=note))
    return side


def as_veritas(model: Path, values: Any, margins: Any, moved: Mapping[int, int] = MappingProxyType({})) -> Any:
    """The ensemble for Veritas, which knows features that are `moved` by other numbers.

    Its own reader takes `base_weights` for the values of leaves, which older files keep elsewhere.

    Raises ValueError if it does not score the rows as XGBoost does.
    """
    import veritas

    learner = json.loads(model.read_text(), parse_float=np.float32)["learner"]
    ensemble = veritas.AddTree(1, veritas.AddTreeType.REGR)
    for tree in learner["gradient_booster"]["model"]["trees"]:
        made = ensemble.add_tree()
        waiting = [(0, made.root())]
        while waiting:
            node, place = waiting.pop()
            if tree["left_children"][node] < 0:
                made.set_leaf_value(place, 0, tree["split_conditions"][node])
                continue
            feature = tree["split_indices"][node]
            made.split(place, moved.get(feature, feature), tree["split_conditions"][node])
            waiting.append((tree["right_children"][node], made.right(place)))
            waiting.append((tree["left_children"][node], made.left(place)))
    apart = margins - ensemble.eval(values)[:, 0]
    if apart.max() - apart.min() > 1e-3:
        raise ValueError(f"{model}: scores differ by {apart.min()} to {apart.max()}")
    ensemble.set_base_score(0, float(np.median(apart)))
    return ensemble


def veritas(model: Path, table: Path, rows: list[int], seconds: float) -> Side:
    """The same rows by Veritas."""
    import veritas
    import xgboost as xgb

    booster = xgb.Booster(model_file=str(model))
    values = np.genfromtxt(table, delimiter=",", skip_header=1, dtype=np.float32)
    margins = booster.predict(xgb.DMatrix(values, feature_names=booster.feature_names), output_margin=True)
    ensemble = as_veritas(model, values, margins)
    side = Side()
    for row in rows:
        source, target = (ensemble, None) if margins[row] > 0 else (None, ensemble)
        start = time.process_time()
        search = veritas.VeritasRobustnessSearch(
            values[row].tolist(),
            START,
            source,
            target,
            num_steps=20,
            max_time=seconds,
            stop_condition=lambda low, high: high - low < CLOSE,
            silent=True,
        )
        _, low, high = search.search()
        side.seconds.append(time.process_time() - start)
        side.ends.append(high)
        side.intervals.append((low, nearest_flip(booster, values[row], margins[row], search.generated_examples)))
    return side


def nearest_flip(booster: Any, row: Any, margin: float, examples: list[Any]) -> float:
    """The distance of the nearest example that XGBoost puts into the other class; infinite without one."""
    import xgboost as xgb

    if not examples:
        return np.inf
    points = np.array(examples, np.float32)
    found = booster.predict(xgb.DMatrix(points, feature_names=booster.feature_names), output_margin=True)
    flipped = points[(found > 0) != (margin > 0)]
    return float(np.abs(flipped - row).max(axis=1).min()) if len(flipped) else np.inf


def line(name: str, mine: Side, other: Side) -> str:
    """One line of the table."""
    closed = sum(i is not None and i[0] == i[1] for i in mine.intervals)
    both = [(m, v) for m, v in zip(mine.intervals, other.intervals, strict=True) if m is not None and v is not None]
    # Ours against what Veritas has proved, and against its examples.
    apart = sum(m[1] < v[0] - 1e-6 or m[0] > v[1] + 1e-6 for m, v in both)
    ends = zip(other.intervals, other.ends, strict=True)
    done = sum(v is not None and (end - v[0] < CLOSE or v[0] >= START - CLOSE) for v, end in ends)
    wrong = sum(m[0] > end + 1e-6 for (m, _), end in zip(both, other.ends, strict=True) if end < START)
    cells = (
        name,
        len(mine.seconds),
        closed,
        f"{1000 * statistics.median(mine.seconds):.1f}",
        f"{1000 * mine.seconds[0]:.0f}",
        f"{sum(mine.seconds):.2f}",
        done,
        f"{1000 * statistics.median(other.seconds):.1f}",
        f"{sum(other.seconds):.2f}",
        f"{sum(mine.seconds) / sum(other.seconds):.2f}",
        wrong,
        apart,
    )
    return "| " + " | ".join(map(str, cells)) + " |"


COLUMNS = (
    *("model", "rows", "proved", "median, ms", "first row, ms", "sum, s"),
    *("Veritas done", "median, ms", "sum, s", "ratio of sums", "its end too near", "apart"),
)


def models(args: argparse.Namespace) -> Iterator[tuple[str, Path, Path]]:
    for name in args.models:
        if name in WIDE:
            yield name, *train(args.output, name)
        else:
            yield (
                name,
                args.bench / "models" / f"{name}.json",
                args.bench / "local" / f"rows_{name.rsplit('_', 1)[0]}.csv",
            )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "--bench", type=Path, default=FOLDER, help="the folder of published models, with rows in `local/`"
    )
    parser.add_argument("--rows", type=int, default=50)
    parser.add_argument("--time", type=float, default=10.0, help="seconds for one row")
    parser.add_argument("--models", type=lambda t: t.split(","), default=[*PUBLISHED, *WIDE])
    parser.add_argument("--output", type=Path, default=Path("out/local"))
    args = parser.parse_args()
    print("| " + " | ".join(COLUMNS) + " |", "|" + " --- |" * len(COLUMNS), sep="\n", flush=True)
    for name, model, table in models(args):
        rows = list(range(args.rows))
        mine = ours(model, table, rows, args.time)
        print(line(name, mine, veritas(model, table, rows, args.time)), flush=True)


if __name__ == "__main__":
    main()
