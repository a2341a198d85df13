"""The extension refuses what it cannot evaluate, and evaluates the rest."""

import numpy as np
import pytest

from treesens._engine import reach_leaves


def stump(**changes: object) -> dict[str, object]:
    arguments: dict[str, object] = {
        "root": np.array([0], np.int32),
        "feature": np.array([0, -1, -1], np.int32),
        "cut": np.array([1, 0, 0], np.int32),
        "left": np.array([1, 0, 0], np.int32),
        "right": np.array([2, 0, 0], np.int32),
        "leaf": np.array([-1, 0, 1], np.int32),
        "default_left": np.array([1, 0, 0], np.uint8),
        "category_set": np.array([-1, -1, -1], np.int32),
        "set_offset": np.array([0], np.int64),
        "set_member": np.array([], np.uint8),
        "missing_cell": np.array([3], np.int32),
        "cell_count": np.array([4], np.int32),
        "cells": np.array([[0], [1], [2], [3]], np.int32),
        "out": np.empty((4, 1), np.int32),
    }
    return arguments | changes


def test_cells_up_to_the_cut_and_the_missing_cell_go_left() -> None:
    arguments = stump()
    reach_leaves(**arguments)  # type: ignore[arg-type]
    assert arguments["out"].ravel().tolist() == [0, 0, 1, 0]  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"cells": np.array([[4]], np.int32), "out": np.empty((1, 1), np.int32)}, "cell is out of range"),
        ({"left": np.array([0, 0, 0], np.int32)}, "children must come after"),
        ({"feature": np.array([7, -1, -1], np.int32)}, "feature index"),
        ({"cut": np.array([1], np.int32)}, "differ in length"),
    ],
)
def test_bad_arrays_are_refused(changes: dict[str, object], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        reach_leaves(**stump(**changes))  # type: ignore[arg-type]
