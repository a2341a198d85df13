"""Typical inputs: how often fresh rows lie in their regions, and what is left of the published instances among typical inputs.

    python -m benchmarks.typical --coverage > coverage.jsonl
    python -m benchmarks.typical --seconds 5 --way chow-liu > instances.jsonl
    python -m benchmarks.typical --confirm cpsat --models breast_cancer_robust > confirmed.jsonl
    python -m benchmarks.typical --summary instances.jsonl

Seconds are those of the processor, of this process and its children: wall time says little beside other work.
"""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from statistics import mean
from typing import Any

import click
import numpy as np
from benchmarks.published import FOLDER, VERDICTS

from treesens.binder.file import ResolvedQuestion
from treesens.binder.session import Session
from treesens.binder.typicality import METHODS
from treesens.compiler.query.forest import forest_scores
from treesens.data.rows import cells_of_rows
from treesens.data.tables import Table, align_table, read_table
from treesens.extensions.answers.location import nearest_row
from treesens.extensions.answers.regions import RegionFinder
from treesens.extensions.measure.typical import learn_typical
from treesens.frontends.base import LoadedModel
from treesens.frontends.registry import load
from treesens.grammar.parsing.parser import parse
from treesens.runtime.fork_server import cpu_seconds
from treesens.solve.options import Options
from treesens.solve.question import answer_question

DATA = {
    "adult": "adult", "churn": "churn", "german": "german_credit", "pimadiabetes": "pimadiabetes",
    "breast": "breast_cancer", "diabetes": "diabetes", "iris": "iris", "winequality": "winequality_red",
}  # fmt: skip
OUTSIDE = (Fraction(1, 100), Fraction(1, 20), Fraction(1, 10))


def model_and_table(bench: Path, name: str) -> tuple[LoadedModel, Table]:
    model = load(bench / "models" / f"{name}.json", None)
    data = DATA[name.split("_", maxsplit=1)[0]]
    return model, align_table(model, read_table(bench / "data" / data / "train.csv", label="label"))


def session(model: LoadedModel, table: Table) -> Session:
    return Session(
        parse('model m from "m"\ndata d from "d"\ndomain from d'),
        Path(),
        load_model=lambda _path, _format: model,
        load_table=lambda _path, _label, _rows: table,
    )


def coverage(bench: Path, times: int) -> Iterator[dict[str, Any]]:
    """Of every data set: regions of three quarters of its rows, and the share of the other quarter in them."""
    first = {
        DATA[p.stem.split("_")[0]]: p.stem
        for p in sorted((bench / "models").glob("*.json"), reverse=True)
        if p.stem.split("_")[0] in DATA
    }
    for data, name in sorted(first.items()):
        model, table = model_and_table(bench, name)
        grid, features = model.ensemble.grid(), model.ensemble.features
        values = model.ensemble.number_type.cast(np.stack([table.numbers(f.name) for f in features], axis=1))
        cells = cells_of_rows(grid, values)
        for way in METHODS:
            inside: dict[Fraction, list[float]] = defaultdict(list)
            for seed in range(times if way == "chow-liu" else max(1, times // 5)):
                order = np.random.default_rng([seed, 7]).permutation(len(cells))
                most = len(cells) * 3 // 4
                score = learn_typical(np.ascontiguousarray(cells[order[:most]]), grid, features, way)
                trees = score.forest.on(grid)
                fresh = forest_scores(trees, np.ascontiguousarray(cells[order[most:]])) / 2.0**score.forest.shift
                for outside in OUTSIDE:
                    least = score.least(outside)
                    if least is not None:
                        inside[outside].append(float(np.mean(fresh >= float(least))))
            for outside in OUTSIDE:
                found = inside[outside]
                share = round(mean(found), 4) if found else None
                yield {
                    "data": data,
                    "rows": len(cells),
                    "way": way,
                    "level": float(1 - outside),
                    "coverage": share,
                    "splits": len(found),
                }


def asked(
    chosen: tuple[str, ...], every: int, left: set[Any] | None = None
) -> Iterator[tuple[str, list[dict[str, Any]]]]:
    """The published instances of models whose data are here, by model."""
    by: dict[str, list[dict[str, Any]]] = defaultdict(list)
    for text in VERDICTS.read_text().splitlines():
        item = json.loads(text)
        if item["model"].split("_")[0] in DATA and (not chosen or item["model"] in chosen):
            by[item["model"]].append(item)
    for name, items in by.items():
        yield name, [i for i in items[::every] if left is None or (name, i["feature"], i["margin"]) in left]


def instances(
    bench: Path, chosen: tuple[str, ...], every: int, way: str, seconds: float, backend: str, confirm: str | None
) -> Iterator[dict[str, Any]]:
    for name, items in asked(chosen, every):
        model, table = model_and_table(bench, name)
        bound = session(model, table)
        for item in items:
            feature = model.ensemble.feature_names[item["feature"]]
            size = item["margin"]
            text = f"find a, b such that a = b except `{feature}`; margin(a) >= {size}; margin(b) <= -{size}"
            record = {"model": name, "index": item["feature"], "feature": feature, "margin": item["margin"], "way": way}
            plain = bound.bind(parse(f"query q: {text}").queries[0])
            record["all inputs"], _ = answered(plain, seconds, backend)
            typical = bound.bind(parse(f"query q: {text}; a, b typical of d at 95 % by {way}").queries[0])
            start = cpu_seconds()
            record["typical"], witness = answered(typical, seconds, backend)
            record["seconds"] = round(cpu_seconds() - start, 3)
            if witness is not None:
                record["distance"] = distance(plain, typical, witness)
            if confirm:
                record["confirm"], _ = answered(typical, 60, confirm)
            yield record


def answered(question: ResolvedQuestion, seconds: float, backend: str) -> tuple[str, Any]:
    result = answer_question(question, Options(backend=backend, time_limit=seconds))
    return str(result.verdict), result.witness


def distance(plain: ResolvedQuestion, typical: ResolvedQuestion, witness: Any) -> float:
    """l2, from the nearest row to the region on which all trees of the model keep their leaves."""
    query = replace(plain.query, objective=None)
    region = RegionFinder(query).leaf_region(witness.cells)
    return float(nearest_row(query, "d", typical.rows["d"], witness.cells, region).distance)


def summary(path: Path) -> None:
    """Tables of a run in Markdown."""
    records = [json.loads(line) for line in path.read_text().splitlines()]
    groups: dict[str, list[dict[str, Any]]] = defaultdict(list)
    for record in records:
        groups[DATA[record["model"].split("_")[0]]].append(record)
    print(
        "| data | instances | found among all | of these none among typical | found | undecided | mean l2 | mean s | most s |"
    )
    print("| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: |")
    for data, mine in [*sorted(groups.items()), ("all", records)]:
        count = Counter((r["all inputs"], r["typical"]) for r in mine)
        found = sum(n for (one, _), n in count.items() if one == "found")
        apart = [r["distance"] for r in mine if "distance" in r]
        verdicts = Counter(r["typical"] for r in mine)
        lost = count["found", "none"]
        share = f"{lost} ({100 * lost / found:.0f} %)" if found else "0"
        near = f"{mean(apart):.3f}" if apart else ""
        took = [r["seconds"] for r in mine]
        print(
            f"| {data} | {len(mine)} | {found} | {share} | {verdicts['found']} | {verdicts['unknown']} | {near} "
            f"| {mean(took):.2f} | {max(took):.1f} |"
        )
    wrong = [r for r in records if "confirm" in r and {r["typical"], r["confirm"]} == {"found", "none"}]
    wrong += [r for r in records if r["all inputs"] == "none" and r["typical"] == "found"]
    print(f"\ncontradictions: {len(wrong)}; confirmed: {sum(r.get('confirm') == r['typical'] for r in records)}")


@click.command()
@click.option("--bench", type=click.Path(path_type=Path), default=FOLDER)
@click.option("--coverage", "covered", is_flag=True)
@click.option("--times", default=50, help="Splits of each data set.")
@click.option("--way", type=click.Choice(METHODS), default="chow-liu")
@click.option("--seconds", default=5.0)
@click.option("--backend", default="native")
@click.option("--models", multiple=True)
@click.option("--every", default=1)
@click.option("--confirm", help="A second backend, with a minute for each.")
@click.option("--summary", "told", type=click.Path(path_type=Path))
def main(
    bench: Path, covered: bool, times: int, way: str, seconds: float, backend: str, models: tuple[str, ...], every: int,
    confirm: str | None, told: Path | None,
) -> None:  # fmt: skip
    if told is not None:
        summary(told)
        return
    records = coverage(bench, times) if covered else instances(bench, models, every, way, seconds, backend, confirm)
    for record in records:
        print(json.dumps(record), flush=True)


if __name__ == "__main__":
    main()
