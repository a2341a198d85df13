"""Parts that commands share: file loading, engine options, interruption, exit codes."""

from __future__ import annotations

import functools
import math
import re
from collections.abc import Callable, Iterable, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, TypeVar, cast

import click

from treesens.binder.file import ResolvedFile, ResolvedQuestion, selects
from treesens.commands.outputs import OutputFile
from treesens.commands.parameters import parameter_options, read_file
from treesens.compiler.base import option_kinds as kinds
from treesens.compiler.base.budget import Budget, OutOfTime, working_within
from treesens.compiler.base.diagnostics import Diagnostics, did_you_mean
from treesens.compiler.base.floats import float_of, whole_of
from treesens.errors import UsageError, told
from treesens.grammar.tree import ast
from treesens.report.terminal import be_quiet, say
from treesens.visible import visible

EXPECTED, UNREADABLE, VIOLATED, INCONCLUSIVE, INTERNAL, INTERRUPTED = 0, 2, 10, 5, 6, 130

Function = TypeVar("Function", bound=Callable[..., Any])
Made = TypeVar("Made")
Option = Callable[[Any], Any]
"""The result of `click.option`: a decorator."""


class Whole(click.IntRange):
    """An integer in a range, written with the digits 0 to 9."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        if isinstance(value, str) and whole_of(value) is None:
            self.fail(f"`{value}` is not a whole number", param, ctx)
        return int(super().convert(value, param, ctx))


class Number(click.FloatRange):
    """A number in a range; `nan` is always rejected."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        known = not isinstance(value, str) or float_of(value) is not None
        number = float(super().convert(value, param, ctx)) if known else math.nan
        if math.isnan(number):
            unit = re.fullmatch(r"([\d.]+) ?(s|m|h)[a-z]*", str(value))
            seconds = (
                (float_of(unit[1]) or 0) * {"s": 1, "m": 60, "h": 3600}[unit[2]] if unit and self is SECONDS else 0
            )
            self.fail(f"`{value}` is not a number" + (f"; write seconds: {seconds:g}" if seconds else ""), param, ctx)
        return number


SECONDS = Number(min=0.001, max=1e9)


class Word(click.Choice[str]):
    """One of a fixed set of words, or a former word that one of these words replaced."""

    def __init__(self, kind: kinds.Choice) -> None:
        self.kind = kind
        super().__init__(kind.words)

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        chosen: str = super().convert(self.kind.present(value), param, ctx)
        return chosen


def words_and_facts(
    one: kinds.Declared, reading: Callable[[kinds.Declared], dict[str, Any]] | None = None
) -> tuple[list[str], dict[str, Any]]:
    """The command-line names of an option, and `click.Option`'s arguments; the default for `reading` is `read_as`."""
    option = one.option
    default = one.default if option.at_command is None else option.at_command
    words = [one.field, one.flag, *([option.short] if option.short else []), *option.also]
    facts: dict[str, Any] = {"help": option.sentence, "metavar": option.metavar}
    if default is kinds.REQUIRED:
        facts["required"] = True
    elif not (default is None or default is False or default == ()):
        facts |= {"default": default, "show_default": True}
    return words, facts | (reading or read_as)(one)


def read_as(one: kinds.Declared) -> dict[str, Any]:
    """The arguments for `click.Option` that set an option's type and convert its text."""
    match one.option.kind:
        case kinds.Flag():
            return {"is_flag": True}
        case kinds.Whole(least, most):
            return {"type": Whole(min=least, max=most)}
        case kinds.Number(low, high):
            return {"type": Number(min=low, max=high)}
        case kinds.Seconds():
            return {"type": SECONDS}
        case kinds.Choice() as kind:
            return {"type": Word(kind)}
        case kinds.Bytes(in_words=unit):
            return {"type": Whole(min=1), "callback": reads(lambda size: None if size is None else size * unit)}
        case kinds.OutputPath(folder, needs, made_by):
            return {"type": OutputFile(folder=folder, needs=needs, made_by=made_by)}
        case kinds.Solver() | kinds.Passes() as kind:
            return {"callback": reads(partial(_known_name, kind, one.field))}
        case _:
            return {}


def reads(reading: Callable[[Any], Any]) -> Callable[[object, object, Any], Any]:
    """The callback of an option that converts its value by `reading`."""
    return lambda _context, _option, value: reading(value)


def _known_name(kind: kinds.Solver | kinds.Passes, name: str, value: str | None) -> str | None:
    from treesens.python.settings import check_pipeline, check_solver

    if value is not None:
        check_solver(name, value, kind) if isinstance(kind, kinds.Solver) else check_pipeline(name, value)
    return value


def options_at(door: kinds.Door) -> Callable[[Function], Function]:
    """Adds the options of a question and `--json` to a command, which receives them as `options` and `as_json`."""

    def decorate(function: Function) -> Function:
        from treesens.solve.options import Options

        mine = kinds.declared(Options, door)

        @functools.wraps(function)
        def asked(*args: Any, **given: Any) -> Any:
            values = {one.field: given.pop(one.field) for one in mine}
            return function(*args, options=Options(**values), **given)

        return cast(Function, _decorated(asked, *map(click_option, mine), json_option))

    return decorate


def click_option(one: kinds.Declared) -> Option:
    """A declared option as a decorator."""
    words, facts = words_and_facts(one)
    return click.option(*words, **facts)


def option_like(name: str, default: Any, words: str | None = None) -> Option:
    """The decorator for an option of `check` in another command, with another default and, optionally, another help text."""
    from treesens.solve.options import Options

    one = kinds.declaration(Options, name)
    option = one.option if words is None else replace(one.option, sentence=words)
    return click_option(replace(one, default=default, option=option))


json_option = click.option("--json", "as_json", is_flag=True, help="One JSON object on standard output.")


def checked_folder(certificates: Path | None, required: bool) -> Path | None:
    """Raises UsageError if certificates are required but there is no folder for them."""
    if required and certificates is None:
        raise UsageError("--require-certificate needs a folder", remedy="add --certificate DIR")
    return certificates


def certificate_summary(records: Iterable[dict[str, Any]]) -> str:
    """The number of claims with certificates in the records, and the reasons for missing certificates."""
    claims = [c for record in records for c in record.get("certificates") or ()]
    reasons = sorted({c["reason"] for c in claims if not c["file"]})
    missing = sum(not c["file"] for c in claims)
    words = f"certificates: {len(claims) - missing} accepted"
    return words + (f", {missing} claims without one ({'; '.join(reasons)})" if missing else "")


def _quiet(context: click.Context, _option: object, wanted: bool) -> None:
    if wanted:
        be_quiet(context)


quiet_option = click.option(
    "--quiet",
    "-q",
    is_flag=True,
    expose_value=False,
    callback=_quiet,
    help="Print no table, only warnings, and set the exit code.",
)
"""The option for commands that show a table; no argument is passed."""


def named_set(text: str) -> list[str]:
    """The names in a non-empty set of features."""
    if not (names := split(text)):
        raise UsageError("--vary names no feature", remedy="pass a feature or set a,b; without --vary each is tried")
    return names


@dataclass
class Pieces:
    """Runs pieces of work, each within `seconds` (None: no limit). A piece that takes longer is aborted with a message; the
    other pieces are not affected.
    """

    seconds: float | None
    code: int = EXPECTED

    def done(self, name: str, work: Callable[[], Made]) -> Made | None:
        """The result of one piece of work, or None if its time ran out; messages contain the piece's `name`."""
        try:
            with nullcontext() if self.seconds is None else working_within(Budget.of(self.seconds)):
                return work()
        except OutOfTime:
            self.code = INCONCLUSIVE
            say(f"{visible(name)}: left undone, {self.seconds:g} s are over", err=True)
            return None


def _decorated(function: Any, *options: Option) -> Any:
    """A function with options added, in the order of the help."""
    return functools.reduce(lambda f, option: option(f), reversed(options), function)


def split(text: str | None) -> list[str]:
    """The parts of a comma-separated list. Commas in braces, as in `highs{presolve=off,threads=1}`, quotes and backquotes, as
    in "debt, %", separate no parts.
    """
    return [unquoted(part) for part in _PART.findall(text or "") if part.strip()]


def unquoted(part: str) -> str:
    """A part of a list without the quotes around it."""
    return part[1:-1] if _QUOTED.fullmatch(part := part.strip()) else part


_QUOTED = re.compile(r"""`[^`]+`|"[^"]+\"""")
_PART = re.compile(r"""(?:`[^`]*`|"[^"]*"|\{[^}]*\}|[^,])+""")


def file_argument(function: Function) -> Function:
    """Adds FILE, and the options that replace numbers in it."""
    return cast("Function", click.argument("file", type=click.Path(path_type=Path))(parameter_options(function)))


trust_option = click.option(
    "--trust-pickle", is_flag=True, help="Unpickle model files that you trust; a pickle can run any code."
)


def load_file(path: Path, names: tuple[str, ...] = (), *, trust_pickle: bool = False) -> ResolvedFile:
    """Reads, parses and binds a `.sens` file, or standard input (`-`); warnings go to standard error. Pickled models are read
    only if they are trusted.

    With `names`, only these queries are bound; without `names`, all queries. A mistake in a query does not affect other
    queries: the mistake is shown, and `exit_code_of` sets the exit code 2.
    """
    from treesens.binder.file import bind
    from treesens.frontends.registry import load

    diagnostics = Diagnostics()
    file = read_file(path)
    _refuse_unknown(file.queries, names)
    bound = bind(
        file,
        path.parent,
        load_model=lambda place, format: load(place, format, trust_pickle=trust_pickle),
        diagnostics=diagnostics,
        names=names,
        keep_going=True,
    )
    for item in diagnostics:
        if item.severity != "error":
            say(item.render(), err=True)
    for name, error in bound.broken.items():
        some = any(question.query.name.startswith(f"{name}[") for question in bound.queries)
        lost = f"Not every question of `{name}` is answered" if some else f"`{name}` is not answered"
        say(f"{error}\n{lost}; the other queries are.", err=True)
    return bound


def exit_code_of(bound: ResolvedFile, code: int) -> int:
    """The exit code for a file whose queries have been processed: an invalid query is an error."""
    return UNREADABLE if bound.broken and code in {EXPECTED, INCONCLUSIVE} else code


def _refuse_unknown(queries: Sequence[ast.Query], names: tuple[str, ...]) -> None:
    known = [query.name.text for query in queries]
    for name in names:
        if not any(selects(name, one) for one in known):
            raise UsageError(f"no query `{name}` in the file", remedy=did_you_mean(name, known))


def chosen(bound: ResolvedFile, names: tuple[str, ...]) -> list[ResolvedQuestion]:
    """The queries of a file by name; `NAME` also takes every `NAME[…]` of a sweep."""
    if not bound.queries:
        raise UsageError("the file has no query", remedy="add a `query NAME: …`; see docs/language.md")
    if not names:
        return list(bound.queries)
    picked: list[ResolvedQuestion] = []
    for name in names:
        found = [b for b in bound.queries if b.name == name or b.name.startswith(f"{name}[")]
        if not found and not bound.broken:
            raise UsageError(
                f"no query `{name}` in the file", remedy=did_you_mean(name, [b.name for b in bound.queries])
            )
        picked += found
    return picked


def write_output(what: str, work: Callable[[], object]) -> bool:
    """Writes an additional output besides the answers.

    A failure is reported with its error code and sets the command's exit code (`exit_code_with_outputs`). Answers and other
    outputs are not affected. Interruptions propagate. Returns True if the output was written.
    """
    try:
        work()
        return True
    except BrokenPipeError:
        raise
    except Exception as error:  # noqa: BLE001 - every kind of error becomes a typed one here
        failed = told(error, f"{what} after the answers")
    say(f"error[{failed.code}]: {what}: {failed}", err=True)
    end_with(failed.exit_code)
    return False


def end_with(exit_code: int) -> None:
    """Records the exit code of a failed output."""
    click.get_current_context().meta.setdefault(__name__, []).append(exit_code)


def exit_code_with_outputs(context: click.Context, code: object) -> object:
    """The exit code of a command that would exit with `code`: a failed output's code overrides all except an interruption's."""
    failed: list[int] = context.meta.get(__name__, [])
    if not failed or code == INTERRUPTED:
        return code
    return INTERNAL if INTERNAL in (*failed, code) else failed[0]
