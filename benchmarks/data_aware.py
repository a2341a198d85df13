"""The paper's experiment on data-aware search (section 6), with the nearest-pair mode beside it.

For every instance (binary model, one feature, margin 0.5, 1, 1.5) several methods look for a pair; the measure is the l2
distance over insensitive features, in units of the domain width, from the nearest row of the training data to the region of the
pair: the box of cells on which every tree keeps its leaves.

    python -m benchmarks.data_aware --every 4 --limit 1 --output out/data_aware.jsonl \
        --markdown benchmarks/data_aware.md --plot benchmarks/data_aware.svg

Results are kept in the output; a second run goes on where the first was interrupted.
"""

from __future__ import annotations

import argparse
import json
import math
import sys
import time
from collections.abc import Iterator, Mapping
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import replace
from itertools import combinations
from pathlib import Path
from statistics import mean, median
from tempfile import TemporaryDirectory
from typing import Any, TextIO

from benchmarks.published import FOLDER, VERDICTS

from treesens.compiler.query.query import AtLeast, Constraint, Query, SameExcept

PAIR = "find a, b in m such that a = b except `{feature}`; margin(a) >= {margin}; margin(b) <= -{margin}; "
METHODS = {
    "none": "sensitive m to `{feature}` margin {margin}",
    "likelihood": "sensitive m to `{feature}` margin {margin} near d using likelihood",
    "cavities": "sensitive m to `{feature}` margin {margin} near d using cavities",
    "both": "sensitive m to `{feature}` margin {margin} near d using both",
    "published clauses": PAIR + 'a, b avoid cavities("{clauses}")',
    "typical": PAIR + "a, b typical of d",
    "all cavities": PAIR + "a, b avoid cavities(d, width = 2, limit = all)",
    "all cavities, likelihood": PAIR
    + "a, b avoid cavities(d, width = 2, limit = all) maximize likelihood(a, d) * likelihood(b, d)",
    "nearest pair": "sensitive m to `{feature}` margin {margin} near d using distance",
}
PUBLISHED = "published clauses"
MARGINS = ("0.5", "1", "1.5")
DATA = ("adult", "breast_cancer", "churn", "diabetes", "german_credit", "pimadiabetes")
DRAW = 1e-9


def instances(bench: Path, every: int) -> list[tuple[str, str, list[tuple[int, str]]]]:
    """(model, data, [(feature index, margin)]): every n-th instance that is decided `found` where that is known."""
    known = {}
    for line in VERDICTS.read_text().splitlines():
        item = json.loads(line)
        known[item["model"], item["feature"], float(item["margin"])] = item["verdict"]
    result, number = [], 0
    for path in sorted((bench / "models").glob("*.json")):
        data = next((d for d in DATA if path.stem.startswith(d)), None)
        if data is None:
            continue
        features = sorted({f for m, f, _ in known if m == path.stem})
        picked = []
        for f in features:
            for margin in MARGINS:
                if known.get((path.stem, f, float(margin))) == "found":
                    number += 1
                    if number % every == 0:
                        picked.append((f, margin))
        if picked:
            result.append((path.stem, data, picked))
    return result


def clauses_beside(bench: Path, name: str, feature: str, folder: Path) -> Path | None:
    """The published clauses of a model that do not name the sensitive feature, which are those that the paper's tool asks
    with; None if there are none. They are no part of what `make bench-data` fetches.
    """
    published = bench / "clauses" / f"{name}.json"
    if not published.is_file():
        return None
    kept = [c for c in json.loads(published.read_text()) if all(literal[0] != feature for literal in c)]
    path = folder / f"{name}_{feature.encode().hex()}.json"
    path.write_text(json.dumps(kept))
    return path


def run_model(
    bench: Path, name: str, data: str, picked: list[tuple[int, str]], methods: list[str], limits: Mapping[str, float]
) -> Iterator[dict[str, Any]]:
    """Some methods on the instances of one model; `limits` in seconds by method, "" for the others."""
    with TemporaryDirectory() as folder:
        yield from _run_model(bench, name, data, picked, methods, limits, Path(folder))


def _run_model(
    bench: Path,
    name: str,
    data: str,
    picked: list[tuple[int, str]],
    methods: list[str],
    limits: Mapping[str, float],
    folder: Path,
) -> Iterator[dict[str, Any]]:
    from treesens.binder.file import bind
    from treesens.data.tables import align_table, read_table
    from treesens.extensions.answers.location import nearest_row
    from treesens.extensions.answers.regions import RegionFinder
    from treesens.frontends.registry import load
    from treesens.grammar.parsing.parser import parse
    from treesens.solve.options import Options
    from treesens.solve.question import answer

    model = load(bench / f"models/{name}.json")
    table = align_table(model, read_table(bench / f"data/{data}/train.csv", label="label"))
    names = model.ensemble.feature_names
    lines = ['model m from "m"', 'data d from "d"', "domain from d"]
    asked_with = {}
    for i, (feature, margin) in enumerate(picked):
        clauses = clauses_beside(bench, name, names[feature], folder)
        asked_with[feature, margin] = [m for m in methods if m != PUBLISHED or clauses is not None]
        for j, method in enumerate(asked_with[feature, margin]):
            text = METHODS[method].format(feature=names[feature], margin=margin, clauses=clauses)
            lines.append(f"query q{i}_{j}: {text}")
    started = time.perf_counter()
    bound = bind(parse("\n".join(lines)), Path(), load_model=lambda _p, _f: model, load_table=lambda _p, _l, _r: table)
    build = time.perf_counter() - started
    asked = iter(bound.queries)
    for feature, margin in picked:
        mine = {method: next(asked) for method in asked_with[feature, margin]}
        rows = next(iter(mine.values())).rows["d"]
        for method, question in mine.items():
            backend, limit = "native" if method == "nearest pair" else "auto", limits.get(method, limits[""])
            result = answer(question.query, Options(backend=backend, time_limit=limit))
            record = {
                "model": name,
                "feature": names[feature],
                "index": feature,
                "margin": float(margin),
                "method": method,
                "verdict": str(result.verdict),
                "seconds": round(sum(result.seconds.values()), 4),
                "bind": round(build / len(bound.queries), 4),
                "distance": None,
            }
            if result.witness is not None:
                plain = replace(question.query, constraints=on_scores(question.query), objective=None)
                region = RegionFinder(plain).leaf_region(result.witness.cells)
                near = nearest_row(plain, "d", rows, result.witness.cells, region)
                record |= {"distance": near.distance, "point_distance": near.point_distance, "row": near.index}
                if result.objective is not None:
                    record |= {"value": result.objective.value, "bound": result.objective.bound}
            yield record


def on_scores(query: Query) -> tuple[Constraint, ...]:
    """The constraints that a region of the paper is about: scores of the model, and what the points share."""
    return tuple(
        c for c in query.constraints if isinstance(c, SameExcept) or (isinstance(c, AtLeast) and not c.form.forests)
    )


def still_open(record: dict[str, Any]) -> bool:
    """Whether a nearer pair may exist, by more than a tenth of a unit."""
    return (
        record["method"] == "nearest pair"
        and record.get("value") is not None
        and record["value"] - record["bound"] > 0.1
    )


def nearer(one: dict[str, Any], other: dict[str, Any]) -> dict[str, Any]:
    """Of two answers to a question the nearer pair, with the better bound and the time of both."""
    best = one if one["distance"] is not None and one["distance"] <= (other["distance"] or math.inf) else other
    bounds = [r["bound"] for r in (one, other) if r.get("bound") is not None]
    return {**best, "bound": max(bounds, default=None), "seconds": one["seconds"] + other["seconds"]}


def run_model_list(*arguments: Any) -> list[dict[str, Any]]:
    return list(run_model(*arguments))


def tables(records: list[dict[str, Any]]) -> str:
    """The tables of section 6: mean distances, and wins, draws and losses of every pair of methods."""
    asked = {r["method"] for r in records}
    by = {
        m: {(r["model"], r["feature"], r["margin"]): r for r in records if r["method"] == m}
        for m in METHODS
        if m in asked
    }
    lines = [
        "| method | instances | found | no pair, proved | mean l2 | median | at distance 0 | below 0.1 | mean seconds |",
        "| --- | --- | --- | --- | --- | --- | --- | --- | --- |",
    ]
    for method, mine in by.items():
        reached = [r["distance"] for r in mine.values() if r["distance"] is not None]
        distances = reached or [math.nan]
        zero, near = (sum(d <= limit for d in reached) / max(1, len(reached)) for limit in (DRAW, 0.1))
        none = sum(r["verdict"] == "none" for r in mine.values())
        lines.append(
            f"| {method} | {len(mine)} | {len(reached)} | {none} | {mean(distances):.4f} | {median(distances):.4f} | "
            f"{zero:.0%} | {near:.0%} | {mean(r['seconds'] for r in mine.values()):.2f} |"
        )
    common = [k for k in by[next(iter(by))] if all(k in by[m] and by[m][k]["distance"] is not None for m in by)]
    lines += ["", f"On the {len(common)} instances that every method found:", ""]
    lines += ["| method | mean l2 |", "| --- | --- |"]
    lines += [f"| {m} | {mean(by[m][k]['distance'] for k in common):.4f} |" for m in by] if common else []
    lines += [
        "",
        "Wins (nearer to the data), draws and losses of the first method against the second, with mean advantage and deficit,",
        "on the instances that both found; the ratio is that of the mean distances:",
        "",
        "| first | second | instances | wins | draws | losses | advantage on wins | deficit on losses | ratio |",
        "| --- | --- | --- | --- | --- | --- | --- | --- | --- |",
    ]
    for second, first in combinations(by, 2):
        both = [
            k
            for k in by[first]
            if k in by[second] and None not in (by[first][k]["distance"], by[second][k]["distance"])
        ]
        apart = [by[second][k]["distance"] - by[first][k]["distance"] for k in both]
        wins, losses = [a for a in apart if a > DRAW], [-a for a in apart if a < -DRAW]
        sums = [sum(by[m][k]["distance"] for k in both) for m in (first, second)]
        ratio = sums[0] / sums[1] if sums[1] else math.nan
        share = [f"{len(x) / max(1, len(apart)):.1%}" for x in (wins, [a for a in apart if abs(a) <= DRAW], losses)]
        lines.append(
            f"| {first} | {second} | {len(both)} | {' | '.join(share)} | {mean(wins or [0]):.3f} | "
            f"{mean(losses or [0]):.3f} | {ratio:.2f} |"
        )
    return "\n".join(lines)


def plot(records: list[dict[str, Any]]) -> str:
    """Cactus plot: instances (x) within a distance (y)."""
    from treesens.report.curves import curves_svg

    series = {m: [r["distance"] for r in records if r["method"] == m and r["distance"] is not None] for m in METHODS}
    across = "instances; y: l2 distance of the region to the nearest row"
    return curves_svg(series, across=across, logarithmic=False)


def ask_again(
    pool: ProcessPoolExecutor, given: argparse.Namespace, records: list[dict[str, Any]], file: TextIO
) -> list[dict[str, Any]]:
    """The records, those of instances that are still open joined with a second answer, which has more time."""
    models = {name: (data, picked) for name, data, picked in instances(given.bench, given.every)}
    first = {(r["model"], r["feature"], r["margin"], r["method"]): r for r in records if not r.get("again")}
    second = {(r["model"], r["feature"], r["margin"], r["method"]) for r in records if r.get("again")}
    work = []
    for key, record in first.items():
        if still_open(record) and key not in second:
            data, picked = models[record["model"]]
            mine = [(f, m) for f, m in picked if f == record["index"] and float(m) == record["margin"]]
            limits = {"": given.again}
            work.append(pool.submit(run_model_list, given.bench, record["model"], data, mine, ["nearest pair"], limits))
    for future in as_completed(work):
        (record,) = future.result()
        record["again"] = True
        records.append(record)
        file.write(json.dumps(record) + "\n")
        file.flush()
        print(f"again {record['model']} {record['feature']} {record['margin']}: {record['distance']}", file=sys.stderr)
    for record in records:
        if record.get("again"):
            key = record["model"], record["feature"], record["margin"], record["method"]
            first[key] = nearer(first[key], record)
    return list(first.values())


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--bench", type=Path, default=FOLDER)
    parser.add_argument("--every", type=int, default=4)
    parser.add_argument("--limit", type=float, default=1.0)
    parser.add_argument("--nearest-limit", type=float, default=15.0)
    parser.add_argument("--again", type=float, help="seconds for a second try where a nearer pair may exist")
    parser.add_argument("--methods", default=";".join(METHODS), help="between semicolons; all of them by default")
    parser.add_argument("--all-limit", type=float, default=5.0, help="seconds where no cavity is left out")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--output", type=Path, default=Path("out/data_aware.jsonl"))
    parser.add_argument("--markdown", type=Path)
    parser.add_argument("--plot", type=Path)
    given = parser.parse_args()
    given.output.parent.mkdir(parents=True, exist_ok=True)
    methods = [m for m in METHODS if m in given.methods.split(";")]
    limits = {"": given.limit, "nearest pair": given.nearest_limit}
    limits |= {method: given.all_limit for method in METHODS if method.startswith("all ")}
    records = [json.loads(line) for line in given.output.read_text().splitlines()] if given.output.is_file() else []
    done = {(r["model"], r["method"]) for r in records}
    started = time.perf_counter()
    with ProcessPoolExecutor(given.workers) as pool, given.output.open("a") as file:
        work = [
            pool.submit(run_model_list, given.bench, name, data, picked, left, limits)
            for name, data, picked in sorted(instances(given.bench, given.every), key=lambda item: -len(item[2]))
            if (left := [method for method in methods if (name, method) not in done])
        ]
        for future in as_completed(work):
            mine = future.result()
            records += mine
            file.writelines(json.dumps(r) + "\n" for r in mine)
            file.flush()
            print(f"{mine[0]['model']}: {len(mine)} answers, {time.perf_counter() - started:.0f} s", file=sys.stderr)
        if given.again:
            records = ask_again(pool, given, records, file)
    text = tables(records)
    print(text)
    if given.markdown is not None:
        more = f", and {given.again:g} s once more where the bound leaves more than 0.1 open" if given.again else ""
        others = (
            f"{given.all_limit:g} s where no cavity is left out, {given.nearest_limit:g} s for the nearest pair{more}"
        )
        settings = (
            f"Every {given.every}th instance that has a pair, domains from the data, "
            f"{given.limit:g} s per question ({others})."
        )
        given.markdown.write_text(f"# Data-aware search\n\n{settings}\n\n{text}\n")
    if given.plot is not None:
        given.plot.write_text(plot(records))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
