"""Syntax trees as canonical `.sens` text: `parse(to_text(tree)) == tree` for every tree that has a text.

This module prints declarations and queries; `print_terms.py` prints constraints.
"""

from __future__ import annotations

from typing import assert_never

from treesens.grammar.parsing.parser import parse
from treesens.grammar.printing.print_terms import (
    Unwritable,
    expression_text,
    features_text,
    formula_text,
    interval_text,
    label_text,
    name_text,
    number_text,
    point_name_text,
    string_text,
)
from treesens.grammar.tree import ast

_INDENT = "  "


def to_text(node: ast.File | ast.Declaration | ast.Body | ast.Formula | ast.Expression) -> str:
    """The canonical text of a tree or a part of one. Raises ValueError for names and numbers that have no text."""
    match node:
        case ast.File(declarations):
            return _file(declarations)
        case (
            ast.Model()
            | ast.Data()
            | ast.Feature()
            | ast.OneHot()
            | ast.DomainFrom()
            | ast.Measure()
            | ast.Decision()
            | ast.Query()
            | ast.Include()
            | ast.Let()
            | ast.Define()
        ):
            return _declaration(node)
        case ast.Find() | ast.Count() | ast.Explain() | ast.Sensitive() | ast.Monotone():
            return _body(node, "")
        case (
            ast.PointsEqual()
            | ast.PointIsRow()
            | ast.ClassIs()
            | ast.Comparison()
            | ast.Predicate()
            | ast.Not()
            | ast.And()
            | ast.Or()
            | ast.Implies()
        ):
            return formula_text(node)
        case _:
            return expression_text(node)


def shown_text(node: ast.File | ast.Declaration | ast.Body | ast.Formula | ast.Expression) -> str:
    """The text of a part of a tree for display, or the reason why its names have no text."""
    try:
        return to_text(node)
    except Unwritable as error:
        return f"({error.message})"


def identity(node: ast.File | ast.Declaration | ast.Body) -> str:
    """A text shared by equal nodes: the canonical text, or all fields of a node with unprintable names."""
    try:
        return to_text(node)
    except Unwritable:
        return repr(node)


def _file(declarations: tuple[ast.Declaration, ...]) -> str:
    """The declarations, one per line; queries and groups of one kind are separated by an empty line."""
    lines: list[str] = []
    for index, declaration in enumerate(declarations):
        before = declarations[index - 1] if index else None
        alike = type(before) is type(declaration) or {type(before), type(declaration)} == {ast.Model, ast.Data}
        if before is not None and (isinstance(declaration, ast.Query | ast.Decision) or not alike):
            lines.append("")
        lines.append(_declaration(declaration))
    return "".join(line + "\n" for line in lines)


def _declaration(node: ast.Declaration) -> str:
    match node:
        case ast.Model(name, path, form):
            return f"model {name_text(name)} from {string_text(path.value)}{_option('as', form)}"
        case ast.Data(name, path, label, rows):
            start = f"data {name_text(name)} from {string_text(path.value)}"
            return f"{start}{_option('label', label)}{f' rows {number_text(rows)}' if rows else ''}"
        case ast.Feature(name, kind, stored, missing):
            text = f"feature {name_text(name)}: {_type(kind)}"
            text += f" stored as {interval_text(stored)}" if stored else ""
            return text + (" or missing" if missing else "")
        case ast.OneHot(features):
            return f"onehot {{{', '.join(name_text(f) for f in features)}}}"
        case ast.DomainFrom(data):
            return f"domain from {name_text(data)}"
        case ast.Measure(name, kind, data):
            return f"measure {name_text(name)}: {kind}{_option('of', data)}"
        case ast.Decision():
            return _decision(node)
        case ast.Query():
            return _query(node)
        case ast.Include(path):
            return f"include {string_text(path.value)}"
        case ast.Let(name, value, replaceable):
            return f"{'param' if replaceable else 'let'} {name_text(name)} = {expression_text(value)}"
        case ast.Define(name, parameters, constraints):
            head = f"define {name.text}({', '.join(map(point_name_text, parameters))}) ="
            return f"\n{_INDENT}".join([head, *map(formula_text, constraints)])
        case _:
            assert_never(node)


def _decision(node: ast.Decision) -> str:
    cases = [f"{point_name_text(case.outcome)} when {formula_text(case.condition)}" for case in node.cases]
    lines = [f"decision {name_text(node.name)} of {_points((node.point,))}:", *cases]
    return f"\n{_INDENT}".join([*lines, f"else {point_name_text(node.otherwise)}"])


def _option(word: str, name: ast.Name | None) -> str:
    return f" {word} {name_text(name)}" if name else ""


def _type(kind: ast.FeatureType) -> str:
    match kind:
        case ast.Numeric(word, interval):
            return word + (f" in {interval_text(interval)}" if interval else "")
        case ast.Category(items):
            return f"category {{{', '.join(_category_item(item) for item in items)}}}"
        case _:
            assert_never(kind)


def _category_item(item: ast.CategoryItem) -> str:
    parts = [name_text(item.name)] if item.name else []
    return " = ".join([*parts, number_text(item.value)] if item.value else parts)


def _query(query: ast.Query) -> str:
    lines = [f"query {name_text(query.name)}:"]
    indent = _INDENT
    for sweep in query.sweeps:
        parameters = ", ".join(point_name_text(name) for name in sweep.parameters)
        lines.append(f"{indent}for each {parameters} in {_choices(sweep.choices)}:")
        indent += _INDENT
    return "\n".join([*lines, _body(query.body, indent)])


def _choices(choices: tuple[ast.Features, ...] | str) -> str:
    if isinstance(choices, str):
        return choices
    if isinstance(choices, ast.Range):
        return f"{interval_text(choices.interval)} by {number_text(choices.step)}"
    texts = [features_text(choice) if isinstance(choice, ast.Features) else number_text(choice) for choice in choices]
    return f"{{{', '.join(texts)}}}"


def _body(body: ast.Body, indent: str) -> str:
    match body:
        case ast.Find(points, constraints, objective, top, share, expect):
            head = f"{indent}find {_points(points)}"
            lines = [f"{head} such that", *_conjuncts(constraints, indent)] if constraints else [head]
            if objective:
                lines.append(f"{indent}{objective.sense} {expression_text(objective.expression)}")
            lines += [indent + text for text in _tail(top, share, expect)]
            return "\n".join(lines)
        case ast.Count(data, points, constraints, expect):
            head = f"{indent}count rows of {name_text(data)} as {_points(points)} such that"
            return "\n".join([head, *_conjuncts(constraints, indent), *(indent + t for t in _tail(None, None, expect))])
        case ast.Explain():
            return indent + _explain(body)
        case ast.Sensitive():
            return indent + _sensitive(body)
        case ast.Monotone():
            return indent + _monotone(body)
        case _:
            assert_never(body)


def _conjuncts(constraints: tuple[ast.Formula, ...], indent: str) -> list[str]:
    return [f"{indent}{_INDENT}{formula_text(constraint)}" for constraint in constraints]


def _points(points: tuple[ast.Point, ...]) -> str:
    """The points: `a, b in m` if both points are in one model."""
    models = {point.model for point in points}
    shared = next(iter(models)) if len(models) == 1 else None
    if shared is not None:
        return f"{', '.join(point_name_text(p.name) for p in points)} in {name_text(shared)}"
    if len(points) > 1 and points[0].model is None and points[-1].model is not None:
        raise ValueError("a text cannot assign a model to the last point only")
    return ", ".join(point_name_text(p.name) + _option("in", p.model) for p in points)


def _tail(top: ast.Top | None, share: ast.Name | None, expect: ast.Expect | ast.ExpectShare | None) -> list[str]:
    parts = [f"top {number_text(top.number)}{' diverse' if top.diverse else ''}"] if top else []
    parts += [f"share of {name_text(share)}"] if share else []
    match expect:
        case ast.Expect(verdict):
            parts.append(f"expect {verdict}")
        case ast.ExpectShare(operator, bound):
            parts.append(f"expect share {operator} {number_text(bound)}")
    return parts


def _explain(body: ast.Explain) -> str:
    parts = [f"explain row {number_text(body.row.index)} of {name_text(body.row.data)}{_option('in', body.model)}"]
    parts += [f"without {features_text(body.without)}"] if body.without else []
    parts += ["smallest"] if body.smallest else []
    return " ".join([*parts, *_tail(None, None, body.expect)])


def _monotone(body: ast.Monotone) -> str:
    label = "" if body.label is None else f", {label_text(body.label)}"
    return f"expect {body.direction}({name_text(body.model)}, {features_text(body.features)}{label})"


def _sensitive(body: ast.Sensitive) -> str:
    parts = ["sensitive"]
    if body.model:
        parts.append(name_text(body.model, but="to"))
    parts.append(f"to {features_text(body.features)}")
    for word, number in (("gap", body.gap), ("margin", body.margin)):
        if number:
            parts.append(f"{word} {number_text(number)}")
    if body.flip:
        parts.append(f"from {label_text(body.flip.source)} to {label_text(body.flip.target)}")
    if body.factor:
        parts.append(f"factor {number_text(body.factor)}")
    if body.near:
        using = "" if body.near.using == "both" else f" using {body.near.using}"
        parts.append(f"near {name_text(body.near.data)}{using}")
    return " ".join([*parts, *_tail(body.top, body.share, body.expect)])


def question_text(query: ast.Query) -> str:
    """The text of a query as it was read; the canonical text if names were replaced in it."""
    return shown_text(query) if query.expanded else query.span.text


def placed(file: ast.File, name: str) -> ast.File:
    """The tree parsed from its own text, so that messages can show lines of the text.

    A tree whose names contain a backquote or a line break has no text, and is returned unchanged.
    """
    try:
        text = to_text(file)
    except Unwritable:
        return file
    return parse(text, name)
