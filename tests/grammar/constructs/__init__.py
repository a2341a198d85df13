"""Of every construct, in the file of its name: random trees, its meaning as the reference says it, and its question object.

`trees(parts)` is a strategy over tests/grammar/trees.py, `holds(world, node)` the meaning on concrete inputs, and
`built(node, parts)` the question object, tested in tests/extensions/builder; `INPUT_CONSTRAINTS` are examples of it. The tests
of the rooms take them from here.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

from treesens.grammar.constructs.registry import constructs

CONSTRUCTS = {name: import_module(f"tests.grammar.constructs.{name}") for name in constructs()}


def construct_of(node: Any) -> Any:
    """The test file of a node."""
    return CONSTRUCTS[type(node).__module__.rpartition(".")[2]]
