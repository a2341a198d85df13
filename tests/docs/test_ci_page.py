"""The GitHub Action, the hooks of pre-commit and docs/ci.md name what exists; the action's own script is run."""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
import sys
import tomllib
from pathlib import Path
from xml.etree import ElementTree

import click
import pytest

from tests.extensions.studies.grids import two_classes
from treesens.cli import group

yaml = pytest.importorskip("yaml")
ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "ci.md").read_text("utf-8")
ACTION = yaml.safe_load((ROOT / "action.yml").read_text("utf-8"))
HOOKS = yaml.safe_load((ROOT / ".pre-commit-hooks.yaml").read_text("utf-8"))
QUESTIONS = 'model m from "m.json"\nfeature p: integer in [0, 5]\nquery up: find a such that prob(a) > 0.5 expect {}\n'


def blocks(kind: str) -> list[str]:
    return re.findall(rf"^```{kind}\n(.*?)^```$", PAGE, re.DOTALL | re.MULTILINE)


def options_of(name: str) -> set[str]:
    command = group.get_command(click.Context(group), name)
    assert command is not None, name
    return {option for p in command.params if isinstance(p, click.Option) for option in p.opts}


def assert_exists(line: str) -> None:
    """A command line of treesens names a command and options of it."""
    _, name, *words = shlex.split(line)
    assert {word for word in words if word.startswith("-")} <= options_of(name), line


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    two_classes("xgboost").estimator.save_model(tmp_path / "m.json")
    (tmp_path / "deep" / "er").mkdir(parents=True)
    (tmp_path / "good.sens").write_text(QUESTIONS.format("some"))
    (tmp_path / "deep" / "er" / "bad.sens").write_text(QUESTIONS.format("none").replace("m.json", "../../m.json"))
    return tmp_path


def act(folder: Path, files: str, **more: str) -> tuple[subprocess.CompletedProcess[str], dict[str, str]]:
    """The check step of the action as a runner runs it; what it puts out."""
    step = next(step for step in ACTION["runs"]["steps"] if step["id"] == "check")
    given = {name: str(spec.get("default", "")) for name, spec in ACTION["inputs"].items()} | {"files": files, **more}
    inputs = {f"${{{{ inputs.{name} }}}}": value for name, value in given.items()}
    here = {"${{ steps.install.outputs.bin }}": str(Path(sys.executable).parent), **inputs}
    out = folder / "outputs"
    out.write_text("")
    variables = {name: here[value] for name, value in step["env"].items()}
    command = ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", step["run"]]
    environment = {**os.environ, **variables, "GITHUB_OUTPUT": str(out), "RUNNER_TEMP": str(folder)}
    environment["GITHUB_STEP_SUMMARY"] = str(folder / "summary")
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)
    return done, dict(line.split("=", 1) for line in out.read_text().splitlines())


def test_the_action_answers_what_its_patterns_find(folder: Path) -> None:
    done, outputs = act(folder, "good.sens")
    assert done.returncode == 0, done.stderr
    assert outputs == {"sarif": "treesens.sarif", "exit-code": "0"}
    done, outputs = act(folder, "**/*.sens", junit="r.xml", sarif="r.sarif")
    assert done.returncode == 10
    assert outputs == {"sarif": "r.sarif", "exit-code": "10"}
    assert "1 of 2 questions" in (folder / "summary").read_text()
    (run,) = json.loads((folder / "r.sarif").read_text())["runs"]
    assert [result["ruleId"] for result in run["results"]] == ["violated"]
    assert ElementTree.parse(folder / "r.xml").getroot().attrib["tests"] == "2"


def test_the_action_runs_no_text_of_its_inputs(folder: Path) -> None:
    done, _ = act(folder, "$(touch hurt) `touch hurt` ; touch hurt")
    assert done.returncode != 0
    assert not (folder / "hurt").exists()
    (folder / "--junit=hurt.sens").write_text(QUESTIONS.format("some"))
    done, _ = act(folder, "*.sens")
    assert done.returncode == 0, done.stderr
    assert not (folder / "hurt.sens").exists()
    done, _ = act(folder, "nothing/*.sens")
    assert done.returncode == 1
    assert "::error::" in done.stdout


def test_no_step_of_the_action_writes_an_input_into_a_script() -> None:
    assert ACTION["runs"]["using"] == "composite"
    for step in ACTION["runs"]["steps"]:
        assert "${{" not in step["run"]
        assert step["shell"] == "bash"
        assert not subprocess.run(["bash", "-n", "-c", step["run"]], check=False).returncode
    used = set(re.findall(r"inputs\.([a-z-]+)", (ROOT / "action.yml").read_text("utf-8")))
    assert used == set(ACTION["inputs"])
    options = re.findall(r"(?<= |\()--[a-z-]+", next(s["run"] for s in ACTION["runs"]["steps"] if s["id"] == "check"))
    assert options
    assert set(options) <= options_of("check")


def test_hooks_name_commands_and_options() -> None:
    assert [hook["id"] for hook in HOOKS] == ["treesens-fmt", "treesens-check"]
    for hook in HOOKS:
        assert hook["language"] == "python"
        assert_exists(shlex.join([*shlex.split(hook["entry"]), *hook.get("args", [])]))
        assert re.search(hook["files"], "a/b.sens")
        assert not re.search(hook["files"], "a/b.json")


def test_the_entries_of_the_hooks_take_several_files(folder: Path) -> None:
    binary = str(Path(sys.executable).parent / "treesens")
    bad = "deep/er/bad.sens"
    for hook, codes in zip(HOOKS, ((0, 10), (0, 10)), strict=True):
        words = [binary, *shlex.split(hook["entry"])[1:], *hook.get("args", [])]
        for files, code in zip((["good.sens", "good.sens"], ["good.sens", bad]), codes, strict=True):
            if hook["id"] == "treesens-fmt":
                text = (folder / files[-1]).read_text()
                subprocess.run([binary, "fmt", *files], cwd=folder, check=True, capture_output=True)
                (folder / files[-1]).write_text((folder / files[-1]).read_text() if code == 0 else text + "\n\n\n")
            assert subprocess.run([*words, *files], cwd=folder, check=False, capture_output=True).returncode == code


def test_the_steps_of_the_page_answer_the_questions(folder: Path) -> None:
    """The workflow's own commands, without the installation, as a runner runs them: a file holds, then another does not."""
    workflow = yaml.safe_load(blocks("yaml")[0])
    install, check = (step["run"] for step in workflow["jobs"]["check"]["steps"] if "run" in step)
    assert install.startswith("pip install treesens")
    upload = workflow["jobs"]["check"]["steps"][-1]
    (folder / "questions").mkdir()
    (folder / "summary").touch()
    places = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    environment = {**os.environ, "PATH": places, "GITHUB_STEP_SUMMARY": str(folder / "summary")}
    for name, code in (("good", 0), ("bad", 10)):
        text = QUESTIONS.format("some" if name == "good" else "none").replace("m.json", "../m.json")
        (folder / "questions" / f"{name}.sens").write_text(text)
        done = subprocess.run(
            ["bash", "-e", "-c", check], cwd=folder, env=environment, capture_output=True, check=False
        )
        assert done.returncode == code, done.stderr
    assert "1 of 2 questions" in (folder / "summary").read_text()
    (run,) = json.loads((folder / upload["with"]["sarif_file"]).read_text())["runs"]
    assert [result["ruleId"] for result in run["results"]] == ["violated"]


def test_the_page_names_what_exists() -> None:
    _, hooks = (yaml.safe_load(text) for text in blocks("yaml"))
    assert set(re.findall(r"Outputs are `([a-z-]+)` .*and `([a-z-]+)`", PAGE)) == {tuple(ACTION["outputs"])}
    assert re.findall(r"^\| `([a-z-]+)` \|", PAGE, re.MULTILINE) == list(ACTION["inputs"])
    (repository,) = hooks["repos"]
    for hook, known in zip(repository["hooks"], HOOKS, strict=True):
        assert hook["entry"].startswith(shlex.join([*shlex.split(known["entry"]), *known.get("args", [])]))
        assert_exists(hook["entry"])
        settings = known.keys() - {"entry", "args", "description"}
        assert {name: hook.get(name) for name in settings} == {name: known[name] for name in settings}
    lines = [line.removeprefix("$ ") for text in blocks("console") for line in text.splitlines()]
    lines += re.findall(r"`(treesens [a-z]+ [^`]+)`", PAGE)
    for line in lines:
        if line.startswith("treesens"):
            assert_exists(line)
    (settings,) = blocks("toml")
    plugin = (ROOT / "src" / "treesens" / "extensions" / "ci" / "pytest_plugin.py").read_text("utf-8")
    for name in (*tomllib.loads(settings)["tool"]["pytest"]["ini_options"], "--sens"):
        assert f'"{name}"' in plugin
