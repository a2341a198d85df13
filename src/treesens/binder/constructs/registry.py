"""The meaning of a construct, found by the file that its node is in."""

from __future__ import annotations

import functools
from collections.abc import Callable
from importlib import import_module
from typing import Any, TypeAlias, cast

from treesens.binder.scope import Pending, Scope
from treesens.grammar.tree import ast

Bind: TypeAlias = Callable[[Scope, Any, bool], Pending]


def meaning_of(node: ast.Predicate) -> Bind:
    """`bind(scope, node, positive)` for a node: the constraint, or its negation if `positive` is False."""
    return _bind_in(type(node).__module__.rpartition(".")[2])


@functools.cache
def _bind_in(file: str) -> Bind:
    return cast("Bind", import_module(f"{__package__}.{file}").bind)
