"""The first files for a model: questions with the domains of a table, and what it is used for; both are to be changed."""

from __future__ import annotations

import json
import os
from pathlib import Path

from treesens.compiler.base.budget import Budget, working_within
from treesens.data.tables import Table
from treesens.errors import UsageError
from treesens.extensions.studies.rules import Mined, RuleOptions, mine
from treesens.extensions.studies.rules_text import domain_lines
from treesens.frontends.base import LoadedModel
from treesens.grammar.printing.print_terms import name_text
from treesens.grammar.tree import ast


def first_questions(model: LoadedModel, table: Table, file: Path, data: Path, folder: Path) -> str:
    """A `.sens` file in a folder: the model, the table, a line per feature, and a question about the first one that matters.

    UsageError for a name that no text can hold.
    """
    used = set(model.ensemble.used_features)
    names = [name for name in model.ensemble.feature_names if name in table]
    labelled = "" if table.label is None else f" label {_text(table.label)}"
    asked = next((n for n in model.meaning.protected), next((n for n in names if n in used), None))
    lines = [
        "# The model and the table; paths are relative to this file.",
        f"model m from {_text(_beside(file, folder))}",
        f"data d from {_text(_beside(data, folder))}{labelled}",
        "",
        "# What inputs are possible: ranges and categories of the table. Widen what can be wider, and give categories names:",
        "# feature sex: category {Female = 0, Male = 1}",
        *domain_lines(_mined(table), [n for n in names if not _coded(model, n)]),
        "# Features without a line range over what the table holds.",
        "domain from d",
        "",
    ]
    if asked is not None:
        name = name_text(ast.Name(asked))
        size = "margin 0.5" if not model.ensemble.link.is_known or not model.ensemble.classes else "gap 0.1"
        what = "from 0.6 or more to 0.4 or less" if size == "gap 0.1" else "from 0.5 above to 0.5 below"
        if len(model.ensemble.classes) > 2 or not model.ensemble.classes:
            lines += [f"# The largest change of the score by {name} alone.", *_largest(model, name)]
        else:
            lines += [
                f"# Can changing {name} alone move the probability {what}? `expect none` makes this a test:",
                "# treesens check ends in 10 if there is such a pair of inputs.",
                f"query {name_text(ast.Name(f'{asked}_alone'))}:",
                f"  sensitive m to {{{name}}} {size} expect none",
            ]
    return "\n".join(lines) + "\n"


def _mined(table: Table) -> Mined:
    """What a table says of its columns; relations between columns, which a first file has no use for, have a second."""
    with working_within(Budget.of(1.0)):
        return mine(table, RuleOptions())


def _largest(model: LoadedModel, name: str) -> list[str]:
    score = "value" if not model.ensemble.classes else "margin"
    which = "" if not model.ensemble.classes else f", {_label(model.ensemble.classes[0])}"
    body = f"  find a, b such that a = b except {name}  maximize {score}(a{which}) - {score}(b{which})"
    return ["query largest_change:", body]


def _label(label: object) -> str:
    return name_text(ast.Name(label)) if isinstance(label, str) else str(label)


def _coded(model: LoadedModel, name: str) -> bool:
    """True if the model reads, or may read, codes of the values in a table."""
    feature = model.ensemble.features[model.ensemble.feature_names.index(name)]
    return bool(feature.categories) or feature.unsure


def _text(text: str) -> str:
    if any(c in text for c in '"\n\0'):
        raise UsageError(f"{text!r:.60} stands in no text of the language", remedy="rename it")
    return f'"{text}"'


def _beside(path: Path, folder: Path) -> str:
    return Path(os.path.relpath(path, folder)).as_posix()


def first_toml(model: LoadedModel) -> str:
    """A treesens.toml that says nothing yet: every line of it is a comment."""
    classes = ", ".join(
        f"{json.dumps(str(label))} = {json.dumps(f'class {label}')}" for label in model.ensemble.classes
    )
    names = ", ".join(json.dumps(name, ensure_ascii=False) for name in model.ensemble.feature_names[:3])
    lines = [
        "# What answers about the models of this folder depend on (docs/protected.md). Take away the # of what holds.",
        "",
        "# Features that must not matter: first in every table, never named as something to change.",
        f"# protected = [{names}]",
    ]
    if classes:
        lines += [
            "",
            "# What the classes are called, and which of them people wish for.",
            f"# classes = {{{classes}}}",
            f"# favourable = {json.dumps(str(model.ensemble.classes[0]))}",
        ]
    return "\n".join(lines) + "\n"
