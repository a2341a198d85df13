"""One planted error."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Mutation:
    """An error: in `file`, the first text that `pattern` (a regular expression) meets becomes `replacement`."""

    name: str
    file: str
    pattern: str
    replacement: str
    study: bool = False
    """Whether studies are to find it, and no questions."""
    test: str = ""
    """A file of tests that is asked before the oracle, for errors that need inputs which are hardly ever drawn."""
