"""Rows whose scores must be preserved: linear equations in the leaf values, solved by changing only the leaves of copies."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from treesens.compiler.base.arrays import FloatArray
from treesens.errors import UsageError
from treesens.extensions.repair.limits import sparse_matrices
from treesens.extensions.repair.program import Variables

MOST_ROWS = 500
TOLERANCE = 1e-4
"""Largest permitted change of a raw score, due to rounding. The final check compares the library's scores for both files."""
_SOLVED = 1e-7


@dataclass(frozen=True, eq=False)
class KeptRows:
    """The `rows`, float64[rows, features]. `forms` holds the rows' scores from the changed trees alone, as linear forms in the
    variables, one form per row and output; `sums` holds the values of the forms in the original model.
    """

    rows: FloatArray
    forms: Any
    sums: FloatArray
    own: int

    @classmethod
    def of(cls, variables: Variables, rows: FloatArray) -> KeptRows:
        """The rows with their forms. Raises UsageError if there are more than MOST_ROWS rows."""
        if len(rows) > MOST_ROWS:
            raise UsageError(
                f"--keep-rows has {len(rows)} rows, but at most {MOST_ROWS} can be kept",
                remedy=f"name at most {MOST_ROWS} in --keep-rows",
            )
        columns = variables.columns(variables.forest.rows(rows))
        outputs = int(columns.output.max(initial=0)) + 1
        line = outputs * np.arange(len(rows))[:, None] + columns.output[None, :]
        shape = (outputs * len(rows), variables.count)
        held = np.ones(line.size)
        forms = sparse_matrices().csr_matrix((held, (line.ravel(), columns.variable.ravel())), shape=shape)
        return cls(rows, forms, np.asarray(forms @ variables.original), len(variables.own))

    def kept(self, values: FloatArray, metric: FloatArray) -> FloatArray:
        """The nearest values that preserve the scores of the rows; only leaf values of the copies change. Raises UsageError if
        no such values exist: two rows that differ only in varied features cannot both keep their scores.
        """
        missing = self.sums - self.forms @ values
        forms = self.forms.copy()[:, self.own :]
        scaled = forms.multiply(1 / metric[self.own :]).tocsr()
        found, *_ = np.linalg.lstsq((scaled @ forms.T).toarray(), missing, rcond=None)
        result = values.copy()
        result[self.own :] += scaled.T @ found
        wrong = np.abs(self.forms @ result - self.sums)
        if (wrong > _SOLVED).any():
            row = int(wrong.argmax()) * len(self.rows) // len(self.sums)
            raise UsageError(
                f"the score of row {row} of --keep-rows cannot be kept with the others: another row differs only in "
                "the varied features, or reaches the same leaves",
                remedy="leave one of the rows out of --keep-rows",
            )
        return result
