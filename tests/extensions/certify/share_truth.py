"""What is true of a claim about a share, by brute force over values with the leaves of XGBoost (`truth.py`)."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from fractions import Fraction
from typing import Any

from tests.extensions.certify.truth import Truth

Document = dict[str, Any]


Known = dict[tuple[tuple[int, Any], ...], bool]
"""Of kinds of values of some features: whether inputs with them satisfy a statement."""


def share_of(truth: Truth, claim: Document, known: Known | None = None) -> tuple[Fraction, Fraction]:
    """The measure of what certainly is concerned, however inputs are spread within the sets of it, and of what may be.

    `known` is what was found out for other claims about the same statement; what is found out now is added to it.
    """
    statement = claim["whole"]["statement"]
    certain = possible = Fraction(0)
    known = {} if known is None else known
    listed = {f for p, f, _ in statement["domain"] if p == 0}
    present = [[0, f, {"runs": [[None, None]]}] for f in range(truth.features) if f not in listed]
    entries = {one[0]: [entry[0] for entry in one[1]] for one in claim["measure"] if one[0] is not None}
    values = {f: truth.values_of(statement, f, sets) for f, sets in entries.items()}
    # A missing value is looked at wherever a set of the measure has it.
    values = {f: [*dict.fromkeys(x for x in mine if not math.isnan(x)), math.nan] for f, mine in values.items()}
    kinds = {f: dict(zip(mine, truth.kinds(statement, f, mine), strict=True)) for f, mine in values.items()}
    for weight, chosen in choices(claim["measure"]):
        inside = [
            [x for x, holds in zip(values[f], truth.inside(s, values[f]), strict=True) if holds]
            for f, s in chosen.items()
        ]
        answers = []
        for point in itertools.product(*inside):
            key = tuple(sorted((f, kinds[f][x]) for f, x in zip(chosen, point, strict=True)))
            if key not in known:
                pins = [[0, f, pin(x)] for f, x in zip(chosen, point, strict=True)]
                asked = {**statement, "domain": [*statement["domain"], *present, *pins]}
                known[key] = truth.has_solution(asked)
            answers.append(known[key])
        certain += weight * all(answers)
        possible += weight * any(answers)
    return certain, possible


def pin(x: float) -> Document:
    return {"runs": [], "missing": True} if math.isnan(x) else {"runs": [[x, x]]}


def choices(measure: list[Any], groups: tuple[int, ...] = ()) -> Iterator[tuple[Fraction, dict[int, Document]]]:
    """What can be drawn: a set for every feature, with its weight above 0. `groups` are those of the draws so far."""
    if len(groups) == len(measure):
        yield Fraction(1), {}
        return
    feature, entries, *drawn = measure[len(groups)]
    after, chances = drawn or (None, [["1"]])
    for group, chance in enumerate(chances[0 if after is None else groups[after]]):
        mine = [(s, w) for s, w, *rest in entries if (rest or [0]) == [group]] if feature is not None else [(None, "1")]
        for weight, chosen in choices(measure, (*groups, group)) if Fraction(chance) else ():
            for allowed, part in mine:
                if Fraction(part):
                    one = {} if allowed is None else {feature: allowed}
                    yield Fraction(chance) * Fraction(part) * weight, {**one, **chosen}
