"""The JSON Schemas of studies, made from the classes of their records."""

from __future__ import annotations

from typing import Any

from treesens.extensions.certify.manifests import ManifestRecord
from treesens.extensions.studies.assumed import Assumed
from treesens.extensions.studies.study import Study
from treesens.records.plain import document_schema, schema_of_type


def study_schema(study: Study[Any, Any]) -> dict[str, Any]:
    """The schema (draft 2020-12) of the record that the command of a study prints."""
    schema = document_schema(study.document_type, study.title)
    schema["properties"]["assumed"] = schema_of_type(list[Assumed])
    schema["required"].append("assumed")
    if study.claims is not None:
        schema["properties"]["manifest"] = schema_of_type(ManifestRecord)
    return schema
