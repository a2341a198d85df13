"""What commands share: loading a file, options of the engine, interruption, exit codes."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Iterable, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar, cast

import click

from treesens.binder.file import ResolvedFile, ResolvedQuestion
from treesens.commands.outputs import OutputFile
from treesens.compiler.base.budget import Budget, OutOfTime, working_within
from treesens.compiler.base.diagnostics import Diagnostics, did_you_mean
from treesens.compiler.base.floats import float_of, whole_of
from treesens.compiler.base.tolerance import RELATIVE
from treesens.errors import UsageError
from treesens.grammar.tree import ast
from treesens.report.terminal import be_quiet, say
from treesens.visible import visible

EXPECTED, UNREADABLE, VIOLATED, INCONCLUSIVE, INTERNAL, INTERRUPTED = 0, 2, 10, 5, 6, 130

Function = TypeVar("Function", bound=Callable[..., Any])
Made = TypeVar("Made")
Option = Callable[[Any], Any]
"""What `click.option` makes: a decorator."""


class Whole(click.IntRange):
    """A whole number in a range, in the digits 0 to 9."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        if isinstance(value, str) and whole_of(value) is None:
            self.fail(f"`{value}` is no whole number", param, ctx)
        return int(super().convert(value, param, ctx))


class Number(click.FloatRange):
    """A number in a range; `nan` is in none."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        known = not isinstance(value, str) or float_of(value) is not None
        number = float(super().convert(value, param, ctx)) if known else math.nan
        if math.isnan(number):
            self.fail(f"`{value}` is no number", param, ctx)
        return number


SECONDS = Number(min=0.001, max=1e9)
_MOST_SEED = 2**31 - 1


def seed_option(default: int | None = 0, words: str | None = None) -> Option:
    """`--seed`: what every solver takes."""
    kind = Whole(min=0, max=_MOST_SEED)
    return click.option("--seed", type=kind, default=default, show_default=default is not None, help=words)


def engine_options(function: Function) -> Function:
    """The options that every command which solves has."""
    return _decorated(
        tolerance_options(function),
        click.option(
            "--pipeline",
            "-p",
            default="default",
            show_default=True,
            help="kant, ensense, independent, bounded, default, or passes.",
        ),
        time_limit_option(60.0, "Seconds each."),
        click.option("--threads", type=Whole(min=1), default=1, show_default=True, help="Threads of one solver."),
        click.option("--memory-limit", type=Whole(min=1), help="Megabytes per solver process."),
        *_run_options("Replay witnesses in the library's arithmetic, or in the library itself."),
    )


def tolerance_options(function: Function) -> Function:
    """When an optimum is good enough; arrives as `tolerance` and `absolute_tolerance`, both 0 for the last unit."""

    @functools.wraps(function)
    def with_tolerances(*args: Any, optimal: bool, tolerance: float, absolute_tolerance: float, **given: Any) -> Any:
        if optimal:
            tolerance = absolute_tolerance = 0.0
        return function(*args, tolerance=tolerance, absolute_tolerance=absolute_tolerance, **given)

    decorated = _decorated(
        with_tolerances,
        click.option(
            "--tolerance",
            type=Number(min=0.0, max=1.0),
            default=RELATIVE,
            show_default=True,
            help="The relative gap at which an optimum counts as proved.",
        ),
        click.option(
            "--absolute-tolerance",
            type=Number(min=0.0, max=1e300),
            default=0.0,
            show_default=True,
            help="The same gap in the units of the objective.",
        ),
        click.option("--optimal", is_flag=True, help="Optima to the last unit: both tolerances are 0."),
    )
    return cast(Function, decorated)


def certificate_option(function: Function) -> Function:
    """For commands whose answers can have certificates; `certificates` is a folder or None."""

    words = "A folder for certificates of the answers, which anybody can check (docs/certificates.md)."
    kind = OutputFile(folder=True, made_by="certificates")
    return click.option("--certificate", "certificates", type=kind, help=words)(function)


def require_option(function: Function) -> Function:
    """For commands whose verdicts can be made to rest on certificates."""
    return click.option(
        "--require-certificate",
        is_flag=True,
        help="What rests on a proof without an accepted certificate becomes unknown.",
    )(function)


def checked_folder(certificates: Path | None, required: bool) -> Path | None:
    """Raises UsageError if certificates are required and no folder is given for them."""
    if required and certificates is None:
        raise UsageError("--require-certificate needs a folder", remedy="add --certificate DIR")
    return certificates


def certificate_summary(records: Iterable[dict[str, Any]]) -> str:
    """How many claims of some records have certificates, and why others have none."""
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
    help="No table: warnings, and the exit code.",
)
"""For commands that show a table; nothing arrives."""


def named_set(text: str) -> list[str]:
    """A set of features, which is not empty."""
    if not (names := split(text)):
        raise UsageError("--vary names no feature", remedy="name one, or a set as a,b; without --vary each is tried")
    return names


def time_limit_option(seconds: float | None, words: str) -> Option:
    """`time_limit` arrives: seconds, or None if there is no limit unless one is given."""
    return click.option(
        "--time-limit",
        "-t",
        type=SECONDS,
        default=seconds,
        show_default=seconds is not None,
        help=words,
    )


@dataclass
class Pieces:
    """Work that is done piece by piece, each within `seconds` (None: without a limit). One that takes longer is left, which is
    said; it costs the others nothing.
    """

    seconds: float | None
    code: int = EXPECTED

    def done(self, name: str, work: Callable[[], Made]) -> Made | None:
        """What one of them makes, called by a name in messages; None if there was no time for it."""
        try:
            with nullcontext() if self.seconds is None else working_within(Budget.of(self.seconds)):
                return work()
        except OutOfTime:
            self.code = INCONCLUSIVE
            say(f"{visible(name)}: left undone, {self.seconds:g} s are over", err=True)
            return None


class ReplayChoice(click.Choice[str]):
    """`native` is the old word for `library`."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        chosen: str = super().convert("library" if value == "native" else value, param, ctx)
        return chosen


def _run_options(replay: str) -> list[Option]:
    """Seed, replay (in these words) and JSON."""
    return [
        seed_option(),
        click.option(
            "--replay",
            type=ReplayChoice(["auto", "emulated", "library"]),
            default="auto",
            show_default=True,
            help=replay,
        ),
        click.option("--json", "as_json", is_flag=True, help="One JSON object on standard output."),
    ]


def _decorated(function: Function, *options: Option) -> Function:
    """A function with options, in the order in which help shows them."""
    return functools.reduce(lambda f, option: option(f), reversed(options), function)


def split(text: str | None) -> list[str]:
    """The parts of a comma-separated list."""
    return [part.strip() for part in (text or "").split(",") if part.strip()]


file_argument = click.argument("file", type=click.Path(path_type=Path))

trust_option = click.option(
    "--trust-pickle", is_flag=True, help="Unpickle model files, which can run any code; only for files you trust."
)


def load_file(path: Path, names: tuple[str, ...] = (), *, trust_pickle: bool = False, steps: int = 0) -> ResolvedFile:
    """Reads, parses and binds a `.sens` file, or standard input (`-`); warnings go to standard error. Pickled models are read
    only if they are trusted.

    Of the queries those of `names` are bound (all without names). A mistake in one of them costs the others nothing: it is
    shown, and `exit_code_of` makes the command end with 2. For `steps` see `bind`.
    """
    from treesens.binder.file import bind
    from treesens.frontends.registry import load
    from treesens.grammar.parsing.parser import read

    diagnostics = Diagnostics()
    file = read(path)
    _refuse_unknown(file.queries, names)
    bound = bind(
        file,
        path.parent,
        load_model=lambda place, format: load(place, format, trust_pickle=trust_pickle),
        diagnostics=diagnostics,
        names=names,
        keep_going=True,
        steps=steps,
    )
    for item in diagnostics:
        if item.severity != "error":
            say(item.render(), err=True)
    for name, error in bound.broken.items():
        some = any(question.query.name.startswith(f"{name}[") for question in bound.queries)
        lost = f"Not every question of `{name}` is asked" if some else f"`{name}` is not asked"
        say(f"{error}\n{lost}; the other queries are.", err=True)
    return bound


def exit_code_of(bound: ResolvedFile, code: int) -> int:
    """The exit code of a command that is done with the queries of a file; a query without a meaning is an error."""
    return UNREADABLE if bound.broken and code in {EXPECTED, INCONCLUSIVE} else code


def _refuse_unknown(queries: Sequence[ast.Query], names: tuple[str, ...]) -> None:
    known = [query.name.text for query in queries]
    for name in names:
        if not any(name == one or name.startswith(f"{one}[") for one in known):
            raise UsageError(f"no query `{name}` in the file", remedy=did_you_mean(name, known))


def chosen(bound: ResolvedFile, names: tuple[str, ...]) -> list[ResolvedQuestion]:
    """The queries of a file by name; `NAME` also takes every `NAME[…]` of a sweep."""
    if not bound.queries:
        raise UsageError("the file asks nothing", remedy="add a `query NAME: …`; see docs/language.md")
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
