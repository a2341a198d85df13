"""Quantities as noun phrases of English sentences."""

from __future__ import annotations

from collections.abc import Iterable
from typing import assert_never

from treesens.grammar.printing.print_terms import decimal, expression_text
from treesens.grammar.tree import ast


def list_words(parts: Iterable[str], word: str = "and") -> str:
    """`x`, `x and y`, `x, y and z`."""
    items = list(parts)
    return items[0] if len(items) == 1 else f"{', '.join(items[:-1])} {word} {items[-1]}" if items else ""


def label(node: ast.Label) -> str:
    """A class or a category."""
    return node.text if isinstance(node, ast.Name) else decimal(node.value)


def value(node: ast.Expression) -> str:
    """A quantity as a noun phrase; arithmetic is written as a formula."""
    match node:
        case ast.FeatureOf(point, feature):
            return f"{feature.text} of {point.text}"
        case ast.Prob(point, wanted):
            of_class = f" of class {label(wanted)}" if wanted is not None else ""
            return f"the predicted probability{of_class} at {point.text}"
        case ast.Margin(point, wanted):
            of_class = f" of class {label(wanted)}" if wanted is not None else ""
            return f"the raw score{of_class} at {point.text}"
        case ast.ValueOf(point):
            return f"the prediction at {point.text}"
        case ast.ClassOf(point):
            return f"the class of {point.text}"
        case ast.Likelihood(point, data):
            return f"the likelihood of {point.text} among the rows of {data.text}"
        case ast.Typicality(point, data, way):
            by = ", by an isolation forest" if way == "isolation" else ""
            return f"how typical {point.text} is of the rows of {data.text}{by}"
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
