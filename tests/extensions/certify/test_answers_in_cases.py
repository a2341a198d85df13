"""How many rows have an answer, if some of them are proved in cases: the checker makes the cases of each row."""

from __future__ import annotations

import copy
import hashlib
import itertools
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import xgboost

from tests.extensions.certify.made import parts_of
from tests.extensions.certify.models import train
from treesens.binder.file import bind
from treesens.extensions import treesens_verify as checker
from treesens.extensions.certify.command import run_checker
from treesens.grammar.parsing.parser import parse
from treesens.solve.options import Options
from treesens.solve.question import answer_question

HEAD = (
    'model m from "m.json"\ndata d from "d.csv"\n'
    "feature f0: real in [0, 2]\nfeature f1: real in [0, 2] or missing\nfeature f2: real in [0, 4]\nquery q: "
)
QUESTIONS = {
    "one point": "count rows of d as a in m such that margin(a) >= 2 or (margin(a) <= -1 and a.f0 <= 1)",
    "a pair": (
        "count rows of d as a, b in m such that a = b except {f0, f2}; margin(a) >= 2 or margin(a) <= -2; "
        "margin(b) >= 2 or margin(b) <= -1"
    ),
    "few changes": "count rows of d as a, b in m such that changes(a, b) <= 1; margin(b) - margin(a) >= 3.9",
}
Document = dict[str, Any]
Made = tuple[Path, Document, list[Document]]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("answers")
    train(4, made / "m.json")
    rows = np.random.default_rng(9).integers(0, 5, (12, 3)) / 2
    rows[::4, 1] = np.nan
    rows[-1] = rows[-2]
    text = "".join(",".join("" if np.isnan(x) else str(x) for x in row) + "\n" for row in rows)
    (made / "d.csv").write_text(f"f0,f1,f2\n{text}")
    return made


@pytest.fixture(scope="module")
def made(folder: Path) -> Callable[[str], Made]:
    """The manifest of a question, which is asked once, its claim and its parts."""
    known: dict[str, Made] = {}

    def manifest(kind: str) -> Made:
        if kind not in known:
            out = folder / kind.replace(" ", "_")
            (asked,) = bind(parse(f"{HEAD}{QUESTIONS[kind]}\n", "<test>"), folder).queries
            result = answer_question(asked, Options(certificates=out, require_certificate=True))
            assert result.count is not None, result
            assert (result.count.at_least, result.count.total) == counted(folder, kind)
            assert all(one.path for one in result.certificates), result.certificates
            (path,) = (p for p in out.glob("*.manifest.json") if "answers" in p.read_text())
            document = json.loads(path.read_text())
            (claim,) = document["claims"]
            parts = parts_of(path)
            known[kind] = path, claim, parts
        return known[kind]

    return manifest


def counted(folder: Path, kind: str) -> tuple[int, int]:
    """By XGBoost: how many rows have an answer, and how many there are."""
    rows = np.genfromtxt(folder / "d.csv", delimiter=",", skip_header=1)
    booster = xgboost.Booster(model_file=folder / "m.json")

    def margins(points: list[tuple[float, ...]]) -> np.ndarray:
        matrix = xgboost.DMatrix(np.array(points), feature_names=["f0", "f1", "f2"])
        return booster.predict(matrix, output_margin=True)

    free = [[i / 8 for i in range(17)], [*(i / 8 for i in range(17)), np.nan], [i / 8 for i in range(33)]]
    found = 0
    for row in rows.tolist():
        (a,) = margins([tuple(row)])
        if kind == "one point":
            found += bool(a >= 2 or (a <= -1 and row[0] <= 1))
        elif kind == "a pair":
            b = margins([(x, row[1], z) for x in free[0] for z in free[2]])
            found += bool((a >= 2 or a <= -2) and ((b >= 2) | (b <= -1)).any())
        else:
            others = [tuple(x if g == f else row[g] for g in range(3)) for f in range(3) for x in free[f]]
            found += bool((margins(others) - a >= 3.9).any())
    return found, len(rows)


def follows(claim: Document, parts: list[Document], folder: Path) -> list[str]:
    data = [(folder / "m.json").read_bytes()]
    return checker.together(claim, parts, lambda stated: checker.core.model_of(stated, data))


@pytest.mark.parametrize("kind", QUESTIONS)
def test_it_is_accepted_and_says_the_whole_question(
    kind: str, made: Callable[[str], Made], folder: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    path, claim, _ = made(kind)
    found, total = counted(folder, kind)
    assert 0 < found < total
    assert run_checker([path], [folder / "m.json"], {}) == 0
    said = capfd.readouterr().out
    assert f"of {total} rows, each given by one set for each feature, {found} have an answer" in said
    assert ("and one of these holds:" in said) == bool(claim["whole"]["either"])
    assert ("the points differ in at most 1" in said) == (kind == "few changes")
    assert "No inputs exist, in values as the models store them:\nTogether" not in said


def rows_of(claim: Document, parts: list[Document], wanted: str) -> list[int]:
    """Rows whose parts say `found`, or `none`."""
    return [n for n, row in enumerate(claim["rows"]) if {parts[i]["claim"] for i in row["parts"]} == {wanted}]


@pytest.mark.parametrize("kind", QUESTIONS)
def test_a_case_of_a_row_that_is_left_out_is_noticed(kind: str, made: Callable[[str], Made], folder: Path) -> None:
    _, claim, parts = made(kind)
    lacking = rows_of(claim, parts, "none")
    assert any(len(claim["rows"][n]["parts"]) > 1 for n in lacking)
    for n in lacking:
        for left_out in claim["rows"][n]["parts"]:
            planted = copy.deepcopy(claim)
            planted["rows"][n]["parts"].remove(left_out)
            with pytest.raises(checker.Rejected, match="answered by no part"):
                follows(planted, parts, folder)


@pytest.mark.parametrize("kind", QUESTIONS)
def test_an_answer_of_another_row_is_noticed(kind: str, made: Callable[[str], Made], folder: Path) -> None:
    _, claim, parts = made(kind)
    having = rows_of(claim, parts, "found")
    for n, other in itertools.product(range(len(claim["rows"])), having):
        if claim["rows"][n]["sets"] == claim["rows"][other]["sets"]:
            continue
        planted = copy.deepcopy(claim)
        planted["rows"][n]["parts"] = claim["rows"][other]["parts"]
        with pytest.raises(checker.Rejected, match="inputs are an answer of no case"):
            follows(planted, parts, folder)


LESS: dict[str, Callable[[Document], Any]] = {
    "a set": lambda s: s["domain"].pop(0),
    "the set of the row": lambda s: s["domain"].pop(),
    "a row": lambda s: s["rows"].pop(),
    "a bound": lambda s: s["rows"][0].update(bound={"rational": "-100", "logs": []}),
    "another model": lambda s: s["models"][0].update(sha256="0" * 64),
}


@pytest.mark.parametrize("kind", QUESTIONS)
@pytest.mark.parametrize("change", LESS)
def test_inputs_that_satisfy_less_are_no_answer(
    change: str, kind: str, made: Callable[[str], Made], folder: Path
) -> None:
    _, claim, parts = made(kind)
    for n in rows_of(claim, parts, "found"):
        (place,) = claim["rows"][n]["parts"]
        planted = copy.deepcopy(parts)
        LESS[change](planted[place]["statement"])
        with pytest.raises(checker.Rejected, match="inputs are an answer of no case"):
            follows(claim, planted, folder)


def test_points_that_may_differ_in_more_are_no_answer(made: Callable[[str], Made], folder: Path) -> None:
    for kind in ("a pair", "few changes"):
        _, claim, parts = made(kind)
        for n in rows_of(claim, parts, "found"):
            (place,) = claim["rows"][n]["parts"]
            for varied in (None, [0, 1, 2]):
                planted = copy.deepcopy(parts)
                planted[place]["statement"]["same_except"] = varied
                with pytest.raises(checker.Rejected, match="inputs are an answer of no case"):
                    follows(claim, planted, folder)
    planted = copy.deepcopy(claim)
    planted["whole"]["apart"] = [{"features": [0, 1, 2], "least": 1}]
    with pytest.raises(checker.Rejected, match="inputs are an answer of no case"):
        follows(planted, parts, folder)


def test_a_feature_without_a_set_is_never_missing_whatever_an_alternative_says(folder: Path) -> None:
    """The words say so of the question. Without the set of the alternative inputs are an answer; with it one may be missing."""
    data = (folder / "m.json").read_bytes()
    model = {"sha256": hashlib.sha256(data).hexdigest(), "format": "xgboost-json", "trees": 3, "base": ["0"]}
    points = [{"name": "a", "model": 0}, {"name": "b", "model": 0}]
    lists: Document = {"domain": [], "rows": [], "clauses": [], "orders": []}
    statement = {"models": [model], "points": points, "same_except": [0, 1, 2], **lists}
    sets = [[0, f, {"runs": [[None, None]]}] for f in range(3)]
    loose = [[1, 1, {"runs": [[0, 1]], "missing": True}]]
    for more, accepted in (([], True), (loose, False)):
        alternative = {**lists, "domain": more, "either": [], "changes": [], "apart": []}
        whole = {"statement": statement, "either": [[alternative]], "changes": [], "apart": []}
        part = {"claim": "found", "statement": {**statement, "domain": [*sets, *more]}}
        claim = {"kind": "answers", "whole": whole, "rows": [{"sets": sets, "parts": [0]}]}
        if accepted:
            assert follows(claim, [part], folder)[0].endswith("1 have an answer.")
        else:
            with pytest.raises(checker.Rejected, match="inputs are an answer of no case"):
                follows(claim, [part], folder)


HOSTILE: dict[str, tuple[str, Callable[[Document], Any]]] = {
    "no rows": ("no parts", lambda c: c.update(rows=[])),
    "rows that are an object": ("no list", lambda c: c.update(rows={"0": 1})),
    "a row that is a list": ("no object", lambda c: c.update(rows=[[]])),
    "a row of no parts": ("answered by no part", lambda c: c["rows"][0].update(parts=[])),
    "more in a row": ("has the parts", lambda c: c["rows"][0].update(more=1)),
    "a part that is not there": ("index", lambda c: c["rows"][0].update(parts=[999])),
    "a part that is a flag": ("index", lambda c: c["rows"][0].update(parts=[True])),
    "a feature without a set": ("without a set for each", lambda c: c["rows"][0]["sets"].pop()),
    "a feature with two sets": ("without a set for each", lambda c: c["rows"][0]["sets"].append([0, 2, {"runs": []}])),
    "sets of the other point": ("without a set for each", lambda c: c["rows"][0]["sets"][0].__setitem__(0, 1)),
    "a set that is a text": ("no object", lambda c: c["rows"][0]["sets"][0].__setitem__(2, "any")),
    "a set with more": ("has the parts", lambda c: c["rows"][0]["sets"][0][2].update(more=1)),
    "a value that is missing where none is": (
        "where the question has none",
        lambda c: c["whole"]["statement"].update(domain=[d for d in c["whole"]["statement"]["domain"] if d[1] != 1]),
    ),
    "a set that is no list": ("no list", lambda c: c["rows"][0]["sets"].__setitem__(0, "set")),
    "a whole without alternatives": ("has the parts", lambda c: c["whole"].pop("either")),
    "an answer with two parts": ("has one part", lambda c: [row.update(parts=row["parts"] * 2) for row in c["rows"]]),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_rows_are_rejected(
    name: str, made: Callable[[str], Made], folder: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    words, change = HOSTILE[name]
    path, _, _ = made("one point")
    document = json.loads(path.read_text())
    change(document["claims"][0])
    hostile = path.parent / "hostile.manifest.json"
    hostile.write_text(json.dumps(document))
    assert run_checker([hostile], [folder / "m.json"], {}) == 1
    said = capfd.readouterr()
    assert ": rejected: " in said.out
    assert words in said.out
    assert "Traceback" not in said.err
    hostile.unlink()
