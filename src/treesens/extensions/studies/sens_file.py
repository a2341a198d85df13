"""Declarations of a `.sens` file as options of studies: possible inputs, and a decision."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from treesens.errors import UsageError
from treesens.grammar.parsing.parser import read
from treesens.grammar.tree import ast

_EXAMPLE = "`decision credit of x: approve when prob(x) >= 0.8 else decline` (docs/language.md)"


def read_domain(path: Path | None) -> tuple[ast.Declaration, ...]:
    """The `feature` and `onehot` declarations of a file; its models, tables and queries are only for `treesens check`."""
    if path is None:
        return ()
    found = tuple(item for item in read(path).declarations if isinstance(item, ast.Feature | ast.OneHot))
    if not found:
        raise UsageError(
            f"{path} declares no feature", remedy="write e.g. `feature age: integer in [18, 79]` (docs/language.md)"
        )
    return found


def read_decision(path: Path | None) -> ast.Decision | None:
    """The `decision` of a file, applied to the model of the study; the rest of the file is only for `treesens check`. Raises
    UsageError unless the file has exactly one decision.
    """
    if path is None:
        return None
    found = [item for item in read(path).declarations if isinstance(item, ast.Decision)]
    if not found:
        raise UsageError(f"{path} declares no decision", remedy=f"write e.g. {_EXAMPLE}")
    if len(found) > 1:
        names = ", ".join(f"`{item.name.text}`" for item in found)
        raise UsageError(f"{path} declares the decisions {names}", remedy="pass a file with one of these decisions")
    (decision,) = found
    return replace(decision, point=replace(decision.point, model=None))
