"""`-D`, `--params` and `parameters=`: the number counts wherever questions are read, and records name it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import treesens as ts
from tests.commands.test_command_line import STUMP, run

QUESTIONS = """include "domain/m.sens"
param level = 0.5
define high(x) = margin(x) >= level
query above: find a such that high(a)
query each: for each n in {level, 3}: find a such that margin(a) >= n
query other: find a such that margin(a) >= 0.75
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "domain").mkdir()
    (tmp_path / "domain" / "m.json").write_text(json.dumps(STUMP))
    (tmp_path / "domain" / "m.sens").write_text('model m from "m.json"\nfeature sex: category {Female = 0, Male = 1}\n')
    (tmp_path / "q.sens").write_text(QUESTIONS)
    return tmp_path


def answers(folder: Path, *words: str) -> dict[str, tuple[str, dict[str, str] | None, bool]]:
    done = run(folder, *words)
    assert done.returncode == 0, done.stderr
    records = (
        list(map(json.loads, done.stdout.splitlines())) if words[0] == "sweep" else json.loads(done.stdout)["results"]
    )
    return {one["query"]: (one["verdict"], one.get("parameters"), "journal" in one) for one in records}


def expected(level: str, verdict: str) -> dict[str, tuple[str, dict[str, str] | None]]:
    """The leaves of the stump are -1 and 1, so no margin exceeds 1."""
    told = {"level": level}
    return {
        "above": (verdict, told), f"each[{level}]": (verdict, told), "each[3]": ("none", told), "other": ("found", None)
    }  # fmt: skip


@pytest.mark.parametrize("door", ["check", "check --jobs 2", "check --workers 1", "sweep --jobs 1"])
def test_a_number_is_replaced_and_recorded(folder: Path, door: str) -> None:
    command, *more = door.split()
    for words, level, verdict in (
        ([], "0.5", "found"),
        (["-D", "level=2"], "2", "none"),
        (["--params", "p.toml"], "0.9", "found"),
        (["--params", "p.json", "--define", "level=1.5"], "1.5", "none"),
    ):
        (folder / "p.toml").write_text("level = 0.9\n")
        (folder / "p.json").write_text('{"level": 7}')
        found = answers(folder, command, "q.sens", "--json", *more, *words)
        assert {name: one[:2] for name, one in found.items()} == expected(level, verdict)


@pytest.mark.parametrize("command", ["check", "sweep"])
def test_an_answer_with_another_number_is_not_reused(folder: Path, command: str) -> None:
    for level, verdict in (("0.5", "found"), ("2", "none"), ("0.5", "found")):
        found = answers(folder, command, "q.sens", "--json", "--journal", "j.sqlite", "-D", f"level={level}")
        assert {name: one[:2] for name, one in found.items()} == expected(level, verdict)
    assert all(one[2] for one in found.values()) or command == "sweep"


def test_every_command_that_reads_questions(folder: Path) -> None:
    def shown(*words: str) -> str:
        done = run(folder, *words, "q.sens", "above", "-D", "level=2")
        assert done.returncode in (0, 1), done.stderr
        return str(done.stdout + done.stderr)

    assert "margin(a) >= 2" in shown("explain")
    assert "none" in shown("compare", "--backends", "native,z3")
    run(folder, "emit", "q.sens", "above", "--to", "lp", "-o", "one.lp")
    run(folder, "emit", "q.sens", "above", "--to", "lp", "-o", "two.lp", "-D", "level=-2")
    assert (folder / "one.lp").read_text() != (folder / "two.lp").read_text()
    assert shown("opt") != run(folder, "opt", "q.sens", "above").stdout
    done = run(folder, "reduce", "q.sens", "above", "-D", "level=2", "--while", "grep -q '>= 2' {}", "-o", "small")
    assert done.returncode == 0, done.stderr
    assert ">= 2" in (folder / "small" / "q.sens").read_text()


@pytest.mark.parametrize(
    ("words", "code", "message"),
    [
        (["-D", "levle=2"], 1, "did you mean `level`?"),
        (["-D", "level"], 1, "no name or no number"),
        (["-D", "level=1/3"], 1, "not a number"),
        (["--params", "no.toml"], 2, "cannot be read"),
        (["--params", "q.sens"], 2, "this is not TOML"),
        (["--params", "list.json"], 2, "not an object"),
        (["--params", "text.json"], 1, "not a number"),
    ],
)
def test_wrong_parameters(folder: Path, words: list[str], code: int, message: str) -> None:
    (folder / "list.json").write_text("[1]")
    (folder / "text.json").write_text('{"level": "high"}')
    for command in ("check", "sweep", "explain"):
        done = run(folder, command, "q.sens", *words)
        assert (done.returncode, "Traceback" in done.stderr) == (code, False), done.stderr
        assert message in done.stderr


def test_python(folder: Path) -> None:
    found = ts.check(folder / "q.sens", parameters={"level": 2})
    assert [(name, str(found[name].verdict)) for name in found] == [
        ("above", "none"), ("each[2]", "none"), ("each[3]", "none"), ("other", "found")
    ]  # fmt: skip
    assert found["above"].to_dict()["parameters"] == {"level": "2"}
    assert list(ts.explain(folder / "q.sens", "each", parameters={"level": 2})) == ["each[2]", "each[3]"]
    with pytest.raises(ts.errors.UsageError, match="no parameter `levle`"):
        ts.check(folder / "q.sens", parameters={"levle": 2})
    with pytest.raises(ts.errors.UsageError, match="belong to a file"):
        ts.explain("query q: find a such that margin(a) >= 1", models={"m": folder / "m.json"}, parameters={"x": 1})


@pytest.mark.parametrize(("name", "place"), [("Male", "a.sex = Male"), ("sex", "a.age >= 1"), ("c1", "class(a) = c1")])
def test_a_number_with_the_name_of_a_value_is_refused_where_it_may_be_both(folder: Path, name: str, place: str) -> None:
    (folder / "n.sens").write_text(f'include "domain/m.sens"\nlet {name} = 1\nquery q: find a such that {place}\n')
    done = run(folder, "check", "n.sens")
    if name == "Male":
        assert done.returncode == 2
        assert "error[E123]" in done.stderr
        assert 'write `"Male"`' in done.stderr
        (folder / "n.sens").write_text((folder / "n.sens").read_text().replace("= Male\n", '= "Male"\n'))
        done = run(folder, "check", "n.sens")
    assert done.returncode == 0, done.stderr
    (folder / "n.sens").write_text(
        'include "domain/m.sens"\nlet sex = 1\nquery q: for each f in {sex}: sensitive m to age margin f\n'
    )
    assert "error[E123]" in run(folder, "check", "n.sens").stderr
