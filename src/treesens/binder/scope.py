"""Name resolution inside one question, and the grid of cells that its constraints require.

Binding has two steps. First, every constraint registers its cuts and becomes a function. The cuts define the grid; the
functions then create typed constraints over its cells.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Protocol, TypeVar

import numpy as np

from treesens.binder.declarations import (
    Declarations,
    Unbound,
    check_columns,
    lacks_columns,
    note_unbounded,
    note_whole_numbers,
    unknown_feature,
)
from treesens.binder.domains import FeatureSpec
from treesens.binder.feature_specs import feature_spec
from treesens.builtin import service
from treesens.compiler.base.arrays import BoolArray, FloatArray, Int32Array, frozen
from treesens.compiler.base.diagnostics import Code, Remedy, Span, did_you_mean
from treesens.compiler.base.floats import NumberType
from treesens.compiler.base.plugins import Plugin
from treesens.compiler.model import CellEnsemble, Feature
from treesens.compiler.model.discretise import refine
from treesens.compiler.model.grid import FeatureGrid, Grid
from treesens.compiler.model.scores import widened
from treesens.compiler.query import query as q
from treesens.compiler.query.domain import Domain, ValueDomain, legal_cells
from treesens.data.rows import cells_of_rows
from treesens.data.tables import Table
from treesens.frontends.base import LoadedModel
from treesens.grammar.tree import ast

T_in = TypeVar("T_in")
T_out = TypeVar("T_out")
Pending = Callable[[q.Space], q.Constraint]
"""Builds a constraint once the grid is known."""


class Numbers(Protocol):
    """The interface of the service "numbers" (`builtin.SERVICES`)."""

    def close_over(
        self, found: Declarations, model: LoadedModel, specs: Mapping[str, FeatureSpec], span: Span
    ) -> LoadedModel:
        """The model over the domain of its numbers. Raises Unbound, after a diagnostic, if a number has no finite domain."""


def _closed(found: Declarations, model: LoadedModel, specs: Mapping[str, FeatureSpec], span: Span) -> LoadedModel:
    """The model over the domain of its numbers; unchanged if no feature enters the score as a number."""
    if not model.ensemble.open_features:
        return model
    numbers: Numbers = service("numbers")
    return numbers.close_over(found, model, specs, span)


def align_features(loaded: LoadedModel, features: tuple[Feature, ...]) -> LoadedModel:
    """The same model over a longer or reordered list of features, matched by name."""
    ensemble = loaded.ensemble
    if ensemble.feature_names == tuple(f.name for f in features):
        return loaded
    own = {feature.name: feature for feature in ensemble.features}
    place = {feature.name: i for i, feature in enumerate(features)}
    columns = np.array([place[name] for name in ensemble.feature_names], np.int32)
    node_feature = np.where(ensemble.node_feature < 0, np.int32(-1), columns[ensemble.node_feature])
    leaf_ids = loaded.leaf_ids
    return replace(
        loaded,
        ensemble=replace(ensemble, features=tuple(own.get(f.name, f) for f in features), node_feature=node_feature),
        margins=lambda x: loaded.margins(np.asarray(x)[:, columns]),
        predicts=loaded.replay.on(lambda x: np.asarray(x)[:, columns]).predicts,
        leaf_ids=(lambda x: leaf_ids(np.asarray(x)[:, columns])) if leaf_ids else None,
    )


@dataclass(eq=False)
class Inputs:
    """The input space of one or two models, before a question refines it."""

    features: tuple[Feature, ...]
    models: tuple[LoadedModel, ...]
    specs: tuple[FeatureSpec, ...]
    base: Grid
    number_type: NumberType
    cache: dict[object, object] = field(default_factory=dict)
    """Costly objects that all questions over these inputs share (grids, marginals, cavities)."""

    @cached_property
    def names(self) -> tuple[str, ...]:
        return tuple(feature.name for feature in self.features)

    def forget_spaces(self, most: int) -> None:
        """Keeps the last `most` refined spaces."""
        spaces = [key for key in self.cache if isinstance(key, tuple) and key[0] == "space"]
        for key in spaces[: max(0, len(spaces) - most)]:
            del self.cache[key]

    def space(self, cuts: Sequence[Iterable[float]]) -> tuple[q.Space, tuple[CellEnsemble, ...]]:
        """The space refined by more cuts, and the models over the space; cached by the cuts.

        Unrefined parts (most features, and the grid on which scores depend) are shared between all questions.
        """
        coarse, legal = self._coarse()
        extra = tuple(_new_cuts(grid, found) for grid, found in zip(coarse.grid, cuts, strict=True))
        key = ("space", extra)
        if key not in self.cache:
            grid = coarse.grid.refined(extra)
            domains = tuple(spec.domain for spec in self.specs)
            fine = tuple(
                known if new is old else frozen(legal_cells(domain, new), bool)
                for known, old, new, domain in zip(legal, coarse.grid, grid, domains, strict=True)
            )
            space = q.Space(self.names, grid, domains, fine, coarse)
            self.cache[key] = space, tuple(refine(model, grid) for model in coarse.models)
        return self.cache[key]  # type: ignore[return-value]

    def _coarse(self) -> tuple[q.Coarse, tuple[BoolArray, ...]]:
        """The unrefined grid with the models over it, and the legal cells of each feature."""
        if "coarse" not in self.cache:
            domains = tuple(spec.domain for spec in self.specs)
            pairs = zip(self.base, domains, strict=True)
            grid = Grid(tuple(_with_legal_categories(g, d) if g.categories else g for g, d in pairs))
            legal = tuple(frozen(legal_cells(d, g), bool) for d, g in zip(domains, grid, strict=True))
            self.cache["coarse"] = q.Coarse(grid, tuple(model.ensemble.on(grid) for model in self.models)), legal
        return self.cache["coarse"]  # type: ignore[return-value]


def _new_cuts(grid: FeatureGrid, cuts: Iterable[float]) -> tuple[float, ...]:
    """The cuts that a grid lacks, ascending; none for a categorical feature."""
    return () if grid.categories else tuple(cut for cut in sorted(set(cuts)) if not grid.has_cut(cut))


def _with_legal_categories(grid: FeatureGrid, domain: Domain) -> FeatureGrid:
    """Gives each legal category a cell: rows and constants may separate categories that no split of the model separates."""
    assert isinstance(domain, ValueDomain)
    return grid.with_categories(int(domain.values[-1]) + 1)


def inputs_of_models(found: Declarations, models: Sequence[LoadedModel], spans: Sequence[Span]) -> Inputs:
    """The common input space of models: features by name, the cuts of all models, and the declared domains."""
    models = _over_one_type(models)
    first = models[0]
    features: dict[str, Feature] = {}
    for model, span in zip(models, spans, strict=True):
        _check_same_kind(found, first, model, span)
        for feature in model.ensemble.features:
            twin = features.setdefault(feature.name, feature)
            if feature.categories > twin.categories:
                features[feature.name] = feature
            if feature.needs_value:
                features[feature.name] = replace(features[feature.name], needs_value=True)
    union = tuple(features.values())
    number_type = first.ensemble.number_type
    check_columns(found, union)
    specs: list[FeatureSpec] = []
    broken = False
    for feature in union:
        try:
            specs.append(feature_spec(found, feature, number_type))
        except Unbound:
            broken = True
    if broken or not _have_predictions(found, union, specs, spans[0]):
        raise Unbound
    note_whole_numbers(found, union, specs)
    note_unbounded(found, specs)
    closed = [
        _closed(found, model, {spec.name: spec for spec in specs}, span)
        for model, span in zip(models, spans, strict=True)
    ]
    on_union = tuple(align_features(model, union) for model in closed)
    grids = [model.ensemble.grid() for model in on_union]
    base = Grid(tuple(_joined([grid[i] for grid in grids], specs[i].missing) for i in range(len(union))))
    return Inputs(union, on_union, tuple(specs), base, number_type)


def _over_one_type(models: Sequence[LoadedModel]) -> Sequence[LoadedModel]:
    """Converts float32 models to float64 if other models compare in float64: float64 is their libraries' input type."""
    if len({model.ensemble.number_type for model in models}) == 1:
        return models
    return [replace(model, ensemble=widened(model.ensemble)) for model in models]


def _have_predictions(found: Declarations, union: Sequence[Feature], specs: Sequence[FeatureSpec], span: Span) -> bool:
    """Reports features whose values a library requires but which may be missing in the domain; True without such features."""
    lost = [feature.name for feature, spec in zip(union, specs, strict=True) if feature.needs_value and spec.missing]
    if lost:
        names = ", ".join(f"`{name}`" for name in lost[:5]) + (" and others" if len(lost) > 5 else "")
        found.fail("E313", f"the model predicts nothing if {names} is missing", span)
    return not lost


def _check_same_kind(found: Declarations, first: LoadedModel, model: LoadedModel, span: Span) -> None:
    one, other = first.ensemble, model.ensemble
    if not set(one.feature_names) & set(other.feature_names):
        raise found.fail("E216", "the models have no feature in common", span, "use models over the same features")
    known = {f.name: f for f in one.features}
    for f in other.features:
        twin = known.get(f.name, f)
        if bool(twin.categories) != bool(f.categories):
            message = f"one of the models reads `{f.name}` as a category, the other one as a number"
            raise found.fail("E216", message, span, "use models that were trained on the same column types")
        if ((twin.labels or f.labels) and twin.labels != f.labels) or (f.levels and twin.levels not in ((), f.levels)):
            message = f"the models have different names, or another order, for the categories of `{f.name}`"
            raise found.fail("E216", message, span, "use models that were trained with the same categories")


def _joined(grids: Sequence[FeatureGrid], missing: bool) -> FeatureGrid:
    joined = grids[0]
    for grid in grids[1:]:
        joined = joined.with_categories(grid.categories) if joined.categories else joined.refined(grid.cuts)
    return joined.with_missing(missing)


@dataclass
class Scope:
    """The names of one question (points, features of its models, tables), and the cuts that its constraints need."""

    found: Declarations
    inputs: Inputs
    points: tuple[str, ...]
    point_models: tuple[int, ...]
    model_names: tuple[str, ...] = ()
    varied: frozenset[int] = frozenset()
    """The sensitive features: the features exempted by a top-level `P = Q except F`."""
    cuts: list[set[float]] = field(init=False)
    tables: dict[str, Table] = field(default_factory=dict)
    """The tables that the question uses, by name."""
    aliases: Mapping[str, int] = field(default_factory=dict)
    """Inside a decision: the name of its point, mapped to the number of the question's point."""
    plugins: dict[Plugin, None] = field(default_factory=dict)
    """The plug-in predicates that the question uses."""
    index: dict[str, int] = field(init=False)

    def __post_init__(self) -> None:
        self.cuts = [set() for _ in self.inputs.features]
        self.index = {name: i for i, name in enumerate(self.inputs.names)}

    def fail(
        self, code: str | Code, message: str, span: Span, remedy: str = "", related: tuple[Span, ...] = ()
    ) -> Unbound:
        return self.found.fail(code, message, span, remedy, related)

    def inside(self, aliases: Mapping[str, int]) -> Scope:
        """The scope inside a decision, with its point mapped to one of the question's points.

        A decision is a function of one input, so the question's choice of varied features does not matter.
        """
        inner = copy.copy(self)
        inner.aliases, inner.varied = aliases, frozenset()
        return inner

    def point(self, name: ast.Name) -> int:
        if self.aliases:
            if name.text not in self.aliases:
                message = f"the decision has no point `{name.text}`"
                raise self.fail("E104", message, name.span, did_you_mean(name.text, self.aliases))
            return self.aliases[name.text]
        if name.text not in self.points:
            remedy = did_you_mean(name.text, self.points)
            feature = did_you_mean(name.text, self.index)
            if not isinstance(remedy, Remedy) and isinstance(feature, Remedy):
                meant = f"{self.points[0]}.{name.span.text if name.text in self.index else feature.text}"
                remedy = Remedy(f"for a feature write `{meant}`", meant)
            raise self.fail("E104", f"the query has no point `{name.text}`", name.span, remedy)
        return self.points.index(name.text)

    def pair(self, left: ast.Name, right: ast.Name, span: Span) -> tuple[int, int]:
        """Two different points."""
        one, other = self.point(left), self.point(right)
        if one == other:
            remedy = "name a second point after `find`" if len(self.points) == 1 else "name the other point"
            raise self.fail("E213", f"`{span.text}` needs two different points", span, remedy)
        return one, other

    def feature(self, name: ast.Name) -> int:
        if name.text not in self.index:
            raise unknown_feature(self.found, name, self.index)
        return self.index[name.text]

    def features(self, node: ast.Features | None) -> frozenset[int]:
        names = node.names if node else ()
        return frozenset(self.every(self.feature, names))

    def every(self, bind: Callable[[T_in], T_out], items: Iterable[T_in]) -> list[T_out]:
        """Calls `bind` for every item, so that the errors of all items are reported."""
        done, broken = [], False
        for item in items:
            try:
                done.append(bind(item))
            except Unbound:
                broken = True
        if broken:
            raise Unbound
        return done

    def table(self, name: ast.Name) -> Table:
        table = self.found.table(name)
        self.tables[name.text] = table
        return table

    def matrix(self, name: ast.Name) -> FloatArray:
        """A table as float64[rows, features]: stored values of the model, in the question's feature order."""
        table = self.table(name)
        key = ("matrix", name.text)
        if key not in self.inputs.cache:
            absent = [f for f in self.inputs.names if f not in table]
            if absent:
                raise lacks_columns(self.found, name, table, absent)
            kind = self.inputs.number_type
            columns = [self.found.column(table, s.name, s.categories, kind, name.span) for s in self.inputs.specs]
            matrix = frozen(kind.cast(np.stack(columns, axis=1)))
            self._warn_about_rows(name, matrix)
            self.inputs.cache[key] = matrix
        return self.inputs.cache[key]  # type: ignore[return-value]

    def _warn_about_rows(self, name: ast.Name, matrix: FloatArray) -> None:
        """Warns about rows that cannot be answers: their number, and the feature that is most often the cause."""
        absent = np.isnan(matrix)
        lost = absent & ~np.array([spec.missing for spec in self.inputs.specs])
        allowed = np.stack([spec.allows(matrix[:, f]) for f, spec in enumerate(self.inputs.specs)], axis=1)
        kinds = (
            ("E401", ~allowed & ~absent, "lie outside the domain", "widen the domain, or leave such rows out"),
            ("E402", lost, "lack a value", "declare the feature `or missing`, or leave such rows out"),
        )
        for code, where, what, remedy in kinds:
            count = int(where.any(axis=1).sum())
            if count:
                worst = self.inputs.names[int(where.sum(axis=0).argmax())]
                message = f"{count} of {len(matrix)} rows of `{name.text}` {what}, most often of `{worst}`"
                self.found.diagnostics.warning(code, message, name.span, remedy)

    def cells(self, name: ast.Name) -> Int32Array:
        """The cells of a table on the unrefined grid of the models, int32[rows, features]; see `cells_of_rows`."""
        key = ("cells", name.text)
        if key not in self.inputs.cache:
            self.inputs.cache[key] = frozen(cells_of_rows(self.inputs.base, self.matrix(name)))
        return self.inputs.cache[key]  # type: ignore[return-value]

    def row(self, node: ast.Row) -> FloatArray:
        """One row of a table, float64[features]."""
        matrix = self.matrix(node.data)
        if node.index.value >= len(matrix):
            message = f"`{node.data.text}` has {len(matrix)} rows, so no row {node.index.value}"
            raise self.fail("E110", message, node.span, f"use a row from 0 to {len(matrix) - 1}")
        return np.asarray(matrix[node.index.value])

    def spec(self, feature: int) -> FeatureSpec:
        return self.inputs.specs[feature]

    def model(self, point: int) -> LoadedModel:
        return self.inputs.models[self.point_models[point]]

    def cut(self, feature: int, *cuts: float) -> None:
        """Refines the grid of a feature; cuts outside of the finite values have no effect."""
        limit = self.inputs.number_type.max
        self.cuts[feature].update(c for c in cuts if -limit < c <= limit)
