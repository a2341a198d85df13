"""A question as an English sentence, from its syntax tree without shorthand."""

from __future__ import annotations

from collections.abc import Iterable
from typing import assert_never

from treesens.grammar.printing.print_terms import decimal, expression_text
from treesens.grammar.tree import ast

_RELATIONS: dict[ast.Operator, str] = {
    "<": "is below",
    "<=": "is at most",
    "=": "is",
    "!=": "is not",
    ">=": "is at least",
    ">": "is above",
}


def sentence(body: ast.Find | ast.Count) -> str:
    """The question of a body."""
    conditions = list_words([condition(c) for c in body.constraints])
    match body:
        case ast.Find(points, _, objective, top, expect):
            asked = "Is there an input" if len(points) == 1 else "Are there inputs"
            text = f"{asked} {_points(points)} such that {conditions}?"
            if objective is not None:
                size = "large" if objective.sense == "maximize" else "small"
                text += f" Of all, {value(objective.expression)} shall be as {size} as possible."
            if top is not None:
                apart = ", each outside the widened regions of the others," if top.diverse else ""
                text += f" The {top.number.value} best answers{apart} are wanted."
        case ast.Count(data, points, _, expect):
            others = list_words([p.name.text for p in points[1:]])
            exists = f" some {others} exists so that" if others else ""
            text = f"For how many rows of {data.text}, each as {points[0].name.text}, is it true that{exists} {conditions}?"
        case _:
            assert_never(body)
    if expect is not None:
        answer = "no" if expect.verdict == "none" else "yes"
        text += f" The file expects the answer {answer}."
    return text


def list_words(parts: Iterable[str], word: str = "and") -> str:
    """`x`, `x and y`, `x, y and z`."""
    items = list(parts)
    return items[0] if len(items) == 1 else f"{', '.join(items[:-1])} {word} {items[-1]}" if items else ""


def _points(points: tuple[ast.Point, ...]) -> str:
    models = {p.model.text for p in points if p.model is not None}
    if len(models) == 1 and all(p.model is not None for p in points):
        return f"{list_words(p.name.text for p in points)} of the model {models.pop()}"
    return list_words(p.name.text + (f" of the model {p.model.text}" if p.model else "") for p in points)


def _but(varied: ast.Features | None) -> str:
    return f" but {list_words(n.text for n in varied.names)}" if varied is not None else ""


def condition(node: ast.Formula) -> str:
    """One constraint as a clause of a sentence."""
    match node:
        case ast.PointsEqual(left, right, varied):
            return f"{left.text} and {right.text} agree on every feature{_but(varied)}"
        case ast.PointIsRow(point, row, varied):
            return f"{point.text} is row {row.index.value} of {row.data.text} in every feature{_but(varied)}"
        case ast.ClassIs(point, label, factor, margin):
            by = [f"at least {decimal(factor.value)} times as probable"] if factor else []
            by += [f"ahead by a margin of {decimal(margin.value)}"] if margin else []
            ahead = f", {list_words(by)} against every other class" if by else ""
            return f"the model puts {point.text} into class {_label(label)}{ahead}"
        case ast.Comparison(left, operator, right):
            return f"{value(left)} {_RELATIONS[operator]} {value(right)}"
        case ast.InInterval(operand, interval):
            low, high = expression_text(interval.low), expression_text(interval.high)
            ends = [
                f"{end} itself not" for end, open_ in ((low, interval.low_open), (high, interval.high_open)) if open_
            ]
            return f"{value(operand)} lies between {low} and {high}" + (f" ({list_words(ends)})" if ends else "")
        case ast.InSet(operand, values):
            return f"{value(operand)} is {list_words([_label(v) for v in values.values], 'or')}"
        case ast.IsMissing(feature):
            return f"{value(feature)} is missing"
        case ast.Avoid(points, data, width, limit):
            tried = f", of which {limit.value} are looked at" if limit else ""
            return (
                f"{list_words(p.text for p in points)} lie in no box over at most {width.value} features that holds no row "
                f"of {data.text}{tried}"
            )
        case ast.Not(operand):
            return f"it is not so that {condition(operand)}"
        case ast.And(items):
            return list_words([condition(item) for item in items])
        case ast.Or(items):
            return "either " + list_words([condition(item) for item in items], "or")
        case ast.Implies(premise, conclusion):
            return f"if {condition(premise)}, then {condition(conclusion)}"
        case _:
            assert_never(node)


def _label(label: ast.Label) -> str:
    return label.text if isinstance(label, ast.Name) else decimal(label.value)


def value(node: ast.Expression) -> str:
    """A quantity as a noun phrase; arithmetic stays arithmetic."""
    match node:
        case ast.FeatureOf(point, feature):
            return f"{feature.text} of {point.text}"
        case ast.Prob(point, label):
            of_class = f" of class {_label(label)}" if label is not None else ""
            return f"the predicted probability{of_class} at {point.text}"
        case ast.Margin(point, label):
            of_class = f" of class {_label(label)}" if label is not None else ""
            return f"the raw score{of_class} at {point.text}"
        case ast.ValueOf(point):
            return f"the prediction at {point.text}"
        case ast.ClassOf(point):
            return f"the class of {point.text}"
        case ast.Likelihood(point, data):
            return f"the likelihood of {point.text} among the rows of {data.text}"
        case ast.Distance(point, target, norm):
            return f"the {norm} distance of {point.text} to {_target(target)}"
        case ast.Changes(first, second):
            return f"the number of features in which {first.text} and {second.text} differ"
        case ast.Absolute(ast.Sum((left, ast.Negate(right)))):
            return f"the distance between {value(left)} and {value(right)}"
        case ast.Product(factors) if not any(isinstance(f, ast.Number) for f in factors):
            return "the product of " + list_words([value(f) for f in factors])
        case ast.Sum((left, ast.Negate(right))):
            return f"{value(left)} minus {value(right)}"
        case _:
            return expression_text(node)


def _target(target: ast.Name | ast.Row | ast.NearestRow) -> str:
    match target:
        case ast.Name(text):
            return text
        case ast.Row(index, data):
            return f"row {index.value} of {data.text}"
        case ast.NearestRow(data):
            return f"the nearest row of {data.text}"
        case _:
            assert_never(target)
