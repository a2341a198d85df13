"""What of a question's names may be in a solver's text: a comment, in letters that end no comment anywhere.

Variables and rows carry generated names. Names of questions come from files (through `for each` from model files), and a `|`
or a line break among them would be read as a constraint by the solver.
"""

from __future__ import annotations

from treesens.compiler.ir import Module
from treesens.visible import label

_MOST_STEPS = 100


def told(module: Module) -> str:
    """One line for a comment: the question, what made the module, and whether its objective is part of the question."""
    steps = " -> ".join(map(label, module.provenance[:_MOST_STEPS]))
    guided = module.objective is not None and module.objective.surrogate
    return f"{label(module.name)}: {steps}" + (
        ". The objective only guides: its value answers nothing" if guided else ""
    )


def row_name(origin: str) -> str:
    """The end of a row's name: what it comes from, at most 40 letters, digits and `_`."""
    return label(origin).translate(str.maketrans("-+.", "___"))[:40]
