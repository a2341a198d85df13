"""A solver's solution, read through the printed legend, is an answer: the model's own library says so, format by format."""

from __future__ import annotations

import json
import math
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from tests.command import run_command
from treesens.backends.text.formats import FORMATS

xgboost = pytest.importorskip("xgboost")

TRUE_NAMES = {
    "lp": """
import sys, json, highspy
model = highspy.Highs()
model.setOptionValue("output_flag", False)
model.readModel(sys.argv[1])
model.run()
values = model.getSolution().col_value
print(json.dumps([model.getColName(i)[1] for i, value in enumerate(values) if value > 0.5]))
""",
    "smt2": """
import sys, json, z3
solver = z3.Optimize()
solver.from_file(sys.argv[1])
assert solver.check() == z3.sat
model = solver.model()
print(json.dumps([d.name() for d in model.decls() if z3.is_true(model[d])]))
""",
    "opb": """
import sys, json, re, subprocess
said = subprocess.run([sys.executable, "PROGRAM", sys.argv[1]], capture_output=True, text=True, check=True).stdout
print(json.dumps(re.findall(r"^v (x[0-9]+)$", said, re.MULTILINE)))
""".replace("PROGRAM", str(Path(__file__).with_name("opb_program.py"))),
    "cpsat": """
import sys, json
from google.protobuf import text_format
from ortools.sat import cp_model_pb2
from ortools.sat.python import cp_model
model = cp_model.CpModel()
text_format.Parse(open(sys.argv[1]).read(), model.Proto()) if hasattr(model.Proto(), "DESCRIPTOR") else \
    model.Proto().parse_text_format(open(sys.argv[1]).read())
solver = cp_model.CpSolver()
solver.parameters.num_workers = 1
assert solver.solve(model) in (cp_model.OPTIMAL, cp_model.FEASIBLE)
values = solver.response_proto.solution
print(json.dumps([v.name for v, value in zip(model.Proto().variables, values) if value]))
""",
    # Only our own solvers read the IR: one of them solves the problem in its text, and numbers are the names.
    "sir": """
import sys, json
from treesens.backends.base import Limits, get_backend
from treesens.compiler.ir.text import parse_module
backend = get_backend("highs")
done = backend.solve(backend.emit(parse_module(open(sys.argv[1]).read())), Limits(60))
print(json.dumps([str(number) for number, value in enumerate(done.assignment) if value]))
""",
}
"""Programs that print the names, as the text has them, of the variables that are true in a solution."""
TRUE_NAMES["mps"] = TRUE_NAMES["lp"]
NAME = {**dict.fromkeys(FORMATS, r"\bx\d+\b"), "sir": r"$^"}

FEATURES = ["sex", "age", "income", "region"]
QUESTION = """
model m from "m.json"
query q: find a, b such that
    a = b except {sex, region}
    prob(a) >= 0.6
    prob(b) <= 0.4
"""


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, xgboost.Booster]:
    rng = np.random.default_rng(5)
    rows = np.column_stack(
        [rng.integers(0, 2, 400), rng.uniform(18, 80, 400), rng.normal(30, 9, 400), rng.integers(0, 5, 400)]
    ).astype(np.float32)
    rows[rng.random(400) < 0.15, 2] = np.nan
    label = (np.nan_to_num(rows[:, 2]) + 14 * rows[:, 0] + 9 * (rows[:, 3] % 2) - rows[:, 1] / 4 > 28).astype(int)
    booster = xgboost.train(
        {"objective": "binary:logistic", "max_depth": 3, "max_cat_to_onehot": 2, "eta": 0.6}, data(rows, label), 4
    )
    folder = tmp_path_factory.mktemp("legends")
    booster.save_model(folder / "m.json")
    return folder, booster


def data(rows: np.ndarray, label: np.ndarray | None = None) -> xgboost.DMatrix:
    return xgboost.DMatrix(
        rows, label, feature_names=FEATURES, feature_types=["q", "q", "q", "c"], enable_categorical=True
    )


def point_of(said: list[tuple[str, str, bool]], name: str) -> np.ndarray:
    """An input for which every line of the legend about this point holds, or does not, as the solution says."""
    point = np.zeros(len(FEATURES), np.float32)
    for place, feature in enumerate(FEATURES):
        low, high, missing = -math.inf, math.inf, False
        for points, text, true in said:
            if name not in points.split(", ") or not text.startswith(f"{feature} "):
                continue
            meaning = text.removeprefix(f"{feature} ")
            if meaning == "is not missing":
                missing = not true
            elif bounded := re.fullmatch(r"<= (\d+) \(a code\)", meaning):
                low, high = (low, min(high, float(bounded[1]))) if true else (max(low, float(bounded[1]) + 1), high)
            else:
                below = re.fullmatch(r"< (\S+)", meaning)
                assert below, text
                limit = float(below[1])
                low, high = (
                    (low, min(high, float(np.nextafter(np.float32(limit), np.float32(-np.inf)))))
                    if true
                    else (max(low, limit), high)
                )
        assert missing or low <= high, (name, feature, low, high)
        if missing:
            point[place] = np.nan
        elif feature == "region":
            point[place] = low if math.isfinite(low) else 0
        else:
            point[place] = low if math.isfinite(low) else min(high, 0.0)
    return point


@pytest.mark.sampled
@pytest.mark.parametrize("target", [name for name in FORMATS if name not in {"cnf", "wcnf"}])  # which hold no scores
@pytest.mark.parametrize(("pipeline", "goal"), [("independent", ""), ("kant", "  maximize margin(a) - margin(b)\n")])
def test_a_solution_read_through_the_legend_is_an_answer_in_the_library(
    model: tuple[Path, xgboost.Booster], tmp_path: Path, target: str, pipeline: str, goal: str
) -> None:
    folder, booster = model
    (folder / "q.sens").write_text(QUESTION + goal)
    path = tmp_path / f"q.{target}"
    emitted = run_command(folder, "emit", "q.sens", "--to", target, "-o", str(path), "--legend", "-p", pipeline)
    assert emitted.returncode == 0, emitted.stderr
    _, *lines = Path(f"{path}.legend.tsv").read_text().splitlines()
    legend = [line.split("\t") for line in lines]
    named = set(re.findall(NAME[target], path.read_text()))
    assert named <= {variable for variable, _, _ in legend}
    solved = subprocess.run(
        [sys.executable, "-c", TRUE_NAMES[target], str(path)], capture_output=True, text=True, check=False
    )
    assert solved.returncode == 0, solved.stderr
    true = set(json.loads(solved.stdout.splitlines()[-1]))
    said = [(points, text, variable in true) for variable, points, text in legend]
    a, b = (point_of(said, name) for name in "ab")
    assert np.array_equal(a[1:3], b[1:3], equal_nan=True)
    first, second = booster.predict(data(np.vstack([a, b])))
    assert first >= 0.6 - 1e-6, (a, first)
    assert second <= 0.4 + 1e-6, (b, second)
