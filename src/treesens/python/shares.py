"""How much of the inputs a change flips, from Python: over live objects and frames."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from treesens.compiler.base.interruption import interruptible
from treesens.errors import UsageError, typed
from treesens.measure.sampler import DELTA, EPSILON, NEGLIGIBLE, Precision
from treesens.python.questions import load, table_of
from treesens.python.settings import check_seconds, check_threshold, check_whole
from treesens.python.studies import Records, check_measure_name, numbers_of, sets_of
from treesens.report.notebook_progress import progress_bar
from treesens.solve.measures import MeasureName


@dataclass(frozen=True, eq=False)
class Count(Records):
    """Shares of inputs: `records` as `treesens count --json` prints them, one per (set of features, decision, gap)."""

    records: list[dict[str, Any]]
    warnings: tuple[str, ...]
    interrupted: bool
    source: Any = field(repr=False)

    @property
    def columns(self) -> dict[str, list[Any]]:
        """The numbers, a list per column; `estimate` is None where the proved interval is narrow enough."""
        kind = "gap" if any("gap" in r for r in self.records) else "margin"
        columns: dict[str, list[Any]] = {"varied": [", ".join(r["varied"]) for r in self.records]}
        if any("classes" in r for r in self.records):
            columns["classes"] = [" / ".join(map(str, r.get("classes", ()))) for r in self.records]
        for name in (kind, "lower", "upper"):
            columns[name] = [r[name] for r in self.records]
        columns["estimate"] = [None if r["estimate"] is None else r["estimate"]["value"] for r in self.records]
        return {**columns, "closed": [r["closed"] for r in self.records]}

    def __repr__(self) -> str:
        closed = sum(bool(record["closed"]) for record in self.records)
        return f"<shares of {len(self.records)} questions: {closed} known precisely enough>"


@typed
def count(
    model: Any,
    data: Any = None,
    *,
    measure: MeasureName = "uniform",
    label: str | None = None,
    vary: Sequence[str | Sequence[str]] | None = None,
    gap: float | Sequence[float] | None = None,
    margin: float | Sequence[float] | None = None,
    threshold: float | None = None,
    classes: Sequence[str | int] = (),
    domain: str | Path | None = None,
    real: Sequence[str] = (),
    epsilon: float = EPSILON,
    delta: float = DELTA,
    negligible: float = NEGLIGIBLE,
    time_limit: float = 10.0,
    seed: int = 0,
) -> Count:
    """The share of inputs for which changing some features alone flips the decision, as `treesens count` finds it: a proved
    interval, and inside it an estimate that is further off than `epsilon` (relative) with a probability of at most `delta`.

    `measure` says what a share is a share of: `uniform` on the domain, `cells`, or by `data`: `marginals`, `chow-liu`, `rows`.
    Sets, gaps, cut-offs, classes and domains are those of `audit`. `time_limit` is in seconds for each question. Ctrl-C returns
    what is known so far.
    """
    from treesens.studies.domain_file import read_domain
    from treesens.studies.questions import sizes_of
    from treesens.studies.shares import CountOptions, count_shares

    check_measure_name(measure)
    check_seconds("time_limit", time_limit)
    check_whole("seed", seed, 0, 2**31 - 1)
    if not (0 < epsilon <= 0.5 and 0 < delta <= 0.5 and 0 <= negligible <= 1):
        raise UsageError(
            "epsilon and delta lie above 0 and at most at 0.5, negligible in [0, 1]", remedy="give e.g. epsilon=0.05"
        )
    loaded, names = load(model), tuple(map(str, classes))
    cut = None if threshold is None else check_threshold(threshold)
    options = CountOptions(measure, time_limit, seed, Precision(epsilon, delta, negligible), real, cut, names)
    options.domain = read_domain(None if domain is None else Path(domain))
    gaps = sizes_of(loaded, numbers_of(gap), numbers_of(margin), cut, names)
    found = None
    with interruptible() as interruption, progress_bar("counting") as advance:
        table = None if data is None else table_of(data, label, None)
        sets, stop = sets_of(vary), interruption.event
        found = count_shares(loaded, table, varied=sets, gaps=gaps, options=options, stop=stop, on_record=advance)
    if found is None:
        raise KeyboardInterrupt
    return Count(found.records, found.warnings, found.interrupted, data)
