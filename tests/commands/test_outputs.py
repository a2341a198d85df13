"""A command never writes over what it reads: every option of every command, and every name of the input."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

import treesens as ts
from tests.command import run_command
from tests.extensions.certify.models import train
from treesens.builtin import STUDIES
from treesens.cli import command_names, group
from treesens.commands.outputs import OutputFile
from treesens.compiler.base.files import one_run, open_regular, will_write, write_atomically
from treesens.errors import MissingPackageError, OverwriteError, UsageError

READ = {
    "codes",
    "data",
    "rows_file",
    "decision",
    "domain",
    "file",
    "files",
    "instances",
    "keep_rows",
    "model",
    "models",
    "new",
    "old",
    "params",
    "letter",
    "paths",
    "purpose",
    "spec",
    "test",
}


def options() -> Iterator[tuple[str, click.Parameter]]:
    """Every parameter of every command that holds a path."""
    context = click.Context(group)
    for name in command_names():
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
        with one_run():
            open_regular(file).close()
            with pytest.raises(OverwriteError):
                known.type.convert(str(tmp_path / name), known, None)
        with one_run():
            known.type.convert(str(tmp_path / name), known, None)
            with pytest.raises(OverwriteError):
                open_regular(file)


@pytest.mark.parametrize(
    ("command", "option"),
    [(n, p.opts[0]) for n, p in options() if isinstance(p.type, OutputFile) and not p.type.dir_okay],
)
def test_what_stops_an_output_is_said_before_the_work(
    command: str, option: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By the type of the option itself, which is parsed before any question runs."""
    known = {(n, p.opts[0]): p for n, p in options()}[command, option]
    assert isinstance(known.type, OutputFile)
    with one_run(), pytest.raises(UsageError, match="cannot be written"):
        known.type.convert(str(tmp_path / "absent" / "x.svg"), known, None)
    wanted = {"--plot": "matplotlib", "--report": "jinja2"}.get(option) if command in STUDIES.names() else None
    assert known.type.needs == wanted
    if wanted is not None:
        monkeypatch.setitem(sys.modules, wanted, None)
        with one_run(), pytest.raises(MissingPackageError, match=f"{wanted}, which is not installed"):
            known.type.convert(str(tmp_path / "x.svg"), known, None)
    assert not list(tmp_path.iterdir())


def test_the_records_of_an_audit_are_there_although_the_page_fails(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    train(4, tmp_path / "m.json")
    (tmp_path / "d.csv").write_text("f0,f1,f2\n0,0,0\n1,0.5,1.5\n")

    def broken(*_: object) -> str:
        raise UsageError("the page cannot be drawn")

    monkeypatch.setattr("treesens.extensions.studies.report.audit_page.page", broken)
    asked = ["audit", str(tmp_path / "m.json"), "--data", str(tmp_path / "d.csv"), "--margin", "9"]
    done = CliRunner().invoke(group, [*asked, "--report", str(tmp_path / "a.html")])
    assert "the page cannot be drawn" in done.output
    assert json.loads((tmp_path / "a.audit.json").read_text())["results"]


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
    for source in (str(model), ts.load(model)):
        audit = ts.audit(source, str(table), margin=9)
        audit.report(tmp_path / "m.html")
        (tmp_path / "link.html").unlink(missing_ok=True)
        (tmp_path / "link.html").symlink_to(model)
        for over in (table, model, tmp_path / "link.html"):
            with pytest.raises((OverwriteError, UsageError)):
                audit.report(over)
        with pytest.raises(OverwriteError):
            audit.report(tmp_path / "new.html", pdf=model)
    assert model.read_bytes() == before
    assert table.read_text().startswith("f0,f1")
    assert not (tmp_path / "new.html").exists()


def test_the_audit_of_a_frame_knows_its_model(tmp_path: Path) -> None:
    """`m.json` is the model, and `m.html` has its records elsewhere; a hard link with another name is the model, too."""
    pd = pytest.importorskip("pandas")
    train(4, tmp_path / "m.json")
    os.link(tmp_path / "m.json", tmp_path / "page.html")
    audit = ts.audit(tmp_path / "m.json", pd.DataFrame({"f0": [0, 1], "f1": [0, 0.5], "f2": [0, 1.5]}), margin=9)
    before = (tmp_path / "m.json").read_bytes()
    audit.report(tmp_path / "m.html")
    with pytest.raises(OverwriteError, match="input of this run"):
        audit.report(tmp_path / "page.html")
    assert (tmp_path / "m.json").read_bytes() == before


def test_a_session_forgets_earlier_runs(tmp_path: Path) -> None:
    """Reads, fails, writes, reads again, and writes over what an earlier call has read."""
    train(4, tmp_path / "m.json")
    table, page = tmp_path / "d.csv", tmp_path / "old.html"
    table.write_text("f0,f1,f2\n0,0,0\n1,0.5,1.5\n")
    page.write_text("f0,f1,f2\n0,0,0\n")
    earlier = ts.audit(tmp_path / "m.json", page, margin=9)
    audit = ts.audit(tmp_path / "m.json", table, margin=9)
    failing = tmp_path / "purpose.toml"
    failing.write_text("no TOML")
    with pytest.raises(UsageError):
        audit.report(table.with_suffix(".html"), purpose=failing)
    with pytest.raises(OverwriteError):
        audit.report(tmp_path / "page.html", pdf=table)
    (tmp_path / "page.html").write_text("f0,f1,f2\n0,0,0\n")
    assert len(ts.audit(tmp_path / "m.json", tmp_path / "page.html", margin=9)) == len(audit)
    with pytest.raises(OverwriteError):
        earlier.report(page)
    audit.report(page)
    assert page.read_text().startswith("<!")


def test_runs_of_threads_do_not_know_each_other(tmp_path: Path) -> None:
    file = tmp_path / "x"
    file.write_text("one")
    with one_run():
        open_regular(file).close()
        with ThreadPoolExecutor(1) as pool:

            def write() -> None:
                with one_run():
                    write_atomically(file, "two")

            pool.submit(write).result()
        with pytest.raises(OverwriteError):
            will_write(file)
    assert file.read_text() == "two"


def test_what_was_written_can_be_read(tmp_path: Path) -> None:
    with one_run():
        write_atomically(tmp_path / "x", "one")
        open_regular(tmp_path / "x").close()
        with pytest.raises(OverwriteError):
            will_write(tmp_path / "x")
    will_write(tmp_path / "x")


FOLDERS = {
    "check": ("check", "q.sens", "--certificate"),
    "sweep": ("sweep", "q.sens", "--certificate"),
    "audit": ("audit", "m.json", "--data", "d.csv", "--certificate"),
    "gap": ("gap", "m.json", "--certificate"),
    "emit": ("emit", "q.sens", "--to", "lp", "--output"),
}


@pytest.mark.parametrize("command", FOLDERS)
@pytest.mark.parametrize("inside", ["d.csv/x", "d.csv/x/y"])
def test_a_folder_that_cannot_be_made_is_a_usage_error(tmp_path: Path, command: str, inside: str) -> None:
    """With the place, before anything is asked; it had been an internal error."""
    train(4, tmp_path / "m.json")
    (tmp_path / "d.csv").write_text("f0,f1,f2\n0,0,0\n1,0.5,1.5\n")
    question = "find a such that margin(a) >= 0"
    (tmp_path / "q.sens").write_text(f'model m from "m.json"\nquery q: {question}\nquery p: {question}\n')
    done = run_command(tmp_path, *FOLDERS[command], inside)
    assert done.returncode == 1, done.stderr
    assert f"error[U001]: {inside}: the folder cannot be created: Not a directory" in done.stderr
    assert (tmp_path / "d.csv").read_text().startswith("f0,f1")
