"""The option `--journal`."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import click

from treesens.commands.outputs import OutputFile
from treesens.report.terminal import say

if TYPE_CHECKING:
    from treesens.records.journal import Journal

journal_option = click.option(
    "--journal",
    type=OutputFile(),
    help="An SQLite file with every answer as it comes; the same command answers from it, and goes on.",
)


@contextmanager
def open_journal(path: Path | None) -> Iterator[Journal | None]:
    """A journal that is open for writing meanwhile; None without a path."""
    if path is None:
        yield None
        return
    from treesens.records.journal import Journal

    with Journal(path, command=" ".join(sys.argv[1:]), tell=warn_of_journal) as journal:
        yield journal


def warn_of_journal(words: str) -> None:
    """Print a message about a journal on standard error."""
    say(words, err=True)
