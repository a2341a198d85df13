"""Common parts of the MILP backends: MPS input, rounding of assignments, and the sign of the objective.

MILP solvers work in floating point. Their `infeasible` is a proof up to their tolerances, over rows relaxed by more than these
tolerances (legalise/rounding.py); their points are replayed exactly before they are accepted as answers.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import ClassVar

import numpy as np

from treesens.backends.base import Artifact, Backend, Capabilities, Limits, Proof, RawOutcome
from treesens.backends.text.mps import write_mps
from treesens.compiler.base.arrays import BoolArray
from treesens.compiler.base.dyadic import Unit
from treesens.compiler.base.floats import NumberType, ceil_to
from treesens.compiler.ir import Module

FEASIBILITY = 1e-6
"""Primal feasibility tolerance set in every MILP solver; legalise/rounding.py relaxes rows by a larger amount."""
INTEGRALITY = 1e-9
"""Integrality tolerance, small because rounding errors of hundreds of predicates add up in a score."""


class MilpBackend(Backend):
    """Base class of the backends that read MPS."""

    capabilities: ClassVar[Capabilities] = Capabilities(proof=Proof.TOLERANCE, warm_start=True)
    reads: ClassVar[tuple[str, ...]] = ("lp", "mps")

    def exact_precision(self) -> int:
        return 1

    def at_start(self, artifact: Artifact, limits: Limits) -> RawOutcome | None:
        """The outcome with all columns fixed to the start; None if no feasible start exists, or if an optimum is required.

        Without this step, a solver would use the start only after presolve, and would continue searching afterwards.
        """
        if artifact.warm_start is None or artifact.optimises:
            return None
        outcome = self.solve(fixed_to_start(artifact), limits)
        return None if outcome.assignment is None else replace(outcome, detail="the start")

    def emit(self, module: Module, *, precision: int = 0) -> Artifact:
        return write_mps(module, precision=precision)


def fixed_to_start(artifact: Artifact) -> Artifact:
    """The artifact with every column fixed to its value in the start."""
    assert artifact.warm_start is not None
    head, bounds, _ = artifact.text.rpartition("BOUNDS\n")
    fixed = "".join(f" FX BND x{v} {int(value)}\n" for v, value in enumerate(artifact.warm_start))
    return replace(artifact, text=f"{head}{bounds}{fixed}ENDATA\n", warm_start=None)


@contextmanager
def mps_file(artifact: Artifact) -> Iterator[Path]:
    """The artifact as a temporary file with a unique name."""
    with tempfile.TemporaryDirectory(prefix="treesens-") as folder:
        path = Path(folder) / f"model.{artifact.format}"
        path.write_text(artifact.text)
        yield path


def round_values(values: object) -> BoolArray:
    """A point of the relaxation rounded to Booleans."""
    return np.asarray(values, np.float64) > 0.5


def upper_bound(minimised: float, artifact: Artifact) -> float | None:
    """The upper bound on the maximised objective that follows from the solver's lower bound on the negated objective."""
    if not artifact.optimises or not np.isfinite(minimised):
        return None
    # Solver tolerances are relative to the objective; the bound is widened by more than their effect.
    slack = 1e-6 * max(1.0, abs(minimised))
    constant = Unit(artifact.objective_shift).value(artifact.objective_constant)
    return ceil_to(constant - Fraction(minimised) + Fraction(slack), NumberType.FLOAT64)
