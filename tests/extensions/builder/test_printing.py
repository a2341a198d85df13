"""Questions as Python objects: every tree that a text gives can be built, prints, and parses to itself."""

from __future__ import annotations

import math
import operator
import re
import sys
from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings

import treesens as ts
from tests.grammar import trees
from tests.grammar.constructs import construct_of
from treesens.errors import UsageError
from treesens.grammar.parsing.parser import parse
from treesens.grammar.printing.printer import to_text
from treesens.grammar.tree import ast

pytestmark = pytest.mark.filterwarnings("ignore:Generating overly large repr")
budget = settings(max_examples=150, deadline=None, print_blob=True, suppress_health_check=list(HealthCheck))
q = ts.query
OPERATORS: dict[str, Callable[[Any, Any], Any]] = {
    "<": operator.lt,
    "<=": operator.le,
    "=": operator.eq,
    "!=": operator.ne,
    ">=": operator.ge,
    ">": operator.gt,
}
ENDS = {(False, False): "both", (False, True): "left", (True, False): "right", (True, True): "neither"}


def label(node: Any) -> Any:
    match node:
        case None:
            return None
        case ast.Name(text):
            return text
        case ast.Number(value):
            return value
        case ast.Infinity(negative):
            return -math.inf if negative else math.inf
    raise AssertionError(node)


def names(nodes: Any) -> list[str]:
    return [node.text for node in nodes]


def point(node: Any) -> Any:
    return q.point(node.text)


def target(node: Any) -> Any:
    match node:
        case ast.Row(index, data):
            return q.row(index.value, data.text)
        case ast.NearestRow(data):
            return q.nearest_row(data.text)
    return point(node)


def but(thing: Any, varied: Any) -> Any:
    return thing if varied is None else thing.except_(*names(varied.names))


def whole(node: Any) -> Any:
    return None if node is None else node.value


def quantity(node: Any) -> Any:
    """A quantity, by the public functions alone."""
    match node:
        case ast.Number() | ast.Infinity():
            return q.number(label(node))
        case ast.FeatureOf(p, feature):
            return point(p)[feature.text]
        case ast.Prob(p, of):
            return point(p).prob(label(of))
        case ast.Margin(p, of):
            return point(p).margin(label(of))
        case ast.ValueOf(p):
            return point(p).value()
        case ast.ClassOf(p):
            return point(p).predicted_class()
        case ast.Likelihood(p, data):
            return point(p).likelihood(data.text)
        case ast.Typicality(p, data, way):
            return point(p).typicality(data.text, by=way)
        case ast.Changes(one, other):
            return point(one).changes(point(other))
        case ast.Distance(p, to, norm):
            return point(p).distance(target(to), norm)
        case ast.Absolute(operand):
            return abs(quantity(operand))
        case ast.Negate(operand):
            return -quantity(operand)
        case ast.Sum(terms):
            return sum(map(quantity, terms[1:]), start=quantity(terms[0]))
        case ast.Product(factors):
            return math.prod(map(quantity, factors[1:]), start=quantity(factors[0]))
        case ast.Quotient(above, below):
            return quantity(above) / quantity(below)
    raise AssertionError(node)


def constraint(node: Any) -> Any:
    match node:
        case ast.PointsEqual(left, right, varied):
            return point(left) == but(point(right), varied)
        case ast.PointIsRow(p, row, varied):
            return point(p) == but(target(row), varied)
        case ast.ClassIs(p, of, factor, margin):
            won = point(p).predicted_class() == label(of)
            return won.by(factor=label(factor), margin=label(margin)) if factor or margin else won
        case ast.Comparison(left, sign, right):
            return OPERATORS[sign](quantity(left), right.text if isinstance(right, ast.Name) else quantity(right))
        case ast.Predicate():
            return construct_of(node).built(node, sys.modules[__name__])
        case ast.Not(operand):
            return ~constraint(operand)
        case ast.And(items):
            return q.all_of(*map(constraint, items))
        case ast.Or(items):
            return q.any_of(*map(constraint, items))
        case ast.Implies(premise, conclusion):
            return constraint(premise).implies(constraint(conclusion))
    raise AssertionError(node)


def question(node: ast.Query) -> Any:
    match node.body:
        case ast.Find(points, constraints) | ast.Count(_, points, constraints):
            built = [q.point(p.name.text, model=label(p.model)) for p in points]
            count = isinstance(node.body, ast.Count)
            start = q.count(node.body.data.text, *built) if count else q.find(*built)
            made = start.such_that(*map(constraint, constraints)) if constraints else start
        case ast.Explain(row, model, without, smallest):
            made = q.explain(
                row.data.text,
                row.index.value,
                model=label(model),
                without=names(without.names) if without else (),
                smallest=smallest,
            )
        case ast.Sensitive(model, features, gap, margin, flip, factor, near):
            made = q.sensitive(
                label(model),
                names(features.names),
                gap=label(gap),
                margin=label(margin),
                flip=(label(flip.source), label(flip.target)) if flip else None,
                factor=label(factor),
                near=label(near.data) if near else None,
                using=near.using if near else None,
            )
        case ast.Monotone(direction, model, features, wanted):
            made = getattr(q, direction)(label(model), features.names[0].text, label=label(wanted))
    aim, top = getattr(node.body, "objective", None), getattr(node.body, "top", None)
    if aim is not None:
        made = getattr(made, aim.sense)(quantity(aim.expression))
    if top is not None:
        made = made.top(top.number.value, diverse=top.diverse)
    if getattr(node.body, "share", None) is not None:
        made = made.share_of(node.body.share.text)
    match None if isinstance(node.body, ast.Monotone) else node.body.expect:
        case ast.Expect(verdict):
            made = made.expect(verdict)
        case ast.ExpectShare(operator, bound):
            made = made.expect_share(operator, bound.value)
    for sweep in node.sweeps:
        over = sweep.choices if isinstance(sweep.choices, str) else [names(c.names) for c in sweep.choices]
        made = made.for_each(names(sweep.parameters), over)
    return made.named(node.name.text)


def declaration(node: Any) -> Any:
    match node:
        case ast.Query():
            return question(node)
        case ast.Model(name, path, form):
            return q.model(name.text, path.value, format=label(form))
        case ast.Data(name, path, column, rows):
            return q.data(name.text, path.value, label=label(column), rows=whole(rows))
        case ast.OneHot(features):
            return q.onehot(*names(features))
        case ast.DomainFrom(data):
            return q.domain_from(data.text)
        case ast.Measure(name, kind, data):
            return q.measure(name.text, kind, label(data))
        case ast.Decision(name, ast.Point(about, model), cases, otherwise):
            pairs = [(case.outcome.text, constraint(case.condition)) for case in cases]
            return q.decision(name.text, about.text, *pairs, otherwise=otherwise.text, model=label(model))
        case ast.Feature(name, ast.Category(items), _, missing):
            pairs = [(label(i.name), label(i.value)) if i.name and i.value else label(i.name or i.value) for i in items]
            return q.category(name.text, pairs, missing=missing)
        case ast.Feature(name, ast.Numeric(kind, interval), stored, missing):
            make = q.real if kind == "real" else q.integer
            ends: tuple[Any, ...] = (label(interval.low), label(interval.high)) if interval else ()
            inclusive = ENDS[interval.low_open, interval.high_open] if interval else "both"
            unit = (label(stored.low), label(stored.high)) if stored else None
            return make(name.text, *ends, inclusive=inclusive, stored=unit, missing=missing)
    raise AssertionError(node)


def as_python_has_it(node: Any) -> Any:
    """What Python cannot tell apart or the objects refuse: `(x + y) + z` is `x + y + z`, and stored intervals are closed."""
    if isinstance(node, tuple):
        return tuple(map(as_python_has_it, node))
    if not isinstance(node, ast.Node):
        return node
    parts = {name: as_python_has_it(getattr(node, name)) for name in node.__match_args__}
    for kind, part in ((ast.Sum, "terms"), (ast.Product, "factors")):
        if isinstance(node, kind) and isinstance(parts[part][0], kind):
            parts[part] = (*getattr(parts[part][0], part), *parts[part][1:])
    if isinstance(node, ast.Feature):
        stored = parts["stored"]
        category = isinstance(node.type, ast.Category)
        parts["stored"] = None if stored is None or category else ast.Interval(stored.low, stored.high)
    return type(node)(**parts)


@budget
@given(trees.files)
def test_every_tree_can_be_built_prints_and_parses_to_itself(tree: ast.File) -> None:
    tree = as_python_has_it(tree)
    built = q.file(*map(declaration, tree.declarations))
    assert built.node == tree
    assert parse(str(built)) == tree
    assert str(q.parse(str(built))) == str(built) == to_text(tree)


def test_an_example_reads_like_its_text() -> None:
    a, b = q.points("a", "b")
    built = (
        q.find(a, b, model="income")
        .such_that(
            a == b.except_("sex"),
            a.prob() >= 0.6,
            b.prob() <= 0.4,
            abs(a["age"] - b["age"]) <= Decimal("0.05"),
            (a["age"] >= 30) | (a["capital-gain"] < 1) & ~a["sex"].is_in(["Female"]),
            a == q.row(np.int64(3), "people").except_(["age", "sex"]),
            a.margin() <= a["age"],
        )
        .maximize(a.margin() - 2 * b.margin())
        .top(3, diverse=True)
        .named("flip")
    )
    text = """query flip:
  find a, b in income such that
    a = b except sex
    prob(a) >= 0.6
    prob(b) <= 0.4
    abs(a.age - b.age) <= 0.05
    a.age >= 30 or a.`capital-gain` < 1 and a.sex not in {Female}
    a = row 3 of people except {age, sex}
    margin(a) <= a.age
  maximize margin(a) - 2 * margin(b)
  top 3 diverse
"""
    assert str(q.file(built)) == text
    assert q.parse(text).questions[0].node == built.node


A, B = q.points("a", "b")
NAN = float("nan")
WRONG: list[tuple[str, Callable[[], Any]]] = [
    ("`gap` must be a number, not str", lambda: q.sensitive("m", "sex", gap="0.1")),  # type: ignore[arg-type]
    ("`features[1]` must be a name", lambda: q.sensitive("m", ["sex", 3])),  # type: ignore[list-item]
    ("`features` names no feature", lambda: q.sensitive("m", [])),
    ("`using` must be one of .*did you mean `cavities`", lambda: q.sensitive("m", "s", near="d", using="cavity")),  # type: ignore[arg-type]
    ("`using` requires `near`", lambda: q.sensitive("m", "s", using="both")),
    ("`norm` must be one of", lambda: A.distance(B, "l3")),  # type: ignore[arg-type]
    ("`target` must be a point or a row", lambda: A.distance("b", "l1")),  # type: ignore[arg-type]
    ("`width` must be a whole number", lambda: q.avoid_cavities(A, data="d", width=2.5)),  # type: ignore[arg-type]
    ("`index` must be a whole number", lambda: q.row(-1, "d")),
    ("the right side of +` must be a number or a quantity, not Point", lambda: A["x"] + B),  # type: ignore[operator]
    ("the other side of >=` must be a number or a quantity, not str", lambda: A.prob() >= "0.5"),  # type: ignore[operator]
    ("must be a finite number, not float nan.*is_missing", lambda: A["x"] >= NAN),
    ("finitely many decimals, not Fraction", lambda: A["x"] >= Fraction(1, 3)),
    ("must be a number, not bool", lambda: A["x"] >= True),
    ("points can only be compared by `==`.*changes", lambda: A != B),
    ("must be a point or a row, not float 3.0", lambda: A == 3.0),
    ("has no truth value.*x & y", lambda: A["x"] >= 1 and A["x"] <= 2),
    ("has no truth value", lambda: 0 <= A["x"] <= 1),
    ("`constraint 2` must be a constraint, not float", lambda: q.find(A).such_that(A["x"] >= 1, 0.5)),  # type: ignore[arg-type]
    ("no constraints", lambda: q.find(A).such_that()),
    ("`count` takes no `maximize`", lambda: q.count("d", A).maximize(A.margin())),
    ("one or two points, not 3", lambda: q.find(A, B, A)),
    ("`point 1` must be a point, not str", lambda: q.find("a")),  # type: ignore[arg-type]
    ("point 1, `a`, has no model", lambda: q.find(A, q.point("b", model="m"))),
    ("`sensitive` takes no `maximize`", lambda: q.sensitive("m", "s", gap=0.1).maximize(A.margin())),
    ("`verdict` must be one of 'none', 'some'", lambda: q.sensitive("m", "s").expect("never")),  # type: ignore[arg-type]
    ("`name` must be a name that a text can contain", lambda: q.point("a`b")),
    ("`high` is missing", lambda: q.real("x", 1)),
    ("`inclusive` must be one of", lambda: A["x"].between(0, 1, inclusive="all")),  # type: ignore[arg-type]
    ("`part 1` must be a declaration or a question", lambda: q.file("query")),  # type: ignore[arg-type]
]


@pytest.mark.parametrize(("message", "build"), WRONG, ids=[m for m, _ in WRONG])
def test_errors_name_the_wrong_argument(message: str, build: Callable[[], Any]) -> None:
    with pytest.raises(UsageError, match="(?s)" + ".*".join(map(re.escape, message.split(".*")))):
        build()
