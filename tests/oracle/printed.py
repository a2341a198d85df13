"""What the command line prints is what a user types: its tables are read back and judged like any other answer."""

from __future__ import annotations

import re
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from tests.oracle.cases import Case, save_case
from tests.oracle.judge import Finding, witness_setting
from tests.oracle.meaning import holds


def printed(case: Case, questions: Sequence[dict[str, Any]]) -> dict[str, dict[str, dict[str, str]]]:
    """The points that `treesens check` prints: text by question, point and feature."""
    with tempfile.TemporaryDirectory() as folder:
        save_case(replace(case, questions=list(questions)), Path(folder))
        command = [sys.executable, "-m", "treesens", "check", "case.sens", "-b", "native", "--trust-pickle"]
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False, timeout=120)
    found: dict[str, dict[str, dict[str, str]]] = {}
    name = ""
    names = {q["name"] for q in questions}
    for line in done.stdout.splitlines():
        head = re.match(r"(\S.*?): (found|none|unknown)\b", line)
        if head:
            name = head[1] if head[1] in names and head[2] == "found" else ""
            continue
        if name and line.startswith("  ") and not line.lstrip().startswith("→"):
            _row(found.setdefault(name, {}), line, case, next(q for q in questions if q["name"] == name))
    return found


def _row(points: dict[str, dict[str, str]], line: str, case: Case, question: dict[str, Any]) -> None:
    """One row of a table: the feature, and the value of every point, in columns at least two blanks apart."""
    cells = [c for c in re.split(r"\s{2,}", line.strip()) if c]
    feature = next((f for f in case.features if cells and cells[0] == f.name), None)
    if feature is None or len(cells) != 1 + len(question["points"]):
        return
    for (p, _), text in zip(question["points"], cells[1:], strict=True):
        points.setdefault(p, {}).setdefault(feature.name, text)


def typed(feature: Any, text: str) -> Any:
    """A printed value as the user would type it."""
    if text in ("missing", "NaN", "nan", "none") and text not in map(str, feature.typed):
        return None
    return text if feature.kind == "category" else float(text)


def judge_printed(case: Case, questions: Sequence[dict[str, Any]]) -> list[Finding]:
    """Whether every printed point, typed in again, satisfies its question."""
    single = [q for q in questions if not (q.get("explain") or q.get("count") or q.get("top") or q.get("loop"))]
    out: list[Finding] = []
    for name, points in printed(case, single).items():
        question = next(q for q in single if q["name"] == name)
        if len(points) != len(question["points"]) or any(len(v) != len(case.features) for v in points.values()):
            out.append(Finding("printed", f"not all features of all points are printed: {points}", question, {}))
            continue
        values = {p: {f.name: typed(f, v[f.name]) for f in case.features} for p, v in points.items()}

        def wrong(kind: str, detail: str, question: Any = question) -> None:
            out.append(Finding("printed", f"{kind}: {detail}", question, {}))

        s = witness_setting(case, question, values, wrong)
        for node in question["constraints"]:
            if s is not None and not holds(node, s)[1][0]:
                wrong("typed as printed", f"{node} does not hold for {points}")
    return out
