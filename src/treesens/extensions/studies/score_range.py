"""The smallest and the largest score of a model, over everything that can occur: two optima per score, with their proofs.

Scores are raw scores, of several classes one each; those of forests are probabilities, and a regressor has values.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Literal

from treesens.binder.file import ResolvedQuestion
from treesens.binder.terms import predicts_probabilities
from treesens.compiler.base.budget import Budget
from treesens.compiler.base.diagnostics import Diagnostics, did_you_mean
from treesens.compiler.base.tolerance import Closeness
from treesens.compiler.model import Ensemble, Task
from treesens.compiler.result import Result, Verdict, answered
from treesens.compiler.result import Sense as Direction
from treesens.data.tables import Table, align_table
from treesens.errors import UsageError
from treesens.extensions.studies.decisions import check_votes, label_of_class
from treesens.extensions.studies.halving import asked_of, probability_end
from treesens.extensions.studies.questions import bind_study, declarations_of
from treesens.extensions.studies.range import RangeOptions, RangeRecord
from treesens.extensions.studies.running import as_finished, library_of, with_study_certificates
from treesens.extensions.studies.shared_records import ToleranceRecord, certificates_of
from treesens.extensions.studies.study import Asking, Found
from treesens.frontends.base import LoadedModel
from treesens.grammar.tree import ast
from treesens.records.answers import certificate_records, points_of, scores_of
from treesens.solve.options import Options
from treesens.solve.question import answer

Sense = Literal["minimize", "maximize"]
_A = ast.Name("a")


@dataclass(frozen=True)
class RangeEnd:
    """One end of the range of a score: `value` is reached by a verified input, and none is beyond `bound`."""

    label: str | int | None
    score: str
    sense: Sense
    question: ResolvedQuestion
    result: Result
    seconds: float

    @property
    def status(self) -> Closeness:
        """Whether the value is the optimum, or within the tolerance of it."""
        return Closeness.OPEN if self.result.objective is None else self.result.objective.status

    @property
    def closed(self) -> bool:
        """True if the bound is within the tolerance of the value."""
        return self.status is not Closeness.OPEN

    @property
    def _reason(self) -> str:
        """Why the end is open."""
        if self.closed:
            return ""
        return (
            self.result.reason
            if self.result.objective is None
            else "open: not closed in the time given, or by the whole numbers that scores are counted in"
        )

    def record(self) -> RangeRecord:
        """The facts for JSON; the input in the user's own labels."""
        goal, witness, query = self.result.objective, self.result.witness, self.question.query
        return RangeRecord(
            class_=self.label,
            score=self.score,
            end="smallest" if self.sense == "minimize" else "largest",
            verdict=str(self.result.verdict),
            value=None if goal is None else goal.value,
            bound=None if goal is None else goal.bound,
            closed=self.closed,
            status=str(self.status),
            tolerance=None if goal is None else ToleranceRecord(**goal.tolerance.record()),
            reason=self._reason,
            points=None if witness is None else points_of(query, witness),
            scores=None if witness is None else scores_of(query, witness, 0),
            replay=None if witness is None else str(witness.replay),
            certificates=certificates_of(certificate_records(self.result)),
            seconds=round(self.seconds, 6),
        )


@dataclass
class ScoreRanges:
    """Both ends of every score, in the order of the classes; those that were not reached are left out."""

    ends: list[RangeEnd] = field(default_factory=list)
    interrupted: bool = False
    warnings: tuple[str, ...] = ()


def score_ranges(
    model: LoadedModel,
    table: Table | None = None,
    *,
    options: RangeOptions | None = None,
    stop: threading.Event | None = None,
    on_result: Callable[[RangeEnd], None] | None = None,
) -> ScoreRanges:
    """The range of every score (of the `classes` named), over the domains of the table and of what is declared. A set event
    keeps what is known by then. UsageError for a class that the model does not have.
    """
    options, halt, diagnostics = options or RangeOptions(), stop or threading.Event(), Diagnostics()
    table = None if table is None else align_table(model, table)
    units = ends_of(model.ensemble, options.classes)
    queries = [ast.Query(ast.Name(f"q{i}"), _asked(model.ensemble, *unit)) for i, unit in enumerate(units)]
    declared = declarations_of(model, options.real, has_table=table is not None, domain=options.domain)
    questions = bind_study(model, table, (*declared, *queries), diagnostics)
    predict = library_of(model, options.replay)
    asked = Options(backend="native", seed=options.seed, threads=options.threads, library_predict=predict)
    asked = replace(asked, time_limit=options.time_limit, certificates=options.certificates, regions=False)
    asked = asked.asking_for(options.near_enough)
    done: dict[int, RangeEnd] = {}
    tasks = [
        partial(_one, model.ensemble, *unit, question, asked, halt)
        for unit, question in zip(units, questions, strict=True)
    ]
    for number, end in as_finished(tasks, 1):
        if end is not None:
            done[number] = end
            if on_result is not None:
                on_result(end)
    return ScoreRanges([done[i] for i in sorted(done)], halt.is_set(), tuple(item.render() for item in diagnostics))


def ends_of(ensemble: Ensemble, classes: Sequence[str] = ()) -> list[tuple[int, Sense]]:
    """Outputs and senses: one output, or those of the classes that are named."""
    check_votes(ensemble, "a range")
    known = [str(c) for c in ensemble.classes]
    for name in classes:
        if name not in known:
            raise UsageError(f"the model has no class `{name}`", remedy=did_you_mean(name, known))
    averaged = ensemble.link.averages
    every = range(len(known)) if averaged and len(known) > 2 else [1] if averaged else range(ensemble.n_outputs)
    several = [known.index(name) for name in classes] or list(every)
    chosen = several if ensemble.n_outputs > 1 else [0]
    senses: tuple[Sense, Sense] = ("minimize", "maximize")
    return [(output, sense) for output in chosen for sense in senses]


def _asked(ensemble: Ensemble, output: int, sense: Sense) -> ast.Find:
    if ensemble.link.averages:
        return asked_of(ensemble, _A, output, smallest=sense == "minimize")
    return ast.Find((ast.Point(_A),), (), ast.Objective(sense, _score(ensemble, output)))


def _score(ensemble: Ensemble, output: int) -> ast.Expression:
    """The exact sum that is optimised; a monotone link moves no optimum."""
    return ast.Margin(_A, label_of_class(ensemble, output) if ensemble.n_outputs > 1 else None)


def _one(
    ensemble: Ensemble,
    output: int,
    sense: Sense,
    question: ResolvedQuestion,
    options: Options,
    stop: threading.Event,
) -> RangeEnd | None:
    if stop.is_set():
        return None
    start, averaged = time.perf_counter(), ensemble.link.averages
    query, name = question.query, "the largest score" if sense == "maximize" else "the smallest score"
    result = answered(
        name,
        lambda: (
            probability_end(
                question, output, Direction.of(sense == "maximize"), options, Budget.of(options.time_limit, stop)
            )
            if averaged
            else answer(query, options, Budget.of(options.time_limit, stop))
        ),
        lambda reason: Result(query.name, Verdict.UNKNOWN, reason),
    )
    seconds = time.perf_counter() - start
    label = ensemble.classes[output] if ensemble.n_outputs > 1 and ensemble.classes else None
    if not averaged:
        result = with_study_certificates(question.query, result, options, options.time_limit)
    return RangeEnd(label, _name(ensemble), sense, question, result, seconds)


def _name(ensemble: Ensemble) -> str:
    if ensemble.task is Task.REGRESSION and ensemble.link.is_linear:
        return "value"
    return "probability" if predicts_probabilities(ensemble) or ensemble.link.averages else "raw score"


def ask(asked: Asking[RangeOptions]) -> Found[RangeRecord]:
    """Both ends of every score."""
    found = score_ranges(asked.model, asked.table, options=asked.options, stop=asked.stop, on_result=asked.advance)
    records = [end.record() for end in found.ends]
    return Found(records, found.warnings, found.interrupted, all(one.closed for one in records), found)


def total(asked: Asking[RangeOptions]) -> int:
    """How many ends there are."""
    return len(ends_of(asked.model.ensemble, asked.options.classes))
