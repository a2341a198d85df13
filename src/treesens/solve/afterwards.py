"""What comes after an answer: regions, nearest rows, shares, certificates, cores. What fails there never costs the answer."""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import replace

from treesens.compiler.result import Result
from treesens.errors import InternalError, TreesensError, unexpected

_LOG = logging.getLogger("treesens")


def afterwards(result: Result, step: str, work: Callable[[], Result]) -> Result:
    """What `work` makes of an answer; the answer itself, with a note and the code of the error, if the step fails.

    An error that is none of the user's goes to the log with its traceback. Interruptions pass.
    """
    try:
        return work()
    except TreesensError as error:
        failed = error
    except Exception as error:  # noqa: BLE001 - every kind of error becomes a typed one here
        failed = unexpected(error)
        _LOG.debug("%s failed after the answer to %s", step, result.query, exc_info=True)
    return replace(result, notes=(*result.notes, f"error[{failed.code}]: {step}: {failed.message}"))


def has_own_fault(result: Result) -> bool:
    """Whether a step after the answer ended in an error of treesens itself."""
    return any(note.startswith(f"error[{InternalError.code}]") for note in result.notes)
