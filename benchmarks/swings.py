"""The largest swing of every feature of a model, closed at 1e-6: the native engine, HiGHS and CP-SAT side by side on one core.

    python benchmarks/swings.py MODEL.json [--features A,B] [--limit 60] [--solvers native,highs,cpsat]

CPU seconds of what each solver does with the emitted question, without compiling it; each in a process of its own. Solvers get
the module of the pipeline `independent`, without help from the engine.
"""

from __future__ import annotations

import argparse
import importlib
import multiprocessing
import sys
import time
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

from curves import question

from treesens.backends.base import Limits, get_backend
from treesens.binder.file import bind
from treesens.compiler.base.arrays import BoolArray
from treesens.compiler.base.tolerance import Tolerance
from treesens.compiler.compilation import compile_query
from treesens.compiler.ir import Module
from treesens.compiler.query.query import Query
from treesens.frontends.registry import load

CLOSED = 3e-6
"""Of the value: 1e-6, and what bounds of solvers are widened by."""
MODULES = {"highs": "highspy", "cpsat": "ortools.sat.python.cp_model"}


@dataclass(frozen=True)
class Timed:
    """CPU seconds, how it ended, and value and bound in the units of the margin."""

    seconds: float
    ended: str
    value: float | None
    bound: float | None

    def shown(self) -> str:
        """The seconds, and how far from closed it is."""
        if self.value is None or self.bound is None:
            return f"{self.seconds:.2f} ({self.ended})"
        above = self.bound / self.value - 1
        return f"{self.seconds:.2f}" + ("" if above < CLOSED else f" ({self.ended}, {above:.2g} above)")


def solved(name: str, query: Query, limit: float) -> Timed:
    """One solve, timed."""
    backend = get_backend(name)
    module = compile_query(query, "native" if name == "native" else "independent").module
    # Digits enough for 1e-6, as the others have them.
    artifact = backend.emit(module, precision=1 if name == "cpsat" else 0)
    if name in MODULES:
        importlib.import_module(MODULES[name])
    start = time.process_time()
    outcome = backend.solve(artifact, Limits(limit, tolerance=Tolerance(1e-6)))
    seconds = time.process_time() - start
    return Timed(seconds, outcome.termination.value, value_of(module, outcome.assignment), outcome.bound)


def value_of(module: Module, assignment: BoolArray | None) -> float | None:
    """The objective of the module at a point."""
    goal = module.objective
    if assignment is None or goal is None:
        return None
    total = sum(int(c) for c in goal.coefficients[assignment[goal.variables]]) + goal.constant
    return float(total / 2**goal.shift)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("model", type=Path)
    parser.add_argument("--features")
    parser.add_argument("--limit", type=float, default=60.0)
    parser.add_argument("--solvers", default="native,highs,cpsat")
    asked = parser.parse_args()
    names = asked.solvers.split(",")
    features = asked.features.split(",") if asked.features else load(asked.model).ensemble.feature_names
    print(f"| feature | swing | {' | '.join(names)} |\n|" + " --- |" * (2 + len(names)), flush=True)
    total = dict.fromkeys(names, 0.0)
    context = multiprocessing.get_context("spawn")
    for feature in features:
        query = bind(question([asked.model], feature, "maximize"), Path()).queries[0].query
        found = {}
        for name in names:
            with ProcessPoolExecutor(1, context) as pool:
                found[name] = pool.submit(solved, name, query, asked.limit).result()
            total[name] += found[name].seconds
        value = max((t.value for t in found.values() if t.value is not None), default=0.0)
        print(f"| {feature} | {value:.6f} | {' | '.join(found[n].shown() for n in names)} |", flush=True)
    print(f"| all | | {' | '.join(f'{total[n]:.2f}' for n in names)} |")


if __name__ == "__main__":
    main()
