"""MOJO files against h2o-genmodel: its answers beside the files (`tests/data/h2o/make.py`), and itself if it is there."""

from __future__ import annotations

import io
import json
import math
import struct
import zipfile
from decimal import Decimal
from pathlib import Path

import numpy as np
import pytest

import treesens
from tests.frontends.damage import refusals
from treesens.compiler.model import Ensemble, Feature, Link
from treesens.errors import ModelError
from treesens.frontends import conformance
from treesens.frontends.h2o.frontend import H2OFrontend
from treesens.frontends.registry import load

FOLDER = Path(__file__).parents[1] / "data" / "h2o"
FILES = sorted(path.stem for path in FOLDER.glob("*.zip"))
LAST_PLACES = 4 * 2.0**-52
"""Exponentials of Java and of numpy differ in the last places."""
LEFT_LEAF, RIGHT_LEAF = 48, 64
"""Bits of a node's type: both of its sides are leaves."""
NUMBER, SHORT, LONG = 0, 8, 12
"""Bits of a node's type: it asks a number, a set of 32 categories, a set of any length."""
NA_VS_REST, NA_LEFT, NA_RIGHT = 1, 2, 3


def answered(name: str) -> tuple[np.ndarray, np.ndarray, list[int] | None]:
    """Rows, the values or probabilities that H2O returned for them, and the classes."""
    asked = json.loads((FOLDER / f"{name}.json").read_text())
    rows = [[math.nan if x is None else float.fromhex(x) for x in row] for row in asked["rows"]]
    return np.array(rows), np.array([float.fromhex(p) for p in asked["answers"]]), asked["classes"]


@pytest.mark.parametrize("name", FILES)
def test_files_are_read_as_h2o_scores_them(name: str) -> None:
    e = load(FOLDER / f"{name}.zip").ensemble
    rows, expected, classes = answered(name)
    margins = e.margins_emulated(rows)
    shown = e.probabilities(margins)[:, -1]
    assert len(rows) == 80
    assert np.isnan(rows).any()
    if e.link is Link.IDENTITY:
        assert shown.tolist() == expected.tolist()
    else:
        assert shown == pytest.approx(expected, rel=LAST_PLACES)
    assert (None if classes is None else e.predicted_classes(margins).tolist()) == classes


@pytest.mark.parametrize("name", FILES)
def test_h2o_itself_says_the_same_on_every_threshold(name: str) -> None:
    pytest.importorskip("h2o", reason="pip install h2o==3.46.0.6 jpype1, and Java")
    pytest.importorskip("jpype", reason="pip install h2o==3.46.0.6 jpype1, and Java")
    conformance.check(load(FOLDER / f"{name}.zip")).raise_if_wrong()


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


@pytest.mark.parametrize("name", [name for name in FILES if answered(name)[2] is not None])
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
    model = load(written(tmp_path, tree))
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
    ({"endianness": "BIG_ENDIAN"}, "highest byte first"),
    ({"_genmodel_encoding": "OneHotExplicit"}, "OneHotExplicit"),
    ({"supervised": "false"}, "without a target"),
    ({"n_classes": "3"}, "hash of the row"),
    ({"balance_classes": "true"}, "balance_classes=False"),
    ({"binomial_double_trees": "true"}, "binomial_double_trees=False"),
    ({"n_trees_per_class": "2"}, "several trees"),
    ({"distribution": "quasibinomial"}, "quasibinomial"),
    ({"category": "Ordinal"}, "Ordinal"),
    ({"link_function": "log"}, "the link log"),
    ({"default_threshold": "1.5"}, "same class"),
    ({"default_threshold": "nan"}, "no finite number"),
    ({"offset_column": "age"}, "offset"),
    ({"a_field_of_tomorrow": "1"}, "a_field_of_tomorrow"),
    ({"_orig_projection_array": "[1, 2]"}, "other columns"),
    ({"n_columns": "7"}, "6 columns"),
    ({"n_features": "6"}, "6 features"),
    ({"n_domains": "4"}, "3 domains"),
    ({"n_trees": "0"}, "no trees"),
    ({"n_trees": "5"}, "t00_004.bin"),
    ({"n_trees": "99999999999999"}, "no number up to"),
    ({"init_f": "inf"}, "no finite number"),
]


@pytest.mark.parametrize("case", range(len(REFUSED)))
def test_what_is_not_represented_is_refused_by_name(case: int, tmp_path: Path) -> None:
    info, reason = REFUSED[case]
    with pytest.raises(ModelError) as refused:
        load(changed(tmp_path, **info))
    assert reason in str(refused.value)
    assert refused.value.remedy


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
    (CASES[0][0] + b"\0", "something follows"),
    (node(BOTH, 9, NA_LEFT, leaf(1), leaf(1), leaf(2)), "column 9"),
    (node(BOTH, 0, 9, leaf(1), leaf(1), leaf(2)), "which is nowhere"),
    (node(BOTH | 4, 0, NA_LEFT, leaf(1), leaf(1), leaf(2)), "not known"),
    (node(BOTH | SHORT, 0, NA_LEFT, INNER_SET, leaf(1), leaf(2)), "not known"),
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


def test_damage_is_refused_with_a_typed_error() -> None:
    def read(data: bytes) -> treesens.Model:
        return H2OFrontend().load(Path("m.zip"), data)

    assert refusals((FOLDER / "boosting_two.zip").read_bytes(), read) > 100


def test_an_archive_in_another_order_is_known(tmp_path: Path) -> None:
    """Whoever packs the files again may put any of them first."""
    original = zipfile.ZipFile(FOLDER / "boosting_two.zip")
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        for name in sorted(original.namelist()):
            archive.writestr(name, original.read(name))
    (tmp_path / "m.zip").write_bytes(out.getvalue())
    assert load(tmp_path / "m.zip").ensemble.n_trees == 4
