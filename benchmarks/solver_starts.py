"""What a small solve takes as a fork of a process that has the library loaded, and in a process that starts from nothing:
python -m benchmarks.solver_starts

In turns, so that what else the machine does slows both (docs/adr/0029-solvers-are-forks-of-a-loaded-process.md).
"""

from __future__ import annotations

import argparse
import statistics
import time
from unittest import mock

from treesens.backends import worker
from treesens.backends.base import Artifact, Limits, get_backend, solver_names
from treesens.extensions.conformance.shapes import cases
from treesens.runtime import child


def seconds_of(name: str, artifact: Artifact, forked: bool) -> float:
    """Wall seconds of one solve, from its start to its answer."""
    start = time.perf_counter()
    if forked:
        outcome = worker.solve_isolated(name, artifact, Limits(60))
    else:
        with mock.patch.object(child.servers, "fork", return_value=None):
            outcome = worker.solve_isolated(name, artifact, Limits(60))
    assert outcome.assignment is not None, outcome
    return time.perf_counter() - start


def main() -> None:
    """Prints a line for each solver that is here."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--times", type=int, default=9, help="solves of each kind")
    times = parser.parse_args().times
    module = next(case.module for case in cases() if case.name == "path")
    print(
        "| solver | first solve, s | later ones, median | from nothing, median | ratio |\n| --- | --- | --- | --- | --- |"
    )
    for name in solver_names():
        backend = get_backend(name)
        if backend.available() is not None or not backend.modules:
            continue
        artifact = backend.emit(module)
        first = seconds_of(name, artifact, True)
        pairs = [(seconds_of(name, artifact, True), seconds_of(name, artifact, False)) for _ in range(times)]
        later, alone = (statistics.median(column) for column in zip(*pairs, strict=True))
        print(f"| {name} | {first:.2f} | {later:.3f} | {alone:.2f} | {alone / later:.0f} |", flush=True)


if __name__ == "__main__":
    main()
