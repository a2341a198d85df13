"""`treesens diff` as a command; what it finds is compared with the library in tests/studies/test_difference.py."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tests.studies.grids import two_classes

xgboost = pytest.importorskip("xgboost")


@pytest.fixture(scope="module")
def versions(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """A folder with two versions of a booster and their table, and both models."""
    folder = tmp_path_factory.mktemp("diff")
    frame = two_classes("xgboost").frame
    target = (frame["p"] + frame["q"] > 5).astype(int)
    frame.to_csv(folder / "d.csv", index=False)
    models = []
    for name, trees in (("old", 5), ("new", 7)):
        models.append(xgboost.XGBClassifier(n_estimators=trees, max_depth=3).fit(frame, target))
        models[-1].save_model(folder / f"{name}.json")
    return folder, frame, *models


def test_the_command(versions: Any, treesens: Callable[..., Any]) -> None:
    folder, frame, old, new = versions
    changed = int((old.predict(frame) != new.predict(frame)).sum())
    about = [folder / "old.json", folder / "new.json", "--data", folder / "d.csv", "-t", "20"]
    done = treesens("diff", *about, "--json")
    assert done.code == 0
    assert done.record["data"]["changed"] == changed
    shown = treesens("diff", *about, "--fail-on", "different")
    assert shown.code == 10
    assert f"{changed} of 90 rows change" in shown.out
    same = treesens("diff", folder / "old.json", folder / "old.json", "--fail-on", "different")
    assert same.code == 0
    assert "equal: proved" in same.out
