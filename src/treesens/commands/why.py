"""`treesens why MODEL`: which values of a row decide its class, and what would change it."""

from __future__ import annotations

import csv
from collections.abc import Sequence
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
@click.option("--row", "chosen", required=True, help="The row, several as 0,5,10-19, or all.")
@click.option("--smallest", is_flag=True, help="As few features as possible, not only none too many.")
@click.option("--all", "most", type=click.IntRange(min=2), metavar="K", help="The K smallest reasons.")
@click.option("--out", type=click.Path(path_type=Path), help="A CSV file with a line per reason.")
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
    most: int | None,
    out: Path | None,
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
    from treesens.compiler.base.files import check_writable
    from treesens.data.tables import read_table
    from treesens.frontends.registry import load
    from treesens.report.records import SCHEMA_VERSION
    from treesens.report.show import tracker
    from treesens.studies.reasons import Reason, reasons
    from treesens.studies.robustness import RobustOptions

    if out is not None:
        check_writable(out)
    loaded = load(model, form, trust_pickle=trust_pickle)
    table = read_table(data, label=label)
    rows = list(range(table.rows)) if chosen == "all" else rows_of(chosen)
    options = RobustOptions(time_limit=time_limit, seed=seed, interval=interval_of(interval))
    found: list[Reason] | None = None
    with interruptible() as interruption, tracker("searching", len(rows)) as advance:
        found = reasons(
            loaded,
            table,
            rows,
            smallest=smallest,
            most=most or 1,
            without=split(barred),
            options=options,
            stop=interruption.event,
            on_result=lambda _: advance(),
        )
    if found is None:
        return INTERRUPTED
    records = [one.record() for one in found]
    if out is not None:
        _write_reasons(out, records)
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
        for other in record.get("reasons", [])[1:]:
            values = ", ".join(f"{name} = {value}" for name, value in other.items())
            lines.append(f"  or because {values}")
        if "reasons" in record:
            lines.append("  (there is no other minimal reason)" if record["complete"] else "  (there may be others)")
    if record["contrast"]:
        lines.append(f"  another class by changing {', '.join(record['contrast'])}{_changes(record)}")
    return "\n".join(lines)


def _changes(record: dict[str, Any]) -> str:
    if record["point"] is None:
        return ""
    return ": " + ", ".join(f"{name} = {record['point'][name]}" for name in record["contrast"])


def _write_reasons(path: Path, records: Sequence[dict[str, Any]]) -> None:
    """One line per reason: the row, its class, the features and their values, and what another class takes."""
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(["row", "class", "size", "features", "values", "contrast"])
        for record in records:
            known = [] if record["sufficient"] is None else [record["sufficient"]]
            for one in record.get("reasons", known):
                contrast = "; ".join(record["contrast"] or ())
                values = "; ".join(map(str, one.values()))
                writer.writerow([record["row"], record["class"], len(one), "; ".join(one), values, contrast])
