"""Evidence: the questions of a study with their results, from which `claims.py` makes claims and certificates.

A study has one piece of evidence for each statement of a record. Each class here represents one kind of result.
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
    """The evidence for one statement of a record; `title` names the statement."""

    title: str


@dataclass(frozen=True, eq=False)
class Open(Evidence):
    """A statement without a proof, and the reason why it has none."""

    reason: str


@dataclass(frozen=True, eq=False)
class Made(Evidence):
    """Certificates that the study has written already, with their questions."""

    parts: Sequence[tuple[Query, Sequence[Certified]]]


@dataclass(frozen=True, eq=False)
class Answered(Evidence):
    """A question that is answered by a pair (or an input), or by a proof that no such pair exists."""

    query: Query
    result: Result


@dataclass(frozen=True, eq=False)
class Best(Evidence):
    """An optimum: a reached value and a bound. If `bound` is given, it replaces the bound of the result; 0 is then exact."""

    query: Query
    result: Result | None
    bound: float | None = None


@dataclass(frozen=True, eq=False)
class LargestSlack(Evidence):
    """A largest gap: the pair satisfies every row of scores with a slack of `value`; the certificates prove the bound."""

    query: Query
    result: Result
    value: float | None


@dataclass(frozen=True, eq=False)
class Beyond(Evidence):
    """The statement that no input of a question is nearer than a bound, which is infinite if no input exists at all."""

    query: Query
    bound: float | None
    reason: str


@dataclass(frozen=True, eq=False)
class Counted(Evidence):
    """The number of rows of a table that are affected; the statement is open if this number is unknown. `rows` is float64[rows,
    features]; `among` is the number of rows that have to lie in the domain, or None.
    """

    query: Query
    rows: FloatArray
    data: str
    count: int | None
    reason: str
    among: int | None = None


@dataclass(frozen=True, eq=False)
class Share(Evidence):
    """The share of a measure lies between `low` and `high`."""

    query: Query
    measure: Measure
    low: float
    high: float


@dataclass(frozen=True, eq=False)
class Reason(Evidence):
    """Features whose values alone keep the class of the row `cells`, int32[features]; `others`: a question per class."""

    others: Sequence[Query]
    cells: Int32Array
    features: Collection[int]
    smallest: bool = False


@dataclass(frozen=True, eq=False)
class Change(Evidence):
    """Features of the row with `cells`, int32[features], such that changing only these features answers one of the questions.
    If `minimal` is True, every one of the features is needed, and there is one question.
    """

    queries: Sequence[Query]
    cells: Int32Array
    features: Collection[int]
    minimal: bool = False


@dataclass(frozen=True, eq=False)
class Border(Evidence):
    """The sets of features among `every` that have a pair (pairs without a known witness are searched for again), and the sets
    proved to have no pair. `complete` is True if these sets decide every set.
    """

    every: Sequence[int]
    having: Sequence[tuple[Query, Witness | None]]
    lacking: Sequence[Query]
    complete: bool


@dataclass(frozen=True, eq=False)
class Equal(Evidence):
    """Two models are the same, tree by tree, or every question about a difference of their scores has the maximum 0."""

    models: tuple[Ensemble, ...]
    queries: Sequence[Query]
