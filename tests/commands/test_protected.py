"""Protected features come first, and gates look at them; first files ask a question at once."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from tests.commands.conftest import Ran
from tests.corpus import regressed
from tests.extensions.studies.whole_numbers import xgboost_of_whole_numbers

Command = Callable[..., Ran]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    model, frame = xgboost_of_whole_numbers()
    model.save_model(tmp_path / "m.json")
    frame.assign(y=model.predict(frame)).to_csv(tmp_path / "d.csv", index=False)
    (tmp_path / "treesens.toml").write_text(
        'protected = ["f2"]\nclasses = {0 = "granted", 1 = "refused"}\nfavourable = 0\n'
    )
    return tmp_path


def audit(folder: Path, *more: str) -> tuple[str | Path, ...]:
    return ("audit", folder / "m.json", "--data", folder / "d.csv", "--label", "y", "--gap", "0.1", *more)


def test_the_audit_begins_with_what_is_protected(folder: Path, treesens: Command) -> None:
    done = treesens(*audit(folder, "--json"))
    assert done.record["results"][0]["varied"] == ["f2"]
    assert [one.get("protected") for one in done.record["results"]] == [True, None, None]
    assert done.record["meaning"]["classes"] == {"0": "granted", "1": "refused"}
    other = treesens(*audit(folder, "--json", "--protected", "f0")).record
    assert other["results"][0]["varied"] == ["f0"]
    table = treesens(*audit(folder)).out
    assert 0 < table.index("\nf2 (protected)") < table.index("\nf0 ")


def test_gates_look_at_protected_features_and_budgets(folder: Path, treesens: Command) -> None:
    rows = {one["varied"][0]: one["rows_flipped"] for one in treesens(*audit(folder, "--json")).record["results"]}
    assert min(rows.values()) > 0
    assert treesens(*audit(folder, "--fail-on", "protected")).code == 10
    left = treesens(*audit(folder, "--fail-on", "protected", "-v", "f0"))
    assert left.code == 1
    assert "no question varies `f2`\n  help: add the feature with -v" in left.err
    assert treesens(*audit(folder, "--fail-on", "protected", "-v", "f0", "-v", "f1,f2")).code in {0, 10}
    for spare, code in ((0, 0), (-1, 10)):
        done = treesens(*audit(folder, "--budget", f"f2={rows['f2'] + spare}"))
        assert done.code == code
        assert ("budget:" in done.err) is (code == 10)
    assert "`f9` was not tried" in treesens(*audit(folder, "--budget", "f9=0")).err
    assert treesens(*audit(folder, "--budget", "f2=-1")).code == 1


def test_a_diff_fails_on_what_appears_at_a_protected_feature(folder: Path, treesens: Command) -> None:
    xgboost = pytest.importorskip("xgboost")
    model, frame = xgboost_of_whole_numbers()
    plain = xgboost.XGBClassifier(n_estimators=12, max_depth=3, random_state=0)
    plain.fit(frame.assign(f2=0.0), model.predict(frame)).save_model(folder / "old.json")
    both = [folder / name for name in ("old.json", "m.json")]
    for first, second, word, code in (
        (*both, "protected", 10),
        (*both, "flips", 10),
        (*reversed(both), "protected", 0),
        (both[1], both[1], "flips", 0),
    ):
        more = ("--data", folder / "d.csv", "--label", "y", "--gap", "0.1", "--fail-on", word)
        assert treesens("diff", first, second, *more).code == code


def test_names_of_classes_stand_in_answers(folder: Path, treesens: Command) -> None:
    (folder / "q.sens").write_text(
        'model m from "m.json"\ndata d from "d.csv" label "y"\ndomain from d\nquery q: sensitive m to f2 gap 0.1\n'
    )
    out = treesens("check", folder / "q.sens").out
    assert "refused" in out
    assert "granted" in out
    prob = [float(x) for x in next(line for line in out.splitlines() if "→ prob" in line).split()[2:]]
    assert f"P(granted) {1 - prob[0]:.3g} (refused) → {1 - prob[1]:.3g} (granted)" in out


def test_first_files_ask_a_question_at_once(folder: Path, treesens: Command) -> None:
    (folder / "treesens.toml").unlink()
    assert treesens("init", folder / "m.json", folder / "d.csv", "--label", "y").code == 0
    assert all(line.startswith("#") or not line for line in (folder / "treesens.toml").read_text().splitlines())
    assert treesens("check", folder / "m.sens").code in {0, 10}
    again = treesens("init", folder / "m.json", folder / "d.csv", "--label", "y")
    assert again.code == 1
    assert "already exists" in again.err


def test_the_language_asks_about_each_of_them(folder: Path, treesens: Command) -> None:
    head = 'model m from "m.json"\ndata d from "d.csv" label "y"\ndomain from d\n'
    (folder / "q.sens").write_text(
        f"{head}query fair:\n  for each f in protected:\n    sensitive m to f gap 0.1 expect none\n"
    )
    done = treesens("check", folder / "q.sens", "--json")
    assert [one["query"] for one in done.record["results"]] == ["fair[f2]"]
    assert done.code == 10
    assert treesens("fmt", "--check", folder / "q.sens").code == 0


def test_a_first_file_has_amounts_as_the_table_writes_them(tmp_path: Path, treesens: Command) -> None:
    """28.3 is an amount with a decimal; a number that was scaled to [0, 1] is a whole number by its steps."""
    rng = np.random.default_rng(0)
    rows = pd.DataFrame(
        {
            "income": np.round(rng.uniform(0.3, 122.5, 400), 1),
            "age": (rng.integers(18, 91, 400) - 18) / 72,
            "rate": np.round(rng.uniform(0.7, 2.0, 400), 2),
        }
    )
    rows.loc[0], rows.loc[1] = (0.3, 0.0, 0.7), (122.5, 1.0, 2.0)
    regressed(rows, rows["income"] > 60, 3, 2, path=tmp_path / "m.json")
    rows.to_csv(tmp_path / "d.csv", index=False)
    assert treesens("init", tmp_path / "m.json", tmp_path / "d.csv").code == 0
    lines = (tmp_path / "m.sens").read_text().splitlines()
    assert "feature income: real in [0.29, 122.5]" in lines  # the float of 0.3 lies below it
    assert "feature age: integer in [0, 72] stored as [0, 1]" in lines
    assert any(re.fullmatch(r"feature rate: real in \[0\.\d+, 2\]", line) for line in lines)
    assert treesens("check", tmp_path / "m.sens").code in (0, 10)
