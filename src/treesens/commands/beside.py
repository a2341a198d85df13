"""What a command writes beside its answers, in one way that loses none: pictures, pages, files for CI, tables to read."""

from __future__ import annotations

from collections.abc import Callable

import click

from treesens.commands.common import INTERNAL, INTERRUPTED
from treesens.errors import told
from treesens.report.terminal import say

_FAILED = __name__
"""Where a run of a command keeps the exit codes of outputs that failed; cli.py looks there."""


def write_beside(what: str, work: Callable[[], object]) -> bool:
    """Writes one output beside the answers.

    If that fails it is said, with the code of the error, and the exit code of the command will tell (`exit_code_with_outputs`).
    It costs no answer and no other output. Interruptions pass. Returns whether it was written.
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
    """The exit code of an output that failed."""
    click.get_current_context().meta.setdefault(_FAILED, []).append(exit_code)


def exit_code_with_outputs(context: click.Context, code: object) -> object:
    """How a command ends that would have ended in `code`: outputs that failed go before all but an interruption."""
    failed: list[int] = context.meta.get(_FAILED, [])
    if not failed or code == INTERRUPTED:
        return code
    return INTERNAL if INTERNAL in (*failed, code) else failed[0]
