"""`treesens fmt FILE…`: formats files in a canonical layout, with comments kept."""

from __future__ import annotations

from pathlib import Path

import click

from treesens.compiler.base.files import write_atomically
from treesens.report.terminal import say


@click.command("fmt")
@click.argument("files", nargs=-1, required=True, type=click.Path(path_type=Path))
@click.option("--check", is_flag=True, help="Only check: exit with 10 if a file would change.")
def command(files: tuple[Path, ...], check: bool) -> int:
    """Format .sens files in place (`-`: from standard input to standard output). A file that does not parse is not changed."""
    from treesens.grammar.parsing.parser import load
    from treesens.grammar.printing.formatter import format_text

    changed = 0
    for path in files:
        text = load(path).text
        formatted = format_text(text, str(path))
        if str(path) == "-" and not check:
            say(formatted, nl=False)
            continue
        if formatted == text:
            continue
        changed += 1
        if not check:
            write_atomically(path, formatted, in_place=True)
        say(f"{'would change' if check else 'formatted'} {path}", err=True)
    return 10 if check and changed else 0
