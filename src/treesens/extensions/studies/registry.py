"""The studies: built-in studies, and studies of other distributions (entry points of the group `treesens.studies`).

A study is a module that defines `STUDY`, listed in `treesens/builtin.py` or as an entry point, and imported on first use. The
core accesses studies through the functions of this module.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from treesens.builtin import STUDIES
from treesens.extensions.studies.study import Door, Study, declared

if TYPE_CHECKING:
    import click

    from treesens.compiler.base.option_kinds import Kind

CALLS = {"learn_rules": "learn"}
"""Calls whose names differ from the names of their studies."""


def study_of(name: str) -> Study[Any, Any]:
    """The study called `name`. Raises UsageError if the study is unknown or cannot be imported."""
    study: Study[Any, Any] = STUDIES.get(name)
    return study


def command_of(name: str) -> click.Command:
    """The command of a study."""
    from treesens.extensions.studies.commands.study import study_command

    return study_command(study_of(name))


def call_of(name: str) -> Callable[..., Any] | None:
    """The Python call named `name`, or None."""
    study = CALLS.get(name, name)
    if study not in STUDIES.names() or study_of(study).call is None:
        return None
    from treesens.extensions.studies.python.study import study_call

    return study_call(study_of(study))


def schema_of(name: str) -> dict[str, Any]:
    """The JSON Schema (draft 2020-12) of the output of `--json`, made from the classes of its records."""
    from treesens.extensions.studies.assumed import Assumed
    from treesens.extensions.studies.shared_records import ManifestRecord
    from treesens.records.plain import document_schema, schema_of_type

    study = study_of(name)
    schema = document_schema(study.document_type, study.title)
    schema["properties"]["assumed"] = schema_of_type(list[Assumed])
    schema["required"].append("assumed")
    if study.certifies:
        schema["properties"]["manifest"] = schema_of_type(ManifestRecord)
    return schema


def arguments() -> dict[str, tuple[str, Kind]]:
    """The arguments of all calls with their kinds, keyed by flag without `--`."""
    found: dict[str, tuple[str, Kind]] = {}
    for name in STUDIES.names():
        for one in declared(study_of(name).options, Door.PYTHON):
            found.setdefault(one.flag[2:], (one.field, one.option.kind))
    return found
