"""Recourse beside treecf (pip install treecf): the least l1 distance in [0, 1]^n to the other class, all features free.

    python -m benchmarks.recourse_treecf --rows 20 --time 5

Both answer the same rows of the same models, one after the other in one process: treecf by its exact backend, ours by the
search of `treesens robust`. CPU seconds; reading the model does not count. Rows with values outside of [0, 1] are left out.
"""

from __future__ import annotations

import argparse
import math
import pickle
import statistics
import time
import warnings
from dataclasses import dataclass, field
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
from benchmarks.published import FOLDER
from benchmarks.recourse import BOOSTED, FORESTS, forest, table_of


@dataclass
class Side:
    """What one of the two has found: distances (NaN without one), how many are proved, CPU seconds per row."""

    distance: list[float] = field(default_factory=list)
    proved: int = 0
    seconds: list[float] = field(default_factory=list)

    def cells(self) -> str:
        median, longest = 1000 * statistics.median(self.seconds), max(self.seconds)
        return f"{self.proved} | {median:.0f} | {longest:.2f} | {sum(self.seconds):.2f}"


def ours(model: Any, table: Any, rows: list[int], seconds: float) -> Side:
    from treesens.extensions.studies.robust import RobustOptions
    from treesens.extensions.studies.robust_search import ask as robustness
    from treesens.extensions.studies.study import Asking

    side, last = Side(), time.process_time()

    def note(row: Any) -> None:
        nonlocal last
        now = time.process_time()
        side.seconds.append(now - last)
        side.distance.append(math.nan if row.distance is None else row.distance)
        side.proved += row.closed
        last = now

    options = RobustOptions(rows=rows, norm="l1", time_limit=seconds, range=(Fraction(0), Fraction(1)))
    robustness(Asking((model,), table, options, advance=note))
    return side


def theirs(native: Any, model: Any, values: Any, rows: list[int], seconds: float) -> Side:
    import treecf

    warnings.simplefilter("ignore")
    names = list(model.ensemble.feature_names)
    ranges = [treecf.Range(name, 0.0, 1.0) for name in names]
    explainer = treecf.Explainer(native, constraints=ranges, normalizers=np.ones(len(names)))
    side = Side()
    for row in rows:
        x = values[row]
        up = model.ensemble.probabilities(model.ensemble.margins_emulated(x[None])).reshape(-1)[-1] <= 0.5
        # Scores of a forest are probabilities themselves.
        kind = treecf.Target.raw if model.ensemble.n_outputs > 1 else treecf.Target.probability
        target = kind(op=">=" if up else "<=", value=0.5)
        start = time.process_time()
        found = explainer.explain(x, target=target, backend="exact", time_budget_s=seconds, seed=0)
        side.seconds.append(time.process_time() - start)
        side.proved += getattr(found, "proof", "") in ("optimal", "certified")
        side.distance.append(float(getattr(found, "distance", math.nan)))
    return side


def line(name: str, native: Any, model: Any, table: Any, args: argparse.Namespace) -> str:
    """One model: both sides, and how many of treecf's distances are further, or nearer, by more than a millionth: it changes
    values in steps of float64, which the models read as float32.
    """
    values = np.column_stack([np.asarray(table.columns[n], np.float64) for n in model.ensemble.feature_names])
    values = values.astype(np.float32).astype(np.float64)
    inside = ((values >= 0) & (values <= 1)).all(axis=1)
    rows = np.flatnonzero(inside)[: args.rows].tolist()
    mine, other = ours(model, table, rows, args.time), theirs(native, model, values, rows, args.time)
    pairs = list(zip(mine.distance, other.distance, strict=True))
    further = sum(not b <= a + 1e-6 for a, b in pairs)
    nearer = sum(a > b + 1e-6 for a, b in pairs)
    return f"| {name} | {len(rows)} | {mine.cells()} | {other.cells()} | {further} | {nearer} |"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bench", type=Path, default=FOLDER, help="the folder of published models and data")
    parser.add_argument("--rows", type=int, default=20)
    parser.add_argument("--time", type=float, default=5.0, help="seconds of wall time for one row")
    parser.add_argument("--output", type=Path, default=Path("out/recourse"))
    args = parser.parse_args()
    from treesens.frontends.registry import load

    head = "proved | median, ms | longest, s | sum, s"
    print(f"| model | rows | {head} | treecf {head} | treecf further or none | nearer |")
    print("|" + " --- |" * 12, flush=True)
    for name, data in BOOSTED.items():
        import xgboost

        path = args.bench / "models" / f"{name}.json"
        table = table_of(args.bench / "data" / data / "train.csv", None)
        print(line(name, xgboost.Booster(model_file=path), load(path, None), table, args), flush=True)
    for data in FORESTS:
        path = forest(args.bench, args.output, data)
        model = load(path, None, trust_pickle=True)
        table = table_of(args.bench / "data" / data / "train.csv", model.ensemble.feature_names)
        native = pickle.loads(path.read_bytes())  # noqa: S301 (made by `forest`)
        print(line(f"forest_{data}", native, model, table, args), flush=True)


if __name__ == "__main__":
    main()
