"""`treesens init`: first files for a model, to be read, changed and kept beside it."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import click

from treesens.commands.beside import write_beside
from treesens.commands.common import EXPECTED, trust_option
from treesens.commands.outputs import OutputFile
from treesens.compiler.base.files import check_writable, write_atomically
from treesens.errors import OverwriteError
from treesens.frontends.meaning import FILE
from treesens.report.terminal import say

_PATH: click.Path = click.Path(path_type=Path)


@click.command("init")
@click.argument("model", type=_PATH)
@click.argument("data", type=_PATH)
@click.option("--label", help="The label column.")
@click.option("--output", "-o", type=OutputFile(), help="The file of questions. Default: NAME.sens beside the model.")
@click.option("--force", is_flag=True, help="Replace files that are there.")
@click.option("--format", "form", help="The format of the model, if its content does not show it.")
@trust_option
def command(
    model: Path, data: Path, label: str | None, output: Path | None, force: bool, form: str | None, trust_pickle: bool
) -> int:
    """Write a first file of questions about MODEL, with the domains of the table DATA, and a first treesens.toml beside it.

    Both are full of comments: read them, and change them. Files that are there are kept.
    """
    from treesens.data.tables import read_table
    from treesens.extensions.studies.first_files import first_questions, first_toml
    from treesens.frontends.registry import load

    loaded = load(model, form, trust_pickle=trust_pickle)
    table = read_table(data, label=label)
    questions = output or model.with_suffix(".sens")
    toml = model.with_name(FILE)
    made = {questions: first_questions(loaded, table, model, data, questions.parent)}
    if not loaded.meaning and not toml.exists():  # what is there is an input of this run
        made[toml] = first_toml(loaded)
    for path in made:
        if path.exists() and not force:
            raise OverwriteError(
                "the file is there already", place=str(path), remedy="add --force, or name another by -o"
            )
        check_writable(path)
    for path, text in made.items():
        if write_beside(str(path), partial(write_atomically, path, text)):
            say(f"{path}: written; read it, and change it")
    say(f"next: treesens check {questions}")
    return EXPECTED
