"""One question over models of four libraries trained on the same data: backends agree per model, the library confirms."""

from __future__ import annotations

import numpy as np
import pytest

import treesens as ts

QUESTION = """
model m from "m"
feature a: real in [-2, 2]
feature b: real in [-2, 2]
feature c: category {0, 1}
query flip:
  find x, y such that
    x = y except c
    prob(x, 1) >= 0.55
    prob(y, 1) <= 0.45
query never:
  find x, y such that
    x = y except c
    prob(x, 1) >= 0.999
    prob(y, 1) <= 0.001
"""


def models():  # type: ignore[no-untyped-def]
    import lightgbm
    import pandas as pd
    import xgboost
    from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier

    rng = np.random.default_rng(3)
    x = pd.DataFrame({"a": rng.normal(size=300), "b": rng.normal(size=300), "c": rng.integers(0, 2, 300).astype(float)})
    y = (x["a"] + 1.2 * x["c"] + rng.normal(0, 0.5, 300) > 0.6).astype(int)
    return {
        "xgboost": xgboost.XGBClassifier(n_estimators=8, max_depth=3, n_jobs=1).fit(x, y),
        "lightgbm": lightgbm.LGBMClassifier(n_estimators=8, num_leaves=7, n_jobs=1, verbose=-1).fit(x, y),
        "forest": RandomForestClassifier(n_estimators=8, max_depth=3, random_state=0, n_jobs=1).fit(x, y),
        "hist": HistGradientBoostingClassifier(max_iter=8, max_depth=3, random_state=0).fit(x, y),
    }


@pytest.mark.parametrize("backend", ["native", "cpsat", "highs", "z3", "scip", "cbc"])
def test_the_same_question_over_four_libraries(backend: str) -> None:
    for name, model in models().items():
        answers = ts.check_text(QUESTION, models={"m": model}, backend=backend, replay="library", time_limit=60)
        assert str(answers["flip"].verdict) == "found", (name, answers["flip"].reason)
        assert str(answers["flip"].result.witness.replay) == "library"
        assert str(answers["never"].verdict) == "none", (name, answers["never"].reason)
