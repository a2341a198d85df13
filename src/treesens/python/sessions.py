"""Many questions about one model, in one process: what they share is bound, laid on its grid and compiled once.

with ts.session(model, data=frame) as s:
    s.ask("find a such that class(a) != 1  minimize distance(a, row 7 of d, linf)").bound
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from types import TracebackType
from typing import Any, Unpack

from treesens.binder.session import Session as Declared
from treesens.compiler.base.interruption import interruptible
from treesens.compiler.model.numbers import LEVELS
from treesens.errors import UsageError
from treesens.grammar.parsing.parser import parse
from treesens.grammar.tree import ast
from treesens.python.answer import Answer
from treesens.python.questions import CallOptions, CallSettings, load, table_of
from treesens.python.types import Data, Model
from treesens.solve.question import answer_question


class Session:
    """Questions about the model `m`, and the table `d` if one is given, in the words of the language without declarations.

    `declarations` are lines of a file (`feature age: real in [0, 120]`, `domain from d`); without them domains come from the
    table. Options are those of `check`. Answers come without the widened region and, unless `regions` is set, without the
    nearest row: a question costs little more than its search.
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
        self._settings = CallSettings.of(self._options)
        self._frame = data
        loaded = load(model)
        table = None if data is None else table_of(data, label, None, [loaded])
        lines = ['model m from "m"', *(['data d from "d"'] if table is not None else [])]
        lines.append(("domain from d" if table is not None else "") if declarations is None else declarations)
        self._declared: Declared | None = Declared(
            parse("\n".join(lines), "<session>"),
            Path(),
            load_model=lambda _path, _format: loaded,
            load_table=lambda _path, _label, _rows: table,  # type: ignore[arg-type, return-value]
            steps=LEVELS[0],
        )

    def __repr__(self) -> str:
        return "<session, closed>" if self._declared is None else "<session: questions about `m`>"

    def ask(self, question: str, **options: Unpack[CallOptions]) -> Answer:
        """The answer to one question: `find ..`, `sensitive ..` or `count ..`. Options are for this question alone.

        Raises UsageError for a text that holds several, and after the session has been closed.
        """
        if self._declared is None:
            raise UsageError("the session is closed", remedy="ask within `with ts.session(..) as s:`")
        queries = parse(f"query q: {question}", "<question>").queries
        if len(queries) != 1:
            raise UsageError("the text holds several questions", remedy="ask them one by one")
        return self._answered(queries[0], dict(options))

    def _answered(self, node: ast.Query, options: dict[str, Any]) -> Answer:
        assert self._declared is not None
        settings = CallSettings.of({**self._options, **options}) if options else self._settings
        question = self._declared.bind(node)
        mine = replace(settings.options, library_predict=question.library_predicts(settings.replay))
        # Without its tables an answer is not compared with their rows.
        asked = question if mine.regions or question.query.rows is not None else replace(question, tables={}, rows={})
        with interruptible() as interruption:
            budget = mine.budget(interruption.event)
            result = answer_question(asked, mine, budget, confirm=settings.confirm)
        return Answer(question, result, self._frame)

    def close(self) -> None:
        """Gives back what the session keeps."""
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
