"""What is true of a claim about a share, by brute force over values with the leaves of XGBoost (`truth.py`)."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction
from typing import Any

from tests.certificates.truth import Truth

Document = dict[str, Any]


def share_of(truth: Truth, claim: Document) -> tuple[Fraction, Fraction]:
    """The measure of what certainly is concerned, however inputs are spread within the sets of it, and of what may be."""
    statement = claim["whole"]["statement"]
    certain = possible = Fraction(0)
    known: dict[tuple[float, ...], bool] = {}
    listed = {f for p, f, _ in statement["domain"] if p == 0}
    present = [[0, f, {"runs": [[None, None]]}] for f in range(truth.features) if f not in listed]
    features = [f for f, _ in claim["measure"]]
    values = [truth.values_of(statement, f, [s for s, _ in entries]) for f, entries in claim["measure"]]
    # A missing value is looked at wherever a set of the measure has it.
    values = [[*dict.fromkeys(x for x in mine if not math.isnan(x)), math.nan] for mine in values]
    for chosen in itertools.product(*(entries for _, entries in claim["measure"])):
        weight = math.prod(Fraction(w) for _, w in chosen)
        if not weight:
            continue
        inside = [
            [x for x, holds in zip(mine, truth.inside(s, mine), strict=True) if holds]
            for mine, (s, _) in zip(values, chosen, strict=True)
        ]
        answers = []
        for point in itertools.product(*inside):
            key = tuple(-9e99 if math.isnan(x) else x for x in point)
            if key not in known:
                pins = [[0, f, pin(x)] for f, x in zip(features, point, strict=True)]
                asked = {**statement, "domain": [*statement["domain"], *present, *pins]}
                known[key] = truth.has_solution(asked)
            answers.append(known[key])
        certain += weight * all(answers)
        possible += weight * any(answers)
    return certain, possible


def pin(x: float) -> Document:
    return {"runs": [], "missing": True} if math.isnan(x) else {"runs": [[x, x]]}
