"""One worker of the runner: cases of every `jobs`-th seed, told as lines of JSON."""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
import traceback
from typing import Any

import numpy as np

from tests.oracle.asking import draw_options, names_are_known, run_case
from tests.oracle.cases import SHARES, Case, draw_case, save_case
from tests.oracle.explained import FILLING, draw_explained
from tests.oracle.filling import DRAWN, Filling, Solvers, goes_to_a_solver
from tests.oracle.in_parts import judge_in_parts
from tests.oracle.judge import Finding
from tests.oracle.language import constructs, text_of
from tests.oracle.printed import judge_printed
from tests.oracle.shrink import shrunk, size_of
from tests.oracle.studies import Studied, record_of, run_studies

SHRUNK_PER_KIND = 3
"""How many failures of a kind a worker makes smaller."""

OTHERS_GET = 24
"""Questions of a case for another backend: a process for each, and each fork of a loaded solver takes a few hundredths."""

PARTS_EVERY, PARTS_GET = 9, 8
"""Every so many seeds, so many questions of the engine are asked in boxes of the domain, too."""

PRINTED_EVERY = 25
"""Every so many seeds the command line is asked, too, and what it prints is read back."""


def work(options: argparse.Namespace) -> int:
    """Cases until the time is up or all seeds are done."""
    out = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # what libraries print is not for the parent
    end = time.monotonic() + options.seconds if options.seconds else None
    last = options.seed + options.cases if options.cases is not None else None
    seed, shrunk_kinds = options.worker, dict[str, int]()
    filling = Filling(options.fill, options.before) if options.fill else None
    solvers = Solvers(options.before) if options.provers else None
    while (last is None or seed < last) and (end is None or time.monotonic() < end):
        trainer = filling.trainer(seed) if filling and options.trainer is None else options.trainer
        tell(out, {"seed": seed, "frontend": trainer or ""})
        if solvers is not None:
            options.backend = solvers.least()
        told = one_case(seed, options, shrunk_kinds, filling, trainer)
        for question in told["questions"] if solvers is not None and told is not None and "case" in told else []:
            solvers.add(question["prover"])
        if told is not None:
            tell(out, told)
        seed += options.jobs
    tell(out, {"finished": True, "seed": seed})
    return 0


def tell(out: Any, record: dict[str, Any]) -> None:
    out.write(json.dumps(record, default=str) + "\n")
    out.flush()


def one_case(
    seed: int,
    options: argparse.Namespace,
    shrunk_kinds: dict[str, int],
    filling: Filling | None = None,
    trainer: str | None = None,
) -> dict[str, Any] | None:
    """Draws, asks and judges the case of a seed; a fault of the oracle itself is a failure too."""
    settings = draw_options(np.random.default_rng([7, seed]), options.others, options.backend)
    start = time.monotonic()
    try:
        case = draw_case(seed, options.questions * (DRAWN if filling else 1), trainer, SHARES[options.shares])
        if options.only and case.trainer != options.only:
            return None
        if options.backend is not None:
            case.questions = [q for q in case.questions if goes_to_a_solver(q)]
        most = asked_of(settings, options.questions)
        drawn = filling.pick(case.questions, case.trainer, most) if filling else case.questions[:most]
        if options.ask is not None:
            drawn = [q for q in case.questions if q["name"] == options.ask]
        if options.questions and options.backend is None:
            drawn = drawn + draw_explained(case, FILLING if filling else 1)
        case.questions = drawn
        outcomes = run_case(case, settings) if case.questions else []
        studied = run_studies(case) if studies_are_asked(seed, options) and names_are_known(case) else Studied()
        wrong_in_parts: list[Finding] = []
        if seed % PARTS_EVERY == 0 and settings["backend"] == "native":
            right = [q for q, o in zip(case.questions, outcomes, strict=True) if o.status == "compared"][:PARTS_GET]
            studied.records["check in parts"], wrong_in_parts = judge_in_parts(case, right, settings)
    except Exception:  # noqa: BLE001 - the parent reports it with its seed
        failure = {"kind": "oracle", "seed": seed, "detail": traceback.format_exc()[-1500:], "options": settings}
        return {"failures": [failure], "seed": seed}
    told = [failure_of(case, o.findings[0], seed, options, shrunk_kinds) for o in outcomes if o.findings]
    for finding in studied.findings:
        few = shrunk_kinds.get(f"study {finding.kind}", 0) < SHRUNK_PER_KIND
        shrunk_kinds[f"study {finding.kind}"] = shrunk_kinds.get(f"study {finding.kind}", 0) + 1
        told.append(record_of(finding, seed, options.output if few and options.shrink else None))
    told += [failure_of(case, f, seed, argparse.Namespace(shrink=0), shrunk_kinds) for f in wrong_in_parts]
    if seed % PRINTED_EVERY == 0 and case.questions:
        found = [q for q, o in zip(case.questions, outcomes, strict=True) if o.verdict == "found" and not o.findings]
        told += [
            failure_of(case, f, seed, argparse.Namespace(shrink=0), shrunk_kinds) for f in judge_printed(case, found)
        ]
    questions = [
        {"constructs": sorted(set(constructs(q))), "status": o.status, "verdict": o.verdict, "prover": o.prover}
        for q, o in zip(case.questions, outcomes, strict=True)
    ]
    for question in questions:
        if filling and question["status"] == "compared":
            filling.add(question["constructs"], case.trainer)
    return {
        "case": True, "seed": seed, "frontend": case.trainer, "backend": settings["backend"],
        "pipeline": settings.get("pipeline", "default"), "questions": questions, "failures": told,
        "studies": studied.records, "refused": studied.refused, "seconds": time.monotonic() - start,
    }  # fmt: skip


def studies_are_asked(seed: int, options: argparse.Namespace) -> bool:
    """A share of the seeds. Its own generator: the questions of a seed stay what they are."""
    return bool(np.random.default_rng([17, seed]).random() < options.studies)


def asked_of(settings: dict[str, Any], questions: int) -> int:
    """Other backends start a process per question, and so get fewer of them."""
    return questions if settings["backend"] == "native" else min(questions, OTHERS_GET)


def failure_of(
    case: Case, found: Finding, seed: int, options: argparse.Namespace, shrunk_kinds: dict[str, int]
) -> dict[str, Any]:
    """A failure as a record, made smaller and written as a folder if there are few of its kind yet."""
    record = {
        "kind": found.kind, "seed": seed, "query": found.question["name"], "detail": found.detail, "options": found.options,
        "frontend": case.trainer, "text": text_of(found.question),
    }  # fmt: skip
    if shrunk_kinds.get(found.kind, 0) >= SHRUNK_PER_KIND or not options.shrink:
        return record
    shrunk_kinds[found.kind] = shrunk_kinds.get(found.kind, 0) + 1
    try:
        small, finding = shrunk(case, found, options.shrink)
        folder = options.output / f"{found.kind.replace(' ', '-')}-{seed}-{found.question['name']}"
        folder.mkdir(parents=True, exist_ok=True)
        save_case(small, folder)
        (folder / "EXPECTED.txt").write_text(explanation(small, finding, seed))
        record |= {
            "folder": str(folder),
            "detail": finding.detail,
            "text": text_of(finding.question),
            "size": size_of(small),
        }
    except Exception:  # noqa: BLE001 - the failure itself is told in any case
        record["shrinking"] = traceback.format_exc()[-800:]
    return record


def explanation(case: Case, finding: Finding, seed: int) -> str:
    answer = json.dumps(finding.record, indent=1, default=str) if finding.record else "(no record)"
    return (
        f"{finding.kind}: {finding.detail}\n\noptions: {json.dumps(finding.options)}\n"
        f"seed {seed}, {case.trainer}, {size_of(case)}\n"
        f"\nagain:  treesens check case.sens -b {finding.options['backend']} -p {finding.options.get('pipeline', 'default')}"
        f" --seed {finding.options['seed']} --json\n\nthe answer was:\n{answer}\n"
    )


if __name__ == "__main__":
    sys.exit(1)
