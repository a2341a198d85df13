"""Answers that lie in none of all cavities: rows whose cells they have, so many features at a time."""

from __future__ import annotations

import itertools
import json
import random
from fractions import Fraction
from pathlib import Path
from typing import Any

import jsonschema
import numpy as np
import pytest
import xgboost
from treesens.extensions.treesens_verify import shares
from treesens.extensions.treesens_verify.by_value import Given

from tests.extensions.certify.given import Inputs, Reached
from tests.extensions.certify.models import train
from treesens.binder.file import bind
from treesens.compiler.result import Result
from treesens.extensions import treesens_verify as checker
from treesens.extensions.certify import produce, whole
from treesens.extensions.certify.command import run_checker
from treesens.grammar.parsing.parser import parse
from treesens.solve.options import Options
from treesens.solve.question import answer_question

HEAD = (
    'model m from "m.json"\ndata d from "d.csv"\n'
    "feature f0: real in [0, 2]\nfeature f1: real in [0, 2] or missing\nfeature f2: real in [0, 2]\nquery q: "
)
QUESTIONS = {
    "two features": "find a in m such that margin(a) >= 0.2; a avoid cavities(d, width = 2, limit = all)",
    "all features": "find a in m such that a.f0 >= 1; a avoid cavities(d, width = 3, limit = all)",
    "a pair": "find a, b in m such that a = b except {f0, f1}; margin(a) - margin(b) >= 0.1; "
    "a, b avoid cavities(d, width = 2, limit = all)",
    "a greatest score": "find a in m such that a avoid cavities(d, width = 2, limit = all) maximize margin(a)",
    "an alternative": "find a in m such that margin(a) >= 9 or a avoid cavities(d, width = 2, limit = all)",
}
Document = dict[str, Any]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("all_cavities")
    train(4, made / "m.json")
    (made / "d.csv").write_text("f0,f1,f2\n" + "".join(",".join(row) + "\n" for row in table()))
    return made


def table() -> list[list[str]]:
    rows = np.random.default_rng(9).integers(0, 5, (30, 3)) / 2
    rows = np.minimum(rows, 2)
    return [[str(x) if (i + f) % 5 or f != 1 else "" for f, x in enumerate(row)] for i, row in enumerate(rows)]


def ask(folder: Path, question: str, name: str) -> Result:
    (asked,) = bind(parse(f"{HEAD}{question}\n", "<test>"), folder).queries
    return answer_question(asked, Options(time_limit=20, certificates=folder / name))


def found_of(result: Result) -> Document:
    (one,) = (one for one in result.certificates if one.claim == "found")
    assert one.reason == "", one
    document: Document = checker.read(one.path)
    return document


def lies_in_none(folder: Path, point: list[float | None], width: int) -> bool:
    """By the table's own rows and the thresholds of XGBoost: cells are the same if no threshold is between them."""
    split = xgboost.Booster(model_file=folder / "m.json").trees_to_dataframe().query("Feature != 'Leaf'")
    cuts = [sorted(set(split[split.Feature == f"f{f}"].Split)) for f in range(3)]

    def cell(f: int, x: float | None) -> int | None:
        return None if x is None else int(np.searchsorted(np.float32(cuts[f]), np.float32(x), side="right"))

    mine = [cell(f, x) for f, x in enumerate(point)]
    rows = [[cell(f, float(x) if x else None) for f, x in enumerate(row)] for row in table()]
    return all(
        any(all(row[f] == mine[f] for f in some) for row in rows) for some in itertools.combinations(range(3), width)
    )


def accepts(folder: Path, document: Document) -> bool:
    try:
        checker.check(json.loads(json.dumps(document)), [(folder / "m.json").read_bytes()])
    except checker.Rejected:
        return False
    return True


@pytest.mark.parametrize("kind", QUESTIONS)
def test_an_answer_has_a_certificate(kind: str, folder: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """Its inputs lie in no cavity by the table itself, and not all rows that it names may be left out."""
    name = kind.replace(" ", "_")
    document = found_of(ask(folder, QUESTIONS[kind], name))
    schema = json.loads((Path(produce.__file__).parent / "schema.json").read_text())
    jsonschema.Draft202012Validator(schema).validate(document)
    further = document["statement"]["further"]
    inner = [one for several in further["either"] for one in several]
    (asked, *_) = [c for one in (further, *inner) for c in one.get("cavities", [])]
    assert all(lies_in_none(folder, point, asked["width"]) for point in document["inputs"])
    booster, base = xgboost.Booster(model_file=folder / "m.json"), document["statement"]["models"][0]["base"][0]
    assert Inputs(Reached(booster), Fraction(base), document["inputs"]).satisfy(further)
    assert len(asked["rows"]) < len(table())
    outcomes = []
    for row in range(len(asked["rows"])):
        fewer = asked | {"rows": asked["rows"][:row] + asked["rows"][row + 1 :]}
        planted = json.loads(json.dumps(document).replace(json.dumps(asked), json.dumps(fewer)))
        outcomes.append(accepts(folder, planted))
        assert outcomes[-1] == Inputs(Reached(booster), Fraction(base), document["inputs"]).satisfy(
            planted["statement"]["further"]
        )
    assert not all(outcomes)
    (path,) = (folder / name).glob("*.found.*.cert.xz")
    assert run_checker([path], [folder / "m.json"], {}) == 0
    said = capfd.readouterr().out
    assert "lies in no cavity" in said
    assert "It is trusted, not proved, that these are cells of" in said


def test_an_answer_that_is_no_row_names_several(folder: Path) -> None:
    """Each of its values is that of another row, so that no single one shows that it lies in no cavity of one feature."""
    (folder / "e.csv").write_text("f0,f1,f2\n0,0,0\n1,1,1\n2,2,2\n")
    text = f'data e from "e.csv"\n{HEAD}find a in m such that a.f0 >= 1.5; a.f2 <= 0.4; '
    (asked,) = bind(parse(f"{text}a avoid cavities(e, width = 1, limit = all)\n", "<test>"), folder).queries
    document = found_of(answer_question(asked, Options(time_limit=20, certificates=folder / "several")))
    (cavities,) = document["statement"]["further"]["cavities"]
    assert len(cavities["rows"]) > 1
    assert accepts(folder, document)


def test_rows_of_one_point_are_looked_at(folder: Path) -> None:
    """By value, in a claim that names all rows of the table: as many as the table itself says."""
    text = "count rows of d as a in m such that margin(a) >= 0.2; a avoid cavities(d, width = 2, limit = all)"
    result = ask(folder, text, "count")
    assert result.count is not None
    assert 0 < result.count.at_least < result.count.total
    (made,) = result.certificates
    assert (made.claim, made.reason) == ("manifest", "")
    assert run_checker([Path(made.path)], [folder / "m.json"], {}) == 0


def test_several_answers_have_certificates(folder: Path) -> None:
    text = "find a in m such that a avoid cavities(d, width = 2, limit = all) maximize margin(a) top 3"
    result = ask(folder, text, "top")
    assert result.certificates
    assert all(one.reason == "" for one in result.certificates)


def test_too_many_cells_are_said_to_be_too_many(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(whole, "MOST_CELLS", 2)
    (one,) = ask(folder, QUESTIONS["two features"], "many").certificates
    assert (one.path, one.reason.split(" of ")[0]) == ("", "all cavities")


def test_the_checker_finds_every_cavity(folder: Path) -> None:
    """Beside all sets of features, for random cells of rows and random points."""
    dice = random.Random(8)
    booster = xgboost.Booster(model_file=folder / "m.json")
    sets = [{"runs": [[None, 0.5]], "missing": True}, {"runs": [[0.75, 1.25]]}, {"values": [1.5, 2.0]}]
    outcomes = []
    for _ in range(400):
        features = sorted(dice.sample(range(3), dice.randint(1, 3)))
        rows = [[dice.choice([0, 0, 1, 2, None]) for _ in features] for _ in range(dice.randint(0, 6))]
        asked = {"point": 0, "width": dice.randint(1, 4), "features": features, "rows": rows}
        further = {"changes": [], "apart": [], "either": [], "cavities": [asked | {"cells": [sets] * len(features)}]}
        point = [dice.choice([0.25, 0.5, 1.0, 1.25, 1.5, 2.0, None]) for _ in range(3)]
        problem = checker.Problem.__new__(checker.Problem)
        problem.largest = 3e38
        given = Given(problem, [[float("nan") if x is None else x for x in point]])
        assert given.satisfies(further) == Inputs(Reached(booster), Fraction(0), [point]).satisfy(further)
        outcomes.append(given.satisfies(further))
    assert 40 < sum(outcomes) < 360


def test_a_box_of_answers_is_refused_under_cavities() -> None:
    """It shows answers of a whole box, of which nothing says that they lie in no cavity."""
    measured = shares.Measured.__new__(shares.Measured)
    measured.varied, measured.statement, measured.problem = [], {}, None
    measured.whole = {"either": [], "changes": [], "apart": [], "cavities": [{}]}
    with pytest.raises(checker.Rejected, match="a box of answers of sums, or of cavities"):
        measured.check_all([], [], [], [])
