"""Many questions of one shape: instances (model, varied features, gap), run on backends and pipelines, kept in JSON lines.

An instance is a JSON object with `model` (a name or path), `feature` (index or name) or `features` (a list), and one of
`margin`, `gap`, or `from`, `to` and `factor`; `verdict` is what is known. Every answer is one line, written as soon as it
is there: a run that was interrupted goes on where it stopped.
"""

from __future__ import annotations

import json
import resource
import threading
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from treesens.compiler.result import Result, Verdict
from treesens.engine import Options, answer
from treesens.errors import DataError
from treesens.frontends.base import LoadedModel
from treesens.frontends.query import BoundQuery, bind
from treesens.frontends.registry import load
from treesens.grammar.parser import parse

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


def bound_questions(instances: list[Instance], folder: Path) -> Iterator[tuple[Instance, BoundQuery]]:
    """The questions of instances, grouped by model so that every model is loaded once."""
    by_model: dict[str, list[Instance]] = {}
    for instance in instances:
        by_model.setdefault(instance.model, []).append(instance)
    for name, mine in by_model.items():
        path = model_path(name, folder)
        model = load(path)
        text = "\n".join([f'model m from "{path.name}"', *(x.sens(f"q{i}", model) for i, x in enumerate(mine))])
        loaded = {path.name: model}
        bound = bind(
            parse(text, f"<instances of {name}>"),
            path.parent,
            load_model=lambda place, _format, loaded=loaded: loaded[place.name],  # type: ignore[misc]
        )
        yield from zip(mine, bound.queries, strict=True)


def cpu_seconds() -> float:
    """CPU time of this process and of its finished children."""
    usages = (resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return sum(u.ru_utime + u.ru_stime for u in usages)


def run(
    instances: list[Instance],
    settings: list[Setting],
    folder: Path,
    output: Path,
    options: Options,
    *,
    native: bool = True,
    stop: threading.Event | None = None,
    on_answer: Callable[[dict[str, Any]], None] | None = None,
) -> list[dict[str, Any]]:
    """Answers every instance on every setting, appends to `output`, and returns all records, old ones included."""
    from dataclasses import replace

    records = read_records(output)
    done = {(r["key"], r["backend"], r["pipeline"]) for r in records}
    left = [x for x in instances if any((x.key, s.backend, s.pipeline) not in done for s in settings)]
    output.parent.mkdir(parents=True, exist_ok=True)
    with output.open("a") as file:
        for instance, question in bound_questions(left, folder):
            for setting in settings:
                if stop is not None and stop.is_set():
                    return records
                if (instance.key, setting.backend, setting.pipeline) in done:
                    continue
                mine = replace(
                    options,
                    backend=setting.backend,
                    pipeline=setting.pipeline,
                    native=[m.margins for m in question.models] if native else None,
                )
                before = cpu_seconds()
                result = answer(question.query, mine, stop=stop)
                if stop is not None and stop.is_set() and result.verdict is Verdict.UNKNOWN:
                    return records  # interrupted in the middle: asked again next time
                record = _record(instance, setting, result, cpu_seconds() - before, options.time_limit)
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
        "proof": result.proof,
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
