"""Models of several formats in one process: their libraries share its one Java machine."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import treesens as ts
from treesens.errors import ModelError, UsageError
from treesens.extensions.conformance import formats as conformance

DATA = Path(__file__).parents[2] / "data"
FILES = {"h2o": DATA / "h2o" / "boosting_two.zip", "pmml": DATA / "pmml" / "boosting_two.pmml"}
PROGRAM = """
import sys
import numpy as np
import treesens as ts
from tests.extensions.formats.java import in_java
for path in sys.argv[1:]:
    model = in_java(ts.load(path))
    rows = np.zeros((3, len(model.ensemble.features)))
    assert np.allclose(model.margins(rows), model.ensemble.margins_emulated(rows), atol=1e-5), path
"""


@pytest.mark.parametrize("order", [("h2o", "pmml"), ("pmml", "h2o")], ids=" ".join)
def test_libraries_of_two_formats_share_the_machine(order: tuple[str, ...]) -> None:
    """Fixed: JPMML did not find its classes in a machine that H2O started."""
    for package in ("h2o", "jpype", "jpmml_evaluator"):
        pytest.importorskip(package, reason="pip install h2o==3.46.0.6 jpmml-evaluator jpype1, and Java")
    paths = [str(FILES[name]) for name in order]
    done = subprocess.run([sys.executable, "-c", PROGRAM, *paths], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize(
    "path", [*FILES.values(), DATA / "spark" / "tree_value.zip"], ids=lambda path: path.parent.name
)
def test_replay_in_java_is_refused_with_a_remedy(path: Path) -> None:
    if path.parent.name == "spark":
        pytest.importorskip("pyarrow")
    model = ts.load(path)
    name = model.ensemble.feature_names[0]
    text = f'model m from "m"\nquery q: find a, b such that a = b except {name}\n'
    for options in ({"replay": "library"}, {"confirm": "library"}):
        with pytest.raises(UsageError, match="no Python library") as refused:
            ts.check_text(text, models={"m": model}, **options)
        assert 'replay="emulated"' in refused.value.remedy
    with pytest.raises(ModelError, match="runs in Java") as never:
        model.margins(np.zeros((2, model.ensemble.n_features)))
    assert "replay=emulated" in never.value.remedy
    with pytest.raises(ModelError, match="runs in Java"):
        conformance.check(model, rows=20).raise_if_wrong()
    assert str(ts.check_text(text, models={"m": model}, replay="emulated")["q"].verdict) == "found"
