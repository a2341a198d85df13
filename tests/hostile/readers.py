"""What treesens does with a file of each format when a command is given it, short of searching for an answer."""

from __future__ import annotations

import json
from collections.abc import Callable
from contextlib import suppress
from fractions import Fraction
from pathlib import Path

import numpy as np

from treesens.backends.native.backend import NativeBackend
from treesens.compiler.base.diagnostics import Diagnostics
from treesens.errors import TreesensError


def read_model(path: Path) -> None:
    """As `info` does, then a prediction in the library's arithmetic; numbers of a linear model get a domain of 0 and 1."""
    from treesens.compiler.model.numbers import closed_over
    from treesens.frontends.registry import load
    from treesens.records.model import model_record

    loaded = load(path)
    loaded.ensemble.validate()
    json.dumps(model_record(loaded), allow_nan=False, default=str)
    closed = closed_over(loaded.ensemble, {name: np.arange(2.0) for name in loaded.ensemble.open_features})
    closed.margins_emulated(np.zeros((2, closed.n_features)))


def read_data(path: Path) -> None:
    """As a question does that reads every column."""
    from treesens.data.tables import Categories, read_table

    table = read_table(path)
    for name in table.inputs:
        for known in (
            None,
            Categories({"no": 0.0, "yes": 1.0}),
            Categories(numbers={Fraction(i): float(i) for i in (0, 1)}),
        ):
            with suppress(TreesensError):
                table.numbers(name, known)


def read_question(path: Path) -> None:
    """As `explain` does."""
    from treesens.binder.file import bind
    from treesens.compiler.pipeline import compile_query
    from treesens.grammar.parsing.parser import load, parse
    from treesens.grammar.printing.formatter import format_text

    text = load(path).text
    parsed = parse(text, str(path))
    format_text(text, str(path))
    for bound in bind(parsed, path.parent, diagnostics=Diagnostics()).queries[:4]:
        compile_query(bound.query, "default")


def read_sweep(path: Path) -> None:
    from treesens.extensions.sweeps.spec import read_spec

    read_spec(path)


def read_module(path: Path) -> None:
    """As `opt` does, then the engine's own reading of it."""
    from treesens.backends.text.smt2 import write_smt2
    from treesens.compiler.ir.files import read_module as read
    from treesens.compiler.pipeline import Pipeline

    module = Pipeline.parse("default").run(read(path)).module
    NativeBackend().emit(module)
    write_smt2(module)


def read_journal(path: Path) -> None:
    """As `sweep` does: looks up, reads, writes, ends."""
    from treesens.records.journal import Entry, Journal

    with Journal(path) as journal:
        for i in range(0, 60, 7):
            if journal.known(f"k{i}", 5.0) is not None:
                journal.record(f"k{i}", 5.0)
        list(journal.entries())
        journal.keep(Entry("new", "none", "q", "m", None, None, 1, 0.5, 1, "here"), 5.0, {})


def read_list(path: Path) -> None:
    """As `bench` does before it asks anything."""
    from treesens.extensions.sweeps.instances import questions_of, read_instances, read_records

    read_records(path)
    questions_of(read_instances(path), path.parent)


READERS: dict[str, Callable[[Path], None]] = {
    "table.csv": read_data,
    "table.parquet": read_data,
    "question.sens": read_question,
    "sweep.toml": read_sweep,
    "module.sir": read_module,
    "journal.sqlite": read_journal,
    "list.jsonl": read_list,
}


def reader(name: str) -> Callable[[Path], None]:
    return READERS.get(name, read_model)
