"""Prints a page as PDF with an installed browser."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import tempfile
from pathlib import Path

from treesens.errors import UsageError

BROWSERS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome", "msedge")
_SECONDS = 120


def browser() -> str:
    """The first installed browser. Raises UsageError if no browser is installed."""
    found = next((path for name in BROWSERS if (path := shutil.which(name))), None)
    if found is None:
        raise UsageError(
            "printing a PDF requires Chromium or Chrome, which is not installed",
            remedy="install chromium, or print the HTML page from any browser",
        )
    return found


def print_pdf(page: Path, target: Path, date: str) -> None:
    """Prints an HTML file, which contains no scripts, without network access. The same page, date (`YYYY-MM-DD`) and browser
    produce the same bytes. Raises UsageError if the browser fails.
    """
    with tempfile.TemporaryDirectory() as folder:
        made = Path(folder) / "page.pdf"
        print_page(page, made, "--no-pdf-header-footer", f"--print-to-pdf={made}")
        from treesens.compiler.base.files import write_atomically

        write_atomically(target, _dated(made.read_bytes(), date))


def print_page(page: Path, made: Path, *options: str) -> None:
    """Runs the browser with options that write the file `made`. Raises UsageError if the browser fails."""
    with tempfile.TemporaryDirectory() as profile:
        command = [
            browser(),
            "--headless",
            "--disable-gpu",
            "--no-first-run",
            "--disable-extensions",
            "--host-resolver-rules=MAP * ~NOTFOUND",
            f"--user-data-dir={profile}",
            *options,
            page.resolve().as_uri(),
        ]
        if hasattr(os, "geteuid") and os.geteuid() == 0:
            command.insert(1, "--no-sandbox")  # Chromium refuses to sandbox itself as root
        try:
            done = subprocess.run(command, capture_output=True, text=True, timeout=_SECONDS, check=False)
            words = done.stderr.strip().splitlines()[-1:] or ["the browser wrote no file"]
        except (OSError, subprocess.TimeoutExpired) as error:
            words = [str(error)]
        if not made.is_file():
            raise UsageError(f"the browser printed nothing: {words[0]}", remedy="print the HTML page from any browser")


def _dated(pdf: bytes, date: str) -> bytes:
    """A PDF whose creation time is noon on `date`, the only time stored in it."""
    noon = date.replace("-", "").encode() + b"120000"
    return re.sub(rb"(/(?:CreationDate|ModDate) \(D:)\d{14}", rb"\g<1>" + noon, pdf)
