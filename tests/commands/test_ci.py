"""`check` in CI: several files, JUnit XML, SARIF, silence, and the pytest plug-in."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
from markdown_it import MarkdownIt

from tests.extensions.studies.grids import two_classes
from treesens.extensions.ci.documents import Case, case_page

GOOD = 'model m from "m.json"\nfeature p: integer in [0, 5]\nquery up: find a such that prob(a) > 0.5 expect some\n'
BAD = """model m from "m.json"
query all_is_well: find a such that prob(a) > 0.5 expect some

query never: find a such that prob(a) > 0.5 expect none
query nonsense: find a such that b.p > 1
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("ci")
    two_classes("xgboost").estimator.save_model(folder / "m.json")
    (folder / "good.sens").write_text(GOOD)
    (folder / "bad.sens").write_text(BAD)
    return folder


def test_several_files_have_one_exit_code(folder: Path, treesens: Callable[..., Any]) -> None:
    done = treesens("check", folder / "good.sens", folder / "bad.sens", "--json")
    assert done.code == 10
    files = done.record["files"]
    assert [len(one["results"]) for one in files] == [1, 2]
    assert treesens("check", folder / "good.sens", folder / "good.sens").code == 0
    refused = treesens("check", folder / "good.sens", folder / "bad.sens", "up")
    assert refused.code == 1
    assert "query names with one file" in refused.err


def test_junit_has_a_case_per_question(folder: Path, tmp_path: Path, treesens: Callable[..., Any]) -> None:
    report = tmp_path / "r.xml"
    done = treesens("check", folder / "good.sens", folder / "bad.sens", "--junit", report, "--quiet")
    assert (done.code, done.out) == (10, "")
    root = ElementTree.parse(report).getroot()
    assert [root.attrib[key] for key in ("tests", "failures", "errors")] == ["4", "1", "1"]
    cases = {case.attrib["name"]: case for case in root.iter("testcase")}
    assert set(cases) == {"up", "all_is_well", "never", "nonsense"}
    assert [len(cases[name]) for name in ("up", "all_is_well")] == [0, 0]
    failure = cases["never"].find("failure")
    assert failure is not None
    assert "expected none" in failure.attrib["message"]
    assert cases["never"].attrib["line"] == "4"
    error = cases["nonsense"].find("error")
    assert error is not None
    assert error.attrib["type"] == "broken"


def test_sarif_points_at_the_lines(folder: Path, tmp_path: Path, treesens: Callable[..., Any]) -> None:
    report = tmp_path / "r.sarif"
    treesens("check", folder / "bad.sens", "--sarif", report, "-q")
    document = json.loads(report.read_text())
    assert document["version"] == "2.1.0"
    (run,) = document["runs"]
    rules = [rule["id"] for rule in run["tool"]["driver"]["rules"]]
    found = {}
    for result in run["results"]:
        assert rules[result["ruleIndex"]] == result["ruleId"]
        (place,) = result["locations"]
        found[result["ruleId"]] = place["physicalLocation"]["region"]["startLine"]
    assert found == {"violated": 4, "broken": 5}
    treesens("check", folder / "good.sens", "--sarif", report)
    assert json.loads(report.read_text())["runs"][0]["results"] == []


def test_reports_that_cannot_be_written_stop_the_command(folder: Path, treesens: Callable[..., Any]) -> None:
    done = treesens("check", folder / "good.sens", "--junit", "/nope/r.xml")
    assert done.code == 1
    assert "cannot be written" in done.err
    assert "up" not in done.out


def test_questions_are_tests_of_pytest(folder: Path) -> None:
    def ask(*more: str) -> subprocess.CompletedProcess[str]:
        command = [
            sys.executable,
            "-m",
            "pytest",
            "-p",
            "treesens.pytest_plugin",
            "-p",
            "no:cacheprovider",
            "-v",
            str(folder),
        ]
        return subprocess.run([*command, *more], capture_output=True, text=True, check=False, cwd=folder)

    silent = ask()
    assert silent.returncode == pytest.ExitCode.NO_TESTS_COLLECTED, silent.stdout + silent.stderr
    done = ask("--sens")
    assert "good.sens::up PASSED" in done.stdout, done.stdout + done.stderr
    assert "bad.sens::never FAILED" in done.stdout
    assert "violated: expected none" in done.stdout
    assert "bad.sens::nonsense FAILED" in done.stdout
    assert "2 failed, 2 passed" in done.stdout
    assert "Traceback" not in done.stdout


def test_markdown_is_a_table_with_what_is_wrong_below(
    folder: Path, tmp_path: Path, treesens: Callable[..., Any]
) -> None:
    page = tmp_path / "r.md"
    done = treesens("check", folder / "good.sens", folder / "bad.sens", "--markdown", page, "-q")
    assert (done.code, done.out) == (10, "")
    shown = rendered(page.read_text())
    assert "2 of 4 questions are answered as expected" in shown
    assert shown.count("<tr>") == 5
    cells = [re.sub("<.*?>", "", cell) for cell in re.findall(r"<td>(.*?)</td>", shown)]
    assert cells[0::3] == ["as expected", "as expected", "violated", "broken"]
    assert cells[1::3] == ["up", "all_is_well", "never", "nonsense"]
    assert shown.count("<details>") == 2
    assert "expected none, and the answer is found" in shown
    assert "a: p " in shown


def test_no_text_of_a_file_is_markup_in_markdown() -> None:
    evil = "a|b](http://x.y) <img src=x> `c` **d** \n\n# e\n\n</pre><script>f</script> &amp; @all"
    shown = rendered(case_page([Case(evil, 1, evil, "violated", evil), Case(evil, 2, evil, None, evil)]))
    for tag in ("<a ", "<img", "<strong>d", "<script", "<h1"):
        assert tag not in shown
    assert shown.count("<tr>") == 3
    assert shown.count("<td>") == 6
    assert "&amp;amp;" in shown


def rendered(text: str) -> str:
    """The page as a reader of Markdown that people use shows it."""
    return str(MarkdownIt("commonmark").enable("table").render(text))
