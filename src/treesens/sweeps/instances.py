"""Many questions of one shape: instances (model, varied features, gap), run on backends and pipelines, kept in JSON lines.

An instance is a JSON object with `model` (a name or path), `feature` (index or name) or `features` (a list), and one of
`margin`, `gap`, or `from`, `to` and `factor`; `verdict` is what is known. Every answer is one line, written as soon as it
is there: a run that was interrupted goes on where it stopped.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

from treesens.compiler.result import Result, Verdict
from treesens.engine import Options
from treesens.errors import DataError
from treesens.frontends.base import LoadedModel
from treesens.frontends.registry import load
from treesens.sweeps.executor import INLINE, Executor
from treesens.sweeps.questions import Document, document_of
from treesens.sweeps.worker import Task, ship

SUFFIXES = ("", ".json", ".ubj", ".txt")


@dataclass(frozen=True)
class Instance:
    """One question about one model, and its verdict where that is known."""

    model: str
    features: tuple[int | str, ...]
    clause: str
    known: str | None = None

    @cached_property
    def key(self) -> str:
        return json.dumps([self.model, list(self.features), self.clause])

    def sens(self, name: str, model: LoadedModel) -> str:
        """The question in the language."""
        names = model.ensemble.feature_names
        varied = ", ".join(f"`{names[f] if isinstance(f, int) else f}`" for f in self.features)
        return f"query {name}: sensitive m to {{{varied}}} {self.clause}"


def read_instances(path: Path) -> list[Instance]:
    """Instances of a JSON lines file. Raises `DataError` with the line."""
    instances = []
    for number, line in enumerate(path.read_text().splitlines(), 1):
        if not line.strip():
            continue
        try:
            instances.append(_instance(json.loads(line)))
        except (ValueError, KeyError, TypeError) as error:
            raise DataError(
                f"not an instance: {error}",
                place=f"{path}:{number}",
                remedy='write e.g. {"model": "adult", "feature": 9, "margin": 0.5}',
            ) from error
    return instances


def _instance(data: dict[str, Any]) -> Instance:
    features = tuple(data["features"]) if "features" in data else (data["feature"],)
    if "margin" in data:
        clause = f"margin {data['margin']}"
    elif "gap" in data:
        clause = f"gap {data['gap']}"
    else:
        clause = f"from {data['from']} to {data['to']} factor {data.get('factor', 1)}"
    return Instance(str(data["model"]), features, clause, data.get("verdict"))


def model_path(name: str, folder: Path) -> Path:
    """The file of a model by name."""
    for suffix in SUFFIXES:
        path = folder / f"{name}{suffix}"
        if path.is_file():
            return path
    raise DataError(f"no model `{name}` in {folder}", remedy="give the folder of the models with --models")


@dataclass(frozen=True)
class Setting:
    """A backend and a pipeline."""

    backend: str
    pipeline: str

    @property
    def label(self) -> str:
        return self.backend if self.pipeline == "default" else f"{self.backend}/{self.pipeline}"


def documents_of(instances: list[Instance], folder: Path) -> dict[str, tuple[Document, dict[str, str]]]:
    """Of every model: one document with all its questions, and the name of each question by the key of its instance."""
    by_model: dict[str, list[Instance]] = {}
    for instance in instances:
        by_model.setdefault(instance.model, []).append(instance)
    found = {}
    for name, mine in by_model.items():
        path = model_path(name, folder)
        model = load(path)
        lines = [f'model m from "{path.name}"', *(x.sens(f"q{i}", model) for i, x in enumerate(mine))]
        document, _ = document_of(f"<instances of {name}>", "\n".join(lines), path.parent)
        found[name] = document, {instance.key: f"q{i}" for i, instance in enumerate(mine)}
    return found


def run(
    instances: list[Instance],
    settings: list[Setting],
    folder: Path,
    output: Path,
    options: Options,
    *,
    native: bool = True,
    executor: Executor = INLINE,
    stop: threading.Event | None = None,
    on_answer: Callable[[dict[str, Any]], None] | None = None,
    facts: Callable[[Instance], dict[str, Any]] = lambda _instance: {},
) -> list[dict[str, Any]]:
    """Answers every instance on every setting, appends to `output`, and returns all records, old ones included.

    `facts` are further fields of the record of an instance.
    """
    known = {x.key: x.known for x in instances if x.known is not None}
    records = [r | {"known": known.get(r["key"], r.get("known"))} for r in read_records(output)]
    done = {(r["key"], r["backend"], r["pipeline"]) for r in records}
    asked = [(x, s) for x in instances for s in settings if (x.key, s.backend, s.pipeline) not in done]
    documents = documents_of(list(dict.fromkeys(x for x, _ in asked)), folder)
    by_key = {json.dumps([x.key, s.backend, s.pipeline]): (x, s) for x, s in asked}
    waiting = iter(by_key.items())

    def take() -> Task | None:
        if stop is not None and stop.is_set():
            return None
        for key, (instance, setting) in waiting:
            document, names = documents[instance.model]
            mine = replace(options, backend=setting.backend, pipeline=setting.pipeline)
            replay = "native" if native else "emulated"
            return Task(key, document.digest, names[instance.key], mine, replay, record=False, bare=True)
        return None

    shipments = {document.digest: ship(document, executor.remote) for document, _ in documents.values()}
    output.parent.mkdir(parents=True, exist_ok=True)
    torn = output.is_file() and not output.read_bytes().endswith(b"\n") and output.stat().st_size > 0
    with output.open("a") as file:
        file.write("\n" if torn else "")  # a line that a kill has cut stays alone
        for outcome in executor.run(take, shipments, options.time_limit, stop):
            instance, setting = by_key[outcome.key]
            result = outcome.result
            if result is None:
                result = Result(outcome.key, Verdict.UNKNOWN, outcome.failure, backend=setting.backend)
            if stop is not None and stop.is_set() and result.verdict is Verdict.UNKNOWN:
                break  # interrupted in the middle: asked again next time
            record = _record(instance, setting, result, outcome.cpu, options.time_limit) | facts(instance)
            records.append(record)
            file.write(json.dumps(record) + "\n")
            file.flush()
            if on_answer is not None:
                on_answer(record)
    return records


def _record(instance: Instance, setting: Setting, result: Result, cpu: float, limit: float) -> dict[str, Any]:
    solve = sum(a.seconds.get("solve", 0.0) for a in result.attempts)
    return {
        "key": instance.key,
        "model": instance.model,
        "features": list(instance.features),
        "clause": instance.clause,
        "backend": setting.backend,
        "pipeline": setting.pipeline,
        "verdict": str(result.verdict),
        "known": instance.known,
        "reason": result.reason,
        "termination": result.attempts[-1].termination if result.attempts else "",
        "proof": result.proof,
        "decided_by": result.backend,
        "rests_on": list(result.rests_on),
        "started": result.started,
        "replay": None if result.witness is None else str(result.witness.replay),
        "build": round(result.seconds.get("build", 0.0), 6),
        "solve": round(solve if setting.backend != "auto" else result.seconds.get("solve", 0.0), 6),
        "total": round(sum(result.seconds.values()), 6),
        "cpu": round(cpu, 6),
        # What the native engine itself took: local search and prover, without building the problem.
        "engine": round(
            sum(
                a.statistics.get("local_seconds", 0.0) + a.statistics.get("prove_seconds", 0.0) for a in result.attempts
            ),
            6,
        ),
        "limit": limit,
        "size": result.size,
    }


def read_records(path: Path) -> list[dict[str, Any]]:
    """Lines of an earlier run; a last line that was cut by a kill is left out."""
    if not path.is_file():
        return []
    records = []
    for line in path.read_text().splitlines():
        try:
            records.append(json.loads(line))
        except ValueError:
            continue
    return records


def contradictions(records: Iterable[dict[str, Any]]) -> list[str]:
    """Instances on which decided verdicts differ from each other or from what is known."""
    seen: dict[str, dict[str, str]] = {}
    for record in records:
        verdicts = seen.setdefault(record["key"], {})
        if record["verdict"] != "unknown":
            verdicts[f"{record['backend']}/{record['pipeline']}"] = record["verdict"]
        if record.get("known") is not None:
            verdicts["known"] = record["known"]
    return [f"{key}: {verdicts}" for key, verdicts in seen.items() if len(set(verdicts.values())) > 1]
