"""Solved counts, PAR2 and the cactus plot of a benchmark run."""

from __future__ import annotations

from collections.abc import Callable
from statistics import median
from typing import Any

from treesens.extensions.studies.report.curves import curves_svg


def label(record: dict[str, Any]) -> str:
    return str(record["backend"]) if record["pipeline"] == "default" else f"{record['backend']}/{record['pipeline']}"


def summary(
    records: list[dict[str, Any]], time: str = "solve", by: Callable[[dict[str, Any]], str] = label
) -> list[dict[str, Any]]:
    """One row per setting, or whatever `by` tells apart: solved, found, none, PAR2, median, largest, total.

    PAR2 is the mean, where an unsolved instance counts twice its limit.
    """
    rows = []
    for name in dict.fromkeys(by(r) for r in records):
        mine = [r for r in records if by(r) == name]
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


def cactus_svg(
    records: list[dict[str, Any]], time: str = "solve", title: str = "", by: Callable[[dict[str, Any]], str] = label
) -> str:
    """Instances solved (x) within a time (y, logarithmic), one line per setting; a self-contained SVG."""
    series = {
        name: [float(r[time]) for r in records if by(r) == name and r["verdict"] != "unknown"]
        for name in dict.fromkeys(by(r) for r in records)
    }
    return curves_svg(series, title=title, across="instances solved", unit=" s")
