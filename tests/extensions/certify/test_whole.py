"""Questions that are proved in cases: the checker makes the cases, and notices one that is left out or that is narrower."""

from __future__ import annotations

import copy
import itertools
import json
import lzma
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from treesens.extensions.treesens_verify.cases import widest

from tests.extensions.certify.made import parts_of
from tests.extensions.certify.models import train
from treesens.binder.file import bind
from treesens.compiler.result import Verdict
from treesens.extensions import treesens_verify as checker
from treesens.extensions.certify.command import run_checker
from treesens.grammar.parsing.parser import parse
from treesens.solve.options import Options
from treesens.solve.question import answer_question

HEAD = (
    'model m from "m.json"\ndata d from "d.csv"\n'
    "feature f0: real in [0, 2]\nfeature f1: real in [0, 2] or missing\nfeature f2: real in [0, 4]\nquery q: "
)
GOAL = "maximize margin(a) - margin(b)"
QUESTIONS = {
    "either": f"find a, b in m such that a = b except {{f0, f1}}; prob(b) >= 0.6 or prob(a) <= 0.4 {GOAL}",
    "nested": (
        "find a, b in m such that a = b except {f0, f1}; "
        f"prob(b) >= 0.6 or (a.f2 <= 0.6 and (prob(a) <= 0.4 or prob(b) >= 0.5)) {GOAL}"
    ),
    "changes": f"find a, b in m such that changes(a, b) <= 1; prob(b) >= 0.4 {GOAL}",
    "both": f"find a, b in m such that changes(a, b) <= 2; prob(b) >= 0.6 or prob(a) <= 0.4 {GOAL}",
    "nearest": "find a in m such that margin(a) >= 1 minimize distance(a, nearest row of d, l1)",
}
Document = dict[str, Any]
EMPTY: Document = {"domain": [], "rows": [], "clauses": [], "orders": [], "either": [], "changes": [], "apart": []}
Made = tuple[Path, Document, list[Document]]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("whole")
    train(4, made / "m.json")
    (made / "d.csv").write_text("f0,f1,f2\n0.5,1,1.5\n0,0,0\n")
    return made


@pytest.fixture(scope="module")
def made(folder: Path) -> Callable[[str], Made]:
    """The manifest of a question, which is asked once, its claim and its parts."""
    known: dict[str, Made] = {}

    def manifest(kind: str) -> Made:
        if kind not in known:
            out = folder / kind
            (asked,) = bind(parse(HEAD + QUESTIONS[kind] + "\n", "<test>"), folder).queries
            result = answer_question(asked, Options(certificates=out, require_certificate=True))
            assert result.verdict is not Verdict.UNKNOWN, result
            (path,) = out.glob("*.manifest.json")
            document = json.loads(path.read_text())
            (claim,) = document["claims"]
            parts = parts_of(path)
            known[kind] = path, claim, parts
        return known[kind]

    return manifest


def follows(claim: Document, parts: list[Document], folder: Path) -> list[str]:
    data = [(folder / "m.json").read_bytes()]
    return checker.together(claim, parts, lambda stated: checker.core.model_of(stated, data))


@pytest.mark.parametrize("kind", QUESTIONS)
def test_the_whole_is_accepted_and_said(
    kind: str, made: Callable[[str], Made], folder: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    path, claim, _ = made(kind)
    assert claim["kind"] == "cases"
    assert run_checker([path], [folder / "m.json"], {}) == 0
    said = capfd.readouterr().out
    assert "Together: No inputs exist" in said
    assert ("Together:   and one of these holds:" in said) == bool(claim["whole"]["either"])
    assert ("the points differ in at most" in said) == bool(claim["whole"]["changes"])


@pytest.mark.parametrize("kind", QUESTIONS)
def test_a_case_that_is_left_out_is_noticed(kind: str, made: Callable[[str], Made], folder: Path) -> None:
    _, claim, parts = made(kind)
    assert len(claim["parts"]) > 1
    for left_out in claim["parts"]:
        with pytest.raises(checker.Rejected, match="answered by no part"):
            follows({**claim, "parts": [n for n in claim["parts"] if n != left_out]}, parts, folder)


NARROWER: dict[str, Callable[[Document], None]] = {
    "a set": lambda s: s["domain"].append([0, 0, {"runs": [[0, 1]]}]),
    "a row": lambda s: s["rows"].append({**s["rows"][0], "bound": {"rational": "9", "logs": []}}),
    "a bound": lambda s: s["rows"][-1].update(bound={"rational": "100", "logs": []}),
    "a clause": lambda s: s["clauses"].append([[0, 0, {"runs": [[0, 1]]}]]),
    "another model": lambda s: s["models"][0].update(sha256="0" * 64),
    "a feature without its missing values": lambda s: s["domain"].remove(next(d for d in s["domain"] if d[1] == 1)),
}


@pytest.mark.parametrize("kind", QUESTIONS)
@pytest.mark.parametrize("change", NARROWER)
def test_a_case_that_is_narrower_is_noticed(change: str, kind: str, made: Callable[[str], Made], folder: Path) -> None:
    _, claim, parts = made(kind)
    for place in claim["parts"]:
        planted = copy.deepcopy(parts)
        NARROWER[change](planted[place]["statement"])
        with pytest.raises(checker.Rejected, match="answered by no part"):
            follows(claim, planted, folder)


def test_fewer_features_that_vary_are_noticed(made: Callable[[str], Made], folder: Path) -> None:
    _, claim, parts = made("changes")
    for place in claim["parts"]:
        planted = copy.deepcopy(parts)
        planted[place]["statement"]["same_except"].pop()
        with pytest.raises(checker.Rejected, match="answered by no part"):
            follows(claim, planted, folder)
    with pytest.raises(checker.Rejected, match="answered by no part"):
        follows({**claim, "whole": {**claim["whole"], "changes": [{"features": [0, 1, 2], "most": 2}]}}, parts, folder)
    with pytest.raises(checker.Rejected, match="answered by no part"):
        follows({**claim, "whole": {**claim["whole"], "changes": []}}, parts, folder)


APART = {
    "changes(a, b) >= 2": ([0, 1, 2], 2),
    "changes(a, b) > 1": ([0, 1, 2], 2),
    "a.f1 > b.f1": ([1], 1),
    "a.f2 <= b.f2 - 1": ([2], 1),
}


@pytest.mark.parametrize("text", APART)
def test_points_that_agree_in_too_much_need_no_part(text: str, folder: Path, tmp_path: Path) -> None:
    """f0 alone may vary. A certificate without any part is accepted only while the limit says more than that."""
    question = f"find a, b in m such that a = b except {{f0}}; {text}; margin(a) - margin(b) >= 0.1"
    (asked,) = bind(parse(f"{HEAD}{question}\n", "<test>"), folder).queries
    result = answer_question(asked, Options(certificates=tmp_path, require_certificate=True))
    assert result.verdict is Verdict.NONE, result
    (path,) = tmp_path.glob("*.manifest.json")
    (claim,) = json.loads(path.read_text())["claims"]
    features, least = APART[text]
    assert (claim["kind"], claim["parts"], claim["whole"]["apart"]) == (
        "cases",
        [],
        [{"features": features, "least": least}],
    )
    assert run_checker([path], [folder / "m.json"], {}) == 0
    whole = claim["whole"]
    for apart in ([], [{"features": features, "least": 0}], [{"features": [0], "least": 1}]):
        with pytest.raises(checker.Rejected, match="answered by no part"):
            follows({**claim, "whole": {**whole, "apart": apart}}, [], folder)
    free = {**whole["statement"], "same_except": None}
    with pytest.raises(checker.Rejected, match="answered by no part"):
        follows({**claim, "whole": {**whole, "statement": free}}, [], folder)


DISTANT = ["l1) > 0", "l1) >= 0.125", "l2) > 0", "l2) >= 0.25", "linf) >= 0.125"]


@pytest.mark.parametrize("text", DISTANT)
def test_points_apart_change_in_one_feature_at_least(text: str, folder: Path, tmp_path: Path) -> None:
    """That they agree is a case of fewer changes than 1, which the distance excludes."""
    question = f"find a, b in m such that distance(a, b, {text} minimize changes(a, b)"
    (asked,) = bind(parse(f"{HEAD}{question}\n", "<test>"), folder).queries
    result = answer_question(asked, Options(certificates=tmp_path, require_certificate=True))
    assert result.objective is not None
    assert (result.objective.value, result.objective.bound) == (1, 1)
    (path,) = tmp_path.glob("*.manifest.json")
    (claim,) = json.loads(path.read_text())["claims"]
    assert run_checker([path], [folder / "m.json"], {}) == 0
    whole = claim["whole"]
    parts = [json.loads(lzma.decompress(file.read_bytes())) for file in sorted(tmp_path.glob("*bound*.cert.xz"))]
    with pytest.raises(checker.Rejected, match="answered by no part"):
        follows({**claim, "whole": _without_least(whole), "parts": [*range(len(parts))]}, parts, folder)


def _without_least(asked: Document) -> Document:
    """A whole question without the least numbers of changes."""
    either = [[_without_least(one) for one in disjunction] for disjunction in asked["either"]]
    return {**asked, "apart": [], "either": either}


def test_a_distance_of_0_may_be_no_change(folder: Path, tmp_path: Path) -> None:
    question = "find a, b in m such that distance(a, b, l1) >= 0 minimize changes(a, b)"
    (asked,) = bind(parse(f"{HEAD}{question}\n", "<test>"), folder).queries
    result = answer_question(asked, Options(certificates=tmp_path, require_certificate=True))
    assert result.objective is not None
    assert (result.objective.value, result.objective.bound) == (0, 0)
    (path,) = tmp_path.glob("*.manifest.json")
    (claim,) = json.loads(path.read_text())["claims"]
    assert (claim["whole"]["apart"], claim["whole"]["changes"]) == ([], [{"features": [0, 1, 2], "most": -1}])


def test_nothing_changes_less_than_not_at_all(folder: Path, tmp_path: Path) -> None:
    (asked,) = bind(
        parse(f"{HEAD}find a, b in m such that a.f0 = 1 minimize changes(a, b)\n", "<test>"), folder
    ).queries
    result = answer_question(asked, Options(certificates=tmp_path, require_certificate=True))
    assert result.objective is not None
    assert result.objective.bound == 0
    (path,) = tmp_path.glob("*.manifest.json")
    (claim,) = json.loads(path.read_text())["claims"]
    assert (claim["parts"], claim["whole"]["changes"]) == ([], [{"features": [0, 1, 2], "most": -1}])
    changes = [{"features": [0, 1, 2], "most": 0}]
    with pytest.raises(checker.Rejected, match="answered by no part"):
        follows({**claim, "whole": {**claim["whole"], "changes": changes}}, [], folder)


def test_an_alternative_that_was_not_asked_is_noticed(made: Callable[[str], Made], folder: Path) -> None:
    _, claim, parts = made("either")
    (either,) = claim["whole"]["either"]
    more = {**EMPTY, "domain": [[0, 2, {"runs": [[0, 0.5]]}]]}
    with pytest.raises(checker.Rejected, match="answered by no part"):
        follows({**claim, "whole": {**claim["whole"], "either": [[*either, more]]}}, parts, folder)


def test_a_part_that_has_inputs_proves_nothing(made: Callable[[str], Made], folder: Path) -> None:
    _, claim, parts = made("either")
    planted = copy.deepcopy(parts)
    planted[claim["parts"][0]]["claim"] = "found"
    with pytest.raises(checker.Rejected, match="has inputs"):
        follows(claim, planted, folder)


HOSTILE: dict[str, Callable[[Document], None]] = {
    "no statement": lambda w: w.pop("statement"),
    "a statement that is a list": lambda w: w.update(statement=[]),
    "more in the whole": lambda w: w.update(unless=True),
    "alternatives that are an object": lambda w: w.update(either={}),
    "an alternative that is a list": lambda w: w.update(either=[[[]]]),
    "an alternative without rows": lambda w: w["either"].append([{k: v for k, v in EMPTY.items() if k != "rows"}]),
    "an alternative of feature 9": lambda w: w["either"].append([{**EMPTY, "domain": [[0, 9, {"runs": [[0, 1]]}]]}]),
    "a row that is a text": lambda w: w["either"].append([{**EMPTY, "rows": ["true"]}]),
    "a limit of feature 9": lambda w: w["changes"].append({"features": [9], "most": 1}),
    "a limit below zero": lambda w: w["changes"].append({"features": [0], "most": -2}),
    "a limit that is a flag": lambda w: w["changes"].append({"features": [0], "most": True}),
    "a least number that is a text": lambda w: w["apart"].append({"features": [0], "least": "1"}),
    "a least number that is a most": lambda w: w["apart"].append({"features": [0], "most": 1}),
    "a feature that is counted twice": lambda w: w["changes"].append({"features": [0, 0], "most": 1}),
    "cases beyond all time": lambda w: w.update(either=[[EMPTY] * 10] * 10),
    "no model": lambda w: w["statement"].update(models=[]),
}


@pytest.mark.parametrize("kind", HOSTILE)
def test_hostile_wholes_are_rejected(
    kind: str, made: Callable[[str], Made], folder: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    path, _, _ = made("either")
    document = json.loads(path.read_text())
    HOSTILE[kind](document["claims"][0]["whole"])
    hostile = path.parent / "hostile.manifest.json"
    hostile.write_text(json.dumps(document))
    assert run_checker([hostile], [folder / "m.json"], {}) == 1
    said = capfd.readouterr()
    assert ": rejected: " in said.out
    assert "Traceback" not in said.err
    hostile.unlink()


def test_points_that_keep_the_limits_differ_inside_of_a_widest_set() -> None:
    """By all sets of five features, for random limits."""
    chance = random.Random(1)
    every = [frozenset(c) for size in range(6) for c in itertools.combinations(range(5), size)]
    for _ in range(300):
        free = None if chance.random() < 0.3 else chance.sample(range(5), chance.randint(0, 5))
        limits = [
            {"features": chance.sample(range(5), chance.randint(0, 5)), "most": chance.randint(0, 5)}
            for _ in range(chance.randint(0, 3))
        ]
        found = list(widest(free, limits, range(5)))
        for differing in every:
            allowed = (free is None or differing <= set(free)) and all(
                len(differing & set(one["features"])) <= one["most"] for one in limits
            )
            assert any(differing <= one for one in found) or not allowed
        for one in found:
            assert all(len(one & set(limit["features"])) <= limit["most"] for limit in limits)
