"""Combines two or three relations between values into one row of costs: bounds of cells may suffice only for the sum.

Although `a.f0 + a.f1 >= 3` and a small distance to a row may each be satisfiable in a cell, perhaps no value in the cell
satisfies both. The relations imply their sum with positive weights (Farkas, Theorie der einfachen Ungleichungen, 1902). Terms
of the sum about one value are merged: some cancel, and the others contribute their least total in each cell. Tries the weights
that cancel the slopes of two relations in one value, or of three relations in two values: the vertices of the linear program.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import replace
from fractions import Fraction
from itertools import combinations, islice, product

from treesens.compiler.query.query import AtLeast, Constraint, Difference, Query, Space
from treesens.compiler.query.values import DistanceTerm, LinearTerm, Place, Term, ValueSum
from treesens.extensions.certify.cases import flat
from treesens.extensions.certify.distance_bounds import least_together, slopes_of
from treesens.extensions.certify.sums import least_row, sums_of
from treesens.values.distance_costs import cell_reaches

MOST_RELATIONS, MOST_LINES, MOST_WAYS, MOST_SLOPES, MOST_ROWS = 8, 16, 1024, 256, 128
"""Limits on relations, ways to bound a relation's distances, ways to combine relations, slopes, and resulting rows."""
_NONE = frozenset({Fraction(0)})


def with_combined_rows(query: Query, more: Iterable[Constraint] = ()) -> Query | None:
    """The question with rows implied by two or three relations (its own, or valid ones in `more`); None without such rows."""
    rows = tuple(islice(_combined(query.space, [*relations_of((*query.constraints, *more))]), MOST_ROWS))
    return replace(query, constraints=(*query.constraints, *rows)) if rows else None


def relations_of(constraints: Iterable[Constraint]) -> Iterator[ValueSum]:
    """The relations between values that every answer satisfies."""
    for constraint in flat(constraints):
        if isinstance(constraint, ValueSum):
            yield constraint
        elif isinstance(constraint, Difference):
            yield from sums_of(constraint)


def _combined(space: Space, relations: list[ValueSum]) -> Iterator[AtLeast]:
    lines = [list(_lines(space, one)) for one in relations[:MOST_RELATIONS]]
    ways = (way for count in (2, 3) for some in combinations(lines, count) for way in product(*some))
    for way in islice(ways, MOST_WAYS):
        for weights in sorted(_weights(list(map(_slopes, way)))):
            terms = tuple(
                replace(term, factor=term.factor * weight)
                for one, weight in zip(way, weights, strict=True)
                for term in one.terms
            )
            limit = sum((weight * one.limit for one, weight in zip(way, weights, strict=True)), Fraction(0))
            name = ".".join(one.name for one in way)
            row = _row(space, ValueSum(terms, limit, any(one.strict for one in way), name=name))
            if row is not None:
                yield row


def _weights(slopes: list[dict[Place, set[Fraction]]]) -> set[tuple[Fraction, ...]]:
    """Positive weights, starting with 1, that cancel the slopes of two relations in one place, or of three in two places."""
    shared = [place for place, times in Counter(place for mine in slopes for place in mine).items() if times > 1]
    chosen = (
        equations
        for places in combinations(shared, len(slopes) - 1)
        for equations in product(*(list(product(*(sorted(mine.get(p, _NONE)) for mine in slopes))) for p in places))
    )
    solved = map(_solved, islice(chosen, MOST_SLOPES))
    return {(Fraction(1), *rest) for rest in solved if rest is not None and min(rest) > 0}


def _solved(equations: tuple[tuple[Fraction, ...], ...]) -> tuple[Fraction, ...] | None:
    """The numbers x with e[0] + e[1] x[0] + e[2] x[1] + ... = 0 for one or two equations e; None without a unique solution."""
    if len(equations) == 1:
        ((first, second),) = equations
        return (-first / second,) if second else None
    (a, b, c), (d, e, f) = equations
    size = b * f - c * e
    return ((c * d - a * f) / size, (a * e - b * d) / size) if size else None


def _row(space: Space, relation: ValueSum) -> AtLeast | None:
    """The row of costs implied by a relation without distances between two points."""
    together = dict[Place, list[Term]]()
    for term in _without_what_cancels(relation.terms):
        together.setdefault(term.places[0], []).append(term)
    known = [least_together(p, ts, cell_reaches(space, p[1]), space.legal[p[1]]) for p, ts in together.items()]
    if not known:  # all terms cancelled: the constant becomes the cost of every cell of some place
        place = relation.terms[0].places[0]
        known = [(place, [Fraction(0) if ok else None for ok in space.legal[place[1]]])]
    return least_row(relation, known)


def _without_what_cancels(terms: tuple[Term, ...]) -> Iterator[Term]:
    """The terms, with the linear terms of each place merged and terms with a factor of 0 dropped."""
    linear = dict[Place, LinearTerm]()
    for term in terms:
        if isinstance(term, LinearTerm):
            known = linear.get(term.places[0])
            linear[term.places[0]] = term if known is None else replace(known, factor=known.factor + term.factor)
        else:
            yield term
    yield from (term for term in linear.values() if term.factor)


def _lines(space: Space, relation: ValueSum) -> Iterator[ValueSum]:
    """All ways to bound distances between two points by lines from below; none if the relation subtracts such a distance."""
    kept = tuple(term for term in relation.terms if not _is_between(term))
    between = [term for term in relation.terms if isinstance(term, DistanceTerm) and _is_between(term)]
    if any(term.factor < 0 for term in between):
        return
    ways = [list(_ways(space, term, relation)) for term in between]
    for chosen in islice(product(*ways), MOST_LINES):
        terms = (*kept, *(term for line, _ in chosen for term in line))
        if terms:
            yield replace(relation, terms=terms, limit=relation.limit + sum(rise for _, rise in chosen))


def _ways(space: Space, term: DistanceTerm, relation: ValueSum) -> Iterator[tuple[tuple[LinearTerm, ...], Fraction]]:
    """Lower bounds on a distance between two points: linear terms with the constant to subtract, and finally the bound 0."""
    grid, legal = space.grid[term.feature], space.legal[term.feature]
    if not term.unordered and not (grid.missing and legal[grid.missing_cell]):
        assert term.other is not None
        for slope, rise in slopes_of(term, relation.limit, len(relation.terms)):
            steep = term.factor * slope / term.width
            line = LinearTerm(term.point, term.feature, steep), LinearTerm(term.other, term.feature, -steep)
            yield line, term.factor * rise
    yield (), Fraction(0)


def _is_between(term: Term) -> bool:
    return isinstance(term, DistanceTerm) and term.other is not None


def _slopes(relation: ValueSum) -> dict[Place, set[Fraction]]:
    """For each place, the total slopes that its terms may have."""
    found = dict[Place, set[Fraction]]()
    for term in relation.terms:
        mine = {Fraction(0)}
        if isinstance(term, LinearTerm):
            mine = {term.factor}
        elif not term.unordered and (term.power == 1 or relation.limit > 0 < term.factor):
            lines = slopes_of(term, relation.limit, len(relation.terms))
            mine = {term.factor * slope / term.width for slope, _ in lines}
        before = found.get(term.places[0], {Fraction(0)})
        found[term.places[0]] = {x + y for x in before for y in mine}
    return found
