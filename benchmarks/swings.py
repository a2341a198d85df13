"""The largest swing of every feature of a model, closed at 1e-6: the native engine, HiGHS and CP-SAT side by side on one core.

    python -m benchmarks.swings MODEL.json [--features A,B] [--limit 60] [--solvers native,highs,cpsat]

CPU seconds of what each solver does with the emitted question, without compiling it; each in a process of its own, for so many
seconds of the clock. Solvers get the module of the pipeline `independent`, without help from the engine.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from benchmarks.beside import Known, by_solver
from benchmarks.curves import question

from treesens.binder.file import bind
from treesens.frontends.registry import load

CLOSED = 3e-6
"""Of the value: 1e-6, and what bounds of solvers are widened by."""


def shown(known: Known) -> str:
    """The seconds, and how far from closed it is."""
    if known.bound is None or not known.value:
        return f"{known.seconds:.2f} ({known.ended})"
    above = known.bound / known.value - 1
    return f"{known.seconds:.2f}" + ("" if above < CLOSED else f" ({known.ended}, {above:.2g} above)")


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
    for feature in features:
        query = bind(question([asked.model], feature, "maximize"), Path()).queries[0].query
        found = {name: by_solver(name, query, asked.limit) for name in names}
        value = max((known.value for known in found.values() if known.value is not None), default=0.0)
        total = {name: total[name] + found[name].seconds for name in names}
        print(f"| {feature} | {value:.6f} | {' | '.join(shown(found[n]) for n in names)} |", flush=True)
    print(f"| all | | {' | '.join(f'{total[n]:.2f}' for n in names)} |")


if __name__ == "__main__":
    main()
