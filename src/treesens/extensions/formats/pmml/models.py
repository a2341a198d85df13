"""Reads the models of a PMML file as sums of trees: single trees, segments that are added up or averaged, chains that end in a
link, scorecards, and regressions. Coefficients of categories become trees; a term with a number is open until the number has a
domain (`treesens.extensions.formats.numbers.tables`).

Exporters write boosted trees as a chain: the first models store sums in fields, and a RegressionModel with coefficients of 1
converts the sums to probabilities.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from treesens.compiler.model import Accumulation, Task
from treesens.extensions.formats.links.several import Votes
from treesens.extensions.formats.pmml.fields import NUMBERS, Bins, Category, Fields, Number, parse_number
from treesens.extensions.formats.pmml.predicates import Always, predicate_of
from treesens.extensions.formats.pmml.tree_model import (
    Grown,
    Score,
    attribute_tree,
    category_term,
    class_score,
    fields_inside,
    number_in,
    numeric_term,
    regression_score,
    tree_of,
)
from treesens.extensions.formats.pmml.votes import labels_of, score_decides, vote_score, vote_values
from treesens.extensions.formats.pmml.xml import Element
from treesens.extensions.formats.voting import MOST_COMBINATIONS, task_of
from treesens.frontends.columns import Nodes
from treesens.links import Exp, Identity, Link, Logistic, Raw, Softmax

MODELS = ("MiningModel", "TreeModel", "RegressionModel", "Scorecard")
_PARTS = (
    "MiningSchema",
    "Output",
    "LocalTransformations",
    "Targets",
    "ModelStats",
    "ModelExplanation",
    "ModelVerification",
)
_IDENTITY = Identity()
_CONTEXTS = ("double", "float")
_VOTES = ("majorityVote", "weightedMajorityVote")
_EXPORT = "export the model without it"
_AVERAGE = 'export the probabilities (multipleModelMethod="average")'


@dataclass(frozen=True, eq=False)
class Slope:
    """A coefficient of a number, in float64."""

    number: Number
    coefficient: float


@dataclass(frozen=True, eq=False)
class Sum:
    """The sum scale * (sum of trees) / average + base, computed in a single float type; one value per output.

    `model` is the element of the sum or, for a regression, the element of the model that contains the regression's `table`. If
    `first`, the base is added before the trees.
    """

    trees: tuple[Grown, ...]
    context: str
    model: Element
    base: float = 0.0
    scale: float = 1.0
    average: int = 1
    first: bool = False
    rounded: bool = False
    """True if a sum in float64 is rounded to float32 at the end."""
    table: Element | None = None
    handed_on: str = ""
    """The field in which a model in a chain passes its sum to later models."""
    slopes: tuple[Slope, ...] = ()
    """Coefficients of numeric features; the order in which their products are added to the sum of the trees is unspecified."""


@dataclass(frozen=True, eq=False)
class Read:
    """The content of a model: one sum per output, or sums of `width` > 1 values, and the link."""

    sums: tuple[Sum, ...]
    task: Task
    link: Link
    classes: tuple[str, ...] = ()
    width: int = 1
    chosen_from_half: bool = False
    """True if the second of two classes is predicted when its rounded probability is at least 1/2."""
    ballots: tuple[tuple[Element, float], ...] = ()
    """Trees whose scores are votes, with the weights of the votes; the sum adds up the votes for each class."""
    voters: tuple[Voter, ...] = ()
    """Voting models of other kinds; a model with `voters` has no sum."""

    @property
    def unpredicted(self) -> frozenset[int]:
        """Columns that must not be missing, because some inputs without them have no prediction."""
        own = frozenset().union(*(tree.unpredicted for part in self.sums for tree in part.trees))
        numbers = [slope.number for part in self.sums for slope in part.slopes]
        own = own.union(number.column.index for number in numbers if math.isnan(number.missing))
        return own.union(*(voter.read.unpredicted for voter in self.voters))


@dataclass(frozen=True, eq=False)
class Voter:
    """A nested model that predicts a class, and the weight of its vote."""

    model: Element
    read: Read
    weight: float


@dataclass(frozen=True)
class _Context:
    """The context of a nested model: the surrounding arithmetic, earlier models' named sums, and whether the model votes."""

    arithmetic: str = "double"
    outputs: dict[str, Sum] = field(default_factory=dict)
    votes: bool = False


def read_model(model: Element, fields: Fields) -> Read:
    """The prediction of a file's model. Raises ModelError for models that are not sums of trees."""
    return _read(model, fields, _Context())


def _read(model: Element, fields: Fields, context: _Context) -> Read:
    if model.get("isScorable", "true") != "true":
        raise model.error("the file marks the model as not scorable", _EXPORT)
    function = model.require("functionName")
    if function not in ("classification", "regression"):
        raise model.error(f"models for {function[:40]} are not supported", "use a classifier or a regressor")
    arithmetic = model.get("x-mathContext", context.arithmetic)
    if arithmetic not in _CONTEXTS:
        raise model.error(f"the arithmetic `{arithmetic[:40]}` is not supported")
    inside = replace(context, arithmetic=arithmetic)
    match model.tag:
        case "TreeModel" if function == "regression":
            tree = tree_of(model, fields, regression_score(arithmetic), 1)
            return _regression(Sum((tree,), arithmetic, model))
        case "TreeModel":
            return _class_tree(model, fields, arithmetic)
        case "MiningModel":
            return _mining(model, function, fields, inside)
        case "RegressionModel":
            return _regressions(model, function, fields, inside)
        case "Scorecard":
            return _scorecard(model, fields, arithmetic)
    raise model.error(f"{model.tag} is not supported", f"supported: {', '.join(MODELS)}")


def _regression(value: Sum, link: Link = _IDENTITY) -> Read:
    return Read((value,), Task.REGRESSION, link)


# --- segments -------------------------------------------------------------------------------------------------------------


def _mining(model: Element, function: str, fields: Fields, context: _Context) -> Read:
    model.only(*_PARTS, "Segmentation")
    inner = fields_inside(model, fields)
    segmentation = model.need("Segmentation")
    segmentation.only("Segment")
    method = segmentation.require("multipleModelMethod")
    votes = method in _VOTES
    segments = [_segment(segment, inner, weighs=votes) for segment in segmentation.each("Segment")]
    if not segments:
        raise segmentation.error("the model has no segments")
    if votes and function == "classification":
        # A majority vote counts each vote once and ignores the segments' weights.
        given = [segment.number("weight", 1.0) for segment in segmentation.each("Segment")]
        return _elected(model, segments, given if method.startswith("weighted") else [1.0] * len(given), inner, context)
    if method == "modelChain":
        return _chain(model, segments, inner, context)
    if len(segments) == 1 and method in ("selectFirst", "selectAll", "sum", "average"):
        return _targeted(model, _read(segments[0], inner, context), context.arithmetic)
    trees = all(segment.tag == "TreeModel" for segment in segments)
    if function == "regression" and method in ("sum", "average") and trees:
        score = regression_score(context.arithmetic)
        grown = tuple(tree_of(tree, inner, _checked(tree, "regression", score), 1) for tree in segments)
        value = Sum(grown, context.arithmetic, model, average=len(grown) if method == "average" else 1)
        return _targeted(model, _regression(value), context.arithmetic)
    if function == "classification" and method == "average" and trees:
        _no_targets(model)
        return _classification(segments, labels_of(segments), inner, model, context.arithmetic)
    raise segmentation.error(
        f"segments of {', '.join(sorted({s.tag for s in segments}))} under `{method[:40]}` are not supported",
        "supported: trees that are added up or averaged, models that vote, and chains that end in a RegressionModel",
    )


def _segment(segment: Element, fields: Fields, *, weighs: bool = False) -> Element:
    """The model of a segment. Raises ModelError if the segment does not apply to every input."""
    predicate = predicate_of(segment, fields)
    if not (isinstance(predicate, Always) and predicate.truth):
        raise segment.error("segments for some inputs only are not supported", "use the predicate True")
    if not weighs and segment.number("weight", 1.0) != 1.0:
        raise segment.error("segments with weights other than 1 are not supported", "include the weights in the scores")
    models = [child for child in segment.children if child.tag in MODELS or child.tag.endswith("Model")]
    if len(models) != 1:
        raise segment.error("a segment needs exactly one model")
    return models[0]


def _checked(model: Element, function: str, score: Score) -> Score:
    if model.get("functionName") != function:
        raise model.error(f"this is not a model for {function}")
    return score


def _targeted(model: Element, read: Read, arithmetic: str) -> Read:
    """The model with its Targets applied, which scale or shift the value."""
    targets = model.child("Targets")
    if targets is None:
        return read
    found = list(targets.each("Target"))
    targets.only("Target")
    if len(found) != 1 or read.task is not Task.REGRESSION or not read.link.is_linear:
        raise targets.error("targets are supported for a single sum only", _EXPORT)
    target = found[0]
    for name in ("min", "max", "castInteger"):
        if name in target.attributes:
            raise target.error(f"the score with `{name}` is not a sum", "export the score itself")
    if target.child("TargetValue") is not None:
        raise target.error("a Target with values is not supported", _EXPORT)
    value = read.sums[0]
    scale = number_in(target, "rescaleFactor", arithmetic) if "rescaleFactor" in target.attributes else 1.0
    base = number_in(target, "rescaleConstant", arithmetic) if "rescaleConstant" in target.attributes else 0.0
    return _regression(_changed(value, scale, base, target))


def _changed(value: Sum, scale: float, base: float, at: Element, model: Element | None = None) -> Sum:
    """The sum scale * value + base. Raises ModelError if more than one arithmetic step remains."""
    model = value.model if model is None else model
    if scale == 1.0 and base == 0.0:
        return value
    if value.slopes:
        raise at.error("a sum of numbers that is scaled or shifted is not supported", "change the coefficients instead")
    moved = value.base != 0.0 or value.first or value.rounded
    if moved or (scale != 1.0 and (value.scale != 1.0 or value.average != 1)):
        raise at.error("a score that is scaled or shifted twice is not supported", "do it once")
    if scale != 1.0 and value.context == "float":
        raise at.error("a scaled score in float32 is not supported", "include the factor in the scores")
    return replace(value, scale=value.scale * scale if 1.0 in (value.scale, scale) else scale, base=base)


# --- chains ---------------------------------------------------------------------------------------------------------------


def _chain(model: Element, segments: Sequence[Element], fields: Fields, context: _Context) -> Read:
    if model.child("Targets") is not None:
        raise model.error("a chain with targets is not supported", _EXPORT)
    outputs = dict(context.outputs)
    inside = replace(context, outputs=outputs)
    for segment in segments[:-1]:
        read = _read(segment, fields, inside)
        if read.task is not Task.REGRESSION or not read.link.is_linear:
            raise segment.error("only sums can be passed on in a chain", "train a single model for the decision")
        own: dict[str, Sum] = {}
        for output in segment.need("Output").each("OutputField"):
            own[output.require("name")] = _handed_on(output, read.sums[0], own)
        outputs.update(own)
    return _read(segments[-1], fields, inside)


def _handed_on(output: Element, value: Sum, own: dict[str, Sum]) -> Sum:
    """The sum that a model in a chain passes on in an output field: its own sum, times a constant, plus another constant."""
    kind, feature = output.get("dataType", "double"), output.get("feature", "predictedValue")
    expressions = [child for child in output.children if child.tag != "Extension"]
    if kind not in _CONTEXTS or feature not in ("predictedValue", "transformedValue") or len(expressions) > 1:
        raise output.error("an output field other than the value of its model is not supported", _EXPORT)
    if (feature == "transformedValue") != bool(expressions):
        raise output.error("a transformed field needs exactly one expression, and other fields need none")
    if expressions:
        value = _linear(expressions[0], own)
    value = replace(value, handed_on=output.require("name"))
    if kind == "float" and value.context == "double":
        return replace(value, rounded=True)
    return value


def _linear(expression: Element, own: dict[str, Sum]) -> Sum:
    """A sum of the same model, times a constant or plus a constant, in float64."""
    if expression.tag == "FieldRef" and expression.get("field") in own:
        return own[expression.get("field")]
    name, operands = expression.get("function"), [c for c in expression.children if c.tag != "Extension"]
    constants = [c for c in operands if c.tag == "Constant"]
    if expression.tag != "Apply" or name not in ("+", "*") or len(operands) != 2 or len(constants) != 1:
        raise expression.error("expected a sum times a constant plus another constant", _EXPORT)
    at = next(c for c in operands if c is not constants[0])
    constant = parse_number(constants[0].text.strip(), "double", constants[0])
    value = _linear(at, own)
    return _changed(value, 1.0, constant, at) if name == "+" else _changed(value, constant, 0.0, at)


# --- classes --------------------------------------------------------------------------------------------------------------


def _class_tree(model: Element, fields: Fields, arithmetic: str) -> Read:
    """Reads one tree from its probabilities or, if its scores are not the most probable classes, from the scores alone."""
    if score_decides(model):
        return _ballots([model], [1.0], labels_of([model], voting=True), fields, model, arithmetic)
    return _classification([model], labels_of([model]), fields, model, arithmetic)


def _classification(
    trees: Sequence[Element], labels: list[str], fields: Fields, model: Element, arithmetic: str
) -> Read:
    if arithmetic != "double":
        raise model.error("classes in float32 are not supported", "export the model without x-mathContext")
    score = class_score(labels)
    grown = tuple(tree_of(tree, fields, _checked(tree, "classification", score), len(labels)) for tree in trees)
    value = Sum(grown, arithmetic, model, average=len(grown))
    return Read((value,), task_of(labels), Identity(), tuple(labels), width=len(labels))


def _ballots(
    trees: Sequence[Element],
    values: Sequence[float],
    labels: list[str],
    fields: Fields,
    model: Element,
    arithmetic: str,
) -> Read:
    """Reads trees whose votes are summed; the class with the greatest sum wins, and the model has no probabilities."""
    if arithmetic != "double":
        raise model.error("votes in float32 are not supported", "export the model without x-mathContext")
    grown = tuple(
        tree_of(tree, fields, _checked(tree, "classification", vote_score(labels, value)), len(labels))
        for tree, value in zip(trees, values, strict=True)
    )
    value = Sum(grown, arithmetic, model)
    ballots = tuple(zip(trees, values, strict=True))
    return Read((value,), task_of(labels), Raw(), tuple(labels), width=len(labels), ballots=ballots)


def _elected(
    model: Element, segments: Sequence[Element], weights: Sequence[float], fields: Fields, context: _Context
) -> Read:
    """Reads voting models: trees become sums of votes if float64 can add these exactly; other models keep separate scores."""
    _no_targets(model)
    if context.votes:
        raise model.error("a vote inside a vote is not supported", _AVERAGE)
    if context.outputs:
        raise model.error("votes of models that use sums of other models are not supported", _EXPORT)
    if min(weights) < 0 or not any(weights):
        raise model.error("a vote weight is negative, or all weights are 0", "pass the inner models one by one")
    # A tree votes by its score, which does not depend on the order of classes.
    inner = replace(context, votes=True)
    others = {id(s): _voting(s, fields, inner) for s in segments if s.tag != "TreeModel"}
    if others:
        classes = next(iter(others.values())).classes
    else:
        classes = tuple(labels_of(segments, voting=True))
        values = vote_values(weights, len(classes))
        if values is not None:
            return _ballots(segments, values, list(classes), fields, model, context.arithmetic)
    voters = []
    for segment, weight in zip(segments, weights, strict=True):
        read = others.get(id(segment))
        if read is None:
            read = _ballots([segment], [1.0], list(classes), fields, segment, context.arithmetic)
        if read.classes != classes:
            different = "in different orders" if set(read.classes) == set(classes) else "of other names"
            raise segment.error(f"the models of a vote have classes {different}", "train every model on all classes")
        voters.append(Voter(segment, read, weight))
    if len(classes) ** len(voters) > MOST_COMBINATIONS:
        raise model.error(
            f"at a tie, the winner of a vote of {len(voters)} models for {len(classes)} classes depends on the order "
            "of the votes, and there are too many orders",
            _AVERAGE,
        )
    return Read((), task_of(classes), Votes(), classes, voters=tuple(voters))


def _voting(model: Element, fields: Fields, context: _Context) -> Read:
    read = _read(model, fields, context)
    if not read.classes:
        raise model.error("this is not a classification model")
    return read


# --- regressions ----------------------------------------------------------------------------------------------------------


def _regressions(model: Element, function: str, fields: Fields, context: _Context) -> Read:
    model.only(*_PARTS, "RegressionTable")
    tables = list(model.each("RegressionTable"))
    inner = fields_inside(model, fields)
    method = model.get("normalizationMethod", "none")
    if function == "regression":
        if len(tables) != 1:
            raise model.error("a regression needs exactly one table")
        links = {"none": Identity(), "exp": Exp(), "logit": Logistic(), "softmax": Logistic()}
        if method not in links:
            raise model.error(f"the normalisation `{method[:40]}` is not supported", f"supported: {', '.join(links)}")
        value = _table(tables[0], model, inner, context)
        read = _regression(value, links[method])
        if method == "none":
            return _targeted(model, read, context.arithmetic)
        _no_targets(model)
        return read
    _no_targets(model)
    labels = tuple(table.require("targetCategory") for table in tables)
    if len(set(labels)) != len(labels) or len(labels) < 2:
        raise model.error("a classifier needs a table for each of its classes")
    if method == "logit" and len(tables) == 2 and _is_empty(tables[1]):
        value = _table(tables[0], model, inner, context)
        return Read((value,), Task.BINARY, Logistic(), labels[::-1], chosen_from_half=True)
    if method == "softmax":
        sums = tuple(_table(table, model, inner, context) for table in tables)
        return Read(sums, task_of(labels), Softmax(), labels)
    raise model.error(
        f"the normalisation `{method[:40]}` of {len(tables)} tables is not supported",
        "supported: softmax, and logit with two tables if the second table is empty",
    )


def _no_targets(model: Element) -> None:
    if model.child("Targets") is not None:
        raise model.error("targets are supported only for a single sum", _EXPORT)


def _is_empty(table: Element) -> bool:
    return table.number("intercept") == 0.0 and not any(child.tag != "Extension" for child in table.children)


def _table(table: Element, model: Element, fields: Fields, context: _Context) -> Sum:
    """The sum of a table: either the sum of an earlier model, or coefficients of categories and numbers."""
    table.only("NumericPredictor", "CategoricalPredictor")
    intercept = number_in(table, "intercept", context.arithmetic)
    numeric = list(table.each("NumericPredictor"))
    if len(numeric) == 1 and numeric[0].get("name") in context.outputs:
        predictor = numeric[0]
        if table.child("CategoricalPredictor") is not None or predictor.get("exponent", "1") != "1":
            raise table.error("a table with terms other than an earlier sum is not supported", _EXPORT)
        value = context.outputs[predictor.get("name")]
        if value.context != context.arithmetic:
            raise table.error("using a sum in another arithmetic is not supported", _EXPORT)
        return _changed(value, number_in(predictor, "coefficient", context.arithmetic), intercept, predictor)
    numbers = [_numeric(predictor, fields, context.arithmetic) for predictor in numeric]
    slopes = tuple(number for number in numbers if isinstance(number, Slope))
    grown = [number for number in numbers if isinstance(number, Grown)]
    terms = (*grown, *_terms(table, fields, context.arithmetic))
    return Sum(terms, context.arithmetic, model, base=intercept, table=table, slopes=slopes)


def _numeric(predictor: Element, fields: Fields, arithmetic: str) -> Grown | Slope:
    """The term of a coefficient times a number, or times a field of finitely many numbers (weights of evidence, indicators)."""
    name = predictor.get("name") or predictor.require("field")
    found = fields.find(name, predictor)
    if predictor.get("exponent", "1") != "1" or arithmetic != "double":
        raise predictor.error("powers, and products in float32, are not supported", _EXPORT)
    coefficient = number_in(predictor, "coefficient", arithmetic)
    if isinstance(found, Number):
        return Slope(found, coefficient)
    if found.kind not in NUMBERS:
        raise predictor.error(f"`{name[:60]}` has a coefficient, but is not a number")
    return numeric_term(found, coefficient, predictor)


def _terms(table: Element, fields: Fields, arithmetic: str) -> tuple[Grown, ...]:
    """A tree for each run of coefficients of the same field; the trees are summed in table order."""
    runs: list[tuple[str, list[Element]]] = []
    for predictor in table.each("CategoricalPredictor"):
        name = predictor.get("name") or predictor.require("field")
        if not runs or runs[-1][0] != name:
            runs.append((name, []))
        runs[-1][1].append(predictor)
    grown = []
    for name, predictors in runs:
        found = fields.find(name, predictors[0])
        if not isinstance(found, Category | Bins):
            raise predictors[0].error(f"`{name[:60]}` is a number, but has coefficients of categories")
        given = [(p.require("value"), number_in(p, "coefficient", arithmetic), p) for p in predictors]
        grown.append(category_term(found, given, f"{table.place}:{table.line}"))
    return tuple(grown)


# --- scorecards -----------------------------------------------------------------------------------------------------------


def _scorecard(model: Element, fields: Fields, arithmetic: str) -> Read:
    model.only(*_PARTS, "Characteristics")
    inner = fields_inside(model, fields)
    characteristics = model.need("Characteristics")
    characteristics.only("Characteristic")
    grown = tuple(attribute_tree(one, inner) for one in characteristics.each("Characteristic"))
    initial = model.number("initialScore", 0.0)
    value = Sum(grown, arithmetic, model, base=initial, first=True)
    return _targeted(model, _regression(value), arithmetic)


# --- as columns -----------------------------------------------------------------------------------------------------------


def accumulation_of(sums: Sequence[Sum], at: Element) -> Accumulation:
    """The arithmetic of the sums. Raises ModelError if the sums use different arithmetics."""
    kinds = {(one.context, one.first, one.scale != 1.0, one.average, one.rounded) for one in sums}
    if len(kinds) != 1:
        raise at.error("outputs that are added up in different ways are not supported", _EXPORT)
    context, first, scaled, average, rounded = kinds.pop()
    if rounded:
        if first or scaled or average != 1:
            raise at.error("scores that are rounded after a sum with further steps are not supported", _EXPORT)
        return Accumulation.FLOAT64_BASE_LAST_ROUNDED
    if context == "float":
        if first or average != 1:
            raise at.error("averages in float32 are not supported", "export the model without x-mathContext")
        return Accumulation.FLOAT32_BASE_LAST
    if scaled:
        return Accumulation.FLOAT64_SCALED_BASE_LAST
    return Accumulation.FLOAT64_BASE_FIRST if first else Accumulation.FLOAT64_BASE_LAST


def trees_of(read: Read) -> tuple[list[Nodes], NDArray[np.int32], NDArray[np.float64]]:
    """The trees of all outputs, the output of each tree (-1: all), and the weight of each tree."""
    nodes = [tree.nodes for one in read.sums for tree in one.trees]
    outputs = [-1 if read.width > 1 else number for number, one in enumerate(read.sums) for _ in one.trees]
    weights = [one.scale for one in read.sums for _ in one.trees]
    return nodes, np.array(outputs, dtype=np.int32), np.array(weights, dtype=np.float64)
