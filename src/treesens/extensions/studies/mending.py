"""What it would cost to mend what an audit has found: the study `repair` is asked about each set of features; no file is kept.

Every second row serves as a training row, and the others are held out: the price is that of the latter.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from treesens.data.tables import Table
from treesens.errors import TreesensError, UsageError
from treesens.extensions.studies.audit import AuditOptions
from treesens.extensions.studies.registry import study_of
from treesens.extensions.studies.study import Asking
from treesens.frontends.base import LoadedModel
from treesens.records.plain import plain
from treesens.solve.question import answered

_TICK = 0.05
"""Seconds between two looks at the clock."""
_TOLD = ("rows", "loss", "loss_before", "loss_after", "auc_before", "auc_after", "decisions_changed")


def check_mending(table: Table, options: AuditOptions) -> None:
    """UsageError if mending is asked for and the rows have no labels."""
    if options.repair_gap and table.label is None:
        raise UsageError("--repair-gap counts prices on labelled rows", remedy="name the column of labels: --label y")


def mending(asked: Asking[AuditOptions], records: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """A record for every set of features with a verified pair; of the protected ones alone, if there are any. Nothing that
    fails here costs an answer: the record has the reason.
    """
    assert asked.table is not None
    found = [tuple(one["varied"]) for one in records if one["verdict"] == "found"]
    protected = [tuple(one["varied"]) for one in records if one.get("protected")]
    sets = list(dict.fromkeys(s for s in found if s in protected or not protected))
    even, odd = (_every_second(asked.table, first) for first in (0, 1))
    mended = []
    for varied in sets:
        if asked.stop.is_set():
            break
        mended.append(
            answered(
                f"mending {', '.join(varied)}",
                partial(_mended, asked.model, (even, odd), varied, asked.options, asked.stop),
                partial(_open, varied),
            )
        )
    return mended


def _mended(
    model: LoadedModel, tables: tuple[Table, Table], varied: tuple[str, ...], audit: AuditOptions, stop: threading.Event
) -> dict[str, Any]:
    """The price of one set of features, within the time limit; what is proved by then is proved once more, as a file."""
    repair = study_of("repair")
    options = repair.options(
        vary=[varied],
        gap=audit.repair_gap,
        test=tables[1],
        threshold=audit.threshold,
        classes=audit.classes,
        domain=audit.domain,
        time_limit=audit.time_limit / 2,
        proof_time=audit.time_limit,
        seed=audit.seed,
    )
    over = threading.Event()
    threading.Thread(target=_end, args=(over, stop, audit.time_limit), daemon=True).start()
    try:
        (one,) = repair.asked(Asking((model,), tables[0], options, over)).records
    except TreesensError as error:
        return _open(varied, error.message)
    finally:
        over.set()
    record = plain(one)
    if not record["proved"]:
        reason = "nothing was proved within the time limit" if record["reason"] == "interrupted" else record["reason"]
        return _open(varied, reason)
    price = record["prices"]["test"]
    told = {name: price[name] for name in _TOLD if name in price}
    return {"varied": list(varied), "method": record["method"], "proved": True, "reason": "", **told}


def _end(over: threading.Event, stop: threading.Event, seconds: float) -> None:
    """Ends a repair when its time is up or the audit is stopped; returns when it has ended."""
    end = time.monotonic() + seconds
    while not over.wait(_TICK):
        if stop.is_set() or time.monotonic() > end:
            over.set()


def _open(varied: tuple[str, ...], reason: str) -> dict[str, Any]:
    return {"varied": list(varied), "method": None, "proved": False, "reason": reason}


def _every_second(table: Table, first: int) -> Table:
    """The rows first, first + 2, … of a table."""
    columns = {name: column[first::2] for name, column in table.columns.items()}
    return replace(table, columns=columns, rows=len(range(first, table.rows, 2)), sha256=None)
