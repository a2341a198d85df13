"""The table of what has a certificate is what the program says today."""

from __future__ import annotations

import pytest

from tests.docs.certificate_table import PAGE, page


@pytest.mark.long
def test_the_table_of_certificates_is_what_was_asked() -> None:
    pytest.importorskip("xgboost")
    text = PAGE.read_text("utf-8")
    assert page(text) == text, "python -m tests.docs.certificate_table --write"
