"""The questions that compare two models at one input: how far apart, by score and direction, and which outcomes change."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path

from treesens.binder.file import ResolvedQuestion, bind
from treesens.binder.terms import predicts_probabilities
from treesens.compiler.base.diagnostics import Diagnostics
from treesens.compiler.model import Ensemble
from treesens.data.tables import Table
from treesens.errors import UsageError
from treesens.extensions.studies.decisions import check_votes, label_of_class
from treesens.extensions.studies.version_changes import queries_of
from treesens.frontends.base import LoadedModel
from treesens.grammar.tree import ast


def check_comparable(old: Ensemble, new: Ensemble) -> None:
    """UsageError for models whose scores, calibrations or classes are not of one kind."""
    for ensemble in (old, new):
        check_votes(ensemble, "a difference")
    if averages_probabilities(old, new):
        _check_probabilities(old, new)
        return
    if old.n_outputs != new.n_outputs or not old.link.is_like(new.link) or old.task is not new.task:
        raise UsageError(
            f"the scores of the models are not of one kind: {old.task.value} with {old.n_outputs} {old.link.name} outputs, "
            f"{new.task.value} with {new.n_outputs} {new.link.name}",
            remedy="compare versions of one model",
        )
    if old.calibration != new.calibration:
        raise UsageError(
            "the models are calibrated in different ways, so that equal scores are different probabilities",
            remedy="compare the models inside, or ask in a file: `prob(a) - prob(b)`",
        )
    if tuple(map(str, old.classes)) != tuple(map(str, new.classes)):
        raise UsageError("the models have different classes", remedy="compare versions of one model")


def averages_probabilities(old: Ensemble, new: Ensemble) -> bool:
    """True if one of the models has no scores: it averages the probabilities of several, and probabilities are compared."""
    return old.link.averages or new.link.averages


def _check_probabilities(old: Ensemble, new: Ensemble) -> None:
    for ensemble in (old, new):
        if not ensemble.classes or not (predicts_probabilities(ensemble) or ensemble.link.is_probability):
            raise UsageError(
                "one model averages probabilities, and the other one predicts none",
                remedy="compare versions of one model",
            )
    if tuple(map(str, old.classes)) != tuple(map(str, new.classes)):
        raise UsageError("the models have different classes", remedy="compare versions of one model")


def questions_of_difference(
    old: LoadedModel,
    new: LoadedModel,
    table: Table | None,
    diagnostics: Diagnostics,
    decision: ast.Decision | None,
) -> tuple[list[tuple[str, int, ResolvedQuestion]], list[ResolvedQuestion]]:
    """Per score and direction the largest difference at one input, which both models get as a point of their own; and the
    questions about the outcomes of a decision.
    """
    a, b, one, two = (ast.Name(name) for name in ("a", "b", "old", "new"))
    averaged = averages_probabilities(old.ensemble, new.ensemble)
    labels: list[ast.Label | None] = [None]
    if averaged:
        several = range(len(old.ensemble.classes)) if len(old.ensemble.classes) > 2 else (1,)
        labels = [label_of_class(old.ensemble, i) for i in several]
    elif old.ensemble.n_outputs > 1:
        count = range(old.ensemble.n_outputs)
        labels = [label_of_class(old.ensemble, i) if old.ensemble.classes else _output(i) for i in count]
    units = [(i, sign) for i in range(len(labels)) for sign in (1, -1)]
    queries = []
    for number, (i, sign) in enumerate(units):
        score = ast.Prob if averaged else ast.Margin
        first, second = score(a, labels[i]), score(b, labels[i])
        apart = ast.Sum((first, ast.Negate(second)) if sign > 0 else (second, ast.Negate(first)))
        more = (ast.Comparison(apart, ">=", ast.Number(Fraction(0))),) if averaged else ()
        goal = None if averaged else ast.Objective("maximize", apart)
        find = ast.Find((ast.Point(a, one), ast.Point(b, two)), (ast.PointsEqual(a, b, None), *more), goal)
        queries.append(ast.Query(ast.Name(f"q{number}"), find))
    data = () if table is None else (ast.Data(ast.Name("d"), ast.Text("d")), ast.DomainFrom(ast.Name("d")))
    models = (ast.Model(one, ast.Text("old")), ast.Model(two, ast.Text("new")))
    policy = () if decision is None else (decision,)
    of_outcomes = [] if decision is None else queries_of(decision, one, two)
    bound = bind(
        ast.File((*models, *data, *policy, *queries, *of_outcomes)),
        Path(),
        load_model=lambda path, _format: old if path.name == "old" else new,
        load_table=lambda _path, _label, _rows: table,  # type: ignore[arg-type, return-value]
        diagnostics=diagnostics,
    ).queries
    names = [str(c) for c in old.ensemble.classes] if len(labels) > 1 and old.ensemble.classes else None
    alone = "probability" if averaged else "score"
    named = [names[i] if names else f"output {i}" if len(labels) > 1 else alone for i, _ in units]
    scores = zip(named, (sign for _, sign in units), bound[: len(units)], strict=True)
    return list(scores), list(bound[len(units) :])


def _output(number: int) -> ast.Label:
    return ast.Number(Fraction(number))
