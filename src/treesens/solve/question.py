"""Answers one question: the only dispatch on what kind of question it is, rows of tables first, second opinions last."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import replace
from functools import partial

from treesens.binder.file import ResolvedQuestion
from treesens.compiler.base.budget import Budget
from treesens.compiler.base.reuse import reused
from treesens.compiler.compilation import Contradiction
from treesens.compiler.query.clashes import NEVER, without_clashes
from treesens.compiler.query.probabilities import names_probabilities
from treesens.compiler.query.query import Query
from treesens.compiler.result import Result, Verdict, Witness
from treesens.errors import TreesensError
from treesens.solve.afterwards import afterwards
from treesens.solve.bounds import left_open
from treesens.solve.combine import combine, join_opinions
from treesens.solve.conclude import conclude_contradiction, leave_open
from treesens.solve.data_rows import among_rows, locate
from treesens.solve.in_library import LIBRARY, confirm_in_library
from treesens.solve.options import Options
from treesens.solve.portfolio import search_cells

CORE_SECONDS = 2.0
"""Time limit in seconds for an unsat core that was not requested."""
SHARE_SECONDS = 0.2
"""What a share gets at least, so that it says something."""


def result_of_error(query: ResolvedQuestion, options: Options, error: TreesensError) -> Result:
    """A question that could not be answered, as an answer among the others: unknown, with the error as its reason."""
    reason = f"error[{error.code}]: {error.message}"
    return leave_open(query.name, reason, backend=options.backend, pipeline=options.pipeline)


def result_of_interruption(query: ResolvedQuestion, options: Options) -> Result:
    """A question that a Ctrl-C has left where it was."""
    return leave_open(query.name, "interrupted", backend=options.backend, pipeline=options.pipeline)


def answer(
    query: Query,
    options: Options,
    budget: Budget | None = None,
    *,
    on_better: Callable[[Witness], None] | None = None,
) -> Result:
    """Answers one typed question that wants one answer, with the search that it needs.

    The budget is by default the time limit of the options. What the native engine leaves open on a small domain is closed
    by going through its combinations of cells, and what it leaves open of a disjunction by going through its cases.
    """
    budget = budget or Budget.of(options.time_limit)
    if query.explained is not None:
        from treesens.solve.explain_row import answer_explained

        return answer_explained(query, query.explained, options, budget, answer)
    result = _answered(query, options, budget, on_better)
    if result.objective is None:
        return result
    return replace(result, objective=replace(result.objective, tolerance=options.closeness))


def _answered(
    query: Query, options: Options, budget: Budget, on_better: Callable[[Witness], None] | None = None
) -> Result:
    from treesens.solve.cases import cases_of
    from treesens.solve.refine import CLOSE
    from treesens.solve.small import answer_small

    if names_probabilities(query.constraints):
        return _answer_probabilities(query, options, budget, on_better)
    query = without_clashes(query)
    if NEVER in query.constraints:
        reason = "compiler: what is asked of a sum contradicts itself"
        return replace(conclude_contradiction(query.name, Contradiction(reason)), pipeline=options.pipeline)
    search, enough = search_for(query), options.closeness
    if options.backend not in {"auto", "native"}:
        return search(query, options, budget, on_better=on_better)
    result = answer_small(query, search, options, budget, on_better)
    if result is not None and (not left_open(result, CLOSE, enough) or budget.over):
        return result
    if cases := cases_of(query):
        result = _answer_cases(query, cases, result, options, budget, on_better)
        if not left_open(result, CLOSE, enough) or budget.over:
            return result
    last = search(query, options, budget, on_better=on_better)
    return last if result is None else combine(result, last)


def _answer_probabilities(
    query: Query, options: Options, budget: Budget, on_better: Callable[[Witness], None] | None
) -> Result:
    """A question with sums of probabilities: by linear rows, or combination by combination if the domain is small."""
    from treesens.solve.probabilities import answer_probabilities
    from treesens.solve.refine import CLOSE
    from treesens.solve.small import answer_small

    search = partial(answer_probabilities, answer)
    if options.backend not in {"auto", "native"}:
        return search(query, options, budget, on_better=on_better)
    result = answer_small(query, search, options, budget, on_better)
    if result is not None and (not left_open(result, CLOSE, options.closeness) or budget.over):
        return result
    last = search(query, options, budget, on_better=on_better)
    return last if result is None else combine(result, last)


def _answer_cases(
    query: Query,
    cases: list[Query],
    before: Result | None,
    options: Options,
    budget: Budget,
    on_better: Callable[[Witness], None] | None,
) -> Result:
    """The answer of a short search over all cases of a disjunction at once, then from each case by itself."""
    from treesens.solve.cases import CASES_SHARE, FIRST, answer_by_cases
    from treesens.solve.refine import CLOSE

    def one(case: Query, part: Budget) -> Result:
        return answer(case, options, part, on_better=on_better)

    whole = search_for(query)(query, options, budget.share(CASES_SHARE).within(FIRST), on_better=on_better)
    before = whole if before is None else combine(before, whole)
    if not left_open(before, CLOSE, options.closeness) or budget.over:
        return before
    return combine(before, answer_by_cases(query, options, cases, one, budget.share(CASES_SHARE)))


def search_for(query: Query) -> Callable[..., Result]:
    """The search that a typed question needs: over groups of rows, with refinement, or once over cells."""
    # What few questions need is imported only for them: every start of the command would pay for it.
    if query.objective is not None and query.objective.nearest is not None:
        from treesens.solve.nearest_pair import answer_nearest

        return partial(answer_nearest, answer)
    from treesens.solve.cheapest import is_cheapest
    from treesens.solve.refine import answer_refined, needs_refinement

    usual = answer_refined if needs_refinement(query) else search_cells
    return partial(_cheapest_first, usual) if is_cheapest(query) else usual


def _cheapest_first(
    usual: Callable[..., Result],
    query: Query,
    options: Options,
    budget: Budget,
    *,
    on_better: Callable[[Witness], None] | None = None,
) -> Result:
    """The search for the cheapest cells; the usual one for what it has no answer to."""
    from treesens.solve.cheapest import answer_cheapest

    settled = answer_cheapest(query, options, budget, on_better)
    return usual(query, options, budget, on_better=on_better) if settled is None else settled


def answer_question(
    query: ResolvedQuestion,
    options: Options,
    budget: Budget | None = None,
    *,
    confirm: str | None = None,
    progress: Callable[[str], None] | None = None,
) -> Result:
    """The answer to one question of a file; `progress` is told of long work.

    `confirm` names a backend that is asked too (without help from the engine), or is `library`: then a `none` must stand
    whatever the library rounds (solve/in_library.py). The budget is by default the time limit of the options.

    If a table is in play its rows are tried first (`auto`), and every witness comes with its region and its nearest row.
    """
    budget = budget or Budget.of(options.time_limit)
    plain, asked = replace(options, certificates=None), query.query.share is not None
    with reused() if options.certificates is not None else nullcontext():
        result = _without_certificates(query, plain, budget.share(0.5) if asked else budget, confirm, progress)
        result = with_certificates(query.query, result, options)
    return _with_share(query.query, result, budget, progress) if asked else result


def _with_share(query: Query, result: Result, budget: Budget, progress: Callable[[str], None] | None) -> Result:
    """The result with the share that the question asks for, in what is left of the time."""
    from treesens.solve.shares import share_of

    start = time.perf_counter()

    def work() -> Result:
        share = share_of(query, result, budget.at_least(SHARE_SECONDS), progress)
        return replace(result, share=share, seconds={**result.seconds, "share": time.perf_counter() - start})

    return afterwards(result, "share", work)


def with_certificates(query: Query, result: Result, options: Options) -> Result:
    """The result with certificates of what it claims, if a folder for them is named."""
    if options.certificates is None:
        return result
    from treesens.certificates.attach import certified

    folder, seconds, required = options.certificates, options.time_limit, options.require_certificate
    made = afterwards(
        result, "certificate", lambda: certified(query, result, folder, seconds=seconds, required=required)
    )
    rests_on_proof = made.verdict is Verdict.NONE or any((made.count, made.ranked, made.explanation))
    if required and rests_on_proof and not (made.certificates and all(c.path for c in made.certificates)):
        missing = next((c.reason for c in made.certificates if not c.path), "making it failed")
        return replace(made, verdict=Verdict.UNKNOWN, reason=f"no accepted certificate: {missing}", proof=None)
    return made


def _without_certificates(
    query: ResolvedQuestion,
    options: Options,
    budget: Budget,
    confirm: str | None,
    progress: Callable[[str], None] | None,
) -> Result:
    if query.query.rows is not None and query.pinned is not None:
        from treesens.solve.count_rows import count_rows

        counted = count_rows(
            query.query, query.pinned, options, lambda q, part: answer(q, options, part), budget, progress=progress
        )
        notes = ("a count is not confirmed",) if confirm is not None else ()
        return replace(counted, notes=(*counted.notes, *notes))
    if query.query.top > 1:
        from treesens.solve.top_n import answer_top

        def one(asked: Query, part: Budget) -> Result:
            return answer_question(replace(query, query=asked), options, part, confirm=confirm)

        return answer_top(query.query, one, budget)
    result = _beside_rows(query, options, budget)
    if confirm is None or budget.stopped:
        return result
    again = Budget.of(options.time_limit, budget.stop)
    if confirm == LIBRARY:
        return confirm_in_library(query.query, result, lambda q, part: answer(q, options, part), again)
    # A second opinion that leans on the first would be none.
    pipeline = (
        "independent" if options.pipeline == "default" and confirm not in {"native", "auto"} else options.pipeline
    )
    second = answer(query.query, replace(options, backend=confirm, pipeline=pipeline), again)
    return join_opinions(result, second, confirm)


def _beside_rows(query: ResolvedQuestion, options: Options, budget: Budget) -> Result:
    """The answer with its region and its nearest row, after the rows of the table in play have been tried."""
    if query.query.explained is not None:
        return answer(query.query, options, budget)
    start = time.perf_counter()
    result, options = among_rows(query, options) if options.backend in {"auto", "native"} else (None, options)
    if result is None or options.backend != "auto":
        result = answer(query.query, options, budget)
    result = afterwards(result, "region", partial(locate, query, result, options))
    known = sum(result.seconds.values())
    return replace(result, seconds={**result.seconds, "data": max(0.0, time.perf_counter() - start - known)})


def explain_none(
    query: ResolvedQuestion,
    result: Result,
    options: Options,
    *,
    stop: threading.Event | None = None,
    always: bool = False,
) -> Result:
    """A `none` with the conjuncts that clash: if the compiler itself has found the contradiction, or `always`.

    The time limit of the options holds for the searches that this needs; without `always` they get little.
    """
    if result.verdict is not Verdict.NONE or query.query.rows is not None or query.query.explained is not None:
        return result
    if not (always or result.backend == "compiler"):
        return result
    start = time.perf_counter()
    budget = Budget.of(options.time_limit if always else min(options.time_limit, CORE_SECONDS), stop)
    from treesens.solve.unsat_core import core_of

    mine = replace(options, hints=None)

    def work() -> Result:
        core = core_of(query, lambda q, part: answer(q, mine, part), budget)
        return replace(result, core=core, seconds={**result.seconds, "core": time.perf_counter() - start})

    return afterwards(result, "core", work)
