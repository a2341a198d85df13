"""Describes the names in a file: models, data, features with domains and guards, classes, categories."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace

from treesens.binder.declarations import Unbound
from treesens.binder.domains import FeatureSpec
from treesens.binder.feature_specs import feature_spec
from treesens.compiler.base.diagnostics import Diagnostics
from treesens.compiler.query.domain import ValueDomain
from treesens.data.tables import Table
from treesens.extensions.editor.reading import Reading
from treesens.frontends.base import LoadedModel
from treesens.records.model import features_record
from treesens.report.formulas import domain_text


def models(reading: Reading, name: str | None = None) -> dict[str, LoadedModel]:
    """The loaded models by name; with `name`, only the loaded model of this name."""
    loaded = {key: model for key, model in reading.found.models.items() if model is not None}
    return {name: loaded[name]} if name in loaded else loaded


def tables(reading: Reading) -> dict[str, Table]:
    """The tables that could be read."""
    return {key: table for key, table in reading.found.tables.items() if table is not None}


def features(reading: Reading, model: str | None = None) -> dict[str, str]:
    """The names of features with a short description; only declared features, if no model could be loaded."""
    found: dict[str, str] = {}
    for key, loaded in models(reading, model).items():
        for feature in loaded.ensemble.features:
            found.setdefault(feature.name, f"feature of {key}")
    for name in reading.found.features:
        found.setdefault(name, "declared feature")
    return found


def classes(reading: Reading, model: str | None = None) -> list[str]:
    """The classes of the models, as they are written in a file."""
    listed = (str(c) for loaded in models(reading, model).values() for c in loaded.ensemble.classes)
    return list(dict.fromkeys(listed))


def specs(reading: Reading, feature: str, model: str | None = None) -> Iterator[tuple[str, LoadedModel, FeatureSpec]]:
    """The domain of a feature in each model that has the feature; models for which the declaration is wrong are omitted."""
    silent = replace(reading.found, diagnostics=Diagnostics())
    for key, loaded in models(reading, model).items():
        for known in loaded.ensemble.features:
            if known.name == feature:
                try:
                    yield key, loaded, feature_spec(silent, known, loaded.ensemble.number_type)
                except Unbound:
                    continue


def categories(reading: Reading, feature: str, model: str | None = None) -> dict[str, str]:
    """The names of the categories of a feature, with their stored numbers."""
    found: dict[str, str] = {}
    for _, loaded, spec in specs(reading, feature, model):
        found |= {label: f"stored as {value:g}" for label, value in spec.labels.items()}
        known = next(f for f in loaded.ensemble.features if f.name == feature)
        found |= {str(label): "category of the model" for label in known.labels or () if str(label) not in found}
    return found


# --- cards ------------------------------------------------------------------------------------------------------------


def feature_card(reading: Reading, feature: str, model: str | None = None) -> str | None:
    """The domain, guards and categories of a feature, as Markdown."""
    parts: list[str] = []
    for key, loaded, spec in specs(reading, feature, model):
        facts = next(f for f in features_record(loaded.ensemble) if f["name"] == feature)
        limits = loaded.ensemble.number_type.dtype
        ends = facts["range_of_cuts"]
        cuts = f", thresholds {ends[0]:.6g} to {ends[1]:.6g}" if ends and ends[0] < ends[1] else ""
        cuts = f", threshold {ends[0]:.6g}" if ends and not cuts else cuts
        lines = [f"**{feature}**, feature of `{key}`", "", f"- domain: {domain_text(spec.domain, limits)}"]
        lines[2] += "" if feature in reading.found.features else _source(reading, feature)
        lines.append(f"- guards: {facts['guards']}{cuts}; splits at {facts['splits']} nodes of {facts['trees']} trees")
        if isinstance(spec.domain, ValueDomain) and spec.labels:
            shown = [f"`{label}` = {value:g}" for label, value in list(spec.labels.items())[:20]]
            more = f", … ({len(spec.labels)})" if len(spec.labels) > 20 else ""
            lines.append(f"- categories: {', '.join(shown)}{more}")
        parts.append("\n".join(lines))
    return "\n\n".join(parts) or None


def _source(reading: Reading, feature: str) -> str:
    for source in reading.found.sources:
        table = reading.found.tables.get(source.data.text)
        if table is not None and feature in table:
            return f" (from `{source.data.text}`)"
    return " (not declared)"


def model_card(reading: Reading, name: str) -> str | None:
    """A summary of a model, as Markdown."""
    loaded = reading.found.models.get(name)
    if loaded is None:
        return None
    e = loaded.ensemble
    labels = f", classes {', '.join(f'`{c}`' for c in e.classes[:12])}" if e.classes else ""
    version = f" {e.source.version}" if e.source.version else ""
    lines = [
        f"**{name}**, a model",
        "",
        f"- {e.task.value}, link {e.link.name}{labels}",
        f"- {e.n_trees:,} trees, {e.n_leaves:,} leaves, {e.n_features} features",
        f"- read by `{loaded.frontend}`, {e.source.format}{version}; inputs are {e.number_type.value}",
        *(f"- {note}" for note in loaded.notes),
    ]
    return "\n".join(lines)


def data_card(reading: Reading, name: str) -> str | None:
    """A summary of a table, as Markdown."""
    table = reading.found.tables.get(name)
    if table is None:
        return None
    columns: Mapping[str, object] = table.columns
    shown = ", ".join(f"`{c}`" for c in list(columns)[:20]) + (f", … ({len(columns)})" if len(columns) > 20 else "")
    label = f"\n- label: `{table.label}`" if table.label else ""
    return f"**{name}**, data\n\n- {table.rows:,} rows, {len(columns)} columns\n- columns: {shown}{label}"
