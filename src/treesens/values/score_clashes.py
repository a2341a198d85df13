"""Finds contradictory bounds on one sum of scores, such as `prob(a) < 0.6` and `prob(a) >= 0.7`.

A search over cells adds the two rows and cancels the trees; the remaining bound does not depend on cells, and the search does
not end if the two bounds are equal irrational numbers.

Two points share a class score if none of the score's trees splits on the features in which the points may differ. Then `from C1
to C2` requires each of two scores to exceed the other, and only a tie among all sums of leaves remains to be refuted.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from fractions import Fraction
from typing import TypeAlias

import numpy as np

from treesens.compiler.model.cells import CellEnsemble
from treesens.compiler.query.bounds import LogRational
from treesens.compiler.query.query import AllOf, AtLeast, Constraint, Query, SameExcept

_BITS = 128
"""Bits of enclosures. Bounds that differ symbolically, but are not separated by enclosures, are decided by the search."""

Form: TypeAlias = tuple[tuple[int, int, Fraction], ...]
End: TypeAlias = tuple[LogRational, bool]
"""A bound, and a flag that is True if the bound is never reached."""
ScoreEnds: TypeAlias = Mapping[Form, tuple[End | None, End | None]]
"""For each sum of scores, the greatest lower bound and the least upper bound."""
Score: TypeAlias = tuple[int, int]
"""A point and an output of its model."""


def equal_scores(query: Query) -> Mapping[Score, Score]:
    """Scores that equal a score of an earlier point, since both points agree on all features that the output's trees use."""
    equal: dict[Score, Score] = {}
    for same in query.constraints:
        if not isinstance(same, SameExcept) or query.points[same.left].model != query.points[same.right].model:
            continue
        model = query.models[query.points[same.left].model]
        outputs = _unmoved_outputs(model, same.varied)
        left, right = sorted((same.left, same.right))
        equal |= {(right, output): equal.get((left, output), (left, output)) for output in outputs}
    return equal


def _unmoved_outputs(model: CellEnsemble, varied: frozenset[int]) -> list[int]:
    """The outputs without a tree that splits on a feature in `varied`."""
    ensemble = model.ensemble
    trees = np.unique(ensemble.node_tree[np.isin(model.feature, list(varied))])
    moved = set(ensemble.tree_output[trees].tolist())
    if -1 in moved:  # leaves with a value for every output
        values = ensemble.leaf_value[np.isin(ensemble.leaf_tree, trees)]
        moved = set(np.flatnonzero(np.any(values != 0, axis=0)).tolist())
    return sorted(set(range(ensemble.n_outputs)) - moved)


def narrowed(known: ScoreEnds, constraints: Iterable[Constraint], equal: Mapping[Score, Score]) -> ScoreEnds | None:
    """The bounds on sums of scores after constraints are added; None for contradictory constraints.

    `equal` maps scores to the equal score of an earlier point.
    """
    result = dict(known)
    for row in _rows(constraints):
        found = normal_form(row, equal)
        if found is None:
            continue
        form, factor = found
        end = (row.bound * (1 / factor), row.strict)
        low, high = result.get(form, (None, None))
        if factor > 0:
            low = end if low is None or _tighter(end, low, 1) else low
        else:
            high = end if high is None or _tighter(end, high, -1) else high
        result[form] = low, high
        if low is not None and high is not None and _empty(low, high):
            return None
    return result


def rows_clash(one: AtLeast, other: AtLeast, equal: Mapping[Score, Score]) -> bool:
    """True if two rows impose contradictory bounds on one sum of scores."""
    return (
        all(normal_form(row, equal) is not None for row in (one, other)) and narrowed({}, (one, other), equal) is None
    )


def _rows(constraints: Iterable[Constraint]) -> Iterator[AtLeast]:
    for constraint in constraints:
        if isinstance(constraint, AllOf):
            yield from _rows(constraint.parts)
        elif isinstance(constraint, AtLeast):
            yield constraint


def normal_form(row: AtLeast, equal: Mapping[Score, Score]) -> tuple[Form, Fraction] | None:
    """The sum of scores in a row, divided by its first coefficient, and this factor; None if the row has other terms."""
    form = row.form
    if not form.scores or form.costs or form.changes or form.pairs or form.levels or form.forests:
        return None
    terms: dict[Score, Fraction] = {}
    for term in form.scores:
        place = equal.get((term.point, term.output), (term.point, term.output))
        terms[place] = terms.get(place, Fraction(0)) + term.coefficient
    kept = sorted((*place, c) for place, c in terms.items() if c)
    if not kept:
        return None
    factor = kept[0][2]
    return tuple((point, output, c / factor) for point, output, c in kept), factor


def _tighter(end: End, other: End, side: int) -> bool:
    sign = _sign(end[0] + -other[0])
    return sign == side or (sign == 0 and end[1] and not other[1])


def _empty(low: End, high: End) -> bool:
    sign = _sign(low[0] + -high[0])
    return sign == 1 or (sign == 0 and (low[1] or high[1]))


def _sign(number: LogRational) -> int | None:
    """The sign of a number; None for an uncertain sign."""
    logs: dict[Fraction | LogRational, Fraction] = {}
    for coefficient, argument in number.logs:
        logs[argument] = logs.get(argument, Fraction(0)) + coefficient
    left = LogRational(number.rational, tuple((c, a) for a, c in logs.items() if c))
    if not left.logs:
        return (left.rational > 0) - (left.rational < 0)
    low, high = left.enclose(_BITS)
    return 1 if low > 0 else -1 if high < 0 else None
