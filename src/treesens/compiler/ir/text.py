"""The text form of a module (`.sir`): one line per node and, in the full form, all rows. The full form can be parsed.

    sir 1
    module "sex_alone"
    feature age 12
    point a
    variables 40
    by lower
    block order feature=0 points=0,1 cells=0..11 variables=0..10
    op linear name="gap.a" shift=30 bound=1073741824 variables=… coefficients=…

Integer arrays are written as comma-separated values in which `a..b` is an ascending run and `v*n` a repetition. The full form
parses back: parse_module(print_module(m, full=True)) == m.
"""

from __future__ import annotations

import hashlib
import json
import re
from dataclasses import fields
from typing import Any

import numpy as np

from treesens.compiler.base.arrays import IntegerArray
from treesens.compiler.ir.module import Block, Bool, ExactlyOne, FeatureInfo, Module, Order
from treesens.compiler.ir.ops import (
    Clauses,
    Equal,
    Facts,
    LeafImplies,
    LeafSum,
    Linear,
    Membership,
    Objective,
    Op,
    Start,
)
from treesens.errors import IRError

KINDS: dict[type, str] = {
    Order: "order",
    ExactlyOne: "unit",
    Bool: "bool",
    LeafImplies: "path",
    LeafSum: "leaf-sum",
    Equal: "equal",
    Clauses: "clause",
    Linear: "linear",
    Membership: "table",
    Facts: "const",
}


def encode_integers(array: Any) -> str:
    """An integer array as text; `decode_integers` is the inverse."""
    values = [int(v) for v in array]
    parts: list[str] = []
    i = 0
    while i < len(values):
        j = i
        while j + 1 < len(values) and values[j + 1] == values[j] + 1:
            j += 1
        if j - i >= 2:
            parts.append(f"{values[i]}..{values[j]}")
            i = j + 1
            continue
        j = i
        while j + 1 < len(values) and values[j + 1] == values[i]:
            j += 1
        parts.append(f"{values[i]}*{j - i + 1}" if j - i >= 2 else ",".join([str(values[i])] * (j - i + 1)))
        i = j + 1
    return ",".join(parts) or "-"


def _value(value: Any, full: bool) -> str:
    if isinstance(value, np.ndarray):
        if not full:
            return f"[{len(value)}]"
        if value.dtype == object:
            return "big:" + encode_integers(value)
        return encode_integers(value)
    if isinstance(value, tuple):
        return ",".join(str(v) for v in value)
    if isinstance(value, str):
        return json.dumps(value)
    return str(int(value))


def _node(kind: str, node: Block | Op | Objective | Start, full: bool) -> str:
    values = " ".join(f"{f.name}={_value(getattr(node, f.name), full)}" for f in fields(node))
    return f"{kind} {values}"


VERSION = 1
"""The number in the first line of the text. Later releases read a text by its number; new nodes and fields get a new number."""


def print_module(module: Module, *, full: bool = False) -> str:
    """The text of a module. Only the full form can be parsed."""
    return f"sir {VERSION}\n{_body(module, full)}"


def _body(module: Module, full: bool) -> str:
    """The text after the version line."""
    lines = [f"module {json.dumps(module.name)}{'' if full else '  # summary; --full prints every row'}"]
    lines += [f"feature {json.dumps(f.name)} {f.cells}" for f in module.features]
    lines += [f"point {json.dumps(p)}" for p in module.points]
    lines.append(f"variables {module.variables}")
    lines += [f"by {json.dumps(step)}" for step in module.provenance]
    lines += [_node(f"block {KINDS[type(b)]}", b, full) for b in module.blocks]
    lines += [_node(f"op {KINDS[type(op)]}", op, full) for op in module.ops]
    if module.objective is not None:
        lines.append(_node("maximize", module.objective, full))
    if module.warm_start is not None:
        lines.append(_node("start", module.warm_start, full))
    return "\n".join(lines) + "\n"


def digest(module: Module) -> str:
    """The SHA-256 of the full text after its version line, used as the key for provenance and caching."""
    return hashlib.sha256(_body(module, full=True).encode()).hexdigest()


_FIELD = re.compile(r'([a-z_]+)=("(?:[^"\\]|\\.)*"|\S+)')
_BLOCKS = {Order, ExactlyOne, Bool}
_DTYPES: dict[str, Any] = {"indptr": np.int64, "offset": np.int64, "equality": bool, "coefficients": np.int64}
_MAX_ENTRIES = 10_000_000
_MAX_OF_FILE = 50_000_000
"""Maximum entries in one array and in all arrays together; text with more entries is treated as damaged."""
_BIG = frozenset(("bound", "constant"))
"""Integer fields that may have any size; all other integer fields are counts."""
_MOST = {"shift": 10_000}
_MAX_CELLS = 1 << 24
"""Maximum for one feature."""


def decode_integers(text: str, dtype: Any) -> IntegerArray:
    """Parses an array written by `encode_integers`. Raises ValueError if the text is invalid."""
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
            raise ValueError(f"`{part[:60]}` is not a run of a reasonable size")
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
        raise ValueError(f"`{text[:40]}` is not a name in double quotes")
    return name


def _count(text: str, most: int, least: int = 0) -> int:
    value = int(text)
    if not least <= value <= most:
        raise ValueError(f"{text[:40]} is not a number from {least} to {most:,}")
    return value


def _parsed_node(kind: type, text: str) -> Any:
    given = dict(_FIELD.findall(text))
    wanted = {f.name: str(f.type) for f in fields(kind)}
    if set(given) != set(wanted):
        raise ValueError(
            f"a {KINDS.get(kind, 'start' if kind is Start else 'maximize')} node has the fields {', '.join(wanted)}"
        )
    return kind(**{name: _field(name, value, wanted[name]) for name, value in given.items()})


_VERSION_LINE = re.compile(r"sir[ \t]+([0-9]{1,9})[ \t]*(?:\r?\n|$)")


def is_module_text(text: str) -> bool:
    """True if the text, or its beginning, starts with a version line."""
    return _VERSION_LINE.match(text) is not None


def _check_version(text: str) -> None:
    found = _VERSION_LINE.match(text)
    if found is None or int(found[1]) == 0:
        raise IRError(
            f"the first line is not the version line `sir {VERSION}`",
            place="line 1",
            remedy="write the module again with `opt --full` or `emit --to sir`",
        )
    if int(found[1]) > VERSION:
        raise IRError(
            f"sir {int(found[1])} is newer than this treesens reads ({VERSION})",
            place="line 1",
            remedy="upgrade treesens, or write the module again with this version",
        )


def parse_module(text: str) -> Module:
    """Parses the full text of a module. Raises `IRError`, with the line number, if the text is invalid."""
    _check_version(text)
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
    for number, line in enumerate(text.splitlines()[1:], 2):
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
                    node = _parsed_node(kind, values)
                    entries += sum(value.size for value in vars(node).values() if isinstance(value, np.ndarray))
                    if entries > _MAX_OF_FILE:
                        raise ValueError(f"the arrays have more than {_MAX_OF_FILE:,} entries")
                    (blocks if head == "block" else ops).append(node)
                case "maximize":
                    objective = _parsed_node(Objective, rest)
                case "start":
                    warm_start = _parsed_node(Start, rest)
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
