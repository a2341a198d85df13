"""`treesens opt FILE.sens -p PIPELINE`: runs passes and shows the IR."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from treesens.commands.common import (
    Pieces,
    Whole,
    chosen,
    json_option,
    load_file,
    option_like,
    reads,
    split,
    trust_option,
)
from treesens.commands.modules import are_modules
from treesens.commands.parameters import NAMES, parameter_options
from treesens.compiler.base.diagnostics import did_you_mean
from treesens.compiler.ir.files import read_module
from treesens.errors import InternalError, PipelineError, UsageError
from treesens.report.terminal import say, say_json

if TYPE_CHECKING:
    from treesens.commands.opt_shown import Shown
    from treesens.compiler.ir import Module
    from treesens.compiler.passes.remarks import Kind
    from treesens.compiler.pipeline import Compiled, Pipeline

LOWERED = "lower"
"""The name of the module before the first pass."""


def kinds_of(text: str | None) -> tuple[Kind, ...]:
    """The kinds of remarks in a comma-separated list. Raises UsageError for an unknown kind."""
    from treesens.compiler.passes.remarks import REMARK_KINDS

    for word in (words := split(text)):
        if word not in REMARK_KINDS:
            raise UsageError(f"there are no remarks `{word}`", remedy=did_you_mean(word, REMARK_KINDS))
    return tuple(kind for kind in REMARK_KINDS if kind in words)


@click.command("opt")
@click.argument("file", type=click.Path(path_type=Path), required=False)
@parameter_options
@click.argument("queries", nargs=-1)
@trust_option
@option_like("time_limit", None, "Seconds to compile each question (default: no limit).")
@option_like("pipeline", "default")
@click.option(
    "--list-passes", is_flag=True, help="List passes, with options and statistics, and pipelines; needs no FILE."
)
@click.option(
    "--print-ir-before", "before", multiple=True, metavar="PASS", help="Show the IR before this pass (or `all`)."
)
@click.option(
    "--print-ir-after",
    "after",
    multiple=True,
    metavar="PASS",
    help="Show the IR after this pass (or `all`; `lower` is before the first).",
)
@click.option("--print-ir-on-change", "on_change", is_flag=True, help="Show the IR only after passes that change it.")
@click.option("--diff", is_flag=True, help="Show the difference that a pass makes instead of the IR.")
@click.option("--full", is_flag=True, help="Show every row, in the form that can be parsed.")
@click.option("--verify-each", is_flag=True, help="Check the validity rules of the IR after every pass.")
@click.option(
    "--time-passes", is_flag=True, help="Show time, size and statistics of lowering, passes and legalisation."
)
@click.option(
    "--remarks",
    metavar="KINDS",
    callback=reads(kinds_of),
    help="Show what each pass changed (passed), and what it could not change and why (missed), e.g. passed,missed.",
)
@click.option(
    "--remark-limit", type=Whole(min=0), default=20, show_default=True, help="Remarks shown for each pass and kind."
)
@option_like("check_each", None)
@option_like("reproducer", None)
@json_option
def command(
    file: Path | None,
    queries: tuple[str, ...],
    trust_pickle: bool,
    time_limit: float | None,
    pipeline: str,
    list_passes: bool,
    before: tuple[str, ...],
    after: tuple[str, ...],
    on_change: bool,
    diff: bool,
    full: bool,
    verify_each: bool,
    time_passes: bool,
    remarks: tuple[Kind, ...],
    remark_limit: int,
    check_each: str | None,
    reproducer: Path | None,
    as_json: bool,
) -> int:
    """Run a pipeline over the questions of FILE and print the IR. FILE may also be a .sir module (printed with --full).

    With --json, times, statistics and all remarks are one object on standard output, and the IR goes to standard error.
    """
    from treesens.commands.opt_shown import Shown, say_catalogue, say_times
    from treesens.compiler.ir.text import print_module
    from treesens.compiler.lower import lower
    from treesens.compiler.pipeline import Pipeline, reproducers_in

    pieces = Pieces(time_limit)
    if list_passes:
        say_catalogue(as_json)
        return pieces.code
    if file is None:
        raise UsageError("`opt` needs a FILE", remedy="pass a .sens or .sir file, or --list-passes")
    steps = Pipeline.parse(pipeline)
    _check_names(steps, before, "all")
    _check_names(steps, after, LOWERED, "all")
    asked: list[tuple[str, Callable[[], Module]]]
    own = [
        str(one.name) for one in click.get_current_context().command.params if one.name not in ("trust_pickle", *NAMES)
    ]
    if are_modules([file], queries, *own):
        asked = [(str(file), partial(read_module, file))]
    else:
        bound = chosen(load_file(file, queries, trust_pickle=trust_pickle), queries)
        asked = [(one.name, partial(lower, one.query)) for one in bound]
    if (diff or on_change) and not (before or after):
        after = ("all",)
    shown = Shown(frozenset(before), frozenset(after), on_change, diff, full, as_json, remarks, remark_limit)
    records: list[dict[str, Any]] = []
    for name, made in asked:
        work = partial(_compiled, name, made, steps, shown, verify_each, check_each is not None, time_passes or as_json)
        with reproducers_in(reproducer):
            done = pieces.done(name, work)
        if done is None:
            continue
        compiled, record = done
        if check_each is not None:
            _check(compiled, check_each, time_limit)
        if as_json:
            records.append(record)
            continue
        if time_passes:
            say_times(record)
        if not (before or after):
            say(print_module(compiled.module, full=full), nl=False)
        say(f"sha256 {record['sha256']}  relation {record['relation']}", err=True)
    if as_json:
        say_json({"schema_version": 1, "questions": records})
    return pieces.code


def _compiled(
    name: str,
    make: Callable[[], Module],
    steps: Pipeline,
    shown: Shown,
    verify_each: bool,
    keep_each: bool,
    timed: bool,
) -> tuple[Compiled, dict[str, Any]]:
    """The compiled module, and the record of its compilation; with times if `timed`."""
    from treesens.compiler.ir.text import digest

    start = time.perf_counter()
    module = make()
    seconds = time.perf_counter() - start
    shown.lowered(LOWERED, module)
    compiled = steps.run(
        module, verify_each=verify_each, keep_each=keep_each, before=shown.before_pass, after=shown.after_pass
    )
    record = {"query": name, "sha256": digest(compiled.module), "relation": compiled.relation.value}
    return compiled, record | (_times(compiled, seconds, shown) if timed else {})


def _times(compiled: Compiled, lowering: float, shown: Shown) -> dict[str, Any]:
    """Seconds and sizes of lowering, of each pass with its remarks, and of legalisation, which is run here for its time."""
    from treesens.compiler.legalise.rows import to_rows
    from treesens.compiler.passes.base import size_of

    start = time.perf_counter()
    rows = to_rows(compiled.module).blocks
    legalising = time.perf_counter() - start
    size = size_of(compiled.source).to_dict()
    first = {"seconds": lowering, "size": size}
    passes = []
    for record, remarks in zip(compiled.records, shown.remarks, strict=True):
        before, size = size, record.size.to_dict()
        passes.append(
            {
                "pass": record.text,
                "seconds": record.seconds,
                "before": before,
                "after": size,
                "statistics": record.statistics,
                **({"remarks": [asdict(one) for one in remarks]} if shown.kinds else {}),
            }
        )
    last = {"seconds": legalising, "rows": sum(b.count for b in rows), "nonzeros": sum(len(b.variables) for b in rows)}
    total = lowering + sum(record.seconds for record in compiled.records) + legalising
    return {"lowering": first, "passes": passes, "legalisation": last, "seconds": total}


def _check(compiled: Compiled, solver: str, seconds: float | None) -> None:
    """Validates every pass and shows the results. Raises PipelineError (InternalError for a built-in pass) for a wrong pass."""
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


def _check_names(steps: Pipeline, names: tuple[str, ...], *others: str) -> None:
    """Raises UsageError if a name is not that of a pass in the pipeline, since nothing would be shown."""
    known = [*dict.fromkeys(step.name for step in steps.steps), *others]
    for name in names:
        if name not in known:
            raise UsageError(f"the pipeline has no pass `{name}`", remedy=did_you_mean(name, known))
