"""PMML files against JPMML-Evaluator: its answers beside the files (`tests/data/pmml/make.py`), and itself if it is there."""

from __future__ import annotations

import json
import math
import re
from pathlib import Path
from typing import Any

import numpy as np
import pandas
import pytest

import treesens
from tests.extensions.formats.java import in_java
from tests.frontends.damage import refusals
from treesens.compiler.model import Ensemble
from treesens.compiler.model.scores import widened
from treesens.data.tables import align_table, read_table
from treesens.errors import ModelError, TreesensError
from treesens.extensions.conformance import formats as conformance
from treesens.extensions.formats.pmml.fields import Column, Number, identity
from treesens.extensions.formats.pmml.frontend import PMMLFrontend
from treesens.extensions.studies.losses import rows_of as rows_of_table
from treesens.frontends.registry import load

FOLDER = Path(__file__).parents[2] / "data" / "pmml"
FILES = sorted(path.stem for path in FOLDER.glob("*.pmml"))
NEAR = 4 * 2.0**-23
"""Probabilities are as far apart as exponentials of Java, in float32, and of numpy may be."""


def rows_of(e: Ensemble, columns: list[str], given: list[list[Any]]) -> np.ndarray:
    """Inputs of JPMML as rows of codes and numbers; a text that is no category is the code after the last."""
    rows = np.full((len(given), e.n_features), np.nan)
    for column, name in enumerate(columns):
        feature = e.features[e.feature_names.index(name)]
        labels = [str(label) for label in feature.labels or ()]
        for row, values in enumerate(given):
            x = values[column]
            if x is not None:
                rows[row, e.feature_names.index(name)] = labels.index(str(x)) if feature.categories else float(x)
    return rows


@pytest.mark.parametrize("name", FILES)
def test_files_are_read_as_jpmml_evaluates_them(name: str) -> None:
    e = load(FOLDER / f"{name}.pmml").ensemble
    asked = json.loads((FOLDER / f"{name}.json").read_text(encoding="utf-8"))
    rows = rows_of(e, asked["columns"], asked["rows"])
    assert len(rows) >= 50
    margins = e.margins_emulated(rows)
    shown = e.probabilities(margins)
    if not e.classes:
        assert [float.fromhex(first) for first, _ in asked["answers"]] == shown[:, 0].tolist()
        return
    labels = [str(e.classes[c]) for c in e.predicted_classes(margins)]
    assert labels == [first for first, _ in asked["answers"]]
    for (_, found), row in zip(asked["answers"], shown, strict=True):
        probabilities = [float.fromhex(found[key]) for label in e.classes for key in found if key_is(key, str(label))]
        if e.link.is_linear:
            assert probabilities == row.tolist()
        elif found and e.link.is_known and not e.link.votes:
            # Of votes JPMML shows the share; there is a class alone here.
            assert row[-1] == pytest.approx(probabilities[-1], rel=NEAR)


def key_is(key: str, label: str) -> bool:
    """Exporters call the probability of a class `probability(0)` or `probability_0`."""
    return key in (f"probability({label})", f"probability_{label}", f"target_probability_{label}")


@pytest.mark.sampled
@pytest.mark.parametrize("name", FILES)
def test_jpmml_itself_says_the_same_on_every_threshold(name: str) -> None:
    pytest.importorskip("jpmml_evaluator", reason="pip install jpmml-evaluator jpype1 (AGPL), and Java")
    conformance.check(in_java(load(FOLDER / f"{name}.pmml"))).raise_if_wrong()


# --- what is refused ------------------------------------------------------------------------------------------------------

START = '<?xml version="1.0"?>\n<PMML version="4.4" xmlns="http://www.dmg.org/PMML-4_4"><Header/>\n'
DICTIONARY = (
    '<DataDictionary><DataField name="x" optype="continuous" dataType="double"/>'
    '<DataField name="c" optype="categorical" dataType="string"><Value value="a"/><Value value="b"/></DataField>'
    "</DataDictionary>\n"
)
SCHEMA = '<MiningSchema><MiningField name="x"/><MiningField name="c"/></MiningSchema>\n'


def written(folder: Path, model: str, dictionary: str = DICTIONARY, start: str = START) -> Path:
    path = folder / "m.pmml"
    path.write_text(f"{start}{dictionary}{model}\n</PMML>\n", encoding="utf-8")
    return path


def a_tree(inside: str, attributes: str = "", schema: str = SCHEMA) -> str:
    return f'<TreeModel functionName="regression"{attributes}>{schema}{inside}</TreeModel>'


SPLIT = (
    '<Node>\n<True/>\n<Node score="1"><SimplePredicate field="x" operator="lessThan" value="2"/></Node>'
    '<Node score="2"><True/></Node></Node>'
)


def test_the_smallest_tree_is_read(tmp_path: Path) -> None:
    e = load(written(tmp_path, a_tree(SPLIT))).ensemble
    rows = np.array([[1.9, 0], [2.0, 1], [math.nan, 0]])
    assert e.margins_emulated(rows).ravel().tolist() == [1.0, 2.0, 2.0]


@pytest.mark.parametrize(
    ("model", "line", "message"),
    [
        (a_tree(SPLIT.replace('"2"', '"2x"')), 7, "expected a number, found `2x`"),
        (a_tree(SPLIT.replace('field="x"', 'field="y"')), 7, "there is no field `y`"),
        (a_tree(SPLIT.replace('field="x"', 'field="c"')), 7, "have no order"),
        (a_tree(SPLIT.replace("lessThan", "nearly")), 7, "unknown operator `nearly`"),
        (a_tree(SPLIT.replace('score="1"', 'score="NaN"')), 7, "`score` is not a finite number"),
        (a_tree(SPLIT.replace('<Node score="2"><True/></Node>', "")), 5, "have no prediction here"),
        (a_tree(SPLIT, ' missingValueStrategy="weightedConfidence"'), 4, "weightedConfidence"),
        (a_tree(SPLIT, ' missingValueStrategy="defaultChild"'), 5, "`defaultChild` is missing"),
        (a_tree(SPLIT, ' x-mathContext="half"'), 4, "the arithmetic `half` is not supported"),
        (a_tree(SPLIT).replace("regression", "clustering"), 4, "models for clustering are not supported"),
        (a_tree("<DecisionTree/>" + SPLIT), 5, "DecisionTree in TreeModel is not supported"),
        (a_tree(SPLIT, schema='<MiningSchema><MiningField name="z"/></MiningSchema>'), 4, "the dictionary has no field"),
        ('<RegressionModel functionName="regression">' + SCHEMA + '<RegressionTable intercept="0">'
         '<NumericPredictor name="x" coefficient="2" exponent="2"/></RegressionTable></RegressionModel>', 5, "powers"),
        ('<NeuralNetwork functionName="regression"/>', 4, "NeuralNetwork in PMML is not supported"),
        ('<MiningModel functionName="regression">' + SCHEMA + '<Segmentation multipleModelMethod="median"><Segment><True/>'
         + a_tree(SPLIT) + "</Segment><Segment><True/>" + a_tree(SPLIT) + "</Segment></Segmentation></MiningModel>",
         5, "under `median` are not supported"),
        ('<MiningModel functionName="regression">' + SCHEMA + '<Segmentation multipleModelMethod="sum"><Segment>'
         '<SimplePredicate field="x" operator="lessThan" value="1"/>' + a_tree(SPLIT)
         + "</Segment></Segmentation></MiningModel>", 5, "segments for some inputs only"),
    ],
)  # fmt: skip
def test_what_is_refused_has_a_place_and_a_reason(model: str, line: int, message: str, tmp_path: Path) -> None:
    with pytest.raises(ModelError) as error:
        load(written(tmp_path, model))
    assert message in str(error.value)
    assert f"m.pmml:{line}" in str(error.value)
    assert error.value.remedy


@pytest.mark.parametrize(
    ("start", "message"),
    [
        ('<?xml version="1.0"?><!DOCTYPE PMML [<!ENTITY a "b">]><PMML version="4.4">', "document type"),
        ('<?xml version="1.0"?><PMML version="3.0">', "unknown version `3.0`"),
        ('<?xml version="1.0"?><PMML version="4.4"' + "<" * 3 + ">", "this is not XML"),
        ('<?xml version="1.0"?><PMML version="4.4">' + "<Extension>" * 5000, "more than 400 levels"),
        ('<?xml version="1.0" encoding="utf-99"?><PMML version="4.4">', "this is not XML"),
    ],
)
def test_hostile_xml_is_refused(start: str, message: str, tmp_path: Path) -> None:
    with pytest.raises(ModelError, match=message):
        load(written(tmp_path, a_tree(SPLIT), start=start))


def test_functions_cannot_call_themselves(tmp_path: Path) -> None:
    call = '<Apply function="f"><FieldRef field="p"/></Apply>'
    define = f'<DefineFunction name="f" optype="continuous"><ParameterField name="p"/>{call}</DefineFunction>'
    body = '<Apply function="f"><FieldRef field="x"/></Apply>'
    derived = f'<DerivedField name="y" optype="continuous" dataType="double">{body}</DerivedField>'
    shared = f"<TransformationDictionary>{define}{derived}</TransformationDictionary>"
    with pytest.raises(ModelError, match="the function `f` is not supported"):
        load(written(tmp_path, shared + a_tree(SPLIT)))


@pytest.mark.parametrize("name", ["drawn_03", "xgboost_missing", "weights_of_evidence", "scorecard"])
def test_random_damage_gives_a_typed_error_or_a_valid_model(name: str) -> None:
    frontend = PMMLFrontend()
    data = (FOLDER / f"{name}.pmml").read_bytes()
    assert refusals(data, lambda given: frontend.load(Path("damaged.pmml"), given)) > 10


def test_a_feature_without_a_prediction_cannot_be_declared_missing(tmp_path: Path) -> None:
    """The forest predicts nothing if `age` is missing, and the boosted trees do."""
    for name, message in (("forest_two", "E313.*predicts nothing if `age` is missing"), ("xgboost_missing", "")):
        file = tmp_path / f"{name}.sens"
        model = f'model m from "{FOLDER / name}.pmml"\nfeature age: real in [0, 100] or missing\n'
        file.write_text(f"{model}query q: find a in m such that class(a) = 1\n")
        if message:
            with pytest.raises(TreesensError, match=message):
                treesens.check(file, replay="emulated")
        else:
            assert treesens.check(file, replay="emulated")["q"].verdict == "found"


@pytest.mark.parametrize(("other", "verdict"), [("pair.pmml", "equal"), ("pair_nyoka.pmml", "different")])
def test_an_export_is_compared_with_the_file_it_came_from(other: str, verdict: str) -> None:
    """JPMML rounds inputs and sums to float32, as XGBoost does. nyoka compares float64, and forgets the base score."""
    found = treesens.diff(FOLDER / "pair.ubj", FOLDER / other, time_limit=60)
    assert found.verdict == verdict


def test_rounding_of_inputs_is_no_difference() -> None:
    """Float64 on both sides of every cut of float32: XGBoost's sum is the file's, but for the place of the base in it."""
    booster, exported = load(FOLDER / "pair.ubj"), load(FOLDER / "pair.pmml").ensemble
    off = float(exported.band() + booster.ensemble.band())
    rng = np.random.default_rng(3)
    cuts = booster.ensemble.threshold[booster.ensemble.node_feature >= 0]
    rows = rng.choice(cuts, (3000, exported.n_features))
    below = np.nextafter(rows.astype(np.float32), np.float32(-np.inf)).astype(np.float64)
    middle = (rows + below) / 2
    for given in (rows, below, middle, np.nextafter(middle, np.inf), np.nextafter(middle, -np.inf)):
        assert np.abs(booster.margins(given)[:, 0] - exported.margins_emulated(given)[:, 0]).max() <= off
        wide = widened(booster.ensemble)
        assert (wide.leaves(given) == booster.ensemble.leaves(given)).all()


@pytest.mark.parametrize(
    "name", ["xgboost_missing", "weights_of_evidence", "scorecard", "forest_two", "nyoka_boosting", "drawn_03"]
)
def test_a_new_attribute_of_any_element_is_refused_by_name(name: str) -> None:
    text = (FOLDER / f"{name}.pmml").read_text(encoding="utf-8")
    frontend = PMMLFrontend()
    apart = re.sub(
        r"<(Header|Extension|InlineTable)\b.*?</\1>", lambda found: " " * len(found.group()), text, flags=re.DOTALL
    )
    tags = {found.group(1): found.start() for found in re.finditer(r"<([A-Z]\w+)(?=[ />])", apart)}
    assert len(tags) >= 8
    for tag, start in tags.items():
        if tag in ("Header", "Extension", "InlineTable"):
            continue
        changed = text[: start + 1 + len(tag)] + ' madeUp="1"' + text[start + 1 + len(tag) :]
        with pytest.raises(ModelError, match=f"{tag}: .*`madeUp`"):
            frontend.load(Path("m.pmml"), changed.encode())


@pytest.mark.parametrize("strictly_above", [True, False])
def test_a_column_as_it_is_has_the_cuts_that_a_search_finds(strictly_above: bool) -> None:
    largest = float(np.finfo(np.float64).max)
    near = [
        0.0,
        -0.0,
        5e-324,
        -5e-324,
        largest,
        -largest,
        float(np.nextafter(largest, 0)),
        float(np.nextafter(-largest, 0)),
    ]
    plain = Number(Column("x", 0, "double"), "double", identity)
    searched = Number(plain.column, "double", lambda x: x)
    for bound in [*near, *np.random.default_rng(0).normal(size=50).tolist()]:
        found, expected = plain.cut(bound, strictly_above), searched.cut(bound, strictly_above)
        assert (found, math.copysign(1, found)) == (expected, math.copysign(1, expected))


_UNLISTED = """<PMML xmlns="http://www.dmg.org/PMML-4_4" version="4.4"><Header/>
  <DataDictionary>
    <DataField name="branch" optype="categorical" dataType="string"/>
    <DataField name="debt" optype="continuous" dataType="double"/>
    <DataField name="points" optype="continuous" dataType="double"/>
  </DataDictionary>
  <TransformationDictionary>
    <DerivedField name="coast" optype="continuous" dataType="double">
      <NormDiscrete field="branch" value="fish"/>
    </DerivedField>
    <DerivedField name="kind" optype="categorical" dataType="string">
      <MapValues outputColumn="out" defaultValue="city"><FieldColumnPair field="branch" column="in"/>
        <InlineTable><row><in>mine</in><out>land</out></row></InlineTable></MapValues>
    </DerivedField>
  </TransformationDictionary>
  <Scorecard functionName="regression" useReasonCodes="false" initialScore="1">
    <MiningSchema>
      <MiningField name="branch"/>
      <MiningField name="debt" invalidValueTreatment="asMissing"/>
      <MiningField name="points" usageType="target"/>
    </MiningSchema>
    <Characteristics>
      <Characteristic name="a">
        <Attribute partialScore="-9"><SimplePredicate field="branch" operator="isMissing"/></Attribute>
        <Attribute partialScore="19"><SimplePredicate field="branch" operator="equal" value="sales"/></Attribute>
        <Attribute partialScore="3"><SimpleSetPredicate field="branch" booleanOperator="isIn">
          <Array type="string" n="2">farm "the other"</Array></SimpleSetPredicate></Attribute>
        <Attribute partialScore="0.5"><True/></Attribute>
      </Characteristic>
      <Characteristic name="b">
        <Attribute partialScore="7"><SimplePredicate field="coast" operator="greaterThan" value="0.5"/></Attribute>
        <Attribute partialScore="2"><SimplePredicate field="kind" operator="equal" value="land"/></Attribute>
        <Attribute partialScore="0"><True/></Attribute>
      </Characteristic>
      <Characteristic name="c">
        <Attribute partialScore="30"><SimplePredicate field="debt" operator="lessThan" value="0.4"/></Attribute>
        <Attribute partialScore="10"><SimplePredicate field="debt" operator="isMissing"/></Attribute>
        <Attribute partialScore="5"><True/></Attribute>
      </Characteristic>
    </Characteristics>
  </Scorecard></PMML>"""


def test_a_field_of_texts_without_a_list_has_a_category_for_every_other_text(tmp_path: Path) -> None:
    path = tmp_path / "card.pmml"
    path.write_text(_UNLISTED)
    texts = ["sales", "farm", "the other", "fish", "mine", "space", "17", "17"]
    frame = pandas.DataFrame({"branch": texts, "debt": [0.1, 0.9, np.nan, 0.1, 0.1, 0.1, 0.1, 0.4]})
    model = load(path)
    rows = rows_of_table(model, align_table(model, read_table(frame)))
    expected = [1 + 19 + 30, 1 + 3 + 5, 1 + 3 + 10, 1 + 0.5 + 7 + 30, 1 + 0.5 + 2 + 30, 31.5, 31.5, 6.5]
    assert model.ensemble.margins_emulated(rows)[:, 0].tolist() == expected
    numbers = read_table(pandas.DataFrame({"branch": [1.0, np.nan], "debt": [0.1, 0.1]}))
    rows = rows_of_table(model, align_table(model, numbers))
    assert model.ensemble.margins_emulated(rows)[:, 0].tolist() == [31.5, 22.0]


def test_numbers_outside_of_intervals_cannot_be_missing(tmp_path: Path) -> None:
    path = tmp_path / "card.pmml"
    interval = '<Interval closure="closedClosed" leftMargin="0" rightMargin="1"/>'
    field = '<DataField name="debt" optype="continuous" dataType="double"'
    path.write_text(_UNLISTED.replace(f"{field}/>", f"{field}>{interval}</DataField>"))
    with pytest.raises(ModelError, match="numbers outside of intervals cannot be missing"):
        load(path)
