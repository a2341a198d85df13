"""The comparison of two models, in a terminal and in a notebook."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from decimal import ROUND_CEILING
from typing import Any

from rich.text import Text

from treesens.extensions import notebook
from treesens.extensions.studies.diff import CHANGES, ScoreDifference
from treesens.extensions.studies.largest import swing_of_record
from treesens.extensions.studies.report.audit_table import COLOURS, rows_that_flip, varied_of
from treesens.extensions.studies.report.fact_words import largest_words, rounded
from treesens.extensions.studies.report.price_table import show_price
from treesens.extensions.studies.report.study_tables import table_of
from treesens.report.show import out
from treesens.report.tables import Table, value_text
from treesens.report.terminal import say_wrapped


def show_difference(records: Sequence[dict[str, Any]]) -> None:
    """Prints the verdict, the largest differences, the changed rows, and the sensitivities."""
    (record,) = records
    bound = record["bound"]
    words = {
        "equal": "equal: proved for every input of the domain",
        "close": f"no input was found that shows a difference; proved: no score differs by more than {bound}",
        "different": "different"
        + ("" if bound is None else f"; proved: no score differs by more than {rounded(bound, 6, ROUND_CEILING)}"),
        "unknown": "unknown: "
        + ("no difference found; proofs are missing" if record["scores"] else "nothing has an accepted certificate"),
    }
    say_wrapped(words[record["verdict"]])
    table_of(ScoreDifference, record["scores"])
    rows = record["data"]
    if rows is not None:
        listed = ", ".join(map(str, rows["changed_rows"][:10])) + (", …" if rows["changed"] > 10 else "")
        say_wrapped(
            f"{rows['changed']} of {rows['rows']} rows change{f': {listed}' if listed else ''}; "
            f"the largest difference of a score is {rows['largest_difference']:.6g}"
        )
        if rows["rounded"]:
            say_wrapped(words_of_rounding(rows))
    if record["prices"] is not None:
        show_price(record["prices"])
    if record["outcomes"] is not None:
        _show_outcomes(record["outcomes"])
    if record["sensitivities"] is not None:
        _show_sensitivities(record["sensitivities"])


def words_of_rounding(rows: Mapping[str, Any]) -> str:
    """A sentence about rows on which the models are equal, but the results of their libraries differ."""
    return (
        f"on {rows['rounded']} rows the exact sums of both models are equal, and the results of their libraries differ "
        f"only by rounding, by at most {rows['largest_rounding']:.6g}"
    )


def _show_outcomes(records: list[dict[str, Any]]) -> None:
    """Prints a line for every change from one outcome to another."""
    table = Table(box=None, pad_edge=False)
    for name in ("old", "new", "verdict", "rows", "of", "input"):
        table.add_column(name)
    for one in records:
        rows = ["–" if one[name] is None else str(one[name]) for name in ("rows_changed", "rows")]
        shown = ", ".join(f"{k} {value_text(v)}" for k, v in (one["input"] or {}).items()) or one["reason"]
        table.add_row(one["old"], one["new"], Text(one["verdict"], style=COLOURS[one["verdict"]]), *rows, shown)
    table.print_fitted(out(), ("input",))


def _show_sensitivities(records: list[dict[str, Any]]) -> None:
    """Prints a line per set of features and gap: protected features first, and then those that change."""
    several = any("classes" in one for one in records)
    table = Table(box=None, pad_edge=False)
    for name in ("varied", "gap", *(("classes",) if several else ()), "sensitivity", "rows that flip", "largest swing"):
        table.add_column(name)
    for one in sorted(records, key=lambda one: (not one.get("protected"), CHANGES.index(one["change"]))):
        sides = [one["old"], one["new"]]
        rows = " → ".join(map(rows_that_flip, sides))
        swings = " → ".join(largest_words(swing_of_record(side)) for side in sides)
        classes = [" / ".join(map(str, one.get("classes", ())))] if several else []
        table.add_row(varied_of(one), str(one.get("gap", one.get("margin"))), *classes, one["change"], rows, swings)
    table.print_fitted(out(), ("classes", "largest swing", "rows that flip"))


def diff_html(record: Mapping[str, Any]) -> str:
    """The comparison as HTML: the verdict, changed rows, largest differences, and sensitivities, protected features first."""
    bound = (
        ""
        if record["bound"] is None
        else f": no score differs by more than {rounded(record['bound'], 6, ROUND_CEILING)} (proved)"
    )
    parts = [f"<p><b>{notebook.text(record['verdict'])}</b>{bound}</p>"]
    rows = record["data"]
    if rows is not None:
        listed = ", ".join(map(str, rows["changed_rows"][:10])) + (", …" if rows["changed"] > 10 else "")
        parts.append(f"<p>{rows['changed']:,} of {rows['rows']:,} rows change{f': {listed}' if listed else ''}</p>")
        if rows["rounded"]:
            parts.append(f"<p>{words_of_rounding(rows)}</p>")
    head = ["score", "direction", "largest difference", "proved bound"]
    parts.append(
        notebook.table(head, [[s["score"], s["direction"], s["largest"], s["bound"]] for s in record["scores"]])
    )
    if record["outcomes"]:
        lines = [[one["old"], one["new"], one["verdict"], one["rows_changed"]] for one in record["outcomes"]]
        parts.append(
            notebook.table(
                ["old", "new", "verdict", "rows"], [["–" if v is None else v for v in line] for line in lines]
            )
        )
    if record["sensitivities"]:
        lines = []
        for one in sorted(record["sensitivities"], key=lambda one: not one.get("protected")):
            sides = (one["old"], one["new"])
            varied = ", ".join(one["varied"]) + (" (protected)" if one.get("protected") else "")
            flips = " → ".join(map(rows_that_flip, sides))
            lines.append([varied, one.get("gap", one.get("margin")), one["change"], flips])
        marked = [line[2] == "appears" for line in lines]
        parts.append(notebook.table(["features", "gap", "sensitivity", "rows that flip"], lines, marked))
    return "".join(parts)
