"""Finds legal values in cells that satisfy all relations between the values, or proves that none exist.

Bounds are propagated exactly through the relations, over legal floats; then values close to preferred values are fixed in turn,
and ranges are halved if no value fits. An empty range before any choice is a proof, and the excluded box of cells is extended
as long as the proof remains valid.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from math import isqrt

from treesens.compiler.query.domain import round_value
from treesens.compiler.query.values import (
    LinearTerm,
    Place,
    Term,
    ValueRange,
    ValueSum,
    extremes,
    least_sum,
    reach_of_row,
)

Ranges = dict[Place, ValueRange | None]
"""The remaining values at every place; None for missing."""

ROUNDS = 12
CHOICES = 150
FEW = 64
DEEP = 200
"""Maximum number of features whose values are chosen jointly; with more features, only the first choices are tried."""

_BITS = 80


def root_above(value: Fraction, power: int) -> Fraction:
    """A rational at or just above the square root; for power 1, the value itself."""
    if power == 1:
        return value
    return Fraction(isqrt(-(-(value.numerator << 2 * _BITS) // value.denominator)) + 1, 1 << _BITS)


def root_below(value: Fraction, power: int) -> Fraction:
    """A rational at or just below the square root; for power 1, the value itself."""
    if power == 1:
        return value
    return Fraction(isqrt((value.numerator << 2 * _BITS) // value.denominator), 1 << _BITS)


def propagate(ranges: Ranges, relations: Sequence[ValueSum]) -> Ranges | None:
    """Narrows ranges by removing values that occur in no solution; None if no solution exists. Exact over legal values."""
    if _opposed(relations):
        return None
    result = dict(ranges)
    for _ in range(ROUNDS):
        changed = False
        for relation in relations:
            found = [extremes(term, [result[p] for p in term.places]) for term in relation.terms]
            least = Fraction(0)
            for each in found:
                if each is None:
                    return None
                least += each[0]
            if not relation.allows(least):
                return None
            for term, each in zip(relation.terms, found, strict=True):
                assert each is not None
                cap = relation.limit - (least - each[0])
                if each[1] < cap or (each[1] == cap and not relation.strict):
                    continue
                step = _narrow(result, term, cap, relation.strict)
                if step is None:
                    return None
                changed = changed or step
        if not changed:
            break
    return result


def _opposed(relations: Sequence[ValueSum]) -> bool:
    """True if contradictory bounds on one sum exist: T <= c and -T <= d with c + d < 0."""
    return any(
        len(one.terms) == len(other.terms)
        and one.terms
        and one.terms[0].factor * other.terms[0].factor < 0
        and _no_room(one, other)
        for i, one in enumerate(relations)
        for other in relations[:i]
    )


def _no_room(one: ValueSum, other: ValueSum) -> bool:
    scale = -one.terms[0].factor / other.terms[0].factor
    turned = {_with_factor(t, -scale * t.factor) for t in other.terms}
    if turned != set(one.terms):
        return False
    limit = one.limit + scale * other.limit
    return limit < 0 or (limit == 0 and (one.strict or other.strict))


def _with_factor(term: Term, factor: Fraction) -> Term:
    return replace(term, factor=factor)


def _narrow(ranges: Ranges, term: Term, cap: Fraction, strict: bool) -> bool | None:
    """Narrows the ranges of a term's places so that term <= cap; True if a range has changed, and None if a range is empty."""
    if isinstance(term, LinearTerm):
        bound = cap / term.factor
        if term.factor > 0:
            return _keep(ranges, term.places[0], None, bound, high_open=strict)
        return _keep(ranges, term.places[0], bound, None, low_open=strict)
    here = term.places[0]
    there = term.places[1] if term.other is not None else None
    left = ranges[here]
    right = ranges[there] if there is not None else reach_of_row(term)
    if left is None or right is None:
        return False
    limit = cap / term.factor
    if term.factor > 0:
        if term.unordered:
            reach = Fraction(0)
            if limit >= 1 and not (strict and limit == 1):
                return False
        else:
            reach = root_above(limit, term.power) * term.width
        one = _keep(ranges, here, Fraction(right.low) - reach, Fraction(right.high) + reach)
        left = ranges[here]
        if one is None or there is None or left is None:
            return one
        other = _keep(ranges, there, Fraction(left.low) - reach, Fraction(left.high) + reach)
        return None if other is None else one or other
    if limit <= 0 or term.unordered:
        return False
    reach = root_below(limit, term.power) * term.width
    # One value is far from the other: below or above it. If one side is impossible, the other side remains.
    below = left.narrowed(None, Fraction(right.high) - reach)
    above = left.narrowed(Fraction(right.low) + reach, None)
    if below is None and above is None:
        return None
    if below is not None and above is not None:
        return False
    if above is not None:
        one = _keep(ranges, here, Fraction(above.low), None)
        other = False if there is None else _keep(ranges, there, None, Fraction(above.high) - reach)
    else:
        assert below is not None
        one = _keep(ranges, here, None, Fraction(below.high))
        other = False if there is None else _keep(ranges, there, Fraction(below.low) + reach, None)
    return None if one is None or other is None else one or other


def _keep(
    ranges: Ranges,
    place: Place,
    low: Fraction | None,
    high: Fraction | None,
    low_open: bool = False,
    high_open: bool = False,
) -> bool | None:
    before = ranges[place]
    assert before is not None
    found = before.narrowed(low, high, low_open, high_open)
    if found is None:
        return None
    ranges[place] = found
    return found is not before


# --- choosing values ----------------------------------------------------------------------------------------------------------


@dataclass
class Choice:
    """Fixes values one by one. If no values are found, `proved` is True if it is proved that no values exist."""

    relations: Sequence[ValueSum]
    pulls: Sequence[Term]
    """Terms to minimise, the most important first, which determine the order of tried values."""
    preferred: Mapping[Place, float]
    left: int = CHOICES
    proved: bool = True
    toward: dict[Place, list[Term]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for term in self.pulls:
            for place in term.places:
                self.toward.setdefault(place, []).append(term)

    def run(self, ranges: Ranges) -> dict[Place, float] | None:
        """Values for all places (NaN is missing); None if no values were found."""
        start = propagate(ranges, self.relations)
        if start is None:
            return None
        straight = self._straight(start)
        if straight is not None:
            return straight
        if len(self._open(start)) > DEEP:
            self.proved = False
            return None
        return self._descend(start)

    def _straight(self, ranges: Ranges) -> dict[Place, float] | None:
        """The first choice at every place, if it satisfies the relations; this suffices for a question without clashes."""
        fixed = dict(ranges)
        for place in self._open(ranges):
            reach = fixed[place]
            assert reach is not None
            value = self._first(place, reach, fixed)
            fixed[place] = replace(reach, low=value, high=value)
        return self._values(fixed)

    @staticmethod
    def _open(ranges: Ranges) -> list[Place]:
        return [p for p, r in ranges.items() if r is not None and not r.single]

    def _values(self, ranges: Ranges) -> dict[Place, float] | None:
        """The values of ranges with a single value each, if these values satisfy every relation."""
        values = {p: float("nan") if r is None else r.low for p, r in ranges.items()}
        return values if all(relation.holds(values.__getitem__) for relation in self.relations) else None

    def _descend(self, ranges: Ranges) -> dict[Place, float] | None:
        if self.left <= 0:
            self.proved = False
            return None
        self.left -= 1
        open_places = self._open(ranges)
        if not open_places:
            return self._values(ranges)
        place = open_places[0]
        reach = ranges[place]
        assert reach is not None
        for value in self._candidates(place, reach, ranges):
            found = self._with(ranges, place, replace(reach, low=value, high=value))
            if found is not None:
                return found
        if reach.values is not None and self._count(reach) <= FEW:
            return None  # all values have been tried
        # Halves of the widest range, which together contain every value.
        widest = max(open_places, key=lambda p: self._width(ranges[p]))
        whole = ranges[widest]
        assert whole is not None
        middle = whole.middle()
        for part in (whole.narrowed(None, middle), whole.narrowed(middle, None, low_open=True)):
            if part is not None:
                found = self._with(ranges, widest, part)
                if found is not None:
                    return found
        return None

    def _with(self, ranges: Ranges, place: Place, reach: ValueRange) -> dict[Place, float] | None:
        narrowed = propagate({**ranges, place: reach}, self.relations)
        return None if narrowed is None else self._descend(narrowed)

    @staticmethod
    def _width(reach: ValueRange | None) -> Fraction:
        return Fraction(0) if reach is None else Fraction(reach.high) - Fraction(reach.low)

    @staticmethod
    def _count(reach: ValueRange) -> int:
        assert reach.values is not None
        return int(((reach.values >= reach.low) & (reach.values <= reach.high)).sum())

    def _candidates(self, place: Place, reach: ValueRange, ranges: Ranges) -> list[float]:
        target = self._target(place, reach, ranges)
        first = reach.nearest(target) if target is not None else None
        if reach.values is not None and self._count(reach) <= FEW:
            inside = reach.values[(reach.values >= reach.low) & (reach.values <= reach.high)].tolist()
            return sorted(inside, key=lambda v: abs(v - (first if first is not None else inside[0])))
        picked = [] if first is None else [first]
        shown = round_value(reach.low, reach.high, reach.number_type)
        picked += [reach.nearest(Fraction(shown)), reach.low, reach.high]
        picked.append(reach.nearest(_short(Fraction(reach.low), Fraction(reach.high))))
        return list(dict.fromkeys(picked))

    def _first(self, place: Place, reach: ValueRange, ranges: Ranges) -> float:
        """The candidate value that is tried first."""
        if reach.values is not None and self._count(reach) <= FEW:
            return self._candidates(place, reach, ranges)[0]
        target = self._target(place, reach, ranges)
        shown = Fraction(round_value(reach.low, reach.high, reach.number_type)) if target is None else target
        return reach.nearest(shown)

    def _target(self, place: Place, reach: ValueRange, ranges: Ranges) -> Fraction | None:
        """The preferred value: close to (or far from) the target of the first term, or otherwise the value in `preferred`."""
        for term in self.toward.get(place, ()):
            near = term.factor > 0
            if isinstance(term, LinearTerm):
                return Fraction(reach.low if near else reach.high)
            if term.other is None:
                other = reach_of_row(term)
            else:
                other = ranges.get(term.places[1] if place == term.places[0] else term.places[0])
            if other is None:
                continue
            if not near:
                ends = (Fraction(reach.low), Fraction(reach.high))
                return max(ends, key=lambda v: max(abs(v - Fraction(other.low)), abs(v - Fraction(other.high))))
            low, high = max(reach.low, other.low), min(reach.high, other.high)
            if low > high:
                return Fraction(reach.low if reach.low > other.high else reach.high)
            wished = self.preferred.get(place)
            inside = round_value(low, high, reach.number_type) if wished is None else min(max(wished, low), high)
            return Fraction(inside)
        wished = self.preferred.get(place)
        return None if wished is None else Fraction(wished)


def _short(low: Fraction, high: Fraction) -> Fraction:
    """A short binary fraction between two numbers, for which sums remain exact."""
    for bits in range(60):
        scaled = ((low + high) / 2 * (1 << bits)).__round__()
        if low <= Fraction(scaled, 1 << bits) <= high:
            return Fraction(scaled, 1 << bits)
    return low


# --- proofs -------------------------------------------------------------------------------------------------------------------


def conflict(ranges: Ranges, relations: Sequence[ValueSum]) -> tuple[ValueSum, ...] | None:
    """A small set of relations that propagation alone refutes; None if propagation refutes nothing."""
    for relation in relations:
        least = least_sum(relation, ranges.__getitem__)
        if least is None or not relation.allows(least):
            return (relation,)
    if propagate(ranges, relations) is not None:
        return None
    kept = list(relations)
    for relation in list(relations):
        fewer = [r for r in kept if r is not relation]
        if fewer and propagate(ranges, fewer) is None:
            kept = fewer
    return tuple(kept)


def generalise_conflict(
    runs: dict[Place, tuple[int, int]],
    last: Callable[[Place], int],
    range_of: Callable[[Place, int, int], ValueRange | None],
    relations: Sequence[ValueSum],
) -> dict[Place, tuple[int, int]]:
    """A box of cells (first and last of every place) without a solution; each side is extended outwards as far as possible.

    `last(place)` is the last cell with values; `range_of(place, first, last)` is a range that contains the values of a run.
    """

    def refuted(box: Mapping[Place, tuple[int, int]]) -> bool:
        ranges: Ranges = {p: range_of(p, *run) for p, run in box.items()}
        return propagate(ranges, relations) is None

    box = dict(runs)
    for place, (start, end) in runs.items():
        if start > last(place):
            continue  # missing
        for upwards in (True, False):
            good, bad = 0, (last(place) - end if upwards else start) + 1
            while bad - good > 1:
                middle = (good + bad) // 2
                first, final = box[place]
                wider = (first, end + middle) if upwards else (start - middle, final)
                if refuted({**box, place: wider}):
                    good = middle
                else:
                    bad = middle
            first, final = box[place]
            box[place] = (first, end + good) if upwards else (start - good, final)
    return box


def places_of(relations: Iterable[ValueSum]) -> tuple[Place, ...]:
    return tuple(dict.fromkeys(p for relation in relations for p in relation.places))
