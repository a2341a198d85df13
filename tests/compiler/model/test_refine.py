"""An ensemble on a grid that refines another one: by the numbers of its cuts, as if it were laid on the finer grid itself."""

from __future__ import annotations

from dataclasses import fields

import numpy as np
import pytest

from tests.questions import random_query
from treesens.compiler.model.discretise import lay_on, refine
from treesens.compiler.model.grid import Grid
from treesens.errors import ModelError


@pytest.mark.parametrize("seed", range(40))
def test_a_refined_ensemble_is_the_one_laid_on_the_finer_grid(seed: int) -> None:
    rng = np.random.default_rng(seed)
    for model in random_query(rng).models:
        cuts = [
            () if g.categories else tuple(g.number_type.cast(rng.normal(scale=4, size=rng.integers(3))))
            for g in model.grid
        ]
        grid = model.grid.refined(cuts)
        expected, found = lay_on(model.ensemble, grid), refine(model, grid)
        for field in fields(expected):
            one, other = getattr(expected, field.name), getattr(found, field.name)
            assert one is other or (isinstance(one, Grid) and one == other) or np.array_equal(one, other), field.name


def test_a_grid_without_the_cuts_of_a_model_is_an_error() -> None:
    query = next(
        q
        for seed in range(100)
        if not (q := random_query(np.random.default_rng(seed))).models[0].grid[0].categories
        and len(q.models[0].grid[0].cuts)
        and not (q.models[0].category_set >= 0).any()
    )
    model = query.models[0]
    from dataclasses import replace

    less = replace(model.grid[0], cuts=model.grid[0].cuts[1:])
    with pytest.raises(ModelError, match="lacks a cut"):
        refine(model, Grid((less, *model.grid.features[1:])))
