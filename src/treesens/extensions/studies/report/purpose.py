"""The purpose of a report and the people responsible for it, read from a small TOML file that the user writes."""

from __future__ import annotations

import os
import tomllib
from collections.abc import Mapping
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any

from treesens.compiler.base.diagnostics import did_you_mean
from treesens.compiler.base.files import MOST_TEXT_BYTES, read_regular
from treesens.errors import UsageError

FIELDS = {
    "title": "Title",
    "model_name": "Model",
    "model_version": "Version of the model",
    "purpose": "Purpose of the audit",
    "intended_use": "Intended use of the model",
    "decision": "Decision that is based on the model",
    "owner": "Owner of the model",
    "developer": "Developer",
    "validator": "Validator",
    "data_source": "Source of the data",
    "next_review": "Next review",
    "notes": "Notes",
}
"""Keys of the file, in the order of the page, with their labels on the page."""

LISTS = ("limitations", "sign_off")
"""Keys with several lines: limitations beyond those of the method, and the roles of the people who sign."""

SIGNERS = ("Prepared by", "Validated by", "Approved by")


def read_purpose(path: Path | None) -> dict[str, Any]:
    """The fields of the file. Raises UsageError for unknown fields, and for values that are not texts."""
    if path is None:
        return {}
    try:
        given = tomllib.loads(read_regular(path, MOST_TEXT_BYTES).decode("utf-8"))
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"the file cannot be read: {error}", place=str(path), remedy="name a TOML file") from None
    except tomllib.TOMLDecodeError as error:
        raise UsageError(
            f"invalid TOML: {error}", place=str(path), remedy='write lines such as owner = "Risk"'
        ) from None
    known = (*FIELDS, *LISTS)
    for key, value in given.items():
        if key not in known:
            remedy = did_you_mean(key, known) or f"keys: {', '.join(known)}"
            raise UsageError(f"unknown field `{key}`", place=str(path), remedy=remedy)
        if key in LISTS:
            if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
                raise UsageError(f"`{key}` is not a list", place=str(path), remedy=f'write {key} = ["..", ".."]')
        elif not isinstance(value, str):
            raise UsageError(f"`{key}` is not a text", place=str(path), remedy=f'write {key} = ".."')
    return given


def date_of(given: str | None, environment: Mapping[str, str] = os.environ) -> str:
    """The date of a report, YYYY-MM-DD: as passed, from SOURCE_DATE_EPOCH (reproducible-builds.org), or today's (UTC)."""
    if given is not None:
        try:
            return date.fromisoformat(given).isoformat()
        except (TypeError, ValueError):  # a Python caller may pass another type
            raise UsageError(f"`{given!s:.60}` is not a date", remedy="write YYYY-MM-DD") from None
    epoch = environment.get("SOURCE_DATE_EPOCH")
    if epoch is None:
        return datetime.now(UTC).date().isoformat()
    try:
        return datetime.fromtimestamp(int(epoch), UTC).date().isoformat()
    except (ValueError, OverflowError, OSError):
        raise UsageError(f"SOURCE_DATE_EPOCH is `{epoch}`", remedy="give seconds since 1970") from None
