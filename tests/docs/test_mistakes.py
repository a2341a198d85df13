"""A table of typical mistakes (mistakes.toml): each message names the cause, the place and the remedy."""

from __future__ import annotations

import contextlib
import io
import shlex
import tomllib
from pathlib import Path
from typing import Any

import pytest

import treesens as ts
from treesens.cli import main

TABLE: dict[str, list[dict[str, str]]] = tomllib.loads(Path(__file__).with_name("mistakes.toml").read_text("utf-8"))
NAMED = ("cause", "place", "remedy")
HEAD = 'model m from "model.json"\ndata d from "applicants.csv"\ndomain from d\nquery q:\n  find a, b such that\n    '
QUESTION = f"{HEAD}a = b except sex\n  maximize margin(a) - margin(b)\n"


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """A model, its table and a question in a folder."""
    np, pd = pytest.importorskip("numpy"), pytest.importorskip("pandas")
    xgboost = pytest.importorskip("xgboost")
    path = tmp_path_factory.mktemp("mistakes")
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(
        {
            "sex": pd.Categorical(rng.choice(["female", "male"], 200)),
            "age": np.r_[18, 79, rng.integers(18, 80, 198)],
            "income": rng.uniform(0.5, 90, 200).round(3),
            "region": pd.Categorical(rng.choice(["East", "North", "South", "West"], 200)),
        }
    )
    score = frame.income + frame.age + 20 * (frame.sex == "male") + 9 * (frame.region == "North")
    model = xgboost.XGBClassifier(n_estimators=5, max_depth=3, enable_categorical=True).fit(frame, score > 105)
    model.save_model(path / "model.json")
    frame = frame.assign(Decision=(score > 105).astype(int))
    frame.to_csv(path / "applicants.csv", index=False)
    (path / "q.sens").write_text(QUESTION, "utf-8")
    return {"model": model, "frame": frame, "path": path, "question": QUESTION, "ts": ts}


def _told(kind: str, entry: dict[str, str], world: dict[str, Any]) -> str:
    """The message about a mistake; a mistake without a message fails."""
    if kind == "python":
        with pytest.raises((ts.errors.TreesensError, AttributeError, KeyError, TypeError)) as raised:
            eval(entry["python"], dict(world))
        return str(raised.value)
    words = shlex.split(entry.get("command", "check bad/q.sens"))
    if kind == "sens":
        text = entry.get("file") or HEAD + entry.get("where", f"a = b except sex\n  {entry.get('tail')}")
        Path("bad/q.sens").write_text(text, "utf-8")
    told = io.StringIO()
    with pytest.raises(SystemExit) as left, contextlib.redirect_stderr(told), contextlib.redirect_stdout(io.StringIO()):
        main(words)
    assert left.value.code not in (0, 5, 6, 10), (entry, told.getvalue())
    assert "Traceback" not in told.getvalue()
    return told.getvalue()


def test_messages_name_the_cause_the_place_and_the_remedy(
    world: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """At least 95 of 100 messages name all three."""
    monkeypatch.chdir(world["path"])
    Path("bad").mkdir()
    for name in ("model.json", "applicants.csv"):
        Path("bad", name).write_bytes(Path(name).read_bytes())
    lacking = []
    for kind, entries in TABLE.items():
        for entry in entries:
            told = _told(kind, entry, world)
            missing = [name for name in NAMED if entry[name] not in told]
            if missing:
                lacking.append(f"{entry}\n  lacks {', '.join(missing)}:\n{told}")
    number = sum(map(len, TABLE.values()))
    assert len(lacking) <= number // 20, "\n".join([f"{len(lacking)} of {number}", *lacking])


def test_the_table_has_enough_of_each_kind() -> None:
    assert {kind: len(entries) for kind, entries in TABLE.items()} | {"sens": 40, "command": 30, "python": 30} == {
        "sens": 40, "command": 30, "python": 30
    }  # fmt: skip
