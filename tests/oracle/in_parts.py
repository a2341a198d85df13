"""Questions asked in boxes of the domain, as `check --workers` asks them, but in this process and from the first moment on.

The command asks a question as a whole first, so that small questions never come to be in boxes.
"""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from tests.oracle.asking import judged, replayed_here
from tests.oracle.cases import Case, save_case
from tests.oracle.judge import Finding

SLICE = 0.02
"""Seconds of a box, before smaller ones take its place."""
LEAST = SLICE / 2
"""No question is left open for want of time before so many seconds are over."""


def ask_in_parts(case: Case, questions: Sequence[dict[str, Any]], options: dict[str, Any]) -> dict[str, Any]:
    """Records by name, of those questions that can be asked in boxes."""
    from treesens.compiler.base.budget import Budget
    from treesens.compiler.base.diagnostics import DiagnosticsError
    from treesens.extensions.sweeps.conquer import Coordinator, can_be_parted
    from treesens.extensions.sweeps.executor import Executor
    from treesens.extensions.sweeps.worker import ship
    from treesens.records.answers import record
    from treesens.records.questions import document_of
    from treesens.solve.options import Options

    wanted, found = {q["name"] for q in questions}, dict[str, Any]()
    with tempfile.TemporaryDirectory() as folder:
        save_case(replace(case, questions=list(questions)), Path(folder))
        text = (Path(folder) / "case.sens").read_text()
        document, session = document_of("case.sens", text, Path(folder), trust_pickle=True)
        for asked in session.asked():
            name = asked.name
            if name not in wanted:
                continue
            try:
                question = session.question(asked)
            except DiagnosticsError:
                continue  # a contradiction, which the other way of asking has told
            if can_be_parted(question):
                continue
            mine = question.replayed(
                Options(
                    backend="native",
                    time_limit=options["time_limit"],
                    seed=options["seed"],
                    tolerance=options["tolerance"],
                    replay=options["replay"],
                )
            )
            search = Coordinator(
                question,
                ship(document, remote=False),
                Executor("inline"),
                mine,
                slice_seconds=SLICE,
                first_seconds=0.0,
            )
            result = search.run(Budget.of(options["time_limit"]))
            found[name] = record(question.query, result)
    return found


def _spent(record: dict[str, Any]) -> float:
    return float(sum(record["seconds"].values()))


def judge_in_parts(
    case: Case, questions: Sequence[dict[str, Any]], options: dict[str, Any]
) -> tuple[int, list[Finding]]:
    """How many questions were asked in boxes, and what is wrong about their answers. What is left open is told, no more,
    unless it was left for want of time at once.
    """
    records = ask_in_parts(case, questions, replayed_here(case, options))
    findings = []
    for question in questions:
        if question["name"] not in records:
            continue
        for found in judged(case, question, records[question["name"]], options).findings:
            given_up = records[question["name"]]["reason"] == "time" and _spent(records[question["name"]]) < LEAST
            told = found.kind in ("open", "lost") and not given_up
            kind = f"{found.kind} elsewhere" if told else f"{found.kind} in parts"
            findings.append(replace(found, kind=kind))
    return len(records), findings
