"""The output files of `check` for CI tools, in which every question is a case."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path

from treesens.binder.file import ResolvedQuestion
from treesens.commands.check import Asked
from treesens.commands.common import write_output
from treesens.compiler.base.files import write_atomically
from treesens.compiler.result import Result
from treesens.extensions.ci.documents import DOCUMENTS, Case


def write(runs: Sequence[Asked], files: Mapping[str, Path]) -> None:
    """Writes the files, whose paths are passed by kind: junit, sarif and markdown."""
    cases = [case for run in runs for case in cases_of(run)]
    for kind, path in files.items():
        write_output(str(path), partial(_write_cases, path, DOCUMENTS[kind], cases))


def _write_cases(path: Path, made: Callable[[Sequence[Case]], str], cases: Sequence[Case]) -> None:
    write_atomically(path, made(cases))


def cases_of(run: Asked) -> list[Case]:
    """The questions of a file as cases, including invalid questions."""
    cases = [case_of(str(run.path), query, result) for query, result in run.results]
    for name, error in run.bound.broken.items():
        span = error.diagnostics[0].span if error.diagnostics else None
        line = span.source.position(span.start)[0] if span is not None else 1
        cases.append(Case(str(run.path), line, name, "broken", str(error)))
    return cases


def case_of(file: str, query: ResolvedQuestion, result: Result) -> Case:
    """An answer as a case, with the expectation, the result and the reason."""
    from treesens.records.answers import as_expected, share_record

    span = query.node.name.span
    line = span.source.position(span.start)[0]
    expected = as_expected(query.query, result)
    words = f"{result.verdict} ({result.reason})"
    if result.share is not None:
        from treesens.extensions.measure.share_words import share_words

        words += f", {share_words(share_record(result.share))}"
    problem = None
    if expected is None:
        problem = "inconclusive"
    elif not expected:
        problem = "violated"
        words = _violated(query, result, f"expected {query.query.expect}, and the answer is {words}")
    return Case(file, line, query.name, problem, words, sum(result.seconds.values()))


def _violated(query: ResolvedQuestion, result: Result, words: str) -> str:
    """The changes in a witness, the expectation, and the equal features; without changes, the expectation and the points."""
    from treesens.records.answers import found_record
    from treesens.report.changes import Names, change_words, equal_words, row_of, value_words

    if result.witness is None:
        return words
    found = found_record(query.query, result)
    if told := change_words(found, row_of(query, result.witness), Names.of(query.models[0])):
        equal = equal_words(found["points"])
        return f"{told}\n{words}" + (f"\nequal: {equal}" if equal else "")
    lines = (
        f"\n{name}: " + ", ".join(f"{k} {value_words(v)}" for k, v in point.items())
        for name, point in found["points"].items()
    )
    return words + "".join(lines)
