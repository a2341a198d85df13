"""The audit in a terminal: a table of features and gaps."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from rich.text import Text

from treesens.extensions.measure.share_words import percent
from treesens.extensions.studies.columns import classes
from treesens.extensions.studies.largest import Status, rows_of_record, swing_of_record
from treesens.extensions.studies.report.fact_words import largest_words, share_of, typical_of
from treesens.extensions.studies.report.price_table import show_prices
from treesens.report.changes import Names, in_names
from treesens.report.show import out
from treesens.report.tables import Table
from treesens.report.terminal import say_wrapped

ROW_FLIPS = (
    "a row flips if, with its other features fixed, one value of the feature from the domain gives one answer and "
    "another value gives the other answer; the row itself may give neither"
)
SWING = "the largest difference of the {} between two inputs of the domain that differ only in the feature"
"""A sentence about the swing of one feature; for a set of features, the inputs differ only in the set."""
PAIR = "; P: the probabilities of class {} for two such inputs"
COLOURS = {"found": "yellow", "none": "green", "unknown": "magenta"}


def gap_of(record: dict[str, Any]) -> str:
    """The gap of a record as text, or the decision that the record is about."""
    if "decision" in record:
        return f"decision {record['decision']}"
    return f"gap {record['gap']:g}" if "gap" in record else f"margin {record['margin']:g}"


def varied_of(record: dict[str, Any]) -> str:
    """The varied features, marked if one of them is protected."""
    return ", ".join(record["varied"]) + protected_mark(record)


def protected_mark(record: dict[str, Any]) -> str:
    """The mark of a protected feature; a feature that is only suggested by its name has another mark."""
    if not record.get("protected"):
        return ""
    return " (protected? suggested)" if record.get("suggested") else " (protected)"


def proxy_words(proxy: dict[str, Any]) -> str:
    """A sentence on a proxy of a protected feature: the share of the feature's entropy that it explains, and its swing."""
    swing = largest_words(swing_of_record(proxy))
    told = f"explains {percent(proxy['told'])} of {proxy['of']} in the table"
    if proxy["told"] == 1:
        told = f"determines {proxy['of']} in every row of the table"
    return f"{proxy['feature']} {told}; largest swing: {swing}"


def classes_of(record: dict[str, Any], names: Names | None = None) -> str:
    """The names of the classes or outcomes of a record, and its cut-off; empty if the record has none."""
    return classes(record, (names or Names()).name_of)


def swing_of(record: dict[str, Any]) -> str:
    """The known facts about the largest swing; a dash if the question is not about a score. Probabilities are those of a pair
    that reaches the value.
    """
    if record.get("max_swing_unit") is None:
        return "–"
    pair = record.get("max_swing_prob")
    reached = "" if pair is None else f" (P {pair[0]:.3g} to {pair[1]:.3g})"
    return largest_words(swing_of_record(record)) + reached


def swing_words(records: Sequence[dict[str, Any]], names: Names) -> str:
    """The definition of the largest swings of records; empty without swings."""
    units = swing_units(records)
    pairs = any("max_swing_prob" in record for record in records) and names.labels
    return (SWING.format(units) + (PAIR.format(names.name_of(names.labels[-1])) if pairs else "")) if units else ""


def swing_units(records: Sequence[dict[str, Any]]) -> str:
    """The units of the largest swings; empty without swings."""
    return " or ".join(dict.fromkeys(one["max_swing_unit"] for one in records if one["max_swing_unit"] is not None))


def rows_that_flip(record: dict[str, Any]) -> str:
    """The number of rows that flip, or the known bounds on this number."""
    return largest_words(rows_of_record(record))


def flips_of_words(record: dict[str, Any]) -> str:
    """A phrase such as `27 of 700 rows flip`, or the known bounds on the number."""
    known = rows_of_record(record)
    if known.status is Status.UNKNOWN:
        return "no row is known to flip; not all combinations of values were tried"
    if known.value == 0:
        return f"none of {record['rows']:,} rows flips"
    return f"{largest_words(known)} of {record['rows']:,} rows {'flips' if known.value == 1 else 'flip'}"


def distance_of(record: dict[str, Any]) -> str:
    """The distance to the nearest row, with the proved bound if the bound may be smaller."""
    near = record.get("nearest_row")
    if not near:
        return "–"
    value, bound = near["distance_l2"], near.get("bound_l2")
    return f"{value:.3g}" if bound is None or value - bound <= 1e-6 * value else f"{value:.3g} (≥ {bound:.3g})"


def shape_of(record: dict[str, Any]) -> str:
    """The direction of the score in the feature, and the verdict on a declared direction."""
    known = record.get("shape")
    if known is None:
        return ""
    if known["declared"] is None:
        return str(known["shape"])
    became = {True: "kept", False: "broken", None: "open"}[known["holds"]]
    return f"{known['shape']} (declared {known['declared']}: {became})"


def priced_on(mending: dict[str, Any]) -> str:
    """A sentence about the rows of the prices."""
    if mending["test"] is not None:
        return f"prices are computed on the rows of {mending['test']}"
    return (
        "prices are computed on every second row of the table, which the repair did not use; if the model was trained "
        "on these rows, its loss and AUC on new rows may differ (--test names held-out rows)"
    )


def show_mending(told: dict[str, Any]) -> None:
    """Prints the cost of repairing the model, a line per set of features."""
    priced = [(", ".join(one["varied"]), one) for one in told["sets"] if one["proved"]]
    if priced:
        say_wrapped(f"cost of repairing the model to a gap of {told['gap']:g} ({priced_on(told)}):")
        show_prices(priced)
    for one in told["sets"]:
        if not one["proved"]:
            say_wrapped(f"the cost of repairing {', '.join(one['varied'])} is not known: {one['reason']}")


def show_audit(records: list[dict[str, Any]], facts: dict[str, Any]) -> None:
    """Prints one line per set and gap."""
    console = out()
    model, data, names = facts["model"], facts["data"], Names.of_facts(facts)
    if (stated := facts.get("meaning") or {}).get("file"):
        say_wrapped(f"facts about the model: {stated['file']} (SHA-256 {stated['sha256']})")
    say_wrapped(
        f"{model['file']}: {model['trees']} trees, {model['leaves']} leaves; {data['file']}: {data['rows']} rows; "
        f"{facts['seconds']:.1f} s"
    )
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="bold")
    between = "outcomes" if any("outcomes" in record for record in records) else "classes"
    for name, justify in (
        ("varied", "left"),
        (between, "left"),
        ("decision" if between == "outcomes" else "gap", "left"),
        ("rows that flip", "right"),
        ("of", "right"),
        ("verdict", "left"),
        ("nearest row", "right"),
        ("distance", "right"),
        ("largest swing", "right"),
        ("share of inputs", "left"),
        ("typical inputs", "left"),
        ("shape", "left"),
    ):
        table.add_column(name, justify=justify)  # type: ignore[arg-type]
    for record in records:
        near = record.get("nearest_row") or {}
        table.add_row(
            varied_of(record),
            classes_of(record, names),
            record["decision"] if "decision" in record else gap_of(record),
            rows_that_flip(record),
            str(record["rows"]),
            Text(record["verdict"], style=COLOURS[record["verdict"]]),
            str(near.get("index", "–")),
            distance_of(record),
            "" if "outcomes" in record else swing_of(record),
            share_of(record),
            typical_of(record),
            shape_of(record),
        )
    table.drop_empty(between, "share of inputs", "typical inputs", "shape")
    if between == "outcomes":
        table.drop_empty("largest swing")
    table.print_fitted(console, ("of", "nearest row", "distance", "largest swing"))
    scored = [record for record in records if "outcomes" not in record]
    for gap, question in dict.fromkeys((gap_of(record), record["question"]) for record in scored):
        say_wrapped(f"{gap}: {in_names(question, names)}")
    say_wrapped(f"rows that flip: {ROW_FLIPS}")
    if words := swing_words(records, names):
        say_wrapped(f"largest swing: {words}")
    for proxy in facts.get("meaning", {}).get("proxies", ()):
        say_wrapped(f"proxy: {proxy_words(proxy)}")
    for note in facts.get("meaning", {}).get("notes", ()):
        say_wrapped(f"note: {note}")
    if facts["interrupted"]:
        console.print("interrupted: some questions were not answered")
