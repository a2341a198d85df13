"""Bounds of one sum of scores that leave nothing between them, such as `prob(a) < 0.6` beside a case of `prob(a) >= 0.7`.

A search over cells adds the two rows and sees that trees cancel; what is left of it is a bound that no cell moves, and a search
that never ends if the two bounds are equal irrational numbers.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from fractions import Fraction
from typing import TypeAlias

from treesens.compiler.query.bounds import LogRational
from treesens.compiler.query.query import AllOf, AtLeast, Constraint

_BITS = 128
"""Of enclosures. Bounds that these do not tell apart, and that are not the same symbols, are left to the search."""

Form: TypeAlias = tuple[tuple[int, int, Fraction], ...]
End: TypeAlias = tuple[LogRational, bool]
"""A bound, and whether it is never reached."""
ScoreEnds: TypeAlias = Mapping[Form, tuple[End | None, End | None]]
"""By sum of scores, its greatest lower and its least upper bound."""


def narrowed(known: ScoreEnds, constraints: Iterable[Constraint]) -> ScoreEnds | None:
    """What is known of sums of scores with more constraints; None if they leave nothing for a sum."""
    result = dict(known)
    for row in _rows(constraints):
        found = _normal(row)
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


def _rows(constraints: Iterable[Constraint]) -> Iterator[AtLeast]:
    for constraint in constraints:
        if isinstance(constraint, AllOf):
            yield from _rows(constraint.parts)
        elif isinstance(constraint, AtLeast):
            yield constraint


def _normal(row: AtLeast) -> tuple[Form, Fraction] | None:
    """A sum of scores whose first coefficient is 1, and what it is multiplied by; None if there is more in the row."""
    form = row.form
    if not form.scores or form.costs or form.changes or form.pairs or form.levels or form.forests:
        return None
    terms: dict[tuple[int, int], Fraction] = {}
    for term in form.scores:
        place = (term.point, term.output)
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
    """The sign of a bound; None if it is not plain."""
    logs: dict[Fraction | LogRational, Fraction] = {}
    for coefficient, argument in number.logs:
        logs[argument] = logs.get(argument, Fraction(0)) + coefficient
    left = LogRational(number.rational, tuple((c, a) for a, c in logs.items() if c))
    if not left.logs:
        return (left.rational > 0) - (left.rational < 0)
    low, high = left.enclose(_BITS)
    return 1 if low > 0 else -1 if high < 0 else None
