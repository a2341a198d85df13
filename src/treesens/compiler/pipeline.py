"""The pass manager: pipelines are texts that are checked before passes run, and every step keeps its postsolve. `compile_query`
lowers a typed question and runs a pipeline:

share-copies,unaffected-leaves,aff-reduce,order-predicates{by=gain}
default,my-pass
"""

from __future__ import annotations

import re
import shlex
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from dataclasses import dataclass, field, fields, is_dataclass, replace
from pathlib import Path
from typing import Any, Literal, get_args, get_origin, get_type_hints

from treesens.compiler.base.arrays import BoolArray
from treesens.compiler.base.budget import OutOfTime, check_in
from treesens.compiler.base.diagnostics import Remedy, did_you_mean
from treesens.compiler.ir import Module
from treesens.compiler.ir.module import ModuleSize
from treesens.compiler.ir.text import digest, print_module
from treesens.compiler.ir.verifier import verify
from treesens.compiler.lower import lower
from treesens.compiler.passes.base import Pass, PassResult, Postsolve, Relation, Rewrite, pass_text, size_of
from treesens.compiler.passes.registry import PASSES
from treesens.compiler.query.query import Query
from treesens.errors import InternalError, IRError, PipelineError, TreesensError
from treesens.runtime.kept import reuse

_SHARED = "merge-guards,drop-dead,unaffected-leaves,share-copies"
_FOR_SOLVERS = "aff-reduce,gap-objective,score-bounds,order-predicates{by=gain}"

PIPELINES: dict[str, str] = {
    # The baseline of Kantchelian et al. as the paper uses it: two copies, eqs. 1-6 and the gap, nothing else.
    "kant": "",
    # The paper's tool: the baseline with UnAff, Aff and the objective.
    "ensense": "unaffected-leaves,aff-reduce,gap-objective",
    # The same facts, by removing irrelevant parts instead of adding rows (docs/encodings.md). No engine results are used, so
    # that a solver's answers are independent of the engine.
    "independent": f"{_SHARED},{_FOR_SOLVERS}",
    # Also removes parts that the engine's bound proves unreachable.
    "bounded": f"{_SHARED},bound-fixing,merge-guards,drop-dead,{_FOR_SOLVERS}",
    # Also adds a start, if the engine's local search finds a solution (docs/adr/0008-help-from-the-engine.md).
    "default": f"{_SHARED},warm-start,bound-fixing,merge-guards,drop-dead,{_FOR_SOLVERS}",
    # The part of `default` for the native engine, which itself joins copies and accepts rows unchanged.
    "native": _SHARED,
}

_HELPED = frozenset({"bounded", "default"})
"""Pipelines that use the native engine."""


def pipeline_for(backend: str, pipeline: str) -> str:
    """The pipeline for a backend. The engine's pipeline omits passes that call the engine; its leaves must cover the space.

    The portfolio (`auto`) starts with the engine; for solvers, it compiles the question again with `pipeline`.
    """
    return _renamed(pipeline, dict.fromkeys(_HELPED, "native")) if backend in {"native", "auto"} else pipeline


def pipeline_to_confirm(backend: str, pipeline: str) -> str:
    """The pipeline for a second opinion: that of a solver must not depend on the engine, which gave the first one."""
    return pipeline if backend in {"native", "auto"} else _renamed(pipeline, {"default": "independent"})


_STEP = re.compile(r"\s*([a-z][a-z0-9-]*)\s*(?:\{([^}]*)\})?\s*(?:,|$)")


def _elements(text: str) -> Iterator[tuple[str, str | None, int]]:
    """The names in a pipeline text, each with its options and its position."""
    position = 0
    while position < len(text):
        match = _STEP.match(text, position)
        if match is None:
            raise PipelineError(
                "this is neither a pass nor a pipeline",
                remedy="write `pass,pass{option=value}` or one of the names " + ", ".join(PIPELINES),
                place=_place(text, position),
            )
        yield match[1], match[2], match.start(1)
        position = match.end()


def _place(text: str, position: int) -> str:
    return f"`{text}`, character {position + 1}"


def _renamed(text: str, names: Mapping[str, str]) -> str:
    """A pipeline text with other names in place of some."""
    parts, end = [], 0
    for name, _, position in _elements(text):
        if name in names:
            parts += [text[end:position], names[name]]
            end = position + len(name)
    return "".join([*parts, text[end:]])


@dataclass(frozen=True)
class StepRecord:
    """The record of one pass: its time in seconds, and the size of the module afterwards."""

    text: str
    seconds: float
    size: ModuleSize
    statistics: dict[str, int]
    proof_dependencies: tuple[str, ...] = ()


@dataclass(frozen=True)
class Compiled:
    """A module after a pipeline, with the mapping back to the lowered module."""

    source: Module
    module: Module
    postsolves: tuple[Postsolve, ...]
    relation: Relation
    records: tuple[StepRecord, ...]
    rewrites: tuple[Rewrite, ...] = ()
    """The steps to validate: those of plug-in passes or, on request, all."""

    def recover(self, assignment: BoolArray) -> BoolArray:
        """Maps an assignment of the final module to the lowered module."""
        for postsolve in reversed(self.postsolves):
            assignment = postsolve.recover(assignment)
        return assignment

    @property
    def proof_dependencies(self) -> tuple[str, ...]:
        """The premises of a `none` for this module, apart from the solver's result."""
        return tuple(dict.fromkeys(premise for record in self.records for premise in record.proof_dependencies))

    @property
    def found_survives(self) -> bool:
        return self.relation is not Relation.RELAXATION

    @property
    def none_survives(self) -> bool:
        return self.relation is not Relation.RESTRICTION


@dataclass(frozen=True)
class Pipeline:
    """A checked sequence of passes."""

    steps: tuple[Pass, ...]
    name: str

    @property
    def text(self) -> str:
        return ",".join(pass_text(step) for step in self.steps)

    @staticmethod
    def parse(text: str) -> Pipeline:
        """A pipeline from a list of passes and named pipelines. Raises `PipelineError` with the position and a remedy."""
        steps: list[Pass] = []
        for name, options, position in _elements(text):
            try:
                if name not in PIPELINES:
                    steps.append(_make(name, options or ""))
                elif options is None:
                    steps += Pipeline.parse(PIPELINES[name]).steps
                else:
                    raise PipelineError(f"the pipeline `{name}` has no options", remedy=f"write `{name}`")
            except PipelineError as error:
                raise PipelineError(error.message, remedy=error.remedy, place=_place(text, position)) from error
        return Pipeline(tuple(steps), text.strip() or "kant")

    def run(
        self,
        module: Module,
        *,
        verify_each: bool = False,
        keep_each: bool = False,
        before: Callable[[str, Module], None] | None = None,
        after: Callable[[str, Module, PassResult], None] | None = None,
    ) -> Compiled:
        """Rewrites a module. `keep_each` keeps all steps for validation; `before(pass name, module)` is called before every
        pass, `after(pass name, module before, result)` after it.

        A pass of a plug-in is not trusted: its output is verified, and its input must be unchanged. Raises `PipelineError`, or
        for a built-in pass `InternalError`, that names a failing pass and a file with its input.
        """
        source = module
        postsolves: list[Postsolve] = []
        records: list[StepRecord] = []
        rewrites: list[Rewrite] = []
        relation = Relation.EQUIVALENT
        if verify_each:
            verify(module)
        for step in self.steps:
            check_in()
            text, owner = pass_text(step), PASSES.owner(step.name)
            if before is not None:
                before(step.name, module)
            start = time.perf_counter()
            with _reproduced(step, owner, module):
                result = step.run(module) if owner is None else _run_plugin(step, module)
                rewritten = replace(result.module, provenance=(*module.provenance, text))
                if verify_each and owner is None:
                    verify(rewritten)
            seconds = time.perf_counter() - start
            if owner is not None or keep_each:
                rewrites.append(Rewrite(step, text, module, replace(result, module=rewritten)))
            combined = relation.then(step.relation)
            if combined is None:
                raise PipelineError(
                    f"no verdict would remain valid after `{text}`: the pipeline mixes relaxation and restriction"
                )
            relation = combined
            if after is not None:
                after(step.name, module, replace(result, module=rewritten))
            module = rewritten
            postsolves.append(result.postsolve)
            records.append(
                StepRecord(text, seconds, size_of(module), dict(result.statistics), result.proof_dependencies)
            )
        return Compiled(source, module, tuple(postsolves), relation, tuple(records), tuple(rewrites))


def _run_plugin(step: Pass, module: Module) -> PassResult:
    """The result of a plug-in pass, in the form that the rest of the pipeline relies on. Raises `PipelineError`."""
    before = digest(module)
    result: object = step.run(module)
    if not isinstance(result, PassResult) or not isinstance(result.module, Module):
        raise PipelineError(f"`run` returned {type(result).__name__}", remedy="it must return a `PassResult`")
    if digest(module) != before:
        raise PipelineError("the pass changed its input", remedy="a pass returns a new module")
    verify(result.module)
    return result


_REPRODUCERS: ContextVar[Path | None] = ContextVar("reproducers", default=None)
"""The folder for reproducers of failing passes; None for the system's folder for temporary files."""


@contextmanager
def reproducers_in(folder: Path | None) -> Iterator[None]:
    """A block in which inputs of failing passes are written into this folder; None keeps the folder of the enclosing block."""
    token = _REPRODUCERS.set(folder or _REPRODUCERS.get())
    try:
        yield
    finally:
        _REPRODUCERS.reset(token)


@contextmanager
def _reproduced(step: Pass, owner: str | None, module: Module) -> Iterator[None]:
    """Reports an error of a pass with the name of the pass, and writes the pass's input next to a command that repeats it.

    Interruptions and the end of the time limit pass unchanged.
    """
    try:
        yield
    except (OutOfTime, MemoryError):
        raise
    except Exception as error:
        if owner is None and isinstance(error, TreesensError) and not isinstance(error, InternalError | IRError):
            raise
        of = f" of {owner}" if owner else ""
        what = error.message if isinstance(error, TreesensError) else f"{type(error).__name__}: {error}"
        message = f"the pass `{step.name}`{of} failed: {what}"
        remedy = f"please report this to the authors of {owner or 'treesens'}; {_reproducer(step, module)}"
        raise (InternalError if owner is None else PipelineError)(message, remedy=remedy) from error


def _reproducer(step: Pass, module: Module) -> str:
    """Writes a pass's input to a new file, and returns the command that repeats the pass; the reason if the file fails."""
    try:
        with tempfile.NamedTemporaryFile(
            "w", encoding="utf-8", prefix=f"treesens-{step.name}-", suffix=".sir", dir=_REPRODUCERS.get(), delete=False
        ) as file:
            file.write(print_module(module, full=True))
    except OSError as error:
        return f"the input of the pass cannot be written: {error.strerror}"
    return f"to reproduce: {shlex.join(['treesens', 'opt', file.name, '-p', pass_text(step)])}"


def plugin_passes(pipeline: str) -> list[str]:
    """The names of the plug-in passes in a pipeline text; empty for a text that is no pipeline, e.g. in a damaged record."""
    found: list[str] = []
    with suppress(PipelineError):
        for name, _, _ in _elements(pipeline):
            found += plugin_passes(PIPELINES[name]) if name in PIPELINES else [name] if PASSES.owner(name) else []
    return list(dict.fromkeys(found))


def pass_class(name: str) -> Any:
    """The class of a pass. Raises `PipelineError` if the name is unknown or is not that of a pass."""
    try:
        kind = PASSES.get(name)
    except PipelineError as error:
        known, remedy = PASSES.names(), error.remedy
        if name not in known:
            near = did_you_mean(name, [*known, *PIPELINES])
            remedy = near if isinstance(near, Remedy) else f"{remedy}; or a pipeline: {', '.join(PIPELINES)}"
        raise PipelineError(error.message, remedy=remedy) from None
    if not (isinstance(kind, type) and is_dataclass(kind) and hasattr(kind, "run") and hasattr(kind, "relation")):
        raise PipelineError(f"the plug-in pass `{name}` is not a pass class", remedy="see docs/extending.md")
    return kind


def _make(name: str, options: str) -> Pass:
    kind = pass_class(name)
    hints = get_type_hints(kind)
    known = {f.name.replace("_", "-"): f.name for f in fields(kind)}
    values: dict[str, Any] = {}
    for item in filter(None, (part.strip() for part in options.split(","))):
        key, equals, value = (part.strip() for part in item.partition("="))
        if key not in known:
            raise PipelineError(
                f"`{name}` has no option `{key}`", remedy=did_you_mean(key, known) or "this pass takes no options"
            )
        if not equals:
            raise PipelineError(f"option `{key}` of `{name}` has no value", remedy=f"write `{name}{{{key}=…}}`")
        values[known[key]] = _convert(name, key, value, hints[known[key]])
    made: Pass = kind(**values)
    return made


def _convert(name: str, key: str, value: str, hint: Any) -> Any:
    if get_origin(hint) is Literal:
        if value not in get_args(hint):
            choices = ", ".join(get_args(hint))
            raise PipelineError(f"option `{key}` of `{name}` cannot be `{value}`", remedy=f"one of {choices}")
        return value
    if hint is bool:
        if value not in {"true", "false"}:
            raise PipelineError(f"option `{key}` of `{name}` cannot be `{value}`", remedy="true or false")
        return value == "true"
    try:
        return hint(value)
    except (TypeError, ValueError) as error:
        raise PipelineError(f"option `{key}` of `{name}` cannot be `{value}`: {error}") from error


@dataclass
class Compilation:
    """A question after lowering and a pipeline, with the seconds of both steps."""

    query: Query
    compiled: Compiled
    seconds: dict[str, float] = field(default_factory=dict)

    @property
    def module(self) -> Module:
        return self.compiled.module


def compile_query(query: Query, pipeline: str, *, verify_each: bool = False, keep_each: bool = False) -> Compilation:
    """Lowers a question and runs a pipeline on the module; the result is cached if a certificate will follow.

    `keep_each` is as for `Pipeline.run`.
    """
    return reuse(query, (pipeline, verify_each, keep_each), lambda: _compile(query, pipeline, verify_each, keep_each))


def _compile(query: Query, pipeline: str, verify_each: bool, keep_each: bool) -> Compilation:
    start = time.perf_counter()
    module = lower(query)
    middle = time.perf_counter()
    compiled = Pipeline.parse(pipeline).run(module, verify_each=verify_each, keep_each=keep_each)
    end = time.perf_counter()
    return Compilation(query, compiled, {"lower": middle - start, "passes": end - middle})


@dataclass(frozen=True)
class Contradiction:
    """A proof that no cells satisfy the constraints, from the compiler or the engine (`backend`) before any search."""

    reason: str
    backend: str = "compiler"
    proof_dependencies: tuple[str, ...] = ()


def decide_at_compile_time(compilation: Compilation) -> Contradiction | None:
    """The contradiction found by the compiler, if valid for the question."""
    return contradiction_of(compilation.compiled)


def contradiction_of(compiled: Compiled) -> Contradiction | None:
    """The contradiction found by a pipeline, if valid for its source module."""
    if not (compiled.module.contradictory and compiled.none_survives):
        return None
    if not compiled.proof_dependencies:
        return Contradiction("decided by the compiler: no cell of the domain satisfies the constraints")
    # This proof is the native engine's, not the compiler's.
    reason = "bound-fixing: no cell is left that a solution could use"
    return Contradiction(reason, "native", compiled.proof_dependencies)
