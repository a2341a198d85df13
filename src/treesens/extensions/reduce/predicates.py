"""Predicates, which decide whether a candidate is interesting. Programs and answers run in child processes with time limits."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import signal
import subprocess
import time
import traceback
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import permutations
from pathlib import Path
from typing import TypeAlias

from treesens.backends.base import Termination
from treesens.commands.common import chosen, load_file
from treesens.commands.compare import Cell, disagreement
from treesens.compiler.base.floats import float_of
from treesens.compiler.result import Result, Sense, Verdict
from treesens.errors import InternalError, UsageError, told
from treesens.runtime.child import Child, Parent, wait_for_news
from treesens.runtime.processes import launched
from treesens.solve.options import Options
from treesens.solve.question import answer, answer_question

CLOSE = 1e-6
"""The relative slack of a value beyond a bound."""
START_SECONDS = 5.0
"""Seconds in which a process starts, and reads a model."""
KINDS = "disagreement, unknown, crash, error=CODE, slower-than=SECONDS"


@dataclass(frozen=True)
class Program:
    """A program that exits with 0 for interesting candidates; `{}` in its arguments is the path of the candidate.

    Candidates must also satisfy `typed`: they are well typed if the original is.
    """

    words: Sequence[str]
    timeout: float
    typed: Outcome | None

    @staticmethod
    def parsed(text: str, timeout: float, typed: Outcome | None) -> Program:
        """Raises UsageError for a text that does not name a program."""
        try:
            words = shlex.split(text)
        except ValueError as error:
            raise UsageError(f"--while: {error}", remedy="quote the command as in a shell") from None
        program = shutil.which(words[0]) if words else None
        if program is None:
            raise UsageError(f"--while: no program `{text}`", remedy="pass the path of a program, with its arguments")
        words = [os.path.abspath(program), *words[1:]]
        return Program(words if any("{}" in word for word in words) else [*words, "{}"], timeout, typed)

    def line(self, file: Path) -> str:
        return f"cd {shlex.quote(str(file.parent))} && {shlex.join(self._words(file))}"

    def _words(self, file: Path) -> list[str]:
        return [word.replace("{}", str(file)) for word in self.words]

    def holds(self, file: Path) -> bool:
        if self.typed is not None and not self.typed.holds(file):
            return False
        with subprocess.Popen(
            launched(self._words(file), self.timeout, None), cwd=file.parent, stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True,
        ) as process:  # fmt: skip
            try:
                return process.wait(self.timeout) == 0
            except subprocess.TimeoutExpired:
                return False
            finally:
                with suppress(ProcessLookupError, PermissionError):
                    os.killpg(process.pid, signal.SIGKILL)


@dataclass
class Outcome:
    """The questions have one of the `labels` that the original has and that begin with `kind`, or take at least `slow` seconds.

    Labels are `typed`, `disagreement`, `crash`, `late`, `unknown TERMINATION` and `error CODE`; internal errors have the type
    and the line of the exception too, so that the reduction does not end at another fault. Several `settings` are compared as
    by `treesens compare`, one is answered as by `treesens check`, and without settings the questions are typed only.
    """

    kind: str
    slow: float | None
    trust_pickle: bool
    settings: Sequence[Options]
    timeout: float
    labels: frozenset[str] | None = None
    child: Child | None = None

    def holds(self, file: Path) -> bool:
        found, seconds = self._observed(file)
        if self.slow is not None:
            return seconds >= self.slow
        found = frozenset(label for label in found if f"{label} ".startswith(f"{self.kind} "))
        self.labels = found if self.labels is None else self.labels
        return bool(found & self.labels) or (self.kind == "typed" and not self.labels)

    def _observed(self, file: Path) -> tuple[frozenset[str], float]:
        """The labels of a candidate, and the seconds of its answers. The child, which keeps its loaded libraries, is replaced
        if it dies (`crash`) or has no answer in time (`late`).
        """
        if self.child is None or self.child.ended:
            self.child = Child.start(observe_all, loads=(observe_all.__module__,))
        child, end = self.child, time.monotonic() + self.timeout + START_SECONDS
        child.send((str(file), self.trust_pickle, self.settings))
        while (left := end - time.monotonic()) > 0 and not child.ended:
            wait_for_news([child], left)
            if child.news:
                seen: tuple[frozenset[str], float] = child.news.popleft()
                return seen
        child.close()
        self.child = None
        return frozenset({"late" if left <= 0 else "crash"}), self.timeout

    def line(self, file: Path) -> str:
        names, pipelines = (
            [*dict.fromkeys(of)] for of in zip(*((o.backend, o.pipeline) for o in self.settings), strict=True)
        )
        words = ["treesens", "compare" if len(self.settings) > 1 else "check", str(file), "-b", ",".join(names)]
        words += ["--pipelines" if len(self.settings) > 1 else "--pipeline", ";".join(pipelines)]
        return shlex.join([*words, *(["--trust-pickle"] if self.trust_pickle else [])])


Predicate: TypeAlias = Program | Outcome
"""Decides about the main file of a candidate, in a folder with all files that it reads. The first candidate is the original.
`line` is the command line that shows the fault.
"""


def kept(text: str, trust_pickle: bool, settings: Sequence[Options], timeout: float) -> Outcome:
    """The predicate of `--keep`. Raises UsageError for an unknown kind, or settings that do not fit it."""
    kind, _, value = text.partition("=")
    slow = float_of(value) if kind == "slower-than" else None
    known = (kind in ("disagreement", "unknown", "crash") and not value) or (kind == "error" and value)
    if not known and (slow is None or not 0 < slow < timeout):
        raise UsageError(f"--keep: `{text}` is not known", remedy=f"one of {KINDS}, with SECONDS below --timeout")
    if (kind == "disagreement") != (len(settings) > 1):
        remedy = "pass several backends or pipelines for `disagreement`, and one of each for all other kinds"
        raise UsageError(f"--keep: `{kind}` with {len(settings)} backends or pipelines", remedy=remedy)
    return Outcome(text.replace("=", " "), slow, trust_pickle, settings, timeout)


def observe_all(parent: Parent) -> None:
    """Observes the candidates that the parent sends, until the parent ends."""
    while True:
        parent.send(observe(*parent.receive()))


def observe(path: str, trust_pickle: bool, settings: Sequence[Options]) -> tuple[frozenset[str], float]:
    """The labels of a candidate (`Outcome`), and the seconds that its answers take."""
    labels: set[str] = set()
    asked = []
    try:
        loaded = load_file(Path(path), trust_pickle=trust_pickle)
        asked = chosen(loaded, ())
        labels.update(*map(_labels_of_error, loaded.broken.values()))
    except Exception as error:  # noqa: BLE001 - every kind of error becomes a label here
        labels |= _labels_of_error(error)
    labels, start = labels or {"typed"}, time.perf_counter()
    for question in asked:
        cells: list[Cell] = []
        for options in settings:
            try:
                if len(settings) > 1:
                    result = answer(question.query, options, options.budget())
                else:
                    result = answer_question(question, question.replayed(options))
            except Exception as error:  # noqa: BLE001
                labels |= _labels_of_error(error)
                continue
            labels |= _labels_of_result(result)
            cells.append(Cell(options.backend, options.pipeline, result))
        if disagreement(question, cells) or excluded([cell.result for cell in cells]):
            labels.add("disagreement")
    return frozenset(labels), time.perf_counter() - start


def _labels_of_error(error: Exception) -> set[str]:
    failed, place = told(error, "a candidate"), ""
    if isinstance(failed, InternalError):
        cause = failed.__cause__ or failed
        frames = traceback.extract_tb(cause.__traceback__)[-1:]
        place = f" {type(cause).__name__}" + "".join(f" {Path(frame.filename).name}:{frame.lineno}" for frame in frames)
    codes = {one.code for one in getattr(failed, "diagnostics", ())} or {failed.code}
    return {f"error {code}{place}" for code in codes}


def _labels_of_result(result: Result) -> set[str]:
    texts = (result.reason, *result.notes)
    found = {f"error {code}" for text in texts for code in re.findall(r"^error\[(\w+)\]", text)}
    ended = [attempt.termination for attempt in result.attempts]
    if result.verdict is Verdict.UNKNOWN:
        found.add(" ".join(["unknown", *ended[-1:]]))
    return found | ({"crash"} if Termination.CRASH.value in ended else set())


def excluded(results: Sequence[Result]) -> bool:
    """True if the verified value of one answer is beyond the proved bound of another."""
    for one, other in permutations([result.objective for result in results if result.objective is not None], 2):
        if other.bound is not None:
            beyond = one.value - other.bound if one.sense is Sense.MAXIMIZE else other.bound - one.value
            if beyond > CLOSE * max(1.0, abs(other.bound)):
                return True
    return False
