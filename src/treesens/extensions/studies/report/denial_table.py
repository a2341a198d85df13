"""Principal reasons in a terminal: a line per denial."""

from __future__ import annotations

from typing import Any

from treesens.report.show import out
from treesens.report.tables import Table
from treesens.report.terminal import say_wrapped


def show_denials(document: dict[str, Any]) -> None:
    """The reasons of every denial, and how often they do not suffice."""
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
