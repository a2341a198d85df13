"""Many questions of one form: instances (model, varied features, gap), run on backends and pipelines, stored as JSON lines.

An instance is a JSON object with `model` (a name or path), `feature` (index or name) or `features` (a list), and one of
`margin`, `gap`, or `from`, `to` and `factor`; or an object with `module`, the path of a `.sir` file or of an exported `.lp`,
`.mps` or `.smt2` file. `verdict` is the known verdict, if any.

Instances are solved like the questions of a sweep, but no answer is derived from another (their questions have no family).
"""

from __future__ import annotations

import itertools
import json
import re
import threading
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from fractions import Fraction
from functools import cached_property, partial
from hashlib import sha256
from pathlib import Path
from typing import Any, Literal, TextIO

from treesens.commands.measure import ONE_RUN, Runs, run_facts
from treesens.compiler.base.files import make_folder, read_text, will_write
from treesens.compiler.ir.files import read_module
from treesens.compiler.ir.text import digest
from treesens.compiler.result import Result, Verdict
from treesens.errors import DataError, UsageError
from treesens.extensions.sweeps.executor import INLINE, Executor
from treesens.extensions.sweeps.run import Measurement, sweep
from treesens.extensions.sweeps.settings import Settings
from treesens.extensions.sweeps.worker import Outcome
from treesens.frontends.base import LoadedModel
from treesens.frontends.registry import load
from treesens.grammar.printing.print_terms import Unwritable, label_text
from treesens.grammar.tree import ast
from treesens.records.answers import certificate_records
from treesens.records.journal import Entry, Journal, key_of
from treesens.records.questions import Question, context_of, digest_of, document_of
from treesens.solve.exported import answer_exported, check_readers, is_exported, read_exported
from treesens.solve.module import answer_module

_NUMBER = r"-?[0-9]{1,40}(\.[0-9]{1,40})?(e-?[0-9]{1,3})?"
SUFFIXES = ("", ".json", ".ubj", ".txt")


@dataclass(frozen=True)
class Level:
    """The level of a question: `margin M`, `gap G`, or `from C to C factor G` (a flip of classes), with numbers as written."""

    word: Literal["margin", "gap", "factor"]
    number: str
    flip: tuple[ast.Label, ast.Label] | None = None

    @cached_property
    def text(self) -> str:
        """The level as it appears in records."""
        if self.flip is None:
            return f"{self.word} {self.number}"
        source, target = (_known_as(label) for label in self.flip)
        return f"from {source} to {target} {self.word} {self.number}"

    @property
    def clauses(self) -> dict[str, Any]:
        """The level as fields of the node `sensitive`."""
        flip = None if self.flip is None else ast.Flip(*self.flip)
        return {self.word: ast.Number(Fraction(self.number)), "flip": flip}


@dataclass(frozen=True)
class Instance:
    """One question about one model, and its verdict if it is known; without a level, `model` is the path of a module."""

    model: str
    features: tuple[int | str, ...]
    level: Level | None
    known: str | None = None

    @cached_property
    def clause(self) -> str:
        return "module" if self.level is None else self.level.text

    @cached_property
    def key(self) -> str:
        return json.dumps([self.model, list(self.features), self.clause])

    def query(self, name: str, model: LoadedModel) -> ast.Query:
        """The question about the model `m`."""
        assert self.level is not None
        names = model.ensemble.feature_names
        for f in self.features:
            if isinstance(f, int) and not 0 <= f < len(names):
                raise DataError(f"the model {self.model} has no feature {f}", remedy=f"it has {len(names)}, from 0 on")
        varied = ast.Features(tuple(ast.Name(names[f] if isinstance(f, int) else f) for f in self.features))
        return ast.Query(ast.Name(name), ast.Sensitive(ast.Name("m"), varied, **self.level.clauses))


def read_instances(path: Path) -> list[Instance]:
    """The instances of a JSON lines file. Raises DataError, with the line, if an instance is malformed."""
    instances = []
    for number, line in enumerate(_lines(path), 1):
        if not line.strip():
            continue
        try:
            instances.append(_instance(json.loads(line)))
        except (ValueError, KeyError, TypeError, RecursionError) as error:
            raise DataError(
                f"not an instance: {error}",
                place=f"{path}:{number}",
                remedy='write e.g. {"model": "adult", "feature": 9, "margin": 0.5}',
            ) from error
    return instances


def _instance(data: dict[str, Any]) -> Instance:
    if "module" in data:
        module, known = data["module"], data.get("verdict")
        if not isinstance(module, str) or not isinstance(known, str | None):
            raise TypeError("`module` and `verdict` are texts")
        return Instance(module, (), None, known)
    features = tuple(data["features"]) if "features" in data else (data["feature"],)
    if not all(isinstance(f, int | str) and not isinstance(f, bool) for f in features):
        raise TypeError("features are names or numbers")
    if "margin" in data:
        level = Level("margin", _number(data["margin"]))
    elif "gap" in data:
        level = Level("gap", _number(data["gap"]))
    else:
        level = Level("factor", _number(data.get("factor", 1)), (class_of(data["from"]), class_of(data["to"])))
    model, known = data["model"], data.get("verdict")
    if not isinstance(model, str) or not isinstance(known, str | None):
        raise TypeError("`model` and `verdict` are texts")
    return Instance(model, features, level, known)


def _number(value: Any) -> str:
    """A number in the language's notation."""
    if isinstance(value, bool) or not isinstance(value, int | float | str) or not re.fullmatch(_NUMBER, str(value)):
        raise ValueError(f"`{str(value)[:40]}` is not a number")
    return str(value)


def _known_as(label: ast.Label) -> str:
    try:
        return label_text(label)
    except Unwritable:
        return repr(label)


def class_of(value: Any) -> ast.Label:
    """A class, given by name or by number."""
    if isinstance(value, str) and not re.fullmatch(_NUMBER, value):
        return ast.Name(value)
    return ast.Number(Fraction(_number(value)))


def model_path(name: str, folder: Path) -> Path:
    """The path of the model with this name. Raises DataError if no such model exists."""
    for suffix in SUFFIXES:
        path = folder / f"{name}{suffix}"
        with suppress(OSError, ValueError):  # the name is too long for a path
            if path.is_file():
                return path
    raise DataError(f"no model `{name}` in {folder}", remedy="pass the folder of the models with --models")


@dataclass(frozen=True)
class Setting:
    """A backend and a pipeline."""

    backend: str
    pipeline: str


def questions_of(instances: list[Instance], folder: Path) -> dict[str, Question]:
    """The question of each instance, by the key of the instance; there is one document per model."""
    by_model: dict[str, list[Instance]] = {}
    for instance in instances:
        by_model.setdefault(instance.model, []).append(instance)
    found = {}
    for name, mine in by_model.items():
        path = model_path(name, folder)
        model = load(path)
        declared = ast.Model(ast.Name("m"), ast.Text(path.name))
        file = ast.File((declared, *(x.query(f"q{i}", model) for i, x in enumerate(mine))))
        document, session = document_of(f"<instances of {name}>", file, path.parent)
        context = f"bench\0{context_of(session.file, document.files)}"
        digests = {asked.name: digest_of(context, asked.find) for asked in session.asked()}
        for i, instance in enumerate(mine):
            if f"q{i}" not in digests:  # one question per pair of classes
                raise DataError(
                    f"{instance.key} is about all classes of {name}, which are several questions",
                    remedy='name two of them in each line: "from": 0, "to": 1, "factor": 1.5',
                )
            found[instance.key] = Question(document, f"q{i}", digests[f"q{i}"], frozenset(), None, Fraction(), None)
    return found


def run(
    instances: list[Instance],
    settings: list[Setting],
    folder: Path,
    output: Path,
    options: Settings,
    *,
    runs: Runs = ONE_RUN,
    executor: Executor = INLINE,
    stop: threading.Event | None = None,
    on_answer: Callable[[dict[str, Any]], None] = lambda _record: None,
    facts: Callable[[Instance], dict[str, Any]] = lambda _instance: {},
    tell: Callable[[str], None] = lambda _warning: None,
) -> list[dict[str, Any]]:
    """Answers every instance with every setting in all `runs`, unless the journal has the answer, and returns all records.

    Each record is written to `output` as a line as soon as it exists; the journal is the file `output` with `.sqlite` appended.
    `facts` returns further fields for the record of an instance; for `tell` see `Journal`. Raises UsageError if `output` has
    records but no journal.
    """
    journal_file = Path(f"{output}.sqlite")
    if output.exists() and not journal_file.exists():
        raise UsageError(
            f"there are results without their journal, {journal_file.name}", place=str(output),
            remedy="choose another file with --output, or remove this file",
        )  # fmt: skip
    modules = [(x, *_subject(folder / x.model, options, settings)) for x in instances if x.level is None]
    about = [x for x in instances if x.level is not None]
    questions = questions_of(about, folder)
    numbers = range(1, runs.repeat + 1)
    asked: dict[str, tuple[Instance, int]] = {}
    listed: list[Question] = []
    for number, instance in itertools.product(numbers, about):
        question = questions[instance.key]
        listed.append(replace(question, digest=_numbered(question.digest, number)))
        asked[listed[-1].digest] = instance, number
    each = [
        replace(options, backend=s.backend, pipeline=s.pipeline, seed=seed, watch=True)
        for s in settings
        for seed in runs.seeds_or(options.seed)
    ]

    def begin(instance: Instance, number: int, one: Settings) -> Settings:
        return replace(one, log=runs.log(instance.key, one, number))

    def recorded(instance: Instance, number: int, one: Settings, outcome: Outcome) -> dict[str, Any]:
        return _record(instance, one, outcome, number) | facts(instance)

    records: list[dict[str, Any]] = []
    will_write(output)
    make_folder(output.parent)
    measurement = Measurement(
        each,
        lambda question, one, made: recorded(*asked[question.digest], one, made),
        lambda question, one: begin(*asked[question.digest], one),
    )
    with Journal(journal_file, command="bench", tell=tell) as journal:
        for key in (key_of(digest, one) for digest in asked for one in each):
            journal.record(key, options.time_limit)  # an error here leaves `output` as it is
        with output.open("w") as lines:

            def keep(instance: Instance, key: str) -> None:
                kept = journal.record(key, options.time_limit)
                assert kept is not None
                records.append(kept | {"known": instance.known})
                _write_line(lines, records[-1], tell)
                on_answer(records[-1])

            def on_entry(question: Question, entry: Entry) -> None:
                keep(asked[question.digest][0], entry.key)

            sweep(listed, options, executor, journal, stop=stop, on_answer=on_entry, measurement=measurement)
            for number, (instance, content, answer), one in itertools.product(numbers, modules, each):
                key = key_of(_numbered(f"bench\0{content}", number), one)
                if journal.record(key, options.time_limit) is None:
                    outcome = Outcome(key, answer(begin(instance, number, one), one.budget(stop)))
                    if stop is not None and stop.is_set():
                        break
                    record = recorded(instance, number, one, outcome)
                    journal.keep(Entry(key, record["verdict"], instance.key, instance.model), one.time_limit, record)
                keep(instance, key)
    return records


def _subject(path: Path, options: Settings, settings: Sequence[Setting]) -> tuple[str, Callable[..., Result]]:
    """The digest of a module or an exported file, and the function that answers it. Raises UsageError for other backends."""
    if not is_exported(path):
        module = read_module(path)
        return digest(module), partial(answer_module, module)
    check_readers(path, [one.backend for one in settings])
    file = read_exported(path, options.closeness)
    return sha256(file.text.encode()).hexdigest(), partial(answer_exported, file)


def _numbered(digest: str, number: int) -> str:
    """The digest of a question for one of several runs, so that each has an entry in the journal."""
    return digest if number == 1 else f"{digest}#{number}"


def _write_line(file: TextIO, record: dict[str, Any], tell: Callable[[str], None]) -> None:
    """Writes a record at once. If a write fails (full disk), the file is closed with a warning; later records are left out."""
    if file.closed:
        return
    try:
        file.write(json.dumps(record) + "\n")
        file.flush()
    except OSError as error:
        with suppress(OSError):
            file.close()
        tell(f"warning: {file.name} can no longer be written ({error}): later records are not written")


def _record(instance: Instance, setting: Settings, outcome: Outcome, number: int) -> dict[str, Any]:
    failed = Result(outcome.key, Verdict.UNKNOWN, outcome.failure, backend=setting.backend)
    result = outcome.result or failed
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
        "proof": result.proof_text,
        "plugins": [asdict(plugin) for plugin in result.plugins],
        "decided_by": result.backend,
        "rests_on": list(result.proof_dependencies),
        "started": result.warm_started,
        "replay": None if result.witness is None else str(result.witness.replay),
        "build": round(result.seconds.get("build", 0.0), 6),
        "solve": round(solve if setting.backend != "auto" else result.seconds.get("solve", 0.0), 6),
        "total": round(sum(result.seconds.values()), 6),
        "cpu": round(outcome.cpu, 6),
        # The time of the native engine itself: local search and prover, without building the problem.
        "engine": round(
            sum(
                a.statistics.get("local_seconds", 0.0) + a.statistics.get("prove_seconds", 0.0) for a in result.attempts
            ),
            6,
        ),
        "limit": setting.time_limit,
        **run_facts(result, setting.seed, number),
        **({"certificates": certificate_records(result)} if result.certificates else {}),
        "size": result.size.to_dict(),
    }


def _lines(path: Path, *, own: bool = False) -> list[str]:
    return read_text(path, "list", "pass a file of JSON lines", own=own).splitlines()


def read_records(path: Path) -> list[dict[str, Any]]:
    """The records of an earlier run; invalid lines, such as a line truncated by a kill, are dropped."""
    if not path.is_file():
        return []
    records = []
    for line in _lines(path, own=True):
        try:
            records.append(json.loads(line))
        except (ValueError, RecursionError):
            continue
    return records


def contradictions(records: Iterable[dict[str, Any]]) -> list[str]:
    """The instances on which decided verdicts differ from each other or from the known verdict."""
    seen: dict[str, dict[str, str]] = {}
    for record in records:
        verdicts = seen.setdefault(record["key"], {})
        if record["verdict"] != "unknown":
            name = f"{record['backend']}/{record['pipeline']}"
            if verdicts.setdefault(name, record["verdict"]) != record["verdict"]:
                verdicts[f"{name} (seed {record.get('seed')}, repetition {record.get('repetition')})"] = record[
                    "verdict"
                ]
        if record.get("known") is not None:
            verdicts["known"] = record["known"]
    return [f"{key}: {verdicts}" for key, verdicts in seen.items() if len(set(verdicts.values())) > 1]
