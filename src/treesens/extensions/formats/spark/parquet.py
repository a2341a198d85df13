"""Reads Spark's Parquet tables with pyarrow, in a separate process, because a damaged file may crash the process."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from treesens.compiler.base.packages import imported
from treesens.errors import ModelError
from treesens.extensions.formats.apart import read_apart
from treesens.extensions.formats.spark.folder import DAMAGED, Folder

_IMPORTS = "import json, numpy, pyarrow, pyarrow.parquet"
_READ = """
pyarrow.set_memory_pool(pyarrow.system_memory_pool())
pyarrow.set_cpu_count(1)
folder = sys.argv[3]
is_list, is_struct = pyarrow.types.is_list, pyarrow.types.is_struct
PLAIN = {"int32": "<i4", "int64": "<i8", "double": "<f8"}
with open(folder + "/plan.json", encoding="utf-8") as file:
    plan = json.load(file)

# What `to_numpy` gives, without pandas, which it imports: that takes ten times longer than all else.
def numbers(array):
    kind = numpy.dtype(PLAIN[str(array.type)])
    if len(array) == 0:
        return numpy.zeros(0, kind)
    return numpy.frombuffer(array.buffers()[1], kind)[array.offset : array.offset + len(array)]

def columns(table):
    found = {}
    while any(is_struct(kind) for kind in table.schema.types):
        if any(column.null_count for column in table.columns):
            sys.exit("a value is missing")
        table = table.flatten()
    for name, column in zip(table.schema.names, table.columns):
        kind = column.type
        if name in found or (str(kind) not in PLAIN and not (is_list(kind) and str(kind.value_type) == "double")):
            sys.exit(f"the column {name[:60]!r} is there twice, or is {kind}")
        if column.null_count:
            sys.exit(f"a value of the column {name[:60]!r} is missing")
        array = column.combine_chunks() if column.num_chunks != 1 else column.chunk(0)
        if is_list(kind):
            values = array.flatten()
            if values.null_count:
                sys.exit(f"a number in the column {name[:60]!r} is missing")
            found[name] = numbers(values)
            found[name + "#"] = numpy.diff(numbers(array.offsets))
        else:
            found[name] = numbers(array)
    return found

rows = {}
for name, (files, as_columns) in plan.items():
    tables = [pyarrow.parquet.ParquetFile(f"{folder}/{file}").read(use_threads=False) for file in files]
    if any(table.schema.names != tables[0].schema.names for table in tables):
        sys.exit("the parts of a table have different columns")
    table = pyarrow.concat_tables(tables)
    if as_columns:
        numpy.savez(f"{folder}/{name}.npz", **columns(table))
    else:
        rows[name] = [table.schema.names, table.to_pylist()]
sys.stdout.write(json.dumps(rows))
"""


@dataclass(frozen=True, eq=False)
class Columns:
    """Columns of numbers by name; a field of a structure has the name `structure.name`. A column of lists is the concatenation
    of its lists, whose lengths are in `lengths`.
    """

    values: Mapping[str, NDArray[Any]]
    lengths: Mapping[str, NDArray[np.int64]]


@dataclass(frozen=True)
class Rows:
    """A small table: its column names, and its rows in JSON form."""

    names: tuple[str, ...]
    rows: tuple[Mapping[str, Any], ...]


def read_tables(
    columns: Mapping[str, Folder], rows: Mapping[str, Folder], place: str
) -> tuple[dict[str, Columns], dict[str, Rows]]:
    """The tables in these folders, by name: large ones as `columns`, small ones as `rows`. Raises ModelError for bad files."""
    purpose = "reading models of Spark requires pyarrow"
    imported("pyarrow", purpose, place=place, installed_by="'treesens[spark]'")
    plan: dict[str, tuple[list[str], bool]] = {}
    size = 0
    with tempfile.TemporaryDirectory() as scratch:
        for number, (name, folder) in enumerate([*columns.items(), *rows.items()]):
            files = []
            for part, blob in enumerate(folder.blobs()):
                files.append(f"{number}-{part}")
                (Path(scratch) / files[-1]).write_bytes(blob)
                size += len(blob)
            plan[name] = (files, name in columns)
        (Path(scratch) / "plan.json").write_text(json.dumps(plan), encoding="utf-8")
        told = read_apart(_IMPORTS, _READ, [scratch], size, "the Parquet files cannot be read", place)
        tables = {name: _columns(Path(scratch) / f"{name}.npz") for name in columns}
    return tables, {name: Rows(tuple(names), tuple(found)) for name, (names, found) in json.loads(told).items()}


def _columns(path: Path) -> Columns:
    with np.load(path, allow_pickle=False) as stored:
        found = {name: stored[name] for name in stored.files}
    lengths = {name[:-1]: found[name].astype(np.int64) for name in found if name.endswith("#")}
    return Columns({name: array for name, array in found.items() if not name.endswith("#")}, lengths)


def check_columns(names: Sequence[str], needed: Sequence[str], place: str, allowed: Sequence[str] = ()) -> None:
    """Raises ModelError for missing or unknown columns."""
    for name in needed:
        if name not in names:
            raise ModelError(f"the table has no column `{name}`", place=place, remedy=DAMAGED)
    for name in names:
        if name not in needed and name not in allowed:
            raise ModelError(
                f"unknown column `{name[:60]}`",
                place=place,
                remedy="the column may change the model's meaning; report the version",
            )
