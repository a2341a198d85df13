"""The first two pages of a report: the finding about every feature in a few words, and one example sentence.

*On rows*: rows of the data flip. *On inputs only*: only other inputs of the domain flip; their rarity is stated. *None*: a
proof shows that no input flips. Signers have to distinguish rows from inputs: one row in ten is not one input in a billion.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from treesens.extensions.measure.share_words import percent
from treesens.extensions.studies.largest import swing_of_record
from treesens.extensions.studies.report.audit_table import gap_of, protected_mark, rows_that_flip, swing_of
from treesens.extensions.studies.report.fact_words import largest_words, rarity
from treesens.report.changes import Names, change_words, equal_words

Record = dict[str, Any]


@dataclass(frozen=True)
class Finding:
    """The finding at one gap: a word, its meaning in numbers (`detail`), and an example sentence. The detail and the example
    may be empty.
    """

    gap: str
    kind: str
    """The CSS class of the cell: `rows`, `inputs`, `none` or `unknown`."""
    word: str
    detail: str
    example: str


@dataclass(frozen=True)
class Line:
    """The line of one feature (or set) on the front page."""

    name: str
    protected: bool
    mark: str
    findings: tuple[Finding, ...]
    swing: str


def lines(groups: Sequence[Mapping[str, Any]], facts: Record) -> list[Line]:
    """A line for every group of records, in the order of the groups."""
    names = Names.of_facts(facts)
    return [
        Line(
            group["name"],
            bool(group["records"][0].get("protected")),
            protected_mark(group["records"][0]),
            tuple(finding(record, names) for record in group["records"]),
            swing_of(group["records"][0]),
        )
        for group in groups
    ]


def finding(record: Record, names: Names) -> Finding:
    """The finding of a record: one word, its numbers and an example sentence."""
    flipped, rows = record["rows_flipped"], max(1, record["rows"])
    example = sentence(record, names)
    if flipped:
        detail = f"{rows_that_flip(record)} of {record['rows']:,} ({percent(flipped / rows)})"
        return Finding(gap_of(record), "rows", "on rows", detail, example)
    if record["verdict"] == "found" and not record["rows_complete"]:
        return Finding(gap_of(record), "inputs", "on inputs", "not all values were tried for rows", example)
    if record["verdict"] == "found":
        return Finding(gap_of(record), "inputs", "on inputs only", _how_rare(record), example)
    if record["verdict"] == "none":
        return Finding(gap_of(record), "none", "none", "proved", "")
    return Finding(gap_of(record), "unknown", "undecided", "more time may decide it", "")


def _how_rare(record: Record) -> str:
    share = record.get("share")
    return rarity(share).removesuffix(" of inputs") if share else ""


def sentence(record: Record, names: Names) -> str:
    """The changes in the pair of a record, and their effect on the score."""
    near = record.get("nearest_row") or {}
    row = near.get("index") if near.get("distance_l2") == 0 else None
    return change_words(record, row, names) if record.get("points") and record.get("scores") else ""


def pair_lines(record: Record, facts: Record, before: Record | None) -> list[str]:
    """The pair of a record in words, and the pair of typical inputs; if a pair was shown before, the line refers to it."""
    lines, names = [], Names.of_facts(facts)
    for words, pair, earlier in (
        ("", record, before),
        ("Among typical inputs: ", record.get("typical") or {}, record),
    ):
        if not pair.get("points"):
            continue
        if earlier is not None and earlier.get("points") == pair["points"]:
            lines.append(f"{words}the same pair as above.")
            continue
        equal = equal_words(pair["points"])
        lines.append(f"{words}input a → input b: {sentence(pair, names)}" + (f"; equal: {equal}" if equal else ""))
    return lines


def directions(record: Record, facts: Record) -> str:
    """The numbers of rows that flip, by their current decision: by outcome, or by class name if the classes are named."""
    down, up = record.get("rows_flipped_down"), record.get("rows_flipped_up")
    names = Names.of_facts(facts)
    if down is None or up is None or not record["rows_flipped"]:
        return ""
    neither = record["rows_flipped"] - down - up
    rest = f", and {neither:,} have neither answer as they are" if neither else ""
    high, low = "the first answer", "the other one"
    if "outcomes" in record:
        high, low = record["outcomes"]
    elif names.classes and len(names.labels) == 2:
        asked = [str(label) for label in record.get("classes", ())]
        chosen = asked[0] if len(asked) == 1 else names.labels[1]
        high, low = names.name_of(chosen), names.name_of(next(one for one in names.labels if one != chosen))
    return f"{down:,} of them change from {high} to {low}, {up:,} from {low} to {high}{rest}"


def proxies(facts: Record) -> list[str]:
    """The features that act as proxies for protected features, with a line for each protected feature."""
    found: dict[str, list[str]] = {}
    for proxy in (facts.get("meaning") or {}).get("proxies", ()):
        swing = largest_words(swing_of_record(proxy))
        told = "determines it in every row of the table" if proxy["told"] == 1 else percent(proxy["told"])
        found.setdefault(proxy["of"], []).append(f"{proxy['feature']} ({told}, largest swing: {swing})")
    notes = (facts.get("meaning") or {}).get("notes", ())
    return [*(f"{of}: {'; '.join(carriers)}" for of, carriers in found.items()), *notes]


def grouped_methods(groups: Sequence[Mapping[str, Any]], method: Any) -> list[tuple[str, str, list[str]]]:
    """Every method with the questions that it answered. (A line for each answer would repeat the methods.)"""
    found: dict[tuple[str, str], list[str]] = {}
    for group in groups:
        for record in group["records"]:
            found.setdefault((record["verdict"], method(record)), []).append(f"{group['name']} ({gap_of(record)})")
    return [(verdict, words, names) for (verdict, words), names in found.items()]
