"""Reasons as letters: changes that are permitted, phrases by value and direction, and a letter per denial."""

from __future__ import annotations

import csv
import itertools
import re
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import treesens as ts
from tests.extensions.studies.grids import NAMES, two_classes
from treesens.cli import main
from treesens.errors import UsageError
from treesens.extensions.studies.report.letters import page

LIMITS: list[dict[str, Any]] = [
    {"fixed": ["q"]},
    {"direction": {"p": "up"}},
    {"direction": {"p": "down", "r": "up"}},
    {"permitted": {"p": (1, 3)}},
    {"permitted": {"q": {0, 5}}, "direction": {"r": "down"}},
    {"permitted": {"p": (2, 2)}, "fixed": ["r"], "direction": {"q": "up"}},
]


def allowed(limits: dict[str, Any], name: str, own: int) -> set[int]:
    """The values that a feature of a row may take."""
    values = set() if name in limits.get("fixed", ()) else set(range(6))
    way, listed = limits.get("direction", {}).get(name), limits.get("permitted", {}).get(name)
    if way is not None:
        values &= set(range(own, 6)) if way == "up" else set(range(own + 1))
    if listed is not None:
        values &= set(range(listed[0], listed[1] + 1)) if isinstance(listed, tuple) else listed
    return values | {own}


@pytest.mark.parametrize("limits", LIMITS, ids=str)
@pytest.mark.parametrize("kind", ["xgboost", "forest"])
def test_reasons_change_as_permitted(kind: str, limits: dict[str, Any]) -> None:
    trained = two_classes(kind)
    good = trained.classes == 1
    scores = trained.scores[..., -1] if trained.scores.ndim == 4 else trained.scores
    scores = np.log(scores / (1 - scores)) if kind == "xgboost" else scores
    found = ts.reasons(trained.estimator, trained.frame, favourable=trained.names[1], most=2, time_limit=60, **limits)
    suffice = set()
    for record in found.records:
        row = [int(v) for v in trained.frame.iloc[record["row"]]]
        may = [allowed(limits, name, own) for name, own in zip(NAMES, row, strict=True)]

        def helps(free: frozenset[str], row: list[int] = row, may: list[set[int]] = may) -> bool:
            values = [may[i] if NAMES[i] in free else {row[i]} for i in range(3)]
            return any(good[point] for point in itertools.product(*values))

        sets = [frozenset(s) for size in range(4) for s in itertools.combinations(NAMES, size)]
        fewest = min((len(s) for s in sets if helps(s)), default=None)
        reasons = {one["feature"]: one for one in record["reasons"]}
        suffice.add(record["suffice"])
        if record["suffice"] == "yes":
            assert helps(frozenset(reasons))
            assert not any(helps(frozenset(reasons) - {name}) for name in reasons)
            assert all(one["instead"] in may[NAMES.index(name)] for name, one in reasons.items())
            changed = [
                reasons[name]["instead"] if name in reasons else own for name, own in zip(NAMES, row, strict=True)
            ]
            assert good[tuple(changed)]
            for name, one in reasons.items():
                at = NAMES.index(name)
                reached = [scores[(*row[:at], value, *row[at + 1 :])] for value in may[at]]
                assert one["rise"] == pytest.approx(max(reached) - scores[tuple(row)], abs=1e-5)
            rises = [one["rise"] for one in record["reasons"]]
            assert rises == sorted(rises, reverse=True)
        else:
            assert record["suffice"] == "no"
            assert fewest is None or fewest > 2
            assert record["needed"] is None or 2 < record["needed"] <= fewest
    assert "yes" in suffice


def test_reasons_by_values_have_no_changes_to_limit() -> None:
    trained = two_classes("xgboost")
    with pytest.raises(UsageError, match="no changes to limit"):
        ts.reasons(trained.estimator, trained.frame, favourable=1, way="values", direction={"p": "up"})
    with pytest.raises(UsageError, match="no feature `z`"):
        ts.reasons(trained.estimator, trained.frame, favourable=1, fixed=["z"])


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--direction", "x=up,x=down"], "--direction: `x` is both `up` and `down`"),
        (["--permitted", "x=0..1", "--permitted", "x=a|b"], "--permitted: `x` is both `0..1` and `a|b`"),
    ],
)
def test_a_feature_has_one_limit_of_a_kind(words: list[str], said: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(*words) == 1
    assert said in capsys.readouterr().err


@pytest.fixture
def applicants(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """XGBoost with a text category, whose classes have names; the table names its customers."""
    pd, xgb = pytest.importorskip("pandas"), pytest.importorskip("xgboost")
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(4)
    history = rng.choice(["critical", "none taken", "paid, duly"], 200)
    frame = pd.DataFrame({"history": pd.Categorical(history), "debt, %": rng.integers(0, 100, 200)})
    bad = (frame["debt, %"] + 40 * (history == "none taken") + rng.integers(0, 9, 200) > 60).astype(int)
    model = xgb.XGBClassifier(n_estimators=10, max_depth=3, enable_categorical=True, n_jobs=1).fit(frame, bad)
    model.get_booster().save_model("m.json")
    frame.assign(**{"customer <no.>": [f"C-{i} & co" for i in range(200)]}).to_csv("d.csv", index=False)
    Path("treesens.toml").write_text('classes = {0 = "granted", 1 = "refused"}\nfavourable = "granted"\n')
    Path("codes.toml").write_text(
        '["debt, %"]\nphrase = "Debt"\ncode = 7\n[["debt, %".when]]\ninstead = "lower"\nphrase = "Debt too high"\n'
        '[history]\nphrase = "History"\n'
        '[[history.when]]\nvalues = ["none taken"]\nphrase = "No <credit> history"\ncode = "H1"\n'
    )
    predicted = model.predict(frame)
    frame.assign(bad=predicted).to_pickle("predicted.pickle")
    return tmp_path


def run(*words: str) -> int:
    with pytest.raises(SystemExit) as ended:
        main(["reasons", "m.json", "--data", "d.csv", *words])
    return int(ended.value.code or 0)


def test_a_letter_for_each_denial(applicants: Path, capsys: pytest.CaptureFixture[str]) -> None:
    import pandas as pd

    more = ["--codes", "codes.toml", "--out", "all.csv", "--letters", "letters", "--reference", "customer <no.>"]
    assert run(*more, "--date", "2026-01-02") == 0
    assert "favourable: class 0 (granted)" in capsys.readouterr().out
    predicted = pd.read_pickle("predicted.pickle")
    denied = np.flatnonzero(predicted["bad"] == 1).tolist()
    assert sorted(p.name for p in Path("letters").iterdir()) == sorted(
        f"row-{row}.{kind}" for row in denied for kind in ("txt", "html")
    )
    with Path("all.csv").open(newline="") as file:
        lines = list(csv.DictReader(file))
    assert {line["decision"] for line in lines} == {"refused"}
    phrases = set()
    for row in denied:
        mine = [line for line in lines if line["row"] == str(row)]
        text = Path(f"letters/row-{row}.txt").read_text()
        assert text.startswith("2026-01-02\n")
        assert f"C-{row} & co" in text
        assert "refused" in text
        listed = []
        for line in mine:
            value = predicted.iloc[row][line["feature"]]
            if line["feature"] == "history":
                expected = ("No <credit> history", "H1") if value == "none taken" else ("History", "")
            else:
                expected = ("Debt too high", "7") if float(line["instead"]) < value else ("Debt", "7")
            assert (line["phrase"], line["code"]) == expected
            listed.append(f"{len(listed) + 1}. {expected[0]}" + (f" ({expected[1]})" if expected[1] else ""))
        assert "\n".join(listed) in text
        page = Path(f"letters/row-{row}.html").read_text()
        assert page.count("<li>") == len(mine)
        assert "<credit>" not in page
        assert "C-" + str(row) + " &amp; co" in page
        phrases |= {line["phrase"] for line in mine}
    assert {"Debt too high", "No <credit> history"} <= phrases


def test_a_template_and_permitted_changes(applicants: Path, capsys: pytest.CaptureFixture[str]) -> None:
    Path("letter.txt").write_text("Dear {reference},\nnot {favourable}, but {decision}.\n\n{reasons}\n\nRights: ...\n")
    assert run("--letters", "out", "--letter", "letter.txt", "--fixed", '"debt, %"', "--quiet") in (0, 5)
    capsys.readouterr()
    texts = [path.read_text() for path in Path("out").glob("*.txt")]
    assert texts
    for text in texts:
        assert re.fullmatch(r"Dear \d+,\nnot granted, but refused\.\n\n1\. history\n\nRights: \.\.\.\n", text)


def test_letters_fill_an_existing_folder_and_replace_no_file(
    applicants: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    Path("out").mkdir()
    assert run("--letters", "out", "--quiet") == run("--letters", "out", "--quiet") == 0
    assert list(Path("out").glob("row-*.txt"))
    assert "earlier run" not in capsys.readouterr().err
    count = len(list(Path("out").iterdir()))
    first, second = sorted({int(p.stem.removeprefix("row-")) for p in Path("out").iterdir()})[:2]
    Path("out/note.txt").write_text("mine")
    assert run("--letters", "out", "--quiet", "--rows", f"{first},{second}") == 0
    assert f"out: {count - 4} letter files of an earlier run, e.g. row-" in capsys.readouterr().err
    assert len(list(Path("out").iterdir())) == count + 1
    Path("note.txt").write_text("mine")
    assert run("--letters", "note.txt") == 1
    assert "internal error" not in capsys.readouterr().err
    assert Path("note.txt").read_text() == "mine"


def test_numbers_of_a_template_are_kept() -> None:
    shown = page("1. Decision\n\n2. Reasons\n\n1. Debt\n2. Income\n\n7. Rights", "Row 1")
    parts = [
        "<ol><li>Decision</li></ol>",
        "<p>2. Reasons</p>",
        "<ol><li>Debt</li><li>Income</li></ol>",
        "<p>7. Rights</p>",
    ]
    assert "\n".join(parts) in shown


@pytest.mark.parametrize("known", ["C-", ""])
def test_a_denial_without_a_reference_has_no_letter(
    known: str, applicants: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    import pandas as pd

    denied = np.flatnonzero(pd.read_pickle("predicted.pickle")["bad"] == 1).tolist()
    frame = pd.read_csv("d.csv")
    frame.assign(ref=[None if row == denied[0] else f"{known}{row}" for row in range(len(frame))]).to_csv("d.csv")
    assert run("--letters", "out", "--reference", "ref") == 0
    assert f"row {denied[0]}: no letter, since its reference is missing" in capsys.readouterr().err
    assert {path.stem for path in Path("out").iterdir()} == {f"row-{row}" for row in denied[1:]}
    assert f"{known}{denied[1]}\n" in Path(f"out/row-{denied[1]}.txt").read_text()


def test_denials_without_reasons_have_no_letter(applicants: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run("--letters", "out", "--protected", '"debt, %",history')
    assert "no letter, since no reasons are known" in " ".join(capsys.readouterr().err.split())
    assert list(Path("out").iterdir()) == []


@pytest.mark.skipif(shutil.which("chromium") is None, reason="needs Chromium")
def test_letters_are_printed(applicants: Path, capsys: pytest.CaptureFixture[str]) -> None:
    import pandas as pd

    bad = pd.read_pickle("predicted.pickle")["bad"]
    row = int(np.flatnonzero(bad == 1)[0])
    assert run("--letters", "out", "--rows", str(row), "--pdf", "--date", "2026-01-02") == 0
    capsys.readouterr()
    assert Path(f"out/row-{row}.pdf").read_bytes().startswith(b"%PDF")


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--reference", "customer <no.>"], "--reference needs letters"),
        (["--letters", "out", "--reference", "customer"], "did you mean `customer <no.>`"),
        (["--letters", "out", "--date", "tomorrow"], "is not a date"),
        (["--letters", "out", "--letter", "bad.txt"], "unknown field `{reason}`"),
        (["--letters", "out", "--letter", "none.txt"], "the letter has no reasons"),
        (["--letters", "out", "--letter", "missing.txt"], "cannot be read"),
        (["--codes", "when.toml"], "`history` has no value `none`"),
        (["--codes", "side.toml"], "categories have no order"),
        (["--codes", "empty.toml"], "has no condition"),
    ],
)
def test_mistakes_are_found_before_the_work(
    words: list[str], message: str, applicants: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    Path("bad.txt").write_text("{reason}")
    Path("none.txt").write_text("Dear applicant")
    head = '["*"]\nphrase = "x"\n[history]\nphrase = "y"\n[[history.when]]\nphrase = "z"\n'
    Path("when.toml").write_text(head + 'values = ["none"]\n')
    Path("side.toml").write_text(head + 'instead = "lower"\n')
    Path("empty.toml").write_text(head)
    assert run(*words) in (1, 2)
    assert message in " ".join(capsys.readouterr().err.split())
    assert list(Path("out").glob("*")) == []
