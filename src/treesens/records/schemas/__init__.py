"""The JSON Schemas of what commands print with --json; `treesens schema NAME` shows them."""

from __future__ import annotations

import json
from importlib.resources import files
from typing import Any

from treesens.compiler.base.diagnostics import did_you_mean
from treesens.errors import UsageError


def schema_names() -> list[str]:
    """The commands whose records have a schema."""
    places = (place.name for place in files(__name__).iterdir())
    return sorted(name.removesuffix(".json") for name in places if name.endswith(".json"))


def schema_of(command: str) -> dict[str, Any]:
    """The schema (draft 2020-12) of the record that a command prints. UsageError for a command without one."""
    if command not in schema_names():
        remedy = did_you_mean(command, schema_names())
        raise UsageError(f"the records of `{command}` have no schema", remedy=remedy)
    found: dict[str, Any] = json.loads((files(__name__) / f"{command}.json").read_text("utf-8"))
    return found
