"""The examples on tables of the paper's appendix: a sensitive pair without a look at the data, near it, and the nearest one.

    python -m benchmarks.tabular_examples --markdown out/tabular_examples.md

The appendix has five. Two are about a model whose table is not public (ijcnn). Values are as the models store them, min-max
scaled.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

import numpy as np
from benchmarks.data_aware import on_scores
from benchmarks.published import FOLDER

EXAMPLES = (
    ("adult_t300_d5", "adult", "sex", "0.98998791, 0.108"),
    ("adult_t300_d5", "adult", "age", "0.656989, 0.0192"),
    ("pimadiabetes_t200_d5", "pimadiabetes", "BloodPressure", "0.353436, 0.0305"),
)
"""Model, table, sensitive feature, and the distances that the paper prints: without and with the data."""
WAYS = {"without data": "", "likelihood and cavities": " near d using both", "nearest": " near d using distance"}


def ask(bench: Path, name: str, data: str, feature: str, margin: str, limit: float) -> list[dict[str, Any]]:
    """The pair of each way with the distance of its region and its nearest row."""
    from dataclasses import replace

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
    lines = ['model m from "m"', 'data d from "d"', "domain from d"]
    lines += [f"query q{i}: sensitive m to `{feature}` margin {margin}{way}" for i, way in enumerate(WAYS.values())]
    bound = bind(parse("\n".join(lines)), Path(), load_model=lambda *_: model, load_table=lambda *_: table)
    found = []
    for way, question in zip(WAYS, bound.queries, strict=True):
        result = answer(question.query, Options(backend="native" if way == "nearest" else "auto", time_limit=limit))
        record: dict[str, Any] = {"way": way, "verdict": str(result.verdict), "names": question.query.space.names}
        if result.witness is not None:
            plain = replace(question.query, constraints=on_scores(question.query), objective=None)
            region = RegionFinder(plain).leaf_region(result.witness.cells)
            rows = question.rows["d"]
            near = nearest_row(plain, "d", rows, result.witness.cells, region)
            record |= {"pair": result.witness.values, "distance": near.distance, "row": rows[near.index]}
            goal = result.objective
            closed = goal is not None and goal.bound is not None and abs(goal.value - goal.bound) <= 1e-4
            record["proved"] = way == "nearest" and closed
        found.append(record)
    return found


def section(example: tuple[str, str, str, str], margin: str, records: list[dict[str, Any]]) -> str:
    """One example as a table: a column for each point and its row, a line per feature."""
    name, _, feature, printed = example
    shown = [r for r in records if "pair" in r]
    lines = [f"## {feature} of {name}, margin {margin}", "", f"The paper's distances: {printed}. Ours:", ""]
    lines += [f"- {r['way']}: {r['distance']:.4f}{', proved to be the least' if r['proved'] else ''}" for r in shown]
    lines += [f"- {r['way']}: {r['verdict']}" for r in records if "pair" not in r]
    heads = [head for r in shown for head in (f"{r['way']}: a", "b", "row")]
    lines += ["", f"| feature | {' | '.join(heads)} |", "| --- |" + " ---: |" * len(heads)]
    for place, label in enumerate(shown[0]["names"] if shown else ()):
        cells = [np.array([*r["pair"][:, place], r["row"][place]]) for r in shown]
        lines.append(f"| {label} | {' | '.join(f'{x:.4g}' for x in np.concatenate(cells))} |")
    return "\n".join(lines)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--bench", type=Path, default=FOLDER)
    parser.add_argument("--example", nargs=3, metavar=("MODEL", "TABLE", "FEATURE"), help="instead of the paper's")
    parser.add_argument("--margin", default="0.5")
    parser.add_argument("--limit", type=float, default=10.0, help="seconds per question")
    parser.add_argument("--markdown", type=Path)
    given = parser.parse_args()
    examples = [(*given.example, "none")] if given.example else EXAMPLES
    parts = ["# The paper's examples on tables", __doc__.partition("\n\n")[2].partition("\n\n")[2].strip()]
    for example in examples:
        records = ask(given.bench, *example[:3], given.margin, given.limit)
        parts.append(section(example, given.margin, records))
        print(parts[-1])
    if given.markdown is not None:
        given.markdown.write_text("\n\n".join(parts) + "\n")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
