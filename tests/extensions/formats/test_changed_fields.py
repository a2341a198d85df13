"""Every field of a saved file, changed: the library, our reader and the checker agree, or the file is refused.

A part of the changes, another one for each format; `python -m tests.extensions.formats.changed_fields` judges all of them.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.extensions.formats.changed_fields import FORMATS, Judges, changed, judge_all
from treesens.errors import ModelError
from treesens.frontends import load

PARTS = 16


@pytest.fixture(scope="module")
def judges() -> Iterator[Judges]:
    """One worker for all formats: a library that runs in Java takes seconds to start."""
    with Judges() as made:
        yield made


# A file of Spark takes its library a second, and Spark half a minute to start: at night alone.
@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=pytest.mark.thorough) if FORMATS[name].few else name for name in FORMATS]
)
def test_library_reader_and_checker_agree(name: str, judges: Judges, tmp_path: Path) -> None:
    if FORMATS[name].lacks:
        pytest.skip(f"install {FORMATS[name].lacks}")
    part = list(FORMATS).index(name) % PARTS
    tally = judge_all(FORMATS[name], tmp_path, judges, (part, PARTS * 8 if FORMATS[name].few else PARTS))
    assert tally.wrong == []
    assert tally.equal > 0
    assert tally.refused > 0


TRACKS = "nodes_missing_value_tracks_true"


@pytest.mark.parametrize(
    ("name", "way", "value", "message"),
    [
        # The runtime takes 1 alone for true.
        ("onnx, four classes", ("graph", "node", 0, "attribute", TRACKS, "ints", 0), "1000", "neither 0 nor 1"),
        # A tree of a forest gives no more probabilities than it says it has classes.
        ("skops, forest", ("/estimators_/1/n_classes_",), 1, "n_classes_"),
        # It predicts nothing for no outputs.
        ("skops, forest", ("/n_outputs_",), 0, "n_outputs_"),
        # The nodes below a root that becomes a leaf are trees of their own to the runtime.
        ("onnx, value", ("graph", "node", 0, "attribute", "nodes_modes", "strings", 0), "TEVBRg==", "another root"),
        # treelite reads what lies behind a field that is too short, and transforms the first of two classes alone.
        ("treelite, two classes", (1, "leaf_value"), [0.0], "leaf_value has no value"),
        ("treelite, forest of two classes", (0, "postprocessor"), "sigmoid", "the first of several classes"),
        # A feature counted from the end is another one here than in the library.
        ("skops, histograms", ("/_predictors/0/0/nodes", "feature_idx", 0), -2, "feature that does not exist"),
    ],
)
def test_values_that_a_library_takes_otherwise_are_refused(
    name: str, way: tuple[str | int, ...], value: Any, message: str, tmp_path: Path
) -> None:
    form = FORMATS[name]
    document = form.make()
    path = tmp_path / f"m.{form.suffix}"
    path.write_bytes(form.write(document))
    model = load(path)
    rows = np.zeros((1, model.ensemble.n_features))
    assert model.margins(rows).tolist() == model.ensemble.margins_emulated(rows).tolist()
    path.write_bytes(form.write(changed(document, (way, "", value))))
    with pytest.raises(ModelError, match=message):
        load(path)
