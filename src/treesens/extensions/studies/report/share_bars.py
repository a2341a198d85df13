"""Shares of inputs as bars: the proved interval and the estimate of every question, as data for a drawing."""

from __future__ import annotations

import math
from typing import Any

from treesens.extensions.studies.report.audit_table import gap_of
from treesens.extensions.studies.report.heat_map import short
from treesens.extensions.studies.report.share_words import rarity, share_of

_WIDTH = 420
_LINE = 22
_WORDS = 190
"""For the share in words, to the right of its bar."""
_TOP = 26
_LEAST = 1e-7
_TICKS = (1e-6, 1e-4, 1e-2, 1.0)


def share_bars(groups: list[dict[str, Any]]) -> dict[str, Any]:
    """A line for every record with a share, on a logarithmic scale from 1e-7 to 1."""
    asked = [(group["name"], record) for group in groups for record in group["records"] if record.get("share")]
    names = [f"{short(name)}, {gap_of(record)}" for name, record in asked]
    left = 12 + 7.5 * max(map(len, names), default=1)
    lines = []
    for number, (name, (_, record)) in enumerate(zip(names, asked, strict=True)):
        share, estimate = record["share"], record["share"]["estimate"]
        lines.append(
            {
                "name": name,
                "y": _TOP + _LINE * number,
                "title": f"{name}: {share_of(record)}",
                "text": rarity(share).removesuffix(" of inputs"),
                "proved": _bar(left, share["lower"], share["upper"]),
                "estimate": None if estimate is None else _bar(left, estimate["low"], estimate["high"]),
            }
        )
    ticks = [{"x": round(left + _place(tick), 1), "text": f"{100 * tick:g} %"} for tick in _TICKS]
    return {
        "lines": lines,
        "ticks": ticks,
        "left": left,
        "right": left + _WIDTH + 12,
        "width": left + _WIDTH + 12 + _WORDS,
        "height": _TOP + _LINE * len(lines) + 4,
    }


def _bar(left: float, low: float, high: float) -> dict[str, float]:
    """From a share to another one; a share that is known is still a line."""
    start, end = _place(low), _place(high)
    return {"x": round(left + start, 1), "width": round(max(2.0, end - start), 1) if high > 0 else 0.0}


def _place(share: float) -> float:
    return _WIDTH * (1 + math.log10(max(share, _LEAST)) / -math.log10(_LEAST))
