"""The declarations of a file: loads models and tables, checks feature declarations and turns them into domains."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from treesens.binder.domains import FeatureSpec, number_codes
from treesens.builtin import service
from treesens.compiler.base.arrays import FloatArray, frozen
from treesens.compiler.base.diagnostics import Code, Diagnostic, Diagnostics, Span, did_you_mean
from treesens.compiler.base.floats import NumberType
from treesens.compiler.model import Feature
from treesens.compiler.query.domain import RealDomain
from treesens.data.tables import (
    Categories,
    Table,
    TextError,
    as_codes,
    as_named,
    blanks_replaced,
    check_range,
    check_types,
)
from treesens.errors import DataError, TreesensError, UsageError
from treesens.frontends.base import LoadedModel
from treesens.grammar.tree import ast
from treesens.grammar.tree.node import nodes_in
from treesens.visible import declaration

T = TypeVar("T")
LoadModel = Callable[[Path, str | None], LoadedModel]
LoadTable = Callable[[Path, str | None, int | None], Table]


class Unbound(Exception):
    """Raised for an invalid part of the file, after a message in the diagnostics."""


@dataclass
class Declarations:
    """The names that the queries of a file may refer to.

    A model or table that could not be loaded is stored as None: its error has been reported. Paths are relative to `base`.
    """

    diagnostics: Diagnostics
    base: Path = Path()
    models: dict[str, LoadedModel | None] = field(default_factory=dict)
    tables: dict[str, Table | None] = field(default_factory=dict)
    features: dict[str, ast.Feature] = field(default_factory=dict)
    onehots: list[ast.OneHot] = field(default_factory=list)
    sources: list[ast.DomainFrom] = field(default_factory=list)
    measures: dict[str, ast.Measure] = field(default_factory=dict)
    decisions: dict[str, ast.Decision] = field(default_factory=dict)
    texts: dict[tuple[str, str, Span], tuple[Diagnostic, dict[str, str]]] = field(default_factory=dict)
    """For each table, kind of mistake and location: the message about columns with text, and the text in each column."""

    def fail(
        self, code: str | Code, message: str, span: Span, remedy: str = "", related: tuple[Span, ...] = ()
    ) -> Unbound:
        """Records an error once, and returns the exception for the caller to raise."""
        known = any((d.code, d.message, d.span) == (str(code), message, span) for d in self.diagnostics)
        if not known:
            self.diagnostics.error(code, message, span, remedy, related)
        return Unbound()

    def service(self, name: str, span: Span) -> Any:
        """The service that the text at `span` requires. Raises Unbound, after a diagnostic, if only the core is installed."""
        try:
            return service(name)
        except UsageError as error:
            raise self.fail("E219", error.message, span, error.remedy or "") from None

    def model(self, name: ast.Name) -> LoadedModel:
        if name.text not in self.models:
            raise self.fail(
                "E101", f"no model is called `{name.text}`", name.span, did_you_mean(name.text, self.models)
            )
        return _loaded(self.models[name.text])

    def table(self, name: ast.Name) -> Table:
        if name.text not in self.tables:
            raise self.fail("E102", f"no data is called `{name.text}`", name.span, did_you_mean(name.text, self.tables))
        return _loaded(self.tables[name.text])

    def measure(self, name: ast.Name) -> ast.Measure:
        if name.text not in self.measures:
            remedy = did_you_mean(name.text, self.measures) or "declare it: `measure NAME: uniform`"
            raise self.fail("E117", f"no measure is called `{name.text}`", name.span, remedy)
        return self.measures[name.text]

    def decision(self, name: ast.Name | None, span: Span) -> ast.Decision:
        """The declared decision with this name; without a name, the only decision."""
        if name is not None and name.text in self.decisions:
            return self.decisions[name.text]
        if name is not None or not self.decisions:
            shown, where = (name.text, name.span) if name is not None else ("", span)
            remedy = (
                did_you_mean(shown, self.decisions) or "declare it: `decision NAME of P: OUTCOME when .. else OUTCOME`"
            )
            said = f"no decision is called `{shown}`" if name is not None else "the file declares no decision"
            raise self.fail("E118", said, where, remedy)
        if len(self.decisions) > 1:
            known = ", ".join(f"`{known}`" for known in self.decisions)
            raise self.fail("E120", f"the file has the decisions {known}", span, "name one: `decision(P, DECISION)`")
        return next(iter(self.decisions.values()))

    def column(
        self, table: Table, feature: str, categories: Categories | None, number_type: NumberType, span: Span
    ) -> FloatArray:
        """A column of a table as stored numbers, all finite in the model's number type. Values that are not categories are
        reported at `span`.
        """
        try:
            values = table.numbers(feature, categories)
            check_range(table, feature, values, number_type)
            return values
        except TextError as error:
            raise self._text(error, span) from None
        except DataError as error:
            raise self.fail(error.code, f"{error.place}: {error.message}", span, error.remedy) from None

    def _text(self, error: TextError, span: Span) -> Unbound:
        """The error for text in a column. Errors of one kind in one table share a message: a model that reads codes rejects
        most columns of a table with text.
        """
        items, key = self.diagnostics.items, (error.table, error.what, span)
        told, columns = self.texts.get(key, (None, {}))
        columns[error.column] = error.text
        place = next((i for i, item in enumerate(items) if item is told), None)
        if place is None:
            notes = [note for model in self.models.values() if model for note in model.notes]
            why = [note for note in notes if f"`{error.column}`" in note]
            mistake = self.fail(error.code, f"{error.place}: {error.message}", span, "; ".join([*why, error.remedy]))
            self.texts[key] = items[-1], {error.column: error.text}
            return mistake
        if len(columns) > 1:
            listed = ", ".join(f"`{column}` (`{text[:40]}`)" for column, text in list(columns.items())[:_SHOWN])
            listed += ", …" if len(columns) > _SHOWN else ""
            message = f"{error.table}: {len(columns)} columns contain text, {error.what}: {listed}"
            items[place] = replace(items[place], message=message)
            self.texts[key] = items[place], columns
        return Unbound()


_SHOWN = 13
"""Maximum number of columns named in one message."""


def _loaded(thing: T | None) -> T:
    if thing is None:
        raise Unbound
    return thing


def read_declarations(
    file: ast.File, base: Path, load_model: LoadModel, load_table: LoadTable, diagnostics: Diagnostics
) -> Declarations:
    """Loads models and tables, and runs all checks that do not depend on a query."""
    found = Declarations(diagnostics, base)
    queries: dict[str, ast.Name] = {}
    for node in file.declarations:
        match node:
            case ast.Model(name, path, form):
                if _is_new(found, found.models, name, "E107", "model"):
                    chosen = form.text if form else None
                    loaded = _attempt(found, path, lambda p, f=chosen: load_model(p, f), base)  # type: ignore[misc]
                    found.models[name.text] = loaded
                    for note in loaded.notes if loaded else ():
                        diagnostics.note("E404", f"model `{name.text}`: {note}", path.span)
            case ast.Data(name, path, label, rows):
                if _is_new(found, found.tables, name, "E107", "data"):
                    column, count = label.text if label else None, rows.value if rows else None
                    found.tables[name.text] = _attempt(
                        found,
                        path,
                        lambda p, c=column, n=count: load_table(p, c, n),  # type: ignore[misc]
                        base,
                        label,
                    )
            case ast.Feature(name):
                if _is_new(found, found.features, name, "E307", "feature"):
                    found.features[name.text] = node
            case ast.OneHot():
                found.onehots.append(node)
            case ast.DomainFrom():
                found.sources.append(node)
            case ast.Measure(name):
                if _is_new(found, found.measures, name, "E107", "measure"):
                    found.measures[name.text] = node
            case ast.Decision(name):
                if _is_new(found, found.decisions, name, "E107", "decision"):
                    found.decisions[name.text] = node
            case ast.Query(name):
                if _is_new(found, queries, name, "E107", "query"):
                    queries[name.text] = name
    _check_names(found)
    _check_numbers(found, file)
    _name_columns(found)
    _leave_out_unused(found, file)
    _note_codes(found)
    if queries and not found.models:
        first = next(iter(queries.values()))
        found.fail("E112", "the file declares no model", first.span, 'add `model NAME from "FILE"`')
    return found


def _is_new(found: Declarations, known: Iterable[str], name: ast.Name, code: str, kind: str) -> bool:
    if name.text in known:
        found.fail(code, f"the {kind} `{name.text}` is declared twice", name.span, "rename or remove one of the two")
        return False
    return True


def _attempt(
    found: Declarations, path: ast.Text, load: Callable[[Path], T], base: Path, label: ast.Name | None = None
) -> T | None:
    """The loaded contents of a file, or None after its error is reported."""
    try:
        return load(base / path.value)
    except TreesensError as error:
        if label is not None and f"no column `{label.text}`" in error.message:
            found.fail("E108", error.message, label.span, error.remedy)
        else:
            where = f"{error.place}: " if error.place and error.place != str(base / path.value) else ""
            found.fail(error.code, f"{where}{error.message}", path.span, error.remedy)
        return None


def _check_names(found: Declarations) -> None:
    """Checks that the features and tables named in declarations exist. If a model failed to load, no feature is reported."""
    named = [source.data for source in found.sources] + [m.data for m in found.measures.values() if m.data is not None]
    for data in named:
        if data.text not in found.tables:
            remedy = did_you_mean(data.text, found.tables)
            found.fail("E102", f"no data is called `{data.text}`", data.span, remedy)
    if None in found.models.values() or not found.models:
        return
    known = {f.name: None for model in found.models.values() if model for f in model.ensemble.features}
    declared = [feature.name for feature in found.features.values()]
    for name in [*declared, *(name for onehot in found.onehots for name in onehot.features)]:
        if name.text not in known:
            unknown_feature(found, name, known)


def _check_numbers(found: Declarations, file: ast.File) -> None:
    """Checks that a name that was read as a number is not also the name of a class, a category or a feature."""
    models = [model.ensemble for model in found.models.values() if model is not None]
    features = {feature.name for model in models for feature in model.features} | set(found.features)
    declared = [node.type.items for node in found.features.values() if isinstance(node.type, ast.Category)]
    values = {str(known) for model in models for known in model.classes}
    values |= {str(label) for model in models for feature in model.features for label in feature.labels or ()}
    values |= {item.name.text for items in declared for item in items if item.name is not None}
    for names, taken, kind in ((file.numbers, values, "class or category"), (file.choices, features, "feature")):
        for name in names:
            if name.text in taken:
                quoted = f'write `"{name.text}"` for the {kind}, or ' if kind != "feature" else ""
                message = f"`{name.text}` is the name of a number and of a {kind}"
                found.fail("E123", message, name.span, f"{quoted}rename the number")


def _name_columns(found: Declarations) -> None:
    """Renames columns to match the feature names in the model file, which a library may have changed, and codes ordered
    categories.
    """
    changed = {name for model in found.models.values() if model is not None for name in blanks_replaced(model)}
    features = [feature for model in found.models.values() if model is not None for feature in model.ensemble.features]
    for name, table in found.tables.items():
        if table is None:
            continue
        named, renamed = as_named(table, changed)
        found.tables[name] = as_codes(named, features)
        for model in filter(None, found.models.values()):
            check_types(model, named)
        if renamed:
            shown = [f"`{old}` is `{new}`" for old, new in list(renamed.items())[:8]]
            message = f"LightGBM writes `_` for a blank in a name: in `{name}` " + ", ".join(shown)
            found.diagnostics.note("E406", message + (", …" if len(renamed) > 8 else ""))


def asked_about(found: Declarations) -> set[str]:
    """The features on which a tree of some model splits."""
    return {name for model in found.models.values() if model is not None for name in model.ensemble.used_features}


def _leave_out_unused(found: Declarations, file: ast.File) -> None:
    """Sets text, and values that the model cannot represent, to 0 in columns that no tree splits on and no question names: no
    answer depends on these columns.
    """
    models = [model.ensemble for model in found.models.values() if model is not None]
    used = asked_about(found) | set(found.features)
    used |= {node.feature.text for node in nodes_in(file) if isinstance(node, ast.FeatureOf)}
    unused = {f.name: ensemble.number_type for ensemble in models for f in ensemble.features if not f.categories}
    for name, table in found.tables.items():
        if table is None:
            continue
        columns = [c for c in table.inputs if c in unused.keys() - used]
        text = [c for c in columns if table.columns[c].dtype == object]
        endless = [c for c in columns if c not in text and _is_endless(table.columns[c], unused[c])]
        zeros = frozen(np.zeros(table.rows))
        for what, left_out in (("texts are", text), ("values that the model cannot represent are", endless)):
            if left_out:
                listed = ", ".join(f"`{c}`" for c in left_out[:8]) + (", …" if len(left_out) > 8 else "")
                message = f"no tree splits on {listed}: {what} read as 0 in `{name}`"
                found.diagnostics.note("E405", message)
        if text or endless:
            left = dict.fromkeys((*text, *endless), zeros)
            found.tables[name] = replace(table, columns={**table.columns, **left})


def _is_endless(column: FloatArray, number_type: NumberType) -> bool:
    """True if a value in the column is infinite in `number_type`."""
    with np.errstate(over="ignore"):
        return bool(np.isinf(number_type.cast(column)).any())


def _note_codes(found: Declarations) -> None:
    """Reports columns that contain numbers for features with category names: the numbers are read as the model's codes."""
    named = {
        feature.name: feature.labels
        for model in found.models.values()
        if model is not None
        for feature in model.ensemble.features
        if feature.labels and feature.name not in found.features and not number_codes(feature.labels)
    }
    for name, table in found.tables.items():
        coded = [f for f in named if table and f in table and table.columns[f].dtype != object] if named else []
        if coded:
            listed = ", ".join(f"`{f}`" for f in coded[:8]) + (", …" if len(coded) > 8 else "")
            first = ", ".join(f"{code} is {label}" for code, label in enumerate((named[coded[0]] or ())[:3]))
            message = f"`{name}` contains numbers in {listed}, where the model uses category names: they are read as its codes"
            remedy = f"check that in `{coded[0]}` {first}; or write the names"
            found.diagnostics.warning("E408", message, remedy=remedy)


def unknown_feature(found: Declarations, name: ast.Name, known: Iterable[str]) -> Unbound:
    """Reports a feature that the model does not have."""
    return found.fail("E103", f"the model has no feature `{name.text}`", name.span, did_you_mean(name.text, known))


def note_whole_numbers(found: Declarations, features: Sequence[Feature], specs: Sequence[FeatureSpec]) -> None:
    """Adds a note on features that are restricted to whole numbers without a declaration, and on how to allow fractions."""
    whole = [
        spec.name
        for feature, spec in zip(features, specs, strict=True)
        if feature.name not in found.features and isinstance(spec.domain, RealDomain) and spec.domain.whole
    ]
    if whole:
        listed = ", ".join(f"`{name}`" for name in whole[:8]) + (", …" if len(whole) > 8 else "")
        message = f"answers have whole numbers in {listed}, because the data, or the model file, has only these"
        if not any(d.code == "E403" for d in found.diagnostics):
            found.diagnostics.note(
                "E403", message, remedy=f"declare {declaration(whole[0], 'real')} if fractions can occur"
            )


def note_unbounded(found: Declarations, specs: Sequence[FeatureSpec]) -> None:
    """Reports features that may take any value although a table has their columns, and says how to restrict them."""
    tables = {name: table for name, table in found.tables.items() if table is not None}
    used = asked_about(found)
    open_ended = [
        spec.name
        for spec in specs
        if spec.width is None and spec.name in used and any(spec.name in table for table in tables.values())
    ]
    silent = found.sources or found.diagnostics.errors or any(d.code == "E409" for d in found.diagnostics)
    if open_ended and not silent:
        listed = ", ".join(f"`{name}`" for name in open_ended[:8]) + (", …" if len(open_ended) > 8 else "")
        remedy = f"write `domain from {next(iter(tables))}`, or {declaration(open_ended[0], '..')} for each"
        found.diagnostics.note("E409", f"{listed} can be any number, also one that no row has", remedy=remedy)


def check_columns(found: Declarations, features: Sequence[Feature]) -> None:
    """Checks that `domain from DATA` defines a domain for every feature without its own domain."""
    sources = [(s.data, table) for s in found.sources if (table := found.tables.get(s.data.text)) is not None]
    named = {name.text for onehot in found.onehots for name in onehot.features} | set(found.features)
    used = asked_about(found)
    # No answer depends on a feature that no tree splits on; such a feature may be any number.
    absent = [
        f.name
        for f in features
        if f.name in used and not (f.categories or f.name in named or any(f.name in table for _, table in sources))
    ]
    if sources and absent:
        data, table = sources[0]
        remedy = f"declare the domain ({declaration(absent[0], 'real in [lo, hi]')}), or rename the column"
        raise lacks_columns(found, data, table, absent, remedy)


def lacks_columns(
    found: Declarations, data: ast.Name, table: Table, absent: Sequence[str], remedy: str = ""
) -> Unbound:
    """Reports a table without columns for some features, and suggests a column with a similar name."""
    listed = ", ".join(f"`{f}`" for f in absent[:8]) + (", …" if len(absent) > 8 else "")
    message = f"`{data.text}` has no column for {'the feature' if len(absent) == 1 else 'the features'} {listed}"
    guesses = [did_you_mean(f, table.inputs) for f in absent]
    guess = next((g for g in guesses if g.startswith("did you mean")), guesses[0])
    return found.fail("E116", message, data.span, "; ".join(part for part in (remedy, guess) if part))
