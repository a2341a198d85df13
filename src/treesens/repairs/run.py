"""The study `repair`: models and tables in, files and records out."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from fractions import Fraction
from pathlib import Path
from typing import cast

from treesens.compiler.base.files import check_writable, write_atomically
from treesens.data.alignment import align_table
from treesens.data.tables import Table
from treesens.errors import UsageError
from treesens.frontends.base import LoadedModel
from treesens.records.plain import recorded
from treesens.repairs.repair import Repair, Repaired
from treesens.repairs.search import Say
from treesens.studies import study
from treesens.studies.losses import labelled, rows_of
from treesens.studies.repair import RepairOptions, RepairRecord


def repair_all(
    model: LoadedModel,
    train: Table,
    test: Table | None,
    label: str,
    options: RepairOptions,
    stop: threading.Event,
    say: Say,
) -> list[Repaired]:
    """A repaired model per size, the largest first; those that an interruption left out are not there."""
    rows = labelled(model, align_table(model, train), label, options.price_by or ())
    held_out = None if test is None else labelled(model, align_table(model, test), label, options.price_by or ())
    kept = cast("Table | None", options.keep_rows)
    repair = Repair(
        model, rows, held_out, options, stop, None if kept is None else rows_of(model, align_table(model, kept))
    )
    found: list[Repaired] = []
    for size in sorted(options.sizes, reverse=True):
        if stop.is_set():
            break
        found.append(repair.reach(size, say))
    return found


def ask(asked: study.Asking[RepairOptions]) -> study.Found[RepairRecord]:
    """What the study finds; files that are proved are written."""
    options, train = asked.options, asked.table
    if train is None or train.label is None:
        raise UsageError("the training rows have no column of labels", remedy="name it: label='COLUMN'")
    held_out = cast("Table | None", options.test)
    for size in options.sizes if options.output is not None else ():
        assert options.output is not None
        check_writable(place_of(options.output, size, options))
    found = repair_all(asked.model, train, held_out, train.label, options, asked.stop, asked.say)
    if options.output is not None:
        write_all(options.output, found, options)
    records: list[RepairRecord] = [recorded(RepairRecord, one.record()) for one in found]
    return study.Found(records, (), asked.stop.is_set(), all(one.proved for one in records), found)


def place_of(output: Path, size: Fraction, options: RepairOptions) -> Path:
    """Where the model of one size is written: the output, with the size in its name if there are several."""
    if len(options.sizes) == 1:
        return output
    return output.with_name(f"{output.stem}-{float(size):g}{output.suffix}")


def write_all(output: Path, found: Sequence[Repaired], options: RepairOptions) -> None:
    """Writes what was proved, and the place into its facts."""
    for one in found:
        if one.content is not None:
            place = place_of(output, one.size, options)
            write_atomically(place, one.content)
            one.facts["file"] = str(place)
