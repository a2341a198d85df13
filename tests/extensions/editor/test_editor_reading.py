"""Reading a document again and again: what is kept, what is read anew, and where messages stand afterwards."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from tests.commands.test_command_line import STUMP
from treesens.binder.file import bind
from treesens.errors import ModelError
from treesens.extensions.editor.reading import Library, Reader, Reading
from treesens.grammar.parsing.parser import parse

HEAD = """model m from "m.json"
data people from "people.csv" label "y"
feature sex: category {Female = 0, Male = 1}
feature age: real in [0, 45]
"""
ONE = "query one: find a, b such that a = b except sex; likelihood(a, people) >= 0.1\n"
TWO = "query two: find a such that a.nope >= 1\n"


@pytest.fixture
def reader(tmp_path: Path) -> Reader:
    (tmp_path / "m.json").write_text(json.dumps(STUMP))
    (tmp_path / "people.csv").write_text("age,sex,y\n30,0,1\n40,1,0\n50,1,1\n")
    return Reader(Library(), tmp_path / "q.sens")


def messages(reading: Reading) -> list[tuple[str, str]]:
    return [(m.code, m.span.text if m.span else "") for m in reading.diagnostics]


def test_files_are_read_once_until_they_change(reader: Reader) -> None:
    library, path = reader.library, reader.path.with_name("m.json")
    first = library.model(path, None)
    assert library.model(path, None) is first
    assert library.table(path.with_name("people.csv")) is library.table(path.with_name("people.csv"))
    path.write_text("{}")
    for _ in range(2):
        with pytest.raises(ModelError):
            library.model(path, None)
    path.write_text(json.dumps(STUMP))
    os.utime(path, ns=(1, 1))
    again = library.model(path, None)
    assert again is not first
    assert again.ensemble.n_trees == 1


def test_what_declarations_say_is_kept_while_queries_change(reader: Reader) -> None:
    one = reader.read(HEAD + ONE)
    binder = reader._kept.binder if reader._kept else None
    for number in range(5):
        reading = reader.read(HEAD + ONE.replace("0.1", f"0.1{number}"))
        assert reader._kept is not None
        assert reader._kept.binder is binder
        # Learnt once from the data, but told every time: it is still so.
        assert [m.severity for m in reading.diagnostics] == ["warning"]
        assert messages(reading) == messages(one) == [("E401", "people")]
    inputs = next(iter(reader._kept.binder.inputs.values())) if reader._kept else None
    assert inputs is not None
    assert not [key for key in inputs.cache if isinstance(key, tuple) and key[0] == "space"]
    reader.read(HEAD.replace("45", "60") + ONE)
    assert reader._kept is not None
    assert reader._kept.binder is not binder
    assert not reader.read(HEAD.replace("45", "60") + ONE).diagnostics


def test_messages_move_with_their_query(reader: Reader) -> None:
    for before in ("", "\n\n# a comment\n", "query zero: find a such that a.sex = Female\n", ""):
        reading = reader.read(HEAD.replace("45", "60") + before + TWO)
        assert messages(reading) == [("E103", "nope")]
        assert reading.diagnostics[0].span is not None
        assert reading.diagnostics[0].span.source is reading.source


def test_the_messages_are_those_of_the_binder(reader: Reader) -> None:
    text = HEAD + ONE + TWO + "query one: find a, b such that value(a) >= 1; b.age >= 90; a.sex = Femal\n"
    from treesens.compiler.base.diagnostics import Diagnostics, DiagnosticsError

    found = Diagnostics()
    with pytest.raises(DiagnosticsError):
        bind(parse(text), reader.path.parent, diagnostics=found)
    mine = sorted((m.code, m.message) for m in reader.read(text).diagnostics)
    assert mine == sorted((m.code, m.message) for m in found)
    assert {"E107", "E202", "E106", "E103"} <= {code for code, _ in mine}


def test_a_declaration_that_does_not_parse_is_one_message(reader: Reader) -> None:
    head = HEAD.replace("45", "60")
    for broken in (head.replace("model m from", "model m form"), head.replace("category {", "category {,")):
        (message,) = reader.read(broken + ONE.replace("a = b", "a.sex = Female and a = b")).diagnostics
        assert message.code.startswith("S")
    # A query that does not parse hides nothing of the others.
    codes = [m.code for m in reader.read(HEAD + TWO + "query three: find a such that a.x >= \n").diagnostics]
    assert sorted(codes) == ["E103", "S018"]


def test_names_and_included_files(reader: Reader) -> None:
    domain = reader.path.with_name("domain.sens")
    domain.write_text(HEAD + "let least = 0.1\nfeature nothing: real in [5, 1]\n")
    text = 'include "domain.sens"\n# a line\nparam gap = 0.6\nquery one: sensitive m to sex gap gap\n'
    text += "query two: find a such that likelihood(a, people) >= least\n"

    def found(text: str) -> list[tuple[str, str]]:
        messages = reader.read(text).diagnostics
        assert all(m.span is None or m.span.source.name == str(reader.path) for m in messages)
        return [(m.code, text[m.span.start : m.span.end] if m.span else "") for m in messages if m.severity == "error"]

    first = found(text)
    assert first == [("E103", '"domain.sens"'), ("E212", "0.6")]
    domain.write_text(HEAD + "let least = 0.1\n")
    for before in ("", "# a comment more\n"):
        assert found(before + text) == [("E212", "0.6")]
        assert found(before + text.replace("0.6", "0.3")) == []
    assert set(reader.glance(text).names) == {"gap", "least"}
    domain.write_text(HEAD + "let least = x\n")
    assert found(text)[0] == ("S033", '"domain.sens"')
    domain.unlink()
    assert ("S063", '"domain.sens"') in found(text)
