"""The subject of a `.sens` file: its questions, and the models whose trees can be edited."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from pathlib import Path, PurePath
from typing import Any

from treesens.binder.file import selects
from treesens.commands.parameters import read_file
from treesens.compiler.base.diagnostics import DiagnosticsError, did_you_mean
from treesens.errors import ModelError, UsageError
from treesens.extensions.reduce.ddmin import Files, Level, Subject
from treesens.extensions.reduce.question import Edit, deletions, edited, operands, places, shorter_values
from treesens.extensions.reduce.trees import XGBoostModel, read_trees
from treesens.frontends.meaning import FILE
from treesens.frontends.registry import load
from treesens.grammar.parsing.parser import parse
from treesens.grammar.printing.printer import to_text
from treesens.grammar.tree import ast

_CONSTRAINTS = (ast.PointsEqual, ast.PointIsRow, ast.ClassIs, ast.Comparison, ast.Predicate)


@dataclass(frozen=True, eq=False)
class Questions(Subject):
    """The syntax tree of a file, and the models by the names of their files."""

    file: ast.File
    models: Mapping[str, XGBoostModel]

    @cached_property
    def text(self) -> str | None:
        """The canonical text; None if the tree has none, or a text that does not parse."""
        try:
            text = to_text(self.file)
            parse(text)
        except (ValueError, DiagnosticsError):
            return None
        return text

    @cached_property
    def kept(self) -> dict[str, XGBoostModel]:
        """The models that the file still declares."""
        named = {declaration.path.value for declaration in self.file.declarations if isinstance(declaration, ast.Model)}
        return {name: model for name, model in self.models.items() if name in named}

    def files(self) -> Files | None:
        if self.text is None:
            return None
        return {**{name: model.content for name, model in self.kept.items()}, self.name: self.text.encode()}

    def sizes(self) -> dict[str, int]:
        constraints = sum(isinstance(node, _CONSTRAINTS) for _, node, _ in places(self.file))
        sizes = {"declarations": len(self.file.declarations), "constraints": constraints}
        counts = [model.sizes() for model in self.kept.values()]
        return sizes | {part: sum(count[part] for count in counts) for part in ("trees", "leaves", "features")}

    def levels(self) -> Sequence[Level]:
        depths = range(1, max((len(path) for path, _, _ in places(self.file)), default=0) + 1)
        return [
            Level("queries", Questions._queries, Questions._edited),
            *(_of_model(name, level) for name, model in self.kept.items() for level in model.coarse()),
            *(
                Level("parts", partial(_at, edits, d), Questions._edited)
                for d in depths
                for edits in (deletions, operands)
            ),
            Level("values", lambda subject: shorter_values(subject.file), Questions._edited),
            *(_of_model(name, level) for name, model in self.kept.items() for level in model.fine()),
        ]

    def _queries(self) -> list[Edit]:
        return [
            edit for edit in deletions(self.file, 1) if isinstance(self.file.declarations[edit[0][0][1]], ast.Query)
        ]

    def _edited(self, edits: Sequence[Edit]) -> Questions:
        return replace(self, file=edited(self.file, dict(edits)))


def _at(edits: Callable[[ast.File, int], list[Edit]], depth: int, subject: Questions) -> list[Edit]:
    return edits(subject.file, depth)


def _of_model(name: str, level: Level) -> Level:
    """A level of one model as a level of the questions."""

    def applied(subject: Questions, edits: Sequence[Any]) -> Questions:
        return replace(subject, models={**subject.models, name: level.applied(subject.models[name], edits)})

    return Level(level.name, lambda subject: level.edits(subject.kept[name]) if name in subject.kept else (), applied)


def read_questions(file: Path, queries: Sequence[str], *, trust_pickle: bool) -> Questions:
    """The subject of a file, limited to the named queries if there are names. Models and tables get the last names of their
    paths. Raises DiagnosticsError if the file does not parse, and UsageError for an unknown query.
    """
    tree, name = read_file(file), "questions.sens" if str(file) == "-" else file.name
    wanted, known = set(queries), [query.name.text for query in tree.queries]
    for query in (one for one in queries if not any(selects(one, other) for other in known)):
        raise UsageError(f"no query `{query}` in the file", remedy=did_you_mean(query, known))
    models: dict[str, XGBoostModel] = {}
    linked: dict[str, Path] = {}
    notes: list[str] = []
    declarations: list[ast.Declaration] = []
    for one in tree.declarations:
        if isinstance(one, ast.Model | ast.Data):
            original = file.parent / one.path.value
            path = _unused(PurePath(one.path.value).name, {name, *linked, *models})
            declarations.append(replace(one, path=replace(one.path, value=path)))
            linked[path] = original
            if isinstance(one, ast.Model):
                try:
                    form = one.format.text if one.format else None
                    models[path] = read_trees(load(original, form, trust_pickle=trust_pickle), original)
                    del linked[path]
                except ModelError as error:
                    notes.append(str(error))
            for meaning in (FILE, f"{original.stem}.{FILE}"):
                if original.with_name(meaning).is_file():
                    linked[f"{PurePath(path).stem}.{FILE}"] = original.with_name(meaning)
        elif not (isinstance(one, ast.Query) and wanted) or any(selects(q, one.name.text) for q in wanted):
            declarations.append(one)
    return Questions(name, linked, notes, ast.File(tuple(declarations)), models)


def _unused(name: str, taken: set[str]) -> str:
    """A file name that is not taken."""
    name = "file" if name in ("", "..") else name
    while name in taken:
        name = f"other-{name}"
    return name
