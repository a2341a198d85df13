"""docs/recipes.md runs, and prints what it shows; what it says is compared with the library and with the table itself."""

from __future__ import annotations

import contextlib
import io
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import xgboost as xgb

import treesens as ts
from treesens.errors import UsageError

PAGE = (Path(__file__).parents[2] / "docs" / "recipes.md").read_text("utf-8")


@pytest.fixture(scope="module")
def page() -> tuple[dict[str, Any], list[tuple[str, str]]]:
    """What the code of the page leaves, and what it printed beside what stands there."""
    blocks = re.findall(r"^```(python|text)\n(.*?)^```$", PAGE, re.DOTALL | re.MULTILINE)
    space: dict[str, Any] = {}
    prints: list[tuple[str, str]] = []
    for (kind, code), (following, text) in zip(blocks, [*blocks[1:], ("", "")], strict=True):
        if kind == "python":
            out = io.StringIO()
            with contextlib.redirect_stdout(out):
                exec(code, space)
            assert following == "text"
            prints.append((out.getvalue().rstrip(), text.rstrip()))
    return space, prints


@pytest.mark.filterwarnings("ignore")
def test_the_code_prints_what_the_page_shows(page: tuple[dict[str, Any], list[tuple[str, str]]]) -> None:
    for printed, shown in page[1]:
        assert printed == shown
    assert len(page[1]) == 3


@pytest.mark.filterwarnings("ignore")
def test_a_pair_of_the_hull_projects_between_the_rows(page: tuple[dict[str, Any], list[tuple[str, str]]]) -> None:
    space = page[0]
    found = space["ask"]("mean_texture", 2, True)
    assert found.pair is not None
    pair = found.pair[space["names"]].to_numpy(float)
    rows = space["frame"].to_numpy(float)
    components = np.linalg.svd(rows - rows.mean(axis=0), full_matrices=False)[2]
    inside, reached = pair @ components.T, rows @ components.T
    assert (inside >= reached.min(axis=0) - 1e-3).all()
    assert (inside <= reached.max(axis=0) + 1e-3).all()
    margins = space["booster"].predict(xgb.DMatrix(found.pair[space["names"]]), output_margin=True)
    assert margins[0] >= 2
    assert margins[1] <= -2


@pytest.mark.filterwarnings("ignore")
def test_no_sample_of_a_box_flips_more_rows_than_are_counted(
    page: tuple[dict[str, Any], list[tuple[str, str]]],
) -> None:
    """Random inputs of the boxes, judged by XGBoost: rows that they flip are among those that are counted."""
    space = page[0]
    rows = space["frame"].head(60)
    low, high = rows.min().to_numpy(), rows.max().to_numpy()
    rng, eps = np.random.default_rng(3), 0.03
    flipped = np.zeros(len(rows), bool)
    own = space["booster"].predict(xgb.DMatrix(rows), output_margin=True) > 0
    for _ in range(300):
        moved = rows + rng.uniform(-eps, eps, rows.shape) * (high - low)
        moved = moved.clip(low, high, axis=1).astype(np.float32)
        flipped |= (space["booster"].predict(xgb.DMatrix(moved), output_margin=True) > 0) != own
    counts = [space["count"](eps, *sides) for sides in (("a", "b"), ("b", "a"))]
    assert flipped.sum() <= sum(len(c.rows) + len(c.undecided) for c in counts)
    assert flipped.sum() > 0


def test_a_frame_by_itself_is_a_message(page: tuple[dict[str, Any], list[tuple[str, str]]]) -> None:
    space = page[0]
    with pytest.raises(UsageError, match="`data` maps names of the text to objects, and is not DataFrame"):
        ts.check_text(
            'model m from "m"\nquery q: find a maximize margin(a)', models={"m": space["booster"]}, data=space["frame"]
        )
