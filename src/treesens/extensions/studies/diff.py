"""Declares `diff`: compares two versions of a model. The search is in `diff_search.py`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

from treesens.compiler.base.tolerance import RELATIVE, Closeness
from treesens.extensions.studies import shared_options as shared
from treesens.extensions.studies.columns import Record, closed_words, column, number, uncertified
from treesens.extensions.studies.shared_records import PriceRecord, ToleranceRecord
from treesens.extensions.studies.study import Asking, Found, Study, given
from treesens.records.plain import ABSENT, SCHEMA_VERSION, Absent, ModelFile, OneOf, Points, Value, VerdictWord

if TYPE_CHECKING:
    from treesens.grammar.tree import ast

CHANGES = ("appears", "goes", "unknown", "stays", "never")
"""The possible changes of a sensitivity, in the order in which tables list them."""


@dataclass(frozen=True, kw_only=True)
class DiffOptions(shared.Certifying):
    """The settings of a comparison; `time_limit` limits each search, and `set_limit` limits each set and model (in seconds)."""

    gap: Sequence[str] = given(
        shared.GAP,
        (),
        "Also compare the sensitivities at these gaps in probability, e.g. 0.1,0.2; needs --data.",
    )
    margin: Sequence[str] = given(shared.MARGIN, (), "Also compare sensitivities at gaps in raw score, e.g. 0.5,1.")
    decision: ast.Decision | None = given(
        shared.DECISION,
        None,
        "A .sens file with one `decision`, whose changes of outcome are searched for.",
    )
    vary: Sequence[Sequence[str]] | None = given(shared.VARY, None)
    price_by: Sequence[Sequence[str]] | None = given(shared.PRICE_BY, None)
    protected: Sequence[str] = given(shared.PROTECTED, ())
    budget: Mapping[str, int] | None = given(shared.BUDGET, None)
    time_limit: float = given(shared.TIME_LIMIT, 60.0, "Seconds for every search.")
    set_limit: float = given(shared.SET_LIMIT, 5.0)
    tolerance: float = given(
        shared.TOLERANCE,
        RELATIVE,
        "The relative gap at which a largest difference counts as proved. Equality is proved exactly.",
    )
    optimal: bool = given(shared.OPTIMAL, False, "Prove largest differences exactly: the tolerance is 0.")
    seed: int = given(shared.SEED, 0)

    @property
    def near_enough(self) -> float:
        """The relative gap at which a largest difference counts as proved."""
        return 0.0 if self.optimal else self.tolerance


def status_words(record: Record) -> str:
    """`optimal`, the tolerance within which a bound is closed, or `open`."""
    return closed_words(record) if record["status"] == Closeness.WITHIN else str(record["status"])


def input_words(record: Record) -> str:
    """The values of the input; empty if there is no difference."""
    from treesens.report.tables import value_text

    values = (record["input"] or {}).items() if record["largest"] else ()
    return ", ".join(f"{name} {value_text(value)}" for name, value in values)


@dataclass(frozen=True, kw_only=True)
class ScoreDifference:
    """The largest difference of one score in one direction; the input is in the user's own labels."""

    score: str = column("score", lambda record: str(record["score"]))
    direction: str = column("direction", lambda record: str(record["direction"]))
    largest: float | None = column("largest difference", number("largest"))
    bound: float | None = column("proved bound", number("bound"))
    status: Annotated[str, OneOf(("optimal", "within tolerance", "open"))] = column("", status_words, frame=False)
    tolerance: ToleranceRecord | None
    input: dict[str, Value] | None = column("input", input_words, frame=False, spare=True)
    reason: str


@dataclass(frozen=True, kw_only=True)
class ChangedRows:
    """The rows whose class or, for regressors, whose value changes. Rows whose exact sums are equal, but are rounded
    differently by the libraries, are only counted as `rounded`, unless their class changes.
    """

    rows: int
    changed: int
    changed_rows: list[int]
    largest_difference: float
    rounded: int
    largest_rounding: float


@dataclass(frozen=True, kw_only=True)
class OutcomeChange:
    """A change from the outcome `old` of the first model to the outcome `new` of the second: an input of the domain with this
    change, if any, and the table rows that have it.
    """

    decision: str
    old: str
    new: str
    verdict: VerdictWord
    proof: str | None
    reason: str
    input: dict[str, Value] | None
    rows: int | None = uncertified(None)
    rows_changed: int | None = uncertified(None)
    changed_rows: list[int] | None = uncertified(None)
    seconds: float


@dataclass(frozen=True, kw_only=True)
class OneSide:
    """The findings of the audit of one version."""

    verdict: VerdictWord
    proof: str | None
    reason: str
    points: Points | None
    rows_flipped: int = uncertified(0)
    rows_complete: bool = uncertified(False)
    max_swing: float | None = uncertified(None)
    max_swing_bound: float | None = uncertified(None)


@dataclass(frozen=True, kw_only=True)
class SensitivityChange:
    """The findings of the audits of both versions for one set of features at one gap."""

    varied: list[str]
    protected: bool | Absent = ABSENT
    gap: float | Absent = ABSENT
    margin: float | Absent = ABSENT
    classes: list[str | int] | Absent = ABSENT
    question: str
    change: Annotated[str, OneOf(CHANGES)]
    old: OneSide
    new: OneSide


@dataclass(frozen=True, kw_only=True)
class DiffRecord:
    """All findings about two models."""

    verdict: Annotated[str, OneOf(("equal", "close", "different", "unknown"))]
    bound: float | None
    scores: list[ScoreDifference]
    data: ChangedRows | None = uncertified(None)
    prices: PriceRecord | None = uncertified(None)
    sensitivities: list[SensitivityChange] | None
    outcomes: list[OutcomeChange] | None
    interrupted: bool


@dataclass(frozen=True, kw_only=True)
class ComparedFiles:
    """The files of the two models."""

    schema_version: int = SCHEMA_VERSION
    old: ModelFile
    new: ModelFile


@dataclass(frozen=True, kw_only=True)
class DiffDocument(DiffRecord, ComparedFiles):
    """The files of the two models, and all findings about them."""


def document(asked: Asking[DiffOptions], found: Found[DiffRecord]) -> DiffDocument:
    """The document of the findings, with the two model files."""
    (one,) = found.records
    return DiffDocument(old=asked.file(0), new=asked.file(1), **vars(one))


STUDY = Study(
    name="diff",
    title="two models compared: treesens diff --json",
    text="""Compare two models: equal (proved), or the largest difference of their scores, reached by an input and bounded by a
    proof. --data adds the rows whose class (for regressors: value) changes, --label the prices of both models on these rows
    (log loss or squared error, AUC, changed decisions), --gap sensitivities that appear or disappear, and --decision changes of
    outcomes.

    Exit codes: 0 every largest difference is closed and every sensitivity decided, 5 some are open, 10 a condition of
    --fail-on, 1 usage, 2 unreadable input, 130 interrupted.
    """,
    call="""\
    Compares two models (files, live objects) as `treesens diff` does: the models are proved equal, or the largest difference
    of every raw score is reached by an input and bounded by a proof. The table `data` defines the domain and the rows to
    compare. `label`, the column of labels, adds the prices of both models on these rows (`prices`, by groups of `price_by`).
    Gaps (in probability, or as `margin` in raw score) add the appearing and disappearing sensitivities to features (or sets in
    `vary`); `decision`, a `.sens` file, adds the changes of outcomes. `time_limit` limits every search, and `set_limit` limits
    every set of features and model (in seconds). A largest difference may differ from its bound by the relative `tolerance`.
    Raises UsageError for models with different kinds of scores. Ctrl-C returns the results so far. """,
    options=DiffOptions,
    ask="treesens.extensions.studies.diff_search:ask",
    record=DiffRecord,
    document=document,
    models=("old", "new"),
    table="CSV or Parquet: rows to compare, and the domain.",
    label="The label column, for prices.",
    fails={
        "different": lambda records: any(one.verdict == "different" for one in records),
        "rows": lambda records: any(one.data is not None and one.data.changed > 0 for one in records),
        "protected": lambda records: any(
            side.change == "appears" and side.protected is True for one in records for side in one.sensitivities or ()
        ),
        "flips": lambda records: any(
            side.new.rows_flipped > side.old.rows_flipped for one in records for side in one.sensitivities or ()
        ),
        "sensitivities": lambda records: any(
            side.change == "appears" for one in records for side in one.sensitivities or ()
        ),
        "outcomes": lambda records: any(change.verdict == "found" for one in records for change in one.outcomes or ()),
    },
    fail_words="Exit with 10 if scores, or classes of rows, differ; if a sensitivity to a feature (or a protected one) "
    "appears; if more rows flip; or if the outcome of some input changes.",
    flips=lambda records: [(s.varied, s.new.rows_flipped) for one in records for s in one.sensitivities or ()],
    faults=lambda records: [score for record in records for score in record["scores"]],
)
