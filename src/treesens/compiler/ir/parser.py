"""Reads the full textual form of a module back: parse_module(print_module(m, full=True)) == m."""

from __future__ import annotations

import json
import re
from dataclasses import fields
from typing import Any

import numpy as np

from treesens.compiler.base.arrays import IntegerArray
from treesens.compiler.ir.module import Block, Bool, ExactlyOne, FeatureInfo, Module, Order
from treesens.compiler.ir.ops import Objective, Op, Start
from treesens.compiler.ir.text import KINDS
from treesens.errors import IRError

_FIELD = re.compile(r'([a-z_]+)=("(?:[^"\\]|\\.)*"|\S+)')
_BLOCKS = {Order, ExactlyOne, Bool}
_DTYPES: dict[str, Any] = {"indptr": np.int64, "offset": np.int64, "equality": bool, "coefficients": np.int64}
_MAX_ENTRIES = 10_000_000
_MAX_OF_FILE = 50_000_000
"""Entries of one array, and of all arrays together: more is a damaged text."""
_BIG = frozenset(("bound", "constant"))
"""Numbers of any size; all others count something."""
_MOST = {"shift": 10_000}
_MAX_CELLS = 1 << 24
"""Of one feature."""


def decode_integers(text: str, dtype: Any) -> IntegerArray:
    """The array that `encode_integers` wrote; ValueError where it is none."""
    if text.startswith("big:"):
        text, dtype = text[4:], object
    if text == "-":
        return np.zeros(0, dtype)
    runs: list[IntegerArray] = []
    total = 0
    for part in text.split(","):
        low, dots, high = part.partition("..")
        value, star, count = part.partition("*")
        size = int(high) - int(low) + 1 if dots else int(count) if star else 1
        total += size
        if size < 0 or total > _MAX_ENTRIES:
            raise ValueError(f"`{part[:60]}` is no run of a reasonable size")
        runs.append(_run(int(low if dots else value), size, bool(dots), dtype))
    return np.concatenate(runs)


def _run(first: int, size: int, ascending: bool, dtype: Any) -> IntegerArray:
    if dtype is object:
        return np.array([first + i if ascending else first for i in range(size)], object)
    limits = np.iinfo(np.uint8 if dtype is bool else dtype)
    if not limits.min <= first <= first + (size if ascending else 0) <= limits.max + 1:
        raise ValueError(f"{first} does not fit into {limits.bits} bits")
    return np.arange(first, first + size).astype(dtype) if ascending else np.full(size, first, dtype)


def _field(name: str, text: str, annotation: str) -> Any:
    if "Array" in annotation:
        return decode_integers(text, _DTYPES.get(name, np.int32))
    if annotation.startswith("tuple"):
        return tuple(int(v) for v in text.split(",")) if text else ()
    if annotation == "str":
        return _name(text)
    if annotation == "bool":
        return bool(int(text))
    return int(text) if name in _BIG else _count(text, _MOST.get(name, 2**31 - 1), least=-1)


def _name(text: str) -> str:
    name = json.loads(text)
    if not isinstance(name, str):
        raise ValueError(f"`{text[:40]}` is no name in double quotes")
    return name


def _count(text: str, most: int, least: int = 0) -> int:
    value = int(text)
    if not least <= value <= most:
        raise ValueError(f"{text[:40]} is no number from {least} to {most:,}")
    return value


def _node(kind: type, text: str) -> Any:
    given = dict(_FIELD.findall(text))
    wanted = {f.name: str(f.type) for f in fields(kind)}
    if set(given) != set(wanted):
        raise ValueError(
            f"a {KINDS.get(kind, 'start' if kind is Start else 'maximize')} node has the fields {', '.join(wanted)}"
        )
    return kind(**{name: _field(name, value, wanted[name]) for name, value in given.items()})


def parse_module(text: str) -> Module:
    """A module from its full text. Raises `IRError` with the line."""
    by_name = {name: kind for kind, name in KINDS.items()}
    name = ""
    features: list[FeatureInfo] = []
    points: list[str] = []
    provenance: list[str] = []
    variables = 0
    blocks: list[Block] = []
    ops: list[Op] = []
    objective: Objective | None = None
    warm_start: Start | None = None
    entries = 0
    for number, line in enumerate(text.splitlines(), 1):
        head, _, rest = line.strip().partition(" ")
        if not head or head.startswith("#"):
            continue
        try:
            match head:
                case "module":
                    if "# summary" in rest:
                        raise ValueError("this is a summary; print the module with --full")
                    name = _name(rest)
                case "feature":
                    label, _, cells = rest.rpartition(" ")
                    features.append(FeatureInfo(_name(label), _count(cells, _MAX_CELLS)))
                case "point":
                    points.append(_name(rest))
                case "variables":
                    variables = _count(rest, _MAX_OF_FILE)
                case "by":
                    provenance.append(_name(rest))
                case "block" | "op":
                    kind_name, _, values = rest.partition(" ")
                    kind = by_name.get(kind_name)
                    if kind is None or (kind in _BLOCKS) != (head == "block"):
                        raise ValueError(f"unknown {head} `{kind_name}`")
                    node = _node(kind, values)
                    entries += sum(value.size for value in vars(node).values() if isinstance(value, np.ndarray))
                    if entries > _MAX_OF_FILE:
                        raise ValueError(f"the arrays have more than {_MAX_OF_FILE:,} entries")
                    (blocks if head == "block" else ops).append(node)
                case "maximize":
                    objective = _node(Objective, rest)
                case "start":
                    warm_start = _node(Start, rest)
                case _:
                    raise ValueError(f"unknown line `{head}`")
        except (ValueError, OverflowError, RecursionError, TypeError) as error:
            raise IRError(f"the IR text does not parse: {str(error)[:300]}", place=f"line {number}") from error
    return Module(
        name,
        tuple(features),
        tuple(points),
        variables,
        tuple(blocks),
        tuple(ops),
        objective,
        tuple(provenance),
        warm_start,
    )
