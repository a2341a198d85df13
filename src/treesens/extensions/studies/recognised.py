"""Facts that an audit and `treesens init` recognise if nothing states them: the label column, protected features (by name), the
names of classes, a regressor's default gap, and the time per set. All are stated; only the gap is a part of the question.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from operator import itemgetter
from typing import Any

import numpy as np

from treesens.compiler.base.arrays import FloatArray
from treesens.compiler.model import Task
from treesens.compiler.model.evaluate import leaves, predicted_classes, probabilities
from treesens.data.tables import Table, align_table
from treesens.errors import DataError, UsageError
from treesens.extensions.studies.assumed import Assumed
from treesens.extensions.studies.audit import DEFAULT_SECONDS, PROTECTED_SHARE, AuditOptions
from treesens.extensions.studies.decisions import Asked
from treesens.extensions.studies.losses import classes_of_labels, rows_of
from treesens.extensions.studies.questions import families_of, sizes_of
from treesens.extensions.studies.study import Asking
from treesens.frontends.base import LoadedModel

_LABELS = {"label", "labels", "target", "y", "class", "outcome", "decision", "default", "response"}
_PROTECTED = {
    *("sex", "gender", "age", "race", "nationality", "religion", "marital", "disability", "disabled", "orientation"),
    *("citizenship", "ethnic", "ethnicity", "pregnant", "pregnancy", "foreigner"),
    *("female", "male", "married", "pregnancies"),
}
_WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+")
_AGREEMENT = 0.9
"""Minimum fraction of rows on which predictions and labels agree if the names of classes are taken from labels."""
_SPREAD_ROWS = 10_000
_SECONDS = 50.0
"""Seconds for all sets of an audit without a stated time limit."""
_PARTS = 2.5
"""The most time of a set as a multiple of its limit: the rows, the searches, and half a limit for the largest swing."""


def looks_protected(name: str) -> bool:
    """True if a word in the name of a feature is typical of protected features; words end at other characters and capitals."""
    words = [word.lower() for word in _WORD.findall(name)]
    return not _PROTECTED.isdisjoint(words) or ("foreign", "worker") in pairwise(words)


def suggested(model: LoadedModel) -> tuple[str, ...]:
    """The features whose names suggest that they are protected, in the order of the model."""
    return tuple(filter(looks_protected, model.ensemble.feature_names))


@dataclass(frozen=True)
class LabelColumn:
    """The recognised label column (None if there is none, or more than one candidate), and the reason in words."""

    name: str | None
    why: str = ""


def label_column(model: LoadedModel, table: Table) -> LabelColumn:
    """The label column: a column that is no input of the model, by its name or its values."""
    known = set(model.ensemble.feature_names)
    others = [name for name in table.columns if not {name, name.replace(" ", "_")} & known]
    reasons = {name: why for name in others if (why := _why_label(model, table, name))}
    if not reasons and len(others) == 1 and len(model.ensemble.classes) == 2 and len(_values(table, others[0])) == 2:
        reasons = {others[0]: "it has two values, as the model has classes"}
    if len(reasons) == 1:
        ((name, why),) = reasons.items()
        return LabelColumn(name, f"no input of the model, and {why}")
    return LabelColumn(None, f"{_listed(list(reasons))} may be the label column" if reasons else "")


def _why_label(model: LoadedModel, table: Table, name: str) -> str:
    """The reason why a column seems to hold labels; empty without a reason."""
    classes, values = model.ensemble.classes, _values(table, name)
    if classes and len(values) > 1 and (classes_of_labels(model.ensemble, values, model.meaning.classes) >= 0).all():
        return "its values name the classes"
    if not classes and len(values) and table.columns[name].dtype == object:
        return ""  # a regressor predicts numbers, not texts
    words = "".join(filter(str.isalpha, name.lower()))
    return "its name is typical of labels" if words in _LABELS else ""


def _values(table: Table, name: str) -> Any:
    """The distinct values of a column that are not missing."""
    column = table.columns[name]
    if column.dtype == object:
        return np.array(list(dict.fromkeys(v for v in column.tolist() if v is not None)), object)
    return np.unique(column[~np.isnan(column)])


def named_classes(model: LoadedModel, table: Table, label: str) -> tuple[dict[str, str], bool]:
    """The names of the classes, from the texts of the label column, and whether they are sure: predictions and labels agree on
    at least nine of ten rows. Empty unless every class is predicted and has a text of its own, and for rows that the model
    cannot read.
    """
    ensemble, column = model.ensemble, table.columns[label]
    if column.dtype != object or set(map(str, ensemble.classes)) & set(map(str, _values(table, label))):
        return {}, False
    try:
        margins, rows = _margins(model, table)
    except DataError:
        return {}, False
    classes = predicted_classes(ensemble, margins, rows)
    counts = Counter(zip(classes.tolist(), column[: len(classes)].tolist(), strict=True))
    best = {
        c: max(((n, text) for (k, text), n in counts.items() if k == c), key=itemgetter(0))
        for c in set(classes.tolist())
    }
    texts = {text for _, text in best.values()}
    if len(texts) != len(ensemble.classes) or None in texts or set(_values(table, label)) != texts:
        return {}, False
    agreeing = sum(n for n, _ in best.values())
    return {str(ensemble.classes[c]): best[c][1] for c in sorted(best)}, agreeing >= _AGREEMENT * len(classes)


def _margins(model: LoadedModel, table: Table) -> tuple[FloatArray, FloatArray]:
    """The margins float64[rows, outputs] and the inputs float64[rows, features] of the first rows."""
    aligned = align_table(model, table)
    first = {name: column[:_SPREAD_ROWS] for name, column in aligned.columns.items()}
    rows = rows_of(model, replace(aligned, columns=first, rows=min(aligned.rows, _SPREAD_ROWS), sha256=None))
    return np.asarray(model.ensemble.margins_of_leaves(leaves(model.ensemble, rows)), np.float64), rows


def complete(asked: Asking[AuditOptions]) -> Asking[AuditOptions]:
    """An audit with everything that is recognised; each recognised fact is listed in `Asking.recognised`."""
    assert asked.table is not None
    said: list[Assumed] = []
    model, table, options = asked.model, asked.table, asked.options
    if table.label is None:
        label = label_column(model, table)
        if label.name is not None:
            table = replace(table, label=label.name)
            said.append(_said("label", f"label: `{label.name}` ({label.why})", "--label", "add --label NAME to change"))
        elif label.why:
            said.append(_said("label", f"no label: {label.why}", "--label", "add --label NAME"))
    if model.meaning.stated is None and (names := suggested(model)):
        model = replace(model, meaning=replace(model.meaning, protected=names, suggested=True))
        value, remedy = f"protected (suggested by name): {', '.join(names)}", "write protected = [...] in treesens.toml"
        said.append(_said("protected", value, "--protected", f"{remedy}, or add --protected"))
    if not options.gap and not options.margin and options.decision is None and _predicts_values(model):
        kind, size = _spread_gap(model, table)
        options = replace(options, gap=(size,)) if kind == "gap" else replace(options, margin=(size,))
        value = f"a {kind} of {size}, a tenth of the range of the model's predictions for the rows"
        said.append(_said("gap", value, f"--{kind}", f"add --{kind} to change"))
    if "time_limit" not in asked.chosen and options.time_limit == DEFAULT_SECONDS:
        limit = _seconds_per_set(model, options)
        if limit < DEFAULT_SECONDS:
            options = replace(options, time_limit=limit)
            value = f"{limit:g} seconds per set (protected: {min(DEFAULT_SECONDS, PROTECTED_SHARE * limit):g})"
            said.append(_said("time limit", value, "--time-limit", "add -t to change"))
    return replace(asked, models=(model,), table=table, options=options, recognised=tuple(said))


def _said(what: str, value: str, option: str, remedy: str) -> Assumed:
    return Assumed(what=what, value=value, option=option, remedy=remedy)


def _predicts_values(model: LoadedModel) -> bool:
    ensemble = model.ensemble
    return ensemble.n_outputs == 1 and (ensemble.task in (Task.REGRESSION, Task.RANKING) or not ensemble.classes)


def _spread_gap(model: LoadedModel, table: Table) -> tuple[str, str]:
    """The default gap of a regressor: its unit, and a tenth of the range of the predictions, with two digits. Raises UsageError
    for equal predictions.
    """
    kind = "gap" if model.ensemble.link.is_linear else "margin"
    margins, _ = _margins(model, table)
    values = np.asarray(probabilities(model.ensemble, margins), np.float64) if kind == "gap" else margins
    size = f"{np.ptp(values[np.isfinite(values)]) / 10 if np.isfinite(values).any() else 0:.2g}"
    if not 0 < float(size) < np.inf:
        raise UsageError("the predictions for all rows are equal, and give no default gap", remedy=f"pass --{kind}")
    return kind, size


def _seconds_per_set(model: LoadedModel, options: AuditOptions) -> float:
    """The seconds for each set that is not protected, so that all sets fit into `_SECONDS`; with two digits, at least 0.1."""
    varied: Sequence[Sequence[str]] = options.vary or [[name] for name in model.ensemble.used_features]
    with_gaps = options.decision is None
    gaps = sizes_of(model, options.gap, options.margin, options.threshold, options.classes) if with_gaps else []
    asked = Asked(gaps[0].kind, options.threshold, tuple(options.classes)) if gaps else None
    weight = len(families_of(model, gaps, asked, options.decision)) * sum(
        PROTECTED_SHARE if model.meaning.is_protected(names) else 1 for names in varied
    )
    more = sum(1.0 for one in (options.measure, options.typical) if one is not None)
    seconds = _SECONDS * options.jobs / ((_PARTS + more) * max(weight, 1))
    return min(DEFAULT_SECONDS, max(0.1, float(f"{seconds:.2g}")))


def _listed(names: Sequence[str]) -> str:
    return ", ".join(f"`{name}`" for name in names)
