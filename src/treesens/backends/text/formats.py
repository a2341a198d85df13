"""Text formats of solvers: each format's writer, variable names, comment marks and objective units.

Writers, legends, comments about the value and readers of solutions all take variable names from `variable_names`, so that they
number variables consistently.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from treesens.compiler.base.plugins import Registry
from treesens.errors import UsageError


@dataclass(frozen=True)
class TextFormat:
    """One format. The name of variable number v is `prefix` followed by the number `first` + v."""

    writer: str
    """The writer as `module:function`, from (Module, precision) to Artifact; empty for the IR, which is printed."""
    comment: str
    """The start of a comment line."""
    prefix: str = "x"
    first: int = 0
    minimised: bool = False
    """True if the text minimises the negated objective of the module."""
    missing: bool = False
    """True if the text's objective is what the module's lacks to the sum of its positive coefficients."""
    scaled: bool = False
    """True if the objective is written in units of the module's values, False if in steps of 2**-shift."""


_HERE: Final = "treesens.backends.text"
FORMATS: Final = {
    "lp": TextFormat(f"{_HERE}.lp:write_lp", "\\ ", scaled=True),
    "mps": TextFormat(f"{_HERE}.mps:write_mps", "* ", minimised=True, scaled=True),
    "smt2": TextFormat(f"{_HERE}.smt2:write_smt2", "; "),
    "opb": TextFormat(f"{_HERE}.opb:write_opb", "* ", first=1, minimised=True),
    "cpsat": TextFormat(f"{_HERE}.cpsat:write_cpsat", "# "),
    "cnf": TextFormat(f"{_HERE}.cnf:write_cnf", "c ", prefix="", first=1),
    "wcnf": TextFormat(f"{_HERE}.cnf:write_wcnf", "c ", prefix="", first=1, minimised=True, missing=True),
    "sir": TextFormat("", "# ", prefix=""),
}
"""The formats by the names that `emit --to` accepts."""
PLUGINS: Final = Registry(kind="format", group="treesens.targets", builtin=dict.fromkeys(FORMATS, ""), error=UsageError)
"""Plug-in formats, each a `TextFormat`; the names of FORMATS are reserved."""


def format_named(name: str) -> TextFormat:
    """The format with this name. Raises UsageError for an unknown name."""
    found: TextFormat = FORMATS[name] if name in FORMATS else PLUGINS.get(name)
    return found


def variable_names(format: str, count: int) -> list[str]:
    """The names of variables 0 to `count` - 1 in this format."""
    known = format_named(format)
    return [f"{known.prefix}{number}" for number in range(known.first, known.first + count)]
