"""Converts PMML's TreeModel and Scorecard, and the terms of regressions over categories, to binary trees."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from treesens.extensions.formats.pmml.fields import Bins, Category, Field, Fields, nearest_float32
from treesens.extensions.formats.pmml.predicates import Predicate, Test, among, predicate_of, tests_of
from treesens.extensions.formats.pmml.trees import Grower, State, Then
from treesens.extensions.formats.pmml.xml import Element
from treesens.frontends.columns import Nodes

Score = Callable[[Element], "Sequence[float] | None"]
"""A function that returns the values of a node; None if the node has no score."""

_STRATEGIES = ("none", "lastPrediction", "nullPrediction", "defaultChild")
_NODE_PARTS = (
    "True",
    "False",
    "SimplePredicate",
    "SimpleSetPredicate",
    "CompoundPredicate",
    "ScoreDistribution",
    "Node",
)
_MODEL_PARTS = (
    "MiningSchema",
    "Output",
    "LocalTransformations",
    "Node",
    "ModelStats",
    "ModelExplanation",
    "ModelVerification",
)


@dataclass(eq=False)
class _Node:
    """A node of the file with its content."""

    element: Element
    predicate: Predicate
    values: Sequence[float] | None
    children: list[_Node]
    default: _Node | None = None


class Grown(NamedTuple):
    """A binary tree, and the columns whose values must not be missing for a prediction to exist."""

    nodes: Nodes
    unpredicted: frozenset[int]


def tree_of(model: Element, fields: Fields, score: Score, width: int) -> Grown:
    """The binary tree of a TreeModel; `score` returns the values of its nodes."""
    model.only(*_MODEL_PARTS, "Targets")
    if model.child("Targets") is not None:
        raise model.error("a tree with Targets is not supported here", "export the model without Targets")
    strategy = model.get("missingValueStrategy", "none")
    if strategy not in _STRATEGIES:
        raise model.error(f"the strategy `{strategy[:40]}` for missing values is not supported", "export without it")
    last = model.get("noTrueChildStrategy", "returnNullPrediction")
    if last not in ("returnNullPrediction", "returnLastPrediction"):
        raise model.error(f"unknown strategy `{last[:40]}` for nodes without a true child")
    inner = fields_inside(model, fields)
    predicates: list[Predicate] = []
    root = _read_node(model.need("Node"), inner, score, strategy == "defaultChild", predicates)
    place = f"{model.place}:{model.line}"
    grower = Grower(predicates, width, place)
    walk = _Walk(grower, strategy, last == "returnLastPrediction")
    return Grown(grower.grown(lambda state: walk.begin(root, state)), frozenset(grower.unpredicted))


def fields_inside(model: Element, fields: Fields) -> Fields:
    """The fields of a nested model: the surrounding fields, and the model's own transformations."""
    inner = fields.inner()
    local = model.child("LocalTransformations")
    if local is not None:
        inner.derive(local)
    return inner


def _read_node(element: Element, fields: Fields, score: Score, defaults: bool, predicates: list[Predicate]) -> _Node:
    element.only(*_NODE_PARTS)
    predicate = predicate_of(element, fields)
    predicates.append(predicate)
    children = [_read_node(child, fields, score, defaults, predicates) for child in element.each("Node")]
    node = _Node(element, predicate, score(element), children)
    if defaults and children:
        wanted = element.require("defaultChild")
        node.default = next((child for child in children if child.element.get("id") == wanted), None)
        if node.default is None:
            raise element.error(f"no child has the id `{wanted[:40]}`")
    return node


class _Walk:
    """The rules by which PMML selects the node of an input, written as continuations of the grower."""

    def __init__(self, grower: Grower, strategy: str, last: bool) -> None:
        self.grower, self.strategy, self.last = grower, strategy, last

    def begin(self, root: _Node, state: State) -> int:
        def nothing(_: State) -> int:
            return self._no_prediction(root.element)

        return self.grower.ask(root.predicate, state, lambda s: self._visit(root, s), nothing, nothing)

    def _visit(self, node: _Node, state: State) -> int:
        return self._next(node, 0, state) if node.children else self._score(node, state)

    def _next(self, node: _Node, number: int, state: State) -> int:
        if number == len(node.children):
            return self._score(node, state) if self.last else self._unpredicted(node, state)
        child = node.children[number]

        def false(s: State) -> int:
            return self._next(node, number + 1, s)

        unknown: Then = false
        match self.strategy:
            case "lastPrediction":
                unknown = lambda s: self._score(node, s)  # noqa: E731
            case "nullPrediction":
                # A missing value for which there is no prediction may go in any direction.
                self.grower.unpredicted |= {test.column.index for test in tests_of(child.predicate)}
            case "defaultChild":
                default = node.default
                assert default is not None
                unknown = lambda s: self._visit(default, s)  # noqa: E731
        return self.grower.ask(child.predicate, state, lambda s: self._visit(child, s), false, unknown)

    def _score(self, node: _Node, state: State) -> int:
        if node.values is None:
            return self._unpredicted(node, state)
        return self.grower.leaf(node.values)

    def _unpredicted(self, node: _Node, state: State) -> int:
        """A leaf without a prediction, which only inputs with missing values may reach."""
        leaf = self.grower.no_prediction(state)
        return self._no_prediction(node.element) if leaf is None else leaf

    def _no_prediction(self, element: Element) -> int:
        raise element.error(
            "some inputs without missing values have no prediction here",
            "give every node a score, and give the last child of each node the predicate True",
        )


def regression_score(context: str) -> Score:
    """A `Score` that reads a single number: float32 if the model's context is `float`."""

    def score(node: Element) -> Sequence[float] | None:
        if "score" not in node.attributes:
            return None
        return [number_in(node, "score", context)]

    return score


def number_in(element: Element, name: str, context: str) -> float:
    """A number in an attribute, in a model's arithmetic: float32 if the context is `float`, float64 otherwise."""
    value = element.number(name)
    return nearest_float32(element.get(name), value) if context == "float" else value


def class_score(labels: list[str]) -> Score:
    """A `Score` that reads probabilities in the order of `labels`: a node's probabilities, or its records' shares."""

    def score(node: Element) -> Sequence[float] | None:
        found = list(node.each("ScoreDistribution"))
        if not found:
            if "score" in node.attributes and node.child("Node") is None:
                raise node.error("a leaf without ScoreDistribution is not supported", "export the probabilities, too")
            return None
        given = {child.require("value"): child for child in found}
        if set(given) - set(labels) or len(given) != len(found):
            raise node.error("a distribution contains classes that the tree lacks, or repeats a class")
        if all("probability" in child.attributes for child in found):
            return [given[label].number("probability") if label in given else 0.0 for label in labels]
        counts = [given[label].number("recordCount") if label in given else 0.0 for label in labels]
        total = sum(counts)
        if total <= 0:
            raise node.error("a distribution has no records")
        return [count / total for count in counts]

    return score


def attribute_tree(characteristic: Element, fields: Fields) -> Grown:
    """The tree of one characteristic of a scorecard; the points are those of the first attribute whose predicate is true."""
    characteristic.only("Attribute")
    attributes = list(characteristic.each("Attribute"))
    predicates = []
    for attribute in attributes:
        if attribute.child("ComplexPartialScore") is not None:
            raise attribute.error("a computed score is not supported", "use partialScore")
        predicates.append(predicate_of(attribute, fields))
    points = [attribute.number("partialScore") for attribute in attributes]
    grower = Grower(predicates, 1, f"{characteristic.place}:{characteristic.line}")

    def ask(number: int, state: State) -> int:
        if number == len(attributes):
            leaf = grower.no_prediction(state)
            if leaf is not None:
                return leaf
            raise characteristic.error(
                "some inputs without missing values have no attribute here",
                "give the last attribute the predicate True",
            )

        def false(s: State) -> int:
            return ask(number + 1, s)

        return grower.ask(predicates[number], state, lambda _: grower.leaf([points[number]]), false, false)

    return Grown(grower.grown(lambda state: ask(0, state)), frozenset(grower.unpredicted))


def category_term(field: Field, coefficients: Sequence[tuple[str, float, Element]], place: str) -> Grown:
    """The tree of a field's contribution to a regression: the category's coefficient, or 0 if the category has none."""
    tests = [among(field, "isIn", (value,), at) for value, _, at in coefficients]
    grower = Grower(tests, 1, place)

    def ask(number: int, state: State) -> int:
        if number == len(tests):
            return grower.leaf([0.0])

        def false(s: State) -> int:
            return ask(number + 1, s)

        return grower.ask(tests[number], state, lambda _: grower.leaf([coefficients[number][1]]), false, false)

    return Grown(grower.grown(lambda state: ask(0, state)), frozenset(grower.unpredicted))


def numeric_term(field: Category | Bins, coefficient: float, at: Element) -> Grown:
    """The tree of a coefficient times a field of finitely many numbers, with products rounded to float64."""
    values = sorted({image for image in (*field.images, field.missing) if isinstance(image, float)})
    tests = [Test(field, "isIn", bounds=(value,)) for value in values]
    grower = Grower(tests, 1, f"{at.place}:{at.line}")

    def ask(number: int, state: State) -> int:
        if number == len(tests):
            leaf = grower.no_prediction(state)
            if leaf is None:
                message = "some inputs without missing values have no value of this field"
                raise at.error(message, "give the field's transformation a default value")
            return leaf

        def false(s: State) -> int:
            return ask(number + 1, s)

        return grower.ask(tests[number], state, lambda _: grower.leaf([coefficient * values[number]]), false, false)

    return Grown(grower.grown(lambda state: ask(0, state)), frozenset(grower.unpredicted))
