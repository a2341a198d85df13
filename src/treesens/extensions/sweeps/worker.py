"""Answers one question, or one part of it, in a worker process. Documents are opened once per process; only the most recently
used documents are kept. The task for a part asks for an answer, for one better than a known answer, or for a certificate.
"""

from __future__ import annotations

import hashlib
import os
import platform
import sys
import tempfile
import threading
import time
import traceback
from collections import OrderedDict
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np

from treesens.binder.file import Asked, ResolvedQuestion
from treesens.binder.session import Session
from treesens.compiler.base.budget import Budget, StopEvent
from treesens.compiler.base.folders import Content, read_content, write_content
from treesens.compiler.query.query import AtLeast, Query
from treesens.compiler.result import Result, Verdict
from treesens.errors import DataError, TreesensError, told
from treesens.extensions.certify.produce import beyond, refutation
from treesens.extensions.certify.statement import NoCertificate, remember_file
from treesens.extensions.sweeps.order import MODELS_AT_A_TIME
from treesens.extensions.sweeps.parts import Part, within
from treesens.records.questions import Document, file_digest, open_session
from treesens.runtime.child import Parent
from treesens.runtime.fork_server import cpu_seconds
from treesens.solve.conclude import conclude_found, leave_open
from treesens.solve.options import Options
from treesens.solve.question import answer, answer_question, with_certificates
from treesens.values.verify import Witness, verify_values

KEPT = MODELS_AT_A_TIME + 2
IDLE_SECONDS = 300.0
"""Seconds without a task after which a process ends."""

Points = tuple[tuple[float | None, ...], ...]
"""The values of a pair, per point and feature; None is missing."""


@dataclass(frozen=True)
class Shipment:
    """A document for transport: with paths if workers can read local files, otherwise with the file contents."""

    document: Document
    contents: Mapping[str, Content] | None = None


def ship(document: Document, remote: bool) -> Shipment:
    """A shipment of the document, with file contents if workers are `remote`."""
    if not remote:
        # Processes persist between sweeps, and the current folder may have changed since they started.
        return Shipment(replace(document, base=str(Path(document.base).absolute())))
    return Shipment(document, {path: read_content(Path(document.base) / path) for path, _ in document.files})


@dataclass(frozen=True)
class Task:
    """One question for a worker. `try_first` is a pair to try first; it answers the harder question named `tried_of`."""

    key: str
    document: str
    question: str
    options: Options
    try_first: Points | None = None
    tried_of: str = ""
    deadline: float | None = None
    """Wall-clock time (`time.time()`) at which the whole sweep ends; an answer cut short at this time is marked `clipped`."""
    record: bool = True
    bare: bool = False
    """True for measurements: only the engine runs, without searches in rows of tables and without regions."""
    regions: bool = True
    """True if pairs are returned with their region even without a table (with a table, regions are always returned)."""
    part: PartTask | None = None
    """The task for a part of the question; None for the whole question."""


@dataclass(frozen=True)
class Outcome:
    """The outcome of a task: a result or a failure. `rss` is the memory in bytes after the question; `cpu` is in seconds."""

    key: str
    result: Result | None = None
    record: dict[str, Any] = field(default_factory=dict)
    failure: str = ""
    own_fault: bool = False
    """True if the failure is an internal error, not an error in the input or an error of a solver."""
    clipped: bool = False
    implied_by: str | None = None
    cpu: float = 0.0
    rss: int = 0
    worker: str = ""
    attempts: int = 1
    packed: Packed | None = None
    """The certificate of a part, if requested."""

    @property
    def why(self) -> str:
        """The failure in one line: the first line of a message (a remedy may follow), or the last line of a traceback."""
        lines = [line for line in self.failure.splitlines() if line.strip()]
        return lines[-1 if self.own_fault else 0].strip() if lines else "a worker was lost"


_open: OrderedDict[str, tuple[Session, dict[str, Asked]]] = OrderedDict()
_lock = threading.Lock()
_warmed: set[str] = set()
"""Documents whose libraries have been loaded."""


def answer_task(shipment: Shipment, task: Task, stop: StopEvent | None = None) -> Outcome:
    """Answers one question. Every error becomes a failure, never a verdict."""
    try:
        made = _answer(shipment, task, stop)
    except TreesensError as error:
        made = Outcome(task.key, failure=str(error), own_fault=error.exit_code == 6)
    except MemoryError:
        made = Outcome(task.key, failure="out of memory")
    except Exception:  # noqa: BLE001 (one question must not end a long run; it is recorded as unanswered)
        made = Outcome(task.key, failure=traceback.format_exc(), own_fault=True)
    return replace(made, rss=resident(), worker=f"{platform.node()}:{os.getpid()}")


def answer_tasks(parent: Parent) -> None:
    """Runs in a local worker: answers tasks until the worker has been idle for some minutes."""
    while (asked := parent.receive(IDLE_SECONDS)) is not None:
        parent.send(answer_task(*asked))


def _answer(shipment: Shipment, task: Task, stop: StopEvent | None) -> Outcome:
    session, names = open_shipment(shipment)
    if task.question not in names:
        raise DataError(f"the document has no question `{task.question}`", place=shipment.document.name)
    query = session.question(names[task.question])
    limit = task.options.time_limit
    left = limit if task.deadline is None else max(0.0, min(limit, task.deadline - time.time()))
    options = replace(query.replayed(task.options), time_limit=max(left, 0.001))
    if task.bare and task.document not in _warmed:
        _warmed.add(task.document)
        _warm(session, options)
    budget = options.budget(stop)
    before = cpu_seconds()
    if task.part is not None and task.part.certify:
        packed = certify_part(query.query, task.part, budget)
        return Outcome(task.key, packed=packed, cpu=cpu_seconds() - before)
    implied = _tried(query, task, options) if task.try_first is not None else None
    if implied is not None:
        result = implied
    elif task.part is not None:
        result = answer_part(query.query, task.part, options, budget)
    elif task.bare or not (task.regions or query.tables or query.rows):
        first = budget if options.certificates is None else budget.share(0.5)
        result = with_certificates(query.query, answer(query.query, options, first), options, budget)
    else:
        result = answer_question(query, options, budget)
    cpu = cpu_seconds() - before
    return Outcome(
        task.key,
        result,
        _record(query, result, task) if task.record else {},
        clipped=left < limit and result.verdict is Verdict.UNKNOWN,
        implied_by=task.tried_of if implied is not None else None,
        cpu=cpu,
    )


def _warm(session: Session, options: Options) -> None:
    """Loads the library and the models, so that loading is not charged to the first question of a benchmark."""
    if options.library_predict is None:
        return
    for model in session.models.values():
        with suppress(Exception):  # a library that fails here also fails in the replay, which reports the error
            model.margins(np.zeros((1, model.ensemble.n_features)))


def _record(query: ResolvedQuestion, result: Result, task: Task) -> dict[str, Any]:
    from treesens.records.answers import record

    return record(query.query, result, seed=task.options.seed, data=query.known_tables())


def _tried(query: ResolvedQuestion, task: Task, options: Options) -> Result | None:
    """The pair of a harder question as an answer to this question, verified like any other answer."""
    assert task.try_first is not None
    start = time.perf_counter()
    values = np.array([[np.nan if v is None else v for v in point] for point in task.try_first])
    seen = verify_values(query.query, values, library_predict=options.library_predict)
    if not isinstance(seen, Witness):
        return None
    seconds = {"verify": time.perf_counter() - start}
    pair = leave_open(query.name, witness=seen, backend=options.backend, pipeline=options.pipeline, seconds=seconds)
    return conclude_found(pair, f"verified: the pair of `{task.tried_of}`")


def open_shipment(shipment: Shipment) -> tuple[Session, dict[str, Asked]]:
    """The session of a document, and its questions by name, from the cache of this process if possible."""
    digest = shipment.document.digest
    with _lock:
        if digest not in _open:
            session = _session(shipment)
            _open[digest] = session, {asked.name: asked for asked in session.askable()}
            while len(_open) > KEPT:
                _open.popitem(last=False)
        _open.move_to_end(digest)
        return _open[digest]


def _session(shipment: Shipment) -> Session:
    from treesens.grammar.tree import ast

    document = shipment.document
    file = document.file()
    if shipment.contents is None:
        base = Path(document.base)
        for path, known in document.files:
            if file_digest(base / path) != known:
                raise DataError(
                    "the file has changed since the sweep began", place=path, remedy="start the sweep again"
                )
        return open_session(file, base, trust_pickle=document.trust_pickle)
    # The sender's paths are invalid here, so the contents are written to a folder that exists while they are read.
    with tempfile.TemporaryDirectory(prefix="treesens-") as folder:
        places, models = {}, {d.path.value for d in file.declarations if isinstance(d, ast.Model)}
        for path, known in document.files:
            places[path] = Path(folder) / known / Path(path).name
            places[path].parent.mkdir(exist_ok=True)
            content = shipment.contents[path]
            write_content(places[path], content)
            if path in models and isinstance(content, bytes):
                remember_file(content)
        return open_session(_relocated(file, places), Path(folder), trust_pickle=document.trust_pickle)


def _relocated(file: Any, places: Mapping[str, Path]) -> Any:
    """The syntax tree with new paths for its files; positions in the text are those of the original tree."""
    from treesens.grammar.tree import ast

    def moved(item: ast.Declaration) -> ast.Declaration:
        if isinstance(item, ast.Model | ast.Data):
            return replace(item, path=replace(item.path, value=str(places[item.path.value])))
        return item

    return replace(file, declarations=tuple(moved(item) for item in file.declarations))


def resident() -> int:
    """The memory of this process in bytes (the peak memory if the system does not report the current memory)."""
    try:
        pages = int(Path("/proc/self/statm").read_text().split()[1])
    except OSError:
        return _peak()
    return pages * os.sysconf("SC_PAGE_SIZE")


def _peak() -> int:
    """The peak memory in bytes; 0 if the system does not report it."""
    try:
        import resource
    except ImportError:  # Windows
        return 0
    peak = int(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)
    return peak if sys.platform == "darwin" else peak * 1024


@dataclass(frozen=True)
class PartTask:
    """`beyond` is the limit that the objective must exceed, in units of its form; None without an objective or a known value.
    With `certify`, the task is to make a certificate that the part has no answer.
    """

    part: Part
    beyond: Fraction | None = None
    certify: bool = False


@dataclass(frozen=True)
class Packed:
    """A certificate for transport, or the reason why no certificate exists; times are in seconds."""

    content: bytes = b""
    reason: str = ""
    left_out: tuple[str, ...] = ()
    produced_in: float = 0.0
    checked_in: float = 0.0

    @property
    def sha256(self) -> str:
        return hashlib.sha256(self.content).hexdigest()


def part_of(query: Query, task: PartTask) -> tuple[Query, tuple[AtLeast, ...]]:
    """The question about a part, and the row that requires an improvement on the known answer, if an answer is known."""
    bare, rows = (replace(query, objective=None), ()) if task.beyond is None else beyond(query, task.beyond)
    return within(replace(bare, objective=None), task.part), rows


def answer_part(query: Query, task: PartTask, options: Options, budget: Budget) -> Result:
    """The result of the search for an answer in a part."""
    asked, rows = part_of(query, task)
    return answer(replace(asked, constraints=(*asked.constraints, *rows)), options, budget)


def certify_part(query: Query, task: PartTask, budget: Budget) -> Packed:
    """The certificate that a part has no answer, or the reason why no certificate exists."""
    asked, rows = part_of(query, task)
    try:
        made = refutation(asked, rows, budget=budget)
    except NoCertificate as reason:
        return Packed(reason=str(reason))
    except Exception as error:  # noqa: BLE001 - every kind of error becomes a typed one here
        failed = told(error, f"a certificate for a part of {query.name}")
        return Packed(reason=f"error[{failed.code}]: certificate: {failed.message}")
    left_out = tuple(made.document["about"]["left_out"])
    return Packed(made.packed(), "", left_out, made.produced_in, made.checked_in)
