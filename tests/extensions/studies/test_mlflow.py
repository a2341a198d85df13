"""The evaluator of MLflow, found by its entry point: real runs, whose metrics are recomputed with the library."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from tests.extensions.studies.grids import rows_that_flip, two_classes
from treesens.errors import UsageError

mlflow = pytest.importorskip("mlflow", reason="pip install mlflow-skinny")


@pytest.fixture(autouse=True)
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MLFLOW_ALLOW_FILE_STORE", "true")
    mlflow.set_tracking_uri((tmp_path / "runs").as_uri())


def evaluated(model: Any, data: pd.DataFrame, flavour: Any, **config: Any) -> tuple[Any, Any]:
    """What `evaluate` returns, and the run."""
    with mlflow.start_run() as run:
        # Trees are no types that MLflow trusts by itself.
        how: dict[str, Any] = {"serialization_format": "cloudpickle"} if flavour is mlflow.sklearn else {}
        how["pip_requirements"] = []  # or MLflow loads the model in a process of its own to see what it imports
        uri = flavour.log_model(model, name="model", **how).model_uri
        found = mlflow.models.evaluate(
            uri,
            data,
            targets="label",
            model_type="classifier",
            evaluators=["treesens"],
            evaluator_config={"treesens": config},
        )
    return found, mlflow.get_run(run.info.run_id)


def test_the_run_has_metrics_and_files(tmp_path: Path) -> None:
    trained = two_classes("xgboost")
    data = trained.frame.assign(label=trained.estimator.predict(trained.frame))
    found, run = evaluated(
        trained.estimator,
        data,
        mlflow.xgboost,
        vary=["p", "q"],
        gap=[0.05],
        protected=["p"],
        time_limit=60.0,
        date="2026-01-02",
    )
    assert found.metrics == run.data.metrics
    for name in ("p", "q"):
        flipped = rows_that_flip(trained, name, 0.05)
        assert run.data.metrics[f"treesens/{name}/gap 0.05/rows_flipped"] == flipped
        assert run.data.metrics[f"treesens/{name}/gap 0.05/found"] == float(flipped > 0) or not flipped
    files = {Path(name).name for name in found.artifacts}
    assert files == {"audit.audit.json", "audit.html", "card.markdown"}
    folder = Path(
        mlflow.artifacts.download_artifacts(run_id=run.info.run_id, artifact_path="treesens", dst_path=str(tmp_path))
    )
    records = json.loads((folder / "audit.audit.json").read_text())["results"]
    assert [record["varied"] for record in records] == [["p"], ["q"]]
    artifact = found.artifacts["treesens/card.markdown"]
    assert artifact._load() == artifact.content == (folder / "card.markdown").read_text()
    assert "**p** (protected)" in artifact.content


def test_a_pipeline_is_audited_in_its_own_columns() -> None:
    from sklearn.ensemble import RandomForestClassifier
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    rng = np.random.default_rng(0)
    rows = pd.DataFrame({"age": rng.integers(18, 60, 200).astype(float), "sex": rng.integers(0, 2, 200).astype(float)})
    label = (rows.age + 20 * rows.sex + rng.normal(0, 5, 200) > 45).astype(int)
    model = make_pipeline(StandardScaler(), RandomForestClassifier(5, max_depth=3, random_state=0)).fit(rows, label)
    found, _ = evaluated(model, rows.assign(label=label), mlflow.sklearn, vary=["sex"], gap=[0.1], time_limit=60.0)
    flips = found.metrics["treesens/sex/gap 0.1/rows_flipped"]
    chances = np.array([model.predict_proba(rows.assign(sex=value))[:, 1] for value in (0.0, 1.0)])
    assert flips == ((chances.max(0) >= 0.6) & (chances.min(0) <= 0.4)).sum() > 0


def test_what_cannot_be_audited_is_said() -> None:
    rows = pd.DataFrame({"a": [0.0, 1.0], "label": [0, 1]})
    with pytest.raises(Exception, match="predictions alone cannot be audited") as told, mlflow.start_run():
        mlflow.models.evaluate(
            None,
            rows.assign(said=[0, 1]),
            targets="label",
            predictions="said",
            model_type="classifier",
            evaluators=["treesens"],
        )
    assert isinstance(told.value, UsageError)


def test_an_unknown_option_has_a_remedy() -> None:
    trained = two_classes("xgboost")
    data = trained.frame.assign(label=trained.estimator.predict(trained.frame))
    with pytest.raises(UsageError, match="protcted"):
        evaluated(trained.estimator, data, mlflow.xgboost, protcted=["p"])


def test_arrays_are_audited_as_frames_are_and_the_heading_is_looked_at_first() -> None:
    """With an option that only an audit refuses, the heading is told first."""
    trained = two_classes("xgboost")
    label = trained.estimator.predict(trained.frame)
    with mlflow.start_run():
        uri = mlflow.xgboost.log_model(trained.estimator, name="model", pip_requirements=[]).model_uri

        def asked(**config: Any) -> Any:
            return mlflow.models.evaluate(
                uri,
                trained.frame.to_numpy(),
                targets=label,
                model_type="classifier",
                evaluators=["treesens"],
                evaluator_config={"treesens": config},
            )

        found = asked(vary=["p", "q"], gap=[0.05], time_limit=60.0)
        headings = (
            ("date", "tomorrow", "`tomorrow` is not a date"),
            ("purpose", "absent.toml", "cannot be read"),
            ("purpose", 3, "purpose"),
        )
        for word, value, message in headings:
            with pytest.raises(UsageError, match=message):
                asked(vary=["no such feature"], **{word: value})
    for name in ("p", "q"):
        assert found.metrics[f"treesens/{name}/gap 0.05/rows_flipped"] == rows_that_flip(trained, name, 0.05)
