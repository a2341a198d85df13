"""`treesens doctor`: what works here, without importing anything heavy unless asked to solve."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable

import pytest

from tests.commands.conftest import Ran
from treesens.backends.base import BACKENDS
from treesens.commands.doctor import DEFAULT_BACKENDS

Command = Callable[..., Ran]


def test_every_backend_and_format_is_listed(treesens: Command) -> None:
    record = treesens("doctor", "--json").record
    assert {b["name"] for b in record["backends"]} == set(BACKENDS.names())
    assert all(b["available"] or b["reason"] for b in record["backends"])
    assert "xgboost" in {f["name"] for f in record["frontends"]}
    assert record["engine"] is None
    assert record["default_set_works"]


def test_nothing_heavy_is_imported() -> None:
    code = (
        "import sys, json; from treesens.cli import main\n"
        "try: main(['doctor'])\n"
        "except SystemExit: pass\n"
        "heavy = {'xgboost', 'sklearn', 'pandas', 'ortools', 'highspy', 'gurobipy', 'mip', 'z3'} & set(sys.modules)\n"
        "print(json.dumps(sorted(heavy)), file=sys.stderr)"
    )
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert json.loads(ran.stderr.splitlines()[-1]) == []


def test_a_default_backend_that_is_missing_fails(treesens: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    from treesens.backends.solvers.z3 import Z3Backend

    monkeypatch.setattr(Z3Backend, "available", lambda self: "z3 is not installed")
    ran = treesens("doctor")
    assert ran.code == 6
    assert "z3 is not installed" in ran.out


def test_a_format_whose_reader_lacks_its_package_says_so() -> None:
    """In an interpreter that sees neither onnx nor skops, as after a plain installation."""
    code = (
        "import importlib.util as u; real = u.find_spec\n"
        "u.find_spec = lambda name, *a: None if name in ('onnx', 'skops') else real(name, *a)\n"
        "from treesens.cli import main; main(['doctor', '--json'])"
    )
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    reasons = {f["name"]: f["reason"] for f in json.loads(ran.stdout)["frontends"]}
    assert "onnx, which is not installed" in reasons["onnx"]
    assert "skops, which is not installed" in reasons["sklearn"]
    assert reasons["xgboost"] is None


@pytest.mark.slow
def test_the_default_set_solves(treesens: Command) -> None:
    ran = treesens("doctor", "--solve", "--json")
    assert ran.code == 0
    solved = {b["name"]: b["solved"] for b in ran.record["backends"]}
    assert all(solved[name] for name in DEFAULT_BACKENDS)


def test_a_backend_that_answers_wrongly_fails(treesens: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    from treesens.backends.base import RawOutcome, Termination
    from treesens.backends.native.backend import NativeBackend
    from treesens.commands import doctor

    monkeypatch.setattr(doctor.BACKENDS, "names", lambda: ["native"])
    monkeypatch.setattr(doctor, "DEFAULT_BACKENDS", ("native",))
    monkeypatch.setattr(NativeBackend, "solve", lambda *args, **options: RawOutcome(Termination.INFEASIBLE))
    ran = treesens("doctor", "--solve")
    assert ran.code == 6
    assert "FAILS" in ran.out
