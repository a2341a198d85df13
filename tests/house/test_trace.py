"""A question goes through the room of solving once, and is asked of the methods that fit it, in the order of the list."""

from __future__ import annotations

import sys
from collections import Counter
from pathlib import Path
from types import FrameType
from typing import Any

import numpy as np
import pytest

import treesens as ts
from tests.corpus import boosted
from tests.house.trace import entries
from treesens.solve.method import Method

LIST = {"fits", "method", "methods.registry", "dispatch"}
"""The list of methods and what it reads off a question: data that the loop looks at, no way through."""

SMALL = "brief search, small domain"
DISJUNCTION = "brief search, disjunction"
FAR = "margin(a) >= 0.5"

ASKED = {
    "sensitive": ("sensitive m to {f0} gap 0.3", ["trees"]),
    "or": (f"find a in m such that {FAR} or margin(a) <= -0.5", [DISJUNCTION, "trees"]),
    "nearest row": (f"find a in m such that {FAR} minimize distance(a, nearest row of d, l2)", ["nearest pair"]),
    "linf": (f"find a in m such that {FAR} minimize distance(a, row 0 of d, linf)", ["least radius"]),
    "l1": (f"find a in m such that {FAR} minimize distance(a, row 0 of d, l1)", ["cheapest cells"]),
    "l1 with a relation": (
        f"find a in m such that {FAR}; a.f0 <= a.f1 minimize distance(a, row 0 of d, l1)",
        ["refinement", "compiled"],
    ),
    "margin": ("find a in m such that a.f0 <= 0.5 maximize margin(a)", ["compiled"]),
    "count": ("count rows of d as a, b in m such that a = b except f0; prob(a) >= 0.5; prob(b) < 0.5", []),
    "explain": ("explain row 0 of d in m", ["reason"]),
}
"""Of every kind of question its text, and the methods that are asked on a large domain. These rows are counted by a sweep."""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("trace")
    names = [f"f{i}" for i in range(8)]
    x = np.random.default_rng(5).uniform(0, 1, (400, len(names)))
    boosted(x, x.sum(axis=1) > len(names) / 2, 10, 4, names=names, path=folder / "m.json")
    np.savetxt(folder / "d.csv", x[:50], delimiter=",", header=",".join(names), comments="")
    domains = "".join(f"feature {name}: real in [0, 1]\n" for name in names)
    (folder / "head.sens").write_text(f'model m from "m.json"\ndata d from "d.csv"\n{domains}')
    return folder


def question(folder: Path, text: str) -> Path:
    path = folder / "q.sens"
    path.write_text((folder / "head.sens").read_text() + f"query q: {text}\n")
    return path


def methods_asked(path: Path, **options: Any) -> tuple[list[str], Any]:
    """The names of the methods that one question is asked of, in their order, and its answer."""
    found: list[str] = []

    def on_event(frame: FrameType, event: str, _: Any) -> None:
        if event == "call" and frame.f_code is Method.part.__code__:
            found.append(frame.f_locals["self"].name)

    previous = sys.getprofile()
    sys.setprofile(on_event)
    try:
        answer = ts.check(path, **options)
    finally:
        sys.setprofile(previous)
    return found, answer["q"]


@pytest.mark.extensions
@pytest.mark.parametrize("kind", ASKED)
def test_the_methods_that_are_asked(folder: Path, kind: str) -> None:
    text, expected = ASKED[kind]
    asked, answer = methods_asked(question(folder, text), backend="native")
    assert asked == expected
    assert answer.verdict == "found"


@pytest.mark.parametrize("backend", ["auto", "native", "highs"])
def test_no_module_of_solve_is_entered_more_than_twice(folder: Path, backend: str) -> None:
    file = question(folder, ASKED["sensitive"][0])
    ts.check(file, backend=backend)  # imports
    found = entries("solve", lambda: ts.check(file, backend=backend))
    called: Counter[str] = Counter()
    for (module, function), count in found.items():
        if "__create_fn__" not in function and "__post_init__" not in function:  # records that are made, no way through
            called[module] += count
    assert called["question"] == 2, "one for the answer, one for why there is none"
    assert max(count for module, count in called.items() if module not in LIST) <= 2, found
