"""Found by users: columns that a pipeline drops had to be numbers, so a frame with an id of text was refused."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner

import treesens as ts
from treesens.cli import group

pytestmark = pytest.mark.fault


def test_a_pipeline_that_drops_columns_takes_frames_with_text_there(tmp_path: Path) -> None:
    compose = pytest.importorskip("sklearn.compose")
    ensemble = pytest.importorskip("sklearn.ensemble")
    preprocessing = pytest.importorskip("sklearn.preprocessing")
    sklearn = pytest.importorskip("sklearn.pipeline")
    skops = pytest.importorskip("skops.io")
    rng = np.random.default_rng(7)
    frame = pd.DataFrame(
        {"id": [f"C{i:05}" for i in range(200)], "age": rng.integers(18, 80, 200), "debt": rng.random(200)}
    )
    label = (frame["age"] / 80 + frame["debt"] > 1).astype(int)
    columns = compose.ColumnTransformer([("numbers", preprocessing.StandardScaler(), ["age", "debt"])])
    model = sklearn.make_pipeline(columns, ensemble.RandomForestClassifier(5, max_depth=3, random_state=0)).fit(
        frame, label
    )
    answer = ts.sensitivity(model, vary=["debt"], gap=0.05, data=frame)
    assert any(re.search("E405.*`id`", note) for note in answer.notes)
    a, b = (model.predict_proba(pd.DataFrame([answer.points[p]])[list(frame.columns)])[0, 1] for p in "ab")
    assert a >= 0.55 - 1e-9
    assert b <= 0.45 + 1e-9
    skops.dump(model, tmp_path / "m.skops")
    frame.to_csv(tmp_path / "d.csv", index=False)
    file = tmp_path / "q.sens"
    file.write_text(
        'model m from "m.skops"\ndata d from "d.csv"\ndomain from d\nquery q: sensitive m to age gap 0.05\n'
    )
    assert "found" in CliRunner().invoke(group, ["check", str(file)]).stdout
