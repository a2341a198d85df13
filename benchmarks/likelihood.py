"""The most likely pair (`near d using likelihood`, the paper's utility): the engine and a MILP solver in one run.

Every n-th instance of the published binary models that has a pair, in the domain of the training table. Each backend gets the
question alone and in turns, so that both see the same machine. Seconds are of the clock, with compiling: solvers run
in processes of their own.

    python -m benchmarks.likelihood --every 30 --limit 10 --solver-limit 40 --markdown out/likelihood.md
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from statistics import median
from typing import Any

from benchmarks.data_aware import instances
from benchmarks.published import FOLDER

CLOSED = 1e-4
"""Nats: value and bound that are no further apart are equal to a reader."""


def ask(
    bench: Path, name: str, data: str, feature: int, margin: str, limits: dict[str, float], threads: int
) -> Iterator[dict[str, Any]]:
    """One record per backend."""
    from treesens.binder.file import bind
    from treesens.data.tables import align_table, read_table
    from treesens.frontends.registry import load
    from treesens.grammar.parsing.parser import parse
    from treesens.solve.options import Options
    from treesens.solve.question import answer

    model = load(bench / f"models/{name}.json")
    table = align_table(model, read_table(bench / f"data/{data}/train.csv", label="label"))
    names = model.ensemble.feature_names
    text = (
        f'model m from "m"\ndata d from "d"\ndomain from d\nquery q: sensitive m to `{names[feature]}` margin {margin} '
        "near d using likelihood"
    )
    for backend, limit in limits.items():
        bound = bind(parse(text), Path(), load_model=lambda *_: model, load_table=lambda *_: table)
        start = time.perf_counter()
        result = answer(bound.queries[0].query, Options(backend=backend, time_limit=limit, threads=threads))
        seconds = time.perf_counter() - start
        goal = result.objective
        yield {
            "model": name,
            "feature": names[feature],
            "margin": float(margin),
            "backend": backend,
            "verdict": str(result.verdict),
            "seconds": round(seconds, 2),
            "value": None if goal is None else goal.value,
            "bound": None if goal is None else goal.bound,
        }


def is_closed(record: dict[str, Any]) -> bool:
    """Whether the likelihood is proved to be the largest."""
    value, bound = record["value"], record["bound"]
    return value is not None and bound is not None and bound - value <= CLOSED


def table_of(records: list[dict[str, Any]]) -> str:
    """A line per instance, and what they come to."""
    backends = list(dict.fromkeys(r["backend"] for r in records))
    lines = [f"| model | feature | margin | {' | '.join(f'{b}: value, bound, s' for b in backends)} |"]
    lines.append("| --- | --- | ---: |" + " --- |" * len(backends))
    places = list(dict.fromkeys((r["model"], r["feature"], r["margin"]) for r in records))
    by = {(r["model"], r["feature"], r["margin"], r["backend"]): r for r in records}
    for place in places:
        cells = []
        for backend in backends:
            r = by[(*place, backend)]
            value, bound = (None if x is None else f"{x:.3f}" for x in (r["value"], r["bound"]))
            ends = f"{value or '–'}, {bound or '–'}"
            cells.append(f"{ends}, {r['seconds']:.1f}{'' if is_closed(r) else ' (open)'}")
        lines.append(f"| {place[0]} | {place[1]} | {place[2]:g} | {' | '.join(cells)} |")
    lines.append("")
    for backend in backends:
        mine = [r for r in records if r["backend"] == backend]
        closed = [r for r in mine if is_closed(r)]
        middle = median(r["seconds"] for r in mine)
        lines.append(f"{backend}: {len(closed)} of {len(mine)} closed, median {middle:.2f} s.")
    return "\n".join(lines)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--bench", type=Path, default=FOLDER)
    parser.add_argument("--every", type=int, default=12)
    parser.add_argument("--limit", type=float, default=10.0)
    parser.add_argument("--solver", default="highs", help="the other backend; empty for none")
    parser.add_argument("--solver-limit", type=float, default=40.0)
    parser.add_argument("--threads", type=int, default=1, help="of each backend")
    parser.add_argument("--output", type=Path, default=Path("benchmarks/out/likelihood.jsonl"))
    parser.add_argument("--markdown", type=Path)
    given = parser.parse_args()
    limits = {"native": given.limit} | ({given.solver: given.solver_limit} if given.solver else {})
    given.output.parent.mkdir(parents=True, exist_ok=True)
    records = []
    with given.output.open("w") as file:
        for name, data, picked in instances(given.bench, given.every):
            for feature, margin in picked:
                for record in ask(given.bench, name, data, feature, margin, limits, given.threads):
                    records.append(record)
                    file.write(json.dumps(record) + "\n")
                    file.flush()
                    print(f"{record}", file=sys.stderr)
    text = table_of(records)
    print(text)
    if given.markdown is not None:
        times = ", ".join(f"{backend} {seconds:g} s" for backend, seconds in limits.items())
        settings = f"Every {given.every}th instance that has a pair; {times}, threads of each: {given.threads}."
        given.markdown.write_text(f"# The most likely pair\n\n{settings}\n\n{text}\n")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
