"""The form of a question in which its share is counted: trees, and the score rows that the two points must satisfy.

Constraints on single features and on typicality become additional trees with their own tables.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from fractions import Fraction

import numpy as np

from treesens.compiler.base.arrays import Int32Array, Int64Array
from treesens.compiler.model.cell_trees import CellTrees, side_by_side
from treesens.compiler.model.grid import Grid
from treesens.compiler.model.scores import leaf_values
from treesens.compiler.query.forest import ForestTerm
from treesens.compiler.query.query import AllOf, AtLeast, CellSet, Constraint, OneHot, Query, SameExcept
from treesens.errors import UsageError
from treesens.extensions.measure.groups import Groups, allows_group, groups_of
from treesens.extensions.measure.sides import Row, Sides, sides_of, varied_by


@dataclass(frozen=True, eq=False)
class Counted:
    """A question as input of the search: its trees, in which each `onehot` group is one feature, and the rows to satisfy.

    `varied` holds the features that may differ between the two points, including features in groups.
    """

    trees: CellTrees
    sides: Sides
    groups: Groups
    varied: frozenset[int]


@dataclass(frozen=True, eq=False)
class _Beside:
    """A constraint on additional trees: sign * (sum of leaves) >= least at `point`; `values`, int64[leaves], are integers."""

    point: int
    trees: CellTrees
    values: Int64Array
    sign: int
    least: int


@dataclass
class _Said:
    """The constraints of a question, by kind."""

    scores: list[AtLeast] = field(default_factory=list)
    beside: list[_Beside] = field(default_factory=list)


def counted_of(query: Query) -> Counted:
    """The counted form of a question about one point, or about two points that agree except on some features; other constraints
    must be about scores, a single feature of a point, or the typicality of a point.

    Raises UsageError for other questions, and for questions with too many combinations of values.
    """
    groups, varied, said = groups_of(query), varied_by(query), _Said()
    for constraint in _flat(query.constraints):
        _sort_in(said, constraint, groups)
    model = query.models[query.points[0].model]
    more = sum(len(one.trees.root) for one in said.beside)
    sides = sides_of(query, groups, said.scores, more)
    trees = side_by_side([model, *(one.trees for one in said.beside)])
    for one in said.beside:
        _add_table(sides, one)
    return Counted(groups.folded_trees(trees), sides, groups, varied)


def _flat(constraints: Iterable[Constraint]) -> Iterator[Constraint]:
    for constraint in constraints:
        if isinstance(constraint, AllOf):
            yield from _flat(constraint.parts)
        else:
            yield constraint


def _sort_in(said: _Said, constraint: Constraint, groups: Groups) -> None:
    match constraint:
        case SameExcept() | OneHot():
            pass
        case CellSet() if allows_group(groups, constraint):
            pass
        case CellSet(point, feature, mask):
            trees = _stump(groups.grid, feature, mask.astype(np.uint8))
            said.beside.append(_Beside(point, trees, np.array([1, 0], np.int64), 1, 1))
        case AtLeast(form=form) if form.costs or form.changes or form.pairs or form.levels:
            raise _not_counted()
        case AtLeast(form=form) if form.scores and not form.forests:
            said.scores.append(constraint)
        case AtLeast(form=form) if len(form.forests) == 1 and not form.scores:
            said.beside.append(_forest(constraint, form.forests[0]))
        case _:
            raise _not_counted()


def _not_counted() -> UsageError:
    return UsageError(
        "shares need constraints on scores, on single features or on typicality, without alternatives",
        remedy="leave out relations of features (also with margins), distances, likelihoods, cavities and `or`",
    )


def _forest(row: AtLeast, term: ForestTerm) -> _Beside:
    values, shift, slack = leaf_values(term.trees, 0)
    assert slack == 0
    sign = 1 if term.coefficient > 0 else -1
    least = (row.bound * Fraction(1, abs(term.coefficient))).ceil(shift, strict=row.strict)
    return _Beside(term.point, term.trees, values, sign, least)


def _stump(grid: Grid, feature: int, inside: Int32Array) -> CellTrees:
    """A tree with one split, which sends the cells of a set to leaf 0 and other cells to leaf 1."""
    whole = np.array([-1, 0, 1], np.int32)
    none = np.full(3, -1, np.int32)
    return CellTrees(
        grid,
        root=np.zeros(1, np.int32),
        feature=np.array([feature, -1, -1], np.int32),
        cut=np.zeros(3, np.int32),
        left=np.array([1, -1, -1], np.int32),
        right=np.array([2, -1, -1], np.int32),
        leaf=whole,
        default_left=np.zeros(3, np.uint8),
        category_set=np.array([0, *none[1:]], np.int32),
        set_offset=np.array([0, len(inside)], np.int64),
        set_member=inside.astype(np.uint8),
    )


def _add_table(sides: Sides, one: _Beside) -> None:
    """Adds a table for additional trees, with 0 at all leaves of earlier trees, and the table's row, which is exact."""
    leaves, tables = sides.values.shape
    values = np.zeros((leaves + len(one.values), tables + 1), np.int64)
    values[:leaves, :tables] = sides.values
    values[leaves:, tables] = one.values
    sides.values, sides.base = values, np.append(sides.base, 0).astype(np.int64)
    far = 1 << 62
    least = min(max(one.least, -far), far)
    rows = sides.first if (one.point == 0) != sides.swapped else sides.second
    rows.append(Row(tables, one.sign, least, least))
