"""The built-in extensions by name: no other file of the core refers to them.

The core answers and explains individual questions. Everything in `treesens.extensions` is registered here as "module" or
"module:attribute", like the entry points of other distributions (docs/extending.md), and is imported on first use. An
installation without that folder (`make core`) lacks these extensions, and options that require them cause errors with remedies.
"""

from __future__ import annotations

from functools import cache
from importlib import import_module
from importlib.util import find_spec
from typing import Any, Final

from treesens.compiler.base.plugins import Registry
from treesens.errors import UsageError

FORMATS: Final = {
    "catboost": "treesens.extensions.formats.catboost.frontend:CatBoostFrontend",
    "onnx": "treesens.extensions.formats.onnx.frontend:ONNXFrontend",
    "treelite": "treesens.extensions.formats.treelite:TreeliteFrontend",
    "interpret": "treesens.extensions.formats.interpret.frontend:InterpretFrontend",
    "ydf": "treesens.extensions.formats.ydf:YDFFrontend",
    "pmml": "treesens.extensions.formats.pmml.frontend:PMMLFrontend",
    "spark": "treesens.extensions.formats.spark.frontend:SparkFrontend",
    "h2o": "treesens.extensions.formats.h2o.frontend:H2OFrontend",
    "scorecard": "treesens.extensions.formats.scorecard.frontend:ScorecardFrontend",
}
"""Model formats."""
STUDY_LINES: Final = {
    "audit": ("treesens.extensions.studies.audit:STUDY", "Try every feature and gap on real rows."),
    "gap": ("treesens.extensions.studies.gap:STUDY", "The largest gap of every feature, with its proof."),
    "count": (
        "treesens.extensions.studies.count:STUDY",
        "The share of inputs that a feature flips, and the affected inputs.",
    ),
    "sets": (
        "treesens.extensions.studies.sets:STUDY",
        "All minimal sets of features that flip the decision, and all maximal sets that do not.",
    ),
    "range": ("treesens.extensions.studies.range:STUDY", "The smallest and the largest score, with their proofs."),
    "shape": (
        "treesens.extensions.studies.shape:STUDY",
        "The features in which the score rises or falls, with proofs.",
    ),
    "groups": (
        "treesens.extensions.studies.groups:STUDY",
        "Favourable decisions by group, and their ratios, as proved intervals.",
    ),
    "reasons": (
        "treesens.extensions.studies.reasons:STUDY",
        "The principal reasons of denials, with phrases and codes.",
    ),
    "robust": ("treesens.extensions.studies.robust:STUDY", "The distances of rows to another class, with proofs."),
    "why": (
        "treesens.extensions.studies.why:STUDY",
        "The values of a row that determine its class, and changes that flip the class.",
    ),
    "learn": (
        "treesens.extensions.studies.learn:STUDY",
        "Mine domains and rules from a table, as declarations in the language.",
    ),
    "diff": (
        "treesens.extensions.studies.diff:STUDY",
        "Compare two models: equality or the largest difference, with proofs; and the changed rows.",
    ),
    "repair": (
        "treesens.extensions.repair.study:STUDY",
        "Make a model less sensitive, and write it in its library's format, with the proof.",
    ),
}
"""The studies in the order of the help, with their lines for the list of commands."""
STUDIES: Final = Registry(
    kind="study",
    group="treesens.studies",
    builtin={name: place for name, (place, _) in STUDY_LINES.items()},
    error=UsageError,
)
COMMAND_LINES: Final = {
    "init": (
        "treesens.extensions.studies.commands.init:command",
        "Write a first .sens file and treesens.toml for a model.",
    ),
    "export": (
        "treesens.extensions.certify.command:export",
        "Write the trees of a model in a neutral format.",
    ),
    "sweep": (
        "treesens.extensions.sweeps.commands.sweep:command",
        "Answer thousands of questions, with a journal, on many processes or machines.",
    ),
    "bench": (
        "treesens.extensions.sweeps.commands.bench:command",
        "Run a list of instances on chosen backends.",
    ),
    "reduce": (
        "treesens.extensions.reduce.command:command",
        "Reduce a question and its model to a small example of the same fault.",
    ),
    "verify": ("treesens.extensions.certify.command:command", "Check certificates in a separate process."),
    "vnnlib": (
        "treesens.extensions.vnnlib.command:command",
        "Decide a VNN-LIB property of an ONNX tree ensemble.",
    ),
    "lsp": (
        "treesens.extensions.editor.command:command",
        "Serve editors: messages while typing, completion, hover, formatting.",
    ),
}
"""Commands other than studies."""
PUBLIC: Final = {
    "Audit": "treesens.extensions.studies.python.studies:Audit",
    "Count": "treesens.extensions.studies.python.studies:Count",
    "Diff": "treesens.extensions.studies.python.studies:Diff",
    "Gap": "treesens.extensions.studies.python.studies:Gap",
    "Reasons": "treesens.extensions.studies.python.rows:Reasons",
    "Repair": "treesens.extensions.studies.python.studies:Repair",
    "Robustness": "treesens.extensions.studies.python.rows:Robustness",
    "Sets": "treesens.extensions.studies.python.rows:Sets",
    "SwingBudget": "treesens.extensions.repair.swing_budget:SwingBudget",
    "query": "treesens.extensions.builder",
    "sensitivity": "treesens.extensions.builder.sensitivity:sensitivity",
}
"""Names exported by the package `treesens`, in addition to the calls of studies."""
METHODS: Final = {
    "reason": "treesens.extensions.answers.reasons:METHOD",
    "brief search, small domain": "treesens.extensions.methods.registered:BRIEF_SMALL",
    "combinations": "treesens.extensions.methods.registered:COMBINATIONS",
    "brief search, few changes": "treesens.extensions.methods.registered:BRIEF_FEW",
    "fewest changes": "treesens.extensions.methods.registered:FEWEST",
    "all cavities": "treesens.extensions.methods.registered:CAVITIES",
    "nearest pair": "treesens.extensions.methods.registered:NEAREST",
    "cheapest cells": "treesens.extensions.methods.registered:CHEAPEST",
    "least radius": "treesens.extensions.methods.registered:RADIUS",
    "attainable sums": "treesens.extensions.methods.registered:SUMS",
}
"""Methods that answer questions, in addition to `solve/methods/registry.py`."""
SERVICES: Final = {
    "answers": "treesens.extensions.answers.service",
    "certificates": "treesens.extensions.certify.service",
    "ci": "treesens.extensions.ci.cases",
    "conformance": "treesens.extensions.conformance",
    "location": "treesens.extensions.answers.location",
    "measures": "treesens.extensions.measure.service",
    "notebook": "treesens.extensions.notebook",
    "numbers": "treesens.extensions.formats.numbers.service",
    "old xgboost files": "treesens.extensions.formats.xgboost_binary",
    "parts": "treesens.extensions.sweeps.service",
    "pytest": "treesens.extensions.ci.pytest_plugin",
    "studies": "treesens.extensions.studies.registry",
    "compositions": "treesens.extensions.formats.sklearn.service",
}
"""Modules that implement options and inputs of the core. The calling code defines a protocol for each module."""
WHOLE: Final = "install the whole package: pip install treesens"
"""The remedy for features that an installation of the core alone lacks."""


@cache
def has_extensions() -> bool:
    """True unless only the core is installed."""
    return find_spec("treesens.extensions") is not None


def service(name: str) -> Any:
    """The module of this name in `SERVICES`. Raises UsageError if only the core is installed."""
    if not has_extensions():
        raise UsageError(f"this installation of treesens lacks {name}", remedy=WHOLE)
    return import_module(SERVICES[name])
