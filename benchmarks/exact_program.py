"""The pseudo-Boolean solver Exact as a program that reads OPB and prints `s` and `v`, as the competitions want it.

    pip install exact==2.1.0
    TREESENS_PB_SOLVER="python -m benchmarks.exact_program" treesens check question.sens --backend pb --pipeline kant

Exact (Devriendt, Gocht, Demirović, Nordström, Stuckey, AAAI 2021) grew out of RoundingSat (Elffers, Nordström, IJCAI 2018), the
solver of SensPB, and is the one of that family that the Python registry has. It is under the AGPL: treesens does not depend on
it, and who measures with it installs it.
"""

from __future__ import annotations

import argparse
import re
from pathlib import Path
from typing import Any

TERM = re.compile(r"([+-]?\d+) (x\d+)")


def load(text: str) -> tuple[Any, int, bool]:
    """The solver with all rows, the number of variables, and whether there is something to minimise."""
    import exact

    head, *lines = text.splitlines()
    variables = max(1, int(re.match(r"\* #variable= (\d+)", head)[1]))  # type: ignore[index]
    solver, minimises = exact.Exact(), False
    for number in range(1, variables + 1):
        solver.addVariable(f"x{number}", 0, 1)
    for line in lines:
        if line.startswith("*") or not line.strip():
            continue
        terms = [(int(factor), name) for factor, name in TERM.findall(line)]
        if line.startswith("min:"):
            solver.setObjective(terms, True, 0)
            minimises = True
            continue
        (relation, side) = re.search(r"(>=|=)\s*([+-]?\d+)\s*;", line).groups()  # type: ignore[union-attr]
        solver.addConstraint(terms, True, int(side), relation == "=", int(side))
    return solver, variables, minimises


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("path", type=Path, help="a file of OPB")
    solver, variables, minimises = load(parser.parse_args().path.read_text())
    # Exact says UNSAT once nothing better than the last solution is left, and SAT if it was not asked for the best.
    state = solver.runFull(minimises)
    if solver.hasSolution() and state in ("SAT", "UNSAT"):
        print("s OPTIMUM FOUND" if minimises else "s SATISFIABLE")
        names = [f"x{number}" for number in range(1, variables + 1)]
        values = solver.getLastSolutionFor(names)
        print("v", *(name if value else f"-{name}" for name, value in zip(names, values, strict=True)))
    else:
        print("s UNSATISFIABLE" if state == "UNSAT" else "s UNKNOWN")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
