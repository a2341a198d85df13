"""Finds one or several reasons for a row's class, the box around the first reason, and changes that give another class.

`explain row N of DATA` answers `found` with features that are proved to decide the row's class and, if another class exists,
with a verified input of that class as the witness. The answer `none` means that the class depends on features that must not be
used: a verified input that agrees with the row on all usable features has another class.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from treesens.compiler.base.arrays import BoolArray
from treesens.compiler.base.budget import Budget
from treesens.compiler.query.query import ExplainedRow, Query
from treesens.compiler.result import Explanation, Result
from treesens.extensions.answers.decisions import Other, RowDecisions
from treesens.extensions.methods.fewest_changes import Features, TimeUp
from treesens.solve.conclude import conclude_found, conclude_none, leave_open
from treesens.solve.method import Method, OpenQuestion
from treesens.solve.options import Options
from treesens.values.verify import Witness, verify_cells, verify_values


@dataclass(frozen=True)
class Wanted:
    """The request for reasons: with as few features as possible (`smallest`), several smallest reasons (`most` above 1),
    without the features in `barred`, and with a box around the first reason (`box`). A minimal reason avoids the features that
    come first in `order`. Changes leave the features in `barred` and `held` unchanged.
    """

    order: Sequence[int]
    smallest: bool = False
    most: int = 1
    barred: Features = frozenset()
    held: Features = frozenset()
    box: bool = False


@dataclass(frozen=True, eq=False)
class RowReason:
    """The results so far. `several` lists reasons, answer first; `complete` is True if no other reasons exist, `smallest` if no
    smaller set of features decides the class. `contrast` holds features that, if changed, lead to another class, as in `other`;
    if no allowed change does so, it is None, and `other` shows a forbidden change. `within` is an input of another class that
    agrees with the row on all usable features, so no reason exists. `box` holds the first reason's cells, bool[n_cells].
    """

    several: tuple[Features, ...] = ()
    complete: bool = False
    smallest: bool = False
    contrast: Features | None = None
    other: Other | None = None
    within: Other | None = None
    box: dict[int, BoolArray] | None = None
    open: bool = False
    """True if the time limit stopped the work early."""


def reason_of(judge: RowDecisions, wanted: Wanted, changes: RowDecisions | None = None) -> RowReason:
    """The reasons for the class of a row. If changes have constraints, `changes` decides questions about them."""
    every = frozenset(wanted.order)
    usable, held = every - wanted.barred, wanted.barred | wanted.held
    reason = RowReason()
    try:
        free = judge.other(())
        if free is not None:
            reason = replace(reason, other=free)
            allowed = changes or judge
            change = free if allowed is judge and not held else allowed.other(held)
            if change is not None:
                contrast, other = allowed.contrastive(every - held, every, change)
                reason = replace(reason, contrast=contrast, other=other)
        if wanted.barred and (within := judge.other(usable)) is not None:
            return replace(reason, within=within)
        if free is None:
            reason = replace(reason, several=(frozenset(),), complete=True, smallest=True)
        elif wanted.most > 1 or wanted.smallest:
            reason = _smallest(judge, usable, wanted.most, reason)
        else:
            first = judge.without_each([f for f in wanted.order if f in usable])
            reason = replace(reason, several=(first,))
    except TimeUp:
        return replace(reason, open=True)
    if wanted.box and reason.several:
        reason = replace(reason, box=judge.widened(reason.several[0]))
    return reason


def _smallest(judge: RowDecisions, usable: Features, most: int, reason: RowReason) -> RowReason:
    """Adds the smallest reasons that are found within the time limit."""
    found: list[Features] = []
    search = judge.smallest(usable)
    try:
        while len(found) < most and (one := next(search, None)) is not None:
            found.append(one)
        complete = most > 1 and (len(found) < most or next(search, None) is None)
    except TimeUp:
        complete, reason = False, replace(reason, open=len(found) < most)
    return replace(reason, several=tuple(found), complete=complete, smallest=bool(found))


def answer_explained(
    query: Query,
    row: ExplainedRow,
    options: Options,
    budget: Budget,
    ask: Callable[[Query, Options, Budget], Result],
) -> Result:
    """The answer to a question that explains a row; `ask` solves the subquestions."""
    start = time.perf_counter()
    backend = "native" if options.backend == "auto" else options.backend
    bare = leave_open(query.name, backend=backend, pipeline=options.pipeline)
    judged = verify_values(row.own, row.values, library_predict=options.library_predict)
    if not isinstance(judged, Witness):
        return replace(bare, reason=f"the class of the row is not known: {judged.reason}")
    plain = replace(options, certificates=None, hints=None, near=None)
    judge = RowDecisions(list(row.others), row.cells, budget, plain, ask)
    used = query.models[0].ensemble.used_features
    names = query.space.names
    order = sorted(range(len(names)), key=lambda f: (names[f] in used, f))
    row_reason = reason_of(judge, Wanted(order, smallest=row.smallest, barred=row.barred))
    found = _told(query, row, row_reason, judge, replace(bare, reason=budget.reason))
    return replace(found, seconds={"solve": time.perf_counter() - start})


def _told(query: Query, row: ExplainedRow, row_reason: RowReason, judge: RowDecisions, bare: Result) -> Result:
    """The results as an answer; `unknown` if the library predicts another class for the input."""
    if row_reason.open:
        return replace(bare, reason=judge.unsettled or bare.reason)
    about = Explanation(row.predicted, None, False, row_reason.contrast, judge.decisions)
    shown = row_reason.within or row_reason.other
    witness = None if shown is None else _verified(row, shown, judge)
    if shown is not None and witness is None:
        return replace(bare, reason="numerical band: an input has another class in exact arithmetic only")
    if row_reason.within is not None:
        assert witness is not None
        changed = ", ".join(query.space.names[f] for f in sorted(judge.changed(witness.cells)))
        reason = f"an input that differs in {changed} alone has another class"
        return conclude_none(replace(bare, explanation=about), reason)
    about = replace(about, features=row_reason.several[0], smallest=row_reason.smallest)
    reason = "the values of these features decide the class" if about.features else "every input has this class"
    return conclude_found(replace(bare, proof=judge.proof, witness=witness, explanation=about), reason)


def _verified(row: ExplainedRow, other: Other, judge: RowDecisions) -> Witness | None:
    """An input of another class, as near to the row as its cells allow, verified in the library's arithmetic; or None."""
    query, cells = other
    found = verify_cells(query, cells, near=row.values[0], library_predict=judge.options.library_predict)
    return found if isinstance(found, Witness) else None


def search_reason(question: OpenQuestion, budget: Budget) -> Result:
    """The method that explains a row."""
    assert question.query.explained is not None
    return answer_explained(question.query, question.query.explained, question.options, budget, question.ask)


METHOD = Method(
    name="reason",
    questions="`explain row`",
    fits=lambda query, _: query.explained is not None,
    proves="that the named features decide the class of the row, or that they do not",
    run="treesens.extensions.answers.reasons:search_reason",
    always=True,
    before="contradiction",
)
