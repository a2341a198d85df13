"""The checker that Coq extracts from its proof says of certificates, and of mutants of them, what the one in Python says."""

from __future__ import annotations

import importlib.util
import json
import random
import re
import shutil
import subprocess
import sys
from collections import Counter
from collections.abc import Iterable
from fractions import Fraction
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from tests.extensions.certify.made import make, query_of
from tests.extensions.certify.models import train
from tests.extensions.certify.mutations import mutant
from tests.extensions.certify.test_formats import MODELS
from treesens.extensions.certify.produce import refutation
from treesens.extensions.certify.statement import NoCertificate
from treesens.frontends.registry import load

ROOT = Path(__file__).parents[3]
EXPORT = ROOT / "verify" / "coq" / "integers.py"
MUTANTS = 1200
ALLOWED = {"first_trees": True, "trees_alone": True}

ACCEPTED = "accepted: no inputs have all of this:"
"""The statement that was proved follows, a line a part."""

Case = tuple[dict[str, Any], tuple[bytes, ...]]
"""A certificate, and the contents of model files."""


@pytest.fixture(scope="module")
def program() -> Path:
    """The extracted checker. Tests that run side by side build it once."""
    if not (shutil.which("coqc") and shutil.which("ocamlfind")):
        pytest.skip("no coqc or no ocamlfind (Debian: apt install coq libzarith-ocaml-dev)")
    fcntl = pytest.importorskip("fcntl", reason="coqc is built on systems with file locks of POSIX")
    build = ROOT / "build" / "coq"
    build.mkdir(parents=True, exist_ok=True)
    with (build / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        made = subprocess.run(["make", "-C", ROOT / "verify" / "coq"], capture_output=True, text=True, check=False)
    assert made.returncode == 0, made.stdout + made.stderr
    return build / "treesens-verify-coq"


@pytest.fixture(scope="module")
def export() -> ModuleType:
    spec = importlib.util.spec_from_file_location("integers", EXPORT)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def accepted_in_python(export: ModuleType, case: Case) -> bool:
    try:
        export.verify.check(*case, **ALLOWED)
    except export.verify.Rejected:
        return False
    return True


def written(export: ModuleType, case: Case) -> str | None:
    """The integers of a case; none if the statement cannot be read, or the proof is no list of nodes."""
    document, files = case
    try:
        return " ".join(map(str, export.integers_of(document, files, **ALLOWED)))
    except (export.verify.Rejected, *export.verify.core.MALFORMED):
        return None


def verdicts(program: Path, export: ModuleType, cases: Iterable[Case], folder: Path) -> Counter[str]:
    """How often both say the same; they never say different things."""
    total: Counter[str] = Counter()
    asked: list[tuple[Path, bool]] = []
    for number, case in enumerate(cases):
        integers, python = written(export, case), accepted_in_python(export, case)
        if integers is None:
            assert not python, case
            total["not read by either"] += 1
            continue
        file = folder / str(number)
        file.write_text(integers)
        asked.append((file, python))
    done = subprocess.run([program, *(file for file, _ in asked)], capture_output=True, text=True, check=False)
    assert not done.stderr
    said = [line for line in done.stdout.splitlines() if not line.startswith("  ")]
    for line, (file, python) in zip(said, asked, strict=True):
        assert line == f"{file}: {ACCEPTED if python else 'rejected'}"
        total["accepted" if python else "rejected"] += 1
    return total


def tiny(folder: Path) -> list[Case]:
    """Certificates about tiny models: one point or two, clauses, orders, whole numbers, missing values, logarithms."""
    models = [make(seed, folder, gaps=("0.8", "1.6", "3.5")) for seed in (1, 2)]
    return [(document, (made.data,)) for made in models for document in made.documents.values()]


def of_every_library(folder: Path) -> list[Case]:
    """Certificates about models of every library: categories, several outputs, missing values, float64, averages."""
    cases: list[Case] = []
    for name in MODELS:
        (folder / name).mkdir()
        path, _ = MODELS[name](folder / name)
        ensemble = load(path).ensemble
        score = "margin(a, 1) - margin(b, 1)" if ensemble.n_outputs > 1 else "margin(a) - margin(b)"
        for gap in ("0.9", "2.5", "6"):
            text = f"find a, b in m such that a = b except `{ensemble.feature_names[0]}`; {score} >= {gap}"
            try:
                made = refutation(query_of(f'model m from "{path}"\nquery q: {text}', folder))
            except NoCertificate:
                continue
            cases.append((json.loads(json.dumps(made.document)), made.files))
    return cases


def with_costs(folder: Path) -> list[Case]:
    """Certificates whose rows have costs of cells: likelihoods and distances to a row."""
    model, table = folder / "costs.json", folder / "t.csv"
    train(1, model)
    table.write_text("f0,f1,f2\n0,0,0\n1,0.5,1.5\n0.5,1,2\n1,1,0.5\n0,1.5,1\n")
    known = f'model m from "{model}"\ndata t from "{table}"\n' + "".join(
        f"feature f{f}: real in [0, 2]\n" for f in range(3)
    )
    near = "likelihood(a, t) >= 0.05", "distance(a, row 2 of t, l1) <= 0.3", "distance(a, row 1 of t, l0) <= 1"
    asked = [f"{limit}; margin(a) <= -{gap}" for limit in near for gap in (0.5, 1, 2.5)]
    found = []
    for text in asked:
        try:
            made = refutation(query_of(f"{known}query q: find a in m such that {text}", folder))
        except NoCertificate:
            continue
        found.append((json.loads(json.dumps(made.document)), made.files))
    assert any(row["costs"] for document, _ in found for row in document["statement"]["rows"])
    return found


def of_two_models(folder: Path) -> list[Case]:
    """Certificates about an old model and a new one, whose leaves are whole numbers of different units."""
    train(1, folder / "old.json")
    train(2, folder / "new.json", trees=5, depth=3)
    models = f'model m from "{folder / "old.json"}"\nmodel n from "{folder / "new.json"}"\n'
    asked = ["margin(b) >= 4", "margin(a) >= 3", "margin(b) - margin(a) >= 6", "margin(a) >= 2; margin(b) <= -2"]
    found = []
    for text in asked:
        query = query_of(f"{models}query q: find a in m, b in n such that a = b except f0; {text}", folder)
        try:
            made = refutation(query)
        except NoCertificate:
            continue
        found.append((json.loads(json.dumps(made.document)), made.files))
    assert len(found) > 1
    return found


@pytest.fixture(scope="module")
def cases(tmp_path_factory: pytest.TempPathFactory) -> list[Case]:
    folder = tmp_path_factory.mktemp("models")
    return tiny(folder) + of_every_library(folder) + with_costs(folder) + of_two_models(folder)


def test_all_certificates_of_the_tests_are_accepted(
    program: Path, export: ModuleType, cases: list[Case], tmp_path: Path
) -> None:
    total = verdicts(program, export, cases, tmp_path)
    assert total == {"accepted": len(cases)}
    assert len(cases) > 40


def test_both_say_the_same_of_mutants(program: Path, export: ModuleType, cases: list[Case], tmp_path: Path) -> None:
    dice = random.Random(11)
    chosen = (dice.choice(cases) for _ in range(MUTANTS))
    total = verdicts(program, export, ((mutant(document, dice), files) for document, files in chosen), tmp_path)
    assert total["accepted"] > MUTANTS / 10
    assert total["rejected"] > MUTANTS / 10


def run(*command: object) -> subprocess.CompletedProcess[str]:
    return subprocess.run([*map(str, command)], capture_output=True, text=True, check=False)


def test_from_the_command_line(program: Path, tmp_path: Path) -> None:
    model, certificate, integers = tmp_path / "m.json", tmp_path / "q.cert.xz", tmp_path / "q.integers"
    booster = train(5, model)
    text = "feature f1: integer in [-3, 7]\nquery q: find a in m such that margin(a) >= 9.25; a.f0 > 0.5 or a.f1 = 2"
    query = query_of(f'model m from "{model}"\n{text}', tmp_path)
    certificate.write_bytes(refutation(query).packed())
    integers.write_text(run(sys.executable, "-I", EXPORT, certificate, "--model", model).stdout)
    answer = run(program, integers)
    first, of_model, *lines = answer.stdout.splitlines()
    assert (answer.returncode, first) == (0, f"{integers}: {ACCEPTED}")
    leaves = sum(text.count("leaf=") for text in booster.get_dump())
    assert re.fullmatch(rf"  model 0: 3 trees, {leaves} leaves in units of 1/[0-9]+, base 0", of_model)
    largest, above_half = 2**128 - 2**104, Fraction(2**23 + 1, 2**24)  # of float32
    assert sorted(lines) == sorted([
        "  point 0: an input of model 0",
        f"  feature 0 at point 0 in [-{largest}, {largest}]",
        "  feature 1 at point 0 in [-3, 7] whole",
        f"  feature 2 at point 0 in [-{largest}, {largest}]",
        "  1 * score 0 of point 0 >= 37/4",
        f"  one of: feature 0 at point 0 in [{above_half}, {largest}]; feature 1 at point 0 in [2, 2]",
    ])  # fmt: skip
    integers.write_text(integers.read_text() + "0")
    answer = run(program, integers)
    assert (answer.returncode, answer.stdout) == (1, f"{integers}: rejected\n")
