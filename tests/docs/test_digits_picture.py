"""The picture of the gallery: the pair is what the page says, by XGBoost itself and by the table."""

from __future__ import annotations

from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest
import xgboost as xgb
from sklearn.datasets import load_digits
from website.digits import GAP, SIDE, picture, section, turned


@pytest.mark.filterwarnings("ignore:note")
def test_a_few_pixels_turn_an_image_near_the_data(tmp_path: Path) -> None:
    found = turned(tmp_path)
    booster = xgb.Booster(model_file=str(tmp_path / "digits.json"))
    shown = booster.predict(xgb.DMatrix(found.pair, feature_names=booster.feature_names))
    assert shown[0] >= 0.5 + GAP
    assert shown[1] <= 0.5 - GAP
    differ = np.flatnonzero(found.pair[0] != found.pair[1])
    assert set(differ) <= set(found.varied)
    bunch = load_digits()
    rows = bunch.data[np.isin(bunch.target, (3, 8))] / 16
    kept = [i for i in range(SIDE * SIDE) if i not in found.varied]
    apart = np.sqrt(((rows[:, kept] - found.pair[0, kept] / 16) ** 2).sum(axis=1))
    assert found.distance == pytest.approx(float(apart.min()), abs=1e-6)
    drawn = ElementTree.fromstring(picture(found))
    assert len(drawn.findall("{http://www.w3.org/2000/svg}rect")) == 4 * SIDE * SIDE
    assert f"is {found.distance:.2f}" in section(found)
