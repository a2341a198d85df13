"""MOJO files against h2o-genmodel: its answers beside the files (`tests/data/h2o/make.py`), and itself if it is there."""

from __future__ import annotations

import contextlib
import io
import json
import math
import struct
import zipfile
from decimal import Decimal
from fractions import Fraction
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import treesens
from tests.extensions.formats.java import in_java
from tests.frontends.damage import refusals
from treesens.compiler.model import Ensemble, Feature
from treesens.compiler.query.bounds import LogRational
from treesens.compiler.query.predicted_classes import sure_classes
from treesens.errors import ModelError
from treesens.extensions.conformance import formats as conformance
from treesens.extensions.formats.h2o.frontend import H2OFrontend
from treesens.extensions.formats.h2o.known import TABLE
from treesens.extensions.formats.h2o.ties import CutShares, HashedTies
from treesens.extensions.formats.links.calibrated import Calibrated, calibration_of
from treesens.extensions.formats.links.calibration import Odds, least_margin
from treesens.frontends.registry import load
from treesens.links import Softmax

FOLDER = Path(__file__).parents[2] / "data" / "h2o"
FILES = sorted(path.stem for path in FOLDER.glob("*.zip"))
LAST_PLACES = 4 * 2.0**-52
"""Exponentials of Java and of numpy differ in the last places."""
LEFT_LEAF, RIGHT_LEAF = 48, 64
"""Bits of a node's type: both of its sides are leaves."""
NUMBER, SHORT, LONG = 0, 8, 12
"""Bits of a node's type: it asks a number, a set of 32 categories, a set of any length."""
NA_VS_REST, NA_LEFT, NA_RIGHT = 1, 2, 3


def answered(name: str) -> tuple[np.ndarray, np.ndarray, list[int] | None]:
    """Rows, the values or probabilities that H2O returned for them (of all classes if there are more), and the classes."""
    asked = json.loads((FOLDER / f"{name}.json").read_text())
    rows = [[math.nan if x is None else float.fromhex(x) for x in row] for row in asked["rows"]]
    told = [
        [float.fromhex(p) for p in ([answer] if isinstance(answer, str) else answer)] for answer in asked["answers"]
    ]
    answers = np.array(told)
    return np.array(rows), answers[:, 0] if answers.shape[1] == 1 else answers, asked["classes"]


@pytest.mark.parametrize("name", FILES)
def test_files_are_read_as_h2o_scores_them(name: str) -> None:
    e = load(FOLDER / f"{name}.zip").ensemble
    rows, expected, classes = answered(name)
    margins = e.margins_emulated(rows)
    shown = e.probabilities(margins)
    assert len(rows) == 80
    assert np.isnan(rows).any()
    if not e.link.is_known:
        corrected = margins * [float(c) for c in e.ties.corrections] if isinstance(e.ties, CutShares) else margins
        shown = corrected / corrected.sum(axis=1, keepdims=True)
    shown = shown if expected.ndim > 1 else shown[:, -1]
    assert shown.shape == expected.shape
    if e.link.is_linear:
        assert shown.tolist() == expected.tolist()
    else:
        assert shown == pytest.approx(expected, rel=LAST_PLACES, abs=1e-300)
    assert (None if classes is None else e.predicted_classes(margins, rows).tolist()) == classes


@pytest.mark.parametrize("name", FILES)
def test_h2o_itself_says_the_same_on_every_threshold(name: str) -> None:
    pytest.importorskip("h2o", reason="pip install h2o==3.46.0.6 jpype1, and Java")
    pytest.importorskip("jpype", reason="pip install h2o==3.46.0.6 jpype1, and Java")
    conformance.check(in_java(load(FOLDER / f"{name}.zip"))).raise_if_wrong()


def test_the_threshold_of_training_decides_the_class(tmp_path: Path) -> None:
    """The probability from which on `good` is predicted is 0.53 here, and H2O's answers have rows between it and 1/2."""
    e = load(FOLDER / "boosting_two.zip").ensemble
    assert e.classes == ("bad", "good")
    assert e.cutoff is not None
    assert e.cutoff != treesens.load(changed(tmp_path, default_threshold="0.5")).ensemble.cutoff


def test_classes_of_a_pair_are_those_of_the_threshold(tmp_path: Path) -> None:
    question = tmp_path / "q.sens"
    question.write_text(
        f'model m from "{FOLDER / "boosting_two.zip"}"\nquery flag: sensitive m to flag from bad to good\n'
        "query income: sensitive m to income from bad to good\n"
    )
    answers = treesens.check(question)
    cutoff = load(FOLDER / "boosting_two.zip").ensemble.cutoff
    assert cutoff is not None
    assert answers["flag"].to_dict()["verdict"] == "none"
    record = answers["income"].to_dict()
    assert record["verdict"] == "found"
    assert record["scores"]["a"]["prob"] < cutoff <= record["scores"]["b"]["prob"]
    assert [record["scores"][point]["class"] for point in "ab"] == ["bad", "good"]


@pytest.mark.parametrize(
    "name", [name for name in FILES if answered(name)[2] is not None and answered(name)[1].ndim == 1]
)
def test_questions_about_the_class_of_a_row_are_answered_as_h2o_predicts(name: str) -> None:
    """The class is that of H2O, and no other: a forest's score once was read as a margin, so that no input was `bad`."""
    model = load(FOLDER / f"{name}.zip")
    e = model.ensemble
    rows, probabilities, classes = answered(name)
    assert classes is not None
    assert e.cutoff is not None
    chosen = [i for i in range(len(rows)) if is_plain(e, rows[i]) and abs(probabilities[i] - float(e.cutoff)) > 1e-9][
        :12
    ]
    assert {classes[i] for i in chosen} == {0, 1}
    lines, wanted = [], {}
    for i in chosen:
        values = "; ".join(f"a.{f.name} = {written_as(f, x)}" for f, x in zip(e.features, rows[i], strict=True))
        for number, label in enumerate(e.classes):
            lines.append(f"query q{i}_{number}: find a in m such that class(a) = {label}; {values}")
            wanted[f"q{i}_{number}"] = "found" if number == classes[i] else "none"
    answers = treesens.check_text('model m from "m"\n' + "\n".join(lines), models={"m": model})
    assert {key: answers[key].to_dict()["verdict"] for key in wanted} == wanted


def written_as(feature: Feature, x: float) -> str:
    """A value as a question names it: a number with all of its digits."""
    return f'"{feature.labels[int(x)]}"' if feature.labels else format(Decimal(float(x)), "f")


def is_plain(e: Ensemble, row: np.ndarray) -> bool:
    """Whether a question can name each value: none is missing, unlisted, infinite or very long."""
    listed = [not f.categories or x in range(f.categories) for f, x in zip(e.features, row.tolist(), strict=True)]
    written = max(len(format(Decimal(x), "f")) for x in row.tolist())
    return bool(np.isfinite(row).all()) and all(listed) and written < 80


@pytest.mark.parametrize("name", [name for name in FILES if answered(name)[1].ndim == 2])
def test_questions_about_one_of_many_classes_are_answered_as_h2o_predicts(name: str) -> None:
    """A row with a class of its own has this one and no other; at a tie nothing is found, and nothing is excluded."""
    model = load(FOLDER / f"{name}.zip")
    e = model.ensemble
    rows, probabilities, classes = answered(name)
    assert classes is not None
    lines, wanted = [], {}
    for i in [i for i in range(len(rows)) if is_plain(e, rows[i])][:16]:
        values = "; ".join(f"a.{f.name} = {written_as(f, x)}" for f, x in zip(e.features, rows[i], strict=True))
        second, first = np.sort(probabilities[i])[-2:]
        if isinstance(e.ties, CutShares):
            first, second = abs(probabilities[i][1] - float(e.ties.cut)), 0.0
        for number, label in enumerate(e.classes):
            lines.append(f"query q{i}_{number}: find a in m such that class(a) = {label}; {values}")
            verdict = "found" if number == classes[i] else "none"
            wanted[f"q{i}_{number}"] = verdict if first - second > 1e-9 else "unknown"
    answers = treesens.check_text('model m from "m"\n' + "\n".join(lines), models={"m": model})
    found = {key: answers[key].to_dict()["verdict"] for key in wanted}
    # At a tie a class is excluded that cannot be drawn.
    tied = {key for key, verdict in wanted.items() if verdict == "unknown"}
    assert {key: verdict for key, verdict in found.items() if key not in tied} == {
        key: verdict for key, verdict in wanted.items() if key not in tied
    }
    assert {found[key] for key in tied} <= {"unknown", "none"}
    assert all(found[f"q{i}_{classes[i]}"] == "unknown" for i in range(len(rows)) if f"q{i}_{classes[i]}" in tied)
    assert {"found", "none"} <= set(found.values())


def test_a_hash_of_the_row_draws_the_class_that_h2o_draws() -> None:
    cases = json.loads((FOLDER / "ties.json").read_text())
    assert len(cases) == 300
    strays = 0
    for case in cases:
        scores = np.array(case["scores"])
        row = np.array([math.nan if x is None else float.fromhex(x) for x in case["row"]])
        ties = HashedTies(tuple(float.fromhex(share) for share in case["shares"]))
        assert ties.choose(scores, row) == case["class"]
        if scores[case["class"]] < scores.max():
            strays += 1
            assert ties.may_stray(case["class"])
    assert strays > 20


def test_balanced_classes_have_other_odds() -> None:
    """The exact bound of a corrected probability is that of the probability before it, by the definition of odds."""
    for name in ("boosting_balanced", "forest_balanced"):
        e = load(FOLDER / f"{name}.zip").ensemble
        odds_of = calibration_of(e)
        assert isinstance(odds_of, Odds)
        assert odds_of.of_probability is (name == "boosting_balanced")
        assert odds_of.ratio not in (0, 1)
        chance = Fraction(1, 3)
        bound = least_margin(odds_of, chance, strict=False)
        assert not isinstance(bound, bool)
        low, high = (float(end) for end in bound.enclose(80))
        before = 1 / (1 + math.exp(-low)) if odds_of.of_probability else low
        odds = before / (1 - before) * float(odds_of.ratio)
        assert low == pytest.approx(high, rel=1e-15)
        assert odds == pytest.approx(float(chance / (1 - chance)), rel=1e-12)


def test_ends_of_other_odds() -> None:
    """A share may be 0 or 1, the sigmoid of a margin may not."""
    share, margin = Odds(0.5, 2.0), Odds(0.5, 2.0, of_probability=True)
    for strict in (False, True):
        assert least_margin(share, Fraction(0), strict=strict) == LogRational(Fraction(0))
        assert least_margin(share, Fraction(1), strict=strict) == LogRational(Fraction(1))
        assert [least_margin(margin, Fraction(end), strict=strict) for end in (-1, 0, 1, 2)] == [
            True,
            True,
            False,
            False,
        ]
        assert [least_margin(share, Fraction(end), strict=strict) for end in (-1, 2)] == [True, False]


def test_calibration_beside_the_scores_is_told() -> None:
    notes = load(FOLDER / "boosting_calibrated.zip").notes
    assert any("cal_p1" in note for note in notes)


# --- trees made byte by byte, with what the reference says of them ----------------------------------------------------------


def leaf(value: float) -> bytes:
    return struct.pack("<f", value)


def node(
    kind: int, column: int, direction: int, asked: bytes, left: bytes, right: bytes, *, nested: bool = False
) -> bytes:
    """A node whose sides are leaves; with `nested` its left side is a node, and its length is said."""
    if nested:
        return bytes([kind]) + struct.pack("<HB", column, direction) + asked + bytes([len(left)]) + left + right
    return bytes([kind]) + struct.pack("<HB", column, direction) + asked + left + right


def written(folder: Path, tree: bytes, categories: int = 6, targets: tuple[str, ...] = (), **info: str) -> Path:
    """A MOJO of one tree over a number `x` and a category `c`, for a number or two classes."""
    lines = {
        "mojo_version": "1.40", "algo": "gbm", "endianness": "LITTLE_ENDIAN", "category": "Regression", "supervised": "true",
        "n_features": "2", "n_classes": "1", "n_columns": "3", "n_domains": "1", "balance_classes": "false",
        "default_threshold": "0.5", "n_trees": "1", "n_trees_per_class": "1", "_genmodel_encoding": "AUTO",
        "distribution": "gaussian", "link_function": "identity", "init_f": "0.0", "h2o_version": "3.46.0.6",
        "prior_class_distrib": "[1.0]", "model_class_distrib": "[1.0]", "uuid": "1", "_orig_projection_array": "null",
        "algorithm": "Gradient Boosting Machine",
    } | info  # fmt: skip
    path = folder / "m.zip"
    with zipfile.ZipFile(path, "w") as archive:
        index = "[info]\n" + "".join(f"{k} = {v}\n" for k, v in lines.items())
        index += f"\n[columns]\nx\nc\ny\n\n[domains]\n1: {categories} d000.txt\n"
        if targets:
            index += f"2: {len(targets)} d001.txt\n"
            archive.writestr("domains/d001.txt", "".join(f"{target}\n" for target in targets))
        archive.writestr("trees/t00_000.bin", tree)
        archive.writestr("trees/t00_000_aux.bin", b"")
        archive.writestr("domains/d000.txt", "".join(f"k{i}\n" for i in range(categories)))
        archive.writestr("model.ini", index)
    return path


def scores(path: Path, column: int, values: list[float]) -> list[float]:
    """The scores of rows with these values in a column, and nothing in the other one."""
    rows = np.full((len(values), 2), np.nan)
    rows[:, column] = values
    return load(path).ensemble.margins_emulated(rows)[:, 0].tolist()


BOTH = LEFT_LEAF | RIGHT_LEAF
INNER_SET = bytes([0b0000_0110, 0, 0, 0])
"""Categories 1 and 2 of the first 32."""
CASES: list[tuple[bytes, int, list[float], list[float]]] = [
    # A number: left below the threshold, missing as the node says.
    (node(BOTH | NUMBER, 0, NA_LEFT, leaf(1.5), leaf(1), leaf(2)), 0, [1.4999, 1.5, 2, math.nan], [1, 2, 2, 1]),
    (node(BOTH | NUMBER, 0, NA_RIGHT, leaf(1.5), leaf(1), leaf(2)), 0, [1, math.nan], [1, 2]),
    # Missing against the rest has no threshold in the file.
    (node(BOTH | NUMBER, 0, NA_VS_REST, b"", leaf(1), leaf(2)), 0, [-1e300, 0, 1e300, math.nan], [1, 1, 1, 2]),
    (node(BOTH | NUMBER, 1, NA_VS_REST, b"", leaf(1), leaf(2)), 1, [0, 5, 6, math.nan], [1, 1, 2, 2]),
    # A threshold on categories: by their codes; those that are not listed go with missing values.
    (node(BOTH | NUMBER, 1, NA_RIGHT, leaf(2), leaf(1), leaf(2)), 1, [0, 1, 2, 5, 6, math.nan], [1, 1, 2, 2, 2, 2]),
    (node(BOTH | NUMBER, 1, NA_LEFT, leaf(2), leaf(1), leaf(2)), 1, [0, 2, 6, math.nan], [1, 2, 1, 1]),
    # A set: what is in it goes right.
    (node(BOTH | SHORT, 1, NA_LEFT, INNER_SET, leaf(1), leaf(2)), 1, [0, 1, 2, 3, 6, math.nan], [1, 2, 2, 1, 1, 1]),
    (node(BOTH | SHORT, 1, NA_RIGHT, INNER_SET, leaf(1), leaf(2)), 1, [0, 1, 6, math.nan], [1, 2, 2, 2]),
    # A set of three categories from the second one on; what it does not reach goes with missing values.
    (
        node(BOTH | LONG, 1, NA_RIGHT, struct.pack("<HI", 1, 3) + bytes([0b010]), leaf(1), leaf(2)),
        1,
        [0, 1, 2, 3, 4, 6, math.nan],
        [2, 1, 2, 1, 2, 2, 2],
    ),
    (
        node(BOTH | LONG, 1, NA_LEFT, struct.pack("<HI", 1, 3) + bytes([0b010]), leaf(1), leaf(2)),
        1,
        [0, 1, 2, 3, 4, 6, math.nan],
        [1, 1, 2, 1, 1, 1, 1],
    ),
    # Missing against the rest below a set: the range of that set is looked at again (categories 1 to 3).
    (
        node(
            RIGHT_LEAF | LONG,
            1,
            NA_LEFT,
            struct.pack("<HI", 1, 3) + bytes([0b010]),
            node(BOTH | SHORT, 1, NA_VS_REST, b"", leaf(1), leaf(2)),
            leaf(4),
            nested=True,
        ),
        1,
        [0, 1, 2, 3, 4, math.nan],
        [2, 1, 4, 1, 2, 2],
    ),
    # A tree that is a leaf.
    (bytes([0]) + struct.pack("<H", 65535) + leaf(7), 0, [0, math.nan], [7, 7]),
]


@pytest.mark.parametrize("case", range(len(CASES)))
def test_a_node_sends_values_where_the_reference_does(case: int, tmp_path: Path) -> None:
    tree, column, values, expected = CASES[case]
    assert scores(written(tmp_path, tree), column, values) == expected


@pytest.mark.parametrize("case", range(len(CASES)))
def test_h2o_itself_sends_them_there(case: int, tmp_path: Path) -> None:
    pytest.importorskip("h2o", reason="pip install h2o==3.46.0.6 jpype1, and Java")
    pytest.importorskip("jpype", reason="pip install h2o==3.46.0.6 jpype1, and Java")
    tree, column, values, expected = CASES[case]
    model = in_java(load(written(tmp_path, tree)))
    rows = np.full((len(values), 2), np.nan)
    rows[:, column] = values
    assert model.margins(rows)[:, 0].tolist() == expected
    assert model.predicts is not None
    said = model.predicts(rows).probabilities
    assert said is not None
    assert said[:, 0].tolist() == expected


@pytest.mark.parametrize("algorithm", ["gbm", "drf"])
def test_pairs_are_there_if_the_threshold_lies_between_the_probabilities(algorithm: str, tmp_path: Path) -> None:
    """By the arithmetic of the module's docstring: a sigmoid of the leaf and `init_f`, or 1 less the leaf."""
    rng = np.random.default_rng(4)
    for _ in range(20):
        leaves = rng.random(2).astype(np.float32)
        chances = [1 - float(v) if algorithm == "drf" else 1 / (1 + math.exp(-(float(v) + 0.25))) for v in leaves]
        threshold = float(rng.uniform(0.05, 0.95)) if rng.random() < 0.5 else sum(chances) / 2
        info = {
            "algo": algorithm,
            "category": "Binomial",
            "n_classes": "2",
            "n_domains": "2",
            "default_threshold": repr(threshold),
        }
        info |= {
            "distribution": "bernoulli",
            "link_function": "logit",
            "init_f": "0.25",
            "binomial_double_trees": "false",
        }
        info["algorithm"] = {"gbm": "Gradient Boosting Machine", "drf": "Distributed Random Forest"}[algorithm]
        tree = node(BOTH | NUMBER, 0, NA_LEFT, leaf(0.5), leaf(float(leaves[0])), leaf(float(leaves[1])))
        model = load(written(tmp_path, tree, targets=("no", "yes"), **info))
        answers = treesens.check_text(
            'model m from "m"\nquery pair: sensitive m to x from no to yes\nquery no: find a in m such that class(a) = no\n'
            "query yes: find a in m such that class(a) = yes",
            models={"m": model},
        )
        found = {name: answers[name].to_dict()["verdict"] == "found" for name in ("pair", "no", "yes")}
        yes = [chance >= threshold for chance in chances]
        assert found == {"pair": any(yes) and not all(yes), "no": not all(yes), "yes": any(yes)}, (leaves, threshold)


# --- three classes and more -------------------------------------------------------------------------------------------------


def written_of_classes(
    folder: Path, trees: dict[str, bytes], classes: int, algorithm: str = "drf", **info: str
) -> Path:
    """A MOJO of trees by the names of their files, over a number `x` and a category `c`."""
    names = tuple(f"k{number}" for number in range(classes))
    rounds = 1 + max(int(name[4:]) for name in trees)
    shares = str([1 / classes] * classes)
    facts = {
        "algo": algorithm,
        "algorithm": {"gbm": "Gradient Boosting Machine", "drf": "Distributed Random Forest"}[algorithm],
        "category": "Multinomial",
        "distribution": "multinomial",
        "n_classes": str(classes),
        "n_domains": "2",
        "n_trees": str(rounds),
        "n_trees_per_class": str(classes),
        "binomial_double_trees": "false",
        "prior_class_distrib": shares,
        "model_class_distrib": shares,
    }
    path = written(folder, CASES[0][0], targets=names, **(facts | info))
    with zipfile.ZipFile(path) as old:
        kept = {name: old.read(name) for name in old.namelist() if not name.startswith("trees/")}
    with zipfile.ZipFile(path, "w") as new:
        for name, content in kept.items():
            new.writestr(name, content)
        for name, tree in trees.items():
            new.writestr(f"trees/{name}.bin", tree)
            new.writestr(f"trees/{name}_aux.bin", b"")
    return path


def step(cut: float, low: float, high: float) -> bytes:
    return node(BOTH | NUMBER, 0, NA_LEFT, leaf(cut), leaf(low), leaf(high))


def alone(value: float) -> bytes:
    return bytes([0]) + struct.pack("<H", 65535) + leaf(value)


def asked_of_classes(path: Path, classes: int) -> dict[str, str]:
    """The verdict for each class, and for each class that it is not to be, of `x` between 0 and 4."""
    queries = [f"query is{c}: find a in m such that class(a) = k{c}" for c in range(classes)]
    queries += [f"query not{c}: find a in m such that not class(a) = k{c}" for c in range(classes)]
    text = 'model m from "m"\nfeature x: real in [0, 4]\n' + "\n".join(queries)
    answers = treesens.check_text(text, models={"m": load(path)})
    return {name: answers[name].to_dict()["verdict"] for name in answers}


def test_no_class_is_excluded_at_a_tie(tmp_path: Path) -> None:
    """The first class is never one of the best here, and yet H2O draws it for half of the rows (`ties.json` has such cases)."""
    path = written_of_classes(tmp_path, {"t01_000": alone(0.5), "t02_000": alone(0.5)}, 3)
    found = asked_of_classes(path, 3)
    assert (found["is0"], found["is1"], found["is2"]) == ("unknown", "unknown", "unknown")
    assert {found[f"not{c}"] for c in range(3)} <= {"unknown", "found"}
    text = 'model m from "m"\nquery q: find a in m such that class(a) = k0'
    reason = treesens.check_text(text, models={"m": load(path)})["q"].to_dict()["reason"]
    assert "that a class of `a` is ahead of all others" in reason
    ahead = written_of_classes(tmp_path, {"t01_000": step(2, 0.5, 0.25), "t02_000": alone(0.5)}, 3)
    found = asked_of_classes(ahead, 3)
    # From 2 on the last class is ahead; below it is a tie.
    assert (found["is0"], found["is1"], found["is2"]) == ("unknown", "unknown", "found")
    assert (found["not0"], found["not1"]) == ("found", "found")


def test_a_class_without_a_tree_has_nothing_added(tmp_path: Path) -> None:
    path = written_of_classes(tmp_path, {"t00_000": alone(-1), "t02_001": step(1, -2, 3)}, 3, "gbm")
    e = load(path).ensemble
    assert isinstance(e.link, Softmax)
    assert e.margins_emulated(np.array([[0.0, 0.0], [1.0, 0.0]])).tolist() == [[-1, 0, -2], [-1, 0, 3]]
    with pytest.raises(ModelError, match="no trees"):
        load(written_of_classes(tmp_path, {"t00_000": alone(1)}, 3, n_trees="0"))


def test_ratios_of_a_forest_are_those_of_its_sums(tmp_path: Path) -> None:
    """`by factor g` compares shares, which are the sums over one number: 0.5 is twice 0.25, and not more."""
    path = written_of_classes(tmp_path, {"t00_000": alone(0.5), "t01_000": alone(0.25)}, 3)
    text = 'model m from "m"\nquery a: find a in m such that class(a) = k0 by factor 1.999\n'
    text += "query b: find a in m such that class(a) = k0 by factor 2.001"
    answers = treesens.check_text(text, models={"m": load(path)})
    assert [answers[name].to_dict()["verdict"] for name in "ab"] == ["found", "none"]
    with pytest.raises(treesens.errors.TreesensError, match="raw margin"):
        treesens.check_text(
            'model m from "m"\nquery p: find a in m such that prob(a, k0) >= 0.5', models={"m": load(path)}
        )


def four_numbers(path: Path) -> Path:
    """A MOJO over four numbers, in place of a number and a category."""
    with zipfile.ZipFile(path) as old:
        kept = {name: old.read(name) for name in old.namelist() if name != "domains/d000.txt"}
    index = kept["model.ini"].decode()
    for known, made in (
        ("[columns]\nx\nc\ny\n", "[columns]\nw0\nw1\nw2\nw3\ny\n"),
        ("1: 6 d000.txt\n2: ", "4: "),
        ("n_features = 2\n", "n_features = 4\n"),
        ("n_columns = 3\n", "n_columns = 5\n"),
        ("n_domains = 2\n", "n_domains = 1\n"),
    ):
        assert index.count(known) == 1
        index = index.replace(known, made)
    with zipfile.ZipFile(path, "w") as new:
        for name, content in (kept | {"model.ini": index.encode()}).items():
            new.writestr(name, content)
    return path


def test_studies_of_rows_know_the_class_that_h2o_draws(tmp_path: Path) -> None:
    """Trees that give every row the scores of a case: `groups` and `diff` say of the case's row what genmodel said of it."""
    cases = json.loads((FOLDER / "ties.json").read_text())
    cases = [case for case in cases if None not in case["row"] and len(case["scores"]) < 5][:12]
    drawn_later = 0
    for number, case in enumerate(cases):
        folder, count, drawn = tmp_path / str(number), len(case["scores"]), case["class"]
        folder.mkdir()
        drawn_later += drawn != int(np.argmax(case["scores"]))
        shares = str([float.fromhex(share) for share in case["shares"]])
        trees = {f"t{c:02d}_000": alone(score) for c, score in enumerate(case["scores"])}
        tied = load(four_numbers(written_of_classes(folder, trees, count, prior_class_distrib=shares)))
        row = [float.fromhex(x) for x in case["row"]]
        table = pd.DataFrame([row], columns=[f"w{i}" for i in range(4)]).assign(g="all", y=f"k{drawn}")
        for c in range(count):
            (group,) = treesens.groups(tied, table, by="g", favourable=f"k{c}", time_limit=1).records
            assert group["favourable_rows"] == int(c == drawn)
            ahead = load(four_numbers(written_of_classes(folder, {f"t{c:02d}_000": alone(1)}, count)))
            found = treesens.diff(tied, ahead, table, label="y", time_limit=1)
            assert found.changed_rows == ([] if c == drawn else [0])
    assert drawn_later > 3


@pytest.mark.parametrize("seed", range(12))
@pytest.mark.sampled
def test_verdicts_about_ties_hold_for_what_h2o_draws(seed: int, tmp_path: Path) -> None:
    """Of every cell of `x` many rows: what is excluded H2O never predicts, and what is found it does."""
    pytest.importorskip("h2o", reason="pip install h2o==3.46.0.6 jpype1, and Java")
    pytest.importorskip("jpype", reason="pip install h2o==3.46.0.6 jpype1, and Java")
    rng = np.random.default_rng(seed)
    classes, algorithm = int(rng.integers(3, 6)), ("drf", "gbm")[seed % 2]
    trees = {
        f"t{c:02d}_{r:03d}": step(float(rng.integers(1, 4)), *(rng.integers(0, 3, 2) / 4).tolist())
        for c in range(classes)
        for r in range(2)
        if rng.random() < 0.8
    }
    path = written_of_classes(tmp_path, trees | {"t00_001": alone(0.25)}, classes, algorithm)
    model = in_java(load(path))
    rows = np.column_stack([rng.uniform(0, 4, 3000), rng.integers(0, 6, 3000)])
    assert model.predicts is not None
    told = model.predicts(rows).classes
    assert told is not None
    assert model.ensemble.predicted_classes(model.ensemble.margins_emulated(rows), rows).tolist() == told.tolist()
    found = asked_of_classes(path, classes)
    for c in range(classes):
        if (told == c).any():
            assert found[f"is{c}"] != "none"
        if (told != c).any():
            assert found[f"not{c}"] != "none"
        assert found[f"is{c}"] != "found" or (told == c).any()
        assert found[f"not{c}"] != "found" or (told != c).any()


def test_balanced_classes_of_many(tmp_path: Path) -> None:
    """A sum of boosting begins at the logarithm of the correction; those of a forest are multiplied by it."""
    trees = {f"t{c:02d}_{r:03d}": step(2, (c + r + 1) / 8, (5 - c - r) / 8) for c in range(3) for r in range(2)}
    info = {
        "balance_classes": "true",
        "prior_class_distrib": "[0.5, 0.25, 0.25]",
        "model_class_distrib": "[0.25, 0.5, 0.25]",
    }
    rows = np.array([[0.0, 0.0], [3.0, 0.0]])
    boosted = load(written_of_classes(tmp_path, trees, 3, "gbm", **info)).ensemble
    assert boosted.margins_emulated(rows)[0].tolist() == [0.375 + math.log(2), 0.625 + math.log(0.5), 0.875]
    forest = load(written_of_classes(tmp_path, trees, 3, "drf", **info)).ensemble
    assert forest.margins_emulated(rows)[0].tolist() == [0.375 * 2, 0.625 * 0.5, 0.875]


@pytest.mark.parametrize("name", ["forest_balanced", "forest_both_balanced", "boosting_two", "boosting_value"])
def test_no_line_of_the_index_is_made_up(name: str, tmp_path: Path) -> None:
    # Those that h2o-genmodel reads by `readkv(name)` into a number or a flag: without one of them it reads no model.
    asked = answered(name)[0]
    with zipfile.ZipFile(FOLDER / f"{name}.zip") as archive:
        index = archive.read("model.ini").decode().partition("\n[columns]")[0]
    lines = [line.partition(" = ")[0] for line in index.splitlines() if " = " in line]
    read = 0
    for line in lines:
        path = changed(tmp_path, name, line)
        if TABLE["model"][line].required:
            with pytest.raises(ModelError, match=line):
                load(path)
            continue
        with contextlib.suppress(ModelError):
            e, same = load(path).ensemble, load(FOLDER / f"{name}.zip").ensemble
            read += 1
            assert e.margins_emulated(asked).tolist() == same.margins_emulated(asked).tolist(), line
            assert (e.link, e.ties) == (same.link, same.ties), line
    assert 0 < read < len(lines)


def test_a_leaf_of_a_balanced_forest_is_a_share(tmp_path: Path) -> None:
    info = {"algo": "drf", "algorithm": "Distributed Random Forest", "category": "Binomial", "n_classes": "2"}
    info |= {"n_domains": "2", "balance_classes": "true", "prior_class_distrib": "[0.5, 0.5]"}
    info |= {"model_class_distrib": "[0.25, 0.75]", "binomial_double_trees": "false"}
    tree = node(BOTH | NUMBER, 0, NA_LEFT, leaf(0.5), leaf(0.25), leaf(1))
    assert isinstance(load(written(tmp_path, tree, targets=("no", "yes"), **info)).ensemble.link, Calibrated)
    tree = node(BOTH | NUMBER, 0, NA_LEFT, leaf(0.5), leaf(0.25), leaf(1.5))
    with pytest.raises(ModelError, match="must be a share of rows"):
        load(written(tmp_path, tree, targets=("no", "yes"), **info))


# --- what is refused --------------------------------------------------------------------------------------------------------


def changed(folder: Path, name: str = "boosting_two", drop: str = "", **info: str) -> Path:
    """A file with other texts in its index, or without one."""
    path = folder / "changed.zip"
    with zipfile.ZipFile(FOLDER / f"{name}.zip") as old, zipfile.ZipFile(path, "w") as new:
        for entry in old.infolist():
            content = old.read(entry)
            if entry.filename == "model.ini":
                head, _, rest = content.decode().partition("\n[columns]")
                lines = [line for line in head.splitlines() if line.split(" ")[0] not in (*info, drop)]
                lines += [f"{k} = {v}" for k, v in info.items()]
                content = ("\n".join(lines) + "\n\n[columns]" + rest).encode()
            new.writestr(entry.filename, content)
    return path


REFUSED: list[tuple[dict[str, str], str]] = [
    ({"algo": "xgboost"}, "MOJO of `xgboost`"),
    ({"algo": "drf"}, "and `algorithm` Gradient Boosting Machine"),
    ({"algorithm": "Distributed Random Forest"}, "`algo` is gbm"),
    ({"mojo_version": "1.10"}, "version 1.1"),
    ({"mojo_version": "1.50"}, "version 1.5"),
    ({"endianness": "BIG_ENDIAN"}, "big-endian"),
    ({"_genmodel_encoding": "LabelEncoder"}, "LabelEncoder"),
    ({"_genmodel_encoding": "OneHotExplicit"}, "`_n_orig_names` is missing"),
    ({"supervised": "false"}, "without a target"),
    ({"n_classes": "3"}, "each round has 1 trees for 3 classes"),
    ({"n_classes": "3", "n_trees_per_class": "3"}, "3 classes of a Binomial"),
    ({"n_classes": "99999"}, "not a number up to"),
    ({"balance_classes": "true", "prior_class_distrib": "[0.5]"}, "not a list of 2 finite numbers"),
    ({"balance_classes": "true", "prior_class_distrib": "[0.5, nan]"}, "not a list of 2 finite numbers"),
    ({"balance_classes": "true", "model_class_distrib": "0.5, 0.5"}, "not a list of 2 finite numbers"),
    ({"balance_classes": "true", "prior_class_distrib": "[-0.5, 1.5]"}, "a share below 0"),
    ({"balance_classes": "true", "model_class_distrib": "[-0.5, 1.5]"}, "too far apart, or below 0"),
    ({"balance_classes": "true", "prior_class_distrib": "[1e-300, 1]"}, "too far apart, or below 0"),
    ({"n_trees_per_class": "2"}, "each round has 2 trees"),
    ({"distribution": "quasibinomial"}, "quasibinomial"),
    ({"category": "Ordinal"}, "Ordinal"),
    ({"link_function": "log"}, "the link log"),
    ({"default_threshold": "1.5"}, "same class"),
    ({"default_threshold": "nan"}, "not a finite number"),
    ({"offset_column": "age"}, "offset"),
    ({"a_field_of_tomorrow": "1"}, "a_field_of_tomorrow"),
    ({"_orig_projection_array": "[1, 2]"}, "encoded before they reach the trees"),
    ({"n_columns": "7"}, "6 columns"),
    ({"n_features": "6"}, "6 features"),
    ({"n_domains": "4"}, "3 domains"),
    ({"n_trees": "0"}, "no trees"),
    ({"n_trees": "5"}, "t00_004.bin"),
    ({"n_trees": "99999999999999"}, "not a number up to"),
    ({"init_f": "inf"}, "not a finite number"),
]


@pytest.mark.parametrize("case", range(len(REFUSED)))
def test_what_is_not_represented_is_refused_by_name(case: int, tmp_path: Path) -> None:
    info, reason = REFUSED[case]
    with pytest.raises(ModelError) as refused:
        load(changed(tmp_path, **info))
    assert reason in str(refused.value)
    assert refused.value.remedy


ONE_HOT: list[tuple[dict[str, str], str]] = [
    ({"_n_orig_names": "5"}, "`_orig_names` has 6 lines"),
    ({"_n_orig_names": "99999999"}, "not a number up to"),
    ({"_n_orig_domain_values": "5"}, "labels for a different number"),
    ({"_m_orig_domain_values_2": "39"}, "`_orig_domain_values_2` has 40 lines"),
    ({"_m_orig_domain_values_2": "x"}, "not a number up to"),
    ({"_m_orig_domain_values_3": "0"}, "`flag` has no categories"),
    ({"_m_orig_domain_values_0": "3"}, "no file `_orig_domain_values_0`"),
    ({"_genmodel_encoding": "Eigen"}, "the encoding Eigen"),
    ({"_genmodel_encoding": "Enum"}, "encoded before they reach the trees"),
    ({"_m_orig_domain_values_x": "1"}, "_m_orig_domain_values_x"),
    ({"mojo_version": "1.30"}, "the encoding OneHotExplicit of categories is not read in version 1.3"),
]


@pytest.mark.parametrize("case", range(len(ONE_HOT)))
def test_an_encoding_that_contradicts_itself_is_refused(case: int, tmp_path: Path) -> None:
    info, reason = ONE_HOT[case]
    with pytest.raises(ModelError) as refused:
        load(changed(tmp_path, "forest_one_hot", **info))
    assert reason in str(refused.value)
    assert refused.value.remedy


def test_h2o_itself_reads_no_encoding_of_an_earlier_version(tmp_path: Path) -> None:
    """Fixed: a file of MOJO 1.3 was read as encoded, and the library takes the columns of its trees for those of the table."""
    pytest.importorskip("h2o", reason="pip install h2o==3.46.0.6 jpype1, and Java")
    jpype = pytest.importorskip("jpype", reason="pip install h2o==3.46.0.6 jpype1, and Java")
    in_java(load(FOLDER / "forest_one_hot.zip")).margins(np.zeros((1, 5)))  # which starts Java
    opened = [
        jpype.JClass("hex.genmodel.MojoModel").load(str(changed(tmp_path, "forest_one_hot", mojo_version=version)))
        for version in ("1.40", "1.30")
    ]
    assert [str(model.getCategoricalEncoding()) for model in opened] == ["OneHotExplicit", "AUTO"]


def test_columns_of_one_category_are_one_feature() -> None:
    e = load(FOLDER / "forest_one_hot.zip").ensemble
    assert [(f.name, f.categories) for f in e.features] == [
        ("age", 0),
        ("income", 0),
        ("region", 40),
        ("flag", 2),
        ("debt", 0),
    ]
    assert e.features[3].labels == ("no", "yes")
    assert set(e.node_feature[e.category_set >= 0].tolist()) <= {2, 3}
    # A category that is not listed goes where a missing one goes: to the column of missing values.
    rows = answered("forest_one_hot")[0]
    for column, count in ((2, 40), (3, 2)):
        missing, other = rows.copy(), rows.copy()
        missing[:, column], other[:, column] = math.nan, count + 3
        assert e.margins_emulated(missing).tolist() == e.margins_emulated(other).tolist()


def test_a_forest_of_both_classes_is_cut_at_a_share(tmp_path: Path) -> None:
    """By `GenModel.getPrediction`: the second class if its share of the sum reaches the threshold."""
    for name in ("forest_both", "forest_both_balanced"):
        e = load(FOLDER / f"{name}.zip").ensemble
        rows, shares, classes = answered(name)
        assert isinstance(e.ties, CutShares)
        assert classes == [int(share[1] >= float(e.ties.cut)) for share in shares]
        assert (e.ties.corrections == (1, 1)) is (name == "forest_both")
        sure = [abs(share[1] - float(e.ties.cut)) > 1e-9 for share in shares]
        assert [c for c, s in zip(sure_classes(e, e.margins_emulated(rows)), sure, strict=True) if s] == [
            c for c, s in zip(classes, sure, strict=True) if s
        ]
    ties = CutShares(Fraction(1, 4))
    assert [
        ties.choose(np.array(scores), np.zeros(1)) for scores in ((0.75, 0.25), (0.76, 0.25), (0, 0), (0, 1e-9))
    ] == [
        1,
        0,
        0,
        1,
    ]
    cut = load(FOLDER / "forest_both.zip").ensemble
    edge = float(cut.ties.cut) if isinstance(cut.ties, CutShares) else 0.0
    assert sure_classes(cut, np.array([[1 - edge, edge], [1 - edge, edge + 1e-9], [1 - edge, edge - 1e-9]])) == [
        None,
        1,
        0,
    ]
    with pytest.raises(ModelError, match="same class"):
        load(changed(tmp_path, "forest_both", default_threshold="1.0"))


def test_a_field_that_decides_may_not_be_missing(tmp_path: Path) -> None:
    for name in (
        "algo",
        "algorithm",
        "mojo_version",
        "default_threshold",
        "init_f",
        "n_trees",
        "distribution",
        "category",
        "n_classes",
    ):
        with pytest.raises(ModelError, match=name):
            load(changed(tmp_path, drop=name))


DAMAGED: list[tuple[bytes, str]] = [
    (b"", "ends in the middle"),
    (CASES[0][0][:-1], "ends in the middle"),
    (CASES[0][0] + b"\0", "further bytes follow"),
    (node(BOTH, 9, NA_LEFT, leaf(1), leaf(1), leaf(2)), "column 9"),
    (node(BOTH, 0, 9, leaf(1), leaf(1), leaf(2)), "unknown direction 9"),
    (node(BOTH | 4, 0, NA_LEFT, leaf(1), leaf(1), leaf(2)), "unknown kind of split"),
    (node(BOTH | SHORT, 0, NA_LEFT, INNER_SET, leaf(1), leaf(2)), "unknown kind of split"),
    (node(BOTH, 0, NA_LEFT, leaf(math.nan), leaf(1), leaf(2)), "NaN"),
    (node(BOTH, 0, NA_LEFT, leaf(1), leaf(math.inf), leaf(2)), "not finite"),
    (node(BOTH | LONG, 1, NA_LEFT, struct.pack("<HI", 0, 2**31), leaf(1), leaf(2)), "longer than the tree"),
    # Two nodes that share what is below them would make 2**n nodes of n.
    (bytes([0]) + struct.pack("<HBfB", 0, NA_LEFT, 1.0, 0) + CASES[0][0], "does not end where"),
]


@pytest.mark.parametrize("case", range(len(DAMAGED)))
def test_a_damaged_tree_is_refused_with_its_place(case: int, tmp_path: Path) -> None:
    tree, reason = DAMAGED[case]
    with pytest.raises(ModelError) as refused:
        load(written(tmp_path, tree))
    assert reason in str(refused.value)
    assert "t00_000.bin" in str(refused.value) or "tree 0" in str(refused.value)


def test_an_archive_that_unpacks_to_much_more_is_refused(tmp_path: Path) -> None:
    path = written(tmp_path, CASES[0][0])
    with zipfile.ZipFile(path, "a", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("large", bytes(1 << 24))
    with pytest.raises(ModelError, match="unpacks to"):
        load(path)


def test_an_archive_with_a_file_twice_is_refused(tmp_path: Path) -> None:
    path = written(tmp_path, CASES[0][0])
    with zipfile.ZipFile(path, "a") as archive, pytest.warns(UserWarning, match="Duplicate name"):
        archive.writestr("model.ini", "[info]\n")
    with pytest.raises(ModelError, match="twice"):
        load(path)


@pytest.mark.parametrize(
    "name", ["boosting_two", "boosting_three", "forest_one_hot", "forest_four_balanced", "forest_balanced"]
)
def test_damage_is_refused_with_a_typed_error(name: str) -> None:
    def read(data: bytes) -> treesens.Model:
        return H2OFrontend().load(Path("m.zip"), data)

    assert refusals((FOLDER / f"{name}.zip").read_bytes(), read, files=150) > 100


def test_an_archive_in_another_order_is_known(tmp_path: Path) -> None:
    """Whoever packs the files again may put any of them first."""
    original = zipfile.ZipFile(FOLDER / "boosting_two.zip")
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        for name in sorted(original.namelist()):
            archive.writestr(name, original.read(name))
    (tmp_path / "m.zip").write_bytes(out.getvalue())
    assert load(tmp_path / "m.zip").ensemble.n_trees == 4
