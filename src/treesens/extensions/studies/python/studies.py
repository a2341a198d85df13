"""Results in Python of the studies of whole models: audits, largest gaps, differences, repairs, rules, shares."""

from __future__ import annotations

from dataclasses import dataclass, field
from decimal import ROUND_CEILING
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, Literal, Self

from treesens.compiler.base.files import check_writable, one_run, will_write, write_atomically
from treesens.extensions.studies.columns import frame_of
from treesens.extensions.studies.python.study_results import Called, Columns, PicturedResult, Shown, StudyResult
from treesens.python.settings import check_choice, path_of
from treesens.records.plain import plain

if TYPE_CHECKING:
    from treesens.extensions.studies.audit import AuditOptions
    from treesens.extensions.studies.diff_search import Difference
    from treesens.extensions.studies.report.audit_facts import Audit as Run


def _name(record: dict[str, Any]) -> str:
    """The label of a record: its features, and its outcomes or classes if there are several."""
    from treesens.extensions.studies.report.audit_table import varied_of

    classes = record.get("outcomes", record.get("classes"))
    return varied_of(record) + (f" ({' / '.join(map(str, classes))})" if classes else "")


@dataclass(frozen=True, eq=False)
class Audit(StudyResult):
    """A finished audit; `records` has one record per (set of features, decision, gap), as `treesens audit --json` prints them.

    `frame()` returns the numbers of the records as columns; `audit[name]` is one of these columns.
    """

    run: Run = field(repr=False)
    options: AuditOptions = field(repr=False)
    inputs: tuple[Path, ...] = field(repr=False)
    """The files that the audit has read, which no report overwrites."""
    told: dict[str, Any] = field(repr=False)
    """Further facts for a report: `warnings` and `assumed`, as the command prints them with --json."""

    @classmethod
    def of(cls, called: Called) -> Self:
        """The result of a call of the study."""
        run: Run = called.found.result
        told = {"warnings": list(called.found.warnings), "assumed": plain(called.found.assumed)}
        options, inputs = called.asked.options, called.inputs
        return cls(run.records, called.notes, run.interrupted, called.source, run, options, inputs, told)

    @property
    def columns(self) -> dict[str, list[Any]]:
        """The numbers of the records, as one list per column."""
        near = [record.get("nearest_row") or {} for record in self.records]
        rows = {"nearest_row": "index", "distance_l2": "distance_l2"}
        return {**super().columns, **{name: [n.get(field) for n in near] for name, field in rows.items()}}

    def report(
        self,
        path: str | Path,
        *,
        pdf: str | Path | None = None,
        purpose: str | Path | None = None,
        date: str | None = None,
    ) -> Path:
        """Writes the page of `treesens audit --report`, with the records next to it (NAME.audit.json); returns the page's path.
        A path that ends in `.pdf` receives the printed page alone.

        Raises UsageError if a file cannot be written, or if jinja2 (for `pdf`, a browser) is missing; raises OverwriteError for
        a file that the audit or this call has read.
        """
        printed = None if pdf is None else path_of("pdf", pdf)
        stated = None if purpose is None else path_of("purpose", purpose)
        place = path_of("path", path)
        with one_run(*self.inputs):
            if place.suffix.lower() != ".pdf" or printed is not None:
                return self._report(place, printed, stated, date)
            records = place.with_suffix(".audit.json")
            will_write(records, derived=True)
            with TemporaryDirectory() as folder:
                page = self._report(Path(folder) / f"{place.stem}.html", place, stated, date)
                write_atomically(records, page.with_suffix(".audit.json").read_bytes(), derived=True)
            return place

    def card(self, path: str | Path | None = None, *, date: str | None = None) -> str:
        """The section of a model card, in Markdown, as `treesens audit --card` writes it; with a path, the file is written too.

        Raises UsageError for an existing file without the marks, and for a file that cannot be written; raises OverwriteError
        for a file that the audit has read.
        """
        from treesens.extensions.studies.report.model_card import card_section, check_card, write_card
        from treesens.extensions.studies.report.purpose import date_of

        place = None if path is None else path_of("path", path)
        with one_run(*self.inputs):
            if place is not None:
                check_writable(place)
                check_card(place)
            section = card_section(self.records, self._facts("ts.audit(…).card(…)", date=date_of(date)))
            if place is not None:
                write_card(place, section)
        return section

    def _facts(self, command: str, **heading: Any) -> dict[str, Any]:
        """The facts for a report: the model, the data and the settings of the audit, and `heading`."""
        from treesens.extensions.studies.report.audit_facts import audit_facts

        model = self.run.model.ensemble.source.path or "a live object"
        data = str(self.source) if isinstance(self.source, str | Path) else "a data frame"
        return audit_facts(self.run, self.options.settings, model, data, command, **self.told, **heading)

    def _report(self, place: Path, pdf: Path | None, purpose: Path | None, date: str | None) -> Path:
        from treesens.extensions.studies.report.audit_page import attachment_of, write_report
        from treesens.extensions.studies.report.pdf import print_pdf
        from treesens.extensions.studies.report.purpose import date_of, read_purpose
        from treesens.records.installation import environment_facts

        heading = {
            "purpose": read_purpose(purpose),
            "date": date_of(date),
            "environment": environment_facts(),
        }
        for output in (place, attachment_of(place), *(() if pdf is None else (pdf,))):
            check_writable(output)
        facts = self._facts("ts.audit(…).report(…)", **heading)
        write_report(place, self.records, facts)
        if pdf is not None:
            print_pdf(place, pdf, str(heading["date"]))
        return place

    def plot(self, what: Literal["swing", "flips"] = "swing", *, axes: Any = None) -> Any:
        """A matplotlib plot: the largest `swing` of every set of features with its proved bound, or the share of rows that flip
        (`flips`) against the gaps. Returns the axes; by default, new axes are created. Raises UsageError without matplotlib.
        """
        from treesens.extensions.studies.report.audit_table import gap_of, rows_that_flip, swing_units
        from treesens.extensions.studies.report.plots import curves_plot, parts_plot, values_plot

        check_choice("what", what, ("swing", "flips"))
        if what == "swing":
            swings = {_name(r): (r["max_swing"], r["max_swing_bound"]) for r in self.records}
            return values_plot(swings, f"largest swing ({swing_units(self.records)})", axes)
        kind = "gap" if any("gap" in r for r in self.records) else "margin"
        curves: dict[str, list[tuple[float, float]]] = {}
        for r in self.records:
            if r["rows"] and r["rows_flipped"] is not None:
                curves.setdefault(_name(r), []).append((float(r.get(kind, 0.0)), r["rows_flipped"] / r["rows"]))
        if all(len(points) == 1 for points in curves.values()):
            parts = {name: part for name, ((_, part),) in curves.items()}
            first = {_name(r) for r in self.records if r.get("protected")}
            words = {_name(r): f"{rows_that_flip(r)} of {r['rows']:,}" for r in self.records}
            return parts_plot(
                parts, f"share of the rows that flip ({gap_of(self.records[0])})", axes, words=words, first=first
            )
        return curves_plot(curves, kind, "share of rows that flip", axes)

    def __repr__(self) -> str:
        found = sum(record["verdict"] == "found" for record in self.records)
        return f"<audit of {len(self.records)} questions: {found} found{', interrupted' if self.interrupted else ''}>"


@dataclass(frozen=True, eq=False)
class Gap(StudyResult):
    """The largest gaps; `records` has one record per set of features and decision, as `treesens gap --json` prints them."""

    def plot(self, *, axes: Any = None) -> Any:
        """A matplotlib plot: the largest gap of every set of features with its proved bound. Returns the axes; by default, new
        axes are created. Raises UsageError without matplotlib.
        """
        from treesens.extensions.studies.report.plots import values_plot

        gaps = {_name(r): (r["largest_gap"], r["largest_gap_bound"]) for r in self.records}
        units = dict.fromkeys(r["unit"] for r in self.records)
        return values_plot(gaps, f"largest gap ({', '.join(units)})", axes)

    def __repr__(self) -> str:
        closed = sum(bool(record["closed"]) for record in self.records)
        return f"<largest gaps of {len(self.records)} questions: {closed} closed>"


@dataclass(frozen=True, eq=False)
class Diff(Columns):
    """Two models compared; `record` is the output of `treesens diff --json`."""

    record: dict[str, Any]
    notes: tuple[str, ...]
    interrupted: bool
    found: Difference = field(repr=False)
    source: Any = field(repr=False)

    @classmethod
    def of(cls, called: Called) -> Self:
        """The result of a call of the study."""
        found = called.found
        return cls(called.records[0], called.notes, found.interrupted, found.result, called.source)

    @property
    def verdict(self) -> str:
        """`equal` (proved), `different` (an input shows a difference), `close` (only `bound` is proved) or `unknown`."""
        return self.found.verdict

    @property
    def bound(self) -> float | None:
        """A proved bound on the difference of every raw score; None if a score has no proved bound."""
        return self.found.bound

    @property
    def changed_rows(self) -> list[int] | None:
        """The indices of rows whose class (regressors: value) changes, sorted by decreasing difference; None without data."""
        return self.found.changed

    @property
    def prices(self) -> dict[str, Any] | None:
        """The prices of the new model on the labelled rows: mean loss, AUC, changed decisions; None without labels."""
        known: dict[str, Any] | None = self.record["prices"]
        return known

    @property
    def sensitivities(self) -> list[dict[str, Any]] | None:
        """One dict per set of features and gap: the sensitivity `appears`, `goes`, `stays`, `never` exists, or is `unknown`,
        with the findings about both versions; None without gaps.
        """
        known: list[dict[str, Any]] | None = self.record["sensitivities"]
        return known

    @property
    def outcomes(self) -> list[dict[str, Any]] | None:
        """One dict per pair of outcomes of a decision: the inputs and rows with the outcome `old` of one model and `new` of the
        other; None without a decision.
        """
        known: list[dict[str, Any]] | None = self.record["outcomes"]
        return known

    @property
    def columns(self) -> dict[str, list[Any]]:
        """The columns of the largest differences, with a line per score and direction."""
        from treesens.extensions.studies.diff import ScoreDifference

        return frame_of(ScoreDifference, self.record["scores"])

    def _repr_html_(self) -> str:
        from treesens.extensions.studies.report.diff_table import diff_html

        return diff_html(self.record)

    def __repr__(self) -> str:
        from treesens.extensions.studies.report.fact_words import rounded

        rows = "" if self.found.changed is None else f", {len(self.found.changed)} of {self.found.rows} rows change"
        proved = "" if self.bound is None else f", at most {rounded(self.bound, 6, ROUND_CEILING)} apart"
        return f"<two models: {self.verdict}{proved}{rows}>"


@dataclass(frozen=True, eq=False)
class Repair(PicturedResult):
    """Repaired models; `records` has one record per size, the largest first, as `treesens repair --json` prints them."""

    @property
    def columns(self) -> dict[str, list[Any]]:
        """The prices, on held-out rows if there are any, as one list per column."""
        prices = [list(r["prices"].values())[-1] if r["proved"] else {} for r in self.records]
        columns: dict[str, list[Any]] = {name: [r[name] for r in self.records] for name in ("size", "method", "proved")}
        for name in ("loss_before", "loss_after", "auc_before", "auc_after", "decisions_changed"):
            columns[name] = [price.get(name) for price in prices]
        return columns

    def __repr__(self) -> str:
        return f"<repair: {sum(r['proved'] for r in self.records)} of {len(self.records)} sizes proved>"


class Rules(Shown, dict[str, Any]):
    """The rules of a table, as `treesens learn rules --json` prints them."""

    @classmethod
    def of(cls, called: Called) -> Self:
        """The result of a call of the study."""
        told = plain(called.found.result)
        return cls({name: part for name, part in told.items() if name not in {"schema_version", "data"}})


@dataclass(frozen=True, eq=False)
class Count(StudyResult):
    """Shares of inputs; `records` has one record per (set, decision, gap), as `treesens count --json` prints them."""

    def _repr_html_(self) -> str:
        from treesens.extensions.measure.share_words import estimated, interval
        from treesens.extensions.notebook import table

        kind = "gap" if any("gap" in r for r in self.records) else "margin"
        head = ["features", kind, "share of inputs, proved", "estimate, with its interval", "known well enough"]
        lines = [
            [", ".join(r["varied"]), r[kind], interval(r), estimated(r), "yes" if r["closed"] else r["reason"] or "no"]
            for r in self.records
        ]
        return table(head, lines)

    def __repr__(self) -> str:
        closed = sum(bool(record["closed"]) for record in self.records)
        return f"<shares of {len(self.records)} questions: {closed} known precisely enough>"
