"""`check` and `opt` with plug-in passes: what they print, their exit codes, and the reproducer of a failing pass."""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.commands.conftest import Ran, model_file, treesens
from treesens.compiler.ir.text import parse_module, print_module
from treesens.compiler.ir.verifier import verify

__all__ = ["model_file", "treesens"]
Command = Callable[..., Ran]
SMALL = Path(__file__).parents[2] / "examples" / "small.sir"


@pytest.fixture
def questions(tmp_path: Path, model_file: Path) -> Path:
    """A question with an answer, one without, and one with a bound."""
    path = tmp_path / "q.sens"
    path.write_text(
        f'model m from "{model_file}"\nfeature sex: category {{Female = 0, Male = 1}}\nfeature age: real in [0, 1]\n\n'
        "query some:\n  find a such that margin(a) >= 0\n\n"
        "query never:\n  find a such that margin(a) >= 100\n\n"
        "query best:\n  find a such that a.sex = Male\n  maximize margin(a)\n"
    )
    return path


@pytest.mark.parametrize("backend", ["auto", "brute", "cpsat", "z3"])
def test_opt_refuses_a_wrong_pass_and_says_where(treesens: Command, backend: str) -> None:
    ran = treesens("opt", SMALL, "-p", "wrong{case=first-score-lost}", "--check-each", backend)
    assert ran.code == 2
    assert "check wrong{case=first-score-lost}: counterexample: a solution of the output violates op" in ran.err
    assert "the pass `wrong{case=first-score-lost}` of treesens-careless is wrong" in ran.err
    assert "in cell" in ran.err


@pytest.mark.parametrize("backend", ["auto", "brute"])
def test_opt_lists_what_it_proved(treesens: Command, backend: str) -> None:
    ran = treesens("opt", SMALL, "-p", "merge-guards,right{case=implied-clause}", "--check-each", backend)
    assert ran.code == 0
    assert re.findall(r"^check (.*)$", ran.err, re.MULTILINE) == [
        "merge-guards: proved",
        "right{case=implied-clause}: proved",
    ]


def test_opt_says_why_a_pass_is_open(treesens: Command) -> None:
    ran = treesens("opt", SMALL, "-p", "right{case=guessed-map}", "--check-each", "auto")
    assert ran.code == 0
    assert "check right{case=guessed-map}: open: the postsolve is not a substitution" in ran.err


def test_an_unknown_solver_is_refused(treesens: Command) -> None:
    ran = treesens("opt", SMALL, "--check-each", "nosuch")
    assert ran.code == 2
    assert "unknown backend `nosuch`" in ran.err


def test_check_proves_a_right_pass_and_names_it(treesens: Command, questions: Path) -> None:
    ran = treesens("check", questions, "--json", "-p", "right")
    for record in ran.record["results"]:
        assert record["plugins"] == [
            {
                "kind": "pass",
                "name": "right",
                "package": "treesens-careless",
                "version": "0.3",
                "entry_point": "tests.plugin_passes.wrong:Right",
            }
        ]
        assert record["proof"] == ("exact" if record["query"] == "never" else None)
    plain = treesens("check", questions, "--json")
    assert [r["plugins"] for r in plain.record["results"]] == [[], [], []]
    assert [r["verdict"] for r in plain.record["results"]] == [r["verdict"] for r in ran.record["results"]]


def test_check_names_a_pass_that_it_cannot_prove(treesens: Command, questions: Path) -> None:
    text = "right{case=guessed-map}"
    ran = treesens("check", questions, "never", "best", "--json", "-p", text, "-b", "cpsat")
    never, best = ran.record["results"]
    for record in (never, best):
        assert record["proof"] == "unvalidated pass right"
        assert record["rests_on"][0] == "unvalidated pass right"
    assert (never["verdict"], best["verdict"]) == ("none", "found")
    shown = treesens("check", questions, "never", "best", "-p", text, "-b", "cpsat", "--core")
    words = " ".join(shown.out.split())
    assert "never: none unvalidated pass right, by cpsat" in words
    assert ", unvalidated pass right)" in words
    assert "plug-ins: pass right of treesens-careless 0.3" in words
    assert "note: no core: the answer rests on an unvalidated pass right" in words
    assert "error[E" not in words
    assert "note[E" not in words


def test_a_wrong_none_and_a_wrong_bound_are_taken_back(treesens: Command, questions: Path) -> None:
    ran = treesens("check", questions, "some", "--json", "-p", "wrong{case=empty-clause}", "-b", "cpsat")
    assert ran.code == 5
    (record,) = ran.record["results"]
    assert (record["verdict"], record["proof"]) == ("unknown", None)
    assert "the pass `wrong{case=empty-clause}` of treesens-careless is wrong on this module" in record["reason"]
    ran = treesens("check", questions, "best", "--json", "-p", "wrong{case=objective-negated}", "-b", "cpsat")
    (record,) = ran.record["results"]
    right = treesens("check", questions, "best", "--json").record["results"][0]["objective"]["value"]
    assert record["objective"]["bound"] is None or record["objective"]["bound"] >= right - 1e-6


def test_every_pass_is_checked_on_request(treesens: Command, questions: Path) -> None:
    ran = treesens("check", questions, "never", "--json", "--check-each", "auto", "-b", "cpsat")
    (record,) = ran.record["results"]
    assert (record["verdict"], record["proof"]) == ("none", "exact")
    proved = [note for note in record["notes"] if note.endswith(": proved")]
    assert {note.partition(":")[0].partition("{")[0] for note in proved} >= {
        "merge-guards",
        "drop-dead",
        "score-bounds",
    }


def test_a_certificate_does_not_certify_a_wrong_none(treesens: Command, questions: Path, tmp_path: Path) -> None:
    made = tmp_path / "made"
    text = "wrong{case=empty-clause}"
    ran = treesens("check", questions, "some", "never", "--json", "-p", text, "-b", "cpsat", "--certificate", made)
    some, never = ran.record["results"]
    assert some["verdict"] == "unknown"
    assert "certificates" not in some
    # The proof in a certificate is made without the pass.
    assert never["certificates"][0]["claim"] == "none"


@pytest.mark.parametrize("command", ["check", "opt"])
def test_a_pass_that_raises_is_named_and_can_be_repeated(
    treesens: Command, questions: Path, tmp_path: Path, command: str
) -> None:
    folder = tmp_path / "inputs"
    ran = treesens(command, questions, "some", "-p", "drop-dead,raises", "--reproducer", folder)
    assert ran.code in {2, 5}
    assert "the pass `raises` of treesens-careless failed: ZeroDivisionError: " in ran.err
    (file,) = folder.iterdir()
    line = re.search(r"to reproduce: (treesens opt .*)", ran.err)
    assert line is not None
    again = shlex.split(line[1])
    assert again == ["treesens", "opt", str(file), "-p", "raises"]
    module = parse_module(file.read_text())
    verify(module)
    assert module.provenance == ("lower", "drop-dead")
    assert print_module(module, full=True) == file.read_text()
    repeated = treesens(*again[1:], "--reproducer", folder)
    assert repeated.code == 2
    assert f"ZeroDivisionError: {module.variables} variables" in repeated.err
    assert len(list(folder.iterdir())) == 2  # nothing is overwritten


def test_an_invalid_module_is_refused(treesens: Command, questions: Path, tmp_path: Path) -> None:
    text = "wrong{case=tree-lost}"
    ran = treesens("check", questions, "never", "-p", text, "--reproducer", tmp_path / "inputs")
    assert "never: unknown" in ran.out
    assert "the pass `wrong` of treesens-careless failed: the module breaks R7" in ran.err


def test_the_end_of_the_time_limit_is_no_fault_of_a_pass(treesens: Command, questions: Path) -> None:
    ran = treesens("opt", questions, "-t", "0.01", "-p", "right{case=slow},right")
    assert ran.code == 5
    assert "failed" not in ran.err
