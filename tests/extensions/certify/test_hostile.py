"""Hostile certificates of every kind: both checkers reject each, with a reason and without an exception."""

from __future__ import annotations

import subprocess
from pathlib import Path
from types import ModuleType

import pytest

from tests.extensions.certify.hostile import Honest, Hostile, corpus, honest_answer, pack
from tests.extensions.certify.test_coq_agreement import export, program
from treesens.extensions import treesens_verify as checker

__all__ = ["export", "program"]
LEAST_KINDS = 60
MOST_BYTES = 1 << 24


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> tuple[Honest, list[Hostile]]:
    return corpus(tmp_path_factory.mktemp("hostile"))


def reason_of(case: Hostile, folder: Path) -> str | None:
    """Why the checker in Python rejects a case; None if it accepts it."""
    path = folder / "case.cert.xz"
    path.write_bytes(case.packed)
    try:
        checker.check(checker.read(path, MOST_BYTES), case.files)
    except (checker.Rejected, *checker.core.MALFORMED) as reason:  # the command says either as `rejected: …`
        return str(reason)
    return None


def test_every_kind_is_rejected_with_a_reason(made: tuple[Honest, list[Hostile]], tmp_path: Path) -> None:
    known, cases = made
    for one in (known, honest_answer(tmp_path)):
        assert reason_of(Hostile("honest", pack(one.document), (one.model,)), tmp_path) is None
    assert len({case.kind for case in cases}) == len(cases) >= LEAST_KINDS
    silent = [case.kind for case in cases if not reason_of(case, tmp_path)]
    assert silent == []


def test_the_checker_from_coq_rejects_every_kind(
    made: tuple[Honest, list[Hostile]], program: Path, export: ModuleType, tmp_path: Path
) -> None:
    """What the converter refuses never reaches it; the rest it rejects itself."""
    known, cases = made
    file = tmp_path / "integers"
    reached = []
    for case in [Hostile("honest", pack(known.document), (known.model,)), *cases]:
        path = tmp_path / "case.cert.xz"
        path.write_bytes(case.packed)
        try:
            certificate = export.verify.read(path, MOST_BYTES)
            export.verify.numbers.require(certificate["claim"] == "none", "it claims that inputs exist")
            file.write_text(" ".join(map(str, export.integers_of(certificate, case.files))))
        except (export.verify.Rejected, *export.verify.core.MALFORMED):
            continue
        done = subprocess.run([program, file], capture_output=True, text=True, check=False)
        reached.append((case.kind, done.stdout.startswith(f"{file}: accepted:")))
    assert reached[0] == ("honest", True)
    assert [kind for kind, accepted in reached[1:] if accepted] == []
    assert len(reached) > 10


@pytest.mark.parametrize("number", ["+1", "0x1", "0b1", "0o1", "01", "1_0", "-0", "1.0", "-"])
def test_a_number_with_two_readings_is_refused(
    number: str, made: tuple[Honest, list[Hostile]], program: Path, export: ModuleType, tmp_path: Path
) -> None:
    known, _ = made
    integers = list(map(str, export.integers_of(known.document, (known.model,))))
    at = integers.index("1" if number in ("+1", "0x1", "0b1", "0o1", "01") else "0")
    file = tmp_path / "integers"
    file.write_text(" ".join([*integers[:at], number, *integers[at + 1 :]]))
    done = subprocess.run([program, file], capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert done.stdout == f"{file}: rejected: `{number}` is no whole number in plain digits\n"
    assert not done.stderr
