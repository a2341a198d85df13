"""Curves of sorted values, and values over time, one per method, as self-contained SVG."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from html import escape

from treesens.visible import visible

COLOURS = ("#1f77b4", "#d62728", "#2ca02c", "#9467bd", "#ff7f0e", "#8c564b", "#17becf", "#7f7f7f", "#bcbd22", "#e377c2")
DASHES = ("", ' stroke-dasharray="7 4"', ' stroke-dasharray="2 3"')
_WIDTH = 760
_LOWEST = 1e-4
"""Smallest value on a logarithmic axis: smaller values are drawn at this value."""


def curves_svg(
    series: Mapping[str, Sequence[float]],
    *,
    title: str = "",
    across: str = "",
    unit: str = "",
    logarithmic: bool = True,
) -> str:
    """Plots the n-th smallest value of each series against n. `across` labels the axis of n; `unit` is written after values."""
    ordered = {name: sorted(values) for name, values in series.items()}
    most = max((len(values) for values in ordered.values()), default=1) or 1
    largest = max((values[-1] for values in ordered.values() if values), default=1.0)
    low, high = (-4, max(0, math.ceil(math.log10(largest or 1.0)))) if logarithmic else (0, 4)

    def level(value: float) -> float:
        return math.log10(max(_LOWEST, value)) if logarithmic else 4 * value / (largest or 1.0)

    steps = range(low, high + 1)
    texts = [f"{10.0**step:g}" if logarithmic else f"{largest * step / 4:.2f}" for step in steps]
    lines = {
        f"{name} ({len(values)})": [(float(i + 1), level(value)) for i, value in enumerate(values)]
        for name, values in ordered.items()
    }
    counts = [(float(count), str(count)) for count in range(0, most + 1, _step(most))]
    levels = [(float(step), f"{text}{unit}") for step, text in zip(steps, texts, strict=True)]
    return _drawn(lines, title, across, float(most), counts, levels)


def lines_svg(series: Mapping[str, Sequence[tuple[float, float]]], *, title: str = "", across: str = "") -> str:
    """Plots series of (x, y), in order of x from 0 on; a value holds until the next one. `across` labels the axis of x."""
    values = [y for points in series.values() for _, y in points] or [0.0]
    low, high = min(values), max(values)
    high = high if high > low else low + 1.0
    most = max((points[-1][0] for points in series.values() if points), default=1.0) or 1.0
    lines = {
        name: [
            corner for i, (x, y) in enumerate(points) for corner in [*([(x, points[i - 1][1])] if i else []), (x, y)]
        ]
        for name, points in series.items()
    }
    along = [(most * step / 4, f"{most * step / 4:.3g}") for step in range(5)]
    up = [(low + (high - low) * step / 4, f"{low + (high - low) * step / 4:.4g}") for step in range(5)]
    return _drawn(lines, title, across, most, along, up)


def stacked_svg(charts: Sequence[str]) -> str:
    """Several of these charts as one picture, from top to bottom."""
    parts, top = [], 0
    for chart in charts:
        height = int(chart.partition('viewBox="0 0 ')[2].partition('"')[0].split()[1])
        parts.append(chart.replace("<svg ", f'<svg y="{top}" width="{_WIDTH}" height="{height}" ', 1))
        top += height
    whole = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {top}">'
    return f"{whole}\n{''.join(parts)}</svg>\n"


def _drawn(
    lines: Mapping[str, Sequence[tuple[float, float]]],
    title: str,
    across: str,
    most: float,
    along: Sequence[tuple[float, str]],
    up: Sequence[tuple[float, str]],
) -> str:
    """Lines in a frame from 0 to `most`, and from the first to the last tick of `up`; ticks are (place, text)."""
    width, left, right, top, bottom = _WIDTH, 70, 190, 40, 50
    height = max(460, top + bottom + 18 * len(lines))
    low, high = up[0][0], up[-1][0]

    def x(place: float) -> float:
        return left + (width - left - right) * place / most

    def y(place: float) -> float:
        return top + (height - top - bottom) * (high - place) / (high - low)

    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" font-family="sans-serif" font-size="12">',
        f'<rect width="{width}" height="{height}" fill="white"/>',
        f'<text x="{left}" y="22" font-size="14" font-weight="bold">{escape(visible(title))}</text>',
    ]
    for place, text in up:
        parts.append(f'<line x1="{left}" x2="{width - right}" y1="{y(place):.1f}" y2="{y(place):.1f}" stroke="#ddd"/>')
        parts.append(f'<text x="{left - 6}" y="{y(place) + 4:.1f}" text-anchor="end">{escape(text)}</text>')
    parts += [
        f'<text x="{x(place):.1f}" y="{height - bottom + 18}" text-anchor="middle">{text}</text>'
        for place, text in along
    ]
    parts.append(f'<text x="{x(most / 2):.1f}" y="{height - 12}" text-anchor="middle">{escape(across)}</text>')
    for number, (name, points) in enumerate(lines.items()):
        colour, dash = COLOURS[number % len(COLOURS)], DASHES[number // len(COLOURS) % len(DASHES)]
        corners = " ".join(f"{x(at):.1f},{y(value):.1f}" for at, value in points)
        parts.append(f'<polyline points="{corners}" fill="none" stroke="{colour}" stroke-width="2"{dash}/>')
        line = top + 18 * number
        at, end = width - right + 12, width - right + 28
        parts.append(f'<path d="M{at} {line + 2}H{end}" stroke="{colour}" stroke-width="4"{dash}/>')
        parts.append(f'<text x="{end + 6}" y="{line + 7}">{escape(visible(name))}</text>')
    return "\n".join([*parts, "</svg>"]) + "\n"


def _step(most: int) -> int:
    """A step of 1, 2 or 5 times a power of ten that divides an axis into at most five parts."""
    power = int(f"1{'0' * max(0, len(str(most)) - 2)}")
    return next(step for step in (power * k for k in (1, 2, 5, 10, 20)) if most <= 5 * step)
