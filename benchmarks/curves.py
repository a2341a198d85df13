"""Value and bound of an optimum over time: the native engine, one core, CPU seconds of the search without compiling.

    python -m benchmarks.curves OLD.json [NEW.json] [--feature F] [--sense minimize] [--at 1,3,10] [--beside highs,veritas]

One model: its largest (smallest) margin, or with `--feature` the largest difference of two points that differ there alone.
Two models: the largest margin(old) - margin(new). Bounds are printed as multiples of the last value, so that 1 is closed.
Others are asked the same in the same run (`beside.py`), one after the other.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterator
from pathlib import Path

from benchmarks.beside import Known, by_solver, by_veritas, veritas_sum

from treesens.backends.native.backend import NativeArtifact, NativeBackend
from treesens.backends.native.solver import SearchResult, Solver
from treesens.binder.file import bind
from treesens.compiler.pipeline import compile_query
from treesens.compiler.query.query import Query
from treesens.grammar.parsing.parser import parse
from treesens.grammar.tree import ast

_A = ast.Name("a")


def question(models: list[Path], feature: str | None, sense: str) -> ast.File:
    """The declarations of the models and one query."""
    names = ("m", "n")
    text = "\n".join(f'model {name} from "{path.resolve()}"' for name, path in zip(names, models, strict=False))
    if len(models) == 1 and feature is None:
        objective = ast.Objective("minimize" if sense == "minimize" else "maximize", ast.Margin(_A, None))
        query = ast.Query(ast.Name("q"), ast.Find((ast.Point(_A),), (), objective))
        return ast.File((*parse(text, "<curves>").declarations, query))
    points = "a in m, b in n" if len(models) == 2 else "a, b in m"
    same = "a = b" if feature is None else f"a = b except `{feature}`"
    asked = f"query q:\n  find {points} such that\n    {same}\n  maximize margin(a) - margin(b)\n"
    return parse(f"{text}\n{asked}", "<curves>")


def curve(solver: Solver, at: list[float]) -> list[tuple[float, SearchResult]]:
    """What is known after so many CPU seconds; shorter where the search is closed before."""
    start, known, result = time.process_time(), [], solver.run(0.0)
    for seconds in at:
        while result.reason == "time" and result.status == "open" and time.process_time() - start < seconds:
            result = solver.run(min(0.3, seconds / 8))
        known.append((time.process_time() - start, result))
        if result.status != "open" or result.reason != "time":
            break
    return known


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("models", type=Path, nargs="+")
    parser.add_argument("--feature")
    parser.add_argument("--sense", choices=("maximize", "minimize"), default="maximize")
    parser.add_argument("--at", default="1,3,10,30")
    parser.add_argument("--beside", default="", help="highs, cpsat, veritas")
    asked = parser.parse_args()
    if len(asked.models) > 2 or (asked.feature is not None and len(asked.models) == 2):
        parser.error("give one model, or two without --feature")
    if asked.beside and asked.sense == "minimize":
        parser.error("others are asked for what is largest")
    query = bind(question(asked.models, asked.feature, asked.sense), Path()).queries[0].query
    artifact = NativeBackend().emit(compile_query(query, "native").module)
    assert isinstance(artifact, NativeArtifact)
    adapted = artifact.adapted
    assert adapted is not None
    solver = Solver(adapted.problem, mode="objective")
    solver.set_gap(relative=1e-6)
    at = [float(s) for s in asked.at.split(",")]
    known = curve(solver, at)
    scale = abs(known[-1][1].level or 0) or 1
    print("| who | CPU s | value | bound | nodes | status |\n|" + " --- |" * 6)
    for seconds, result in known:
        value, bound = ("–" if x is None else f"{x / scale:.5f}" for x in (result.level, result.upper))
        print(
            f"| native | {seconds:.1f} | {value} | {bound} | {result.statistics.nodes} | {result.status} |", flush=True
        )
    units = adapted.objective_shift - adapted.objective_dropped
    whole = (scale + (adapted.objective_constant >> adapted.objective_dropped)) / 2.0**units
    for name in filter(None, asked.beside.split(",")):
        show_other(name, asked.models, asked.feature, query, at, whole)


def show_other(name: str, models: list[Path], feature: str | None, query: Query, at: list[float], value: float) -> None:
    """The curve of another solver, in multiples of the value that the engine has reached."""
    for known in others(name, models, feature, query, at):
        reached, bound = ("–" if x is None else f"{x / value:.5f}" for x in (known.value, known.bound))
        print(f"| {name} | {known.seconds:.1f} | {reached} | {bound} | | {known.ended} |", flush=True)


def others(name: str, models: list[Path], feature: str | None, query: Query, at: list[float]) -> Iterator[Known]:
    if name != "veritas":
        for seconds in at:
            known = by_solver(name, query, seconds)
            yield known
            if known.ended == "optimal":
                return
        return
    signs = [1, -1] if len(models) == 2 or feature is not None else [1]
    yield from by_veritas(veritas_sum((models * 2)[: len(signs)], signs, feature), at)


if __name__ == "__main__":
    main()
