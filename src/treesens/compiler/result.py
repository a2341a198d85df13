"""Results as data: answers and their parts. Verdicts are made in solve/conclude.py, witnesses in values/verify.py."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import TYPE_CHECKING, Any, TypeVar

from treesens.compiler.base.arrays import BoolArray
from treesens.compiler.base.budget import OutOfTime
from treesens.compiler.base.diagnostics import Span
from treesens.compiler.base.plugins import Plugin
from treesens.compiler.base.tolerance import EXACT, Closeness, Tolerance
from treesens.compiler.ir.module import ModuleSize
from treesens.errors import InternalError, told

if TYPE_CHECKING:  # each solver process imports this module, but needs none of these
    from treesens.compiler.query.share import ShareAsked
    from treesens.values.concretise import NoValues
    from treesens.values.verify import Witness


class Verdict(StrEnum):
    """The three verdicts (docs/language.md)."""

    FOUND = "found"
    NONE = "none"
    UNKNOWN = "unknown"

    def __str__(self) -> str:
        return self.value


class Proof(StrEnum):
    """The evidence for a `none` or a bound (docs/semantics.md)."""

    EXACT = "exact"
    TOLERANCE = "tolerance"
    """Floating-point arithmetic of a solver, with its tolerances."""
    BOUND = "bound"
    """The proved bound of another question, which excludes every input of this question."""
    LIBRARY = "library"
    """The library's rounded sums: inputs exist in exact arithmetic only, within the numerical band."""

    UNVALIDATED = "unvalidated pass"
    """The output of a plug-in pass whose relation to its input was not proved on this module (docs/extending.md)."""

    def __str__(self) -> str:
        return self.value

    @classmethod
    def _missing_(cls, value: object) -> Proof | None:
        """Records name the passes: `unvalidated pass NAME, NAME`."""
        return cls.UNVALIDATED if str(value).startswith(f"{cls.UNVALIDATED} ") else None


def unvalidated(passes: Iterable[str]) -> str:
    """The evidence of an answer that rests on these plug-in passes, in words."""
    return f"{Proof.UNVALIDATED} {', '.join(passes)}"


class Sense(StrEnum):
    """The direction of an objective."""

    MAXIMIZE = "maximize"
    MINIMIZE = "minimize"

    def __str__(self) -> str:
        return self.value

    @staticmethod
    def of(maximize: bool) -> Sense:
        return Sense.MAXIMIZE if maximize else Sense.MINIMIZE


@dataclass(frozen=True)
class NearMiss:
    """The best attempt of a search without an answer, by the least slack among the constraints, in units of their scores.

    `best_slack` is the slack of the best point, or None without a point; `slack_bound` is an upper bound on the slack of all
    points, or None if unknown."""

    best_slack: float | None = None
    slack_bound: float | None = None

    def to_dict(self) -> dict[str, float]:
        """The known numbers, for records."""
        known = {"best_slack": self.best_slack, "slack_bound": self.slack_bound}
        return {name: value for name, value in known.items() if value is not None}


Masks = tuple[BoolArray, ...]
"""A box: a mask of its cells per feature, bool[n_cells] each."""


@dataclass(frozen=True, eq=False)
class Region:
    """A set of cells around a witness, in which every pair is a witness: a box per point, equal on the `shared` features."""

    boxes: tuple[Masks, ...]
    shared: frozenset[int]


@dataclass(frozen=True)
class NearestRow:
    """The table row nearest to a region: its number, and its l2 distances to the region and to the point.

    Distances are over the features that the question does not vary, in widths of their domains.
    """

    data: str
    index: int
    distance: float
    point_distance: float


@dataclass(frozen=True)
class ObjectiveValue:
    """The value of the witness, the proved bound (None if nothing is proved), the sense, and the question's tolerance."""

    value: float
    bound: float | None
    sense: Sense
    kind: str
    tolerance: Tolerance = EXACT

    @property
    def status(self) -> Closeness:
        """The status of the value: optimal, within the tolerance, or open."""
        return self.tolerance.closeness(self.value, self.bound)

    @property
    def gap(self) -> float | None:
        return None if self.bound is None else abs(self.bound - self.value)


@dataclass(frozen=True, eq=False)
class Solution:
    """A verified solution of a module that belongs to no question: `assignment`, bool[variables], and the objective's value in
    the objective's units (None without an objective).
    """

    assignment: BoolArray
    value: int | None


Moment = tuple[float, float | None, float | None]
"""Seconds since a solve began, with the objective's bound and the incumbent's value at that time (None: not known)."""


@dataclass(frozen=True)
class Attempt:
    """The outcome of one backend, for records, races and comparisons."""

    backend: str
    pipeline: str
    termination: str
    verdict: Verdict
    detail: str = ""
    seconds: dict[str, float] = field(default_factory=dict)
    size: ModuleSize = field(default_factory=ModuleSize)
    statistics: dict[str, float] = field(default_factory=dict)
    trajectory: tuple[Moment, ...] | None = None
    """Bound and incumbent over time in units of the question, if the solve was watched and the solver tells them."""


@dataclass(frozen=True, eq=False)
class Ranked:
    """The answers to a question with `top`, the best first.

    `complete` is True if no answer exists outside the regions of these answers, as proved by `proof`; `reason` explains why
    there are no more answers.
    """

    answers: tuple[Result, ...]
    wanted: int
    complete: bool
    reason: str
    proof: Proof | None = None


@dataclass(frozen=True)
class RowCount:
    """The number of table rows that answer a question.

    `rows` holds the numbers of these rows, and `undecided` the numbers of open rows (time ran out, or the library's arithmetic
    disagrees with exact arithmetic). `total` is the number of all rows in the table, and `outside` is the number of rows
    outside the domain, which are never answers. `shown` is the witness's row.
    """

    rows: tuple[int, ...]
    undecided: tuple[int, ...]
    total: int
    outside: int
    shown: int | None = None

    @property
    def at_least(self) -> int:
        return len(self.rows)

    @property
    def at_most(self) -> int:
        return len(self.rows) + len(self.undecided)


@dataclass(frozen=True, eq=False)
class Explanation:
    """The reason for a row's class, `predicted`. `features` holds indices of features that determine the class, or None if the
    permitted features do not; `smallest` is True if no smaller set determines the class. `contrast` lists features that, if
    changed, lead to the class of the witness; None if no input has another class. `decisions` counts the decisions made.
    """

    predicted: str
    features: frozenset[int] | None
    smallest: bool
    contrast: frozenset[int] | None
    decisions: int


@dataclass(frozen=True)
class Estimate:
    """An estimate `value` of a share; the share is in [low, high] with a probability of at least 1 - `delta` over the draws."""

    value: float
    low: float
    high: float
    delta: float
    draws: int


@dataclass(frozen=True)
class ShareFound:
    """A question's share of a measure, proved to be in [lower, upper].

    `expected` is True if the question states an expected bound; `holds` is True if the share satisfies the bound, or None if
    this is undecided. `closed` is True if the share has the usual precision; if not, `reason` explains why.
    """

    measure: str
    kind: str
    lower: float
    upper: float
    estimate: Estimate | None
    closed: bool
    reason: str
    expected: bool = False
    holds: bool | None = None
    rows: int | None = None
    """The number of rows in the domain, for a measure that counts rows."""

    def judged(self, asked: ShareAsked) -> ShareFound:
        """The share with the verdict on the question's expected bound, from the proved interval."""
        return replace(self, expected=asked.expected is not None, holds=asked.decided(self.lower, self.upper))


@dataclass(frozen=True)
class Core:
    """Conjuncts of a question, by location and text: no inputs satisfy all these conjuncts.

    `model_free` is True if no conjunct mentions scores; `minimal` is True if an answer exists whenever one conjunct is removed.
    """

    spans: tuple[Span, ...]
    texts: tuple[str, ...]
    model_free: bool
    minimal: bool


MANIFEST = ".manifest.json"
"""The suffix of file names of manifests."""


@dataclass(frozen=True)
class Certified:
    """A claim of an answer (`none`, `found`, `bound`) with the file of its accepted certificate, or the reason for its absence.

    `size` is in bytes, and times are in seconds. `left_out` names constraints that the proof did not need.
    """

    claim: str
    path: str = ""
    sha256: str = ""
    size: int = 0
    produced_in: float = 0.0
    checked_in: float = 0.0
    reason: str = ""
    left_out: tuple[str, ...] = ()

    @property
    def manifest(self) -> bool:
        """True if the file is a manifest, which lists joint claims in other files."""
        return self.path.endswith(MANIFEST)


@dataclass(frozen=True, eq=False)
class Result:
    """The answer to one question; if several answers are ranked (`ranked`), the first answer."""

    query: str
    verdict: Verdict
    reason: str
    proof: Proof | None = None
    witness: Witness | None = None
    solution: Solution | None = None
    """The point of a module without a question, in place of a witness."""
    objective: ObjectiveValue | None = None
    near_miss: NearMiss | None = None
    backend: str = ""
    pipeline: str = ""
    seconds: dict[str, float] = field(default_factory=dict)
    size: ModuleSize = field(default_factory=ModuleSize)
    attempts: tuple[Attempt, ...] = ()
    confirmed_by: str | None = None
    notes: tuple[str, ...] = ()
    region: Region | None = None
    nearest: NearestRow | None = None
    ranked: Ranked | None = None
    count: RowCount | None = None
    share: ShareFound | None = None
    core: Core | None = None
    explanation: Explanation | None = None
    refuted: tuple[NoValues, ...] = ()
    proof_dependencies: tuple[str, ...] = ()
    """The parts of the proof for a `none`, and for the bound of an objective, if the proof has several parts."""
    warm_started: bool = False
    """True if the backend received a solution of the native engine as a start."""
    certificates: tuple[Certified, ...] = ()
    """One certificate per claim of the answer, if certificates were requested."""
    plugins: tuple[Plugin, ...] = ()
    """The plug-ins that took part in the answer."""
    from_journal: str = ""
    """The time (UTC) of an answer from a journal: its points have been verified again, but not its proofs and bounds."""

    @property
    def proof_text(self) -> str | None:
        """The evidence in words, with the names of unvalidated passes."""
        return self.words_of(self.proof)

    def words_of(self, proof: Proof | None) -> str | None:
        """A proof of this result, or of a part of it, in words."""
        if proof is not Proof.UNVALIDATED:
            return None if proof is None else str(proof)
        from treesens.compiler.pipeline import plugin_passes

        start = f"{Proof.UNVALIDATED} "
        named = [part.removeprefix(start) for part in self.proof_dependencies if part.startswith(start)]
        return unvalidated(named or plugin_passes(self.pipeline))  # parts of a question do not list their premises


_Answer = TypeVar("_Answer")


def afterwards(result: Result, step: str, work: Callable[[], Result]) -> Result:
    """The result of `work` on an answer; if the step fails, the answer itself with a note and the error code.

    Used for steps after an answer (regions, nearest rows, shares, certificates, cores), so that the answer survives a failure.

    Errors that are not the user's are logged with a traceback. Interruptions are not caught.
    """
    try:
        return work()
    except Exception as error:  # noqa: BLE001 - every kind of error becomes a typed one here
        failed = told(error, f"{step} after the answer to {result.query}")
        return replace(result, notes=(*result.notes, f"error[{failed.code}]: {step}: {failed.message}"))


def answered(about: str, work: Callable[[], _Answer], otherwise: Callable[[str], _Answer]) -> _Answer:
    """Computes one of several answers. If treesens itself fails, `otherwise` makes an open answer from the reason, so that
    other answers are kept. The user's errors, and interruptions, are not caught.
    """
    try:
        return work()
    except OutOfTime:
        raise
    except Exception as error:
        failed = told(error, about)
        if not isinstance(failed, InternalError):
            raise
        return otherwise(f"error[{failed.code}]: {about}: {failed.message}")


def is_own_fault(text: str | None) -> bool:
    """True if a reason or a note reports an error of treesens itself."""
    return text is not None and text.startswith(f"error[{InternalError.code}]")


def has_own_fault(result: Result) -> bool:
    """True if a step after the answer ended in an error of treesens itself."""
    return any(map(is_own_fault, (*result.notes, *(claim.reason for claim in result.certificates))))


def have_own_fault(records: Iterable[Mapping[str, Any]]) -> bool:
    """True if an answer among the records of a study, or a step after an answer, ended in an error of treesens itself."""
    parts = [part for one in records for part in (one, one.get("share") or {}, *(one.get("certificates") or ()))]
    return any(is_own_fault(text) for part in parts for text in (part.get("reason"), *(part.get("notes") or ())))
