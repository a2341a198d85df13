"""The JSON Schemas of all commands: those of studies are made from the classes of their records."""

from __future__ import annotations

from typing import Any

from treesens.compiler.base.diagnostics import did_you_mean
from treesens.errors import UsageError
from treesens.extensions.certify.manifests import ManifestRecord
from treesens.extensions.studies.assumed import Assumed
from treesens.extensions.studies.registry import STUDIES, study_of
from treesens.records.plain import document_schema, schema_of_type
from treesens.records.schemas import kept_schema, kept_schemas


def schema_names() -> list[str]:
    """The commands whose records have a schema."""
    return sorted({*kept_schemas(), *STUDIES})


def schema_of(command: str) -> dict[str, Any]:
    """The schema (draft 2020-12) of the record that a command prints. UsageError for a command without one."""
    if command in STUDIES:
        study = study_of(command)
        schema = document_schema(study.document_type, study.title)
        schema["properties"]["assumed"] = schema_of_type(list[Assumed])
        schema["required"].append("assumed")
        if study.claims is not None:
            schema["properties"]["manifest"] = schema_of_type(ManifestRecord)
        return schema
    if command not in schema_names():
        remedy = did_you_mean(command, schema_names())
        raise UsageError(f"the records of `{command}` have no schema", remedy=remedy)
    return kept_schema(command)
