"""The Python call of a study: its signature, its docstring and the type stub `calls.pyi`, all made from the declaration."""

from __future__ import annotations

import html
import inspect
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib import import_module
from inspect import Parameter
from pathlib import Path
from typing import Any

from treesens.builtin import STUDIES
from treesens.compiler.base import option_kinds as kinds
from treesens.compiler.base.files import check_output, one_run
from treesens.extensions.studies.python.study_options import annotation_of, default_of, taken
from treesens.extensions.studies.python.study_results import RESULTS, Called, PicturedResult, StudyResult
from treesens.extensions.studies.study import REQUIRED, Asking, Door, Found, Study, declared, in_names_of, told_of
from treesens.python.arguments import bound_arguments
from treesens.python.questions import model_with_rows, table_of
from treesens.python.wording import typed, warn
from treesens.runtime.interruption import interruptible


def calls() -> Iterator[Study[Any, Any]]:
    """The studies that can be called from Python."""
    return (study for name in STUDIES.names() if (study := STUDIES.get(name)).call is not None)


def call_name(study: Study[Any, Any]) -> str:
    """The name of a study's Python function."""
    return study.call_name or study.name


def result_of(study: Study[Any, Any]) -> Any:
    """The class of a study's result in Python."""
    if study.name not in RESULTS:
        return StudyResult if study.picture is None else PicturedResult
    module, _, kind = RESULTS[study.name].partition(":")
    return getattr(import_module(module), kind)


def signature_of(study: Study[Any, Any]) -> inspect.Signature:
    """The signature of a call: models and rows by position or name, options only by name."""
    named = [Parameter(name, Parameter.POSITIONAL_OR_KEYWORD, annotation="Model") for name in study.models]
    if study.table is not None:
        default, data = (Parameter.empty, "Data") if study.needs_table else (None, "Data | None")
        named.append(Parameter("data", Parameter.POSITIONAL_OR_KEYWORD, default=default, annotation=data))
        default, kind = (Parameter.empty, "str") if study.needs_label else (None, "str | None")
        position = Parameter.POSITIONAL_OR_KEYWORD if "label" in study.by_position else Parameter.KEYWORD_ONLY
        label = Parameter("label", position, default=default, annotation=kind)
    options = [
        Parameter(
            one.field,
            Parameter.POSITIONAL_OR_KEYWORD if one.field in study.by_position else Parameter.KEYWORD_ONLY,
            default=Parameter.empty if one.default is REQUIRED else default_of(one),
            annotation=annotation_of(one),
        )
        for one in declared(study.options, Door.PYTHON)
    ]
    named += [one for one in options if one.name in study.by_position]
    if study.table is not None:
        named.append(label)
    named += [one for one in options if one.name not in study.by_position]
    return inspect.Signature(named, return_annotation=result_of(study).__name__)


def study_call(study: Study[Any, Any]) -> Callable[..., Any]:
    """The Python call of a study; the call checks the options once and, on Ctrl-C, returns the results so far."""
    signature = signature_of(study)
    checked = typed(_ask)

    def call(*arguments: Any, **named: Any) -> Any:
        bound = bound_arguments(call_name(study), signature, arguments, named)
        chosen = frozenset(bound.arguments)
        bound.apply_defaults()
        return checked(study, bound.arguments, chosen)

    call.__name__ = call.__qualname__ = call_name(study)
    call.__doc__ = inspect.cleandoc(study.call or "")
    call.__module__ = "treesens.extensions.studies.python.calls"
    call.__signature__ = signature  # type: ignore[attr-defined]
    return call


def _ask(study: Study[Any, Any], given: dict[str, Any], chosen: frozenset[str]) -> Any:
    label, data = given.get("label"), given.get("data")
    values = {one.field: taken(one, given[one.field], data) for one in declared(study.options, Door.PYTHON)}
    with one_run() as reading:
        models = tuple(model_with_rows(given[name], data) for name in study.models)
        for one in declared(study.options, Door.PYTHON):
            if isinstance(one.option.kind, kinds.TableFile) and values[one.field] is not None:
                values[one.field] = table_of(values[one.field], label, None, models)
            kind = one.option.kind
            if isinstance(kind, kinds.OutputPath) and not kind.folder and values[one.field] is not None:
                check_output(values[one.field], kind.needs)
        options = in_names_of(models, study.options(**values))
        found: Found[Any] | None = None
        with interruptible() as interruption, progress_bar(study.work or study.name) as advance:
            table = None if data is None else table_of(data, label, None, models)
            asked = Asking(
                told_of(models, options),
                table,
                options,
                interruption.event,
                advance,
                files=(*(model.ensemble.source.path or "a live object" for model in models), _named(data)),
                command=f"ts.{call_name(study)}(…)",
                chosen=chosen,
            )
            asked = study.completed(asked)
            found = study.asked(asked)
        if found is None:
            raise KeyboardInterrupt
    sources = (model.ensemble.source.path for model in models)
    inputs = reading.inputs | {Path(path).resolve() for path in sources if path}
    called = Called(study, asked, found, data, tuple(sorted(inputs)))
    warn(called.notes)
    result = result_of(study).of(called)
    object.__setattr__(result, "called", called)  # results are frozen
    return result


def _named(data: Any) -> str | None:
    """The name of the data in texts: a path, or the words for an object."""
    return None if data is None else str(data) if isinstance(data, str | Path) else "a data frame"


def stub() -> str:
    """The text of `calls.pyi`."""
    studies = sorted(calls(), key=call_name)
    modules: dict[str, list[str]] = {}
    for study in studies:
        kind = result_of(study)
        modules.setdefault(kind.__module__, []).append(kind.__name__)
    modules["treesens.python.arguments"] = ["Data", "Model"]
    lines = [
        "# Made from the declarations of the studies: python -m tests.extensions.studies.calls_stub --write",
        "from collections.abc import Collection, Mapping, Sequence",
        "from pathlib import Path",
        "from typing import Literal",
        "",
        *(f"from {module} import {', '.join(sorted(set(names)))}" for module, names in sorted(modules.items())),
        "",
        f"__all__ = [{', '.join(chr(34) + call_name(study) + chr(34) for study in studies)}]",
        "",
    ]
    for study in studies:
        lines += [*_stub_of(study), ""]
    return "\n".join(lines)


def _stub_of(study: Study[Any, Any]) -> Iterator[str]:
    signature, star = signature_of(study), False
    yield f"def {call_name(study)}("
    for one in signature.parameters.values():
        if one.kind is Parameter.KEYWORD_ONLY and not star:
            star = True
            yield "    *,"
        default = "" if one.default is Parameter.empty else f" = {one.default!r}".replace("'", '"')
        yield f"    {one.name}: {one.annotation}{default},"
    yield f") -> {signature.return_annotation}:"
    text = inspect.cleandoc(study.call or "").splitlines()
    yield f'    """{text[0]}'
    yield from (f"    {line}".rstrip() for line in text[1:])
    yield '    """'


_SECONDS = 0.2
"""Seconds between two updates of the progress bar; with an update for every record, the bar could be slower than the study."""


def in_notebook() -> bool:
    """True if this process is the kernel of a notebook."""
    shell = sys.modules.get("IPython")
    return shell is not None and hasattr(shell.get_ipython(), "kernel")


@contextmanager
def progress_bar(what: str, total: int | None = None) -> Iterator[Callable[[Any], None]]:
    """Yields a function to be called with every finished record; outside notebooks this function does nothing."""
    if not in_notebook():
        yield lambda _: None
        return
    from IPython.display import HTML, display

    place = display(HTML(_bar(what, 0, total)), display_id=True)
    done, shown = 0, time.monotonic()

    def advance(_: Any) -> None:
        nonlocal done, shown
        done += 1
        if time.monotonic() - shown >= _SECONDS:
            shown = time.monotonic()
            place.update(HTML(_bar(what, done, total)))

    try:
        yield advance
    finally:
        place.update(HTML(""))


def _bar(what: str, done: int, total: int | None) -> str:
    words = f"{html.escape(what)}: {done}" + (f" of {total}" if total is not None else " done")
    limits = "" if total is None else f' value="{done}" max="{max(total, 1)}"'
    return f'<label>{words} <progress{limits} aria-label="{html.escape(what)}"></progress></label>'
