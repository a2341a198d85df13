"""The constructs by file name, and the words that they add to the language."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Final

from treesens.compiler.base.plugins import Plugin, Registry
from treesens.errors import UsageError
from treesens.grammar.tree.words import QUANTITIES

if TYPE_CHECKING:
    from treesens.grammar.constructs.construct import Construct

_SHARED = {"__init__", "construct", "registry"}
PLUGINS: Final = Registry(kind="predicate", group="treesens.predicates", builtin={}, error=UsageError)
"""Plug-in predicates by word, each a `Construct` without a separate grammar."""


@functools.cache
def constructs() -> Mapping[str, Construct]:
    """The constructs defined in this folder, by file name."""
    names = sorted(path.stem for path in Path(__file__).parent.glob("*.py") if path.stem not in _SHARED)
    return {name: import_module(f"{__package__}.{name}").CONSTRUCT for name in names}


@functools.cache
def predicates() -> Mapping[str, Construct]:
    """The constructs that begin with a call, by their words."""
    calls = [found for found in constructs().values() if not found.grammar or "PREDICATE" in found.grammar]
    return {word: found for found in calls for word in found.functions}


def predicate(word: str) -> Construct | None:
    """The construct (built-in or from a plug-in) of constraints that begin with a call of this word, or None."""
    if word in functions():
        return predicates().get(word)
    return PLUGINS.get(word) if word in PLUGINS.names() else None


def plugin_of(node: object) -> Plugin | None:
    """The plug-in that provides the node of a predicate; None for a built-in predicate."""
    if type(node).__module__.startswith(f"{__package__}."):
        return None
    return next((PLUGINS.plugin(word) for word in PLUGINS.names() if type(node) in PLUGINS.get(word).nodes), None)


@functools.cache
def functions() -> Mapping[str, str]:
    """Every function word (quantities, and words of constraints) with its call forms."""
    return {**QUANTITIES, **{word: form for found in constructs().values() for word, form in found.functions.items()}}
