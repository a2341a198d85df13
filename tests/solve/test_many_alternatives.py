"""Relations with more alternatives than are tried one by one: those that the cells decide are no alternatives."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.extensions.certify.made import query_of
from tests.extensions.certify.models import train
from treesens.compiler.result import Result, Verdict
from treesens.solve.options import Options
from treesens.solve.question import answer

DECLARED = "".join(f"feature f{f}: integer in [0, 6]\n" for f in range(3))


def asked(folder: Path, constraints: str, backend: str = "native") -> Result:
    train(3, folder / "m.json")
    text = f'model m from "m.json"\n{DECLARED}query q: find a, b in m such that {constraints}'
    return answer(query_of(text, folder), Options(backend=backend))


@pytest.mark.parametrize("backend", ["native", "auto"])
def test_a_distance_between_two_bounds_and_a_difference_is_found(backend: str, tmp_path: Path) -> None:
    """Six ways to be far, six to be farther and two to differ make 72: 4 of 6 in one feature alone is the answer.

    Such a question ended as `unknown`, if the way that holds was behind the first 64.
    """
    constraints = (
        "distance(a, b, linf) > 0.25; a.f1 != b.f1 + 0.5; distance(a, b, linf) > 0.6; distance(a, b, l1) < 0.7"
    )
    result = asked(tmp_path, constraints, backend)
    assert result.verdict is Verdict.FOUND
    assert result.witness is not None
    one, other = result.witness.values
    assert sorted(abs(one - other).tolist()) == [0, 0, 4]


def test_no_distance_is_below_zero(tmp_path: Path) -> None:
    result = asked(tmp_path, "distance(a, b, l1) < 0")
    assert result.verdict is Verdict.NONE
    assert result.backend == "compiler"
