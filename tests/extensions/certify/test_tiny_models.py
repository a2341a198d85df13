"""Every `none` about a tiny model has a certificate, and no untrue one has: by brute force with leaves from XGBoost."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.extensions.certify.made import make, query_of
from tests.extensions.certify.models import DECLARATIONS, QUESTIONS, file_of
from treesens.extensions.certify.statement import statement_of


@pytest.mark.parametrize("seed", range(2))
def test_certificates_are_made_where_and_only_where_there_is_no_solution(seed: int, tmp_path: Path) -> None:
    made = make(seed, tmp_path, gaps=("0.8", "1.6", "3.5"))
    assert len(made.documents) >= 3
    for name, document in made.documents.items():
        assert not document["about"]["left_out"], name
        assert not made.truth.has_solution(document["statement"]), name
    for name, reason in made.refused.items():
        kind, style, gap = name.split("-")
        text = file_of(tmp_path / f"tiny{seed}.json", QUESTIONS[kind], DECLARATIONS[style], gap, str(float(gap) / 8))
        assert made.truth.has_solution(statement_of(query_of(text, tmp_path)).text), f"{name}: {reason}"
