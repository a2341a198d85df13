"""VNN-LIB properties against every combination of values around the thresholds, by onnxruntime's own outputs."""

from __future__ import annotations

import gzip
import itertools
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner

from tests.extensions.formats.trained_onnx import MODELS
from treesens.cli import group
from treesens.errors import ModelError, QueryError
from treesens.extensions.vnnlib.parsing import parse_property
from treesens.extensions.vnnlib.property import decide_property
from treesens.frontends.registry import load

onnxruntime = pytest.importorskip("onnxruntime")
# (model, number of outputs, assertion about outputs y, the same in numbers)
Judge = Callable[[Any], Any]
CASES: list[tuple[str, int, str, Judge]] = [
    (
        "forest, four classes",
        4,
        "(and (>= {y2} {y0}) (>= {y2} 0.4))",
        lambda y: (y[:, 2] >= y[:, 0]) & (y[:, 2] >= 0.4),
    ),
    ("forest, two classes", 2, "(<= {y1} (- {y0} 0.3))", lambda y: y[:, 1] <= y[:, 0] - 0.3),
    ("forest, value", 1, "(or (<= {y0} -1.0) (> {y0} 1.25))", lambda y: (y[:, 0] <= -1) | (y[:, 0] > 1.25)),
    ("boosting, two classes", 2, "(>= {y1} 0.6)", lambda y: y[:, 1] >= 0.6),
    ("boosting, two classes", 2, "(not (<= {y1} {y0}))", lambda y: y[:, 1] > y[:, 0]),
    ("boosting, value", 1, "(>= (* 2 {y0}) 1.5)", lambda y: y[:, 0] * 2 >= 1.5),
    ("tree, value", 1, "(< {y0} 0.1)", lambda y: y[:, 0] < 0.1),
]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("onnx")
    for name in {case[0] for case in CASES}:
        (folder / f"{name}.onnx").write_bytes(MODELS[name]().SerializeToString())
    return folder


def graph_outputs(path: Path, points: Any) -> Any:
    session = onnxruntime.InferenceSession(path.read_bytes())
    found = session.run(None, {session.get_inputs()[0].name: points.astype(np.float32)})[-1]
    if isinstance(found, list):
        return np.array([list(one.values()) for one in found], np.float64)
    return np.asarray(found, np.float64).reshape(len(points), -1)


def property_text(version: int, bounds: list[tuple[float, float]], outputs: int, assertion: str) -> str:
    shape = len(bounds)
    if version == 1:
        names = {f"y{i}": f"Y_{i}" for i in range(outputs)}
        lines = [f"(declare-const X_{i} Real)" for i in range(shape)]
        lines += [f"(declare-const Y_{i} Real)" for i in range(outputs)]
        inputs = [f"X_{i}" for i in range(shape)]
    else:
        names = {f"y{i}": f"Y[0,{i}]" for i in range(outputs)}
        lines = ["(vnnlib-version <2.0>)", f"(declare-network f (declare-input X float32 [1,{shape}])"]
        lines += [f"  (declare-output Y float32 [1,{outputs}]))"]
        inputs = [f"X[0,{i}]" for i in range(shape)]
    for name, (low, high) in zip(inputs, bounds, strict=True):
        lines += [f"(assert (>= {name} {low!r})) ; at least", f"(assert (<= {name} {high!r}))"]
    return "\n".join([*lines, f"(assert {assertion.format(**names)})"])


@pytest.mark.parametrize("version", [1, 2])
@pytest.mark.parametrize("number", range(len(CASES)))
@pytest.mark.sampled
def test_verdicts_are_those_of_trying_all_values(folder: Path, number: int, version: int) -> None:
    name, outputs, assertion, judge = CASES[number]
    path = folder / f"{name}.onnx"
    model, data = load(path), path.read_bytes()
    rng = np.random.default_rng(number)
    statuses = set()
    for _ in range(12):
        base = np.round(rng.normal(size=5), 2)
        free = rng.choice(5, 2, replace=False)
        wide = float(rng.choice([0.05, 0.5, 3.0]))
        bounds = [(float(b), float(b) + 1e-6) for b in base]
        for f in free:
            bounds[f] = (float(base[f]) - wide, float(base[f]) + wide)
        columns = []
        for f, (low, high) in enumerate(bounds):
            cuts = model.ensemble.grid()[f].cuts
            near = np.concatenate([cuts, np.nextafter(cuts.astype(np.float32), np.float32(-9e9)), [low, high]])
            values = np.unique(np.concatenate([near.astype(np.float32), np.float32([(low + high) / 2])]))
            columns.append(values[(values.astype(float) >= low) & (values.astype(float) <= high)])
        if any(len(column) == 0 for column in columns):
            continue
        points = np.array(list(itertools.product(*columns)), np.float32)
        expected = bool(judge(graph_outputs(path, points)).any())
        asked = parse_property(property_text(version, bounds, outputs, assertion))
        found = decide_property(model, data, asked, time_limit=30)
        assert found.status == ("sat" if expected else "unsat")
        statuses.add(found.status)
        if expected:
            point = np.array([found.inputs])
            assert all(low <= x <= high for x, (low, high) in zip(found.inputs, bounds, strict=True))
            assert graph_outputs(path, point)[0].tolist() == list(found.outputs)
            assert judge(np.array([found.outputs]))[0]
    assert statuses == {"sat", "unsat"}


@pytest.mark.parametrize("version", [1, 2])
def test_the_command_writes_what_the_format_says(folder: Path, tmp_path: Path, version: int) -> None:
    assertion = CASES[2][2]
    text = property_text(version, [(-3.0, 3.0)] * 5, 1, assertion)
    (tmp_path / "p.vnnlib.gz").write_bytes(gzip.compress(text.encode()))
    model, results = str(folder / "forest, value.onnx"), tmp_path / "out.txt"
    words = ["vnnlib", model, str(tmp_path / "p.vnnlib.gz"), "20", "--results", str(results)]
    ran = CliRunner().invoke(group, words, standalone_mode=False)
    assert ran.return_value == 0
    assert ran.output == results.read_text()
    first, rest = ran.output.split("\n", 1)
    assert first == "sat"
    if version == 1:
        assert re.fullmatch(r"\((\(X_\d \S+\)\n){5}\(Y_0 \S+\)\)\n", rest)
    else:
        assert re.fullmatch(r"X float32 \[1,5\]\n(\S+\n){5}Y float32 \[1,1\]\n\S+\n", rest)


def test_bounds_that_contradict_each_other_are_unsat(folder: Path) -> None:
    path = folder / "tree, value.onnx"
    text = property_text(1, [(0.0, 1.0)] * 4 + [(1.0, 0.5)], 1, "(>= {y0} 0)")
    assert decide_property(load(path), path.read_bytes(), parse_property(text)).status == "unsat"


V1 = "(declare-const X_0 Real) (declare-const Y_0 Real) "
V2 = "(vnnlib-version <2.0>) (declare-network f (declare-input X real [2]) (declare-output Y real [1])) "


@pytest.mark.parametrize(
    ("text", "message", "column"),
    [
        ("", "asserts nothing", 1),
        (V1 + "(assert (<= X_0 1)", "not closed", len(V1) + 1),
        (V1 + "(assert (<= X_1 1))", "`X_1` is not declared", len(V1) + 13),
        (V1 + "(assert (<= (* X_0 Y_0) 1))", "not linear", len(V1) + 13),
        (V1 + "(assert (<= X_0 1e999999))", "too long", len(V1) + 17),
        (V1 + "(assert (sin X_0))", "`sin` is not a comparison", len(V1) + 9),
        (V1 + "(assert (<= X_0 $))", "`$` has no meaning here", len(V1) + 17),
        ("(" * 100, "nested too deeply", 65),
        ("(declare-const Z_0 Real)", "variables are X_0", 1),
        ("(declare-const X_1 Real) (declare-const Y_0 Real) (assert (<= X_1 1))", "not all declared", 1),
        (V2 + "(assert (<= X[2] 1))", "has the shape [2]", len(V2) + 13),
        (V2 + "(assert (<= X[0,0] 1))", "has the shape [2]", len(V2) + 13),
        (V2.replace("<2.0>", "<3.0>"), "versions are", 1),
        ("(declare-network f (declare-hidden H real [2]))", "only an input and an output here", 20),
        (")", "without an opening", 1),
        ("(pop 1)", "`pop` is neither a declaration", 1),
    ],
)
def test_mistakes_have_a_place(text: str, message: str, column: int) -> None:
    with pytest.raises(QueryError) as caught:
        parse_property(text, "p.vnnlib")
    assert message in str(caught.value)
    assert f"p.vnnlib:1:{column}" in str(caught.value)


def test_properties_of_other_shapes_are_refused(folder: Path) -> None:
    path = folder / "tree, value.onnx"
    model, data = load(path), path.read_bytes()
    for text in (
        property_text(1, [(0.0, 1.0)] * 4, 1, "(>= {y0} 0)"),
        property_text(1, [(0.0, 1.0)] * 5, 2, "(>= {y0} 0)"),
        property_text(1, [(0.0, 1.0)] * 5, 1, "(>= {y0} X_0)"),
        property_text(2, [(0.0, 1.0)] * 5, 1, "(>= {y0} 0)").replace("float32", "float64"),
    ):
        with pytest.raises(QueryError):
            decide_property(model, data, parse_property(text))


LARGEST = "340282346638528859811704183484516925440"


@pytest.mark.parametrize(
    ("assertion", "status"),
    [
        ("(= X_0 0.1)", "unsat"),
        ("(not (= X_0 0.1))", "sat"),
        ("(= (* 3 X_0) 1.5)", "sat"),
        ("(or (= X_0 0.1) (>= X_1 3))", "sat"),
        ("(>= X_0 1e39)", "unsat"),
        ("(<= X_0 1e39)", "sat"),
        ("(> (* -1 X_0) 1e39)", "unsat"),
        ("(!= X_0 1e39)", "sat"),
        (f"(> X_0 {LARGEST})", "unsat"),
        (f"(>= X_0 {LARGEST})", "sat"),
        (f"(< X_0 -{LARGEST})", "unsat"),
        (f"(and (> (* -1 X_0) 0) (<= X_0 -{LARGEST}))", "sat"),
        ("(<= 0 1)", "sat"),
        ("(<= 1 0)", "unsat"),
    ],
)
def test_what_no_finite_float32_decides(folder: Path, assertion: str, status: str) -> None:
    """Inputs are float32 (docs/vnnlib.md), and 0.1 is none; a property that every input satisfies has a counterexample, too."""
    path = folder / "tree, value.onnx"
    text = "".join(f"(declare-const X_{i} Real)" for i in range(5)) + f"(declare-const Y_0 Real)(assert {assertion})"
    found = decide_property(load(path), path.read_bytes(), parse_property(text), time_limit=20)
    assert found.status == status
    if status == "sat":
        assert graph_outputs(path, np.array([found.inputs]))[0].tolist() == list(found.outputs)


def test_scores_are_found_among_other_outputs() -> None:
    """Labels as floats come last here, and onnxruntime sorts the classes of a ZipMap; Y_i is the score of the i-th class."""
    from tests.extensions.formats.test_onnx_fidelity import SCORES, behind, of_trees, operator

    floats = behind(operator("Cast", "l", to=1), outputs={"s": 1, "z": 1})
    maps = behind(of_trees("ZipMap", ["s"], "z", classlabels_int64s=[9, 4, 6]), outputs={"l": 7, "z": 0})
    labels = next(a for a in maps.graph.node[0].attribute if a.name == "classlabels_int64s")
    labels.ints[:] = [9, 4, 6]
    for model, name in ((floats, "s"), (maps, "z")):
        data = model.SerializeToString()
        ((found,),) = onnxruntime.InferenceSession(data).run([name], {"x": np.ones((1, 1), np.float32)})
        by_class = list(map(found.get, [9, 4, 6])) if model is maps else found.tolist()
        assert by_class == SCORES[1]
        text = property_text(1, [(0.0, 1.0)], 3, "(>= {y2} 1.0)")
        outcome = decide_property(load(model), data, parse_property(text))
        assert (outcome.status, list(outcome.outputs)) == ("sat", by_class)
    only_labels = behind(outputs={"l": 7})
    with pytest.raises(ModelError, match="no output with the scores"):
        decide_property(load(only_labels), only_labels.SerializeToString(), parse_property(text))


def test_random_damage_gives_a_typed_error_or_a_property() -> None:
    text = property_text(1, [(0.0, 1.0)] * 3, 2, "(or (and (<= {y0} 1) (not (>= {y1} 2e-1))) (= X_0 (+ X_1 1)))")
    rng = np.random.default_rng(4)
    read = 0
    for _ in range(600):
        damaged = list(text)
        for _ in range(int(rng.integers(1, 4))):
            at = int(rng.integers(len(damaged)))
            damaged[at : at + int(rng.integers(0, 3))] = list(
                str(rng.choice(["(", ")", "X_0", "-", "e9", "[", "]", " ", "\0", "é"]))
            )
        try:
            parse_property("".join(damaged))
            read += 1
        except QueryError:
            pass
    assert 0 < read < 600
