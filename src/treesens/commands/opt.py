"""`treesens opt FILE.sens -p PIPELINE`: runs passes and shows the IR."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import click

from treesens.commands.common import Pieces, chosen, file_argument, load_file, option_like, trust_option
from treesens.compiler.base.diagnostics import did_you_mean
from treesens.compiler.base.files import MOST_TEXT_BYTES, read_regular
from treesens.errors import InternalError, IRError, PipelineError, UsageError
from treesens.report.terminal import say

if TYPE_CHECKING:
    from treesens.compiler.ir import Module
    from treesens.compiler.pipeline import Compiled, Pipeline

LOWERED = "lower"
"""The name of the module before the first pass."""


@click.command("opt")
@file_argument
@click.argument("queries", nargs=-1)
@trust_option
@option_like("time_limit", None, "Seconds to compile each question (default: no limit).")
@option_like("pipeline", "default")
@click.option(
    "--print-ir-after",
    "after",
    multiple=True,
    metavar="PASS",
    help="Show the IR after this pass (or `all`; `lower` is before the first).",
)
@click.option("--full", is_flag=True, help="Show every row, in the form that can be parsed.")
@click.option("--verify-each", is_flag=True, help="Check the validity rules of the IR after every pass.")
@click.option("--time-passes", is_flag=True, help="Show time, size and statistics of every pass.")
@option_like("check_each", None)
@option_like("reproducer", None)
def command(
    file: Path,
    queries: tuple[str, ...],
    trust_pickle: bool,
    time_limit: float | None,
    pipeline: str,
    after: tuple[str, ...],
    full: bool,
    verify_each: bool,
    time_passes: bool,
    check_each: str | None,
    reproducer: Path | None,
) -> int:
    """Run a pipeline over the questions of FILE and print the IR. FILE may also be a .sir module (printed with --full)."""
    from treesens.compiler.ir.text import digest, print_module
    from treesens.compiler.lower import lower
    from treesens.compiler.pipeline import Pipeline, reproducers_in

    steps = Pipeline.parse(pipeline)
    _check_names(steps, after)
    asked: list[tuple[str, Callable[[], Module]]]
    if file.suffix == ".sir":
        asked = [(str(file), partial(read_module, file))]
    else:
        bound = chosen(load_file(file, queries, trust_pickle=trust_pickle), queries)
        asked = [(one.name, partial(lower, one.query)) for one in bound]

    def show(name: str, module: Module) -> None:
        if name in after or "all" in after:
            say(f"; after {name}\n{print_module(module, full=full)}")

    def compiled_of(make: Callable[[], Module]) -> Compiled:
        module = make()
        show(LOWERED, module)
        with reproducers_in(reproducer):
            return steps.run(module, verify_each=verify_each, keep_each=check_each is not None, after=show)

    pieces = Pieces(time_limit)
    for name, made in asked:
        compiled = pieces.done(name, partial(compiled_of, made))
        if compiled is None:
            continue
        if check_each is not None:
            _check(compiled, check_each, time_limit)
        if time_passes:
            for record in compiled.records:
                size = ", ".join(f"{value:,} {key}" for key, value in record.size.to_dict().items())
                facts = ", ".join(f"{key} {value:,}" for key, value in record.statistics.items())
                say(f"{record.seconds * 1000:9.1f} ms  {record.text:32} {size}  ({facts})", err=True)
        if not after:
            say(print_module(compiled.module, full=full), nl=False)
        say(f"sha256 {digest(compiled.module)}  relation {compiled.relation.value}", err=True)
    return pieces.code


def _check(compiled: Compiled, solver: str, seconds: float | None) -> None:
    """Validates every pass, and shows the results. Raises PipelineError, or InternalError for our own, if a pass is wrong."""
    from treesens.compiler.base.budget import Budget
    from treesens.compiler.passes.registry import PASSES
    from treesens.compiler.passes.validation import Outcome
    from treesens.solve.options import Options
    from treesens.solve.validation import validations

    limit = Options.time_limit if seconds is None else seconds
    for rewrite, found in zip(compiled.rewrites, validations(compiled, solver, Budget.of(limit)), strict=True):
        say(f"check {found}", err=True)
        if found.outcome is Outcome.COUNTEREXAMPLE:
            owner = PASSES.owner(rewrite.step.name)
            message = f"the pass `{rewrite.text}`{f' of {owner}' if owner else ''} is wrong: {found.reason}"
            raise PipelineError(message) if owner else InternalError(message)


def _check_names(steps: Pipeline, after: tuple[str, ...]) -> None:
    """Raises UsageError if `after` contains a pass that is not in the pipeline, since nothing would be shown."""
    known = [LOWERED, *(step.name for step in steps.steps), "all"]
    for name in after:
        if name not in known:
            raise UsageError(f"the pipeline has no pass `{name}`", remedy=did_you_mean(name, known))


def read_module(path: Path) -> Module:
    """The module in a `.sir` file, checked against the validity rules of the IR. Raises IRError with the line or rule."""
    from treesens.compiler.ir.text import parse_module
    from treesens.compiler.ir.verifier import verify

    try:
        text = read_regular(path, MOST_TEXT_BYTES).decode("utf-8")
    except OSError as error:
        raise IRError(f"the module cannot be read: {error.strerror}", place=str(path)) from None
    except UnicodeDecodeError as error:
        raise IRError(f"byte {error.start} is not UTF-8", place=str(path), remedy="pass opt --full output") from None
    module = parse_module(text)
    verify(module)
    return module
