"""Writes a command's further outputs (pictures, pages, files for CI, tables) so that failures do not affect its answers."""

from __future__ import annotations

from collections.abc import Callable

import click

from treesens.commands.common import INTERNAL, INTERRUPTED
from treesens.errors import told
from treesens.report.terminal import say

_FAILED = __name__
"""The key of the exit codes of failed outputs in a click context; cli.py reads it."""


def write_beside(what: str, work: Callable[[], object]) -> bool:
    """Writes one output in addition to the answers.

    A failure is reported with the error code, and becomes the command's exit code (`exit_code_with_outputs`). Answers and other
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
    """Adds the exit code for a failed output."""
    click.get_current_context().meta.setdefault(_FAILED, []).append(exit_code)


def exit_code_with_outputs(context: click.Context, code: object) -> object:
    """The exit code of a command that would end with `code`: a failed output's code wins, except over an interruption."""
    failed: list[int] = context.meta.get(_FAILED, [])
    if not failed or code == INTERRUPTED:
        return code
    return INTERNAL if INTERNAL in (*failed, code) else failed[0]
