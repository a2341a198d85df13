"""Expands `for each` and the shorthands `sensitive` and `increasing` to plain `find` questions (syntax trees).

`for each f in ..` expands to one question per choice, named NAME[choice]; `sensitive` becomes the `find` that defines it in
docs/language.md, with points `a` and `b`. New nodes keep the source location of the words that they replace, so that messages
about an expansion refer to the text.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import combinations, permutations, product
from typing import Any, TypeVar, cast

from treesens.binder.declarations import Declarations, Unbound
from treesens.compiler.base.diagnostics import Span
from treesens.compiler.model import Ensemble, Task
from treesens.grammar.constructs.avoid import Avoid
from treesens.grammar.tree import ast

N = TypeVar("N", bound=ast.Node)

CAVITY_WIDTH = 3
"""Width of the cavities avoided by `near D using cavities`."""


@dataclass(frozen=True)
class Choice:
    """One question of a sweep: its name suffix and its body."""

    labels: tuple[str, ...]
    body: ast.Body

    def name(self, query: ast.Query) -> str:
        return f"{query.name.text}[{', '.join(self.labels)}]" if self.labels else query.name.text


# --- for each ----------------------------------------------------------------------------------------------------------------


def choices(found: Declarations, query: ast.Query, features: Sequence[str]) -> Iterator[Choice]:
    """The questions of a query after its `for each` is expanded."""
    if not query.sweeps:
        yield Choice((), query.body)
        return
    _check_parameters(found, query, features)
    for picked in product(*(list(_picks(found, sweep, features)) for sweep in query.sweeps)):
        meaning = {key: names for pick in picked for key, names in pick.items()}
        labels = tuple("+".join(n.text for names in pick.values() for n in names) for pick in picked)
        yield Choice(labels, substitute(found, query.body, meaning))


def _check_parameters(found: Declarations, query: ast.Query, features: Sequence[str]) -> None:
    used = set(_names(query.body))
    seen: set[str] = set()
    broken = False
    for sweep in query.sweeps:
        for parameter in sweep.parameters:
            if parameter.text in features or parameter.text in seen:
                what = "a feature" if parameter.text in features else "another parameter"
                found.fail("E114", f"the parameter `{parameter.text}` hides {what}", parameter.span, "rename it")
                broken = True
            elif parameter.text not in used:
                message = f"the parameter `{parameter.text}` does not occur in the query"
                found.fail("E113", message, parameter.span, "use the name after `except` or `to`, or remove the loop")
                broken = True
            seen.add(parameter.text)
    if broken:
        raise Unbound


def _names(node: object) -> Iterator[str]:
    """All feature names in a tree."""
    if isinstance(node, ast.Features):
        yield from (name.text for name in node.names)
    elif isinstance(node, ast.FeatureOf):
        yield node.feature.text
    elif isinstance(node, tuple):
        for item in node:
            yield from _names(item)
    elif isinstance(node, ast.Node):
        for field in dataclasses.fields(node):
            yield from _names(getattr(node, field.name))


def _picks(
    found: Declarations, sweep: ast.Each, features: Sequence[str]
) -> Iterator[Mapping[str, tuple[ast.Name, ...]]]:
    """Yields the features for each parameter, choice by choice."""
    parameters = [p.text for p in sweep.parameters]
    named = [ast.Name(feature, span=sweep.span) for feature in features]
    if sweep.choices == "features":
        groups: list[tuple[ast.Name, ...]] = [(name,) for name in named]
    elif sweep.choices == "pairs":
        groups = [tuple(pair) for pair in combinations(named, 2)]
    elif sweep.choices == "protected":
        said = {name for model in found.models.values() if model is not None for name in model.meaning.protected}
        groups = [(name,) for name in named if name.text in said]
        if not groups:
            raise found.fail(
                "E225",
                "no feature is protected",
                sweep.span,
                'write protected = ["sex"] in treesens.toml next to the model',
            )
    else:
        groups = [item.names for item in sweep.choices]
    for group in groups:
        if len(parameters) == 1:
            yield {parameters[0]: group}
        elif len(parameters) == len(group):
            yield {parameter: (name,) for parameter, name in zip(parameters, group, strict=True)}
        else:
            message = f"{len(parameters)} parameters cannot stand for {len(group)} feature{'s' * (len(group) != 1)}"
            raise found.fail("E221", message, sweep.span, "name one feature per parameter in each choice")


def substitute(found: Declarations, node: N, meaning: Mapping[str, tuple[ast.Name, ...]]) -> N:
    """The tree with parameters replaced by their features. E221 if a one-feature parameter stands for several features."""

    def changed(item: object) -> object:
        if isinstance(item, ast.Features):
            names = [part for name in item.names for part in meaning.get(name.text, (name,))]
            # The location of the parameter is kept, since readers look there and not at the choice.
            return dataclasses.replace(item, names=tuple(dict.fromkeys(names)))
        if isinstance(item, ast.FeatureOf) and item.feature.text in meaning:
            names = list(meaning[item.feature.text])
            if len(names) != 1:
                message = f"`{item.feature.text}` stands for {len(names)} features here"
                raise found.fail("E221", message, item.feature.span, "name two parameters: `for each f, g in pairs`")
            return dataclasses.replace(item, feature=ast.Name(names[0].text, span=item.feature.span))
        if isinstance(item, tuple):
            return tuple(changed(part) for part in item)
        if isinstance(item, ast.Node):
            names_of_parts = [f.name for f in dataclasses.fields(item) if f.name != "span"]
            parts: dict[str, Any] = {name: changed(getattr(item, name)) for name in names_of_parts}
            return dataclasses.replace(item, **parts)
        return item

    return cast("N", changed(node))


# --- sensitive ---------------------------------------------------------------------------------------------------------------


def desugar(found: Declarations, node: ast.Sensitive, ensemble: Ensemble) -> list[tuple[str, ast.Find]]:
    """The `find` of a shorthand; if a multiclass question names no class, one `find` for every ordered pair of classes.

    Each `find` is returned with the suffix of its question's name: empty, or `c1->c2`.
    """
    writer = _Writer(found, node, ensemble)
    if ensemble.task is Task.MULTICLASS and node.flip is None:
        labels = [class_label(c, node.span) for c in ensemble.classes]
        pairs = list(permutations(zip(ensemble.classes, labels, strict=True), 2))
        return [(f"{c1}->{c2}", writer.find(writer.flip(one, two))) for (c1, one), (c2, two) in pairs]
    if node.flip is not None:
        return [("", writer.find(writer.flip(node.flip.source, node.flip.target)))]
    return [("", writer.find(writer.gap()))]


def desugar_monotone(found: Declarations, node: ast.Monotone, ensemble: Ensemble) -> ast.Find:
    """The `find` of `expect increasing(M, F)`: a pair in which the point with the higher value has the lower score."""
    where = node.span
    low, high = ast.Name("a", span=where), ast.Name("b", span=where)
    feature, *others = node.features.names
    if others:
        remedy = "check one feature at a time: `for each f in {..}`"
        raise found.fail("E219", "monotonicity is defined for a single feature", node.features.span, remedy)
    values = [ast.FeatureOf(point, feature, span=feature.span) for point in (low, high)]
    scores = [_score(ensemble, point, node.label, where) for point in (low, high)]
    constraints = (
        ast.PointsEqual(low, high, node.features, span=where),
        ast.Comparison(values[0], "<=", values[1], span=feature.span),
        ast.Comparison(scores[0], ">" if node.direction == "increasing" else "<", scores[1], span=where),
    )
    points = tuple(ast.Point(name, node.model, span=where) for name in (low, high))
    return ast.Find(points, constraints, expect=node.expect, span=where)


def _score(ensemble: Ensemble, point: ast.Name, label: ast.Label | None, span: Span) -> ast.Expression:
    """The quantity to be monotone: a regressor's value, the probability for a mean of models, else the raw score."""
    if ensemble.task in (Task.REGRESSION, Task.RANKING):
        return ast.ValueOf(point, span=span)
    if ensemble.link.averages:
        return ast.Prob(point, label, span=span)
    return ast.Margin(point, label, span=span)


def class_label(label: str | int, span: Span) -> ast.Label:
    """A model's class in the language's syntax."""
    return ast.Name(label, span=span) if isinstance(label, str) else _number(label, span)


def _number(value: int | Fraction, span: Span) -> ast.Number:
    return ast.Number(Fraction(value), span=span)


class _Writer:
    """Creates the nodes of an expansion."""

    def __init__(self, found: Declarations, node: ast.Sensitive, ensemble: Ensemble) -> None:
        self.found, self.node, self.ensemble = found, node, ensemble
        self.span = node.span
        self.a, self.b = ast.Name("a", span=self.span), ast.Name("b", span=self.span)

    def find(self, scores: tuple[ast.Formula, ...]) -> ast.Find:
        node, near = self.node, self.node.near
        points = tuple(ast.Point(name, node.model, span=self.span) for name in (self.a, self.b))
        constraints = (ast.PointsEqual(self.a, self.b, node.features, span=node.features.span), *scores)
        objective = None
        if near is not None and near.using in ("cavities", "both"):
            width = ast.Whole(CAVITY_WIDTH, span=near.span)
            constraints += (Avoid((self.a, self.b), near.data, width, span=near.span),)
        if near is not None and near.using in ("likelihood", "both"):
            factors = tuple(ast.Likelihood(point, near.data, span=near.span) for point in (self.a, self.b))
            objective = ast.Objective("maximize", ast.Product(factors, span=near.span), span=near.span)
        if near is not None and near.using == "distance":
            row = ast.NearestRow(near.data, span=near.data.span)
            objective = ast.Objective("minimize", ast.Distance(self.a, row, "l2", span=near.span), span=near.span)
        return ast.Find(points, constraints, objective, node.top, node.share, node.expect, span=self.span)

    def gap(self) -> tuple[ast.Formula, ...]:
        """The two scores are on different sides of the decision threshold or, for a regressor, far apart."""
        node = self.node
        self._reject(node.factor, "factor")
        if node.gap is not None and node.margin is not None:
            raise self.found.fail("E217", "`gap` and `margin` set one bound in two units", node.margin.span, "keep one")
        if node.margin is not None:
            m = self._positive(node.margin)
            low = ast.Number(-m.value, span=m.span)
            return (
                ast.Comparison(ast.Margin(self.a, span=m.span), ">=", m, span=m.span),
                ast.Comparison(ast.Margin(self.b, span=m.span), "<=", low, span=m.span),
            )
        if self.ensemble.task in (Task.REGRESSION, Task.RANKING):
            if node.gap is None:
                remedy = "add `gap G`, the minimum difference of the two predictions"
                raise self.found.fail("E212", "a regressor has no decision that could flip", node.span, remedy)
            if node.gap.span.text.endswith("%"):
                raise self.found.fail("E212", "a gap of values is not a percentage", node.gap.span, "write a number")
            g = self._positive(node.gap)
            a, b = (ast.ValueOf(point, span=g.span) for point in (self.a, self.b))
            difference = ast.Sum((a, ast.Negate(b, span=g.span)), span=g.span)
            return (ast.Comparison(difference, ">=", g, span=g.span),)
        if node.gap is None:
            first, second = (class_label(c, node.span) for c in self.ensemble.classes)
            return ast.ClassIs(self.a, second, span=node.span), ast.ClassIs(self.b, first, span=node.span)
        g = self._below_half(node.gap)
        half = Fraction(1, 2)
        return (
            ast.Comparison(ast.Prob(self.a, span=g.span), ">=", _number(half + g.value, g.span), span=g.span),
            ast.Comparison(ast.Prob(self.b, span=g.span), "<=", _number(half - g.value, g.span), span=g.span),
        )

    def flip(self, source: ast.Label, target: ast.Label) -> tuple[ast.Formula, ...]:
        """`class(a) = C1 by factor g` and `class(b) = C2 by factor g`; with two classes, a gap is a bound on probabilities."""
        node = self.node
        if source == target:
            raise self.found.fail("E217", "the two classes are the same", target.span, "name two different classes")
        if node.gap is not None:
            if self.ensemble.task is Task.MULTICLASS:
                message = "a gap bounds probabilities around 0.5, but this model has more than two classes"
                raise self.found.fail("E219", message, node.gap.span, "write `factor G`, a ratio of probabilities")
            g = self._below_half(node.gap)
            level = _number(Fraction(1, 2) + g.value, g.span)
            return (
                ast.Comparison(ast.Prob(self.a, source, span=g.span), ">=", level, span=g.span),
                ast.Comparison(ast.Prob(self.b, target, span=g.span), ">=", level, span=g.span),
            )
        by = {"factor": node.factor, "margin": node.margin}
        return (
            ast.ClassIs(self.a, source, **by, span=source.span),
            ast.ClassIs(self.b, target, **by, span=target.span),
        )

    def _reject(self, clause: ast.Number | None, word: str) -> None:
        if clause is not None:
            remedy = "write `gap G` or `margin M`, or name the classes: `from C1 to C2`"
            raise self.found.fail("E214", f"`{word}` compares classes, but none is named", clause.span, remedy)

    def _positive(self, number: ast.Number) -> ast.Number:
        if number.value <= 0:
            raise self.found.fail("E212", "a gap or margin must be above 0", number.span, "use a positive number")
        return number

    def _below_half(self, number: ast.Number) -> ast.Number:
        if not 0 < number.value < Fraction(1, 2):
            remedy = "use a number such as 0.1; for raw scores, write `margin M` instead"
            if 1 <= number.value < 50:
                remedy += f"; {float(number.value):g} % is {float(number.value) / 100:g}"
            raise self.found.fail("E212", "a gap of probabilities must be above 0 and below 0.5", number.span, remedy)
        return number
