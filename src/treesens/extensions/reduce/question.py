"""Simplifications of the syntax tree of a `.sens` file.

An edit is the path of a field from the root with the new value of the field; None deletes. Edits depend on the types of fields
and not on the language, so that they cover every construct. A result without a valid text is not a candidate.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import fields, replace
from fractions import Fraction
from typing import Any, TypeAlias

from treesens.grammar.printing.print_terms import decimal
from treesens.grammar.tree import ast
from treesens.grammar.tree.node import Node

Path: TypeAlias = tuple[tuple[str, int], ...]
"""Fields and positions from the root; the position in a field that is not a tuple is -1."""
Edit: TypeAlias = tuple[Path, object]

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
    """A tree after edits; edits below a replaced node have no effect."""
    changes: dict[str, object] = {}
    for name in node.__match_args__:
        value = getattr(node, name)
        parts = value if isinstance(value, tuple) else (value,)
        new = []
        for at, part in enumerate(parts):
            here = (*path, (name, at if isinstance(value, tuple) else -1))
            new.append(edits[here] if here in edits else edited(part, edits, here) if isinstance(part, Node) else part)
        if any(one is not other for one, other in zip(new, parts, strict=True)):
            changes[name] = tuple(one for one in new if one is not None) if isinstance(value, tuple) else new[0]
    return replace(node, **changes) if changes else node


def deletions(file: ast.File, depth: int) -> list[Edit]:
    """Deletions of the optional parts at a depth."""
    return [(path, None) for path, _, optional in places(file) if optional and len(path) == depth]


def operands(file: ast.File, depth: int) -> list[Edit]:
    """Replacements of the operations at a depth by one of their operands."""
    found = ((path, node) for path, node, _ in places(file) if len(path) == depth and isinstance(node, _OPERATIONS))
    return [(path, part) for path, node in found for below, part, _ in places(node) if len(below) == 1]


def shorter_values(file: ast.File) -> list[Edit]:
    """Replacements of intervals by one of their ends, and of numbers by 0 or a number with one or two digits."""
    found: list[Edit] = []
    for path, node, _ in places(file):
        match node:
            case ast.Interval(ast.Number() as low, ast.Number() as high, False, False) if low != high:
                found += [(path, replace(node, high=low)), (path, replace(node, low=high))]
            case ast.Number(value):
                numbers = Fraction(0), Fraction(f"{float(value):.0e}"), Fraction(f"{float(value):.1e}")
                found += [
                    (path, replace(node, value=one)) for one in numbers if len(decimal(one)) < len(decimal(value))
                ]
    return found
