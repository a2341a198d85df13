"""A study is one declaration: its question, its options, its record, and how it is asked.

The command, the Python call with its signature and type stub, the JSON Schema and the tables of the pages are made from it
(`commands/study.py`, `python/study.py`, `registry.py`). Options are a frozen dataclass whose fields carry the kind, the
default, the range and the sentence of each; records are dataclasses as well.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
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
    "REQUIRED", "Asking", "Declared", "Door", "Found", "Option", "Study", "declared", "given", "results_document", "told_of",
]  # fmt: skip
OptionsT = TypeVar("OptionsT")
RecordT = TypeVar("RecordT")


@dataclass(frozen=True)
class Asking(Generic[OptionsT]):
    """What a study is asked: models and a table (aligned with nothing yet), complete options, and how it runs.

    A set `stop` ends the study with its results so far; `advance` is called with every record, `say` with the current step in
    words. `memory` has answers of earlier runs. `files` are the models, and then the table, as a caller named them; `command`
    is the equivalent command line. `chosen` are the options that a caller has given, whatever their values are.
    """

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

    @property
    def model(self) -> LoadedModel:
        """The only model, or the first of two."""
        return self.models[0]

    def file(self, number: int = 0) -> ModelFile:
        """A model as documents name it."""
        return ModelFile(file=self.files[number], sha256=self.models[number].ensemble.source.sha256)


@dataclass
class Found(Generic[RecordT]):
    """The findings of a study: records in the order of the request; those that were not reached are left out.

    `decided` is True if nothing is left open, `result` is the return value of the study itself. `assumed` are the choices
    left to defaults.
    """

    records: Sequence[RecordT]
    warnings: tuple[str, ...]
    interrupted: bool
    decided: bool
    result: Any = None
    assumed: Sequence[Assumed] = ()
    evidence: Sequence[Sequence[Evidence]] = ()
    """Of every record, if certificates are wanted."""


def told_of(models: Sequence[LoadedModel], options: Any) -> tuple[LoadedModel, ...]:
    """The models with the protected features that options name. UsageError for a feature that there is not."""
    from treesens.frontends.meaning import meaning_of

    names = getattr(options, "protected", ())
    if not names:
        return tuple(models)
    found = []
    for model in models:
        # A version of a model may do without a feature that another one has.
        mine = [n for n in names if n in model.ensemble.feature_names or not _elsewhere(models, n)]
        protected = meaning_of({"protected": mine}, model.ensemble).protected
        found.append(replace(model, meaning=replace(model.meaning, protected=protected)))
    return tuple(found)


def _elsewhere(models: Sequence[LoadedModel], name: str) -> bool:
    return any(name in model.ensemble.feature_names for model in models)


def results_document(asked: Asking[Any], found: Found[RecordT]) -> Document[RecordT]:
    """The document of a study that says nothing besides its records."""
    return Document(model=asked.file(), interrupted=found.interrupted, results=list(found.records))


@dataclass(frozen=True)
class Study(Generic[OptionsT, RecordT]):
    """One study. `text` is the help of its command; `call` that of its Python call, None if there is none.

    `models` are what its models are called; without any, the rows take their place. `what` are words of which a command
    takes the first argument, `call_name` is the name of the call if it is another one. `by_position` are the options that
    Python takes by position, too. `table` is the option of its rows (None: it takes none), which has to be given if it
    `needs_table`. `fails` are the words of --fail-on with what each looks for among the records. `work` says what a bar of
    progress shows, `total` how many records to expect. `ask` and `total` may be places, `MODULE:FUNCTION`, so that a
    declaration imports no search.
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
    """Inputs lie in the ranges of the columns of the table, if there is one."""
    sizes_of_model: bool = False
    """Gaps default to values that suit the model."""
    models: tuple[str, ...] = ("model",)
    what: tuple[str, ...] = ()
    call_name: str = ""
    by_position: tuple[str, ...] = ()
    fails: Mapping[str, Callable[[Sequence[RecordT]], bool]] = field(default_factory=dict)
    fail_words: str = ""
    flips: Callable[[Sequence[RecordT]], Sequence[tuple[list[str], int]]] | None = None
    """For a budget: sets of features with the rows that flip by each."""
    work: str = ""
    total: Callable[[Asking[OptionsT]], int] | str | None = None
    journal: bool = False
    document: Callable[[Asking[OptionsT], Found[RecordT]], Any] | None = None
    faults: Callable[[Sequence[dict[str, Any]]], Sequence[dict[str, Any]]] = lambda records: records
    """The parts of records, as plain data, in which a fault of treesens itself would be told."""
    picture: Callable[[Sequence[dict[str, Any]], Any, Any], Any] | str | None = None
    """Draws the records, as plain data, and `Found.result` on axes of matplotlib (None: new ones), and returns these; or the
    place of such a function. Its options then have `plot` (`shared_options.PLOT`), and its result in Python has `plot()`."""

    def asked(self, asking: Asking[OptionsT]) -> Found[RecordT]:
        """What the study finds."""
        found: Found[RecordT] = _function(self.ask)(asking)
        assumed = assumed_of(self, asking, found.warnings)
        return replace(found, warnings=without_assumed(found.warnings), assumed=assumed)

    def expected(self, asking: Asking[OptionsT]) -> int | None:
        """How many records to expect; None if that is not known."""
        return None if self.total is None else int(_function(self.total)(asking))

    def drawn(self, records: Sequence[dict[str, Any]], result: Any, axes: Any = None) -> Any:
        """The axes with the picture. UsageError without matplotlib."""
        assert self.picture is not None
        return _function(self.picture)(records, result, axes)

    @property
    def certifies(self) -> bool:
        """True if its options have `certificates` and `require_certificate`: its findings come with evidence."""
        return any(one.field == "require_certificate" for one in declared(self.options))

    def documented(self, asked: Asking[OptionsT], found: Found[RecordT]) -> dict[str, Any]:
        """The document that `--json` prints, as plain data."""
        document = plain((self.document or results_document)(asked, found))
        return {**document, "assumed": plain(found.assumed)}

    @property
    def document_type(self) -> Any:
        """The class of its documents."""
        if self.document is None:
            return Document[self.record]  # type: ignore[name-defined]
        return get_type_hints(self.document, include_extras=True)["return"]


def _function(place: Callable[..., Any] | str) -> Callable[..., Any]:
    """A function, or the one at `MODULE:FUNCTION`."""
    if not isinstance(place, str):
        return place
    module, _, name = place.partition(":")
    found: Callable[..., Any] = getattr(import_module(module), name)
    return found
