"""The runner: workers draw cases by seed, ask, judge, shrink what fails; the parent adds up and survives a crash."""

from __future__ import annotations

import argparse
import json
import os
import select
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path
from typing import Any

from tests.oracle.asking import SOLVERS
from tests.oracle.cases import SHARES
from tests.oracle.coverage import Coverage
from tests.oracle.filling import DRAWN

ELSEWHERE = ("open elsewhere", "lost elsewhere")
"""What other backends than `native` and `auto` leave open is told and counted, and no failure: an `unknown` is never wrong."""

WRITTEN_EVERY = 60.0
"""Seconds after which what is counted is written again."""

HANG = 150.0
"""Seconds without a word after which a worker is ended, and its case is a failure; for cases of 24 questions."""


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.oracle", description=__doc__)
    parser.add_argument("--seconds", type=float, default=None, help="stop starting cases after this time")
    parser.add_argument("--seed", type=int, default=None, help="the first seed (the time of day without it)")
    parser.add_argument("--cases", type=int, default=None, help="how many seeds")
    parser.add_argument("--questions", type=int, default=24, help="questions of a case")
    parser.add_argument("--jobs", type=int, default=1, help="processes")
    parser.add_argument("--others", type=float, default=0.2, help="share of cases asked of other backends than search")
    parser.add_argument("--backend", choices=SOLVERS, default=None, help="ask every case of this solver")
    parser.add_argument("--provers", action="store_true", help="ask every case of the solver that has answered least")
    parser.add_argument("--studies", type=float, default=0.1, help="share of cases with studies (audit, gap, ..)")
    parser.add_argument("--only-studies", action="store_true", help="studies of every case, and no questions")
    parser.add_argument("--only", default=None, help="cases of this kind of model only")
    parser.add_argument("--trainer", default=None, help="every case with this kind of model")
    parser.add_argument("--ask", default=None, help="the question of this name alone, of all that are drawn")
    parser.add_argument("--fill", type=int, default=None, help="ask what was compared less often than this")
    parser.add_argument(
        "--shares",
        choices=list(SHARES),
        default="usual",
        help="what cases have: more of what is rare, or several classes",
    )
    parser.add_argument("--before", type=Path, help="coverage.json of an earlier run, for --fill and --provers")
    parser.add_argument(
        "--output", type=Path, default=Path("build/oracle"), help="folder of reproductions and of the table"
    )
    parser.add_argument("--shrink", type=float, default=8.0, help="seconds to make a failure smaller; 0 for not at all")
    parser.add_argument("--stop", action="store_true", help="stop at the first failure")
    parser.add_argument("--tolerate", default="", help="kinds that are printed and do not count, e.g. open,lost")
    parser.add_argument("--worker", type=int, default=None, help=argparse.SUPPRESS)
    options = parser.parse_args(argv)
    if options.only_studies:
        options.questions, options.studies = 0, 1.0
    if options.seed is None:
        options.seed = int(time.time()) % 1_000_000 * 1000
    if options.seconds is None and options.cases is None:
        options.seconds = 60.0
    if options.worker is not None:
        from tests.oracle.worker import work

        return work(options)
    return Parent(options).run()


class Parent:
    """Starts the workers and adds up what they tell."""

    def __init__(self, options: argparse.Namespace) -> None:
        self.options = options
        self.coverage = Coverage()
        self.failures: list[dict[str, Any]] = []
        self.end = time.monotonic() + options.seconds if options.seconds else None
        self.started = self.written = time.monotonic()
        self.cases = 0

    def run(self) -> int:
        self.options.output.mkdir(parents=True, exist_ok=True)
        workers = [Worker(self.options, n, self.options.seed + n) for n in range(self.options.jobs)]
        try:
            while any(w.alive for w in workers):
                for worker in workers:
                    if worker.alive:
                        self.hear(worker)
                if time.monotonic() > self.written + WRITTEN_EVERY:
                    self.write()
        except KeyboardInterrupt:
            print("interrupted", file=sys.stderr)
        finally:
            for worker in workers:
                worker.stop()
        return self.report()

    def hear(self, worker: Worker) -> None:
        """One look at a worker: its lines, its silence, its death."""
        for told in worker.lines(0.2):
            worker.heard(told)
            if "case" in told:
                self.cases += 1
                self.coverage.add(told)
            for failure in told.get("failures", []):
                self.fail(failure)
        patience = HANG * max(1.0, self.options.questions / 24)
        if worker.silent > patience:
            self.fail(
                {
                    "kind": "hang", "seed": worker.seed, "detail": f"no answer in {patience:g} s", "options": {},
                    **({"frontend": worker.frontend} if worker.frontend else {}),
                }
            )  # fmt: skip
            worker.restart()
        elif worker.dead:
            if worker.finished:
                worker.alive = False
            else:
                detail = f"the process ended with {worker.process.poll()}: {worker.said()}"
                self.fail({"kind": "crash", "seed": worker.seed, "detail": detail, "options": {}})
                worker.restart()

    def fail(self, failure: dict[str, Any]) -> None:
        self.failures.append(failure)
        again = f" --trainer '{failure['frontend']}'" if self.options.fill and "frontend" in failure else ""
        again += f" --ask '{failure['query']}'" if "query" in failure and "text" in failure else ""
        again += f" --shares {self.options.shares}"
        if (self.options.provers or self.options.backend) and "backend" in failure["options"]:
            again += f" --backend {failure['options']['backend']}"
        drawn = self.options.questions * (DRAWN if self.options.fill else 1)
        told = failure["detail"] if failure["kind"] == "crash" else failure["detail"][:300]
        print(
            f"FAILURE {failure['kind']}: seed {failure['seed']} {failure.get('query', '')} {told}\n"
            f"  {json.dumps(failure['options'])}\n  {failure.get('folder', '')}\n"
            f"  again: python -m tests.oracle --seed {failure['seed']} --cases 1 --questions {drawn}{again}"
            f" --others {self.options.others:g} --studies {self.options.studies:g}",
            flush=True,
        )
        if self.options.stop:
            raise KeyboardInterrupt

    def write(self) -> None:
        """What is known by now, into the folder: a run of hours that is ended from outside has lost a minute."""
        self.written = time.monotonic()
        (self.options.output / "coverage.md").write_text(self.coverage.markdown())
        (self.options.output / "coverage.json").write_text(json.dumps(self.coverage.record(), indent=1))
        with (self.options.output / "failures.jsonl").open("w") as file:
            file.writelines(json.dumps(f) + "\n" for f in self.failures)

    def report(self) -> int:
        self.write()
        seconds = time.monotonic() - self.started
        kinds = Counter(f["kind"] for f in self.failures)
        print(self.coverage.short())
        print(
            f"{self.cases} cases from seed {self.options.seed}, "
            f"{self.coverage.queries} questions and {self.coverage.judged} records "
            f"of studies in {seconds:.0f} s: ",
            end="",
        )
        print(", ".join(f"{n} {k}" for k, n in kinds.most_common()) if kinds else "no failure")
        tolerated = set(self.options.tolerate.split(","))
        return 1 if any(f["kind"] not in tolerated and f["kind"] not in ELSEWHERE for f in self.failures) else 0


class Worker:
    """One process, which tells its cases as lines of JSON."""

    def __init__(self, options: argparse.Namespace, number: int, seed: int) -> None:
        self.options, self.number, self.seed = options, number, seed
        self.alive, self.finished = True, False
        self.log = options.output / f"worker-{number}.log"
        self.deadline = time.monotonic() + options.seconds if options.seconds else None
        self.start(seed)

    def start(self, seed: int) -> None:
        o = self.options
        command = [sys.executable, "-W", "ignore", "-m", "tests.oracle", "--worker", str(seed), "--seed", str(o.seed)]
        for name in ("jobs", "questions", "others", "studies", "output", "shrink", "shares"):
            command += [f"--{name}", str(getattr(o, name))]
        for name in ("only", "trainer", "fill", "before", "ask", "backend"):
            if getattr(o, name) is not None:
                command += [f"--{name}", str(getattr(o, name))]
        command += ["--provers"] if o.provers else []
        if self.deadline is not None:
            command += ["--seconds", str(max(self.deadline - time.monotonic(), 0.1))]
        if o.cases is not None:
            command += ["--cases", str(o.cases)]
        pseudo_boolean = f"{sys.executable} {Path(__file__).parents[1] / 'backends' / 'opb_program.py'}"
        environment = (
            {"TREESENS_PB_SOLVER": pseudo_boolean} | os.environ | {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
        )
        with self.log.open("wb") as log:
            self.process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=log, env=environment)
        assert self.process.stdout is not None
        os.set_blocking(self.process.stdout.fileno(), False)
        self.rest, self.last, self.frontend = b"", time.monotonic(), ""

    def lines(self, wait: float) -> list[dict[str, Any]]:
        assert self.process.stdout is not None
        ready, _, _ = select.select([self.process.stdout], [], [], wait)
        if ready:
            self.rest += self.process.stdout.read() or b""
        *whole, self.rest = self.rest.split(b"\n")
        return [json.loads(line) for line in whole if line.startswith(b"{")]

    def heard(self, told: dict[str, Any]) -> None:
        self.last = time.monotonic()
        self.seed, self.frontend = told.get("seed", self.seed), told.get("frontend", self.frontend)
        self.finished |= bool(told.get("finished"))

    @property
    def silent(self) -> float:
        return time.monotonic() - self.last

    @property
    def dead(self) -> bool:
        return self.process.poll() is not None and not self.lines(0)

    def said(self) -> str:
        """The end of what the process printed: libraries print much, and the reason of its end comes last."""
        with self.log.open("rb") as log:
            log.seek(max(0, self.log.stat().st_size - 2000))
            return log.read().decode(errors="replace").strip() or "it printed nothing"

    def stop(self) -> None:
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()

    def restart(self) -> None:
        """Goes on with the next seed of this worker."""
        self.stop()
        self.finished = False
        if self.deadline is not None and time.monotonic() > self.deadline:
            self.alive = False
            return
        self.seed += self.options.jobs
        self.start(self.seed)
