"""How much of the inputs is concerned: a sample of the published instances that are `found`, and a family of small models.

    python -m benchmarks.shares --seconds 60 > out.jsonl
    python -m benchmarks.shares --family > family.jsonl

    python -m benchmarks.shares --tiny 10000
    python -m benchmarks.shares --every 1 --known all.jsonl >> all.jsonl  # goes on after an interruption

Every line has CPU seconds, the proved interval and the estimate of one instance, by `uniform` and by `marginals`.
"""

from __future__ import annotations

import json
import resource
import time
from pathlib import Path
from typing import Any
from zlib import crc32

import click
from benchmarks.published import FOLDER, VERDICTS
from tests.extensions.measure.xcount import ensemble_of, searches

from treesens.compiler.base.budget import Budget
from treesens.data.tables import align_table, read_table
from treesens.extensions.measure.counted import counted_of
from treesens.extensions.measure.measures import measure_of
from treesens.extensions.measure.precision import Precision
from treesens.extensions.measure.search import ShareSearch
from treesens.extensions.measure.share import Share, ShareRun
from treesens.extensions.studies.count import CountOptions
from treesens.extensions.studies.count_search import Unit, units_of
from treesens.extensions.studies.events import gaps_of
from treesens.frontends.registry import load

DATA = {
    "adult": "adult", "churn": "churn", "german": "german_credit", "pimadiabetes": "pimadiabetes",
    "breast": "breast_cancer", "diabetes": "diabetes",
}  # fmt: skip


def cpu() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_utime


class CpuBudget(Budget):
    """A budget of CPU seconds of this process: `deadline` is on the clock of `cpu`."""

    def left(self) -> float:
        return max(0.0, self.deadline - cpu())

    def within(self, seconds: float) -> CpuBudget:
        return CpuBudget(min(self.deadline, cpu() + seconds))


def counted(unit: Unit, measure: Any, seconds: float, precision: Precision) -> tuple[Share, float]:
    """A share, at most so many CPU seconds, and those that it took."""
    begin = cpu()
    query = unit.question.query
    asked = counted_of(query)
    search = ShareSearch(asked.trees, asked.sides, measure_of(measure, unit.question))
    share = ShareRun(search, precision).run(seconds, CpuBudget(begin + seconds))
    return share, cpu() - begin


def line(share: Share, seconds: float, **about: Any) -> None:
    estimate = share.estimate
    facts = {
        **about, "lower": share.lower, "upper": share.upper, "open": share.masses.open, "nodes": share.masses.nodes,
        "estimate": None if estimate is None else [estimate.value, estimate.low, estimate.high],
        "draws": 0 if estimate is None else estimate.draws, "closed": share.closed, "cpu": round(seconds, 2),
        "wall": round(share.seconds, 2),
    }  # fmt: skip
    print(json.dumps(facts), flush=True)


def published(bench: Path, every: int, seconds: float, known: set[tuple[Any, ...]]) -> None:
    """Every n-th instance that is found, of models whose data are here, but for those that are known. They come in an order
    that mixes models, so that a run that is stopped has seen a bit of everything.
    """
    found = [json.loads(text) for text in VERDICTS.read_text().splitlines()]
    found = [i for i in found if i["verdict"] == "found" and i["model"].split("_")[0] in DATA][::every]
    for instance in sorted(found, key=lambda i: crc32(json.dumps(i, sort_keys=True).encode())):
        measures = [m for m in ("uniform", "marginals") if key_of({**instance, "measure": m}) not in known]
        if not measures:
            continue
        model = load(bench / "models" / f"{instance['model']}.json", None)
        table = read_table(bench / "data" / DATA[instance["model"].split("_")[0]] / "train.csv", label="label")
        table = align_table(model, table)
        name = model.ensemble.feature_names[instance["feature"]]
        gaps = gaps_of([], [str(instance["margin"])])
        (unit,) = units_of(model, table, [[name]], gaps, CountOptions())
        for measure in measures:
            share, took = counted(unit, measure, seconds, Precision(0.05, 1e-6))
            line(share, took, **{**instance, "name": name, "measure": measure})


def key_of(record: dict[str, Any]) -> tuple[Any, ...]:
    return record["model"], record["feature"], record["margin"], record["measure"]


def nodes_of(tree: Any, node: int = 0) -> Any:
    """A tree of scikit-learn as [feature, threshold, low, high], or a number."""
    if tree.feature[node] < 0:
        return 0.1 * float(tree.value[node, 0, 0])
    sides = (nodes_of(tree, int(child)) for child in (tree.children_left[node], tree.children_right[node]))
    return [int(tree.feature[node]), float(tree.threshold[node]), *sides]


def family() -> None:
    """Boosters of 1 to 30 trees of depth 3 on the diabetes data of scikit-learn, asked XCount's question: the
    cells that differ by 2 from one a step away in feature 2. A search per cell of the feature;
    epsilon 0.01 and delta 1e-6 for all together.
    """
    from sklearn.datasets import load_diabetes
    from sklearn.ensemble import GradientBoostingRegressor

    rows, target = load_diabetes(return_X_y=True)
    booster = GradientBoostingRegressor(n_estimators=30, max_depth=3, random_state=0).fit(rows, target)
    trees = [nodes_of(tree.tree_) for tree in booster.estimators_[:, 0]]
    for count in range(1, 31):
        ensemble, begin = ensemble_of(trees[:count]), cpu()
        model = ensemble.on(ensemble.grid())
        parts = list(searches(model, 2, 2, 3))
        low = high = 0.0
        for search, others in parts:
            precision = Precision(0.01, 1e-6 / len(parts), 1e-5)
            share = ShareRun(search, precision).run(5.0, Budget.of(5.0))
            found = share.estimate
            low += others * (share.lower if found is None else found.low)
            high += others * (share.upper if found is None else found.high)
        precise = bool(high - low <= 0.01 * (high + low) + 1e-6)
        print(
            json.dumps({"trees": count, "low": low, "high": high, "precise": precise, "cpu": round(cpu() - begin, 3)})
        )


def tiny(wanted: int) -> None:
    """Shares of tiny models whose every input a library predicts, at five stops of each search, until so many cases are judged.
    A line at the end: cases, and those whose interval does not hold the truth.
    """
    from itertools import combinations

    import numpy as np
    from tests.extensions.studies.share_cases import CASES, FEATURES, NAMES, concerned_inputs
    from tests.extensions.studies.test_shares import intervals, units, weights_of

    judged = wrong = undecided = seed = 0
    while judged < wanted:
        seed += 1
        for make in CASES:
            case = make(np.random.default_rng(10_000 + seed))
            options = [np.unique(case.frame[name]) for name in NAMES]
            for varied in [(f,) for f in range(FEATURES)] + list(combinations(range(FEATURES), 2)):
                others = [f for f in range(FEATURES) if f not in varied]
                for size in case.sizes:
                    for unit, concerned in zip(units(case, varied, size), case.concerned, strict=True):
                        found = concerned_inputs(case, options, varied, float(size), concerned)
                        if found is None:
                            undecided += 1
                            continue
                        hit = [place for place, is_concerned in found if is_concerned]
                        for measure in ("uniform", "marginals"):
                            weights = weights_of(case, measure, options)  # type: ignore[arg-type]
                            parts = ((weights[f][at] for f, at in zip(others, place, strict=True)) for place in hit)
                            truth = sum(float(np.prod(list(part))) for part in parts)
                            known = intervals(unit, measure)  # type: ignore[arg-type]
                            judged += 1
                            wrong += not all(low - 1e-12 <= truth <= high + 1e-12 for low, high in known)
        if seed % 10 == 0:
            click.echo(f"{judged} cases, {wrong} wrong", err=True)
    print(json.dumps({"cases": judged, "seeds": seed, "wrong": wrong, "left out for rounding": undecided}))


@click.command()
@click.option("--bench", type=click.Path(path_type=Path), default=FOLDER, show_default=True)
@click.option("--every", type=int, default=37, show_default=True, help="Of the instances that are found, each n-th.")
@click.option(
    "--seconds", type=float, default=60.0, show_default=True, help="CPU seconds of each instance and measure."
)
@click.option("--known", type=click.Path(path_type=Path), help="Lines of an earlier run, which are not made again.")
@click.option("--tiny", "cases", type=int, help="So many tiny cases against a library's own predictions instead.")
@click.option("--family", "of_family", is_flag=True, help="The family of small models instead.")
def main(bench: Path, every: int, seconds: float, known: Path | None, cases: int | None, of_family: bool) -> None:
    start = time.monotonic()
    lines = known.read_text().splitlines() if known is not None and known.exists() else []
    done = {key_of(json.loads(line)) for line in lines}
    if cases is not None:
        tiny(cases)
    elif of_family:
        family()
    else:
        published(bench, every, seconds, done)
    click.echo(f"{time.monotonic() - start:.0f} s", err=True)


if __name__ == "__main__":
    main()
