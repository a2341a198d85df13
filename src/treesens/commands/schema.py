"""`treesens schema [COMMAND]`: the JSON Schema of its records."""

from __future__ import annotations

import click

from treesens.commands.common import EXPECTED
from treesens.report.terminal import say, say_json


@click.command("schema")
@click.argument("record", required=False)
def command(record: str | None) -> int:
    """Show the JSON Schema (draft 2020-12) of what `treesens RECORD --json` prints; without RECORD, the commands that have one.

    Exit codes: 0, or 1 for a command without one.
    """
    from treesens.extensions.studies.schemas import schema_names, schema_of

    if record is None:
        say("\n".join(schema_names()))
    else:
        say_json(schema_of(record))
    return EXPECTED
