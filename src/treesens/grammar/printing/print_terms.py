"""Names, numbers, expressions and constraints as canonical text, with the minimum of brackets."""

from __future__ import annotations

from fractions import Fraction
from typing import assert_never

from treesens.errors import QueryError
from treesens.grammar.parsing.terminals import keywords
from treesens.grammar.tree import ast
from treesens.visible import PLAIN, RESERVED


class Unwritable(QueryError, ValueError):
    """A name or a file path that the language cannot express."""


def name_text(name: ast.Name, *, but: str = "") -> str:
    """A name in a place where only names occur; quoted unless it is plain, not reserved, and not the word `but`."""
    plain = PLAIN.fullmatch(name.text) and name.text not in RESERVED and name.text != but
    return name.text if plain else _quoted(name.text)


def point_name_text(name: ast.Name) -> str:
    """A name at the start of a conjunct or in an expression; words of the language are quoted there."""
    return name.text if PLAIN.fullmatch(name.text) and name.text not in keywords() else _quoted(name.text)


def _quoted(text: str) -> str:
    if not text or "`" in text or "\n" in text:
        raise Unwritable(
            f"no text can express the name {text[:60]!r}", remedy="rename the feature: one line, no backquotes"
        )
    return f"`{text}`"


def string_text(text: str) -> str:
    """A path in double quotes."""
    if '"' in text or "\n" in text:
        raise Unwritable(f"no text can express the path {text!r}", remedy="rename the file")
    return f'"{text}"'


def decimal(value: Fraction) -> str:
    """The exact decimal form of a number. Raises ValueError for all other numbers, such as 1/3."""
    rest, twos, fives = value.denominator, 0, 0
    while rest % 2 == 0:
        rest, twos = rest // 2, twos + 1
    while rest % 5 == 0:
        rest, fives = rest // 5, fives + 1
    if rest != 1:
        raise ValueError(f"{value} has no finite decimal form")
    places = max(twos, fives)
    digits = str(abs(value.numerator) * 10**places // value.denominator).rjust(places + 1, "0")
    sign = "-" if value < 0 else ""
    if not places:
        return sign + _with_exponent(digits)
    return f"{sign}{digits[:-places]}.{digits[-places:]}"


def _with_exponent(digits: str) -> str:
    """The number, with an exponent if it has many trailing zeros: this text is readable, and short enough for the parser."""
    short = digits.rstrip("0")
    zeros = len(digits) - len(short)
    return f"{short}e{zeros}" if zeros > 20 else digits


def number_text(number: ast.Number | ast.Whole | ast.Constant) -> str:
    """A number, or the name of a number in an unexpanded tree."""
    if isinstance(number, ast.Constant):
        sign = "-" if number.factor < 0 else ""
        return f"{sign}{point_name_text(number.name)}" + (" %" if abs(number.factor) != 1 else "")
    return decimal(Fraction(number.value))


def bound_text(bound: ast.Bound) -> str:
    match bound:
        case ast.Constant():
            return number_text(bound)
        case ast.Number(value):
            return decimal(value)
        case ast.Infinity(negative):
            return "-inf" if negative else "inf"
        case _:
            assert_never(bound)


def interval_text(interval: ast.Interval) -> str:
    left, right = "(" if interval.low_open else "[", ")" if interval.high_open else "]"
    return f"{left}{bound_text(interval.low)}, {bound_text(interval.high)}{right}"


def label_text(label: ast.Label) -> str:
    """A class or a category in a place where only a class or a category can occur."""
    match label:
        case ast.Name():
            return name_text(label)
        case ast.Number() | ast.Constant():
            return number_text(label)
        case _:
            assert_never(label)


def features_text(features: ast.Features) -> str:
    """The features: a single feature without braces, several in braces."""
    texts = [name_text(name) for name in features.names]
    return texts[0] if len(texts) == 1 else f"{{{', '.join(texts)}}}"


# --- expressions ------------------------------------------------------------------------------------------------------


def expression_text(node: ast.Expression) -> str:
    match node:
        case ast.Constant():
            return number_text(node)
        case ast.Number() | ast.Infinity():
            return bound_text(node)
        case ast.Name():
            return point_name_text(node)
        case ast.FeatureOf(point, feature):
            # After a dot every word is a name, including `inf`.
            plain = PLAIN.fullmatch(feature.text)
            return f"{point_name_text(point)}.{feature.text if plain else _quoted(feature.text)}"
        case ast.Prob(point, label):
            return _call("prob", point, label)
        case ast.Margin(point, label):
            return _call("margin", point, label)
        case ast.ValueOf(point):
            return _call("value", point)
        case ast.ClassOf(point):
            return _call("class", point)
        case ast.Likelihood(point, data):
            return _call("likelihood", point, data)
        case ast.Typicality(point, data, way):
            return _call("typicality", point, data)[:-1] + (f", {way})" if way else ")")
        case ast.Changes(first, second):
            return _call("changes", first, second)
        case ast.Distance(point, target, norm):
            return f"distance({point_name_text(point)}, {_target(target)}, {norm})"
        case ast.Absolute(operand):
            return f"abs({expression_text(operand)})"
        case ast.Negate(operand):
            return f"-{_operand(operand, ast.Sum, ast.Product, ast.Quotient)}"
        case ast.Sum(terms):
            return _sum(terms)
        case ast.Product(factors):
            head = _operand(factors[0], ast.Sum, ast.Product)
            return " * ".join([head, *(_operand(f, ast.Sum, ast.Product, ast.Quotient) for f in factors[1:])])
        case ast.Quotient(numerator, denominator):
            above = _operand(numerator, ast.Sum)
            return f"{above} / {_operand(denominator, ast.Sum, ast.Product, ast.Quotient)}"
        case _:
            assert_never(node)


def _call(function: str, point: ast.Name, argument: ast.Label | None = None) -> str:
    return f"{function}({point_name_text(point)}{f', {label_text(argument)}' if argument else ''})"


def _right_side(node: ast.Expression, operator: ast.Operator) -> str:
    """The right side of a comparison: after an equality, a word can only be a value, except for `row` in `row N of DATA`."""
    if isinstance(node, ast.Name) and operator in ("=", "!="):
        return name_text(node, but="row")
    return expression_text(node)


def _target(target: ast.Name | ast.Row | ast.NearestRow) -> str:
    match target:
        case ast.Name():
            return point_name_text(target)
        case ast.Row():
            return _row(target)
        case ast.NearestRow(data):
            return f"nearest row of {name_text(data)}"
        case _:
            assert_never(target)


def _row(row: ast.Row) -> str:
    return f"row {number_text(row.index)} of {name_text(row.data)}"


def _operand(node: ast.Expression, *bracketed: type[ast.Node]) -> str:
    text = expression_text(node)
    return f"({text})" if isinstance(node, bracketed) else text


def _sum(terms: tuple[ast.Expression, ...]) -> str:
    text = _operand(terms[0], ast.Sum)
    for term in terms[1:]:
        match term:
            case ast.Number(value) if value < 0:
                text += f" - {decimal(-value)}"
            case ast.Infinity(True):
                text += " - inf"
            case ast.Negate(operand):
                text += f" - {_operand(operand, ast.Sum)}"
            case ast.Constant(name, factor) if factor < 0:
                text += f" - {number_text(ast.Constant(name, -factor))}"
            case _:
                text += f" + {_operand(term, ast.Sum)}"
    return text


# --- constraints ------------------------------------------------------------------------------------------------------


def formula_text(node: ast.Formula) -> str:
    match node:
        case ast.PointsEqual(left, right, varied):
            return f"{point_name_text(left)} = {point_name_text(right)}{_except(varied)}"
        case ast.PointIsRow(point, row, varied):
            return f"{point_name_text(point)} = {_row(row)}{_except(varied)}"
        case ast.ClassIs(point, label, factor, margin):
            text = f"{_call('class', point)} = {_right_side(label, '=')}"
            text += f" by factor {number_text(factor)}" if factor else ""
            return text + (f" by margin {number_text(margin)}" if margin else "")
        case ast.Comparison(left, operator, right):
            return f"{expression_text(left)} {operator} {_right_side(right, operator)}"
        case ast.Predicate():
            return node.text()
        case ast.Not(ast.Predicate() as operand):
            return operand.negated_text()
        case ast.Not(operand):
            return f"not {_bracketed(operand, ast.And, ast.Or, ast.Implies)}"
        case ast.And(items):
            return " and ".join(_bracketed(item, ast.And, ast.Or, ast.Implies) for item in items)
        case ast.Or(items):
            return " or ".join(_bracketed(item, ast.Or, ast.Implies) for item in items)
        case ast.Implies(premise, conclusion):
            return f"{_bracketed(premise, ast.Implies)} implies {formula_text(conclusion)}"
        case _:
            assert_never(node)


def _except(varied: ast.Features | None) -> str:
    return f" except {features_text(varied)}" if varied else ""


def _bracketed(node: ast.Formula, *bracketed: type[ast.Node]) -> str:
    text = formula_text(node)
    return f"({text})" if isinstance(node, bracketed) else text
