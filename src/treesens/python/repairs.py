"""Repair from Python: the model with less sensitivity, in its library's file, and the proof."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from treesens.compiler.base.files import check_writable, one_run
from treesens.compiler.base.interruption import interruptible
from treesens.python.arguments import public
from treesens.python.questions import load, table_of
from treesens.python.settings import check_seconds, check_threshold, check_whole
from treesens.python.study_options import numbers_of, sets_of
from treesens.python.study_results import Records
from treesens.python.types import Data, Model
from treesens.repairs.run import Method, place_of, repair_all, write_all
from treesens.repairs.sizes import options_of


@dataclass(frozen=True, eq=False)
class Repair(Records):
    """Repaired models: `records` as `treesens repair --json` prints them, one per size, the largest size first."""

    records: list[dict[str, Any]]
    interrupted: bool
    source: Any = field(repr=False)

    @property
    def columns(self) -> dict[str, list[Any]]:
        """The prices, on rows that were held out if there are any: a list per column."""
        prices = [list(r["prices"].values())[-1] if r["proved"] else {} for r in self.records]
        columns: dict[str, list[Any]] = {name: [r[name] for r in self.records] for name in ("size", "method", "proved")}
        for name in ("loss_before", "loss_after", "auc_before", "auc_after", "decisions_changed"):
            columns[name] = [price.get(name) for price in prices]
        return columns

    def __repr__(self) -> str:
        return f"<repair: {sum(r['proved'] for r in self.records)} of {len(self.records)} sizes proved>"


@public
def repair(
    model: Model,
    data: Data,
    *,
    vary: str | Sequence[str | Sequence[str]],
    label: str,
    gap: float | Sequence[float] | None = None,
    margin: float | Sequence[float] | None = None,
    swing: float | Sequence[float] | None = None,
    test: Data | None = None,
    output: str | Path | None = None,
    method: Method = "auto",
    keep: Sequence[str] = (),
    threshold: float | None = None,
    classes: Sequence[str | int] = (),
    domain: str | Path | None = None,
    certificates: str | Path | None = None,
    time_limit: float = 120.0,
    proof_time: float = 60.0,
    seed: int = 0,
) -> Repair:
    """The model of a file with less sensitivity to the features of `vary`, as `treesens repair` makes it: in its library's own
    file `output` (several sizes: one each), and only if it is proved of that file.

    `data` holds the training rows, `test` rows that were held out, `label` names the column of labels in both. One of `gap`
    (probability, or the value of a regressor), `margin` and `swing` (raw score) says what no pair of inputs may exceed. Times
    are in seconds. UsageError for a promise that cannot be reached with the features that are to be kept.
    """
    from treesens.studies.domain_file import read_domain

    check_seconds("time_limit", time_limit)
    check_seconds("proof_time", proof_time)
    check_whole("seed", seed, 0, 2**31 - 1)
    given = {"gap": gap, "margin": margin, "swing": swing}
    sizes = {kind: None if value is None else ",".join(numbers_of(value)) or None for kind, value in given.items()}
    with one_run():
        loaded = load(model)
        options = options_of(
            sets_of(vary),
            sizes,
            method=method,
            keep=tuple(keep),
            threshold=None if threshold is None else check_threshold(threshold),
            classes=tuple(map(str, classes)),
            domain=read_domain(None if domain is None else Path(domain)),
            time_limit=time_limit,
            proof_time=proof_time,
            seed=seed,
            certificates=None if certificates is None else Path(certificates),
        )
        train = table_of(data, label, None, [loaded])
        held_out = None if test is None else table_of(test, label, None, [loaded])
        place = None if output is None else Path(output)
        for size in options.sizes if place is not None else ():
            assert place is not None
            check_writable(place_of(place, size, options))
        with interruptible() as interruption:
            found = repair_all(loaded, train, held_out, label, options, interruption.event, lambda _words: None)
            if place is not None:
                write_all(place, found, options)
        return Repair([one.record() for one in found], interruption.event.is_set(), data)
