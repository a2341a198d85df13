"""Passes and named pipelines as plain data (`treesens opt --list-passes`)."""

from __future__ import annotations

import sys
from dataclasses import MISSING, fields
from typing import Any, Literal, get_args, get_origin, get_type_hints

from treesens.compiler.passes.registry import PASSES
from treesens.compiler.pipeline import PIPELINES, pass_class
from treesens.errors import PipelineError


def catalogue() -> dict[str, Any]:
    """All passes and named pipelines, JSON-ready. A plug-in that cannot be imported has an `error` only."""
    return {
        "schema_version": 1,
        "passes": [_record(name) for name in PASSES.names()],
        "pipelines": [{"name": name, "text": text} for name, text in PIPELINES.items()],
    }


def _record(name: str) -> dict[str, Any]:
    named = {"name": name, "package": PASSES.owner(name)}
    try:
        kind = pass_class(name)
    except PipelineError as error:
        return named | {"error": str(error)}
    hints = get_type_hints(kind)
    return named | {
        "about": about(kind),
        "relation": kind.relation.value,
        "options": [_option(one, hints[one.name]) for one in fields(kind)],
        "statistics": dict(getattr(kind, "statistics_names", {})),
    }


def _option(one: Any, hint: Any) -> dict[str, Any]:
    choices = get_args(hint) if get_origin(hint) is Literal else (False, True) if hint is bool else ()
    return {
        "name": one.name.replace("_", "-"),
        "type": "choice" if get_origin(hint) is Literal else getattr(hint, "__name__", str(hint)),
        "choices": list(choices),
        "default": None if one.default is MISSING else one.default,
    }


def about(kind: type) -> str:
    """The first sentence of a pass's documentation: of its class, or of its module."""
    text = kind.__doc__ or ""
    if text.startswith(f"{kind.__name__}("):  # made by `dataclass`
        text = sys.modules[kind.__module__].__doc__ or ""
    first = " ".join(text.strip().split("\n\n")[0].split())
    _, colon, rest = first.partition(": ")
    return (rest if colon and first.startswith(kind.name) else first).rstrip(".")  # type: ignore[attr-defined]
