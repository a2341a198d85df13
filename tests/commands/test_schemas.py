"""What commands print with --json is what their schemas say, and says nothing that no schema names."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.extensions.studies.grids import several_classes, two_classes
from treesens.cli import command_names, main
from treesens.commands.schema import schema_names, schema_of
from treesens.errors import UsageError

jsonschema = pytest.importorskip("jsonschema")
QUESTIONS = """model m from "m.json"
data d from "d.csv"
domain from d
query pair: sensitive m to p gap 0.05
query best:
  find a, b such that
    a = b except p
  maximize margin(a) - margin(b)
query three:
  find a such that
    prob(a) >= 0.5
  top 3
query never: find a such that prob(a) >= 0.5 and prob(a) <= 0.4 expect none
query why: explain row 0 of d smallest
query many:
  count rows of d as a such that
    prob(a) >= 0.5
"""
RUNS = (
    ("check", "q.sens --core --certificate proofs"),
    ("check", "q.sens pair --confirm z3"),
    ("check", "q.sens pair never --journal j.sqlite"),
    ("check", "q.sens pair never --journal j.sqlite"),
    ("audit", "m.json --data d.csv --gap 0.05,0.4 -t 1"),
    ("audit", "several.json --data d.csv --margin 0.1 -t 0.5 --vary p"),
    ("audit", "m.json --data d.csv --gap 0.05 -t 1 --vary p --measure uniform"),
    ("audit", "m.json --data d.csv --gap 0.05 -t 1 --vary p --shape"),
    ("gap", "m.json --data d.csv -t 1 --vary p"),
    ("range", "m.json -t 1"),
    ("diff", "m.json m.json --data d.csv --gap 0.1 --set-limit 1"),
    ("count", "m.json --data d.csv --vary p --gap 0.05"),
    ("count", "m.json --data d.csv --vary p --gap 0.05 --measure rows"),
    ("robust", "m.json --data d.csv --rows 0-2 --norm l1"),
    ("why", "m.json --data d.csv --row 1 --smallest"),
    ("why", "m.json --data d.csv --row 0,1 --also box,radius,recourse"),
    ("why", "m.json --data d.csv --row 0 --all 3"),
    ("sets", "m.json --data d.csv --gap 0.05"),
    ("groups", "m.json --data d.csv --favourable 1 --by p"),
    ("groups", "m.json --data d.csv --favourable 1 --by p --measure marginals"),
    ("reasons", "m.json --data d.csv --favourable 1 --protected q"),
    ("shape", "m.json --data d.csv --increasing p"),
    ("shape", "several.json --features p"),
    ("repair", "m.json --data l.csv --test l.csv --label y --vary p --gap 0.05 -t 1 -o out.json --certificate proofs"),
    ("info", "m.json --check"),
    ("info", "several.json"),
    ("learn", "rules d.csv"),
    ("doctor", ""),
    ("explain", "q.sens pair"),
    ("compare", "q.sens pair --backends native,z3"),
    ("sweep", "q.sens --jobs 1"),
    ("sweep", "spec.toml --jobs 1"),
    ("bench", "bench.jsonl --models . -b native,z3 -o bench.out"),
)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("schemas")
    two = two_classes("xgboost")
    two.estimator.save_model(folder / "m.json")
    several_classes("xgboost").estimator.save_model(folder / "several.json")
    two.frame.to_csv(folder / "d.csv", index=False)
    two.frame.assign(y=two.classes[two.at_rows]).to_csv(folder / "l.csv", index=False)
    (folder / "q.sens").write_text(QUESTIONS)
    (folder / "spec.toml").write_text(
        'models = ["m.json"]\nfeatures = "all"\npairs = "all"\nmargins = [0.05, 0.2, 9.0]\n'
    )
    (folder / "bench.jsonl").write_text('{"model": "m.json", "feature": "p", "margin": 0.05, "verdict": "found"}\n')
    return folder


def undeclared(schema: dict[str, Any], value: Any, place: str = "") -> Iterator[str]:
    """The properties of a record that its schema does not name."""
    if isinstance(value, dict) and "properties" in schema:
        for name, part in value.items():
            if name not in schema["properties"]:
                yield f"{place}.{name}"
            else:
                yield from undeclared(schema["properties"][name], part, f"{place}.{name}")
    if isinstance(value, list) and "items" in schema:
        for part in value:
            yield from undeclared(schema["items"], part, place + "[]")


@pytest.mark.parametrize(("command", "words"), RUNS)
def test_records_are_what_their_schemas_say(
    folder: Path, command: str, words: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(folder)
    with pytest.raises(SystemExit):
        main([command, *words.split(), "--json"])
    printed = capsys.readouterr()
    # A sweep prints a line for every question, all others one object.
    records = [json.loads(text) for text in (printed.out.splitlines() if command == "sweep" else [printed.out])]
    assert records
    schema = schema_of(command)
    for record in records:
        jsonschema.Draft202012Validator(schema).validate(record)
        assert not set(undeclared(schema, record))


def test_every_schema_is_one_and_belongs_to_a_command() -> None:
    assert set(schema_names()) <= set(command_names())
    assert {command for command, _ in RUNS} == set(schema_names())
    for name in schema_names():
        jsonschema.Draft202012Validator.check_schema(schema_of(name))
    with pytest.raises(UsageError, match="no schema"):
        schema_of("chek")


def test_the_command_prints_a_schema(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["schema", "diff"])
    assert ended.value.code == 0
    assert json.loads(capsys.readouterr().out) == schema_of("diff")
