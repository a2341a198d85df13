"""The meaning and compilation of a question as one record (`treesens explain`)."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import Any

from treesens.backends.base import Artifact, Backend, Proof
from treesens.binder.file import ResolvedQuestion
from treesens.builtin import has_extensions, service
from treesens.compiler.base.arrays import BoolArray
from treesens.compiler.base.diagnostics import Suggesting
from treesens.compiler.ir import Bool, Linear, Module
from treesens.compiler.legalise import rounding, rows
from treesens.compiler.legalise.rounding import MARGIN
from treesens.compiler.passes.base import Relation, size_of
from treesens.compiler.pipeline import Compiled, Pipeline, compile_query
from treesens.compiler.query.cases import compiled_part
from treesens.compiler.query.probabilities import names_probabilities
from treesens.compiler.query.query import Query
from treesens.grammar.printing.printer import shown_text
from treesens.records.model import features_record
from treesens.records.passes import about
from treesens.report.english import sentence
from treesens.report.formulas import constraint_text, domain_text, objective_text
from treesens.solve.options import Options
from treesens.solve.question import methods_for, note_on_cases
from treesens.visible import visible

_FORMULA = re.compile(r"^    ([a-zA-Z-]+(?: block)?)\s{2,}(.+)$", re.MULTILINE)
_BLOCKS = {"Order": "order block", "ExactlyOne": "exactly-one block"}


class InNotebook(Suggesting):
    """An object that notebooks show as HTML, if the extension for notebooks is installed."""

    def _repr_html_(self) -> str | None:
        shown: str | None = service("notebook").html(self) if has_extensions() else None
        return shown


@dataclass(frozen=True, eq=False)
class Explanation(InNotebook):
    """The meaning of a question: `record` is the JSON of `treesens explain`; the text is the sentence and the formulas."""

    record: dict[str, Any]

    @property
    def sentence(self) -> str:
        """The question in English."""
        return str(self.record["sentence"])

    @property
    def expansion(self) -> str:
        """The question in the language, without shorthand."""
        return str(self.record["expansion"])

    @property
    def formulas(self) -> list[str]:
        """Constraints and objective in terms of stored values and raw scores, with exact bounds."""
        return list(self.record["formulas"])

    def __str__(self) -> str:
        return visible("\n".join((self.sentence, *(f"  {line}" for line in self.formulas))), lines=True)

    def __repr__(self) -> str:
        return f"<{self.record['query']}: {self.sentence}>"


def explanation(bound: ResolvedQuestion, pipeline: str, backend: Backend, options: Options) -> dict[str, Any]:
    """All facts that `explain` shows, JSON-ready: the compilation by `pipeline`, and the methods under `options`."""
    part = compiled_part(bound.query)
    compiled = compile_query(part, pipeline).compiled
    # For nonlinear probabilities the module has only the first rows.
    relaxed = names_probabilities(part.constraints) or part.objective is not bound.query.objective
    return {
        "query": bound.name,
        "sentence": sentence(bound.find),
        "expansion": shown_text(bound.find),
        "formulas": formulas(bound.query),
        "cells": cells_record(bound.query),
        "pipeline": {"name": pipeline, "text": Pipeline.parse(pipeline).text},
        "passes": passes_record(compiled, pipeline),
        "relation": (Relation.RELAXATION if relaxed else compiled.relation).value,
        "rows": linear_record(compiled.module),
        "legalisation": legalisation(compiled.module, backend),
        **methods_record(bound.query, options),
    }


def methods_record(query: Query, options: Options) -> dict[str, Any]:
    """The fitting methods in order. For a count of rows, the methods are those for a row that the sweeps leave open."""
    one = replace(query, rows=None)
    note = note_on_cases(one)
    return {
        "methods": [method.record() for method in methods_for(one, options)],
        "method_notes": [] if note is None else [note],
    }


def formulas(query: Query) -> list[str]:
    """Constraints and objective as formulas over cells and raw scores."""
    lines = [constraint_text(query, c) for c in query.constraints]
    return lines + ([objective_text(query, query.objective)] if query.objective is not None else [])


def cells_record(query: Query) -> list[dict[str, Any]]:
    """For each feature: the models' guards, the cells refined by the question's constants, and the legal cells."""
    space = query.space
    guards = [{f["name"]: f["guards"] for f in features_record(m.ensemble)} for m in query.models]
    result = []
    for f, (name, grid, domain) in enumerate(zip(space.names, space.grid, space.domains, strict=True)):
        legal: BoolArray = space.legal[f]
        result.append(
            {
                "feature": name,
                "guards": [counts.get(name, 0) for counts in guards],
                "cells": grid.n_cells,
                "legal": int(legal.sum()),
                "domain": domain_text(domain, grid.number_type.dtype),
                "varied": name in query.varied,
            }
        )
    return result


def passes_record(compiled: Compiled, pipeline: str) -> list[dict[str, Any]]:
    """The lowering, then every pass, each with its description, its statistics and the size of the resulting module."""
    lowered = {
        "pass": "lower",
        "about": "the paper's base encoding: a copy of every predicate and leaf per point",
        "seconds": None,
        "size": size_of(compiled.source).to_dict(),
        "statistics": {},
    }
    steps = Pipeline.parse(pipeline).steps
    return [lowered] + [
        {
            "pass": record.text,
            "about": about(type(step)),
            "seconds": round(record.seconds, 6),
            "size": record.size.to_dict(),
            "statistics": record.statistics,
        }
        for step, record in zip(steps, compiled.records, strict=True)
    ]


def linear_record(module: Module) -> list[dict[str, Any]]:
    """The score rows as exact integers in units of 2**-shift."""
    return [
        {
            "name": row.name,
            "terms": len(row.variables),
            "bound": str(row.bound),
            "shift": row.shift,
            "conditional": row.when != -1,
            "implied": row.implied,
        }
        for row in module.ops_of(Linear)
    ]


def row_formulas() -> dict[str, str]:
    """The rows for each kind of block and op, from the documentation of their implementation."""
    return dict(_FORMULA.findall(rows.__doc__ or ""))


def form_of(kind: str, backend: Backend) -> str | None:
    """The form in which a backend receives a kind of block or op (a class name); None if it supports the kind directly."""
    capabilities = backend.capabilities
    if kind in capabilities.native_ops or (kind in _BLOCKS and capabilities.native_ops):
        return None
    return capabilities.rewrites.get(kind) or row_formulas().get(_BLOCKS.get(kind, kind), "rows")


def legalisation(module: Module, backend: Backend) -> dict[str, Any]:
    """The forms that a backend supports directly, the rewriting of all other forms, and the rounding."""
    counts: dict[str, int] = {}
    for node in (*module.blocks, *module.ops):
        if not isinstance(node, Bool):
            counts[type(node).__name__] = counts.get(type(node).__name__, 0) + 1
    takes, rewritten = [], []
    for kind, count in counts.items():
        formula = form_of(kind, backend)
        if formula is None:
            takes.append(kind)
        else:
            rewritten.append({"kind": kind, "nodes": count, "becomes": formula})
    artifact = backend.emit(module)
    return {
        "backend": backend.name,
        "format": artifact.format,
        "characters": len(artifact.text),
        "takes": takes,
        "rewritten": rewritten,
        "rounding": rounding_text(artifact, backend),
        "proof": backend.capabilities.proof.value,
    }


def rounding_text(artifact: Artifact, backend: Backend) -> str:
    """The rounding of an artifact, and its compensation."""
    if not artifact.relaxed:
        return "none: every coefficient is written exactly"
    if backend.capabilities.proof is Proof.EXACT:
        (formula,) = re.findall(r"^    relax:\s+(.+)$", rounding.__doc__ or "", re.MULTILINE)
        how = f"outward, so that no solution is lost: {formula}"
    else:
        how = f"to doubles, every score row relaxed by 2^-50 of its size and by {MARGIN:g} of its bound"
    harder = "with more digits" if backend.capabilities.proof is Proof.EXACT else "tightened instead of relaxed"
    again = f", and if the replay fails, the module is written again, {harder}" if backend.exact_precision() else ""
    return f"{how}; a point is replayed exactly{again}"
