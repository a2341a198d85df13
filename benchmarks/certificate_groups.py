"""The groups of `benchmarks.certificates` that are no lists of instances: the examples, and the bounds of largest gaps."""

from __future__ import annotations

import argparse
import importlib.util
import shutil
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from benchmarks.certificate_rows import Models, Row, none_row, row_of

from treesens.binder.file import bind
from treesens.compiler.result import Verdict
from treesens.extensions.certify.attach import beyond_gap
from treesens.extensions.studies.gap import GapOptions
from treesens.extensions.studies.gap_search import ask as largest_gaps
from treesens.extensions.studies.study import Asking
from treesens.grammar.parsing.parser import parse

EXAMPLES = Path(__file__).parents[1] / "examples"
GAP_MODELS = ("adult_t300_d5", "german_credit_t500_d5")
"""14 and 20 features: the 34 largest gaps."""


def example_rows(asked: argparse.Namespace) -> Iterator[Row]:
    """Every question of `examples/*.sens` whose answer is `none`, about the models that `examples/train.py` makes."""
    with tempfile.TemporaryDirectory() as folder:
        for path in EXAMPLES.glob("*.*"):
            shutil.copy(path, folder)
        train_examples(Path(folder) / "out")
        for path in sorted(Path(folder).glob("[!d]*.sens")):  # demo.sens has a model of its own
            for question in bind(parse(path.read_text(), str(path)), Path(folder)).queries:
                name = f"{path.name}: {question.name}"
                row = none_row("examples", name, question, asked.limit)
                if row is not None:
                    yield row


def train_examples(folder: Path) -> None:
    """The models of the examples, as `examples/train.py` makes them, in a folder."""
    module: Any = _loaded(EXAMPLES / "train.py")
    module.OUT = folder
    module.main()


def _loaded(path: Path) -> Any:
    spec = importlib.util.spec_from_file_location("train", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def gap_rows(models: Models, asked: argparse.Namespace) -> Iterator[Row]:
    """Of every feature of two models: no pair has a gap beyond the bound that was proved (or no pair exists at all)."""
    for name in GAP_MODELS:
        model = models.model(name)
        for feature in model.ensemble.feature_names:
            start = time.process_time()
            options = GapOptions(vary=[[feature]], time_limit=asked.seconds, threads=1)
            (found,) = largest_gaps(Asking((model,), None, options)).result
            took, query = time.process_time() - start, found.query
            if found.verdict is Verdict.NONE:
                yield row_of("largest gaps", f"{name} {feature}: no pair", query, took, asked.limit)
            elif found.bound is None:
                yield Row("largest gaps", f"{name} {feature}", took, reason=f"no bound: {found.reason}")
            else:
                words = f"{name} {feature} <= {found.bound:.4g}" + ("" if found.closed else " (open)")
                beyond = beyond_gap(query, max(0.0, found.bound))
                yield row_of("largest gaps", words, beyond, took, asked.limit)
