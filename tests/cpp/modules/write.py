"""Random small questions, compiled to problems of the native engine, as text for `run.cpp`:
`python -m tests.cpp.modules.write COUNT SEED FILE`.

A problem is a line per array of `SearchProblem` (its name, its length, its entries) and a line `end`. With every problem come
the trees of its model over cells (`root` to `leaf_value`), which the kernels for rows take.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import IO

import numpy as np

from tests.questions import random_query
from treesens.backends.native.backend import NativeArtifact, NativeBackend
from treesens.compiler.model.scores import leaf_values
from treesens.compiler.pipeline import compile_query, decide_at_compile_time
from treesens.compiler.query.query import Query
from treesens.errors import BackendError

PIPELINES = ("native", "kant", "ensense", "independent", "bounded", "default")


def problems(count: int, seed: int) -> Iterator[tuple[Query, NativeArtifact]]:
    """So many questions that the compiler leaves to the engine, a function of the seed."""
    rng, made = np.random.default_rng(seed), 0
    while made < count:
        query = random_query(rng)
        compilation = compile_query(query, str(rng.choice(PIPELINES)))
        if decide_at_compile_time(compilation) is not None:
            continue
        try:
            artifact = NativeBackend().emit(compilation.module, alike=bool(rng.integers(2)))
        except BackendError:
            continue  # a pipeline for solvers may leave what the engine does not take
        assert isinstance(artifact, NativeArtifact)
        if artifact.adapted is not None:
            made += 1
            yield query, artifact


def write(out: IO[str], query: Query, artifact: NativeArtifact) -> None:
    """One problem, and the trees of its first model."""
    assert artifact.adapted is not None
    for name, value in artifact.adapted.problem.arrays().items():
        _line(out, name, np.atleast_1d(value).ravel())
    model = query.models[0]
    for name in (
        "root",
        "feature",
        "cut",
        "left",
        "right",
        "leaf",
        "default_left",
        "category_set",
        "set_offset",
        "set_member",
    ):
        _line(out, f"tree_{name}", getattr(model, name))
    _line(out, "tree_missing_cell", model.grid.missing_cells)
    _line(out, "tree_cell_count", model.grid.n_cells)
    _line(out, "tree_leaf_value", leaf_values(model, 0)[0])
    out.write("end\n")


def _line(out: IO[str], name: str, values: np.ndarray) -> None:
    out.write(" ".join([name, str(len(values)), *map(str, np.asarray(values).astype(np.int64).tolist())]) + "\n")


if __name__ == "__main__":
    with open(sys.argv[3], "w") as file:
        for question, made in problems(int(sys.argv[1]), int(sys.argv[2])):
            write(file, question, made)
