"""The textual form of a module (`.sir`): one line per node, or with every row (`full`), which parses back.

    module "sex_alone"
    feature age 12
    point a
    variables 40
    by lower
    block order feature=0 points=0,1 cells=0..11 variables=0..10
    op linear name="gap.a" shift=30 bound=1073741824 variables=… coefficients=…

Integer arrays are written as comma-separated values in which `a..b` is an ascending run and `v*n` a repetition.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import fields
from typing import Any

import numpy as np

from treesens.compiler.ir.module import Block, Bool, ExactlyOne, Module, Order
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
    """An integer array as text; `decode_integers` of the parser is its inverse."""
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


def print_module(module: Module, *, full: bool = False) -> str:
    """The text of a module. Only the full form parses back."""
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
    """SHA-256 of the full text: the key of provenance and caching."""
    return hashlib.sha256(print_module(module, full=True).encode()).hexdigest()
