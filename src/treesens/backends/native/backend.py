"""The native engine as a backend: in-process, exact, anytime."""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction
from typing import ClassVar

import numpy as np

from treesens.backends.base import (
    Artifact,
    Capabilities,
    InProcessBackend,
    Limits,
    OnIncumbent,
    Proof,
    RawOutcome,
    Termination,
    Trace,
)
from treesens.backends.native.adapter import Adapted, adapt
from treesens.backends.native.solver import SearchResult, Solver
from treesens.compiler.base.arrays import Int32Array
from treesens.compiler.base.budget import Budget, StopEvent
from treesens.compiler.base.dyadic import Unit, nearest_double
from treesens.compiler.base.floats import NumberType, ceil_to
from treesens.compiler.ir import Equal, Module
from treesens.compiler.ir.evaluate import satisfies
from treesens.compiler.passes.base import Chain, Postsolve
from treesens.compiler.passes.share_copies import ShareCopies
from treesens.compiler.passes.unaffected_leaves import UnaffectedLeaves
from treesens.compiler.result import Moment, NearMiss


@dataclass(frozen=True)
class NativeArtifact(Artifact):
    """Holds the engine's problem; no text is written. `postsolve` reverts the merging of copies done here.

    A module without variables is kept unchanged and is not searched.
    """

    module: Module | None = None
    adapted: Adapted | None = None
    postsolve: Postsolve | None = None
    merged_variables: int = 0
    merged: Module | None = None
    """The module from which `adapted` was made."""

    def value_of(self, told: float) -> float:
        assert self.adapted is not None
        whole = (int(told) << self.adapted.objective_dropped) + self.adapted.objective_constant
        return nearest_double(Unit(self.adapted.objective_shift).value(whole))


class NativeBackend(InProcessBackend):
    name: ClassVar[str] = "native"
    capabilities: ClassVar[Capabilities] = Capabilities(
        proof=Proof.EXACT,
        warm_start=True,
        native_ops=frozenset({"LeafImplies", "LeafSum", "Clauses", "Linear", "Membership", "Facts"}),
        rewrites={"Equal": "equal copies are merged into one (unaffected-leaves, share-copies)"},
    )

    def available(self) -> str | None:
        return None

    def emit(
        self, module: Module, *, precision: int = 0, hints: Int32Array | None = None, alike: bool = False
    ) -> Artifact:
        """As `Backend.emit`; `hints`, int32[H, points, features], are tried first; with `alike`, score rows share a unit."""
        del precision
        asked = module
        if module.variables == 0:
            return NativeArtifact("native", "", 0, has_objective=False, module=module)
        steps: list[Postsolve] = []
        if any(True for _ in module.ops_of(Equal)):
            for step in (UnaffectedLeaves(), ShareCopies()):
                result = step.run(module)
                module = result.module
                steps.append(result.postsolve)
        adapted = adapt(module, hints, alike=alike)
        return NativeArtifact(
            "native",
            "",
            asked.variables,
            has_objective=adapted.problem.objective,
            relaxed=adapted.relaxed,
            adapted=adapted,
            postsolve=Chain(tuple(steps)),
            merged_variables=module.variables,
            merged=module,
        )

    def solve(
        self,
        artifact: Artifact,
        limits: Limits,
        on_incumbent: OnIncumbent | None = None,
        stop: StopEvent | None = None,
    ) -> RawOutcome:
        assert isinstance(artifact, NativeArtifact)
        if artifact.module is not None:
            nothing = np.zeros(0, bool)
            holds = bool(satisfies(artifact.module, nothing[None, :])[0])
            return RawOutcome(Termination.SATISFIED, nothing) if holds else RawOutcome(Termination.INFEASIBLE)
        assert artifact.adapted is not None
        adapted = artifact.adapted
        mode = "objective" if adapted.problem.objective else "decide"
        try:
            solver = Solver(
                adapted.problem,
                mode=mode,  # type: ignore[arg-type]
                seed=limits.seed,
                max_bytes=limits.memory,
                threads=limits.threads,
            )
        except MemoryError as error:
            return RawOutcome(Termination.MEMORY, detail=str(error))
        except ValueError as error:
            # The engine checks its input: a pipeline that drops reachable leaves leaves gaps between boxes.
            return RawOutcome(Termination.UNSUPPORTED, detail=str(error))
        set_gap(solver, adapted, limits)
        moments: list[Moment] = []
        trace = Trace(artifact, moments.append)

        def look(found: SearchResult) -> None:
            trace(found.upper, found.level if found.is_witness else None)

        watched = limits.watch and adapted.problem.objective
        result = solver.run_within(Budget.of(limits.seconds, stop), look if watched else None)
        trace.end()
        return replace(self._outcome(artifact, adapted, result), trajectory=tuple(moments) or None)

    def _outcome(self, artifact: NativeArtifact, adapted: Adapted, result: SearchResult) -> RawOutcome:
        if result.reason == "internal":
            # An inconsistent search result is discarded, including its point.
            return RawOutcome(Termination.CRASH, detail=f"internal error of the native engine: {result.fault}")
        assignment = None
        if result.assignment is not None and result.is_witness:
            assignment = adapted.assignment(result.assignment, artifact.merged_variables)
            assert artifact.postsolve is not None
            assignment = artifact.postsolve.recover(assignment)
        termination = {
            "witness": Termination.SATISFIED,
            "infeasible": Termination.INFEASIBLE,
            "optimal": Termination.OPTIMAL,
            "open": {"memory": Termination.MEMORY, "stopped": Termination.INTERRUPTED}.get(
                result.reason, Termination.TIME
            ),
        }[result.status]
        bound = None
        if adapted.problem.objective and result.upper is not None:
            whole = (int(result.upper) << adapted.objective_dropped) + adapted.objective_constant
            exact = Unit(adapted.objective_shift).value(whole)
            rounded = result.status != "optimal" or adapted.objective_dropped > 0
            bound = ceil_to(exact, NumberType.FLOAT64) if rounded else nearest_double(exact)
        statistics = result.statistics
        numbers = {
            "nodes": float(statistics.nodes),
            "restarts": float(statistics.restarts),
            "local_seconds": statistics.seconds_local,
            "prove_seconds": statistics.seconds_prove,
        }
        near = None
        # Rounded rows have different units, and so may other rows.
        comparable = adapted.coarsest_shift == adapted.gap_shift and not adapted.relaxed
        if result.status == "open" and not adapted.problem.objective and comparable:
            unit = Unit(adapted.gap_shift)
            ends = (None if end is None else unit.nearest(end) for end in (result.level, result.upper))
            near = NearMiss(*ends)
        detail = f"at bound level `{result.bound_level}`" if result.status == "open" else ""
        return RawOutcome(termination, assignment, bound, detail, numbers, near)


def set_gap(solver: Solver, adapted: Adapted, limits: Limits) -> None:
    """The engine's tolerance for the bound, in the engine's units."""
    unit = Unit(adapted.objective_shift - adapted.objective_dropped)
    reference = (adapted.objective_constant >> adapted.objective_dropped) + unit.floor(Fraction(limits.offset))
    absolute = min(unit.floor(Fraction(limits.tolerance.absolute)), 2**62)
    # Slightly below the tolerance, because displayed values are rounded.
    relative = limits.tolerance.relative * (1 - 1e-6)
    solver.set_gap(relative=relative, absolute=max(1, absolute), reference=max(-(2**62), min(reference, 2**62)))
