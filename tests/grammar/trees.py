"""Random well-formed syntax trees, as hypothesis strategies: every tree here is one that some text gives."""

from __future__ import annotations

import sys
from fractions import Fraction
from typing import Any

from hypothesis import strategies as st

from tests.grammar.constructs import CONSTRUCTS
from treesens.grammar.constructs.registry import functions
from treesens.grammar.parsing.terminals import keywords
from treesens.grammar.tree import ast

Strategy = st.SearchStrategy[Any]

_plain = st.sampled_from(
    ["a", "b", "x1", "age", "größe", "Ünï_9", "_", *sorted(keywords()), *functions(), "l2", "width"]
)
_odd = st.text(
    st.characters(exclude_categories=("Cs", "Cc", "Zl", "Zp"), exclude_characters="`\x85"), min_size=1, max_size=8
)
names = st.one_of(_plain, _plain, _odd).map(ast.Name)
numbers = st.builds(
    lambda digits, exponent: ast.Number(Fraction(digits) * Fraction(10) ** exponent),
    st.integers(-(10**6), 10**6),
    st.integers(-30, 30),
)
wholes = st.integers(0, 10**9).map(ast.Whole)
bounds = st.one_of(numbers, st.booleans().map(ast.Infinity))
intervals = st.builds(ast.Interval, bounds, bounds, st.booleans(), st.booleans())
labels = st.one_of(names, numbers)
texts = st.text(
    st.characters(exclude_categories=("Cs", "Cc", "Zl", "Zp"), exclude_characters='"\x85'), max_size=12
).map(ast.Text)


def several(items: Strategy, low: int = 1, high: int = 4) -> Strategy:
    return st.lists(items, min_size=low, max_size=high).map(tuple)


features = several(names).map(ast.Features)
rows = st.builds(ast.Row, wholes, names)
features_of = st.builds(ast.FeatureOf, names, names)
quantities = st.one_of(
    numbers,
    st.just(ast.Infinity(False)),
    features_of,
    st.builds(ast.Prob, names, st.none() | labels),
    st.builds(ast.Margin, names, st.none() | labels),
    st.builds(ast.ValueOf, names),
    st.builds(ast.ClassOf, names),
    st.builds(ast.Likelihood, names, names),
    st.builds(ast.Typicality, names, names, st.sampled_from([None, "chow-liu", "isolation"])),
    st.builds(ast.Changes, names, names),
    st.builds(
        ast.Distance,
        names,
        st.one_of(names, rows, names.map(ast.NearestRow)),
        st.sampled_from(["l0", "l1", "l2", "linf"]),
    ),
)


def _negated(operand: Any) -> Any:
    match operand:
        case ast.Number(value):
            return ast.Number(-value)
        case ast.Infinity(negative):
            return ast.Infinity(not negative)
        case ast.Negate(inner):
            return inner
    return ast.Negate(operand)


expressions = st.recursive(
    quantities,
    lambda inner: st.one_of(
        inner.map(_negated),
        inner.map(ast.Absolute),
        several(inner, 2, 3).map(ast.Sum),
        several(inner, 2, 3).map(ast.Product),
        st.builds(ast.Quotient, inner, inner),
    ),
    max_leaves=6,
)


def _comparison(left: Any, operator: str, right: Any) -> Any:
    """A class that equals a number is a `ClassIs`; a bare name is a value of a feature or a class only."""
    if isinstance(left, ast.ClassOf) and operator == "=" and isinstance(right, ast.Name | ast.Number):
        return ast.ClassIs(left.point, right)
    if isinstance(right, ast.Name) and not isinstance(left, ast.FeatureOf | ast.ClassOf):
        left = ast.FeatureOf(ast.Name("a"), ast.Name("x"))
    return ast.Comparison(left, operator, right)  # type: ignore[arg-type]


atoms = st.one_of(
    st.builds(ast.PointsEqual, names, names, st.none() | features),
    st.builds(ast.PointIsRow, names, rows, st.none() | features),
    st.builds(ast.ClassIs, names, labels, st.none() | numbers, st.none() | numbers),
    st.builds(_comparison, expressions, st.sampled_from(["<", "<=", "=", "!=", ">=", ">"]), expressions | names),
    *(construct.trees(sys.modules[__name__]) for construct in CONSTRUCTS.values()),
)
formulas = st.recursive(
    atoms,
    lambda inner: st.one_of(
        inner.map(ast.Not),
        several(inner, 2, 3).map(ast.And),
        several(inner, 2, 3).map(ast.Or),
        st.builds(ast.Implies, inner, inner),
    ),
    max_leaves=6,
)

objectives = st.builds(ast.Objective, st.sampled_from(["maximize", "minimize"]), expressions)
tops = st.builds(ast.Top, wholes, st.booleans())
expects = st.sampled_from(["none", "some"]).map(ast.Expect)
points = st.one_of(
    several(st.builds(ast.Point, names), 1, 2),
    several(st.builds(ast.Point, names, names), 1, 2),
    st.builds(lambda p, q, m: (ast.Point(p, m), ast.Point(q)), names, names, names),
)
parts = st.integers(0, 10_000).map(lambda n: ast.Number(Fraction(n, 10_000)))
shares = st.builds(ast.ExpectShare, st.sampled_from(["<", "<=", ">", ">="]), parts)
finds = (
    st.builds(
        ast.Find, points, several(formulas), st.none() | objectives, st.none() | tops, st.none(), st.none() | expects
    )
    | st.builds(
        ast.Find, points, several(formulas), st.none() | objectives, st.none(), names, st.none() | expects | shares
    )
    | st.builds(ast.Find, points, st.just(()), objectives, st.none() | tops, st.none(), st.none() | expects)
)
counts = st.builds(ast.Count, names, points, several(formulas), st.none() | expects)
explanations = st.builds(
    ast.Explain,
    st.builds(ast.Row, wholes, names),
    st.none() | names,
    st.none() | features,
    st.booleans(),
    st.none() | expects,
)
sensitives = st.builds(
    ast.Sensitive,
    st.none() | names,
    features,
    st.none() | numbers,
    st.none() | numbers,
    st.none() | st.builds(ast.Flip, labels, labels),
    st.none() | numbers,
    st.none() | st.builds(ast.Near, names, st.sampled_from(["likelihood", "cavities", "both", "distance"])),
    st.none() | tops,
    st.none(),
    st.none() | expects,
)
monotone = st.builds(
    ast.Monotone,
    st.sampled_from(["increasing", "decreasing"]),
    names,
    st.builds(ast.Features, st.tuples(names)),
    st.none() | labels,
)
measures = st.builds(ast.Measure, names, st.sampled_from(["uniform", "cells"]), st.none()) | st.builds(
    ast.Measure, names, st.sampled_from(["marginals", "chow-liu", "rows"]), names
)
decisions = st.builds(
    ast.Decision,
    names,
    st.builds(ast.Point, names, st.none() | names),
    several(st.builds(ast.Case, names, formulas), 1, 3),
    names,
)
parameters = st.sampled_from(["f", "g", "h"]).map(ast.Name)
sweeps = st.builds(ast.Each, several(parameters, 1, 2), st.sampled_from(["features", "pairs"]) | several(features))
queries = st.builds(
    ast.Query,
    names,
    st.one_of(finds, counts, explanations, sensitives, monotone),
    st.lists(sweeps, max_size=2).map(tuple),
)

category_items = st.one_of(
    st.builds(ast.CategoryItem, names, numbers),
    st.builds(ast.CategoryItem, names, st.none()),
    st.builds(ast.CategoryItem, st.none(), numbers),
)
types = st.one_of(
    st.builds(ast.Numeric, st.sampled_from(["real", "integer"]), st.none() | intervals),
    several(category_items).map(ast.Category),
)
declarations = st.one_of(
    st.builds(ast.Model, names, texts, st.none() | names),
    st.builds(ast.Data, names, texts, st.none() | names, st.none() | wholes),
    st.builds(ast.Feature, names, types, st.none() | intervals, st.booleans()),
    several(names).map(ast.OneHot),
    names.map(ast.DomainFrom),
    measures,
    decisions,
    queries,
    queries,
)
files = several(declarations, 1, 4).map(ast.File)
