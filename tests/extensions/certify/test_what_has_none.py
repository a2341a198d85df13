"""The table "What has no certificate" of docs/certificates.md: what can be said, and what is named instead."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.extensions.certify.models import train
from treesens.binder.file import bind
from treesens.compiler.result import Certified
from treesens.grammar.parsing.parser import parse
from treesens.solve.options import Options
from treesens.solve.question import answer_question

HEAD = (
    'model m from "m.json"\ndata d from "d.csv"\n'
    "feature f0: real in [0, 2]\nfeature f1: real in [0, 2]\nfeature f2: real in [0, 2]\nquery q: "
)
PAIR = "find a, b in m such that a = b except {f0, f1}; margin(a) - margin(b) >= 0.01; "


def claims_of(question: str, folder: Path) -> list[Certified]:
    train(4, folder / "m.json")
    (folder / "d.csv").write_text("f0,f1,f2\n0,0,0\n1,0.5,1.5\n0.5,1,2\n")
    (asked,) = bind(parse(HEAD + question, "<test>"), folder).queries
    return list(answer_question(asked, Options(time_limit=60, certificates=folder / "out")).certificates)


@pytest.mark.parametrize(
    "question",
    [
        "find a in m such that margin(a) >= 9",
        PAIR + "a.f0 <= b.f0; b.f0 <= a.f0; a.f1 <= b.f1; b.f1 <= a.f1",
        "find a in m such that likelihood(a, d) >= 0.9; margin(a) >= -9",
        "find a in m such that margin(a) >= 0.2; a.f0 + a.f1 + a.f2 >= 5.9; a.f0 <= 1.9",
        "find a in m such that margin(a) >= -9; a.f0 + a.f1 >= 1.5; a.f1 + a.f2 <= 0.4; a.f0 <= a.f2",
        "find a in m such that margin(a) <= -0.2; distance(a, row 0 of d, l1) <= 0.01",
        "find a in m such that margin(a) <= -0.2; distance(a, row 0 of d, l2) <= 0.01",
        "find a in m such that margin(a) <= -0.2; distance(a, row 0 of d, linf) <= 0.01",
    ],
)
def test_these_have_certificates(question: str, tmp_path: Path) -> None:
    claims = claims_of(question, tmp_path)
    assert [(c.claim, c.reason) for c in claims] == [("none", "")]


@pytest.mark.parametrize(
    "goal",
    [
        "maximize margin(a)",
        "maximize likelihood(a, d)",
        "minimize distance(a, row 0 of d, l0)",
        "minimize distance(a, row 0 of d, l1)",
        "minimize distance(a, row 0 of d, l2)",
        "minimize distance(a, row 0 of d, linf)",
    ],
)
def test_these_bounds_have_certificates(goal: str, tmp_path: Path) -> None:
    claims = claims_of(f"find a in m such that margin(a) >= 0.2 {goal}", tmp_path)
    assert [(c.claim, c.reason) for c in claims] == [("found", ""), ("bound", "")]


def test_the_least_distance_of_two_points_has_a_certificate(tmp_path: Path) -> None:
    claims = claims_of(
        "find a, b in m such that margin(a) >= 0.2; margin(b) <= -0.2 minimize distance(a, b, l1)", tmp_path
    )
    assert [(c.claim, c.reason) for c in claims] == [("found", ""), ("bound", "")]


@pytest.mark.parametrize(
    ("question", "claims"),
    [
        ("find a in m such that margin(a) >= 9 or margin(a) <= -9", ["none"] * 2),
        (PAIR + "changes(a, b) <= 0", ["none"]),
        (
            "find a, b in m such that margin(a) - margin(b) >= 0.01; changes(a, b) <= 0",
            ["none"],
        ),
        (
            "find a, b in m such that margin(a) >= 0.2; margin(b) <= -0.2 minimize changes(a, b)",
            ["found", "bound"],
        ),
    ],
)
def test_these_have_a_certificate_for_each_case(question: str, claims: list[str], tmp_path: Path) -> None:
    *cases, together = claims_of(question, tmp_path)
    assert [(c.claim, c.reason) for c in cases] == [(claim, "") for claim in claims]
    assert together.manifest
    assert (together.claim, together.reason) == (claims[-1], "")


@pytest.mark.parametrize(
    ("question", "reason"),
    [
        (
            "find a, b in m such that margin(a) >= -9; a.f0 - a.f1 >= 0.25; a.f1 - a.f2 >= 0.25; "
            "a.f2 - b.f0 >= 0.25; b.f0 - a.f0 >= -0.5",
            "complete",
        ),
    ],
)
def test_these_say_why_they_have_none(question: str, reason: str, tmp_path: Path) -> None:
    claims = claims_of(question, tmp_path)
    assert claims
    assert all(reason in c.reason for c in claims), [c.reason for c in claims]


UNPROVED = "a.f0 - a.f1 >= 0.25; a.f1 - a.f2 >= 0.25; a.f2 - b.f0 >= 0.25; b.f0 - a.f0 >= -0.5"
"""No values satisfy these four, which no cells say, nor any three of them."""


@pytest.mark.parametrize(
    "question",
    [
        f"find a, b in m such that margin(a) >= -9; ({either}); {UNPROVED.partition('; ')[2]}"
        for either in (
            f"margin(a) >= 9 or {UNPROVED.partition(';')[0]}",
            f"{UNPROVED.partition(';')[0]} or margin(a) >= 9",
        )
    ],
)
def test_no_case_of_what_is_not_proved_as_a_whole_is_left_in_the_folder(question: str, tmp_path: Path) -> None:
    """Of two cases one is proved, whichever is tried first; it would be taken for a proof of the question."""
    claims = claims_of(question, tmp_path)
    assert [(c.claim, bool(c.path)) for c in claims] == [("none", False)]
    alone = claims_of("find a in m such that margin(a) >= 9", tmp_path)
    assert [(c.claim, bool(c.path)) for c in alone] == [("none", True)]
    assert [path.name for path in (tmp_path / "out").iterdir()] == [Path(alone[0].path).name]


@pytest.mark.parametrize(("norm", "cases"), [("l0", 3), ("l1", 3), ("l2", 3), ("linf", 1)])
def test_the_nearest_of_rows_has_a_certificate_for_each_row(norm: str, cases: int, tmp_path: Path) -> None:
    """Of linf nothing is nearer than a row itself: no values at all, which is one case for all rows."""
    goal = f"minimize distance(a, nearest row of d, {norm})"
    claims = claims_of(f"find a in m such that margin(a) >= 0.2 {goal}", tmp_path)
    assert [(c.claim, c.reason) for c in claims] == [("found", ""), *[("bound", "")] * (cases + 1)]
    assert [c.manifest for c in claims] == [False] * (cases + 1) + [True]


@pytest.mark.parametrize(
    ("question", "reason"),
    [
        (
            "find a, b in m such that margin(a) >= 0.2; margin(b) <= -0.2; a.f0 <= b.f0; b.f0 <= a.f0 maximize changes(a, b)",
            "objectives of the kind",
        ),
    ],
)
def test_these_bounds_say_why_they_have_none(question: str, reason: str, tmp_path: Path) -> None:
    found, bound = claims_of(question, tmp_path)
    assert (found.claim, found.reason, bound.claim) == ("found", "", "bound")
    assert reason in bound.reason
