"""The subject `FILE.sens`: the questions with their models and tables, in a folder of their own."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from pathlib import Path, PurePath
from typing import Any

from treesens.compiler.base.diagnostics import DiagnosticsError
from treesens.errors import ModelError, UsageError
from treesens.extensions.reduce import question
from treesens.extensions.reduce.ddmin import Files, Level
from treesens.extensions.reduce.trees import DIGITS, XGBoostModel, read_trees
from treesens.frontends.meaning import FILE
from treesens.frontends.registry import load
from treesens.grammar.parsing.parser import parse, read
from treesens.grammar.printing.printer import to_text
from treesens.grammar.tree import ast


@dataclass(frozen=True, eq=False)
class Questions:
    """A `.sens` file and the models whose trees are reduced, by the path in the file. `name` is the name of the file.

    `linked` are all other files: paths in the candidate's folder with the paths of the originals.
    """

    name: str
    file: ast.File
    models: Mapping[str, XGBoostModel]
    linked: Mapping[str, Path]
    notes: tuple[str, ...] = field(default=())

    @cached_property
    def text(self) -> str | None:
        """The canonical text, or None if the tree has none: it does not parse, for example for want of a constraint."""
        try:
            text = to_text(self.file)
            return text if parse(text).declarations else None
        except (ValueError, DiagnosticsError):
            return None

    def files(self) -> Files | None:
        if self.text is None:
            return None
        models = {path: model.content for path, model in self.models.items() if path in self.paths}
        return {**models, self.name: self.text.encode()}

    @cached_property
    def paths(self) -> set[str]:
        """The paths of the models and tables that the file still declares."""
        return {d.path.value for d in self.file.declarations if isinstance(d, ast.Model | ast.Data)}

    def sizes(self) -> dict[str, int]:
        kept = [model for path, model in self.models.items() if path in self.paths]
        constraints = sum(isinstance(node, _CONSTRAINTS) for _, node, _ in question.places(self.file))
        return {
            "declarations": len(self.file.declarations),
            "constraints": constraints,
            "trees": sum(len(model.trees) for model in kept),
            "leaves": sum(model.leaves for model in kept),
            "features": sum(len(model.features) for model in kept),
        }

    def levels(self) -> Sequence[Level]:
        return list(self._levels())

    def _levels(self) -> Iterator[Level]:
        yield Level("queries", lambda c: [e for e in question.deletions(c.file, 1) if c.is_query(e)], Questions._edited)
        for path in self.models:
            yield _of_model(path, "trees", lambda m: [n for n, _ in m.trees], XGBoostModel.without_trees)
        for depth in range(1, question.depth_of(self.file) + 1):
            yield Level("declarations and constraints", partial(_at, question.deletions, depth), Questions._edited)
            yield Level("operands", partial(_at, question.operands, depth), Questions._edited)
        yield Level("values", lambda c: question.shorter(c.file), Questions._edited)
        for path, model in self.models.items():
            for depth in range(model.depth + 1):
                for side in ("left", "right"):
                    hoist = partial(XGBoostModel.hoisted, side=side)
                    yield _of_model(path, "subtrees", partial(XGBoostModel.splits, depth=depth), hoist)
            yield _of_model(path, "features", lambda m: m.unused, XGBoostModel.without_features)
            for digits in DIGITS:
                long = partial(XGBoostModel.long_numbers, digits=digits)
                yield _of_model(path, "digits", long, partial(XGBoostModel.rounded, digits=digits))

    def is_query(self, edit: question.Edit) -> bool:
        """True if an edit of a declaration deletes a query."""
        return isinstance(self.file.declarations[edit[0][0][1]], ast.Query)

    def _edited(self, edits: Sequence[question.Edit]) -> Questions:
        return replace(self, file=question.edited(self.file, dict(edits)))


_CONSTRAINTS = (ast.PointsEqual, ast.PointIsRow, ast.ClassIs, ast.Comparison, ast.Predicate)


def _at(edits: Any, depth: int, candidate: Questions) -> list[question.Edit]:
    found: list[question.Edit] = edits(candidate.file, depth)
    return found


def _of_model(path: str, name: str, edits: Any, applied: Any) -> Level:
    """A level of one model as a level of the questions."""

    def change(candidate: Questions, chosen: Sequence[Any]) -> Questions:
        return replace(candidate, models={**candidate.models, path: applied(candidate.models[path], chosen)})

    return Level(name, lambda c: edits(c.models[path]) if path in c.paths else [], change)


def read_questions(file: Path, names: Sequence[str], *, trust_pickle: bool) -> Questions:
    """The subject of a file, with the named queries only (all without names). All models and tables are in the candidate's
    folder, under the last names of their paths.

    Raises DiagnosticsError if the file does not parse, and UsageError for an unknown query.
    """
    tree = read(file)
    known = [query.name.text for query in tree.queries]
    wanted = {name.partition("[")[0] for name in names}
    if unknown := wanted - set(known):
        raise UsageError(f"no query `{min(unknown)}` in the file", remedy=f"queries: {', '.join(known)}")
    name = "questions.sens" if str(file) == "-" else file.name
    notes: list[str] = []
    models: dict[str, XGBoostModel] = {}
    linked: dict[str, Path] = {}
    declarations: list[ast.Declaration] = []
    for declaration in tree.declarations:
        if isinstance(declaration, ast.Query) and wanted and declaration.name.text not in wanted:
            continue
        if isinstance(declaration, ast.Model | ast.Data):
            original = file.parent / declaration.path.value
            path = _beside(declaration.path.value, {name, *linked, *models})
            declarations.append(replace(declaration, path=replace(declaration.path, value=path)))
            linked[path] = original
            if isinstance(declaration, ast.Model):
                try:
                    form = declaration.format.text if declaration.format else None
                    loaded = load(original, form, trust_pickle=trust_pickle)
                    models[path] = read_trees(loaded, original.read_bytes())
                    del linked[path]
                    meaning = [original.with_name(name) for name in (f"{original.stem}.{FILE}", FILE)]
                    linked |= {f"{PurePath(path).stem}.{FILE}": one for one in meaning[::-1] if one.is_file()}
                except ModelError as error:
                    notes.append(str(error))
        else:
            declarations.append(declaration)
    return Questions(name, ast.File(tuple(declarations)), models, linked, tuple(notes))


def _beside(path: str, taken: set[str]) -> str:
    """The name of a file in the candidate's folder: the last name of its path, unless it is taken."""
    name = PurePath(path).name
    name = "file" if name in ("", "..") else name
    while name in taken:
        name = f"other-{name}"
    return name
