"""Predicates: whether a candidate is interesting. All of them run in child processes with a time limit."""

from __future__ import annotations

import os
import shlex
import shutil
import signal
import subprocess
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from treesens.compiler.base.child import Child, wait_for_news
from treesens.compiler.base.floats import float_of
from treesens.compiler.base.processes import launched
from treesens.errors import UsageError
from treesens.extensions.reduce.observe import Observed, observe_all
from treesens.solve.options import Options

START_SECONDS = 5.0
"""Seconds in which a process starts, and reads a model."""
KINDS = "disagreement, unknown, crash, error=CODE, slower-than=SECONDS"


class Predicate(Protocol):
    """Decides about a candidate's file, which is in a folder with all files that it reads."""

    def holds(self, file: Path) -> bool: ...

    def command(self, file: Path) -> str:
        """The command line that shows the fault again."""
        ...


@dataclass(frozen=True)
class Command:
    """A program that exits with 0 for interesting candidates; `{}` in its arguments is the path of the candidate.

    If the questions of the original file are well typed according to `binding`, those of each candidate must be, too.
    """

    words: Sequence[str]
    timeout: float
    binding: Answers | None = None

    @staticmethod
    def parsed(text: str, timeout: float, binding: Answers | None) -> Command:
        """Raises UsageError for a text that names no program."""
        try:
            words = shlex.split(text)
        except ValueError as error:
            raise UsageError(f"--while: {error}", remedy="quote the arguments as in a shell") from None
        if not words or shutil.which(words[0]) is None:
            name = words[0] if words else ""
            raise UsageError(
                f"--while: the program `{name}` does not exist",
                remedy="give the absolute path of a program; for a shell, `sh -c '…' sh {}`",
            )
        first = shutil.which(words[0]) or words[0]
        words = [os.path.abspath(first), *words[1:]]
        return Command(words if any("{}" in word for word in words) else [*words, "{}"], timeout, binding)

    def _words(self, file: Path) -> list[str]:
        return [word.replace("{}", str(file)) for word in self.words]

    def command(self, file: Path) -> str:
        return f"cd {shlex.quote(str(file.parent))} && {shlex.join(self._words(file))}"

    def holds(self, file: Path) -> bool:
        if self.binding is not None and not self.binding.holds(file):
            return False
        process = subprocess.Popen(
            launched(self._words(file), self.timeout, None),
            cwd=file.parent,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        try:
            return process.wait(self.timeout) == 0
        except subprocess.TimeoutExpired:
            return False
        finally:
            with suppress(ProcessLookupError, PermissionError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()


@dataclass
class Answers:
    """An outcome of the questions: one of the labels of this `kind` that the original file, the first one, has.

    `slower` is the least time of the answers, in seconds, or None. Without settings, the questions are typed only, and the
    outcome is `typed` or not, as that of the original file.
    """

    kind: str
    slower: float | None
    trust_pickle: bool
    settings: Sequence[Options]
    timeout: float
    wanted: frozenset[str] | None = None
    _child: Child | None = None

    def observed(self, file: Path) -> Observed:
        """The outcome of one candidate. A process that dies is a crash, and is replaced, as is one that is late."""
        if self._child is None or self._child.ended:
            self._child = Child.start(observe_all, loads=(observe_all.__module__,))
        child, start = self._child, time.monotonic()
        child.send((str(file), self.trust_pickle, self.settings))
        while (left := self.timeout + START_SECONDS - (time.monotonic() - start)) > 0:
            wait_for_news([child], left)
            ended = child.ended
            if child.news:
                seen: Observed = child.news.popleft()
                return seen
            if ended:
                break
        child.close()
        self._child = None
        return Observed(frozenset({"late" if left <= 0 else "crash"}), seconds=self.timeout)

    def holds(self, file: Path) -> bool:
        seen = self.observed(file)
        if self.slower is not None:
            return seen.seconds >= self.slower
        labels = frozenset(one for one in seen.labels if one == self.kind or one.startswith(f"{self.kind} "))
        self.wanted = labels if self.wanted is None else self.wanted
        return bool(labels & self.wanted)

    def command(self, file: Path) -> str:
        words = ["treesens", "compare" if len(self.settings) > 1 else "check", str(file)]
        words += [
            "--backends" if len(self.settings) > 1 else "--backend",
            ",".join(dict.fromkeys(o.backend for o in self.settings)),
        ]
        pipelines = ";".join(dict.fromkeys(o.pipeline for o in self.settings))
        words += ["--pipelines" if len(self.settings) > 1 else "--pipeline", pipelines]
        return shlex.join([*words, *(["--trust-pickle"] if self.trust_pickle else [])])


def kept(text: str, trust_pickle: bool, settings: Sequence[Options], timeout: float) -> Answers:
    """The predicate of `--keep`. Raises UsageError for an unknown kind."""
    kind, _, value = text.partition("=")
    slower = float_of(value) if kind == "slower-than" else None
    valid = {"disagreement": not value, "unknown": not value, "crash": not value, "error": bool(value)}
    if not (valid.get(kind, False) or (slower is not None and slower > 0)):
        raise UsageError(f"--keep: `{text}` is not a kind of outcome", remedy=f"one of: {KINDS}")
    if slower is not None and slower >= timeout:
        raise UsageError(f"--keep: {slower:g} s are not below --timeout, {timeout:g} s", remedy="raise --timeout")
    if (kind == "disagreement") != (len(settings) > 1):
        remedy = "give several backends for `disagreement`, and one for all other kinds"
        raise UsageError(f"--keep: `{kind}` with {len(settings)} backends or pipelines", remedy=remedy)
    return Answers(f"error {value}" if kind == "error" else kind, slower, trust_pickle, settings, timeout)
