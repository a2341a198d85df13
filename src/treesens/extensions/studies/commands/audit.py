"""Outputs of `treesens audit`: the table, a page to sign, a file of all records, and a section of a model card."""

from __future__ import annotations

import json
from contextlib import suppress
from pathlib import Path
from typing import Any

from treesens.commands.common import write_output
from treesens.compiler.base.files import check_writable, will_write
from treesens.errors import OverwriteError, UsageError
from treesens.extensions.studies.audit import AuditOptions
from treesens.extensions.studies.commands.study_outputs import Outputs
from treesens.extensions.studies.questions import sets_of
from treesens.extensions.studies.study import Asking, Found, Study
from treesens.report.terminal import say_wrapped


class AuditOutputs(Outputs):
    """The outputs of one run of the audit."""

    def __init__(self, study: Study[Any, Any], asked: Asking[Any]) -> None:
        from treesens.extensions.studies.report.audit_page import attachment_of

        super().__init__(study, asked)
        self.heading = _heading(asked.options)
        if asked.options.report is not None and not asked.options.force:
            _keep_other_records(asked, attachment_of(asked.options.report))

    def show(self, records: list[dict[str, Any]], document: dict[str, Any], found: Found[Any]) -> None:
        """Prints the headline of the report, and a line per set and gap."""
        from treesens.extensions.studies.report.audit_table import show_audit, show_mending
        from treesens.extensions.studies.report.audit_words import grouped, headline
        from treesens.report.changes import Names

        del found
        groups = grouped(records, Names.of_facts(document))
        write_output("the headline", lambda: say_wrapped(headline(groups, document)))
        write_output("the table", lambda: show_audit(records, document))
        if "mending" in document:
            write_output("the prices", lambda: show_mending(document["mending"]))

    def write(self, records: list[dict[str, Any]], document: dict[str, Any], found: Found[Any]) -> None:
        """Writes the page, the records next to it, the PDF and the card, each only on request."""
        from treesens.extensions.studies.report.audit_page import write_report
        from treesens.extensions.studies.report.model_card import card_section, write_card

        del found
        options: AuditOptions = self.asked.options
        report, pdf, card = options.report, options.pdf, options.card
        facts = {**{name: fact for name, fact in document.items() if name != "results"}, **self.heading}
        if card is not None:
            write_output(str(card), lambda: write_card(card, card_section(records, facts)))
        if report is None:
            return
        written = write_output(str(report), lambda: write_report(report, records, facts, force=options.force))
        if pdf is not None and written:
            from treesens.extensions.studies.report.pdf import print_pdf

            write_output(str(pdf), lambda: print_pdf(report, pdf, facts["date"]))


def _keep_other_records(asked: Asking[AuditOptions], place: Path) -> None:
    """Raises OverwriteError if the records at `place` are of other files, or answer questions that this audit does not ask."""
    now = (
        [Path(str(file)).name for file in asked.files[:2]],
        set(map(frozenset, sets_of(asked.model, asked.options.vary))),
    )
    with suppress(OSError, ValueError, LookupError, TypeError):  # other files are never replaced
        older = json.loads(place.read_bytes())
        files = [Path(older[name]["file"]).name for name in ("model", "data")]
        if files != now[0] or not {frozenset(one["varied"]) for one in older["results"]} <= now[1]:
            raise OverwriteError(
                f"the file has the records of another audit: {older['command']}",
                place=str(place),
                remedy="add --force, or name another page",
            )


def _heading(options: AuditOptions) -> dict[str, Any]:
    """The head of the report. Raises UsageError, before the work starts, for anything that would prevent writing the report."""
    from treesens.extensions.studies.report.audit_page import attachment_of
    from treesens.extensions.studies.report.model_card import check_card
    from treesens.extensions.studies.report.purpose import date_of, read_purpose
    from treesens.records.installation import environment_facts

    report, card = options.report, options.card
    if options.require_certificate and (report or card):
        raise UsageError(
            "--require-certificate: a page and a card show rows that flip and nearest rows, which have no certificates",
            remedy="leave out --report and --card, or --require-certificate",
        )
    if card is not None:
        check_card(card)
    if report is None:
        given: dict[str, Path | str | None] = {"--pdf": options.pdf, "--purpose": options.purpose}
        if card is None:
            given["--date"] = options.date
        lonely = next((name for name, value in given.items() if value is not None), None)
        if lonely is not None:
            raise UsageError(f"{lonely} needs a report", remedy="add --report out.html")
        return {} if card is None else {"date": date_of(options.date)}
    check_writable(attachment_of(report))
    will_write(attachment_of(report), derived=True, force=options.force)
    if options.pdf is not None:
        from treesens.extensions.studies.report.pdf import browser

        browser()
    return {"purpose": read_purpose(options.purpose), "date": date_of(options.date), "environment": environment_facts()}
