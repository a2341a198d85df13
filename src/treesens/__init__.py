"""treesens: a compiler for questions about decision-tree ensembles.

The functions of `treesens.python.api` are here by name and imported on first use, so that `import treesens` costs nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"
__all__ = [
    "Answer",
    "Answers",
    "Audit",
    "Count",
    "Diff",
    "Explanation",
    "Gap",
    "Reasons",
    "Repair",
    "Robustness",
    "Sets",
    "SwingBudget",
    "__version__",
    "audit",
    "check",
    "check_text",
    "count",
    "diff",
    "errors",
    "explain",
    "gap",
    "groups",
    "info",
    "learn_rules",
    "load",
    "query",
    "reasons",
    "repair",
    "robust",
    "sensitivity",
    "session",
    "sets",
    "shape",
    "why",
]

if TYPE_CHECKING:
    from treesens import errors
    from treesens.extensions.repair.swing_budget import SwingBudget
    from treesens.extensions.studies.python.calls import *
    from treesens.python import builder as query
    from treesens.python.api import (
        Answer,
        Answers,
        Audit,
        Count,
        Diff,
        Explanation,
        Gap,
        Reasons,
        Repair,
        Robustness,
        Sets,
        check,
        check_text,
        explain,
        info,
        load,
        sensitivity,
    )
    from treesens.python.sessions import session

_MODULES = {"query": "treesens.python.builder", "errors": "treesens.errors"}


def __getattr__(name: str) -> Any:
    from importlib import import_module

    if name in _MODULES:
        return import_module(_MODULES[name])
    if name == "session":
        return import_module("treesens.python.sessions").session
    if name == "SwingBudget":
        return import_module("treesens.extensions.repair.swing_budget").SwingBudget
    if not name.startswith("_") and import_module("treesens.extensions.studies.registry").is_call(name):
        return getattr(import_module("treesens.extensions.studies.python.calls"), name)
    if name in __all__:
        return getattr(import_module("treesens.python.api"), name)
    raise AttributeError(f"module 'treesens' has no attribute {name!r}")


def __dir__() -> list[str]:
    """The public names alone."""
    return sorted(__all__)
