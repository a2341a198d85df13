"""`treesens learn rules DATA`: what holds in every row of a table, as text of the language."""

from __future__ import annotations

import json
from pathlib import Path

import click

from treesens.commands.beside import write_beside
from treesens.commands.common import EXPECTED, INCONCLUSIVE, Number, Whole, time_limit_option
from treesens.commands.outputs import OutputFile
from treesens.compiler.base.files import write_atomically
from treesens.report.terminal import say


@click.command("learn")
@click.argument("what", type=click.Choice(["rules"]))
@click.argument("data", type=click.Path(path_type=Path))
@click.option("--label", help="The column that is no input; no rule is about it.")
@click.option(
    "--exceptions",
    type=Number(0, 0.5),
    default=0.0,
    show_default=True,
    help="The share of the rows of a rule that may break it.",
)
@click.option("--rows", type=Whole(min=1), default=30, show_default=True, help="The least support, in rows.")
@click.option("--share", type=Number(0, 1), default=0.01, show_default=True, help="The least support, as a share.")
@time_limit_option(600.0, "Seconds for rules; domains come in any case.")
@click.option("--output", "-o", type=OutputFile(), help="A file for the text (or the JSON).")
@click.option("--json", "as_json", is_flag=True, help="One JSON object.")
def command(
    what: str,
    data: Path,
    label: str | None,
    exceptions: float,
    rows: int,
    share: float,
    time_limit: float,
    output: Path | None,
    as_json: bool,
) -> int:
    """Mine `rules` from DATA (CSV or Parquet): domains, one-hot groups, dependencies, implications and orders, each with its
    support and its exceptions. The text is for you to approve: a rule that holds in a table need not hold in the world.

    Exit codes: 0 done, 5 the time was over before some kinds of rules were searched through, 1 usage, 2 unreadable input.
    """
    from treesens.compiler.base.budget import Budget
    from treesens.compiler.base.checkpoints import working_within
    from treesens.data.rule import RuleOptions
    from treesens.data.rules import mine
    from treesens.data.tables import read_table
    from treesens.records.plain import SCHEMA_VERSION
    from treesens.report.rules_text import rules_record, rules_text

    del what
    table = read_table(data, label=label)
    with working_within(Budget.of(time_limit)):
        mined = mine(table, RuleOptions(exceptions, rows, share))
    if as_json:
        record = {"schema_version": SCHEMA_VERSION, "data": str(data), **rules_record(mined)}
        text = json.dumps(record, indent=2, ensure_ascii=False, allow_nan=False) + "\n"
    else:
        text = rules_text(mined)
    if output is None or not write_beside(str(output), lambda: write_atomically(output, text)):
        say(text, nl=False)
    return INCONCLUSIVE if mined.unfinished else EXPECTED
