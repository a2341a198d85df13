"""Mutated files of every format against the readers: `python -m tests.hostile.fuzz --seconds 60 --seed 1`.

No file below 1 MB may end in anything but an answer or a `TreesensError` that is not our own fault, take five seconds of
CPU, or need 1 GB of memory. Files are read in a process with a limit on its memory, many one after the other; one that hangs
or dies is started again behind the case that did it. A case is
its format, the seed and a number: `--format F --seed S --first N`.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import queue
import random
import subprocess
import sys
import tempfile
import threading
import time
import traceback
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

from tests.hostile.mutations import MUTATIONS

SECONDS = 5.0
MEMORY = 1 << 30
LARGEST = 1_000_000
BATCH = 25
PATIENCE = 60.0
"""Seconds of wall-clock time without a word until a worker is taken for hanging: other processes may be busy, too."""
LAST_WORDS = 3000
"""Bytes that a dead worker said last."""
SLOW = {
    "treelite.tl": 0.05,
    "forest.spark": 0.05,
    "tree.spark": 0.05,
    "sklearn.skops": 0.5,
    "votes.skops": 0.1,
    "sweep.toml": 0.5,
    "question.sens": 0.8,
    "journal.sqlite": 0.5,
}
"""How often a format is taken in comparison with the others, where its files are slow to read."""


@dataclass
class Totals:
    """What came of the files of one format."""

    outcomes: Counter[str] = field(default_factory=Counter)
    slowest: float = 0.0
    bad: list[str] = field(default_factory=list)


class Worker:
    """A process that reads files; `python -m tests.hostile.fuzz --worker FOLDER`."""

    def __init__(self, folder: Path) -> None:
        command = [sys.executable, "-m", "tests.hostile.fuzz", "--worker", str(folder)]
        # What a reader's library says goes to a file; its end tells why a worker died.
        self.words = tempfile.TemporaryFile(dir=folder)  # noqa: SIM115 (closed in `end`)
        self.process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self.words, text=True, bufsize=1
        )
        self.lines: queue.SimpleQueue[str] = queue.SimpleQueue()
        self.reading = threading.Thread(target=self._read, daemon=True)
        self.reading.start()
        if self.lines.get() != "ready\n":
            raise SystemExit("the valid files cannot be read; see --worker")

    def _read(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            self.lines.put(line)
        self.lines.put("")

    def ask(self, name: str, seed: int, first: int, cases: int) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(json.dumps([name, seed, first, cases]) + "\n")

    def answer(self) -> dict[str, object] | None:
        """The next outcome; None from a worker that is dead, or as good as dead."""
        try:
            line = self.lines.get(timeout=PATIENCE)
        except queue.Empty:
            return None
        return json.loads(line) if line else None

    def end(self) -> str:
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.process.wait(timeout=1)
        self.process.kill()
        code = self.process.wait()
        self.reading.join()
        for pipe in (self.process.stdin, self.process.stdout):
            with contextlib.suppress(BrokenPipeError):
                pipe.close()  # type: ignore[union-attr]
        self.words.seek(max(0, self.words.seek(0, os.SEEK_END) - LAST_WORDS))
        with self.words as words:
            said = words.read().decode(errors="replace")
        return "hangs" if code == -9 else f"dies with code {code}\n{said}"


def run(
    folder: Path, formats: list[str], seed: int, *, seconds: float = 1e9, cases: int = 10**9, first: int = 0
) -> dict[str, Totals]:
    """Totals per format, until the time or the number of cases is over."""
    totals = {name: Totals() for name in formats}
    positions = dict.fromkeys(formats, first)
    due = dict.fromkeys(formats, 0.0)
    worker, done, deadline = Worker(folder), 0, time.monotonic() + seconds
    while done < cases and time.monotonic() < deadline:
        name = min(due, key=lambda n: due[n])
        due[name] += 1 / SLOW.get(name, 1.0)
        batch = min(BATCH if name not in SLOW else 5, cases - done)
        worker.ask(name, seed, positions[name], batch)
        for number in range(positions[name], positions[name] + batch):
            said = worker.answer()
            done, positions[name] = done + 1, number + 1
            if said is None:
                _note(totals[name], name, seed, number, {"outcome": worker.end()})
                worker = Worker(folder)
                break
            _note(totals[name], name, seed, number, said)
    worker.end()
    return totals


def _note(total: Totals, name: str, seed: int, number: int, said: dict[str, object]) -> None:
    outcome = str(said["outcome"])
    total.outcomes[outcome if outcome in {"read", "refused"} else "bad"] += 1
    total.slowest = max(total.slowest, float(said.get("cpu", 0.0)))  # type: ignore[arg-type]
    if outcome not in {"read", "refused"}:
        text = f"--format {name} --seed {seed} --first {number} --cases 1: {outcome}\n{said.get('trace', '')}"
        total.bad.append(text)
        print(text, file=sys.stderr, flush=True)


def mutated(data: bytes, name: str, seed: int, number: int) -> bytes:
    """The file of a case."""
    return MUTATIONS[name](data, random.Random(f"{name} {seed} {number}"))[:LARGEST]


def serve(folder: Path) -> None:
    """The worker's side: a batch per line on standard input, an outcome per line on standard output."""
    from tests.hostile.readers import reader

    out = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)
    samples = {path.name: path.read_bytes() for path in (folder / "samples").iterdir() if path.name in MUTATIONS}
    mine = Path(tempfile.mkdtemp(dir=folder))
    for name, data in samples.items():
        (mine / name).write_bytes(data)
    for name in samples:
        if name != "catboost.cbm":  # the library reads it in a separate process
            reader(name)(mine / name)
    _limit_memory()
    out.write("ready\n")
    for line in sys.stdin:
        name, seed, first, cases = json.loads(line)
        for number in range(first, first + cases):
            path = mine / f"case{Path(name).suffix}"
            for old in mine.glob("case*"):
                old.unlink()
            path.write_bytes(mutated(samples[name], name, seed, number))
            out.write(json.dumps(_outcome(reader(name), path)) + "\n")


def _outcome(read: object, path: Path) -> dict[str, object]:
    from treesens.errors import InternalError, TreesensError

    before = _cpu()
    trace = ""
    try:
        read(path)  # type: ignore[operator]
        outcome = "read"
    except InternalError:
        outcome, trace = "an internal error", traceback.format_exc()
    except TreesensError as error:
        outcome = "refused" if "does not fit into memory" not in str(error) else "takes too much memory"
        if error.code == "M002":
            outcome, trace = "unforeseen", traceback.format_exc()
    except MemoryError:
        outcome, trace = "takes too much memory", traceback.format_exc()
    except BaseException as error:  # noqa: BLE001 (that is what is looked for)
        outcome, trace = f"a traceback: {type(error).__name__}", traceback.format_exc()
    cpu = _cpu() - before
    if cpu > SECONDS:
        outcome = f"takes {cpu:.1f} s"
    return {"outcome": outcome, "cpu": cpu, "trace": trace[-3000:]}


def _cpu() -> float:
    return sum(os.times()[:4])


def _limit_memory() -> None:
    """What the libraries have mapped by now, and 1 GB more."""
    import resource

    mapped = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (mapped + MEMORY, mapped + MEMORY))


def table(totals: dict[str, Totals]) -> str:
    """The totals as Markdown."""
    lines = ["| format | files | read | refused | beyond the limits | slowest, s of CPU |", "| --- |" + " ---: |" * 5]

    def line(name: str, counts: Counter[str], slowest: str) -> str:
        numbers = [sum(counts.values()), counts["read"], counts["refused"], counts["bad"]]
        return f"| {name} | {' | '.join(f'{n:,}' for n in numbers)} | {slowest} |"

    lines += [line(name, total.outcomes, f"{total.slowest:.2f}") for name, total in totals.items()]
    every: Counter[str] = sum((total.outcomes for total in totals.values()), Counter())
    return "\n".join([*lines, line("together", every, f"{max(t.slowest for t in totals.values()):.2f}")])


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--worker", type=Path)
    parser.add_argument("--seconds", type=float, default=1e9)
    parser.add_argument("--cases", type=int, default=10**9)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--seed", type=int, default=int(time.time()))
    parser.add_argument("--format", action="append")
    given = parser.parse_args()
    if given.worker:
        serve(given.worker)
        return 0
    from tests.hostile.samples import write_samples

    with tempfile.TemporaryDirectory(prefix="treesens-fuzz-") as name:
        made = write_samples(Path(name) / "samples")
        print(f"seed {given.seed}", flush=True)
        formats = given.format or list(made)
        totals = run(Path(name), formats, given.seed, seconds=given.seconds, cases=given.cases, first=given.first)
    print(table(totals))
    return 1 if any(total.bad for total in totals.values()) else 0


if __name__ == "__main__":
    sys.exit(main())
