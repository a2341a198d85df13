"""Curves of sorted values, one per method, as a self-contained SVG; every cactus plot is drawn by this module."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from html import escape

from treesens.visible import visible

COLOURS = ("#1f77b4", "#d62728", "#2ca02c", "#9467bd", "#ff7f0e", "#8c564b", "#17becf", "#7f7f7f", "#bcbd22", "#e377c2")
DASHES = ("", ' stroke-dasharray="7 4"', ' stroke-dasharray="2 3"')
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
    width, left, right, top, bottom = 760, 70, 190, 40, 50
    height = max(460, top + bottom + 18 * len(series))
    ordered = {name: sorted(values) for name, values in series.items()}
    most = max((len(values) for values in ordered.values()), default=1) or 1
    largest = max((values[-1] for values in ordered.values() if values), default=1.0)
    low, high = (-4, max(0, math.ceil(math.log10(largest or 1.0)))) if logarithmic else (0, 4)

    def x(count: float) -> float:
        return left + (width - left - right) * count / most

    def y(value: float) -> float:
        level = math.log10(max(_LOWEST, value)) if logarithmic else 4 * value / (largest or 1.0)
        return top + (height - top - bottom) * (high - level) / (high - low)

    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" font-family="sans-serif" font-size="12">',
        f'<rect width="{width}" height="{height}" fill="white"/>',
        f'<text x="{left}" y="22" font-size="14" font-weight="bold">{escape(visible(title))}</text>',
    ]
    for step in range(low, high + 1):
        value = 10.0**step if logarithmic else largest * step / 4
        text = f"{value:g}" if logarithmic else f"{value:.2f}"
        parts.append(f'<line x1="{left}" x2="{width - right}" y1="{y(value):.1f}" y2="{y(value):.1f}" stroke="#ddd"/>')
        parts.append(f'<text x="{left - 6}" y="{y(value) + 4:.1f}" text-anchor="end">{text}{escape(unit)}</text>')
    parts += [
        f'<text x="{x(count):.1f}" y="{height - bottom + 18}" text-anchor="middle">{count}</text>'
        for count in range(0, most + 1, _step(most))
    ]
    parts.append(f'<text x="{x(most / 2):.1f}" y="{height - 12}" text-anchor="middle">{escape(across)}</text>')
    for number, (name, values) in enumerate(ordered.items()):
        colour, dash = COLOURS[number % len(COLOURS)], DASHES[number // len(COLOURS) % len(DASHES)]
        points = " ".join(f"{x(i + 1):.1f},{y(v):.1f}" for i, v in enumerate(values))
        parts.append(f'<polyline points="{points}" fill="none" stroke="{colour}" stroke-width="2"{dash}/>')
        line = top + 18 * number
        at, end = width - right + 12, width - right + 28
        parts.append(f'<path d="M{at} {line + 2}H{end}" stroke="{colour}" stroke-width="4"{dash}/>')
        parts.append(f'<text x="{end + 6}" y="{line + 7}">{escape(visible(name))} ({len(values)})</text>')
    return "\n".join([*parts, "</svg>"]) + "\n"


def _step(most: int) -> int:
    """A step of 1, 2 or 5 times a power of ten that divides an axis into at most five parts."""
    power = int(f"1{'0' * max(0, len(str(most)) - 2)}")
    return next(step for step in (power * k for k in (1, 2, 5, 10, 20)) if most <= 5 * step)
