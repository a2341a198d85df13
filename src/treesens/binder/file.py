"""Converts the syntax tree of a `.sens` file to typed questions: names, domains, grids, constraints, objectives.

All errors in a file are collected; a file with errors produces no questions.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial, reduce
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

import numpy as np

from treesens.binder.conflicts import Conjunct, check_satisfiable, merge_conjuncts, parts_of
from treesens.binder.constructs.decided import shown as decided_points
from treesens.binder.declarations import Declarations, LoadModel, LoadTable, Unbound, read_declarations
from treesens.binder.desugar import choices, desugar, desugar_monotone
from treesens.binder.formulas import asserted, formula
from treesens.binder.inputs import region
from treesens.binder.objectives import objective, present_values
from treesens.binder.scope import Inputs, Pending, Scope, inputs_of_models
from treesens.binder.shares import check_countable, expected_words, share_asked
from treesens.compiler.base.arrays import FloatArray, frozen
from treesens.compiler.base.diagnostics import Diagnostics, DiagnosticsError, Span
from treesens.compiler.model.evaluate import LibraryReplay
from treesens.compiler.query import query as q
from treesens.compiler.query.values import ValueSum
from treesens.data.tables import Table, read_table
from treesens.frontends.base import LoadedModel
from treesens.frontends.registry import FORMATS, libraries_of
from treesens.grammar.printing.print_terms import decimal
from treesens.grammar.printing.printer import question_text
from treesens.grammar.tree import ast

if TYPE_CHECKING:
    from treesens.solve.options import Options


class Explained(Protocol):
    """The interface of the service "answers" (`builtin.SERVICES`)."""

    def explained(
        self, found: Declarations, inputs: Inputs, node: ast.Explain, bind: Callable[[ast.Find], q.Query]
    ) -> q.Query:
        """`explain row N of DATA` as a typed question; `bind` binds a `find`."""


@dataclass(frozen=True, eq=False)
class ResolvedQuestion:
    """A typed question, with the data needed to build and record its answer.

    `models[i]` is the loaded model of `query.models[i]`, with features and columns in the question's order. `find` is the
    question without shorthand (except `Count`); `node` is its source. `tables` are the tables that the question uses, by name.
    `rows` holds the rows of these tables and of the tables for domains, float64[rows, features] as the model stores them.
    """

    query: q.Query
    models: tuple[LoadedModel, ...]
    tables: Mapping[str, Table]
    find: ast.Find | ast.Count | ast.Explain
    node: ast.Query
    rows: Mapping[str, FloatArray] = field(default_factory=dict)
    pinned: Callable[[int], q.Query] | None = None
    """For a count: makes the question for one row of its table."""
    conjuncts: tuple[Conjunct, ...] = ()
    background: tuple[q.Constraint, ...] = ()
    """Additional constraints from declarations: `onehot`."""
    sources: Mapping[str, Table] = field(default_factory=dict)
    """The tables that define domains, by name."""

    @property
    def name(self) -> str:
        return self.query.name

    def known_tables(self) -> list[dict[str, str | None]]:
        """The name and SHA-256 of each table on which the answer depends; a data frame has no SHA-256."""
        return [{"name": name, "sha256": table.sha256} for name, table in {**self.tables, **self.sources}.items()]

    def model_of(self, point: int) -> LoadedModel:
        """The model of a point."""
        return self.models[self.query.points[point].model]

    def library_predicts(self, replay: str, confirm: str | None = None) -> list[LibraryReplay] | None:
        """The library's own predict function per model, if `replay` requires it (`auto`: if the library is imported)."""
        libraries = libraries_of(self.models, "library" if confirm == "library" else replay)
        if replay == "emulated" or (replay == "auto" and not all(library in sys.modules for library in libraries)):
            return None
        return [model.replay for model in self.models]

    def replayed(self, options: Options) -> Options:
        """The options for this question, with the libraries in which its witnesses are replayed."""
        return replace(options, library_predict=self.library_predicts(options.replay, options.confirm))


@dataclass(frozen=True, eq=False)
class ResolvedFile:
    """The loaded declarations of a file, and its questions in order, with `for each` expanded."""

    file: ast.File
    models: Mapping[str, LoadedModel]
    tables: Mapping[str, Table]
    queries: tuple[ResolvedQuestion, ...]
    broken: Mapping[str, DiagnosticsError] = field(default_factory=dict)
    """By query name: the error of the query, or of one of its questions."""

    def __getitem__(self, name: str) -> ResolvedQuestion:
        return next(found for found in self.queries if found.name == name)


def bind(
    file: ast.File,
    base: Path,
    *,
    load_model: LoadModel | None = None,
    load_table: LoadTable | None = None,
    diagnostics: Diagnostics | None = None,
    names: Sequence[str] = (),
    keep_going: bool = False,
) -> ResolvedFile:
    """The typed questions of a file, with paths relative to `base`; with `names`, only the questions of these names.

    `load_model(path, format)` and `load_table(path, label, rows)` default to the frontend registry and to `read_table`.
    Warnings are added to `diagnostics`; errors are raised together as one `DiagnosticsError`. With `keep_going`, an invalid
    query is recorded in `broken`, and other queries are still bound. Errors in declarations affect every query, and are raised.
    """
    messages = diagnostics if diagnostics is not None else Diagnostics()
    found = read_declarations(file, base, load_model or load_model_file, load_table or load_table_file, messages)
    keep_going = keep_going and not messages.errors
    binder = Binder(found)
    queries: list[ResolvedQuestion] = []
    broken: dict[str, DiagnosticsError] = {}
    for node in _named(file.queries, names):
        known = len(messages.items)
        try:
            for query in binder.query(node):
                queries.append(query)  # noqa: PERF402 (those before a mistake are kept)
        except Unbound:
            mine = [item for item in messages.items[known:] if item.severity == "error"]
            broken[node.name.text] = DiagnosticsError(mine or messages.errors)
    if not keep_going or not queries:
        messages.items.sort(key=lambda item: item.span.start if item.span else 0)
        messages.raise_if_errors()
    messages.items[:] = [item for item in messages.items if item.severity != "error"]
    messages.items.sort(key=lambda item: item.span.start if item.span else 0)
    models = {name: model for name, model in found.models.items() if model is not None}
    tables = {name: table for name, table in found.tables.items() if table is not None}
    return ResolvedFile(file, models, tables, tuple(queries), broken)


def _named(queries: Sequence[ast.Query], names: Sequence[str]) -> list[ast.Query]:
    """The queries selected by their own names or by names of their questions, `NAME[..]`; without `names`, all queries."""
    if not names:
        return list(queries)
    return [q for q in queries if any(selects(name, q.name.text) for name in names)]


def selects(name: str, query: str) -> bool:
    """True if a name of the caller selects questions of a query: its own name, that of a loop, or that of one question."""
    return name == query or name.startswith(f"{query}[") or query.startswith(f"{name}[")


def load_model_file(path: Path, format: str | None) -> LoadedModel:
    from treesens.frontends.registry import load

    return load(path, format)


def load_table_file(path: Path, label: str | None, rows: int | None) -> Table:
    return read_table(path, label=label, rows=rows)


@dataclass(frozen=True, eq=False)
class Asked:
    """One unbound question: its full name, its query, and its body without `for each`.

    `suffix` is the pair of classes if a shorthand expands to all pairs; `find` is the body without shorthand.
    """

    name: str
    node: ast.Query
    models: Mapping[str, ast.Name | None]
    body: ast.Body
    suffix: str
    find: ast.Find | ast.Count | ast.Explain


@dataclass
class Binder:
    """Binds the queries of one file. All questions about the same models share one `Inputs`."""

    found: Declarations
    inputs: dict[tuple[str, ...], Inputs | None] = field(default_factory=dict)

    def query(self, node: ast.Query) -> Iterator[ResolvedQuestion]:
        """Yields the questions of a query; raises Unbound at the end if some are invalid."""
        broken = False
        for item in self.asked(node):
            try:
                yield self.question(item)
            except Unbound:
                broken = True
        if broken:
            raise Unbound

    def asked(self, node: ast.Query) -> Iterator[Asked]:
        """Yields the unbound questions of a query; raises Unbound at the end if some are invalid."""
        self._expected(node)
        names = self._models_of(node.body)
        inputs = self._inputs(names)
        broken = False
        for choice in choices(self.found, node, inputs.names):
            try:
                finds = self._finds(choice.body, inputs)
            except Unbound:
                broken = True
                continue
            for suffix, find in finds:
                labels = (*choice.labels, suffix) if suffix else choice.labels
                name = f"{node.name.text}[{', '.join(labels)}]" if labels else node.name.text
                yield Asked(name, node, names, choice.body, suffix, find)
        if broken:
            raise Unbound

    def question(self, asked: Asked) -> ResolvedQuestion:
        """Binds one question."""
        inputs = self._inputs(asked.models)
        if isinstance(asked.find, ast.Explain):
            return self._explained(inputs, asked, asked.find)
        return _question(self.found, inputs, asked.models, asked.name, asked.node, asked.find)

    def _explained(self, inputs: Inputs, asked: Asked, node: ast.Explain) -> ResolvedQuestion:
        """Binds `explain row`: a typed question that contains one question per class."""
        last: list[ResolvedQuestion] = []

        def bind(find: ast.Find) -> q.Query:
            last[:] = [_question(self.found, inputs, asked.models, asked.name, asked.node, find)]
            return last[0].query

        answers: Explained = self.found.service("answers", node.row.data.span)
        query = answers.explained(self.found, inputs, node, bind)
        data = node.row.data
        tables = {data.text: self.found.table(data)}
        rows = {data.text: Scope(self.found, inputs, (), ()).matrix(data)}
        return replace(last[0], query=query, find=node, tables=tables, rows=rows)

    def _expected(self, node: ast.Query) -> None:
        if isinstance(node.body, ast.Find) and node.body.top is not None and node.body.top.number.value < 1:
            raise self.found.fail("E217", "`top 0` requests no answer", node.body.top.span, "write `top 1` or more")

    def _models_of(self, body: ast.Body) -> dict[str, ast.Name | None]:
        """The models of the points, in order, with the location of each model's name."""
        result: dict[str, ast.Name | None] = {}
        for name in [p.model for p in body.points] if isinstance(body, ast.Find | ast.Count) else [body.model]:
            if name is not None:
                self.found.model(name)
                result[name.text] = name
            else:
                result[self._only_model(body.span)] = None
        return result

    def _only_model(self, span: Span) -> str:
        if not self.found.models:
            raise Unbound
        if len(self.found.models) > 1:
            known = ", ".join(f"`{name}`" for name in self.found.models)
            first = Span(span.source, span.start, span.start + len(span.text.split()[0]) if span.text else span.end)
            raise self.found.fail("E109", f"the file has the models {known}", first, "say which: `in MODEL`")
        return next(iter(self.found.models))

    def _inputs(self, names: Mapping[str, ast.Name | None]) -> Inputs:
        key = tuple(names)
        if key not in self.inputs:
            self.inputs[key] = None
            loaded = [self.found.models[name] for name in names]
            models = [model for model in loaded if model is not None]
            if len(models) == len(loaded):
                spans = [name.span if name else ast.NOWHERE for name in names.values()]
                self.inputs[key] = inputs_of_models(self.found, models, spans)
        inputs = self.inputs[key]
        if inputs is None:
            raise Unbound
        return inputs

    def _finds(self, body: ast.Body, inputs: Inputs) -> list[tuple[str, ast.Find | ast.Count | ast.Explain]]:
        if isinstance(body, ast.Monotone):
            return [("", desugar_monotone(self.found, body, inputs.models[0].ensemble))]
        if not isinstance(body, ast.Sensitive):
            return [("", body)]
        return list(desugar(self.found, body, inputs.models[0].ensemble))


def _question(
    found: Declarations,
    inputs: Inputs,
    models: Mapping[str, ast.Name | None],
    name: str,
    node: ast.Query,
    find: ast.Find | ast.Count,
    *,
    contradictions: bool = True,
) -> ResolvedQuestion:
    """One typed question. With `contradictions`, contradictions that do not depend on the model are errors."""
    scope = _scope(found, inputs, tuple(models), find)
    written = [part for item in find.constraints for part in _parts(item)]
    waiting = scope.every(lambda item: (formula(scope, item), item), written)
    decided = decided_points(scope, find.constraints)
    goal = find.objective if isinstance(find, ast.Find) else None
    aim = objective(scope, goal) if goal is not None else None
    rules = [*_onehots(scope), *(present_values(scope, goal) if goal is not None else ())]
    rows = _row_set(scope, find) if isinstance(find, ast.Count) else None
    share = share_asked(scope, find)
    space, cells = inputs.space(scope.cuts)
    conjuncts = [Conjunct(item, tuple(_conjuncts(pending(space)))) for pending, item in waiting]
    if isinstance(find, ast.Count) and rows is not None and _values_matter(parts_of(conjuncts)):
        _cut_at_rows(scope, rows)
        space, cells = inputs.space(scope.cuts)
        conjuncts = [Conjunct(item, tuple(_conjuncts(pending(space)))) for pending, item in waiting]
    background = tuple(part for rule in rules for part in _conjuncts(rule(space)))
    if contradictions:
        check_satisfiable(scope, space, conjuncts, background, find.span)
    top = find.top if isinstance(find, ast.Find) else None
    varied = sorted(scope.varied)
    formats = [one for model in inputs.models if (one := FORMATS.plugin(model.frontend)) is not None]
    typed = q.Query(
        name=name,
        space=space,
        models=cells,
        points=tuple(q.Point(p, m) for p, m in zip(scope.points, scope.point_models, strict=True)),
        constraints=merge_conjuncts([*parts_of(conjuncts), *background]),
        objective=aim(space) if aim else None,
        expect=expected_words(find.expect),
        varied=tuple(inputs.names[f] for f in varied),
        text=question_text(node),
        rows=rows,
        top=top.number.value if top else 1,
        diverse=top.diverse if top else False,
        share=share,
        decided=tuple(build(space) for build in decided),
        plugins=tuple(dict.fromkeys((*scope.plugins, *formats))),
        parameters=tuple((parameter, decimal(number.value)) for parameter, number in node.parameters),
    )
    if share is not None:
        check_countable(scope, typed, find)
    tables = dict(scope.tables)
    pinned = partial(_about_row, found, inputs, models, name, node, find) if isinstance(find, ast.Count) else None
    return ResolvedQuestion(
        typed,
        inputs.models,
        tables,
        find,
        node,
        _rows_in_play(scope, tables),
        pinned,
        tuple(conjuncts),
        background,
        sources={source.data.text: found.table(source.data) for source in found.sources},
    )


def _parts(node: ast.Formula) -> list[ast.Formula]:
    """The conjuncts of a constraint, each with its own location."""
    return [part for item in node.items for part in _parts(item)] if isinstance(node, ast.And) else [node]


def _about_row(
    found: Declarations,
    inputs: Inputs,
    models: Mapping[str, ast.Name | None],
    name: str,
    node: ast.Query,
    count: ast.Count,
    row: int,
) -> q.Query:
    """A count as the question about one row: the same constraints, and the first point equals the row."""
    span = count.data.span
    is_row = ast.PointIsRow(
        count.points[0].name, ast.Row(ast.Whole(row, span=span), count.data, span=span), None, span=span
    )
    find = ast.Find(count.points, (is_row, *count.constraints), span=count.span)
    # Each row cuts the grid at different values, so refined grids are not kept for the next row. A row that contradicts the
    # constraints is not an error: it is not counted.
    fresh = replace(inputs, cache=dict(inputs.cache))
    return _question(found, fresh, models, name, node, find, contradictions=False).query


def _rows_in_play(scope: Scope, used: Mapping[str, Table]) -> dict[str, FloatArray]:
    """The rows of a question's tables, and of tables for domains with all features."""
    names = [ast.Name(name) for name in used]
    for source in scope.found.sources:
        table = scope.found.tables.get(source.data.text)
        if table is not None and source.data.text not in used and all(f in table for f in scope.inputs.names):
            names.append(source.data)
    return {name.text: scope.matrix(name) for name in names}


def _scope(found: Declarations, inputs: Inputs, models: Sequence[str], find: ast.Find | ast.Count) -> Scope:
    names: list[str] = []
    for point in find.points:
        if point.name.text in names:
            raise found.fail("E114", f"two points are called `{point.name.text}`", point.name.span, "rename one")
        names.append(point.name.text)
    owners = tuple(models.index(point.model.text) if point.model else 0 for point in find.points)
    scope = Scope(found, inputs, tuple(names), owners, tuple(models))
    links = [c for c in asserted(find.constraints) if isinstance(c, ast.PointsEqual)]
    free = [
        frozenset(scope.index[n.text] for n in link.varied.names if n.text in scope.index)
        for link in links
        if link.varied
    ]
    scope.varied = frozenset[int]().union(*free)
    return scope


def _onehots(scope: Scope) -> list[Pending]:
    """The constraint of `onehot {..}` at every point: one of the features is 1, and all others are 0."""
    rules: list[Pending] = []
    for node in scope.found.onehots:
        features = [scope.index[name.text] for name in node.features if name.text in scope.index]
        if len(features) < len(node.features):
            continue  # a feature of another model; unknown names are reported with the declarations
        for f, name in zip(features, node.features, strict=True):
            if not scope.spec(f).allows(np.array([0.0, 1.0])).all():
                remedy = "declare it `integer in [0, 1]`, or leave it undeclared"
                raise scope.fail("E308", f"the domain of `{name.text}` must contain 0 and 1", name.span, remedy)
        for point in range(len(scope.points)):
            ones = [region(scope, point, f, [scope.spec(f).only(1.0)]) for f in features]
            zeros = [region(scope, point, f, [scope.spec(f).only(0.0)]) for f in features]
            rules.append(_onehot(point, ones))
            rules += [_either(one, zero) for one, zero in zip(ones, zeros, strict=True)]
    return rules


def _onehot(point: int, ones: Sequence[Pending]) -> Pending:
    return lambda space: q.OneHot(point, tuple(_cell_set(one(space)) for one in ones))


def _either(one: Pending, zero: Pending) -> Pending:
    def build(space: q.Space) -> q.CellSet:
        first, second = _cell_set(one(space)), _cell_set(zero(space))
        return q.CellSet(first.point, first.feature, frozen(first.mask | second.mask, bool))

    return build


def _cell_set(constraint: q.Constraint) -> q.CellSet:
    assert isinstance(constraint, q.CellSet)
    return constraint


def _row_set(scope: Scope, node: ast.Count) -> q.RowSet:
    """The table rows inside the domain, over which the first point ranges."""
    matrix = scope.matrix(node.data)
    legal = reduce(np.logical_and, (scope.spec(f).allows(matrix[:, f]) for f in range(matrix.shape[1])))
    index = np.flatnonzero(legal)
    return q.RowSet(0, frozen(matrix[index]), frozen(index), len(matrix) - len(index))


def _values_matter(constraints: Sequence[q.Constraint]) -> bool:
    """True if a constraint may hold for only some values of a cell: there are sums over values (distances, changes)."""
    return any(map(_sums_values, constraints))


def _sums_values(constraint: q.Constraint) -> bool:
    if isinstance(constraint, q.AllOf | q.AnyOf):
        return any(map(_sums_values, constraint.parts))
    return isinstance(constraint, ValueSum) or (isinstance(constraint, q.AtLeast) and bool(constraint.values))


def _cut_at_rows(scope: Scope, rows: q.RowSet) -> None:
    """Gives every value of the rows a cell of its own, as `P = row N of DATA` does."""
    for f in range(rows.values.shape[1]):
        if not scope.spec(f).coded:
            for value in np.unique(rows.values[~np.isnan(rows.values[:, f]), f]):
                scope.cut(f, *scope.spec(f).only(float(value)))


def _conjuncts(constraint: q.Constraint) -> list[q.Constraint]:
    if isinstance(constraint, q.AllOf):
        return [inner for part in constraint.parts for inner in _conjuncts(part)]
    return [constraint]
