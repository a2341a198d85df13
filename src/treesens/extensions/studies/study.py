"""A study is one declaration: its question, its options, its records, and the function that runs it.

The command, the Python call with its signature and type stub, the JSON Schema and the tables of the pages are made from the
declaration (`commands/study.py`, `python/study.py`, `registry.py`). Options are the fields of a frozen dataclass, each with its
kind, default, range and help sentence; records are dataclasses too.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from importlib import import_module
from typing import TYPE_CHECKING, Any, Generic, TypeVar, get_type_hints

from treesens.compiler.base.option_kinds import REQUIRED, Declared, Door, Option, declared, given
from treesens.extensions.studies.assumed import Assumed, assumed_of, without_assumed
from treesens.records.plain import Document, ModelFile, plain

if TYPE_CHECKING:
    from treesens.data.tables import Table
    from treesens.extensions.studies.evidence import Evidence
    from treesens.extensions.studies.running import Memory
    from treesens.frontends.base import LoadedModel

__all__ = [
    "REQUIRED", "Asking", "Declared", "Door", "Found", "Option", "Study", "declared", "given", "in_names_of",
    "results_document", "told_of",
]  # fmt: skip
OptionsT = TypeVar("OptionsT")
RecordT = TypeVar("RecordT")


@dataclass(frozen=True)
class Asking(Generic[OptionsT]):
    """The input of a study: models and a table (not yet aligned with a model), complete options, and the settings of the run.

    If the event `stop` is set, the study ends with its results so far; `advance` is called with every record, and `say` with
    the current step in words. `memory` holds earlier answers. `files` lists the models, and then the table, as the caller named
    them; `command` is the equivalent command line. `chosen` lists the options that the caller set, even to defaults."""

    models: tuple[LoadedModel, ...]
    table: Table | None
    options: OptionsT
    stop: threading.Event = field(default_factory=threading.Event)
    advance: Callable[[Any], None] = lambda _: None
    say: Callable[[str], None] = lambda _: None
    memory: Memory | None = None
    files: tuple[str | None, ...] = ()
    command: str = ""
    chosen: frozenset[str] = frozenset()
    recognised: tuple[Assumed, ...] = ()
    """The facts that `Study.complete` has recognised."""

    @property
    def model(self) -> LoadedModel:
        """The only model, or the first of two models."""
        return self.models[0]

    def file(self, number: int = 0) -> ModelFile:
        """A model as a record of documents."""
        return ModelFile(file=self.files[number], sha256=self.models[number].ensemble.source.sha256)


@dataclass
class Found(Generic[RecordT]):
    """The findings of a study: records in the order of the request, without untried records.

    `decided` is True if no answer is open; `result` is the return value of the search itself. `assumed` lists the choices left
    to defaults.
    """

    records: Sequence[RecordT]
    warnings: tuple[str, ...]
    interrupted: bool
    decided: bool
    result: Any = None
    assumed: Sequence[Assumed] = ()
    evidence: Sequence[Sequence[Evidence]] = ()
    """The evidence for every record, if certificates are requested."""


def in_names_of(models: Sequence[LoadedModel], options: OptionsT) -> OptionsT:
    """The options with the models' names of the features, which a library may have changed."""
    from treesens.frontends.meaning import feature_named

    def renamed(value: Any) -> Any:
        if isinstance(value, str):
            return next((n for m in models if (n := feature_named(value, m.ensemble)) != value), value)
        return type(value)(map(renamed, value)) if isinstance(value, list | tuple) else value

    given = {one.name: getattr(options, one.name) for one in fields(options) if one.name != "classes"}  # type: ignore[arg-type]
    changed = {name: renamed(value) for name, value in given.items() if isinstance(value, list | tuple)}
    return replace(options, **changed)  # type: ignore[type-var]


def told_of(models: Sequence[LoadedModel], options: Any) -> tuple[LoadedModel, ...]:
    """The models, with the protected features named in the options. Raises UsageError for an unknown feature."""
    from treesens.frontends.meaning import meaning_of

    names = getattr(options, "protected", ())
    if not names:
        return tuple(models)
    found = []
    for model in models:
        # A feature may be missing from one version of a model if another version has it.
        mine = [n for n in names if n in model.ensemble.feature_names or not _elsewhere(models, n)]
        protected = meaning_of({"protected": mine}, model.ensemble).protected
        found.append(replace(model, meaning=replace(model.meaning, protected=protected)))
    return tuple(found)


def _elsewhere(models: Sequence[LoadedModel], name: str) -> bool:
    return any(name in model.ensemble.feature_names for model in models)


def results_document(asked: Asking[Any], found: Found[RecordT]) -> Document[RecordT]:
    """The document of a study whose records are its only content."""
    return Document(model=asked.file(), interrupted=found.interrupted, results=list(found.records))


@dataclass(frozen=True)
class Study(Generic[OptionsT, RecordT]):
    """One study. `text` is the help of its command; `call` is the docstring of its Python call, or None without a call.

    `models` lists the names of its model arguments; if the list is empty, the rows are the first argument. `what` lists the
    choices for the command's first argument, and `call_name` is the name of the call if different from `name`. `by_position`
    lists the options that Python also accepts by position. `table` is the help of the option for its table, or None if the
    study uses no table; with `needs_table` the option is required. `fails` maps the words of --fail-on to conditions on the
    records. `work` is the label of a progress bar, and `total` returns the expected number of records. `ask` and `total` may be
    texts `MODULE:FUNCTION`, so that a declaration does not import its search.
    """

    name: str
    title: str
    text: str
    call: str | None
    options: type[OptionsT]
    ask: Callable[[Asking[OptionsT]], Found[RecordT]] | str
    record: type[RecordT]
    table: str | None = None
    label: str = "The label column."
    needs_table: bool = False
    needs_label: bool = False
    domains_of_table: bool = True
    """True if the table's columns are the default domains of the features."""
    sizes_of_model: bool = False
    """True if gaps default to values that suit the model."""
    models: tuple[str, ...] = ("model",)
    what: tuple[str, ...] = ()
    call_name: str = ""
    by_position: tuple[str, ...] = ()
    fails: Mapping[str, Callable[[Sequence[RecordT]], bool]] = field(default_factory=dict)
    fail_words: str = ""
    flips: Callable[[Sequence[RecordT]], Sequence[tuple[list[str], int]]] | None = None
    """The sets of features, each with the number of rows that flip, which is compared with a budget."""
    work: str = ""
    total: Callable[[Asking[OptionsT]], int] | str | None = None
    journal: bool = False
    complete: Callable[[Asking[OptionsT]], Asking[OptionsT]] | str | None = None
    """A function, or its name, that adds what the study recognises in the model and the table."""
    document: Callable[[Asking[OptionsT], Found[RecordT]], Any] | None = None
    faults: Callable[[Sequence[dict[str, Any]]], Sequence[dict[str, Any]]] = lambda records: records
    """The parts of records, as plain data, in which faults of treesens itself are reported."""
    picture: Callable[[Sequence[dict[str, Any]], Any, Any], Any] | str | None = None
    """A function, or its name, that draws the records (plain data) and `Found.result` on axes of matplotlib (None for new
    axes), and returns the axes. The options then have `plot` (`shared_options.PLOT`), and the Python result has `plot()`."""

    def completed(self, asking: Asking[OptionsT]) -> Asking[OptionsT]:
        """The input of the study, with everything that it recognises."""
        if self.complete is None:
            return asking
        made: Asking[OptionsT] = _function(self.complete)(asking)
        return made

    def asked(self, asking: Asking[OptionsT]) -> Found[RecordT]:
        """Runs the study, and adds its assumptions to the findings."""
        found: Found[RecordT] = _function(self.ask)(asking)
        assumed = [*asking.recognised, *assumed_of(self, asking, found.warnings)]
        return replace(found, warnings=without_assumed(found.warnings), assumed=assumed)

    def expected(self, asking: Asking[OptionsT]) -> int | None:
        """The expected number of records, or None."""
        return None if self.total is None else int(_function(self.total)(asking))

    def drawn(self, records: Sequence[dict[str, Any]], result: Any, axes: Any = None) -> Any:
        """The axes with the picture. Raises UsageError without matplotlib."""
        assert self.picture is not None
        return _function(self.picture)(records, result, axes)

    @property
    def certifies(self) -> bool:
        """True if the options have `certificates` and `require_certificate`, so that findings come with evidence."""
        return any(one.field == "require_certificate" for one in declared(self.options))

    def documented(self, asked: Asking[OptionsT], found: Found[RecordT]) -> dict[str, Any]:
        """The document that `--json` prints, as plain data."""
        document = plain((self.document or results_document)(asked, found))
        return {**document, "assumed": plain(found.assumed)}

    @property
    def document_type(self) -> Any:
        """The class of the study's documents."""
        if self.document is None:
            return Document[self.record]  # type: ignore[name-defined]
        return get_type_hints(self.document, include_extras=True)["return"]


def _function(place: Callable[..., Any] | str) -> Callable[..., Any]:
    """The function itself, or the function at the place `MODULE:FUNCTION`."""
    if not isinstance(place, str):
        return place
    module, _, name = place.partition(":")
    found: Callable[..., Any] = getattr(import_module(module), name)
    return found
