"""Reasons of rows: how long a minimal and a smallest one take, and PyXAI on models that it can load.

    python -m benchmarks.reasons --rows 200
    python -m benchmarks.reasons --rows 20 --pyxai

CPU per row, the first row with binding. The two do not answer the same question: PyXAI's reasons (pip install pyxai; Audemard
et al., IJCAI 2023) are made of conditions of the trees, ours fix features at their values. Of forests it takes the vote of the
majority, of boosted trees "tree-specific" reasons, which may hold more than is needed.
"""

from __future__ import annotations

import argparse
import resource
import statistics
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np
from benchmarks.published import FOLDER

from treesens.data.tables import Table, read_table
from treesens.extensions.studies.study import Asking
from treesens.extensions.studies.why import WhyOptions
from treesens.extensions.studies.why_search import Reason
from treesens.extensions.studies.why_search import ask as reasons
from treesens.frontends.base import LoadedModel
from treesens.frontends.registry import load

MODELS = {
    "adult_t300_d5": "adult",
    "german_credit_t500_d5": "german_credit",
    "pimadiabetes_t500_d6": "pimadiabetes",
    "churn_t500_d5": "churn",
}


def ours(model: LoadedModel, table: Table, rows: list[int], *, smallest: bool) -> str:
    """Known, median and longest, and features in the median."""
    last, cpu = time.process_time(), list[float]()

    def note(_: Reason) -> None:
        nonlocal last
        now = time.process_time()
        cpu.append(now - last)
        last = now

    options = WhyOptions(rows=rows, smallest=smallest, time_limit=20.0)
    found = reasons(Asking((model,), table, options, advance=note)).result
    sizes = [len(one.features) for one in found if one.features is not None]
    return f"{len(sizes)} | {1000 * statistics.median(cpu):.0f} | {max(cpu):.2f} | {statistics.median(sizes):.0f}"


def theirs(estimator: Any, x: Any, rows: list[int]) -> str:
    """PyXAI on a live model: the same figures, with the CPU of the solver that it starts."""
    from pyxai import Explaining, Learning

    forest = "Forest" in type(estimator).__name__
    kind = "random-forest" if forest else "boosted-tree"
    kinds = {"problem_type": "classification", "instances_type": "tabular", "labels_type": "classes"}
    _, model = Learning.ModelIO.import_models([estimator], model_type=kind, **kinds)
    explainer = Explaining.initialize(model)
    cpu, sizes = list[float](), list[int]()
    for row in rows:
        start = _spent()
        explainer.set_instance(x[row])
        reason = (
            explainer.sufficient_reason(time_limit=20) if forest else explainer.tree_specific_reason(n_iterations=1)
        )
        cpu.append(_spent() - start)
        if reason is not None:
            used = {text.split(" ")[0].lstrip("(") for text in explainer.to_features(reason)}
            sizes.append(len(used))
    return f"{len(sizes)} | {1000 * statistics.median(cpu):.0f} | {max(cpu):.2f} | {statistics.median(sizes):.0f}"


def _spent() -> float:
    """CPU seconds of this process and of those that it has waited for."""
    children = resource.getrusage(resource.RUSAGE_CHILDREN)
    return time.process_time() + children.ru_utime + children.ru_stime


def side_by_side(bench: Path, data: str, rows: int) -> None:
    import pandas as pd
    import xgboost
    from sklearn.ensemble import RandomForestClassifier

    frame = pd.read_csv(bench / "data" / data / "train.csv")
    x, y = frame.drop(columns="label").to_numpy(np.float32), frame["label"].to_numpy()
    table = read_table(bench / "data" / data / "train.csv", label="label")
    names = [c for c in frame.columns if c != "label"]
    for words, estimator in (
        ("forest, 100 trees of depth 8", RandomForestClassifier(100, max_depth=8, random_state=0).fit(x, y)),
        (
            "boosted, 100 trees of depth 5",
            xgboost.XGBClassifier(n_estimators=100, max_depth=5, base_score=0.5).fit(x, y),
        ),
    ):
        model = load(estimator)
        columns = {f: table.columns[n] for f, n in zip(model.ensemble.feature_names, names, strict=True)}
        renamed = Table(data, columns, table.rows)
        chosen = list(range(rows))
        mine, other = ours(model, renamed, chosen, smallest=False), theirs(estimator, x, chosen)
        print(f"| {data}, {words} | {rows} | {mine} | {other} |", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bench", type=Path, default=FOLDER, help="the folder of published models and data")
    parser.add_argument("--rows", type=int, default=200)
    parser.add_argument("--pyxai", action="store_true", help="beside PyXAI, on models that are trained here")
    args = parser.parse_args()
    warnings.simplefilter("ignore")
    head = "known | median, ms | longest, s | features"
    if args.pyxai:
        print(f"| model | rows | {head} | PyXAI {head} |\n|" + " --- |" * 10, flush=True)
        for data in ("pimadiabetes", "german_credit"):
            side_by_side(args.bench, data, args.rows)
        return
    print(f"| model | rows | {head} | smallest: {head} |\n|" + " --- |" * 10, flush=True)
    for name, data in MODELS.items():
        model = load(args.bench / "models" / f"{name}.json")
        table = read_table(args.bench / "data" / data / "train.csv", label="label")
        chosen = list(range(min(args.rows, table.rows)))
        both = (ours(model, table, chosen, smallest=smallest) for smallest in (False, True))
        print(f"| {name} | {len(chosen)} | " + " | ".join(both) + " |", flush=True)


if __name__ == "__main__":
    main()
