"""What inputs are looked at for: sums of values and of probabilities, alternatives, and limits of changes, all by value."""

from __future__ import annotations

import copy
import decimal
import json
import math
import random
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import jsonschema
import numpy as np
import pytest
import xgboost
from treesens.extensions.treesens_verify.cases import check_found
from treesens.extensions.treesens_verify.numbers import exp_bounds

from tests.extensions.certify.given import Inputs, Reached
from tests.extensions.certify.made import parts_of
from tests.extensions.certify.models import train
from treesens.binder.file import bind
from treesens.compiler.result import Result
from treesens.extensions import treesens_verify as checker
from treesens.extensions.certify import produce
from treesens.extensions.certify.command import run_checker
from treesens.extensions.certify.whole import whole_of
from treesens.grammar.parsing.parser import parse
from treesens.solve.options import Options
from treesens.solve.question import answer_question

HEAD = (
    'model m from "m.json"\ndata d from "d.csv"\n'
    "feature f0: real in [0, 2]\nfeature f1: real in [0, 2] or missing\nfeature f2: real in [0, 2]\nquery q: "
)
ONE, PAIR = "find a in m such that margin(a) >= 0.2; ", "find a, b in m such that margin(a) >= 0.2; margin(b) <= 0.1; "
QUESTIONS = {
    "a sum": ONE + "a.f0 + a.f1 + a.f2 >= 2.5",
    "a strict sum": ONE + "a.f0 + 2 * a.f1 < 3.5; a.f0 + a.f1 > 2.5",
    "scores and values": PAIR + "margin(a) - 2 * margin(b) >= 0.3 * b.f1 - a.f0 + 0.5; a.f1 - margin(a) > 0",
    "a difference": PAIR + "a.f0 <= b.f0 - 0.5; a.f1 >= b.f1 + 0.25",
    "the nearest row": ONE + "distance(a, row 0 of d, l2) <= 1.5; distance(a, row 1 of d, l1) >= 0.2",
    "two points": PAIR + "distance(a, b, l1) <= 0.9; distance(a, b, l2) >= 0.1",
    "the largest": PAIR + "distance(a, b, linf) <= 0.7",
    "few changes": PAIR + "changes(a, b) <= 2; distance(a, b, l0) >= 1",
    "probabilities": PAIR + "prob(a) + prob(b) >= 0.95; prob(a) - 2 * prob(b) <= 0",
    "alternatives": PAIR
    + "a.f0 <= b.f0 - 0.5 or (margin(a) >= 1 and prob(a) + prob(b) >= 1.1); a.f1 >= 1 or margin(b) <= -1",
}
SUMS = {
    "a sum": 1, "a strict sum": 2, "scores and values": 2, "a difference": 2, "the nearest row": 2, "two points": 2,
    "the largest": 6, "few changes": 1, "probabilities": 2, "alternatives": 2,
}  # fmt: skip
"""How many sums each names; the largest of three distances is below a limit if both differences of each are."""
Document = dict[str, Any]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("by_value")
    train(4, made / "m.json")
    rows = np.random.default_rng(9).integers(0, 5, (12, 3)) / 2
    rows[::4, 1] = np.nan
    text = "".join(",".join("" if np.isnan(x) else str(x) for x in row) + "\n" for row in rows)
    (made / "d.csv").write_text(f"f0,f1,f2\n{text}")
    return made


def ask(folder: Path, question: str, name: str) -> Result:
    (asked,) = bind(parse(f"{HEAD}{question}\n", "<test>"), folder).queries
    return answer_question(asked, Options(time_limit=20, certificates=folder / name))


@pytest.fixture(scope="module")
def made(folder: Path) -> Callable[[str], Document]:
    """The certificate of an answer, which is made once."""
    known: dict[str, Document] = {}

    def document(kind: str) -> Document:
        if kind not in known:
            result = ask(folder, QUESTIONS[kind], kind.replace(" ", "_"))
            (one,) = result.certificates
            assert (one.claim, one.reason) == ("found", ""), one
            known[kind] = checker.read(one.path)
        return copy.deepcopy(known[kind])

    return document


def accepts(folder: Path, document: Document) -> bool:
    try:
        checker.check(json.loads(json.dumps(document)), [(folder / "m.json").read_bytes()])
    except checker.Rejected:
        return False
    return True


@pytest.mark.parametrize("kind", QUESTIONS)
def test_an_answer_has_a_certificate_that_says_all(
    kind: str, made: Callable[[str], Document], folder: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """Nothing is left out, the inputs satisfy it by XGBoost, and the command says all of it."""
    document = made(kind)
    assert document["about"]["left_out"] == []
    jsonschema.Draft202012Validator(json.loads((Path(produce.__file__).parent / "schema.json").read_text())).validate(
        document
    )
    booster = xgboost.Booster(model_file=folder / "m.json")
    inputs = Inputs(Reached(booster), Fraction(document["statement"]["models"][0]["base"][0]), document["inputs"])
    assert inputs.satisfy(document["statement"]["further"])
    (path,) = (folder / kind.replace(" ", "_")).glob("*.cert.xz")
    assert run_checker([path], [folder / "m.json"], {}) == 0
    said = capfd.readouterr().out
    further = document["statement"]["further"]
    wanted = {
        "values": ("f0", "<"),
        "chances": ("e^(", ">="),
        "changes": ("at most",),
        "either": ("one of these holds",),
    }
    for name, words in wanted.items():
        assert not further[name] or all(word in said for word in words), said


def relations(asked: Document) -> list[Document]:
    """All sums, those of alternatives as well."""
    inner = [more for several in asked["either"] for one in several for more in relations(one)]
    return [*asked["values"], *asked["chances"], *inner]


@pytest.mark.parametrize("kind", QUESTIONS)
def test_inputs_that_do_not_satisfy_it_are_rejected(kind: str, made: Callable[[str], Document], folder: Path) -> None:
    """Each bound is moved to either side: what is accepted is true by XGBoost, and a bound far away is not reached."""
    booster = xgboost.Booster(model_file=folder / "m.json")
    outcomes = set()
    assert len(relations(made(kind)["statement"]["further"])) == SUMS[kind]
    for number in range(SUMS[kind]):
        for move in ("-50", "-1", "-1/8", "-1/1000000", "1/1000000", "1/8", "1", "50"):
            document = made(kind)
            further = document["statement"]["further"]
            one = relations(further)[number]
            end = "most" if "most" in one else "least"
            one[end] = str(Fraction(one[end]) + Fraction(move))
            inputs = Inputs(
                Reached(booster), Fraction(document["statement"]["models"][0]["base"][0]), document["inputs"]
            )
            assert accepts(folder, document) == inputs.satisfy(further), (one, move)
            outcomes.add(accepts(folder, document))
    assert outcomes == {True, False} or kind == "alternatives"
    document = made(kind)
    document["statement"]["further"]["either"].append([])
    assert not accepts(folder, document)


def test_changes_are_counted(made: Callable[[str], Document], folder: Path) -> None:
    document = made("few changes")
    one, other = document["inputs"]
    differ = sum(x != y for x, y in zip(one, other, strict=True))
    for name, end in (("changes", "most"), ("apart", "least")):
        for limit in range(-1, 5):
            changed = made("few changes")
            changed["statement"]["further"][name] = [{"features": [0, 1, 2], end: limit}]
            assert accepts(folder, changed) == (differ <= limit if name == "changes" else differ >= limit)


def test_a_missing_value_makes_a_sum_false_and_a_distance_one(made: Callable[[str], Document], folder: Path) -> None:
    document = made("a sum")
    document["statement"]["rows"] = []
    document["inputs"][0][1] = None
    assert not accepts(folder, document)
    for relation, holds in (
        ([["1", 0, 1, {"value": None}, "2", 1]], True),
        ([["1", 0, 1, {"value": 1.5}, "2", 2]], False),
        ([["1", 0, 1, {"value": None}, None, 1]], True),
        ([["1", 0, 1, {"value": 1.5}, None, 1]], False),
    ):
        document["statement"]["further"]["values"] = [{"terms": relation, "most": "1", "strict": True}]
        assert accepts(folder, document) == holds


def test_a_proof_knows_no_further_part(made: Callable[[str], Document], folder: Path) -> None:
    """`none` with it would be a weaker claim than its proof; it is refused in every form."""
    document = made("a sum")
    del document["inputs"]
    document |= {"claim": "none", "apart": [], "nodes": [[]]}
    with pytest.raises(checker.Rejected, match="the statement has the parts"):
        checker.check(document, [(folder / "m.json").read_bytes()])


def test_powers_of_e_are_enclosed() -> None:
    context = decimal.Context(prec=120, Emax=10**9, Emin=-(10**9))
    dice = random.Random(5)
    numbers = [Fraction(dice.uniform(-30, 30)) for _ in range(200)]
    numbers += [Fraction(dice.randrange(-(10**9), 10**9), dice.randrange(1, 10**6)) % 60000 for _ in range(100)]
    numbers += [Fraction(sign, 10**n) for sign in (1, -1) for n in (0, 1, 20, 40, 60)]
    numbers += [Fraction(x) for x in (0, 1, -1, 65536, -65536, math.log(2), -math.log(2))]
    for x in numbers:
        low, high = exp_bounds(x)
        exact = context.exp(context.divide(decimal.Decimal(x.numerator), decimal.Decimal(x.denominator)))
        assert low <= high
        assert low * (1 - Fraction(1, 10**90)) <= Fraction(exact) <= high * (1 + Fraction(1, 10**90))
        assert high - low <= low / 2**240
    low, high = exp_bounds(Fraction(10) ** 30)
    assert (low, high) == (exp_bounds(Fraction(65536))[0], None)
    assert exp_bounds(-(Fraction(10) ** 30)) == (0, exp_bounds(Fraction(-65536))[1])


@pytest.mark.parametrize(
    ("constant", "least", "strict", "holds"),
    [
        ("-100000000", "1", False, False),  # below 1, by less than anything
        ("-100000000", "999999999/1000000000", True, True),
        ("100000000", "0", False, True),
        ("100000000", "0", True, False),  # above 0, but no enclosure says so
        ("100000000", "1/1000000000", False, False),
        ("0", "1/2", False, False),  # 1/2, which an enclosure does not tell
        ("0", "499999999/1000000000", True, True),
    ],
)
def test_what_an_enclosure_does_not_tell_does_not_hold(
    constant: str, least: str, strict: bool, holds: bool, made: Callable[[str], Document], folder: Path
) -> None:
    document = made("a sum")
    chance = {"terms": [["1", [[[], constant]]]], "least": least, "strict": strict}
    document["statement"]["further"]["chances"] = [chance]
    assert accepts(folder, document) == holds


def distance(row: list[float], other: list[float]) -> float:
    """In widths of the domain; a missing value is one away from others."""
    apart = (
        abs(x - y) / 2 if not math.isnan(x + y) else math.isnan(x) != math.isnan(y)
        for x, y in zip(row, other, strict=True)
    )
    return float(sum(apart))


COUNTS: dict[str, tuple[str, Callable[[list[float], float, list[float]], bool]]] = {
    "a sum": ("margin(a) >= -9; a.f0 + a.f1 >= 2", lambda x, _p, _row: x[0] + x[1] >= 2),
    "a distance": (
        "margin(a) >= -9; distance(a, row 1 of d, l1) <= 1.25",
        lambda x, _p, row: distance(x, row) <= 1.25,
    ),
    "scores and values": (
        "margin(a) >= a.f0 + 0.5 * a.f1 - 1",
        lambda x, p, _row: math.log(p / (1 - p)) >= x[0] + 0.5 * x[1] - 1,
    ),
    "alternatives": ("a.f0 + a.f2 >= 3 or prob(a) >= 0.7", lambda x, p, _row: x[0] + x[2] >= 3 or p >= 0.7),
}


@pytest.mark.parametrize("kind", COUNTS)
def test_rows_of_one_point_are_looked_at(kind: str, folder: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """One claim without parts, whose number is that of XGBoost and the values of the table."""
    text, holds = COUNTS[kind]
    result = ask(folder, f"count rows of d as a in m such that {text}", f"count_{kind.replace(' ', '_')}")
    (made,) = result.certificates
    assert result.count is not None
    assert (made.claim, made.reason) == ("manifest", "")
    rows = np.genfromtxt(folder / "d.csv", delimiter=",", skip_header=1)
    chance = xgboost.Booster(model_file=folder / "m.json").predict(xgboost.DMatrix(rows.astype(np.float32)))
    listed = rows.tolist()
    wanted = sum(holds(row, p, listed[1]) for row, p in zip(listed, chance.tolist(), strict=True))
    assert 0 < wanted < len(listed)
    assert (result.count.at_least, result.count.total) == (wanted, len(listed))
    assert run_checker([Path(made.path)], [folder / "m.json"], {}) == 0
    said = f"of {len(listed)} rows, each given by its values, {wanted} are an answer of the question:"
    assert said in capfd.readouterr().out
    assert json.loads(Path(made.path).read_text())["parts"] == []


PAIRS = {
    "a difference": "a = b except {f0, f2}; margin(b) - margin(a) >= 1; b.f0 <= a.f0 - 0.5",
    "alternatives": "a = b except {f0, f2}; margin(b) - margin(a) >= 1; b.f0 <= a.f0 - 0.5 or margin(b) >= 3",
    "a distance": "distance(a, b, l1) <= 0.3; margin(b) - margin(a) >= 1",
    "scores and values": "a = b except {f0, f2}; margin(b) - margin(a) >= b.f0 - a.f0 + 1.7",
}


@pytest.mark.parametrize("kind", PAIRS)
def test_rows_of_a_pair_have_answers_by_value(kind: str, folder: Path) -> None:
    """Some rows are proved to have none, and the others are shown an answer, in a claim about the whole question."""
    out = folder / f"pairs_{kind.replace(' ', '_')}"
    (asked,) = bind(parse(f"{HEAD}count rows of d as a, b in m such that {PAIRS[kind]}\n", "<test>"), folder).queries
    result = answer_question(asked, Options(certificates=out, require_certificate=True))
    assert result.count is not None
    assert 0 < result.count.at_least < result.count.total
    assert all(one.path for one in result.certificates), result.certificates
    (path,) = (p for p in out.glob("*.manifest.json") if "case" not in p.name and "rows" in p.read_text())
    (claim,) = json.loads(path.read_text())["claims"]
    parts = parts_of(path)
    found = [n for n, part in enumerate(parts) if part["claim"] == "found"]
    assert all("further" not in part["statement"] for part in parts if part["claim"] == "none")
    data = (folder / "m.json").read_bytes()

    def read(stated: Document) -> Any:
        return checker.read_model(data, stated)

    assert f"{result.count.at_least} have an answer" in checker.together(claim, parts, read)[0]
    # The same as a claim about the whole question: all that it asks is asked of the inputs.
    whole = json.loads(json.dumps(whole_of(replace(asked.query, rows=None))))
    rows = [{"sets": parts[n]["statement"]["domain"][-3:], "parts": [n]} for n in claim["parts"]]
    claim = {"kind": "answers", "whole": whole, "rows": rows}
    assert f"{result.count.at_least} have an answer" in checker.together(claim, parts, read)[0]
    number = next(n for n in found if "further" in parts[n]["statement"])
    further = parts[number]["statement"]["further"]
    for name in further:
        if whole[name]:
            planted = copy.deepcopy(parts)
            planted[number]["statement"]["further"][name].pop()
            with pytest.raises(checker.Rejected, match="inputs are an answer of no case"):
                checker.together(claim, planted, read)
    del parts[number]["statement"]["further"]
    with pytest.raises(checker.Rejected, match="inputs are an answer of no case"):
        checker.together(claim, parts, read)


KNOTS = [["-1", "0"], ["0", "1/4"], ["1/2", "1/4"], ["3/4", "1"]]
CURVES: list[Document | None] = [
    None,
    {"slope": "-3/2", "intercept": "1/4", "of_probability": False},
    {"slope": "-3/2", "intercept": "1/4", "of_probability": True},
    {"slope": "1000000", "intercept": "0", "of_probability": False},
    {"knots": KNOTS, "of_probability": False},
    {"knots": KNOTS, "of_probability": True},
    {"knots": [["0", "0"], ["0", "1/2"], ["1/3", "1"]], "of_probability": False},
    {"knots": [["5", "1/3"]], "of_probability": True},
]


@pytest.mark.parametrize("curve", CURVES)
def test_functions_of_a_score(curve: Document | None, made: Callable[[str], Document], folder: Path) -> None:
    """Bounds on both sides of what decimals say of the sum of a curve at two points."""
    document = made("two points")
    booster = xgboost.Booster(model_file=folder / "m.json")
    given = Inputs(Reached(booster), Fraction(document["statement"]["models"][0]["base"][0]), document["inputs"])
    scores = [[["1", 0, 0]], [["1", 1, 0], ["-1/3", 0, 0]]]
    terms = [["1", scores[0], curve], ["-1/2", scores[1], curve]]
    value = sum(Fraction(c) * given.curve_of(scores, curve) for c, scores, _ in terms)
    for step, holds in ((Fraction(-1, 10**40), True), (Fraction(1, 10**40), False)):
        chance = {"terms": terms, "least": str(Fraction(round((value + step) * 10**60), 10**60)), "strict": False}
        document["statement"]["further"]["chances"] = [chance]
        assert accepts(folder, document) == holds


def test_a_row_too_close_to_a_bound_is_not_counted(folder: Path) -> None:
    """Neither as an answer nor as none: what an enclosure does not tell is no claim."""
    (made,) = ask(folder, "count rows of d as a in m such that a.f0 + a.f2 >= 2", "close").certificates
    (claim,) = json.loads(Path(made.path).read_text())["claims"]
    data = (folder / "m.json").read_bytes()

    def said() -> str:
        return str(checker.together(claim, [], lambda stated: checker.read_model(data, stated))[0])

    before = said()
    half = {"terms": [["1", [[[], "0"]]]], "least": "1/2"}
    for strict in (False, True):
        claim["whole"]["chances"] = [{**half, "strict": strict}]
        with pytest.raises(checker.Rejected, match="too close to a bound"):
            said()
    claim["whole"]["chances"] = [{**half, "least": "499/1000", "strict": True}]
    assert said() == before
    claim["whole"]["chances"] = [{**half, "least": "501/1000", "strict": True}]
    assert " 0 are an answer" in said()
    claim["whole"]["chances"] = []
    bound = {"rational": "0", "logs": [["1", "2"], ["1", "3"], ["-1", "6"]]}  # ln 2 + ln 3 - ln 6
    claim["whole"]["statement"]["rows"] = [{"terms": [], "costs": [], "bound": bound, "strict": False}]
    with pytest.raises(checker.Rejected, match="too close to a bound"):
        said()


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (lambda row: row["values"].append(0), "wrong shape"),
        (lambda row: row["values"].pop(), "wrong shape"),
        (lambda row: row.__setitem__("values", [1e-50, 0, 0]), "no float32"),
        (lambda row: row.__setitem__("values", [True, 0, 0]), "no float"),
        (lambda row: row.__setitem__("values", ["0", 0, 0]), "no float"),
        (lambda row: row.__setitem__("values", 5), "no list"),
        (lambda row: row.__setitem__("sets", {}), "a row has the parts"),
    ],
)
def test_a_row_of_values_has_one_form(change: Callable[[Document], None], reason: str, folder: Path) -> None:
    (made,) = ask(folder, "count rows of d as a in m such that a.f0 + a.f2 >= 2", "forms").certificates
    (claim,) = json.loads(Path(made.path).read_text())["claims"]
    change(claim["rows"][0])
    data = (folder / "m.json").read_bytes()
    with pytest.raises(checker.Rejected, match=reason):
        checker.together(claim, [], lambda stated: checker.read_model(data, stated))


def test_rows_of_values_are_rows_of_one_point(made: Callable[[str], Document], folder: Path) -> None:
    statement = made("two points")["statement"]
    whole = {
        "statement": {k: v for k, v in statement.items() if k != "further"},
        "either": [],
        "changes": [],
        "apart": [],
    }
    data = (folder / "m.json").read_bytes()
    with pytest.raises(checker.Rejected, match="more than one input"):
        checker.together(
            {"kind": "answers", "whole": whole, "rows": [{"values": [0, 0, 0]}]},
            [],
            lambda stated: checker.read_model(data, stated),
        )


@pytest.mark.parametrize("name", ["chances", "either"])
def test_outputs_of_learnt_trees_are_named_by_their_place(name: str) -> None:
    """An answer about other learnt trees at the same place is no answer: the number of an output means another score there."""
    models = [{"sha256": digit * 64, "format": "treesens-trees", "trees": 1, "base": ["0"]} for digit in "012"]
    statement: Document = {
        "models": models, "points": [{"name": "a", "model": 0}], "same_except": None, "learnt": [1, 2],
        **{part: [] for part in ("domain", "rows", "clauses", "orders")},
    }  # fmt: skip
    nothing: Document = {part: [] for part in ("either", "changes", "apart", "values", "chances")}
    score = [["1", 0, 1]]
    row = {"terms": score, "costs": [], "bound": {"rational": "0", "logs": []}, "strict": False}
    one = {**nothing, "domain": [], "rows": [row], "clauses": [], "orders": []}
    items = {"chances": [{"terms": [["1", [[score, "0"]]]], "least": "0", "strict": False}], "either": [[one, one]]}
    asked = {**nothing, name: items[name]}
    found = {"claim": "found", "statement": {**statement, "further": asked}}
    check_found({"statement": statement, **asked}, found)
    for learnt in ([2, 1], [1]):
        other = {"claim": "found", "statement": {**statement, "learnt": learnt, "further": asked}}
        with pytest.raises(checker.Rejected, match="inputs are an answer of no case"):
            check_found({"statement": statement, **asked}, other)
