"""Regressions of PMML files over numbers: JPMML-Evaluator's own answers at all ends of a domain, and the kit if it is there."""

from __future__ import annotations

import itertools
from pathlib import Path

import numpy as np
import pytest

import treesens as ts
from tests.extensions.formats.java import in_java
from treesens.compiler.model.numbers import closed_over
from treesens.errors import ModelError
from treesens.extensions.conformance import formats as conformance

START = (
    '<?xml version="1.0"?><PMML xmlns="http://www.dmg.org/PMML-4_4" version="4.4"><Header/><DataDictionary>'
    '<DataField name="x" optype="continuous" dataType="double"/><DataField name="n" optype="continuous" dataType="integer"/>'
    '<DataField name="f" optype="continuous" dataType="float"/><DataField name="c" optype="categorical" dataType="string">'
    '<Value value="a"/><Value value="b"/></DataField>'
)
CLASSES = (
    '<DataField name="y" optype="categorical" dataType="string"><Value value="no"/><Value value="yes"/></DataField>'
)
VALUE = '<DataField name="y" optype="continuous" dataType="double"/>'
SCHEMA = (
    '<MiningSchema><MiningField name="y" usageType="target"/><MiningField name="x"/><MiningField name="n"/>'
    '<MiningField name="f" missingValueReplacement="1.5"/><MiningField name="c"/></MiningSchema>'
    '<LocalTransformations><DerivedField name="z" optype="continuous" dataType="double"><Apply function="-"><Constant'
    ' dataType="double">3</Constant><Apply function="/"><FieldRef field="x"/><Constant dataType="double">7</Constant></Apply>'
    "</Apply></DerivedField></LocalTransformations>"
)
TERMS = (
    '<NumericPredictor name="z" coefficient="-0.7"/><NumericPredictor name="n" coefficient="0.11"/>'
    '<NumericPredictor name="f" coefficient="1.3"/><CategoricalPredictor name="c" value="a" coefficient="0.25"/>'
)
LOGIT = (
    f'{CLASSES}</DataDictionary><RegressionModel functionName="classification" normalizationMethod="logit">{SCHEMA}'
    f'<RegressionTable intercept="0.3" targetCategory="yes">{TERMS}</RegressionTable>'
    '<RegressionTable intercept="0" targetCategory="no"/></RegressionModel></PMML>'
)
REGRESSION = (
    f'{VALUE}</DataDictionary><RegressionModel functionName="regression">{SCHEMA}'
    f'<RegressionTable intercept="0.3">{TERMS}</RegressionTable></RegressionModel></PMML>'
)
FILES = {
    "logit": LOGIT,
    "value": REGRESSION,
    "exp": REGRESSION.replace('"regression"', '"regression" normalizationMethod="exp"'),
}
X, N, F = (0.0, 6.0), (-1.0, 2.0), (-2.0, 1.0)
# What jpmml-evaluator 0.16.0 answers for x, n, f of these ends and c = a, b, the last one fastest: the value, and p(yes).
ANSWERS = {
    "value": [
        "-0x1.10a3d70a3d70ap+2",
        "-0x1.20a3d70a3d70ap+2",
        "-0x1.70a3d70a3d701p-2",
        "-0x1.3851eb851eb80p-1",
        "-0x1.f70a3d70a3d70p+1",
        "-0x1.0b851eb851eb8p+2",
        "-0x1.eb851eb851e50p-6",
        "-0x1.1eb851eb851e5p-2",
        "-0x1.d47ae147ae148p+1",
        "-0x1.f47ae147ae148p+1",
        "0x1.eb851eb851ebep-3",
        "-0x1.47ae147ae1420p-7",
        "-0x1.aa3d70a3d70a4p+1",
        "-0x1.ca3d70a3d70a4p+1",
        "0x1.23d70a3d70a40p-1",
        "0x1.47ae147ae147fp-2",
    ],
    "logit": [
        "0x1.c850bcd89c95fp-7",
        "0x1.647a129f11c46p-7",
        "0x1.a4d2959ec91a5p-2",
        "0x1.688234d547450p-2",
        "0x1.3ba43e068fa8fp-6",
        "0x1.edbf75b9fa821p-7",
        "0x1.f8521143ed407p-2",
        "0x1.b8c8dfea7b9dfp-2",
        "0x1.9b06588054f5bp-6",
        "0x1.41e486996e52bp-6",
        "0x1.1e92c995746edp-1",
        "0x1.fd70a53cf34b0p-2",
        "0x1.1b15aade7bb7ep-5",
        "0x1.bc54569d55750p-6",
        "0x1.470bf7864e89fp-1",
        "0x1.289d3039845efp-1",
    ],
}


def loaded(name: str, folder: Path, text: str = "") -> ts.LoadedModel:
    path = folder / "m.pmml"
    path.write_text(START + (text or FILES[name]), encoding="utf-8")
    return ts.load(path)


@pytest.mark.parametrize("name", ANSWERS)
def test_the_ends_are_what_jpmml_answers(name: str, tmp_path: Path) -> None:
    model = loaded(name, tmp_path).ensemble
    assert model.open_features == ("x", "n", "f")
    assert [feature.needs_value for feature in model.features] == [True, True, False, False]
    closed = closed_over(model, {"x": np.array(X), "n": np.array(N), "f": np.array(F)})
    order = [closed.feature_names.index(key) for key in ("x", "n", "f", "c")]
    rows = np.array(list(itertools.product(X, N, F, (0.0, 1.0))))[:, np.argsort(order)]
    margins = closed.margins_emulated(rows)
    shown = closed.probabilities(margins)[:, -1]
    assert shown == pytest.approx([float.fromhex(answer) for answer in ANSWERS[name]], rel=2e-15)


@pytest.mark.parametrize("ends_alone", [False, True])
def test_questions_beside_the_ends(ends_alone: bool, tmp_path: Path) -> None:
    ends = [float.fromhex(answer) for answer in ANSWERS["logit"]]
    text = 'model m from "m"\n' + "".join(
        f"feature {name}: "
        + (f"category {{{low:g}, {high:g}}}\n" if ends_alone else f"integer in [{low:g}, {high:g}]\n")
        for name, (low, high) in (("x", X), ("n", N), ("f", F))
    )
    text += f"query most: find a such that prob(a) >= {max(ends) - 1e-9:.12f}\n"
    text += f"query more: find a such that prob(a) >= {max(ends) + 1e-9:.12f}\n"
    text += f"query least: find a such that prob(a) <= {min(ends) + 1e-9:.12f}\n"
    text += f"query less: find a such that prob(a) <= {min(ends) - 1e-9:.12f}\n"
    answers = ts.check_text(text, models={"m": loaded("logit", tmp_path)}, replay="emulated")
    verdicts = [str(answers[name].verdict) for name in ("most", "more", "least", "less")]
    assert verdicts == ["found", "none", "found", "none"]


@pytest.mark.parametrize("name", FILES)
def test_the_kit_finds_no_difference(name: str, tmp_path: Path) -> None:
    pytest.importorskip("jpmml_evaluator", reason="pip install jpmml-evaluator jpype1 (AGPL), and Java")
    conformance.check(in_java(loaded(name, tmp_path)), rows=15).raise_if_wrong()


def test_what_is_no_one_sum_of_numbers_is_refused(tmp_path: Path) -> None:
    target = '<Targets><Target field="y" rescaleFactor="2"/></Targets>'
    refused = {
        "powers": REGRESSION.replace('"1.3"', '"1.3" exponent="2"'),
        "products in float32": REGRESSION.replace('"regression"', '"regression" x-mathContext="float"'),
        "several sums or transformed sums over numbers": LOGIT.replace('"logit"', '"softmax"'),
        "scaled or shifted": REGRESSION.replace("<LocalTransformations>", f"{target}<LocalTransformations>"),
    }
    for message, text in refused.items():
        with pytest.raises(ModelError, match=message) as caught:
            loaded("", tmp_path, text)
        assert caught.value.remedy
