"""The smallest and the largest probability of a mean of several models: by questions at one probability after the other."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

from treesens.binder.file import ResolvedQuestion
from treesens.compiler.base.budget import Budget
from treesens.compiler.base.floats import NumberType, floor_to
from treesens.compiler.model import Ensemble
from treesens.compiler.result import Certified, ObjectiveValue, Result, Sense
from treesens.extensions.studies.decisions import label_of_class
from treesens.extensions.studies.gap_by_halving import halve_gap
from treesens.grammar.tree import ast
from treesens.solve.conclude import conclude_found, leave_open
from treesens.solve.options import Options

_LEAST = Fraction(1, 1 << 24)
"""How closely a probability is looked for."""
_NO_CERTIFICATE = Certified("bound", reason="it rests on many questions about a mean of several models")


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
        query, Fraction(1), replace(options, backend="auto", certificates=None), budget, 0.0, least=_LEAST
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
