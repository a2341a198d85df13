"""A command never writes over what it reads: every option of every command, and every name of the input."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

import treesens as ts
from tests.certificates.models import train
from treesens.cli import COMMANDS, group
from treesens.commands.outputs import OutputFile
from treesens.compiler.base.files import new_run, open_regular, will_write, write_atomically
from treesens.errors import OverwriteError

READ = {"data", "domain", "file", "files", "instances", "model", "models", "new", "old", "paths", "purpose", "spec"}


def options() -> Iterator[tuple[str, click.Parameter]]:
    """Every parameter of every command that holds a path."""
    context = click.Context(group)
    for name in COMMANDS:
        command = group.get_command(context, name)
        assert command is not None
        for parameter in command.params:
            if isinstance(parameter.type, click.Path):
                yield name, parameter


def test_every_path_is_an_output_or_a_known_input() -> None:
    unknown = [
        (name, p.name) for name, p in options() if not isinstance(p.type, OutputFile) and (p.name or "") not in READ
    ]
    assert not unknown, "an output is of the type OutputFile"


@pytest.mark.parametrize(
    ("command", "option"),
    [(n, p.opts[0]) for n, p in options() if isinstance(p.type, OutputFile) and p.type.file_okay],
)
def test_an_output_that_was_read_is_refused(command: str, option: str, tmp_path: Path) -> None:
    """By the type of the option itself: the same name, a link, and a hard link."""
    known = {(n, p.opts[0]): p for n, p in options()}[command, option]
    file = tmp_path / "m.json"
    file.write_text("{}")
    (tmp_path / "soft").symlink_to(file)
    os.link(file, tmp_path / "hard")
    for name in ("m.json", "soft", "hard"):
        new_run()
        open_regular(file).close()
        with pytest.raises(OverwriteError):
            known.type.convert(str(tmp_path / name), known, None)
        new_run()
        known.type.convert(str(tmp_path / name), known, None)
        with pytest.raises(OverwriteError):
            open_regular(file)
    new_run()


def test_audit_leaves_the_model_alone(tmp_path: Path) -> None:
    model, table = tmp_path / "loan.json", tmp_path / "d.csv"
    train(4, model)
    before = model.read_bytes()
    table.write_text("f0,f1,f2\n0,0,0\n1,0.5,1.5\n")
    asked = ["audit", str(model), "--data", str(table), "--margin", "9", "--report"]
    done = CliRunner().invoke(group, [*asked, str(tmp_path / "loan.html")])
    assert done.exception is None or isinstance(done.exception, SystemExit), done.output
    assert model.read_bytes() == before
    assert (tmp_path / "loan.audit.json").exists()
    for over in (table, tmp_path / "." / "d.csv"):
        assert isinstance(CliRunner().invoke(group, [*asked, str(over)]).exception, OverwriteError)
    (tmp_path / "mine.audit.json").write_text("[1]")
    assert isinstance(CliRunner().invoke(group, [*asked, str(tmp_path / "mine.html")]).exception, OverwriteError)
    assert (tmp_path / "mine.audit.json").read_text() == "[1]"
    new_run()
    ts.audit(str(model), str(table), margin=9).report(tmp_path / "m.html")
    with pytest.raises(OverwriteError):
        ts.audit(str(model), str(table), margin=9).report(table)
    assert model.read_bytes() == before
    new_run()


def test_what_was_written_can_be_read(tmp_path: Path) -> None:
    new_run()
    write_atomically(tmp_path / "x", "one")
    open_regular(tmp_path / "x").close()
    with pytest.raises(OverwriteError):
        will_write(tmp_path / "x")
    new_run()
