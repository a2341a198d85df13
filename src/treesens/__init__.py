"""treesens: a compiler for questions about decision-tree ensembles.

The functions of `treesens.api` are here by name and imported on first use, so that `import treesens` costs nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"
__all__ = [
    "Answer",
    "Answers",
    "__version__",
    "audit",
    "check",
    "check_text",
    "load",
    "query",
    "sensitivity",
    "session",
]

if TYPE_CHECKING:
    from treesens import builder as query
    from treesens.api import Answer, Answers, audit, check, check_text, load, sensitivity
    from treesens.sessions import session


def __getattr__(name: str) -> Any:
    if name == "query":
        from importlib import import_module

        return import_module("treesens.builder")
    if name == "session":
        from importlib import import_module

        return import_module("treesens.sessions").session
    if name in __all__:
        from treesens import api

        return getattr(api, name)
    raise AttributeError(f"module 'treesens' has no attribute {name!r}")
