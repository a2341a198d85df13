"""Hard questions on several processes: nodes and CPU seconds as workers grow, while workers are killed.

    python -m benchmarks.conquest [forest:16:sex:0.3 ...] --workers 2,4,8,16 --kill 10

A question is KIND:DEPTH:FEATURE:GAP: can FEATURE alone move the probability from 0.5 - GAP to 0.5 + GAP? `forest` is
scikit-learn's `RandomForestClassifier` on the table (`--table`: a CSV file whose last column is the class), `extra` its
`ExtraTreesClassifier` on breast cancer; features have names, or numbers: f22. It is asked in one process first, and then in
parts, as `treesens check --workers N` does; every `--kill` seconds a random worker is killed by its process id. Nodes are those
of tasks that came back: what a killed worker had searched is asked again, and stands in none of the figures. `again` are the
tasks that were asked twice because their worker had been lost. CPU seconds are those that workers report. Wall time is not
told: cores may be shared. So that a part gets the same work from any number of workers, its seconds are stretched if there are
more workers than cores.
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
from pathlib import Path
from typing import Any

from benchmarks.forests import table
from benchmarks.published import FOLDER

from treesens.binder.file import ResolvedQuestion, bind
from treesens.compiler.base.budget import Budget
from treesens.compiler.result import Result, Verdict
from treesens.extensions.sweeps.conquer import Coordinator
from treesens.extensions.sweeps.executor import Executor
from treesens.extensions.sweeps.service import shipment_of
from treesens.extensions.sweeps.worker import Outcome, cpu_seconds
from treesens.grammar.parsing.parser import parse
from treesens.solve.options import Options
from treesens.solve.question import answer_question

HEAD = (
    "| question | workers | answer | parts | tasks | nodes | nodes / those of one process | CPU s | nodes / CPU s "
    "| killed | again |\n| --- | ---: | --- |" + " ---: |" * 8
)
QUESTIONS = ("extra:6:f22:0.23", "forest:12:fnlwgt:0.3", "forest:16:sex:0.3", "forest:16:fnlwgt:0.4")
TREES = 100


def nodes_of(result: Result) -> float:
    """The nodes of all searches for an answer."""
    return sum(attempt.statistics.get("nodes", 0.0) for attempt in result.attempts)


class Counted(Coordinator):
    """Adds up the nodes of tasks, and how many were asked twice."""

    nodes = 0.0
    twice = 0

    def _take_in(self, outcome: Outcome) -> None:
        self.twice += outcome.attempts > 1
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


def trained(kind: str, depth: int, rows: Path) -> tuple[Any, Any]:
    """The model of a question, and the columns that it was trained on."""
    from sklearn.datasets import load_breast_cancer
    from sklearn.ensemble import ExtraTreesClassifier, RandomForestClassifier

    options = {"n_estimators": TREES, "max_depth": depth or None, "random_state": 0, "n_jobs": 1}
    if kind == "forest":
        columns, classes = table(rows)
        return RandomForestClassifier(**options).fit(columns.to_numpy(), classes), columns
    data = load_breast_cancer(as_frame=True)
    return ExtraTreesClassifier(**options).fit(data.data.to_numpy(), data.target), data.data


def write_question(folder: Path, text: str, rows: Path) -> Path:
    """The model, and a file with the question about it; features have the numbers of their columns."""
    import skops.io

    kind, depth, feature, gap = text.split(":")
    model, columns = trained(kind, int(depth), rows)
    skops.io.dump(model, folder / "m.skops")
    ends = zip(columns.min(), columns.max(), strict=True)
    ranges = "".join(f"feature f{i}: real in [{low}, {high}]\n" for i, (low, high) in enumerate(ends))
    names = [*columns]
    varies = f"f{names.index(feature)}" if feature in names else feature
    path = folder / "q.sens"
    path.write_text(
        f'model m from "m.skops"\n{ranges}query q: find a, b in m such that a = b except {varies}; '
        f"prob(a) >= 0.5 + {gap}; prob(b) <= 0.5 - {gap}\n"
    )
    return path


def in_parts(
    question: ResolvedQuestion, path: Path, asked: argparse.Namespace, workers: int
) -> tuple[Result, Counted, int]:
    """The answer of so many workers, the coordinator, and how many workers were killed."""
    executor = Executor("local", workers)
    shipment = shipment_of(path, executor, trust_pickle=False)
    options = Options("native", time_limit=asked.limit, replay="emulated")
    stretched = asked.slice * max(1.0, workers / (os.cpu_count() or 1))
    search = Counted(question, shipment, executor, options, slice_seconds=stretched, first_seconds=0.0)
    with killing(asked.kill, workers) as killer:
        result = search.run(Budget.of(asked.limit))
    return result, search, killer.killed


def told(name: str, asked: argparse.Namespace) -> Iterator[str]:
    """The lines of the table about one question."""
    with tempfile.TemporaryDirectory() as folder:
        path = write_question(Path(folder), name, asked.table)
        question = bind(parse(path.read_text(), str(path)), path.parent).queries[0]
        before = cpu_seconds()
        alone = answer_question(question, Options("native", time_limit=asked.limit, regions=False))
        took, nodes = cpu_seconds() - before, nodes_of(alone)
        yield f"| {name} | in this process | {alone.verdict} | 1 | 1 | {figures(nodes, nodes, took)} | | |"
        for workers in map(int, asked.workers.split(",")):
            result, search, killed = in_parts(question, path, asked, workers)
            known = search.known
            parts = f"{len(known.leaves())} | {known.asked}"
            counted = figures(search.nodes, nodes, known.cpu)
            said = f"{result.verdict}" if result.verdict is not Verdict.UNKNOWN else f"unknown: {result.reason}"
            yield f"| | {workers} | {said} | {parts} | {counted} | {killed} | {search.twice} |"


def figures(nodes: float, alone: float, seconds: float) -> str:
    share = nodes / alone if alone else float("nan")
    return f"{nodes:,.0f} | {share:.2f} | {seconds:.0f} | {nodes / max(seconds, 1e-9):,.0f}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("questions", nargs="*", default=QUESTIONS)
    parser.add_argument("--table", type=Path, default=FOLDER / "data" / "adult" / "train.csv")
    parser.add_argument("--workers", default="2,4,8,16", help="Numbers of worker processes.")
    parser.add_argument("--limit", type=float, default=600.0, help="Seconds of every answer.")
    parser.add_argument("--slice", type=float, default=5.0, help="Seconds of one part that has a core to itself.")
    parser.add_argument(
        "--kill", type=float, default=10.0, help="Seconds between two workers that are killed; 0: none is."
    )
    asked = parser.parse_args()
    print(HEAD)
    for name in asked.questions:
        for line in told(name, asked):
            print(line, flush=True)


if __name__ == "__main__":
    main()
