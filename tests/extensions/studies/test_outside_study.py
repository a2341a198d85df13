"""A study outside the tree is one file and an entry point: the one of the plug-in package, as a command and from Python."""

from __future__ import annotations

import inspect
import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

ENTRY_POINTS = "[treesens.studies]\ndepth = depth_study:STUDY\n"
STUDY = Path(__file__).parents[2] / "plugin_package" / "src" / "treesens_stumps" / "depth.py"
MODEL = Path(__file__).parents[2] / "data" / "golden" / "model.json"


@pytest.fixture
def run(tmp_path: Path) -> Any:
    """Runs statements in a process that has the study installed, and returns their output."""
    shutil.copy(STUDY, tmp_path / "depth_study.py")
    installed = tmp_path / "depth_study-1.0.dist-info"
    installed.mkdir()
    (installed / "METADATA").write_text("Metadata-Version: 2.1\nName: depth-study\nVersion: 1.0\n")
    (installed / "entry_points.txt").write_text(ENTRY_POINTS)

    def running(code: str) -> str:
        command = [sys.executable, "-c", inspect.cleandoc(code)]
        done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=120, check=False)
        assert done.returncode == 0, done.stderr
        return done.stdout

    return running


def test_a_study_with_the_name_of_a_command_is_refused(run: Any, tmp_path: Path) -> None:
    points = tmp_path / "depth_study-1.0.dist-info" / "entry_points.txt"
    points.write_text(ENTRY_POINTS.replace("depth =", "check ="))
    shown = run(
        """
        import contextlib, sys
        from treesens.cli import main
        with contextlib.redirect_stderr(sys.stdout), contextlib.suppress(SystemExit):
            main(["--help"])
        """
    )
    assert "error[U001]: `check` of depth-study has the name of another command" in shown


def command(*words: str) -> str:
    return f"from treesens.cli import main\nmain({list(words)!r})"


def test_the_command_prints_records_and_a_table(run: Any) -> None:
    document = json.loads(run(command("depth", str(MODEL), "--at-least", "1", "--json")))
    assert document["interrupted"] is False
    assert [one["tree"] for one in document["results"]] == [0, 1, 2, 3, 4]
    assert {one["depth"] for one in document["results"]} == {3}
    lines = run(command("depth", str(MODEL))).splitlines()
    assert lines[0].split() == ["tree", "depth"]
    assert lines[1].split() == ["0", "3"]
    assert json.loads(run(command("depth", str(MODEL), "--at-least", "4", "--json")))["results"] == []


def test_help_and_the_list_of_commands_show_it(run: Any) -> None:
    shown = " ".join(run(command("depth", "--help")).split())
    assert "--at-least INTEGER RANGE Trees of this depth and more. [default: 0; 0<=x<=99]" in shown
    assert "Plug-ins:\n  depth  How deep the trees of MODEL are." in run(command("--help"))


def test_python_calls_it_with_its_signature(run: Any) -> None:
    told = run(
        f"""
        import inspect
        import treesens as ts
        print(inspect.signature(ts.depth))
        found = ts.depth({str(MODEL)!r}, at_least=1)
        print(found.columns, len(found))
        try:
            ts.depth({str(MODEL)!r}, at_least=100)
        except ts.errors.UsageError as error:
            print(error)
        """
    )
    assert "(model: 'Model', *, at_least: 'int' = 0) -> 'PicturedResult'" in told
    assert "{'tree': [0, 1, 2, 3, 4], 'depth': [3, 3, 3, 3, 3]} 5" in told
    assert "`at_least` is 100" in told
    assert "from 0 to 99" in told


def test_its_picture_is_that_of_the_command_and_of_python(run: Any, tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    picture = tmp_path / "depth.svg"
    run(command("depth", str(MODEL), "--plot", str(picture)))
    assert "depth" in picture.read_text()
    told = run(
        f"""
        import matplotlib
        matplotlib.use("agg")
        import treesens as ts
        axes = ts.depth({str(MODEL)!r}).plot()
        print([int(bar.get_height()) for bar in axes.patches], axes.get_ylabel())
        """
    )
    assert "[3, 3, 3, 3, 3] depth" in told


def test_its_schema_is_that_of_its_records(run: Any) -> None:
    schema = json.loads(run(command("schema", "depth")))
    assert schema["title"] == "depths of trees: treesens depth --json"
    record = schema["properties"]["results"]["items"]
    assert record == {
        "type": "object",
        "properties": {"tree": {"type": "integer"}, "depth": {"type": "integer"}},
        "required": ["tree", "depth"],
    }
