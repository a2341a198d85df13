"""An experiment: items on settings, run by the runner of `treesens bench`, with its table and its cactus plot.

Times of different settings are compared on the same questions only. Items belong to blocks, and a block counts once all of it
is answered on every setting: a run that its budget ends early compares on fewer blocks, not on uneven ones.
"""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cache, cached_property
from pathlib import Path
from typing import Any

from benchmarks.markdown import markdown_table

from treesens.backends.base import get_backend
from treesens.errors import UsageError
from treesens.extensions.sweeps.executor import INLINE, Executor
from treesens.extensions.sweeps.instances import Instance, Setting, contradictions, model_path, read_records, run
from treesens.extensions.sweeps.report import cactus_svg, summary
from treesens.extensions.sweeps.settings import Settings
from treesens.report.show import tracker
from treesens.runtime.interruption import Interruption
from treesens.solve.options import Options

Record = dict[str, Any]
TIME = "measured"
"""Which time counts: making the encoding, and the solver with the start of its process. Not replaying a pair, which is the same
for all, and for the first pair of a process includes importing the model's library."""
NOTICEABLE = 1.05
"""Ratios below are noise: they bear no claim out."""
ENGINE = Setting("native", "default")
"""The native engine compiles for itself: it has no pipelines to choose from."""


@dataclass(frozen=True)
class Item:
    """A question; those with one `block` are compared with each other, `tag` says which of them it is."""

    instance: Instance
    block: str
    tag: str = ""


@dataclass(frozen=True)
class Experiment:
    """`variants` names pipelines (text -> name); `baseline` is the variant, or the tag, that ratios refer to."""

    name: str
    title: str
    folder: Path
    items: list[Item]
    settings: list[Setting]
    baseline: str
    variants: Mapping[str, str] = field(default_factory=dict)

    @cached_property
    def item(self) -> dict[str, Item]:
        """Items by the key of their instance."""
        return {i.instance.key: i for i in self.items}

    @property
    def questions(self) -> int:
        """How many there are on all settings; budgets are divided by it."""
        return len(self.items) * len(self.settings)

    def on(self, backends: frozenset[str] | None) -> Experiment:
        """The same on some of its backends; UsageError if it has none of them."""
        settings = [s for s in self.settings if backends is None or s.backend in backends]
        if not settings:
            known = ", ".join(dict.fromkeys(s.backend for s in self.settings))
            raise UsageError(f"{self.name} has none of these backends", remedy=f"choose from {known}")
        return replace(self, settings=settings)

    def line(self, record: Record) -> tuple[str, str, str]:
        """Solver, pipeline and tag of a record: what tables and findings tell apart."""
        variant = "" if record["backend"] == ENGINE.backend else record["pipeline"]
        return record["backend"], self.variants.get(variant, variant), self.item[record["key"]].tag

    def label(self, record: Record) -> str:
        """The same in words."""
        return " ".join(filter(None, self.line(record)))


@dataclass(frozen=True)
class Measured:
    """What an experiment has come to: the records of whole blocks, how many questions have no answer yet, remarks."""

    experiment: Experiment
    records: list[Record]
    unasked: int
    remarks: list[str]
    contradictions: list[str]

    def rows(self) -> dict[tuple[str, str, str], dict[str, Any]]:
        """Per solver, pipeline and tag: solved, PAR2 and the rest of `summary`."""
        lines = {self.experiment.label(r): self.experiment.line(r) for r in self.records}
        return {lines[row["setting"]]: row for row in summary(self.records, TIME, self.experiment.label)}

    def ratio(self, line: tuple[str, str, str], base: tuple[str, str, str]) -> float | None:
        """How many times shorter the PAR2 of `line` is than that of `base`; None if one is unknown, or that of `line` is 0."""
        rows = self.rows()
        if base not in rows or line not in rows or not rows[line]["par2"]:
            return None
        return float(rows[base]["par2"] / rows[line]["par2"])

    def markdown(self) -> str:
        """The table, with what was left out and why."""
        base, table = self.experiment.baseline, []
        for line, row in self.rows().items():
            solver, variant, tag = line
            reference = (solver, variant, base) if tag else (solver, base, "")
            kept = {k: row[k] for k in ("instances", "solved", "found", "none", "par2", "median")}
            table.append({"setting": row["setting"], **kept, f"times faster than {base}": self.ratio(line, reference)})
        blocks = len({self.experiment.item[r["key"]].block for r in self.records})
        lines = [f"## {self.experiment.title}", "", markdown_table(table) or "No block is complete yet.", ""]
        lines += [
            f"{blocks} complete block{'s' * (blocks != 1)}; {self.unasked} questions not asked yet.",
            *self.remarks,
        ]
        lines += [f"Contradiction: {text}" for text in self.contradictions]
        return "\n".join([*lines, "", f"![cactus plot]({self.experiment.name}.svg)", ""])

    def plot(self) -> str:
        """Instances solved within a time, one curve per line of the table."""
        title = self.experiment.title.partition(" (")[0]
        return cactus_svg(self.records, TIME, title, self.experiment.label)


def settings_of(backends: list[str], pipelines: list[str]) -> list[Setting]:
    """Every backend on every pipeline; the native engine once."""
    pairs = [Setting(b, p) for b in backends if b != ENGINE.backend for p in pipelines]
    return pairs + [ENGINE] * (ENGINE.backend in backends)


@cache
def missing(backend: str) -> str | None:
    """Why a backend does not work here."""
    return get_backend(backend).available()


@cache
def digest(path: Path) -> str:
    """SHA-256 of a model's file."""
    return hashlib.sha256(path.read_bytes()).hexdigest()


def measure(
    experiment: Experiment,
    output: Path,
    options: Options,
    jobs: int,
    budget: float,
    facts: Record,
    interruption: Interruption,
) -> Measured:
    """Goes on with an experiment for at most `budget` seconds and says where it stands."""
    old = {r["limit"] for r in read_records(output)} - {options.time_limit}
    if old:
        raise UsageError(
            f"{output} was measured with {min(old):g} s per question, not {options.time_limit:g} s",
            remedy="give another folder with --output",
        )
    stop, over = threading.Event(), threading.Event()

    def watch() -> None:
        if interruption.event.wait(budget) or not over.is_set():
            stop.set()

    def stamped(instance: Instance) -> Record:
        return {"run": facts, "model_sha256": digest(model_path(instance.model, experiment.folder))}

    settings = [s for s in experiment.settings if missing(s.backend) is None]
    instances = [i.instance for i in experiment.items]
    threading.Thread(target=watch, daemon=True).start()
    with tracker(experiment.name, len(instances) * len(settings)) as advance:
        records = run(
            instances,
            settings,
            experiment.folder,
            output,
            Settings(time_limit=options.time_limit, seed=options.seed, replay="library"),
            executor=INLINE if jobs == 1 else Executor("local", jobs),
            stop=stop,
            on_answer=lambda record: advance(f"{record['model']} {record['clause']} on {record['backend']}"),
            facts=stamped,
        )
    over.set()
    return standing(experiment, settings, records)


def standing(experiment: Experiment, settings: list[Setting], records: list[Record]) -> Measured:
    """The records that count: blocks with an answer to everything, without what a licence is too small for."""
    wanted = {(i.instance.key, s.backend, s.pipeline) for i in experiment.items for s in settings}
    mine = {(r["key"], r["backend"], r["pipeline"]): r for r in records}
    mine = {key: mine[key] for key in mine if key in wanted}
    block = {key: item.block for key, item in experiment.item.items()}
    partial = {block[key] for key, _, _ in wanted - set(mine)}
    too_large = {(block[k], b) for (k, b, _), r in mine.items() if r["termination"] == "licence"}
    counted = [
        record | {TIME: record["build"] + record["solve"]}
        for (key, backend, _), record in mine.items()
        if block[key] not in partial and (block[key], backend) not in too_large
    ]
    counted.sort(key=lambda r: settings.index(Setting(r["backend"], r["pipeline"])))
    remarks = [
        f"{b}: left out, {why}." for b in dict.fromkeys(s.backend for s in experiment.settings) if (why := missing(b))
    ]
    for backend in dict.fromkeys(b for _, b in too_large):
        number = len({k for k, b in too_large if b == backend})
        remarks.append(
            f"{backend}: {number} of {len(set(block.values()))} blocks are too large for its licence; not in its rows."
        )
    return Measured(experiment, counted, len(wanted) - len(mine), remarks, contradictions(mine.values()))


@dataclass(frozen=True)
class Finding:
    """A claim of the paper, whether the records bear it out (None: there are too few), and the figures."""

    claim: str
    met: bool | None
    figures: str

    def __str__(self) -> str:
        word = {True: "met", False: "UNMET", None: "open"}[self.met]
        return f"{word}: {self.claim}: {self.figures}"
