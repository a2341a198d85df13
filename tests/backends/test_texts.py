"""What `emit` writes is read alike by solvers that have nothing to do with each other, each in a process of its own."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path

import pytest

from treesens.backends.text.lp import write_lp
from treesens.backends.text.mps import write_mps
from treesens.backends.text.smt2 import write_smt2
from treesens.compiler.ir.evaluate import brute_force
from treesens.extensions.conformance.shapes import cases

Z3 = """
import sys, json, z3
found = {}
for path in sys.argv[1:]:
    solver = z3.Solver()
    solver.from_file(path)
    found[path] = str(solver.check())
print(json.dumps(found))
"""
CVC5 = """
import sys, json, cvc5
found = {}
for path in sys.argv[1:]:
    terms = cvc5.TermManager()
    solver = cvc5.Solver(terms)
    parser = cvc5.InputParser(solver)
    parser.setStringInput(cvc5.InputLanguage.SMT_LIB_2_6, open(path).read(), path)
    said = ""
    while not (command := parser.nextCommand()).isNull():
        said += str(command.invoke(solver, parser.getSymbolManager()))
    found[path] = said.strip()
print(json.dumps(found))
"""
HIGHS = """
import sys, json, highspy
found = {}
for path in sys.argv[1:]:
    model = highspy.Highs()
    model.setOptionValue("output_flag", False)
    read = model.readModel(path)
    model.run()
    infeasible = model.getModelStatus() == highspy.HighsModelStatus.kInfeasible
    optimal = model.getModelStatus() == highspy.HighsModelStatus.kOptimal
    value = model.getInfo().objective_function_value
    found[path] = "infeasible" if infeasible else value if optimal else f"{read} {model.getModelStatus()}"
print(json.dumps(found))
"""
SCIP = """
import sys, json
from pyscipopt import Model
found = {}
for path in sys.argv[1:]:
    model = Model()
    model.hideOutput()
    model.readProblem(path)
    model.optimize()
    status = model.getStatus()
    found[path] = model.getObjVal() if status == "optimal" else status
print(json.dumps(found))
"""
CBC = """
import sys, json, mip
found = {}
for path in sys.argv[1:]:
    model = mip.Model(solver_name="CBC")
    model.verbose = 0
    model.read(path)
    status = model.optimize(max_seconds=30)
    optimal, never = mip.OptimizationStatus.OPTIMAL, (mip.OptimizationStatus.INFEASIBLE, mip.OptimizationStatus.INT_INFEASIBLE)
    found[path] = model.objective_value if status == optimal else "infeasible" if status in never else str(status)
print(json.dumps(found), file=sys.stderr)
"""

# Guides only steer, so that their optimum means nothing.
WITHIN_DOUBLES = [
    c for c in cases() if not c.name.startswith(("big", "near", "linear-missed-by-a-bit", "empty", "guide"))
]


def solved(script: str, paths: list[Path]) -> dict[str, object]:
    """What a solver says to each file, by the name of the file."""
    command = [sys.executable, "-c", script, *map(str, paths)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=300)
    lines = [line for line in (done.stdout + done.stderr).splitlines() if line.startswith("{")]
    assert done.returncode == 0, done.stderr
    assert lines, done.stderr
    return {Path(path).name: answer for path, answer in json.loads(lines[-1]).items()}


@pytest.mark.parametrize(("library", "script"), [("z3", Z3), ("cvc5", CVC5)])
def test_smt_lib_is_accepted_and_decided_right(tmp_path: Path, library: str, script: str) -> None:
    if find_spec(library) is None:
        pytest.skip(f"{library} is not installed")
    expected = {}
    for case in cases():
        # Optimisation is an extension of the standard.
        module = replace(case.module, objective=None)
        path = tmp_path / f"{case.name}.smt2"
        path.write_text(write_smt2(module).text)
        expected[path.name] = "sat" if brute_force(module).solutions > 0 else "unsat"
    assert set(expected.values()) == {"sat", "unsat"}
    assert solved(script, sorted(tmp_path.iterdir())) == expected


@pytest.mark.slow
@pytest.mark.parametrize(("library", "script"), [("highspy", HIGHS), ("pyscipopt", SCIP), ("mip", CBC)])
@pytest.mark.parametrize(("ending", "write"), [("lp", write_lp), ("mps", write_mps)])
def test_lp_and_mps_are_read_to_the_same_optimum(
    tmp_path: Path, library: str, script: str, ending: str, write: object
) -> None:
    if find_spec(library) is None:
        pytest.skip(f"{library} is not installed")
    expected: dict[str, float | str] = {}
    for case in WITHIN_DOUBLES:
        artifact = write(case.module)  # type: ignore[operator]
        path = tmp_path / f"{case.name}.{ending}"
        path.write_text(artifact.text)
        best = brute_force(case.module)
        if best.solutions == 0:
            expected[path.name] = "infeasible"
        elif case.module.objective is None:
            expected[path.name] = 0.0
        else:
            assert best.objective is not None
            # LP files maximise; MPS files minimise the negative, because not every reader knows how to maximise.
            sign = 1 if ending == "lp" else -1
            goal = case.module.objective
            expected[path.name] = sign * (best.objective - goal.constant) / 2**goal.shift
    assert "infeasible" in expected.values()
    for name, answer in solved(script, sorted(tmp_path.iterdir())).items():
        wanted = expected[name]
        if isinstance(wanted, str):
            assert answer == wanted, name
        else:
            assert answer == pytest.approx(wanted, abs=1e-6, rel=1e-9), name
