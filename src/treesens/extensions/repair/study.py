"""The declaration of `repair`, which writes a less sensitive model in the file format of its library."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from treesens.compiler.base.floats import fraction_of
from treesens.compiler.base.option_kinds import Choice, Names, OutputPath, Seconds, Sizes, TableFile
from treesens.errors import UsageError
from treesens.extensions.studies import shared_options as shared
from treesens.extensions.studies.shared_records import CertificateRecord, PriceRecord
from treesens.extensions.studies.study import Asking, Door, Found, Option, Study, given
from treesens.records.plain import ABSENT, SCHEMA_VERSION, Absent, ModelFile

if TYPE_CHECKING:
    from treesens.grammar.tree import ast

Method = Literal["auto", "average", "blend", "leaves"]
METHODS: tuple[Method, ...] = ("auto", "average", "blend", "leaves")
PromiseKind = Literal["gap", "margin", "swing", "increasing", "decreasing"]
KINDS: tuple[PromiseKind, ...] = ("gap", "margin", "swing")
"""The kinds of promises that have a size."""
LEAST_FALL = Fraction(1, 10**6)
"""The size of a direction, in raw score: the proof shows that no score falls (rises) by this amount or more."""

SWING = Option(
    Sizes(),
    "The largest allowed difference of raw scores in a pair.",
    more="With --gap or --margin, the swing is a single number, required in addition to the gap or margin.",
)
INCREASING = Option(Names(), "Features, as a,b, in which the score must not fall (by 0.000001), others being equal.")
DECREASING = Option(Names(), "Features, as a,b, in which the score must not rise; otherwise like --increasing.")
KEEP_ROWS = Option(
    TableFile(),
    "Rows whose raw scores must not change by more than 0.0001.",
    more="At most 500 rows; the option cannot be combined with --increasing or --decreasing.",
)
TEST = Option(TableFile(), "Held-out rows, for prices.")
OUTPUT = Option(
    OutputPath(), "The repaired model, in the format of MODEL.", short="-o", more="Otherwise, only prices are computed."
)
PAIRS = Option(
    OutputPath(),
    "A CSV file for retraining: rows that break the promise, each in two versions with the label of the row.",
    more="The versions contain values of other rows. If there are several sizes, the smallest is used.",
)
METHOD = Option(Choice(METHODS), "The method; auto selects the method with the smallest loss on rows set aside.")
KEEP = Option(Names(), "Features, as a,b, whose trees must not change.")
PROOF_TIME = Option(Seconds(), "Seconds for each proof.")


@dataclass(frozen=True, kw_only=True)
class RepairOptions:
    """The goals and settings of a repair. `time_limit` limits the search for the best leaves of one size, and `proof_time`
    limits each proof, both in seconds.
    """

    vary: Sequence[Sequence[str]] | None = given(
        shared.VARY,
        None,
        "A feature, or a set as a,b; repeatable.",
        "The promise applies to each set separately.",
    )
    gap: Sequence[str] = given(
        shared.GAP,
        (),
        "The promise: no pair crosses the cut-off by this probability (regressors: value), e.g. 0.1 or 0.05,0.1.",
        "For each size, a file with the size in its name is written; 0 means any change of the decision.",
    )
    margin: Sequence[str] = given(shared.MARGIN, (), "The promise in raw score.")
    swing: Sequence[str] = given(SWING, ())
    increasing: Sequence[str] = given(INCREASING, ())
    decreasing: Sequence[str] = given(DECREASING, ())
    test: object | None = given(TEST, None)
    price_by: Sequence[Sequence[str]] | None = given(shared.PRICE_BY, None)
    output: Path | None = given(OUTPUT, None)
    pairs: Path | None = given(PAIRS, None)
    plot: Path | None = given(
        shared.PLOT, None, "A plot of the prices over the sizes (.svg, .png, .pdf), made with matplotlib."
    )
    method: Method = given(METHOD, "auto")
    keep: Sequence[str] = given(KEEP, ())
    keep_rows: object | None = given(KEEP_ROWS, None)
    decision: ast.Decision | None = given(
        shared.DECISION,
        None,
        "Not supported: state one cut-off of the decision with --threshold instead.",
    )
    threshold: Fraction | None = given(shared.THRESHOLD, None)
    classes: Sequence[str] = given(shared.CLASSES, (), "Classes, as A,B. Default: all.")
    domain: Sequence[ast.Declaration] = given(
        shared.DOMAIN,
        (),
        "A .sens file whose `feature` and `onehot` lines declare the domain (default: all numbers).",
        "Without this file, the promise also covers category codes, and missing values of features with missing "
        "values in the tables.",
    )
    time_limit: float = given(shared.TIME_LIMIT, 120.0, "Limit in seconds to search for the best leaves of one size.")
    proof_time: float = given(PROOF_TIME, 60.0)
    seed: int = given(shared.SEED, 0)
    certificates: Path | None = given(
        Option(**{**vars(shared.CERTIFICATE), "door": Door.BOTH}),
        None,
        None,
        "Certificates are about the written file. A proof counts only with an accepted certificate, even if no folder is set.",
    )

    @property
    def groups(self) -> tuple[tuple[str, ...], ...]:
        """The sets of features; each has a separate promise. Raises UsageError if there are neither sets nor directions."""
        if not self.vary and not self.directions:
            raise UsageError("no feature is named", remedy="name one: vary=['sex']")
        return tuple(dict.fromkeys(tuple(group) for group in self.vary or ()))

    @property
    def directions(self) -> dict[str, PromiseKind]:
        """The promised direction of the score, per feature. Raises UsageError if a feature has both directions."""
        if both := sorted(set(self.increasing) & set(self.decreasing)):
            raise UsageError(f"`{both[0]}` cannot be both increasing and decreasing", remedy="leave one out")
        return {**dict.fromkeys(self.increasing, "increasing"), **dict.fromkeys(self.decreasing, "decreasing")}

    @property
    def kind(self) -> PromiseKind:
        """The kind of `sizes`: gaps in probability (or a regressor's value), margins on both sides, or swings of raw scores;
        without sizes, the kind is a direction. Raises UsageError for sizes without features, or features without sizes.
        """
        named = [kind for kind in KINDS if getattr(self, kind)]
        if self.gap and self.margin:
            raise UsageError("--gap and --margin state the same promise in two units", remedy="pass one option")
        if not named and not self.vary and self.directions:
            return next(iter(self.directions.values()))
        if not named:
            raise UsageError("a repair needs one of --gap, --margin and --swing", remedy="write e.g. --gap 0.1")
        if not self.vary:
            raise UsageError(f"--{named[0]} needs features that vary", remedy="name one: --vary sex")
        return named[0]

    @property
    def sizes(self) -> tuple[Fraction, ...]:
        """The sizes, one per repaired model; 0 for directions alone. Raises UsageError if a text states no size."""
        kind = self.kind
        return (
            tuple(dict.fromkeys(_size(kind, text) for text in getattr(self, kind))) if kind in KINDS else (Fraction(0),)
        )

    @property
    def swing_besides(self) -> Fraction | None:
        """The swing promised in addition to a gap or a margin. Raises UsageError for several swings."""
        if self.kind == "swing" or not self.swing:
            return None
        if len(self.swing) > 1:
            raise UsageError(f"--swing must be a single number with --{self.kind}", remedy="pass one, e.g. --swing 1")
        return _size("swing", self.swing[0])


def _size(kind: str, text: str) -> Fraction:
    try:
        size = fraction_of(text)
    except (ValueError, ZeroDivisionError):
        raise UsageError(f"--{kind}: `{text}` is not a number", remedy="write e.g. 0.1 or 0.05,0.1") from None
    if size < 0:
        raise UsageError(f"--{kind} {text} is below 0", remedy="write e.g. 0.1; 0 means any change of the decision")
    return size


@dataclass(frozen=True, kw_only=True)
class SwingRecord:
    """The largest swing of the original and of the repaired model, each with its proved bound."""

    before: float | None
    before_bound: float | None
    after: float | None
    after_bound: float | None


@dataclass(frozen=True, kw_only=True)
class PromiseRecord:
    """A promise that the written file keeps, with its proof; `kind` is the name of the option. A direction also has a size; its
    largest swing is the largest fall (for `decreasing`, the largest rise).
    """

    kind: str
    size: float
    varied: list[str]
    threshold: float | Absent = ABSENT
    classes: list[str | int] | Absent = ABSENT
    verdict: str
    method: str
    certificates: list[CertificateRecord]
    largest_swing: SwingRecord


@dataclass(frozen=True, kw_only=True)
class PricesRecord:
    """Prices on the training rows, and on the held-out rows if there are any."""

    train: PriceRecord
    test: PriceRecord | Absent = ABSENT


@dataclass(frozen=True, kw_only=True)
class ChangesRecord:
    """The numbers of changed trees and leaves, and the largest change of a leaf value."""

    trees: int
    trees_that_ask: int
    trees_changed: int
    trees_replaced: bool
    trees_added: int
    leaves: int
    leaves_changed: int
    largest_change_of_a_leaf: float


@dataclass(frozen=True, kw_only=True)
class KeptRowsRecord:
    """The number of rows whose raw scores had to be kept, and the largest score change in the library's predictions."""

    rows: int
    largest_change_of_a_score: float


@dataclass(frozen=True, kw_only=True)
class RepairRecord:
    """The repaired model of one size; `file` is its path, and `unwritten` is the reason why a proved model was not written."""

    size: float
    method: str
    proved: bool
    reason: str
    proofs: list[PromiseRecord] | Absent = ABSENT
    kept_rows: KeptRowsRecord | Absent = ABSENT
    prices: PricesRecord | Absent = ABSENT
    changes: ChangesRecord | Absent = ABSENT
    sha256: str | Absent = ABSENT
    seconds: float
    file: str | Absent = ABSENT
    unwritten: str | Absent = ABSENT


@dataclass(frozen=True, kw_only=True)
class RepairDocument:
    """The repaired models of all sizes, the largest first."""

    schema_version: int = SCHEMA_VERSION
    model: ModelFile
    vary: list[list[str]]
    kind: str
    interrupted: bool
    results: list[RepairRecord]


def document(asked: Asking[RepairOptions], found: Found[RepairRecord]) -> RepairDocument:
    """The repaired models, and the promises."""
    options = asked.options
    return RepairDocument(
        model=asked.file(),
        vary=[list(group) for group in options.groups],
        kind=options.kind,
        interrupted=found.interrupted,
        results=list(found.records),
    )


STUDY = Study(
    name="repair",
    title="repaired models: treesens repair --json",
    text="""Changes the trees that split on the features of --vary, as little as possible, until no pair of inputs breaks the
    promise, and proves the promise for the written file. A file is written per size, and --plot draws the curve of prices. The
    score can also be made increasing or decreasing in features.

    Exit codes: 0 proved and written, 5 not proved (no file is written), 1 usage, 2 unreadable input, 130 interrupted (proved
    files are written). """,
    call="""\
    Repairs a model so that it is less sensitive to the features of `vary`, like `treesens repair`. The model is written to
    `output` in its library's format (one file per size), and only if the file is proved to keep the promise.

    `data` contains the training rows, and `test` the held-out rows; `label` names the column of labels in both. The promise is
    one of `gap` (probability, or the value of a regressor), `margin` and `swing` (raw score); a `swing` may be required in
    addition. The score does not fall in the features of `increasing`, and does not rise in the features of `decreasing`. The
    raw scores of the rows in the table `keep_rows` change by at most 0.0001. Times are in seconds. Raises UsageError if the
    kept features and rows make the promise impossible. """,
    options=RepairOptions,
    ask="treesens.extensions.repair.run:ask",
    record=RepairRecord,
    picture="treesens.extensions.studies.report.plots:prices_plot",
    document=document,
    table="CSV or Parquet: the training rows.",
    label="The label column in both tables.",
    needs_table=True,
    needs_label=True,
    domains_of_table=False,
    journal=True,
)
