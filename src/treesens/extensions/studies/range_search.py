"""Finds the smallest and the largest score of a model over all possible inputs: two optima per score, with their proofs.

Scores are raw scores, one per class if there are several classes; forests have probabilities, and regressors have values. A
monotone link function does not change where the optima are.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial

from treesens.binder.file import ResolvedQuestion
from treesens.binder.terms import predicts_probabilities
from treesens.compiler.base.budget import Budget
from treesens.compiler.base.diagnostics import Diagnostics
from treesens.compiler.model import Ensemble, Task
from treesens.compiler.result import Result, Sense, Verdict, answered
from treesens.data.tables import align_table
from treesens.extensions.studies.decisions import check_votes, unknown_class
from treesens.extensions.studies.evidence import Best
from treesens.extensions.studies.optima import Optimum, best, end_of
from treesens.extensions.studies.questions import bind_study, declarations_of
from treesens.extensions.studies.range import RangeOptions, RangeRecord
from treesens.extensions.studies.running import gathered, library_of, with_study_certificates
from treesens.extensions.studies.shared_records import ToleranceRecord, certificates_of
from treesens.extensions.studies.study import Asking, Found
from treesens.grammar.tree import ast
from treesens.records.answers import certificate_records, points_of, scores_of
from treesens.solve.options import Options


@dataclass(frozen=True, eq=False, kw_only=True)
class RangeEnd(Optimum):
    """One end of the range of a score."""

    label: str | int | None
    sense: Sense

    @property
    def score(self) -> str:
        """The kind of the model's scores."""
        ensemble = self.question.models[0].ensemble
        if ensemble.task is Task.REGRESSION and ensemble.link.is_linear:
            return "value"
        return "probability" if predicts_probabilities(ensemble) or ensemble.link.averages else "raw score"

    @property
    def title(self) -> str:
        """The name of the end in words."""
        of_class = "" if self.label is None else f" of {self.label}"
        return f"the {self.sense.value[:3]}imum of the {self.score}{of_class}"

    @property
    def why_open(self) -> str:
        """The reason why the end is open; empty for a closed end."""
        if self.closed or self.result.objective is None:
            return "" if self.closed else self.reason
        return "open: not closed within the time limit, or scores are counted in whole units"

    def record(self) -> RangeRecord:
        """The end as a record; the input is in the user's own labels."""
        goal, witness, query = self.result.objective, self.witness, self.query
        return RangeRecord(
            class_=self.label,
            score=self.score,
            end="smallest" if self.sense is Sense.MINIMIZE else "largest",
            verdict=str(self.verdict),
            value=self.value,
            bound=self.bound,
            closed=self.closed,
            status=str(self.status),
            tolerance=None if goal is None else ToleranceRecord(**goal.tolerance.record()),
            reason=self.why_open,
            points=None if witness is None else points_of(query, witness),
            scores=None if witness is None else scores_of(query, witness, 0),
            replay=None if witness is None else str(witness.replay),
            certificates=certificates_of(certificate_records(self.result)),
            seconds=round(self.seconds, 6),
        )


def ask(asked: Asking[RangeOptions]) -> Found[RangeRecord]:
    """Finds both ends of every score (of the `classes` named), over the domains of the table and the declared domains.

    Raises UsageError for a class that the model does not have.
    """
    model, mine, diagnostics = asked.model, asked.options, Diagnostics()
    table = None if asked.table is None else align_table(model, asked.table)
    units, point = ends_of(model.ensemble, mine.classes), ast.Name("a")
    queries = [ast.Query(ast.Name(f"q{i}"), end_of(model.ensemble, point, *unit)) for i, unit in enumerate(units)]
    declared = declarations_of(model, mine.real, has_table=table is not None, domain=mine.domain)
    questions = bind_study(model, table, (*declared, *queries), diagnostics)
    library = library_of(model, mine.replay)
    options = Options(backend="native", seed=mine.seed, threads=mine.threads, library_predict=library)
    options = replace(options, time_limit=mine.time_limit, certificates=mine.certificates, regions=False)
    options = options.asking_for(mine.near_enough)
    tasks = [partial(_one, *unit, question, options, asked) for unit, question in zip(units, questions, strict=True)]
    found = gathered(tasks, 1, asked.advance)
    records = [end.record() for end in found]
    warnings = tuple(item.render() for item in diagnostics)
    evidence = [[Best(end.title, end.query, end.result)] for end in found]
    return Found(records, warnings, asked.stop.is_set(), all(one.closed for one in records), found, evidence=evidence)


def ends_of(ensemble: Ensemble, classes: Sequence[str] = ()) -> list[tuple[int, Sense]]:
    """The ends to search for, as (output, sense): of the only output, or of the named classes (by default, all classes)."""
    check_votes(ensemble, "a range")
    known = [str(c) for c in ensemble.classes]
    for name in classes:
        if name not in known:
            raise unknown_class(name, known)
    averaged = ensemble.link.averages
    every = range(len(known)) if averaged and len(known) > 2 else [1] if averaged else range(ensemble.n_outputs)
    several = [known.index(name) for name in classes] or list(every)
    chosen = several if ensemble.n_outputs > 1 else [0]
    return [(output, sense) for output in chosen for sense in (Sense.MINIMIZE, Sense.MAXIMIZE)]


def _one(
    output: int, sense: Sense, question: ResolvedQuestion, options: Options, asked: Asking[RangeOptions]
) -> RangeEnd | None:
    if asked.stop.is_set():
        return None
    start, query, ensemble = time.perf_counter(), question.query, asked.model.ensemble
    result = answered(
        "the largest score" if sense is Sense.MAXIMIZE else "the smallest score",
        lambda: best(query, options, Budget.of(options.time_limit, asked.stop), end=(output, sense)),
        lambda reason: Result(query.name, Verdict.UNKNOWN, reason),
    )
    seconds = time.perf_counter() - start
    if not ensemble.link.averages:
        result = with_study_certificates(query, result, options, options.time_limit)
    label = ensemble.classes[output] if ensemble.n_outputs > 1 and ensemble.classes else None
    return RangeEnd.of(question, result, label=label, sense=sense, seconds=seconds)


def total(asked: Asking[RangeOptions]) -> int:
    """The expected number of ends."""
    return len(ends_of(asked.model.ensemble, asked.options.classes))
