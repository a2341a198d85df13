"""Questions about sums of probabilities: linear relaxations, tightened by every wrong candidate (Kelley's method).

A backend solves a relaxation, implied by the question, without these sums. If the relaxation has no answer, neither has the
question. A candidate is checked against the question, exactly and by the library; if it violates a sum of probabilities, it is
excluded with all others that the proof covers, and the search continues. The search terminates: the number of scores is finite.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace

from treesens.builtin import service
from treesens.compiler.base.budget import LEAST, Budget
from treesens.compiler.query.evaluate import holds, inputs_of, objective_form_value
from treesens.compiler.query.probabilities import excluding, has_float_rows, names_probabilities, relaxed, sums_in
from treesens.compiler.query.query import Constraint, ProbabilitySum, Query
from treesens.compiler.query.rounding import harden
from treesens.compiler.result import Attempt, ObjectiveValue, Proof, Result, Sense, Verdict
from treesens.solve.conclude import shown_objective
from treesens.solve.method import OpenQuestion
from treesens.solve.options import Options
from treesens.values.verify import Rejected, Witness, verify_values

Ask = Callable[..., Result]

LINES = "lines above probabilities (floating point)"
"""Additional evidence of a proof by rows with floating-point constants (`Summand.in_floats`)."""


@dataclass
class _Cutting:
    ask: Ask
    query: Query
    options: Options
    budget: Budget
    on_better: Callable[[Witness], None] | None
    cuts: list[Constraint] = field(default_factory=list)
    lines: list[tuple[ProbabilitySum, Constraint]] = field(default_factory=list)
    """Cuts on single sums."""
    attempts: list[Attempt] = field(default_factory=list)
    seconds: dict[str, float] = field(default_factory=dict)

    def search(self, query: Query) -> tuple[Result, Rejected | None]:
        """The answer to `query` (this search's question or a stronger one), and why its last candidate failed."""
        while True:
            constraints = (*map(relaxed, query.constraints), *self.cuts)
            result = self.ask(replace(query, constraints=constraints), self.options, self.budget.at_least(LEAST))
            self._count(result)
            if result.witness is None:
                return result, None
            verdict = verify_values(self.query, result.witness.values, library_predict=self.options.library_predict)
            if isinstance(verdict, Witness):
                if self.on_better is not None:
                    self.on_better(verdict)
                return replace(result, witness=verdict), None
            cuts = self._cuts(query, result.witness)
            self.cuts += cuts
            if not cuts or self.budget.over:
                reason = self.budget.reason if cuts else verdict.reason
                unknown = replace(result, verdict=Verdict.UNKNOWN, reason=reason, witness=None, proof=None)
                return unknown, None if cuts else verdict

    def _cuts(self, query: Query, candidate: Witness) -> list[Constraint]:
        x = inputs_of(query, candidate.values)
        broken = [c for c in query.constraints if names_probabilities((c,)) and not holds(c, x)]
        cuts = [excluding(constraint, x.scores) for constraint in broken]
        for constraint, cut in zip(broken, cuts, strict=True):
            if isinstance(constraint, ProbabilitySum):
                self.lines.append((constraint, cut))
            else:
                self.lines += [(row, excluding(row, x.scores)) for row in sums_in((constraint,)) if not holds(row, x)]
        return cuts

    def _count(self, result: Result) -> None:
        self.attempts += result.attempts
        for phase, seconds in result.seconds.items():
            self.seconds[phase] = self.seconds.get(phase, 0.0) + seconds

    def settle(self, query: Query) -> Result:
        """The answer or, if only the library's rounding rejects it, an answer outside the numerical band."""
        result, rejected = self.search(query)
        if rejected is None or not rejected.numerical:
            return result
        # An answer refuted by the stronger question may still satisfy this one.
        kept = list(self.cuts)
        clear, _ = self.search(harden(query))
        self.cuts = kept
        if clear.verdict is Verdict.FOUND:
            return clear if clear.objective is None else replace(clear, objective=replace(clear.objective, bound=None))
        return replace(result, reason=f"numerical band: {result.reason}")

    def best(self, candidate: Result) -> Result:
        """The optimum, if there is time; otherwise the known answer with the best bound."""
        goal = self.query.objective
        assert goal is not None
        result, _ = self.search(self.query)
        if result.verdict is Verdict.FOUND or candidate.witness is None:
            return result if result.verdict is Verdict.FOUND else candidate
        bound = None if result.objective is None else result.objective.bound
        if goal.nearest is not None:
            distance = service("answers").distance_of(self.query, goal.nearest, candidate.witness)
            shown = ObjectiveValue(distance, bound, Sense.MINIMIZE, f"distance {goal.nearest.norm}")
            return replace(candidate, objective=shown)
        value = objective_form_value(goal, inputs_of(self.query, candidate.witness.values))
        return replace(candidate, objective=replace(shown_objective(goal, value, None), bound=bound))

    def done(self, result: Result) -> Result:
        """A result with all attempts made for it, and the additional evidence for its proof."""
        note = f"{len(self.cuts)} rows were added to the linear relaxation of its probabilities"
        notes = (*result.notes, note) if self.cuts else result.notes
        lines = any(map(has_float_rows, sums_in(self.query.constraints)))
        if lines and result.proof is not None:
            # The cuts are lines whose floating-point constants are moved outward by more than their error.
            search = (
                f"{'infeasible by' if result.verdict is Verdict.NONE else 'bound of'} {result.backend} ({result.proof})"
            )
            parts = (*(result.proof_dependencies or (search,)), LINES)
            proof = Proof.TOLERANCE if result.proof in (Proof.EXACT, Proof.BOUND) else result.proof
            result = replace(result, proof=proof, proof_dependencies=parts)
        return replace(result, attempts=tuple(self.attempts), seconds=self.seconds, notes=notes, refuted=())


def answer_probabilities(
    ask: Ask,
    query: Query,
    options: Options,
    budget: Budget,
    *,
    on_better: Callable[[Witness], None] | None = None,
) -> Result:
    """The answer to a question with sums of probabilities; `ask` answers questions without them."""
    cutting = _Cutting(ask, query, options, budget, on_better)
    found = cutting.settle(replace(query, objective=None))
    if query.objective is not None and found.verdict is Verdict.FOUND:
        found = cutting.best(found)
    return cutting.done(found)


def lines_of(ask: Ask, query: Query, options: Options, budget: Budget) -> list[tuple[ProbabilitySum, Constraint]]:
    """Consequences of single sums of probabilities, which the search for an answer also finds."""
    cutting = _Cutting(ask, replace(query, objective=None), options, budget, None)
    cutting.search(cutting.query)
    return cutting.lines


def search_probabilities(question: OpenQuestion, budget: Budget) -> Result:
    """Entry point named in `solve/methods/registry.py`."""
    return answer_probabilities(question.ask, question.query, question.options, budget, on_better=question.on_better)
