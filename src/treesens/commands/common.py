"""What commands share: loading a file, options of the engine, interruption, exit codes."""

from __future__ import annotations

import functools
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import click

from treesens.compiler.base.diagnostics import Diagnostics, did_you_mean
from treesens.errors import UsageError
from treesens.frontends.base import LoadedModel
from treesens.frontends.query import Bound, BoundQuery
from treesens.report.terminal import say

EXPECTED, VIOLATED, INCONCLUSIVE, INTERNAL, INTERRUPTED = 0, 10, 5, 6, 130
BACKEND_NAMES = "auto, search, cpsat, highs, cbc, gurobi, scip, z3, pb"

Function = TypeVar("Function", bound=Callable[..., Any])
Option = Callable[[Any], Any]
"""What `click.option` makes: a decorator."""


def engine_options(function: Function) -> Function:
    """The options that every command which solves has."""
    return _decorated(
        function,
        click.option(
            "--pipeline",
            "-p",
            default="default",
            show_default=True,
            help="kant, ensense, independent, bounded, default, or passes.",
        ),
        _time_limit(60.0, "Seconds each."),
        click.option(
            "--threads", type=click.IntRange(min=1), default=1, show_default=True, help="Threads of one solver."
        ),
        click.option("--memory-limit", type=click.IntRange(min=1), help="Megabytes per solver process."),
        *_run_options("Replay witnesses in the library's arithmetic, or in the library itself."),
    )


def set_options(seconds: float, jobs: int) -> Callable[[Function], Function]:
    """Options of commands about sets of features of one model: `seconds` per set, `jobs` at a time unless told otherwise.

    `vary` arrives as a list of sets, None where none is named.
    """
    return lambda function: _decorated(
        function,
        click.option(
            "--vary",
            "-v",
            multiple=True,
            callback=lambda _context, _option, texts: [split(text) for text in texts] or None,
            help="A feature, or a set as a,b; repeatable. Default: every feature alone.",
        ),
        _time_limit(seconds, "Seconds per set."),
        click.option(
            "--jobs", "-j", type=click.IntRange(min=1), default=jobs, show_default=True, help="Sets at a time."
        ),
        click.option("--format", "form", help="The format of the model, where its content does not say it."),
        *_run_options("Replay witnesses in the library itself (auto: where it is installed), or in its arithmetic."),
    )


def _time_limit(seconds: float, words: str) -> Option:
    return click.option(
        "--time-limit",
        "-t",
        type=click.FloatRange(min=0.001),
        default=seconds,
        show_default=True,
        help=words,
    )


def _run_options(replay: str) -> list[Option]:
    """Seed, replay (in these words) and JSON."""
    return [
        click.option("--seed", type=int, default=0, show_default=True),
        click.option(
            "--replay",
            type=click.Choice(["auto", "emulated", "native"]),
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


def replays_natively(replay: str, model: LoadedModel) -> bool:
    """Whether pairs are replayed in the model's library: where it is asked for, or (auto) installed."""
    from importlib.util import find_spec

    from treesens.frontends.registry import frontend

    return replay == "native" or (replay == "auto" and find_spec(frontend(model.frontend).library) is not None)


file_argument = click.argument("file", type=click.Path(path_type=Path))

trust_option = click.option(
    "--trust-pickle", is_flag=True, help="Unpickle model files, which can run any code; only for files you trust."
)


def load_file(path: Path, *, trust_pickle: bool = False) -> Bound:
    """Reads, parses and binds a `.sens` file; warnings go to standard error. Pickled models are read only where trusted."""
    from treesens.frontends.query import bind
    from treesens.frontends.registry import load
    from treesens.grammar.parser import read

    diagnostics = Diagnostics()
    bound = bind(
        read(path),
        path.parent,
        load_model=lambda place, format: load(place, format, trust_pickle=trust_pickle),
        diagnostics=diagnostics,
    )
    for item in diagnostics:
        if item.severity == "warning":
            say(item.render(), err=True)
    return bound


def chosen(bound: Bound, names: tuple[str, ...]) -> list[BoundQuery]:
    """The queries of a file by name; `NAME` also takes every `NAME[…]` of a sweep."""
    if not bound.queries:
        raise UsageError("the file asks nothing", remedy="add a `query NAME: …`; see docs/language.md")
    if not names:
        return list(bound.queries)
    picked: list[BoundQuery] = []
    for name in names:
        found = [b for b in bound.queries if b.name == name or b.name.startswith(f"{name}[")]
        if not found:
            raise UsageError(
                f"no query `{name}` in the file", remedy=did_you_mean(name, [b.name for b in bound.queries])
            )
        picked += found
    return picked
