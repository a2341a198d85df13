"""The fidelity kit: does an ensemble reach the library's leaves and return its margins, bit for bit, on every input?

Ships with the package, so that the author of a frontend runs it on their own models:

    from treesens.frontends import load, conformance
    conformance.check(load("model.json")).raise_if_wrong()
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from treesens.compiler.model import Ensemble
from treesens.errors import ModelError
from treesens.frontends.base import LibraryPredict, LoadedModel
from treesens.frontends.probes import Probe, probes

# Rows on which exact sums (Python integers) are compared with the library's.
_EXACT_ROWS = 50


@dataclass(frozen=True)
class Mismatch:
    """One disagreement: `what` is leaf, margin, cell or band; `where` is the tree or the output."""

    what: str
    probe: str
    row: tuple[float, ...]
    where: int
    expected: float
    got: float

    def __str__(self) -> str:
        return f"{self.what} {self.where}: library {self.expected!r}, here {self.got!r} ({self.probe})"


@dataclass(frozen=True)
class Report:
    """What was checked. `mismatches` holds the first few of `count`; `refused` names groups the library would not
    take.
    """

    rows: int
    leaf_ids_checked: bool
    count: int
    mismatches: tuple[Mismatch, ...]
    refused: tuple[str, ...]

    @property
    def ok(self) -> bool:
        return self.count == 0 and self.rows > 0

    def __str__(self) -> str:
        checked = f"{self.rows} rows, margins{' and leaf ids' if self.leaf_ids_checked else ''}"
        if self.ok:
            return f"equal on {checked}"
        if not self.rows:
            return "\n".join(["nothing could be checked", *(f"  {reason}" for reason in self.refused)])
        lines = [f"{self.count} mismatches on {checked}", *(f"  {m}" for m in self.mismatches)]
        return "\n".join(lines)

    def raise_if_wrong(self) -> None:
        """ModelError with the first mismatches."""
        if not self.ok:
            raise ModelError(str(self), remedy="the frontend misreads this model; do not trust answers about it")


def check(model: LoadedModel, *, rows: int = 1000, seed: int = 0) -> Report:
    """Checks a loaded model against its own library."""
    return check_ensemble(model.ensemble, model.margins, model.leaf_ids, rows=rows, seed=seed)


def check_ensemble(
    ensemble: Ensemble,
    margins: LibraryPredict,
    leaf_ids: LibraryPredict | None = None,
    *,
    rows: int = 1000,
    seed: int = 0,
) -> Report:
    """Checks an ensemble against the library's `margins` and, where it has them, `leaf_ids` (see LoadedModel)."""
    found: list[Mismatch] = []
    refused: list[str] = []
    count = checked = 0
    todo = probes(ensemble, rows, seed)
    while todo:
        probe = todo.pop(0)
        try:
            expected = margins(probe.rows)
            expected_leaves = leaf_ids(probe.rows) if leaf_ids else None
        except ModelError as error:
            # A library that rejects infinities, say, cannot be misread on them.
            refused.append(f"{probe.name}: {error.message}")
            todo += _milder(probe, ensemble)
            continue
        checked += len(probe.rows)
        for what, right, ours in _comparisons(ensemble, probe, expected, expected_leaves):
            wrong = ~((right == ours) | (np.isnan(right) & np.isnan(ours)))
            count += int(wrong.sum())
            for row, where in np.argwhere(wrong)[:2]:
                values = tuple(probe.rows[row].tolist())
                pair = (right[row, where].item(), ours[row, where].item())
                found.append(Mismatch(what, probe.name, values, int(where), *pair))
    return Report(checked, leaf_ids is not None, count, tuple(found[:10]), tuple(refused))


def _milder(probe: Probe, ensemble: Ensemble) -> list[Probe]:
    """What a library may take that has refused a probe: its finite rows alone, and then known categories alone."""
    taken = np.isfinite(probe.rows).all(axis=1)
    if not taken.all():
        return [Probe(f"{probe.name}, finite ones", probe.rows[taken])] if taken.any() else []
    known = probe.rows.copy()
    for f, feature in enumerate(ensemble.features):
        if feature.categories:
            known[:, f] = np.floor(np.abs(known[:, f])) % feature.categories
    return [Probe(f"{probe.name}, known categories", known)] if (known != probe.rows).any() else []


def _comparisons(
    ensemble: Ensemble, probe: Probe, expected: NDArray[Any], expected_leaves: NDArray[Any] | None
) -> list[tuple[str, NDArray[Any], NDArray[Any]]]:
    from treesens.compiler.model.evaluate import sum_emulated

    shape = (len(probe.rows), ensemble.n_outputs)
    if expected.shape != shape:
        raise ModelError(f"the library returned margins of shape {expected.shape}, the ensemble has {shape}")
    reached = ensemble.leaves(probe.rows)
    emulated = sum_emulated(ensemble, reached)
    result = [("margin", expected.astype(np.float64), emulated.astype(np.float64))]
    if expected_leaves is not None:
        if expected_leaves.shape != reached.shape:
            raise ModelError(f"the library has {expected_leaves.shape[1]} trees, the ensemble {reached.shape[1]}")
        result.append(("leaf", expected_leaves.astype(np.float64), ensemble.leaf_node[reached].astype(np.float64)))
    # The same rows through cells and the native engine; infinities are not inputs of a grid.
    finite = ~np.isinf(ensemble.number_type.cast(probe.rows)).any(axis=1)
    grid = ensemble.grid(missing=True)
    through_cells = ensemble.on(grid).leaves(grid.cells(probe.rows[finite]))
    result.append(("cell", reached[finite].astype(np.float64), through_cells.astype(np.float64)))
    few = slice(0, _EXACT_ROWS)
    exact = ensemble.sums_exact(reached[few]).fractions()
    bands = ensemble.bands()
    outside = np.zeros(exact.shape)
    for (row, output), value in np.ndenumerate(exact):
        if np.isfinite(expected[row, output]):
            error = abs(value / ensemble.average - type(value)(float(expected[row, output])))
            outside[row, output] = float(error > bands[output])
    result.append(("band", np.zeros(exact.shape), outside))
    return result
