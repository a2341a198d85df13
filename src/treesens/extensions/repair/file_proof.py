"""Checks the written file, which is read again: the library's predictions must equal treesens's; promises need proofs."""

from __future__ import annotations

import tempfile
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from treesens.compiler.base.arrays import FloatArray
from treesens.compiler.base.files import write_atomically
from treesens.compiler.result import Certified, Verdict
from treesens.errors import InternalError, ModelError
from treesens.extensions.repair.forest import Forest
from treesens.extensions.repair.kept_rows import TOLERANCE
from treesens.extensions.repair.proof import Asking, Decided, Promise, decided_by, largest_swing, questions_for, settle
from treesens.extensions.repair.study import RepairOptions
from treesens.frontends.base import LoadedModel
from treesens.records.answers import certificate_record

_ROWS = 1000
"""Number of table rows for comparing the library's predictions; the same number of rows with values at thresholds is added."""
_SWING_SECONDS = 10.0


class FileProof:
    """Proofs about repaired files of one model; `rows`, float64[rows, features], holds the rows of the training table."""

    def __init__(
        self,
        model: LoadedModel,
        forest: Forest,
        rows: FloatArray,
        options: RepairOptions,
        stop: threading.Event,
        kept: FloatArray | None = None,
    ) -> None:
        self.kept = kept
        self.model, self.forest, self.rows, self.options, self.stop = model, forest, rows, options, stop
        self.random = np.random.default_rng(options.seed)
        self._swings: dict[tuple[str, int], tuple[float | None, float | None]] = {}

    def prove(self, promises: Sequence[Promise], model: LoadedModel) -> tuple[str, dict[str, Any]]:
        """The reason why a promise is broken or not proved, or "" and the proofs. A proof counts only if its certificate is
        accepted; if the file keeps all promises, the certificates are written to the folder `options.certificates`.
        """
        options, proofs, kept = self.options, [], {}
        if self.kept is not None:
            change = float(
                np.abs(np.subtract(model.margins(self.kept), self.model.margins(self.kept), dtype=np.float64)).max()
            )
            if change > TOLERANCE:
                return f"a score of the rows to keep changed by {change:.3g}", {}
            kept = {"kept_rows": {"rows": len(self.kept), "largest_change_of_a_score": change}}
        decided = decided_by(options)
        going_on = threading.Event()  # never set: Ctrl-C ends the search, but its results are still proved
        with tempfile.TemporaryDirectory() as made:
            for number, asking in enumerate(questions_for(model, promises, decided)):
                # Directions are proved for exact sums only: equal sums leave no room for a proof about rounded sums.
                final = not asking.promise.is_direction
                found = settle(
                    asking, model, seconds=options.proof_time, stop=going_on, certificates=Path(made), final=final
                )
                if found.verdict is not Verdict.NONE:
                    return f"{asking.promise.words()}: {found.verdict}, {found.reason}", {}
                before = self._swing(number, asking, decided)
                after = largest_swing(model, asking, decided, seconds=_SWING_SECONDS, stop=self.stop)
                swing = {"before": before[0], "before_bound": before[1], "after": after[0], "after_bound": after[1]}
                proofs.append(
                    {
                        "kind": asking.promise.kind,
                        "size": float(asking.promise.size),
                        "varied": list(asking.promise.varied),
                        **asking.decision.record(),
                        "verdict": str(found.verdict),
                        "method": found.reason,
                        "certificates": [_placed(claim, options.certificates) for claim in found.certificates],
                        "largest_swing": swing,
                    }
                )
            if options.certificates is not None:
                options.certificates.mkdir(parents=True, exist_ok=True)
                for file in sorted(Path(made).iterdir()):
                    write_atomically(options.certificates / file.name, file.read_bytes())
        return "", {"proofs": proofs, **kept}

    def _swing(self, number: int, asking: Asking, decided: Decided) -> tuple[float | None, float | None]:
        key = (" ".join(asking.promise.varied), number)
        if key not in self._swings:
            self._swings[key] = largest_swing(self.model, asking, decided, seconds=_SWING_SECONDS, stop=self.stop)
        return self._swings[key]

    def check_library(self, model: LoadedModel) -> None:
        """Raises InternalError unless the installed library's predictions for the file equal treesens's predictions, on rows of
        the table and on rows with values at and next to thresholds.
        """
        rows = self.rows
        if len(rows) > _ROWS:
            rows = rows[self.random.choice(len(rows), _ROWS, replace=False)]
        edges = rows[self.random.integers(len(rows), size=_ROWS)].copy()
        grid = self.forest.cells.grid
        for row in edges:
            for f in self.random.choice(len(grid), min(3, len(grid)), replace=False).tolist():
                low, high = grid[f].interval(int(self.random.integers(grid[f].n_cells)))
                row[f] = low if self.random.random() < 0.5 else high
        edges[np.abs(edges) >= model.ensemble.number_type.max] = 0.0
        if np.isnan(edges).any() and not _takes(self.model, edges[np.isnan(edges).any(axis=1)][:1]):
            edges = np.nan_to_num(edges)
        counts = np.array([feature.categories or np.inf for feature in model.ensemble.features])
        unknown = np.isfinite(counts) & ((edges < 0) | (edges >= counts))
        if unknown.any() and not _takes(self.model, edges[unknown.any(axis=1)][:1]):
            edges[unknown] = 0.0
        both = np.concatenate([rows, edges])
        ours, theirs = model.ensemble.margins_emulated(both), model.margins(both)
        if not np.array_equal(np.asarray(ours, dtype=np.float64), np.asarray(theirs, dtype=np.float64)):
            at = int(np.flatnonzero((np.asarray(ours) != np.asarray(theirs)).any(axis=1))[0])
            raise InternalError(
                f"the library predicts {theirs[at].tolist()} from the repaired file, but treesens predicts {ours[at].tolist()}",
                remedy="nothing was written; please report this with the model",
            )


def _takes(model: LoadedModel, rows: FloatArray) -> bool:
    """True if the library makes predictions for rows with missing values or unknown categories."""
    try:
        model.margins(rows)
    except ModelError:
        return False
    return True


def _placed(claim: Certified, folder: Path | None) -> dict[str, Any]:
    """The record of a certificate in `folder`; without a folder, the certificate was created and checked, but has no file."""
    record = certificate_record(claim)
    record["file"] = None if folder is None or not claim.path else str(folder / Path(claim.path).name)
    return record
