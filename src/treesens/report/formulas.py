"""The constraints of a typed question as formulas over cells and raw scores, with exact bounds and their decimals."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from math import isnan
from typing import assert_never

import numpy as np

from treesens.compiler.base.arrays import BoolArray, runs_of
from treesens.compiler.base.floats import NumberType, shortest
from treesens.compiler.query import query as q
from treesens.compiler.query.bounds import LogRational
from treesens.compiler.query.domain import Domain, RealDomain, ValueDomain
from treesens.compiler.query.values import LinearTerm, Term, ValueSum

DIGITS = 12


def number(value: Fraction) -> str:
    """A rational number: exact if this form is short, otherwise with its decimals."""
    if value.denominator == 1:
        return str(value.numerator)
    exact = f"{value.numerator}/{value.denominator}"
    shown = f"{float(value):.{DIGITS}g}"
    if Fraction(shown) == value:
        return shown
    return f"{exact} ≈ {shown}" if len(exact) <= 24 else f"≈ {shown}"


def bound_text(bound: LogRational) -> str:
    """rational + sum of c ln(x), followed by its decimals if the number is irrational."""
    parts = [f"{_coefficient(c)}ln({_plain(a) if isinstance(a, Fraction) else bound_text(a)})" for c, a in bound.logs]
    if not parts:
        return number(bound.rational)
    if bound.rational:
        parts.append(_plain(bound.rational))
    low, high = bound.enclose(80)
    text = " + ".join(parts).replace("+ -", "- ")
    return f"{text} ≈ {float((low + high) / 2):.{DIGITS}g}"


def _plain(value: Fraction) -> str:
    shown = f"{float(value):.6g}"
    return shown if Fraction(shown) == value else f"{value.numerator}/{value.denominator}"


def _coefficient(value: Fraction) -> str:
    return "" if value == 1 else "-" if value == -1 else f"{_plain(value)} · "


def form_text(query: q.Query, form: q.LinearForm) -> str:
    """A linear form: S(a) is the raw sum of leaves and base margin at a, S[k](a) is the sum of output k, and T(a) is a score
    learnt from rows."""
    parts: list[str] = []
    for term in form.scores:
        ensemble = query.models[query.points[term.point].model].ensemble
        output = f"[{_output(ensemble.classes, term.output)}]" if ensemble.n_outputs > 1 else ""
        parts.append(f"{_coefficient(term.coefficient)}S{output}({query.points[term.point].name})")
    parts += [f"cost({query.points[c.point].name}.{query.space.names[c.feature]})" for c in form.costs]
    parts += [
        f"{_coefficient(Fraction(c.coefficient))}changes({query.points[c.left].name}, {query.points[c.right].name})"
        for c in form.changes
    ]
    parts += [
        f"cost({query.points[c.left[0]].name}.{query.space.names[c.left[1]]}, {query.points[c.right[0]].name})"
        for c in form.pairs
    ]
    parts += [f"ladder of {len(form.levels)} levels"] if form.levels else []
    parts += [f"{_coefficient(Fraction(t.coefficient))}T({query.points[t.point].name})" for t in form.forests]
    return (" + ".join(parts) or "0").replace("+ -", "- ")


def _output(classes: tuple[str | int, ...], output: int) -> str:
    return str(classes[output]) if output < len(classes) else str(output)


def constraint_text(query: q.Query, constraint: q.Constraint) -> str:
    """One constraint."""
    names, points = query.space.names, [p.name for p in query.points]
    match constraint:
        case q.SameExcept(left, right, varied):
            rest = f" outside {{{', '.join(names[f] for f in sorted(varied))}}}" if varied else ""
            return f"cell(f, {points[left]}) = cell(f, {points[right]}) for every feature f{rest}"
        case q.CellSet():
            place = f"{points[constraint.point]}.{names[constraint.feature]}"
            return f"{place} ∈ {cells_text(query, constraint.feature, constraint.mask)}"
        case q.AtLeast():
            sign, form = ">" if constraint.strict else "≥", form_text(query, constraint.form)
            if constraint.values:
                scores = form_text(query, q.LinearForm(constraint.form.scores))
                form = f"{scores} + {_values_text(query, constraint.values)}".replace("+ -", "- ")
            return f"{form} {sign} {bound_text(constraint.bound)}"
        case q.ProbabilitySum():
            sign = ">" if constraint.strict else "≥"
            return f"{_sum_of_probabilities(query, constraint)} {sign} {number(constraint.bound)}"
        case q.Difference():
            return _difference_text(query, constraint)
        case ValueSum():
            return _sum_text(query, constraint)
        case q.AvoidBoxes():
            return f"{points[constraint.point]} lies in none of {len(constraint.indptr) - 1:,} empty boxes"
        case q.AvoidCavities():
            width = constraint.cavities.width
            return f"{points[constraint.point]} lies in no box of at most {width} features without a row"
        case q.OneHot():
            members = ", ".join(f"{points[m.point]}.{names[m.feature]}" for m in constraint.members)
            return f"exactly one of {members} is 1"
        case q.AllOf(parts):
            return "(" + " ∧ ".join(constraint_text(query, part) for part in parts) + ")"
        case q.AnyOf(parts):
            return "(" + " ∨ ".join(constraint_text(query, part) for part in parts) + ")"
        case _:
            assert_never(constraint)


def _difference_text(query: q.Query, d: q.Difference) -> str:
    names, points = query.space.names, query.points
    left = f"{_coefficient(d.left_factor)}{points[d.left].name}.{names[d.feature]}"
    right = f"{_coefficient(d.right_factor)}{points[d.right].name}.{names[d.other]}"
    middle = f"{left} - {right}".replace("- -", "+ ")
    low = "" if d.low is None else f"{number(d.low)} {'<' if d.low_strict else '≤'} "
    high = "" if d.high is None else f" {'<' if d.high_strict else '≤'} {number(d.high)}"
    return f"{low}{middle}{high}"


def _sum_text(query: q.Query, relation: ValueSum) -> str:
    return f"{_values_text(query, relation.terms)} {'<' if relation.strict else '≤'} {number(relation.limit)}"


def _values_text(query: q.Query, terms: Sequence[Term]) -> str:
    parts = []
    for term in terms:
        name = f"{query.points[term.point].name}.{query.space.names[term.feature]}"
        if isinstance(term, LinearTerm):
            parts.append(f"{_coefficient(term.factor)}{name}")
            continue
        other = "row" if term.other is None else query.points[term.other].name
        power = "²" if term.power == 2 else ""
        parts.append(f"{_coefficient(term.factor)}d({name}, {other}){power}")
    return " + ".join(parts).replace("+ -", "- ")


def _sum_of_probabilities(query: q.Query, row: q.ProbabilitySum) -> str:
    def form(terms: Sequence[q.ScoreTerm], constant: Fraction) -> str:
        return f"{form_text(query, q.LinearForm(tuple(terms)))}{f' + {_plain(constant)}' if constant else ''}"

    parts = [f"{_coefficient(term.factor)}{term.text(form)}" for term in row.terms]
    return " + ".join(parts).replace("+ -", "- ")


def objective_text(query: q.Query, objective: q.Objective) -> str:
    """The objective in the question's units."""
    word = "maximise" if objective.maximize else "minimise"
    if objective.nearest is not None:
        rows = objective.nearest
        return f"{word} the {rows.norm} distance of {query.points[rows.point].name} to the nearest of {len(rows.index):,} rows"
    if objective.probability is not None:
        form = _sum_of_probabilities(query, objective.probability)
    else:
        form = form_text(query, objective.form)
    scale = "" if objective.unit == 1 else f" · {_plain(objective.unit)}"
    offset = "" if not objective.offset else f" + {_plain(objective.offset)}"
    return f"{word} {objective.kind}: ({form}){scale}{offset}"


def cells_text(query: q.Query, feature: int, mask: BoolArray) -> str:
    """A set of cells by their values."""
    grid = query.space.grid[feature]
    parts: list[str] = []
    low, high = runs_of(mask)
    for first, last in zip(low.tolist(), high.tolist(), strict=True):
        end = last - 1 if last == grid.missing_cell and last > first else last
        if first != grid.missing_cell:
            a, b = grid.interval(first)[0], grid.interval(end)[1]
            parts.append(
                "{" + str(shortest(a, grid.number_type.dtype)) + "}"
                if a == b
                else f"[{_end(a, grid.number_type)}, {_end(b, grid.number_type)}]"
            )
        if last == grid.missing_cell:
            parts.append("missing")
    return " ∪ ".join(parts) or "∅"


def _end(value: float, number_type: NumberType) -> str:
    limit = number_type.max
    return "-max" if value <= -limit else "max" if value >= limit else str(shortest(value, number_type.dtype))


def domain_text(domain: Domain, number_type: np.dtype[np.float32] | np.dtype[np.float64]) -> str:
    """A domain in the syntax of declarations."""
    match domain:
        case RealDomain(low, high, whole, missing, unit):
            word = "integer" if whole else "real"
            limit = float(np.finfo(number_type).max)
            ends = [None if abs(x) >= limit or isnan(x) else str(shortest(x, number_type)) for x in (low, high)]
            text = word if ends == [None, None] else f"{word} in [{ends[0] or '-inf'}, {ends[1] or 'inf'}]"
        case ValueDomain():
            labels = list(dict.fromkeys(map(str, domain.labels)))
            shown = ", ".join(labels[:6]) + (f", … ({len(labels)})" if len(labels) > 6 else "")
            text, missing, unit = f"one of {{{shown}}}", domain.missing, domain.unit
        case _:
            assert_never(domain)
    if unit is not None:
        typed = f"[{_plain(unit.typed_low)}, {_plain(unit.typed_high)}]"
        text += f", {typed} stored as [{_plain(unit.stored_low)}, {_plain(unit.stored_high)}]"
    return text + (" or missing" if missing else "")
