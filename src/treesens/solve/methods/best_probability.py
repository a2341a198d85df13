"""The best sum of probabilities: a sequence of decisions ("is a given value reachable?") by bisection.

An answer raises the reached value, and a refutation lowers the bound. The next value to decide is halfway between these two, or
below a value left open, where answers are easier to find. Decisions use Kelley's cutting planes (`probability_rows.py`). A
single probability is monotone in its score, so the score is optimised instead. The search for a sum starts from the best sum of
scores, nearly always a good answer. A bound on the difference of two scores bounds their sigmoids' difference.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from fractions import Fraction
from math import lcm

from treesens.compiler.base.budget import Budget
from treesens.compiler.base.dyadic import nearest_double
from treesens.compiler.base.floats import NumberType, ceil_to, next_down, next_up
from treesens.compiler.query.evaluate import inputs_of, objective_form_value
from treesens.compiler.query.exact_sums import share_bounds
from treesens.compiler.query.query import LinearForm, Objective, ProbabilitySum, Query, ScoreTerm
from treesens.compiler.query.shares import Probability
from treesens.compiler.result import Attempt, ObjectiveValue, Proof, Result, Sense, Verdict
from treesens.solve.bounds import consistent
from treesens.solve.method import OpenQuestion
from treesens.values.relations import better_than

_SHARE = 0.25
"""Maximum share of the remaining time for a decision."""
_LESS = Fraction(1023, 1024)
"""The share of the tolerance that is used, so that the tolerance is kept despite rounding to doubles."""
_ENOUGH = 2
"""Number of consecutive proofs after which the reached value itself is tested."""
_LEAST = 0.1
"""Minimum seconds of a decision."""
_FIRST = 1.0
"""Maximum seconds for the best sum of scores."""
_BITS = 64
_CLOSE = Fraction(1, 1 << 60)
"""The tolerance for a sum of probabilities, unless the passed tolerance is larger."""


class BestProbability:
    """One search. Signs are chosen such that more is better: `best` reaches the value `value`, and `bound` is proved."""

    def __init__(self, question: OpenQuestion, budget: Budget) -> None:
        self.question, self.query, self.budget = question, question.query, budget
        goal = question.query.objective
        assert goal is not None
        assert goal.probability is not None
        self.goal, self.sign = goal, 1 if goal.maximize else -1
        low, high = (
            sum(side, Fraction(0)) for side in zip(*(term.ends for term in goal.probability.terms), strict=True)
        )
        self.bound = high if goal.maximize else -low
        self.value: Fraction | None = None
        self.best: Result | None = None
        self.attempts: list[Attempt] = []
        self.seconds = Counter[str]()
        self.premises: list[str] = []

    def run(self) -> Result:
        """The answer with value and bound; a verdict `none` or `unknown` applies to the question without its objective."""
        assert self.goal.probability is not None
        score = score_of(self.goal.probability, maximize=self.goal.maximize)
        if score is not None:
            return self._by_score(score)
        first = self._by_margins(self.goal.probability)
        if first is None or (self.best is None and first.verdict is not Verdict.NONE):
            first = self._ask(replace(self.query, objective=None))
        if self.best is None:
            return first
        self._halve()
        return self._result()

    def _by_margins(self, row: ProbabilitySum) -> Result | None:
        """Starts from the best sum of the scores with which the probabilities increase, or returns None."""
        goal = scores_of(row, maximize=self.goal.maximize)
        if goal is None:
            return None
        found = self._ask(replace(self.query, objective=goal), self.budget.share(_SHARE).within(_FIRST))
        told = found.objective
        if told is not None and told.bound is not None and (apart := _difference_of(row)):
            outward = next_up if goal.maximize else next_down
            limit = Fraction(outward(outward(told.bound, NumberType.FLOAT64), NumberType.FLOAT64))
            # Of all u - v <= d with d >= 0, s(u) - s(v) is largest at u = d / 2 = -v, where it is 2 s(d / 2) - 1.
            half = max(self.sign * limit / apart, Fraction(0)) / 2
            # An exact decision settles whether a value above 0 is reached.
            bound = max(apart * (2 * share_bounds(-half, _BITS)[1] - 1), 2 * _CLOSE)
            if bound < self.bound:
                self.bound = bound
                self.premises += found.proof_dependencies
        return found

    def _by_score(self, score: Objective) -> Result:
        """A single probability is optimised through its score."""
        found = self._ask(replace(self.query, objective=score), self.budget)
        if self.best is None or self.value is None:
            return found
        told = found.objective
        if told is not None and told.bound is not None:
            assert self.goal.probability is not None
            (term,) = self.goal.probability.terms
            outward = next_up if score.maximize else next_down
            limit = Fraction(outward(outward(told.bound, NumberType.FLOAT64), NumberType.FLOAT64))
            # The score is minus the exponent.
            ends = [self.sign * term.factor * end for end in share_bounds(-limit, _BITS)]
            self.bound = self.value if told.bound == told.value else min(self.bound, max(ends))
            self.premises += found.proof_dependencies
        return self._result()

    def _halve(self) -> None:
        """Decides values until value and bound are close, or until the time is used up.

        Undecided values are between `below` and `above`: searches alternate between answers below and proofs above.
        """
        below, above, proved = self.bound, self.bound, 0
        while self.value is not None and not self.budget.over:
            close = self._allowed(self.value)
            finished = [below - self.value <= close, self.bound - above <= close]
            if all(finished):
                break
            if below == self.bound:
                # The value has not changed while the bound fell: it may be the best value.
                wanted = self.value + close if proved >= _ENOUGH else (self.value + below) / 2
            else:
                upper = finished[0] or (not finished[1] and self.bound - above > below - self.value)
                wanted = (above + self.bound) / 2 if upper else (self.value + below) / 2
            # A value of 0 has no relative tolerance and needs none: "more than 0" is a separate question.
            strict = wanted == _CLOSE
            wanted = Fraction(0) if strict else wanted
            found = self._decide(wanted, strict=strict)
            # A proof in the library's rounding alone gives no bound: other sums are judged in exact arithmetic.
            if found.verdict is Verdict.NONE and found.proof is not Proof.LIBRARY:
                proved += 1
                whole = below == self.bound
                self.bound = wanted
                below, above = (wanted, wanted) if whole else (min(below, wanted), min(above, wanted))
                self.premises += found.proof_dependencies
                if found.proof is not Proof.EXACT:
                    self.premises.append(f"infeasible by {found.backend} ({found.proof})")
            elif found.verdict is Verdict.FOUND:
                proved = 0
                below, above = max(below, self.value), max(above, self.value)
            else:
                proved = 0
                below, above = min(below, wanted), (wanted if below == self.bound else max(above, wanted))

    def _allowed(self, value: Fraction) -> Fraction:
        """The largest difference between value and bound at which the value counts as optimal."""
        allowed, shown = self.question.options.closeness, abs(value + self.sign * self.goal.offset)
        return max(_CLOSE, _LESS * max(Fraction(allowed.relative) * shown, Fraction(allowed.absolute)))

    def _decide(self, wanted: Fraction, *, strict: bool) -> Result:
        """Decides whether an answer reaches `wanted`, or exceeds it if `strict`."""
        constraint = better_than(self.goal, self.sign * wanted, strict=strict)
        return self._ask(replace(self.query, objective=None, constraints=(*self.query.constraints, constraint)))

    def _ask(self, query: Query, budget: Budget | None = None) -> Result:
        """Answers one question within `budget`, by default a share of the remaining time; keeps a better answer."""
        part = budget or self.budget.share(_SHARE).at_least(_LEAST)
        found = self.question.ask(query, self.question.options, part)
        self.attempts += found.attempts
        self.seconds.update(found.seconds)
        if found.witness is not None:
            value = self.sign * objective_form_value(self.goal, inputs_of(self.query, found.witness.values))
            if self.value is None or value > self.value:
                self.best, self.value = found, value
                self.question.show(found)
        return found

    def _result(self) -> Result:
        assert self.best is not None
        assert self.value is not None
        offset = self.sign * self.goal.offset
        value = nearest_double(self.value + offset)
        bound = ceil_to(self.bound + offset, NumberType.FLOAT64)
        bound = consistent(bound, value, maximize=True, exact=not self.premises, who=self.best.backend)
        shown = ObjectiveValue(
            self.sign * value + 0.0, self.sign * bound + 0.0, Sense.of(self.goal.maximize), self.goal.kind
        )
        premises = tuple(dict.fromkeys(self.premises))
        return replace(
            self.best,
            objective=shown,
            proof_dependencies=premises,
            attempts=tuple(self.attempts),
            seconds=dict(self.seconds),
        )


def score_of(row: ProbabilitySum, *, maximize: bool) -> Objective | None:
    """The score with which a single probability increases, or the negative of its exponent, as an objective; None otherwise."""
    if len(row.terms) != 1:
        return None
    (term,) = row.terms
    if not isinstance(term, Probability) or len(term.exponents) != 1:
        return None
    (exponent,) = term.exponents
    whole = lcm(*(t.coefficient.denominator for t in exponent.terms))
    form = LinearForm(tuple(ScoreTerm(t.point, t.output, -t.coefficient * whole) for t in exponent.terms))
    return Objective(form, (term.factor > 0) is maximize, "margin", Fraction(1, whole), -exponent.constant)


def scores_of(row: ProbabilitySum, *, maximize: bool) -> Objective | None:
    """The weighted sum of the scores with which the probabilities increase; None if some term has no such score."""
    offset, sums = Fraction(0), dict[tuple[int, int], Fraction]()
    for term in row.terms:
        if (lead := term.lead()) is None:
            return None
        offset += term.factor * lead[1]
        for score in lead[0]:
            place = (score.point, score.output)
            sums[place] = sums.get(place, Fraction(0)) + term.factor * score.coefficient
    whole = lcm(*(c.denominator for c in sums.values()), 1)
    form = LinearForm(
        tuple(ScoreTerm(*place, coefficient * whole) for place, coefficient in sums.items() if coefficient)
    )
    return Objective(form, maximize, "margin", Fraction(1, whole), offset) if form.scores else None


def _difference_of(row: ProbabilitySum) -> Fraction | None:
    """The factor f > 0 if the sum is f s(u) - f s(v), a difference of two sigmoids; None for other sums."""
    factors = [term.factor for term in row.terms if isinstance(term, Probability) and len(term.exponents) == 1]
    return max(factors) if len(factors) == len(row.terms) == 2 and sum(factors) == 0 else None


def search_best_probability(question: OpenQuestion, budget: Budget) -> Result:
    """Entry point named in `solve/methods/registry.py`."""
    return BestProbability(question, budget).run()
