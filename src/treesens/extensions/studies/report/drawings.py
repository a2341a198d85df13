"""Data for the drawings on the audit's page: a map of the rows that flip, with a square for every set of features and gap, and
bars for shares of inputs, each with its proved interval and its estimate.
"""

from __future__ import annotations

import math
from typing import Any

from treesens.extensions.studies.report.audit_table import flips_of_words, gap_of
from treesens.extensions.studies.report.fact_words import rarity, share_of

_CELL = 92
_LINE = 26
_STEP = 52
_LEGEND = (0.0, 1e-4, 1e-3, 1e-2, 1e-1, 1.0)
_LONGEST = 40
_WIDTH = 420
"""Width of the scale of the bars."""
_BAR_LINE = 22
_WORDS = 190
"""Width of the text that states the share, to the right of a bar."""
_TOP = 26
_LEAST = 1e-7
_TICKS = (1e-6, 1e-4, 1e-2, 1.0)


def heat_map(groups: list[dict[str, Any]], gaps: list[str]) -> dict[str, Any]:
    """The squares of the map: the number of rows that flip, on a colour that shows their share on a logarithmic scale."""
    left = 12 + 7.5 * max((len(short(g["name"])) for g in groups), default=1)
    squares = []
    for y, group in enumerate(groups):
        for record in group["records"]:
            fill = colour(strength_of(record["rows_flipped"] / max(1, record["rows"])))
            squares.append(
                {
                    "x": left + _CELL * gaps.index(gap_of(record)),
                    "y": _LINE * (y + 1),
                    "fill": fill,
                    "ink": ink_on(fill),
                    "text": f"{'' if record['rows_complete'] else '≥ '}{record['rows_flipped']:,}",
                    "mark": {"found": "", "none": " ∅", "unknown": " ?"}[record["verdict"]],
                    "title": f"{group['name']}, {gap_of(record)}: {flips_of_words(record)}",
                }
            )
    bottom = _LINE * (len(groups) + 1) + 8
    legend = [
        {
            "x": left + _STEP * i,
            "y": bottom,
            "width": _STEP,
            "fill": colour(strength_of(share)),
            "text": f"{100 * share:g} %",
        }
        for i, share in enumerate(_LEGEND)
    ]
    return {
        "legend": legend,
        "width": left + max(_CELL * len(gaps), _STEP * len(_LEGEND)) + 4,
        "height": bottom + 32,
        "left": left,
        "cell": _CELL,
        "line": _LINE,
        "squares": squares,
    }


def strength_of(share: float) -> float:
    """The darkness, 0 to 1, that shows a share of the rows: logarithmic, because even one row in many thousands matters."""
    return 0.0 if share == 0 else max(0.08, 1 + math.log10(share) / 5)


def short(name: str) -> str:
    """A name, shortened so that it fits next to the map."""
    return name if len(name) <= _LONGEST else name[: _LONGEST - 1] + "…"


def colour(strength: float) -> str:
    """A colour between white and dark blue, as `#rrggbb`."""
    ends = ((247, 250, 253), (8, 64, 129))
    return "#" + "".join(f"{round(a + (b - a) * min(1.0, strength)):02x}" for a, b in zip(*ends, strict=True))


def ink_on(fill: str) -> str:
    """Black or white, whichever contrasts more with a colour; this contrast is always at least 4.5 (WCAG AA)."""
    return max(("#000000", "#ffffff"), key=lambda ink: contrast(ink, fill))


def contrast(one: str, two: str) -> float:
    """The contrast ratio of two colours, 1 to 21 (WCAG 2.2, relative luminance)."""
    light, dark = sorted((luminance(one), luminance(two)), reverse=True)
    return (light + 0.05) / (dark + 0.05)


def luminance(colour: str) -> float:
    """The relative luminance of `#rrggbb` (WCAG 2.2)."""
    parts = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    linear = [p / 12.92 if p <= 0.04045 else ((p + 0.055) / 1.055) ** 2.4 for p in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def share_bars(groups: list[dict[str, Any]]) -> dict[str, Any]:
    """The lines of the bars: one for every record with a share, on a logarithmic scale from 1e-7 to 1."""
    asked = [(group["name"], record) for group in groups for record in group["records"] if record.get("share")]
    names = [f"{short(name)}, {gap_of(record)}" for name, record in asked]
    left = 12 + 7.5 * max(map(len, names), default=1)
    lines = []
    for number, (name, (_, record)) in enumerate(zip(names, asked, strict=True)):
        share, estimate = record["share"], record["share"]["estimate"]
        lines.append(
            {
                "name": name,
                "y": _TOP + _BAR_LINE * number,
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
        "height": _TOP + _BAR_LINE * len(lines) + 4,
    }


def _bar(left: float, low: float, high: float) -> dict[str, float]:
    """A bar between two shares; equal shares give a thin line."""
    start, end = _place(low), _place(high)
    return {"x": round(left + start, 1), "width": round(max(2.0, end - start), 1) if high > 0 else 0.0}


def _place(share: float) -> float:
    return _WIDTH * (1 + math.log10(max(share, _LEAST)) / -math.log10(_LEAST))
