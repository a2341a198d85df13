"""Questions over live models and frames, for `treesens.python.api` and the builder's objects, and sessions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from types import TracebackType
from typing import Any, Protocol, Unpack, runtime_checkable

import numpy as np

from treesens.binder.file import ResolvedFile, bind
from treesens.binder.session import Session as Declared
from treesens.compiler.base.diagnostics import Diagnostics
from treesens.data.tables import Table, read_table
from treesens.errors import TreesensError, UsageError
from treesens.frontends.base import LoadedModel
from treesens.frontends.meaning import meaning_of
from treesens.frontends.registry import load as load_model
from treesens.grammar.parsing.parser import parse
from treesens.grammar.tree import ast
from treesens.python.answer import Answer, Answers
from treesens.python.arguments import Data, Model, public
from treesens.python.settings import checked_options
from treesens.python.wording import notes_of, warn
from treesens.runtime.interruption import Hurry, interruptible
from treesens.solve.options import CallOptions, Options
from treesens.solve.question import (
    answer_question,
    explain_none,
    result_of_error,
    result_of_interruption,
)


@runtime_checkable
class Composed(Protocol):
    """Questions as objects, such as those of `treesens.query`."""

    def with_sources(
        self, models: Any = None, data: Any = None
    ) -> tuple[ast.File, Mapping[str, Any], Mapping[str, Any]]:
        """The syntax tree, its models and its data by name; entries of `models` and `data` replace or extend them."""
        ...


@public
def load(
    source: Model,
    format: str | None = None,
    *,
    trust_pickle: bool = False,
    protected: str | Sequence[str] | None = None,
    classes: Mapping[str | int, str] | None = None,
    favourable: str | int | None = None,
) -> LoadedModel:
    """A model from a file or a live object; raises `treesens.errors.ModelError` for anything that cannot be read exactly.

    Opening a pickle runs code, and needs `trust_pickle`. `protected` names features that are listed first and never suggested
    as changes, `classes` names the labels ({0: "granted", 1: "refused"}), `favourable` is the desired class; missing facts are
    read from `treesens.toml` next to a file (docs/protected.md).
    """
    model = source if isinstance(source, LoadedModel) else load_model(source, format, trust_pickle=trust_pickle)
    given = {"protected": protected, "classes": classes, "favourable": favourable}
    given = {name: value for name, value in given.items() if value is not None}
    if not given:
        return model
    known = model.meaning
    said = {"protected": known.stated, "classes": known.classes, "favourable": known.favourable, **given}
    return replace(model, meaning=meaning_of({k: v for k, v in said.items() if v is not None}, model.ensemble))


def model_with_rows(source: Model, rows: Any, format: str | None = None) -> LoadedModel:
    """The model, as from `load`; the data frame `rows` may contain category names that a live model lacks."""
    return source if isinstance(source, LoadedModel) else load_model(source, format, rows=rows)


def answer_text(
    text: str, models: Mapping[str, Any], data: Mapping[str, Any] | None = None, **options: Unpack[CallOptions]
) -> Answers:
    """Answers a text of questions: `model m from "NAME"` and `data d from "NAME"` refer to entries of `models` and `data`."""
    return answer_tree(parse(text, "<query>"), models, data, **options)


def answer_tree(
    file: ast.File, models: Mapping[str, Any], data: Mapping[str, Any] | None = None, **options: Unpack[CallOptions]
) -> Answers:
    """Like `answer_text`, for a syntax tree."""
    return answer_declared(file, models, data, options, declared=True)


def answer_declared(
    file: ast.File,
    models: Mapping[str, Any],
    data: Mapping[str, Any] | None,
    options: Mapping[str, Any],
    *,
    declared: bool,
) -> Answers:
    """The answers with notes, whose remedies are arguments of the call unless the caller has `declared` the features."""
    asking, diagnostics = checked_options(options), Diagnostics()
    bound = bound_tree(file, models, data, diagnostics)
    frame = next((f for f in (data or {}).values() if not isinstance(f, str | Path | Table)), None)
    notes = notes_of(diagnostics, declared=declared)
    warn(notes)
    return answer_file(bound, (), frame, asking, notes)


def bound_tree(
    file: ast.File,
    models: Mapping[str, Any],
    data: Mapping[str, Any] | None,
    diagnostics: Diagnostics,
) -> ResolvedFile:
    """The typed questions of a syntax tree over live models and frames."""
    arguments: dict[str, object] = {"models": models, "data": data}
    for argument, given in arguments.items():
        if given is not None and not isinstance(given, Mapping):
            remedy = f'write `{argument}={{"NAME": ..}}`'
            raise UsageError(
                f"`{argument}` maps names of the text to objects, and is not {type(given).__name__}", remedy=remedy
            )
    tables, loaded = dict(data or {}), {name: model for name, model in models.items() if isinstance(model, LoadedModel)}

    def model_of(path: Path, format: str | None) -> LoadedModel:
        rows = next(iter(tables.values())) if len(tables) == 1 else None
        loaded[path.name] = model = model_with_rows(_entry(models, path.name, "model"), rows, format)
        return model

    def table(path: Path, label: str | None, rows: int | None) -> Table:
        source = _entry(tables, path.name, "data")
        if isinstance(source, np.ndarray):
            return table_of(source, label, rows, [loaded.get(name) or load(model) for name, model in models.items()])
        return table_of(source, label, rows)

    return bind(file, Path(), keep_going=True, load_model=model_of, load_table=table, diagnostics=diagnostics)


def _entry(entries: Mapping[str, Any], name: str, kind: str) -> Any:
    if name not in entries:
        raise UsageError(f"the text names the {kind} `{name}`, which was not given", remedy=f"pass it in `{kind}`")
    return entries[name]


def table_of(source: Any, label: str | None, rows: int | None, models: Sequence[LoadedModel] = ()) -> Table:
    """The table in a path, a frame, or an array, whose columns are named like a model's features."""
    if isinstance(source, np.ndarray) and models:
        from treesens.data.tables import table_of_array

        return table_of_array(source if rows is None else source[:rows], models, label)
    return source if isinstance(source, Table) else read_table(source, label=label, rows=rows)


def answer_file(
    bound: ResolvedFile, names: Sequence[str], frame: Any, options: Options, notes: tuple[str, ...] = ()
) -> Answers:
    """The answers to the questions of a file. If interrupted by Ctrl-C, returns the results so far."""
    wanted = [b for b in bound.queries if not names or b.name in names or b.name.partition("[")[0] in names]
    answers = []
    errors: dict[str, TreesensError] = dict(bound.broken)
    with interruptible() as interruption:
        for query in wanted:
            if interruption.happened:
                break
            mine = query.replayed(options)
            try:
                result = answer_question(query, mine, mine.budget(interruption.event))
                with interruption.giving_up():
                    result = explain_none(query, result, mine, stop=interruption.event)
            except Hurry:
                result = result_of_interruption(query, mine)
            except TreesensError as error:
                result, errors[query.name] = result_of_error(query.name, mine, error), error
            answers.append(Answer(query, result, frame, notes))
    if len(wanted) == 1 and errors and wanted[0].name in errors:
        raise errors[wanted[0].name]
    return Answers(answers, errors)


class Session:
    """Questions about the model `m` and, if one is passed, the table `d`, in the language without declarations.

    `declarations` contains lines of a file (`feature age: real in [0, 120]`, `domain from d`); without them, domains come from
    the table. Options are those of `check`. Answers have no widened region and, unless `regions` is set, no nearest row: a
    question costs little more than its search, since shared parts are bound, mapped to their grid and compiled once.

    with ts.session(model, data=frame) as s:
        s.ask("find a such that class(a) != 1  minimize distance(a, row 7 of d, linf)").bound
    """

    def __init__(
        self,
        model: Model,
        data: Data | None = None,
        *,
        label: str | None = None,
        declarations: str | None = None,
        **options: Unpack[CallOptions],
    ) -> None:
        self._options: dict[str, Any] = {"regions": False, **options}
        self._checked = checked_options(self._options)
        self._frame = data
        loaded = model_with_rows(model, data)
        table = None if data is None else table_of(data, label, None, [loaded])
        lines = ['model m from "m"', *(['data d from "d"'] if table is not None else [])]
        lines.append(("domain from d" if table is not None else "") if declarations is None else declarations)
        self._declared: Declared | None = Declared(
            parse("\n".join(lines), "<session>"),
            Path(),
            load_model=lambda _path, _format: loaded,
            load_table=lambda _path, _label, _rows: table,  # type: ignore[arg-type, return-value]
        )

    def __repr__(self) -> str:
        return "<session, closed>" if self._declared is None else "<session: questions about `m`>"

    def ask(self, question: str, **options: Unpack[CallOptions]) -> Answer:
        """The answer to one question: `find ..`, `sensitive ..` or `count ..`. Options apply to this question alone.

        Raises UsageError if a text has several questions, or if the session is closed.
        """
        if self._declared is None:
            raise UsageError("the session is closed", remedy="use it within `with ts.session(..) as s:`")
        queries = parse(f"query q: {question}", "<question>").queries
        if len(queries) != 1:
            raise UsageError("the text contains several questions", remedy="pass them one by one")
        return self._answered(queries[0], dict(options))

    def _answered(self, node: ast.Query, options: dict[str, Any]) -> Answer:
        assert self._declared is not None
        question = self._declared.bind(node)
        mine = checked_options({**self._options, **options}) if options else self._checked
        mine = question.replayed(mine)
        # Without its tables, an answer is not compared with their rows.
        asked = question if mine.regions or question.query.rows is not None else replace(question, tables={}, rows={})
        with interruptible() as interruption:
            result = answer_question(asked, mine, mine.budget(interruption.event))
        return Answer(question, result, self._frame)

    def close(self) -> None:
        """Releases the session's caches."""
        self._declared = None

    def __enter__(self) -> Session:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def session(
    model: Model,
    data: Data | None = None,
    *,
    label: str | None = None,
    declarations: str | None = None,
    **options: Unpack[CallOptions],
) -> Session:
    """A session about a model (a file or a live object) and a table; see `Session`."""
    return Session(model, data, label=label, declarations=declarations, **options)
