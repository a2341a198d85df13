"""Gurobi through gurobipy. pip's licence is limited to 2000 variables and rows: larger models are `unknown (licence)`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from treesens.backends.base import EMPTY, Artifact, Limits, OnIncumbent, RawOutcome, Termination, missing_module
from treesens.backends.milp import FEASIBILITY, INTEGRALITY, MilpBackend, mps_file, round_values, upper_bound

_SIZE_LIMITED = 10010
"""GRB_ERROR_SIZE_LIMIT_EXCEEDED."""
_NO_LICENCE = 10009


class GurobiBackend(MilpBackend):
    name: ClassVar[str] = "gurobi"
    packages: ClassVar[tuple[str, ...]] = ("gurobipy",)
    modules: ClassVar[tuple[str, ...]] = ("gurobipy",)
    reserved: ClassVar[frozenset[str]] = frozenset({
        "OutputFlag", "TimeLimit", "Threads", "Seed", "FeasibilityTol", "IntFeasTol", "SoftMemLimit", "MemLimit",
        "SolutionLimit", "Cutoff", "BestObjStop", "BestBdStop"
    })  # fmt: skip

    def available(self) -> str | None:
        return missing_module("gurobipy", "gurobi")

    def fresh(self) -> Any:
        import gurobipy as grb

        return grb.Model(env=grb.Env(params={"OutputFlag": 0}))

    def known_options(self, solver: Any) -> Mapping[str, type]:
        return {name: type_of for name in self.options if (type_of := _type_of(solver, name)) is not None}

    def set_option(self, solver: Any, name: str, value: bool | int | float | str) -> bool:
        solver.setParam(name, value)
        return True

    def solve(self, artifact: Artifact, limits: Limits, on_incumbent: OnIncumbent | None = None) -> RawOutcome:
        import gurobipy as grb

        if (answered := self.at_start(artifact, limits)) is not None:
            return answered
        try:
            with (
                grb.Env(params={"OutputFlag": int(limits.log is not None)}) as environment,
                mps_file(artifact) as path,
                grb.read(str(path), env=environment) as model,
            ):
                return self._solve(model, artifact, limits, on_incumbent)
        except grb.GurobiError as error:
            if error.errno in {_SIZE_LIMITED, _NO_LICENCE}:
                return RawOutcome(Termination.LICENCE, detail=str(error))
            return RawOutcome(Termination.CRASH, detail=str(error))

    def _solve(self, model: object, artifact: Artifact, limits: Limits, on_incumbent: OnIncumbent | None) -> RawOutcome:
        import gurobipy as grb

        assert isinstance(model, grb.Model)
        if not model.NumVars:
            return EMPTY
        real = artifact.optimises
        model.Params.TimeLimit = limits.seconds
        model.Params.Threads = limits.threads
        model.Params.Seed = limits.seed
        model.Params.FeasibilityTol = FEASIBILITY
        model.Params.IntFeasTol = INTEGRALITY
        if limits.memory is not None:
            model.Params.SoftMemLimit = limits.memory / 1e9
        if not real:
            model.Params.SolutionLimit = 1
        self.configure(model)
        columns = model.getVars()
        if artifact.warm_start is not None:
            for column, value in zip(columns, artifact.warm_start, strict=False):  # an empty module has one idle column
                column.Start = float(value)

        def improved(running: grb.Model, where: int) -> None:
            if where == grb.GRB.Callback.MIPSOL and on_incumbent is not None:
                on_incumbent(round_values(running.cbGetSolution(columns)))
            if where == grb.GRB.Callback.MIP and limits.watch:
                limits.report(*map(running.cbGet, (grb.GRB.Callback.MIP_OBJBND, grb.GRB.Callback.MIP_OBJBST)))

        model.optimize(improved if real and (on_incumbent is not None or limits.watch) else None)
        status = model.Status
        assignment = round_values(model.getAttr("X", columns))[: artifact.variables] if model.SolCount else None
        bound = upper_bound(model.ObjBound, artifact) if real and status != grb.GRB.INFEASIBLE else None
        limits.report(None if bound is None else model.ObjBound, model.ObjVal if model.SolCount else None)
        termination = {
            grb.GRB.OPTIMAL: Termination.OPTIMAL if real else Termination.SATISFIED,
            grb.GRB.INFEASIBLE: Termination.INFEASIBLE,
            grb.GRB.SOLUTION_LIMIT: Termination.SATISFIED,
            grb.GRB.TIME_LIMIT: Termination.TIME,
            grb.GRB.MEM_LIMIT: Termination.MEMORY,
        }.get(status, Termination.UNKNOWN)
        return RawOutcome(termination, assignment, bound, f"status {status}", {"nodes": float(model.NodeCount)})


def _type_of(model: Any, name: str) -> type | None:
    """The type of a parameter's value; None if Gurobi has no such parameter. Gurobi itself ignores case."""
    info = model.getParamInfo(name)
    return info[1] if info is not None else None


BACKEND = GurobiBackend
