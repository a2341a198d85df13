"""Models of Spark: its answers beside the files (`tests/data/spark/make.py`), and itself if it is there."""

from __future__ import annotations

import json
import math
import shutil
import zipfile
from collections.abc import Callable, Mapping
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import treesens
from tests.extensions.formats.java import in_java
from tests.extensions.formats.spark_files import (
    CLASSES,
    NUMBERS,
    Leaf,
    Node,
    Split,
    counted,
    parquet_of,
    rows_of,
    written,
)
from tests.frontends.damage import refusals
from treesens.compiler.query.predicted_classes import hides_sums, sure_classes
from treesens.errors import ModelError, TreesensError
from treesens.extensions.conformance import formats as conformance
from treesens.extensions.formats.spark.frontend import SparkFrontend
from treesens.frontends.registry import load
from treesens.links import Identity, Logistic

pytest.importorskip("pyarrow")
FOLDER = Path(__file__).parents[2] / "data" / "spark"
FILES = sorted(path.stem for path in FOLDER.glob("*.zip"))
TREE, FOREST = CLASSES + "DecisionTreeClassificationModel", CLASSES + "RandomForestClassificationModel"
BOOSTED = CLASSES + "GBTClassificationModel"
VALUE, VALUES = NUMBERS + "DecisionTreeRegressionModel", NUMBERS + "RandomForestRegressionModel"
NAN = math.nan


def need_spark() -> None:
    pytest.importorskip("pyspark", reason="pip install pyspark, and Java")
    if shutil.which("java") is None:
        pytest.skip("Java is not here")


def answered(name: str) -> dict[str, Any]:
    """Rows, and the margins, probabilities or values, classes and leaves that Spark returned for them."""
    asked = json.loads((FOLDER / f"{name}.json").read_text())
    rows = [[NAN if x is None else float.fromhex(x) for x in row] for row in asked["rows"]]
    return asked | {
        "rows": np.array(rows),
        **{key: [[float.fromhex(x) for x in row] for row in asked[key]] for key in ("margins", "answers")},
    }


@pytest.mark.parametrize("name", FILES)
def test_files_are_read_as_spark_scores_them(name: str) -> None:
    e = load(FOLDER / f"{name}.zip").ensemble
    asked = answered(name)
    rows = asked["rows"]
    margins = e.margins_emulated(rows)
    assert len(rows) == 80
    assert np.isnan(rows).any() or all(feature.needs_value for feature in e.features)
    assert e.leaf_node[e.leaves(rows)].tolist() == asked["leaves"]
    if e.accumulation.any_order:
        off = np.abs(margins - np.array(asked["margins"]))
        assert (off <= 2 * float(e.band())).all()
    else:
        assert margins.tolist() == asked["margins"]
    # A forest of Spark divides the votes by their sum, which is the number of trees up to its last digits.
    assert e.probabilities(margins) == pytest.approx(np.array(asked["answers"]), rel=1e-14)
    assert (None if not e.classes else e.predicted_classes(margins).tolist()) == asked["classes"]


@pytest.mark.parametrize("name", FILES)
@pytest.mark.sampled
def test_spark_itself_says_the_same_on_every_threshold(name: str) -> None:
    need_spark()
    import pyspark

    model = load(FOLDER / f"{name}.zip")
    if model.ensemble.source.version[:1] > pyspark.__version__[:1]:
        pytest.skip("a later Spark has saved it")
    conformance.check(in_java(model), rows=40).raise_if_wrong()


def test_categories_are_in_the_files() -> None:
    """The files above have splits by category with more than half of the codes on either side."""
    sets = [load(FOLDER / f"{name}.zip").ensemble for name in FILES if "pipeline" not in name]
    assert all([f.categories for f in e.features][1:] in ([0, 12, 2, 0], [0, 12, 0, 0]) for e in sets)
    unseen = {bool(side) for e in sets for side in e.default_left[e.category_set >= 0]}
    assert unseen == {True, False}


# --- trees made by hand, with what the reference says of them ----------------------------------------------------------------


def leaves(left: float, right: float) -> tuple[Leaf, Leaf]:
    return Leaf(left), Leaf(right)


def by_codes(codes: list[float], categories: int) -> Node:
    return Split(1, *leaves(1, 2), codes=codes, categories=categories)


CASES: list[tuple[Node, int, list[float], list[float]]] = [
    # At most the threshold goes left, and NaN goes right.
    (
        Split(0, *leaves(1, 2), threshold=1.5),
        0,
        [1.5, math.nextafter(1.5, 2), -math.inf, math.inf, NAN],
        [1, 2, 1, 2, 2],
    ),
    (Split(0, *leaves(1, 2), threshold=0.0), 0, [0.0, -0.0, 5e-324, -5e-324], [1, 1, 2, 1]),
    # Two of five codes: they are kept, and all else goes right.
    (by_codes([1, 3], 5), 1, [0, 1, 2, 3, 4, 5, -1, 99, NAN], [2, 1, 2, 1, 2, 2, 2, 2, 2]),
    # Three of five: the other two are kept, and all else goes left.
    (by_codes([0, 1, 3], 5), 1, [0, 1, 2, 3, 4, 5, -1, 99, NAN], [1, 1, 2, 1, 2, 1, 1, 1, 1]),
    # Two of four are no more than half.
    (by_codes([0, 2], 4), 1, [0, 1, 2, 3, 4, NAN], [1, 2, 1, 2, 2, 2]),
    (by_codes([0, 1, 2], 4), 1, [0, 1, 2, 3, 4, NAN], [1, 1, 1, 2, 1, 1]),
    (by_codes([], 3), 1, [0, 2, 3, NAN], [2, 2, 2, 2]),
    (by_codes([0, 1, 2], 3), 1, [0, 2, 3, NAN], [1, 1, 1, 1]),
    (by_codes([0], 1), 1, [0, 1, NAN], [1, 1, 1]),
    # A tree that is a leaf.
    (Leaf(7.25), 0, [0, NAN], [7.25, 7.25]),
]


def rows_with(column: int, values: list[float]) -> np.ndarray:
    rows = np.zeros((len(values), 3))
    rows[:, column] = values
    return rows


@pytest.mark.parametrize("case", range(len(CASES)))
def test_a_node_sends_values_where_the_reference_does(case: int, tmp_path: Path) -> None:
    tree, column, values, expected = CASES[case]
    e = load(written(tmp_path / "m.zip", VALUE, [tree])).ensemble
    assert e.margins_emulated(rows_with(column, values))[:, 0].tolist() == expected


@pytest.mark.parametrize("case", range(len(CASES)))
def test_spark_itself_sends_them_there(case: int, tmp_path: Path) -> None:
    need_spark()
    tree, column, values, expected = CASES[case]
    model = in_java(load(written(tmp_path / "m.zip", VALUE, [tree])))
    assert model.margins(rows_with(column, values))[:, 0].tolist() == expected


def two_leaves(first: tuple[float, ...], second: tuple[float, ...]) -> Node:
    return Split(0, counted(*first), counted(*second), threshold=0.0)


def test_votes_are_shares_of_leaves_added_up_in_the_order_of_the_trees(tmp_path: Path) -> None:
    """By the arithmetic of the module's docstring, in float64."""
    counts = [(1.0, 2.0, 4.0), (0.1, 0.2, 0.3), (5.0, 3.0, 3.0)]
    trees = [two_leaves(own, (3.0, 2.0, 1.0)) for own in counts]
    e = load(written(tmp_path / "m.zip", FOREST, trees)).ensemble
    votes = [0.0, 0.0, 0.0]
    for own in counts:
        total = 0.0
        for n in own:
            total += n
        votes = [vote + n / total for vote, n in zip(votes, own, strict=True)]
    row = np.array([[-1.0, 0.0, 0.0]])
    assert e.margins_emulated(row).tolist() == [[vote / 3 for vote in votes]]
    assert e.predicted_classes(e.margins_emulated(row)).tolist() == [votes.index(max(votes))]


def test_a_forest_of_values_divides_by_the_number_of_its_trees(tmp_path: Path) -> None:
    trees = [Split(0, *leaves(value, 5.0), threshold=0.0) for value in (0.1, 0.2, 0.7)]
    e = load(written(tmp_path / "m.zip", VALUES, trees)).ensemble
    assert e.margins_emulated(np.array([[-1.0, 0, 0], [1.0, 0, 0]]))[:, 0].tolist() == [(0.1 + 0.2 + 0.7) / 3, 5.0]


def test_questions_about_the_class_are_answered_as_spark_predicts() -> None:
    """The classes of rows that Spark was asked about: theirs is found, and no other one is."""
    for name in ("tree_two", "tree_three", "forest_two", "forest_three"):
        model, asked = load(FOLDER / f"{name}.zip"), answered(name)
        e = model.ensemble
        lines, wanted = [], {}
        plain = [
            i
            for i, row in enumerate(asked["rows"])
            if np.isfinite(row).all() and row[2] in range(12) and row[3] in (0, 1)
            # a number that a question can write with all of its digits
            if max(len(format(Decimal(x), "f")) for x in row.tolist()) < 80
        ]
        for i in plain[:6]:
            values = "; ".join(
                f"a.f{column} = {int(x) if e.features[column].categories else format(Decimal(x), 'f')}"
                for column, x in enumerate(asked["rows"][i].tolist())
            )
            for label in e.classes:
                lines.append(f"query q{i}_{label}: find a in m such that class(a) = {label}; {values}")
                wanted[f"q{i}_{label}"] = "found" if label == asked["classes"][i] else "none"
        answers = treesens.check_text('model m from "m"\n' + "\n".join(lines), models={"m": model})
        assert len(wanted) >= 4
        assert {key: answers[key].to_dict()["verdict"] for key in wanted} == wanted, name


# --- sums that a quotient hides ----------------------------------------------------------------------------------------------


def hidden_pair(trees: int) -> tuple[float, float]:
    """Two neighbouring sums of which the quotient by the number of trees is one float."""
    for step in range(1, 400):
        low = trees * (0.5 + step * 2.0**-10)
        for _ in range(8):
            high = math.nextafter(low, math.inf)
            if low / trees == high / trees:
                return low, high
            low = high
    raise AssertionError("no such sums")


def test_a_quotient_that_hides_which_sum_is_greater_is_known(tmp_path: Path) -> None:
    """Spark compares the sums of the votes. Two sums may differ, and be equal after the division by the number of trees."""
    e = load(written(tmp_path / "m.zip", FOREST, [two_leaves((1.0, 1.0), (2.0, 1.0))] * 3)).ensemble
    low, high = hidden_pair(3)
    assert low != high
    quotient = low / 3
    assert hides_sums(e, quotient)
    assert sure_classes(e, np.array([[quotient, quotient]])) == [None]
    # One half is the quotient of one sum alone: a tie there is a tie, and its first class is predicted.
    assert not hides_sums(e, 0.5)
    assert sure_classes(e, np.array([[0.5, 0.5], [0.25, 0.75]])) == [0, 1]
    # Division by a power of two is exact.
    four = load(written(tmp_path / "f.zip", FOREST, [two_leaves((1.0, 1.0), (2.0, 1.0))] * 4)).ensemble
    assert not any(hides_sums(four, x / 1024) for x in range(1, 1024))


def test_a_tie_of_two_classes_is_the_first_one(tmp_path: Path) -> None:
    model = load(written(tmp_path / "m.zip", FOREST, [two_leaves((1.0, 1.0), (1.0, 3.0))] * 3))
    question = (
        'model m from "m"\nquery tie: find a in m such that class(a) = 0\nquery two: find a in m such that class(a) = 1'
    )
    answers = treesens.check_text(question, models={"m": model})
    assert answers["tie"].to_dict()["verdict"] == "found"
    assert answers["tie"].to_dict()["points"]["a"]["f0"] <= 0
    assert answers["two"].to_dict()["verdict"] == "found"
    assert answers["two"].to_dict()["points"]["a"]["f0"] > 0


# --- thresholds of classes ---------------------------------------------------------------------------------------------------

SHARES = [(0.7, 0.3), (0.5, 0.5), (0.25, 0.75), (0.15, 0.85), (0.05, 0.95)]


def by_shares(path: Path, kind: str, thresholds: list[float], shares: list[tuple[float, ...]] = SHARES) -> Path:
    """A model whose leaves count rows in these shares, by where `f0` stands between whole numbers."""
    tree: Node = counted(*(100 * share for share in shares[-1]))
    for number in reversed(range(len(shares) - 1)):
        tree = Split(0, counted(*(100 * share for share in shares[number])), tree, threshold=float(number))
    return written(path, kind, [tree] * (3 if kind == FOREST else 1), settings={"thresholds": thresholds})


THREE = [(0.5, 0.3, 0.2), (0.2, 0.5, 0.3), (0.1, 0.2, 0.7), (0.3, 0.4, 0.3)]
DIVIDED: list[tuple[str, list[float], list[tuple[float, ...]]]] = [
    (TREE, [0.2, 0.8], [*SHARES]),
    (FOREST, [0.2, 0.8], [*SHARES]),
    (FOREST, [3.0, 1.0], [*SHARES]),
    (TREE, [0.1, 0.6, 0.3], [*THREE]),
    (FOREST, [0.5, 0.25, 1.0], [*THREE]),
]


def expected_of(shares: list[tuple[float, ...]], thresholds: list[float]) -> list[int]:
    """The first of the greatest quotients, as `probability2prediction` of Spark computes it."""
    quotients = [[share / threshold for share, threshold in zip(own, thresholds, strict=True)] for own in shares]
    return [own.index(max(own)) for own in quotients]


@pytest.mark.parametrize("case", range(len(DIVIDED)))
def test_the_class_is_that_of_the_greatest_probability_over_its_threshold(case: int, tmp_path: Path) -> None:
    kind, thresholds, shares = DIVIDED[case]
    model = load(by_shares(tmp_path / "m.zip", kind, thresholds, shares))
    e = model.ensemble
    rows = np.zeros((len(shares), 3))
    rows[:, 0] = np.arange(len(shares))
    expected = expected_of(shares, thresholds)
    assert e.predicted_classes(e.margins_emulated(rows)).tolist() == expected
    assert any("transform" in note for note in model.notes)
    lines = []
    for number in range(len(shares)):
        for label in e.classes:
            lines.append(f"query q{number}_{label}: find a in m such that class(a) = {label}; a.f0 = {number}")
            lines.append(f"query n{number}_{label}: find a in m such that not class(a) = {label}; a.f0 = {number}")
    answers = treesens.check_text('model m from "m"\n' + "\n".join(lines), models={"m": model}, replay="emulated")
    for number, chosen in enumerate(expected):
        for label in e.classes:
            of_class = answers[f"q{number}_{label}"].to_dict()["verdict"]
            of_others = answers[f"n{number}_{label}"].to_dict()["verdict"]
            assert (of_class, of_others) == (("found", "none") if label == chosen else ("none", "found"))


@pytest.mark.parametrize("case", [0, 2, 3])
def test_spark_itself_divides_so(case: int, tmp_path: Path) -> None:
    need_spark()
    kind, thresholds, shares = DIVIDED[case]
    model = in_java(load(by_shares(tmp_path / "m.zip", kind, thresholds, shares)))
    rows = np.zeros((len(shares), 3))
    rows[:, 0] = np.arange(len(shares))
    assert model.predicts is not None
    told = model.predicts(rows).classes
    assert told is not None
    assert told.tolist() == expected_of(shares, thresholds)
    conformance.check(model, rows=10).raise_if_wrong()


def test_quotients_that_are_equal_are_open(tmp_path: Path) -> None:
    """1/4 over 1/4 and 3/4 over 3/4: Spark predicts the first class here, and another one if a last digit differs."""
    shares: list[tuple[float, ...]] = [(0.25, 0.75), (0.5, 0.5)]
    model = load(by_shares(tmp_path / "m.zip", TREE, [0.25, 0.75], shares))
    assert sure_classes(model.ensemble, np.array([[0.25, 0.75], [0.5, 0.5]])) == [None, 0]
    text = 'model m from "m"\n' + "\n".join(
        f"query q{label}_{row}: find a in m such that class(a) = {label}; a.f0 = {row}"
        for label in (0, 1)
        for row in (0, 1)
    )
    answers = treesens.check_text(text, models={"m": model}, replay="emulated")
    found = {name: answers[name].to_dict()["verdict"] for name in answers}
    assert found == {"q0_0": "unknown", "q1_0": "unknown", "q0_1": "found", "q1_1": "none"}


def test_leads_and_audits_of_divided_probabilities(tmp_path: Path) -> None:
    """`by factor g` is about the probabilities themselves, beside the class; an audit asks around t2 / (t1 + t2)."""
    model = load(by_shares(tmp_path / "m.zip", FOREST, [0.2, 0.8]))
    assert model.ensemble.probability_cut == Fraction(8, 10)
    text = 'model m from "m"\nquery a: find a in m such that class(a) = 0 by factor 2\n'
    text += "query b: find a in m such that class(a) = 0 by factor 2.5\n"
    text += "query c: find a in m such that class(a) = 1 by factor 15"
    answers = treesens.check_text(text, models={"m": model}, replay="emulated")
    assert [answers[name].to_dict()["verdict"] for name in "abc"] == ["found", "none", "found"]


# --- boosted trees: sums in an order that depends on the machine -------------------------------------------------------------


def boosted(path: Path, values: list[float], weights: list[float], kind: str = BOOSTED) -> Path:
    """Trees that have a value on the left side, and 1 on the right one."""
    return written(path, kind, [Split(0, *leaves(value, 1.0), threshold=0.0) for value in values], weights=weights)


def fused(product: float, factor: float, total: float) -> float:
    """A product and a sum that are rounded once together, as Java's `Math.fma` does it."""
    return float(Fraction(product) * Fraction(factor) + Fraction(total))


def dots(x: list[float], w: list[float], rng: np.random.Generator) -> list[float]:
    """What libraries make of a dot product: four sums at once with fused products, or products in any order."""
    four = [0.0] * 4
    whole = len(x) - len(x) % 4
    for i in range(whole):
        four[i % 4] = fused(x[i], w[i], four[i % 4])
    java = ((four[0] + four[1]) + four[2]) + four[3]
    for i in range(whole, len(x)):
        java = fused(x[i], w[i], java)
    found = [java]
    for _ in range(6):
        terms = [x[i] * w[i] for i in rng.permutation(len(x))]
        while len(terms) > 1:
            i = int(rng.integers(len(terms) - 1))
            terms[i : i + 2] = [terms[i] + terms[i + 1]]
        found.append(terms[0])
    return found


def test_the_band_of_boosted_trees_holds_in_every_order(tmp_path: Path) -> None:
    rng = np.random.default_rng(3)
    for number in range(6):
        count = int(rng.integers(1, 40))
        values = (rng.normal(size=count) * 10.0 ** rng.integers(-3, 4, count)).tolist()
        weights = [1.0] + [float(rng.choice([0.1, 0.3, 1.0]))] * (count - 1)
        kind = BOOSTED if number % 2 else NUMBERS + "GBTRegressionModel"
        e = load(boosted(tmp_path / "m.zip", values, weights, kind)).ensemble
        exact = e.margins_exact(np.array([[-1.0, 0.0, 0.0]]))[0, 0]
        scale = 2 if kind == BOOSTED else 1
        assert all(abs(exact - scale * Fraction(dot)) <= e.band() for dot in dots(values, weights, rng))


def test_what_only_the_order_of_additions_decides_is_not_found(tmp_path: Path) -> None:
    """Three terms whose sum is 0 in one order, and above 0 in another one: their class is open."""
    tiny = 2.0**-53
    model = load(boosted(tmp_path / "m.zip", [tiny, 1.0, -1.0], [1.0, 1.0, 1.0]))
    assert (tiny + 1.0) - 1.0 == 0 < tiny + (1.0 - 1.0)
    question = """model m from "m"
query low: find a in m such that class(a) = 1; a.f0 <= 0
query high: find a in m such that class(a) = 1; a.f0 > 0
query sure: find a in m such that prob(a) >= 0.99; a.f0 > 0
query even: find a in m such that prob(a) >= 0.5; a.f0 <= 0
"""
    answers = treesens.check_text(question, models={"m": model})
    assert answers["low"].to_dict()["verdict"] == "unknown"
    assert answers["even"].to_dict()["verdict"] == "unknown"
    assert [answers[name].to_dict()["verdict"] for name in ("high", "sure")] == ["found", "found"]
    assert sure_classes(model.ensemble, np.array([[1e-17], [-1e-17], [0.5], [-0.5]])) == [None, None, 1, 0]


CUT = [([0.2, 0.8], "thresholds"), ([0.9, 0.3], "odds"), ([1e-9, 1.0], "far"), ([3.0, 3.0], "even")]
RAW_VALUES = [-3.0, -0.7, -0.01, 0.01, 0.55, 0.6931, 0.7, 2.0, 10.4, 20.0]


def cut_boosting(path: Path, thresholds: list[float]) -> Path:
    """A tree whose raw prediction is one of the values, by where `f0` stands between whole numbers."""
    tree: Node = Leaf(RAW_VALUES[-1])
    for number in reversed(range(len(RAW_VALUES) - 1)):
        tree = Split(0, Leaf(RAW_VALUES[number]), tree, threshold=float(number))
    return written(path, BOOSTED, [tree], weights=[1.0], settings={"thresholds": thresholds})


def cut_rows() -> np.ndarray:
    rows = np.zeros((len(RAW_VALUES), 3))
    rows[:, 0] = np.arange(len(RAW_VALUES))
    return rows


def past(thresholds: list[float]) -> list[int]:
    """`probability2prediction` of Spark, of the probabilities of `GBTClassificationModel`."""
    first = [1 / (1 + math.exp(2 * value)) for value in RAW_VALUES]
    return expected_of([(p, 1.0 - p) for p in first], thresholds)


@pytest.mark.parametrize("case", range(len(CUT)))
def test_thresholds_of_boosted_trees_are_a_cut_off(case: int, tmp_path: Path) -> None:
    thresholds = CUT[case][0]
    model = load(cut_boosting(tmp_path / "m.zip", thresholds))
    e, expected = model.ensemble, past(thresholds)
    assert e.predicted_classes(e.margins_emulated(cut_rows())).tolist() == expected
    assert sure_classes(e, e.margins_emulated(cut_rows())) == expected
    assert any("over its threshold" in note for note in model.notes)
    lines = [
        f"query q{row}_{label}: find a in m such that class(a) = {label}; a.f0 = {row}"
        for row in range(len(RAW_VALUES))
        for label in (0, 1)
    ]
    answers = treesens.check_text('model m from "m"\n' + "\n".join(lines), models={"m": model}, replay="emulated")
    for row, chosen in enumerate(expected):
        verdicts = [answers[f"q{row}_{label}"].to_dict()["verdict"] for label in (0, 1)]
        assert verdicts == (["none", "found"] if chosen else ["found", "none"]), row


@pytest.mark.parametrize("case", range(len(CUT)))
def test_spark_itself_cuts_boosted_trees_there(case: int, tmp_path: Path) -> None:
    need_spark()
    model = in_java(load(cut_boosting(tmp_path / "m.zip", CUT[case][0])))
    assert model.predicts is not None
    told = model.predicts(cut_rows()).classes
    assert told is not None
    assert told.tolist() == past(CUT[case][0])
    conformance.check(model, rows=10).raise_if_wrong()


def test_a_cut_off_of_boosted_trees_that_only_rounding_reaches_is_open(tmp_path: Path) -> None:
    """A sum of 0 in one order and of more in another one, at thresholds that are equal; and a sum that is the cut-off."""
    tiny = 2.0**-53
    trees = [Split(0, *leaves(value, 1.0), threshold=0.0) for value in (tiny, 1.0, -1.0)]
    even = load(written(tmp_path / "m.zip", BOOSTED, trees, weights=[1.0] * 3, settings={"thresholds": [0.5, 0.5]}))
    assert sure_classes(even.ensemble, np.array([[0.0], [1e-16], [-1e-16], [0.5], [-0.5]])) == [None, None, None, 1, 0]
    text = 'model m from "m"\nquery q: find a in m such that class(a) = 1; a.f0 <= 0\n'
    assert treesens.check_text(text, models={"m": even}, replay="emulated")["q"].to_dict()["verdict"] == "unknown"
    cut = load(cut_boosting(tmp_path / "c.zip", [0.2, 0.8])).ensemble
    edge = math.log(4.0)
    near = np.array([[edge], [edge + 1e-15], [edge - 1e-15], [edge + 1e-9], [edge - 1e-9]])
    assert sure_classes(cut, near) == [None, None, None, 1, 0]


def test_margins_of_two_classes_are_log_odds(tmp_path: Path) -> None:
    """By the arithmetic of the module's docstring: a sigmoid of twice the sum of leaves times weights."""
    e = load(boosted(tmp_path / "m.zip", [0.25, -0.75], [1.0, 0.5])).ensemble
    rows = np.array([[-1.0, 0, 0], [1.0, 0, 0]])
    assert e.margins_emulated(rows)[:, 0].tolist() == [2 * (0.25 - 0.375), 2 * 1.5]
    assert e.probabilities(e.margins_emulated(rows))[:, 0] == pytest.approx(
        [1 / (1 + math.exp(0.25)), 1 / (1 + math.exp(-3))]
    )
    assert (e.link, e.classes, e.class_at_zero) == (Logistic(), (0, 1), 0)


# --- what is refused ---------------------------------------------------------------------------------------------------------

SMALL = [two_leaves((1.0, 2.0), (2.0, 1.0))]
REFUSED: list[tuple[str, dict[str, Any], str]] = [
    (TREE, {"class": CLASSES + "LogisticRegressionModel"}, "LogisticRegressionModel"),
    (TREE, {"sparkVersion": "1.6.0"}, "version 1.6.0"),
    (TREE, {"numFeatures": 0}, "0 features"),
    (TREE, {"numFeatures": 10**9}, "1000000000 features"),
    (TREE, {"numClasses": 1}, "1 classes"),
    (TREE, {"numClasses": 3}, "does not have 3 values"),
    (TREE, {"a_field_of_tomorrow": 1}, "a_field_of_tomorrow"),
    (TREE, {"settings": {"a_setting_of_tomorrow": 1}}, "a_setting_of_tomorrow"),
    (TREE, {"settings": {"thresholds": [0.2, 0.0]}}, "or one is 0"),
    (TREE, {"settings": {"thresholds": "0.5"}}, "expected a list"),
    (TREE, {"settings": {"rawPredictionCol": ""}}, "rounded probabilities"),
    (FOREST, {"settings": {"thresholds": [0.2]}}, "1 thresholds for 2 classes"),
    (FOREST, {"numTrees": 2}, "there are 1 trees, but the metadata says 2"),
    (FOREST, {"numTrees": 0}, "0 trees"),
    (BOOSTED, {"settings": {"lossType": "hinge"}}, "the loss hinge"),
    (BOOSTED, {"settings": {"thresholds": [0.0, 0.8]}}, "or one is 0"),
    (BOOSTED, {"settings": {"thresholds": [0.2, 0.3, 0.5]}}, "3 thresholds for 2 classes"),
    (BOOSTED, {"weights": [NAN]}, "the weights of the trees are not plausible"),
    (FOREST, {"weights": [0.5]}, "the weights of the trees are not plausible"),
    (TREE, {"numFeatures": "x"}, "not a whole number"),
]


@pytest.mark.parametrize("case", range(len(REFUSED)))
def test_what_is_not_represented_is_refused_by_name(case: int, tmp_path: Path) -> None:
    kind, changes, reason = REFUSED[case]
    with pytest.raises(ModelError) as refused:
        load(written(tmp_path / "m.zip", kind, SMALL, **changes))
    assert reason in str(refused.value)
    assert refused.value.remedy


def test_a_field_that_decides_may_not_be_missing(tmp_path: Path) -> None:
    for name in ("class", "sparkVersion", "numFeatures", "numClasses", "numTrees"):
        with pytest.raises(ModelError, match=name):
            load(written(tmp_path / "m.zip", FOREST, SMALL, drop=[name]))


def changed_rows(change: Callable[[list[dict[str, Any]]], Any], tree: Node = SMALL[0]) -> list[dict[str, Any]]:
    rows = rows_of(tree)
    change(rows)
    return rows


def split_of(row: dict[str, Any], **values: Any) -> None:
    row["split"] = row["split"] | values


BY_CODE = Split(1, counted(1.0, 2.0), counted(2.0, 1.0), codes=[0, 1], categories=4)
DAMAGED: list[tuple[list[dict[str, Any]], str]] = [
    (changed_rows(lambda rows: rows.pop()), "does not exist"),
    (changed_rows(lambda rows: rows[0].update(id=5)), "gaps"),
    (changed_rows(lambda rows: rows[2].update(id=1)), "gaps"),
    (changed_rows(lambda rows: rows[0].update(rightChild=-1)), "one child"),
    (changed_rows(lambda rows: rows[0].update(leftChild=2)), "pre-order"),
    (changed_rows(lambda rows: rows[0].update(rightChild=1)), "does not exist"),
    (changed_rows(lambda rows: rows[0].update(rightChild=9)), "does not exist"),
    (changed_rows(lambda rows: split_of(rows[0], featureIndex=7)), "feature that does not exist"),
    (changed_rows(lambda rows: split_of(rows[0], featureIndex=-2)), "feature that does not exist"),
    (
        changed_rows(lambda rows: split_of(rows[0], leftCategoriesOrThreshold=[1.0, 2.0])),
        "must have exactly one threshold",
    ),
    (changed_rows(lambda rows: split_of(rows[0], leftCategoriesOrThreshold=[NAN])), "NaN"),
    (changed_rows(lambda rows: split_of(rows[0], numCategories=10**8), BY_CODE), "0 or over 100000 categories"),
    (changed_rows(lambda rows: split_of(rows[0], numCategories=0), BY_CODE), "0 or over 100000 categories"),
    (
        changed_rows(lambda rows: split_of(rows[0], leftCategoriesOrThreshold=[4.0]), BY_CODE),
        "a category does not exist",
    ),
    (
        changed_rows(lambda rows: split_of(rows[0], leftCategoriesOrThreshold=[0.5]), BY_CODE),
        "a category does not exist",
    ),
    (changed_rows(lambda rows: split_of(rows[0], leftCategoriesOrThreshold=[1.0, 1.0]), BY_CODE), "is repeated"),
    (changed_rows(lambda rows: rows[1].update(prediction=0.0)), "the prediction of a leaf contradicts its counts"),
    (changed_rows(lambda rows: rows[1].update(impurityStats=[0.0, 0.0])), "no rows"),
    (changed_rows(lambda rows: rows[1].update(impurityStats=[-1.0, 2.0])), "an invalid number of rows"),
    (changed_rows(lambda rows: rows[1].update(impurityStats=[NAN, 2.0])), "an invalid number of rows"),
    (changed_rows(lambda rows: rows[1].update(impurityStats=[1.0])), "does not have 2 values"),
    (changed_rows(lambda rows: rows[1].update(impurityStats=[1e308, 1.5e308])), "no rows"),
    (changed_rows(lambda rows: [row.pop("gain") for row in rows]), "no column `gain`"),
    (changed_rows(lambda rows: [row.update(later=1) for row in rows]), "unknown column `later`"),
    (changed_rows(lambda rows: [row.update(id=float(row["id"])) for row in rows]), "unexpected type"),
    (changed_rows(lambda rows: [row.update(prediction=str(row["prediction"])) for row in rows]), "prediction"),
    (changed_rows(lambda rows: rows[1].update(prediction=None)), "missing"),
    (changed_rows(lambda rows: rows[1].update(split=None)), "missing"),
    ([], "no column `id`"),
]


@pytest.mark.parametrize("case", range(len(DAMAGED)))
def test_a_damaged_table_is_refused_with_its_place(case: int, tmp_path: Path) -> None:
    rows, reason = DAMAGED[case]
    with pytest.raises(ModelError) as refused:
        load(written(tmp_path / "m.zip", TREE, rows=rows))
    assert reason in str(refused.value)
    assert "m.zip" in str(refused.value)
    assert refused.value.remedy


def test_a_feature_of_two_kinds_is_refused(tmp_path: Path) -> None:
    for other in (Split(1, *leaves(1, 2), threshold=0.5), by_codes([1], 7)):
        tree = Split(1, other, Leaf(3), codes=[0], categories=4)
        with pytest.raises(ModelError, match="have different numbers of categories"):
            load(written(tmp_path / "m.zip", VALUE, [tree]))


def repacked(source: Path, path: Path, change: Callable[[str, bytes], tuple[str, bytes] | None]) -> Path:
    """The archive with some files changed, renamed or left out."""
    with zipfile.ZipFile(source) as old, zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as new:
        for name in old.namelist():
            made = change(name, old.read(name))
            if made is not None:
                new.writestr(*made)
    return path


def test_archives_of_every_kind_of_zip_are_read(tmp_path: Path) -> None:
    """With the folder or without it, in any order, inside of others, and with what macOS puts beside each file."""
    source = FOLDER / "forest_two.zip"
    expected = load(source).ensemble
    plain = repacked(source, tmp_path / "plain.zip", lambda name, data: (name.partition("/")[2], data))
    deep = repacked(source, tmp_path / "deep.zip", lambda name, data: (f"a/b/{name}", data))
    apple = tmp_path / "apple.zip"
    shutil.copy(source, apple)
    with zipfile.ZipFile(apple, "a") as archive:
        archive.writestr("__MACOSX/forest_two/metadata/._part-00000", b"\0" * 30)
        archive.writestr("forest_two/data/.part-0.parquet.crc", b"crc")
    for path in (plain, deep, apple):
        e = load(path).ensemble
        assert e.leaf_value.tolist() == expected.leaf_value.tolist()
        assert e.source.format == "spark"


def test_archives_that_are_no_single_model_are_refused(tmp_path: Path) -> None:
    source = FOLDER / "forest_two.zip"
    two = tmp_path / "two.zip"
    with zipfile.ZipFile(two, "w") as archive:
        for folder in ("a", "b"):
            archive.writestr(f"{folder}/metadata/part-00000", "{}")
    cases = [
        (two, "several models"),
        (repacked(source, tmp_path / "1.zip", lambda n, d: None if "/metadata/" in n else (n, d)), "no model"),
        (repacked(source, tmp_path / "2.zip", lambda n, d: None if "/data/" in n else (n, d)), "no Parquet file"),
        (repacked(source, tmp_path / "3.zip", lambda n, d: (n, d * 2 if "/metadata/p" in n else d)), "found 2"),
        (
            repacked(source, tmp_path / "4.zip", lambda n, d: (n.replace(".parquet", ".orc"), d)),
            "is not a Parquet file",
        ),
        (repacked(source, tmp_path / "5.zip", lambda n, d: (n, d[:-9] if "/data/p" in n else d)), "cannot be read"),
        (repacked(source, tmp_path / "6.zip", lambda n, d: (n, b"[1]" if "/metadata/p" in n else d)), "an object"),
    ]
    for path, reason in cases:
        with pytest.raises(ModelError, match=reason) as refused:
            load(path)
        assert refused.value.remedy


def test_tables_in_several_files_are_put_together(tmp_path: Path) -> None:
    """Spark reads every file of the folder, in whatever order its rows are."""
    trees = [two_leaves((1.0, 2.0), (2.0, 1.0)), two_leaves((3.0, 2.0), (2.0, 5.0))]
    path = written(tmp_path / "m.zip", FOREST, trees)
    expected = load(path).ensemble
    rows = [{"treeID": number, "nodeData": row} for number, tree in enumerate(trees) for row in rows_of(tree)]
    import pyarrow as pa

    from tests.extensions.formats.spark_files import node_type

    schema = pa.schema([("treeID", pa.int32()), ("nodeData", node_type())])
    split = tmp_path / "split.zip"

    def without(name: str, data: bytes) -> tuple[str, bytes] | None:
        return None if "/data/" in name else (name, data)

    repacked(path, split, without)
    with zipfile.ZipFile(split, "a") as archive:
        archive.writestr("m/data/part-00000.parquet", parquet_of(rows[4:], schema))
        archive.writestr("m/data/part-00001.parquet", parquet_of(rows[3::-1], schema))
    again = load(split).ensemble
    assert again.leaf_value.tolist() == expected.leaf_value.tolist()
    assert again.threshold.tolist() == expected.threshold.tolist()


def test_an_archive_that_unpacks_to_much_more_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "m.zip"
    shutil.copy(FOLDER / "tree_two.zip", path)
    with zipfile.ZipFile(path, "a", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("large", bytes(1 << 25))
    with pytest.raises(ModelError, match="unpacks to"):
        load(path)


@pytest.mark.parametrize("name", ["tree_two", "pipeline_scaled"])
def test_damage_is_refused_with_a_typed_error(name: str) -> None:
    def read(data: bytes) -> treesens.Model:
        return SparkFrontend().load(Path("m.zip"), data)

    assert refusals((FOLDER / f"{name}.zip").read_bytes(), read, files=60) > 30


def test_a_live_model_is_told_to_be_saved() -> None:
    class Live:
        pass

    Live.__module__ = "pyspark.ml.classification"
    with pytest.raises(ModelError, match="is a Java object") as refused:
        load(Live())
    assert "folder" in refused.value.remedy


def test_info_says_what_it_is() -> None:
    e = load(FOLDER / "forest_three.zip").ensemble
    assert (e.source.format, e.classes, e.link, e.average) == ("spark", (0, 1, 2), Identity(), 7)
    assert e.source.version.startswith("3.")


# --- pipelines ---------------------------------------------------------------------------------------------------------------

FEATURE = "org.apache.spark.ml.feature."
Files = dict[str, bytes]


def stage(kind: str, settings: Mapping[str, Any], table: bytes | None = None) -> Files:
    """The files of a stage."""
    fields = {
        "class": kind,
        "timestamp": 1,
        "sparkVersion": "3.5.3",
        "uid": "made",
        "paramMap": settings,
        "defaultParamMap": {},
    }
    files = {"metadata/part-00000": json.dumps(fields).encode()}
    return files | ({"data/part-0.parquet": table} if table is not None else {})


def indexer(labels: list[list[str]], source: list[str], target: list[str], invalid: str = "keep") -> Files:
    import pyarrow as pa

    schema = pa.schema([("labelsArray", pa.list_(pa.list_(pa.string())))])
    settings = {"inputCols": source, "outputCols": target, "handleInvalid": invalid}
    return stage(FEATURE + "StringIndexerModel", settings, parquet_of([{"labelsArray": labels}], schema))


def assembler(names: list[str], invalid: str = "keep") -> Files:
    settings = {"inputCols": names, "outputCol": "features", "handleInvalid": invalid}
    return stage(FEATURE + "VectorAssembler", settings)


def pipeline(path: Path, *stages: Files | Path) -> Path:
    """A pipeline of stages, of which a path is the zip file of a model."""
    uids = [f"s{number}" for number in range(len(stages))]
    with zipfile.ZipFile(path, "w") as archive:
        root = stage("org.apache.spark.ml.PipelineModel", {"stageUids": uids})
        archive.writestr("p/metadata/part-00000", root["metadata/part-00000"])
        for number, (uid, made) in enumerate(zip(uids, stages, strict=True)):
            files = made if isinstance(made, dict) else files_of(made)
            for name, content in files.items():
                archive.writestr(f"p/stages/{number}_{uid}/{name}", content)
    return path


def files_of(path: Path) -> Files:
    with zipfile.ZipFile(path) as archive:
        return {name.partition("/")[2]: archive.read(name) for name in archive.namelist()}


def tree_of_codes(path: Path, codes: list[float], categories: int, **more: Any) -> Path:
    """A tree that asks the second feature for codes, and then the first one for a number."""
    left = Split(0, Leaf(1), Leaf(2), threshold=0.5)
    return written(path, VALUE, [Split(1, left, Leaf(3), codes=codes, categories=categories)], numFeatures=2, **more)


COLORS = ["red", "green", "blue"]


def test_labels_stand_for_their_codes_and_unknown_ones_for_one_more(tmp_path: Path) -> None:
    """`keep`: of three labels the code 3 is that of all others, and of missing ones."""
    tree = tree_of_codes(tmp_path / "t.zip", [1, 3], 4)
    path = pipeline(tmp_path / "p.zip", indexer([COLORS], ["color"], ["code"]), assembler(["age", "code"]), tree)
    e = load(path).ensemble
    assert [(f.name, f.labels, f.needs_value) for f in e.features] == [
        ("age", None, False),
        ("color", tuple(COLORS), False),
    ]
    rows = np.array([[0.5, 0], [0.5, 1], [0.6, 1], [0.5, 2], [0.5, 3], [0.5, 7], [0.5, NAN], [NAN, NAN], [NAN, 0]])
    assert e.margins_emulated(rows)[:, 0].tolist() == [3, 1, 2, 3, 1, 1, 1, 2, 3]


def encoder(sizes: list[int], invalid: str = "error", *, drop: bool = True) -> Files:
    import pyarrow as pa

    schema = pa.schema([("categorySizes", pa.list_(pa.int32()))])
    settings = {"inputCols": ["code"], "outputCols": ["ones"], "handleInvalid": invalid, "dropLast": drop}
    return stage(FEATURE + "OneHotEncoderModel", settings, parquet_of([{"categorySizes": sizes}], schema))


def asks_each(count: int) -> Node:
    """A tree that says which of so many numbers is 1, -1 if none is."""
    tree: Node = Leaf(-1)
    for number in reversed(range(count)):
        below = Split(number, tree, Leaf(number), threshold=0.5)
        tree = below if number % 2 else Split(number, tree, Leaf(number), codes=[0], categories=2)
    return tree


HOT: list[tuple[str, str, bool, int, list[float]]] = [
    # What the labels red, green and blue, and a label that is not known, are turned to: the place of the 1.
    ("keep", "error", True, 4, [0, 1, 2, -1]),
    ("keep", "error", False, 4, [0, 1, 2, 3]),
    ("keep", "keep", True, 4, [0, 1, 2, 3]),
    ("keep", "keep", False, 4, [0, 1, 2, 3]),
    ("error", "error", True, 3, [0, 1, -1]),
    ("error", "error", False, 3, [0, 1, 2]),
    ("error", "keep", False, 3, [0, 1, 2]),
]


def hot_pipeline(folder: Path, case: int) -> Path:
    labels, invalid, drop, size, _ = HOT[case]
    width = size + (invalid == "keep") - drop
    tree = written(folder / "t.zip", VALUE, [asks_each(width)], numFeatures=width + 1)
    vector = assembler(["ones", "age"])
    return pipeline(
        folder / "p.zip",
        indexer([COLORS], ["color"], ["code"], labels),
        encoder([size], invalid, drop=drop),
        vector,
        tree,
    )


@pytest.mark.parametrize("case", range(len(HOT)))
def test_a_vector_of_zeros_with_one_1_is_its_column(case: int, tmp_path: Path) -> None:
    e = load(hot_pipeline(tmp_path, case)).ensemble
    assert [(f.name, f.labels) for f in e.features] == [("color", tuple(COLORS)), ("age", None)]
    rows = np.column_stack([np.arange(len(HOT[case][-1])), np.zeros(len(HOT[case][-1]))])
    assert e.margins_emulated(rows)[:, 0].tolist() == HOT[case][-1]
    if HOT[case][0] == "keep":
        assert e.margins_emulated(np.array([[NAN, 0.0]]))[:, 0].tolist() == HOT[case][-1][-1:]


@pytest.mark.parametrize("case", range(len(HOT)))
def test_spark_itself_makes_these_vectors(case: int, tmp_path: Path) -> None:
    need_spark()
    model = in_java(load(hot_pipeline(tmp_path, case)))
    rows = np.column_stack([np.arange(len(HOT[case][-1])), np.zeros(len(HOT[case][-1]))])
    assert model.margins(rows)[:, 0].tolist() == HOT[case][-1]


def test_thresholds_on_codes_of_labels_are_sets(tmp_path: Path) -> None:
    tree = written(tmp_path / "t.zip", VALUE, [Split(1, Leaf(1), Leaf(2), threshold=1.5)], numFeatures=2)
    path = pipeline(tmp_path / "p.zip", indexer([COLORS], ["color"], ["code"]), assembler(["age", "code"]), tree)
    e = load(path).ensemble
    assert e.margins_emulated(np.array([[0, 0], [0, 1], [0, 2], [0, 3], [0, NAN]]))[:, 0].tolist() == [1, 1, 2, 2, 2]


@pytest.mark.parametrize("kind", ["codes", "thresholds"])
def test_spark_itself_predicts_so(kind: str, tmp_path: Path) -> None:
    need_spark()
    split = Split(1, Leaf(1), Leaf(2), threshold=1.5)
    made = tree_of_codes(tmp_path / "t.zip", [1, 3], 4)
    tree = made if kind == "codes" else written(tmp_path / "t.zip", VALUE, [split], numFeatures=2)
    path = pipeline(tmp_path / "p.zip", indexer([COLORS], ["color"], ["code"]), assembler(["age", "code"]), tree)
    conformance.check(in_java(load(path)), rows=20).raise_if_wrong()


# --- stages that change numbers ----------------------------------------------------------------------------------------------


def vectors(**columns: list[float] | dict[int, float]) -> bytes:
    """A table of one row of vectors, of which a mapping is a sparse one of four numbers."""
    import pyarrow as pa

    kind = pa.struct(
        [
            ("type", pa.int8()),
            ("size", pa.int32()),
            ("indices", pa.list_(pa.int32())),
            ("values", pa.list_(pa.float64())),
        ]
    )

    def vector(x: list[float] | dict[int, float]) -> dict[str, Any]:
        if isinstance(x, dict):
            return {"type": 0, "size": 4, "indices": list(x), "values": list(x.values())}
        return {"type": 1, "size": None, "indices": None, "values": [float(v) for v in x]}

    row = {name: vector(x) for name, x in columns.items()}
    # Spark knows by this what a structure of numbers stands for.
    plain = {"nullable": True, "metadata": {}}
    numbers = [("indices", "integer"), ("values", "double")]
    parts = [{"name": "type", "type": "byte", **plain, "nullable": False}, {"name": "size", "type": "integer", **plain}]
    parts += [
        {"name": name, "type": {"type": "array", "elementType": of, "containsNull": False}, **plain}
        for name, of in numbers
    ]
    names = {"class": "org.apache.spark.ml.linalg.VectorUDT", "pyClass": "pyspark.ml.linalg.VectorUDT"}
    told = {"type": "udt", **names, "sqlType": {"type": "struct", "fields": parts}}
    fields = [{"name": name, "type": told, **plain} for name in columns]
    meta = {"org.apache.spark.sql.parquet.row.metadata": json.dumps({"type": "struct", "fields": fields})}
    return parquet_of([row], pa.schema([(name, kind) for name in columns]).with_metadata(meta))


RAW = {"inputCol": "raw", "outputCol": "features"}


def scaler(mean: Any, deviation: Any, *, centred: bool = True, divided: bool = True) -> Files:
    settings = {**RAW, "withMean": centred, "withStd": divided}
    return stage(FEATURE + "StandardScalerModel", settings, vectors(mean=mean, std=deviation))


def imputer(fillings: dict[str, float], **settings: Any) -> Files:
    import pyarrow as pa

    made = {"inputCols": list(fillings), "outputCols": [f"{name} full" for name in fillings], "missingValue": "NaN"}
    table = parquet_of([fillings], pa.schema([(name, pa.float64()) for name in fillings]))
    return stage(FEATURE + "ImputerModel", made | settings, table)


def raw(names: list[str], invalid: str = "keep") -> Files:
    settings = {"inputCols": names, "outputCol": "raw", "handleInvalid": invalid}
    return stage(FEATURE + "VectorAssembler", settings)


def changed_by(folder: Path, *stages: Files, threshold: float = 0.7, width: int = 2) -> Path:
    """Stages before a tree that asks the first number for a threshold."""
    tree = written(folder / "t.zip", VALUE, [Split(0, Leaf(1), Leaf(2), threshold=threshold)], numFeatures=width)
    return pipeline(folder / "p.zip", *stages, tree)


def binarizer(source: str, target: str, threshold: float) -> Files:
    return stage(FEATURE + "Binarizer", {"inputCol": source, "outputCol": target, "threshold": threshold})


def scaled_by(name: str, folder: Path) -> tuple[Path, Callable[[float], float]]:
    """A pipeline whose first number is a function of `age`, and this function as Spark computes it."""
    ages = raw(["age", "debt"])
    match name:
        case "standard":
            made, f = scaler([0.1, 0], [0.3, 1]), lambda x: (x - 0.1) * (1 / 0.3)
        case "mean":
            made, f = scaler([0.1, 0], [0.3, 1], divided=False), lambda x: x - 0.1
        case "deviation":
            made, f = scaler([0.1, 0], [7.0, 0.0], centred=False), lambda x: x * (1 / 7.0)
        case "most":
            made = stage(FEATURE + "MaxAbsScalerModel", RAW, vectors(maxAbs=[0.3, 0]))
            f = lambda x: x * (1 / 0.3)  # noqa: E731
        case "least":
            settings = {**RAW, "min": -0.1, "max": 1.3}
            made = stage(FEATURE + "MinMaxScalerModel", settings, vectors(originalMin=[0.1, 2], originalMax=[0.7, 2]))
            f = lambda x: (x - 0.1) * ((1.3 - -0.1) / (0.7 - 0.1)) + -0.1  # noqa: E731
        case "sparse":
            four = raw(["debt", "age", "c", "d"])
            slices = stage(FEATURE + "VectorSlicer", {"inputCol": "features", "outputCol": "few", "indices": [1, 0]})
            tree = written(
                folder / "t.zip",
                VALUE,
                [Split(0, Leaf(1), Leaf(2), threshold=0.7)],
                numFeatures=2,
                settings={"featuresCol": "few"},
            )
            made = scaler({1: 0.1}, {0: 1.0, 1: 0.3, 2: 1.0, 3: 2.0})
            return pipeline(folder / "p.zip", four, made, slices, tree), lambda x: (x - 0.1) * (1 / 0.3)
        case _:
            raise ValueError(name)
    return changed_by(folder, ages, made), f


SCALED = ["standard", "mean", "deviation", "most", "least", "sparse"]


@pytest.mark.parametrize("name", SCALED)
def test_a_threshold_behind_a_scaler_is_one_of_its_column(name: str, tmp_path: Path) -> None:
    """The last float of the column that goes left, by the arithmetic of Spark's scalers in float64."""
    path, f = scaled_by(name, tmp_path)
    e = load(path).ensemble
    place = e.feature_names.index("age")
    (last,) = e.threshold[e.node_feature == place].tolist()
    assert f(last) <= 0.7 < f(math.nextafter(last, math.inf))
    assert not e.default_left.any()


@pytest.mark.parametrize("name", SCALED)
def test_spark_itself_scales_so(name: str, tmp_path: Path) -> None:
    need_spark()
    conformance.check(in_java(load(scaled_by(name, tmp_path)[0])), rows=10).raise_if_wrong()


@pytest.mark.parametrize("judged", [False, True])
def test_fillings_and_bits_of_numbers(judged: bool, tmp_path: Path) -> None:
    """A missing number is filled before it is asked; 1 stands for numbers above a threshold, at sets of codes, too."""
    columns = ["age", "age full", "high"]
    by_code = Split(2, Leaf(4), Leaf(5), codes=[1], categories=2)
    tree = Split(1, Split(0, Leaf(1), by_code, threshold=-3.0), Leaf(3), threshold=1.5)
    model = written(tmp_path / "t.zip", VALUE, [tree])
    stages = [imputer({"age": 1.25}), binarizer("age full", "high", 0.5), assembler(columns)]
    loaded = load(pipeline(tmp_path / "p.zip", *stages, model))
    rows = np.array([[-4.0], [-3.0], [0.5], [math.nextafter(0.5, 1)], [1.5], [2.0], [NAN]])
    expected = [1, 1, 5, 4, 4, 3, 4]
    assert loaded.ensemble.feature_names == ("age",)
    assert not loaded.ensemble.features[0].needs_value
    assert loaded.ensemble.margins_emulated(rows)[:, 0].tolist() == expected
    if judged:
        need_spark()
        assert in_java(loaded).margins(rows)[:, 0].tolist() == expected
        conformance.check(in_java(loaded), rows=10).raise_if_wrong()


EDGES = [-math.inf, 0.0, 1.5, 2.0, 7.0, math.inf]
BUCKETS: list[tuple[list[float], str]] = [
    ([0], "keep"),
    ([3, 4], "keep"),
    ([1, 3], "keep"),
    ([0, 2, 4], "error"),
    ([0, 2, 4], "keep"),
    ([2], "skip"),
    ([0, 1, 2, 3, 4], "keep"),
    ([], "keep"),
]


def bucketizer(splits: list[float], invalid: str = "keep") -> Files:
    told = ["-Inf" if x == -math.inf else "Inf" if x == math.inf else x for x in splits]
    settings = {"inputCol": "age", "outputCol": "bucket", "splits": told, "handleInvalid": invalid}
    return stage(FEATURE + "Bucketizer", settings)


def in_buckets(folder: Path, codes: list[float], invalid: str) -> Path:
    """A tree that asks for buckets of `age`, with other questions below."""
    below = Split(1, Leaf(1), Split(0, Leaf(2), Leaf(3), codes=[1, 4], categories=5), threshold=0.5)
    tree = Split(0, below, Split(1, Leaf(4), Leaf(5), threshold=-1.0), codes=codes, categories=5)
    model = written(folder / "t.zip", VALUE, [tree], numFeatures=2)
    return pipeline(folder / "p.zip", bucketizer(EDGES, invalid), assembler(["bucket", "debt"]), model)


@pytest.mark.parametrize("case", range(len(BUCKETS)))
def test_a_set_of_buckets_is_several_thresholds(case: int, tmp_path: Path) -> None:
    """By Spark's rules: the bucket of a number, and a category that is not kept goes to the other side."""
    codes, invalid = BUCKETS[case]
    e = load(in_buckets(tmp_path, codes, invalid)).ensemble
    assert (e.feature_names, e.features[0].needs_value) == (("age", "debt"), invalid != "keep")
    ages = [
        -5.0,
        0.0,
        math.nextafter(0.0, -1),
        1.4,
        1.5,
        1.9,
        2.0,
        6.5,
        7.0,
        99.0,
        *([NAN] if invalid == "keep" else []),
    ]
    kept_on_the_left = {0: len(codes) <= 2, 1: True}

    def goes_left(listed: list[float], few: bool, age: float) -> bool:
        bucket = 5 if math.isnan(age) else sum(age >= edge for edge in EDGES[1:-1])
        return bucket in listed if few else bucket not in set(range(5)) - set(listed)

    expected = []
    for age in ages:
        if not goes_left(codes, kept_on_the_left[0], age):
            expected.append(5)
        else:
            expected.append(2 if goes_left([1, 4], True, age) else 3)
    rows = np.column_stack([ages, np.ones(len(ages))])
    assert e.margins_emulated(rows)[:, 0].tolist() == expected


@pytest.mark.parametrize("case", [2, 4, 5])
def test_spark_itself_puts_numbers_there(case: int, tmp_path: Path) -> None:
    need_spark()
    conformance.check(in_java(load(in_buckets(tmp_path, *BUCKETS[case]))), rows=10).raise_if_wrong()


def test_a_bucket_that_begins_at_0_is_told(tmp_path: Path) -> None:
    assert any("-0.0" in note for note in load(in_buckets(tmp_path, [1, 3], "keep")).notes)


def test_splits_that_make_many_nodes_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("treesens.extensions.formats.spark.steps._MOST_NODES", 6)
    with pytest.raises(ModelError, match="need more than 6 nodes") as refused:
        load(in_buckets(tmp_path, [1, 3], "keep"))
    assert refused.value.remedy


def test_codes_of_labels_may_be_scaled(tmp_path: Path) -> None:
    tree = written(tmp_path / "t.zip", VALUE, [Split(1, Leaf(1), Leaf(2), threshold=0.5)], numFeatures=2)
    stages = [indexer([COLORS], ["color"], ["code"]), raw(["age", "code"]), scaler([0, 1], [1, 2])]
    e = load(pipeline(tmp_path / "p.zip", *stages, tree)).ensemble
    # (code - 1) / 2 of the codes 0 to 3.
    assert e.margins_emulated(np.array([[0, 0], [0, 1], [0, 2], [0, 3], [0, NAN]]))[:, 0].tolist() == [1, 1, 1, 2, 2]


def test_numbers_that_no_threshold_follows_are_refused(tmp_path: Path) -> None:
    ages = raw(["age", "debt"])
    by_code = written(tmp_path / "c.zip", VALUE, [Split(0, Leaf(1), Leaf(2), codes=[1], categories=2)], numFeatures=2)
    named = stage(FEATURE + "VectorSlicer", {"inputCol": "raw", "outputCol": "features", "names": ["age"]})
    far = stage(FEATURE + "VectorSlicer", {"inputCol": "raw", "outputCol": "features", "indices": [2]})
    strings = indexer([COLORS], ["color"], ["code"])
    cases: list[tuple[Callable[[], Path], str]] = [
        (lambda: changed_by(tmp_path, ages, scaler([0, 0], [0, 1])), "changes by \\* 0"),
        (lambda: changed_by(tmp_path, ages, scaler([0, 0], [-2, 1])), "changes by \\* -0.5"),
        (lambda: changed_by(tmp_path, ages, scaler([NAN, 0], [1, 1])), "changes by - nan"),
        (lambda: changed_by(tmp_path, ages, scaler([0], [1])), "the scaler has 1 numbers"),
        (lambda: changed_by(tmp_path, ages, scaler([0, 0], [1])), "the scaler has 2 numbers"),
        (lambda: changed_by(tmp_path, ages, scaler({1: 0.1}, {2: 1.0, 1: 2.0})), "this is not a vector"),
        (lambda: changed_by(tmp_path, ages, scaler({5: 0.1}, {1: 2.0})), "this is not a vector"),
        (
            lambda: changed_by(tmp_path, ages, stage(FEATURE + "StandardScalerModel", RAW, vectors(mean=[0, 0]))),
            "not a table",
        ),
        (
            lambda: changed_by(tmp_path, ages, stage(FEATURE + "MaxAbsScalerModel", RAW, vectors(mean=[0, 0]))),
            "not a table",
        ),
        (lambda: changed_by(tmp_path, ages, named), "by names"),
        (lambda: changed_by(tmp_path, ages, far), "outside a vector of 2"),
        (lambda: changed_by(tmp_path, far), "no stage outputs the vector"),
        (lambda: pipeline(tmp_path / "1.zip", ages, scaler([0, 0], [1, 1]), by_code), "uses categories"),
        (
            lambda: changed_by(tmp_path, bucketizer([0.0, 1.0, 2.0]), assembler(["bucket", "debt"])),
            "outside the splits",
        ),
        (lambda: changed_by(tmp_path, bucketizer(EDGES[::-1]), assembler(["bucket", "debt"])), "are not ascending"),
        (lambda: changed_by(tmp_path, bucketizer(EDGES[:2]), assembler(["bucket", "debt"])), "or are missing"),
        (lambda: changed_by(tmp_path, bucketizer(EDGES, "drop"), assembler(["bucket", "debt"])), "`drop`"),
        (lambda: changed_by(tmp_path, bucketizer([[1], 2, 3]), ages), "expected a number"),  # type: ignore[list-item]
        (lambda: changed_by(tmp_path, bucketizer(["x", 2, 3]), ages), "expected a number"),  # type: ignore[list-item]
        (
            lambda: changed_by(tmp_path, imputer({"age": 1}, missingValue=-1.0), assembler(["age full", "debt"])),
            "replaces -1",
        ),
        (lambda: changed_by(tmp_path, imputer({"age": NAN}), assembler(["age full", "debt"])), "not finite"),
        (
            lambda: changed_by(tmp_path, strings, imputer({"code": 1}), assembler(["code full", "debt"])),
            "labels is imputed",
        ),
        (
            lambda: changed_by(tmp_path, imputer({"age": 1}, inputCols=["debt"], outputCols=["x"]), ages),
            "not a table of imputed values",
        ),
        (
            lambda: changed_by(tmp_path, binarizer("age", "high", 0.5), assembler(["high", "debt"]), threshold=-1.0),
            "no number",
        ),
        (lambda: changed_by(tmp_path, binarizer("age", "high", math.inf), assembler(["high", "debt"])), "not finite"),
        (
            lambda: changed_by(tmp_path, imputer({"age": 1}), indexer([["1"]], ["age full"], ["code"]), ages),
            "after it has been",
        ),
    ]
    assert load(changed_by(tmp_path, ages, scaler([0, 0], [1, 0]))).ensemble.n_trees == 1
    old = stage(FEATURE + "MaxAbsScalerModel", RAW, vectors(maxAbs=[0.3, 0]))
    old["metadata/part-00000"] = old["metadata/part-00000"].replace(b"3.5.3", b"2.4.8")
    cases.append((lambda: changed_by(tmp_path, ages, old), "Spark 2 divides"))
    for make, reason in cases:
        with pytest.raises(ModelError, match=reason) as refused:
            load(make())
        assert refused.value.remedy


def test_values_that_a_pipeline_does_not_take_cannot_be_declared_missing(tmp_path: Path) -> None:
    tree = tree_of_codes(tmp_path / "t.zip", [1], 3)
    for labels, numbers, needed in (("error", "keep", [False, True]), ("skip", "error", [True, True])):
        path = pipeline(
            tmp_path / "p.zip",
            indexer([COLORS], ["color"], ["code"], labels),
            assembler(["age", "code"], numbers),
            tree,
        )
        assert [f.needs_value for f in load(path).ensemble.features] == needed
    question = 'model m from "m"\nfeature age: real in [0, 9] or missing\nquery q: find a in m such that margin(a) >= 3'
    with pytest.raises(TreesensError, match="E313"):
        treesens.check_text(question, models={"m": load(path)})


def test_names_of_classes_are_those_of_the_labels(tmp_path: Path) -> None:
    tree = written(tmp_path / "t.zip", TREE, [two_leaves((1.0, 2.0), (2.0, 1.0))], settings={"labelCol": "label"})
    labels = indexer([["no", "yes"]], ["answer"], ["label"])
    vector = assembler(["a", "b", "c"])
    assert load(pipeline(tmp_path / "p.zip", labels, vector, tree)).ensemble.classes == ("no", "yes")
    named = stage(FEATURE + "IndexToString", {"inputCol": "prediction", "outputCol": "said", "labels": ["3", "4"]})
    assert load(pipeline(tmp_path / "p.zip", labels, vector, tree, named)).ensemble.classes == (3, 4)
    assert load(pipeline(tmp_path / "p.zip", vector, tree)).ensemble.classes == (0, 1)


def test_stages_that_are_not_read_are_refused_by_name(tmp_path: Path) -> None:
    tree = tree_of_codes(tmp_path / "t.zip", [1], 3)
    four = written(tmp_path / "f.zip", VALUE, [Leaf(1)], numFeatures=4)
    strings, vector = indexer([COLORS], ["color"], ["code"]), assembler(["age", "code"])
    normalizer = stage(FEATURE + "Normalizer", {"inputCol": "raw", "outputCol": "features"})
    names = stage(FEATURE + "IndexToString", {"inputCol": "other", "outputCol": "said", "labels": ["a", "b"]})
    cases: list[tuple[list[Files | Path], str]] = [
        ([strings, vector, normalizer, tree], "Normalizer"),
        ([strings, vector, tree, scaler([0, 0], [1, 1])], "StandardScalerModel"),
        ([strings, vector, tree, names], "IndexToString"),
        ([strings, vector, tree, tree], "DecisionTreeRegressionModel"),
        ([strings, vector], "is not read"),
        ([], "0 stages are not plausible"),
        ([strings, assembler(["age"]), tree], "the stages before it make 1"),
        ([strings, assembler(["code", "color"]), tree], "two features"),
        ([indexer([COLORS], ["color"], ["code"], "drop"), vector, tree], "`drop`"),
        ([strings, encoder([2]), assembler(["ones", "age"]), tree], "2 categories for `code`"),
        ([encoder([2]), assembler(["ones", "age"]), tree], "no StringIndexer made it"),
        ([strings, encoder([4, 4]), assembler(["ones", "age"]), tree], "sizes for 2 columns"),
        ([strings, encoder([4]), assembler(["ones", "code"]), four], "two features"),
        ([indexer([["a", "a"]], ["color"], ["code"]), vector, tree], "or one is repeated"),
        ([indexer([COLORS, COLORS], ["color"], ["code"]), vector, tree], "labels for 2 columns"),
        ([stage(FEATURE + "VectorAssembler", {"inputCols": ["a"], "later": 1}), tree], "later"),
    ]
    for stages, reason in cases:
        with pytest.raises(ModelError) as refused:
            load(pipeline(tmp_path / "p.zip", *stages))
        assert reason in str(refused.value)
        assert refused.value.remedy


def test_questions_about_labels_are_answered(tmp_path: Path) -> None:
    """The rows that Spark was asked about, by the labels of their columns."""
    model, asked = load(FOLDER / "pipeline_keep.zip"), answered("pipeline_keep")
    e = model.ensemble
    assert e.classes == ("bad", "good")
    assert e.features[1].labels is not None
    lines, wanted = [], {}
    for i, row in enumerate(asked["rows"].tolist()):
        codes = all(x in range(f.categories) for f, x in zip(e.features, row, strict=True) if f.categories)
        if not codes or not np.isfinite(row).all() or max(len(format(Decimal(x), "f")) for x in row) > 80:
            continue
        values = "; ".join(
            f'a.{f.name} = "{f.labels[int(x)]}"' if f.labels else f"a.{f.name} = {format(Decimal(x), 'f')}"
            for f, x in zip(e.features, row, strict=True)
        )
        for number, label in enumerate(e.classes):
            lines.append(f"query q{i}_{number}: find a in m such that class(a) = {label}; {values}")
            wanted[f"q{i}_{number}"] = "found" if number == asked["classes"][i] else "none"
    answers = treesens.check_text('model m from "m"\n' + "\n".join(lines[:16]), models={"m": model})
    chosen = list(wanted)[:16]
    assert len(chosen) >= 4
    assert {key: answers[key].to_dict()["verdict"] for key in chosen} == {key: wanted[key] for key in chosen}


@pytest.mark.parametrize(
    ("kind", "reason"), [("PCAModel", "several columns"), ("ChiSqSelectorModel", "is not supported")]
)
def test_other_stages_before_the_model_are_refused_with_the_reason(kind: str, reason: str, tmp_path: Path) -> None:
    tree = written(tmp_path / "t.zip", VALUE, [Split(1, Leaf(1), Leaf(2), threshold=0.5)], numFeatures=2)
    path = pipeline(tmp_path / "p.zip", assembler(["age", "debt"]), stage(FEATURE + kind, RAW), tree)
    with pytest.raises(ModelError, match=reason) as refused:
        load(path)
    assert kind in refused.value.message
    assert refused.value.remedy
