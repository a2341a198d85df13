"""The studies that there are, in the order of help: where each is declared, and the line that the list of commands shows.

A study is a file with a `STUDY`, and its line here (CONTRIBUTING.md). Nothing is imported before it is used.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

from treesens.extensions.studies.study import Study

STUDIES: dict[str, tuple[str, str]] = {
    "audit": ("treesens.extensions.studies.audit", "Try every feature and gap on real rows."),
    "gap": ("treesens.extensions.studies.gap", "The largest gap of every feature, with its proof."),
    "count": ("treesens.extensions.studies.count", "How much of the inputs a feature flips, and who is concerned."),
    "sets": (
        "treesens.extensions.studies.sets",
        "Which sets of features flip the decision: all smallest, and all largest that do not.",
    ),
    "range": ("treesens.extensions.studies.range", "The smallest and the largest score, with their proofs."),
    "shape": ("treesens.extensions.studies.shape", "In which features the score rises or falls, with proofs."),
    "groups": (
        "treesens.extensions.studies.groups",
        "Favourable decisions by group, and their ratios, as proved intervals.",
    ),
    "reasons": (
        "treesens.extensions.studies.principal_reasons",
        "The principal reasons of denials, with phrases and codes.",
    ),
    "robust": ("treesens.extensions.studies.robust", "How far rows are from another class, with proofs."),
    "why": ("treesens.extensions.studies.why", "Which values of a row decide its class, and what would change it."),
    "learn": ("treesens.extensions.studies.learn", "Mine domains and rules from a table, as text of the language."),
    "diff": (
        "treesens.extensions.studies.diff",
        "Compare two models: equal, or how far apart, with proofs; which rows change.",
    ),
    "repair": (
        "treesens.extensions.repair.study",
        "Make a model less sensitive, in its library's file, with the proof.",
    ),
}
CALLS = {"learn_rules": "learn"}
"""Calls whose names are not those of their studies."""


def study_of(name: str) -> Study[Any, Any]:
    """A study by its name."""
    study: Study[Any, Any] = import_module(STUDIES[name][0]).STUDY
    return study


def is_call(name: str) -> bool:
    """Whether a name is that of a study, or of its call."""
    return name in STUDIES or name in CALLS
