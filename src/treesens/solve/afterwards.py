"""What comes after an answer: regions, nearest rows, shares, certificates, cores. What fails there never costs the answer."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import Any, TypeVar

from treesens.compiler.base.checkpoints import OutOfTime
from treesens.compiler.result import Result
from treesens.errors import InternalError, told

_Answer = TypeVar("_Answer")


def afterwards(result: Result, step: str, work: Callable[[], Result]) -> Result:
    """What `work` makes of an answer; the answer itself, with a note and the code of the error, if the step fails.

    An error that is none of the user's goes to the log with its traceback. Interruptions pass.
    """
    try:
        return work()
    except Exception as error:  # noqa: BLE001 - every kind of error becomes a typed one here
        failed = told(error, f"{step} after the answer to {result.query}")
        return replace(result, notes=(*result.notes, f"error[{failed.code}]: {step}: {failed.message}"))


def answered(about: str, work: Callable[[], _Answer], otherwise: Callable[[str], _Answer]) -> _Answer:
    """One answer of several. If treesens itself fails there, what `otherwise` makes of the reason: an open answer, so that the
    others are kept. Errors of the user, and interruptions, pass.
    """
    try:
        return work()
    except OutOfTime:
        raise
    except Exception as error:
        failed = told(error, about)
        if not isinstance(failed, InternalError):
            raise
        return otherwise(f"error[{failed.code}]: {about}: {failed.message}")


def is_own_fault(text: str | None) -> bool:
    """Whether a reason or a note tells of an error of treesens itself."""
    return text is not None and text.startswith(f"error[{InternalError.code}]")


def has_own_fault(result: Result) -> bool:
    """Whether a step after the answer ended in an error of treesens itself."""
    return any(map(is_own_fault, (*result.notes, *(claim.reason for claim in result.certificates))))


def have_own_fault(records: Iterable[Mapping[str, Any]]) -> bool:
    """Whether an answer among the records of a study, or a step after it, ended in an error of treesens itself."""
    parts = [part for one in records for part in (one, one.get("share") or {}, *(one.get("certificates") or ()))]
    return any(is_own_fault(text) for part in parts for text in (part.get("reason"), *(part.get("notes") or ())))
