"""Reads PMML files (Data Mining Group, versions 4.0 to 4.4): their columns, and the model over these columns."""

from __future__ import annotations

import hashlib
import math
import re
from collections.abc import Callable, Collection, Sequence
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np

from treesens.compiler.base.floats import NumberType
from treesens.compiler.model import Ensemble, Feature, FeatureKind, ModelSource, Task
from treesens.compiler.model.kinds import REST
from treesens.compiler.model.numbers import OpenNumber
from treesens.extensions.formats.blending import blend_of
from treesens.extensions.formats.links.blend import Way
from treesens.extensions.formats.numbers.tables import MOST_TERMS, number_term
from treesens.extensions.formats.of_files import OfFiles, in_java
from treesens.extensions.formats.pmml.fields import Category, Column, Fields, Number, cast, identity, parse_number
from treesens.extensions.formats.pmml.known import check_attributes
from treesens.extensions.formats.pmml.models import MODELS, Read, accumulation_of, read_model, trees_of
from treesens.extensions.formats.pmml.predicates import words_of
from treesens.extensions.formats.pmml.xml import Element, parse
from treesens.extensions.formats.voting import vote_of
from treesens.frontends.base import LoadedModel
from treesens.frontends.columns import (
    MAX_CATEGORIES,
    MAX_FEATURES,
    as_categorical,
    ensemble_of,
    feature_tuple,
    stack_trees,
)
from treesens.links import Identity

_ROOT = re.compile(rb"<(\w+:)?PMML[\s>]")
_VERSIONS = ("4.0", "4.1", "4.2", "4.2.1", "4.3", "4.4", "4.4.1")
_OUTSIDE = ("target", "predicted", "supplementary", "group", "order", "frequencyWeight", "analysisWeight")
_OTHER = "\0 other"
"""The text for unlisted categories; no predicate can contain this text, since XML does not allow its character."""
_HALF = Fraction(1, 2)


class PMMLFrontend(OfFiles):
    """Reads models exported by any program; there are no live objects."""

    name = "pmml"

    def recognises_bytes(self, head: bytes) -> bool:
        return head.lstrip(b"\xef\xbb\xbf \t\r\n").startswith(b"<") and _ROOT.search(head) is not None

    def load(self, path: Path, data: bytes) -> LoadedModel:
        place = str(path)
        root = parse(data, place)
        if root.tag != "PMML":
            raise root.error("this is not a PMML file")
        if root.get("version") not in _VERSIONS:
            raise root.error(f"unknown version `{root.get('version')[:20]}`", f"known: {', '.join(_VERSIONS)}")
        root.only("Header", "MiningBuildTask", "DataDictionary", "TransformationDictionary", *MODELS)
        check_attributes(root)
        models = [child for child in root.children if child.tag in MODELS]
        if len(models) != 1:
            raise root.error(f"expected one model, found {len(models)}", "export only the model that is used")
        model = models[0]
        fields, notes = _columns(root, model)
        shared = root.child("TransformationDictionary")
        if shared is not None:
            fields.derive(shared)
        read = read_model(model, fields)
        source = ModelSource("pmml", version=root.get("version"), sha256=hashlib.sha256(data).hexdigest(), path=place)
        facts = {"name": path.stem, "source": source}
        features = _features(fields, read.unpredicted, place)
        ensemble = _made(read, features, model, place, facts)
        if read.voters:
            notes = (*notes, f"the classes of {len(read.voters)} models are counted")
        if read.ballots:
            notes = (*notes, _about_votes([value for _, value in read.ballots]))
        return LoadedModel(ensemble, self.name, in_java, notes=notes)


def _made(read: Read, features: tuple[Feature, ...], model: Element, place: str, facts: dict[str, Any]) -> Ensemble:
    """The ensemble of a model, or of models that vote."""
    if not read.voters:
        return _ensemble(read, features, model, place, facts)
    return vote_of(
        [_ensemble(voter.read, features, voter.model, place, facts) for voter in read.voters],
        [voter.weight for voter in read.voters],
        Way.COUNT_FIRST,
        [feature.name for feature in features],
        place,
        classes=read.classes,
        remedy="export the probabilities of the whole model",
        **facts,
    )


def _ensemble(read: Read, features: tuple[Feature, ...], model: Element, place: str, facts: dict[str, Any]) -> Ensemble:
    """The ensemble of a model with a sum per output."""
    if any(one.slopes for one in read.sums):
        return _over_numbers(read, features, model, place, facts)
    trees, outputs, weights = trees_of(read)
    return ensemble_of(
        stack_trees(trees),
        features,
        place,
        number_type=NumberType.FLOAT64,
        comparison="<",
        tree_output=outputs,
        tree_weight=weights,
        base=np.zeros(read.width) if read.width > 1 else np.array([one.base for one in read.sums]),
        link=read.link,
        task=read.task,
        accumulation=accumulation_of(read.sums, model),
        average=read.sums[0].average,
        classes=read.classes,
        cutoff=None if not read.chosen_from_half else _HALF,
        ranks_scores=bool(read.ballots),
        **facts,
    )


def _over_numbers(
    read: Read, features: tuple[Feature, ...], model: Element, place: str, facts: dict[str, Any]
) -> Ensemble:
    """The open ensemble of a sum of trees and of numbers times coefficients; each term is a member."""
    (value, *others) = read.sums
    if others or value.rounded or value.first or value.scale != 1.0 or value.average != 1:
        raise model.error(
            "several sums or transformed sums over numbers are not supported",
            "use two classes (logit), or bins (Discretize)",
        )
    if len(value.slopes) + len(value.trees) > MOST_TERMS:
        raise model.error(f"more than {MOST_TERMS} coefficients of numbers are not supported", "leave some out")
    members = [number_term(_open(slope.number), features, place) for slope in value.slopes]
    weights = [-slope.coefficient if slope.number.falls else slope.coefficient for slope in value.slopes]
    for tree in value.trees:
        alone = Read((replace(value, trees=(tree,), slopes=(), base=0.0),), Task.REGRESSION, Identity())
        members.append(_ensemble(alone, features, model, place, facts))
        weights.append(1.0)
    return blend_of(
        members,
        [Fraction(weight) for weight in weights],
        Way.LINEAR,
        [feature.name for feature in features],
        place,
        weights=weights,
        intercept=value.base,
        is_sum=True,
        classes=read.classes,
        link=read.link,
        task=read.task,
        cutoff=None if not read.chosen_from_half else _HALF,
        **facts,
    )


def _open(number: Number) -> OpenNumber:
    """The number that a coefficient multiplies; a decreasing number is negated, so that the result increases."""
    sign = -1.0 if number.falls else 1.0
    return OpenNumber(number.column.index, lambda x: sign * number.value(x), sign * number.missing)


def _about_votes(values: Sequence[float]) -> str:
    first = "; ties go to the class with the earliest vote, so earlier votes count slightly more"
    return "margins are votes" + (first if len(values) > 1 and values[0] != int(values[0]) else "")


def _columns(root: Element, model: Element) -> tuple[Fields, tuple[str, ...]]:
    """The columns of a model, in schema order, and notes for users."""
    known = {element.require("name"): element for element in root.need("DataDictionary").each("DataField")}
    columns: list[Column] = []
    fields: dict[str, Number | Category] = {}
    notes: list[str] = []
    for used in model.need("MiningSchema").each("MiningField"):
        name = used.require("name")
        if used.get("usageType", "active") in _OUTSIDE:
            continue
        if used.get("usageType", "active") != "active":
            raise used.error(f"unknown usage `{used.get('usageType')[:40]}` of a field")
        if name not in known:
            raise used.error(f"the dictionary has no field `{name[:60]}`")
        if len(columns) >= MAX_FEATURES:
            raise used.error(f"more than {MAX_FEATURES} fields are not plausible")
        column, made = _column(known[name], used, len(columns), lambda name=name: _compared(root, name, known))  # type: ignore[misc]
        columns.append(column)
        fields[name] = made
        if known[name].child("Interval") is not None and used.get("invalidValueTreatment", "returnInvalid") != "asIs":
            notes.append(f"the file rejects values of `{name}` outside its intervals: declare the domain")
    if not columns:
        raise model.error("the model uses no field")
    return Fields(tuple(columns), dict(fields)), tuple(notes)


def _compared(root: Element, name: str, known: Collection[str]) -> tuple[str, ...]:
    """The texts with which a model may compare a field of the dictionary: those for the field itself and for derived fields."""
    found: dict[str, None] = {}
    todo = [root]
    while todo:
        element = todo.pop()
        todo += element.children
        field = element.get("field") or element.get("name")
        if element.tag == "MapValues":
            pairs = [pair for pair in element.each("FieldColumnPair") if _may_be(pair.get("field"), name, known)]
            columns = {pair.get("column") for pair in pairs}
            rows = (row for table in element.each("InlineTable") for row in table.each("row"))
            found |= dict.fromkeys(cell.text.strip() for row in rows for cell in row.children if cell.tag in columns)
        elif element.tag in ("SimplePredicate", "NormDiscrete", "CategoricalPredictor") and _may_be(field, name, known):
            found |= dict.fromkeys([element.get("value")] if "value" in element.attributes else [])
        elif element.tag == "SimpleSetPredicate" and _may_be(field, name, known):
            found |= dict.fromkeys(words_of(element.need("Array")))
    return tuple(sorted(found))


def _may_be(field: str, name: str, known: Collection[str]) -> bool:
    return field == name or field not in known


def _column(
    element: Element, used: Element, index: int, compared: Callable[[], tuple[str, ...]]
) -> tuple[Column, Number | Category]:
    """A column, and the model's field for it, in which missing and extreme values are replaced according to the schema.

    A field of texts without a list of values has the texts of `compared` as categories, and one more for every other text.
    """
    name, kind = element.require("name"), element.require("dataType")
    optype = used.get("optype", element.require("optype"))
    if (
        used.get("missingValueTreatment", "asIs") == "returnInvalid"
        and "missingValueReplacement" not in used.attributes
    ):
        raise used.error("a field that rejects missing values is not supported", "remove missingValueTreatment")
    if optype == "continuous":
        return _continuous(element, used, Column(name, index, kind))
    if kind not in ("string", "integer", "double", "float", "boolean"):
        raise element.error(f"categories of the type {kind[:20]} are not supported", "use strings or numbers")
    values = [v for v in element.each("Value") if v.get("property", "valid") != "invalid"]
    texts = tuple(v.require("value") for v in values)
    if kind == "boolean" and not texts:
        values, texts = [], ("false", "true")
    if not texts and (kind != "string" or element.child("Value") is not None):
        raise element.error("the categories of a field are not listed", "list them as Value")
    named = texts or compared()
    if len(named) > MAX_CATEGORIES or len(set(named)) != len(named):
        raise element.error("there are too many categories, or one is repeated")
    missing = {v.require("value") for v in values if v.get("property") == "missing"}
    images = (*(None if text in missing else text for text in named), *(() if texts else (_OTHER,)))
    other = {"asIs": _OTHER, "returnInvalid": _OTHER, "asMissing": None if texts else _OTHER}
    treatment = used.get("invalidValueTreatment", "returnInvalid")
    if treatment not in other:
        raise used.error(f"`{treatment[:40]}` is not supported", "use returnInvalid, asIs or asMissing")
    replacement = used.attributes.get("missingValueReplacement")
    filled = tuple(replacement if image is None else image for image in (*images, other[treatment]))
    column = Column(name, index, kind, texts or (*named, REST))
    return column, Category(column, filled, replacement)


def _continuous(element: Element, used: Element, column: Column) -> tuple[Column, Number]:
    if column.kind not in ("double", "float", "integer"):
        raise element.error(f"numbers of the type {column.kind[:20]} are not supported", "use double, float or integer")
    if any(v.get("property") != "missing" or v.get("value") != "NaN" for v in element.each("Value")):
        raise element.error("numbers with special values are not supported", "remove the Value")
    number = Number(column, "double" if column.kind == "float" else column.kind, identity)
    if column.kind == "float":
        number = cast(number, "float")
    # Without intervals, every number is valid.
    if used.get("invalidValueTreatment", "returnInvalid") not in ("returnInvalid", "asIs", "asMissing") or (
        used.get("invalidValueTreatment") == "asMissing" and element.child("Interval") is not None
    ):
        raise used.error("numbers outside of intervals cannot be missing", "use returnInvalid or asIs")
    outliers = used.get("outliers", "asIs")
    if outliers == "asExtremeValues":
        low, high = used.number("lowValue"), used.number("highValue")
        inner = number.value
        number = replace(number, value=lambda x: np.clip(inner(x), low, high))
    elif outliers != "asIs":
        raise used.error(f"outliers `{outliers[:40]}` are not supported", "use asIs or asExtremeValues")
    text = used.attributes.get("missingValueReplacement")
    return column, number if text is None else replace(number, missing=parse_number(text, column.kind, used))


def _features(fields: Fields, needed: frozenset[int], place: str) -> tuple[Feature, ...]:
    features = list(feature_tuple([column.name for column in fields.columns], place))
    for column in fields.columns:
        if column.categories is not None:
            labels = [_label(text, column.kind) for text in column.categories]
            features[column.index] = as_categorical(features[column.index], len(labels), labels)
        elif column.kind == "integer":
            features[column.index] = replace(features[column.index], kind=FeatureKind.INTEGER)
        if column.index in needed:
            features[column.index] = replace(features[column.index], needs_value=True)
    return tuple(features)


def _label(text: str, kind: str) -> str | int | float:
    """A category as it appears in tables: a number if the file declares it as a number."""
    try:
        value = float(text) if kind in ("integer", "double", "float") else math.nan
    except ValueError:
        return text
    if not math.isfinite(value):
        return text
    return int(value) if value.is_integer() else value
