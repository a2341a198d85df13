"""Simplifications of the syntax tree of a `.sens` file.

An edit names a field by its path from the root. Edits depend on the types of fields and not on the language, so that they
cover every construct: an optional part is deleted, a formula or a term is replaced by one of its operands, an interval by one
of its ends, a number by a shorter one. A result without a valid text is not a candidate.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import fields, replace
from fractions import Fraction
from typing import Any, TypeAlias

from treesens.grammar.tree import ast
from treesens.grammar.tree.node import Node

Path: TypeAlias = tuple[tuple[str, int], ...]
"""Fields and positions from the root; the position in a field that is not a tuple is -1."""
Edit: TypeAlias = tuple[Path, object]
"""A path with the new value of the field; None deletes."""

_OPERATIONS = (ast.Not, ast.And, ast.Or, ast.Implies, ast.Negate, ast.Absolute, ast.Sum, ast.Product, ast.Quotient)


def places(node: Node, path: Path = ()) -> Iterator[tuple[Path, Node, bool]]:
    """All nodes below a node, with their paths; the last entry is True if the field may be empty."""
    for field in fields(node):
        value = getattr(node, field.name)
        for at, part in enumerate(value) if isinstance(value, tuple) else [(-1, value)]:
            if isinstance(part, Node):
                here = (*path, (field.name, at))
                yield here, part, at >= 0 or "None" in str(field.type)
                yield from places(part, here)


def edited(node: Any, edits: Mapping[Path, object], path: Path = ()) -> Any:
    """A tree after edits; edits below an edited field are ignored."""
    changes: dict[str, object] = {}
    for name in (field.name for field in fields(node) if field.name != "span"):
        value = getattr(node, name)
        items = enumerate(value) if isinstance(value, tuple) else [(-1, value)]
        parts = []
        for at, part in items:
            here = (*path, (name, at))
            parts.append(
                edits[here] if here in edits else edited(part, edits, here) if isinstance(part, Node) else part
            )
        if isinstance(value, tuple):
            kept = tuple(part for part in parts if part is not None)
            changes |= {name: kept} if len(kept) < len(value) or any(map(_differ, kept, value)) else {}
        elif _differ(parts[0], value):
            changes[name] = parts[0]
    return replace(node, **changes) if changes else node


def _differ(new: object, old: object) -> bool:
    return new is not old


def depth_of(file: ast.File) -> int:
    """The length of the longest path."""
    return max((len(path) for path, _, _ in places(file)), default=0)


def deletions(file: ast.File, depth: int) -> list[Edit]:
    """Deletions of the optional parts at a depth."""
    return [(path, None) for path, _, optional in places(file) if optional and len(path) == depth]


def operands(file: ast.File, depth: int) -> list[Edit]:
    """Replacements of the operations at a depth by one of their operands."""
    return [
        (path, part)
        for path, node, _ in places(file)
        if len(path) == depth and isinstance(node, _OPERATIONS)
        for below, part, _ in places(node)
        if len(below) == 1
    ]


def shorter(file: ast.File) -> list[Edit]:
    """Replacements of intervals by one of their ends, of numbers by shorter ones, and of flags by False."""
    found: list[Edit] = []
    for path, node, _ in places(file):
        match node:
            case ast.Interval(ast.Number() as low, ast.Number() as high, False, False) if low != high:
                found += [(path, replace(node, high=low)), (path, replace(node, low=high))]
            case ast.Number(value):
                found += [(path, replace(node, value=number)) for number in _shorter(value)]
        found += [((*path, (f.name, -1)), False) for f in fields(node) if getattr(node, f.name) is True]
    return found


def _shorter(value: Fraction) -> Sequence[Fraction]:
    """0, and the number with one and two significant digits, as far as these are shorter."""
    rounded = [Fraction(0), *(Fraction(f"{float(value):.{digits}e}") for digits in (0, 1))]
    return [one for one in dict.fromkeys(rounded) if len(str(one)) < len(str(value))]
