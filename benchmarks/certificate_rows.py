"""One certificate after the other, with what its answer, its making and its check take (`benchmarks.certificates`)."""

from __future__ import annotations

import json
import time
from dataclasses import dataclass
from pathlib import Path

from treesens.binder.file import ResolvedQuestion, bind
from treesens.compiler.query.query import Query
from treesens.compiler.result import Result, Verdict
from treesens.extensions import treesens_verify as checker
from treesens.extensions.certify.produce import _problem, refutation
from treesens.extensions.certify.statement import NoCertificate, statement_of
from treesens.extensions.sweeps.instances import Instance, model_path
from treesens.frontends.base import LoadedModel
from treesens.frontends.registry import load
from treesens.grammar.tree import ast
from treesens.runtime.kept import reused
from treesens.solve.options import Options
from treesens.solve.question import answer_question


@dataclass(frozen=True)
class Row:
    """One certificate, or the reason why there is none. Times in seconds of CPU.

    `solved` is what the answer took without it, `produced` what it took besides up to the bytes of its file, and `checked`
    what the checker takes from these and the model's file. Reading the model before belongs to none of them.
    """

    group: str
    name: str
    solved: float
    produced: float = 0.0
    checked: float = 0.0
    size: int = 0
    nodes: int = 0
    reason: str = ""


class Models:
    """Models by name, each loaded once, for the engine and for the checker."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.known: dict[str, LoadedModel] = {}

    def model(self, name: str) -> LoadedModel:
        if name not in self.known:
            self.known[name] = load(model_path(name, self.folder))
        return self.known[name]

    def question(self, instance: Instance) -> ResolvedQuestion:
        """The typed question of an instance."""
        model = self.model(instance.model)
        file = ast.File((ast.Model(ast.Name("m"), ast.Text("m")), instance.query("q", model)))
        return bind(file, Path(), load_model=lambda _path, _format: model).queries[0]


def solved(question: ResolvedQuestion, seconds: float) -> tuple[Result, float]:
    """The answer as a user gets it, and its CPU seconds."""
    start = time.process_time()
    result = answer_question(question, Options(time_limit=seconds))
    return result, time.process_time() - start


def row_of(group: str, name: str, query: Query, took: float, limit: float) -> Row:
    """Makes and checks one certificate."""
    start = time.process_time()
    try:
        made = refutation(query, seconds=limit, check=False)
        packed = made.packed()
        middle = time.process_time()
        checker.check(json.loads(json.dumps(made.document)), list(made.files))
    except (NoCertificate, checker.Rejected) as reason:
        return Row(group, name, took, time.process_time() - start, reason=str(reason))
    checked = time.process_time() - middle
    return Row(group, name, took, middle - start, checked, len(packed), len(made.document["nodes"]))


def none_row(group: str, name: str, question: ResolvedQuestion, limit: float) -> Row | None:
    """The certificate of an answer; None if it is a pair."""
    try:
        _problem(statement_of(question.query))  # reads the model for the checker, as it has been read for the answer
    except NoCertificate as reason:
        return Row(group, name, solved(question, limit)[1], reason=str(reason))
    with reused():
        result, took = solved(question, limit)
        if result.verdict is Verdict.UNKNOWN:
            return Row(group, name, took, reason=f"no answer: {result.reason}")
        return None if result.verdict is not Verdict.NONE else row_of(group, name, question.query, took, limit)
