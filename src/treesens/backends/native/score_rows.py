"""The linear constraints and the objective of a module for the native engine."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from treesens._engine import SCORE_BITS
from treesens.backends.native.boxes import Groups
from treesens.backends.native.problem import Places
from treesens.compiler.base.arrays import Int32Array, Int64Array, IntegerArray, indptr_of
from treesens.compiler.base.dyadic import in_finer_units
from treesens.compiler.ir import TRUE, Linear, Module
from treesens.compiler.legalise.rounding import Rounded, bits_beyond, round_row
from treesens.compiler.query.forest import FOREST_ROW

_BITS = SCORE_BITS - 1
"""Maximum bits of the sum of a row's coefficients, bound and release term, as required by the engine."""


class Rows:
    """Constraints and the objective as coefficients of leaves and terms of cells."""

    def __init__(self, module: Module, places: Places, groups: Groups, *, alike: bool = False) -> None:
        """With `alike`, all score rows have one unit, 2**-shift, so that their slacks can be compared: the finest unit of any
        row, or a coarser unit in which every row fits.
        """
        self.relaxed = False
        self.alike = alike
        self.places = places
        self.leaf_of = np.full(module.variables, -1, np.int64)
        counted = np.flatnonzero(groups.counted)
        self.leaf_of[groups.leaf_variable[counted]] = counted
        self.leaves = len(groups.leaf_variable)
        self.bounds: list[int] = []
        self.row_dropped: list[int] = []
        self.weights: list[int] = []
        self.entries: list[tuple[Int64Array, int, Int64Array]] = []  # leaves, row, values
        self.unary: list[tuple[int, int, IntegerArray]] = []  # row, variable, value per cell
        rows = [row for row in module.ops_of(Linear) if not row.implied]
        scored = [row for row in rows if self._scores(row)]
        self.shift = max((row.shift for row in scored), default=0)
        self.coarsest_shift = min((row.shift for row in scored), default=0)
        if alike:
            fits = (row.shift - bits_beyond(row.coefficients, row.bound, _BITS) for row in scored)
            self.shift = min(self.shift, min(fits, default=self.shift))
        for row in rows:
            self._constraint(row)
        if not self.bounds:
            # The engine needs at least one row: 0 >= 0.
            self.bounds.append(0)
            self.weights.append(1)
        self.objective = module.optimises
        self.objective_dropped = 0
        if self.objective:
            assert module.objective is not None
            rounded = self._narrow(module.objective.coefficients, 0)
            self.objective_dropped = rounded.dropped
            self._terms(len(self.bounds), module.objective.variables, rounded.coefficients)

    def _scores(self, row: Linear) -> bool:
        """True if the row bounds scores, so its slack is used; forest rows have other units, and need only be satisfied."""
        return bool(np.any(self.leaf_of[row.variables] >= 0)) and row.name != FOREST_ROW

    def _narrow(self, coefficients: IntegerArray, bound: int, at_least: int = 0) -> Rounded:
        """Converts coefficients to int64, rounding outward if necessary."""
        rounded = round_row(coefficients, bound, bits=_BITS, at_least=at_least)
        self.relaxed = self.relaxed or not rounded.exact
        return replace(rounded, coefficients=rounded.coefficients.astype(np.int64))

    def _constraint(self, row: Linear) -> None:
        scores = self._scores(row)
        finer = max(0, self.shift - row.shift) if scores and self.alike else 0
        coarser = max(0, row.shift - self.shift) if scores and self.alike else 0
        rounded = self._narrow(in_finer_units(row.coefficients, finer), row.bound << finer, coarser)
        coefficients, bound = rounded.coefficients, rounded.bound
        number = len(self.bounds)
        if row.when != TRUE:
            # sum + M * [when is false] >= bound, with M so large that the row holds whenever `when` is false.
            least = int(coefficients[coefficients < 0].sum()) if len(coefficients) else 0
            release = max(0, bound - least)
            variable, runs = self.places.ranges(row.when ^ 1)
            values = np.zeros(self.places.size[variable], np.int64)
            for low, high in runs:
                values[low : high + 1] = release
            self.unary.append((number, variable, values))
        self._terms(number, row.variables, coefficients)
        self.bounds.append(bound)
        self.row_dropped.append(rounded.dropped - finer)
        self.weights.append(int(scores and row.when == TRUE))

    def _terms(self, row: int, variables: Int32Array, coefficients: Int64Array) -> None:
        leaf = self.leaf_of[variables]
        self.entries.append((leaf[leaf >= 0], row, coefficients[leaf >= 0]))
        per_variable: dict[int, Int64Array] = {}
        for v, c in zip(variables[leaf < 0].tolist(), coefficients[leaf < 0].tolist(), strict=True):
            variable, runs = self.places.ranges(v * 2)
            values = per_variable.setdefault(variable, np.zeros(self.places.size[variable], np.int64))
            for low, high in runs:
                values[low : high + 1] += c
        self.unary += [(row, variable, values) for variable, values in per_variable.items()]

    def arrays(self) -> dict[str, Any]:
        leaf = np.concatenate([e[0] for e in self.entries]) if self.entries else np.zeros(0, np.int64)
        row = np.concatenate([np.full(len(e[0]), e[1], np.int32) for e in self.entries]) if self.entries else leaf
        value = np.concatenate([e[2] for e in self.entries]) if self.entries else leaf
        order = np.lexsort((row, leaf))
        merged: dict[tuple[int, int], IntegerArray] = {}
        for number, variable, values in self.unary:
            key = (number, variable)
            merged[key] = merged[key] + values if key in merged else values
        terms = [(r, v, int(k), int(x[k])) for (r, v), x in merged.items() for k in np.flatnonzero(x)]
        flat = np.array(terms, np.int64).reshape(-1, 4)
        return {
            "coefficient_offset": indptr_of(np.bincount(leaf, minlength=self.leaves)),
            "coefficient_row": row[order].astype(np.int32),
            "coefficient_value": value[order].astype(np.int64),
            "bound": np.array(self.bounds, np.int64),
            "slack_weight": np.array(self.weights, np.uint8),
            "objective": self.objective,
            "unary_row": flat[:, 0].astype(np.int32),
            "unary_variable": flat[:, 1].astype(np.int32),
            "unary_cell": flat[:, 2].astype(np.int32),
            "unary_value": flat[:, 3],
        }
