"""A typed question, lowered and run through a pipeline: the compiler in one call."""

from __future__ import annotations

import time
from dataclasses import dataclass, field

from treesens.compiler.base.kept import reuse
from treesens.compiler.ir import Module
from treesens.compiler.lower import lower
from treesens.compiler.pipeline import Compiled, Pipeline
from treesens.compiler.query.query import Query


@dataclass
class Compilation:
    """A question after lowering and a pipeline, with the time that took."""

    query: Query
    compiled: Compiled
    seconds: dict[str, float] = field(default_factory=dict)

    @property
    def module(self) -> Module:
        return self.compiled.module


def compile_query(query: Query, pipeline: str, *, verify_each: bool = False) -> Compilation:
    """Lowers a question and runs a pipeline over it; once, while a certificate is to follow."""
    return reuse(query, (pipeline, verify_each), lambda: _compile(query, pipeline, verify_each))


def _compile(query: Query, pipeline: str, verify_each: bool) -> Compilation:
    start = time.perf_counter()
    module = lower(query)
    middle = time.perf_counter()
    compiled = Pipeline.parse(pipeline).run(module, verify_each=verify_each)
    end = time.perf_counter()
    return Compilation(query, compiled, {"lower": middle - start, "passes": end - middle})


@dataclass(frozen=True)
class Contradiction:
    """No cell satisfies the constraints, as the compiler or the engine (`backend`) has found before any search."""

    reason: str
    backend: str = "compiler"
    proof_dependencies: tuple[str, ...] = ()


def decide_at_compile_time(compilation: Compilation) -> Contradiction | None:
    """The contradiction that the compiler itself has found, if the question has the same."""
    if not (compilation.module.contradictory and compilation.compiled.none_survives):
        return None
    if not compilation.compiled.proof_dependencies:
        return Contradiction("the compiler decides it: no cell of the domain satisfies the constraints")
    # The native engine has proved it, not the compiler.
    reason = "bound-fixing: no cell is left that a solution could use"
    return Contradiction(reason, "native", compilation.compiled.proof_dependencies)
