"""A question as an English sentence, from its syntax tree without shorthand."""

from __future__ import annotations

from typing import assert_never

from treesens.grammar.printing.phrases import label, list_words, value
from treesens.grammar.printing.print_terms import decimal
from treesens.grammar.tree import ast

_RELATIONS: dict[ast.Operator, str] = {
    "<": "is below",
    "<=": "is at most",
    "=": "is",
    "!=": "is not",
    ">=": "is at least",
    ">": "is above",
}


def sentence(body: ast.Find | ast.Count | ast.Explain) -> str:
    """The question that a body states."""
    match body:
        case ast.Find(points, constraints, objective, top, share, expect):
            text = ""
            if constraints:
                asked = "Is there an input" if len(points) == 1 else "Are there inputs"
                text = f"{asked} {_points(points)} such that {list_words([condition(c) for c in constraints])}?"
            if objective is not None:
                size = "large" if objective.sense == "maximize" else "small"
                if not constraints:
                    kind = "input" if len(points) == 1 else "inputs"
                    text = f"Which {kind} {_points(points)} are wanted?"
                text += f" Of all, {value(objective.expression)} shall be as {size} as possible."
            if top is not None:
                apart = ", each outside the widened regions of the others," if top.diverse else ""
                text += f" The {top.number.value} best answers{apart} are wanted."
            if share is not None:
                text += f" Of how large a share of {share.text} is it true?"
        case ast.Explain(row, model, without, smallest, expect):
            few = "as few features as possible" if smallest else "features, none of which can be left out,"
            barred = f", none of them {list_words((n.text for n in without.names), 'or')}," if without else ""
            seen = f" by the model {model.text}" if model else ""
            about = f"row {row.index.value} of {row.data.text}{seen}"
            text = f"Which are {few}{barred} whose values alone decide the class of {about}?"
        case ast.Count(data, points, constraints, expect):
            conditions = list_words([condition(c) for c in constraints])
            others = list_words([p.name.text for p in points[1:]])
            exists = f" some {others} exists so that" if others else ""
            text = f"For how many rows of {data.text}, each as {points[0].name.text}, is it true that{exists} {conditions}?"
        case _:
            assert_never(body)
    if isinstance(expect, ast.ExpectShare):
        text += f" The file expects a share that {_RELATIONS[expect.operator]} {decimal(expect.bound.value)}."
    elif expect is not None:
        answer = "no" if expect.verdict == "none" else "yes"
        text += f" The file expects the answer {answer}."
    return text


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
        case ast.ClassIs(point, wanted, factor, margin):
            by = [f"at least {decimal(factor.value)} times as probable"] if factor else []
            by += [f"ahead by a margin of {decimal(margin.value)}"] if margin else []
            ahead = f", {list_words(by)} against every other class" if by else ""
            return f"the model puts {point.text} into class {label(wanted)}{ahead}"
        case ast.Comparison(left, operator, right):
            return f"{value(left)} {_RELATIONS[operator]} {value(right)}"
        case ast.Predicate():
            return node.english()
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
