"""The fewest features whose change moves a score from one side to the other: set by set, over cells, and by other solvers.

    python -m benchmarks.fewest_changes MODEL.json .. [--margins 0.5,1.5,6] [--limit 10] [--ways sets,cells,highs]

`find a, b in m such that margin(a) >= M; margin(b) <= -M minimize changes(a, b)`: the number that is found, the bound, and the
seconds of the clock, with everything from the question to the verified answer. `sets` asks all methods, of which the first is
`fewest changes`; `cells` leaves that one out; any other way is a backend that is asked alone. One after the other.
"""

from __future__ import annotations

import argparse
import time
from dataclasses import replace
from pathlib import Path

from treesens.binder.file import bind
from treesens.compiler.base.budget import Budget
from treesens.compiler.query.query import Query
from treesens.compiler.result import Result, Verdict
from treesens.grammar.parsing.parser import parse
from treesens.solve.method import OpenQuestion
from treesens.solve.methods.registry import all_methods
from treesens.solve.options import Options
from treesens.solve.question import answer, as_asked, ask_methods

ASKED = "find a, b in m such that margin(a) >= {margin}; margin(b) <= -{margin} minimize changes(a, b)"
NATIVE = Options(backend="native", regions=False)
BEFORE = tuple(method for method in all_methods() if method.name != "fewest changes")


def asked_in(way: str, query: Query, seconds: float) -> Result:
    """The answer of one way."""
    if way == "sets":
        return answer(query, NATIVE, Budget.of(seconds))
    if way == "cells":
        return ask_methods(OpenQuestion(as_asked(query, NATIVE), NATIVE, answer), Budget.of(seconds), BEFORE)
    return answer(query, replace(NATIVE, backend=way, time_limit=seconds), Budget.of(seconds))


def shown(result: Result, seconds: float) -> str:
    """What is known: `3, proved`, `3 (≥ 1)`, `none`, and in how many seconds."""
    goal = result.objective
    if goal is None:
        said = str(result.verdict) if result.verdict is not Verdict.UNKNOWN else "–"
    elif goal.bound == goal.value:
        said = f"{goal.value:g}, proved"
    else:
        said = f"{goal.value:g}" + ("" if goal.bound is None else f" (≥ {goal.bound:g})")
    return f"{said} | {seconds:.1f}"


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("models", type=Path, nargs="+")
    parser.add_argument("--margins", default="0.5,1.5,6")
    parser.add_argument("--limit", type=float, default=10.0)
    parser.add_argument("--ways", default="sets,cells")
    asked = parser.parse_args()
    ways = asked.ways.split(",")
    print(f"| model | margin | {' | '.join(f'{way} | s' for way in ways)} |\n| --- |" + " ---: |" * (1 + 2 * len(ways)))
    for path in asked.models:
        for margin in asked.margins.split(","):
            text = f'model m from "{path.resolve()}"\nquery q: {ASKED.format(margin=margin)}'
            told = []
            for way in ways:
                query = bind(parse(text, "<fewest changes>"), Path()).queries[0].query
                start = time.perf_counter()
                told.append(shown(asked_in(way, query, asked.limit), time.perf_counter() - start))
            print(f"| {path.stem} | {margin} | {' | '.join(told)} |", flush=True)


if __name__ == "__main__":
    main()
