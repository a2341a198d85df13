"""Runs the study `repair`: reads a model and tables, and writes a file and a record for each size.

`--pairs` writes rows for retraining: each row in the two versions whose scores differ most. Both versions have the label of the
original row, so that a model trained on them learns to ignore the varied features.
"""

from __future__ import annotations

import csv
import hashlib
import io
import json
from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path
from typing import Any, cast

import numpy as np

from treesens.compiler.base.files import check_writable, write_atomically
from treesens.data.tables import Table, align_table
from treesens.errors import UsageError
from treesens.extensions.repair.pairs import Climber
from treesens.extensions.repair.proof import Asking, decided_by, questions_for
from treesens.extensions.repair.repair import Repair
from treesens.extensions.repair.study import KINDS, RepairOptions, RepairRecord
from treesens.extensions.studies import study
from treesens.extensions.studies.losses import labelled, rows_of
from treesens.records.plain import ABSENT, plain, recorded


def ask(asked: study.Asking[RepairOptions]) -> study.Found[RepairRecord]:
    """The results of the study; a file is written as soon as its promises are proved."""
    options, train = asked.options, asked.table
    if options.decision is not None:
        raise UsageError(
            f"a repair applies to a single cut-off, but the decision `{options.decision.name.text}` has several outcomes",
            remedy="repair around each of its cut-offs, e.g. --threshold 0.8; `treesens audit --decision` is about outcomes",
        )
    if train is None or train.label is None:
        raise UsageError("the training rows have no label column", remedy="name the column: label='COLUMN'")
    if asked.memory is not None and options.certificates is not None:
        raise UsageError(
            "certificates need a search, which a journal skips", remedy="leave out --journal, or --certificate"
        )
    for size in options.sizes if options.output is not None else ():
        assert options.output is not None
        check_writable(place_of(options.output, size, options))
    repair = None
    if options.pairs is not None:
        repair = _repair(asked, train)
        _write_pairs(asked, train, repair, options.pairs)
    records: list[RepairRecord] = [recorded(RepairRecord, one) for one in _sizes(asked, train, repair)]
    lost = tuple(
        f"{options.kind} {one.size:g}: proved, but {one.unwritten}" for one in records if one.unwritten is not ABSENT
    )
    return study.Found(records, lost, asked.stop.is_set(), all(one.proved for one in records), records)


def _sizes(asked: study.Asking[RepairOptions], train: Table, repair: Repair | None) -> Iterator[dict[str, Any]]:
    """A record per size, with the largest size first, until an interruption. Raises UsageError if the first size is impossible;
    later sizes are reported as not proved, since files of larger sizes may have been written already.
    """
    options, done = asked.options, 0
    sizes = sorted(options.sizes, reverse=True)
    for number, size in enumerate(sizes, 1):
        if asked.stop.is_set():
            return
        key = _key(asked, size)
        record = _known(asked, key, size)
        if record is None:
            if len(sizes) > 1:
                asked.say(f"{options.kind} {float(size):g}, {number} of {len(sizes)}")
            repair = repair or _repair(asked, train)
            try:
                found = repair.reach(size, asked.say)
            except UsageError as error:
                if not done:
                    raise
                yield {
                    "size": float(size),
                    "method": options.method,
                    "proved": False,
                    "reason": error.message,
                    "seconds": 0.0,
                }
                continue
            if found.content is not None and options.output is not None:
                found.facts |= _written(place_of(options.output, size, options), found.content)
            record = found.record()
            whole = found.content is not None and "unwritten" not in found.facts
            if asked.memory is not None and whole and not asked.stop.is_set():
                asked.memory.keep(key, "none", plain(recorded(RepairRecord, record)))
        done += 1
        yield record


def _written(place: Path, content: bytes) -> dict[str, str]:
    """The path of the written model, or the reason why it could not be written; proof and prices are reported in both cases."""
    try:
        write_atomically(place, content)
    except UsageError as error:
        return {"unwritten": f"{place}: {error.message}"}
    return {"file": str(place)}


def _write_pairs(asked: study.Asking[RepairOptions], train: Table, repair: Repair, place: Path) -> None:
    """Writes the rows that break the promise of the smallest size, each in two versions."""
    options = asked.options
    if options.kind not in KINDS:
        raise UsageError("a direction has no pairs of rows with the same label", remedy="leave out --pairs")
    text = twins_of_rows(repair, align_table(asked.model, train), min(options.sizes))
    write_atomically(place, text)
    asked.say(f"{place}: {text.count(chr(10)) - 1} rows for retraining")


def _repair(asked: study.Asking[RepairOptions], train: Table) -> Repair:
    """The repair of the model on the rows of the tables."""
    options, model = asked.options, asked.model
    test, kept = (cast("Table | None", table) for table in (options.test, options.keep_rows))
    by = options.price_by or ()
    assert train.label is not None
    rows = labelled(model, align_table(model, train), train.label, by)
    held_out = None if test is None else labelled(model, align_table(model, test), train.label, by)
    to_keep = None if kept is None else rows_of(model, align_table(model, kept))
    return Repair(model, rows, held_out, options, asked.stop, to_keep)


def _key(asked: study.Asking[RepairOptions], size: Fraction) -> str:
    """A text of all inputs of the repair for one size, except for the model and the training rows."""
    o = asked.options
    tables = [None if table is None else cast("Table", table).sha256 for table in (o.test, o.keep_rows)]
    promises = [o.kind, str(size), o.groups, str(o.swing_besides), o.directions, o.threshold, o.classes, o.domain]
    how = [o.method, o.keep, o.price_by, o.time_limit, o.proof_time, o.seed, o.output is None]
    return json.dumps([tables, promises, how], default=str, sort_keys=True)


def _known(asked: study.Asking[RepairOptions], key: str, size: Fraction) -> dict[str, Any] | None:
    """The record of an earlier run; None if there is no such record, or if the file of the record has changed."""
    record = None if asked.memory is None else asked.memory.known(key)
    if record is None or asked.options.output is None:
        return record
    place = place_of(asked.options.output, size, asked.options)
    if not place.is_file() or hashlib.sha256(place.read_bytes()).hexdigest() != record["sha256"]:
        return None
    return {**record, "file": str(place)}


def place_of(output: Path, size: Fraction, options: RepairOptions) -> Path:
    """The path of the model for one size: the output, with the size in its name if there are several sizes."""
    if len(options.sizes) == 1:
        return output
    return output.with_name(f"{output.stem}-{float(size):g}{output.suffix}")


def twins_of_rows(repair: Repair, table: Table, size: Fraction) -> str:
    """The pairs that break the promise for one size, as CSV with the columns of an aligned and labelled table: for each set of
    features, two lines for every row that flips, with the values of these features taken from other rows.
    """
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    columns = list(table.columns)
    writer.writerow(columns)
    promises = [promise for promise in repair.promises(size) if not promise.is_direction]
    for asking in questions_for(repair.model, promises, decided_by(repair.options)):
        varied = set(asking.promise.varied)
        for row, *donors in _broken(repair, asking):
            for donor in donors:
                writer.writerow([_shown(table, name, donor if name in varied else row) for name in columns])
    return text.getvalue()


def _broken(repair: Repair, asking: Asking) -> Iterator[tuple[int, int, int]]:
    """Rows that break a promise, each with the two rows whose values yield its highest and its lowest score."""
    rows = repair.train.rows
    climber = Climber(asking, repair.model.ensemble, repair.options.seed)
    found = climber.of_rows(repair.model.ensemble, rows, len(rows))
    values = rows[:, climber.varied]
    for row, high, low in zip(found.rows.tolist(), found.high, found.low, strict=True):
        yield row, *(_first(values, version[climber.varied]) for version in (high, low))


def _first(rows: Any, wanted: Any) -> int:
    """The index of the first row with the given values; missing values count as equal."""
    same = (rows == wanted) | (np.isnan(rows) & np.isnan(wanted))
    return int(same.all(axis=1).argmax())


def _shown(table: Table, name: str, row: int) -> Any:
    """A value in a form that CSV readers parse back to it; empty if missing."""
    value = table.columns[name][row]
    if value is None or (isinstance(value, float) and np.isnan(value)):
        return ""
    return int(value) if isinstance(value, float) and value.is_integer() else value
