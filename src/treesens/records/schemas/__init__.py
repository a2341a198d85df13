"""The JSON Schemas of commands that are not studies, as files; `treesens schema NAME` prints them."""

from __future__ import annotations

import json
from importlib.resources import files
from typing import Any


def kept_schemas() -> list[str]:
    """The commands whose schema is stored as a file."""
    places = (place.name for place in files(__name__).iterdir())
    return sorted(name.removesuffix(".json") for name in places if name.endswith(".json"))


def kept_schema(command: str) -> dict[str, Any]:
    """The schema (draft 2020-12) of a command's record."""
    found: dict[str, Any] = json.loads((files(__name__) / f"{command}.json").read_text("utf-8"))
    return found
