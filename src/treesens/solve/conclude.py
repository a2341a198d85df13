"""Turns facts into verdicts; no other module creates a verdict.

A search reports facts: the cells of a point, a proof that no point exists, a bound, and the reason why the search ended.
`found` needs a witness that passed exact replay and the library's arithmetic; `none` needs a proof whose relation the pipeline
preserves; any other answer is `unknown` with its reason.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from fractions import Fraction
from math import ceil, floor, isfinite
from typing import Any

from treesens.backends.base import BACKENDS, Artifact, Backend, Proof, RawOutcome, Termination
from treesens.compiler.base.arrays import BoolArray, FloatArray, Int32Array
from treesens.compiler.base.dyadic import Unit
from treesens.compiler.base.floats import NumberType, ceil_to, floor_to
from treesens.compiler.ir import Module
from treesens.compiler.ir.evaluate import complete, objective_value, violations
from treesens.compiler.pipeline import Compilation, Compiled, Contradiction, decide_at_compile_time
from treesens.compiler.query.evaluate import inputs_of, objective_form_value
from treesens.compiler.query.probabilities import names_probabilities
from treesens.compiler.query.query import Objective, Query
from treesens.compiler.result import Attempt, NearMiss, ObjectiveValue, Result, Sense, Solution, Verdict
from treesens.solve.bounds import ContradictoryBound, consistent, shown_value, within_range
from treesens.solve.options import Options
from treesens.values.concretise import NoValues
from treesens.values.verify import Rejected, Witness, verify_cells

IN_BAND = "a constraint holds by less than the numerical band"
"""The note on a witness that the library's rounding nearly invalidates."""


FALLS_SHORT = Rejected("the values do not reach the objective value that their cells allow")


# --- verdicts -------------------------------------------------------------------------------------------------------------


def leave_open(query: str, reason: str = "", **known: Any) -> Result:
    """An `unknown` result with its reason; `known` sets other fields of the result."""
    return Result(query, Verdict.UNKNOWN, reason, **known)


def conclude_found(result: Result, reason: str = "verified") -> Result:
    """An open result turned into `found`: its witness has been verified."""
    witness = result.witness
    noted = witness is not None and witness.in_band and IN_BAND not in result.notes
    notes = (*result.notes, IN_BAND) if noted else result.notes
    return replace(result, verdict=Verdict.FOUND, reason=reason, notes=notes)


def conclude_none(result: Result, reason: str, proof: Proof = Proof.EXACT) -> Result:
    """An open result turned into `none`, with the evidence for it."""
    return replace(result, verdict=Verdict.NONE, reason=reason, proof=proof)


def conclude_infeasible(query: str, backend: str = "native", proof: Proof = Proof.EXACT) -> Result:
    """A `none` result: the backend has searched all points."""
    return conclude_none(leave_open(query), f"{backend}: infeasible", proof)


def leave_rejected(query: str, rejected: Rejected) -> Result:
    """An `unknown` result: a candidate was rejected."""
    return leave_open(query, f"numerical band: {rejected.reason}" if rejected.numerical else rejected.reason)


def decided_by_compiler(compilation: Compilation) -> Result | None:
    """A `none` result if the compiler found a contradiction, otherwise None."""
    contradiction = decide_at_compile_time(compilation)
    return None if contradiction is None else conclude_contradiction(compilation.query.name, contradiction)


def conclude_contradiction(query: str, contradiction: Contradiction) -> Result:
    """A `none` result: constraints contradict each other."""
    return conclude_none(
        leave_open(query, backend=contradiction.backend, proof_dependencies=contradiction.proof_dependencies),
        contradiction.reason,
        Proof.EXACT,
    )


def shown_objective(goal: Objective, value: Fraction | float, bound: Fraction | float | None) -> ObjectiveValue:
    """The displayed value and bound, from a value and a bound of the objective's form."""
    shown = None if bound is None else shown_value(goal, float(bound))
    return ObjectiveValue(shown_value(goal, float(value)), shown, Sense.of(goal.maximize), goal.kind)


def shown_optimum(goal: Objective, value: Fraction, bound: Fraction | None, who: str = "native") -> ObjectiveValue:
    """The displayed value and bound; the bound is rounded away from the value."""
    reached, limit = float(value), None
    if bound is not None:
        limit = float(value) if bound == value else (ceil_to if goal.maximize else floor_to)(bound, NumberType.FLOAT64)
        limit = consistent(limit, reached, maximize=goal.maximize, exact=True, who=who)
        limit = shown_value(goal, limit)
    return ObjectiveValue(shown_value(goal, reached), limit, Sense.of(goal.maximize), goal.kind)


# --- facts of a method ------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Facts:
    """The facts of one search: `cells`, int32[points, features], describes a point; `none` is True if provably no point exists.

    `ended` is a termination. `rounded` is True if the point may pass only because rows were rounded. `bound` is a proved bound
    on the objective's form (an upper bound for a maximum), or None.
    """

    cells: Int32Array | None
    none: bool
    ended: str
    rounded: bool = False
    near_miss: NearMiss | None = None
    statistics: dict[str, float] = field(default_factory=dict)
    bound: Fraction | None = None


def conclude_facts(
    query: Query,
    facts: Facts,
    options: Options,
    *,
    near: FloatArray | None = None,
    reach: Callable[[Witness], ObjectiveValue | Rejected] | None = None,
) -> Result | Rejected:
    """The result that the facts support, or the reason why the point is not a witness.

    Values are chosen close to the row `near`, by default the row in the options; `reach` returns the witness's objective value
    with the proved bound, or the reason for a rejection.
    """
    if facts.none:
        return conclude_infeasible(query.name)
    if facts.rounded:
        return Rejected("the rounded rows are satisfied, but the exact rows are not")
    if facts.cells is None:
        return leave_open(query.name, facts.ended, near_miss=facts.near_miss)
    near = options.near if near is None else near
    witness = verify_cells(query, facts.cells, near=near, library_predict=options.library_predict)
    if not isinstance(witness, Witness):
        return witness
    reached: ObjectiveValue | Rejected | None = None
    try:
        reached = None if reach is None else reach(witness)
    except ContradictoryBound as error:
        return leave_open(query.name, error.reason)
    if isinstance(reached, Rejected):
        return reached
    return conclude_found(leave_open(query.name, witness=witness, objective=reached))


def conclude_plugin(query: Query, facts: Facts, options: Options, method: str, seconds: float) -> Result | None:
    """The result that a plug-in method's facts support, marked as a result of the plug-in; None if its point is rejected."""

    def reach(witness: Witness) -> ObjectiveValue:
        goal = query.objective
        assert goal is not None
        value = objective_form_value(goal, inputs_of(query, witness.values))
        return shown_optimum(goal, value, facts.bound, method)

    judged = conclude_facts(query, facts, options, reach=None if query.objective is None else reach)
    if isinstance(judged, Rejected):
        return None
    attempt = Attempt(
        method, options.pipeline, facts.ended, judged.verdict, "", {"solve": seconds}, statistics=facts.statistics
    )
    proved = judged.verdict is Verdict.NONE or (judged.objective is not None and judged.objective.bound is not None)
    return replace(
        judged,
        reason=f"{method}: infeasible" if judged.verdict is Verdict.NONE else judged.reason,
        backend=method,
        pipeline=options.pipeline,
        seconds={"solve": seconds},
        attempts=(attempt,),
        proof_dependencies=(f"proof of the plug-in method {method}",) if proved else (),
    )


def attempt_of(facts: Facts, judged: Result | Rejected, options: Options, seconds: dict[str, float]) -> Attempt:
    """The record of a search by the native engine on the tree path."""
    verdict = judged.verdict if isinstance(judged, Result) else Verdict.UNKNOWN
    return Attempt("native", options.pipeline, facts.ended, verdict, "", seconds, statistics=facts.statistics)


# --- facts of a backend ---------------------------------------------------------------------------------------------------


@dataclass
class Incumbent:
    """The best verified witness so far, with its objective value (None without an objective)."""

    witness: Witness | None = None
    value: Fraction | None = None
    rejected: Rejected | None = None
    refuted: list[NoValues] = field(default_factory=list)
    """Candidates whose cells contain no values that satisfy the relations."""
    near_miss: NearMiss | None = None
    """The best attempt of the last search and what the search excluded, if it ended without an answer."""
    rounded: bool = False
    """True if rows were rounded for the engine: a point that passes the rounded rows may violate the exact rows."""

    @property
    def wants_clearance(self) -> bool:
        """True if only rounding rejects the last point: other points may satisfy all constraints by a clear margin."""
        rejected = self.rejected
        return rejected is not None and (rejected.numerical or (self.rounded and rejected.none is None))

    def offer(self, query: Query, verdict: Witness | Rejected) -> None:
        """Keeps the better of two witnesses, and the last reason for rejecting a candidate."""
        if isinstance(verdict, Rejected):
            self.rejected = verdict
            if verdict.none is not None:
                self.refuted.append(verdict.none)
            return
        value = None
        if query.objective is not None:
            value = objective_form_value(query.objective, inputs_of(query, verdict.values))
        worse = (
            self.value is not None
            and value is not None
            and query.objective is not None
            and (value <= self.value if query.objective.maximize else value >= self.value)
        )
        if self.witness is None or not worse:
            self.witness, self.value = verdict, value


def verify_assignment(compilation: Compilation, assignment: BoolArray, options: Options) -> Witness | Rejected:
    """A solver's point as a witness of the compiled question, or the reason for its rejection."""
    cells = compilation.compiled.source.cells(compilation.compiled.recover(assignment))
    return verify_cells(compilation.query, cells, near=options.near, library_predict=options.library_predict)


def conclude(
    compilation: Compilation,
    backend: Backend,
    artifact: Artifact,
    outcome: RawOutcome,
    options: Options,
    best: Incumbent,
    *,
    restricted: bool = False,
) -> Result | None:
    """The result that the facts of one solve support, or None.

    `restricted` marks a tightened module, which has fewer solutions than the question: its `infeasible` proves nothing.
    """
    query, compiled = compilation.query, compilation.compiled
    accepted = False
    if outcome.assignment is not None and compiled.found_survives:
        verdict = verify_assignment(compilation, outcome.assignment, options)
        accepted = isinstance(verdict, Witness)
        best.offer(query, verdict)
    if best.witness is not None:
        return _found_result(
            compilation,
            backend,
            outcome,
            best,
            accepted=accepted,
            restricted=restricted or artifact.restricted or not compiled.none_survives,
            warm_started=artifact.warm_start is not None,
        )
    if not restricted and proves_none(compilation, artifact, outcome):
        proof = backend.capabilities.proof
        parts = _premises(compilation.compiled, backend)
        parts = (*parts, f"infeasible by {backend.name} ({proof})") if parts else ()
        return replace(conclude_infeasible(query.name, backend.name, proof), proof_dependencies=parts)
    return None


def _premises(compiled: Compiled, backend: Backend) -> tuple[str, ...]:
    """What a proof by a backend on this module depends on, apart from the backend's own result."""
    claimed = (f"proof of the plug-in backend {backend.name}",) if BACKENDS.owner(backend.name) is not None else ()
    return (*compiled.proof_dependencies, *claimed)


def proves_none(compilation: Compilation, artifact: Artifact, outcome: RawOutcome) -> bool:
    """True if the facts of one solve prove that the question of this compilation has no answer."""
    infeasible = outcome.termination is Termination.INFEASIBLE
    return infeasible and not artifact.restricted and compilation.compiled.none_survives


def _found_result(
    compilation: Compilation,
    backend: Backend,
    outcome: RawOutcome,
    best: Incumbent,
    *,
    accepted: bool,
    restricted: bool,
    warm_started: bool = False,
) -> Result:
    """The result of a verified witness, with the objective's value and bound.

    `accepted` is True if the witness is this outcome's point, or a point that is not better.
    """
    query = compilation.query
    objective = None
    if query.objective is not None and best.value is not None:
        maximize = query.objective.maximize
        exact = backend.capabilities.proof is Proof.EXACT
        bound = None if restricted or outcome.bound is None else outcome.bound * (1 if maximize else -1)
        if outcome.termination is Termination.OPTIMAL and bound is None and exact and not restricted:
            # Values may be worse than their cells allow: only the value of the cells is a bound, even for an optimum that
            # replay has rejected.
            if not accepted or query.objective.values or names_probabilities(query.constraints):
                reached = _reached(compilation.module, outcome)
                bound = None if reached is None else reached * (1 if maximize else -1)
            else:
                bound = float(best.value)
        bound = within_range(query, bound, restricted=restricted)
        if bound is not None and query.objective.counts:
            # The form of a count is an integer; a solver that rounds may slightly exceed it.
            slack = 0.0 if exact else 1e-4
            bound = float(floor(bound + slack) if maximize else ceil(bound - slack))
        if bound is not None:
            bound = consistent(bound, float(best.value), maximize=maximize, exact=exact, who=backend.name)
        objective = shown_objective(query.objective, best.value, bound)
    proof_dependencies = (
        _premises(compilation.compiled, backend) if objective is not None and objective.bound is not None else ()
    )
    parts: tuple[str, ...] = ()
    if proof_dependencies:
        parts = (*proof_dependencies, f"bound of {backend.name} ({backend.capabilities.proof.value})")
    return conclude_found(
        leave_open(
            query.name,
            witness=best.witness,
            objective=objective,
            proof_dependencies=parts,
            warm_started=warm_started,
        )
    )


def _reached(module: Module, outcome: RawOutcome) -> float | None:
    """The module's own (maximised) objective at a solver's point, rounded up; None without such an objective or point."""
    goal = module.objective
    if goal is None or goal.surrogate or outcome.assignment is None:
        return None
    taken = outcome.assignment[goal.variables]
    total = sum(int(c) for c in goal.coefficients[taken]) + goal.constant
    return Unit(goal.shift).above(total)


# --- facts about a module -------------------------------------------------------------------------------------------------


def conclude_module(
    compiled: Compiled, backend: Backend, artifact: Artifact, outcome: RawOutcome
) -> Result | Rejected | None:
    """The result that the facts of one solve support for the source module of a pipeline; the reason for the rejection of a
    point that violates the source module; or None. The module is the whole question: there are no values, and no replay.
    """
    source = compiled.source
    if outcome.assignment is not None and compiled.found_survives:
        recovered = compiled.recover(outcome.assignment)
        assignment = complete(source, recovered)
        if assignment is None:
            broken = violations(source, recovered)
            more = f" and {len(broken) - 3} more" if len(broken) > 3 else ""
            return Rejected(f"the point of {backend.name} violates {', '.join(broken[:3])}{more}")
        goal = source.objective if source.optimises else None
        solution = Solution(assignment, None if goal is None else objective_value(goal, assignment))
        return conclude_found(_valued(leave_open(source.name, solution=solution), compiled, backend, artifact, outcome))
    if outcome.termination is Termination.INFEASIBLE and compiled.none_survives and not artifact.restricted:
        proof, parts = backend.capabilities.proof, _premises(compiled, backend)
        evidence = (*parts, f"infeasible by {backend.name} ({proof})") if parts else ()
        return replace(conclude_infeasible(source.name, backend.name, proof), proof_dependencies=evidence)
    return None


def conclude_exported(name: str, backend: Backend, outcome: RawOutcome, proof: Proof) -> Result:
    """The result that the facts of one solve support for a file of which only the solver knows the meaning."""
    if outcome.termination is Termination.INFEASIBLE:
        return conclude_infeasible(name, backend.name, proof)
    ended = outcome.termination.value
    if outcome.assignment is not None:
        return conclude_found(leave_open(name), f"{backend.name}: {ended}, not replayed")
    return leave_open(name, f"{ended}: {outcome.detail}" if outcome.detail else ended)


def _valued(
    open_result: Result, compiled: Compiled, backend: Backend, artifact: Artifact, outcome: RawOutcome
) -> Result:
    """A result with the objective's value and bound. The bound is at most the sum of all positive terms.

    Raises ContradictoryBound.
    """
    goal, solution = compiled.source.objective, open_result.solution
    if goal is None or solution is None or solution.value is None:
        return open_result
    unit = Unit(goal.shift)
    value = unit.nearest(solution.value)
    if not isfinite(value):
        return replace(open_result, notes=("the value of the objective is beyond the range of doubles",))
    bound = unit.above(sum(c for c in map(int, goal.coefficients) if c > 0) + goal.constant)
    parts: tuple[str, ...] = ()
    exact = backend.capabilities.proof is Proof.EXACT
    if compiled.none_survives and compiled.module.optimises and not artifact.restricted:
        proved = outcome.bound
        if proved is None and exact and outcome.termination is Termination.OPTIMAL:
            proved = _reached(compiled.module, outcome)
        if proved is not None and exact and isfinite(proved):
            proved = unit.above(unit.floor(Fraction(proved)))  # every value is a whole number of units
        if proved is not None and proved < bound:
            bound = consistent(proved, value, maximize=True, exact=exact, who=backend.name)
            evidence = f"bound of {backend.name} ({backend.capabilities.proof})"
            premises = _premises(compiled, backend)
            parts = (*premises, evidence) if premises else ()
    shown = ObjectiveValue(value, max(bound, value) if isfinite(bound) else None, Sense.MAXIMIZE, "objective")
    return replace(open_result, objective=shown, proof_dependencies=parts)
