"""Found by the oracle of studies: names of categories beside `--domain`, calibrated models, gaps called closed."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest

import treesens as ts
from treesens.errors import TreesensError

sklearn_tree = pytest.importorskip("sklearn.tree")
calibration = pytest.importorskip("sklearn.calibration")
pytestmark = pytest.mark.fault


def frame() -> tuple[pd.DataFrame, np.ndarray]:
    rng = np.random.default_rng(0)
    x = pd.DataFrame({"x": rng.integers(0, 4, 80).astype(float), "y": rng.integers(0, 2, 80).astype(float)})
    return x, (x["x"] + x["y"] + rng.integers(0, 2, 80) > 2).to_numpy().astype(int)


@pytest.mark.parametrize("study", ["audit", "gap", "count", "sets"])
def test_a_domain_says_what_the_names_in_a_column_are(study: str, tmp_path: Any) -> None:
    x, y = frame()
    model = sklearn_tree.DecisionTreeClassifier(max_depth=3, random_state=0).fit(x, y)
    named = x.assign(y=np.array(["no", "yes"], dtype=object)[x["y"].astype(int)])
    domain = tmp_path / "d.sens"
    domain.write_text("feature x: integer in [0, 3]\nfeature y: category {no = 0, yes = 1}\n")
    sizes: dict[str, Any] = {} if study == "gap" else {"gap": 0.1}

    def verdicts(data: pd.DataFrame) -> list[Any]:
        found = getattr(ts, study)(model, data, domain=domain, **sizes).records
        fields = ("verdict", "rows_flipped", "largest_gap", "lower", "upper", "complete")
        return [[record.get(field) for field in fields] for record in found]

    assert verdicts(named) == verdicts(x)
    with pytest.raises(TreesensError, match="contains the text `"):
        getattr(ts, study)(model, named, **sizes)


@pytest.mark.parametrize("gap", [0.0, 0.2, 0.49])
def test_a_calibrated_model_that_never_shows_a_probability_is_audited(gap: float) -> None:
    rng = np.random.default_rng(1)
    x = rng.integers(0, 3, (60, 2)).astype(float)
    y = (rng.random(60) < 0.2 + 0.05 * x[:, 0]).astype(int)
    base = sklearn_tree.DecisionTreeClassifier(max_depth=2, random_state=0)
    model = calibration.CalibratedClassifierCV(base, method="isotonic", ensemble=False, cv=2).fit(x, y)
    inputs = np.array([[i, j] for i in range(3) for j in range(3)], float)
    shown = model.predict_proba(inputs)[:, 1].reshape(3, 3)
    table = pd.DataFrame(inputs, columns=["f0", "f1"])
    both = (shown.max(axis=0) >= 0.5 + gap) & (shown.min(axis=0) <= 0.5 - gap)
    record = ts.audit(model, table, vary=["f0"], gap=[gap]).records[0]
    assert record["verdict"] == ("found" if both.any() else "none")
    assert record["rows_flipped"] == 3 * int(both.sum())
    share = ts.count(model, table, vary=["f0"], gap=[gap], measure="rows").records[0]
    assert share["rows_concerned"] == 3 * int(both.sum())


def test_a_gap_whose_bound_is_far_from_its_value_is_not_called_closed() -> None:
    x, y = frame()
    model = sklearn_tree.DecisionTreeClassifier(random_state=0).fit(x, y)
    shares = model.tree_.value  # shares of quarters, and a cut-off between them
    shares[..., 0] = np.round(shares[..., 0] * 4) / 4
    shares[..., 1] = 1 - shares[..., 0]
    shown = model.predict_proba(pd.DataFrame([(i, j) for i in range(4) for j in range(2)], columns=["x", "y"]))[:, 1]
    for threshold in (0.2, 0.35):
        (record,) = ts.gap(model, x, vary=["x"], threshold=threshold, close=1e-6).records
        ways = shown.reshape(4, 2)
        true = np.minimum(ways.max(axis=0) - threshold, threshold - ways.min(axis=0)).max()
        assert record["largest_gap"] == pytest.approx(true)
        assert record["largest_gap_bound"] >= true - 1e-9
        assert not record["closed"] or record["largest_gap_bound"] == pytest.approx(true)
