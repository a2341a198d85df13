"""Finds the semantics of a construct from the file that defines its node."""

from __future__ import annotations

import functools
from collections.abc import Callable
from importlib import import_module
from typing import Any, TypeAlias, cast

from treesens.binder.scope import Pending, Scope
from treesens.grammar.constructs import construct
from treesens.grammar.tree import ast

Bind: TypeAlias = Callable[[Scope, Any, bool], Pending]


def meaning_of(node: ast.Predicate) -> Bind:
    """`bind(scope, node, positive)` for a node: returns the constraint or, with `positive=False`, its negation."""
    return _bind_of(type(node).__module__)


@functools.cache
def _bind_of(module: str) -> Bind:
    """The function `bind` in the file of the same name in this folder or, for a plug-in, in the node's own module."""
    folder, _, file = module.rpartition(".")
    own = folder == construct.__package__
    return cast("Bind", import_module(f"{__package__}.{file}" if own else module).bind)
