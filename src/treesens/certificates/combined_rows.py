"""Two relations between values at once, as a row of costs: what they say together within one cell, where neither of them helps.

A cell in which `a.f0 + a.f1 >= 3` may hold and the distance to a row may be small need not have a value with both. The sum of
two relations, one of them times a number, follows from them. Its terms about one value are taken together, so that those which
cancel are gone, and of the others the least value in each cell is that of their sum. As numbers those are tried at which the
slopes in some value cancel: an end of the linear program over two rows lies at such a one.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from fractions import Fraction
from itertools import combinations, islice, product

from treesens.certificates.cases import flat
from treesens.certificates.distance_bounds import slopes_of
from treesens.certificates.least_values import least_together
from treesens.certificates.sums import least_row, sums_of
from treesens.compiler.query.query import AtLeast, Constraint, Difference, Query, Space
from treesens.compiler.query.values import DistanceTerm, LinearTerm, Place, Term, ValueSum
from treesens.values.distance_costs import cell_reaches

MOST_RELATIONS, MOST_LINES, MOST_ROWS = 8, 16, 64
"""Relations that are looked at, ways to bound the distances of one of them, and rows that are made."""


def with_combined_rows(query: Query, more: Iterable[Constraint] = ()) -> Query | None:
    """The question with rows that two of its relations between values, or of `more` that hold as well, imply together; None if
    there are none.
    """
    rows = tuple(islice(_combined(query.space, [*relations_of((*query.constraints, *more))]), MOST_ROWS))
    return replace(query, constraints=(*query.constraints, *rows)) if rows else None


def relations_of(constraints: Iterable[Constraint]) -> Iterator[ValueSum]:
    """The relations between values that all hold."""
    for constraint in flat(constraints):
        if isinstance(constraint, ValueSum):
            yield constraint
        elif isinstance(constraint, Difference):
            yield from sums_of(constraint)


def _combined(space: Space, relations: list[ValueSum]) -> Iterator[AtLeast]:
    lines = [list(_lines(space, one)) for one in relations[:MOST_RELATIONS]]
    for some, others in combinations(lines, 2):
        for one, other in product(some, others):
            mine, yours = _slopes(one), _slopes(other)
            ratios = {
                -s / t for place in mine.keys() & yours.keys() for s in mine[place] for t in yours[place] if s * t < 0
            }
            for ratio in sorted(ratios):
                terms = (*one.terms, *(replace(term, factor=term.factor * ratio) for term in other.terms))
                limit, strict = one.limit + ratio * other.limit, one.strict or other.strict
                row = _row(space, ValueSum(terms, limit, strict, name=f"{one.name}.{other.name}"))
                if row is not None:
                    yield row


def _row(space: Space, relation: ValueSum) -> AtLeast | None:
    """What cells say of a relation without distances of two points."""
    together = dict[Place, list[Term]]()
    for term in _without_what_cancels(relation.terms):
        together.setdefault(term.places[0], []).append(term)
    known = [least_together(p, ts, cell_reaches(space, p[1]), space.legal[p[1]]) for p, ts in together.items()]
    if not known:  # all of it is gone: a number is left, which some place says in all of its cells
        place = relation.terms[0].places[0]
        known = [(place, [Fraction(0) if ok else None for ok in space.legal[place[1]]])]
    return least_row(relation, known)


def _without_what_cancels(terms: tuple[Term, ...]) -> Iterator[Term]:
    """Linear terms of one place as one, and none whose factor is 0."""
    linear = dict[Place, LinearTerm]()
    for term in terms:
        if isinstance(term, LinearTerm):
            known = linear.get(term.places[0])
            linear[term.places[0]] = term if known is None else replace(known, factor=known.factor + term.factor)
        else:
            yield term
    yield from (term for term in linear.values() if term.factor)


def _lines(space: Space, relation: ValueSum) -> Iterator[ValueSum]:
    """The relation with lines below its distances of two points, in all ways; none if such a distance is taken away."""
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
    """Linear terms that a distance of two points is not below, and by how much more at most; at least it is not below 0."""
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
    """By place the slopes that its terms may have in all."""
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
