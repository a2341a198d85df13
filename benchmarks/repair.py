"""What a proved repair costs on the published models: python -m benchmarks.repair (after `make bench-data`)

Every (model, feature) pair is repaired to several gaps by every method. The file is read again by the stock library and proved
with its certificate; prices are those of rows that were held out. Figures: benchmarks/repair.md.
"""

from __future__ import annotations

import argparse
import json
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from benchmarks.published import FOLDER

import treesens as ts
from treesens.data.tables import Table, read_table

CASES = tuple(
    (model, data, feature)
    for model, data, features in (
        ("adult_t300_d5", "adult", ("sex", "race", "age", "relationship")),
        ("churn_t200_d5", "churn", ("gender", "SeniorCitizen", "Partner", "Dependents")),
        ("german_credit_t500_d5", "german_credit", ("Status", "Age", "PersonalStatusSex", "ForeignWorker")),
        ("pimadiabetes_t200_d5", "pimadiabetes", ("Age",)),
        ("adult_t200_d5", "adult", ("sex", "race", "age", "marital-status", "native-country")),
        ("adult_t500_d5", "adult", ("sex", "race")),
        ("churn_t500_d5", "churn", ("gender", "SeniorCitizen")),
    )
    for feature in features
)
GAPS = (0.1, 0.05, 0.2)
METHODS = ("average", "blend", "leaves")


def table(folder: Path, name: str) -> Table:
    """A table of labelled rows: the last column is the label, whatever it is called."""
    found = read_table(folder / name)
    last = found.inputs[-1]
    return replace(found, columns={"label" if c == last else c: v for c, v in found.columns.items()}, label="label")


def runs(
    bench: Path, seconds: float, certificates: Path, gaps: Sequence[float], cases: Sequence[tuple[str, str, str]]
) -> Iterator[dict[str, Any]]:
    """The record of every model, feature, gap and method."""
    for gap in gaps:
        for model, data, feature in cases:
            names = ("train.csv", "test.csv")
            tables = [table(bench / "data" / data, name) for name in names if (bench / "data" / data / name).exists()]
            for method in METHODS:
                start = time.perf_counter()
                found = ts.repair(
                    bench / "models" / f"{model}.json", tables[0], test=tables[-1], vary=[feature], label="label", gap=gap,
                    method=method, time_limit=seconds, certificates=certificates,
                )  # fmt: skip
                (record,) = found.records
                took = round(time.perf_counter() - start, 1)
                yield {"model": model, "feature": feature, "gap": gap, "seconds": took, "record": record}


def line_of(found: dict[str, Any]) -> str:
    """A line of the table."""
    record = found["record"]
    head = f"| {found['model']}, {found['feature']} | {found['gap']:g} | {record['method']} |"
    if not record["proved"]:
        return f"{head} not proved | | | | | {found['seconds']:g} |"
    price, swing = record["prices"]["test"], record["proofs"][0]["largest_swing"]
    auc = f"{price['auc_before']:.4f} → {price['auc_after']:.4f}"
    changed = f"{price['decisions_changed'] / price['rows']:.1%}"
    swings = f"{swing['before'] or 0:.2f} → {swing['after'] or 0:.2f}"
    loss = price["loss_after"] - price["loss_before"]
    return f"{head} {price['loss_before']:.4f} | {loss:+.4f} | {auc} | {changed} | {swings} | {found['seconds']:g} |"


def main() -> None:
    """Runs all and prints the table; records go to a file of lines, if one is named."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--bench", type=Path, default=FOLDER)
    parser.add_argument("--case", nargs=3, metavar=("MODEL", "DATA", "FEATURE"), help="this pair alone")
    parser.add_argument("--seconds", type=float, default=120.0, help="for the search for the best leaves")
    parser.add_argument("--records", type=Path, help="a file of JSON lines")
    parser.add_argument("--gaps", type=float, nargs="+", default=GAPS)
    parser.add_argument("--features", nargs="+", default=[feature for _, _, feature in CASES])
    given = parser.parse_args()
    cases = [tuple(given.case)] if given.case else [case for case in CASES if case[2] in given.features]
    print("| model, feature | gap | method | log loss | price | AUC | decisions changed | largest swing | seconds |")
    print("| --- | --- | --- | --- | --- | --- | --- | --- | --- |")
    with tempfile.TemporaryDirectory() as folder:
        for found in runs(given.bench, given.seconds, Path(folder), given.gaps, cases):
            print(line_of(found), flush=True)
            if given.records is not None:
                with given.records.open("a") as file:
                    file.write(json.dumps(found) + "\n")


if __name__ == "__main__":
    main()
