"""Reports on sweeps and benchmark runs.

The report on a sweep, in a terminal and as CSV, shows the numbers of questions per document and query, by verdict. The report
on a benchmark run shows solved counts, PAR2, and the cactus plot.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median, quantiles
from typing import Any

from rich.text import Text

from treesens.extensions.studies.report.study_tables import write_csv
from treesens.report.curves import curves_svg
from treesens.report.show import COLOURS, out
from treesens.report.tables import Table
from treesens.report.terminal import say_wrapped
from treesens.visible import visible

LISTED = 20
"""Maximum number of unanswered questions to list."""

COLUMNS = ("document", "query", "varied", "verdict", "reason", "proof", "replay", "implied_by", "attempts_made", "cpu")


@dataclass(frozen=True)
class Line:
    """One answer of a sweep, in the columns of tables."""

    document: str
    question: str
    verdict: str
    reason: str
    as_expected: bool | None
    internal: bool = False
    """True if the reason is an internal error."""

    @property
    def query(self) -> str:
        """The query of the question."""
        return self.question.partition("[")[0]


def line_of(record: dict[str, Any]) -> Line:
    """The columns of a record."""
    return Line(
        record["document"],
        record["query"],
        record["verdict"],
        record["reason"],
        record["as_expected"],
        record.get("internal", False),
    )


def show_sweep(lines: Sequence[Line], left: int, title: str) -> None:
    """Prints counts per document and query, violated expectations, and unanswered questions."""
    console = out()
    console.print(title)
    table = Table(box=None, pad_edge=False, padding=(0, 2), header_style="bold")
    table.add_column("document")
    table.add_column("query")
    for verdict in COLOURS:
        table.add_column(str(verdict), justify="right")
    counts: dict[tuple[str, str], Counter[str]] = {}
    for line in lines:
        counts.setdefault((line.document, line.query), Counter())[line.verdict] += 1
    for (document, query), count in counts.items():
        numbers = [Text(str(count[v]), style=colour if count[v] else "dim") for v, colour in COLOURS.items()]
        table.add_row(document, query, *numbers)
    table.print_fitted(console)
    for line in lines:
        if line.as_expected is False:
            say_wrapped(visible(f"expected otherwise: {line.document}: {line.question} is {line.verdict}"))
    unknown = [line for line in lines if line.verdict == "unknown"]
    for line in unknown[:LISTED]:
        say_wrapped(visible(f"unknown: {line.document}: {line.question}: {line.reason}"))
    if len(unknown) > LISTED:
        say_wrapped(f"… and {len(unknown) - LISTED} more without an answer")
    if left:
        say_wrapped(f"{left} questions are left: the same command continues with them")


def write_answers(path: Path, records: Iterable[dict[str, Any]]) -> None:
    """Writes one row per question; sets of features are joined by `+`."""
    rows = ({**record, "varied": "+".join(record["varied"])} for record in records)
    write_csv(path, COLUMNS, ([row.get(name, "") for name in COLUMNS] for row in rows))


def label(record: dict[str, Any]) -> str:
    return str(record["backend"]) if record["pipeline"] == "default" else f"{record['backend']}/{record['pipeline']}"


def summary(
    records: list[dict[str, Any]], time: str = "solve", by: Callable[[dict[str, Any]], str] = label
) -> list[dict[str, Any]]:
    """One row per setting (or per value of `by`), with the columns solved, found, none, PAR2, median, largest and total.

    PAR2 is the mean time, in which an unsolved instance counts as twice its limit. If instances have several runs, rows count
    runs, and have the number of runs and the quartiles of the solved ones.
    """
    several = len({(r.get("seed"), r.get("repetition")) for r in records}) > 1
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
                "instances": len({r["key"] for r in mine}) if several else len(mine),
                **({"runs": len(mine)} if several else {}),
                "solved": len(solved),
                "found": len(found),
                "none": len(none),
                "par2": sum(penalised) / len(mine),
                "median": median(times) if times else None,
                **(dict(zip(("q1", "q3"), _quartiles(times), strict=True)) if several else {}),
                "median_found": median(found) if found else None,
                "median_none": median(none) if none else None,
                "max": max(times, default=None),
                "total": sum(times),
                "build": sum(float(r["build"]) for r in mine),
            }
        )
    return rows


def _quartiles(times: Sequence[float]) -> tuple[float | None, float | None]:
    if len(times) < 2:
        return None, None
    first, _, third = quantiles(times, n=4, method="inclusive")
    return first, third


def cactus_svg(
    records: list[dict[str, Any]], time: str = "solve", title: str = "", by: Callable[[dict[str, Any]], str] = label
) -> str:
    """The number of instances solved (x) within a time (y, logarithmic), one line per setting, as a self-contained SVG."""
    series = {
        name: [float(r[time]) for r in records if by(r) == name and r["verdict"] != "unknown"]
        for name in dict.fromkeys(by(r) for r in records)
    }
    return curves_svg(series, title=title, across="instances solved", unit=" s")
