"""An audit as a section of a model card, in Markdown. Two marks enclose the section, so that the next audit can replace it.

Model cards: Mitchell et al., Model Cards for Model Reporting, FAT* 2019; the section belongs to the card's quantitative
analyses and caveats.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from treesens.compiler.base.files import MOST_TEXT_BYTES, read_regular, write_atomically
from treesens.errors import UsageError
from treesens.extensions.studies.report import audit_words, front_page
from treesens.extensions.studies.report.audit_table import ROW_FLIPS, gap_of, swing_words
from treesens.report.changes import Names, in_names
from treesens.visible import visible

BEGIN, END = "<!-- treesens: begin -->", "<!-- treesens: end -->"
"""The lines around the section: HTML comments, which readers of the card do not see."""

_MARKUP = re.compile(r"([\\`*_\[\]<>|#~$])")


def card_section(records: list[dict[str, Any]], facts: dict[str, Any]) -> str:
    """The section, marks included. The section contains no times except the date in `facts`, if any."""
    groups = audit_words.grouped(records, Names.of_facts(facts))
    gaps = list(dict.fromkeys(gap_of(record) for record in records))
    lines = front_page.lines(groups, facts)
    names = Names.of_facts(facts)
    asked = [f"- {_text(gap)}: {_text(in_names(words, names))}" for gap, words in audit_words.questions(records)]
    shown = [
        f"- {_text(line.findings[-1].gap)}: {_text(line.findings[-1].example)}"
        for line in lines
        if line.protected and line.findings and line.findings[-1].example
    ]
    parts = [
        BEGIN,
        "## Sensitivity to single features",
        _text(audit_words.headline(groups, facts)),
        _identity(facts),
        "Are there two inputs of the domain that differ in only one feature (or set), with",
        "\n".join(asked),
        _table(lines, gaps),
        f"*On rows*: the number of rows of the data that flip; {ROW_FLIPS}. *On inputs only*: no row flips, but other "
        "inputs of the domain do. *None*: proved that no input of the domain flips, seen or unseen."
        + (f" Largest swing: {words}." if (words := swing_words(records, Names.of_facts(facts))) else ""),
        *(["What a flip looks like:", "\n".join(shown)] if shown else []),
        "Limits:",
        "\n".join(f"- {_text(line)}" for line in audit_words.limits(records, facts, domain="the domain below")),
        _domain(facts),
        END,
    ]
    return "\n\n".join(parts) + "\n"


def _identity(facts: dict[str, Any]) -> str:
    model, data = facts["model"], facts["data"]
    date = f", {facts['date']}" if facts.get("date") else ""
    of_data = f"SHA-256 `{data['sha256']}`" if data["sha256"] else "a data frame"
    of_model = f"SHA-256 `{model['sha256']}`" if model["sha256"] else "a live object"
    outside = f", of which {data['excluded']:,} lie outside the domain and were left out" if data["excluded"] else ""
    return (
        f"Audited by treesens {facts['treesens']}{date}: {_file(model)} ({model['trees']:,} trees, {of_model}) "
        f"with {_file(data)} ({data['rows']:,} rows, {of_data}{outside})."
        + (" The audit was interrupted: some questions were not answered." if facts["interrupted"] else "")
    )


def _file(of: dict[str, Any]) -> str:
    """The name of a file without its folder, because a card is read on other machines."""
    return _text(str(of["file"]).replace("\\", "/").rsplit("/", 1)[-1])


def _domain(facts: dict[str, Any]) -> str:
    """The domain, which every answer is about, in a folded block."""
    lines = [
        f"- {_text(one['feature'])}: {_values(one)}{' or missing' if one['missing'] else ''}" for one in facts["domain"]
    ]
    lines += [f"- Exactly one of {_text(', '.join(rule))} is 1." for rule in facts["rules"]]
    folded = ["<details><summary>The domain that all answers are about</summary>", "\n".join(lines), "</details>"]
    return "\n\n".join(folded)


def _values(one: dict[str, Any]) -> str:
    """The values of a feature in the domain, as text."""
    if "listed" in one:
        return _text(" · ".join(map(str, one["listed"])))
    of = f"{one['count']:,} values from" if one["kind"] == "values" else f"{one['kind']} from"
    return _text(f"{of} {one['low']} to {one['high']}")


def _table(lines: Sequence[front_page.Line], gaps: Sequence[str]) -> str:
    head = ["feature", *map(_text, gaps), "largest swing"]
    rows = [head, ["---"] * len(head)]
    for line in lines:
        name = f"**{_text(line.name)}**{line.mark}" if line.protected else _text(line.name)
        cells = {finding.gap: _cell(finding) for finding in line.findings}
        rows.append([name, *(cells.get(gap, "–") for gap in gaps), _text(line.swing)])
    return "\n".join("| " + " | ".join(row) + " |" for row in rows)


def _cell(finding: front_page.Finding) -> str:
    if finding.kind == "none":
        return "none (proved)"
    return f"{finding.word}: {_text(finding.detail)}" if finding.detail else finding.word


def _text(words: str) -> str:
    """The words of a model or a table with all Markdown characters escaped."""
    return _MARKUP.sub(r"\\\1", visible(" ".join(words.split())))


def check_card(path: Path) -> None:
    """Raises UsageError for an existing file without a place for the section, because other text is never replaced."""
    _parts_of(path)


def write_card(path: Path, section: str) -> None:
    """Writes the section into a card, between its marks, or into a new file."""
    before, after = _parts_of(path)
    write_atomically(path, before + section + after)


def _parts_of(path: Path) -> tuple[str, str]:
    """The text before and after the section."""
    if not path.exists():
        return "", ""
    try:
        # The card counts as an output of the run, not as an input.
        text = read_regular(path, MOST_TEXT_BYTES, own=True).decode("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"the card cannot be read: {error}", place=str(path), remedy="name a Markdown file") from None
    begin, end = text.find(BEGIN), text.find(END)
    if begin < 0 or end < begin or text.count(BEGIN) != 1 or text.count(END) != 1:
        raise UsageError(
            "the file has no place for the section",
            place=str(path),
            remedy=f"write the lines {BEGIN} and {END} into it, once each, or name a new file",
        )
    return text[:begin], text[end + len(END) :].removeprefix("\n")
