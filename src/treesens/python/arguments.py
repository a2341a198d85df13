"""The arguments of a call: their types for type checkers (models and tables of many libraries, none of which is imported here),
alternative names, and suggestions for unknown names."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Collection, Mapping
from pathlib import Path
from typing import Any, Protocol, TypeAlias, TypeVar, cast

import numpy as np

from treesens.compiler.base.diagnostics import did_you_mean
from treesens.compiler.base.option_kinds import Door, declared
from treesens.data.tables import Table
from treesens.errors import ArgumentsError
from treesens.frontends.base import LoadedModel
from treesens.python.wording import typed
from treesens.solve.options import CallOptions, Options

_Call = TypeVar("_Call", bound=Callable[..., Any])

ALIASES: Mapping[str, str] = {
    "features": "vary",
    "gaps": "gap",
    "margins": "margin",
    "protected_features": "protected",
    "sensitive_features": "protected",
    "permitted_range": "permitted",
    "row": "rows",
    "target": "label",
    "timeout": "time_limit",
    "n_jobs": "jobs",
    "random_state": "seed",
}
"""Argument names of other tools and earlier versions, each with the present argument, for every call that has this argument."""


MEANT: Mapping[str, tuple[str, ...]] = {
    **dict.fromkeys(("X", "df", "frame", "dataset", "table"), ("data",)),
    **dict.fromkeys(("y", "labels"), ("label",)),
    **dict.fromkeys(("feature", "columns", "protected", "sensitive"), ("vary", "features")),
}
"""Argument names that users of other tools try, with the arguments to propose; their values may need a change."""


def renamed(call: str, given: Mapping[str, Any], known: Collection[str]) -> dict[str, Any]:
    """Named arguments under their present names. Raises ArgumentsError for an unknown name or an argument passed twice."""
    found: dict[str, Any] = {}
    for name, value in given.items():
        own = name if name in known else ALIASES.get(name, name)
        if own not in known:
            meant = next((one for one in MEANT.get(name, ()) if one in known), None)
            remedy = did_you_mean(name, known) if meant is None else f"did you mean `{meant}`?"
            raise ArgumentsError(f"{call}() has no argument `{name}`", remedy=remedy)
        if own in found:
            raise ArgumentsError(f"{call}() has `{own}` twice", remedy=f"`{name}` is the same argument: leave it out")
        found[own] = value
    return found


def bound_arguments(
    call: str, signature: inspect.Signature, positional: tuple[Any, ...], named: Mapping[str, Any]
) -> inspect.BoundArguments:
    """The arguments of a call, without defaults. Raises ArgumentsError for arguments that do not fit the signature."""
    own = renamed(call, named, signature.parameters)
    try:
        return signature.bind(*positional, **own)
    except TypeError as error:
        raise ArgumentsError(
            f"{call}(): {error}", remedy=f"its arguments are {', '.join(signature.parameters)}"
        ) from None


def public(call: _Call) -> _Call:
    """A call of the interface (see `typed`) that accepts alternative argument names and suggests known names."""
    signature = inspect.signature(call)
    known = [name for name, one in signature.parameters.items() if one.kind is not one.VAR_KEYWORD]
    checked, open_ended = typed(call), len(known) < len(signature.parameters)

    @functools.wraps(call)
    def asked(*positional: Any, **named: Any) -> Any:
        # Calls with arbitrary options check names themselves, together with the engine's options.
        more = [name for name in named if open_ended and name not in ALIASES]
        own = renamed(call.__name__, named, [*known, *more])
        try:
            signature.bind(*positional, **own)
        except TypeError as error:
            renamed(call.__name__, own, known)  # of the two errors, an unknown name is more informative
            raise ArgumentsError(
                f"{call.__name__}(): {error}", remedy=f"its arguments are {', '.join(known)}"
            ) from None
        return checked(*positional, **own)

    return cast("_Call", asked)


def with_options(call: _Call) -> _Call:
    """A call whose `**options` are a question's options: its signature shows each option with its type and default."""
    signature = inspect.signature(call)
    own = [one for one in signature.parameters.values() if one.kind is not one.VAR_KEYWORD]
    types = {name: getattr(kind, "__forward_arg__", kind) for name, kind in CallOptions.__annotations__.items()}
    options = [
        inspect.Parameter(one.field, inspect.Parameter.KEYWORD_ONLY, default=one.default, annotation=types[one.field])
        for one in declared(Options, Door.PYTHON)
    ]
    unknown = inspect.Parameter("unknown", inspect.Parameter.VAR_KEYWORD, annotation="Never")
    call.__signature__ = signature.replace(parameters=[*own, *options, unknown])  # type: ignore[attr-defined]
    return call


def listing_options(call: _Call) -> _Call:
    """A call whose docstring has a line for each option of a question."""
    known = declared(Options, Door.PYTHON)
    lines = [f"    {one.field}: {one.option.sentence}" for one in known if one.option.sentence]
    call.__doc__ = "\n".join([inspect.cleandoc(call.__doc__ or ""), "", "Options:", *lines])
    return call


class Predictor(Protocol):
    """A fitted model of XGBoost, LightGBM, scikit-learn, CatBoost, interpret or YDF."""

    def predict(self, *_: Any, **__: Any) -> Any: ...


class ProtoModel(Protocol):
    """A model of ONNX."""

    def SerializeToString(self, *_: Any, **__: Any) -> bytes: ...


class TreeliteModel(Protocol):
    """A model of Treelite."""

    def dump_as_json(self, *_: Any, **__: Any) -> str: ...


class Frame(Protocol):
    """A frame of pandas, polars or pyarrow."""

    @property
    def columns(self) -> Any: ...


Model: TypeAlias = str | Path | LoadedModel | Predictor | ProtoModel | TreeliteModel
"""A model file, a live model, or the result of `load` for either."""

Data: TypeAlias = str | Path | Table | Frame | np.ndarray[Any, Any]
"""A CSV or Parquet file, a frame, or an array [rows, features] in the order of the model's features."""
