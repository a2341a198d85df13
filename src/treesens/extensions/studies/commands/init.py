"""`treesens init`: writes initial files for a model, which are to be read, changed and kept next to the model."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path

import click

from treesens.commands.common import EXPECTED, trust_option, write_output
from treesens.commands.outputs import OutputFile
from treesens.compiler.base.files import check_writable, write_atomically
from treesens.data.tables import Table
from treesens.errors import OverwriteError, UsageError
from treesens.extensions.studies.commands.study import model_and_table
from treesens.extensions.studies.learn_search import domain_lines, first_look
from treesens.extensions.studies.recognised import label_column, named_classes, suggested
from treesens.frontends.base import LoadedModel
from treesens.frontends.meaning import FILE, toml_of
from treesens.grammar.printing.print_terms import name_text
from treesens.grammar.tree import ast
from treesens.report.terminal import say

_PATH: click.Path = click.Path(path_type=Path)


@click.command("init")
@click.argument("model", type=_PATH)
@click.argument("data", metavar="TABLE", type=_PATH)
@click.option("--label", help="The label column.")
@click.option("--output", "-o", type=OutputFile(), help="The file of questions. Default: NAME.sens next to the model.")
@click.option("--force", is_flag=True, help="Replace existing files.")
@click.option("--format", "form", help="The format of the model, if the file's content does not determine it.")
@trust_option
def command(
    model: Path, data: Path, label: str | None, output: Path | None, force: bool, form: str | None, trust_pickle: bool
) -> int:
    """Write an initial question file about MODEL, with the domains of TABLE, and an initial treesens.toml next to it.

    Both files contain many comments: read and edit the files. Existing files are kept.
    """
    from treesens.data.tables import read_table
    from treesens.frontends.registry import load

    model, data = model_and_table(model, data, form, "treesens init MODEL TABLE")
    loaded, table = load(model, form, trust_pickle=trust_pickle), read_table(data, label=label)
    if label is None and (found := label_column(loaded, table)).why:
        table = replace(table, label=found.name)
        say(f"label: `{found.name}` ({found.why})" if found.name else f"no label: {found.why}; add --label NAME")
    questions = output or model.with_suffix(".sens")
    toml = model.with_name(FILE)
    made = {questions: first_questions(loaded, table, model, data, questions.parent)}
    if not loaded.meaning and not toml.exists():  # an existing file is an input of this run
        made[toml] = first_toml(
            loaded, *(({}, False) if table.label is None else named_classes(loaded, table, table.label))
        )
    for path in made:
        if path.exists() and not force:
            raise OverwriteError(
                "the file already exists", place=str(path), remedy="add --force, or name another file with -o"
            )
        check_writable(path)
    for path, text in made.items():
        if write_output(str(path), partial(write_atomically, path, text)):
            say(f"{path}: written; read it, and change it")
    say(f"next: treesens check {questions}")
    return EXPECTED


def first_questions(model: LoadedModel, table: Table, file: Path, data: Path, folder: Path) -> str:
    """The text of a `.sens` file: the model, the table, a line per feature, and a question about the first relevant feature.

    `folder` is the folder of the file. Raises UsageError for a name that cannot be written as text of the language.
    """
    used = set(model.ensemble.used_features)
    names = [name for name in model.ensemble.feature_names if name in table]
    labelled = "" if table.label is None else f" label {_text(table.label)}"
    protected = suggested(model) if model.meaning.stated is None else model.meaning.stated
    asked = next((n for n in (*protected, *names) if n in used), None)
    lines = [
        "# The model and the table; paths are relative to this file.",
        f"model m from {_text(_beside(file, folder))}",
        f"data d from {_text(_beside(data, folder))}{labelled}",
        "",
        "# What inputs are possible: ranges and categories of the table. Widen what can be wider, and give categories names:",
        "# feature sex: category {Female = 0, Male = 1}",
        *domain_lines(first_look(table), [n for n in names if not _coded(model, n)]),
        "# Features without a line range over the values of the table.",
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
                f"# Can changing {name} alone move the probability {what}?",
                "# With `expect none` after the gap, treesens check exits with 10 if there is such a pair of inputs.",
                f"query {name_text(ast.Name(f'{asked}_alone'))}:",
                f"  sensitive m to {{{name}}} {size}",
            ]
    return "\n".join(lines) + "\n"


def _largest(model: LoadedModel, name: str) -> list[str]:
    score = "value" if not model.ensemble.classes else "margin"
    which = "" if not model.ensemble.classes else f", {_label(model.ensemble.classes[0])}"
    body = f"  find a, b such that a = b except {name} maximize {score}(a{which}) - {score}(b{which})"
    return ["query largest_change:", body]


def _label(label: object) -> str:
    return name_text(ast.Name(label)) if isinstance(label, str) else str(label)


def _coded(model: LoadedModel, name: str) -> bool:
    """True if the model reads, or may read, codes instead of the values in a table."""
    feature = model.ensemble.features[model.ensemble.feature_names.index(name)]
    return bool(feature.categories) or feature.unsure


def _text(text: str) -> str:
    if any(c in text for c in '"\n\0'):
        raise UsageError(f"{text!r:.60} cannot be written as a text of the language", remedy="rename it")
    return f'"{text}"'


def _beside(path: Path, folder: Path) -> str:
    return Path(os.path.relpath(path, folder)).as_posix()


def first_toml(model: LoadedModel, named: Mapping[str, str], sure: bool) -> str:
    """The text of a treesens.toml: features whose names suggest that they are protected, and the names of the classes if
    `named` has them, as a comment unless they are sure; every other line is a comment.
    """
    known = {str(label): named.get(str(label), f"class {label}") for label in model.ensemble.classes}
    found = suggested(model)
    lines = [
        "# Facts for answers about the models in this folder (docs/protected.md). Remove the # before true lines.",
        "",
        "# Features that must not matter: first in every table, never named for a change.",
        *(["# Suggested by their names: remove what does not apply."] if found else []),
        ("" if found else "# ") + toml_of(found or model.ensemble.feature_names[:3], {}, None),
    ]
    if known:
        lines += [
            "",
            *(["# The names are those of the label column, which agrees with the predictions."] if sure else []),
            *(["# The names that the label column suggests: check them."] if named and not sure else []),
            ("" if sure else "# ") + toml_of(None, known, None),
            "# The favourable class.",
            f"# {toml_of(None, {}, str(model.ensemble.classes[0]))}",
        ]
    return "\n".join(lines) + "\n"
