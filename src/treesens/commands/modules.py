"""Modules (`.sir`) as the input of commands that answer questions."""

from __future__ import annotations

import shlex
import sys
import time
from collections.abc import Sequence, Set
from pathlib import Path
from typing import TYPE_CHECKING

import click
from click.core import ParameterSource

from treesens.commands.common import EXPECTED, INCONCLUSIVE, INTERRUPTED
from treesens.compiler.base.option_kinds import Door, declared
from treesens.compiler.ir.files import is_module_file, read_module
from treesens.compiler.result import Verdict
from treesens.errors import UsageError
from treesens.report.terminal import say_json
from treesens.runtime.interruption import interruptible
from treesens.solve.options import Options

if TYPE_CHECKING:
    from treesens.compiler.ir import Module

OF_EVERY_COMMAND = frozenset({"as_json", "quiet"})


def are_modules(files: Sequence[Path], names: Sequence[str], *own: str) -> bool:
    """True if the files are modules, False if they are files of questions.

    Raises UsageError for both kinds at once, and for a query name or an option that needs a model. Options with the door MODULE
    and the command's `own` options (parameter names) do not need one.
    """
    modules = [file for file in files if is_module_file(file)]
    if not modules:
        return False
    if len(modules) < len(files):
        raise UsageError("modules and questions in one command", remedy="pass them in two commands")
    known = {one.field for one in declared(Options, Door.MODULE)}
    refuse_others(f"the module {modules[0]}", names, known | OF_EVERY_COMMAND | set(own))
    return True


def refuse_others(what: str, names: Sequence[str], known: Set[str]) -> None:
    """Raises UsageError for a query name, or an option other than these, with an input that has no model."""
    if names:
        raise UsageError(f"{what} has no query `{names[0]}`", remedy="it is one question; omit the name")
    context = click.get_current_context()
    for option in context.command.params:
        given = context.get_parameter_source(option.name or "") not in {ParameterSource.DEFAULT, None}
        if isinstance(option, click.Option) and given and option.name not in known:
            raise UsageError(
                f"`{option.opts[0]}` needs a model, and {what} has none",
                remedy="omit the option, or pass the .sens file of the question",
            )


def check_modules(files: Sequence[Path], options: Options, *, as_json: bool, quiet: bool) -> int:
    """Answers modules; a module has no expectation, so both `found` and `none` give exit code 0."""
    from treesens.records.answers import envelope
    from treesens.records.modules import module_record
    from treesens.records.plain import SCHEMA_VERSION
    from treesens.report.modules import show_module
    from treesens.solve.module import answer_module

    line, objects, code = shlex.join(["treesens", *sys.argv[1:]]), [], EXPECTED
    with interruptible() as interruption:
        for path in files:
            started = time.perf_counter()
            module: Module = read_module(path)
            result = answer_module(module, options, options.budget(interruption.event))
            if result.verdict is Verdict.UNKNOWN:
                code = INCONCLUSIVE
            record = module_record(module, result, command=line, seed=options.seed)
            objects.append(envelope(path, [record], seconds=round(time.perf_counter() - started, 6)))
            if not as_json and not quiet:
                show_module(module, result)
            if interruption.happened:
                code = INTERRUPTED
                break
    if as_json:
        say_json(objects[0] if len(files) == 1 else {"schema_version": SCHEMA_VERSION, "files": objects})
    return code
