"""Some thousands of mutated certificates; `python -m tests.extensions.certify.mutations` tries a million."""

from __future__ import annotations

from pathlib import Path

from tests.extensions.certify.mutations import run


def test_no_mutant_of_a_false_statement_is_accepted(tmp_path: Path) -> None:
    total, wrong = run(2500, 3, tmp_path)
    assert wrong is None
    assert total["rejected"] > 1000
    assert total["accepted, and true"] > 50
