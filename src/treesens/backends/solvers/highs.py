"""HiGHS through highspy (< 1.15, which conflicts with OR-tools: https://github.com/google/or-tools/issues/5246)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from treesens.backends.base import EMPTY, Artifact, Limits, OnIncumbent, RawOutcome, Termination, missing_module
from treesens.backends.milp import FEASIBILITY, INTEGRALITY, MilpBackend, mps_file, round_values, upper_bound


class HighsBackend(MilpBackend):
    name: ClassVar[str] = "highs"
    packages: ClassVar[tuple[str, ...]] = ("highspy",)
    modules: ClassVar[tuple[str, ...]] = ("highspy",)
    reserved: ClassVar[frozenset[str]] = frozenset({
        "output_flag", "time_limit", "threads", "random_seed", "primal_feasibility_tolerance",
        "mip_feasibility_tolerance", "mip_abs_gap", "mip_rel_gap", "mip_max_improving_sols", "objective_bound",
        "objective_target"
    })  # fmt: skip

    def available(self) -> str | None:
        return missing_module("highspy")

    def fresh(self) -> Any:
        import highspy

        highs = highspy.Highs()
        highs.setOptionValue("output_flag", False)
        return highs

    def known_options(self, solver: Any) -> Mapping[str, type]:
        import highspy

        types = {
            highspy.HighsOptionType.kBool: bool,
            highspy.HighsOptionType.kInt: int,
            highspy.HighsOptionType.kDouble: float,
            highspy.HighsOptionType.kString: str,
        }
        names = (name for name in dir(solver.getOptions()) if not name.startswith("_"))
        found = ((name, *solver.getOptionType(name)) for name in names)
        return {name: types[kind] for name, status, kind in found if status == highspy.HighsStatus.kOk}

    def set_option(self, solver: Any, name: str, value: bool | int | float | str) -> bool:
        import highspy

        return bool(solver.setOptionValue(name, value) == highspy.HighsStatus.kOk)

    def solve(self, artifact: Artifact, limits: Limits, on_incumbent: OnIncumbent | None = None) -> RawOutcome:
        import highspy

        if (answered := self.at_start(artifact, limits)) is not None:
            return answered
        highs = self.fresh()
        highs.setOptionValue("time_limit", limits.seconds)
        highs.setOptionValue("threads", limits.threads)
        highs.setOptionValue("random_seed", limits.seed)
        highs.setOptionValue("primal_feasibility_tolerance", FEASIBILITY)
        highs.setOptionValue("mip_feasibility_tolerance", INTEGRALITY)
        highs.setOptionValue("mip_abs_gap", limits.tolerance.absolute)
        highs.setOptionValue("mip_rel_gap", limits.relative_gap(artifact, INTEGRALITY))
        if not artifact.optimises:
            highs.setOptionValue("mip_max_improving_sols", 1)
        highs.setOptionValue("output_flag", limits.log is not None)
        self.configure(highs)
        with mps_file(artifact) as path:
            if highs.readModel(str(path)) == highspy.HighsStatus.kError:
                return RawOutcome(Termination.CRASH, detail="HiGHS cannot read the model")
        if not highs.getNumCol():
            return EMPTY
        if artifact.warm_start is not None:
            start = highspy.HighsSolution()
            # A module without variables has one idle column (text/mps.py).
            start.col_value = [float(x) for x in artifact.warm_start] or [0.0]
            highs.setSolution(start)
        if on_incumbent is not None and artifact.optimises:

            def improved(event: object) -> None:
                on_incumbent(round_values(event.data_out.mip_solution))  # type: ignore[attr-defined]

            highs.cbMipImprovingSolution += improved
        if limits.watch:
            highs.cbMipLogging += lambda event: limits.report(
                event.data_out.mip_dual_bound, event.data_out.mip_primal_bound
            )
        highs.run()
        status = highs.getModelStatus()
        info = highs.getInfo()
        known = highspy.HighsModelStatus
        has_point = info.primal_solution_status == highspy.SolutionStatus.kSolutionStatusFeasible
        assignment = round_values(highs.getSolution().col_value)[: artifact.variables] if has_point else None
        bound = upper_bound(info.mip_dual_bound, artifact)
        searched = info.mip_node_count >= 0  # False for a problem without integers
        limits.report(info.mip_dual_bound if searched else None, info.objective_function_value if has_point else None)
        statistics = {"iterations": float(info.simplex_iteration_count)}
        if searched:
            statistics["nodes"] = float(info.mip_node_count)
        real = artifact.optimises
        if status == known.kInfeasible:
            termination = Termination.INFEASIBLE
        elif status == known.kOptimal:
            termination = Termination.OPTIMAL if real else Termination.SATISFIED
        elif has_point and not real:
            termination = Termination.SATISFIED
        elif status == known.kTimeLimit:
            termination = Termination.TIME
        elif status == known.kMemoryLimit:
            termination = Termination.MEMORY
        else:
            termination = Termination.UNKNOWN
        return RawOutcome(termination, assignment, bound, highs.modelStatusToString(status), statistics)


BACKEND = HighsBackend
