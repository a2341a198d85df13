"""Local questions in one session: what each costs after the first, by kind and model.

    python -m benchmarks.sessions --rows 40

CPU and wall time of the median question in ms, verification included; the first question of a kind is left out: it compiles.
"flip": an input of the other class that differs from a row in two features; "ball": one within 0.05 of a row by linf; "pair":
two inputs of two classes around a row that differ in one feature; "least ..": the nearest input of the other class, proved.
"""

from __future__ import annotations

import argparse
import statistics
import time
from pathlib import Path

from benchmarks.published import FOLDER

import treesens as ts
from treesens.data.tables import read_table

MODELS = {
    "breast_cancer_unrobust": "breast_cancer",
    "diabetes_unrobust": "diabetes",
    "ijcnn_robust": "ijcnn",
    "adult_t300_d5": "adult",
    "churn_t500_d5": "churn",
    "german_credit_t500_d5": "german_credit",
    "pimadiabetes_t500_d6": "pimadiabetes",
}


def rows_of(bench: Path, data: str) -> Path:
    """A table for a model: the rows that distances were measured for, or those of its training."""
    measured = bench / "local" / f"rows_{data}.csv"
    return measured if measured.exists() else bench / "data" / data / "train.csv"


def questions(row: int, cls: object, first: str, second: str) -> dict[str, str]:
    """Kinds of questions about a row and another class."""
    near = f"distance(a, row {row} of d, linf) <= 0.05"
    found = {
        "flip": f"find a such that class(a) = {cls}; a = row {row} of d except {{`{first}`, `{second}`}}",
        "ball": f"find a such that class(a) = {cls}; {near}",
        "pair": f"find a, b such that a = b except `{first}`; class(a) != class(b); {near}",
    }
    for norm in ("linf", "l2", "l1", "l0"):
        found[f"least {norm}"] = f"find a such that class(a) = {cls}  minimize distance(a, row {row} of d, {norm})"
    return found


def line(model: Path, table: Path, rows: int) -> str:
    loaded = ts.load(model)
    names = [f for f in loaded.ensemble.feature_names if f in loaded.ensemble.used_features]
    count = min(rows, read_table(table).rows)
    cells: list[str] = []
    with ts.session(loaded, table, label=None if "label" not in table.read_text()[:4000] else "label") as s:
        margins = [s.ask(f"find a such that a = row {r} of d; margin(a) > 0").verdict == "found" for r in range(count)]
        for kind in questions(0, 0, names[0], names[1]):
            cpu, wall = [], []
            for r in range(count):
                cls = loaded.ensemble.classes[0 if margins[r] else 1]
                text = questions(r, cls, names[r % len(names)], names[(r + 3) % len(names)])[kind]
                start, begun = time.process_time(), time.perf_counter()
                s.ask(text)
                cpu.append(1000 * (time.process_time() - start))
                wall.append(1000 * (time.perf_counter() - begun))
            cells.append(f"{statistics.median(cpu[1:]):.1f} / {statistics.median(wall[1:]):.1f}")
    return f"| {model.stem} | " + " | ".join(cells) + " |"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bench", type=Path, default=FOLDER, help="the folder of published models and data")
    parser.add_argument("--rows", type=int, default=40)
    args = parser.parse_args()
    print("| model | " + " | ".join(questions(0, 0, "", "")) + " |\n" + "|" + " --- |" * 8, flush=True)
    for name, data in MODELS.items():
        print(line(args.bench / "models" / f"{name}.json", rows_of(args.bench, data), args.rows), flush=True)


if __name__ == "__main__":
    main()
