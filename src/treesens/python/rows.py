"""Studies of rows and of sets of features from Python: how far rows are from another class, why they have theirs, which sets of
features flip a decision; over live objects and frames.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from treesens.compiler.base.interruption import interruptible
from treesens.data.tables import Table
from treesens.errors import UsageError, typed
from treesens.python.questions import load, table_of
from treesens.python.settings import check_choice, check_seconds, check_threshold, check_whole
from treesens.python.studies import Records, numbers_of
from treesens.report.notebook_progress import progress_bar

if TYPE_CHECKING:
    from treesens.studies.robustness import Robustness as Found

_MOST_ROWS = 2**31 - 1


@dataclass(frozen=True, eq=False)
class Robustness(Records):
    """How far rows are from another class: `records` one per row, as `treesens robust --json` prints them."""

    records: list[dict[str, Any]]
    warnings: tuple[str, ...]
    interrupted: bool
    found: Found = field(repr=False)
    source: Any = field(repr=False)

    @property
    def columns(self) -> dict[str, list[Any]]:
        """The numbers, a list per column."""
        names = ("row", "class", "correct", "verdict", "distance", "bound", "closed", "reason")
        return {name: [record[name] for record in self.records] for name in names}

    def certified(self, radius: float) -> float:
        """The part of the rows that are proved to keep their class within a radius; with labels those that are right, too."""
        return self.found.certified(radius)

    def curve(self) -> list[tuple[float, float]]:
        """Every radius at which the certified part of the rows falls, ascending from 0, with the part from there on."""
        return self.found.curve()

    def plot(self, *, axes: Any = None) -> Any:
        """A picture with matplotlib: the certified part of the rows over the radius. Returns the axes, new ones if none are
        given. UsageError without matplotlib.
        """
        from treesens.report.plots import certified_plot

        return certified_plot(self.curve(), axes, labelled=self.found.labelled)

    def __repr__(self) -> str:
        closed = sum(bool(record["closed"]) for record in self.records)
        return f"<robustness of {len(self.records)} rows: {closed} closed>"


@dataclass(frozen=True, eq=False)
class Reasons(Records):
    """Why rows have their classes: `records` one per row, as `treesens why --json` prints them."""

    records: list[dict[str, Any]]
    source: Any = field(repr=False)

    @property
    def columns(self) -> dict[str, list[Any]]:
        """A line per row: its class, the features that decide it, and those whose change gives another class."""
        known = [None if r["sufficient"] is None else ", ".join(r["sufficient"]) for r in self.records]
        contrast = [None if r["contrast"] is None else ", ".join(r["contrast"]) for r in self.records]
        plain = {name: [r[name] for r in self.records] for name in ("row", "class")}
        rest = {name: [r[name] for r in self.records] for name in ("smallest", "reason")}
        return {**plain, "sufficient": known, "contrast": contrast, **rest}

    def plot(self, *, axes: Any = None) -> Any:
        """A picture with matplotlib: the part of the rows whose reason needs a feature. Returns the axes, new ones if none are
        given. UsageError without matplotlib.
        """
        from treesens.report.plots import reasons_plot

        return reasons_plot(self.records, axes)

    def __repr__(self) -> str:
        known = sum(record["sufficient"] is not None for record in self.records)
        return f"<reasons of {len(self.records)} rows: {known} known>"


@dataclass(frozen=True, eq=False)
class Sets(Records):
    """Which sets of features flip a decision: `records` one per decision, as `treesens sets --json` prints its results."""

    records: list[dict[str, Any]]
    warnings: tuple[str, ...]
    interrupted: bool
    source: Any = field(repr=False)

    @property
    def complete(self) -> bool:
        """Whether something is known about every set."""
        return not self.interrupted and all(record["complete"] for record in self.records)

    @property
    def flip(self) -> list[tuple[str, ...]]:
        """The sets that flip, none of which holds another, the smallest first; of the first decision."""
        return [tuple(one["features"]) for one in self.records[0]["flip"]]

    @property
    def hold(self) -> list[tuple[str, ...]]:
        """The sets that are proved not to flip, none of which lies inside another; of the first decision."""
        return [tuple(one["features"]) for one in self.records[0]["hold"]]

    @property
    def columns(self) -> dict[str, list[Any]]:
        """A line per set, with its verdict."""
        kinds = (("flip", "found"), ("hold", "none"), ("open", "unknown"))
        lines = [(r, one, verdict) for r in self.records for kind, verdict in kinds for one in r[kind]]
        columns: dict[str, list[Any]] = {"features": [", ".join(one["features"]) for _, one, _ in lines]}
        if any("classes" in record for record in self.records):
            columns["classes"] = [" / ".join(map(str, r.get("classes", ()))) for r, _, _ in lines]
        return {**columns, "verdict": [verdict for _, _, verdict in lines]}

    def plot(self, *, axes: Any = None) -> Any:
        """A picture with matplotlib of the sets of the first decision: a row per set, a dot per feature. Returns the axes, new
        ones if none are given. UsageError without matplotlib.
        """
        from treesens.report.sets_plot import sets_plot

        return sets_plot(self.records[0], axes)

    def __repr__(self) -> str:
        flip, hold = (sum(len(record[kind]) for record in self.records) for kind in ("flip", "hold"))
        state = "complete" if self.complete else "not complete"
        return f"<sets of features: {flip} smallest that flip, {hold} largest that do not, {state}>"


@typed
def robust(
    model: Any,
    data: Any,
    rows: int | Sequence[int] | None = None,
    *,
    label: str | None = None,
    norm: Literal["linf", "l2", "l1", "l0"] = "linf",
    targeted: bool = False,
    range: tuple[float, float] | None = None,
    replay: Literal["emulated", "library"] = "emulated",
    time_limit: float = 10.0,
    seed: int = 0,
) -> Robustness:
    """The distance of rows (default: all) of `data` to another class, as `treesens robust` finds it: reached by a verified
    input, and bounded by a proof. `range` is the domain of every number (default: the ranges of the columns); with `targeted`
    every other class has a distance of its own. `time_limit` is in seconds per question. Ctrl-C returns what is known so far.
    """
    from treesens.studies.robustness import NORMS, RobustOptions, robustness

    check_choice("norm", norm, NORMS)
    check_choice("replay", replay, ("emulated", "library"))
    check_seconds("time_limit", time_limit)
    check_whole("seed", seed, 0, 2**31 - 1)
    options = RobustOptions(norm, time_limit, seed, _interval(range), replay == "library", targeted=targeted)
    found = None
    with interruptible() as interruption, progress_bar("searching") as advance:
        table = table_of(data, label, None)
        chosen = None if rows is None else _rows(table, rows)
        stop = interruption.event
        found = robustness(load(model), table, chosen, options=options, stop=stop, on_result=advance)
    if found is None:
        raise KeyboardInterrupt
    return Robustness([row.record() for row in found.rows], found.warnings, found.interrupted, found, data)


@typed
def why(
    model: Any,
    data: Any,
    rows: int | Sequence[int] | None = None,
    *,
    label: str | None = None,
    smallest: bool = False,
    most: int = 1,
    without: Sequence[str] = (),
    also: Sequence[Literal["box", "radius", "recourse", "shap"]] = (),
    range: tuple[float, float] | None = None,
    time_limit: float = 10.0,
    seed: int = 0,
) -> Reasons:
    """Why rows (default: all) of `data` have their classes, as `treesens why` finds it: features whose values decide the class
    whatever the others are, none of which can be left out (`smallest`: no fewer do), and features whose change gives another
    class. `most` above 1 gives so many of the smallest reasons. Features of `without` are in no reason: protected ones, or
    those that nobody can judge. `also` puts beside a reason the box in which the class stands, the distance to another class
    (linf), the cheapest change (l1), and TreeSHAP. `time_limit` is in seconds per row, and once more for each distance. Ctrl-C
    returns what is known so far.
    """
    from treesens.studies.reasons import ReasonOptions, reasons
    from treesens.studies.robustness import RobustOptions

    check_seconds("time_limit", time_limit)
    check_whole("seed", seed, 0, 2**31 - 1)
    check_whole("most", most, 1, 2**31 - 1)
    for name, given in (("without", without), ("also", also)):
        if isinstance(given, str):
            raise UsageError(f"`{name}` is a list", remedy=f"write {name}=[{given!r}]")
    options = RobustOptions(time_limit=time_limit, seed=seed, interval=_interval(range))
    found = None
    with interruptible() as interruption, progress_bar("searching") as advance:
        table = table_of(data, label, None)
        found = reasons(
            load(model),
            table,
            _rows(table, rows),
            ReasonOptions(smallest, most, without, also),
            options=options,
            stop=interruption.event,
            on_result=advance,
        )
    if found is None:
        raise KeyboardInterrupt
    return Reasons([one.record() for one in found], data)


@typed
def sets(
    model: Any,
    data: Any = None,
    *,
    gap: float | None = None,
    margin: float | None = None,
    features: Sequence[str] | None = None,
    most: int | None = None,
    label: str | None = None,
    threshold: float | None = None,
    classes: Sequence[str | int] = (),
    domain: str | Path | None = None,
    replay: Literal["emulated", "library"] = "emulated",
    real: Sequence[str] = (),
    time_limit: float = 10.0,
    seed: int = 0,
) -> Sets:
    """Which sets of features can flip the decision by a gap, as `treesens sets` finds them: all smallest ones that can, each
    with a verified pair, and all largest ones that cannot, proved. `features` are those whose sets are asked about (default:
    all that the model uses); `most` stops after so many that flip. `time_limit` is in seconds per set. Ctrl-C returns what is
    known so far. UsageError without a size: `gap` in probability, or `margin` in raw score.
    """
    from treesens.studies.decisions import Asked
    from treesens.studies.domain_file import read_domain
    from treesens.studies.minimal_sets import SetOptions, minimal_sets
    from treesens.studies.questions import gaps_of

    check_choice("replay", replay, ("emulated", "library"))
    check_seconds("time_limit", time_limit)
    check_whole("seed", seed, 0, 2**31 - 1)
    if (gap is None) == (margin is None):
        raise UsageError("one size is needed", remedy="give gap=0.1 (probability) or margin=1 (raw score)")
    size = gaps_of(numbers_of(gap), numbers_of(margin))[0]
    declared = read_domain(None if domain is None else Path(domain))
    options = SetOptions(time_limit, seed, most, replay == "library", real, declared)
    asked = Asked(size.kind, None if threshold is None else check_threshold(threshold), tuple(map(str, classes)))
    found = None
    with interruptible() as interruption:
        table = None if data is None else table_of(data, label, None)
        found = minimal_sets(
            load(model), table, size, features=features, asked=asked, options=options, stop=interruption.event
        )
    if found is None:
        raise KeyboardInterrupt
    results, warnings = found
    return Sets([one.record() for one in results], warnings, interruption.happened, data)


def _rows(table: Table, rows: int | Sequence[int] | None) -> Sequence[int]:
    """Numbers of rows from 0. UsageError for what is none."""
    chosen: list[Any] = np.atleast_1d(np.arange(table.rows) if rows is None else np.asarray(rows)).tolist()
    for row in chosen:
        check_whole("rows", row, 0, _MOST_ROWS)
    return chosen


def _interval(given: tuple[float, float] | None) -> tuple[Fraction, Fraction] | None:
    """The two numbers of a range as they are written: 0.1 is one tenth."""
    if given is None:
        return None
    low, high = numbers_of(list(given))
    return Fraction(low), Fraction(high)
