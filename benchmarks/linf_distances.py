"""Least L-infinity distances to rows, against a bisection over decisions: every closed one must be equal.

    python -m benchmarks.linf_distances --rows 50 --seeds 0,1 [--models diabetes_robust,...]

For every model and row the question is the nearest input in [0, 1]^n of the other class. The bisection asks decisions
only (`distance(a, row, linf) <= d`), with limits as floats; `--pipelines` solves the objective on the solvers' pipelines too.
"""

from __future__ import annotations

import argparse
import csv
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from benchmarks.published import FOLDER

MODELS = ("breast_cancer", "diabetes", "ijcnn")
KINDS = ("robust", "unrobust")
CLOSE = 1e-7


def questions(bench: Path, model: str, data: str, rows: list[int], goals: list[str]) -> str:
    """One file: a question per row and goal, each with `{row}` and `{label}` filled in."""
    table = bench / "local" / f"rows_{data}.csv"
    with table.open() as file:
        names = next(csv.reader(file))
    lines = [f'model m from "{bench / "models" / model}.json"', f'data d from "{table}"']
    lines += [f"feature {name}: real in [0, 1]" for name in names]
    for row, goal in zip(rows, goals, strict=True):
        lines.append(f"query r{row}: {goal}")
    return "\n".join(lines) + "\n"


@dataclass
class Tally:
    """What was found of one model, backend, pipeline and seed."""

    closed: int = 0
    false: list[tuple[int, float, float]] = field(default_factory=list)
    open: int = 0
    seconds: float = 0.0


def labels_of(bench: Path, model: str, data: str, rows: list[int]) -> list[int]:
    """The class that is not the row's own, by xgboost itself."""
    import numpy as np
    import xgboost as xgb

    booster = xgb.Booster(model_file=str(bench / "models" / f"{model}.json"))
    with (bench / "local" / f"rows_{data}.csv").open() as file:
        table = list(csv.reader(file))
    values = np.array([table[1 + row] for row in rows], np.float32)
    matrix = xgb.DMatrix(values, feature_names=booster.feature_names)
    margins = np.asarray(booster.predict(matrix, output_margin=True))
    return [0 if margin > 0 else 1 for margin in margins]


def bisected(
    bench: Path, model: str, data: str, row: int, label: int, backend: str, known: float
) -> tuple[float, float]:
    """An interval that holds the least distance, by decisions alone; `known` is tried from both sides first."""
    low, high = -1.0, 1.0
    tries = [known, known - CLOSE]
    while high - low > CLOSE and (tries or high - low > CLOSE):
        limit = tries.pop(0) if tries else (low + high) / 2
        if not low < limit < high:
            continue
        goal = f"find a such that class(a) = {label}; distance(a, row {row} of d, linf) <= {max(limit, 0.0):.17g}"
        found = limit >= 0 and str(asked(bench, model, data, [row], [goal], backend=backend)[row].verdict) == "found"
        low, high = (low, limit) if found else (limit, high)
    return low, high


def asked(bench: Path, model: str, data: str, rows: list[int], goals: list[str], **options: Any) -> dict[int, Any]:
    """The answers by row."""
    import tempfile

    import treesens as ts

    with tempfile.NamedTemporaryFile("w", suffix=".sens", delete=False) as file:
        file.write(questions(bench, model, data, rows, goals))
    try:
        answers = ts.check(file.name, **options)
        return {row: answers[f"r{row}"] for row in rows}
    finally:
        Path(file.name).unlink()


def run(args: argparse.Namespace) -> Iterator[tuple[str, str, str, int, Tally]]:
    """Everything that is asked, one line of the table after the other."""
    for model in args.models:
        data = model.rsplit("_", 1)[0]
        rows = list(range(args.rows))
        labels = labels_of(args.bench, model, data, rows)
        goals = [
            f"find a such that class(a) = {label}\n  minimize distance(a, row {row} of d, linf)"
            for row, label in zip(rows, labels, strict=True)
        ]
        truth: dict[int, tuple[float, float]] = {}
        for backend, pipeline in args.settings:
            for seed in args.seeds:
                tally = Tally()
                start = time.perf_counter()
                options = {"backend": backend, "pipeline": pipeline, "seed": seed, "time_limit": args.time}
                found = asked(args.bench, model, data, rows, goals, **options)
                tally.seconds = time.perf_counter() - start
                for row, label in zip(rows, labels, strict=True):
                    goal = found[row].result.objective
                    if goal is None or goal.gap is None or goal.gap > 1e-4:
                        tally.open += 1
                        continue
                    tally.closed += 1
                    if row not in truth:
                        truth[row] = bisected(args.bench, model, data, row, label, args.decide, goal.value)
                    low, high = truth[row]
                    slack = CLOSE + goal.gap
                    if not low - slack <= goal.value <= high + slack or goal.bound > high + CLOSE:
                        tally.false.append((row, goal.value, high))
                yield model, backend, pipeline, seed, tally


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bench", type=Path, default=FOLDER)
    parser.add_argument("--rows", type=int, default=50)
    parser.add_argument("--time", type=float, default=30.0, help="seconds for one question")
    parser.add_argument("--seeds", type=lambda t: [int(s) for s in t.split(",")], default=[0, 1])
    parser.add_argument("--models", type=lambda t: t.split(","), default=[f"{m}_{k}" for m in MODELS for k in KINDS])
    parser.add_argument("--decide", default="native", help="the backend of the bisection")
    parser.add_argument(
        "--settings",
        type=lambda t: [tuple(s.split(":")) for s in t.split(",")],
        default=[("native", "default")],
        help="BACKEND:PIPELINE,... that minimise",
    )
    args = parser.parse_args()
    print("| model | by | pipeline | seed | closed | false | open | seconds |")
    print("| --- | --- | --- | --- | --- | --- | --- | --- |")
    for model, backend, pipeline, seed, tally in run(args):
        row = (model, backend, pipeline, seed, tally.closed, len(tally.false), tally.open, f"{tally.seconds:.1f}")
        print("| " + " | ".join(map(str, row)) + " |", flush=True)
        for number, value, least in tally.false:
            print(f"    row {number}: {value} closed, {least} by decisions")


if __name__ == "__main__":
    main()
