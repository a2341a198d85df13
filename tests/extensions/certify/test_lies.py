"""A small part of the run of lies (`make lies`): true claims are accepted, and false ones by no checker at hand."""

from __future__ import annotations

from pathlib import Path
from types import ModuleType

import pytest
from treesens.extensions.treesens_verify import boxes

from tests.extensions.certify.lies import ALLOWED, Case, Shapes, by_coq, by_python
from tests.extensions.certify.test_coq_agreement import export, program
from treesens.extensions import treesens_verify as checker

__all__ = ["export", "program"]
LEAST_KINDS = 25


@pytest.fixture(scope="module")
def cases() -> list[Case]:
    return [case for number in range(12) for case in Shapes(number).cases()]


def by_boxes(case: Case) -> bool:
    try:
        boxes.check(case.document, [case.data], **ALLOWED)
    except checker.Rejected:
        return False
    return True


def test_python_accepts_what_is_true_alone(cases: list[Case]) -> None:
    assert len({case.kind for case in cases}) >= LEAST_KINDS
    assert [case.kind for case in cases if by_python(case) != case.true] == []
    assert [case.kind for case in cases if by_boxes(case) != case.true] == []


def test_the_program_from_coq_accepts_what_is_true_alone(
    cases: list[Case], program: Path, export: ModuleType, tmp_path: Path
) -> None:
    proofs = [case for case in cases if case.document["claim"] == "none"]
    said = by_coq(tmp_path, proofs)
    assert [case.kind for case, verdict in zip(proofs, said, strict=True) if bool(verdict) != case.true] == []
    assert sum(verdict is not None for verdict in said) > len(proofs) / 2
