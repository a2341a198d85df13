"""Evidence: the questions of a study with their results. What can have a certificate follows from it (`claims.py`).

A study keeps, for each of its records, one piece of evidence per statement. Each class is a kind of result.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from treesens.compiler.base.arrays import FloatArray, Int32Array
from treesens.compiler.model import Ensemble
from treesens.compiler.query.query import Query
from treesens.compiler.result import Certified, Result
from treesens.extensions.measure.measure import Measure
from treesens.values.verify import Witness


@dataclass(frozen=True, eq=False)
class Evidence:
    """A statement of a record, by its title."""

    title: str


@dataclass(frozen=True, eq=False)
class Open(Evidence):
    """Nothing is proved, for a reason."""

    reason: str


@dataclass(frozen=True, eq=False)
class Made(Evidence):
    """Certificates that the study has made already, with the questions that they are about."""

    parts: Sequence[tuple[Query, Sequence[Certified]]]


@dataclass(frozen=True, eq=False)
class Answered(Evidence):
    """A pair (or an input), or a proof that there is none."""

    query: Query
    result: Result


@dataclass(frozen=True, eq=False)
class Best(Evidence):
    """An optimum: a value that is reached and a bound. A `bound` here replaces that of the result; 0 is then exact."""

    query: Query
    result: Result | None
    bound: float | None = None


@dataclass(frozen=True, eq=False)
class LargestSlack(Evidence):
    """A largest gap: the pair passes every row of scores by `value`, and certificates are made of the bound."""

    query: Query
    result: Result
    value: float | None


@dataclass(frozen=True, eq=False)
class Beyond(Evidence):
    """That nothing is nearer than a bound, which is infinite if there is nothing at all."""

    query: Query
    bound: float | None
    reason: str


@dataclass(frozen=True, eq=False)
class Counted(Evidence):
    """So many of some rows float64[rows, features] of a table are concerned; all of them lie in the domain, or `among` is None.
    Open if the number is not known.
    """

    query: Query
    rows: FloatArray
    data: str
    count: int | None
    reason: str
    among: int | None = None


@dataclass(frozen=True, eq=False)
class Share(Evidence):
    """The share of a measure lies from `low` to `high`."""

    query: Query
    measure: Measure
    low: float
    high: float


@dataclass(frozen=True, eq=False)
class Reason(Evidence):
    """Features whose values alone keep the class of a row with cells int32[features]; `others` are questions about each other
    class.
    """

    others: Sequence[Query]
    cells: Int32Array
    features: Collection[int]
    smallest: bool = False


@dataclass(frozen=True, eq=False)
class Change(Evidence):
    """Features whose change alone answers one of some questions about a row with cells int32[features]; with `minimal` none of
    them can be left out, and there is one question.
    """

    queries: Sequence[Query]
    cells: Int32Array
    features: Collection[int]
    minimal: bool = False


@dataclass(frozen=True, eq=False)
class Border(Evidence):
    """The sets of features among `every` with a pair (without a witness it is searched for again), and those proved to lack
    one; `complete` if they decide about all sets.
    """

    every: Sequence[int]
    having: Sequence[tuple[Query, Witness | None]]
    lacking: Sequence[Query]
    complete: bool


@dataclass(frozen=True, eq=False)
class Equal(Evidence):
    """Two models are the same, tree by tree; or no question about a difference of their scores has more than 0."""

    models: tuple[Ensemble, ...]
    queries: Sequence[Query]
