"""The audit: every feature (or set of features) and every gap over one model and one table, without a question file.

For a set F one exact sweep over the rows answers all gaps at once: a row that flips is a verified pair at distance 0 from the
data. If no row flips a search goes on from the smallest gap: a pair at a larger gap answers smaller ones, a proof at a
smaller gap answers larger ones, and so does a bound on the largest swing, which is searched for in the time that is left.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, field, replace
from fractions import Fraction
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from treesens.binder.file import ResolvedQuestion, bind
from treesens.compiler.base.arrays import FloatArray
from treesens.compiler.base.budget import Budget
from treesens.compiler.base.diagnostics import Diagnostics, did_you_mean
from treesens.compiler.base.interruption import Hurry
from treesens.compiler.model import Task
from treesens.compiler.result import NearestRow, Proof, Result, Verdict, Witness
from treesens.compiler.verify import LibraryPredict, verify_values
from treesens.data.alignment import align_table, distinct
from treesens.data.flips import MOST_COMBINATIONS, FlipQuestion, Flips, flip_question, swing_bound
from treesens.data.tables import Table
from treesens.errors import DataError, UsageError
from treesens.frontends.base import LoadedModel
from treesens.grammar.tree import ast
from treesens.report.records import label_of, record
from treesens.solve.data_rows import hints_of, locate, order_of_rows, sweep_rows, table_in_play, witness_among_rows
from treesens.solve.options import Options
from treesens.solve.question import answer, with_certificates
from treesens.studies.classes import second_class

_Done = TypeVar("_Done")

LISTED = 100
"""Numbers of flipping rows that a record lists, the clearest first."""

WALKS_PER_SECOND = 60_000_000
"""Walks through a tree for every second of the limit: what the sweep of all rows takes, and several times as much."""

LEAST_COMBINATIONS = 16
"""Combinations of values of several features that are tried for every row in any case."""

_MOMENT = 0.2
"""Fewest seconds for one search of an audit."""
_SEARCH_SHARE = 0.6
"""Share of the time that is left which one gap may take; the rest is for other gaps and for the largest swing."""


@dataclass(frozen=True)
class Gap:
    """A gap as given: `gap` in probability (or in the value of a regressor), or `margin` in raw score."""

    kind: str
    text: str

    @property
    def clause(self) -> dict[str, Any]:
        """As the field of the node `sensitive`."""
        return {self.kind: ast.Number(Fraction(self.text))}

    @property
    def value(self) -> float:
        return float(self.text)


@dataclass
class AuditOptions:
    """`time_limit` in seconds for each set of features; `replay_in_library` replays witnesses in the library itself.

    Features in `real` take fractions although their columns hold whole numbers.
    """

    time_limit: float = 5.0
    jobs: int = 2
    seed: int = 0
    replay_in_library: bool = False
    real: Sequence[str] = ()
    certificates: Path | None = None


@dataclass
class Questions:
    """The questions about one set of features: per gap one for a pair and one for the nearest pair, and the largest swing."""

    varied: tuple[str, ...]
    gaps: list[tuple[Gap, ResolvedQuestion]]
    near: list[ResolvedQuestion]
    swing: ResolvedQuestion


@dataclass
class Audit:
    """Records per (varied set, gap), in the order of the request, with what they are about."""

    model: LoadedModel
    table: Table
    records: list[dict[str, Any]] = field(default_factory=list)
    interrupted: bool = False
    seconds: float = 0.0
    warnings: tuple[str, ...] = ()


_EXAMPLES = {"gap": "0.1 or 0.05,0.1", "margin": "1 or 0.5,1"}


def gaps_of(gaps: Sequence[str], margins: Sequence[str]) -> list[Gap]:
    """Gaps from their texts, ascending. UsageError for text that is no positive number."""
    kind, texts = ("gap", gaps) if gaps else ("margin", margins)
    if gaps and margins:
        raise UsageError("give either gaps (probability) or margins (raw score)")
    result = []
    for text in texts:
        try:
            value = Fraction(text)
        except ValueError:
            raise UsageError(f"`{text}` is no number", remedy=f"write e.g. {_EXAMPLES[kind]}") from None
        if value <= 0:
            raise UsageError(f"the gap `{text}` is not positive", remedy=f"write e.g. {_EXAMPLES[kind]}")
        result.append(Gap(kind, text))
    return sorted(result, key=lambda g: Fraction(g.text))


def questions_of(
    model: LoadedModel,
    table: Table,
    varied: Sequence[Sequence[str]],
    gaps: Sequence[Gap],
    diagnostics: Diagnostics,
    real: Sequence[str] = (),
) -> list[Questions]:
    """All questions of an audit, bound once: they share one space of cells and one table."""
    ensemble = model.ensemble
    label = second_class(
        ensemble,
        "the audit takes binary classifiers and regressors",
        "ask a multiclass model in a file: `sensitive m to f from A to B`",
    )
    if label is not None and any(g.kind == "margin" for g in gaps):
        raise UsageError(
            "the scores of this model are probabilities, which have no margin around 0",
            remedy="give --gap, e.g. 0.1,0.2",
        )
    if ensemble.task is Task.REGRESSION and any(g.kind == "margin" for g in gaps):
        raise UsageError("a regressor has no margin around 0", remedy="give --gap in units of its value")
    for name in (name for group in varied for name in group):
        if name not in ensemble.feature_names:
            raise UsageError(
                f"the model has no feature `{name}`", remedy=did_you_mean(name, ensemble.feature_names) or ""
            )
    near = ast.Near(ast.Name("d"), "distance")
    queries: list[ast.Query] = []
    for number, group in enumerate(varied):
        names = features_node(group)
        for kind, nearness in (("q", None), ("n", near)):
            for i, gap in enumerate(gaps):
                body = ast.Sensitive(ast.Name("m"), names, near=nearness, **gap.clause)
                queries.append(ast.Query(ast.Name(f"{kind}{number}_{i}"), body))
        queries.append(ast.Query(ast.Name(f"s{number}"), _largest_swing(names, label)))
    bound = bind(
        ast.File((*declarations_of(model, real, has_table=True), *queries)),
        Path(),
        load_model=lambda _path, _format: model,
        load_table=lambda _path, _label, _rows: table,
        diagnostics=diagnostics,
    )
    asked = iter(bound.queries)
    return [
        Questions(tuple(group), [(gap, next(asked)) for gap in gaps], [next(asked) for _ in gaps], next(asked))
        for group in varied
    ]


def _largest_swing(varied: ast.Features, label: ast.Label | None) -> ast.Find:
    a, b = ast.Name("a"), ast.Name("b")
    difference = ast.Sum((ast.Margin(a, label), ast.Negate(ast.Margin(b, label))))
    alike = ast.PointsEqual(a, b, varied)
    return ast.Find((ast.Point(a), ast.Point(b)), (alike,), ast.Objective("maximize", difference))


def features_node(names: Sequence[str]) -> ast.Features:
    """A set of features; a node holds any name, also one that no text can."""
    return ast.Features(tuple(ast.Name(name) for name in names))


def declarations_of(model: LoadedModel, real: Sequence[str], *, has_table: bool) -> tuple[ast.Declaration, ...]:
    """A model `m`, a table `d` that the domains come from, and features that take fractions. UsageError for unknown names."""
    known = model.ensemble.feature_names
    for name in real:
        if name not in known:
            raise UsageError(f"the model has no feature `{name}`", remedy=did_you_mean(name, known))
    table = (ast.Data(ast.Name("d"), ast.Text("d")), ast.DomainFrom(ast.Name("d"))) if has_table else ()
    fractions = tuple(ast.Feature(ast.Name(name), ast.Numeric("real")) for name in real)
    return (ast.Model(ast.Name("m"), ast.Text("m")), *table, *fractions)


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


def sets_of(model: LoadedModel, varied: Sequence[Sequence[str]] | None) -> list[tuple[str, ...]]:
    """The sets of features that are asked for; every feature that some tree asks about by itself if none are named."""
    return [(name,) for name in model.ensemble.used_features] if varied is None else [tuple(group) for group in varied]


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
    questions = questions_of(model, table, groups, gaps, diagnostics, options.real)
    warnings = [item.render() for item in diagnostics] + _unchanging(table, groups)
    result = Audit(model, table, warnings=tuple(warnings))
    halt = stop or threading.Event()
    library_predict = [one_at_a_time(model.margins)] if options.replay_in_library else None
    done: dict[int, list[dict[str, Any]]] = {}
    for number, records in as_finished(
        [_SetAudit(q, options, library_predict, halt).run for q in questions], options.jobs
    ):
        done[number] = records
        if on_record is not None:
            for item in records:
                on_record(item)
    result.records = [item for i in sorted(done) for item in done[i]]
    result.interrupted = halt.is_set()
    result.seconds = time.perf_counter() - start
    return result


def as_finished(tasks: Sequence[Callable[[], _Done]], threads: int) -> Iterator[tuple[int, _Done]]:
    """Runs tasks in threads: the number of each and what it returned, in the order in which they end. Tasks that are not over
    when there is no more time after a Ctrl-C are left to themselves.
    """
    pool = ThreadPoolExecutor(max(1, threads))
    try:
        running: dict[Future[_Done], int] = {pool.submit(task): number for number, task in enumerate(tasks)}
        while running:
            # Short waits: an interruption is handled between them.
            finished, _ = wait(running, timeout=0.2, return_when=FIRST_COMPLETED)
            for future in finished:
                yield running.pop(future), future.result()
    except Hurry:
        pool.shutdown(wait=False, cancel_futures=True)
    except BaseException:
        pool.shutdown(wait=False, cancel_futures=True)
        raise
    else:
        pool.shutdown()


def one_at_a_time(predict: LibraryPredict) -> LibraryPredict:
    """Libraries load lazily and not all predict in several threads at once."""
    lock = threading.Lock()

    def locked(rows: NDArray[np.float64]) -> NDArray[Any]:
        with lock:
            return predict(rows)

    return locked


class _SetAudit:
    """One set of features: the sweep, the largest swing, and every gap."""

    def __init__(
        self,
        questions: Questions,
        options: AuditOptions,
        library_predict: list[LibraryPredict] | None,
        stop: threading.Event,
    ) -> None:
        self.questions = questions
        self.stop = stop
        self.rows: FloatArray = np.zeros((0, 0))
        self.budget = Budget.of(0.0, stop)
        self.limit = options.time_limit
        self.certificates = options.certificates
        self.base = Options(
            backend="native", time_limit=options.time_limit, seed=options.seed, library_predict=library_predict
        )

    def run(self) -> list[dict[str, Any]]:
        if self.stop.is_set():
            return []
        start = time.monotonic()
        first = self.questions.gaps[0][1]
        table = table_in_play(first)
        shape = flip_question(first.query)
        assert table is not None
        assert shape is not None
        self.rows = rows = table[1]
        walks = WALKS_PER_SECOND * self.limit / (max(1, len(rows)) * first.query.models[shape.model].n_trees)
        combinations = max(LEAST_COMBINATIONS, min(MOST_COMBINATIONS, int(walks)))
        found = sweep_rows(first.query, shape, rows, combinations=combinations)
        if len(found) == 0:
            raise DataError("no row of the table lies in the domain", place=table[0])
        self.budget = Budget.of(self.limit, self.stop)
        answers: list[tuple[Gap, ResolvedQuestion, Result]] = []
        for (gap, query), near in zip(self.questions.gaps, self.questions.near, strict=True):
            if self.stop.is_set():
                break
            result = self._answer(query, found, rows, [r for _, _, r in answers])
            if result.verdict is Verdict.FOUND and result.backend != "rows":
                result = self._nearer(near, result)
            answers.append((gap, query, result))
        swing = self._swing(shape, found, rows)
        answers = [(gap, query, self._settled(query, result, swing)) for gap, query, result in answers]
        seconds = time.monotonic() - start
        answers = [(gap, query, self._with_certificates(gap, query, result)) for gap, query, result in answers]
        return [self._record(gap, query, result, found, swing, seconds) for gap, query, result in answers]

    def _with_certificates(self, gap: Gap, query: ResolvedQuestion, result: Result) -> Result:
        name = f"{'_'.join(self.questions.varied)}.{gap.kind}_{gap.text}"
        options = replace(self.base, certificates=self.certificates)
        # The record speaks of the gap, not of the nearest pair that was looked for on the way.
        made = with_certificates(replace(query.query, name=name), replace(result, objective=None), options)
        return replace(result, certificates=made.certificates)

    def _swing(self, shape: FlipQuestion, found: Flips, rows: FloatArray) -> Result:
        query = self.questions.swing.query
        widest = replace(shape, high=None, low=None, swing=_nothing())
        hints = hints_of(query, widest, found, rows)
        part = self.budget.at_least(_MOMENT).within(self.limit / 2)
        result = answer(query, replace(self.base, hints=hints), part)
        if result.objective is None:
            return result
        trivial = swing_bound(query.models[shape.model], shape.features, shape.output)
        known = result.objective.bound
        bound = trivial if known is None else min(known, trivial)
        return replace(result, objective=replace(result.objective, bound=max(bound, result.objective.value)))

    def _answer(self, query: ResolvedQuestion, found: Flips, rows: FloatArray, before: list[Result]) -> Result:
        """Rows first; then what smaller gaps have settled; then a search."""
        shape = flip_question(query.query)
        assert shape is not None
        pair = witness_among_rows(query.query, shape, found, rows, self.base)
        if pair is not None:
            result = Result(query.name, Verdict.FOUND, "verified: a row of the table", witness=pair[1], backend="rows")
            done = locate(query, result, self.base)
            return replace(done, nearest=NearestRow("d", pair[0], 0.0, 0.0))
        for known in before:
            if known.verdict is Verdict.NONE:
                return replace(known, query=query.name, reason=f"none at a smaller gap ({known.reason})")
        hints = hints_of(query.query, shape, found, rows)
        options = replace(self.base, hints=hints)
        part = self.budget.share(_SEARCH_SHARE).at_least(_MOMENT)
        return locate(query, answer(query.query, options, part), options)

    def _nearer(self, query: ResolvedQuestion, result: Result) -> Result:
        """The nearest pair that a share of the time finds, if it is nearer than the one that is known."""
        part = self.budget.share(_SEARCH_SHARE).at_least(_MOMENT)
        found = locate(query, answer(query.query, self.base, part), self.base)
        if found.nearest is None or (result.nearest is not None and result.nearest.distance <= found.nearest.distance):
            return result
        return replace(
            result, witness=found.witness, region=found.region, nearest=found.nearest, objective=found.objective
        )

    def _settled(self, query: ResolvedQuestion, result: Result, swing: Result) -> Result:
        """What the largest swing says about a gap that is still open: its bound is a proof, its pair perhaps an answer."""
        shape = flip_question(query.query)
        if result.verdict is not Verdict.UNKNOWN or shape is None or swing.objective is None:
            return result
        bound = swing.objective.bound
        if bound is not None and bound < needed_swing(shape, query) * (1 - 1e-9):
            reason = f"the largest swing is at most {bound:.6g}"
            return Result(query.name, Verdict.NONE, reason, proof=Proof.BOUND, backend="native")
        if swing.witness is not None:
            again = verify_values(query.query, swing.witness.values, library_predict=self.base.library_predict)
            if isinstance(again, Witness):
                pair = Result(query.name, Verdict.FOUND, "verified", witness=again, backend="native")
                return locate(query, pair, self.base)
        return result

    def _record(
        self, gap: Gap, query: ResolvedQuestion, result: Result, found: Flips, swing: Result, seconds: float
    ) -> dict[str, Any]:
        shape = flip_question(query.query)
        assert shape is not None
        order = order_of_rows(shape, found)
        data = record(query.query, result)
        for name in ("query", "expect", "as_expected", "objective", "attempts", "size", "query_sha256"):
            data.pop(name, None)
        extra: dict[str, Any] = {
            "varied": list(self.questions.varied),
            gap.kind: gap.value,
            "rows": len(found),
            "rows_flipped": len(order),
            "rows_complete": found.complete,
            "flipped_rows": found.index[order[:LISTED]].tolist(),
            "max_swing": None if swing.objective is None else swing.objective.value,
            "max_swing_bound": None if swing.objective is None else swing.objective.bound,
            "seconds": {"set": round(seconds, 6)},
        }
        if result.nearest is not None and data.get("nearest_row"):
            row = self.rows[result.nearest.index]
            least = result.objective.bound if result.objective is not None else 0.0
            data["nearest_row"] = {**data["nearest_row"], "bound_l2": least, "values": row_labels(query, row)}
        if shape.high is not None and shape.low is not None:
            extra["rows_flipped_down"] = int(found.falling(shape.high)[order].sum())
            extra["rows_flipped_up"] = int(found.rising(shape.low)[order].sum())
        return {**extra, **{k: v for k, v in data.items() if k not in extra}}


def columns_of(records: Sequence[dict[str, Any]]) -> dict[str, list[Any]]:
    """The numbers of an audit as columns, one entry per record."""
    kind = "gap" if any("gap" in r for r in records) else "margin"
    near = [r.get("nearest_row") or {} for r in records]
    columns = {"varied": [", ".join(r["varied"]) for r in records], kind: [r[kind] for r in records]}
    for name in ("rows", "rows_flipped", "verdict", "max_swing", "max_swing_bound"):
        columns[name] = [r[name] for r in records]
    return {
        **columns,
        "nearest_row": [n.get("index") for n in near],
        "distance_l2": [n.get("distance_l2") for n in near],
    }


def row_labels(query: ResolvedQuestion, row: FloatArray) -> dict[str, Any]:
    """The values of a row as people read them."""
    space = query.query.space
    return {
        name: label_of(domain, float(grid.number_type.cast(value)), grid.number_type.dtype)
        for name, domain, grid, value in zip(space.names, space.domains, space.grid, row, strict=True)
    }


def _nothing() -> Any:
    from treesens.compiler.query.bounds import LogRational

    return LogRational()


def needed_swing(shape: FlipQuestion, query: ResolvedQuestion) -> float:
    """The swing of the margin that a question asks for at least."""
    average = query.query.models[shape.model].ensemble.average
    if shape.swing is not None:
        return float(shape.swing) / average
    assert shape.high is not None
    assert shape.low is not None
    return float(shape.high + -shape.low) / average
