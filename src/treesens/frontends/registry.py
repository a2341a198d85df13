"""Selects the frontend of a file or object: built-in formats and entry points of the group `treesens.frontends`."""

from __future__ import annotations

import hashlib
import os
import re
import zlib
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import Final

from treesens.builtin import FORMATS as EXTENSIONS
from treesens.builtin import has_extensions
from treesens.compiler.base.files import near_file, open_regular
from treesens.compiler.base.folders import MOST_FILES, read_folder
from treesens.compiler.base.plugins import Registry
from treesens.errors import ModelError, UsageError
from treesens.frontends.base import (
    FolderFrontend,
    Frontend,
    LoadedModel,
    OutputFrontend,
    RowsFrontend,
    VariantFrontend,
    choose_output,
    output_named,
)
from treesens.frontends.meaning import meaning_beside
from treesens.frontends.sklearn.pickles import is_pickle, open_pickle, untrusted_pickle

# Bytes used for content sniffing, and the maximum size of a file.
HEAD_BYTES = 1 << 16
MAX_FILE_BYTES = 2 << 30

UNFORESEEN = (ArithmeticError, AssertionError, AttributeError, LookupError, RecursionError, TypeError, ValueError)
"""Python's errors for values of unexpected kinds; the file is refused as damaged."""


_OTHER_FILES: Final = {
    **dict.fromkeys((".csv", ".tsv", ".parquet"), ("a table", "pass the model first, and then this table")),
    ".sens": ("a file of questions", "answer them with `treesens check {}`"),
}
_OF_OUTPUT = re.compile(r"output \d+ of ")


class UnforeseenError(ModelError):
    """The error for a damaged file whose damage no check has detected."""

    code = "M002"


FORMATS: Final = Registry(
    kind="model format",
    group="treesens.frontends",
    builtin={
        "xgboost": "treesens.frontends.xgboost.frontend:XGBoostFrontend",
        "lightgbm": "treesens.frontends.lightgbm.frontend:LightGBMFrontend",
        **(EXTENSIONS if has_extensions() else {}),
        "sklearn": "treesens.frontends.sklearn.frontend:SklearnFrontend",
    },
    error=ModelError,
)


def frontend_names() -> list[str]:
    """Names of all registered frontends; nothing is imported. Raises ModelError if a name is used twice."""
    return FORMATS.names()


def frontend(name: str) -> Frontend:
    """The frontend with this name. Raises ModelError if the name is unknown, cannot be imported or is not a frontend."""
    made = FORMATS.get(name)
    if isinstance(made, type):
        made = made()
    if not isinstance(made, Frontend):
        raise ModelError(f"the model format `{name}` lacks members of treesens.frontends.base.Frontend")
    return made


def libraries_of(models: Iterable[LoadedModel], replay: str) -> list[str]:
    """The models' libraries. Raises UsageError if replay needs a library and the format of a model has no library."""
    libraries = [frontend(model.frontend).library for model in models]
    if replay == "library" and not all(libraries):
        raise UsageError(
            "the format of a model has no Python library", remedy="use --replay emulated, and not --confirm library"
        )
    return libraries


def load(source: object, format: str | None = None, *, trust_pickle: bool = False, rows: object = None) -> LoadedModel:
    """The model in a file (a path) or a live object; the format is passed, or detected from the content.

    `FORMAT:VARIANT` selects one of the models in a file: `xgboost:best` is the model chosen by early stopping.
    `FORMAT:output=K` selects output K (counted from 0) of a file or object that predicts several outputs at once.

    A pickle can run code, and is opened only with `trust_pickle`. The data frame `rows` may contain category names that a live
    model lacks. The file with the model's meaning (`meaning.py`) is also read. Raises ModelError with location and remedy for
    everything that treesens cannot read exactly.
    """
    if isinstance(source, (str, os.PathLike)):
        path = Path(source)
        if _is_folder(path):
            # `.` and `..` do not serve as model names.
            path = Path(os.path.abspath(path)) if path.name in ("", "..") else path
            model = _load_folder(path, format)
        else:
            model = _load_file(path, format, trust_pickle)
        return replace(model, meaning=meaning_beside(path, model.ensemble))
    name, _, variant = (format or "").partition(":")
    output = output_named(variant)
    if variant and output is None:
        raise ModelError(f"`{format}` chooses among the models of a file, but a live object is a single model")
    candidates = [frontend(name)] if name else _all()
    for candidate in candidates:
        if candidate.recognises_object(source):
            if output is None and isinstance(candidate, RowsFrontend):
                return candidate.with_rows(source, rows)
            if output is None:
                return candidate.from_object(source)
            if isinstance(candidate, OutputFrontend):
                return candidate.output_of_object(source, output)
            return choose_output(candidate.from_object(source), output)
    if isinstance(source, type):
        raise ModelError(
            f"{source.__name__} is a class, not a fitted model", remedy="pass an object that has been fitted"
        )
    kind = f"{type(source).__module__}.{type(source).__qualname__}"
    if hasattr(source, "columns") and hasattr(source, "shape"):
        raise ModelError(
            f"an object of type {kind} is a table, not a model", remedy="pass the model first: (model, data)"
        )
    raise ModelError(
        f"an object of type {kind} is not a model of a known library",
        remedy=f"pass a fitted model or a path; known: {', '.join(frontend_names())}",
    )


def _all() -> list[Frontend]:
    """Every frontend that can be imported; a broken plug-in does not affect other frontends."""
    found = []
    for name in frontend_names():
        try:
            found.append(frontend(name))
        except ModelError:
            if name in FORMATS.builtin:
                raise
    return found


def _load_file(path: Path, name: str | None, trust_pickle: bool) -> LoadedModel:
    place = str(path)
    try:
        size = path.stat().st_size
        with open_regular(path) as file:
            head = file.read(HEAD_BYTES)
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise ModelError(f"the model file cannot be read: {reason}", place=place, remedy=near_file(path)) from None
    _refuse_hopeless(place, size, head)
    if is_pickle(head):
        if not trust_pickle:
            raise untrusted_pickle(place)
        return _named(load(open_pickle(path), name), path)
    name, _, variant = (name or "").partition(":")
    chosen = frontend(name) if name else _sniff(place, head)
    if name and not chosen.recognises_bytes(head):
        raise ModelError(f"the file does not look like a model of format `{name}`", place=place)
    data = path.read_bytes()
    with _damage_told(place):
        return _variant(chosen, variant, path, data) if variant else chosen.load(path, data)


def is_model(path: Path, format: str | None = None) -> bool:
    """True if the start of a file, or the list of files in a folder, looks like a model of the format (None: of any format)."""
    candidates = [frontend(format.partition(":")[0])] if format else _all()
    try:
        if path.is_dir():
            names = [entry.name for entry in islice(os.scandir(path), MOST_FILES)]
            return any(isinstance(one, FolderFrontend) and one.recognises_folder(names) for one in candidates)
        with open_regular(path) as file:
            head = file.read(HEAD_BYTES)
    except (OSError, ValueError):
        return False
    if head.startswith(b"\x1f\x8b"):  # a table and a pickle may both be compressed
        try:
            head = zlib.decompressobj(wbits=31).decompress(head, HEAD_BYTES)
        except zlib.error:
            return False
        return is_pickle(head)
    return is_pickle(head) or any(one.recognises_bytes(head) for one in candidates)


def _is_folder(path: Path) -> bool:
    try:
        return path.is_dir()
    except OSError:
        return False


def _load_folder(path: Path, name: str | None) -> LoadedModel:
    """The model in a folder. Raises ModelError if the folder is not a model of the named format (None: of any format)."""
    place = str(path)
    try:
        names = [entry.name for entry in islice(os.scandir(path), MOST_FILES)]
    except OSError as error:
        raise ModelError(f"the model's folder cannot be read: {error.strerror}", place=place) from None
    candidates = [frontend(name.partition(":")[0])] if name else _all()
    for candidate in candidates:
        if isinstance(candidate, FolderFrontend) and candidate.recognises_folder(names):
            variant = (name or "").partition(":")[2]
            if variant and output_named(variant) is None:
                return _variant(candidate, variant, path, b"")
            with _damage_told(place):
                model = candidate.load_folder(path, read_folder(path))
                return choose_output(model, output_named(variant) or 0) if variant else model
    of = f" of the format `{name}`" if name else ""
    raise ModelError(
        f"this is a folder (not a regular file) and not a model{of}",
        place=place,
        remedy="pass the model file inside it; models of Spark and YDF are the folder with `metadata` or `data_spec.pb`",
    )


@contextmanager
def _damage_told(place: str) -> Iterator[None]:
    """Reports unexpected errors of a reader within the block as damage to the file."""
    try:
        yield
    except MemoryError:
        raise ModelError("the model does not fit into memory", place=place) from None
    except UNFORESEEN as error:
        raise UnforeseenError(
            f"the file is damaged, and its reader failed with an unexpected error ({type(error).__name__}: {str(error)[:200]})",
            place=place,
            remedy="save the model again with the library",
        ) from error


def _variant(chosen: Frontend, variant: str, path: Path, data: bytes) -> LoadedModel:
    """One of the models or outputs in a file. Raises ModelError if the format lacks such a variant."""
    output = output_named(variant)
    if output is not None:
        if isinstance(chosen, OutputFrontend):
            return chosen.load_output(path, data, output)
        return choose_output(chosen.load(path, data), output)
    if not isinstance(chosen, VariantFrontend) or variant not in chosen.variants:
        known = chosen.variants if isinstance(chosen, VariantFrontend) else ()
        listed = " or ".join(f"`{chosen.name}:{v}`" for v in known)
        remedy = f"write `{chosen.name}`" + (f", {listed}" if known else "")
        raise ModelError(f"the format `{chosen.name}` has no variant `{variant}`", place=str(path), remedy=remedy)
    return chosen.load_variant(path, data, variant)


def _named(model: LoadedModel, path: Path) -> LoadedModel:
    """A model loaded from a pickle, with its file's name and digest."""
    digest = hashlib.sha256(path.read_bytes()).hexdigest()
    form = f"{model.frontend}-pickle"
    if of := _OF_OUTPUT.match(model.ensemble.source.format):
        form = of[0] + form
    source = replace(model.ensemble.source, format=form, path=str(path), sha256=digest)
    return replace(model, ensemble=replace(model.ensemble, name=path.stem, source=source))


def _refuse_hopeless(place: str, size: int, head: bytes) -> None:
    if size == 0:
        raise ModelError("the file is empty", place=place, remedy="save the model again")
    if size > MAX_FILE_BYTES:
        raise ModelError(f"the file has {size} bytes, more than the limit of {MAX_FILE_BYTES}", place=place)
    if not head.strip(b"\0"):
        raise ModelError("all bytes at the start of the file are zero", place=place, remedy="save the model again")


def _sniff(place: str, head: bytes) -> Frontend:
    matching = [candidate for candidate in _all() if candidate.recognises_bytes(head)]
    if len(matching) == 1:
        return matching[0]
    if matching:
        names = " or ".join(candidate.name for candidate in matching)
        raise ModelError(f"the file may be a model of {names}", place=place, remedy="name the format: --format NAME")
    if (suffix := Path(place).suffix.lower()) in _OTHER_FILES:
        what, remedy = _OTHER_FILES[suffix]
        raise ModelError(f"the file is {what}, not a model", place=place, remedy=remedy.format(place))
    raise ModelError(
        "the file is not a model of a known format", place=place, remedy=f"known formats: {', '.join(frontend_names())}"
    )
