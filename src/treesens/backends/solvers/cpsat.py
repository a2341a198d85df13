"""CP-SAT of OR-tools: integer arithmetic throughout, so `infeasible` is exact (rows are rounded outward)."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from math import inf, isfinite, nextafter
from typing import Any, ClassVar

import numpy as np

from treesens.backends.base import (
    EMPTY,
    Artifact,
    Backend,
    Capabilities,
    Limits,
    OnIncumbent,
    Proof,
    RawOutcome,
    Termination,
    missing_module,
)
from treesens.backends.text.cpsat import write_cpsat
from treesens.compiler.base.dyadic import Unit, nearest_double
from treesens.compiler.base.floats import NumberType, ceil_to
from treesens.compiler.ir import Module


class CpSatBackend(Backend):
    name: ClassVar[str] = "cpsat"
    packages: ClassVar[tuple[str, ...]] = ("ortools",)
    modules: ClassVar[tuple[str, ...]] = ("ortools.sat.python.cp_model",)
    reads: ClassVar[tuple[str, ...]] = ("mps",)
    reserved: ClassVar[frozenset[str]] = frozenset({
        "max_time_in_seconds", "max_deterministic_time", "num_workers", "num_search_workers", "random_seed",
        "relative_gap_limit", "absolute_gap_limit", "stop_after_first_solution", "stop_after_presolve",
        "enumerate_all_solutions", "fix_variables_to_their_hinted_value"
    })  # fmt: skip
    capabilities: ClassVar[Capabilities] = Capabilities(
        proof=Proof.EXACT,
        warm_start=True,
        native_ops=frozenset({"LeafImplies", "Equal", "Clauses", "Facts", "Linear"}),
        rewrites={"LeafSum": "l -> g for every leaf of a row; exactly one leaf per tree implies the rest"},
    )

    def available(self) -> str | None:
        return missing_module("ortools")

    def fresh(self) -> Any:
        from ortools.sat.python import cp_model

        return cp_model.CpSolver()

    def known_options(self, solver: Any) -> Mapping[str, type]:
        return dict.fromkeys((name for name in dir(solver.parameters) if not name.startswith("_")), str)

    def set_option(self, solver: Any, name: str, value: bool | int | float | str) -> bool:
        return parsed(solver.parameters, f"{name}: {value}")

    def exact_precision(self) -> int:
        return 1

    def emit(self, module: Module, *, precision: int = 0) -> Artifact:
        return write_cpsat(module, precision=precision)

    def solve(self, artifact: Artifact, limits: Limits, on_incumbent: OnIncumbent | None = None) -> RawOutcome:
        from ortools.sat.python import cp_model

        if artifact.format == "mps":
            return self._solve_mps(artifact, limits)
        model = _model_of(artifact.text)
        if model is None:
            return RawOutcome(Termination.CRASH, detail="CP-SAT cannot read the emitted model")
        solver = self.fresh()
        solver.parameters.max_time_in_seconds = limits.seconds
        solver.parameters.num_workers = limits.threads
        solver.parameters.random_seed = limits.seed
        if artifact.optimises:
            solver.parameters.relative_gap_limit = limits.relative_gap(artifact)
            allowed = Unit(artifact.objective_shift - artifact.objective_dropped).count(
                Fraction(limits.tolerance.absolute)
            )
            solver.parameters.absolute_gap_limit = nearest_double(allowed)
        # A guide only orders the search: the first feasible point ends it.
        solver.parameters.stop_after_first_solution = artifact.surrogate
        # Presolve (mainly its probing) takes longer than deciding (docs/encodings.md).
        solver.parameters.cp_model_presolve = artifact.optimises
        solver.parameters.log_search_progress = limits.log is not None
        self.configure(solver)
        variables = [model.get_bool_var_from_proto_index(v) for v in range(artifact.variables)]

        if artifact.warm_start is not None:
            for variable, value in zip(variables, artifact.warm_start, strict=True):
                model.add_hint(variable, bool(value))
        if artifact.warm_start is not None and not artifact.optimises:
            # Any solution suffices: the start is tried first, without presolve or search.
            solver.parameters.fix_variables_to_their_hinted_value = True
            status = solver.solve(model)
            if status in {cp_model.OPTIMAL, cp_model.FEASIBLE}:
                point = np.array([solver.boolean_value(x) for x in variables], bool)
                return RawOutcome(Termination.SATISFIED, point, detail="the start")
            solver.parameters.fix_variables_to_their_hinted_value = False

        class Incumbents(cp_model.CpSolverSolutionCallback):  # type: ignore[misc]
            def on_solution_callback(self) -> None:
                limits.report(None, self.objective_value)
                if on_incumbent is not None:
                    on_incumbent(np.array(self.response_proto.solution, np.int64).astype(bool))

        # CP-SAT reports a bound of 0 if stopped before it begins: only bounds reported during the solve count.
        told: list[float] = []

        def bounded(bound: float) -> None:
            told.append(bound)
            limits.report(bound, None)

        solver.best_bound_callback = bounded
        status = solver.solve(model, Incumbents() if on_incumbent is not None and artifact.has_objective else None)
        assignment = None
        if status in {cp_model.OPTIMAL, cp_model.FEASIBLE}:
            assignment = np.array([solver.boolean_value(x) for x in variables], bool)
        bound = None
        if status in {cp_model.OPTIMAL, cp_model.FEASIBLE}:
            told.append(solver.best_objective_bound)
            limits.report(solver.best_objective_bound, solver.objective_value)
        if artifact.optimises and told:
            bound = _bound(told[-1], artifact)
        statistics = {"branches": float(solver.num_branches), "conflicts": float(solver.num_conflicts)}
        return RawOutcome(self._termination(status, artifact), assignment, bound, statistics=statistics)

    def _solve_mps(self, artifact: Artifact, limits: Limits) -> RawOutcome:
        """Solves an exported file, whose floats OR-tools itself scales to integers."""
        from ortools.linear_solver.python import model_builder

        model, solver = model_builder.Model(), model_builder.Solver("sat")
        if not model.import_from_mps_string(artifact.text):
            return RawOutcome(Termination.CRASH, detail="OR-tools cannot read the model")
        if not model.num_variables:
            return EMPTY
        own = {
            "num_workers": limits.threads,
            "random_seed": limits.seed,
            "relative_gap_limit": limits.tolerance.relative,
        }
        own |= {"absolute_gap_limit": limits.tolerance.absolute, "stop_after_first_solution": artifact.surrogate}
        parameters = {name: str(value).lower() for name, value in own.items()} | dict(self.options)
        solver.set_solver_specific_parameters(" ".join(f"{name}: {value}" for name, value in parameters.items()))
        solver.set_time_limit_in_seconds(limits.seconds)
        solver.enable_output(limits.log is not None)
        status = solver.solve(model)
        known = model_builder.SolveStatus
        if status in {known.OPTIMAL, known.FEASIBLE}:
            limits.report(solver.best_objective_bound, solver.objective_value)
            best = Termination.OPTIMAL if status == known.OPTIMAL else Termination.TIME
            ended = Termination.SATISFIED if artifact.surrogate else best
            return RawOutcome(ended, np.zeros(0, bool), detail=solver.status_string)
        others = {known.INFEASIBLE: Termination.INFEASIBLE, known.NOT_SOLVED: Termination.TIME}
        return RawOutcome(others.get(status, Termination.UNKNOWN), detail=solver.status_string)

    @staticmethod
    def _termination(status: int, artifact: Artifact) -> Termination:
        from ortools.sat.python import cp_model

        if status == cp_model.INFEASIBLE:
            return Termination.INFEASIBLE
        if status == cp_model.OPTIMAL and artifact.optimises:
            return Termination.OPTIMAL
        if status == cp_model.OPTIMAL or (status == cp_model.FEASIBLE and artifact.surrogate):
            return Termination.SATISFIED
        if status == cp_model.MODEL_INVALID:
            return Termination.CRASH
        return Termination.TIME


def _model_of(text: str) -> Any:
    """The model in a text; None if CP-SAT cannot parse the text."""
    from ortools.sat.python import cp_model

    model = cp_model.CpModel()
    if not parsed(model.proto, text):
        return None
    if not hasattr(model.proto, "parse_text_format"):
        model.rebuild_var_and_constant_map()  # before OR-tools 9.15, variables are stored separately
    return model


def parsed(message: Any, text: str) -> bool:
    """Reads a text into a message of OR-tools; False if the text does not parse."""
    if hasattr(message, "parse_text_format"):
        return bool(message.parse_text_format(text))
    # Before OR-tools 9.15, messages are those of protobuf.
    from google.protobuf import text_format

    try:
        text_format.Merge(text, message)
    except text_format.ParseError:
        return False
    return True


def _bound(told: float, artifact: Artifact) -> float:
    """The bound on the objective, from CP-SAT's bound `told`, a double near an integer number of rounded units."""
    if not isfinite(told):
        return told
    unit = Unit(artifact.objective_shift)
    exact = Fraction(nextafter(told, inf)) * Unit(artifact.objective_shift - artifact.objective_dropped).size
    return ceil_to(exact + unit.value(artifact.objective_constant), NumberType.FLOAT64)


BACKEND = CpSatBackend
