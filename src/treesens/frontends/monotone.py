"""Monotone constraints as model files declare them: a direction for every feature, by its place or its name."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from treesens.compiler.base.numbers import whole_of
from treesens.errors import ModelError

_DIRECTIONS = {"-1": -1, "0": 0, "1": 1}


def directions_of(given: Any, names: Sequence[str], place: str) -> dict[str, int]:
    """1 or -1 by feature, of a list, a mapping or a text such as `(1,0,-1)`; features without a constraint are left out.
    ModelError for what is none of these, and for features that there are not.
    """
    if given is None:
        return {}
    if isinstance(given, str):
        words = given.strip().strip("()[]").replace(",", " ").split()
        return directions_of(words, names, place) if words else {}
    if isinstance(given, Mapping):
        pairs = [(_name(key, names, place), value) for key, value in given.items()]
    else:
        values = np.asarray(given, dtype=object).ravel().tolist()
        if len(values) > len(names):
            raise _unclear(f"{len(values)} directions for {len(names)} features", place)
        pairs = list(zip(names, values, strict=False))
    known = {name: _DIRECTIONS.get(str(value)) for name, value in pairs}
    if wrong := [name for name, sign in known.items() if sign is None]:
        raise _unclear(f"the direction of `{wrong[0]}` is not -1, 0 or 1", place)
    return {name: sign for name, sign in known.items() if sign}


def _name(key: Any, names: Sequence[str], place: str) -> str:
    if key in names:
        return str(key)
    number = whole_of(str(key))
    if number is None or not 0 <= number < len(names):
        raise _unclear(f"there is no feature `{str(key)[:40]}`", place)
    return names[number]


def _unclear(what: str, place: str) -> ModelError:
    return ModelError(f"monotone constraints: {what}", place=place, remedy="save the model again with its library")
