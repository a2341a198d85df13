"""The audit: every feature (or set of features) and every gap over one model and one table, without a question file.

For a set F one exact sweep over the rows answers all gaps at once: a row that flips is a verified pair at distance 0 from the
data. If no row flips a search goes on from the smallest gap: a pair at a larger gap answers smaller ones, a proof at a
smaller gap answers larger ones, and so does a bound on the largest swing, which is searched for in the time that is left.

What it would cost to mend what the audit has found, the study `repair` is asked about each set of features; no file is kept.
Every second row serves as a training row, and the others are held out: the price is that of the latter.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import fields, replace
from functools import partial
from typing import Any

from treesens.compiler.base.diagnostics import Diagnostics
from treesens.compiler.base.floats import fraction_of
from treesens.compiler.result import answered
from treesens.data.tables import Table, align_table, distinct
from treesens.errors import TreesensError, UsageError
from treesens.extensions.studies.audit import AuditOptions
from treesens.extensions.studies.audit_facts import Audit, domain_records
from treesens.extensions.studies.audit_records import AuditRecord, ShapePart
from treesens.extensions.studies.audit_set import SetAudit
from treesens.extensions.studies.decisions import Asked, decisions_of
from treesens.extensions.studies.pair_audit import PairAudit
from treesens.extensions.studies.pair_questions import needs_pairs, pair_questions
from treesens.extensions.studies.questions import Gap, pairs_of, questions_of, refuse_beside, sets_of, sizes_of
from treesens.extensions.studies.registry import study_of
from treesens.extensions.studies.running import as_finished, library_of
from treesens.extensions.studies.shape import ShapeOptions, ShapeRecord
from treesens.extensions.studies.shapes import ask as shapes_of
from treesens.extensions.studies.shapes import outputs_of
from treesens.extensions.studies.study import Asking, Found
from treesens.extensions.studies.typicality import typical_level
from treesens.frontends.base import LoadedModel
from treesens.grammar.tree import ast
from treesens.records.plain import plain, recorded


def ask(asked: Asking[AuditOptions]) -> Found[AuditRecord]:
    """What the study finds."""
    assert asked.table is not None
    options = asked.options
    check_options(asked.model, options)
    if options.shape and len(outputs_of(asked.model.ensemble, ())) > 1:
        raise UsageError("the shape of one score is shown in an audit", remedy="ask `treesens shape` about every class")
    check_mending(asked.table, options)
    found = audit(
        asked.model,
        asked.table,
        varied=options.vary,
        gaps=_gaps(asked),
        options=options,
        stop=asked.stop,
        on_record=asked.advance,
    )
    if options.shape:
        _add_shapes(asked, found)
    if options.repair_gap:
        found.mending, found.mending_gap = mending(asked, found.records), float(fraction_of(options.repair_gap[0]))
    records = [recorded(AuditRecord, one) for one in found.records]
    decided = all(one["verdict"] != "unknown" for one in found.records)
    return Found(records, found.warnings, found.interrupted, decided, found)


def _add_shapes(asked: Asking[AuditOptions], found: Audit) -> None:
    """Puts the shape of every single feature into its records."""
    options = asked.options
    names = tuple(dict.fromkeys(one["varied"][0] for one in found.records if len(one["varied"]) == 1))
    if not names:
        return
    wanted = ShapeOptions(
        features=names, domain=options.domain, real=options.real, replay=options.replay, seed=options.seed
    )
    shapes = shapes_of(Asking(asked.models, asked.table, wanted, stop=asked.stop))
    by_name = {one.feature: one for one in shapes.records}
    told = [field.name for field in fields(ShapePart)]
    may_miss = {one["feature"]: one["missing"] for one in domain_records(found.query, set())} if found.query else {}
    for record in found.records:
        one = by_name.get(record["varied"][0]) if len(record["varied"]) == 1 else None
        if one is not None:
            record["shape"] = {name: getattr(one, name) for name in told}
            if record["max_swing_unit"] == "raw score":
                # A missing value is in no order: falls and rises leave it out. Bounds with a certificate stay as they are.
                bounded = not may_miss.get(one.feature, True) and options.certificates is None
                record.update(_with_shape(record, one, options, bounded=bounded))


def _with_shape(record: dict[str, Any], shape: ShapeRecord, options: AuditOptions, *, bounded: bool) -> dict[str, Any]:
    """The largest swing of a record, which is the larger one of the largest fall and the largest rise."""
    reached = (record["max_swing"], shape.largest_fall, shape.largest_rise)
    values = [one for one in reached if one is not None]
    bounds = [one for one in (record["max_swing_bound"],) if one is not None]
    fall, rise = shape.largest_fall_bound, shape.largest_rise_bound
    if bounded and fall is not None and rise is not None:
        bounds.append(max(fall, rise))
    value, bound = max(values, default=None), min(bounds, default=None)
    status = None if value is None else str(options.near_enough.closeness(value, bound))
    return {"max_swing": value, "max_swing_bound": bound, "max_swing_status": status}


def total(asked: Asking[AuditOptions]) -> int:
    """How many records there will be."""
    options, gaps, model = asked.options, _gaps(asked), asked.model.ensemble
    sets = len(options.vary) if options.vary is not None else model.n_features
    if options.decision is not None:
        return sets * len(pairs_of(options.decision))
    decisions = decisions_of(model, Asked(gaps[0].kind, options.threshold, tuple(options.classes)))
    return len(gaps) * sets * len(decisions)


def _gaps(asked: Asking[AuditOptions]) -> list[Gap]:
    options = asked.options
    if options.decision is not None:
        return []
    return sizes_of(asked.model, options.gap, options.margin, options.threshold, options.classes)


def _marked(record: dict[str, Any], model: LoadedModel) -> dict[str, Any]:
    """A record that says so if it is about a protected feature."""
    if not model.meaning.is_protected(record["varied"]):
        return record
    return {"varied": record["varied"], "protected": True, **record}


def _unchanging(table: Table, groups: Sequence[Sequence[str]]) -> list[str]:
    """A warning about sets of features that have one value each in the data: nothing can change there."""
    single = {name for group in groups for name in group if name in table and distinct(table, name) < 2}
    listed = [" and ".join(f"`{name}`" for name in group) for group in groups if single.issuperset(group)]
    if not listed:
        return []
    have = "has" if len(listed) == 1 else "have"
    return [
        f"warning: {', '.join(listed)} {have} a single value in {table.name}: the audit finds nothing to change there"
    ]


def check_options(model: LoadedModel, options: AuditOptions) -> None:
    """UsageError for options that say nothing of outcomes, of averaged probabilities, or of votes."""
    sizes = [(word, getattr(options, word)) for word in ("gap", "margin", "threshold", "classes")]
    refuse_beside(options.decision, sizes)
    several = model.ensemble.link.several
    why = "a decision is about outcomes" if options.decision is not None else several and f"this model {several}"
    if not why:
        return
    if options.measure not in (None, "rows"):
        raise UsageError(
            f"a share by --measure {options.measure} is one of regions of one score, and {why}",
            remedy="count the rows of the table: --measure rows",
        )
    if options.repair_gap:
        raise UsageError(
            f"--repair-gap moves one score across one cut-off, and {why}",
            remedy="leave out --repair-gap, or ask about one model with one score, around one cut-off",
        )


def _kept(one: SetAudit | PairAudit) -> Callable[[], list[dict[str, Any]]]:
    """The audit of a set, whose failure costs no other set its answers."""
    return lambda: answered(f"the audit of {' and '.join(one.varied)}", one.run, one.lost)


def _units(
    model: LoadedModel,
    table: Table,
    groups: Sequence[Sequence[str]],
    gaps: Sequence[Gap],
    options: AuditOptions,
    diagnostics: Diagnostics,
    halt: threading.Event,
) -> Sequence[SetAudit | PairAudit]:
    """The audit of every set of features: by one score, or by pairs if what is asked for is no function of one."""
    library = library_of(model, options.replay)
    asked = Asked(gaps[0].kind, options.threshold, tuple(options.classes)) if gaps else None
    level = typical_level(options.typical, options.typical_by, has_table=True)
    if needs_pairs(model, options.decision):
        pairs = pair_questions(
            model,
            table,
            groups,
            gaps,
            diagnostics,
            asked=asked,
            decision=options.decision,
            real=options.real,
            domain=options.domain,
            typical=level,
        )
        return [PairAudit(one, options, level, library, halt) for one in pairs]
    questions = questions_of(
        model,
        table,
        groups,
        gaps,
        diagnostics,
        asked=asked,
        real=options.real,
        domain=options.domain,
        typical=level,
    )
    return [SetAudit(one, options, level, library, halt) for one in questions]


def audit(
    model: LoadedModel,
    table: Table,
    *,
    varied: Sequence[Sequence[str]] | None = None,
    gaps: Sequence[Gap],
    options: AuditOptions,
    stop: threading.Event | None = None,
    on_record: Callable[[dict[str, Any]], None] | None = None,
) -> Audit:
    """Runs the audit; a set event keeps what is there. Records arrive set by set, as they are finished."""
    start = time.perf_counter()
    table = align_table(model, table)
    groups = sets_of(model, varied)
    diagnostics = Diagnostics()
    halt = stop or threading.Event()
    units = _units(model, table, groups, gaps, options, diagnostics, halt)
    warnings = [item.render() for item in diagnostics] + _unchanging(table, groups)
    result = Audit(model, table, warnings=tuple(warnings))
    result.query = next((unit.query for unit in units), None)
    result.declared = {*options.real, *(d.name.text for d in options.domain if isinstance(d, ast.Feature))}
    done: dict[int, list[dict[str, Any]]] = {}
    for number, records in as_finished(list(map(_kept, units)), options.jobs):
        done[number] = records
        if on_record is not None:
            for item in records:
                on_record(item)
    result.records = [_marked(item, model) for i in sorted(done) for item in done[i]]
    result.interrupted = halt.is_set()
    result.seconds = time.perf_counter() - start
    return result


def columns_of(records: Sequence[dict[str, Any]]) -> dict[str, list[Any]]:
    """The numbers of an audit as columns, one entry per record."""
    near = [r.get("nearest_row") or {} for r in records]
    columns: dict[str, list[Any]] = {"varied": [", ".join(r["varied"]) for r in records]}
    for kind in ("gap", "margin"):
        if any(kind in r for r in records):
            columns[kind] = [r[kind] for r in records]
    for words in ("classes", "outcomes"):
        if any(words in r for r in records):
            columns[words] = [" / ".join(map(str, r.get(words, ()))) for r in records]
    for name in ("rows", "rows_flipped", "verdict", "max_swing", "max_swing_bound"):
        columns[name] = [r[name] for r in records]
    return {
        **columns,
        "nearest_row": [n.get("index") for n in near],
        "distance_l2": [n.get("distance_l2") for n in near],
    }


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
