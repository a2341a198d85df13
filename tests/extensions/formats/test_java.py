"""Models of several formats in one process: their libraries share its one Java machine."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

DATA = Path(__file__).parents[2] / "data"
FILES = {"h2o": DATA / "h2o" / "boosting_two.zip", "pmml": DATA / "pmml" / "boosting_two.pmml"}
PROGRAM = """
import sys
import numpy as np
import treesens as ts
for path in sys.argv[1:]:
    model = ts.load(path)
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
