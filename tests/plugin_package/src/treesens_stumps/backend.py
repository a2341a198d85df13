"""brute: tries every combination of cells. Exact, for small modules."""

from __future__ import annotations

from typing import ClassVar

from treesens.backends.base import Artifact, Backend, Capabilities, Limits, OnIncumbent, Proof, RawOutcome, Termination
from treesens.compiler.ir import Module
from treesens.compiler.ir.evaluate import brute_force
from treesens.compiler.ir.text import parse_module, print_module
from treesens.errors import UsageError

COMBINATIONS = 100_000


class BruteBackend(Backend):
    name: ClassVar[str] = "brute"
    capabilities: ClassVar[Capabilities] = Capabilities(
        proof=Proof.EXACT,
        native_ops=frozenset({"LeafImplies", "LeafSum", "Equal", "Clauses", "Linear", "Membership", "Facts"}),
    )

    def available(self) -> str | None:
        return None

    def emit(self, module: Module, *, precision: int = 0) -> Artifact:
        real = module.objective is not None and not module.objective.surrogate
        return Artifact("sir", print_module(module, full=True), module.variables, has_objective=real)

    def solve(self, artifact: Artifact, limits: Limits, on_incumbent: OnIncumbent | None = None) -> RawOutcome:
        try:
            found = brute_force(parse_module(artifact.text), COMBINATIONS)
        except UsageError as error:
            return RawOutcome(Termination.UNSUPPORTED, detail=error.message)
        if found.assignment is None:
            return RawOutcome(Termination.INFEASIBLE)
        optimal = artifact.has_objective
        return RawOutcome(Termination.OPTIMAL if optimal else Termination.SATISFIED, found.assignment)
