"""Answers a module that belongs to no question, such as a `.sir` file: passes, then one backend, or the portfolio in turn.

A point counts only if it satisfies the source module in exact arithmetic. There is no model, and therefore no replay.
"""

from __future__ import annotations

import time
from dataclasses import replace

from treesens.backends.base import Artifact, Backend, Proof, RawOutcome, get_backend
from treesens.compiler.base.budget import Budget, OutOfTime, working_within
from treesens.compiler.ir import Module
from treesens.compiler.passes.base import size_of
from treesens.compiler.pipeline import Pipeline, contradiction_of, pipeline_for
from treesens.compiler.result import Result, Verdict
from treesens.errors import BackendError
from treesens.solve.bounds import ContradictoryBound, left_open
from treesens.solve.combine import combine
from treesens.solve.conclude import conclude_contradiction, conclude_module, leave_open
from treesens.solve.driver import FIRST_MOMENT, NOT_COMPILED, Ledger, ended_early, moments_of, refine
from treesens.solve.methods.portfolio import RACERS
from treesens.solve.options import Options
from treesens.solve.validation import before_validation, settled
from treesens.values.verify import Rejected


def answer_module(module: Module, options: Options, budget: Budget) -> Result:
    """The answer to a verified module: `found` with a solution, `none` with its proof, or `unknown` with the reason.

    Under `auto`, the native engine and the exact solvers run one after the other, each with an equal share of the time that is
    left. Raises `InternalError` if two exact backends contradict each other.
    """
    start = time.perf_counter()
    ledger = Ledger(options)
    result = leave_open(module.name)
    backends = [get_backend(name) for name in (["native", *RACERS] if options.backend == "auto" else [options.backend])]
    if options.backend == "auto":
        backends = [b for b in backends if b.capabilities.proof is Proof.EXACT and b.available() is None]
    try:
        for number, backend in enumerate(backends):
            if budget.over and number:
                break
            part = budget.share(1 / (len(backends) - number))
            result = combine(result, replace(_solved(module, backend, part, ledger), backend=backend.name))
            if not left_open(result, tolerance=options.closeness):
                break
    except ContradictoryBound as error:
        result = leave_open(module.name, error.reason)
    if result.verdict is Verdict.UNKNOWN and not result.reason:
        result = replace(ledger.unknown(module.name), backend=options.backend)
    if result.objective is not None:
        result = replace(result, objective=replace(result.objective, tolerance=options.closeness))
    seconds = {"solve": time.perf_counter() - start}
    return replace(
        result, pipeline=options.pipeline, attempts=tuple(ledger.attempts), seconds=seconds, size=size_of(module)
    )


def _solved(module: Module, backend: Backend, budget: Budget, ledger: Ledger) -> Result:
    """The answer of one backend; an open answer without a reason if it has none."""
    options, left = ledger.options, leave_open(module.name)
    solver = options.check_each or "auto"
    if (reason := backend.available()) is not None:
        ledger.note(backend.name, "unavailable", words=reason)
        return left
    try:
        with working_within(budget.at_least(FIRST_MOMENT)):
            pipeline = Pipeline.parse(pipeline_for(backend.name, options.pipeline))
            compiled = pipeline.run(module, verify_each=options.verify_each)
    except OutOfTime:
        ledger.note(backend.name, ended_early(budget), words=NOT_COMPILED)
        return left
    if (contradiction := contradiction_of(compiled)) is not None:
        return settled(conclude_contradiction(module.name, contradiction), compiled, solver, budget)

    def judge(artifact: Artifact, outcome: RawOutcome, seconds: dict[str, float]) -> Result | None:
        found = conclude_module(compiled, backend, artifact, outcome)
        words, result = outcome.detail, None
        if isinstance(found, Rejected):
            ledger.best.rejected, words = found, found.reason
        else:
            result = found
        verdict = Verdict.UNKNOWN if result is None else result.verdict
        how = outcome.termination.value
        facts = (outcome.statistics, moments_of(compiled, artifact, outcome, None))
        ledger.note(backend.name, how, verdict, words, seconds, compiled.module, *facts)
        return result

    try:
        part = before_validation(options.pipeline, budget)
        return settled(refine(compiled.module, None, backend, part, ledger, judge) or left, compiled, solver, budget)
    except BackendError as error:
        ledger.note(backend.name, "unsupported", words=error.message)
        return left
