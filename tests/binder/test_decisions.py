"""Decisions: the first case that holds, by the plainest reading, on every input of a small grid; mistakes name their place."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pandas as pd
import pytest

import treesens as ts
from treesens.compiler.base.diagnostics import DiagnosticsError

NAMES = ("x", "y", "z")
GRID = pd.DataFrame(list(itertools.product(range(4), repeat=3)), columns=NAMES).astype(float)


@pytest.fixture(scope="module")
def model() -> Any:
    from lightgbm import LGBMClassifier

    random = np.random.default_rng(2)
    rows = pd.DataFrame(random.integers(0, 4, (300, 3)), columns=NAMES).astype(float)
    label = (rows.x + (rows.y - 1.5).abs() + random.normal(0, 1, 300) > 2.5).astype(int)
    return LGBMClassifier(n_estimators=8, num_leaves=5, min_child_samples=5, n_jobs=1, verbose=-1).fit(rows, label)


DECISIONS = """
decision credit of p:
  approve when prob(p) >= 0.7 and p.z >= 1
  refer when prob(p) >= 0.4 or p.x = 3
  approve when p.y = 0 and p.z = 0
  else decline
decision strict of one in m: approve when prob(one) > 0.6 and not one.y = 2 else decline
"""


def credit(p: float, row: Any) -> str:
    if p >= 0.7 and row.z >= 1:
        return "approve"
    if p >= 0.4 or row.x == 3:
        return "refer"
    return "approve" if row.y == 0 and row.z == 0 else "decline"


def strict(p: float, row: Any) -> str:
    return "approve" if p > 0.6 and row.y != 2 else "decline"


def decided(model: Any) -> pd.DataFrame:
    """What plain Python makes of the library's own probabilities."""
    shown = model.predict_proba(GRID)[:, 1]
    rows = list(GRID.itertuples())
    return pd.DataFrame({f.__name__: [f(p, r) for p, r in zip(shown, rows, strict=True)] for f in (credit, strict)})


CONSTRAINTS = {
    "decision(a, credit) = approve": lambda d: d.credit == "approve",
    "decision(a, credit) != approve": lambda d: d.credit != "approve",
    "decision(a, credit) = refer": lambda d: d.credit == "refer",
    "not decision(a, credit) = decline": lambda d: d.credit != "decline",
    "decision(a, credit) in {approve, decline}": lambda d: d.credit != "refer",
    "decision(a, credit) not in {approve, decline}": lambda d: d.credit == "refer",
    "decision(a, credit) in {approve, refer, decline}": lambda d: d.credit != "",
    "decision(a, credit) != decision(a, strict)": lambda d: d.credit != d.strict,
    "decision(a, strict) = decision(a, credit)": lambda d: d.credit == d.strict,
    "decision(a, credit) = refer implies decision(a, strict) = approve": lambda d: (
        (d.credit != "refer") | (d.strict == "approve")
    ),
}


def asked(model: Any, text: str, **given: Any) -> Any:
    head = 'model m from "m"\n' + "".join(f"feature {name}: integer in [0, 3]\n" for name in NAMES)
    return ts.check_text(head + DECISIONS + text, models={"m": ts.load(model)}, **given)


@pytest.mark.extensions
def test_a_decision_is_the_first_case_that_holds(model: Any) -> None:
    text = 'data d from "d"\n'
    text += "".join(f"query q{i}: count rows of d as a such that {asked}\n" for i, asked in enumerate(CONSTRAINTS))
    answers, truth = asked(model, text, data={"d": GRID}), decided(model)
    for i, (constraint, holds) in enumerate(CONSTRAINTS.items()):
        expected = np.flatnonzero(holds(truth)).tolist()
        assert len(expected) > 0, constraint
        assert list(answers[f"q{i}"].count.rows) == expected, constraint


@pytest.mark.parametrize("backend", ["auto", "cpsat", "highs"])
def test_pairs_are_those_of_brute_force(model: Any, backend: str) -> None:
    truth, wanted = decided(model).credit, itertools.permutations(("approve", "refer", "decline"), 2)
    pairs = list(wanted)
    text = "".join(
        f"query {one}_{other}_{f}: find a, b such that a = b except {f}; "
        f"decision(a, credit) = {one}; decision(b, credit) = {other}\n"
        for (one, other), f in itertools.product(pairs, NAMES)
    )
    text += "".join(
        f"query differ_{f}: find a, b such that a = b except {f}; decision(a, credit) != decision(b, credit)\n"
        for f in NAMES
    )
    answers = asked(model, text, backend=backend)
    for f in NAMES:
        others = [name for name in NAMES if name != f]
        together = [set(truth[group.index]) for _, group in GRID.groupby(others)]
        for one, other in pairs:
            flips = any({one, other} <= outcomes for outcomes in together)
            assert str(answers[f"{one}_{other}_{f}"].verdict) == ("found" if flips else "none"), (one, other, f)
        differ = answers[f"differ_{f}"]
        assert str(differ.verdict) == ("found" if any(len(o) > 1 for o in together) else "none")


@pytest.mark.extensions
def test_rows_whose_decision_flips_are_counted_without_a_search(model: Any) -> None:
    truth, sets = decided(model).credit, [("x",), ("y",), ("x", "z")]
    text = 'data d from "d"\n'
    for i, varied in enumerate(sets):
        alike = f"a = b except {{{', '.join(varied)}}}"
        text += f"query any{i}: count rows of d as a, b such that {alike}; decision(a, credit) != decision(b, credit)\n"
        text += (
            f"query up{i}: count rows of d as a, b such that {alike}; "
            "decision(a, credit) = decline; decision(b, credit) = approve\n"
        )
    answers = asked(model, text, data={"d": GRID})
    for i, varied in enumerate(sets):
        others = [name for name in NAMES if name not in varied]
        reached = [set(truth[(GRID[others] == row[others]).all(axis=1)]) for _, row in GRID.iterrows()]
        flips = [n for n, outcomes in enumerate(reached) if len(outcomes) > 1]
        up = [n for n, outcomes in enumerate(reached) if truth[n] == "decline" and "approve" in outcomes]
        for name, expected in ((f"any{i}", flips), (f"up{i}", up)):
            answer = answers[name]
            assert list(answer.count.rows) == expected, name
            assert len(answer.count.undecided) == 0
            assert answer.to_dict()["backend"] == "rows"


def test_an_answer_shows_what_is_decided(model: Any) -> None:
    answer = asked(model, "query q: find a, b such that a = b except x; decision(a, credit) != decision(b, credit)\n")[
        "q"
    ]
    shown, rows = answer.to_dict()["scores"], answer.pair
    for point, row in zip("ab", range(2), strict=True):
        values = GRID[(GRID[list(NAMES)] == [float(rows[name][row]) for name in NAMES]).all(axis=1)].index[0]
        assert shown[point]["decision"] == decided(model).credit[values]
    assert "decision" in str(answer)


def test_two_models_under_one_policy(model: Any) -> None:
    other = type(model)(n_estimators=3, num_leaves=4, min_child_samples=5, n_jobs=1, verbose=-1)
    other.fit(GRID, (GRID.x > 1).astype(int))
    head = 'model old from "old"\nmodel new from "new"\n' + "".join(f"feature {n}: integer in [0, 3]\n" for n in NAMES)
    text = "decision d of p: approve when prob(p) >= 0.6 refer when prob(p) >= 0.45 else decline\n"
    text += "query q: find a in old, b in new such that a = b; decision(a) != decision(b)\n"
    text += "query up: find a in old, b in new such that a = b; decision(a) = decline; decision(b) = approve\n"
    answers = ts.check_text(head + text, models={"old": ts.load(model), "new": ts.load(other)})

    def outcomes(m: Any) -> list[str]:
        return [
            "approve" if p >= 0.6 else "refer" if p >= 0.45 else "decline" for p in m.predict_proba(GRID)[:, 1].tolist()
        ]

    both = list(zip(outcomes(model), outcomes(other), strict=True))
    assert str(answers["q"].verdict) == ("found" if any(a != b for a, b in both) else "none")
    assert str(answers["up"].verdict) == ("found" if ("decline", "approve") in both else "none")


MISTAKES = {
    "decision(a) = approve": "E120",
    "decision(a, credits) = approve": "E118",
    "decision(a, credit) = aprove": "E119",
    "decision(a, credit) >= approve": "E205",
    "decision(a, credit) = decision(a, credit)": "E213",
    "decision(c, credit) = approve": "E104",
    "decision(a, credit)": "S032",
    "decision(a, credit, strict) = approve": "S041",
}


@pytest.mark.parametrize("constraint", MISTAKES)
def test_mistakes_have_codes(model: Any, constraint: str) -> None:
    with pytest.raises(DiagnosticsError, match=MISTAKES[constraint]):
        asked(model, f"query q: find a such that {constraint}\n")


def test_mistakes_inside_of_a_decision_have_their_place(model: Any) -> None:
    for bad, code in (
        ("decision d of p: yes when prob(a) >= 0.5 else no", "E104"),
        ("decision d of p: yes when p.w >= 1 else no", "E103"),
        ("decision d of p: yes when decision(p, credit) = approve else no", "E220"),
        ("decision d of p in n: yes when prob(p) >= 0.5 else no", "E101"),
        ("decision d of p, r: yes when prob(p) >= 0.5 else no", "S052"),
        ("decision d of p: yes if prob(p) >= 0.5 else no", "S001"),
        ("decision credit of p: yes when prob(p) >= 0.5 else no", "E107"),
    ):
        with pytest.raises(DiagnosticsError, match=code):
            asked(model, f"{bad}\nquery q: find a such that decision(a, d) = yes\n")


CLASHES = {
    "prob(a) >= 0.7 and prob(a) < 0.7": lambda p, r: False,
    "prob(a) > 0.7 and prob(a) <= 0.7": lambda p, r: False,
    "prob(a) >= 0.7 and (prob(a) < 0.7 or a.x = 3)": lambda p, r: p >= 0.7 and r.x == 3,
    "prob(a) < 0.3 and (prob(a) >= 0.5 or prob(a) > 0.3 or a.x = 0)": lambda p, r: p < 0.3 and r.x == 0,
    "prob(a) <= 0.5 and (margin(a) > 0 or margin(a) <= -0.25)": lambda p, r: p <= 0.5 and p <= 1 / (1 + np.exp(0.25)),
    "decision(a, credit) = approve and prob(a) < 0.7": lambda p, r: credit(p, r) == "approve" and p < 0.7,
    "decision(a, credit) = refer and prob(a) < 0.4 and a.x <= 2": lambda p, r: False,
    "decision(a, credit) = decline and prob(a) >= 0.4": lambda p, r: False,
}


@pytest.mark.parametrize("constraint", CLASHES)
def test_bounds_of_one_score_that_clash_are_seen(model: Any, constraint: str) -> None:
    shown = model.predict_proba(GRID)[:, 1]
    expected = any(CLASHES[constraint](p, r) for p, r in zip(shown, GRID.itertuples(), strict=True))
    answer = asked(model, f"query q: find a such that {constraint}\n", time_limit=20)["q"]
    assert str(answer.verdict) == ("found" if expected else "none")


NEAR = """
decision near of p:
  close when distance(p, row 0 of d, {norm}) <= {limit}
  else away
"""


@pytest.mark.parametrize("norm", ["l0", "l1", "l2", "linf"])
@pytest.mark.parametrize("limit", [0, 0.4])
@pytest.mark.parametrize("free", ["x", "{x, y}", "{x, y, z}"])
def test_a_distance_in_a_decision_counts_what_the_question_varies(
    norm: str, limit: float, free: str, model: Any
) -> None:
    """A decision is a function of one input: every change that leaves the ball of the row reaches another outcome."""
    row = GRID.iloc[21:22]
    away = (GRID - row.iloc[0]).abs().to_numpy() / 3
    size = {"l0": (away > 0).sum(1), "l1": away.sum(1), "l2": (away**2).sum(1) ** 0.5, "linf": away.max(1)}[norm]
    close = size <= limit
    varied = free.strip("{}").split(", ")
    kept = [n for n in NAMES if n not in varied]
    same = (GRID[kept] == row[kept].iloc[0]).all(axis=1).to_numpy()
    assert (close != close[21])[same].any()  # the first point can be the row
    text = f'data d from "d"\n{NEAR.format(norm=norm, limit=limit)}'
    text += f"query q: find a, b such that a = row 0 of d; a = b except {free}; decision(a, near) != decision(b, near)"
    assert asked(model, text, data={"d": row})["q"].to_dict()["verdict"] == "found"


@pytest.mark.parametrize(
    "link",
    [
        "a = b except x",
        "(a.x = 0 and (a = b except x and b.x >= 0))",
        "not not a = b except x",
        "not (not a = b except x or a.x = 3)",
        "not (a = b except x implies a.x = 3)",
    ],
)
def test_sensitive_features_are_left_out_wherever_the_points_are_made_equal(link: str, model: Any) -> None:
    """`x` is sensitive in all of these: the row (1, 1, 1) is at distance 0 from a = (0, 1, 1)."""
    text = f'data d from "d"\nquery q: find a, b such that {link}; a.x = 0; distance(a, row 0 of d, l1) <= 0'
    answer = asked(model, text, data={"d": GRID.iloc[21:22]})["q"].to_dict()
    assert answer["verdict"] == "found"
    point = answer["points"]["a"]
    assert (point["x"], point["y"], point["z"]) == (0, 1, 1)
