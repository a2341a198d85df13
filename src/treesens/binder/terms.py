"""Expressions of constraints and objectives as linear combinations of quantities: constant + sum of coefficient * atom."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import TypeAlias, TypeVar, assert_never, cast

from treesens.binder.scope import Scope
from treesens.compiler.base.diagnostics import Span, did_you_mean
from treesens.compiler.model import Ensemble, Task
from treesens.data.tables import decimal_of
from treesens.grammar.tree import ast
from treesens.grammar.tree.words import TYPICAL_WAYS
from treesens.links import Link


@dataclass(frozen=True)
class FeatureAtom:
    """A feature's value at a point, in typed units."""

    point: int
    feature: int


@dataclass(frozen=True)
class ScoreAtom:
    """A margin: one raw output of the model at a point."""

    point: int
    output: int


@dataclass(frozen=True)
class LinkedAtom:
    """A model's prediction through a nonlinear link: a probability or the value of a regressor.

    `output` is the index of the probability's class (1 for a binary model), or 0 for a regressor.
    """

    point: int
    output: int
    link: Link


@dataclass(frozen=True)
class LikelihoodAtom:
    """A product of likelihoods; `factors` holds the pair (point, table) of each likelihood."""

    factors: tuple[tuple[int, str], ...]
    node: ast.Likelihood = field(compare=False)


@dataclass(frozen=True)
class TypicalityAtom:
    """The typicality of a point for a table, by a Chow–Liu tree or an isolation forest."""

    point: int
    table: str
    way: str
    node: ast.Typicality = field(compare=False)


@dataclass(frozen=True)
class DistanceAtom:
    """The distance from a point to another point (an int), to a row, or to the nearest row of a table."""

    point: int
    target: int | ast.Row | ast.NearestRow
    norm: ast.Norm
    node: ast.Distance = field(compare=False)


@dataclass(frozen=True)
class ChangesAtom:
    """The number of features that differ between two points."""

    left: int
    right: int


@dataclass(frozen=True)
class AbsoluteAtom:
    """The absolute value of a linear expression."""

    inner: Affine


Atom: TypeAlias = (
    FeatureAtom | ScoreAtom | LinkedAtom | LikelihoodAtom | TypicalityAtom | DistanceAtom | ChangesAtom | AbsoluteAtom
)


A = TypeVar("A")


@dataclass(frozen=True)
class Affine:
    """constant + sum of coefficient * atom; no coefficient is zero."""

    constant: Fraction = Fraction(0)
    terms: tuple[tuple[Atom, Fraction], ...] = ()

    def __add__(self, other: Affine) -> Affine:
        merged: dict[Atom, Fraction] = {}
        for atom, coefficient in (*self.terms, *other.terms):
            merged[atom] = merged.get(atom, Fraction(0)) + coefficient
        return Affine(self.constant + other.constant, tuple((a, c) for a, c in merged.items() if c))

    def __mul__(self, factor: Fraction) -> Affine:
        return Affine(self.constant * factor, tuple((a, c * factor) for a, c in self.terms if factor))

    def __sub__(self, other: Affine) -> Affine:
        return self + other * Fraction(-1)

    def only(self, kind: type[A]) -> dict[A, Fraction]:
        """The terms if all of them are of this kind, otherwise empty."""
        terms = {cast("A", atom): c for atom, c in self.terms if isinstance(atom, kind)}
        return terms if len(terms) == len(self.terms) else {}


def kind_of(atom: Atom) -> str:
    """The kind of an atom, for messages: "a feature"."""
    match atom:
        case FeatureAtom():
            return "a feature"
        case ScoreAtom():
            return "a margin"
        case LinkedAtom(link=link):
            return "a probability" if link.is_probability else "a prediction"
        case LikelihoodAtom():
            return "a likelihood"
        case TypicalityAtom():
            return "a typicality"
        case DistanceAtom():
            return "a distance"
        case ChangesAtom():
            return "a number of changes"
        case AbsoluteAtom():
            return "an absolute value"
        case _:
            assert_never(atom)


def affine(scope: Scope, node: ast.Expression) -> Affine:
    """The linear form of an expression. E204 if quantities are multiplied or divided."""
    match node:
        case ast.Number(value):
            return Affine(value)
        case ast.Infinity():
            raise scope.fail("E218", "`inf` cannot be compared", node.span, "leave the comparison out")
        case ast.Name(text):
            remedy = did_you_mean(text, list(scope.points)) if text not in scope.points else ""
            raise scope.fail("E205", f"`{text}` is a name, but a quantity is needed", node.span, remedy)
        case ast.FeatureOf(point, feature):
            return _one(FeatureAtom(scope.point(point), scope.feature(feature)))
        case ast.Prob() | ast.Margin() | ast.ValueOf():
            return score(scope, node)
        case ast.ClassOf():
            remedy = "write `class(a) = CLASS`, `class(a) = class(b)` or `class(a) != class(b)`"
            raise scope.fail("E205", "a class is not a number", node.span, remedy)
        case ast.Likelihood(point, data):
            scope.table(data)
            return _one(LikelihoodAtom(((scope.point(point), data.text),), node))
        case ast.Typicality(point, data, way):
            scope.table(data)
            return _one(TypicalityAtom(scope.point(point), data.text, way or TYPICAL_WAYS[0], node))
        case ast.Distance(point, target, norm):
            return _one(_distance(scope, node, point, target, norm))
        case ast.Changes(first, second):
            return _one(ChangesAtom(*scope.pair(first, second, node.span)))
        case ast.Absolute(operand):
            inner = affine(scope, operand)
            return _one(AbsoluteAtom(inner)) if inner.terms else Affine(abs(inner.constant))
        case ast.Negate(operand):
            return affine(scope, operand) * Fraction(-1)
        case ast.Sum(terms):
            total = Affine()
            for term in scope.every(lambda t: affine(scope, t), terms):
                total = total + term
            return total
        case ast.Product(factors):
            return _product(scope, node, scope.every(lambda f: affine(scope, f), factors))
        case ast.Quotient(numerator, denominator):
            above, below = scope.every(lambda f: affine(scope, f), (numerator, denominator))
            if below.terms:
                remedy = "multiply both sides by the denominator, or divide by a number"
                raise scope.fail("E204", f"`{node.span.text}` divides by a quantity", denominator.span, remedy)
            if below.constant == 0:
                raise scope.fail("E204", "this divides by zero", denominator.span, "divide by another number")
            return above * (1 / below.constant)
        case _:
            assert_never(node)


def _one(atom: Atom) -> Affine:
    return Affine(terms=((atom, Fraction(1)),))


def _product(scope: Scope, node: ast.Product, factors: list[Affine]) -> Affine:
    product = Affine(Fraction(1))
    for factor in factors:
        if not factor.terms:
            product = product * factor.constant
        elif not product.terms:
            product = factor * product.constant
        else:
            product = _likelihoods(scope, node, product, factor)
    return product


def _likelihoods(scope: Scope, node: ast.Product, left: Affine, right: Affine) -> Affine:
    """The product of two likelihoods; any other product of two quantities is an error."""
    atoms = [term for side in (left, right) for term in side.terms]
    if left.constant == right.constant == 0 and len(atoms) == 2:
        (one, c1), (other, c2) = atoms
        if isinstance(one, LikelihoodAtom) and isinstance(other, LikelihoodAtom):
            return Affine(terms=((LikelihoodAtom(one.factors + other.factors, one.node), c1 * c2),))
    kinds = " and ".join(dict.fromkeys(kind_of(atom) for atom, _ in atoms))
    message = f"`{node.span.text}` multiplies {kinds}, which is not linear"
    raise scope.fail("E204", message, node.span, "multiply by numbers only; only likelihoods have products")


def _distance(
    scope: Scope, node: ast.Distance, point: ast.Name, target: ast.Name | ast.Row | ast.NearestRow, norm: ast.Norm
) -> DistanceAtom:
    if isinstance(target, ast.Name):
        left, right = scope.pair(point, target, node.span)
        return DistanceAtom(left, right, norm, node)
    scope.table(target.data)
    return DistanceAtom(scope.point(point), target, norm, node)


# --- scores ------------------------------------------------------------------------------------------------------------------


def predicts_probabilities(ensemble: Ensemble) -> bool:
    """True if the outputs themselves are probabilities, one per class (forests that average votes)."""
    return ensemble.link.is_linear and len(ensemble.classes) > 1 and ensemble.n_outputs == len(ensemble.classes)


def class_index(scope: Scope, point: int, label: ast.Label) -> int:
    """The position of a class, given by its name or its number."""
    classes = scope.model(point).ensemble.classes
    if not classes:
        raise scope.fail("E219", "a regressor has no classes", label.span, "write `value(P)`")
    place = position_of_class(classes, label)
    if place is not None:
        return place
    if isinstance(label, ast.Name):
        remedy = did_you_mean(label.text, [str(c) for c in classes])
        raise scope.fail("E105", f"the model has no class `{label.text}`", label.span, remedy)
    known = ", ".join(f"`{c}`" for c in classes[:12])
    raise scope.fail("E105", f"the model has no class `{label.span.text}`", label.span, f"its classes are {known}")


def position_of_class(classes: Sequence[str | int], label: ast.Label) -> int | None:
    """The position of a class among `classes`, given by its name or its number; None if unknown."""
    if isinstance(label, ast.Name):
        names = [str(c) for c in classes]
        return names.index(label.text) if label.text in names else None
    # If some class name is a number, even as text, numbers are names and never positions.
    numbers: Mapping[Fraction, int] = {n: i for i, c in enumerate(classes) if (n := decimal_of(str(c))) is not None}
    numbers = numbers or {Fraction(i): i for i in range(len(classes))}
    return numbers.get(label.value)


def score(scope: Scope, node: ast.Prob | ast.Margin | ast.ValueOf) -> Affine:
    """A margin, a probability or a prediction as a linear form of scores, or through its link."""
    point = scope.point(node.point)
    match node:
        case ast.Margin(label=label):
            return _one(ScoreAtom(point, _output(scope, point, label, node)))
        case ast.Prob(label=label):
            return _probability(scope, point, label, node)
        case ast.ValueOf():
            return _value(scope, point, node.span)
        case _:
            assert_never(node)


def _output(scope: Scope, point: int, label: ast.Label | None, node: ast.Margin) -> int:
    ensemble = scope.model(point).ensemble
    name = node.point.text
    if (refusal := ensemble.link.refuse_margin(name)) is not None:
        message, remedy = refusal
        raise scope.fail("E219", message, node.span, remedy)
    if ensemble.n_outputs == 1:
        if label is not None:
            message = "the model has one score, which belongs to no class"
            raise scope.fail("E208", message, label.span, f"write `margin({name})`, positive for the second class")
        return 0
    if label is None:
        shown = ensemble.classes[0] if ensemble.classes else 0
        message = f"the model has {ensemble.n_outputs} scores"
        raise scope.fail("E207", message, node.span, f"name one: `margin({name}, {shown})`")
    if ensemble.classes:
        return class_index(scope, point, label)
    if isinstance(label, ast.Name) or label.value not in range(ensemble.n_outputs):
        message = f"the model has no output `{label.span.text}`"
        raise scope.fail("E105", message, label.span, f"use a number from 0 to {ensemble.n_outputs - 1}")
    return int(label.value)


def _probability(scope: Scope, point: int, label: ast.Label | None, node: ast.Prob) -> Affine:
    ensemble = scope.model(point).ensemble
    name = node.point.text
    if ensemble.task in (Task.REGRESSION, Task.RANKING) or not ensemble.classes:
        raise scope.fail(
            "E201", "the model is a regressor: it predicts no probability", node.span, f"write `value({name})`"
        )
    if ensemble.link.votes:
        message, remedy = ensemble.link.refuse_probability(name)
        raise scope.fail("E219", message, node.span, remedy)
    if label is None and len(ensemble.classes) > 2:
        message = f"the model has {len(ensemble.classes)} classes"
        raise scope.fail("E207", message, node.span, f"name one: `prob({name}, {ensemble.classes[0]})`")
    wanted = 1 if label is None else class_index(scope, point, label)
    if predicts_probabilities(ensemble):
        return _one(ScoreAtom(point, wanted))
    found = ensemble.link.probability_of(ensemble, wanted)
    if found is None:
        message, remedy = ensemble.link.refuse_probability(name)
        raise scope.fail("E219", message, node.span, remedy)
    output, from_one = found
    chance = _one(LinkedAtom(point, output, ensemble.link))
    return Affine(Fraction(1)) - chance if from_one else chance


def _value(scope: Scope, point: int, span: Span) -> Affine:
    ensemble = scope.model(point).ensemble
    if ensemble.task in (Task.BINARY, Task.MULTICLASS):
        remedy = "write `prob(P)`, `margin(P)` or `class(P) = CLASS`"
        raise scope.fail("E202", "the model is a classifier: it predicts a class, not a value", span, remedy)
    if ensemble.n_outputs != 1:
        message = f"the model predicts {ensemble.n_outputs} values at once"
        raise scope.fail("E219", message, span, "write `margin(P, NUMBER)` for one of them")
    if ensemble.link.is_linear:
        return _one(ScoreAtom(point, 0))
    return _one(LinkedAtom(point, 0, ensemble.link))
