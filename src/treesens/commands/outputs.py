"""The type of all output options, and the option `--journal`."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import click

from treesens.builtin import service
from treesens.compiler.base.files import check_output, check_writable, make_folder, will_write
from treesens.report.terminal import say

if TYPE_CHECKING:
    from treesens.records.journal import Journal


class OutputFile(click.Path):
    """A file to write, a `folder`, or (`either`) a path of any kind. Raises OverwriteError for an input of the command, or a
    path inside an input (`will_write`). Errors are reported before the work: an unwritable file or folder, a missing package
    that the output `needs`, or a missing extension that writes it (`made_by`). With `either`, the command checks the path.
    """

    name = "output"

    def __init__(
        self, *, folder: bool = False, either: bool = False, needs: str | None = None, made_by: str | None = None
    ) -> None:
        self.needs, self.made_by = needs, made_by
        super().__init__(path_type=Path, file_okay=not folder, dir_okay=folder or either)

    def convert(
        self, value: str | os.PathLike[str], param: click.Parameter | None, ctx: click.Context | None
    ) -> str | bytes | os.PathLike[str]:
        """The path, checked."""
        path = super().convert(value, param, ctx)
        place = Path(os.fsdecode(path))
        if self.made_by is not None:
            service(self.made_by)
        will_write(place)
        if not self.dir_okay:
            check_output(place, self.needs)
        elif not self.file_okay:
            make_folder(place)
            check_writable(place / "any")
        return path


journal_option = click.option(
    "--journal",
    type=OutputFile(),
    help="An SQLite file that stores every answer immediately; the same command resumes from it.",
)


@contextmanager
def open_journal(path: Path | None) -> Iterator[Journal | None]:
    """A journal that is open for writing during the block; None without a path."""
    if path is None:
        yield None
        return
    from treesens.records.journal import Journal

    with Journal(path, command=" ".join(sys.argv[1:]), tell=warn_of_journal) as journal:
        yield journal


def warn_of_journal(words: str) -> None:
    """Prints a message about a journal on standard error."""
    say(words, err=True)
