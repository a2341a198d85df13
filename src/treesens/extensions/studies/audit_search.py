"""Audits a model over a table, without a question file: every feature (or set of features) at every gap.

For each set of features, the rows are tried first: a row that flips is a verified pair at distance 0 from the data. If no row
flips, searches run from the smallest gap upwards, because a proof at one gap also answers all larger gaps. The remaining time
is used to search for the largest swing, whose bound may answer further gaps. If one score decides, a single exact sweep over
the rows answers all gaps at once, and searches start from promising rows. Outcomes of a decision, votes and averaged
probabilities are audited in the same way, except that the rows are tried for each event separately (`rows.py`).

The study `repair` computes the price of a repair, for one set of features at a time; the repaired files are not kept. Prices
are computed on the rows of `test`; without these, every second row is a row for the repair, and the others are for its price.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from fractions import Fraction
from functools import partial
from typing import Any, cast

import numpy as np

from treesens.binder.file import ResolvedQuestion
from treesens.compiler.base.arrays import FloatArray
from treesens.compiler.base.budget import Budget
from treesens.compiler.base.diagnostics import Diagnostics
from treesens.compiler.base.floats import fraction_of
from treesens.compiler.model.evaluate import LibraryReplay
from treesens.compiler.query.evaluate import inputs_of
from treesens.compiler.query.query import Query
from treesens.compiler.result import (
    Certified,
    NearestRow,
    ObjectiveValue,
    Proof,
    Result,
    Sense,
    Verdict,
    afterwards,
    answered,
    is_own_fault,
)
from treesens.data.flips import FlipQuestion
from treesens.data.tables import Table, align_table, distinct
from treesens.errors import DataError, TreesensError, UsageError
from treesens.extensions.measure.measures import measure_of
from treesens.extensions.studies.audit import DEFAULT_SECONDS, PROTECTED_SHARE, AuditOptions, AuditRecord, ShapePart
from treesens.extensions.studies.count import CountOptions
from treesens.extensions.studies.count_search import Unit, check_countable, share_record
from treesens.extensions.studies.decisions import Asked, Between, decisions_of
from treesens.extensions.studies.events import Gap, TypicalLevel, outcome_events, refuse_beside, typical_level
from treesens.extensions.studies.evidence import Counted, Evidence, Made, Open, Share
from treesens.extensions.studies.losses import labelled
from treesens.extensions.studies.optima import best
from treesens.extensions.studies.questions import (
    EventQuestion,
    SetQuestions,
    questions_of,
    sets_of,
    sizes_of,
)
from treesens.extensions.studies.registry import study_of
from treesens.extensions.studies.report.audit_facts import Audit, add_proxies, domain_records
from treesens.extensions.studies.rows import ScoreSweep, event_rows
from treesens.extensions.studies.running import as_finished, library_of, with_study_certificates
from treesens.extensions.studies.shape import ShapeOptions, ShapeRecord
from treesens.extensions.studies.shape_search import ask as shapes_of
from treesens.extensions.studies.shape_search import outputs_of
from treesens.extensions.studies.study import Asking, Found
from treesens.frontends.base import LoadedModel
from treesens.grammar.tree import ast
from treesens.records.answers import label_of, record
from treesens.records.plain import plain, recorded
from treesens.solve.bounds import consistent, value_of
from treesens.solve.conclude import conclude_found, conclude_none, leave_open
from treesens.solve.options import Options
from treesens.solve.question import answer, located
from treesens.solve.tasks.data_rows import EventRows, table_in_play
from treesens.values.verify import Witness, verify_values


def ask(asked: Asking[AuditOptions]) -> Found[AuditRecord]:
    """Audits every set of features, and then adds the shapes and the prices of repairs that the options request."""
    assert asked.table is not None
    options = asked.options
    check_options(asked.model, options)
    if options.shape and len(outputs_of(asked.model.ensemble, ())) > 1:
        raise UsageError("an audit shows the shape of one score only", remedy="run `treesens shape` for every class")
    check_mending(asked.table, options)
    found = audit(
        asked.model,
        asked.table,
        varied=options.vary,
        gaps=_gaps(asked),
        options=options,
        stop=asked.stop,
        on_record=asked.advance,
        favours_protected=any(one.what == "time limit" for one in asked.recognised),
    )
    if options.shape:
        _add_shapes(asked, found)
    if options.repair_gap:
        found.mending, found.mending_gap = mending(asked, found.records), float(fraction_of(options.repair_gap[0]))
        found.mending_test = None if options.test is None else cast("Table", options.test).name
    records = [recorded(AuditRecord, one) for one in found.records]
    decided = all(one["verdict"] != "unknown" for one in found.records)
    decided = decided and all(one["proved"] for one in found.mending or ())
    evidence = [list(_evidence(one, found)) for one in found.records] if options.certificates is not None else []
    return Found(records, found.warnings, found.interrupted, decided, found, evidence=evidence)


def _evidence(record: dict[str, Any], found: Audit) -> Iterator[Evidence]:
    """The evidence for a record: its answer, the bound on the largest swing, and the share."""
    title, made = f"{', '.join(record['varied'])} {size_of_record(record)}", certified_of(record)
    if not made:
        yield Open(title, record["reason"] or "nothing is proved")
    assert found.query is not None
    for claim in dict.fromkeys(one.claim for one in made):
        # The cases of one proof prove the claim only together.
        yield Made(f"{title}: {claim}", [(found.query, [one for one in made if one.claim == claim])])
    if record.get("max_swing_bound") is not None and all(one.claim != "bound" for one in made):
        yield Open(f"the largest swing of {', '.join(record['varied'])}", "its bound has no certificate")
    if record.get("share") is not None:
        yield _share_evidence(f"{title}: share", record, found)
    if record.get("typical") is not None:
        yield Open(f"{title}: typical", "results about typical inputs have no certificate")


def _share_evidence(title: str, record: dict[str, Any], found: Audit) -> Evidence:
    share, unit = record["share"], found.questions.get(key_of(record))
    if unit is None:
        return Open(title, "rows decided by several scores are not proved individually")
    reason = share.get("reason") or ""
    if share["measure"] != "rows":
        measure = measure_of(share["measure"], unit)
        return Share(title, unit.query, measure, share["lower"], share["upper"])
    table = table_in_play(unit)
    assert table is not None
    count = round(share["lower"] * record["rows"]) if share["closed"] else None
    return Counted(title, unit.query, table[1], table[0], count, reason)


def size_of_record(record: dict[str, Any]) -> str:
    """The gap of a record, or its outcomes, as text."""
    if "outcomes" in record:
        return f"from {' to '.join(record['outcomes'])}"
    return next(f"at {kind} {record[kind]}" for kind in ("gap", "margin") if kind in record)


def certified_of(record: dict[str, Any]) -> list[Certified]:
    """The certificates of a record."""
    return [
        Certified(one["claim"], one.get("file") or "", one.get("sha256", ""), reason=one.get("reason", ""))
        for one in record.get("certificates") or ()
    ]


def key_of(record: Mapping[str, Any]) -> tuple[object, ...]:
    """The key of a record: its features, gap and question."""
    return (*record["varied"], record.get("gap"), record.get("margin"), record["question"])


def _add_shapes(asked: Asking[AuditOptions], found: Audit) -> None:
    """Adds the shape of every single feature to its records."""
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
    for item in found.records:
        one = by_name.get(item["varied"][0]) if len(item["varied"]) == 1 else None
        if one is not None:
            item["shape"] = {name: getattr(one, name) for name in told}
            if item["max_swing_unit"] == "raw score":
                # Falls and rises ignore missing values, which have no place in the order. Certified bounds are not replaced.
                bounded = not may_miss.get(one.feature, True) and options.certificates is None
                item.update(_with_shape(item, one, options, bounded=bounded))


def _with_shape(record: dict[str, Any], shape: ShapeRecord, options: AuditOptions, *, bounded: bool) -> dict[str, Any]:
    """A record's fields about the largest swing, which is the maximum of the swing that was found, the fall and the rise."""
    reached = (record["max_swing"], shape.largest_fall, shape.largest_rise)
    values = [one for one in reached if one is not None]
    bounds = [one for one in (record["max_swing_bound"],) if one is not None]
    fall, rise = shape.largest_fall_bound, shape.largest_rise_bound
    if bounded and fall is not None and rise is not None:
        bounds.append(max(fall, rise))
    value, bound = max(values, default=None), min(bounds, default=None)
    status = None if value is None else str(options.near_enough.closeness(value, bound))
    if value != record["max_swing"]:
        record.pop("max_swing_prob", None)
    return {"max_swing": value, "max_swing_bound": bound, "max_swing_status": status}


def total(asked: Asking[AuditOptions]) -> int:
    """The expected number of records."""
    options, gaps, model = asked.options, _gaps(asked), asked.model.ensemble
    sets = len(options.vary) if options.vary is not None else model.n_features
    if options.decision is not None:
        return sets * len(outcome_events(options.decision))
    decisions = decisions_of(model, Asked(gaps[0].kind, options.threshold, tuple(options.classes)))
    return len(gaps) * sets * len(decisions)


def _gaps(asked: Asking[AuditOptions]) -> list[Gap]:
    options = asked.options
    if options.decision is not None:
        return []
    return sizes_of(asked.model, options.gap, options.margin, options.threshold, options.classes)


def _marked(record: dict[str, Any], model: LoadedModel) -> dict[str, Any]:
    """The record, marked as `protected` if it is about a protected feature."""
    if not model.meaning.is_protected(record["varied"]):
        return record
    suggested = {"suggested": True} if model.meaning.suggested else {}
    return {"varied": record["varied"], "protected": True, **suggested, **record}


def _unchanging(table: Table, groups: Sequence[Sequence[str]]) -> list[str]:
    """A warning about sets whose features are all constant in the data, so that no row can flip."""
    single = {name for group in groups for name in group if name in table and distinct(table, name) < 2}
    listed = [" and ".join(f"`{name}`" for name in group) for group in groups if single.issuperset(group)]
    if not listed:
        return []
    have = "has" if len(listed) == 1 else "have"
    return [
        f"warning: {', '.join(listed)} {have} a single value in {table.name}: only other values of the domain can change "
        "there"
    ]


def check_options(model: LoadedModel, options: AuditOptions) -> None:
    """Raises UsageError for options that do not support outcomes of decisions, averaged probabilities or votes."""
    sizes = [(word, getattr(options, word)) for word in ("gap", "margin", "threshold", "classes")]
    refuse_beside(options.decision, sizes)
    several = model.ensemble.link.several
    why = "a decision is about outcomes" if options.decision is not None else several and f"this model {several}"
    if not why:
        return
    if options.measure not in (None, "rows"):
        raise UsageError(
            f"--measure {options.measure} measures regions of one score, and {why}",
            remedy="count the rows of the table: --measure rows",
        )
    if options.repair_gap:
        raise UsageError(
            f"--repair-gap moves one score across one cut-off, and {why}",
            remedy="leave out --repair-gap, or ask about one model with one score, around one cut-off",
        )


def _kept(one: SetAudit) -> Callable[[], list[dict[str, Any]]]:
    """A function that audits one set. A failure is reported in the records of this set only."""
    return lambda: answered(f"the audit of {' and '.join(one.varied)}", one.run, one.lost)


def _units(
    model: LoadedModel,
    table: Table,
    groups: Sequence[Sequence[str]],
    gaps: Sequence[Gap],
    options: AuditOptions,
    diagnostics: Diagnostics,
    halt: threading.Event,
) -> Sequence[SetAudit]:
    """The audits of all sets of features, one per set and family of events."""
    library = library_of(model, options.replay)
    level = typical_level(options.typical, options.typical_by, has_table=True)
    questions = questions_of(
        model,
        table,
        groups,
        gaps,
        diagnostics,
        asked=Asked(gaps[0].kind, options.threshold, tuple(options.classes)) if gaps else None,
        policy=options.decision,
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
    favours_protected: bool = False,
) -> Audit:
    """Runs the audit; if the event `stop` is set, returns the records so far. `on_record` receives finished records.
    With `favours_protected`, sets with protected features have more time, up to the default limit."""
    start = time.perf_counter()
    table = align_table(model, table)
    groups = sets_of(model, varied)
    diagnostics = Diagnostics()
    halt = stop or threading.Event()
    units = _units(model, table, groups, gaps, options, diagnostics, halt)
    for unit in units if favours_protected else ():
        if model.meaning.is_protected(unit.varied):
            unit.limit = min(DEFAULT_SECONDS, PROTECTED_SHARE * unit.limit)
            unit.base = replace(unit.base, time_limit=unit.limit)
    warnings = [item.render() for item in diagnostics] + _unchanging(table, groups)
    result = Audit(model, table, warnings=tuple(warnings))
    result.query = next((unit.about for unit in units), None)
    result.questions = {
        key_of({"varied": unit.varied, **one.event.facts, "question": one.event.words}): one.query
        for unit in units
        for one in unit.questions.asked
        if unit.score is not None
    }
    result.declared = {*options.real, *(d.name.text for d in options.domain if isinstance(d, ast.Feature))}
    done: dict[int, list[dict[str, Any]]] = {}
    for number, records in as_finished(list(map(_kept, units)), options.jobs):
        done[number] = records
        if on_record is not None:
            for item in records:
                on_record(item)
    result.records = [_marked(item, model) for i in sorted(done) for item in done[i]]
    add_proxies(result)
    wanted = {one.feature for one in result.proxies}.intersection(model.ensemble.used_features)
    others = [(name,) for name in sorted(wanted.difference(*(group for group in groups if len(group) == 1)))]
    if others and not halt.is_set():
        of_proxies = _units(
            model,
            table,
            others,
            gaps,
            replace(options, typical=None, typical_by=None, measure=None),
            Diagnostics(),
            halt,
        )
        result.of_proxies = [
            item for _, found in as_finished(list(map(_kept, of_proxies)), options.jobs) for item in found
        ]
    result.interrupted = halt.is_set()
    result.seconds = time.perf_counter() - start
    return result


_MOMENT = 0.2
"""Minimum time in seconds for one search of an audit."""
_ROWS_SHARE, _SEARCH_SHARE = 0.4, 0.6
"""Fractions of the remaining time for the rows and for the search of one event; the rest is left for later events."""
_EXACT = ("native", "compiler")
"""Backends whose bounds are exact, apart from the rounding of the reported value."""
_ROUNDINGS, _BITS = Fraction(1, 1 << 48), 128
LISTED = 100
"""Maximum number of flipping rows that a record lists, the clearest first."""
NO_ROWS: dict[str, Any] = {"rows": 0, "rows_flipped": 0, "rows_complete": False, "flipped_rows": []}
NO_SWING: dict[str, Any] = {"max_swing": None, "max_swing_bound": None, "worst": None}
_OF_TYPICAL = ("verdict", "reason", "proof", "points", "scores")


@dataclass
class Audited:
    """The rows of an event, and its answer."""

    asked: EventQuestion
    rows: EventRows
    result: Result


class SetAudit:
    """The audit of one set of features and a family of events: the rows, every event, and the largest swing."""

    def __init__(
        self,
        questions: SetQuestions,
        options: AuditOptions,
        level: TypicalLevel | None,
        library_predict: list[LibraryReplay] | None,
        stop: threading.Event,
    ) -> None:
        self.questions, self.varied, self.score = questions, questions.varied, questions.score
        first = questions.asked[0].query
        self.about = first.query if questions.swing is None or self.score is None else questions.swing.query
        self.stop, self.limit, self.level = stop, options.time_limit, level
        self.certificates, self.measure, self.seed = options.certificates, options.measure, options.seed
        self.budget = Budget.of(0.0, stop)
        self.sweep: ScoreSweep | None = None
        if self.score is not None and options.measure is not None:
            # This check precedes all searches, so that an audit does not fail after all of its work.
            check_countable(first, options.measure)
        table = table_in_play(first)
        assert table is not None
        self.name, self.table = table
        self.base = Options(
            backend="auto" if self.score is None else "native",
            time_limit=options.time_limit,
            seed=options.seed,
            library_predict=library_predict,
        ).asking_for(options.near_enough)

    def run(self) -> list[dict[str, Any]]:
        """The records of all events that were tried before an interruption."""
        if self.stop.is_set():
            return []
        start, first = time.monotonic(), self.questions.asked[0]
        if self.score is not None:
            self.sweep = ScoreSweep(self.score, first.query.query, self.table, self.limit)
            self.sweep.found(first.event.size)
        self.budget = Budget.of(self.limit, self.stop)
        answers: list[Audited] = []
        for asked in self.questions.asked:
            if self.stop.is_set():
                break
            answers.append(self._audited(asked, [one.result for one in answers]))
        swing = self._most() if self.questions.swing is not None else None
        if swing is not None and self.sweep is not None:
            for one in answers:
                settled = partial(self._settled, one.asked, one.result, swing, self.sweep)
                one.result = afterwards(one.result, "largest swing", settled)
        seconds = time.monotonic() - start
        of_swing = () if swing is None or self.sweep is None else self._certified_swing(swing)
        for one in answers:
            one.result = self._with_certificates(one.asked, one.result, of_swing)
        notes = [swing.reason] if swing is not None and is_own_fault(swing.reason) else []
        typical = answered("typical inputs", partial(self._typical, answers), partial(self._untold, answers, notes))
        records = []
        for one, part in zip(answers, typical, strict=True):
            noted = replace(one.result, notes=(*one.result.notes, *notes))
            records.append({**self._put(one.asked, noted, swing, seconds, _of_rows(one)), **self._share(one), **part})
        return records

    def lost(self, reason: str) -> list[dict[str, Any]]:
        """The records of a set whose audit failed: every answer is open, and the fields about rows are empty."""
        return [
            self._put(one, unknown(one.query.query, reason), unknown(one.query.query, reason), 0.0, NO_ROWS)
            for one in self.questions.asked
        ]

    def _rows(self, asked: EventQuestion) -> EventRows:
        """The rows for an event."""
        query = asked.query.query
        if self.sweep is None:
            return event_rows(query, self.table, self.budget.share(_ROWS_SHARE).at_least(_MOMENT))
        return self.sweep.of(query, asked.event.size)

    def _audited(self, asked: EventQuestion, before: Sequence[Result]) -> Audited:
        """The rows of an event, and its answer; a pair that a search finds is moved as near to a row as time allows."""
        rows = self._rows(asked)
        if len(rows) == 0:
            raise DataError("no row of the table lies in the domain", place=self.name)
        event, query = asked.event, asked.query.query
        result = answered(event.name, partial(self._answer, asked, rows, before), partial(unknown, query))
        if result.verdict is Verdict.FOUND and result.backend != "rows":
            result = afterwards(result, "nearest row", partial(self._nearer, asked.near, result))
        return Audited(asked, rows, result)

    def _answer(self, asked: EventQuestion, rows: EventRows, before: Sequence[Result]) -> Result:
        """Tries the rows first, then reuses the results of easier events, and finally searches."""
        query, pair = asked.query, rows.witness(self.base)
        if pair is not None:
            bare = leave_open(query.name, witness=pair[1], backend="rows")
            done = located(query, conclude_found(bare, "verified: a row of the table"), self.base)
            return replace(done, nearest=NearestRow(self.name, pair[0], 0.0, 0.0))
        for known in before if asked.event.harder else ():
            if known.verdict is Verdict.NONE:
                return replace(known, query=query.name, reason=f"none at a smaller gap ({known.reason})")
        options = replace(self.base, hints=None if self.sweep is None else rows.hints())
        part = self.budget.share(_SEARCH_SHARE).at_least(_MOMENT)
        return located(query, answer(query.query, options, part), options)

    def _nearer(self, query: ResolvedQuestion, result: Result) -> Result:
        """The nearest pair that a search finds in a fraction of the time, if it is nearer than the known pair."""
        part = self.budget.share(_SEARCH_SHARE).at_least(_MOMENT)
        found = located(query, answer(query.query, self.base, part), self.base)
        if found.nearest is None or (result.nearest is not None and result.nearest.distance <= found.nearest.distance):
            return result
        return replace(
            result, witness=found.witness, region=found.region, nearest=found.nearest, objective=found.objective
        )

    def _most(self) -> Result:
        """The largest swing: for a probability, by bisection; for a score, by a search or a row, with a bound from leaves."""
        assert self.questions.swing is not None
        query = self.questions.swing.query
        return answered("largest swing", partial(self._swing, query), partial(unknown, query))

    def _swing(self, query: Query) -> Result:
        part = self.budget.at_least(_MOMENT).within(self.limit / 2)
        if self.sweep is None:
            return best(query, self.base, part)
        rows, bound = self.sweep.widest(query, self.questions.asked[-1].event.size), self.sweep.swing_bound()
        result = answer(query, replace(self.base, hints=rows.hints()), part)
        known = result.objective
        if known is None:
            return self._swing_of_rows(query, rows, bound, result)
        bound = bound if known.bound is None else min(known.bound, bound)
        bound = consistent(bound, known.value, maximize=True, exact=False, who="the sum of the leaves")
        return replace(result, objective=replace(known, bound=bound))

    def _swing_of_rows(self, query: Query, rows: EventRows, bound: float, result: Result) -> Result:
        """The largest swing if the search found no pair in its time: for one score, the largest swing of a row, and the bound
        from the leaves.
        """
        if isinstance(self.score, Between):
            return result
        place = int(np.argmax(rows.found.highest - rows.found.lowest))
        pair = verify_values(query, rows.pair(place), library_predict=self.base.library_predict)
        if not isinstance(pair, Witness):
            return result
        assert query.objective is not None
        value = value_of(query.objective, inputs_of(query, pair.values))
        bound = consistent(bound, value, maximize=True, exact=False, who="the sum of the leaves")
        known = ObjectiveValue(value, bound, Sense.MAXIMIZE, query.objective.kind, self.base.closeness)
        return replace(result, witness=pair, objective=known)

    def _settled(self, asked: EventQuestion, result: Result, swing: Result, sweep: ScoreSweep) -> Result:
        """Decides an open event by the largest swing: the bound may be a proof, and the pair may be an answer."""
        if result.verdict is not Verdict.UNKNOWN or swing.objective is None:
            return result
        query, bound = asked.query, exact_bound(swing, sweep.swing_bound())
        if bound < needed_swing(sweep.shape(query.query, asked.event.size), query):
            open_result = leave_open(query.name, backend="native", notes=result.notes)
            return conclude_none(open_result, f"the largest swing is at most {float(bound):.6g}", Proof.BOUND)
        if swing.witness is not None:
            again = verify_values(query.query, swing.witness.values, library_predict=self.base.library_predict)
            if isinstance(again, Witness):
                pair = conclude_found(leave_open(query.name, witness=again, backend="native", notes=result.notes))
                return located(query, pair, self.base)
        return result

    def _certified_swing(self, swing: Result) -> tuple[Certified, ...]:
        """The certificate of the bound on the largest swing."""
        assert self.questions.swing is not None
        query = replace(self.questions.swing.query, name=f"{'_'.join(self.varied)}.swing")
        # Only the bound is certified here, because the pair of the largest swing belongs to no event.
        bare = replace(swing, verdict=Verdict.UNKNOWN, witness=None)
        options = replace(self.base, certificates=self.certificates)
        return with_study_certificates(query, bare, options, self.limit).certificates

    def _with_certificates(self, asked: EventQuestion, result: Result, more: tuple[Certified, ...]) -> Result:
        event = asked.event
        about = ["_".join(self.varied), *map(str, event.facts.get("classes", ())), event.name.replace(" ", "_")]
        options = replace(self.base, certificates=self.certificates)
        # The record is about the pair itself, not about the nearest pair that was searched for on the way.
        query, bare = replace(asked.query.query, name=".".join(about)), replace(result, objective=None)
        made = with_study_certificates(query, bare, options, self.limit)
        return replace(result, certificates=(*made.certificates, *more))

    @staticmethod
    def _untold(answers: list[Audited], notes: list[str], reason: str) -> list[dict[str, Any]]:
        """Empty parts about typical inputs, for the case that their computation failed; the reason is added to `notes`."""
        notes.append(reason)
        return [{} for _ in answers]

    def _typical(self, answers: list[Audited]) -> list[dict[str, Any]]:
        """The part of each record about typical inputs."""
        if self.level is None:
            return [{} for _ in answers]
        budget, goal, swing = Budget.of(self.limit, self.stop), self.questions.typical_swing, NO_SWING
        if goal is not None:
            part = budget.at_least(_MOMENT).within(self.limit / 2)
            swing = _swing_part(goal, answer(goal.query, self.base, part))
        return [{"typical": {**self.level.record(), **self._left(one, budget), **swing}} for one in answers]

    def _left(self, one: Audited, budget: Budget) -> dict[str, Any]:
        """The answer among typical inputs: `none` if no input is an answer; else the result of a row or a search."""
        question = one.asked.typical
        assert question is not None
        if one.result.verdict is Verdict.NONE:
            assert one.result.proof is not None
            result = conclude_none(leave_open(question.name), "no answer over all inputs", one.result.proof)
        else:
            result = self._typical_answer(one, question, budget.share(_SEARCH_SHARE).at_least(_MOMENT))
        full = record(question.query, result)
        return {name: full.get(name) for name in _OF_TYPICAL}

    def _typical_answer(self, one: Audited, question: ResolvedQuestion, budget: Budget) -> Result:
        if self.sweep is None:
            return answer(question.query, self.base, budget)
        rows = EventRows(question.query, one.rows.question, one.rows.found, self.table)
        pair = rows.witness(self.base)
        if pair is not None:
            bare = leave_open(question.name, witness=pair[1], backend="rows")
            return conclude_found(bare, f"verified: row {pair[0]} of the table")
        return answer(question.query, replace(self.base, hints=rows.hints()), budget)

    def _share(self, one: Audited) -> dict[str, Any]:
        """The affected share: 0 if a proof excludes all pairs; otherwise a search computes the share. If no single score
        decides, the result is the share of rows that flip; this share is open if not all values were tried.
        """
        if self.measure is None:
            return {}
        rows = one.rows
        if self.score is None:
            part = len(rows.order()) / len(rows)
            above = part if rows.complete else 1.0
            known = {"measure": "rows", "lower": part, "upper": above, "estimate": None, "closed": rows.complete}
        elif one.result.verdict is Verdict.NONE:
            known = {"measure": self.measure, "lower": 0.0, "upper": 0.0, "estimate": None, "closed": True}
        else:
            counting = CountOptions(measure=self.measure, time_limit=self.limit, seed=self.seed)
            known = share_record(Unit(self.varied, self.score, one.asked.event, one.asked.query), counting, self.stop)
        return {"share": known}

    def _put(
        self, asked: EventQuestion, result: Result, swing: Result | None, seconds: float, of_rows: dict[str, Any]
    ) -> dict[str, Any]:
        """A record: the answer for the set of features, with the rows of the event and the largest swing."""
        query = asked.query
        data = record(query.query, result)
        for name in ("query", "expect", "as_expected", "objective", "attempts", "size", "query_sha256"):
            data.pop(name, None)
        most = None if swing is None else swing.objective
        extra: dict[str, Any] = {
            "varied": list(self.varied),
            **asked.event.facts,
            "question": asked.event.words,
            **of_rows,
            "max_swing": None if most is None else most.value,
            "max_swing_bound": None if most is None else most.bound,
            "max_swing_status": None if most is None else str(most.status),
            "max_swing_unit": self.questions.unit,
            **self._probabilities(swing),
            "tolerance": self.base.closeness.record(),
            "seconds": {"set": round(seconds, 6)},
        }
        if result.nearest is not None and data.get("nearest_row"):
            least = result.objective.bound if result.objective is not None else 0.0
            values = _row_labels(query, self.table[result.nearest.index])
            data["nearest_row"] = {**data["nearest_row"], "bound_l2": least, "values": values}
        return {**extra, **{k: v for k, v in data.items() if k not in extra}}

    def _probabilities(self, swing: Result | None) -> dict[str, Any]:
        """The probabilities of the pair of the largest swing of a raw score, if the model has probabilities."""
        if swing is None or swing.witness is None or self.questions.unit != "raw score":
            return {}
        assert self.questions.swing is not None
        scores = record(self.questions.swing.query, swing).get("scores") or {}
        known = [one.get("prob") for one in scores.values()]
        if not all(isinstance(p, float) for p in known) or len(set(known)) < 2:
            return {}
        return {"max_swing_prob": sorted(known)}


def unknown(query: Query, reason: str) -> Result:
    """An open answer with `reason`, which is kept as a note if the largest swing decides the question."""
    return Result(query.name, Verdict.UNKNOWN, reason, notes=(reason,))


def _of_rows(one: Audited) -> dict[str, Any]:
    """The record's fields about rows that flip. A row flips down if it is the first point, and up if it is the second point. If
    no input is an answer, no row flips, whether or not all of its values were tried.
    """
    rows, order, sides = one.rows, one.rows.order(), one.rows.sides()
    known = {
        "rows": len(rows),
        "rows_flipped": len(order),
        "rows_complete": rows.complete or (one.result.verdict is Verdict.NONE and not len(order)),
        "flipped_rows": rows.index[order[:LISTED]].tolist(),
    }
    if sides is not None:
        known["rows_flipped_down"], known["rows_flipped_up"] = (int(side[order].sum()) for side in sides)
    return known


def _row_labels(query: ResolvedQuestion, row: FloatArray) -> dict[str, Any]:
    """The values of a row in the user's own labels."""
    space = query.query.space
    return {
        name: label_of(domain, float(grid.number_type.cast(value)), grid.number_type.dtype)
        for name, domain, grid, value in zip(space.names, space.domains, space.grid, row, strict=True)
    }


def _swing_part(question: ResolvedQuestion, result: Result) -> dict[str, Any]:
    """The largest swing of typical inputs, its bound, and the pair that reaches it."""
    known, full = result.objective, record(question.query, result)
    return {
        "max_swing": None if known is None else known.value,
        "max_swing_bound": None if known is None else known.bound,
        "worst": None if full.get("points") is None else {name: full[name] for name in ("points", "scores")},
    }


def exact_bound(swing: Result, leaves: float) -> Fraction:
    """An upper bound on all swings: the bound of the leaves, rounded upwards, or the bound of an exact search.

    A search reports its bound as a float after a few roundings of half a unit each; the rounding errors are added to the bound.
    Bounds of rounding solvers are not used, because they prove nothing without a tolerance.
    """
    bound = None if swing.objective is None or swing.backend not in _EXACT else swing.objective.bound
    return (
        Fraction(leaves)
        if bound is None
        else min(Fraction(leaves), Fraction(bound) + abs(Fraction(bound)) * _ROUNDINGS)
    )


def needed_swing(shape: FlipQuestion, query: ResolvedQuestion) -> Fraction:
    """An almost tight lower bound on the required swing: the swing of the margin in any pair that answers the question."""
    average = query.query.models[shape.model].ensemble.average
    if shape.swing is not None:
        return shape.swing.enclose(_BITS)[0] / average
    assert shape.high is not None
    assert shape.low is not None
    return (shape.high + -shape.low).enclose(_BITS)[0] / average


_TICK = 0.05
"""Seconds between two checks of the clock."""
_TOLD = ("rows", "loss", "loss_before", "loss_after", "auc_before", "auc_after", "decisions_changed")


def check_mending(table: Table, options: AuditOptions) -> None:
    """Raises UsageError if prices of repairs are requested but the rows have no labels."""
    if options.test is not None and not options.repair_gap:
        raise UsageError(
            "--test has the rows for prices of repairs, and no repair is requested", remedy="add --repair-gap 0.1"
        )
    if options.repair_gap and table.label is None:
        raise UsageError("--repair-gap needs labelled rows for prices", remedy="name the label column: --label y")


def mending(asked: Asking[AuditOptions], records: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """The prices of repairs: one record for every set of features with a verified pair; if some of these sets are protected,
    only for the protected sets. If a repair fails, its record states the reason.
    """
    assert asked.table is not None
    found = [tuple(one["varied"]) for one in records if one["verdict"] == "found"]
    protected = [tuple(one["varied"]) for one in records if one.get("protected")]
    sets = list(dict.fromkeys(s for s in found if s in protected or not protected))
    tables = (_every_second(asked.table, 0), _every_second(asked.table, 1))
    if asked.options.test is not None:
        tables = (asked.table, align_table(asked.model, cast("Table", asked.options.test)))
    mended = []
    for varied in sets:
        if asked.stop.is_set():
            break
        mended.append(
            answered(
                f"repairing {', '.join(varied)}",
                partial(_mended, asked, tables, varied),
                partial(_open, varied),
            )
        )
    return mended


def _mended(asked: Asking[AuditOptions], tables: tuple[Table, Table], varied: tuple[str, ...]) -> dict[str, Any]:
    """The price of a repair for one set of features, in the time limit; the repaired file's promise is proved again."""
    assert asked.table is not None
    assert asked.table.label is not None
    repair, audit = study_of("repair"), asked.options
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
    threading.Thread(target=_end, args=(over, asked.stop, audit.time_limit), daemon=True).start()
    try:
        # Messages about labels name rows of the whole table, and not of every second row.
        labelled(asked.model, align_table(asked.model, asked.table), asked.table.label)
        (one,) = repair.asked(Asking((asked.model,), tables[0], options, over)).records
    except TreesensError as error:
        return _open(varied, str(error).replace("\n  help:", ";"))
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
    """Stops a repair when its time is up or the audit is stopped. Returns when the repair has ended."""
    end = time.monotonic() + seconds
    while not over.wait(_TICK):
        if stop.is_set() or time.monotonic() > end:
            over.set()


def _open(varied: tuple[str, ...], reason: str) -> dict[str, Any]:
    return {"varied": list(varied), "method": None, "proved": False, "reason": reason}


def _every_second(table: Table, first: int) -> Table:
    """Every second row of a table, from row `first` on."""
    columns = {name: column[first::2] for name, column in table.columns.items()}
    return replace(table, columns=columns, rows=len(range(first, table.rows, 2)), sha256=None)
