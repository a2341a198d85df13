"""The table of what has a certificate is what the program says today."""

from __future__ import annotations

import pytest

from tests.docs.certificate_table import PAGE, differences, page
from tests.trials import THOROUGH


@pytest.mark.long
def test_the_table_of_certificates_is_what_was_asked() -> None:
    pytest.importorskip("xgboost")
    text, remedy = PAGE.read_text("utf-8"), "python -m tests.docs.certificate_table --write"
    assert not differences(text, every=4), remedy
    assert not THOROUGH or page(text) == text, remedy
