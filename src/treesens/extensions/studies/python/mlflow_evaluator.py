"""An evaluator for MLflow that audits a model: `mlflow.models.evaluate(.., evaluators=["treesens"], evaluator_config={..})`.

`pip install 'treesens[mlflow]'` installs its requirements. MLflow finds the evaluator by the entry point
`mlflow.model_evaluator`. The configuration contains options of `treesens.audit`, and `purpose` and `date` of its report. The
run receives the numbers of every record as metrics, and the page, its records and a section of a model card as artifacts.
"""

from __future__ import annotations

import re
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import mlflow
from mlflow.models.evaluation.base import EvaluationArtifact, EvaluationResult, ModelEvaluator

import treesens
from treesens.errors import UsageError
from treesens.extensions.studies.report.audit_table import gap_of
from treesens.extensions.studies.report.audit_words import grouped
from treesens.extensions.studies.report.purpose import date_of, read_purpose
from treesens.python.settings import path_of

FOLDER = "treesens"
"""Folder of the artifacts of a run."""

NUMBERS = ("rows_flipped", "max_swing", "max_swing_bound")
"""Fields of a record that become metrics, in addition to its verdict."""

_NOT_IN_A_NAME = re.compile(r"[^\w\-. ]", re.ASCII)


class Text(EvaluationArtifact):  # type: ignore[misc]
    """A text artifact: a page, records, or a section of a card."""

    def _save(self, output_artifact_path: str) -> None:
        Path(output_artifact_path).write_text(self._content, encoding="utf-8")

    def _load_content_from_file(self, local_artifact_path: str) -> str:
        return Path(local_artifact_path).read_text(encoding="utf-8")


class Evaluator(ModelEvaluator):  # type: ignore[misc]
    """Audits the logged model, in its own library."""

    @classmethod
    def can_evaluate(cls, *, model_type: str, evaluator_config: Mapping[str, Any], **kwargs: Any) -> bool:
        """True for the model types that use tables: classifiers and regressors."""
        del evaluator_config, kwargs
        return model_type in ("classifier", "regressor")

    def evaluate(
        self,
        *,
        model_type: str,
        dataset: Any,
        run_id: str,
        evaluator_config: Mapping[str, Any] | None,
        model: Any = None,
        model_id: str | None = None,
        **kwargs: Any,
    ) -> EvaluationResult:
        """Audits the rows of `dataset`, a frame or an array.

        Raises UsageError without a model, for a model of an unsupported library,
        and for an invalid purpose or date.
        """
        del model_type, kwargs
        if model is None:
            raise UsageError(
                "predictions alone cannot be audited: treesens needs the model itself",
                remedy="pass a model to mlflow.models.evaluate as its first argument",
            )
        options = dict(evaluator_config or {})
        heading = {name: options.pop(name) for name in ("purpose", "date") if name in options}
        # An audit takes time, so the parts of the heading are checked first.
        stated = heading.get("purpose")
        read_purpose(None if stated is None else path_of("purpose", stated))
        date_of(heading.get("date"))
        audit = treesens.audit(model.get_raw_model(), dataset.features_data, **options)
        metrics = metrics_of(audit.records)
        mlflow.log_metrics(metrics, run_id=run_id, model_id=model_id)
        with tempfile.TemporaryDirectory() as folder:
            page = audit.report(Path(folder) / "audit.html", **heading)
            audit.card(page.with_name("card.markdown"), date=heading.get("date"))
            files = {path.name: path.read_text(encoding="utf-8") for path in sorted(Path(folder).iterdir())}
            mlflow.log_artifacts(folder, FOLDER, run_id=run_id)
        uri = mlflow.get_run(run_id).info.artifact_uri
        artifacts = {f"{FOLDER}/{name}": Text(f"{uri}/{FOLDER}/{name}", content) for name, content in files.items()}
        return EvaluationResult(metrics=metrics, artifacts=artifacts)


def metrics_of(records: list[dict[str, Any]]) -> dict[str, float]:
    """The number of questions per verdict, and the known numbers per set of features and gap."""
    metrics = {
        f"{FOLDER}/{verdict}": float(sum(record["verdict"] == verdict for record in records))
        for verdict in ("found", "none", "unknown")
    }
    for group in grouped(records):
        for record in group["records"]:
            head = "/".join((FOLDER, _name(group["name"]), _name(gap_of(record))))
            known = {f"{head}/{name}": float(record[name]) for name in NUMBERS if record[name] is not None}
            if record["verdict"] != "unknown":
                known[f"{head}/found"] = float(record["verdict"] == "found")
            for name, value in known.items():
                metrics[_unlike(name, metrics)] = value
    return metrics


def _name(words: str) -> str:
    """The words as part of a name, with only the characters that MLflow permits."""
    return _NOT_IN_A_NAME.sub("_", words)


def _unlike(name: str, known: Mapping[str, float]) -> str:
    """A name that is not used yet: two features may differ only in a character that names cannot contain."""
    free, number = name, 2
    while free in known:
        free, number = f"{name} {number}", number + 1
    return free
