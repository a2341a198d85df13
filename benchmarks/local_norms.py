"""Least distances to another class by l1, l2 and l0: how many rows are proved, and how long it takes.

    python -m benchmarks.local_norms --rows 50 --output out/local

The search of `treesens robust`, on the models of `benchmarks.local`; CPU seconds, verification included, reading left out.
Beside it, where the folder has them, the pairs of LT-attack (Zhang, Zhang, Hsieh, NeurIPS 2020).
"""

from __future__ import annotations

import argparse
import json
import statistics
import time
from fractions import Fraction
from pathlib import Path
from typing import Any

from benchmarks.local import PUBLISHED, models
from benchmarks.published import FOLDER

MODELS = (*PUBLISHED, "wide_254")
COLUMNS = (
    *("model", "norm", "rows", "proved", "bound above 0", "median, ms", "longest, s", "sum, s"),
    *("rows of LT-attack", "further by 1 %", "its sum of distances to ours"),
)


def attacked(bench: Path, model: str, norm: str) -> dict[int, float]:
    """The distances that LT-attack has reached, by row; none if the folder does not have them."""
    known = bench / "local" / "distances.jsonl"
    records = map(json.loads, known.read_text().splitlines() if known.is_file() else ())
    return {
        r["row"]: r["upper"]
        for r in records
        if (r["model"], r["norm"], r["source"]) == (model, norm, "LT-attack") and r["upper"] is not None
    }


def measure(model: Path, table: Path, norm: str, rows: list[int], seconds: float) -> tuple[list[Any], list[float]]:
    """What is known of each row, and CPU seconds; binding counts for the first."""
    from treesens.data.tables import read_table
    from treesens.extensions.studies.robust import RobustOptions
    from treesens.extensions.studies.robust_search import ask as robustness
    from treesens.extensions.studies.study import Asking
    from treesens.frontends.registry import load

    loaded, data = load(model, None), read_table(table)
    options = RobustOptions(rows=rows, norm=norm, time_limit=seconds, range=(Fraction(0), Fraction(1)))
    spent: list[float] = []
    last = time.process_time()

    def note(_row: Any) -> None:
        nonlocal last
        now = time.process_time()
        spent.append(now - last)
        last = now

    return robustness(Asking((loaded,), data, options, advance=note)).result.rows, spent


def line(name: str, norm: str, found: list[Any], spent: list[float], known: dict[int, float]) -> str:
    """One line of the table."""
    both = [(row.distance, known[row.row]) for row in found if row.row in known and row.distance is not None]
    ours = sum(mine for mine, _ in both)
    cells = (
        name,
        norm,
        len(found),
        sum(row.closed for row in found),
        sum(row.bound is not None and row.bound > 0 for row in found),
        f"{1000 * statistics.median(spent):.1f}",
        f"{max(spent):.2f}",
        f"{sum(spent):.2f}",
        len(both) or "",
        sum(mine > 1.01 * theirs for mine, theirs in both) if both else "",
        f"{sum(theirs for _, theirs in both) / ours:.3f}" if ours > 0 else "",
    )
    return "| " + " | ".join(map(str, cells)) + " |"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "--bench", type=Path, default=FOLDER, help="the folder of published models, with rows in `local/`"
    )
    parser.add_argument("--rows", type=int, default=50)
    parser.add_argument("--time", type=float, default=10.0, help="seconds for one row")
    parser.add_argument("--norms", type=lambda t: t.split(","), default=["l1", "l2", "l0"])
    parser.add_argument("--models", type=lambda t: t.split(","), default=list(MODELS))
    parser.add_argument("--output", type=Path, default=Path("out/local"))
    args = parser.parse_args()
    print("| " + " | ".join(COLUMNS) + " |", "|" + " --- |" * len(COLUMNS), sep="\n", flush=True)
    for name, model, table in models(args):
        for norm in args.norms:
            found, spent = measure(model, table, norm, list(range(args.rows)), args.time)
            print(line(name, norm, found, spent, attacked(args.bench, name, norm)), flush=True)


if __name__ == "__main__":
    main()
