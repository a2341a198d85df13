"""Largest gaps and differences, and ranges, of probabilities that are not functions of one score: one question after another.

A question that is found raises the gap that is reached, and one without an answer lowers the bound. The next one is asked
halfway between the two, or below a question that was left open: there a pair is easier to find.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

from treesens.binder.file import ResolvedQuestion
from treesens.compiler.base.budget import Budget
from treesens.compiler.base.dyadic import nearest_double
from treesens.compiler.base.floats import NumberType, ceil_to, floor_to
from treesens.compiler.base.tolerance import Closeness, Tolerance
from treesens.compiler.model import Ensemble
from treesens.compiler.query.evaluate import holds, inputs_of
from treesens.compiler.query.query import Constraint, ProbabilitySum, Query
from treesens.compiler.result import Certified, ObjectiveValue, Proof, Result, Sense, Verdict
from treesens.extensions.studies.decisions import label_of_class
from treesens.grammar.tree import ast
from treesens.solve.conclude import conclude_found, leave_open
from treesens.solve.options import Options
from treesens.solve.question import answer
from treesens.values.verify import Witness

CLOSE = 1e-6
"""How closely a difference of probabilities is known at best."""
_SHARE = 0.5
"""Of the time that is left, for one question."""
_FIRST_SHARE = 0.4
"""Of the time, for the question whether there is any difference."""
_LEAST = Fraction(1, 1 << 20)
_LEAST_PROBABILITY = Fraction(1, 1 << 24)
"""How closely a probability is looked for."""
_NO_CERTIFICATE = Certified("bound", reason="it rests on many questions about a mean of several models")


@dataclass(frozen=True)
class Halved:
    """What is known: `value` is reached by the witness, no pair reaches more than `bound`. `empty`: there is no pair at all."""

    empty: bool
    value: float | None
    bound: float | None
    closed: bool
    reason: str
    witness: Witness | None
    seconds: float


def halve_gap(
    query: Query, most: Fraction, options: Options, budget: Budget, close: float, *, least: Fraction = _LEAST
) -> Halved:
    """The largest number by which all probabilities of a question can pass their bounds, if it is at most `most`.

    It is known as closely as `close`, a part of it, or `least`, whichever is more.
    """
    start = time.perf_counter()
    value, bound, witness, reason = Fraction(-1), most, None, ""
    asked, below = Fraction(0), most
    tolerance = Tolerance(close)
    while not (budget.over and witness is not None):
        found = answer(_harder(query, asked), options, budget.share(_SHARE).at_least(0.1))
        if found.verdict is Verdict.NONE and asked == 0:
            seconds = time.perf_counter() - start
            return Halved(True, None, None, True, "no pair crosses the threshold", None, seconds)
        if found.verdict is Verdict.NONE:
            bound = below = asked
        elif found.witness is not None:
            witness, value = found.witness, _reached(query, found.witness, asked, bound, least)
            below = max(below, value)
        else:
            reason, below = found.reason, asked
            if witness is None:
                break
        if below - value <= max(least, Fraction(close) * value):
            break
        asked = (value + below) / 2
    seconds = time.perf_counter() - start
    if witness is None:
        return Halved(False, None, None, False, reason or budget.reason, None, seconds)
    reached, above = nearest_double(value), ceil_to(bound, NumberType.FLOAT64)
    closed = bound - value <= least or tolerance.closeness(reached, above) is not Closeness.OPEN
    return Halved(False, reached, above, closed, "" if closed else (reason or budget.reason), witness, seconds)


def _harder(query: Query, gap: Fraction) -> Query:
    return replace(query, constraints=tuple(_raised(query.constraints, gap))) if gap else query


def _raised(constraints: Sequence[Constraint], gap: Fraction) -> list[Constraint]:
    return [replace(c, bound=c.bound + gap) if isinstance(c, ProbabilitySum) else c for c in constraints]


def _reached(query: Query, witness: Witness, asked: Fraction, bound: Fraction, least: Fraction) -> Fraction:
    """A gap that a witness reaches, close to its largest one."""
    x = inputs_of(query, witness.values)
    low, high = asked, bound
    while high - low > least:
        middle = (low + high) / 2
        if all(holds(c, x) for c in _raised(query.constraints, middle)):
            low = middle
        else:
            high = middle
    return low


def largest_difference(query: Query, options: Options, budget: Budget) -> Result:
    """The largest value of the only sum of probabilities of a question, which asks that it is at least 0.

    The value of the answer is 0 if it is proved to be never more, which no number of halvings shows.
    """
    sums = [c for c in query.constraints if isinstance(c, ProbabilitySum)]
    if [c.bound for c in sums] != [0]:
        return leave_open(query.name, "the question compares no two probabilities")
    plain = replace(options, backend="auto", certificates=None)
    above = tuple(replace(c, strict=True) if isinstance(c, ProbabilitySum) else c for c in query.constraints)
    first = answer(replace(query, constraints=above), plain, budget.share(_FIRST_SHARE))
    if first.verdict is Verdict.NONE and first.proof is Proof.EXACT:
        none = conclude_found(leave_open(query.name, backend=first.backend), f"no difference at all: {first.reason}")
        return _known(none, 0.0, 0.0, options)
    known = halve_gap(query, Fraction(1), plain, budget, options.closeness.relative)
    bare = leave_open(query.name, known.reason, backend=plain.backend, witness=known.witness)
    if known.value is None or known.bound is None:
        return bare
    return _known(conclude_found(bare), known.value, known.bound, options)


def _known(found: Result, value: float, bound: float, options: Options) -> Result:
    close = options.closeness
    tolerance = close if close.is_exact else Tolerance(close.relative, max(close.absolute, CLOSE))
    goal = ObjectiveValue(value, bound, Sense.MAXIMIZE, "prob", tolerance)
    certificates = () if options.certificates is None else (_NO_CERTIFICATE,)
    return replace(found, objective=goal, certificates=certificates)


def asked_of(ensemble: Ensemble, point: ast.Name, output: int, *, smallest: bool) -> ast.Find:
    """The question that every input answers: the probability is at least 0, or at most 1. It is made harder step by step."""
    probability = ast.Prob(point, label_of_class(ensemble, output))
    operator: ast.Operator = "<=" if smallest else ">="
    end = ast.Number(Fraction(int(smallest)))
    return ast.Find((ast.Point(point),), (ast.Comparison(probability, operator, end),))


def probability_end(question: ResolvedQuestion, output: int, sense: Sense, options: Options, budget: Budget) -> Result:
    """One end of the probability of a class, with the input that reaches it and the bound."""
    query = question.query
    known = halve_gap(
        query, Fraction(1), replace(options, backend="auto", certificates=None), budget, 0.0, least=_LEAST_PROBABILITY
    )
    if known.witness is None or known.bound is None:
        verdict = "no input lies in the domain" if known.empty else known.reason
        return leave_open(query.name, verdict)
    # The library's own rounding may be the last digit beyond.
    value, most = known.witness.probabilities[0][output], known.bound
    least = floor_to(1 - Fraction(most), NumberType.FLOAT64)
    bound = max(value, most) if sense is Sense.MAXIMIZE else min(value, least)
    goal = ObjectiveValue(value, bound, sense, "prob", options.closeness)
    certificates = () if options.certificates is None else (_NO_CERTIFICATE,)
    return conclude_found(leave_open(query.name, witness=known.witness, objective=goal, certificates=certificates))
