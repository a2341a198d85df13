"""Solved counts, PAR2 and the cactus plot of a benchmark run."""

from __future__ import annotations

import math
from statistics import median
from typing import Any

COLOURS = ("#1f77b4", "#d62728", "#2ca02c", "#9467bd", "#ff7f0e", "#8c564b", "#17becf", "#7f7f7f", "#bcbd22", "#e377c2")


def label(record: dict[str, Any]) -> str:
    return str(record["backend"]) if record["pipeline"] == "default" else f"{record['backend']}/{record['pipeline']}"


def summary(records: list[dict[str, Any]], time: str = "solve") -> list[dict[str, Any]]:
    """One row per setting: solved, found, none, PAR2 (mean; unsolved counts twice the limit), median, largest, total."""
    rows = []
    for name in dict.fromkeys(label(r) for r in records):
        mine = [r for r in records if label(r) == name]
        solved = [r for r in mine if r["verdict"] != "unknown"]
        times = [float(r[time]) for r in solved]
        penalised = times + [2 * float(r["limit"]) for r in mine if r["verdict"] == "unknown"]
        found = [float(r[time]) for r in solved if r["verdict"] == "found"]
        none = [float(r[time]) for r in solved if r["verdict"] == "none"]
        rows.append(
            {
                "setting": name,
                "instances": len(mine),
                "solved": len(solved),
                "found": len(found),
                "none": len(none),
                "par2": sum(penalised) / len(mine),
                "median": median(times) if times else None,
                "median_found": median(found) if found else None,
                "median_none": median(none) if none else None,
                "max": max(times, default=None),
                "total": sum(times),
                "build": sum(float(r["build"]) for r in mine),
            }
        )
    return rows


def cactus_svg(records: list[dict[str, Any]], time: str = "solve", title: str = "") -> str:
    """Instances solved (x) within a time (y, logarithmic), one line per setting; a self-contained SVG."""
    width, height, left, right, top, bottom = 760, 460, 70, 190, 40, 50
    series = {
        name: sorted(max(1e-4, float(r[time])) for r in records if label(r) == name and r["verdict"] != "unknown")
        for name in dict.fromkeys(label(r) for r in records)
    }
    most = max((len(v) for v in series.values()), default=1) or 1
    slowest = max((v[-1] for v in series.values() if v), default=1.0)
    low, high = -4, max(0, math.ceil(math.log10(slowest)))

    def x(count: float) -> float:
        return left + (width - left - right) * count / most

    def y(seconds: float) -> float:
        return top + (height - top - bottom) * (high - math.log10(seconds)) / (high - low)

    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" font-family="sans-serif" font-size="12">',
        f'<rect width="{width}" height="{height}" fill="white"/>',
        f'<text x="{left}" y="22" font-size="14" font-weight="bold">{title}</text>',
    ]
    for power in range(low, high + 1):
        at = y(10.0**power)
        parts.append(f'<line x1="{left}" x2="{width - right}" y1="{at:.1f}" y2="{at:.1f}" stroke="#ddd"/>')
        parts.append(f'<text x="{left - 6}" y="{at + 4:.1f}" text-anchor="end">{10.0**power:g} s</text>')
    for tick in range(5):
        count = most * tick / 4
        parts.append(f'<text x="{x(count):.1f}" y="{height - bottom + 18}" text-anchor="middle">{count:.0f}</text>')
    parts.append(f'<text x="{x(most / 2):.1f}" y="{height - 12}" text-anchor="middle">instances solved</text>')
    for number, (name, times) in enumerate(series.items()):
        colour = COLOURS[number % len(COLOURS)]
        points = " ".join(f"{x(i + 1):.1f},{y(t):.1f}" for i, t in enumerate(times))
        parts.append(f'<polyline points="{points}" fill="none" stroke="{colour}" stroke-width="2"/>')
        line = top + 18 * number
        parts.append(f'<rect x="{width - right + 12}" y="{line}" width="14" height="4" fill="{colour}"/>')
        parts.append(f'<text x="{width - right + 32}" y="{line + 7}">{name} ({len(times)})</text>')
    return "\n".join([*parts, "</svg>"]) + "\n"
