"""Finds the semantics of a construct by the file that defines its node."""

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
    """`bind(scope, node, positive)` for a node: the constraint, or its negation if `positive` is False."""
    return _bind_of(type(node).__module__)


@functools.cache
def _bind_of(module: str) -> Bind:
    """The function `bind` of the file of the same name in this folder; for a plug-in, of the node's module."""
    folder, _, file = module.rpartition(".")
    own = folder == construct.__package__
    return cast("Bind", import_module(f"{__package__}.{file}" if own else module).bind)
