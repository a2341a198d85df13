"""Questions with more cases than can be proved one by one: a tree of alternatives, of which a part may answer many cases.

What holds of a question before its next alternatives are chosen holds of all cases below. Scores that contradict each other are
looked for first: the two rows alone are a part, for all cases that have both.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from typing import TypeAlias

from treesens.compiler.base.budget import Budget
from treesens.compiler.query.query import AtLeast, CellSet, Constraint, Query, parts_in
from treesens.compiler.result import Certified
from treesens.extensions.certify.cases import MOST, agree_too_much, parted, without_objective
from treesens.extensions.certify.statement import domains_of

MOST_NODES, MOST_TRIED = 4096, 512
"""Of a tree that are looked at, and of which a proof is tried."""
_BITS = 64
Refuted: TypeAlias = tuple[Query, tuple[AtLeast, ...]]


def proved_in_parts(
    query: Query, extra: tuple[AtLeast, ...], prove: Callable[[Refuted], Certified], budget: Budget
) -> list[Certified] | None:
    """Certificates of parts of a question with `extra` rows, one of which answers each of its cases; None if none are found
    within the budget, or MOST do not suffice.

    What they are together is for the checker to say.
    """
    bare, rest = without_objective(query, extra)
    if not _has_sets_above(bare):
        return None
    waiting, found, proved, tried = parted(bare) or [], list[Certified](), list[frozenset[Constraint]](), 0
    for _ in range(MOST_NODES):
        if not waiting:
            return found
        one = waiting.pop()
        asked = frozenset(one.constraints)
        if agree_too_much(one) or any(part <= asked for part in proved):
            continue
        if tried == MOST_TRIED or len(found) == MOST or budget.over:
            return None
        tried += 1
        core = _contradiction(one)
        made = prove((core or one, () if core else rest))
        if made.path:
            found.append(made)
            proved.append(frozenset((core or one).constraints))
            continue
        parts = parted(one)
        if parts is None:
            return None
        waiting += parts
    return None


def _has_sets_above(query: Query) -> bool:
    """Whether every feature with a set in some alternative has one anyway.

    One without any set is never missing, so that a part without the alternative would say less than a case with it.
    """
    own = {(p, f) for p, f, _ in domains_of(query)}
    own |= {(c.point, c.feature) for c in query.constraints if isinstance(c, CellSet)}
    return all((c.point, c.feature) in own for c in parts_in(query.constraints) if isinstance(c, CellSet))


def _contradiction(query: Query) -> Query | None:
    """The question with its sets and two rows alone, if these bound one sum of scores from both sides and leave nothing."""
    rows = [c for c in query.constraints if isinstance(c, AtLeast) and c.form.scores]
    for one, other in itertools.combinations(rows, 2):
        if _contradict(one, other):
            sets = (c for c in query.constraints if isinstance(c, CellSet))
            return replace(query, constraints=(*sets, one, other))
    return None


def _contradict(one: AtLeast, other: AtLeast) -> bool:
    forms = [replace(row.form, scores=()) for row in (one, other)]
    if any(form != type(form)() for form in forms):
        return False
    mine, yours = ({(t.point, t.output): t.coefficient for t in row.form.scores} for row in (one, other))
    if mine.keys() != yours.keys() or len(mine) != len(one.form.scores) or len(yours) != len(other.form.scores):
        return False
    ratios = {-yours[place] / mine[place] for place in mine if mine[place]}
    if len(ratios) != 1 or (ratio := ratios.pop()) <= 0:
        return False
    least, _ = (one.bound * ratio + other.bound).enclose(_BITS)
    return least > 0 or (least == Fraction(0) and (one.strict or other.strict))
