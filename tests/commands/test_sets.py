"""`treesens sets`: what it prints, and what is refused."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from tests.commands.conftest import Ran
from tests.extensions.studies.test_minimal_sets import asked, xgboost_model
from treesens.frontends.registry import load
from treesens.records.plain import plain


def test_the_command_tells_the_sets(tmp_path: Path, treesens: Callable[..., Ran]) -> None:
    model, _ = xgboost_model(5)
    model.save_model(tmp_path / "m.json")
    arguments = ("sets", str(tmp_path / "m.json"), "--margin", "0.4", "--journal", str(tmp_path / "j.sqlite"))
    result = treesens(*arguments, "--json")
    assert result.code == 0, result.err
    (record,) = result.record["results"]
    expected = plain(asked(model, 0.4, features=load(model).ensemble.used_features).record())
    assert record["complete"]
    assert [item["features"] for item in record["flip"]] == [item["features"] for item in expected["flip"]]
    assert record["hold"] == expected["hold"]
    shown = treesens(*arguments)
    assert shown.code == 0
    assert shown.out.count("minimal") == len(record["flip"])
    wrong = treesens("sets", str(tmp_path / "m.json"))
    assert wrong.code == 1
    assert "--gap 0.1" in wrong.err
