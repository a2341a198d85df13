"""Random questions: text and tree are the same, and the plain reading of every value agrees with every backend.

The seed of a failure is the number in its name: `random_question(SEED).text` is the file.
"""

from __future__ import annotations

from math import sqrt

import numpy as np
import pytest

from tests.binder.random_questions import Question, random_question, witness_points
from treesens.backends.base import get_backend
from treesens.binder.file import ResolvedQuestion
from treesens.compiler.base.diagnostics import Diagnostic, DiagnosticsError
from treesens.compiler.ir.verifier import verify
from treesens.compiler.lower import lower
from treesens.compiler.result import Result, Verdict
from treesens.errors import QueryError
from treesens.grammar.messages.catalogue import CATALOGUE
from treesens.grammar.parsing.parser import parse
from treesens.grammar.printing.formatter import format_text
from treesens.grammar.printing.printer import to_text
from treesens.solve.options import Options
from treesens.solve.question import answer

SEEDS = 120
OTHERS = ("cpsat", "highs", "z3", "cbc", "scip", "pb")
EVERY = 10
"""Every so-manieth question also goes to one of the other backends, through its worker."""
MUTANTS = 300
CONTRADICTIONS = {"E306", "E309"}
REFUSED = {"E218"}


def bound_or_refused(question: Question) -> ResolvedQuestion | None:
    """The typed question; None where the binder sees a contradiction, or a distance that is always 0."""
    try:
        return question.bound()
    except DiagnosticsError as error:
        if not {d.code for d in error.diagnostics} <= CONTRADICTIONS | REFUSED:
            raise
        return None


def check(question: Question, bound: ResolvedQuestion, result: Result) -> None:
    """An answer against every value: never wrong, and never undecided where all values are known."""
    some, best = question.oracle(bound)
    goal = bound.query.objective
    if result.verdict is Verdict.FOUND:
        assert result.witness is not None
        points = witness_points(question, result.witness.values)
        assert question.satisfied(points, bound), "the values of the answer do not satisfy the question"
        if goal is not None:
            _check_objective(question, bound, result, best)
    if question.complete:
        assert result.verdict is (Verdict.FOUND if some else Verdict.NONE), result.reason
    elif some:
        assert result.verdict is not Verdict.NONE, "sampled values satisfy the question"


def _check_objective(question: Question, bound: ResolvedQuestion, result: Result, best: object) -> None:
    goal, shown = bound.query.objective, result.objective
    assert goal is not None
    assert shown is not None
    assert result.witness is not None
    squared = goal.kind == "distance l2"
    mine = float(question.objective(witness_points(question, result.witness.values), bound))
    assert shown.value == pytest.approx(sqrt(mine) if squared else mine, abs=1e-6)
    if best is None or shown.bound is None:
        return
    reached = sqrt(float(best)) if squared else float(best)  # type: ignore[arg-type]
    worse = shown.bound - reached if goal.maximize else reached - shown.bound
    assert worse >= -1e-6, f"{reached} is better than the bound {shown.bound}"


@pytest.mark.parametrize("seed", range(SEEDS))
@pytest.mark.sampled
def test_random_question(seed: int) -> None:
    question = random_question(seed)
    tree = parse(question.text, "r.sens")
    assert parse(to_text(tree), "r.sens") == tree
    formatted = format_text(question.text)
    assert format_text(formatted) == formatted
    assert parse(formatted, "r.sens") == tree
    bound = bound_or_refused(question)
    if bound is None:
        return
    verify(lower(bound.query))
    check(question, bound, answer(bound.query, Options(backend="native", time_limit=20)))
    if seed % EVERY == 0:
        name = OTHERS[seed // EVERY % len(OTHERS)]
        if get_backend(name).available() is None:
            check(question, bound, answer(bound.query, Options(backend=name, time_limit=20)))


def mutated(text: str, rng: np.random.Generator) -> str:
    """The text with one to three words dropped, doubled, exchanged or replaced."""
    words = text.replace("(", " ( ").replace(")", " ) ").replace(",", " , ").split(" ")
    strange = ["", "a", "f0", "f9", "inf", "-", "1e400", "0", "'", "`", '"', "row", "nearest", "{", "}", "(", ")", "l2"]
    strange += ["distance(a, b, l1)", "prob(a, 7)", "class(b)", "missing(a.f0)", "not", "\n", "::", "𝛼", "a.f0 + b.f1"]
    for _ in range(int(rng.integers(1, 4))):
        at = int(rng.integers(len(words)))
        other = int(rng.integers(len(words)))
        match int(rng.integers(4)):
            case 0:
                del words[at]
            case 1:
                words.insert(at, words[other])
            case 2:
                words[at], words[other] = words[other], words[at]
            case _:
                words[at] = strange[int(rng.integers(len(strange)))]
    return " ".join(words)


@pytest.mark.parametrize("start", range(0, MUTANTS, 20))
def test_a_broken_question_gets_a_code_and_a_place(start: int) -> None:
    """Whatever the text: typed questions that lower, or messages with a code and a place; never another exception."""
    for seed in range(start, start + 20):
        question = random_question(seed)
        text = mutated(question.text, np.random.default_rng(seed + 10_000))
        diagnostics, bound = read(question, text)
        for diagnostic in diagnostics:
            assert diagnostic.code in CATALOGUE, (seed, text)
            assert diagnostic.span is not None, (seed, text)
            assert diagnostic.message, (seed, text)
            assert diagnostic.render(), (seed, text)
        if bound is not None:
            remedy = refused(bound)
            assert remedy != "", (seed, text)


def read(question: Question, text: str) -> tuple[tuple[Diagnostic, ...], ResolvedQuestion | None]:
    """What is wrong with a text, or the first question that it asks (None where it asks nothing)."""
    try:
        found = question.bound_all(text)
    except DiagnosticsError as error:
        return error.diagnostics, None
    return (), found.queries[0] if found.queries else None


def refused(bound: ResolvedQuestion) -> str | None:
    """Why a typed question is no single search (its remedy), None where it lowers to a sound module."""
    try:
        verify(lower(bound.query))
    except QueryError as error:
        return error.remedy
    return None
