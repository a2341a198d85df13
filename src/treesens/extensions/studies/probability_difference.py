"""The largest difference of two probabilities that are no functions of one score: one question after another."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

from treesens.compiler.base.budget import Budget
from treesens.compiler.base.tolerance import Tolerance
from treesens.compiler.query.query import ProbabilitySum, Query
from treesens.compiler.result import Certified, ObjectiveValue, Proof, Result, Sense, Verdict
from treesens.extensions.studies.gap_by_halving import halve_gap
from treesens.solve.conclude import conclude_found, leave_open
from treesens.solve.options import Options
from treesens.solve.question import answer

CLOSE = 1e-6
"""How closely a difference of probabilities is known at best."""
_SHARE = 0.4
"""Of the time, for the question whether there is any difference."""
_NO_CERTIFICATE = Certified("bound", reason="it rests on many questions about a mean of several models")


def largest_difference(query: Query, options: Options, budget: Budget) -> Result:
    """The largest value of the only sum of probabilities of a question, which asks that it is at least 0.

    The value of the answer is 0 if it is proved to be never more, which no number of halvings shows.
    """
    sums = [c for c in query.constraints if isinstance(c, ProbabilitySum)]
    if [c.bound for c in sums] != [0]:
        return leave_open(query.name, "the question compares no two probabilities")
    plain = replace(options, backend="auto", certificates=None)
    above = tuple(replace(c, strict=True) if isinstance(c, ProbabilitySum) else c for c in query.constraints)
    first = answer(replace(query, constraints=above), plain, budget.share(_SHARE))
    if first.verdict is Verdict.NONE and first.proof is Proof.EXACT:
        none = conclude_found(leave_open(query.name, backend=first.backend), f"no difference at all: {first.reason}")
        return _reached(none, 0.0, 0.0, options)
    known = halve_gap(query, Fraction(1), plain, budget, options.closeness.relative)
    bare = leave_open(query.name, known.reason, backend=plain.backend, witness=known.witness)
    if known.value is None or known.bound is None:
        return bare
    return _reached(conclude_found(bare), known.value, known.bound, options)


def _reached(found: Result, value: float, bound: float, options: Options) -> Result:
    close = options.closeness
    tolerance = close if close.is_exact else Tolerance(close.relative, max(close.absolute, CLOSE))
    goal = ObjectiveValue(value, bound, Sense.MAXIMIZE, "prob", tolerance)
    certificates = () if options.certificates is None else (_NO_CERTIFICATE,)
    return replace(found, objective=goal, certificates=certificates)
