"""The Python interface: the same questions, from live models and frames.

import treesens as ts

model = ts.load("adult.json")                      # or an xgboost / lightgbm / scikit-learn object
result = ts.check("credit.sens")["sex_alone"]
result = ts.sensitivity(model, vary=["sex"], gap=0.1, data=frame, near="both", time_limit=60)
ts.audit(model, frame, label="label").frame()      # features and gaps on real rows
ts.repair(path, frame, vary=["sex"], label="label", gap=0.1, output="out.json")  # less sensitive, with the proof
ts.diff(old, new, frame).verdict                   # equal (proved), or the largest difference
result.verdict, result.pair                        # pair: a frame of two rows in the caller's own library
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Unpack

from treesens.binder.file import ResolvedFile, bind, selects
from treesens.compiler.base.diagnostics import Diagnostics, did_you_mean
from treesens.errors import UsageError
from treesens.grammar.parsing.parser import parse, read
from treesens.python.answer import Answer, Answers, Explanations, Info
from treesens.python.arguments import Data, Model, listing_options, public, with_options
from treesens.python.questions import Composed, answer_file, answer_text, answer_tree, bound_tree, load
from treesens.python.settings import checked_options, path_of
from treesens.python.wording import notes_of, warn
from treesens.report.explain import Explanation
from treesens.solve.options import CallOptions


@public
@listing_options
@with_options
def check(
    file: str | Path,
    *queries: str,
    parameters: Mapping[str, Any] | None = None,
    **options: Unpack[CallOptions],
) -> Answers:
    """Answers the questions of a `.sens` file, or only those that `queries` lists. `parameters` are
    numbers by the names of `param`.

    A mistake in one query does not affect other queries: see `Answers.errors`. If all queries, or the declarations, have
    mistakes, the errors are raised.
    """
    path = path_of("file", file)
    asking, diagnostics = checked_options(options), Diagnostics()
    bound = bind(read(path, parameters), path.parent, names=queries, keep_going=True, diagnostics=diagnostics)
    notes = notes_of(diagnostics, declared=True)
    warn(notes)
    return answer_file(bound, queries, None, asking, notes)


@public
@with_options
def check_text(
    text: str | Composed,
    *,
    models: Mapping[str, Model],
    data: Mapping[str, Data] | None = None,
    **options: Unpack[CallOptions],
) -> Answers:
    """Answers questions passed as text, or as objects of `treesens.query`, over live models and frames.

    In a text, `model m from "NAME"` and `data d from "NAME"` refer to entries of `models` and `data`; objects use the names in
    their questions. Options are as for `check`.
    """
    if not isinstance(text, str | Composed):
        raise UsageError(
            f"expected a text or an object of ts.query, found {text!r:.60}",
            remedy='write e.g. "query q: sensitive m to {sex} gap 0.1"',
        )
    if not isinstance(text, str):
        return answer_tree(*text.with_sources(models, data), **options)
    return answer_text(text, models, data, **options)


@public
def info(model: Model) -> Info:
    """The record of `treesens info --json` for a model file or a live object: size, task, features, guards, arithmetic. A
    dictionary, shown as a table in a notebook.
    """
    from treesens.records.model import model_record

    return Info(model_record(load(model)))


@public
def explain(
    question: str | Path | Composed,
    *queries: str,
    models: Mapping[str, Model] | None = None,
    data: Mapping[str, Data] | None = None,
    parameters: Mapping[str, Any] | None = None,
    backend: str = "native",
    pipeline: str = "default",
) -> Explanations:
    """The meaning and compilation of questions, by name (`treesens explain`). Solves nothing.

    `question` is a `.sens` file or, with `models`, a text or an object, as in `check_text`. `queries` selects some of
    them, and `parameters` are numbers by the names of `param` in a file.
    Raises the errors of the first invalid question.
    """
    from treesens.backends.base import get_backend
    from treesens.compiler.pipeline import pipeline_for
    from treesens.python.settings import check_pipeline, check_solver
    from treesens.report.explain import explanation
    from treesens.solve.options import Options

    check_solver("backend", backend)
    check_pipeline("pipeline", pipeline)
    solver = get_backend("native" if backend == "auto" else backend)
    options = Options(backend=backend, pipeline=pipeline)
    pipeline = pipeline_for(solver.name, pipeline)
    bound = _bound(question, queries, models, data, parameters)
    for error in bound.broken.values():
        raise error
    names = [asked.name for asked in bound.queries]
    for name in queries:
        if not any(selects(name, known) for known in names):
            raise UsageError(f"there is no query `{name}`", remedy=did_you_mean(name, names))
    return Explanations(
        {
            asked.name: Explanation(explanation(asked, pipeline, solver, options))
            for asked in bound.queries
            if not queries or any(name == asked.name or asked.name.startswith(f"{name}[") for name in queries)
        }
    )


def _bound(
    question: str | Path | Composed,
    queries: Sequence[str],
    models: Mapping[str, Any] | None,
    data: Mapping[str, Any] | None,
    parameters: Mapping[str, Any] | None,
) -> ResolvedFile:
    """Typed questions from a file, or from a text or an object over live models."""
    if parameters is not None and (models is not None or isinstance(question, Composed)):
        raise UsageError("`parameters` belong to a file", remedy="write the numbers into the question")
    if isinstance(question, Composed):
        return bound_tree(*question.with_sources(models, data), Diagnostics())
    if models is not None:
        if isinstance(question, Path):
            raise UsageError("a file declares its own models", remedy="pass its text, or leave `models` out")
        return bound_tree(parse(question, "<query>"), models, data, Diagnostics())
    path = path_of("question", question)
    return bind(read(path, parameters), path.parent, names=queries, keep_going=True, diagnostics=Diagnostics())


__all__ = ["Answer", "Answers", "Explanation", "check", "check_text", "explain", "info", "load"]
