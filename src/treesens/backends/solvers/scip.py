"""SCIP through pyscipopt."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from treesens.backends.base import EMPTY, Artifact, Limits, OnIncumbent, RawOutcome, Termination, missing_module
from treesens.backends.milp import FEASIBILITY, MilpBackend, mps_file, round_values, upper_bound


class ScipBackend(MilpBackend):
    name: ClassVar[str] = "scip"
    packages: ClassVar[tuple[str, ...]] = ("pyscipopt",)
    reserved: ClassVar[frozenset[str]] = frozenset({
        "limits/time", "limits/memory", "limits/solutions", "numerics/feastol", "randomization/randomseedshift"
    })  # fmt: skip
    modules: ClassVar[tuple[str, ...]] = ("pyscipopt",)

    def available(self) -> str | None:
        return missing_module("pyscipopt", "scip")

    def fresh(self) -> Any:
        from pyscipopt import Model

        model = Model()
        model.hideOutput()
        return model

    def known_options(self, solver: Any) -> Mapping[str, type]:
        return {name: type(value) for name, value in solver.getParams().items()}

    def set_option(self, solver: Any, name: str, value: bool | int | float | str) -> bool:
        solver.setParam(name, value)
        return True

    def solve(self, artifact: Artifact, limits: Limits, on_incumbent: OnIncumbent | None = None) -> RawOutcome:
        from pyscipopt import SCIP_EVENTTYPE

        if (answered := self.at_start(artifact, limits)) is not None:
            return answered
        real = artifact.optimises
        model = self.fresh()
        model.hideOutput(limits.log is None)
        with mps_file(artifact) as path:
            model.readProblem(str(path))
        if not model.getNVars():
            return EMPTY
        model.setParam("limits/time", limits.seconds)
        model.setParam("numerics/feastol", FEASIBILITY)
        model.setParam("randomization/randomseedshift", limits.seed)
        if limits.memory is not None:
            model.setParam("limits/memory", limits.memory / 1e6)
        if not real:
            model.setParam("limits/solutions", 1)
        self.configure(model)
        if artifact.warm_start is not None:
            start = model.createSol()
            by_name = {v.name: v for v in model.getVars()}
            for name, value in zip(artifact.names, artifact.warm_start, strict=True):
                model.setSolVal(start, by_name[name], float(value))
            model.addSol(start)
        if limits.watch and hasattr(model, "attachEventHandlerCallback"):  # not in the first versions of 5
            better = [e for name in ("BESTSOLFOUND", "DUALBOUNDIMPROVED") if (e := getattr(SCIP_EVENTTYPE, name, None))]
            model.attachEventHandlerCallback(
                lambda running, _event: limits.report(running.getDualbound(), running.getPrimalbound()), better
            )
        model.optimize()
        status = model.getStatus()
        assignment = None
        if model.getNSols():
            best = model.getBestSol()
            values = {v.name: model.getSolVal(best, v) for v in model.getVars(transformed=False)}
            assignment = round_values([values[name] for name in artifact.names])
        bound = upper_bound(model.getDualbound(), artifact) if real and status != "infeasible" else None
        if bound is not None:
            limits.report(model.getDualbound(), model.getPrimalbound())
        if status == "infeasible":
            termination = Termination.INFEASIBLE
        elif status == "optimal":
            termination = Termination.OPTIMAL if real else Termination.SATISFIED
        elif assignment is not None and not real:
            termination = Termination.SATISFIED
        else:
            termination = {"timelimit": Termination.TIME, "memlimit": Termination.MEMORY}.get(
                status, Termination.UNKNOWN
            )
        return RawOutcome(termination, assignment, bound, status, {"nodes": float(model.getNTotalNodes())})


BACKEND = ScipBackend
