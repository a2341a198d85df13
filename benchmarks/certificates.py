"""Certificates of all `none` of the published instances, of sets of features, and of bounds: sizes, times, and what has none.

    python -m benchmarks.certificates --bench DIR [--output FILE] [--gaps SECONDS]

DIR holds `models/` and `verdicts.jsonl` as the paper's authors published them. Seconds are CPU time of one process.
"""

from __future__ import annotations

import argparse
import json
import statistics
import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from fractions import Fraction
from pathlib import Path

from treesens.backends.native.backend import NativeArtifact, NativeBackend
from treesens.backends.native.solver import Solver
from treesens.binder.file import bind
from treesens.certificates import treesens_verify as checker
from treesens.certificates.produce import refutation
from treesens.certificates.statement import NoCertificate
from treesens.compiler.base.reuse import reuse, reused
from treesens.compiler.compilation import compile_query
from treesens.compiler.query.bounds import LogRational
from treesens.compiler.query.query import AtLeast, Query
from treesens.frontends.base import LoadedModel
from treesens.frontends.registry import load
from treesens.grammar.tree import ast
from treesens.sweeps.instances import Instance, Level, model_path, read_instances

HERE = Path(__file__).parent


@dataclass(frozen=True)
class Row:
    """One certificate, or the reason why there is none. Times in seconds, `solved` without the certificate."""

    group: str
    name: str
    solved: float
    produced: float = 0.0
    checked: float = 0.0
    size: int = 0
    nodes: int = 0
    reason: str = ""


class Models:
    """Models by name, each loaded once."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.known: dict[str, LoadedModel] = {}

    def query(self, instance: Instance) -> Query:
        """The typed question of an instance."""
        if instance.model not in self.known:
            self.known[instance.model] = load(model_path(instance.model, self.folder))
        model = self.known[instance.model]
        file = ast.File((ast.Model(ast.Name("m"), ast.Text("m")), instance.query("q", model)))
        return bind(file, Path(), load_model=lambda _path, _format: model).queries[0].query


def solved(query: Query, mode: str, seconds: float) -> tuple[float, float | None]:
    """CPU seconds from the question to the end of the search, and the bound of the least slack in mode `slack`."""
    start = time.process_time()
    module = compile_query(query, "native").module
    if mode == "slack":
        artifact = NativeBackend().emit(module, alike=True)
    else:
        artifact = reuse(module, (NativeBackend.name,), lambda: NativeBackend().emit(module))
    assert isinstance(artifact, NativeArtifact)
    if artifact.adapted is None:
        return time.process_time() - start, None
    solver = Solver(artifact.adapted.problem, mode=mode)  # type: ignore[arg-type]
    solver.set_gap(relative=0.02)
    result = solver.run(seconds)
    # The rows ask for a margin of 1; the slack is what a pair has beyond it.
    bound = None if result.upper is None else 1 + result.upper * 2.0**-artifact.adapted.gap_shift
    return time.process_time() - start, bound


def row_of(group: str, name: str, query: Query, took: float, limit: float) -> Row:
    """Makes and checks one certificate."""
    start = time.process_time()
    try:
        made = refutation(query, seconds=limit, check=False)
        middle = time.process_time()
        files = [Path(m.ensemble.source.path).read_bytes() for m in query.models]
        document = json.loads(json.dumps(made.document))
        between = time.process_time()
        checker.check(document, files)
    except (NoCertificate, checker.Rejected) as reason:
        return Row(group, name, took, time.process_time() - start, reason=str(reason))
    checked = time.process_time() - between
    return Row(group, name, took, middle - start, checked, len(made.packed()), len(document["nodes"]))


def rows(bench: Path, gaps: float, limit: float) -> Iterator[Row]:
    """All groups, one certificate after the other."""
    models = Models(bench / "models")
    for instance in read_instances(bench / "verdicts.jsonl"):
        if instance.known == "none":
            with reused():
                query = models.query(instance)
                yield row_of("none of 582", instance.key, query, solved(query, "decide", 60)[0], limit)
    for instance in read_instances(HERE / "instances" / "sets_none.jsonl"):
        with reused():
            query = models.query(instance)
            yield row_of("sets of features", instance.key, query, solved(query, "decide", 60)[0], limit)
    if gaps:
        yield from gap_rows(models, gaps, limit)


def gap_rows(models: Models, seconds: float, limit: float) -> Iterator[Row]:
    """Bounds of the largest gap of every feature of three models: no pair has a gap beyond the bound."""
    for name, features in (
        ("german_credit_t500_d5", range(20)),
        ("pimadiabetes_t200_d5", range(8)),
        ("diabetes_robust", range(1, 9)),
    ):
        for feature in features:
            query = models.query(Instance(name, (feature,), Level("margin", "1")))
            took, bound = solved(query, "slack", seconds)
            key = f"{name} {feature}"
            if bound is None:
                yield Row("largest gaps", key, took, reason="the model does not use the feature, or nothing is proved")
                continue
            yield row_of("largest gaps", f"{key} <= {bound:.4g}", beyond(query, bound), took, limit)


def beyond(query: Query, bound: float) -> Query:
    """The question for a gap of more than `bound`."""
    limit = LogRational(Fraction(bound * (1 + 1e-12)))
    constraints = tuple(
        replace(c, bound=limit, strict=True) if isinstance(c, AtLeast) else c for c in query.constraints
    )
    return replace(query, constraints=constraints)


def table(found: list[Row]) -> str:
    """The page: per group how many, sizes and times; then what has no certificate."""
    lines = [
        "| group | questions | accepted | bytes: median, 95 %, most | check in s: median, 95 %, most | nodes: median, most | "
        "production / solving: median |",
        "| --- | ---: | ---: | --- | --- | --- | ---: |",
    ]
    for group in dict.fromkeys(row.group for row in found):
        mine = [row for row in found if row.group == group]
        done = sorted((row for row in mine if not row.reason), key=lambda row: row.size)
        if not done:
            continue
        cost = statistics.median(row.produced / row.solved for row in done)
        sizes, times = [row.size for row in done], sorted(row.checked for row in done)
        nodes = sorted(row.nodes for row in done)
        lines.append(
            f"| {group} | {len(mine)} | {len(done)} | {middle(sizes):,}, {most(sizes):,}, {sizes[-1]:,} | "
            f"{middle(times):.3f}, {most(times):.2f}, {times[-1]:.2f} | {middle(nodes)}, {nodes[-1]} | {cost:.0%} |"
        )
    lines += ["", "Without a certificate:", ""]
    missing = [f"- {row.group}, `{row.name}`: {row.reason}" for row in found if row.reason]
    return "\n".join(lines + (missing or ["- none"]))


def middle(values: list[int] | list[float]) -> int | float:
    return sorted(values)[len(values) // 2]


def most(values: list[int] | list[float]) -> int | float:
    """The value that 95 % do not exceed."""
    return sorted(values)[max(0, -(-95 * len(values) // 100) - 1)]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--bench", type=Path, required=True)
    parser.add_argument("--output", type=Path)
    parser.add_argument("--gaps", type=float, default=5.0, help="Seconds per largest gap; 0 leaves them out.")
    parser.add_argument("--limit", type=float, default=60.0, help="Seconds per proof.")
    asked = parser.parse_args()
    found = []
    for row in rows(asked.bench, asked.gaps, asked.limit):
        found.append(row)
        print(row, flush=True)
    if asked.output is not None:
        asked.output.write_text(table(found) + "\n")
    print(table(found))


if __name__ == "__main__":
    main()
