"""The published models and data (../shared/bench), where they are on this machine."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import pytest

from treesens.binder.file import ResolvedFile, bind
from treesens.data.tables import Table, read_table, with_zeros
from treesens.frontends.base import LoadedModel
from treesens.frontends.registry import load
from treesens.grammar.parsing.parser import parse

BENCH = Path(__file__).resolve().parents[3] / "shared" / "bench"
needs_bench = pytest.mark.skipif(
    not BENCH.is_dir(), reason="the published models are not beside the repository (../shared/bench)"
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
