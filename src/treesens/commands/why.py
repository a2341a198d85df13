"""`treesens why MODEL`: which values of a row decide its class, and what would change it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from treesens.commands.common import EXPECTED, INCONCLUSIVE, INTERRUPTED, SECONDS, seed_option, split, trust_option
from treesens.commands.robust import interval_of, rows_of
from treesens.compiler.base.interruption import interruptible
from treesens.report.terminal import say, say_json


@click.command("why")
@click.argument("model", type=click.Path(path_type=Path))
@click.option("--data", type=click.Path(path_type=Path), required=True, help="CSV or Parquet with the row.")
@click.option("--label", help="The column that is no input.")
@click.option("--row", "chosen", required=True, help="The row, or several as 0,5,10-19.")
@click.option("--smallest", is_flag=True, help="As few features as possible, not only none too many.")
@click.option("--without", "barred", help="Features, as a,b, that no reason may use.")
@click.option(
    "--range",
    "interval",
    nargs=2,
    type=str,
    default=None,
    metavar="LOW HIGH",
    help="The domain of every number. Default: the ranges of the table's columns.",
)
@click.option("--format", "form", help="The format of the model, where its content does not say it.")
@click.option("--time-limit", "-t", type=SECONDS, default=10.0, show_default=True, help="Seconds per row.")
@click.option("--json", "as_json", is_flag=True, help="One JSON object on standard output.")
@seed_option()
@trust_option
def command(
    model: Path,
    data: Path,
    label: str | None,
    chosen: str,
    smallest: bool,
    barred: str | None,
    interval: tuple[str, str] | None,
    form: str | None,
    time_limit: float,
    as_json: bool,
    seed: int,
    trust_pickle: bool,
) -> int:
    """A sufficient reason for the class of a row: features whose values decide it whatever the others are, none of which can be
    left out; and features whose change gives another class.

    Exit codes: 0 every row has its reason, 5 some have none yet, 1 usage, 2 unreadable input, 130 interrupted.
    """
    from treesens.data.tables import read_table
    from treesens.frontends.registry import load
    from treesens.report.records import SCHEMA_VERSION
    from treesens.studies.reasons import Reason, reasons
    from treesens.studies.robustness import RobustOptions

    rows = rows_of(chosen)
    loaded = load(model, form, trust_pickle=trust_pickle)
    table = read_table(data, label=label)
    options = RobustOptions(time_limit=time_limit, seed=seed, interval=interval_of(interval))
    found: list[Reason] | None = None
    with interruptible() as interruption:
        found = reasons(
            loaded, table, rows, smallest=smallest, without=split(barred), options=options, stop=interruption.event
        )
    if found is None:
        return INTERRUPTED
    records = [one.record() for one in found]
    if as_json:
        facts = {"file": str(model), "sha256": loaded.ensemble.source.sha256}
        say_json({"schema_version": SCHEMA_VERSION, "model": facts, "rows": records})
    else:
        for record in records:
            say(_in_words(record))
    if len(found) < len(rows):
        return INTERRUPTED
    return EXPECTED if all(record["sufficient"] is not None for record in records) else INCONCLUSIVE


def _in_words(record: dict[str, Any]) -> str:
    """What is known of one row, in sentences."""
    lines = [f"row {record['row']}: class {record['class']}"]
    if record["sufficient"] is None:
        lines.append(f"  no reason: {record['reason']}")
    elif not record["sufficient"]:
        lines.append("  always: no input of the domain has another class")
    else:
        values = ", ".join(f"{name} = {value}" for name, value in record["sufficient"].items())
        which = "no fewer features decide it" if record["smallest"] else "none of them can be left out"
        lines.append(f"  because {values}: whatever the other features are ({which}, proved)")
    if record["contrast"]:
        lines.append(f"  another class by changing {', '.join(record['contrast'])}{_changes(record)}")
    return "\n".join(lines)


def _changes(record: dict[str, Any]) -> str:
    if record["point"] is None:
        return ""
    return ": " + ", ".join(f"{name} = {record['point'][name]}" for name in record["contrast"])
