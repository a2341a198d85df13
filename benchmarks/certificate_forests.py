"""Certificates about deep forests, and what the parts of a check with numpy take (`benchmarks.certificates --forests`)."""

from __future__ import annotations

import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path

from benchmarks.certificate_rows import solved
from benchmarks.forests import table
from treesens.extensions.treesens_verify.boxes import BoxProof
from treesens.extensions.treesens_verify.command import unpacked
from treesens.extensions.treesens_verify.models import no_circles

import treesens as ts
from treesens.binder.file import bind
from treesens.compiler.result import Verdict
from treesens.extensions import treesens_verify as checker
from treesens.extensions.certify.produce import refutation
from treesens.extensions.certify.statement import NoCertificate, statement_of
from treesens.extensions.studies.questions import declarations_of, features_node
from treesens.grammar.tree import ast

VERIFY = Path(checker.__file__).parents[1]
HEAD = (
    "| leaves | answer | trees file: written, MB | proof | nodes | bytes | checked | of which reads, lists boxes, proves | "
    "checked / answer |\n| ---: | ---: | --- | ---: | ---: | ---: | ---: | --- | ---: |"
)


def forest_lines(path: Path, depths: list[int], gap: str, limit: float) -> Iterator[str]:
    """A line for each depth of `RandomForestClassifier(100)`: `sex`, or its first feature, at a gap; CPU seconds."""
    from sklearn.ensemble import RandomForestClassifier

    columns, classes = table(path)
    feature = "sex" if "sex" in columns else next(iter(columns))
    yield HEAD
    for depth in depths:
        forest = RandomForestClassifier(100, max_depth=depth or None, random_state=0).fit(columns, classes)
        yield _line(ts.load(forest), sum(tree.get_n_leaves() for tree in forest.estimators_), feature, gap, limit)


def _line(model: ts.LoadedModel, leaves: int, feature: str, gap: str, limit: float) -> str:
    body = ast.Sensitive(ast.Name("m"), features_node([feature]), gap=ast.Number(Fraction(gap)))
    file = ast.File((*declarations_of(model, [], has_table=False), ast.Query(ast.Name("q"), body)))
    question = bind(file, Path(), load_model=lambda _path, _format: model).queries[0]
    result, took = solved(question, limit)
    if result.verdict is not Verdict.NONE:
        return f"| {leaves:,} | {took:.2f}: {result.verdict} | | | | | | | |"
    start = time.process_time()
    try:
        files = statement_of(question.query).files
        written = time.process_time() - start
        made = refutation(question.query, seconds=limit, check=False)
    except NoCertificate as reason:
        return f"| {leaves:,} | {took:.2f} | {reason} | | | | | | |"
    proved, packed = time.process_time() - start - written, made.packed()
    size, nodes = len(files[0]) / 1e6, len(made.document["nodes"])
    checked = seconds_of_command(packed, files[0])
    with no_circles():
        parts = ", ".join(f"{seconds:.2f}" for seconds in parts_of_check(packed, list(made.files)))
    return (
        f"| {leaves:,} | {took:.2f} | {written:.2f}, {size:.1f} | {proved:.2f} | {nodes:,} | {len(packed):,} | "
        f"{checked:.2f} | {parts} | {checked / took:.0%} |"
    )


def seconds_of_command(packed: bytes, model: bytes) -> float:
    """CPU seconds of the command that checks a certificate, in a process of its own."""
    with tempfile.TemporaryDirectory() as folder:
        certificate, trees = Path(folder) / "q.cert.xz", Path(folder) / "m.trees.json"
        certificate.write_bytes(packed)
        trees.write_bytes(model)
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        options = ["--numpy", "--quiet", "--trees-alone", "--model", trees]
        command = [sys.executable, "-m", "treesens_verify", certificate, *options]
        subprocess.run(command, check=True, cwd=VERIFY, stdout=subprocess.DEVNULL)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def parts_of_check(packed: bytes, data: list[bytes]) -> tuple[float, float, float]:
    """CPU seconds to read a certificate and its models, to list the boxes of most leaves' weights, and to go through the proof.

    It ends in `Rejected` if boxes alone do not accept the proof.
    """
    start = time.process_time()
    certificate = unpacked(packed, 1 << 28)
    problem = checker.problem_of(certificate, data, trees_alone=True)
    problem.make_factors(set(certificate["apart"]))
    read, nodes = time.process_time(), certificate["nodes"]
    proof = BoxProof(problem)
    if not proof.suits(nodes):
        raise checker.Rejected("the proof has messages")
    proof.layer(next(node[0] for node in nodes if len(node) == 3))
    listed = time.process_time()
    proof.go_through(nodes)
    return read - start, listed - read, time.process_time() - listed
