"""Shares of a measure: boxes that are all answers, or none, add up to what brute force finds, and lies are rejected."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from treesens.extensions.treesens_verify.shares import lies_in, negated

from tests.extensions.certify.made import parts_of
from tests.extensions.certify.models import train
from tests.extensions.certify.share_truth import share_of
from tests.extensions.certify.truth import Truth
from treesens.binder.file import bind
from treesens.compiler.result import Result
from treesens.extensions import treesens_verify as checker
from treesens.extensions.certify.command import run_checker
from treesens.grammar.parsing.parser import parse
from treesens.solve.options import Options
from treesens.solve.question import answer_question

HEAD = (
    'model m from "m.json"\ndata d from "d.csv"\nmeasure u: uniform\nmeasure p: marginals of d\nmeasure c: cells\n'
    "measure t: chow-liu of d\n"
    "feature f0: real in [0, 2]\nfeature f1: real in [0, 2] or missing\nfeature f2: integer in [0, 4]\nquery q: "
)
QUESTIONS = {
    "a pair, uniform": "find a, b in m such that a = b except {f0}; margin(a) - margin(b) >= 2 share of u",
    "a pair, marginals": "find a, b in m such that a = b except {f0}; margin(a) >= 0.5; margin(b) <= -0.5 share of p",
    "two features, cells": "find a, b in m such that a = b except {f1, f2}; prob(a) >= 0.8; prob(b) <= 0.3 share of c",
    "one point, uniform": "find a in m such that margin(a) >= 0.5; margin(a) <= 2 share of u",
    "one point, marginals": "find a in m such that margin(a) >= -0.5; a.f1 >= 1 share of p",
    "a pair, chow-liu": "find a, b in m such that a = b except {f0}; margin(a) - margin(b) >= 2 share of t",
    "one point, chow-liu": "find a in m such that margin(a) >= 0.5 share of t",
    "a group, uniform": "find a, b in m such that a = b except {f0}; margin(a) - margin(b) >= 2 share of u",
    "a group, chow-liu": "find a, b in m such that a = b except {f0}; margin(a) - margin(b) >= 2 share of t",
    "a group that varies": "find a, b in m such that a = b except {f1, f2}; margin(a) - margin(b) >= 1 share of t",
    "a member that cannot vary": "find a, b in m such that a = b except {f0, f1}; margin(a) - margin(b) >= 2 share of t",
}
GROUPS = (
    'model m from "m.json"\ndata d from "g.csv"\nmeasure u: uniform\nmeasure t: chow-liu of d\n'
    "feature f0: real in [0, 2]\nfeature f1: integer in [0, 1]\nfeature f2: integer in [0, 1]\nonehot {f1, f2}\nquery q: "
)
TREES = {"a pair, chow-liu", "one point, chow-liu"} | {
    kind for kind in QUESTIONS if "group" in kind or "member" in kind
}
Document = dict[str, Any]
Made = tuple[Path, Document, list[Document], Result]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("boxes")
    train(4, made / "m.json", trees=5, depth=3)
    rows = np.random.default_rng(9).integers(0, 5, (30, 3)) / 2
    rows[:, 2] = np.floor(rows[:, 2])
    rows[::4, 1] = np.nan
    text = "".join(",".join("" if np.isnan(x) else str(x) for x in row) + "\n" for row in rows)
    (made / "d.csv").write_text(f"f0,f1,f2\n{text}")
    ones = (rows[:, 0] > 1).astype(int) ^ (np.arange(len(rows)) % 5 == 0)
    (made / "g.csv").write_text(
        "f0,f1,f2\n" + "".join(f"{x},{one},{1 - one}\n" for x, one in zip(rows[:, 0], ones, strict=True))
    )
    return made


def ask(folder: Path, kind: str, out: Path, *, required: bool = False) -> Result:
    head = GROUPS if "group" in kind or "member" in kind else HEAD
    (asked,) = bind(parse(f"{head}{QUESTIONS[kind]}\n", "<test>"), folder).queries
    return answer_question(asked, Options(time_limit=20, certificates=out, require_certificate=required))


@pytest.fixture(scope="module")
def made(folder: Path) -> Callable[[str], Made]:
    """The manifest of a share, its claim, its parts and the answer; asked once."""
    known: dict[str, Made] = {}

    def manifest(kind: str) -> Made:
        if kind not in known:
            out = folder / kind.replace(" ", "_")
            result = ask(folder, kind, out, required=True)
            (path,) = out.glob("q.share.*.manifest.json")
            (claim,) = json.loads(path.read_text())["claims"]
            known[kind] = path, claim, parts_of(path), result
        path, claim, parts, result = known[kind]
        return path, copy.deepcopy(claim), copy.deepcopy(parts), result

    return manifest


def said(folder: Path, claim: Document, parts: list[Document]) -> tuple[Fraction, Fraction]:
    """The two numbers that the checker finds of a claim."""
    data = (folder / "m.json").read_bytes()
    first = checker.together(claim, parts, lambda stated: checker.core.model_of(stated, [data]))[0].split()
    numbers = [Fraction(word) for word in first if word[0].isdigit()]
    return numbers[0], numbers[1]


@pytest.mark.parametrize("kind", QUESTIONS)
def test_the_proved_interval_is_that_of_brute_force(
    kind: str, made: Callable[[str], Made], folder: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    path, claim, parts, result = made(kind)
    truth = Truth(train(4, tmp_path / "m.json", trees=5, depth=3), 3)
    certain, possible = share_of(truth, claim)
    low, high = said(folder, claim, parts)
    assert low <= certain <= possible <= high
    assert certain == possible  # cells of the model: all inputs of a part are alike
    assert float(high - low) <= 0.02 * float(high + low)
    assert result.share is not None
    assert result.share.closed
    assert result.share.lower <= float(certain) <= result.share.upper
    assert abs(result.share.lower - float(low)) < 1e-11
    assert abs(result.share.upper - float(high)) < 1e-11
    assert low > 0
    assert high < 1
    assert run_checker([path], [folder / "m.json"], {}) == 0
    words = capfd.readouterr().out
    assert "are an answer" in words
    assert ("It is a tree" if kind in TREES else "It is a product") in words


@pytest.mark.parametrize("kind", QUESTIONS)
def test_the_search_finds_the_same(kind: str, folder: Path, tmp_path: Path, made: Callable[[str], Made]) -> None:
    """What is told without a certificate is told with one, too, and lies in what is proved."""
    _, _, _, proved = made(kind)
    result = ask(folder, kind, tmp_path)
    assert result.share is not None
    assert proved.share is not None
    assert proved.share.lower <= result.share.upper
    assert result.share.lower <= proved.share.upper
    assert all(one.path for one in result.certificates)


def leaves(tree: Any) -> list[Document]:
    if isinstance(tree, list):
        return leaves(tree[3]) + leaves(tree[4])
    return [] if tree is None else [tree]


def first_cut(claim: Document) -> list[Any]:
    assert isinstance(claim["tree"], list)
    return claim["tree"]


def full(claim: Document) -> Document:
    return next(leaf for leaf in leaves(claim["tree"]) if "all" in leaf)


def empty(claim: Document) -> Document:
    return next(leaf for leaf in leaves(claim["tree"]) if "none" in leaf)


def turn(claim: Document) -> None:
    leaf = empty(claim)
    leaf["all"] = leaf.pop("none")


LIES: dict[str, tuple[Callable[[Document], Any], str]] = {
    "a box twice": (lambda c: first_cut(c).__setitem__(4, first_cut(c)[3]), ""),
    "sides that meet": (lambda c: first_cut(c).__setitem__(1, first_cut(c)[2]), ""),
    "sides without ends": (lambda c: first_cut(c)[1]["runs"].__setitem__(0, [None, None]), "both sides"),
    "both sides with missing": (lambda c: [side.update(missing=True) for side in first_cut(c)[1:3]], "both sides"),
    "a side of two runs": (lambda c: first_cut(c)[1]["runs"].append([7, 8]), "more than a run"),
    "a cut of what varies": (lambda c: first_cut(c).__setitem__(0, 0), "not measured"),
    "a cut of no feature": (lambda c: first_cut(c).__setitem__(0, True), "not measured"),
    "a cut of four parts": (lambda c: first_cut(c).pop(), "right length"),
    "a weight more": (lambda c: c["measure"][0][1][0].__setitem__(1, "2"), "add up to 1"),
    "a weight below 0": (
        lambda c: c["measure"][0][1].extend([[{"runs": [[0, 1]]}, "1"], [{"runs": [[0, 1]]}, "-1"]]),
        "below 0",
    ),
    "a part of nothing": (lambda c: c["measure"][0][1].append([{"runs": []}, "0"]), "without values"),
    "a part without whole numbers": (
        lambda c: c["measure"][0][1].append([{"runs": [[0.25, 0.5]], "whole": True}, "0"]),
        "without values",
    ),
    "a feature left out": (lambda c: c["measure"].pop(), "not vary"),
    "a feature twice": (lambda c: c["measure"].append(c["measure"][0]), "twice"),
    "a feature that varies": (lambda c: c["measure"].append([0, [[{"runs": [[0, 1]]}, "1"]]]), "not vary"),
    "a pinned value beyond the domain": (lambda c: full(c)["values"][0].__setitem__(0, 3), "not allowed"),
    "a pinned value outside of its set": (
        lambda c: full(c)["sets"][0].__setitem__(0, {"values": [0.3125]}),
        "not allowed",
    ),
    "a pinned set of what is no float32": (
        lambda c: full(c)["sets"][0].__setitem__(0, {"values": [0.3]}),
        "no float32",
    ),
    "another pinned set": (lambda c: full(c)["sets"].reverse(), ""),
    "a pinned value that is a flag": (lambda c: full(c)["values"][0].__setitem__(0, True), "no float"),
    "no pinned values": (lambda c: full(c)["values"].clear(), "right length"),
    "a part less": (lambda c: full(c)["all"].pop(), "one part for each row"),
    "no part": (lambda c: empty(c)["none"].clear(), "no part"),
    "another part": (lambda c: empty(c).update(none=full(c)["all"]), "no part"),
    "answers instead of none": (turn, ""),
    "a box that is a number": (lambda c: c.update(tree=0), ""),
    "a box of both": (lambda c: empty(c).update(all=[]), ""),
}


@pytest.mark.parametrize("lie", LIES)
def test_lies_are_rejected(lie: str, made: Callable[[str], Made], folder: Path) -> None:
    _, claim, parts, _ = made("a pair, uniform")
    change, reason = LIES[lie]
    change(claim)
    with pytest.raises((checker.Rejected, *checker.core.MALFORMED), match=reason or None):
        said(folder, json.loads(json.dumps(claim)), parts)


def test_what_the_question_does_not_allow_is_no_answer(made: Callable[[str], Made], folder: Path) -> None:
    """A part of the measure with values beyond the domain is in no box of answers, whatever its weight."""
    _, claim, parts, _ = made("a pair, uniform")
    low, high = said(folder, claim, parts)
    f, entries = claim["measure"][0]
    assert f == 1
    claim["measure"][0][1] = [[s, str(Fraction(w) / 2)] for s, w in entries] + [[{"runs": [[3.0, 4.0]]}, "1/2"]]
    assert abs(said(folder, claim, parts)[0] - low / 2) < Fraction(1, 10**9)
    for change in ({"runs": [[-1.0, 0.9999999403953552]]}, {"runs": [[0.0, 0.9999999403953552]], "whole": True}):
        claim["measure"][0][1] = [[change, entries[0][1]], *entries[1:]]
        inside = "whole" in change
        assert (said(folder, claim, parts)[0] == low) == inside
        assert said(folder, claim, parts)[1] == high


@pytest.mark.parametrize("kind", QUESTIONS)
def test_every_part_is_needed(kind: str, made: Callable[[str], Made], folder: Path) -> None:
    """A part about fewer inputs, or with a row that is harder to meet, no longer says so."""
    _, claim, parts, _ = made(kind)
    for number in range(len(parts)):
        planted = copy.deepcopy(parts)
        planted[number]["statement"]["domain"].append([0, 0, {"runs": [[0, 1]]}])
        with pytest.raises(checker.Rejected, match="no part"):
            said(folder, claim, planted)
        planted = copy.deepcopy(parts)
        planted[number]["claim"] = "found"
        with pytest.raises(checker.Rejected, match="has inputs"):
            said(folder, claim, planted)


def test_a_row_is_missed_by_all_that_do_not_meet_it() -> None:
    row = {
        "terms": [["1/2", 0, 0], ["-1", 1, 0]],
        "costs": [[0, 1, [[None, "1"], [0.5, "-2"]], "0"]],
        "bound": {"rational": "-3/4", "logs": [["1", "2"], ["-1/2", "3"]]},
        "strict": True,
    }
    assert negated(row) == {
        "terms": [["-1/2", 0, 0], ["1", 1, 0]],
        "costs": [[0, 1, [[None, "-1"], [0.5, "2"]], "0"]],
        "bound": {"rational": "3/4", "logs": [["-1", "2"], ["1/2", "3"]]},
        "strict": False,
    }
    assert negated(negated(row)) == row


@pytest.mark.parametrize(
    ("inner", "outer", "inside"),
    [
        ({"runs": [[0, 1]]}, {"runs": [[None, None]]}, True),
        ({"runs": [[0, 1]], "missing": True}, {"runs": [[None, None]]}, False),
        ({"runs": [], "missing": True}, {"runs": [], "missing": True}, True),
        ({"runs": [[None, 1]]}, {"runs": [[0, 1]]}, False),
        ({"runs": [[0, None]]}, {"runs": [[0, 1]]}, False),
        ({"runs": [[0, 2]]}, {"runs": [[0, 1], [1, 2]]}, False),
        ({"runs": [[0, 1]]}, {"runs": [[0, 1]], "whole": True}, False),
        ({"runs": [[0, 1]], "whole": True}, {"runs": [[0, 1]], "whole": True}, True),
        ({"runs": [[0, 1]], "whole": True}, {"runs": [[0, 1]]}, True),
        ({"values": [0, 1]}, {"runs": [[0, 1]], "whole": True}, True),
        ({"values": [0, 0.5]}, {"runs": [[0, 1]], "whole": True}, False),
        ({"values": [0, 2]}, {"values": [0, 1]}, False),
        ({"values": [0]}, {"values": [0, 1]}, True),
        ({"runs": [[0, 0]]}, {"values": [0, 1]}, False),
    ],
)
def test_sets_lie_in_sets(inner: Document, outer: Document, inside: bool) -> None:
    assert lies_in(inner, outer, 3.0e38) == inside


TREE_LIES: dict[str, tuple[Callable[[Document], Any], str]] = {
    "chances that are too many": (lambda c: c["measure"][-1][3][0].__setitem__(1, "1"), "add up to 1"),
    "chances below 0": (lambda c: c["measure"][-1][3].__setitem__(0, ["2", "-1"]), "below 0"),
    "chances that are no text": (lambda c: c["measure"][-1][3][0].__setitem__(0, 1), "no text"),
    "a row of chances less": (lambda c: c["measure"][-1][3].pop(), "right length"),
    "rows of chances of other groups": (lambda c: c["measure"][-1][3][0].append("0"), "other groups"),
    "no groups": (lambda c: c["measure"][0].__setitem__(3, [[]]), "add up to 1"),
    "after a later draw": (lambda c: c["measure"][0].__setitem__(2, 0), "index"),
    "after a flag": (lambda c: c["measure"][-1].__setitem__(2, True), "index"),
    "a set of no group": (lambda c: c["measure"][-1][1][0].__setitem__(2, 2), "index"),
    "a set of a group that is a flag": (lambda c: c["measure"][-1][1][0].__setitem__(2, False), "index"),
    "another group": (lambda c: c["measure"][-1][1][0].__setitem__(2, 1), "add up to 1"),
    "sets of no feature": (lambda c: c["measure"][0].__setitem__(1, [[{"values": [0.0]}, "1", 0]]), "no feature"),
    "the chances of a member exchanged": (lambda c: c["measure"][-1][3].reverse(), "may not satisfy a clause"),
    "a draw of three parts": (lambda c: c["measure"][-1].pop(), "right length"),
}


@pytest.mark.parametrize("lie", TREE_LIES)
def test_lies_about_draws_are_rejected(lie: str, made: Callable[[str], Made], folder: Path) -> None:
    """The last draw is that of a member of the group, and the first one of no feature."""
    _, claim, parts, _ = made("a group, uniform")
    assert claim["measure"][0][0] is None
    assert claim["measure"][-1][0] == 2
    change, reason = TREE_LIES[lie]
    change(claim)
    with pytest.raises((checker.Rejected, *checker.core.MALFORMED), match=reason):
        said(folder, json.loads(json.dumps(claim)), parts)
