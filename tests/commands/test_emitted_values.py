"""The objective of an emitted text, read as its comment says, is the question's value: by solvers of others, against XGBoost on
every input.
"""

from __future__ import annotations

import itertools
import json
import re
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.command import run_command
from tests.corpus import boosted, margins_of

HIGHS = """
import sys, json, highspy
solver = highspy.Highs()
solver.silent()
solver.readModel(sys.argv[1])
solver.run()
print(json.dumps(solver.getInfo().objective_function_value))
"""
SCIP = """
import sys, json
from pyscipopt import Model
solver = Model()
solver.hideOutput()
solver.readProblem(sys.argv[1])
solver.optimize()
print(json.dumps(solver.getObjVal()))
"""
# z3 turns what it maximises into what it minimises.
Z3 = """
import sys, json, z3
solver = z3.Optimize()
solver.from_file(sys.argv[1])
assert solver.check() == z3.sat
value = solver.model().eval(solver.objectives()[0], model_completion=True)
print(json.dumps(-float(value.as_fraction() if hasattr(value, "as_fraction") else value.as_long())))
"""
CPSAT = """
import sys, json
from ortools.sat.python import cp_model
model, solver = cp_model.CpModel(), cp_model.CpSolver()
assert model.Proto().parse_text_format(open(sys.argv[1]).read())
assert solver.solve(model) == cp_model.OPTIMAL
print(json.dumps(solver.objective_value))
"""
SOLVERS = {
    "lp": ("highspy", HIGHS),
    "mps": ("highspy", HIGHS),
    "opb": ("pyscipopt", SCIP),
    "smt2": ("z3", Z3),
    "cpsat": ("ortools", CPSAT),
}
SIZES = (2, 4, 3)
OBJECTIVES = {
    "maximize margin(a) - margin(b)": lambda a, b, m: m[a] - m[b],
    "minimize margin(a)": lambda a, b, m: -m[a],
    "maximize a.x - 2 * b.z + 7": lambda a, b, m: a[0] - 2 * b[2] + 7,
    "minimize changes(a, b)": lambda a, b, m: -sum(x != y for x, y in zip(a, b, strict=True)),
    "minimize distance(a, row 0 of rows, l2)": lambda a, b, m: -float(np.linalg.norm(np.subtract(a, (0, 3, 1)))),
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[tuple[int, ...], float]]:
    """A folder with a model and a table, and XGBoost's margin of every input."""
    import pandas as pd

    folder = tmp_path_factory.mktemp("emitted")
    points = list(itertools.product(*map(range, SIZES)))
    rng = np.random.default_rng(3)
    rows = pd.DataFrame(np.array(points, float)[rng.integers(0, len(points), 200)], columns=["x", "y", "z"])
    label = (rows.x + rows.y - rows.z + rng.normal(size=200) > 1).astype(int)
    model = boosted(rows, label, 3, path=folder / "m.json")
    pd.DataFrame([(0, 3, 1)], columns=["x", "y", "z"]).to_csv(folder / "rows.csv", index=False)
    table = pd.DataFrame(np.array(points, float), columns=["x", "y", "z"])
    margins = margins_of(model, table)
    return folder, dict(zip(points, margins.tolist(), strict=True))


@pytest.mark.parametrize("number", range(len(OBJECTIVES)))
@pytest.mark.parametrize("target", SOLVERS)
@pytest.mark.sampled
def test_the_comment_says_what_the_objective_means(folder: Any, target: str, number: int) -> None:
    library, script = SOLVERS[target]
    if find_spec(library) is None:
        pytest.skip(f"{library} is not installed")
    place, margins = folder
    objective, value = list(OBJECTIVES.items())[number]
    declared = [f"feature {name}: integer in [0, {size - 1}]" for name, size in zip("xyz", SIZES, strict=True)]
    lines = ['model m from "m.json"', 'data rows from "rows.csv"', *declared, "query q:", "  find a, b such that"]
    text = "\n".join(
        [*lines, "    a = b except {x, y}", "    margin(a) >= 0.2", "    margin(b) <= -0.1", f"  {objective}\n"]
    )
    (place / f"{number}.sens").write_text(text)
    out = place / f"{number}.{target}"
    done = run_command(place, "emit", f"{number}.sens", "--to", target, "--precision", "1", "-o", out.name)
    assert done.returncode == 0, done.stderr
    pairs = [(a, b) for a in margins for b in margins if a[2] == b[2] and margins[a] >= 0.2 and margins[b] <= -0.1]
    best = max(value(a, b, margins) for a, b in pairs)
    words = re.search(
        r"question's value \(.+\) is (the root of )?(\S+) ([+-]) (\S+) z, with z the objective", out.read_text()
    )
    assert words is not None
    solved = subprocess.run([sys.executable, "-c", script, str(out)], capture_output=True, text=True, check=False)
    assert solved.returncode == 0, solved.stderr
    z = float(json.loads(solved.stdout.splitlines()[-1]))
    found = float(words[2]) + float(f"{words[3]}{words[4]}") * z
    found = max(found, 0.0) ** 0.5 if words[1] else found
    assert found == pytest.approx(best if objective.startswith("max") else -best, abs=1e-5)


def test_a_guide_has_no_value(folder: Any) -> None:
    place, _ = folder
    text = 'model m from "m.json"\nquery q: find a such that margin(a) >= 0.2\n'
    (place / "none.sens").write_text(text)
    for target in SOLVERS:
        assert "value (" not in run_command(place, "emit", "none.sens", "--to", target).stdout
