"""Options of commands that write a report, and the writing of it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import click

from treesens.commands.beside import write_beside
from treesens.commands.outputs import OutputFile
from treesens.compiler.base.files import check_writable, will_write
from treesens.errors import UsageError

Function = TypeVar("Function", bound=Callable[..., Any])
_FILE: click.Path = click.Path(path_type=Path, dir_okay=False)


def report_options(function: Function) -> Function:
    """`report`, `pdf`, `purpose` (paths or None), `force` (a flag) and `date` (a text or None)."""
    options = (
        click.option(
            "--report",
            type=OutputFile(),
            help="Write a self-contained HTML page, and all records beside it: NAME.audit.json.",
        ),
        click.option("--force", is_flag=True, help="Replace NAME.audit.json beside the page, whoever wrote it."),
        click.option("--pdf", type=OutputFile(), help="Print the page to PDF, by Chromium or Chrome."),
        click.option("--purpose", type=_FILE, help="A TOML file with title, owner, purpose, … of the report."),
        click.option("--date", help="The date of the report, YYYY-MM-DD (default: SOURCE_DATE_EPOCH, or today)."),
    )
    for option in reversed(options):
        function = option(function)
    return function


def checked_report(
    report: Path | None, pdf: Path | None, purpose: Path | None, date: str | None, *, force: bool
) -> dict[str, Any]:
    """What heads the report. UsageError for anything that would stop it from being written, before the work is done."""
    from treesens.records.installation import environment_facts
    from treesens.report.audit_page import attachment_of
    from treesens.report.purpose import date_of, read_purpose

    if report is None:
        given = {"--pdf": pdf, "--purpose": purpose, "--date": date}
        lonely = next((name for name, value in given.items() if value is not None), None)
        if lonely is not None:
            raise UsageError(f"{lonely} needs a report", remedy="add --report out.html")
        return {}
    check_writable(report)
    check_writable(attachment_of(report))
    will_write(attachment_of(report), derived=True, force=force)
    if pdf is not None:
        from treesens.report.pdf import browser

        browser()
        check_writable(pdf)
    return {"purpose": read_purpose(purpose), "date": date_of(date), "environment": environment_facts()}


def write_pages(
    report: Path, pdf: Path | None, records: list[dict[str, Any]], facts: dict[str, Any], *, force: bool
) -> None:
    """The page, the records beside it, and the PDF if it is wanted."""
    from treesens.report.audit_page import write_report

    written = write_beside(str(report), lambda: write_report(report, records, facts, force=force))
    if pdf is not None and written:
        from treesens.report.pdf import print_pdf

        write_beside(str(pdf), lambda: print_pdf(report, pdf, facts["date"]))
