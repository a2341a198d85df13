"""The loop of the reducer on sets of numbers, against all subsets."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import combinations

import numpy as np
import pytest

from treesens.extensions.reduce.ddmin import Files, Level, Reducer, Subject


@dataclass(frozen=True, eq=False)
class Numbers(Subject):
    """A set of numbers, in a file with one line for each; a set with the number 13 has no text."""

    numbers: frozenset[int]

    def files(self) -> Files | None:
        return (
            None if 13 in self.numbers and len(self.numbers) < 20 else {self.name: repr(sorted(self.numbers)).encode()}
        )

    def sizes(self) -> dict[str, int]:
        return {"numbers": len(self.numbers)}

    def levels(self) -> Sequence[Level]:
        def without(subject: Numbers, gone: Sequence[int]) -> Numbers:
            return replace(subject, numbers=subject.numbers - set(gone))

        return [
            Level("even", lambda subject: sorted(n for n in subject.numbers if n % 2 == 0), without),
            Level("all", lambda subject: sorted(subject.numbers), without),
        ]


def reduced(count: int, holds: Callable[[set[int]], bool], **how: object) -> Reducer:
    settings = {"seconds": 60.0, "stop": threading.Event(), "progress": lambda _: None, **how}
    reducer = Reducer(lambda files: holds(set(eval(files["n"]))), **settings)  # type: ignore[arg-type]
    reducer.reduce(Numbers("n", {}, (), frozenset(range(count))))
    return reducer


@pytest.mark.parametrize("seed", range(20))
def test_what_a_monotone_predicate_needs_is_all_that_stays(seed: int) -> None:
    rng = np.random.default_rng(seed)
    needed = set(rng.choice(13, int(rng.integers(0, 5)), replace=False).tolist())
    reducer = reduced(300, lambda numbers: needed <= numbers)
    assert reducer.best.numbers == needed
    assert reducer.tests <= 40 + 60 * len(needed)


@pytest.mark.parametrize("seed", range(30))
def test_no_single_number_can_be_removed_from_the_result(seed: int) -> None:
    """Any predicate: each subset of ten numbers is interesting or not by chance."""
    rng = np.random.default_rng(seed)
    subsets = [frozenset(c) for k in range(10) for c in combinations(range(10), k)]
    interesting = {subset for subset in subsets if rng.random() < 0.3} | {frozenset(range(10))}
    tried: list[frozenset[int]] = []

    def holds(numbers: set[int]) -> bool:
        tried.append(frozenset(numbers))
        return frozenset(numbers) in interesting

    best = reduced(10, holds).best.numbers
    assert best in interesting
    assert not any(best - {number} in interesting for number in best)
    assert len(tried) == len(set(tried))


def test_a_subject_that_is_not_interesting_has_no_result() -> None:
    assert reduced(5, lambda numbers: False).best is None


def test_the_best_so_far_stays_when_the_time_is_over() -> None:
    stop, seen = threading.Event(), []

    def holds(numbers: set[int]) -> bool:
        seen.append(numbers)
        if len(seen) == 4:
            stop.set()
        return 7 in numbers

    best = reduced(300, holds, stop=stop).best.numbers
    assert len(seen) == 4
    assert best == min((s for s in seen if 7 in s), key=len)
    assert reduced(300, lambda numbers: True, seconds=0.0).best.numbers == set(range(300))


def test_candidates_without_a_text_are_not_tried() -> None:
    def holds(numbers: set[int]) -> bool:
        assert 13 not in numbers or len(numbers) >= 20
        return len(numbers) >= 5

    assert len(reduced(40, holds).best.numbers) >= 5
