"""What an audit is about: everything that a reader needs to judge and to repeat it, as one record."""

from __future__ import annotations

import os
import platform
from collections.abc import Mapping
from datetime import UTC, date, datetime
from typing import TYPE_CHECKING, Any

import treesens
from treesens.errors import UsageError
from treesens.report.domain_table import domain_records, rule_records
from treesens.report.facts import package_versions
from treesens.report.records import SCHEMA_VERSION

if TYPE_CHECKING:
    from treesens.studies.audit import Audit


def audit_facts(found: Audit, model: str, data: str, command: str, **more: Any) -> dict[str, Any]:
    """The facts of a finished audit of files (or of what stands for them); `more` goes in as it is."""
    ensemble = found.model.ensemble
    rows = {record["rows"] for record in found.records}
    considered = max(rows, default=found.table.rows)
    return {
        "schema_version": SCHEMA_VERSION,
        "treesens": treesens.__version__,
        "model": {
            "file": model,
            "format": ensemble.source.format,
            "library_version": ensemble.source.version,
            "sha256": ensemble.source.sha256,
            "trees": ensemble.n_trees,
            "leaves": ensemble.n_leaves,
            "features": ensemble.n_features,
            "task": ensemble.task.value,
            "classes": list(ensemble.classes),
            "cutoff": None if ensemble.cutoff is None else float(ensemble.cutoff),
            "options": dict(ensemble.source.options),
            "notes": list(found.model.notes),
        },
        "data": {
            "file": data,
            "sha256": found.table.sha256,
            "rows": found.table.rows,
            "considered": considered,
            "excluded": found.table.rows - considered,
            "label": found.table.label,
        },
        "domain": [] if found.query is None else domain_records(found.query, found.declared),
        "rules": [] if found.query is None else rule_records(found.query),
        "command": command,
        "warnings": list(found.warnings),
        "interrupted": found.interrupted,
        "seconds": round(found.seconds, 3),
        **more,
    }


def date_of(given: str | None, environment: Mapping[str, str] = os.environ) -> str:
    """The date of a report, YYYY-MM-DD: as given, of SOURCE_DATE_EPOCH (reproducible-builds.org), or today's (UTC)."""
    if given is not None:
        try:
            return date.fromisoformat(given).isoformat()
        except ValueError:
            raise UsageError(f"`{given}` is no date", remedy="write YYYY-MM-DD") from None
    epoch = environment.get("SOURCE_DATE_EPOCH")
    if epoch is None:
        return datetime.now(UTC).date().isoformat()
    try:
        return datetime.fromtimestamp(int(epoch), UTC).date().isoformat()
    except (ValueError, OverflowError, OSError):
        raise UsageError(f"SOURCE_DATE_EPOCH is `{epoch}`", remedy="give seconds since 1970") from None


def environment_facts() -> dict[str, str]:
    """Python, system and libraries: what an answer may depend on."""
    return {
        "Python": platform.python_version(),
        "system": f"{platform.system()} {platform.machine()}",
        **package_versions(),
    }


def without_seconds(value: Any) -> Any:
    """A record without what clocks say: two runs of one command give the same."""
    if isinstance(value, dict):
        return {key: without_seconds(item) for key, item in value.items() if key != "seconds"}
    return [without_seconds(item) for item in value] if isinstance(value, list) else value
