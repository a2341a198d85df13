"""Answers one question: the only dispatch on what kind of question it is, rows of tables first, second opinions last."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

from treesens.binder.file import ResolvedQuestion
from treesens.compiler.query.query import Query
from treesens.compiler.result import Result, Verdict, Witness
from treesens.errors import InternalError, TreesensError
from treesens.solve.data_rows import among_rows, locate
from treesens.solve.options import Options
from treesens.solve.portfolio import search_cells

CORE_SECONDS = 2.0
"""Most seconds on the clashing conjuncts of a question nobody asked them of."""


def library_predicts(query: ResolvedQuestion, replay: str) -> list[Callable[..., Any]] | None:
    """The library's own predict per model where it is asked for, or (auto) where the library is already imported."""
    if replay == "emulated":
        return None
    if replay == "auto" and not all(_imported(model.frontend) for model in query.models):
        return None
    return [model.margins for model in query.models]


def _imported(frontend: str) -> bool:
    from treesens.frontends.registry import frontend as get

    return get(frontend).library in sys.modules


def result_of_error(query: ResolvedQuestion, options: Options, error: TreesensError) -> Result:
    """A question that could not be answered, as an answer among the others: unknown, with the error as its reason."""
    reason = f"error[{error.code}]: {error.message}"
    return Result(query.name, Verdict.UNKNOWN, reason, backend=options.backend, pipeline=options.pipeline)


def result_of_interruption(query: ResolvedQuestion, options: Options) -> Result:
    """A question that a Ctrl-C has left where it was."""
    return Result(query.name, Verdict.UNKNOWN, "interrupted", backend=options.backend, pipeline=options.pipeline)


def answer(
    query: Query,
    options: Options,
    *,
    stop: threading.Event | None = None,
    on_better: Callable[[Witness], None] | None = None,
) -> Result:
    """Answers one typed question that wants one answer, with the search that it needs.

    What the native engine leaves open on a small domain is closed by going through its combinations of cells.
    """
    from treesens.solve import enumeration
    from treesens.solve.refine import CLOSE

    search = search_for(query)
    if options.backend not in {"auto", "native"} or not enumeration.is_small(query):
        return search(query, options, stop=stop, on_better=on_better)
    deadline = time.monotonic() + options.time_limit
    first = replace(options, time_limit=min(enumeration.FIRST, options.time_limit / 2))
    result = search(query, first, stop=stop, on_better=on_better)
    if not enumeration.left_open(result):
        return result
    walk = enumeration.walk_combinations
    if query.objective is not None and query.objective.nearest is not None:
        from treesens.solve.enumeration_rows import through_rows as walk
    result = enumeration.finish_by_enumeration(
        query, options, result, deadline, walk=walk, stop=stop, on_better=on_better
    )
    left = deadline - time.monotonic()
    if not enumeration.left_open(result, CLOSE) or left <= 0 or (stop is not None and stop.is_set()):
        return result
    again = search(query, replace(options, time_limit=left), stop=stop, on_better=on_better)
    return enumeration.better_of(query, result, again)


def search_for(query: Query) -> Callable[..., Result]:
    """The search that a typed question needs: over groups of rows, with refinement, or once over cells."""
    # What few questions need is imported only for them: every start of the command would pay for it.
    if query.objective is not None and query.objective.nearest is not None:
        from treesens.solve.nearest_pair import answer_nearest

        return partial(answer_nearest, answer)
    from treesens.solve.refine import answer_refined, needs_refinement

    return answer_refined if needs_refinement(query) else search_cells


def answer_question(
    query: ResolvedQuestion,
    options: Options,
    *,
    stop: threading.Event | None = None,
    confirm: str | None = None,
    progress: Callable[[str], None] | None = None,
) -> Result:
    """The answer to one question of a file; `confirm` names a backend that is asked too (without help from the engine),
    `progress` is told of long work.

    Where a table is in play its rows are tried first (`auto`), and every witness comes with its region and its nearest row.
    """
    plain = replace(options, certificates=None)
    return with_certificates(query.query, _without_certificates(query, plain, stop, confirm, progress), options)


def with_certificates(query: Query, result: Result, options: Options) -> Result:
    """The result with certificates of what it claims, where a folder for them is named."""
    if options.certificates is None:
        return result
    from treesens.certificates.attach import certified

    seconds = options.time_limit
    return certified(query, result, options.certificates, seconds=seconds, required=options.require_certificate)


def _without_certificates(
    query: ResolvedQuestion,
    options: Options,
    stop: threading.Event | None,
    confirm: str | None,
    progress: Callable[[str], None] | None,
) -> Result:
    if query.query.rows is not None and query.pinned is not None:
        from treesens.solve.count_rows import count_rows

        counted = count_rows(
            query.query, query.pinned, options, partial(answer, stop=stop), stop=stop, progress=progress
        )
        notes = ("a count is not confirmed by another backend",) if confirm is not None else ()
        return replace(counted, notes=(*counted.notes, *notes))
    if query.query.top > 1:
        from treesens.solve.top_n import answer_top

        return answer_top(
            query.query,
            options,
            lambda asked, mine: answer_question(replace(query, query=asked), mine, stop=stop, confirm=confirm),
            stop=stop,
        )
    start = time.perf_counter()
    result, options = among_rows(query, options) if options.backend in {"auto", "native"} else (None, options)
    if result is None or options.backend != "auto":
        result = answer(query.query, options, stop=stop)
    result = locate(query, result, options)
    known = sum(result.seconds.values())
    result = replace(result, seconds={**result.seconds, "data": max(0.0, time.perf_counter() - start - known)})
    if confirm is None or (stop is not None and stop.is_set()):
        return result
    # A second opinion that leans on the first would be none.
    pipeline = (
        "independent" if options.pipeline == "default" and confirm not in {"native", "auto"} else options.pipeline
    )
    second = answer(query.query, replace(options, backend=confirm, pipeline=pipeline), stop=stop)
    return join_opinions(result, second, confirm)


def explain_none(
    query: ResolvedQuestion,
    result: Result,
    options: Options,
    *,
    stop: threading.Event | None = None,
    always: bool = False,
) -> Result:
    """A `none` with the conjuncts that clash: where the compiler itself has found the contradiction, or `always`.

    The time limit of the options holds for the searches that this needs; without `always` they get little.
    """
    if result.verdict is not Verdict.NONE or query.query.rows is not None:
        return result
    if not (always or result.backend == "compiler"):
        return result
    start = time.perf_counter()
    limit = options.time_limit if always else min(options.time_limit, CORE_SECONDS)
    from treesens.solve.unsat_core import core_of

    core = core_of(query, replace(options, time_limit=limit, hints=None), partial(answer, stop=stop), stop=stop)
    return replace(result, core=core, seconds={**result.seconds, "core": time.perf_counter() - start})


def join_opinions(first: Result, second: Result, backend: str) -> Result:
    """Two opinions as one answer. Raises `InternalError` where they contradict each other."""
    attempts = (*first.attempts, *second.attempts)
    if second.verdict is Verdict.UNKNOWN:
        note = f"{backend} could not confirm: {second.reason}"
        return replace(first, attempts=attempts, notes=(*first.notes, note))
    if first.verdict is Verdict.UNKNOWN:
        return replace(second, attempts=attempts)
    if first.verdict is not second.verdict:
        raise InternalError(
            f"{first.backend} says {first.verdict} and {backend} says {second.verdict} to `{first.query}`",
            remedy="one of them is wrong: please report this with the file and the model",
        )
    proof = second.proof if second.proof == "exact" else first.proof
    return replace(first, proof=proof, attempts=attempts, confirmed_by=backend)
