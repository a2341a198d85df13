"""Every construct means over cells what it means on concrete inputs, floats beside thresholds and constants included."""

from __future__ import annotations

import numpy as np
import pytest

from tests.binder.meaning import holds as means
from tests.binder.setting import NAMES, bound, values, world
from tests.grammar.constructs import CONSTRUCTS
from tests.trials import trials
from treesens.compiler.query.evaluate import holds, inputs_of
from treesens.grammar.tree import ast

INPUT_CONSTRAINTS = """
a.x >= 0.1
a.x > 0.1
a.x < 0.1
a.x <= 0.1
0.1 < a.x
not a.x >= 0.1
a.x = 0.5
a.x != 0.5
a.x in [0.1, 1]
a.x in (0.5, 1.25]
a.x in [0.5, 1.25)
a.x in (-inf, 0.1]
a.x not in [0.1, 1]
a.x in {0.5, 1, -0.5}
a.x not in {0.5, 1}
2 * a.x + 1 >= 1.2
-3 * a.x > -1
a.x / 2 <= 0.05
a.age >= 20
a.age > 20
a.age < 20.5
a.age = 19
a.age != 19
a.age in {17, 27, 20}
a.age in [18, 20.2]
a.height >= 163
a.height <= 155.5
a.sex = Male
a.sex != Male
a.sex = 1
a.sex in {Female}
a.town = Bonn
a.town != Bonn
a.town in {Bonn, Ulm}
not a.town in {Köln}
a.gap >= 0.1
not a.gap >= 0.1
a.gap != 1
a.gap >= 0.5 implies a.sex = Male
not (a.gap >= 0.5 and a.x < 1 and a.town = Ulm)
a.gap < 0.5 or not (a.x > 0 implies a.y > 1)
a.x >= a.y
a.x <= b.x
a.x > b.x
a.x = b.x
a.x != b.x
not a.x = b.x
not a.x < b.x
a.x >= b.x + 0.5
a.x - b.x < 0.75
a.x <= 2 * b.x
a.x + b.x <= 0.5
a.x + a.y >= 1
2 * a.y - 3 * a.x > 0.5
abs(a.x - b.x) <= 0.25
abs(a.x - b.x) < 0.25
abs(a.x - b.x) >= 0.25
abs(a.x - b.x) = 0.5
abs(a.x - b.x) != 0.5
not abs(a.x - b.x) <= 0.25
abs(a.x) <= 0.5
abs(a.x - 1) > 0.5
a.age = b.age
a.age != b.age
a.age >= b.age + 3
a.age > b.age + 3
a.age <= b.age + 2.5
a.age < b.age - 1
a.age = b.age + 2
a.age != b.age + 2
abs(a.age - b.age) <= 3
abs(a.age - b.age) >= 3
a.age + b.age = 40
a.age <= 2 * b.age - 20
a.height >= b.height + 10
a.sex = b.sex
a.sex != b.sex
a.town = b.town
a.town != b.town
a.gap = b.gap
a.gap != b.gap
not a.gap = b.gap
a.gap <= b.gap
not a.gap <= b.gap
abs(a.gap - b.gap) <= 0.5
not abs(a.gap - b.gap) <= 0.5
a = b
not a = b
a = b except x
not a = b except {x, y, gap}
changes(a, b) <= 3
changes(a, b) >= 4
changes(a, b) = 5
changes(a, b) != 5
distance(a, b, l0) <= 3
distance(a, b, linf) <= 0.25
distance(a, b, linf) < 1
distance(a, b, linf) > 0.25
not distance(a, b, linf) < 0.5
distance(a, row 2 of rows, l0) <= 4
distance(a, row 2 of rows, l0) >= 5
distance(a, row 1 of rows, l0) <= 4
distance(a, row 2 of rows, linf) <= 0.4
distance(a, row 2 of rows, linf) < 1
distance(a, row 1 of rows, linf) > 0.9
a.x + a.y + b.x >= 1
a.x + a.y <= b.y + 0.5
a.x + 2 * a.y - 3 * b.x in [0, 2]
not a.x + a.y + a.gap >= 1
a.gap + a.x < b.y + 1
a.age + b.age + 10 * a.x >= 40
a.age + b.age = 2 * a.age + 3
abs(a.x + a.y - b.y) <= 0.5
abs(a.x + a.y - b.y) > 0.5
distance(a, b, linf) = 1
distance(a, b, linf) != 1
distance(a, b, l1) <= 2
distance(a, b, l1) > 2.5
distance(a, b, l2) <= 1.25
distance(a, row 2 of rows, l2) > 1
not distance(a, b, l1) <= 2
distance(a, row 2 of rows, l1) <= 2
distance(a, row 2 of rows, l1) >= 2.25
distance(a, row 1 of rows, l1) < 2.5
distance(a, row 2 of rows, l1) <= distance(a, row 1 of rows, l1)
distance(a, b, l1) - 2 * distance(a, row 2 of rows, l1) >= 0.5
a = row 2 of rows
a = row 2 of rows except {x, y, age, height, town}
not a = row 1 of rows except {x, y, age, height, town}
""".strip().splitlines()

SCORE_CONSTRAINTS = {
    "binary": """
prob(a) >= 0.6
prob(a) > 0.6
prob(a) <= 0.4
prob(a, 0) >= 0.6
prob(a, 1) < 0.3
not prob(a) >= 0.5
1 - prob(a) >= 0.6
2 * prob(a) <= 1
prob(a) in [0.4, 0.7)
prob(a) not in [0.4, 0.7]
prob(a) >= prob(b)
prob(a) = prob(b)
margin(a) >= 0.5
margin(a) = margin(b)
margin(a) != margin(b)
abs(margin(a)) <= 0.5
abs(margin(a) - margin(b)) >= 1
margin(a) - margin(b) >= 1.5
margin(a) >= 2 * margin(b) + 0.1
class(a) = 1
class(a) = 0
class(a) != 1
not class(a) = 0
class(a) = 1 by factor 2
class(a) = 0 by factor 2 by margin 1
not class(a) = 1 by margin 0.5
class(a) != class(b)
class(a) = class(b)
class(a) in {0, 1}
a.x > 0 implies prob(a) < 0.5
""",
    "multi": """
margin(a, low) - margin(a, high) >= 0.5
margin(a, low) >= 0.25
prob(a, low) >= 2 * prob(a, mid)
prob(a, low) < prob(a, high)
3 * prob(a, mid) >= prob(a, low)
class(a) = mid
class(a) = 2
class(a) != mid
class(a) = high by factor 1.5
not class(a) = high by factor 1.5 by margin 0.7
class(a) != class(b)
class(a) = class(b)
class(a) in {low, mid}
class(a) not in {low, mid}
""",
    "forest": """
prob(a, low) >= 0.85
prob(a, low) - prob(a, high) > 0.1
prob(a, mid) + prob(a, low) <= 1.6
margin(a, low) >= 0.8
class(a) = mid
class(a) = mid by factor 1.05
class(a) = mid by margin 0.05
class(a) != class(b)
""",
    "regressor": """
value(a) >= 0.5
value(a) - value(b) > 1
abs(value(a) - value(b)) <= 0.7
value(a) in [0, 1]
margin(a) < 0.25
""",
    "poisson": """
value(a) >= 1.2
value(a) <= 2 * value(b)
value(a) in [0.5, 2]
""",
}
CASES = [("binary", text) for text in INPUT_CONSTRAINTS]
CASES += [("binary", text) for construct in CONSTRUCTS.values() for text in construct.INPUT_CONSTRAINTS]
CASES += [(model, text) for model, texts in SCORE_CONSTRAINTS.items() for text in texts.strip().splitlines()]


@pytest.mark.parametrize(("model", "text"), CASES)
def test_a_constraint_means_what_it_says(model: str, text: str) -> None:
    question = bound(f"query q: find a, b such that\n {text}", models=(model,)).queries[0]
    assert isinstance(question.find, ast.Find)
    (formula,) = question.find.constraints
    varied = frozenset(question.query.varied)
    grid = question.query.space.grid
    listed = world({}, {}).rows["rows"]
    rng = np.random.default_rng(7)
    seen = set()
    for trial in range(100):
        if trial >= len(trials(100)) and len(seen) == 2:
            break
        a = values(rng)
        b = values(rng) if trial % 3 else {f: v if rng.random() < 0.6 else values(rng)[f] for f, v in a.items()}
        if trial % 5 == 0:
            keep = 1.0 if trial % 25 == 0 else 0.8
            a = {f: v if rng.random() < keep else a[f] for f, v in listed[2 - trial % 2].items()}
        expected = means(world({"a": model, "b": model}, {"a": a, "b": b}, varied, grid), formula)
        x = inputs_of(question.query, np.array([[p[f] for f in NAMES] for p in (a, b)]))
        assert all(holds(c, x) for c in question.query.constraints) == expected, (a, b)
        seen.add(expected)
    always = text in ("class(a) in {0, 1}", "class(a) in {low, mid, high}")
    assert len(seen) == 2 or always, "the constraint never changes its truth: a weak test"
