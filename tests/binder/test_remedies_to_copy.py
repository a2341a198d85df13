"""Declarations in remedies can be copied, whatever a feature is called: the text that they show is read as it stands."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pandas as pd
import pytest

import treesens as ts
from tests.command import run_command
from tests.corpus import boosted
from treesens.grammar.parsing.parser import parse
from treesens.grammar.tree import ast
from treesens.visible import declaration

NAMES = ["age", "größe", "größe in cm", "capital-gain", "2nd", "except", "of", "margin", "a", "0"]
SOURCES = Path(ts.__file__).parent
SHOWN = re.compile(r"`` (.+?) ``|`(feature [^`]+)`")


def copied(text: str) -> str:
    found = SHOWN.search(text)
    assert found is not None, text
    return str(found[1] or found[2])


def model_and_rows(name: str) -> tuple[object, pd.DataFrame]:
    rows = pd.DataFrame({name: range(40), "y": [0, 1] * 20})
    return boosted(rows[[name]].to_numpy(), rows.y, 2, 6, names=[name], base_score=0.5), rows


@pytest.mark.parametrize("name", NAMES)
def test_the_declaration_of_a_remedy_is_read(name: str) -> None:
    file = parse(f"{copied('declare ' + declaration(name, 'real in [0, 1]'))}\n")
    assert [one.name.text for one in file.declarations if isinstance(one, ast.Feature)] == [name]


@pytest.mark.parametrize("name", NAMES)
def test_notes_and_errors_can_be_followed(name: str) -> None:
    model, rows = model_and_rows(name)
    models, data = {"m": model}, {"d": rows}
    text = 'model m from "m"\ndata d from "d" label y\ndomain from d\nquery q: find a such that prob(a) > 0.4\n'
    (note,) = [str(item) for item in ts.check_text(text, models=models, data=data)["q"].notes if "E403" in str(item)]
    followed = ts.check_text(text.replace("domain", f"{copied(note)}\ndomain"), models=models, data=data)
    assert not [item for item in followed["q"].notes if "E403" in str(item)]
    open_ended = f'model m from "m"\nquery q: find a such that prob(a) > 0.4  maximize a.`{name}`\n'
    with pytest.raises(ts.errors.TreesensError, match="E312") as caught:
        ts.check_text(open_ended, models=models)
    line = copied(str(caught.value).split("help:")[-1]).replace("[lo, hi]", "[0, 39]")
    assert str(ts.check_text(open_ended.replace("query", f"{line}\nquery"), models=models)["q"].verdict) == "found"


@pytest.mark.extensions
def test_the_note_of_a_call_gives_the_name_as_python_writes_it() -> None:
    model, rows = model_and_rows("größe in cm")
    result = ts.sensitivity(model, vary=["größe in cm"], gap=0.01, data=rows, label="y")
    assert any("pass real=['größe in cm']" in str(item) for item in result.notes)


@pytest.mark.extensions
def test_the_option_of_a_note_is_one_word_of_the_shell(tmp_path: Path) -> None:
    name = "größe in cm"
    model, rows = model_and_rows(name)
    model.save_model(tmp_path / "m.json")  # type: ignore[attr-defined]
    rows.to_csv(tmp_path / "d.csv", index=False)
    asked = ("range", "m.json", "--data", "d.csv", "--label", "y")
    (option,) = re.findall(r"add `(.+?)` if fractions can occur", run_command(tmp_path, *asked).stderr)
    assert shlex.split(option) == ["--real", name]
    done = run_command(tmp_path, *asked, *shlex.split(option))
    assert done.returncode == 0
    assert "E403" not in done.stderr


def test_every_declaration_in_a_message_is_made_by_one_function() -> None:
    wrong = [
        f"{path.relative_to(SOURCES)}: {line.strip()}"
        for path in SOURCES.rglob("*.py")
        for line in path.read_text(encoding="utf-8").splitlines()
        if "`feature {" in line and path.name != "visible.py"
    ]
    assert not wrong
