"""Certificates of all `none` of the published instances, of sets of features, of iris and the examples, and of bounds.

    python -m benchmarks.certificates [--bench DIR] [--output FILE] [--only GROUP] [--seconds S] [--limit S]
    python -m benchmarks.certificates [--bench DIR] --forests 12,16,0 [--limit S]

DIR is the folder of published models (`benchmarks/published.py`). Seconds are CPU time of one process. With `--forests` random
forests on adult of these depths (0: without a limit) are asked instead; the checker with numpy is measured part by part.
"""

from __future__ import annotations

import argparse
import statistics
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from benchmarks.certificate_forests import forest_lines
from benchmarks.certificate_groups import example_rows, gap_rows
from benchmarks.certificate_rows import Models, Row, none_row
from benchmarks.published import FOLDER, VERDICTS

from treesens.extensions.sweeps.instances import Instance, read_instances

HERE = Path(__file__).parent


def instances(group: str, models: Models, found: list[Instance], asked: argparse.Namespace) -> Iterator[Row]:
    for instance in found:
        row = none_row(group, instance.key, models.question(instance), asked.limit)
        if row is not None:
            yield row


def rows(asked: argparse.Namespace) -> Iterator[Row]:
    """All groups, one certificate after the other."""
    models = Models(asked.bench / "models")
    published = [i for i in read_instances(VERDICTS) if i.known == "none"]
    sets = read_instances(HERE / "instances" / "sets_none.jsonl")
    iris = [i for i in read_instances(HERE / "instances" / "multiclass.jsonl") if i.model.startswith("iris")]
    groups: dict[str, Callable[[], Iterator[Row]]] = {
        "none of 582": lambda: instances("none of 582", models, published, asked),
        "sets of features": lambda: instances("sets of features", models, sets, asked),
        "iris": lambda: instances("iris", models, iris, asked),
        "examples": lambda: example_rows(asked),
        "largest gaps": lambda: gap_rows(models, asked),
    }
    for name, group in groups.items():
        if asked.only in (None, name):
            yield from group()


def table(found: list[Row]) -> str:
    """The page: per group how many, sizes and times; then what has no certificate."""
    lines = [
        "| group | questions | accepted | bytes: median, 95 %, most | check in s: median, 95 %, most | nodes: median, most | "
        "solving, production in ms: median | production / solving: median |",
        "| --- | ---: | ---: | --- | --- | --- | --- | ---: |",
    ]
    for group in dict.fromkeys(row.group for row in found):
        mine = [row for row in found if row.group == group]
        done = [row for row in mine if not row.reason]
        if done:
            lines.append(f"| {group} | {len(mine)} | {len(done)} | {figures(done)} |")
    lines += ["", "Without a certificate:", ""]
    missing = [f"- {row.group}, `{row.name}`: {row.reason}" for row in found if row.reason]
    return "\n".join(lines + (missing or ["- none"]))


def figures(done: list[Row]) -> str:
    sizes, times, nodes = ([getattr(row, name) for row in done] for name in ("size", "checked", "nodes"))
    middle: Callable[[list[Any]], Any] = statistics.median
    return " | ".join(
        (
            f"{middle(sizes):,.0f}, {most(sizes):,}, {max(sizes):,}",
            f"{middle(times):.3f}, {most(times):.2f}, {max(times):.2f}",
            f"{middle(nodes):.0f}, {max(nodes)}",
            f"{middle([row.solved for row in done]) * 1e3:.1f}, {middle([row.produced for row in done]) * 1e3:.1f}",
            f"{middle([row.produced / row.solved for row in done]):.0%}",
        )
    )


def most(values: list[Any]) -> Any:
    """The value that 95 % do not exceed."""
    return sorted(values)[max(0, -(-95 * len(values) // 100) - 1)]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--bench", type=Path, default=FOLDER)
    parser.add_argument("--output", type=Path)
    parser.add_argument("--only", help="One group alone.")
    parser.add_argument("--seconds", type=float, default=5.0, help="Seconds per largest gap.")
    parser.add_argument("--limit", type=float, default=60.0, help="Seconds per answer, and per proof.")
    parser.add_argument("--forests", help="Deep forests of these depths instead.")
    parser.add_argument("--gap", default="0.4", help="Of deep forests.")
    asked = parser.parse_args()
    if asked.forests is not None:
        table_of_data = asked.bench / "data" / "adult" / "train.csv"
        for line in forest_lines(table_of_data, [int(d) for d in asked.forests.split(",")], asked.gap, asked.limit):
            print(line, flush=True)
        return
    found = []
    for row in rows(asked):
        found.append(row)
        print(row, flush=True)
    if asked.output is not None:
        asked.output.write_text(table(found) + "\n")
    print(table(found))


if __name__ == "__main__":
    main()
