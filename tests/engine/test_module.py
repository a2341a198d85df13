"""The extension refuses what it cannot evaluate, and evaluates the rest."""

import gc

import numpy as np
import pytest

from treesens._engine import CheckedTrees


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
    }
    return arguments | changes


def reach(cells: list[list[int]], numbers: list[int] | None = None, **changes: object) -> list[list[int]]:
    trees = CheckedTrees(**stump(**changes))  # type: ignore[arg-type]
    out = np.empty((len(cells), 1 if numbers is None else len(numbers)), np.int32)
    trees.reach_leaves(np.array(cells, np.int32), out, None if numbers is None else np.array(numbers, np.int32))
    found: list[list[int]] = out.tolist()
    return found


def test_cells_up_to_the_cut_and_the_missing_cell_go_left() -> None:
    assert reach([[0], [1], [2], [3]]) == [[0], [0], [1], [0]]


def test_some_trees_alone_are_asked_in_their_order() -> None:
    two = {"root": np.array([0, 2], np.int32)}  # the second tree is a leaf
    assert reach([[0], [2]], [1, 0, 1], **two) == [[1, 0, 1], [1, 1, 1]]
    assert reach([[0]], [], **two) == [[]]
    for number in (-1, 2):
        with pytest.raises(ValueError, match="a tree is out of range"):
            reach([[0]], [number], **two)


def test_the_trees_keep_their_arrays() -> None:
    arrays = stump()
    trees = CheckedTrees(**arrays)  # type: ignore[arg-type]
    del arrays
    gc.collect()
    out = np.empty((1, 1), np.int32)
    trees.reach_leaves(np.array([[2]], np.int32), out)
    assert out.tolist() == [[1]]


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"left": np.array([0, 0, 0], np.int32)}, "children must come after"),
        ({"feature": np.array([7, -1, -1], np.int32)}, "feature index"),
        ({"cut": np.array([1], np.int32)}, "differ in length"),
        ({"leaf": np.array([-1, 0, -1], np.int32)}, "a leaf is out of range"),
        ({"root": np.array([3], np.int32)}, "a root is out of range"),
        ({"missing_cell": np.array([2], np.int32)}, "missing cell is not the last"),
        ({"cell_count": np.array([0], np.int32)}, "a feature has no cells"),
        ({"category_set": np.array([0, -1, -1], np.int32)}, "a category set is out of range"),
        (
            {
                "category_set": np.array([0, -1, -1], np.int32),
                "set_offset": np.array([0, 3], np.int64),
                "set_member": np.zeros(3, np.uint8),
            },
            "shorter than the cells",
        ),
    ],
)
def test_bad_arrays_are_refused(changes: dict[str, object], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        CheckedTrees(**stump(**changes))  # type: ignore[arg-type]


def test_a_cell_that_is_none_is_refused() -> None:
    with pytest.raises(ValueError, match="cell is out of range"):
        reach([[4]])
