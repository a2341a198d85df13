"""Letters to denied applicants: one per denial, as text, HTML and PDF, from a template of the user."""

from __future__ import annotations

import html
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from treesens.compiler.base.diagnostics import did_you_mean
from treesens.compiler.base.files import MOST_TEXT_BYTES, check_writable, read_regular, will_write, write_atomically
from treesens.data.tables import Table
from treesens.errors import UsageError
from treesens.extensions.studies.reasons import ReasonOptions
from treesens.extensions.studies.report.purpose import date_of
from treesens.visible import visible

FIELDS = ("date", "reference", "decision", "favourable", "reasons")
_FIELD = re.compile(r"\{(\w+)\}")
_LETTER_FILE = re.compile(r"row-\d+\.(?:txt|html|pdf)")
LETTER = """{date}

Reference: {reference}

Decision: {decision}

The principal reasons for this decision are:

{reasons}
"""
"""The default template. Statements that a law requires, such as a notice of rights, are to be added by the sender."""
_PAGE = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{title}</title>
<style>
body {{ font: 12pt/1.5 Georgia, "Times New Roman", serif; max-width: 38rem; margin: 3rem auto; padding: 0 1rem; }}
p {{ white-space: pre-line; }}
@page {{ size: A4; margin: 25mm; }}
@media print {{ body {{ margin: 0; padding: 0; }} }}
</style>
</head>
<body>
<main>
{body}
</main>
</body>
</html>
"""


class Letters:
    """The letters of one run. The constructor raises UsageError, before the work starts, if no letter can be written."""

    def __init__(self, options: ReasonOptions, table: Table | None) -> None:
        assert options.letters is not None
        self.folder, self.template, self.date = options.letters, _template(options.letter), date_of(options.date)
        self.references = None
        if options.reference is not None:
            columns = () if table is None else tuple(table.columns)
            if table is None or options.reference not in columns:
                remedy = did_you_mean(options.reference, columns)
                raise UsageError(f"--reference: the table has no column `{options.reference}`", remedy=remedy)
            self.references = table.columns[options.reference]
        self.print_pdf = None
        if options.pdf:
            from treesens.extensions.studies.report.pdf import browser, print_pdf

            browser()
            self.print_pdf = print_pdf

    def write(self, records: Sequence[dict[str, Any]], favourable: str) -> Iterator[str]:
        """Writes the letters; yields a sentence about each denial without one, and about older letters in the folder."""
        written: set[Path] = set()
        for record in records:
            if not record["reasons"]:
                yield f"row {record['row']}: no letter, since no reasons are known: {record['reason']}"
                continue
            reference = record["row"] if self.references is None else self.references[record["row"]]
            if reference is None or reference != reference:  # noqa: PLR0124 - NaN
                yield f"row {record['row']}: no letter, since its reference is missing"
                continue
            text = self.text(record, favourable)
            path = self.folder / f"row-{record['row']}.txt"
            for target in (path, path.with_suffix(".html"), *([path.with_suffix(".pdf")] if self.print_pdf else [])):
                check_writable(target)
                will_write(target)
                written.add(target)
            write_atomically(path, text)
            write_atomically(path.with_suffix(".html"), page(text, f"Row {record['row']}"))
            if self.print_pdf is not None:
                self.print_pdf(path.with_suffix(".html"), path.with_suffix(".pdf"), self.date)
        older = sorted(p.name for p in self.folder.iterdir() if _LETTER_FILE.fullmatch(p.name) and p not in written)
        if older:
            yield (
                f"{self.folder}: {len(older)} letter file{'s' if len(older) > 1 else ''} of an earlier run, e.g. {older[0]}, "
                "kept; write the letters of each run to an empty folder, or delete the old ones"
            )

    def text(self, record: Mapping[str, Any], favourable: str) -> str:
        """The letter about a denial."""
        words = dict.fromkeys(
            one["phrase"] if one["code"] is None else f"{one['phrase']} ({one['code']})" for one in record["reasons"]
        )
        reference = record["row"] if self.references is None else self.references[record["row"]]
        if isinstance(reference, float) and reference.is_integer():
            reference = int(reference)
        values = {
            "date": self.date,
            "reference": reference,
            "decision": record.get("decision_name", record["decision"]),
            "favourable": favourable,
            "reasons": "\n".join(f"{rank}. {text}" for rank, text in enumerate(words, 1)),
        }
        return _FIELD.sub(lambda field: visible(str(values[field[1]]), lines=True), self.template)


def _template(path: Path | None) -> str:
    """The text of a template. Raises UsageError for unknown fields, and without the field `reasons`."""
    if path is None:
        return LETTER
    try:
        text = read_regular(path, MOST_TEXT_BYTES).decode("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"the file cannot be read: {error}", place=str(path), remedy="name a text file") from None
    named = _FIELD.findall(text)
    for name in named:
        if name not in FIELDS:
            raise UsageError(f"unknown field `{{{name}}}`", place=str(path), remedy=did_you_mean(name, FIELDS))
    if "reasons" not in named:
        raise UsageError("the letter has no reasons", place=str(path), remedy="write {reasons} on a line of its own")
    return text


def page(text: str, title: str) -> str:
    """A letter as HTML: paragraphs are separated by empty lines, and numbered lines become a list."""
    parts = []
    for block in re.split(r"\n\s*\n", text.strip()):
        lines = [html.escape(line) for line in block.splitlines()]
        # A browser numbers the items of a list from 1.
        if all(line.startswith(f"{number}. ") for number, line in enumerate(lines, 1)):
            items = "".join(f"<li>{line.partition(' ')[2]}</li>" for line in lines)
            parts.append(f"<ol>{items}</ol>")
        else:
            parts.append("<p>" + "\n".join(lines) + "</p>")
    return _PAGE.format(title=html.escape(title), body="\n".join(parts))
