"""Answers to modules (`.sir`) as records: those of a question, without the parts that need a model."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from hashlib import sha256
from math import isfinite
from typing import Any

import numpy as np

from treesens.compiler.base.arrays import BoolArray
from treesens.compiler.base.dyadic import Unit
from treesens.compiler.ir import Module
from treesens.compiler.ir.evaluate import objective_value, violations
from treesens.compiler.ir.text import decode_integers, digest, encode_integers
from treesens.compiler.result import Result, Verdict
from treesens.records.answers import attempt_records, objective_record
from treesens.solve.exported import ExportedFile
from treesens.solve.plugins import plugins_of

NO_MODEL = "no model: the answer is about the module alone"
NO_POINT = "the answer is the solver's own, about the file alone: nothing can be replayed"
_WITHOUT_MODEL: dict[str, Any] = {
    "expect": None, "varied": [], "points": None, "raw_points": None, "scores": None, "in_numerical_band": None,
    "replay": None, "models": [], "data": [],
}  # fmt: skip


def _facts(result: Result, why: str) -> dict[str, Any]:
    """The fields of every answer without a model."""
    return {
        "query": result.query,
        "verdict": str(result.verdict),
        "reason": result.reason,
        "proof": result.proof_text,
        "as_expected": None if result.verdict is Verdict.UNKNOWN else True,
        **_WITHOUT_MODEL,
        "no_replay": why,
        "backend": result.backend,
        "seconds": {k: round(v, 6) for k, v in result.seconds.items()},
        "attempts": attempt_records(result),
    }


def module_record(module: Module, result: Result, **extra: Any) -> dict[str, Any]:
    """The answer to a module as a JSON-ready dictionary: `assignment` contains the true variables, as integers of a `.sir`
    file; `cells` contains cells of the grid by point and feature.
    """
    goal, solution = result.objective, result.solution
    return {
        **_facts(result, NO_MODEL),
        "objective": None if goal is None else objective_record(goal),
        "value": None if goal is None else goal.value,
        "bound": None if goal is None else goal.bound,
        "assignment": None if solution is None else encode_integers(np.flatnonzero(solution.assignment)),
        "cells": None if solution is None else cells_of(module, solution.assignment),
        "pipeline": result.pipeline,
        "size": result.size.to_dict(),
        **({"rests_on": list(result.proof_dependencies)} if result.proof_dependencies else {}),
        **({"notes": list(result.notes)} if result.notes else {}),
        "query_sha256": digest(module),
        "sha256": digest(module),
        "plugins": [asdict(plugin) for plugin in plugins_of(None, result)],
        **extra,
    }


def file_record(file: ExportedFile, result: Result) -> dict[str, Any]:
    """The answer to an exported file: `raw_value` is the file's own objective, and `value` the question's, if a comment of the
    file derives it; `means` is the comment's name for the value.
    """
    reached, line = value_reached(result), file.line
    return {
        **_facts(result, NO_POINT),
        "objective": None,
        "raw_value": reached,
        "value": None if line is None or reached is None else line.value(reached),
        "means": None if line is None else line.means,
        "pipeline": None,
        "size": None,
        "query_sha256": None,
        "sha256": sha256(file.text.encode()).hexdigest(),
        "plugins": [],
    }


def value_reached(result: Result) -> float | None:
    """The objective that the solver reported last for an exported file."""
    moments = result.attempts[-1].trajectory if result.attempts else None
    return moments[-1][2] if moments else None


def cells_of(module: Module, assignment: BoolArray) -> dict[str, dict[str, int]]:
    """The cell of every feature, by the names of points and features."""
    cells, names = module.cells(assignment).tolist(), [feature.name for feature in module.features]
    return {point: dict(zip(names, row, strict=True)) for point, row in zip(module.points, cells, strict=True)}


def faults_of(module: Module, record: Mapping[str, Any]) -> list[str]:
    """The fields of a `found` record that evaluation of its assignment contradicts. Raises ValueError or TypeError for a record
    of another form.
    """
    assignment = np.zeros(module.variables, bool)
    true = decode_integers(record["assignment"], np.int32)
    if len(true) and not 0 <= true.min() <= true.max() < module.variables:
        return ["assignment (a variable outside the module)"]
    assignment[true] = True
    faults = [f"assignment (violates {name})" for name in violations(module, assignment)]
    if record["cells"] != cells_of(module, assignment):
        faults.append("cells")
    goal, value = module.objective, None
    if goal is not None and module.optimises:
        value = Unit(goal.shift).nearest(objective_value(goal, assignment))
    if record["value"] != (value if value is None or isfinite(value) else None):
        faults.append("value")
    if record["bound"] is not None and (value is None or not record["bound"] >= value):
        faults.append("bound")
    return faults
