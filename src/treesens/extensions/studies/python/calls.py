"""The studies as functions, each made on first use; `calls.pyi` declares their types."""

from __future__ import annotations

from typing import Any

from treesens.extensions.studies.registry import call_of


def __getattr__(name: str) -> Any:
    made = None if name.startswith("_") else call_of(name)
    if made is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    globals()[name] = made
    return made
