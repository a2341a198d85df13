"""One hard question on several processes: nodes and CPU seconds as workers grow, while workers are killed.

    python -m benchmarks.conquest --workers 2,4,8,16 --kill 10

Trains `ExtraTreesClassifier` on scikit-learn's breast cancer data and asks whether one feature alone can move the probability
across 0.5 by a gap. It is asked in this process first, and then in parts, as `treesens check --workers N` does; every `--kill`
seconds a random worker is killed by its process id. Nodes are those of tasks that came back: what a killed worker had searched
is asked again, and stands in none of the figures. CPU seconds are those that workers report. Wall time is not told: cores may
be shared.
"""

from __future__ import annotations

import argparse
import multiprocessing
import os
import random
import signal
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from treesens.binder.file import ResolvedQuestion, bind
from treesens.commands.check_parts import QuestionFile, shipment_of
from treesens.compiler.base.budget import Budget
from treesens.compiler.result import Result
from treesens.grammar.parsing.parser import parse
from treesens.solve.options import Options
from treesens.solve.question import answer_question
from treesens.sweeps.conquer import Coordinator
from treesens.sweeps.executor import Executor
from treesens.sweeps.worker import Outcome

HEAD = (
    "| workers | answer | parts | tasks | nodes | nodes / those of one process | CPU s | killed |\n| ---: | --- |"
    + " ---: |" * 6
)


def nodes_of(result: Result) -> float:
    """The nodes of all searches for an answer."""
    return sum(attempt.statistics.get("nodes", 0.0) for attempt in result.attempts)


class Counted(Coordinator):
    """Adds up the nodes of tasks."""

    nodes = 0.0

    def _take_in(self, outcome: Outcome) -> None:
        if outcome.result is not None:
            self.nodes += nodes_of(outcome.result)
        super()._take_in(outcome)


class Killer(threading.Thread):
    """Kills one of this process's workers every so many seconds (0: never)."""

    def __init__(self, seconds: float, seed: int) -> None:
        super().__init__(daemon=True)
        self.seconds, self.dice = seconds, random.Random(seed)
        self.over, self.killed = threading.Event(), 0

    def run(self) -> None:
        while not self.over.wait(self.seconds):
            workers = workers_here()
            if workers:
                os.kill(self.dice.choice(workers), signal.SIGKILL)
                self.killed += 1


def workers_here() -> list[int]:
    """Process ids of the workers that were started here."""
    return sorted(process.pid for process in multiprocessing.active_children() if process.pid is not None)


@contextmanager
def killing(seconds: float, seed: int) -> Iterator[Killer]:
    killer = Killer(seconds, seed)
    if seconds > 0:
        killer.start()
    yield killer
    killer.over.set()
    if seconds > 0:
        killer.join()


def write_question(folder: Path, asked: argparse.Namespace) -> Path:
    """The model, and a file with the question about it."""
    import skops.io
    from sklearn.datasets import load_breast_cancer
    from sklearn.ensemble import ExtraTreesClassifier

    data = load_breast_cancer()
    model = ExtraTreesClassifier(asked.trees, max_depth=asked.depth, random_state=0, n_jobs=1).fit(
        data.data, data.target
    )
    skops.io.dump(model, folder / "m.skops")
    ranges = "".join(
        f"feature {n}: real in [{low}, {high}]\n"
        for n, low, high in zip(
            (f"f{i}" for i in range(data.data.shape[1])), data.data.min(0), data.data.max(0), strict=True
        )
    )
    path = folder / "q.sens"
    path.write_text(
        f'model m from "m.skops"\n{ranges}query q: find a, b in m such that a = b except f{asked.feature}; '
        f"prob(a) >= 0.5 + {asked.gap}; prob(b) <= 0.5 - {asked.gap}\n"
    )
    return path


def in_parts(
    question: ResolvedQuestion, path: Path, asked: argparse.Namespace, workers: int
) -> tuple[Result, Counted, int]:
    """The answer of so many workers, the coordinator, and how many workers were killed."""
    executor = Executor("local", workers)
    shipment = shipment_of(QuestionFile(path, trust_pickle=False), executor)
    options = Options(time_limit=asked.limit, library_predict=question.library_predicts("auto"))
    search = Counted(question, shipment, executor, options, slice_seconds=asked.slice, first_seconds=0.0)
    with killing(asked.kill, workers) as killer:
        result = search.run(Budget.of(asked.limit))
    return result, search, killer.killed


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--workers", default="2,4,8,16", help="Numbers of worker processes.")
    parser.add_argument("--trees", type=int, default=100)
    parser.add_argument("--depth", type=int, default=6)
    parser.add_argument("--feature", type=int, default=22, help="The number of the feature that varies.")
    parser.add_argument("--gap", default="0.04")
    parser.add_argument("--limit", type=float, default=600.0, help="Seconds of every answer.")
    parser.add_argument("--slice", type=float, default=5.0, help="Seconds of one part.")
    parser.add_argument(
        "--kill", type=float, default=10.0, help="Seconds between two workers that are killed; 0: none is."
    )
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        path = write_question(Path(name), asked)
        question = bind(parse(path.read_text(), str(path)), path.parent).queries[0]
        alone = answer_question(question, replace(Options(time_limit=asked.limit), regions=False))
        nodes = nodes_of(alone)
        print(HEAD)
        print(f"| in this process | {alone.verdict.value} | 1 | 1 | {nodes:,.0f} | 1.00 | | |", flush=True)
        for workers in map(int, asked.workers.split(",")):
            result, search, killed = in_parts(question, path, asked, workers)
            share = search.nodes / nodes if nodes else float("nan")
            known = search.known
            print(
                f"| {workers} | {result.verdict.value} | {len(known.leaves())} | {known.asked} | {search.nodes:,.0f} "
                f"| {share:.2f} | {known.cpu:.0f} | {killed} |",
                flush=True,
            )


if __name__ == "__main__":
    main()
