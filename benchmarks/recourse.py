"""Recourse: the cheapest change (l1, all features free) that gives a row another class, with its proof.

    python -m benchmarks.recourse --rows 20 --time 5

Published boosted models, and scikit-learn forests of 100 trees of depth 8 trained on the same data (kept in `--output`). CPU
seconds by the search of `treesens robust`, replay included; reading the model does not count, the first row includes binding.
"""

from __future__ import annotations

import argparse
import pickle
import statistics
import time
from pathlib import Path
from typing import Any

import numpy as np
from benchmarks.published import FOLDER

BOOSTED = {"adult_t300_d5": "adult", "german_credit_t500_d5": "german_credit", "pimadiabetes_t500_d6": "pimadiabetes"}
FORESTS = ("german_credit", "pimadiabetes", "adult")


def forest(bench: Path, folder: Path, data: str) -> Path:
    """A forest over the columns of the table; kept from run to run."""
    from sklearn.ensemble import RandomForestClassifier

    path = folder / f"forest_{data}.pkl"
    if not path.exists():
        folder.mkdir(parents=True, exist_ok=True)
        values = np.genfromtxt(bench / "data" / data / "train.csv", delimiter=",", names=True)
        names = [name for name in values.dtype.names or () if name != "label"]
        x = np.column_stack([values[name] for name in names])
        model = RandomForestClassifier(n_estimators=100, max_depth=8, random_state=0, n_jobs=1).fit(x, values["label"])
        path.write_bytes(pickle.dumps(model))
    return path


def solve(model: Any, table: Any, rows: list[int], seconds: float) -> str:
    """The cells of one line: rows, proved, and CPU seconds."""
    from treesens.extensions.studies.robust import RobustOptions
    from treesens.extensions.studies.robust_search import ask as robustness
    from treesens.extensions.studies.study import Asking

    spent: list[float] = []
    last = time.process_time()

    def note(_row: Any) -> None:
        nonlocal last
        now = time.process_time()
        spent.append(now - last)
        last = now

    options = RobustOptions(rows=rows, norm="l1", time_limit=seconds)
    found = robustness(Asking((model,), table, options, advance=note)).result.rows
    closed = sum(row.closed for row in found)
    bounded = sum(row.bound is not None and row.bound > 0 for row in found)
    cells = (
        len(found),
        closed,
        bounded,
        f"{1000 * statistics.median(spent):.0f}",
        f"{max(spent):.2f}",
        f"{sum(spent):.2f}",
    )
    return " | ".join(map(str, cells))


def table_of(path: Path, names: tuple[str, ...] | None) -> Any:
    """The rows; for a forest without names its columns are called as the model calls them."""
    from treesens.data.tables import Table, read_table

    table = read_table(path, label="label")
    if names is None:
        return table
    columns = [name for name in table.columns if name != "label"]
    renamed = {new: table.columns[old] for new, old in zip(names, columns, strict=True)}
    return Table(**{**vars(table), "columns": renamed, "label": None})


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bench", type=Path, default=FOLDER, help="the folder of published models and data")
    parser.add_argument("--rows", type=int, default=20)
    parser.add_argument("--time", type=float, default=5.0, help="seconds for one row")
    parser.add_argument("--output", type=Path, default=Path("out/recourse"))
    args = parser.parse_args()
    from treesens.frontends.registry import load

    print(
        "| model | rows | proved | bound above 0 | median, ms | longest, s | sum, s |",
        "|" + " --- |" * 7,
        sep="\n",
        flush=True,
    )
    rows = list(range(args.rows))
    for name, data in BOOSTED.items():
        model = load(args.bench / "models" / f"{name}.json", None)
        table = table_of(args.bench / "data" / data / "train.csv", None)
        print(f"| {name} | {solve(model, table, rows, args.time)} |", flush=True)
    for data in FORESTS:
        model = load(forest(args.bench, args.output, data), None, trust_pickle=True)
        table = table_of(args.bench / "data" / data / "train.csv", model.ensemble.feature_names)
        print(f"| forest_{data} (100 trees of depth 8) | {solve(model, table, rows, args.time)} |", flush=True)


if __name__ == "__main__":
    main()
