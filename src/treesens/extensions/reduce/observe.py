"""Answers the questions of a candidate in a process of its own, and reports what happened as labels.

A label is `typed`, `disagreement`, `crash`, `unknown TERMINATION`, or `error CODE`; the label of an internal error has the type
and the line of its exception, so that the reduction does not end at another fault.
"""

from __future__ import annotations

import re
import time
import traceback
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import permutations
from pathlib import Path

from treesens.backends.base import Termination
from treesens.binder.file import ResolvedQuestion
from treesens.commands.common import chosen, load_file
from treesens.commands.compare import Cell, disagreement
from treesens.compiler.base.child import Parent
from treesens.compiler.result import Result, Sense, Verdict
from treesens.errors import InternalError, told
from treesens.solve.options import Options
from treesens.solve.question import answer, answer_question

CLOSE = 1e-6
"""The relative slack of values and bounds that exclude each other."""


@dataclass(frozen=True)
class Observed:
    """The labels of a candidate, and the seconds that the answers took."""

    labels: frozenset[str]
    seconds: float


def observe_all(parent: Parent) -> None:
    """Observes candidates, whose arguments the parent sends, until the parent ends. The process keeps its loaded libraries."""
    while True:
        parent.send(observe(*parent.receive()))


def observe(path: str, trust_pickle: bool, settings: Sequence[Options]) -> Observed:
    """Binds the questions of a file and answers them once for each of the settings. Several settings are compared as by
    `treesens compare`; a single one is answered as by `treesens check`.
    """
    labels: set[str] = set()
    asked: list[ResolvedQuestion] = []
    try:
        loaded = load_file(Path(path), trust_pickle=trust_pickle)
        for error in loaded.broken.values():
            labels |= labels_of(error)
        asked = chosen(loaded, ())
    except Exception as error:  # noqa: BLE001 - every kind of error becomes a label here
        labels |= labels_of(error)
    if not labels:
        labels.add("typed")
    start = time.perf_counter()
    for question in asked:
        cells: list[Cell] = []
        for options in settings:
            try:
                if len(settings) > 1:
                    result = answer(question.query, options, options.budget())
                else:
                    result = answer_question(question, question.replayed(options))
            except Exception as error:  # noqa: BLE001
                labels |= labels_of(error)
                continue
            labels |= _labels(result)
            cells.append(Cell(options.backend, options.pipeline, result))
        if disagreement(question, cells) or excluded(cells):
            labels.add("disagreement")
    return Observed(frozenset(labels), time.perf_counter() - start)


def labels_of(error: Exception) -> set[str]:
    """The labels of an error: its code, or the codes of all mistakes in a file."""
    failed = told(error, "a candidate")
    codes = {item.code for item in getattr(failed, "diagnostics", ())} or {failed.code}
    place = ""
    if isinstance(failed, InternalError):
        cause = failed.__cause__ or failed
        last = traceback.extract_tb(cause.__traceback__)[-1:]
        place = f" {type(cause).__name__}" + "".join(f" {Path(frame.filename).name}:{frame.lineno}" for frame in last)
    return {f"error {code}{place}" for code in codes}


def _labels(result: Result) -> set[str]:
    found = {
        f"error {code}" for text in (result.reason, *result.notes) for code in re.findall(r"^error\[(\w+)\]", text)
    }
    ended = [attempt.termination for attempt in result.attempts]
    if result.verdict is Verdict.UNKNOWN:
        found.add(f"unknown {ended[-1] if ended else ''}".rstrip())
    return found | ({"crash"} if Termination.CRASH.value in ended else set())


def excluded(cells: Sequence[Cell]) -> bool:
    """True if the verified value of one answer is better than the proved bound of another."""
    known = [cell.result.objective for cell in cells if cell.result.objective is not None]
    for one, other in permutations(known, 2):
        if other.bound is not None:
            beyond = one.value - other.bound if one.sense is Sense.MAXIMIZE else other.bound - one.value
            if beyond > CLOSE * max(1.0, abs(other.bound)):
                return True
    return False
