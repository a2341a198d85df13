"""Validates passes by solvers (`compiler/passes/validation.py`), and limits what an answer that rests on plug-in passes proves.

A plug-in pass is code of another distribution. A `none`, and a bound, of a module that it has rewritten is `exact` only if the
pass is proved on this module. Otherwise the proof names the pass, and so does every answer derived from it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from treesens.backends.base import Artifact, Backend, InProcessBackend, Limits, RawOutcome, Termination, get_backend
from treesens.backends.text.cnf import clauses_of
from treesens.backends.worker import solve_isolated
from treesens.compiler.base.arrays import Int32Array, Int64Array, indptr_of
from treesens.compiler.base.budget import LEAST, Budget, OutOfTime, steadily, working_within
from treesens.compiler.ir import TRUE, Linear, Module
from treesens.compiler.ir.evaluate import satisfies
from treesens.compiler.ir.module import FALSE
from treesens.compiler.passes.base import Relation, Rewrite
from treesens.compiler.passes.registry import PASSES
from treesens.compiler.passes.validation import (
    Check,
    Claim,
    Outcome,
    Row,
    check_of,
    claims_of,
    clause_of,
    lost_by,
    misfit,
    refute_by_brute_force,
)
from treesens.compiler.pipeline import Compiled, plugin_passes
from treesens.compiler.result import Proof, Result, Verdict
from treesens.compiler.unvalidated import claims_proof, marked, rest_on
from treesens.errors import BackendError, UsageError

BRUTE = "brute"
"""Instead of a solver: all combinations of cells, for small modules."""
SOLVERS = ("cpsat", "z3")
"""The solvers that `auto` tries in this order."""
SHARE = 0.2
"""The share of a question's time that is reserved for the validation of its plug-in passes."""


@dataclass(frozen=True)
class Validation:
    """The result of validating one pass on one module; `reason` explains an open result, or contains the counterexample."""

    text: str
    outcome: Outcome
    reason: str = ""

    def __str__(self) -> str:
        return f"{self.text}: {self.outcome.value}" + (f": {self.reason}" if self.reason else "")


def validate(rewrite: Rewrite, solver: str, budget: Budget, claims: Iterable[Claim] = tuple(Claim)) -> Validation:
    """Proves or refutes the declared relation of a pass on its module, as far as it supports the `claims`.

    `solver` is the name of a backend, `auto` or `brute`.
    """
    if (words := misfit(rewrite)) is not None:
        return Validation(rewrite.text, Outcome.COUNTEREXAMPLE, words)
    wanted, open_reason = set(claims), ""
    for claim in claims_of(rewrite.step.relation):
        if claim not in wanted:
            continue
        try:
            with working_within(budget):
                outcome, reason = (
                    _by_brute_force(rewrite, claim) if solver == BRUTE else _decide(rewrite, claim, solver, budget)
                )
        except OutOfTime:
            outcome, reason = Outcome.OPEN, budget.reason
        if outcome is Outcome.COUNTEREXAMPLE:
            return Validation(rewrite.text, outcome, reason)
        open_reason = open_reason or (reason if outcome is Outcome.OPEN else "")
    return Validation(rewrite.text, Outcome.OPEN if open_reason else Outcome.PROVED, open_reason)


def _by_brute_force(rewrite: Rewrite, claim: Claim) -> tuple[Outcome, str]:
    try:
        found = refute_by_brute_force(rewrite, claim)
    except UsageError as error:
        return Outcome.OPEN, error.message
    return (Outcome.PROVED, "") if found is None else (Outcome.COUNTEREXAMPLE, found)


def _decide(rewrite: Rewrite, claim: Claim, solver: str, budget: Budget) -> tuple[Outcome, str]:
    """Decides one claim by a solver; the reason is empty for a proof."""
    check = check_of(rewrite, claim, not_propagated)
    if isinstance(check, str):
        return _sampled(rewrite, claim, check, solver, budget)
    if check.refuter is None:
        return Outcome.PROVED, ""
    outcome = _search(solver, check.refuter, budget=budget)
    if outcome.termination is Termination.INFEASIBLE:
        return Outcome.PROVED, ""
    if outcome.assignment is None:
        return Outcome.OPEN, outcome.detail or outcome.termination.value
    if (words := check.counterexample(outcome.assignment)) is None:
        return Outcome.OPEN, "the solver's point is no counterexample in exact arithmetic"
    if check.derived and rewrite.step.relation is not Relation.EQUIVALENT:
        # Another forward map may exist, unless the output has no solution that is as good.
        again = _search(solver, lost_by(check, outcome.assignment), budget=budget)
        if again.termination is not Termination.INFEASIBLE:
            return Outcome.OPEN, "the map derived from the postsolve does not fit; return `forward`"
    return Outcome.COUNTEREXAMPLE, words


def not_propagated(premise: Module, rows: list[Row]) -> list[Row]:
    """The rows that do not follow from the clauses of a premise by unit propagation, which suffices for most passes."""
    from treesens._engine import implied_clauses

    logic = replace(premise, ops=tuple(op for op in premise.ops if not isinstance(op, Linear)))
    clauses = steadily(clauses_of(logic))
    known = [[x for x in clause if x != FALSE] for clause in clauses if TRUE not in clause]
    asked = {row: clause for row in rows if (clause := clause_of(row)) is not None}
    if not all(known) or not asked:
        return rows if all(known) else []
    (indptr, literals), (ends, members), implied = _csr(known), _csr(asked.values()), np.zeros(len(asked), np.uint8)
    implied_clauses(
        variables=premise.variables, indptr=indptr, literals=literals, asked=ends, members=members, out=implied
    )
    proved = {row for row, yes in zip(asked, implied.tolist(), strict=True) if yes}
    return [row for row in rows if row not in proved]


def _csr(clauses: Collection[list[int]]) -> tuple[Int64Array, Int32Array]:
    """Clauses as row pointers and literals."""
    return indptr_of([len(clause) for clause in clauses]), np.array([x for clause in clauses for x in clause], np.int32)


def _sampled(rewrite: Rewrite, claim: Claim, why: str, solver: str, budget: Budget) -> tuple[Outcome, str]:
    """Checks one solution of the output through a postsolve that is not symbolic: it can refute, but prove nothing."""
    if claim is Claim.FOUND:
        module = replace(rewrite.result.module, objective=None, warm_start=None)
        outcome = _search(solver, module, budget=budget)
        if outcome.assignment is not None:
            check = Check(rewrite, claim, module, None)
            words = check.counterexample(outcome.assignment)
            if words is not None:
                return Outcome.COUNTEREXAMPLE, words
    return Outcome.OPEN, why


def _search(solver: str, module: Module, *, budget: Budget) -> RawOutcome:
    """The facts of the first solver that decides a module; `infeasible` is a proof."""
    outcome = RawOutcome(Termination.UNKNOWN, detail="no solver is available")
    for name in SOLVERS if solver == "auto" else (solver,):
        backend = get_backend(name)
        if (reason := backend.available()) is not None:
            outcome = RawOutcome(Termination.UNSUPPORTED, detail=reason)
            continue
        outcome = _solved(backend, module, budget)
        if outcome.termination is Termination.INFEASIBLE or outcome.assignment is not None:
            return outcome
    return outcome


def _solved(backend: Backend, module: Module, budget: Budget) -> RawOutcome:
    """The facts of one solver, with as many digits as its point needs; a point satisfies the module."""
    outcome = RawOutcome(Termination.UNKNOWN)
    for precision in range(backend.exact_precision() + 1):
        try:
            artifact = backend.emit(module, precision=precision)
        except BackendError as error:
            return RawOutcome(Termination.UNSUPPORTED, detail=error.message)
        outcome = _outcome(backend, artifact, Limits(max(LEAST, budget.left())), budget)
        if outcome.termination is Termination.INFEASIBLE:
            exact = backend.capabilities.proof is Proof.EXACT and not artifact.restricted
            return (
                outcome if exact else RawOutcome(Termination.UNKNOWN, detail=f"{backend.name} proves within tolerances")
            )
        if outcome.assignment is None or satisfies(module, outcome.assignment[None, :])[0]:
            return outcome
    return RawOutcome(Termination.NUMERICAL, detail=f"the point of {backend.name} is invalid in exact arithmetic")


def _outcome(backend: Backend, artifact: Artifact, limits: Limits, budget: Budget) -> RawOutcome:
    if isinstance(backend, InProcessBackend):
        return backend.solve(artifact, limits, stop=budget.stop)
    return solve_isolated(backend.name, artifact, limits, budget.stop)


# --- answers ----------------------------------------------------------------------------------------------------------------


def before_validation(pipeline: str, budget: Budget) -> Budget:
    """The part of a budget for a search, which leaves time to validate the plug-in passes of the pipeline."""
    return budget.share(1 - SHARE) if plugin_passes(pipeline) else budget


def settled(result: Result, compiled: Compiled, solver: str, budget: Budget) -> Result:
    """The result of a search after the validation of its kept passes: `exact` if all are proved, `unknown` (or without a bound)
    if one is wrong, and otherwise with a proof that names the passes left open.
    """
    if not compiled.rewrites or not claims_proof(result):
        return result
    claims = (Claim.NONE,) if result.verdict is Verdict.NONE else tuple(Claim)
    left: list[str] = []
    for number, rewrite in enumerate(compiled.rewrites):
        part = budget.share(1 / (len(compiled.rewrites) - number)).at_least(LEAST)
        found = validate(rewrite, solver, part, claims)
        if found.outcome is Outcome.COUNTEREXAMPLE:
            return _refused(result, rewrite, found.reason)
        if found.outcome is Outcome.OPEN and PASSES.owner(rewrite.step.name) is not None:
            left.append(rewrite.step.name)
    rest_on(left)
    return marked(result, dict.fromkeys(left))


def _refused(result: Result, rewrite: Rewrite, reason: str) -> Result:
    owner = PASSES.owner(rewrite.step.name)
    words = f"the pass `{rewrite.text}`{f' of {owner}' if owner else ''} is wrong on this module: {reason}"
    if result.verdict is Verdict.NONE:
        return replace(result, verdict=Verdict.UNKNOWN, reason=words, proof=None, proof_dependencies=())
    if result.objective is None:  # a list of answers, a count or an explanation
        return replace(
            result, verdict=Verdict.UNKNOWN, reason=words, proof=None, ranked=None, count=None, explanation=None
        )
    notes = (*result.notes, f"no bound: {words}")
    return replace(result, objective=replace(result.objective, bound=None), proof_dependencies=(), notes=notes)


def refused(result: Result, rewrites: Sequence[Rewrite], found: Sequence[Validation]) -> Result:
    """The result without the claims that a wrong pass refutes."""
    wrong = [pair for pair in zip(rewrites, found, strict=True) if pair[1].outcome is Outcome.COUNTEREXAMPLE]
    return _refused(result, wrong[0][0], wrong[0][1].reason) if wrong and claims_proof(result) else result


def validations(compiled: Compiled, solver: str, budget: Budget) -> list[Validation]:
    """The validation of every kept pass, in equal parts of the budget."""
    count = len(compiled.rewrites)
    return [
        validate(rewrite, solver, budget.share(1 / (count - number)).at_least(LEAST))
        for number, rewrite in enumerate(compiled.rewrites)
    ]
