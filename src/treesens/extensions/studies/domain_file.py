"""What a `.sens` file says about possible inputs, for studies that ask no file."""

from __future__ import annotations

from pathlib import Path

from treesens.errors import UsageError
from treesens.grammar.parsing.parser import read
from treesens.grammar.tree import ast


def read_domain(path: Path | None) -> tuple[ast.Declaration, ...]:
    """The `feature` and `onehot` declarations of a file; its models, tables and queries are for `treesens check`."""
    if path is None:
        return ()
    found = tuple(item for item in read(path).declarations if isinstance(item, ast.Feature | ast.OneHot))
    if not found:
        raise UsageError(
            f"{path} declares no feature", remedy="write e.g. `feature age: integer in [18, 79]` (docs/language.md)"
        )
    return found
