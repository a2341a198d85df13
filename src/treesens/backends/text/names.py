"""What of a question's names may be in a solver's text: a comment, in letters that end no comment anywhere.

Variables and rows carry generated names. Names of questions come from files (through `for each` from model files), and a `|`
or a line break among them would be read as a constraint by the solver.
"""

from __future__ import annotations

from treesens.compiler.ir import Module
from treesens.visible import label

_MOST_STEPS = 100


def told(module: Module) -> str:
    """One line for a comment: the question and what made the module."""
    steps = " -> ".join(map(label, module.provenance[:_MOST_STEPS]))
    return f"{label(module.name)}: {steps}"


def row_name(origin: str) -> str:
    """The end of a row's name: what it comes from, at most 40 letters, digits and `_`."""
    return label(origin).translate(str.maketrans("-+.", "___"))[:40]
