import numpy as np
from numpy.typing import NDArray

def reach_leaves(
    root: NDArray[np.int32],
    feature: NDArray[np.int32],
    cut: NDArray[np.int32],
    left: NDArray[np.int32],
    right: NDArray[np.int32],
    leaf: NDArray[np.int32],
    default_left: NDArray[np.uint8],
    category_set: NDArray[np.int32],
    set_offset: NDArray[np.int64],
    set_member: NDArray[np.uint8],
    missing_cell: NDArray[np.int32],
    cell_count: NDArray[np.int32],
    cells: NDArray[np.int32],
    out: NDArray[np.int32],
) -> None: ...
