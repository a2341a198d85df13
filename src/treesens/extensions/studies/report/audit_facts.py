"""The facts of an audit that a reader needs to assess and to reproduce the audit, as one record."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np

import treesens
from treesens.binder.file import ResolvedQuestion
from treesens.compiler.base.arrays import Int64Array
from treesens.compiler.base.budget import Budget, OutOfTime, check_in, working_within
from treesens.compiler.query.domain import RealDomain
from treesens.compiler.query.query import OneHot, Query
from treesens.compiler.result import answered
from treesens.data.columns import Column
from treesens.data.tables import Table
from treesens.extensions.studies.largest import NOT_USED, Largest, swing_of_record
from treesens.frontends.base import LoadedModel
from treesens.frontends.meaning import toml_of
from treesens.records.answers import label_of
from treesens.records.plain import SCHEMA_VERSION

_PROXIES = 5.0
"""Time limit in seconds for the search for proxies of one protected feature, which starts after all answers."""


@dataclass
class Audit:
    """A finished audit: records per (varied set, gap), in the order of the request, with the facts about them."""

    model: LoadedModel
    table: Table
    records: list[dict[str, Any]] = field(default_factory=list)
    interrupted: bool = False
    seconds: float = 0.0
    warnings: tuple[str, ...] = ()
    query: Query | None = None
    """The first query; all queries share its domain."""
    questions: dict[tuple[object, ...], ResolvedQuestion] = field(default_factory=dict)
    """The questions by the keys of their records, if a single score determines the decision."""
    declared: set[str] = field(default_factory=set)
    """Features with a declared domain."""
    proxies: list[Proxy] = field(default_factory=list)
    """The proxies for protected features; `lost` states why some are missing."""
    lost: list[str] = field(default_factory=list)
    of_proxies: list[dict[str, Any]] = field(default_factory=list)
    """Records about proxies that were not requested."""
    mending: list[dict[str, Any]] | None = None
    """The estimated cost of repairing the model; None unless requested."""
    mending_gap: float = 0.0
    mending_test: str | None = None
    """The table of the prices, or None for every second row of the audited table."""


def audit_facts(
    found: Audit, settings: Mapping[str, Any], model: str | None, data: str | None, command: str, **more: Any
) -> dict[str, Any]:
    """The facts of a finished audit of files or live objects; `more` is added unchanged."""
    ensemble = found.model.ensemble
    rows = {record["rows"] for record in found.records}
    considered = max(rows, default=found.table.rows)
    return {
        "schema_version": SCHEMA_VERSION,
        "treesens": treesens.__version__,
        "model": {
            "file": model,
            "format": ensemble.source.format,
            "library_version": ensemble.source.version,
            "sha256": ensemble.source.sha256,
            "trees": ensemble.n_trees,
            "leaves": ensemble.n_leaves,
            "features": ensemble.n_features,
            "task": ensemble.task.value,
            "classes": list(ensemble.classes),
            "cutoff": None if ensemble.cutoff is None else float(ensemble.cutoff),
            "options": dict(ensemble.source.options),
            "notes": list(found.model.notes),
        },
        "data": {
            "file": data,
            "sha256": found.table.sha256,
            "rows": found.table.rows,
            "considered": considered,
            "excluded": found.table.rows - considered,
            "label": found.table.label,
        },
        "domain": [] if found.query is None else domain_records(found.query, found.declared),
        "rules": [] if found.query is None else rule_records(found.query),
        "command": command,
        "warnings": list(found.warnings),
        "interrupted": found.interrupted,
        "seconds": round(found.seconds, 3),
        "settings": dict(settings),
        **({"meaning": _meaning(found)} if found.model.meaning else {}),
        **(
            {}
            if found.mending is None
            else {"mending": {"gap": found.mending_gap, "test": found.mending_test, "sets": found.mending}}
        ),
        **more,
    }


def _meaning(found: Audit) -> dict[str, Any]:
    """The stated meaning of the model, with the features that act as proxies for protected features."""
    meaning, used = found.model.meaning, set(found.model.ensemble.used_features)

    def swing(name: str) -> Largest:
        records = (*found.records, *found.of_proxies)
        return Largest.over(swing_of_record(r) for r in records if r["varied"] == [name]) if name in used else NOT_USED

    carried = [
        {"of": one.of, "feature": one.feature, "told": round(one.told, 4), **swing(one.feature).record()}
        for one in found.proxies
    ]
    return {
        **({"notes": found.lost} if found.lost else {}),
        "protected": list(meaning.protected),
        "suggested": meaning.suggested,
        "proxies": carried,
        "classes": dict(meaning.classes),
        "favourable": meaning.favourable,
        "file": meaning.place or None,
        "sha256": meaning.sha256,
        "toml": toml_of(meaning.stated, meaning.classes, meaning.favourable),
    }


_LISTED = 24
"""Maximum number of values of a feature that are listed one by one."""


def domain_records(query: Query, declared: set[str]) -> list[dict[str, Any]]:
    """A record for each feature: its kind, its range or values, a flag for missing values, and the source of its domain.

    `declared` names the features with a declared domain; the domains of other features come from the data.
    """
    result = []
    for name, domain, grid in zip(query.space.names, query.space.domains, query.space.grid, strict=True):
        kind = grid.number_type.dtype
        record: dict[str, Any] = {
            "feature": name,
            "missing": domain.missing,
            "source": "declared" if name in declared else "data",
        }
        if isinstance(domain, RealDomain):
            low, high = (label_of(domain, value, kind) for value in (domain.low, domain.high))
            record |= {"kind": "integer" if domain.whole else "real", "low": low, "high": high}
        else:
            values = list(dict.fromkeys(domain.labels))
            text = any(isinstance(value, str) for value in values)
            record |= {"kind": "category" if text else "values", "count": len(values)}
            if len(values) <= _LISTED or text:
                record["listed"] = values
            else:
                record |= {"low": values[0], "high": values[-1]}
        result.append(record)
    return result


def rule_records(query: Query) -> list[list[str]]:
    """The features of every `onehot` rule."""
    rules = [c for c in query.constraints if isinstance(c, OneHot) and c.point == 0]
    return [[query.space.names[member.feature] for member in rule.members] for rule in rules]


BINS = 10
"""Number of bins, with roughly equal numbers of rows, for a numeric column with more than twice as many distinct values."""

LEAST = 0.02
"""Minimum fraction of the entropy that a proxy has to explain."""

MOST = 5

_NOT_ALL = 0.9999
"""The greatest fraction, as it is recorded, of a column that leaves something open."""


@dataclass(frozen=True)
class Proxy:
    """A column `feature` that explains the fraction `told` (0 to 1) of the entropy of the column `of`; 1 only if `feature` (its
    bins, if it has many values) determines `of` in every row.
    """

    of: str
    feature: str
    told: float


def proxies(table: Table, of: str) -> list[Proxy]:
    """The proxies for a column, the strongest first: at most MOST proxies that each explain at least LEAST."""
    target, values = _codes(table.columns[of]), _codes(table.columns[of], binned=False)
    found = []
    for name in table.inputs:
        if name != of and not _is_identifier(table.columns[name]):
            check_in()
            column = _codes(table.columns[name])
            told = uncertainty_coefficient(target, column)
            if told >= LEAST:
                told = 1.0 if _determines(column, values) else min(told, _NOT_ALL)
            found.append(Proxy(of, name, told))
    return sorted((one for one in found if one.told >= LEAST), key=lambda one: -one.told)[:MOST]


def add_proxies(found: Audit) -> None:
    """Adds the proxies for all protected features that the table has, each sought for a limited time."""

    def carriers(name: str) -> list[Proxy]:
        try:
            with working_within(Budget.of(_PROXIES)):
                return proxies(found.table, name)
        except OutOfTime:
            return without(f"the proxies of {name} were not found in {_PROXIES:g} s")

    def without(reason: str) -> list[Proxy]:
        found.lost.append(reason)
        return []

    for name in found.model.meaning.protected:
        if name in found.table:
            found.proxies += answered(f"the proxies of {name}", partial(carriers, name), without)


def uncertainty_coefficient(target: Int64Array, column: Int64Array) -> float:
    """The fraction, in [0, 1], of the entropy of `target` that `column` explains; both hold codes from 0, int64[rows]."""
    rows, width = len(target), int(column.max(initial=0)) + 1
    # Only pairs that occur are counted, because two columns with many texts have billions of possible pairs.
    of_target, of_column, of_both = (
        np.unique(codes, return_counts=True)[1] for codes in (target, column, target * width + column)
    )
    h_target = _entropy(of_target)
    chance = (len(of_target) - 1) * (len(of_column) - 1) / (2 * rows)
    told = h_target + _entropy(of_column) - _entropy(of_both) - chance
    return float(np.clip(told / h_target, 0.0, 1.0)) if h_target > 0 else 0.0


def _determines(column: Int64Array, values: Int64Array) -> bool:
    """True if rows with equal codes in `column` have equal codes in `values`; both int64[rows]."""
    pairs = column * (int(values.max(initial=0)) + 1) + values
    return len(np.unique(pairs)) == len(np.unique(column))


def _is_identifier(column: Column) -> bool:
    """True for texts that occur in fewer than five rows on average, too few to distinguish from chance (Cochran 1954)."""
    return column.dtype == object and 5 * len(set(column.tolist())) > len(column)


def _entropy(counts: Int64Array) -> float:
    part = counts / counts.sum()
    return float(-(part * np.log(part)).sum())


def _codes(column: Column, *, binned: bool = True) -> Int64Array:
    """A column as codes from 0: many distinct numbers are cut into bins if `binned`, and missing ones have a separate code."""
    if column.dtype == object:
        names = {value: code for code, value in enumerate(dict.fromkeys(column.tolist()))}
        return np.array([names[value] for value in column.tolist()], np.int64)
    absent = np.isnan(column)
    values = np.unique(column[~absent])
    if binned and len(values) > 2 * BINS:
        # Every end of a bin is a number of the column, because interpolating between infinities gives no number.
        ends = np.linspace(0, 1, BINS + 1)[:-1]
        values = np.unique(np.quantile(column[~absent], ends, method="inverted_cdf"))
    codes = np.searchsorted(values, column, side="right").astype(np.int64)
    codes[absent] = len(values) + 1
    return codes
