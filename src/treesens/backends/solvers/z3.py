"""z3 on SMT-LIB 2 text: exact integers, so `unsat` is exact. `unknown` of z3 is `unknown`, never a verdict."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
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
from treesens.backends.text.smt2 import write_smt2
from treesens.compiler.base.dyadic import nearest_double
from treesens.compiler.ir import Module


class Z3Backend(Backend):
    name: ClassVar[str] = "z3"
    packages: ClassVar[tuple[str, ...]] = ("z3-solver",)
    modules: ClassVar[tuple[str, ...]] = ("z3",)
    reads: ClassVar[tuple[str, ...]] = ("smt2",)
    reserved: ClassVar[frozenset[str]] = frozenset({"timeout", "random_seed"})
    capabilities: ClassVar[Capabilities] = Capabilities(
        proof=Proof.EXACT,
        warm_start=True,
        native_ops=frozenset({"LeafImplies", "Equal", "Clauses", "Facts", "Linear"}),
        rewrites={"LeafSum": "l -> g for every leaf of a row; exactly one leaf per tree implies the rest"},
    )

    def available(self) -> str | None:
        return missing_module("z3", package="z3-solver")

    def fresh(self) -> Any:
        import z3

        return z3.Solver()

    def known_options(self, solver: Any) -> Mapping[str, type]:
        """The options of z3's solver or optimiser; names of the two differ."""
        found = solver.param_descrs()
        kinds = {0: int, 1: bool, 2: float}  # Z3_param_kind: uint, bool, double; all others are names
        names = (found.get_name(i) for i in range(found.size()))
        return {name: kinds.get(found.get_kind(name), str) for name in names}

    def set_option(self, solver: Any, name: str, value: bool | int | float | str) -> bool:
        solver.set(name, value)
        return True

    def emit(self, module: Module, *, precision: int = 0) -> Artifact:
        return write_smt2(module, precision=precision)

    def solve(self, artifact: Artifact, limits: Limits, on_incumbent: OnIncumbent | None = None) -> RawOutcome:
        import z3

        optimise = artifact.optimises
        solver = z3.Optimize() if optimise else z3.Solver()
        solver.set("timeout", int(limits.seconds * 1000))
        if not optimise:
            solver.set("random_seed", limits.seed)
        self.configure(solver)
        solver.from_string(artifact.text)
        if not solver.assertions() and "(check-sat)" not in artifact.text:
            return EMPTY
        answer = z3.unknown
        if artifact.warm_start is not None and not optimise:
            names = [z3.Bool(name) for name in artifact.names]
            answer = solver.check(
                *(x if value else z3.Not(x) for x, value in zip(names, artifact.warm_start, strict=True))
            )
        started = answer == z3.sat
        if not started:
            answer = solver.check()
        told = solver.statistics()
        statistics = {n: float(told.get_key_value(n)) for n in ("conflicts", "decisions") if n in told.keys()}  # noqa: SIM118
        if answer == z3.unsat:
            return RawOutcome(Termination.INFEASIBLE, statistics=statistics)
        reason = solver.reason_unknown() if answer == z3.unknown else "the start" if started else ""
        assignment = None
        if answer == z3.sat:
            model = solver.model()
            true = {d.name() for d in model.decls() if z3.is_true(model[d])}
            assignment = np.array([name in true for name in artifact.names], bool)
            if optimise and len(goals := solver.objectives()) == 1:
                value = model.eval(goals[0], model_completion=True)  # z3 minimises the negation of what is maximised
                if z3.is_int_value(value) or z3.is_rational_value(value):
                    reached = nearest_double(Fraction(value.as_string())) * (-1 if "(maximize" in artifact.text else 1)
                    limits.report(reached, reached)
        if not optimise:
            termination = Termination.SATISFIED if answer == z3.sat else _reason(reason)
            return RawOutcome(termination, assignment, None, reason, statistics)
        # z3's optimum is exact: the bound is the value of its assignment, computed in exact arithmetic.
        ended = Termination.OPTIMAL if answer == z3.sat else _reason(reason)
        return RawOutcome(ended, assignment, None, reason, statistics)


def _reason(words: str) -> Termination:
    if "timeout" in words or "canceled" in words:
        return Termination.TIME
    return Termination.MEMORY if "memory" in words else Termination.UNKNOWN


BACKEND = Z3Backend
