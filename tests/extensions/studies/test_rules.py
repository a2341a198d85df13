"""Mined rules: each holds in pandas on all rows but its exceptions, planted ones are found, and followers are left out."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_iris, load_wine

import treesens as ts
from tests.data.settings import BENCH, needs_bench
from treesens.data.tables import read_table
from treesens.errors import UsageError
from treesens.extensions.studies.learn_search import Mined, Rule, RuleOptions, mine

ADULT = BENCH / "data" / "adult" / "train.csv"


def broken(rule: Rule, frame: pd.DataFrame) -> tuple[int, list[int]]:
    """Support and exceptions by pandas, from the meaning of a rule."""
    left, right = frame[rule.left.column], frame[rule.right.column]
    if rule.kind in ("order", "equal"):
        both = left.notna() & right.notna()
        holds = (operator.le if rule.kind == "order" else operator.eq)(left, right)
        return int(both.sum()), frame.index[both & ~holds].tolist()
    premise, conclusion = left.isin(rule.left.values), right.isin(rule.right.values)
    if rule.kind == "equivalence":
        return int((premise | conclusion).sum()), frame.index[premise != conclusion].tolist()
    return int(premise.sum()), frame.index[premise & ~conclusion].tolist()


def random_table(seed: int) -> pd.DataFrame:
    """Columns of all kinds, dependent on each other in several ways, some with noise and holes."""
    rng = np.random.default_rng(seed)
    rows = int(rng.integers(200, 1500))
    kind = rng.integers(0, 5, rows)
    frame = pd.DataFrame({
        "kind": kind,
        "code": (kind * 3 + 1) / 10,
        "coarse": np.array(["low", "low", "mid", "high", "high"], dtype=object)[kind],
        "free": rng.integers(0, 3, rows),
        "constant": 1,
        "start": np.round(rng.normal(10, 3, rows), 2),
    })  # fmt: skip
    frame["end"] = frame["start"] + np.round(rng.exponential(2, rows), 2)
    frame["last"] = frame["end"] + rng.integers(0, 2, rows)
    frame["copy"] = frame["start"]
    frame["near"] = np.where(rng.random(rows) < 0.01, rng.integers(0, 5, rows), kind)
    frame["flag"] = ((kind == 2) & (rng.random(rows) < 0.8)).astype(int)
    for level in range(3):
        frame[f"is_{level}"] = (frame["free"] == level).astype(int)
    for column in rng.choice(["near", "end", "coarse"], 1):
        frame.loc[rng.random(rows) < 0.03, column] = None if column == "coarse" else np.nan
    return frame


@pytest.mark.parametrize("share", [0.0, 0.02, 0.1])
@pytest.mark.parametrize("seed", range(8))
def test_rules_hold_but_for_their_exceptions(seed: int, share: float) -> None:
    frame = random_table(seed)
    mined = mine(read_table(frame), RuleOptions(share))
    assert len(mined.rules) > 5
    for rule in mined.rules:
        assert (rule.support, rule.exceptions.tolist()) == broken(rule, frame), rule
        assert len(rule.exceptions) <= share * rule.support
        assert rule.dependency or rule.support >= max(30, 0.01 * len(frame))
    for group in mined.one_hot:
        assert (frame[list(group)].sum(axis=1) == 1).all()


def kinds(mined: Mined) -> set[tuple[str, str, str]]:
    return {(rule.kind, rule.left.column, rule.right.column) for rule in mined.rules}


def test_planted_rules_are_found_once() -> None:
    frame = random_table(3).drop(columns=["near", "coarse"]).dropna().reset_index(drop=True)
    mined = mine(read_table(frame))
    assert mined.one_hot == (("is_0", "is_1", "is_2"),)
    found = kinds(mined)
    assert {("equivalence", "kind", "code"), ("order", "start", "end"), ("order", "end", "last")} <= found
    assert ("equal", "start", "copy") in found
    assert not [rule for rule in mined.rules if "constant" in (rule.left.column, rule.right.column)]
    assert ("order", "start", "last") not in found, "it follows over `end`"
    assert not [rule for rule in mined.rules if {rule.left.column, rule.right.column} == {"code", "flag"}], (
        "a copy of `kind`"
    )
    assert [r.right.values for r in mined.rules if (r.left.column, r.right.column) == ("flag", "kind")] == [(2.0,)]


def test_independent_columns_have_no_rules() -> None:
    rng = np.random.default_rng(1)
    frame = pd.DataFrame(rng.integers(0, 4, (2000, 12)), columns=[f"c{i}" for i in range(12)])
    assert not mine(read_table(frame)).rules


def test_what_follows_over_a_third_value_is_left_out() -> None:
    rng = np.random.default_rng(2)
    inner = rng.random(3000) < 0.1
    middle = inner | (rng.random(3000) < 0.2)
    outer = middle | (rng.random(3000) < 0.3)
    frame = pd.DataFrame({"inner": inner, "outer": outer, "middle": middle}).astype(int)
    pairs = sorted(sorted(rule["columns"]) for rule in ts.learn_rules(frame)["rules"])
    assert pairs == [["inner", "middle"], ["middle", "outer"]]


@pytest.mark.parametrize(("load", "label"), [(load_iris, "target"), (load_wine, "target")])
def test_bundled_tables(load: Callable[..., Any], label: str) -> None:
    frame = load(as_frame=True).frame
    mined = mine(read_table(frame, label=label), RuleOptions(0.05))
    assert all((r.support, r.exceptions.tolist()) == broken(r, frame) for r in mined.rules)
    records = ts.learn_rules(frame, label, exceptions=0.05)["rules"]
    assert [(r["support"], r["exceptions"]) for r in records] == [broken(r, frame) for r in mined.rules]
    assert label not in {side.column for r in mined.rules for side in (r.left, r.right)}
    if load is load_iris:
        assert ("order", "petal length (cm)", "sepal length (cm)") in kinds(mined)


@needs_bench
def test_the_known_rules_of_adult() -> None:
    frame = pd.read_csv(ADULT)
    mined = mine(read_table(ADULT, label="label"))
    found = [rule for rule in mined.rules if rule.kind == "equivalence"]
    assert {(r.left.column, r.right.column) for r in found} == {("education", "education-num")}
    assert len(found) == 16
    assert sum(r.support for r in found) == len(frame)
    loose = mine(read_table(ADULT, label="label"), RuleOptions(0.001))
    husband = [r for r in loose.rules if r.left.column == "relationship" and r.right.column == "sex"]
    said = {(r.left.values, r.right.values, len(r.exceptions)) for r in husband}
    assert said == {((0.0,), (1.0,), 1), ((1.0,), (0.0,), 1)}, "husband implies male, wife female, each but for one row"
    for rule in (*mined.rules, *loose.rules):
        assert (rule.support, rule.exceptions.tolist()) == broken(rule, frame)


def test_a_share_that_is_none_is_refused() -> None:
    with pytest.raises(UsageError, match=r"from 0 to 0\.5"):
        ts.learn_rules(pd.DataFrame({"x": [1, 2]}), exceptions=1.5)


@pytest.mark.parametrize("seed", range(20))
def test_rules_that_are_left_out_follow_from_those_that_are_kept(seed: int) -> None:
    """Every combination of values that the kept rules allow also obeys every strong exact implication of the table."""
    rng = np.random.default_rng(seed)
    base = rng.integers(0, 3, 2000)
    one = (base == 1) & (rng.random(2000) < 0.7)
    two = one | (rng.random(2000) < 0.4)
    three = np.where(two, rng.integers(0, 2, 2000), rng.integers(0, 3, 2000))
    columns = {"base": base, "one": one, "two": two, "three": three, "twin": base + 5, "some": base > 0}
    frame = pd.DataFrame(columns).astype(float)[list(rng.permutation(list(columns)))]
    frame = frame.sample(frac=1, random_state=seed).reset_index(drop=True)
    every = pd.MultiIndex.from_product([sorted(frame[c].unique()) for c in frame], names=list(frame)).to_frame(
        index=False
    )
    for rule in mine(read_table(frame)).rules:
        every = every.drop(index=broken(rule, every)[1]).reset_index(drop=True)
    for x, y in [(x, y) for x in frame for y in frame if x != y]:
        for value in frame[x].unique():
            seen = frame.loc[frame[x] == value, y]
            if seen.nunique() == 1 and len(seen) * (frame[y] != seen.iloc[0]).mean() > 40:
                assert set(every.loc[every[x] == value, y]) <= set(seen), (x, value, y)
