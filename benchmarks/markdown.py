"""Tables in Markdown."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from treesens.visible import visible

_MARKUP = re.compile(r"([|<\[`])")


def markdown_table(rows: Sequence[Mapping[str, Any]]) -> str:
    """Rows with the same keys as a table: text to the left, numbers to the right with three digits, None as a dash."""
    if not rows:
        return ""
    names = list(rows[0])
    words = {n for n in names if any(isinstance(row[n], str) for row in rows)}
    lines = [names, ["---" if n in words else "---:" for n in names]]
    lines += [[_cell(row[n]) for n in names] for row in rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def _cell(value: Any) -> str:
    if value is None:
        return "–"
    return f"{value:.3g}" if isinstance(value, float) else _MARKUP.sub(r"\\\1", visible(str(value)))
