"""Studies of decisions: outcomes by the plainest reading of the library's own probabilities, on every input of a small grid."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from click.testing import CliRunner

import treesens as ts
from tests.binder.test_decisions import GRID, NAMES, credit, model
from treesens.errors import TreesensError, UsageError
from treesens.extensions.studies.registry import command_of

__all__ = ["model"]  # the fixture

OUTCOMES = ("approve", "refer", "decline")
POLICY = """model other from "other.json"
feature x: integer in [0, 3]
feature y: integer in [0, 3]
feature z: integer in [0, 3]
decision credit of p in other:
  approve when prob(p) >= 0.7 and p.z >= 1
  refer when prob(p) >= 0.4 or p.x = 3
  approve when p.y = 0 and p.z = 0
  else decline
"""


@pytest.fixture
def policy(tmp_path: Path) -> Path:
    place = tmp_path / "policy.sens"
    place.write_text(POLICY)
    return place


def outcomes_of(model: Any) -> pd.Series:
    shown = model.predict_proba(GRID)[:, 1]
    return pd.Series([credit(p, row) for p, row in zip(shown, GRID.itertuples(), strict=True)])


def reached(truth: pd.Series, varied: tuple[str, ...]) -> list[set[str]]:
    """The outcomes that every input of the grid reaches by other values of the varied features."""
    kept = [name for name in NAMES if name not in varied]
    keys = list(map(tuple, GRID[kept].to_numpy().tolist()))
    found: dict[tuple[float, ...], set[str]] = {key: set() for key in keys}
    for key, outcome in zip(keys, truth, strict=True):
        found[key].add(outcome)
    return [found[key] for key in keys]


def test_an_audit_counts_the_rows_of_every_two_outcomes(model: Any, policy: Path) -> None:
    sets, truth = [("x",), ("y",), ("z",), ("x", "y")], outcomes_of(model)
    found = ts.audit(model, GRID, decision=policy, vary=[list(s) for s in sets])
    assert len(found.records) == 3 * len(sets)
    seen = set()
    for record, (varied, (one, other)) in zip(
        found.records, itertools.product(sets, itertools.combinations(OUTCOMES, 2)), strict=True
    ):
        assert (tuple(record["varied"]), record["decision"], tuple(record["outcomes"])) == (
            varied,
            "credit",
            (one, other),
        )
        flips = [n for n, outcomes in enumerate(reached(truth, varied)) if {one, other} <= outcomes]
        assert (sorted(record["flipped_rows"]), record["rows_complete"]) == (flips, True)
        assert record["rows_flipped_down"] == sum(truth[n] == one for n in flips)
        assert record["rows_flipped_up"] == sum(truth[n] == other for n in flips)
        assert record["verdict"] == ("found" if flips else "none")
        seen.add(record["verdict"])
        if flips:
            assert [record["scores"][point]["decision"] for point in "ab"] == [one, other]
    assert seen == {"found", "none"}
    assert found.frame()["outcomes"][0] == "approve / refer"


NEVER = {
    "outside of the domain": "  decline when p.x > 5\n",
    "two bounds": "  decline when p.x >= 2 and p.x <= 1\n",
    "after its opposite": "  approve when p.x <= 2\n  approve when p.x >= 3\n  decline when p.x <= 3\n",
    "a number that is not missing": "  decline when missing(p.y)\n",
}


@pytest.mark.parametrize("cases", NEVER.values(), ids=NEVER)
def test_an_outcome_that_no_input_has_loses_no_answer(model: Any, tmp_path: Path, cases: str) -> None:
    """`decline` is never met: of three pairs of outcomes two are proved to have no inputs, and the third one is as it is."""
    policy = tmp_path / "policy.sens"
    rest = "" if "p.x <= 2" in cases else "  approve when prob(p) >= 0.5\n"
    policy.write_text(POLICY.split("decision", maxsplit=1)[0] + f"decision credit of p:\n{cases}{rest}  else refer\n")
    shown = model.predict_proba(GRID)[:, 1]
    truth = pd.Series(["approve" if not rest or p >= 0.5 else "refer" for p in shown])
    audit = ts.audit(model, GRID, decision=policy, domain=policy, vary=["x", "z"])
    for record in audit.records:
        flips = sum(set(record["outcomes"]) <= outcomes for outcomes in reached(truth, tuple(record["varied"])))
        assert (record["verdict"], record["rows_flipped"]) == ("found" if flips else "none", flips)
    changed = ts.diff(model, model, GRID, decision=policy).outcomes
    assert changed is not None
    assert {one["verdict"] for one in changed} == {"none"}
    for row in ts.why(model, GRID, [0, 40], decision=policy).records:
        assert row["class"] == truth[row["row"]]
        assert row["sufficient"] is not None
    declared = policy.read_text().replace("of p:", "of p in other:")
    asked = declared + "query q: find a in other such that decision(a) = decline\n"
    assert ts.check_text(asked, models={"other.json": model})["q"].verdict == "none"


def test_what_no_row_reaches_is_searched_for(model: Any, policy: Path) -> None:
    truth = outcomes_of(model)
    rows = GRID.iloc[[0, 21]]
    found = ts.audit(model, rows, decision=policy, domain=policy, vary=["x", "y", "z"])
    searched = 0
    for record in found.records:
        pairs = any(set(record["outcomes"]) <= outcomes for outcomes in reached(truth, tuple(record["varied"])))
        assert record["verdict"] == ("found" if pairs else "none")
        searched += record["verdict"] == "found" and record["rows_flipped"] == 0
        if record["verdict"] == "found":
            assert record["nearest_row"]["index"] in (0, 1)
    assert searched > 0


def test_a_reason_decides_the_outcome_whatever_the_rest_is(model: Any, policy: Path) -> None:
    truth = outcomes_of(model)
    found = ts.why(model, GRID, list(range(0, 64, 5)), decision=policy)
    assert len(found.records) == 13
    for record in found.records:
        row, outcome = record["row"], record["class"]
        assert (record["decision"], outcome) == ("credit", truth[row])

        def agreeing(names: list[str], row: int = row) -> set[str]:
            """The outcomes of all inputs that agree with the row on these features."""
            return set(truth[(GRID[names] == GRID.loc[row, names]).all(axis=1)])

        reason = list(record["sufficient"])
        assert agreeing(reason) == {outcome}
        for name in reason:
            assert len(agreeing([n for n in reason if n != name])) > 1
        if record["contrast"] is not None:
            assert len(agreeing([n for n in NAMES if n not in record["contrast"]])) > 1


@pytest.mark.parametrize(
    ("option", "words"),
    [
        ({"gap": 0.1}, "about scores"),
        ({"margin": 1}, "about scores"),
        ({"threshold": 0.3}, "about scores"),
        ({"classes": ["1"]}, "about scores"),
        ({"measure": "uniform"}, 'measure="uniform" measures regions of one score'),
        ({"repair_gap": 0.1, "label": "label"}, "`repair_gap` moves one score"),
    ],
)
def test_options_about_scores_are_refused_by_name(model: Any, policy: Path, option: dict[str, Any], words: str) -> None:
    with pytest.raises(UsageError, match=words) as told:
        ts.audit(model, GRID.assign(label=0) if "label" in option else GRID, decision=policy, **option)
    assert told.value.remedy


def test_an_audit_tells_the_share_of_rows_and_what_is_left_of_typical_inputs(model: Any, policy: Path) -> None:
    """Which inputs are typical a question about each of them says; which outcomes they have the library's probabilities."""
    table, truth = GRID[(GRID.x + GRID.y) < 4], outcomes_of(model)
    text = 'model m from "m"\ndata d from "d"\n' + "".join(f"feature {n}: integer in [0, 3]\n" for n in NAMES)
    for n, row in GRID.iterrows():
        fixed = "; ".join(f"a.{name} = {row[name]}" for name in NAMES)
        text += f"query q{n}: find a such that {fixed}; a typical of d at 60 %\n"
    answers = ts.check_text(text, models={"m": model}, data={"d": table})
    typical = pd.Series([str(answers[f"q{n}"].verdict) == "found" for n in GRID.index])
    assert 0 < typical.sum() < len(GRID)
    verdicts = set()
    found = ts.audit(model, table, decision=policy, vary=[["x"], ["z"]], measure="rows", typical=60)
    for record in found.records:
        share = record["share"]
        assert (share["measure"], share["closed"]) == ("rows", True)
        assert share["lower"] == share["upper"] == record["rows_flipped"] / record["rows"]
        kept = [name for name in NAMES if name not in record["varied"]]
        inside = pd.concat([GRID[kept], truth.rename("outcome")], axis=1)[typical]
        there = any(set(record["outcomes"]) <= set(part.outcome) for _, part in inside.groupby(kept))
        part = record["typical"]
        assert part["verdict"] == ("found" if there else "none")
        verdicts.add((record["verdict"], part["verdict"]))
        for point in (part["points"] or {}).values():
            assert typical[(pd.Series(point) == GRID).all(axis=1)].all()
    assert ("found", "none") in verdicts
    assert ("found", "found") in verdicts


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("feature x: integer in [0, 3]\n", "declares no decision"),
        (POLICY + POLICY[POLICY.index("decision") :].replace("credit", "other"), "`credit`, `other`"),
        ("decision d of p: yes when prob(p) >= 0.5 else yes\n", "only the outcome `yes`"),
        ("decision d of p: yes when prob(p) >= 0.5 and p.w = 1 else no\n", "no feature `w`"),
        ("decision d of p: yes when dist(p, row 1 of people) <= 2 else no\n", "people"),
    ],
)
def test_a_file_without_one_usable_decision_is_refused(model: Any, tmp_path: Path, text: str, words: str) -> None:
    place = tmp_path / "policy.sens"
    place.write_text(text)
    with pytest.raises(TreesensError, match=words):
        ts.audit(model, GRID, decision=place)


def test_a_diff_says_which_outcomes_become_which(model: Any, policy: Path) -> None:
    other = type(model)(n_estimators=3, num_leaves=4, min_child_samples=5, n_jobs=1, verbose=-1)
    other.fit(GRID, (GRID.x > 1).astype(int))
    old, new = outcomes_of(model), outcomes_of(other)
    found = ts.diff(model, other, GRID, decision=policy)
    assert [(one["old"], one["new"]) for one in found.outcomes] == list(itertools.permutations(OUTCOMES, 2))
    seen = set()
    for one in found.outcomes:
        changed = GRID.index[(old == one["old"]) & (new == one["new"])].tolist()
        assert (one["decision"], one["rows"], one["rows_changed"], one["changed_rows"]) == (
            "credit",
            len(GRID),
            len(changed),
            changed,
        )
        assert one["verdict"] == ("found" if changed else "none")
        if changed:
            values = [float(one["input"][name]) for name in NAMES]
            assert GRID.index[(GRID[list(NAMES)] == values).all(axis=1)][0] in changed
        seen.add(one["verdict"])
    assert seen == {"found", "none"}
    same = ts.diff(model, model, GRID, decision=policy)
    assert {one["verdict"] for one in same.outcomes} == {"none"}
    assert ts.diff(model, other, GRID).outcomes is None


def test_the_command_fails_on_outcomes_that_change(model: Any, policy: Path, tmp_path: Path) -> None:
    other = type(model)(n_estimators=3, num_leaves=4, min_child_samples=5, n_jobs=1, verbose=-1)
    other.fit(GRID, (GRID.x > 1).astype(int))
    files = [str(tmp_path / name) for name in ("old.txt", "new.txt")]
    for one, file in zip((model, other), files, strict=True):
        one.booster_.save_model(file)
    GRID.to_csv(tmp_path / "rows.csv", index=False)
    given = ["--data", str(tmp_path / "rows.csv"), "--decision", str(policy), "--fail-on", "outcomes"]
    codes = [
        CliRunner().invoke(command_of("diff"), [files[0], new, *given], standalone_mode=False).return_value
        for new in (files[1], files[0])
    ]
    assert codes == [10, 0]


def test_repair_refuses_a_decision_by_name(model: Any, policy: Path, tmp_path: Path) -> None:
    rows = GRID.assign(label=outcomes_of(model) == "approve")
    with pytest.raises(UsageError, match="credit") as told:
        ts.repair(model, rows, vary=["x"], label="label", gap=0.1, decision=policy, output=tmp_path / "out.txt")
    assert "threshold" in (told.value.remedy or "")
