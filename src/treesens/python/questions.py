"""Questions over live models and frames: what `treesens.python.api` and the builder's objects have in common."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal, TypedDict, Unpack

from treesens.binder.file import ResolvedFile, bind
from treesens.compiler.base.budget import Budget
from treesens.compiler.base.diagnostics import Diagnostics
from treesens.compiler.base.interruption import Hurry, interruptible
from treesens.data.tables import Table, read_table
from treesens.errors import TreesensError, TreesensWarning, UsageError, typed
from treesens.frontends.base import LoadedModel
from treesens.frontends.registry import load as load_model
from treesens.grammar.parsing.parser import parse
from treesens.grammar.tree import ast
from treesens.python.answer import Answer, Answers
from treesens.python.settings import check_backend, check_choice, checked_options
from treesens.solve.options import Options
from treesens.solve.question import (
    answer_question,
    explain_none,
    result_of_error,
    result_of_interruption,
)


class CallOptions(TypedDict, total=False):
    """Options of a call that answers questions, as `treesens.check` takes them; `regions` is for sessions."""

    backend: str
    pipeline: str
    time_limit: float
    threads: int
    memory_limit: int | None
    seed: int
    tolerance: float
    absolute_tolerance: float
    replay: Literal["auto", "emulated", "library"]
    confirm: str | None
    core: bool
    regions: bool


@typed
def load(source: Any, format: str | None = None, *, trust_pickle: bool = False) -> LoadedModel:
    """A model from a file or a live object; raises `treesens.errors.ModelError` for what cannot be read exactly.

    A pickle runs code when it is opened: that needs `trust_pickle`.
    """
    return source if isinstance(source, LoadedModel) else load_model(source, format, trust_pickle=trust_pickle)


def answer_text(
    text: str, models: Mapping[str, Any], data: Mapping[str, Any] | None = None, **options: Unpack[CallOptions]
) -> Answers:
    """Answers questions given as text: `model m from "NAME"` and `data d from "NAME"` name entries of `models` and `data`."""
    return answer_tree(parse(text, "<query>"), models, data, **options)


def answer_tree(
    file: ast.File, models: Mapping[str, Any], data: Mapping[str, Any] | None = None, **options: Unpack[CallOptions]
) -> Answers:
    """The same for a syntax tree."""
    settings = CallSettings.of(options)
    bound = bound_tree(file, models, data)
    frame = next((f for f in (data or {}).values() if not isinstance(f, str | Path | Table)), None)
    return answer_file(bound, (), frame, settings)


def bound_tree(file: ast.File, models: Mapping[str, Any], data: Mapping[str, Any] | None = None) -> ResolvedFile:
    """The typed questions of a syntax tree over live models and frames."""
    arguments: dict[str, object] = {"models": models, "data": data}
    for argument, given in arguments.items():
        if given is not None and not isinstance(given, Mapping):
            remedy = f'write `{argument}={{"NAME": ..}}`'
            raise UsageError(
                f"`{argument}` maps the names of the text to objects, and is no {type(given).__name__}", remedy=remedy
            )
    tables, diagnostics = dict(data or {}), Diagnostics()
    bound = bind(
        file,
        Path(),
        keep_going=True,
        load_model=lambda path, format: load(_entry(models, path.name, "model"), format),
        load_table=lambda path, label, rows: table_of(_entry(tables, path.name, "data"), label, rows),
        diagnostics=diagnostics,
    )
    warn(diagnostics)
    return bound


def _entry(entries: Mapping[str, Any], name: str, kind: str) -> Any:
    if name not in entries:
        raise UsageError(f"the text names the {kind} `{name}`, which was not given", remedy=f"pass it in `{kind}`")
    return entries[name]


def table_of(source: Any, label: str | None, rows: int | None) -> Table:
    return source if isinstance(source, Table) else read_table(source, label=label, rows=rows)


@dataclass(frozen=True)
class CallSettings:
    """The options of a call, checked."""

    options: Options
    replay: str = "auto"
    confirm: str | None = None
    core: bool = False

    @staticmethod
    def of(given: Mapping[str, Any]) -> CallSettings:
        """UsageError for an option that there is not, or a value that makes no sense."""
        mine = {name: given[name] for name in ("replay", "confirm", "core") if name in given}
        if mine.get("replay") == "native":
            mine["replay"] = "library"  # its old name
        others = {name: value for name, value in given.items() if name not in mine}
        options = checked_options(others, also=("replay", "confirm", "core"))
        check_choice("replay", mine.get("replay", "auto"), ("auto", "emulated", "library"))
        if mine.get("confirm") not in {None, "library"}:
            check_backend("confirm", mine["confirm"])
        return CallSettings(options, **mine)


def warn(diagnostics: Diagnostics) -> None:
    """Notes and warnings as Python's own, which notebooks show once."""
    for item in diagnostics:
        if item.severity != "error":
            warnings.warn(item.render(), TreesensWarning, stacklevel=3)


def answer_file(bound: ResolvedFile, names: Sequence[str], frame: Any, settings: CallSettings) -> Answers:
    """Ctrl-C returns what is known so far."""
    wanted = [b for b in bound.queries if not names or b.name in names or b.name.partition("[")[0] in names]
    answers = []
    errors: dict[str, TreesensError] = dict(bound.broken)
    with interruptible() as interruption:
        for query in wanted:
            if interruption.happened:
                break
            mine = replace(settings.options, library_predict=query.library_predicts(settings.replay))
            try:
                result = answer_question(
                    query, mine, Budget.of(mine.time_limit, interruption.event), confirm=settings.confirm
                )
                with interruption.giving_up():
                    result = explain_none(query, result, mine, stop=interruption.event, always=settings.core)
            except Hurry:
                result = result_of_interruption(query, mine)
            except TreesensError as error:
                result, errors[query.name] = result_of_error(query, mine, error), error
            answers.append(Answer(query, result, frame))
    if len(wanted) == 1 and errors and wanted[0].name in errors:
        raise errors[wanted[0].name]
    return Answers(answers, errors)
