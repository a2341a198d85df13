"""Linear limits on leaf values: for pairs of inputs whose scores must stay close, and for rows whose scores must not change.

The projection onto the limits, in the metric of the rows, is a quadratic program; Clarabel solves its dual, which has one
variable per limit.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from treesens.compiler.base.arrays import FloatArray
from treesens.errors import MissingPackageError

_EQUAL = 1e-9
"""Tolerance for the equations of rows whose scores must not change."""


class Limits:
    """Equations, and limits `form @ values <= limit`, on leaf values; `metric`, float64[variables], weighs squared changes."""

    def __init__(self, metric: FloatArray) -> None:
        self.metric = metric
        self._forms: list[Any] = []
        self._limits: list[float] = []
        self._equal = 0
        self._stacked: Any = None

    def __len__(self) -> int:
        return len(self._limits)

    def equal(self, forms: Any, values: FloatArray) -> None:
        """Adds the equations `forms @ leaves = values` (`forms` is a sparse matrix); call this before adding limits."""
        self._forms, self._limits = list(sparse_matrices().csr_matrix(forms)), values.tolist()
        self._equal, self._stacked = len(values), None

    def add(self, form: FloatArray, limit: float) -> None:
        """Adds the limit `form @ values <= limit`."""
        self._forms.append(sparse_matrices().csr_matrix(form))
        self._limits.append(limit)
        self._stacked = None

    def forget(self) -> None:
        """Removes all limits except the equations, because limits from pairs are valid only for one size."""
        del self._forms[self._equal :], self._limits[self._equal :]
        self._stacked = None

    def projected(self, values: FloatArray) -> FloatArray:
        """The leaf values that satisfy every limit and are nearest to `values` in the metric."""
        if not self._forms:
            return values
        if self._stacked is None:
            self._stacked = sparse_matrices().vstack(self._forms, format="csr")
        forms = self._stacked
        excess = forms @ values - np.array(self._limits)
        if (excess[self._equal :] <= 0).all() and (np.abs(excess[: self._equal]) <= _EQUAL).all():
            return values
        scaled = forms.multiply(1 / self.metric).tocsr()
        dual = least_dual((scaled @ forms.T).toarray(), excess, self._equal)
        return np.asarray(values - scaled.T @ dual)


def sparse_matrices() -> Any:
    """The module scipy.sparse. Raises MissingPackageError if scipy is missing."""
    try:
        from scipy import sparse
    except ImportError as error:
        raise missing(error) from None
    return sparse


def missing(error: ImportError) -> MissingPackageError:
    """The error for a missing package."""
    return MissingPackageError(
        f"this repair needs {error.name}, which is not installed",
        remedy="pip install 'treesens[repair]', or choose --method blend or average",
    )


def least_dual(gram: FloatArray, excess: FloatArray, free: int) -> FloatArray:
    """A projection's dual solution: argmin x @ gram @ x / 2 - excess @ x, x >= 0 outside the first `free` entries."""
    try:
        import clarabel
        from scipy import sparse
    except ImportError as error:
        raise missing(error) from None
    count = len(excess)
    scale = max(1e-300, float(np.abs(gram).max()))
    quadratic = sparse.csc_matrix(np.triu(gram / scale) + 1e-9 * np.eye(count))
    settings = clarabel.DefaultSettings()
    settings.verbose = False
    signs = sparse.csc_matrix(-sparse.identity(count, format="csr")[free:])
    cones = [clarabel.NonnegativeConeT(count - free)]
    solver = clarabel.DefaultSolver(quadratic, -excess, signs, np.zeros(count - free), cones, settings)
    found = np.asarray(solver.solve().x, dtype=np.float64) / scale
    found[free:] = np.maximum(found[free:], 0.0)
    return np.where(np.isfinite(found), found, 0.0)
