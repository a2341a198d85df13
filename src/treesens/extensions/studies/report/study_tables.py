"""Records of studies as tables in a terminal: with the declared columns, or with a column for each field that is a text, a
number or a list of names. This module also prints the additional output of `count`, `robust`, `sets` and `reasons`.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from treesens.compiler.base.files import write_atomically
from treesens.extensions.measure.share_words import percent
from treesens.extensions.studies.columns import classes as classes_of
from treesens.extensions.studies.columns import shown_fields
from treesens.extensions.studies.count import CountRecord
from treesens.extensions.studies.report.fact_words import MEANINGS, who_of
from treesens.extensions.studies.robust import RobustRecord
from treesens.report.show import out
from treesens.report.tables import Table, value_text
from treesens.report.terminal import say_wrapped
from treesens.visible import spreadsheet, visible


def show_records(records: Sequence[dict[str, Any]]) -> None:
    """Prints one line per record. Empty columns and seconds are left out."""
    columns = {
        name: cells
        for name, cells in columns_of(records).items()
        if name != "seconds" and any(cell not in (None, "") for cell in cells)
    }
    table = Table(box=None, pad_edge=False)
    for name in columns:
        table.add_column(name.replace("_", " "))
    for cells in zip(*columns.values(), strict=True):
        table.add_row(*map(_cell, cells))
    table.print_fitted(out())


def columns_of(records: Sequence[dict[str, Any]]) -> dict[str, list[Any]]:
    """The fields that are texts, numbers or lists of names, one list per field; None where a record has no such field."""
    names = dict.fromkeys(name for record in records for name in record)
    found = {name: [record.get(name) for record in records] for name in names}
    plain = {
        name: [", ".join(map(value_text, x)) if isinstance(x, list) else x for x in cells]
        for name, cells in found.items()
    }
    return {name: cells for name, cells in plain.items() if not any(isinstance(x, dict) for x in found[name])}


def _cell(value: Any) -> str:
    if value is None:
        return "–"
    if isinstance(value, bool):
        return "yes" if value else "no"
    return f"{value:.6g}" if isinstance(value, float) else str(value)


def table_of(kind: type[Any], records: Sequence[dict[str, Any]]) -> None:
    """Prints one line per record, with the columns that the fields of `kind` declare."""
    shown = [one for _, one in shown_fields(kind) if one.title is not None]
    units = dict.fromkeys(record["unit"] for record in records if "unit" in record)
    table, titles = Table(box=None, pad_edge=False), []
    for one in shown:
        known = next(iter(units)) if len(units) == 1 else None
        title = str(one.title).format(unit=known) if known else str(one.title).removesuffix(" ({unit})")
        titles.append(title)
        table.add_column(title, justify="right" if one.right else "left")
    for record in records:
        table.add_row(*(one.text(record) for one in shown if one.text is not None))
    table.drop_empty(*(title for title, one in zip(titles, shown, strict=True) if one.hide_if_empty))
    table.print_fitted(out(), [title for title, one in zip(titles, shown, strict=True) if one.spare])


def size_of(record: dict[str, Any]) -> str:
    """The gap or the margin of a record, as text."""
    return f"{record['gap' if 'gap' in record else 'margin']:g}"


def show_shares(records: Sequence[dict[str, Any]]) -> None:
    """Prints a line per question and, below the table, sentences about the affected inputs."""
    if not records:
        return
    table_of(CountRecord, records)
    measure = records[0]["measure"]
    say_wrapped(
        f"Shares are {MEANINGS[measure]}: the inputs for which other values of the varied features alone flip the decision."
    )
    deltas = {r["estimate"]["delta"] for r in records if r["estimate"] is not None}
    if deltas:
        say_wrapped(f"The interval in brackets misses the share with a probability of at most {max(deltas):g}.")
    for record in records:
        _show_concerned(record)


def _show_concerned(record: dict[str, Any]) -> None:
    if not record["who"] and not record["boxes"]:
        return
    say_wrapped(f"\n{', '.join(record['varied'])} at {size_of(record)}: {record['question']}")
    for line in who_of(record):
        say_wrapped(f"  {line}")
    for box in record["boxes"]:
        parts = ", ".join(f"`{name}` {values}" for name, values in box["where"].items())
        say_wrapped(f"  all inputs{f' with {parts}' if parts else ''} are affected: {percent(box['share'])} of all")


def show_rows(records: Sequence[dict[str, Any]]) -> None:
    """Prints one line per row, and below it one line for each target class."""
    lines = []
    for record in records:
        lines.append(record)
        lines += [{**one, "row": "", "class": f"to {one['target']}"} for one in record.get("targets", ())]
    table_of(RobustRecord, lines)


def show_curve(curve: Sequence[tuple[float, float]], *, labelled: bool) -> None:
    """Prints the share of the rows that is proved robust at each radius."""
    table = Table(box=None, pad_edge=False)
    table.add_column("radius", justify="right")
    table.add_column("certified accuracy" if labelled else "certified part of the rows", justify="right")
    for radius, part in curve:
        table.add_row(f"{radius:.6g}", f"{100 * part:.1f} %")
    table.print_fitted(out())


def show_sets(record: dict[str, Any]) -> None:
    """Prints one line per set: its verdict, and a mark for a proof that the set is minimal (or maximal)."""
    table = Table(box=None, pad_edge=False)
    table.add_column("features")
    table.add_column(classes_of(record) or "answer")
    table.add_column("")
    for item in record["flip"]:
        table.add_row(_named(item), "flip", "minimal" if item["minimal"] else "perhaps not minimal")
    for item in record["hold"]:
        table.add_row(_named(item), "never", "maximal" if item["maximal"] else "perhaps not maximal")
    for item in record["open"]:
        table.add_row(_named(item), "unknown", item["reason"])
    table.print_fitted(out())
    if not record["complete"]:
        out().print("not all sets are decided")


def _named(item: dict[str, Any]) -> str:
    return ", ".join(item["features"]) or "(none)"


def show_denials(document: dict[str, Any]) -> None:
    """Prints the reasons of every denial, and the number of denials whose reasons do not suffice."""
    table = Table(box=None, pad_edge=False)
    for name in ("row", "suffice", "reasons"):
        table.add_column(name)
    for record in document["results"]:
        words = list(dict.fromkeys(_words(one) for one in record["reasons"]))
        shown = "; ".join(f"{rank}. {text}" for rank, text in enumerate(words, 1)) or record["reason"]
        table.add_row(str(record["row"]), record["suffice"], shown)
    table.print_fitted(out(), ("reasons",))
    most, many = document["most"], document["denied"]
    say_wrapped(
        f"{'denials with certificates' if many is None else f'{many} denials'}: at most {most} reasons suffice for "
        f"{document['suffice']} (none of them can be left out), do not for {document['do_not_suffice']} (proved)"
        + ("" if many is None else f", open: {document['open']}")
    )


def _words(reason: dict[str, Any]) -> str:
    return reason["phrase"] if reason["code"] is None else f"{reason['phrase']} ({reason['code']})"


def write_csv(path: Path, header: Sequence[str], lines: Iterable[Sequence[Any]]) -> None:
    """Writes a header and a line per row; texts are escaped so that no spreadsheet evaluates them as formulas."""
    with io.StringIO(newline="") as file:
        writer = csv.writer(file)
        for line in (header, *lines):
            writer.writerow([spreadsheet(visible(cell)) if isinstance(cell, str) else cell for cell in line])
        write_atomically(path, file.getvalue())
