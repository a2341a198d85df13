"""The command `treesens`: a group that imports commands lazily, so that `--help` and small commands start immediately."""

from __future__ import annotations

import atexit
import gc
import os
import re
import sys
import threading
from contextlib import suppress
from importlib import import_module
from typing import Any

import click

from treesens import __version__
from treesens.builtin import COMMAND_LINES, STUDIES, STUDY_LINES, has_extensions, service
from treesens.compiler.base.diagnostics import did_you_mean
from treesens.compiler.base.files import one_run
from treesens.compiler.base.plugins import Registry
from treesens.errors import TreesensError, UsageError, unexpected
from treesens.report.terminal import say, use_any_encoding

CORE: dict[str, tuple[str, str]] = {
    "check": ("treesens.commands.check:command", "Answer the questions of a .sens file."),
    "compare": ("treesens.commands.compare:command", "Run the same questions on many backends and pipelines."),
    "explain": ("treesens.commands.explain:command", "Show the meaning of a question and its compiled form."),
    "emit": ("treesens.commands.emit:command", "Write a question in a solver's input format."),
    "opt": ("treesens.commands.opt:command", "Run passes and show the IR."),
    "info": ("treesens.commands.info:command", "Describe a model file."),
    "fmt": ("treesens.commands.fmt:command", "Format .sens files."),
    "doctor": ("treesens.commands.doctor:command", "Check which solvers and libraries work here."),
    "schema": ("treesens.commands.schema:command", "Show the JSON Schema of the records of a command."),
}
BUILTIN = {**CORE, **STUDY_LINES, **COMMAND_LINES} if has_extensions() else CORE
"""The built-in commands, with their locations and help lines."""
HELP_GROUPS = {
    "Start": ("audit", "init", "check", "info", "doctor"),
    "Study a model": ("gap", "count", "range", "shape", "groups", "sets", "diff", "repair", "learn"),
    "Explain a row": ("why", "reasons", "robust"),
    "Question files": ("explain", "fmt", "compare", "sweep", "lsp"),
    "Compiler and solvers": ("opt", "emit", "export", "verify", "vnnlib", "bench", "reduce", "schema"),
}
"""The groups of commands in the help, in its order."""
COMMANDS = Registry(
    kind="command",
    group="treesens.commands",
    builtin={name: place for name, (place, _) in BUILTIN.items()},
    error=UsageError,
)
INTERRUPTED = 130
FAILED_OUTPUTS = "treesens.commands.common"
"""The key of the exit codes of failed outputs in a click context (commands/common.py)."""
TRACEBACK = "TREESENS_TRACEBACK"
"""An environment variable; if set, internal errors show a traceback."""
SCHEDULE = "TREESENS_SCHEDULE"
"""An environment variable: parameters of the engine's schedule for this process (docs/engine.md)."""
CLEANING_SECONDS = 0.7
"""Time limit, in seconds, of libraries' exit handlers after a Ctrl-C."""
COLLECT_EVERY = 50_000
"""Allocations between two garbage collections. The default, 700, adds 8 % to the time of a short command."""


class LazyGroup(click.Group):
    """Imports the module of a command only when the command runs."""

    def invoke(self, ctx: click.Context) -> Any:
        """Runs a command, after discarding the record of files read earlier in this process."""
        with one_run():
            code = super().invoke(ctx)
        if not ctx.meta.get(FAILED_OUTPUTS):
            return code
        from treesens.commands.common import exit_code_with_outputs

        return exit_code_with_outputs(ctx, code)

    def list_commands(self, ctx: click.Context) -> list[str]:
        del ctx
        return command_names()

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        del ctx
        if cmd_name not in BUILTIN and cmd_name not in command_names():
            return None
        is_study = cmd_name in STUDY_LINES or (cmd_name not in BUILTIN and cmd_name in STUDIES.names())
        command: click.Command = service("studies").command_of(cmd_name) if is_study else COMMANDS.get(cmd_name)
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Writes the groups of commands, without importing built-in commands."""
        other = {name: self.get_command(ctx, name) for name in command_names()[len(BUILTIN) :]}
        lines = {name: text for name, (_, text) in BUILTIN.items()}
        lines |= {name: "" if one is None else one.get_short_help_str(200) for name, one in other.items()}
        for title, names in {**HELP_GROUPS, "Plug-ins": tuple(other)}.items():
            if mine := [(name, lines[name]) for name in names if name in lines]:
                with formatter.section(title):
                    formatter.write_dl(mine)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        name = args[0] if args else ""
        if name and not name.startswith("-") and name not in BUILTIN and name not in command_names():
            file = "audit" in BUILTIN and os.path.exists(name)
            help_text = "to audit a model on a table: treesens audit MODEL TABLE" if file else ""
            ctx.fail(f"no command `{name}`; {help_text or did_you_mean(name, command_names())}")
        return super().resolve_command(ctx, args)


def command_names() -> list[str]:
    """The built-in commands, then commands of other distributions. Raises UsageError if a name is used twice."""
    known, studies = COMMANDS.names(), STUDIES.names()[len(STUDY_LINES) :] if has_extensions() else []
    for name in set(known) & set(studies):
        raise UsageError(f"`{name}` of {STUDIES.owner(name)} has the name of another command", remedy="uninstall it")
    return [*known, *studies]


@click.group(cls=LazyGroup, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.version_option(__version__, "-V", "--version", prog_name="treesens")
def group() -> None:
    """Questions about decision-tree ensembles: can changing only `sex` flip this model's decision, on inputs that could really
    occur? If not, can this be proved?
    """


def _leave_at_once() -> None:
    """Exits after a Ctrl-C without waiting for threads or module teardown. All data to be kept has already been written; child
    processes are terminated with this process.
    """
    # A pool has named locks and a named folder in the system. Its queue may also wait forever for killed workers.
    cleaning = threading.Thread(target=atexit._run_exitfuncs, daemon=True)
    cleaning.start()
    with suppress(KeyboardInterrupt):
        cleaning.join(CLEANING_SECONDS)
    for stream in (sys.stdout, sys.stderr):
        with suppress(OSError, ValueError):
            stream.flush()
    os._exit(INTERRUPTED)


def check_schedule() -> None:
    """Raises UsageError if the schedule, which the engine reads when it is imported, is invalid."""
    try:
        import_module("treesens._engine")
    except ImportError as error:
        if SCHEDULE not in str(error):
            raise
        raise UsageError(
            str(error), remedy=f"unset {SCHEDULE}, or write `name=value,name=value` with names of docs/engine.md"
        ) from error


def _about_extra(message: str, words: list[str], context: click.Context | None) -> str:
    """A remedy for an argument too many: a list with spaces, a value after an option that has none, or a table."""
    found = re.search(r"unexpected extra argument \((.+)\)", message)
    at = words.index(found[1]) if found is not None and found[1] in words[1:] else 0
    before = words[at - 1] if at else ""
    if before.endswith(","):
        return f"\n  help: write lists without spaces, or in quotes: {before}{words[at]} (not `{before} {words[at]}`)"
    if before.startswith("--"):
        return f"\n  help: {before} has no value" + (
            f"; write > {words[at]} to save the output" if "json" in before else ""
        )
    options = {option for one in (context.command.params if context else ()) for option in one.opts}
    return (
        f"\n  help: name a table with --data {words[at]}"
        if at and options & {"--data", "rows_file"} == {"--data"}
        else ""
    )


def main(args: list[str] | None = None) -> Any:
    """Runs a command; errors become the exit codes of docs/cli.md, never a traceback."""
    gc.set_threshold(COLLECT_EVERY)
    # No large matrices are multiplied, and BLAS threads waiting for such work waste a tenth of a second at every start.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    use_any_encoding()
    try:
        if os.environ.get(SCHEDULE):
            check_schedule()
        code = group.main(args=args, prog_name="treesens", standalone_mode=False)
        if code == INTERRUPTED and args is None:
            _leave_at_once()
        sys.exit(code if isinstance(code, int) else 0)
    except (click.exceptions.Abort, KeyboardInterrupt):
        if args is None:
            _leave_at_once()
        sys.exit(INTERRUPTED)
    except click.UsageError as error:
        more = _about_extra(error.message, sys.argv[1:] if args is None else args, error.ctx)
        (click.UsageError(error.message + more, error.ctx) if more else error).show()
        sys.exit(1)
    except click.ClickException as error:
        error.show()
        sys.exit(2)
    except TreesensError as error:
        say(f"error[{error.code}]: {error}" if not hasattr(error, "diagnostics") else str(error), err=True)
        sys.exit(error.exit_code)
    except BrokenPipeError:
        sys.exit(1)
    except Exception as error:
        own = unexpected(error)
        say(f"error[{own.code}]: {own}", err=True)
        if os.environ.get(TRACEBACK):
            raise
        sys.exit(own.exit_code)
