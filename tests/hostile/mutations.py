"""Mutations that know the structure of a format: numbers become huge, negative or no numbers, keys go or come twice, nesting
grows, bytes flip. Every mutation is a function of the valid file and of a generator of random numbers.
"""

from __future__ import annotations

import io
import json
import math
import random
import re
import struct
import zipfile
from collections.abc import Callable
from copy import deepcopy
from typing import Any
from xml.etree import ElementTree

Mutation = Callable[[bytes, random.Random], bytes]

NUMBERS: tuple[Any, ...] = (
    *(
        0,
        -1,
        1,
        2,
        255,
        2**15,
        2**24 - 2,
        2**31 - 1,
        2**31,
        -(2**31) - 1,
        2**32,
        2**53 + 1,
        2**62,
        2**63,
        -(2**63),
        2**64,
    ),
    *(10**30, 0.5, -0.0, 1e-320, 1e300, -1e300, math.nan, math.inf, -math.inf),
)
OTHERS: tuple[Any, ...] = (
    *(None, True, "", "x", "\x1b[31m", "\ud800", "-1", "1e999", "nan", "9" * 5000, "١٢", "é" * 300, [], {}, [[]]),
    *([0] * 1000, [1, "a", None], {"": {}}, [[0] * 3] * 3),
)
WORDS = (
    "inf",
    "-inf",
    "nan",
    "1e999",
    "-1",
    "0",
    "1e-400",
    "99999999999999999999",
    "9" * 500,
    "0x1",
    "1_0",
    "½",
    "\x00",
    "\\",
    '"',
    "`",
)


def of_bytes(data: bytes, rng: random.Random) -> bytes:
    """A few flipped, dropped, repeated or overwritten bytes; or the file cut off, or doubled."""
    broken = bytearray(data)
    for _ in range(rng.choice((1, 1, 2, 5, 30))):
        if not broken:
            break
        at = rng.randrange(len(broken))
        match rng.randrange(7):
            case 0:
                broken[at] = rng.randrange(256)
            case 1:
                broken[at] ^= 1 << rng.randrange(8)
            case 2:
                broken[at] = rng.choice(b'0123456789-.,eE[]{}"\n=')
            case 3:
                del broken[at : at + rng.randrange(1, 40)]
            case 4:
                broken[at:at] = broken[at : at + rng.randrange(1, 40)]
            case 5:
                number = rng.choice((0, -1, 1, 2**31 - 1, -(2**31), 2**16, 2**24))
                broken[at : at + 4] = struct.pack(rng.choice("<>") + "i", number)
            case 6:
                number = rng.choice((0, -1, 2**63 - 1, 2**40, -(2**63)))
                broken[at : at + 8] = struct.pack(rng.choice("<>") + "q", number)
    if rng.random() < 0.05:
        del broken[rng.randrange(len(broken) + 1) :]
    if rng.random() < 0.02:
        broken.extend(bytes(broken))
    return bytes(broken)


def of_tree(root: Any, rng: random.Random) -> Any:
    """A document of dictionaries and lists with some places changed; `root` itself is used up."""
    for _ in range(rng.choice((1, 1, 1, 2, 4))):
        holder, key = _some_place(root, rng)
        if holder is None:
            return _any(rng, NUMBERS + OTHERS)
        _change(holder, key, rng)
    return root


def _some_place(root: Any, rng: random.Random) -> tuple[Any, Any]:
    holder, key, at = None, None, root
    while isinstance(at, dict | list) and len(at):
        if holder is not None and rng.random() < 0.12:
            break
        holder = at
        key = rng.choice(list(at)) if isinstance(at, dict) else rng.randrange(len(at))
        at = at[key]
    return holder, key


def _change(holder: Any, key: Any, rng: random.Random) -> None:
    value = holder[key]
    match rng.randrange(9):
        case 0 | 1 | 2:
            holder[key] = _other(value, rng)
        case 3:
            holder[key] = _any(rng, OTHERS)
        case 4:
            del holder[key]
        case 5 if isinstance(holder, dict):
            holder[f"{key}{rng.choice(('x', ' ', ''))}"] = _any(rng, OTHERS)
        case 5:
            holder.insert(key, _any(rng, NUMBERS + OTHERS))
        case 6 if isinstance(value, list) and value:
            holder[key] = value * rng.choice((2, 3, 50)) if len(value) < 200 else value[: len(value) // 2]
        case 7:
            nested: Any = value
            for _ in range(rng.choice((1, 3, 90, 2000))):
                nested = [nested] if rng.random() < 0.7 else {"x": nested}
            holder[key] = nested
        case _:
            other = rng.choice(list(holder)) if isinstance(holder, dict) else rng.randrange(len(holder))
            holder[key], holder[other] = holder[other], holder[key]


def _any(rng: random.Random, values: tuple[Any, ...]) -> Any:
    """A value of its own: a list that two files share would carry the changes of the one into the other, and could come to
    hold itself.
    """
    return deepcopy(rng.choice(values))


def _other(value: Any, rng: random.Random) -> Any:
    number = rng.choice(NUMBERS)
    if isinstance(value, str):
        return str(number) if rng.random() < 0.6 else value + rng.choice(("\x1b[2J", "\n", "|", "\ud800", "9" * 400))
    if isinstance(value, list) and value:
        value[rng.randrange(len(value))] = number
        return value
    if isinstance(value, int | float) and rng.random() < 0.4:
        return value + rng.choice((-1, 1, 0.5))
    return number


def json_text(tree: Any, rng: random.Random) -> bytes:
    """JSON as Python writes it, NaN and Infinity included; sometimes a key comes twice."""
    try:
        text = json.dumps(tree)
    except RecursionError:
        return b'{"learner":' + b"[" * 100_000
    if rng.random() < 0.05:
        text = re.sub(r'("[a-z_]+"):', r"\1: 7, \1:", text, count=rng.choice((1, 5)))
    return text.encode("utf-8", "surrogatepass") if rng.random() < 0.98 else text.encode("utf-16")


def of_json(data: bytes, rng: random.Random) -> bytes:
    return of_bytes(data, rng) if rng.random() < 0.25 else json_text(of_tree(json.loads(data), rng), rng)


def of_xml(data: bytes, rng: random.Random) -> bytes:
    """Elements that go, come twice, change places or names, and attributes of other values; or bytes."""
    if rng.random() < 0.25:
        return of_bytes(data, rng)
    ElementTree.register_namespace("", "http://www.dmg.org/PMML-4_4")
    root = ElementTree.fromstring(data)
    every = list(root.iter())
    for _ in range(rng.choice((1, 1, 2, 5))):
        element, other = rng.choice(every), rng.choice(every)
        match rng.randrange(6):
            case 0 if len(element):
                element.remove(rng.choice(list(element)))
            case 1 if len(element):
                element.append(deepcopy(rng.choice(list(element))))
            case 2:
                element.append(deepcopy(other) if len(list(other.iter())) < 50 else ElementTree.Element("True"))
            case 3:
                element.tag = other.tag
            case 4 if element.attrib:
                del element.attrib[rng.choice(list(element.attrib))]
            case _ if element.attrib:
                words = [*map(str, NUMBERS), "", "x", "NaN", "float", "isMissing", *other.attrib.values()]
                element.set(rng.choice(list(element.attrib)), rng.choice(words))
    return ElementTree.tostring(root)


def of_ubjson(data: bytes, rng: random.Random) -> bytes:
    """The same changes to the tree, written as UBJSON without typed arrays; or bytes."""
    if rng.random() < 0.5:
        return of_bytes(data, rng)
    from treesens.frontends.xgboost.ubjson import parse_ubjson

    out = bytearray()
    try:
        _ubjson(of_tree(_plain(parse_ubjson(data, "sample")), rng), out)
    except (RecursionError, struct.error):
        return b"{" + b"i\x01x[" * 50_000
    return bytes(out) if rng.random() < 0.8 else of_bytes(bytes(out), rng)


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _plain(v) for key, v in value.items()}
    if isinstance(value, list):
        return [_plain(v) for v in value]
    return value.tolist() if hasattr(value, "tolist") else value


def _ubjson(value: Any, out: bytearray) -> None:
    if isinstance(value, dict):
        out += b"{"
        for key, inner in value.items():
            _length(key.encode("utf-8", "surrogatepass"), out)
            _ubjson(inner, out)
        out += b"}"
    elif isinstance(value, list):
        out += b"["
        for inner in value:
            _ubjson(inner, out)
        out += b"]"
    elif isinstance(value, str):
        out += b"S"
        _length(value.encode("utf-8", "surrogatepass"), out)
    elif value is None or isinstance(value, bool):
        out += {None: b"Z", True: b"T", False: b"F"}[value]
    elif isinstance(value, int) and -(2**63) <= value < 2**63:
        out += b"L" + struct.pack(">q", value)
    else:
        out += b"D" + struct.pack(">d", float(value))


def _length(text: bytes, out: bytearray) -> None:
    out += b"L" + struct.pack(">q", len(text)) + text


def of_words(data: bytes, rng: random.Random) -> bytes:
    """A text: words and numbers replaced, swapped, dropped or repeated; lines likewise."""
    if rng.random() < 0.15:
        return of_bytes(data, rng)
    text = data.decode("utf-8")
    for _ in range(rng.choice((1, 1, 2, 4))):
        parts = re.split(r"(\s+|[,;:(){}\[\]=])", text) if rng.random() < 0.8 else re.split(r"(\n)", text)
        at = rng.choice([i for i, part in enumerate(parts) if part.strip()] or [0])
        match rng.randrange(6):
            case 0 | 1:
                word = rng.choice(WORDS)
                parts[at] = word if rng.random() < 0.6 else str(rng.choice(NUMBERS))
            case 2:
                parts[at] = ""
            case 3:
                parts[at] = parts[at] * rng.choice((2, 20)) if len(text) < 200_000 else ""
            case 4:
                other = rng.randrange(len(parts))
                parts[at], parts[other] = parts[other], parts[at]
            case 5:
                parts[at] = rng.choice("([{") * rng.choice((1, 50, 3000)) + parts[at]
        text = "".join(parts)
    return text.encode("utf-8", "surrogatepass")


def of_skops(data: bytes, rng: random.Random) -> bytes:
    """The schema of the archive as a tree, its arrays as bytes; or the archive as bytes."""
    if rng.random() < 0.2:
        return of_bytes(data, rng)
    out = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(data)) as old, zipfile.ZipFile(out, "w") as new:
        names = old.namelist()
        chosen = "schema.json" if rng.random() < 0.6 else rng.choice(names)
        for name in names:
            content = old.read(name)
            if name == chosen:
                content = of_json(content, rng) if name == "schema.json" else of_bytes(content, rng)
            new.writestr(name, content)
    return out.getvalue()


def of_mojo(data: bytes, rng: random.Random) -> bytes:
    """The index of the archive as words, its trees as bytes; or the archive as bytes."""
    if rng.random() < 0.2:
        return of_bytes(data, rng)
    out = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(data)) as old, zipfile.ZipFile(out, "w") as new:
        names = [name for name in old.namelist() if not name.endswith("_aux.bin")]
        chosen = "model.ini" if rng.random() < 0.4 else rng.choice(names)
        for name in names:
            content = old.read(name)
            if name == chosen:
                content = of_bytes(content, rng) if name.startswith("trees/") else of_words(content, rng)
            new.writestr(name, content)
    return out.getvalue()


def of_spark(data: bytes, rng: random.Random) -> bytes:
    """The metadata as JSON, a table with other values, types and columns, or as bytes; or the archive as bytes."""
    if rng.random() < 0.1:
        return of_bytes(data, rng)
    out = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(data)) as old, zipfile.ZipFile(out, "w") as new:
        names = [name for name in old.namelist() if "/part-" in name]
        chosen = rng.choice(names)
        for name in old.namelist():
            content = old.read(name)
            if name == chosen:
                table = name.endswith(".parquet")
                content = _rows_of_parquet(content, rng) if table else of_json(content, rng)
            new.writestr(name, content)
    return out.getvalue()


def _rows_of_parquet(data: bytes, rng: random.Random) -> bytes:
    """A table of structures with some values changed; its columns may then have other types."""
    import pyarrow
    from pyarrow import parquet

    if rng.random() < 0.3:
        return of_bytes(data, rng)
    table = parquet.read_table(io.BytesIO(data))
    out = io.BytesIO()
    rows = table.to_pylist()
    rows = of_tree(rows, rng) if rng.random() < 0.5 else [*rows[: rng.randrange(len(rows))], *rows[-3:]]
    if not isinstance(rows, list):
        rows = [rows]
    try:
        made = pyarrow.Table.from_pylist(rows, table.schema if rng.random() < 0.7 else None)
        parquet.write_table(made, out)
    except (pyarrow.ArrowException, TypeError, ValueError, OverflowError, AttributeError, UnicodeEncodeError):
        return of_bytes(data, rng)  # what no table holds
    return out.getvalue()


def of_onnx(data: bytes, rng: random.Random) -> bytes:
    """Attributes of the nodes as lists of numbers and texts; or bytes."""
    import onnx

    if rng.random() < 0.4:
        return of_bytes(data, rng)
    model = onnx.load_model_from_string(data)
    for _ in range(rng.choice((1, 1, 3))):
        node = rng.choice(list(model.graph.node))
        if not node.attribute or rng.random() < 0.1:
            node.op_type = rng.choice(("TreeEnsembleRegressor", "TreeEnsemble", "Identity", ""))
            continue
        _attribute(rng.choice(list(node.attribute)), node, rng)
    return bytes(model.SerializeToString())


def _attribute(attribute: Any, node: Any, rng: random.Random) -> None:
    for values, wild in (
        (attribute.ints, (0, -1, 2**31, 2**40, 2**63 - 1, -(2**63), 3)),
        (attribute.floats, (math.nan, math.inf, 1e38, -0.0)),
        (attribute.strings, (b"", b"BRANCH_GT", b"LEAF", b"x" * 1000, b"\xff\xfe")),
    ):
        if len(values) and rng.random() < 0.8:
            at = rng.randrange(len(values))
            match rng.randrange(3):
                case 0:
                    values[at] = rng.choice(wild)
                case 1:
                    del values[at]
                case 2:
                    values.append(rng.choice(wild))
            return
    if rng.random() < 0.5:
        node.attribute.remove(attribute)
    else:
        attribute.name = rng.choice(("nodes_values", "base_values", "aggregate_function", "n_targets", "x"))


def of_parquet(data: bytes, rng: random.Random) -> bytes:
    """Tables with columns of other types and values; or bytes."""
    if rng.random() < 0.5:
        return of_bytes(data, rng)
    import pyarrow
    from pyarrow import parquet

    columns: tuple[Any, ...] = (
        pyarrow.array([2**62 + 1, -(2**63), 2**53 + 1]),
        pyarrow.array([2**64 - 1, 0, 1], pyarrow.uint64()),
        pyarrow.array([None, None, None]),
        pyarrow.array([[1], [2, 3], None]),
        pyarrow.array([{"x": 1}, None, {"x": 2}]),
        pyarrow.array([b"\xff", b"", None]),
        pyarrow.array(["a", None, "\x1b[2J"]).dictionary_encode(),
        pyarrow.array([True, False, None]),
        pyarrow.array([math.nan, math.inf, None]),
        pyarrow.array([1, 2, 3], pyarrow.timestamp("ns")),
        pyarrow.array([1, 2, 3], pyarrow.duration("s")),
        pyarrow.array(["1", "2", "x"]),
        pyarrow.array([1, 2, 3], pyarrow.decimal128(30, 5)),
    )
    names = [rng.choice(("a", "b", "c", "d", "y", "", "\x1b")) for _ in range(rng.randrange(1, 6))]
    out = io.BytesIO()
    parquet.write_table(pyarrow.Table.from_arrays([rng.choice(columns) for _ in names], names), out)
    return out.getvalue()


MUTATIONS: dict[str, Mutation] = {
    "xgboost.json": of_json,
    "linear.json": of_json,
    "xgboost.ubj": of_ubjson,
    "xgboost-categories.json": of_json,
    "lightgbm.txt": of_words,
    "lightgbm.json": of_json,
    "catboost.json": of_json,
    "catboost-categories.json": of_json,
    "interpret.json": of_json,
    "scorecard.csv": of_words,
    "tree.pmml": of_xml,
    "chain.pmml": of_xml,
    "numbers.pmml": of_xml,
    "ballots.pmml": of_xml,
    "vote.pmml": of_xml,
    "boosting.mojo": of_mojo,
    "catboost.cbm": of_bytes,
    "onnx.onnx": of_onnx,
    "treelite.tl": of_bytes,
    "forest.spark": of_spark,
    "tree.spark": of_spark,
    "sklearn.skops": of_skops,
    "votes.skops": of_skops,
    "pipeline.skops": of_skops,
    "counted.skops": of_skops,
    "numbers.skops": of_skops,
    "table.csv": of_words,
    "table.parquet": of_parquet,
    "question.sens": of_words,
    "sweep.toml": of_words,
    "module.sir": of_words,
    "journal.sqlite": of_bytes,
    "list.jsonl": of_words,
}
