"""The published models and data, if they were fetched (`make bench-data`) or their folder is named (`TREESENS_BENCH`)."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import pytest
from benchmarks.published import FOLDER as BENCH
from benchmarks.published import files

from treesens.binder.file import ResolvedFile, bind
from treesens.data.tables import Table, read_table, with_zeros
from treesens.frontends.base import LoadedModel
from treesens.frontends.registry import load
from treesens.grammar.parsing.parser import parse

needs_bench = pytest.mark.skipif(
    not all((BENCH / place).is_file() for _, place, _ in files()),
    reason="run `make bench-data` for the published models and tables, or name their folder with TREESENS_BENCH",
)
needs_distances = pytest.mark.skipif(
    not (BENCH / "local" / "distances.jsonl").is_file(),
    reason="`local/` is not in the folder that TREESENS_BENCH names (benchmarks/README.md); "
    "`python -m benchmarks.local` compares with Veritas itself",
)


@cache
def model(name: str) -> LoadedModel:
    return load(BENCH / f"models/{name}.json")


@cache
def table(name: str) -> Table:
    return read_table(BENCH / f"data/{name}/train.csv", label="label")


def ask(text: str, model_name: str, data_name: str) -> ResolvedFile:
    """Questions about a published model `m` and its training data `d`."""
    lines = ['model m from "m"', 'data d from "d" label `label`', "domain from d", text]
    return bind(
        parse("\n".join(lines), "<question>"),
        Path(),
        load_model=lambda _path, _format: model(model_name),
        load_table=lambda _path, _label, _rows: with_zeros(table(data_name), ["f0"]),
    )
