"""Planted faults are reduced to at most two trees and five constraints, and the result still shows them.

The faults are in a plug-in (`faulty.py`) or in a program; the reducer does not know them. A result is judged by the commands
`check` and `compare` and by the file of the model, and not by what the reducer says.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.corpus import boosted
from tests.data.settings import BENCH, needs_bench
from tests.extensions.reduce import faulty
from tests.trials import trials

pytestmark = pytest.mark.slow

QUESTIONS = """model m from "model.json"
feature a: real in [0, 1]
feature b: real in [0, 1]
feature c: real in [0, 1]
feature d: real in [0, 1]
feature e: real in [0, 1] or missing
feature f: integer in [0, 1]

query easy:
  sensitive m to {a, b} gap 0.01

query hard:
  find p, q in m such that
    p = q except {a, b, c}
    prob(p) >= 0.55
    prob(q) <= 0.45
    p.a <= 0.9 or p.e in [0.1, 0.2] or missing(q.e)
    p.d >= 0.01 implies p.d <= 0.99
  maximize margin(p) - margin(q)
"""
PROGRAM = """import json, sys
model = json.load(open("model.json"))["learner"]
found = False
for tree in model["gradient_booster"]["model"]["trees"]:
    for node, left in enumerate(tree["left_children"]):
        if left >= 0 and model["feature_names"][tree["split_indices"][node]] == "c":
            for child in (left, tree["right_children"][node]):
                found |= tree["left_children"][child] < 0 and tree["split_conditions"][child] < -0.02
sys.exit(0 if found and "except" in open(sys.argv[1]).read() else 1)
"""
SIR_PROGRAM = """import re, sys
text = open(sys.argv[1]).read()
rows = re.findall("^op linear.* coefficients=(?:big:)?([-0-9]+)", text, re.MULTILINE)
sys.exit(0 if any(abs(int(row)) > 1 for row in rows) else 1)
"""


@dataclass(frozen=True)
class Fault:
    """`words` are the arguments of `reduce`; `shown` judges what the command `judge` prints about the result."""

    words: tuple[str, ...]
    judge: tuple[str, ...] = ()
    shown: Callable[[Any], bool] = bool
    splits: frozenset[str] = frozenset()
    """Features on which the model of the result must split, or that its question must name."""
    leaves: int = 0


def verdicts(record: Any) -> set[str]:
    return {result["verdict"] for result in record["results"]}


def ended(word: str) -> Callable[[Any], bool]:
    return lambda record: any(a["termination"] == word for r in record["results"] for a in r["attempts"])


def worse(record: Any) -> bool:
    (first, second) = (result["objective"] for result in record["results"])
    return first["value"] > second["bound"] + 1e-6


def disagreeing(backend: str, **more: Any) -> Fault:
    judge = ("compare", "--backends", f"native,{backend}")
    shown = lambda record: verdicts(record) == {"found", "none"}  # noqa: E731
    return Fault(("easy", "--keep", "disagreement", "-b", f"native,{backend}"), judge, **{"shown": shown, **more})


def checked(backend: str, keep: str, shown: Callable[[Any], bool], **more: Any) -> Fault:
    return Fault(("easy", "--keep", keep, "-b", backend), ("check", "-b", backend), shown, **more)


def stopped(name: str, code: str, **more: Any) -> Fault:
    words = ("--keep", f"error={code}", "-b", "cpsat", "--pipelines", name)
    return Fault(words, ("check", "-b", "cpsat", "-p", name), lambda r: f"error[{code}]" in json.dumps(r), **more)


FAULTS = {
    "none-for-feature": disagreeing("none-for-feature", splits=frozenset("c"), leaves=2),
    "none-for-deep-tree": disagreeing("none-for-deep-tree", leaves=3),
    "none-for-large-leaf": disagreeing("none-for-large-leaf", splits=frozenset("b"), leaves=2),
    "worse-optimum": Fault(
        ("hard", "--keep", "disagreement", "-b", "native,worse-optimum", "--timeout", "30"),
        ("compare", "--backends", "native,worse-optimum"), worse, frozenset("a"), 2,
    ),
    "dies": checked("dies", "crash", ended("crash"), splits=frozenset("c"), leaves=2),
    "sleeps": checked("sleeps", "slower-than=0.8", lambda r: r["seconds"] > 0.8, splits=frozenset("b"), leaves=2),
    "gives-up": checked("gives-up", "unknown", lambda record: verdicts(record) == {"unknown"}, leaves=3),
    "explodes": stopped("explodes", "P001"),
    "refuses": stopped("refuses", "P001", splits=frozenset("d"), leaves=2),
    "program": Fault(("--while", f"{sys.executable} -S {{}}.py {{}}"), splits=frozenset("c"), leaves=2),
}  # fmt: skip


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the plug-in, as an installer leaves it."""
    folder = tmp_path_factory.mktemp("site")
    shutil.copy(faulty.__file__, folder)
    info = folder / "faulty-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: faulty\nVersion: 1.0\n")
    groups = {"backends": faulty.BACKENDS, "passes": faulty.PASSES}
    lines = [
        f"[treesens.{g}]\n" + "".join(f"{o.name} = faulty:{o.__name__}\n" for o in some) for g, some in groups.items()
    ]
    (info / "entry_points.txt").write_text("\n".join(lines))
    return folder


def treesens(site: Path, folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", "from treesens.cli import main; main()", *words]
    environment = {**os.environ, "PYTHONPATH": str(site)}
    return subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)


def train(path: Path, seed: int, trees: int) -> None:
    """A model whose decision depends on a, b and c; all features have splits."""
    rng = np.random.default_rng(seed)
    table = rng.random((1500, 6))
    label = table[:, 0] + table[:, 1] * table[:, 2] + 0.3 * rng.random(1500) > 0.9
    boosted(table, label, trees, 4, names="abcdef", path=path, seed=seed)


PUBLISHED = ("adult_t200_d5", "adult_t300_d5", "churn_t200_d5", "pimadiabetes_t200_d5", "ijcnn_unrobust")


def publish(path: Path, name: str) -> int:
    """Writes a published model whose six features with most splits are called a to f; returns its number of trees."""
    whole = json.loads((BENCH / "models" / f"{name}.json").read_text())
    learner = whole["learner"]
    trees = learner["gradient_booster"]["model"]["trees"]
    splits = [
        feature
        for tree in trees
        for feature, left in zip(tree["split_indices"], tree["left_children"], strict=True)
        if left >= 0
    ]
    count = int(learner["learner_model_param"]["num_feature"])
    places = np.argsort(-np.bincount(splits, minlength=count), kind="stable").tolist()
    learner["feature_names"] = ["abcdef"[i] if i < 6 else f"x{i}" for i in np.argsort(places).tolist()]
    path.write_text(json.dumps(whole))
    return len(trees)


@pytest.mark.sampled
@pytest.mark.parametrize("case", trials(50))
def test_faults_of_backends_passes_and_models(case: int, site: Path, tmp_path: Path) -> None:
    name = list(FAULTS)[case % 10]
    trees = 300 if name == "program" or case >= 40 else 20 + case
    train(tmp_path / "model.json", case, trees)
    assert_reduced(name, trees, site, tmp_path)


@needs_bench
@pytest.mark.thorough
@pytest.mark.parametrize("model", PUBLISHED)
@pytest.mark.parametrize("name", FAULTS)
def test_faults_in_published_models(name: str, model: str, site: Path, tmp_path: Path) -> None:
    assert_reduced(name, publish(tmp_path / "model.json", model), site, tmp_path)


def assert_reduced(name: str, trees: int, site: Path, tmp_path: Path) -> None:
    """The fault is reduced to two trees and five constraints at most, and the result still has it."""
    fault = FAULTS[name]
    (tmp_path / "q.sens").write_text(QUESTIONS)
    (tmp_path / "program.py").write_text(PROGRAM)
    words = [word.replace("{}.py", str(tmp_path / "program.py")) for word in fault.words]
    ran = treesens(site, tmp_path, "reduce", "q.sens", *words, "--json", "-o", "small", "--time-limit", "300")
    assert ran.returncode == 0, ran.stderr
    record = json.loads(ran.stdout)
    print(name, trees, record["seconds"], record["after"])
    assert (record["reproduced"], record["finished"], record["before"]["trees"]) == (True, True, trees)
    assert record["after"]["trees"] <= 2
    assert record["after"]["constraints"] <= 5
    model = json.loads((tmp_path / "small" / "model.json").read_text())["learner"]
    kept = model["gradient_booster"]["model"]["trees"]
    names = {
        model["feature_names"][t["split_indices"][n]] for t in kept for n, c in enumerate(t["left_children"]) if c >= 0
    }
    assert len(kept) == record["after"]["trees"]
    cut = set(re.findall(r"\b[pq]\.([a-f])\b", (tmp_path / "small" / "q.sens").read_text()))
    assert names | cut >= fault.splits  # a constraint cuts the cells of a feature, too
    assert max((t["left_children"].count(-1) for t in kept), default=0) >= fault.leaves
    if name == "program":
        again = [sys.executable, str(tmp_path / "program.py"), "q.sens"]
        assert subprocess.run(again, cwd=tmp_path / "small", check=False).returncode == 0
    else:
        judged = treesens(site, tmp_path / "small", fault.judge[0], "q.sens", *fault.judge[1:], "--json")
        assert fault.shown(json.loads(judged.stdout)), judged.stdout + judged.stderr
        named = "small example: treesens reduce q.sens --keep disagreement -b native," in judged.stderr
        assert named == (judged.returncode == 6 and fault.judge[0] == "compare")


def test_modules_lose_trees_rows_and_variables(site: Path, tmp_path: Path) -> None:
    train(tmp_path / "model.json", 3, 100)
    (tmp_path / "q.sens").write_text(QUESTIONS)
    (tmp_path / "program.py").write_text(SIR_PROGRAM)
    assert (
        treesens(site, tmp_path, "emit", "q.sens", "easy", "--to", "sir", "-p", "kant", "-o", "m.sir").returncode == 0
    )
    program = f"{sys.executable} -S {tmp_path}/program.py {{}}"
    ran = treesens(site, tmp_path, "reduce", "m.sir", "--while", program, "--json")
    assert ran.returncode == 0, ran.stderr
    record = json.loads(ran.stdout)
    assert record["before"]["rows"] > 3000
    assert record["after"] == {"variables": 1, "ops": 1, "rows": 1}
    small = (tmp_path / "m.reduced" / "m.sir").read_text()
    assert re.search("^op linear", small, re.MULTILINE)
    assert treesens(site, tmp_path, "opt", "m.reduced/m.sir", "-p", "share-copies").returncode == 0
