"""The difference between two inputs of an answer as one sentence, for the terminal, notebooks, reports and CI."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from treesens.binder.file import ResolvedQuestion
from treesens.frontends.base import LoadedModel
from treesens.values.verify import Witness
from treesens.visible import visible

_CLEAR = 1e-6
"""Minimum distance of a probability from 1/2 for a clear class; closer to 1/2, the library's rounding or tie rule decides."""
_MOST = 6
"""Maximum number of changed features named in a sentence."""


@dataclass(frozen=True)
class Names:
    """The labels of a model's classes, the user's names for them, and the label of the favourable class. `at_half` is True if,
    for two classes, the second class is predicted above a probability of 1/2.
    """

    labels: tuple[str, ...] = ()
    classes: Mapping[str, str] = field(default_factory=dict)
    favourable: str | None = None
    at_half: bool = True

    @classmethod
    def of(cls, model: LoadedModel) -> Names:
        """The classes of a model."""
        meaning, e = model.meaning, model.ensemble
        at_half = e.cutoff is None and e.decides_at is None and e.probability_cut is None
        return cls(tuple(map(str, e.classes)), meaning.classes, meaning.favourable, at_half)

    @classmethod
    def of_facts(cls, facts: Mapping[str, Any]) -> Names:
        """The classes of an audited model, from the facts of the audit."""
        meaning, model = facts.get("meaning") or {}, facts["model"]
        labels = tuple(map(str, model.get("classes", ())))
        return cls(labels, meaning.get("classes", {}), meaning.get("favourable"), model.get("cutoff") is None)

    def name_of(self, label: object) -> str:
        """The name of a class, or its label if the class has no name."""
        return self.classes.get(str(label), str(label))


def change_words(record: Mapping[str, Any], row: int | None = None, names: Names | None = None) -> str:
    """`sex M → F: prob 0.653 → 0.324, row 161`, from a record with `points` and `scores`; empty without two points.

    `row` is the table row that equals one of the points. If the classes have names, the result is `P(granted) 0.653 (granted) →
    0.324 (refused)`, with the probability of the favourable class.
    """
    points = record.get("points")
    if not points or len(points) != 2:
        return ""
    first, second = points.values()
    changed = changed_features(points)
    if not changed:
        named = "no feature changes"
    else:
        named = ", ".join(
            f"{visible(f)} {value_words(first[f])} → {value_words(second[f])}" for f in changed[:_MOST]
        ) + (f" and {len(changed) - _MOST} more" if len(changed) > _MOST else "")
    scores = record["scores"]
    told = ", ".join(filter(None, (decision_words(scores), _named(scores, names) or score_words(scores))))
    return f"{named}: {told}{'' if row is None else f', row {row}'}"


def in_names(words: str, names: Names) -> str:
    """The question in numbers, with the names of classes next to their labels."""
    for label, name in names.classes.items():
        words = words.replace(f"P({label})", f"P({name})").replace(f"class {label} ", f"class {label} ({name}) ")
    return words


def decision_words(scores: Mapping[str, Mapping[str, Any]]) -> str:
    """`refer → decline`: the outcomes of a question's only decision for two points; empty for other questions."""
    outcomes = [score.get("decision") for score in scores.values()]
    return "" if None in outcomes else " → ".join(visible(str(outcome)) for outcome in outcomes)


def changed_features(points: Mapping[str, Mapping[str, Any]]) -> list[str]:
    """The features in which points differ, in order."""
    first, *others = points.values()
    return [f for f in first if any(other[f] != first[f] for other in others)]


def equal_words(points: Mapping[str, Mapping[str, Any]]) -> str:
    """The features in which two points agree, with their values; may be empty."""
    first, changed = next(iter(points.values())), set(changed_features(points))
    return ", ".join(f"{visible(f)} {value_words(v)}" for f, v in first.items() if f not in changed)


def _named(scores: Mapping[str, Mapping[str, Any]], names: Names | None) -> str:
    """The predicted classes of two points by name; empty if classes have no names, or a point's class is unknown."""
    if names is None or not names.classes:
        return ""
    meaning, labels = names, names.labels
    told = []
    for score in scores.values():
        prob, label = score.get("prob"), score.get("class")
        if isinstance(prob, float) and len(labels) == 2:
            if label is None and names.at_half and abs(prob - 0.5) > _CLEAR:
                label = labels[prob > 0.5]
            prob = {labels[0]: 1.0 - prob, labels[1]: prob}
        if label is None:
            return ""
        shown = prob.get(meaning.favourable or str(label)) if isinstance(prob, Mapping) else None
        told.append((meaning.name_of(label), number(shown) if isinstance(shown, float) else ""))
    if meaning.favourable and all(shown for _, shown in told):
        both = " → ".join(f"{shown} ({name})" for name, shown in told)
        return visible(f"P({meaning.name_of(meaning.favourable)}) {both}")
    return visible(" → ".join(" ".join(filter(None, one)) for one in told))


def score_words(scores: Mapping[str, Mapping[str, Any]]) -> str:
    """The predictions for two points: `prob 0.653 → 0.324`; for several classes, the predicted classes with probabilities."""
    first, second = scores.values()
    if "class" in first and isinstance(first.get("prob"), Mapping):
        named = [str(one.get("class")) for one in (first, second)]
        probs = [one["prob"] for one in (first, second) if isinstance(one.get("prob"), Mapping)]
        told = [
            f"{visible(name)} ({number(prob[name])})" if name in prob else visible(name)
            for name, prob in zip(named, probs, strict=False)
        ]
        return "class " + " → ".join(told)
    kind = next((k for k in ("prob", "value", "margin") if k in first and k in second), None)
    if kind is None or isinstance(first[kind], Mapping):
        kind = "class" if "class" in first and "class" in second else None
    if kind is None:
        return "another score"
    word = "raw score" if kind == "margin" else kind
    return f"{word} {number(first[kind])} → {number(second[kind])}"


NO_NUMBER = "no finite number"
"""The words for a probability or a value that the library computes as infinity or NaN."""


def number(value: Any) -> str:
    """A score for display."""
    if value is None:
        return NO_NUMBER
    return f"{value:.3g}" if isinstance(value, float) else visible(str(value))


def value_words(value: Any) -> str:
    """A feature's value for display: `missing`, a name, or a number with its significant digits. A number close to a short
    number is described as just below or above the short number, because trees split between the two.
    """
    if value is None:
        return "missing"
    if not isinstance(value, float):
        return visible(str(value))
    short = float(f"{value:.6g}")
    if short == value or abs(value) > 1e30:
        return f"{value:g}" if short == value else repr(value)
    if abs(value - short) <= 2 * float(np.spacing(np.float32(abs(short)))):
        return f"just {'below' if value < short else 'above'} {short:g}"
    return f"{value:.6g}"


def row_of(bound: ResolvedQuestion, witness: Witness) -> int | None:
    """The first table row that equals one of the two inputs, or None."""
    for rows in bound.rows.values():
        for values in witness.values:
            if rows.shape[1] == len(values):
                same = ((rows == values) | (np.isnan(rows) & np.isnan(values))).all(axis=1)
                if same.any():
                    return int(np.argmax(same))
    return None
