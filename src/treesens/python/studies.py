"""Studies from Python: the audit and the largest gaps of a model, two models compared; over live objects and frames."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from treesens.compiler.base.files import check_writable, one_run
from treesens.compiler.base.interruption import interruptible
from treesens.compiler.base.tolerance import RELATIVE, Tolerance
from treesens.python.arguments import public
from treesens.python.questions import load, table_of
from treesens.python.settings import check_choice, check_seconds, check_threshold, check_tolerance, check_whole
from treesens.python.study_options import numbers_of, sets_of
from treesens.python.study_results import Columns, Records, StudyResult
from treesens.python.types import Data, Model
from treesens.report.notebook_progress import progress_bar

if TYPE_CHECKING:
    from treesens.solve.measures import MeasureName
    from treesens.studies.audit import Audit as Run
    from treesens.studies.difference import Difference
    from treesens.studies.typicality import TypicalLevel

MOST_JOBS = 4096


def _name(record: dict[str, Any]) -> str:
    """What a record is about: the features, and the classes if there are several."""
    classes = record.get("classes")
    return ", ".join(record["varied"]) + (f" ({' / '.join(map(str, classes))})" if classes else "")


@dataclass(frozen=True, eq=False)
class Audit(Records):
    """A finished audit: `records` one per (set of features, decision, gap), as `treesens audit --json` prints them.

    `frame()` has their numbers as columns; `audit[name]` is one of these columns.
    """

    records: list[dict[str, Any]]
    warnings: tuple[str, ...]
    interrupted: bool
    source: Any = field(repr=False)
    run: Run = field(repr=False)
    settings: dict[str, Any] = field(repr=False)
    inputs: tuple[Path, ...] = field(repr=False)
    """The files that it was made from: no report is written over them."""

    @property
    def columns(self) -> dict[str, list[Any]]:
        """The numbers, a list per column."""
        from treesens.studies.audit import columns_of

        return columns_of(self.records)

    def report(
        self,
        path: str | Path,
        *,
        pdf: str | Path | None = None,
        purpose: str | Path | None = None,
        date: str | None = None,
    ) -> Path:
        """Writes the page of `treesens audit --report`, with the records beside it (NAME.audit.json); returns its path.

        UsageError for a file that cannot be written, and if jinja2 (or a browser, for `pdf`) is missing; OverwriteError for a
        file that the audit or this call has read.
        """
        with one_run(*self.inputs):
            return self._report(Path(path), pdf, purpose, date)

    def _report(self, place: Path, pdf: str | Path | None, purpose: str | Path | None, date: str | None) -> Path:
        from treesens.records.installation import environment_facts
        from treesens.report.audit_page import attachment_of, write_report
        from treesens.report.pdf import print_pdf
        from treesens.report.purpose import date_of, read_purpose
        from treesens.studies.audit_facts import audit_facts

        heading = {
            "purpose": read_purpose(None if purpose is None else Path(purpose)),
            "date": date_of(date),
            "environment": environment_facts(),
        }
        for output in (place, attachment_of(place), *(() if pdf is None else (Path(pdf),))):
            check_writable(output)
        model = self.run.model.ensemble.source.path or "a live object"
        data = str(self.source) if isinstance(self.source, str | Path) else "a data frame"
        facts = audit_facts(self.run, model, data, "ts.audit(…).report(…)", settings=self.settings, **heading)
        write_report(place, self.records, facts)
        if pdf is not None:
            print_pdf(place, Path(pdf), str(heading["date"]))
        return place

    def plot(self, what: Literal["swing", "flips"] = "swing", *, axes: Any = None) -> Any:
        """A picture with matplotlib: the largest `swing` of every set of features with its proved bound, or the share of rows
        that flips (`flips`) over the gaps. Returns the axes, new ones if none are given. UsageError without matplotlib.
        """
        from treesens.report.plots import curves_plot, values_plot

        check_choice("what", what, ("swing", "flips"))
        if what == "swing":
            swings = {_name(r): (r["max_swing"], r["max_swing_bound"]) for r in self.records}
            return values_plot(swings, "largest swing of the score", axes)
        kind = "gap" if any("gap" in r for r in self.records) else "margin"
        curves: dict[str, list[tuple[float, float]]] = {}
        for r in self.records:
            if r["rows"] and r["rows_flipped"] is not None:
                curves.setdefault(_name(r), []).append((float(r[kind]), r["rows_flipped"] / r["rows"]))
        return curves_plot(curves, kind, "share of rows that flip", axes)

    def __repr__(self) -> str:
        found = sum(record["verdict"] == "found" for record in self.records)
        return f"<audit of {len(self.records)} questions: {found} found{', interrupted' if self.interrupted else ''}>"


@dataclass(frozen=True, eq=False)
class Gap(StudyResult):
    """The largest gaps: `records` as `treesens gap --json` prints them, one per set of features and decision."""

    @property
    def columns(self) -> dict[str, list[Any]]:
        """The numbers, a list per column."""
        names = ("verdict", "largest_gap", "largest_gap_bound", "closed", "reason")
        columns: dict[str, list[Any]] = {"varied": [", ".join(r["varied"]) for r in self.records]}
        if any("classes" in r for r in self.records):
            columns["classes"] = [" / ".join(map(str, r.get("classes", ()))) for r in self.records]
        return {**columns, **{name: [r[name] for r in self.records] for name in names}}

    def plot(self, *, axes: Any = None) -> Any:
        """A picture with matplotlib: the largest gap of every set of features with its proved bound. Returns the axes, new ones
        if none are given. UsageError without matplotlib.
        """
        from treesens.report.plots import values_plot

        gaps = {_name(r): (r["largest_gap"], r["largest_gap_bound"]) for r in self.records}
        return values_plot(gaps, "largest gap", axes)

    def __repr__(self) -> str:
        closed = sum(bool(record["closed"]) for record in self.records)
        return f"<largest gaps of {len(self.records)} questions: {closed} closed>"


@dataclass(frozen=True, eq=False)
class Diff(Columns):
    """Two models compared: `record` as `treesens diff --json` prints it."""

    record: dict[str, Any]
    warnings: tuple[str, ...]
    interrupted: bool
    found: Difference = field(repr=False)
    source: Any = field(repr=False)

    @property
    def verdict(self) -> str:
        """`equal` (proved), `different` (an input shows it), `close` (`bound` is all that is proved) or `unknown`."""
        return self.found.verdict

    @property
    def bound(self) -> float | None:
        """No raw score of the one model differs from that of the other by more (proved); None if not all is proved."""
        return self.found.bound

    @property
    def changed_rows(self) -> list[int] | None:
        """Numbers of the rows that get another class (of regressors: another value), the clearest first; None without data."""
        return self.found.changed

    @property
    def sensitivities(self) -> list[dict[str, Any]] | None:
        """Per set of features and gap whether its sensitivity `appears`, `goes`, `stays`, is there `never`, or `unknown`, with
        what is known of both versions; None without gaps.
        """
        known: list[dict[str, Any]] | None = self.record["sensitivities"]
        return known

    @property
    def columns(self) -> dict[str, list[Any]]:
        """The largest differences, a line per score and direction."""
        return {
            name: [score[name] for score in self.record["scores"]]
            for name in ("score", "direction", "largest", "bound")
        }

    def __repr__(self) -> str:
        rows = "" if self.found.changed is None else f", {len(self.found.changed)} of {self.found.rows} rows change"
        proved = "" if self.bound is None else f", at most {self.bound:.6g} apart"
        return f"<two models: {self.verdict}{proved}{rows}>"


@public
def audit(
    model: Model,
    data: Data,
    *,
    label: str | None = None,
    vary: str | Sequence[str | Sequence[str]] | None = None,
    gap: float | Sequence[float] | None = None,
    margin: float | Sequence[float] | None = None,
    threshold: float | None = None,
    classes: Sequence[str | int] = (),
    domain: str | Path | None = None,
    replay: Literal["emulated", "library"] = "emulated",
    measure: MeasureName | None = None,
    typical: float | None = None,
    typical_by: Literal["chow-liu", "isolation"] = "chow-liu",
    real: str | Sequence[str] = (),
    time_limit: float = 5.0,
    tolerance: float = RELATIVE,
    jobs: int = 2,
    seed: int = 0,
) -> Audit:
    """The sweep of `treesens audit` over a model and rows (files, live objects, frames).

    `vary` names features or sets of them (default: every feature that the model asks about); gaps default to what suits the
    model. The decision is that of the model, or probability >= `threshold`; `classes` chooses one class, or those between which
    changes count. `domain` is a `.sens` file with declarations of features. Features named in `real` take fractions although
    their columns hold whole numbers. With a `measure` (see `count`) records have the share of inputs that flip, in `share`;
    with `typical`, a percentage, they say in `typical` what is left if both inputs are typical of the rows.
    `time_limit` is in seconds for each set; a largest swing may be `tolerance` of itself away from its bound. Ctrl-C returns
    what is known so far.
    """
    from treesens.studies.audit import audit as run
    from treesens.studies.audit_set import AuditOptions
    from treesens.studies.domain_file import read_domain
    from treesens.studies.questions import sizes_of

    check_choice("replay", replay, ("emulated", "library"))
    _check_common(time_limit, jobs, seed)
    check_tolerance("tolerance", tolerance, most=1.0)
    found = None
    with one_run() as reading, interruptible() as interruption, progress_bar("auditing") as advance:
        loaded, names = load(model), tuple(map(str, classes))
        cut = None if threshold is None else check_threshold(threshold)
        gaps = sizes_of(loaded, _texts(gap), _texts(margin), cut, names)
        options = AuditOptions(
            time_limit,
            jobs,
            seed,
            replay_in_library=replay == "library",
            real=(real,) if isinstance(real, str) else real,
        )
        options.threshold, options.classes = cut, names
        options.domain = read_domain(None if domain is None else Path(domain))
        options.tolerance = Tolerance(tolerance)
        options.measure = None if measure is None else check_measure_name(measure)
        options.typical = _level(typical, typical_by, data)
        table, sets = table_of(data, label, None, [loaded]), None if vary is None else sets_of(vary)
        found = run(loaded, table, varied=sets, gaps=gaps, options=options, stop=interruption.event, on_record=advance)
    if found is None:
        raise KeyboardInterrupt
    settings = {"seconds per set": time_limit, "sets at a time": jobs, "seed": seed, "replay": replay}
    source = loaded.ensemble.source.path
    inputs = reading.inputs | ({Path(source).resolve()} if source else set())
    return Audit(found.records, found.warnings, found.interrupted, data, found, settings, tuple(sorted(inputs)))


@public
def diff(
    old: Model,
    new: Model,
    data: Data | None = None,
    *,
    label: str | None = None,
    gap: float | Sequence[float] | None = None,
    margin: float | Sequence[float] | None = None,
    vary: str | Sequence[str | Sequence[str]] | None = None,
    time_limit: float = 60.0,
    set_limit: float = 5.0,
    tolerance: float = RELATIVE,
    seed: int = 0,
) -> Diff:
    """Compares two models (files, live objects) as `treesens diff` does: proved equal, or the largest difference of every raw
    score at one input, reached and bounded; with `data` also which rows change, and the domain; with gaps (in probability, or
    as `margin` in raw score) also which sensitivities to features (or sets in `vary`) appear, and which go. `time_limit` is in
    seconds for every search, `set_limit` for every set of features and model. A largest difference may be `tolerance` of itself
    away from its bound. UsageError for models whose scores are not of one kind. Ctrl-C returns what is known so far.
    """
    from treesens.studies.audit_set import AuditOptions
    from treesens.studies.difference import difference
    from treesens.studies.questions import gaps_of

    _check_common(time_limit, 1, seed)
    check_seconds("set_limit", set_limit)
    check_tolerance("tolerance", tolerance, most=1.0)
    gaps = gaps_of(_texts(gap), _texts(margin)) if gap is not None or margin is not None else []
    found = None
    with interruptible() as interruption:
        first, second = load(old), load(new)
        table = None if data is None else table_of(data, label, None, [first])
        found = difference(
            first,
            second,
            table,
            time_limit=time_limit,
            seed=seed,
            stop=interruption.event,
            gaps=gaps,
            varied=None if vary is None else sets_of(vary),
            audit=AuditOptions(set_limit, seed=seed, tolerance=Tolerance(tolerance)),
            tolerance=tolerance,
        )
    if found is None:
        raise KeyboardInterrupt
    return Diff(found.record(), found.warnings, found.interrupted, found, data)


def _level(typical: float | None, by: str, data: Any) -> TypicalLevel | None:
    """A percentage and a way as they are given. UsageError for one that is none, and without rows to learn from."""
    from treesens.grammar.tree.words import TYPICAL_WAYS
    from treesens.studies.typicality import typical_level

    check_choice("typical_by", by, TYPICAL_WAYS)
    return None if typical is None else typical_level(str(typical), by, has_table=data is not None)


def check_measure_name(measure: MeasureName) -> MeasureName:
    """The name of a measure. UsageError for one that is none."""
    from treesens.solve.measures import MEASURES

    check_choice("measure", measure, MEASURES)
    return measure


def _check_common(time_limit: float, jobs: int, seed: int) -> None:
    check_seconds("time_limit", time_limit)
    check_whole("jobs", jobs, 1, MOST_JOBS)
    check_whole("seed", seed, 0, 2**31 - 1)


def _texts(given: Any) -> list[str]:
    return [] if given is None else numbers_of(given)
