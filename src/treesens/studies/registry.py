"""The studies that there are, in the order of help: where each is declared, and the line that the list of commands shows.

A study is a file with a `STUDY`, and its line here (CONTRIBUTING.md). Nothing is imported before it is used.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

from treesens.studies.study import Study

STUDIES: dict[str, tuple[str, str]] = {
    "gap": ("treesens.studies.gap", "The largest gap of every feature, with its proof."),
    "count": ("treesens.studies.count", "How much of the inputs a feature flips, and who is concerned."),
    "sets": (
        "treesens.studies.sets",
        "Which sets of features flip the decision: all smallest, and all largest that do not.",
    ),
    "range": ("treesens.studies.range", "The smallest and the largest score, with their proofs."),
    "robust": ("treesens.studies.robust", "How far rows are from another class, with proofs."),
    "why": ("treesens.studies.why", "Which values of a row decide its class, and what would change it."),
}


def study_of(name: str) -> Study[Any, Any]:
    """A study by its name."""
    study: Study[Any, Any] = import_module(STUDIES[name][0]).STUDY
    return study
