"""Answers one question: rows of tables first, then the fitting methods (`solve/methods/registry.py`), second opinions last."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from dataclasses import replace
from functools import partial
from typing import Final, Protocol

from treesens.binder.file import ResolvedQuestion
from treesens.builtin import service
from treesens.compiler.base.budget import LEAST, Budget, OutOfTime, working_within
from treesens.compiler.pipeline import compile_query, pipeline_for, pipeline_to_confirm, reproducers_in
from treesens.compiler.query.cases import MOST_CASES, compiled_part, too_many_to_split
from treesens.compiler.query.probabilities import names_probabilities
from treesens.compiler.query.query import Query
from treesens.compiler.result import Certified, Proof, Result, ShareFound, Verdict, afterwards
from treesens.compiler.unvalidated import marked, resting_on
from treesens.errors import InternalError, TreesensError, UndecidedError, UsageError
from treesens.runtime.kept import reused
from treesens.solve import fits
from treesens.solve.bounds import CLOSE, left_open
from treesens.solve.combine import combine, join_opinions
from treesens.solve.conclude import Facts, conclude_plugin, leave_open
from treesens.solve.method import Method, OpenQuestion, Stage
from treesens.solve.methods.registry import PLUGINS, all_methods, cell_searches
from treesens.solve.options import Options
from treesens.solve.plugins import plugins_of
from treesens.solve.tasks.data_rows import among_rows, locate
from treesens.solve.tasks.in_library import LIBRARY, confirm_in_library
from treesens.solve.validation import SHARE, refused, validations
from treesens.values.contradictions import without_clashes
from treesens.values.verify import Witness

CORE_SECONDS = 2.0
"""Time limit in seconds for an unsat core that was not requested."""
LEAST_OTHER = 0.0005
"""Seconds outside all named phases are recorded if they exceed this limit, the resolution of a record's times."""
SHARE_SECONDS = 0.2
"""Minimum seconds for a share, so that its bounds are meaningful."""


class Shares(Protocol):
    """The interface of the service "measures" (`builtin.SERVICES`)."""

    def share_of(
        self, query: Query, result: Result, budget: Budget, progress: Callable[[str], None] | None
    ) -> ShareFound | None:
        """The share of the question's measure, given this answer."""


Ask = Callable[[Query, Options, Budget], Result]
"""A function that answers a question, such as a question on which another answer depends."""


class Answers(Protocol):
    """The interface of the service "answers" (`builtin.SERVICES`)."""

    def count_rows(
        self,
        query: Query,
        pinned: Callable[[int], Query],
        options: Options,
        one: Callable[[Query, Budget], Result],
        budget: Budget,
        *,
        progress: Callable[[str], None] | None = None,
    ) -> Result:
        """The answer to a question with `rows`; `pinned(N)` is the question about row N."""

    def answer_top(self, query: Query, one: Callable[[Query, Budget], Result], budget: Budget) -> Result:
        """The first answer, with all `query.top` answers in `ranked`."""


class Certificates(Protocol):
    """The service "certificates". `ask` (`answer`) answers questions that a proof needs; the options name a folder."""

    def certified(
        self, query: Query, result: Result, options: Options, budget: Budget, ask: Callable[..., Result]
    ) -> Result:
        """The result with its claims' certificates, or the reason why a claim has no certificate."""

    def certified_share(
        self, query: Query, result: Result, options: Options, budget: Budget, ask: Callable[..., Result]
    ) -> Result:
        """The result with its share's certificates added. If certificates are required, the share is the proved share."""


def result_of_error(name: str, options: Options, error: TreesensError) -> Result:
    """The result of a question that raised an error: `unknown`, with the error as its reason."""
    reason = f"error[{error.code}]: {error.message}"
    return leave_open(name, reason, backend=options.backend, pipeline=options.pipeline)


def result_of_interruption(query: ResolvedQuestion, options: Options) -> Result:
    """The result of a question interrupted by Ctrl-C."""
    return leave_open(query.name, "interrupted", backend=options.backend, pipeline=options.pipeline)


def answer(
    query: Query,
    options: Options,
    budget: Budget | None = None,
    *,
    on_better: Callable[[Witness], None] | None = None,
) -> Result:
    """Answers one typed question that has a single answer, by the methods that fit it.

    By default, the options set the budget. `solve/methods/registry.py` lists the methods.
    """
    budget = budget or options.budget()
    try:
        with resting_on() as passes, reproducers_in(options.reproducer):
            result = ask_methods(OpenQuestion(as_asked(query, options), options, answer, on_better), budget)
    except UndecidedError as error:
        return leave_open(query.name, f"{error.code}: {error.message}")
    result = marked(result, passes)
    note = note_on_cases(query)
    if note is not None and note not in result.notes and left_open(result, CLOSE, options.closeness):
        result = replace(result, notes=(*result.notes, note))
    if result.objective is None:
        return result
    return replace(result, objective=replace(result.objective, tolerance=options.closeness))


def answer_question(
    query: ResolvedQuestion,
    options: Options,
    budget: Budget | None = None,
    *,
    progress: Callable[[str], None] | None = None,
) -> Result:
    """The answer to one question of a file; `progress` is called during long work.

    `options.confirm` names a second backend (without help from the engine), or is `library`: a `none` must then be valid
    however the library rounds (solve/tasks/in_library.py). By default, the options set the budget. The answer, its
    confirmation, its certificates and its share get equal parts of the budget, and each may use the time left by earlier steps.

    If the question uses a table, the table's rows are tried first (`auto`), and every witness has a region and a nearest row.
    """
    budget = budget or options.budget()
    start = time.perf_counter()
    with resting_on() as passes, reproducers_in(options.reproducer):
        first = budget if options.check_each is None else budget.share(1 - SHARE)
        result = marked(_answered(query, options, first, progress), passes)
        if options.check_each is not None:
            result = _with_passes_checked(query.query, result, options, options.check_each, budget)
    result = replace(result, plugins=plugins_of(query.query, result))
    rest = time.perf_counter() - start - sum(result.seconds.values())
    if rest < LEAST_OTHER:
        return result
    return replace(result, seconds={**result.seconds, "other": result.seconds.get("other", 0.0) + rest})


def _with_passes_checked(query: Query, result: Result, options: Options, solver: str, budget: Budget) -> Result:
    """The result with a note per pass of the pipeline, validated on the question's module."""

    def work() -> Result:
        part = budget.at_least(LEAST)
        try:
            with working_within(part):
                text = pipeline_for(options.backend, options.pipeline)
                compiled = compile_query(compiled_part(query), text, keep_each=True).compiled
        except OutOfTime:
            return replace(result, notes=(*result.notes, f"passes were not checked: {part.reason}"))
        found = validations(compiled, solver, part)
        checked = replace(result, notes=(*result.notes, *map(str, found)))
        return refused(checked, compiled.rewrites, found)

    return afterwards(result, "check of the passes", work)


def _answered(
    query: ResolvedQuestion,
    options: Options,
    budget: Budget,
    progress: Callable[[str], None] | None,
) -> Result:
    """The answer, with its certificates and share."""
    plain, wants_share = replace(options, certificates=None), query.query.share is not None
    certifies = options.certificates is not None
    if certifies:
        service("certificates")  # a missing extension is reported before any work
    with reused() if certifies else nullcontext():
        later = wants_share + certifies + (wants_share and certifies)
        first = 2 if options.confirm is not None else 1
        result = _without_certificates(query, plain, budget.share(first / (first + later)), progress)
        if certifies:
            result = with_certificates(query.query, result, options, budget.share(1 / later))
    if not wants_share:
        return result
    if result.verdict is Verdict.NONE and result.proof is Proof.EXACT:
        return _with_share(query.query, result, budget, progress)
    if options.require_certificate and options.certificates is None:
        return _without_share(query.query, result, "certificates need a folder")
    result = _with_share(query.query, result, budget.share(0.5) if certifies else budget, progress)
    return _certified_share(query.query, result, options, budget) if certifies else result


def _without_share(query: Query, result: Result, why: str) -> Result:
    """The result without claims about an uncertified share; `why` is the reason."""
    asked = query.share
    assert asked is not None
    reason = f"no accepted certificate: {why}"
    share = ShareFound(asked.measure, asked.kind, 0.0, 1.0, None, False, reason).judged(asked)
    return replace(result, share=share)


def _with_share(query: Query, result: Result, budget: Budget, progress: Callable[[str], None] | None) -> Result:
    """The result with the question's share, computed in the remaining time."""
    shares: Shares = service("measures")
    start = time.perf_counter()

    def work() -> Result:
        share = shares.share_of(query, result, budget.at_least(SHARE_SECONDS), progress)
        return replace(result, share=share, seconds={**result.seconds, "share": time.perf_counter() - start})

    return afterwards(result, "share", work)


def _certified_share(query: Query, result: Result, options: Options, budget: Budget) -> Result:
    """The result with its share's certificates added."""
    if result.share is None:
        return result
    certificates: Certificates = service("certificates")
    done = afterwards(
        result, "certificate", partial(certificates.certified_share, query, result, options, budget, answer)
    )
    made = done.certificates[len(result.certificates) :] or (Certified("share", reason="making it failed"),)
    if options.require_certificate and not all(one.path for one in made):
        return _without_share(query, done, next(one.reason for one in made if not one.path))
    return done


def with_certificates(query: Query, result: Result, options: Options, budget: Budget) -> Result:
    """The result with certificates if the options name a folder for them; if required, uncertified claims are removed."""
    if options.certificates is None:
        return result
    certificates: Certificates = service("certificates")
    done = afterwards(result, "certificate", partial(certificates.certified, query, result, options, budget, answer))
    return with_nothing_else(done) if options.require_certificate else done


def with_nothing_else(result: Result) -> Result:
    """The result without claims whose proof lacks an accepted certificate, and without the numbers of these claims.

    Regions, nearest rows and near misses have no certificates.
    """
    made = result.certificates
    missing = next((c.reason for c in made if not c.path), "" if made else "making it failed")
    rests_on_proof = result.verdict is Verdict.NONE or any((result.count, result.ranked, result.explanation))
    if rests_on_proof and missing:
        logged = ("backend", "pipeline", "seconds", "size", "attempts", "share", "certificates")
        known = {name: getattr(result, name) for name in logged}
        return leave_open(result.query, f"no accepted certificate: {missing}", **known)
    accepted = {claim for claim in ("found", "bound") if all(c.path for c in made if c.claim == claim)}
    accepted &= {c.claim for c in made}
    goal = result.objective if "found" in accepted else None
    if goal is not None and "bound" not in accepted:
        goal = replace(goal, bound=None)
    ranked = result.ranked
    if ranked is not None:
        ranked = replace(ranked, answers=tuple(replace(one, nearest=None) for one in ranked.answers))
    return replace(result, objective=goal, ranked=ranked, region=None, nearest=None, near_miss=None)


def _without_certificates(
    query: ResolvedQuestion,
    options: Options,
    budget: Budget,
    progress: Callable[[str], None] | None,
) -> Result:
    confirm = options.confirm
    if query.query.rows is not None and query.pinned is not None:
        answers: Answers = service("answers")
        counted = answers.count_rows(
            query.query, query.pinned, options, lambda q, part: answer(q, options, part), budget, progress=progress
        )
        notes = ("a count is not confirmed",) if confirm is not None else ()
        return replace(counted, notes=(*counted.notes, *notes))
    if query.query.top > 1:
        answers = service("answers")

        def one(one_query: Query, part: Budget) -> Result:
            return answer_question(replace(query, query=one_query), options, part)

        return answers.answer_top(query.query, one, budget)
    result = _beside_rows(query, options, budget if confirm is None else budget.share(0.5))
    if confirm is None or budget.stopped:
        return result
    if confirm == LIBRARY:
        return confirm_in_library(query.query, result, lambda q, part: answer(q, options, part), budget)
    # A second opinion must not depend on the first.
    pipeline = pipeline_to_confirm(confirm, options.pipeline)
    second = answer(query.query, replace(options, backend=confirm, pipeline=pipeline), budget)
    return join_opinions(result, second, confirm)


def _beside_rows(query: ResolvedQuestion, options: Options, budget: Budget) -> Result:
    """The answer with its region and its nearest row, after the rows of the question's table have been tried."""
    if query.query.explained is not None:
        return answer(query.query, options, budget)
    start = time.perf_counter()
    try:
        result, options = among_rows(query, options) if options.backend in {"auto", "native"} else (None, options)
    except UndecidedError:
        result = None  # a row that cannot be judged is not an answer
    if result is None or options.backend != "auto":
        asked = time.perf_counter()
        result = answer(query.query, options, budget)
        elsewhere = time.perf_counter() - asked  # includes an interrupted phase, which is not recorded
    else:
        elsewhere = sum(result.seconds.values())
    result = located(query, result, options)
    return replace(result, seconds={**result.seconds, "data": max(0.0, time.perf_counter() - start - elsewhere)})


def located(query: ResolvedQuestion, result: Result, options: Options) -> Result:
    """The answer with its region and its nearest row; if their computation fails, the unchanged answer with a note."""
    return afterwards(result, "region", partial(locate, query, result, options))


def _rests_on_trees(query: Query) -> bool:
    """True if constraints clash only because no tree splits on the varied features, which no single constraint shows."""
    found = [fits.contradicts_itself(without_clashes(query, across=across)) for across in (True, False)]
    return found == [True, False]


def explain_none(
    query: ResolvedQuestion,
    result: Result,
    options: Options,
    *,
    stop: threading.Event | None = None,
) -> Result:
    """Adds the clashing conjuncts to a `none`, if the compiler found the contradiction in the constraints, or with
    `options.core`.

    The searches use the time that the answer leaves or, without `options.core`, a small part of this time.
    """
    always = options.core
    if result.verdict is not Verdict.NONE or query.query.rows is not None or query.query.explained is not None:
        return result
    if not (always or (result.backend == "compiler" and not _rests_on_trees(query.query))):
        return result
    if result.proof is Proof.UNVALIDATED:
        notes = (f"no core: the answer rests on an {result.proof_text}",) if always else ()
        return replace(result, notes=(*result.notes, *notes))
    if options.require_certificate:
        notes = ("no core: the core depends on proofs that have no certificates",) if always else ()
        return replace(result, notes=(*result.notes, *notes))
    start = time.perf_counter()
    budget = options.budget(stop, spent=sum(result.seconds.values()))
    if not always:
        budget = budget.within(CORE_SECONDS)
    from treesens.solve.tasks.unsat_core import core_of

    without_hints = replace(options, hints=None)

    def one(subset: Query, part: Budget) -> Result:
        found = answer(subset, without_hints, part)
        return leave_open(subset.name, found.proof_text or "") if found.proof is Proof.UNVALIDATED else found

    def work() -> Result:
        core = core_of(query, one, budget)
        return replace(result, core=core, seconds={**result.seconds, "core": time.perf_counter() - start})

    return afterwards(result, "core", work)


UNSPLIT: Final = "E502"
"""The code of the note on a disjunction too long to split."""


def ask_methods(question: OpenQuestion, budget: Budget, methods: Sequence[Method] | None = None) -> Result:
    """Tries the methods (by default, all) that fit, in order, until the question is closed; each uses the result so far."""
    for method in all_methods() if methods is None else methods:
        if not method.fits(question.query, question.options):
            continue
        start = time.perf_counter()
        result = method.function()(question, method.part(question.query, budget))
        if isinstance(result, Facts):
            result = conclude_plugin(question.query, result, question.options, method.name, time.perf_counter() - start)
            if result is not None:
                question.show(result)
        elif method.name not in PLUGINS.builtin and result is not None:
            raise UsageError(
                f"the plug-in method `{method.name}` of {PLUGINS.owner(method.name)} returned {type(result).__name__}",
                remedy="it must return `treesens.solve.conclude.Facts`, from which the verdict is derived, or None",
            )
        if result is None:
            continue
        so_far = result if question.known is None or method.takes_over else combine(question.known, result)
        if method.stage is not Stage.STEP or _settles(method, so_far, question.options, budget):
            return so_far
        question = replace(question, known=so_far)
    raise InternalError(f"no method has answered `{question.query.name}`", remedy="please report this with the file")


def _settles(method: Method, so_far: Result, options: Options, budget: Budget) -> bool:
    if method.to_the_last_unit:
        return not left_open(so_far)
    return budget.over or not left_open(so_far, CLOSE, options.closeness)


def search_cells(
    query: Query,
    options: Options,
    budget: Budget,
    *,
    on_better: Callable[[Witness], None] | None = None,
) -> Result:
    """One search over cells; `refuted` lists candidates that failed for lack of values."""

    def ask(*_: object, **__: object) -> Result:
        raise InternalError(
            "a search over cells must answer no other question", remedy="please report this with the file"
        )

    return ask_methods(OpenQuestion(query, options, ask, on_better), budget, cell_searches())


def as_asked(query: Query, options: Options) -> Query:
    """The question in the form for methods: without impossible alternatives.

    With a named pipeline, a score that two points share counts as two scores: encodings are measured on unmodified questions.
    """
    if names_probabilities(query.constraints) or query.explained is not None:
        return query
    return without_clashes(query, across=fits.on_trees(options))


def note_on_cases(query: Query) -> str | None:
    """The note on a disjunction too long to split, or None."""
    alternatives = too_many_to_split(query)
    if not alternatives:
        return None
    words = f"a disjunction of {alternatives} alternatives is searched as a whole"
    return f"{UNSPLIT}: {words}: at most {MOST_CASES} are split into cases"


def methods_for(query: Query, options: Options) -> list[Method]:
    """The fitting methods in their order, up to the first that always returns a result."""
    query, found = as_asked(query, options), list[Method]()
    for method in all_methods():
        if method.fits(query, options):
            found.append(method)
            if method.always:
                break
    return found
