"""What needs an extension ends in an error with a remedy if this is the core alone."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.binder.setting import bound
from treesens import builtin
from treesens.compiler.base.diagnostics import DiagnosticsError
from treesens.errors import UsageError
from treesens.solve.options import Options
from treesens.solve.question import answer_question

TEXT = "query q: find a in binary such that margin(a) >= 0"


@pytest.fixture(autouse=True)
def core_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(builtin, "has_extensions", lambda: False)


def test_a_share_is_an_error_at_its_place() -> None:
    with pytest.raises(DiagnosticsError, match=r"E223.*lacks shares[\s\S]*pip install treesens") as failed:
        bound(f"measure p: uniform\n{TEXT}\n share of p", models=("binary",))
    (one,) = failed.value.diagnostics
    assert one.span is not None
    assert one.span.text == "p"


def test_certificates_are_missed_before_any_work(tmp_path: Path) -> None:
    question = bound(TEXT, models=("binary",))["q"]
    with pytest.raises(UsageError, match="lacks certificates"):
        answer_question(question, Options(certificates=tmp_path))
