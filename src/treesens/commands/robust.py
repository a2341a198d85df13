"""`treesens robust MODEL`: how far the rows of a table are from another class."""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence
from fractions import Fraction
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
    quiet_option,
    replays_in_library,
    seed_option,
    split,
    trust_option,
)
from treesens.commands.memory import journal_option, remembered
from treesens.commands.outputs import OutputFile
from treesens.compiler.base.interruption import interruptible
from treesens.compiler.base.numbers import fraction_of
from treesens.errors import UsageError
from treesens.report.terminal import say, say_json
from treesens.solve.afterwards import have_own_fault


@click.command("robust")
@click.argument("model", type=click.Path(path_type=Path))
@click.option("--data", type=click.Path(path_type=Path), required=True, help="CSV or Parquet with the rows.")
@click.option("--label", help="The column that is no input; with it wrong rows do not count as certified.")
@click.option("--rows", "chosen", help="Numbers and ranges of rows, as 0,5,10-19. Default: all.")
@click.option("--norm", type=click.Choice(["linf", "l2", "l1", "l0"]), default="linf", show_default=True)
@click.option(
    "--range",
    "interval",
    nargs=2,
    type=str,
    default=None,
    metavar="LOW HIGH",
    help="The domain of every number. Default: the ranges of the table's columns.",
)
@click.option("--radius", "radii", help="Radii of the curve, as 0.01,0.05. Default: ten up to the greatest distance.")
@click.option("--targeted", is_flag=True, help="The nearest input of every other class, each with its bound.")
@click.option("--out", type=OutputFile(), help="A CSV file for the nearest inputs of another class.")
@click.option("--plot", type=OutputFile(), help="The curve as a picture (.svg, .png, .pdf), by matplotlib.")
@click.option("--format", "form", help="The format of the model, if its content does not show it.")
@click.option("--time-limit", "-t", type=SECONDS, default=10.0, show_default=True, help="Seconds per row.")
@click.option("--replay", type=click.Choice(["auto", "emulated", "library"]), default="auto", show_default=True)
@click.option("--json", "as_json", is_flag=True, help="One JSON object on standard output.")
@seed_option()
@journal_option
@trust_option
@quiet_option
def command(
    model: Path,
    data: Path,
    label: str | None,
    chosen: str | None,
    norm: str,
    interval: tuple[str, str] | None,
    radii: str | None,
    targeted: bool,
    out: Path | None,
    plot: Path | None,
    form: str | None,
    time_limit: float,
    replay: str,
    as_json: bool,
    seed: int,
    journal: Path | None,
    trust_pickle: bool,
) -> int:
    """For every row the nearest input of another class, verified, and a proof that none is nearer; and the certified part of
    the rows over the radius.

    Distances are in widths of the features' domains. Exit codes: 0 every row is closed, 5 some are open, 1 usage, 2 unreadable
    input, 130 interrupted.
    """
    from treesens.compiler.base.files import check_writable
    from treesens.data.tables import read_table
    from treesens.frontends.registry import load
    from treesens.records.answers import SCHEMA_VERSION
    from treesens.report.plots import certified_plot, new_axes, save_plot
    from treesens.report.robust_table import show_curve, show_rows
    from treesens.report.show import tracker
    from treesens.studies.robustness import RobustOptions, robustness

    if out is not None:
        check_writable(out)
    # What is missing for the picture is said before the work.
    axes = None if plot is None else new_axes(plot)
    loaded = load(model, form, trust_pickle=trust_pickle)
    table = read_table(data, label=label)
    rows = None if chosen is None else rows_of(chosen)
    options = RobustOptions(norm, time_limit, seed, interval_of(interval), replays_in_library(replay, loaded))
    options.targeted = targeted
    context = (loaded.ensemble.source.sha256, form, table.sha256, label, options.replay_in_library)
    found = None
    with (
        remembered(journal, time_limit, "robust", *context) as memory,
        interruptible() as interruption,
        tracker("searching", table.rows if rows is None else len(rows)) as advance,
    ):
        stop = interruption.event
        found = robustness(
            loaded, table, rows, options=options, memory=memory, stop=stop, on_result=lambda _: advance()
        )
    if found is None:
        return INTERRUPTED
    for warning in found.warnings:
        say(warning, err=True)
    records = [row.record() for row in found.rows]
    curve = [(radius, found.certified(radius)) for radius in _radii(radii, records)]
    if as_json:
        facts = {"file": str(model), "sha256": loaded.ensemble.source.sha256}
        say_json(
            {
                "schema_version": SCHEMA_VERSION,
                "model": facts,
                "norm": norm,
                "interrupted": found.interrupted,
                "rows": records,
                "certified": [{"radius": radius, "part": part} for radius, part in curve],
            }
        )
    else:
        show_rows(records)
        show_curve(curve, labelled=any(record["correct"] is not None for record in records))
    if out is not None:
        write_beside(str(out), partial(_write_points, out, records))
    if plot is not None:
        labelled = found.labelled
        write_beside(str(plot), lambda: save_plot(certified_plot(found.curve(), axes, labelled=labelled), plot))
    if found.interrupted:
        return INTERRUPTED
    if have_own_fault(records):
        return INTERNAL
    return EXPECTED if all(record["closed"] for record in records) else INCONCLUSIVE


def _is_row(text: str) -> bool:
    return text.isascii() and text.isdecimal() and len(text) < 19


def rows_of(text: str) -> list[int]:
    """The rows that `0,5,10-19` names, in its order. Raises UsageError if a part is neither a number nor a range."""
    rows: list[int] = []
    for part in split(text):
        first, dash, last = part.partition("-")
        if not _is_row(first) or (dash and not _is_row(last)) or (dash and int(last) < int(first)):
            raise UsageError(f"`{part}` is no row and no range of rows", remedy="write --rows 0,5,10-19")
        if dash and int(last) - int(first) > 10_000_000:
            raise UsageError(f"`{part}` is too long a range", remedy="name fewer rows")
        rows += range(int(first), (int(last) if dash else int(first)) + 1)
    if not rows:
        raise UsageError("no row is named", remedy="write --rows 0,5,10-19")
    return rows


def interval_of(given: tuple[str, str] | None) -> tuple[Fraction, Fraction] | None:
    """The two numbers of `--range`, exactly."""
    return None if given is None else (_number(given[0], "--range"), _number(given[1], "--range"))


def _number(text: str, option: str) -> Fraction:
    try:
        return fraction_of(text)
    except (ValueError, ZeroDivisionError):
        raise UsageError(f"{option}: `{text}` is no number", remedy="write a number such as 0.5") from None


def _radii(text: str | None, records: Sequence[dict[str, Any]]) -> list[float]:
    if text is not None:
        return [float(_number(part, "--radius")) for part in split(text)]
    most = max((record["distance"] for record in records if record["distance"] is not None), default=0.0)
    return [most * i / 10 for i in range(11)] if most > 0 else [0.0]


def _write_points(path: Path, records: Sequence[dict[str, Any]]) -> None:
    """One line per input that was found: its row, the class that was asked for if there are several, distance and values."""
    targeted = any("targets" in record for record in records)
    found = [(record["row"], one) for record in records for one in record.get("targets", [record])]
    known = [(row, one) for row, one in found if one["point"] is not None]
    names = list(known[0][1]["point"]) if known else []
    from treesens.compiler.base.files import write_atomically

    with io.StringIO(newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["row", *(["target"] if targeted else []), "distance", *names])
        for row, one in known:
            target = [one["target"]] if targeted else []
            writer.writerow([row, *target, repr(one["distance"]), *(one["point"][name] for name in names)])
        write_atomically(path, file.getvalue())
