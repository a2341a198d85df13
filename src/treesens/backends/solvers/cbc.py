"""CBC through python-mip, whose statuses have been wrong on time-outs (python-mip #17, #161, #342): every point is replayed."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any, ClassVar

from treesens.backends.base import EMPTY, Artifact, Limits, OnIncumbent, RawOutcome, Termination, missing_module
from treesens.backends.milp import FEASIBILITY, INTEGRALITY, MilpBackend, mps_file, round_values, upper_bound


class CbcBackend(MilpBackend):
    name: ClassVar[str] = "cbc"
    packages: ClassVar[tuple[str, ...]] = ("mip",)
    modules: ClassVar[tuple[str, ...]] = ("mip", "mip.cbc")
    reserved: ClassVar[frozenset[str]] = frozenset({
        "verbose", "threads", "seed", "infeas_tol", "integer_tol", "max_mip_gap", "max_mip_gap_abs", "max_seconds",
        "max_solutions", "cutoff", "sense", "objective_const", "name"
    })  # fmt: skip

    def available(self) -> str | None:
        return missing_module("mip", "cbc")

    def fresh(self) -> Any:
        import mip

        return mip.Model(solver_name=mip.CBC)

    def known_options(self, solver: Any) -> Mapping[str, type]:
        """The properties of python-mip's model that can be set to a number."""
        names = (name for name, found in vars(type(solver)).items() if isinstance(found, property) and found.fset)
        found = ((name, getattr(solver, name)) for name in names if name not in {"start", "objective"})
        return {name: int if hasattr(value, "value") else type(value) for name, value in found}

    def set_option(self, solver: Any, name: str, value: bool | int | float | str) -> bool:
        kind = type(getattr(solver, name))
        setattr(solver, name, kind(value))
        return True

    def solve(self, artifact: Artifact, limits: Limits, on_incumbent: OnIncumbent | None = None) -> RawOutcome:
        import mip

        if (answered := self.at_start(artifact, limits)) is not None:
            return answered
        real = artifact.optimises
        model = self.fresh()
        model.verbose = int(limits.log is not None)
        with mps_file(artifact) as path:
            model.read(str(path))
        if not model.num_cols:
            return EMPTY
        model.threads = limits.threads
        model.seed = limits.seed
        model.infeas_tol = FEASIBILITY
        model.integer_tol = max(INTEGRALITY, 1e-9)
        model.max_mip_gap = limits.relative_gap(artifact, INTEGRALITY)
        model.max_mip_gap_abs = max(limits.tolerance.absolute, INTEGRALITY)
        self.configure(model)
        if artifact.warm_start is not None:
            model.start = [(model.vars[i], float(x)) for i, x in enumerate(artifact.warm_start)]
        started = time.monotonic()
        status = model.optimize(max_seconds=limits.seconds, max_solutions=mip.INT_MAX if real else 1)
        known = mip.OptimizationStatus
        assignment = None
        if model.num_solutions:
            by_name = {v.name: v.x for v in model.vars}
            assignment = round_values([by_name[name] for name in artifact.names])
        # python-mip has reported time-outs as infeasible (#161): accepted only if time was left.
        in_time = time.monotonic() - started < limits.seconds * 0.95
        if status in {known.INFEASIBLE, known.INT_INFEASIBLE} and assignment is None and in_time:
            return RawOutcome(Termination.INFEASIBLE, detail=status.name)
        bound = upper_bound(model.objective_bound, artifact) if real and assignment is not None else None
        if bound is not None:  # only at the end: python-mip's progress callback crashes CBC
            limits.report(model.objective_bound, model.objective_value)
        if assignment is not None and not real:
            return RawOutcome(Termination.SATISFIED, assignment, None, status.name)
        if status == known.OPTIMAL:
            return RawOutcome(Termination.OPTIMAL, assignment, bound, status.name)
        stopped = status in {known.NO_SOLUTION_FOUND, known.FEASIBLE} or not in_time
        return RawOutcome(Termination.TIME if stopped else Termination.UNKNOWN, assignment, bound, status.name)


BACKEND = CbcBackend
