"""Answers `explain row N of DATA`: features whose values alone decide the class of the row, proved.

`found` comes with the features and, if some input has another class, with one that is verified, as the witness. `none` says
that the class depends on features that may not be used: an input that agrees with the row on all others has another class,
verified.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace

from treesens.compiler.base.budget import Budget
from treesens.compiler.query.query import ExplainedRow, Query
from treesens.compiler.result import Explanation, Result
from treesens.solve.conclude import conclude_found, conclude_none, leave_open
from treesens.solve.method import OpenQuestion
from treesens.solve.options import Options
from treesens.solve.reasons.decisions import Other, RowDecisions
from treesens.solve.reasons.reason import RowReason, Wanted, reason_of
from treesens.values.verify import Witness, verify_cells, verify_values


def answer_explained(
    query: Query,
    row: ExplainedRow,
    options: Options,
    budget: Budget,
    ask: Callable[[Query, Options, Budget], Result],
) -> Result:
    """The answer to a question that explains a row; `ask` answers the questions that it takes."""
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
    """What is known as an answer: an input that the library judges otherwise leaves it open."""
    if row_reason.open:
        return replace(bare, reason=judge.unsettled or bare.reason)
    about = Explanation(row.predicted, None, False, row_reason.contrast, judge.decisions)
    shown = row_reason.within or row_reason.other
    witness = None if shown is None else _verified(row, shown, judge)
    if shown is not None and witness is None:
        return replace(bare, reason="numerical band: an input of another class is one in exact arithmetic only")
    if row_reason.within is not None:
        assert witness is not None
        changed = ", ".join(query.space.names[f] for f in sorted(judge.changed(witness.cells)))
        reason = f"an input that differs in {changed} alone has another class"
        return conclude_none(replace(bare, explanation=about), reason)
    about = replace(about, features=row_reason.several[0], smallest=row_reason.smallest)
    reason = "the values of these features decide the class" if about.features else "every input has this class"
    return conclude_found(replace(bare, proof=judge.proof, witness=witness, explanation=about), reason)


def _verified(row: ExplainedRow, other: Other, judge: RowDecisions) -> Witness | None:
    """An input of another class, as near to the row as its cells allow, judged in the library's arithmetic, too."""
    query, cells = other
    found = verify_cells(query, cells, near=row.values[0], library_predict=judge.options.library_predict)
    return found if isinstance(found, Witness) else None


def search_reason(question: OpenQuestion, budget: Budget) -> Result:
    """The method, as `solve/methods/registry.py` names it."""
    assert question.query.explained is not None
    return answer_explained(question.query, question.query.explained, question.options, budget, question.ask)
