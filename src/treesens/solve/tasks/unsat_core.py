"""Unsatisfiable cores: a minimal set of a question's conjuncts that no inputs satisfy together.

The core is found by deletion: a conjunct is dropped if the rest is still proved to have no answer, and belongs to the core if
the rest has an answer. If a search times out, the dropped conjunct stays in the core, which may then not be minimal.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from treesens.binder.conflicts import Conjunct, merge_conjuncts, parts_of
from treesens.binder.file import ResolvedQuestion
from treesens.compiler.base.budget import LEAST, Budget
from treesens.compiler.base.diagnostics import Diagnostic
from treesens.compiler.query.evaluate import linear_constraints
from treesens.compiler.query.query import Query
from treesens.compiler.result import Core, Result, Verdict
from treesens.grammar.printing.printer import shown_text


def core_of(
    query: ResolvedQuestion,
    one: Callable[[Query, Budget], Result],
    budget: Budget,
) -> Core:
    """The clashing conjuncts of a question without an answer. All searches share one time limit.

    A clash that does not involve the model is preferred, and tried first.
    """
    unsure = False

    def none(conjuncts: Sequence[Conjunct], searches: int) -> bool:
        """True if these conjuncts alone are proved to have no answer; `searches` share the remaining time."""
        nonlocal unsure
        if not budget.worthwhile:
            unsure = True
            return False
        constraints = merge_conjuncts([*parts_of(conjuncts), *query.background])
        subset = replace(query.query, constraints=constraints, objective=None, rows=None, top=1, diverse=False)
        verdict = one(subset, budget.share(1 / searches).at_least(LEAST)).verdict
        unsure |= verdict is Verdict.UNKNOWN
        return verdict is Verdict.NONE

    kept = list(query.conjuncts)
    plain = [c for c in kept if not _scored(c)]
    if 0 < len(plain) < len(kept) and none(plain, len(kept) + 1):
        kept = plain
    unsure = False
    for number, conjunct in enumerate(reversed(list(kept))):
        rest = [other for other in kept if other is not conjunct]
        if none(rest, max(1, len(kept) - number)):
            kept = rest
    return Core(
        tuple(c.span for c in kept),
        tuple(c.span.text or shown_text(c.node) for c in kept),
        model_free=not any(_scored(c) for c in kept),
        minimal=not unsure,
    )


def _scored(conjunct: Conjunct) -> bool:
    """True if a conjunct mentions scores, which depend on the model."""
    return any(row.form.scores for row in linear_constraints(conjunct.parts))


def diagnostic_of(core: Core) -> Diagnostic:
    """A message about a core, with every conjunct's location."""
    code = "E309" if core.model_free else "E501"
    why = "whatever the model says" if core.model_free else "for this model"
    if not core.spans:
        return Diagnostic("E309", "the declarations leave no inputs", None, "widen the domains", "note")
    if len(core.spans) == 1:
        message = f"nothing satisfies this {why}"
    else:
        message = f"nothing satisfies these {len(core.spans)} constraints together {why}"
    if core.minimal and len(core.spans) > 1:
        message += "; if any one of them is removed, there is an answer"
    if not core.minimal:
        message += "; perhaps some of them suffice"
    first, *others = core.spans
    return Diagnostic(code, message, first, "relax or remove one of them", "note", tuple(others))
