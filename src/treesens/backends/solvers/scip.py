"""SCIP through pyscipopt."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, ClassVar

from treesens.backends.base import (
    NOTHING_READ,
    Artifact,
    Limits,
    OnIncumbent,
    RawOutcome,
    Termination,
    missing_module,
)
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
        if (answered := self.at_start(artifact, limits)) is not None:
            return answered
        real = artifact.optimises
        model = self.fresh()
        model.hideOutput(limits.log is None)
        with mps_file(artifact) as path:
            model.readProblem(str(path))
        if not model.getNVars():
            return NOTHING_READ
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
        if limits.watch:
            _watch(model, lambda: limits.report(model.getDualbound(), model.getPrimalbound()))
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


def _watch(model: Any, look: Callable[[], None]) -> None:
    """Calls `look` at every better solution or bound."""
    from pyscipopt import SCIP_EVENTTYPE, Eventhdlr

    events = (SCIP_EVENTTYPE.BESTSOLFOUND, SCIP_EVENTTYPE.DUALBOUNDIMPROVED)

    class Watcher(Eventhdlr):  # type: ignore[misc]
        def eventinit(self) -> None:
            for event in events:
                self.model.catchEvent(event, self)

        def eventexit(self) -> None:
            for event in events:
                self.model.dropEvent(event, self)

        def eventexec(self, _event: object) -> None:
            look()

    model.includeEventhdlr(Watcher(), "watch", "bound and incumbent over time")


BACKEND = ScipBackend
