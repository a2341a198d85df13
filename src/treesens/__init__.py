"""treesens: a compiler for questions about decision-tree ensembles.

The functions of `treesens.python.api` and the studies are imported on first use, so that `import treesens` is fast.
`__init__.pyi` has their types.
"""

from __future__ import annotations

from typing import Any

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
    "ir",
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

_CORE = {"Answer", "Answers", "Explanation", "check", "check_text", "explain", "info", "load"}


def __getattr__(name: str) -> Any:
    from importlib import import_module

    if name in {"errors", "ir"}:
        return import_module(f"treesens.{name}")
    if name == "session":
        return import_module("treesens.python.questions").session
    if name in _CORE:
        return getattr(import_module("treesens.python.api"), name)
    builtin = import_module("treesens.builtin")
    if not name.startswith("_") and builtin.has_extensions():
        if name in builtin.PUBLIC:
            module, _, attribute = builtin.PUBLIC[name].partition(":")
            return getattr(import_module(module), attribute) if attribute else import_module(module)
        call = builtin.service("studies").call_of(name)
        if call is not None:
            globals()[name] = call
            return call
    raise import_module("treesens.compiler.base.diagnostics").no_attribute("module 'treesens'", name, __all__)


def __dir__() -> list[str]:
    """Returns the public names only."""
    return sorted(__all__)
