"""What a sum of features can be at all, against all values of small domains."""

from __future__ import annotations

import itertools
from pathlib import Path

import numpy as np
import pytest

from tests.extensions.methods.test_least_radius import NAMES, xgboost_model
from treesens.binder.file import bind
from treesens.frontends.registry import load
from treesens.grammar.parsing.parser import parse
from treesens.values.objective_ranges import objective_range

SIZE = 4
QUESTIONS = {
    "a.f0 + a.f1 - a.f2": lambda a, b: True,
    "2 * a.f0 - b.f0 | a.f0 <= b.f0": lambda a, b: a[0] <= b[0],
    "b.f0 - a.f0 | a.f0 <= b.f0": lambda a, b: a[0] <= b[0],
    "b.f0 - a.f0 + b.f1 | b.f0 - a.f0 >= 2; b.f1 >= 1": lambda a, b: b[0] - a[0] >= 2 and b[1] >= 1,
    "a.f0 + a.f1 + a.f2 | a.f0 + a.f1 <= 2": lambda a, b: a[0] + a[1] <= 2,
    "a.f0 - b.f1 | a.f0 + a.f1 + b.f1 <= 4; b.f1 - a.f0 <= 1": lambda a, b: (
        a[0] + a[1] + b[1] <= 4 and b[1] - a[0] <= 1
    ),
    "a.f0 + b.f0 | a = b except {f1}": lambda a, b: a[0] == b[0] and a[2] == b[2],
}


@pytest.mark.parametrize("text", QUESTIONS)
def test_no_values_make_less_or_more(text: str) -> None:
    aim, _, such = text.partition(" | ")
    model = load(xgboost_model(0)[0])
    declared = "".join(f"feature {name}: integer in [0, {SIZE - 1}]\n" for name in NAMES)
    asked = f"query q: find a, b in m such that {such or 'a.f0 >= 0'} minimize {aim}"
    query = bind(parse(f'model m from "m"\n{declared}{asked}'), Path(), load_model=lambda *_: model).queries[0].query
    goal = query.objective
    assert goal is not None
    low, high = (float(end * goal.unit + goal.offset) for end in objective_range(query) if end is not None)
    values = []
    for point in itertools.product(range(SIZE), repeat=6):
        a, b = point[:3], point[3:]
        if QUESTIONS[text](a, b):
            values.append(eval(aim, {}, {"a": Named(a), "b": Named(b)}))
    assert low <= np.min(values) + 1e-12
    assert high >= np.max(values) - 1e-12
    assert (low, high) == pytest.approx((np.min(values), np.max(values))), "these few relations say all"


class Named:
    """A point whose features have names."""

    def __init__(self, values: tuple[int, ...]) -> None:
        self.f0, self.f1, self.f2 = values
