"""Small domains of one-hot groups are gone through by what the groups leave, not by all combinations of their cells."""

from __future__ import annotations

import itertools
from pathlib import Path

import numpy as np
import pytest

import treesens as ts
from tests.corpus import boosted, margins_of
from treesens.extensions.methods.slots import Member, count_choices, list_choices


@pytest.mark.parametrize("seed", range(30))
def test_choices_are_those_with_one_member_that_is_one(seed: int) -> None:
    rng = np.random.default_rng(seed)
    features = [np.arange(rng.integers(1, 5), dtype=np.int32) for _ in range(int(rng.integers(1, 5)))]
    ones = [rng.random(len(options)) < 0.4 for options in features]
    block = {f: Member(options, ones[f]) for f, options in enumerate(features)}
    expected = {row for row in itertools.product(*features) if sum(ones[f][x] for f, x in enumerate(row)) == 1}
    listed = list_choices(block)
    assert count_choices(block) == len(listed) == len(expected)
    assert {tuple(row) for row in listed} == expected


def test_a_feature_alone_has_all_its_options() -> None:
    block = {"f": Member(np.array([1, 3, 4], np.int32))}
    assert count_choices(block) == 3
    assert list_choices(block).tolist() == [[1], [3], [4]]


@pytest.fixture(scope="module")
def groups(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, np.ndarray, np.ndarray]:
    """A model over three one-hot groups of six (216 inputs among 2^18 combinations), these inputs, and their scores."""
    folder = tmp_path_factory.mktemp("one_hot")
    rng = np.random.default_rng(5)
    names = [f"{group}{i}" for group in "abc" for i in range(6)]
    inputs = np.array(
        [np.concatenate([np.eye(6)[i] for i in choice]) for choice in itertools.product(range(6), repeat=3)], np.float32
    )
    x = inputs[rng.integers(0, len(inputs), 600)]
    y = (x @ rng.normal(size=18) + rng.normal(size=600) > 0).astype(int)
    booster = boosted(x, y, 20, 4, names=names, path=folder / "m.json", eta=0.5)
    head = ['model m from "m.json"', *(f"feature {n}: integer in [0, 1]" for n in names)]
    head += [f"onehot {{{', '.join(n for n in names if n[0] == g)}}}" for g in "abc"]
    (folder / "head.sens").write_text("\n".join(head) + "\n")
    scores = margins_of(booster, inputs)
    return folder, inputs, scores.astype(float)


def test_the_farthest_pair_of_two_classes_is_closed(groups: tuple[Path, np.ndarray, np.ndarray]) -> None:
    """Values, distances and classes of all 216 x 216 pairs, by the library."""
    folder, inputs, scores = groups
    apart = np.abs(inputs[:, None] - inputs[None]).sum(axis=2)
    flips = (scores[:, None] > 0.5) & (scores[None] < -0.5)
    text = (folder / "head.sens").read_text() + (
        "query far: find a, b in m such that margin(a) > 0.5; margin(b) < -0.5; distance(a, b, l2) > 0.5\n"
        "  maximize margin(a) - margin(b)\n"
        "query never: find a, b in m such that distance(a, b, l0) > 6; margin(a) > 0.5; a.a0 = 1 or a.b0 = 1\n"
    )
    (folder / "q.sens").write_text(text)
    answers = ts.check(folder / "q.sens", time_limit=20)
    assert apart.max() == 6
    assert answers["never"].verdict == "none"
    best = np.where(flips & (apart > 0.25), scores[:, None] - scores[None], -np.inf).max()
    objective = answers["far"].result.objective
    assert objective is not None
    assert objective.value == pytest.approx(best, abs=1e-5)
    assert objective.bound == pytest.approx(best, abs=1e-5)
