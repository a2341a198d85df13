"""Reads the full textual form of a module back: parse_module(print_module(m, full=True)) == m."""

from __future__ import annotations

import json
import re
from dataclasses import fields
from typing import Any

import numpy as np

from treesens.compiler.base.arrays import IntegerArray
from treesens.compiler.ir.module import FeatureInfo, Module
from treesens.compiler.ir.ops import Objective, Op, Start
from treesens.compiler.ir.printer import KINDS
from treesens.compiler.ir.types import Block, Bool, Order, Unit
from treesens.errors import IRError

_FIELD = re.compile(r'([a-z_]+)=("(?:[^"\\]|\\.)*"|\S+)')
_BLOCKS = {Order, Unit, Bool}
_DTYPES: dict[str, Any] = {"indptr": np.int64, "offset": np.int64, "equality": bool, "coefficients": np.int64}
_MAX_ENTRIES = 200_000_000


def decode_integers(text: str, dtype: Any) -> IntegerArray:
    """The array that `encode_integers` wrote; ValueError where it is none."""
    if text.startswith("big:"):
        text, dtype = text[4:], object
    if text == "-":
        return np.zeros(0, dtype)
    values: list[int] = []
    for part in text.split(","):
        low, dots, high = part.partition("..")
        value, star, count = part.partition("*")
        size = int(high) - int(low) + 1 if dots else int(count) if star else 1
        if size < 0 or len(values) + size > _MAX_ENTRIES:
            raise ValueError(f"`{part}` is no run of a reasonable size")
        values.extend(range(int(low), int(high) + 1) if dots else [int(value)] * size)
    return np.array(values, dtype)


def _field(name: str, text: str, annotation: str) -> Any:
    if "Array" in annotation:
        return decode_integers(text, _DTYPES.get(name, np.int32))
    if annotation.startswith("tuple"):
        return tuple(int(v) for v in text.split(",")) if text else ()
    if annotation == "str":
        return json.loads(text)
    return bool(int(text)) if annotation == "bool" else int(text)


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
    start: Start | None = None
    for number, line in enumerate(text.splitlines(), 1):
        head, _, rest = line.strip().partition(" ")
        if not head or head.startswith("#"):
            continue
        try:
            match head:
                case "module":
                    if "# summary" in rest:
                        raise ValueError("this is a summary; print the module with --full")
                    name = json.loads(rest)
                case "feature":
                    label, _, cells = rest.rpartition(" ")
                    features.append(FeatureInfo(json.loads(label), int(cells)))
                case "point":
                    points.append(json.loads(rest))
                case "variables":
                    variables = int(rest)
                case "by":
                    provenance.append(json.loads(rest))
                case "block" | "op":
                    kind_name, _, values = rest.partition(" ")
                    kind = by_name.get(kind_name)
                    if kind is None or (kind in _BLOCKS) != (head == "block"):
                        raise ValueError(f"unknown {head} `{kind_name}`")
                    (blocks if head == "block" else ops).append(_node(kind, values))
                case "maximize":
                    objective = _node(Objective, rest)
                case "start":
                    start = _node(Start, rest)
                case _:
                    raise ValueError(f"unknown line `{head}`")
        except ValueError as error:
            raise IRError(f"the IR text does not parse: {error}", place=f"line {number}") from error
    return Module(
        name, tuple(features), tuple(points), variables, tuple(blocks), tuple(ops), objective, tuple(provenance), start
    )
