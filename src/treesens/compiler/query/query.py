"""The typed question: points over a grid of cells, constraints, objective. Immutable, with all names resolved.

The cells of a `Space` come from the thresholds of all models of the question, refined by its constants: every constraint is a
statement about cells (docs/semantics.md). `Difference`, `ValueSum` and an `AtLeast` with values are exceptions, since they
relate values: on cells they mean "some values in these cells satisfy the relation", and values are chosen when the answer is
built (`concretise.py`).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import ClassVar, TypeAlias

import numpy as np

from treesens.compiler.base.arrays import (
    ArrayRecord,
    BoolArray,
    FloatArray,
    Int32Array,
    Int64Array,
    IntegerArray,
    frozen,
)
from treesens.compiler.base.plugins import Plugin
from treesens.compiler.model import Ensemble
from treesens.compiler.model.cells import CellEnsemble
from treesens.compiler.model.grid import Grid
from treesens.compiler.query.bounds import LogRational
from treesens.compiler.query.cavities import Cavities
from treesens.compiler.query.domain import Domain
from treesens.compiler.query.exact_sums import Value
from treesens.compiler.query.forest import ForestTerm
from treesens.compiler.query.share import ShareAsked
from treesens.compiler.query.values import DistanceTerm, LinearTerm, Place, Term, ValueSum

Scores: TypeAlias = Sequence[Sequence[Fraction]] | Mapping[int, Sequence[Fraction]]
"""Raw sums by point and output."""


@dataclass(frozen=True, eq=False)
class Coarse:
    """The grid of the models, and the models over this grid: the part of a refined space on which scores depend."""

    grid: Grid
    models: tuple[CellEnsemble, ...]


@dataclass(frozen=True, eq=False)
class Space:
    """The input space of a question: one grid and one domain per feature, and the cells that contain a legal value.

    Questions over the same inputs share `coarse`, if known: every cell of `grid` is in one cell of `coarse.grid`.
    """

    names: tuple[str, ...]
    grid: Grid
    domains: tuple[Domain, ...]
    legal: tuple[BoolArray, ...]
    coarse: Coarse | None = None


@dataclass(frozen=True)
class Point:
    """A point of the question, and the index of the point's model."""

    name: str
    model: int


@dataclass(frozen=True)
class ScoreTerm:
    """coefficient * raw score of `output` at `point`: the sum of the leaves, before averaging and link."""

    point: int
    output: int
    coefficient: Fraction


@dataclass(frozen=True, eq=False)
class CellCost(ArrayRecord):
    """A cost for every cell of a feature at a point: integers[n_cells] in units of 2**-shift."""

    point: int
    feature: int
    costs: IntegerArray
    shift: int


@dataclass(frozen=True)
class Changes:
    """coefficient * number of `features` in which two points must differ because their cells differ.

    With `most`, the number of features in which the points can differ: a feature also counts if both points are in one cell
    with several values. The actual number, to which the language refers, is between these two numbers.
    """

    left: int
    right: int
    features: tuple[int, ...]
    coefficient: int = 1
    most: bool = False


@dataclass(frozen=True, eq=False)
class PairCost(ArrayRecord):
    """A cost for every pair of cells of two places: int64[n_cells of left, n_cells of right] in units of 2**-shift."""

    left: Place
    right: Place
    costs: Int64Array
    shift: int


@dataclass(frozen=True, eq=False)
class Level(ArrayRecord):
    """A step of a ladder: it costs `cost` units of 2**-shift if `below` does not hold (or if `above` holds).

    Steps ascend: if a step counts, all steps before it count, too. `below` is for minimised forms, `above` for maximised forms.
    """

    cost: int
    shift: int
    below: Constraint | None = None
    above: Constraint | None = None


@dataclass(frozen=True, eq=False)
class LinearForm(ArrayRecord):
    """A sum of scores, costs of cells and of pairs of cells, changes, steps of a ladder, and scores of forests."""

    scores: tuple[ScoreTerm, ...] = ()
    costs: tuple[CellCost, ...] = ()
    changes: tuple[Changes, ...] = ()
    pairs: tuple[PairCost, ...] = ()
    levels: Sequence[Level] = ()
    forests: tuple[ForestTerm, ...] = ()

    def negative(self) -> LinearForm:
        """The negated form of scores, cell costs, changes and forests."""
        return replace(
            self,
            scores=tuple(replace(t, coefficient=-t.coefficient) for t in self.scores),
            costs=tuple(replace(c, costs=frozen(-c.costs)) for c in self.costs),
            changes=tuple(replace(c, coefficient=-c.coefficient) for c in self.changes),
            forests=tuple(replace(t, coefficient=-t.coefficient) for t in self.forests),
        )


@dataclass(frozen=True)
class SameExcept:
    """Two points agree on every feature except `varied` (eq. same of the paper)."""

    left: int
    right: int
    varied: frozenset[int]


@dataclass(frozen=True, eq=False)
class CellSet(ArrayRecord):
    """The cell of a feature at a point is in the set `mask`, bool[n_cells]."""

    point: int
    feature: int
    mask: BoolArray


@dataclass(frozen=True)
class Shown:
    """The probability statement behind a row of one score: the probability of a point's second class, calibrated or compared
    with the model's cut-off, is at least (`above`) or at most `probability`; `strict` excludes equality.
    """

    point: int
    probability: Fraction
    above: bool
    strict: bool


@dataclass(frozen=True, eq=False)
class AtLeast(ArrayRecord):
    """form >= bound (> bound if strict). `shown` is the row's probability statement, if the library compares probabilities.

    If `values` is not empty, the row is about the form's scores plus these terms, and the form's costs are the greatest values
    that cells allow: cells without an answer violate the row over cells, and values are chosen when the answer is built.
    """

    form: LinearForm
    bound: LogRational
    strict: bool = False
    name: str = "linear"
    shown: Shown | None = None
    values: tuple[LinearTerm, ...] = ()


@dataclass(frozen=True)
class Summand(ABC):
    """factor * a bounded function of scores: a term of a `ProbabilitySum`. Extensions define the terms for their own links.

    The function's arguments are linear in the scores. The term with the highest `rank` provides the sum's rows.
    """

    factor: Fraction
    rank: ClassVar[int]
    in_floats: ClassVar[bool] = False
    """True if rows contain floating-point constants, which are moved outwards by more than their error."""

    @property
    @abstractmethod
    def ends(self) -> tuple[Fraction, Fraction]:
        """The bounds on the values of the term."""

    @abstractmethod
    def reads(self) -> tuple[ScoreTerm, ...]:
        """The scores on which the term depends."""

    @abstractmethod
    def arguments(self, scores: Scores) -> tuple[Fraction, ...]:
        """The arguments of the function at an input."""

    @abstractmethod
    def add_to(self, value: Value, arguments: Sequence[Fraction]) -> None:
        """Adds the term to an exact sum."""

    @abstractmethod
    def on_rows(self, sums: Callable[[Sequence[ScoreTerm]], FloatArray]) -> tuple[FloatArray, FloatArray]:
        """Lower and upper bounds of the term for many inputs, float64[inputs] each, up to the rounding of these floats."""

    @abstractmethod
    def better(self, arguments: Sequence[Fraction], name: str) -> list[AtLeast]:
        """Rows of which at least one holds wherever the term is greater than at these arguments."""

    @abstractmethod
    def toward(self, arguments: Sequence[Fraction], share: Fraction) -> tuple[Fraction, ...]:
        """The arguments, moved by a share of the way towards the arguments with the greatest value."""

    @abstractmethod
    def relax(self, row: ProbabilitySum) -> Constraint:
        """A constraint on scores that is implied by a sum in which this term has the highest rank."""

    @abstractmethod
    def cut(self, row: ProbabilitySum, scores: Scores) -> Constraint | None:
        """A constraint that a sum implies and these scores violate; None if no cut of the term is stronger than `better`."""

    @abstractmethod
    def error(self, ensemble: Ensemble, off: Callable[[ScoreTerm], Fraction]) -> Fraction:
        """A bound on the library's error for the term, given bounds `off` on the errors of the term's scores."""

    @abstractmethod
    def text(self, form: Callable[[Sequence[ScoreTerm], Fraction], str]) -> str:
        """The function as a formula."""

    def plus(self, other: Summand) -> Summand | None:  # noqa: ARG002 - for subclasses
        """This term and another term as a single term; None if that is impossible."""
        return None

    def lead(self) -> tuple[tuple[ScoreTerm, ...], Fraction] | None:
        """A sum of scores, with a constant, such that the term tends to grow with this sum; None if no such sum exists."""
        return None


@dataclass(frozen=True)
class ProbabilitySum:
    """sum of probabilities >= bound (> bound if strict), which is not linear in the scores (`probabilities.py`)."""

    terms: tuple[Summand, ...]
    bound: Fraction
    strict: bool = False
    name: str = "prob"


@dataclass(frozen=True)
class Difference:
    """low <= left_factor * left.feature - right_factor * right.other <= high on stored values; None is an unbounded end.

    The flags mark strict ends. The factors are not zero; a negative right factor makes the relation a bound on a sum.
    """

    left: int
    feature: int
    right: int
    other: int
    low: Fraction | None
    high: Fraction | None
    low_strict: bool = False
    high_strict: bool = False
    left_factor: Fraction = Fraction(1)
    right_factor: Fraction = Fraction(1)

    def value(self, left: Fraction, right: Fraction) -> Fraction:
        """The quantity that is compared with both ends."""
        return self.left_factor * left - self.right_factor * right

    def partner(self, known: Fraction, value: Fraction, left_wanted: bool) -> Fraction:
        """The left (or right) value that, with the known right (or left) value, yields `value`."""
        if left_wanted:
            return (value + self.right_factor * known) / self.left_factor
        return (self.left_factor * known - value) / self.right_factor


@dataclass(frozen=True, eq=False)
class AvoidBoxes(ArrayRecord):
    """A point is outside all boxes; the boxes are in CSR form over `feature`, `low` and `high` (inclusive runs of cells)."""

    point: int
    indptr: Int64Array
    feature: Int32Array
    low: Int32Array
    high: Int32Array


@dataclass(frozen=True, eq=False)
class AvoidCavities(ArrayRecord):
    """A point is outside all boxes of `cavities`; the boxes are not listed.

    The cells of the boxes are coarser than the question's: cell c of feature f is part of cell `coarse[start[f] + c]`.
    """

    point: int
    cavities: Cavities
    coarse: Int32Array
    start: Int64Array

    def holds(self, cells: Int32Array) -> bool:
        """True if no box contains the point with `cells`, int32[features]."""
        return not self.cavities.hold(self.coarse_cells(cells))

    def coarse_cells(self, cells: Int32Array) -> Int32Array:
        """The cells of a point on the grid of the boxes, int32[features]."""
        return np.asarray(self.coarse[self.start + cells], np.int32)


@dataclass(frozen=True)
class OneHot:
    """For exactly one of `members`, the cell of the feature is in the mask, which contains the cell of the value 1."""

    point: int
    members: tuple[CellSet, ...]


@dataclass(frozen=True)
class AllOf:
    """Conjunction."""

    parts: tuple[Constraint, ...]


@dataclass(frozen=True)
class AnyOf:
    """Disjunction."""

    parts: tuple[Constraint, ...]


Constraint: TypeAlias = (
    SameExcept
    | CellSet
    | AtLeast
    | ProbabilitySum
    | Difference
    | ValueSum
    | AvoidBoxes
    | AvoidCavities
    | OneHot
    | AllOf
    | AnyOf
)


def parts_in(constraints: Iterable[Constraint]) -> Iterator[Constraint]:
    """Yields all constraints, including those inside conjunctions and disjunctions."""
    for constraint in constraints:
        yield constraint
        if isinstance(constraint, AllOf | AnyOf):
            yield from parts_in(constraint.parts)


@dataclass(frozen=True, eq=False)
class NearestRows(ArrayRecord):
    """The distance of a point to the nearest of some rows, over `features`: a minimum, which is not linear.

    `values`, float64[rows, len(features)], are the rows' values as the model stores them (NaN is missing), and `widths`,
    float64[len(features)], the features' units; features in `same_or_not` add 0 or 1. `index`, int64[rows], are table rows.
    """

    point: int
    features: tuple[int, ...]
    values: FloatArray
    widths: FloatArray
    same_or_not: BoolArray
    index: Int64Array
    norm: str


@dataclass(frozen=True, eq=False)
class RowSet(ArrayRecord):
    """The rows over which a point of a counting question ranges: `values` float64[rows, features], NaN is missing.

    Rows outside the domain are excluded, and `outside` is their number; `index`, int64[rows], holds the table numbers of the
    rows inside the domain.
    """

    point: int
    values: FloatArray
    index: Int64Array
    outside: int = 0


@dataclass(frozen=True, eq=False)
class Objective(ArrayRecord):
    """Maximise or minimise a linear form, or the distance to the nearest row of a table (with an empty `form`).

    `kind` is one of KINDS and defines the value: form * unit + offset, or the square root for a "distance l2". If `values` is
    not empty, the objective is the sum (or, if `largest`, the maximum) of these terms and of the form's scores, and the form is
    the best value that cells allow: it bounds the objective, and the values of an answer are chosen close to this bound.
    """

    KINDS: ClassVar[tuple[str, ...]] = (
        "margin",
        "log-likelihood",
        "typicality",
        "probability",
        "changes",
        "features",
        "margins and features",
        "distance l0",
        "distance l1",
        "distance l2",
        "distance linf",
    )

    form: LinearForm
    maximize: bool
    kind: str
    unit: Fraction = Fraction(1)
    offset: Fraction = Fraction(0)
    nearest: NearestRows | None = None
    values: tuple[Term, ...] = ()
    largest: bool = False
    zoom: Callable[[Fraction, Fraction], Objective] | None = None
    """The same objective with finer steps between two values (`binder/ladders.py`)."""
    reaching: Callable[[Fraction], Constraint] | None = None
    """The constraint that some values in the cells reach an objective value."""
    probability: ProbabilitySum | None = None
    """The sum of probabilities that is the objective, without its bound. Such a sum is not linear, so the form is empty."""

    @property
    def distances(self) -> tuple[DistanceTerm, ...]:
        """The terms of `values` that are distances or changes."""
        return tuple(term for term in self.values if isinstance(term, DistanceTerm))

    @property
    def counts(self) -> bool:
        """True if the form is an integer multiple of the number of features that differ."""
        return self.kind in ("changes", "distance l0")


@dataclass(frozen=True, eq=False)
class DecidedPoint(ArrayRecord):
    """A decision about a point: the outcome of the first case whose constraint holds, or `otherwise` if no constraint holds."""

    name: str
    point: int
    cases: tuple[tuple[str, Constraint], ...]
    otherwise: str


@dataclass(frozen=True, eq=False)
class ExplainedRow:
    """Row `number` of the table `data`, to be explained: `values` float64[1, features] as stored, and `cells` int32[features].

    `own` is the question for an input of the row's class, `predicted`, and `others` has one question per other class. No reason
    contains features in `barred`; with `smallest` the reason has as few features as possible.
    """

    data: str
    number: int
    values: FloatArray
    cells: Int32Array
    predicted: str
    own: Query
    others: tuple[Query, ...]
    barred: frozenset[int] = frozenset()
    smallest: bool = False


@dataclass(frozen=True, eq=False)
class Query:
    """One question, ready for lowering.

    Records contain `text` (the question as written), `expect` (the expectation as text) and `varied` (the names of the features
    that may differ). `top` is the number of answers; with `diverse`, the answers are spread over regions far from each other.
    With `rows` the answer is the number of rows that the point can equal. With `explained` the answer is the reason for this
    row's class, and the constraints require another class.
    """

    name: str
    space: Space
    models: tuple[CellEnsemble, ...]
    points: tuple[Point, ...]
    constraints: tuple[Constraint, ...]
    objective: Objective | None = None
    expect: str | None = None
    varied: tuple[str, ...] = ()
    text: str = ""
    rows: RowSet | None = None
    top: int = 1
    diverse: bool = False
    explained: ExplainedRow | None = None
    share: ShareAsked | None = None
    decided: tuple[DecidedPoint, ...] = ()
    """The decisions used by the question, which are shown with an answer next to the scores."""
    plugins: tuple[Plugin, ...] = ()
    """The plug-in predicates of the question, and the plug-in formats of its models."""
    parameters: tuple[tuple[str, str], ...] = ()
    """The names and numbers of the file's parameters on which the question depends."""


def agreeing(row: ExplainedRow, features: Collection[int]) -> list[Query]:
    """For each other class, a question for inputs that equal the row on `features`. A reason claims `none` for each class."""
    return [pinned(other, row.cells, features) for other in row.others]


def pinned(query: Query, cells: Int32Array, features: Collection[int]) -> Query:
    """The question with the first point fixed to `cells`, int32[features], on `features`."""
    numbers = [(f, np.arange(query.space.grid[f].n_cells)) for f in sorted(features)]
    sets = [CellSet(0, f, frozen(mine == cells[f], bool)) for f, mine in numbers]
    return replace(query, constraints=(*query.constraints, *sets))
