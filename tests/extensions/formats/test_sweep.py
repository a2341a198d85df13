"""A few random models of every library; `python -m tests.extensions.formats.sweep` reads hundreds."""

from __future__ import annotations

import pytest

from tests.extensions.formats.sweep import judge

for _library in ("xgboost", "lightgbm", "sklearn", "catboost", "treelite", "onnxruntime", "onnx"):
    pytest.importorskip(_library)

_COUNTS = {"xgboost": 22, "lightgbm": 17, "sklearn": 19, "catboost": 30, "treelite": 9, "onnx": 80}


@pytest.mark.parametrize("library", _COUNTS)
def test_random_models_are_equal_or_refused(library: str) -> None:
    tally = judge(library, _COUNTS[library], seed=1)
    assert not tally.wrong, str(tally)
    assert tally.equal > _COUNTS[library] // 4
