"""`treesens schema [COMMAND]`: the JSON Schema of a command's records."""

from __future__ import annotations

from typing import Any

import click

from treesens.builtin import STUDIES, has_extensions, service
from treesens.commands.common import EXPECTED
from treesens.compiler.base.diagnostics import did_you_mean
from treesens.errors import UsageError
from treesens.records.schemas import kept_schema, kept_schemas
from treesens.report.terminal import say, say_json


@click.command("schema")
@click.argument("record", required=False)
def command(record: str | None) -> int:
    """Show the JSON Schema (draft 2020-12) of `treesens RECORD --json` output; without RECORD, list the commands with a schema.

    Exit codes: 0, or 1 if the command has no schema.
    """
    if record is None:
        say("\n".join(schema_names()))
    else:
        say_json(schema_of(record))
    return EXPECTED


def schema_names() -> list[str]:
    """The commands whose records have a schema."""
    studies = STUDIES.names() if has_extensions() else []
    return sorted({*kept_schemas(), *studies})


def schema_of(name: str) -> dict[str, Any]:
    """The schema (draft 2020-12) of a command's record. Raises UsageError for a command without a schema."""
    if name not in schema_names():
        raise UsageError(f"the records of `{name}` have no schema", remedy=did_you_mean(name, schema_names()))
    if name in kept_schemas():
        return kept_schema(name)
    schema: dict[str, Any] = service("studies").schema_of(name)
    return schema
