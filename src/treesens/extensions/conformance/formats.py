"""The fidelity kit: checks that an ensemble reaches the library's leaves and returns the library's margins, bit for bit."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from treesens.compiler.model import Ensemble, FeatureKind
from treesens.compiler.model.evaluate import Predicted
from treesens.compiler.model.numbers import closed_over
from treesens.compiler.query.predicted_classes import resolution_of, sure_classes
from treesens.errors import ModelError
from treesens.extensions.conformance.probes import Probe, probes
from treesens.frontends.base import LibraryPredict, LoadedModel

# Number of rows for which exact sums (Python integers) are compared with the library's sums.
_EXACT_ROWS = 50
_ALONE = 8
"""Number of rows that the library also predicts one by one."""
_NUMBERS = 40
"""Number of values drawn for a feature that enters the score as a number."""
_ROUNDINGS = 4
"""Number of roundings allowed for probabilities, because libraries may sum many exponentials, or use a faster exponential."""


@dataclass(frozen=True)
class Mismatch:
    """One disagreement: `what` is leaf, margin, class, probability, cell or band; `where` is the tree or the output."""

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
    """The result of a check, with the first of `count` `mismatches`; `refused` lists row groups that the library rejected."""

    rows: int
    leaf_ids_checked: bool
    count: int
    mismatches: tuple[Mismatch, ...]
    refused: tuple[str, ...]
    compared: tuple[str, ...] = ("margins",)

    @property
    def ok(self) -> bool:
        return self.count == 0 and self.rows > 0

    def __str__(self) -> str:
        *first, last = self.compared
        checked = f"{self.rows} rows, {', '.join(first)}{' and ' if first else ''}{last}"
        if self.ok:
            return f"equal on {checked}"
        if not self.rows:
            return "\n".join(["nothing could be checked", *(f"  {reason}" for reason in self.refused)])
        lines = [f"{self.count} mismatches on {checked}", *(f"  {m}" for m in self.mismatches)]
        return "\n".join(lines)

    def raise_if_wrong(self) -> None:
        """Raises ModelError with the first mismatches, unless the model is read correctly."""
        if not self.ok:
            wrong = "the frontend misreads this model; do not trust answers about it"
            raise ModelError(str(self), remedy=wrong if self.count else "check the model where its library can predict")


def check(model: LoadedModel, *, rows: int = 1000, seed: int = 0) -> Report:
    """Checks a loaded model against its own library. A feature that enters the score with a coefficient is checked at values of
    many magnitudes and at the neighbouring floats of these values.
    """
    ensemble, values = model.ensemble, _numbers(model.ensemble, seed)
    closed = closed_over(ensemble, values)
    return check_ensemble(closed, model.margins, model.leaf_ids, model.predicts, rows=rows, seed=seed, numbers=values)


def _numbers(ensemble: Ensemble, seed: int) -> dict[str, NDArray[np.float64]]:
    """Values for each feature that enters the score as a number; only integers if the library accepts no other numbers."""
    rng = np.random.default_rng(seed)
    result = {}
    for name in ensemble.open_features:
        drawn = rng.normal(size=_NUMBERS) * 10.0 ** rng.integers(-3, 7, _NUMBERS)
        some = np.concatenate([[0.0, 1.0, -1.0], np.rint(drawn[: _NUMBERS // 4]), drawn])
        every = np.concatenate([some, np.nextafter(drawn, np.inf), np.nextafter(drawn, -np.inf)])
        whole = ensemble.features[ensemble.feature_names.index(name)].kind is FeatureKind.INTEGER
        result[name] = np.unique((np.rint(every) if whole else every) + 0.0)
    return result


def check_ensemble(
    ensemble: Ensemble,
    margins: LibraryPredict,
    leaf_ids: LibraryPredict | None = None,
    predicts: Callable[[NDArray[np.float64]], Predicted] | None = None,
    *,
    rows: int = 1000,
    seed: int = 0,
    numbers: Mapping[str, NDArray[np.float64]] | None = None,
) -> Report:
    """Checks an ensemble against the library's `margins` and, if available, `leaf_ids` and `predicts` (see LoadedModel).
    Features in `numbers` take only these values.

    Labels are compared if the library certainly separates two classes (`sure_classes`); probabilities are compared up to the
    rounding of an exponential and a division.
    """
    found: list[Mismatch] = []
    refused: list[str] = []
    count = checked = 0
    todo = _among(probes(ensemble, rows, seed), ensemble, numbers or {}, seed)
    while todo:
        probe = todo.pop(0)
        try:
            expected = margins(probe.rows)
            expected_leaves = leaf_ids(probe.rows) if leaf_ids else None
            said = predicts(probe.rows) if predicts else None
        except ModelError as error:
            # The frontend cannot misread probes that the library rejects (such as infinities).
            refused.append(f"{probe.name}: {error.message}")
            todo += _milder(probe, ensemble)
            continue
        checked += len(probe.rows)
        compared = _comparisons(ensemble, probe, expected, expected_leaves)
        if checked == len(probe.rows) and not ensemble.accumulation.any_order:
            # Linear algebra may add up the columns of one row in another order than those of many.
            alone = np.concatenate([margins(probe.rows[n : n + 1]) for n in range(min(_ALONE, len(probe.rows)))])
            compared.append(("margin of one row", alone.astype(np.float64), expected[:_ALONE].astype(np.float64)))
        compared += _predictions(ensemble, expected, said) if said is not None else []
        for what, right, ours in compared:
            wrong = ~((right == ours) | (np.isnan(right) & np.isnan(ours)))
            count += int(wrong.sum())
            for row, where in np.argwhere(wrong)[:2]:
                values = tuple(probe.rows[row].tolist())
                pair = (right[row, where].item(), ours[row, where].item())
                found.append(Mismatch(what, probe.name, values, int(where), *pair))
    words = ["margins", *(["leaf ids"] if leaf_ids else []), *_predicted_words(ensemble, predicts is not None)]
    return Report(checked, leaf_ids is not None, count, tuple(found[:10]), tuple(refused), tuple(words))


def _among(
    groups: list[Probe], ensemble: Ensemble, values: Mapping[str, NDArray[np.float64]], seed: int
) -> list[Probe]:
    """The same groups of rows, with only the given values for some features; missing values stay missing."""
    rng = np.random.default_rng(seed)
    for probe in groups if values else ():
        for name, known in values.items():
            f = ensemble.feature_names.index(name)
            probe.rows[:, f] = np.where(np.isnan(probe.rows[:, f]), np.nan, rng.choice(known, len(probe.rows)))
    return groups


def _predicted_words(ensemble: Ensemble, asked: bool) -> list[str]:
    if not asked:
        return []
    unknown = not ensemble.link.is_known or ensemble.link.votes
    return [*([] if unknown else ["probabilities"]), "labels"] if ensemble.classes else ["predictions"]


def _predictions(
    ensemble: Ensemble, margins: NDArray[Any], said: Predicted
) -> list[tuple[str, NDArray[Any], NDArray[Any]]]:
    """Compares the library's predictions with predictions that the ensemble's link computes from the library's own margins."""
    result = []
    finite: NDArray[np.bool_] = np.asarray(np.isfinite(margins.astype(np.float64)).all(axis=1))
    if said.probabilities is not None:
        kind = said.probabilities.dtype if said.probabilities.dtype.kind == "f" else np.dtype(np.float64)
        right = np.asarray(said.probabilities, np.float64)
        ours = np.asarray(ensemble.probabilities(margins), np.float64)
        if right.shape != ours.shape:
            raise ModelError(f"the library predicted an array of shape {right.shape}, but the ensemble {ours.shape}")
        unit = np.maximum(np.abs(right), 0.0 if ensemble.link.grows else 1.0)
        with np.errstate(invalid="ignore"):
            near = (
                np.abs(right - ours) <= _ROUNDINGS * max(4 * np.finfo(kind).eps, float(resolution_of(ensemble))) * unit
            )
        result.append(("probability", right, np.where(near | ~finite[:, None], right, ours)))
    if said.classes is not None:
        sure = sure_classes(ensemble, np.where(finite[:, None], margins, 0.0).astype(np.float64))
        right = np.asarray(said.classes, np.float64)[:, None]
        ours = np.array([float(c) if c is not None else r for c, r in zip(sure, right[:, 0], strict=True)])[:, None]
        result.append(("class", right, np.where(finite[:, None], ours, right)))
    return result


def _milder(probe: Probe, ensemble: Ensemble) -> list[Probe]:
    """Reduced probes for a library that has rejected a probe: first only its finite rows, then only known categories."""
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
    shape = (len(probe.rows), ensemble.n_outputs)
    if expected.shape != shape:
        raise ModelError(f"the library returned margins of shape {expected.shape}, the ensemble has {shape}")
    reached = ensemble.leaves(probe.rows)
    emulated = ensemble.margins_of_leaves(reached)
    bands = ensemble.bands()
    right, ours = expected.astype(np.float64), emulated.astype(np.float64)
    if ensemble.accumulation.any_order:
        with np.errstate(invalid="ignore"):
            ours = np.where(np.abs(right - ours) <= 2 * np.array([float(band) for band in bands]), right, ours)
    result = [("margin", right, ours)]
    if expected_leaves is not None:
        if expected_leaves.shape != reached.shape:
            raise ModelError(f"the library has {expected_leaves.shape[1]} trees, but the ensemble {reached.shape[1]}")
        result.append(("leaf", expected_leaves.astype(np.float64), ensemble.leaf_node[reached].astype(np.float64)))
    # The same rows, evaluated through cells and the native engine; a grid has no infinities.
    finite = ~np.isinf(ensemble.number_type.cast(probe.rows)).any(axis=1)
    grid = ensemble.grid(missing=True)
    through_cells = ensemble.on(grid).leaves(grid.cells(probe.rows[finite]))
    result.append(("cell", reached[finite].astype(np.float64), through_cells.astype(np.float64)))
    few = slice(0, _EXACT_ROWS)
    exact = ensemble.sums_exact(reached[few]).fractions()
    outside = np.zeros(exact.shape)
    for (row, output), value in np.ndenumerate(exact):
        if np.isfinite(expected[row, output]):
            error = abs(value / ensemble.average - type(value)(float(expected[row, output])))
            outside[row, output] = float(error > bands[output])
    result.append(("band", np.zeros(exact.shape), outside))
    return result
