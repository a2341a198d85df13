"""Real rows first: the sweep against asking the model about every changed row."""

from __future__ import annotations

from fractions import Fraction
from itertools import product

import numpy as np
import pytest

from tests.data.settings import ask, needs_bench, table
from treesens.compiler.query.bounds import LogRational
from treesens.data.flips import FlipQuestion, Flips, flip_question, flips
from treesens.solve.tasks.data_rows import legal_rows, sweep_rows

pytestmark = needs_bench


def swept(model: str, data: str, features: list[str], rows: int | None = None) -> Flips:
    varied = ", ".join(f"`{f}`" for f in features)
    query = ask(f"query q: sensitive m to {{{varied}}} margin 0.5", model, data)["q"]
    space = query.query.space
    matrix = query.rows["d"][:rows]
    return flips(query.query.models[0], space.grid.cells(matrix), [space.names.index(f) for f in features], space.legal)


def test_rows_of_adult_that_flip_for_sex() -> None:
    found = swept("adult_t300_d5", "adult", ["sex"])
    assert len(found) == 22792
    assert found.complete
    for margin, rows in ((Fraction(1, 2), 37), (Fraction(1), 1)):
        bound = LogRational(margin)
        assert FlipQuestion(0, 1, found.features, 0, 0, bound, -bound, None, True).flipping(found).sum() == rows


@pytest.mark.parametrize("features", [["f8"], ["f2", "f6"], ["f5", "f1", "f7"]])
def test_extremes_are_those_of_all_changed_rows(features: list[str]) -> None:
    query = ask(f"query q: sensitive m to {{{', '.join(features)}}} margin 0.5", "diabetes_unrobust", "diabetes")["q"]
    space, model = query.query.space, query.query.models[0]
    chosen = [space.names.index(f) for f in features]
    cells = space.grid.cells(query.rows["d"])[:40]
    found = flips(model, cells, chosen, space.legal, limit=1 << 20)
    assert found.complete
    combinations = list(product(*(np.flatnonzero(space.legal[f]) for f in chosen)))
    for row in range(0, 40, 7):
        changed = np.repeat(cells[row : row + 1], len(combinations), axis=0)
        changed[:, chosen] = combinations
        exact = model.ensemble.sums_exact(model.leaves(changed)).fractions()[:, 0]
        unit = Fraction(1, 1 << found.shift)
        assert int(found.highest[row]) * unit == exact.max()
        assert int(found.lowest[row]) * unit == exact.min()
        for extreme, reached in ((exact.max(), found.highest_cells[row]), (exact.min(), found.lowest_cells[row])):
            assert exact[combinations.index(tuple(reached))] == extreme


def test_rows_keep_their_own_scores_whatever_was_swept_before() -> None:
    query = ask("query q: sensitive m to f2 margin 0.5", "diabetes_unrobust", "diabetes")["q"]
    space, model = query.query.space, query.query.models[0]
    cells = space.grid.cells(query.rows["d"])[:60]
    expected = model.ensemble.sums_exact(model.leaves(cells)).fractions()[:, 0]
    for part in (slice(0, 60), slice(0, 20), slice(20, 60), slice(0, 60)):
        found = flips(model, cells[part], [2], space.legal)
        unit = Fraction(1, 1 << found.shift)
        assert [int(v) * unit for v in found.own] == expected[part].tolist()


def test_legal_rows_are_those_of_the_table_that_is_asked_about() -> None:
    query = ask("query q: sensitive m to f2 margin 0.5", "diabetes_unrobust", "diabetes")["q"]
    rows = query.rows["d"]
    outside = np.array(rows)
    outside[3, 2], outside[5, 1] = 1e9, -1e9
    every = np.arange(len(rows)).tolist()
    assert legal_rows(query.query, rows).tolist() == every
    assert legal_rows(query.query, outside).tolist() == [row for row in every if row not in (3, 5)]
    assert legal_rows(query.query, rows).tolist() == every
    outside[3, 2] = rows[3, 2]
    assert legal_rows(query.query, outside).tolist() == [row for row in every if row != 5]


def test_a_limit_thins_the_combinations_and_says_so() -> None:
    query = ask("query q: sensitive m to {f2, f6} margin 0.5", "diabetes_unrobust", "diabetes")["q"]
    space = query.query.space
    chosen = [space.names.index(f) for f in ("f2", "f6")]
    cells = space.grid.cells(query.rows["d"])
    every = flips(query.query.models[0], cells, chosen, space.legal)
    few = flips(query.query.models[0], cells, chosen, space.legal, limit=3)
    assert every.complete
    assert not few.complete
    assert (few.highest <= every.highest).all()
    assert (few.lowest >= every.lowest).all()


@pytest.mark.parametrize("walks", [1, 10_000_000])
def test_before_a_search_a_sweep_makes_only_so_many_walks(walks: int) -> None:
    bound = ask("query q: sensitive m to {age, workclass, education} margin 0.5", "adult_t300_d5", "adult")["q"]
    question = flip_question(bound.query)
    assert question is not None
    few = sweep_rows(bound.query, question, bound.rows["d"], walks=walks)
    assert len(few) == 2000
    assert not few.complete
    every = flips(
        bound.query.models[0],
        bound.query.space.grid.cells(bound.rows["d"][few.index[::100]]),
        question.features,
        bound.query.space.legal,
    )
    assert (few.highest[::100] <= every.highest).all()
    assert (few.lowest[::100] >= every.lowest).all()


def test_the_form_of_a_question() -> None:
    bound = ask(
        """
        query plain: sensitive m to f8 margin 0.5
        query wide: find p, q such that
            p = q except f8
            margin(p) <= -1
            margin(q) >= 2
            p.f1 = 0
        query one: find p such that margin(p) >= 0
        query swing: find p, q such that
            p = q except f8
            margin(q) - margin(p) >= 1
        """,
        "diabetes_unrobust",
        "diabetes",
    )
    plain, wide = flip_question(bound["plain"].query), flip_question(bound["wide"].query)
    swing = flip_question(bound["swing"].query)
    assert plain is not None
    assert plain.only
    assert (plain.upper, plain.lower) == (0, 1)
    assert wide is not None
    assert not wide.only
    assert (wide.upper, wide.lower) == (1, 0)
    assert (wide.high, wide.low) == (LogRational(Fraction(2)), LogRational(Fraction(-1)))
    assert flip_question(bound["one"].query) is None
    assert swing is not None
    assert swing.swing == LogRational(Fraction(1))
    assert swing.upper == 1
    assert table("diabetes").rows == len(bound["plain"].rows["d"])
