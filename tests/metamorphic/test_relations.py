"""A few cases of every relation; `make relations CASES=..` draws more."""

from __future__ import annotations

import pytest

from tests.metamorphic.relations import RELATIONS, Relation, run, violation

SEEDS = (2, 4)
"""Between them every relation has a question that it fits."""


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_relations_between_answers_hold() -> None:
    counts, broken = run(SEEDS)
    assert not broken, broken[0]
    held = {name for (name, kind), n in counts.items() if kind == "held" and n}
    assert held == {r.name for r in RELATIONS}


def test_broken_relations_are_seen() -> None:
    def record(verdict: str, value: float | None = None, bound: float | None = None) -> dict[str, object]:
        return {"verdict": verdict, "objective": None if value is None else {"value": value, "bound": bound}}

    best = {"objective": ["maximize", []]}
    same, easier, harder = (Relation("", kind, lambda *_: None) for kind in ("same", "easier", "harder"))  # type: ignore[arg-type, return-value]
    assert violation(same, {}, [record("found")], [record("none")])
    assert violation(same, {}, [record("none")], [record("none"), record("found")])
    assert violation(same, best, [record("found", 1.0, 1.0)], [record("found", 0.5, 0.5)])
    assert violation(same, best, [record("found", 1.0, 1.0)], [record("found", 0.5, 2.0)]) is None
    assert violation(easier, {}, [record("found")], [record("none")])
    assert violation(harder, {}, [record("none")], [record("found")])
    assert violation(Relation("", "none", same.change), {}, [], [record("found")])
    assert violation(same, {}, [record("unknown")], [record("found")]) == "open"
