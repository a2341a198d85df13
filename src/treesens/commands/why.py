"""`treesens why MODEL`: which values of a row decide its class, and what would change it."""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

import click

from treesens.commands.beside import write_beside
from treesens.commands.common import (
    EXPECTED,
    INCONCLUSIVE,
    INTERNAL,
    INTERRUPTED,
    SECONDS,
    Whole,
    quiet_option,
    seed_option,
    split,
    trust_option,
)
from treesens.commands.outputs import OutputFile
from treesens.commands.robust import interval_of, rows_of
from treesens.compiler.base.interruption import interruptible
from treesens.report.terminal import say_json, say_wrapped
from treesens.solve.afterwards import have_own_fault


@click.command("why")
@click.argument("model", type=click.Path(path_type=Path))
@click.option("--data", type=click.Path(path_type=Path), required=True, help="CSV or Parquet with the row.")
@click.option("--label", help="The column that is no input.")
@click.option("--row", "chosen", required=True, help="The row, several as 0,5,10-19, or all.")
@click.option("--smallest", is_flag=True, help="As few features as possible, not only none too many.")
@click.option("--all", "most", type=Whole(min=2), metavar="K", help="The K smallest reasons.")
@click.option("--out", type=OutputFile(), help="A CSV file with a line per reason.")
@click.option("--without", "barred", help="Features, as a,b, that no reason may use.")
@click.option(
    "--also",
    "beside",
    metavar="box,radius,recourse,shap",
    help="More for each reason: the box in which the class does not change, the distance to another class by linf, the "
    "cheapest change by l1, TreeSHAP.",
)
@click.option(
    "--plot",
    type=OutputFile(),
    help="A picture: which part of the rows needs a feature (.svg, .png, .pdf).",
)
@click.option(
    "--range",
    "interval",
    nargs=2,
    type=str,
    default=None,
    metavar="LOW HIGH",
    help="The domain of every number. Default: the ranges of the table's columns.",
)
@click.option("--format", "form", help="The format of the model, if its content does not show it.")
@click.option("--time-limit", "-t", type=SECONDS, default=10.0, show_default=True, help="Seconds per row.")
@click.option("--json", "as_json", is_flag=True, help="One JSON object on standard output.")
@seed_option()
@trust_option
@quiet_option
def command(
    model: Path,
    data: Path,
    label: str | None,
    chosen: str,
    smallest: bool,
    most: int | None,
    out: Path | None,
    barred: str | None,
    beside: str | None,
    plot: Path | None,
    interval: tuple[str, str] | None,
    form: str | None,
    time_limit: float,
    as_json: bool,
    seed: int,
    trust_pickle: bool,
) -> int:
    """A sufficient reason for the class of a row: features whose values decide it whatever the others are, none of which can be
    left out; and features whose change gives another class. `--also` puts more beside it.

    Exit codes: 0 every row has its reason, 5 some have none yet, 1 usage, 2 unreadable input, 130 interrupted.
    """
    from treesens.compiler.base.files import check_writable
    from treesens.data.tables import read_table
    from treesens.frontends.registry import load
    from treesens.records.answers import SCHEMA_VERSION
    from treesens.report.plots import new_axes, reasons_plot, save_plot
    from treesens.report.reason_words import reason_words
    from treesens.report.show import tracker
    from treesens.studies.reasons import Reason, ReasonOptions, reasons
    from treesens.studies.robustness import RobustOptions

    if out is not None:
        check_writable(out)
    # What is missing for the picture is said before the work.
    axes = None if plot is None else new_axes(plot)
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
            ReasonOptions(smallest, most or 1, split(barred), split(beside)),
            options=options,
            stop=interruption.event,
            on_result=lambda _: advance(),
        )
    if found is None:
        return INTERRUPTED
    records = [one.record() for one in found]
    if as_json:
        facts = {"file": str(model), "sha256": loaded.ensemble.source.sha256}
        say_json({"schema_version": SCHEMA_VERSION, "model": facts, "rows": records})
    else:
        for record in records:
            say_wrapped(reason_words(record))
    if out is not None:
        write_beside(str(out), partial(_write_reasons, out, records))
    if plot is not None:
        write_beside(str(plot), lambda: save_plot(reasons_plot(records, axes), plot))
    if len(found) < len(rows):
        return INTERRUPTED
    if have_own_fault(records):
        return INTERNAL
    return EXPECTED if all(record["sufficient"] is not None for record in records) else INCONCLUSIVE


def _write_reasons(path: Path, records: Sequence[dict[str, Any]]) -> None:
    """One line per reason: the row, its class, the features and their values, and what another class takes."""
    from treesens.compiler.base.files import write_atomically

    with io.StringIO(newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["row", "class", "size", "features", "values", "contrast"])
        for record in records:
            known = [] if record["sufficient"] is None else [record["sufficient"]]
            for one in record.get("reasons", known):
                contrast = "; ".join(record["contrast"] or ())
                values = "; ".join(map(str, one.values()))
                writer.writerow([record["row"], record["class"], len(one), "; ".join(one), values, contrast])
        write_atomically(path, file.getvalue())
