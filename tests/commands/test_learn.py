"""`treesens learn rules`: its text is read back as domain and as constraints that the rows of the table satisfy."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_iris

from tests.commands.conftest import Ran
from tests.corpus import boosted
from tests.extensions.studies.test_rules import ADULT, random_table
from treesens.grammar.parsing.parser import parse

Treesens = Callable[..., Ran]


def rules_of(text: str) -> list[str]:
    """The constraints of a text, as a user would paste them."""
    return re.findall(r"^# rule: (.*?)  # ", text, re.MULTILINE)


def tables() -> dict[str, pd.DataFrame]:
    numbers = random_table(4).drop(columns="coarse")
    holes = random_table(5).drop(columns="coarse")
    holes.loc[::17, "end"] = np.nan
    scaled = random_table(6).drop(columns=["coarse", "near", "constant"])
    scaled = (scaled - scaled.min()) / (scaled.max() - scaled.min())
    iris = load_iris(as_frame=True).data.rename(columns=lambda name: name.replace(" (cm)", ""))
    return {"numbers": numbers, "holes": holes, "scaled": scaled.dropna(), "iris": iris}


def ask(folder: Path, frame: pd.DataFrame, treesens: Treesens) -> tuple[str, Ran]:
    """Learns from a frame, and counts the rows that satisfy domain and rules together, over a model of these columns."""
    frame.to_csv(folder / "d.csv", index=False)
    boosted(frame, np.arange(len(frame)) % 2, 3, path=folder / "m.json")
    assert treesens("learn", "rules", folder / "d.csv", "-o", folder / "rules.sens").code == 0
    text = (folder / "rules.sens").read_text()
    rules = rules_of(text)
    assert rules
    query = "query q:\n  count rows of d as a such that\n" + "".join(f"    {rule}\n" for rule in rules)
    (folder / "q.sens").write_text(f'model m from "m.json"\ndata d from "d.csv"\n{text}\n{query}')
    return text, treesens("check", folder / "q.sens", "--replay", "emulated")


@pytest.mark.parametrize("name", tables())
def test_every_row_satisfies_domain_and_rules(name: str, tmp_path: Path, treesens: Treesens) -> None:
    frame = tables()[name]
    text, ran = ask(tmp_path, frame, treesens)
    assert ran.code == 0, ran.err
    assert f"{len(frame)} of {len(frame)} rows" in ran.out, text
    assert treesens("range", tmp_path / "m.json", "--domain", tmp_path / "rules.sens").code == 0


@pytest.mark.skipif(not ADULT.exists(), reason="the shared tables are not here")
def test_every_row_of_adult_satisfies_domain_and_rules(tmp_path: Path, treesens: Treesens) -> None:
    frame = pd.read_csv(ADULT).drop(columns="label")
    _, ran = ask(tmp_path, frame, treesens)
    assert f"{len(frame)} of {len(frame)} rows" in ran.out, ran.err


def test_text_and_strange_names_are_read_back(tmp_path: Path, treesens: Treesens) -> None:
    rng = np.random.default_rng(0)
    job = rng.integers(0, 3, 500)
    frame = pd.DataFrame({
        "in # case; 'x'": np.array(["State gov", "none", "Self-emp #2"])[job],
        "feature": np.array(["x`y", "1e5", "ü"])[job],
        "many": [f"t{i}" for i in range(500)],
    })  # fmt: skip
    frame.to_csv(tmp_path / "t.csv", index=False)
    text = treesens("learn", "rules", tmp_path / "t.csv").out
    rules = re.findall(r"^# rule: (.*)$", text, re.MULTILINE)
    assert len(rules) == 3
    query = "query q:\n  find a such that\n" + "".join(f"    {rule}\n" for rule in rules)
    assert len(parse(text + query, "t.sens").declarations) == 3
    assert "# many: no domain" in text


def test_json_has_exceptions_by_row(tmp_path: Path, treesens: Treesens) -> None:
    frame = pd.DataFrame({"x": [0, 1] * 200, "y": [0, 1] * 200, "target": 1})
    frame.loc[7, "y"] = 0
    frame.to_csv(tmp_path / "t.csv", index=False)
    record = treesens(
        "learn", "rules", tmp_path / "t.csv", "--label", "target", "--exceptions", "0.01", "--json"
    ).record
    assert [rule["exceptions"] for rule in record["rules"]] == [[7]]
    assert [feature["feature"] for feature in record["features"]] == ["x", "y"]
    assert "1 exception: row 7" in record["text"]


def test_what_is_refused(tmp_path: Path, treesens: Treesens) -> None:
    (tmp_path / "t.csv").write_text("a`b,y\n" + "1,2\n" * 40)
    assert treesens("learn", "tricks", tmp_path / "t.csv").code == 1
    assert treesens("learn", "rules", tmp_path / "none.csv").code == 2
    assert treesens("learn", "rules", tmp_path / "t.csv", "--label", "z").code == 2
    assert treesens("learn", "rules", tmp_path / "t.csv", "--exceptions", "2").code == 1
    ran = treesens("learn", "rules", tmp_path / "t.csv")
    assert ran.code == 2
    assert "rename the column" in ran.err
