"""A plug-in with planted faults: backends that are CP-SAT except for modules with some property, and passes that raise."""

from __future__ import annotations

import os
import signal
import time
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from treesens.backends.base import Artifact, Limits, OnIncumbent, RawOutcome, Termination
from treesens.backends.solvers.cpsat import CpSatBackend
from treesens.compiler.ir import LeafSum, Linear, Membership, Module
from treesens.compiler.ir.module import ExactlyOne, Order
from treesens.compiler.ir.text import parse_module, print_module
from treesens.compiler.passes.base import PassResult, Relation
from treesens.errors import IRError


def has_feature(module: Module, name: str) -> bool:
    """Whether a model splits on the feature where cells differ."""
    return any(module.features[o.feature].name == name and len(o.variables) for o in module.blocks_of(Order))


def has_deep_tree(module: Module) -> bool:
    return any(np.diff(block.offset).max(initial=0) >= 3 for block in module.blocks_of(ExactlyOne))


def has_large_leaf(module: Module) -> bool:
    """Whether a row has a coefficient of more than 0.1."""
    rows = (op for op in module.ops_of(Linear) if len(op.coefficients))
    return any(max(abs(int(c)) for c in op.coefficients) / 2.0**op.shift > 0.1 for op in rows)


class Faulty(CpSatBackend):
    """CP-SAT with a fault for modules that are `wrong`; the module goes to the solver as text of the IR."""

    def wrong(self, module: Module) -> bool:
        raise NotImplementedError

    def fault(self, module: Module, limits: Limits) -> RawOutcome:
        return RawOutcome(Termination.INFEASIBLE)

    def emit(self, module: Module, *, precision: int = 0) -> Artifact:
        real = module.objective is not None and not module.objective.surrogate
        return Artifact("sir", print_module(module, full=True), module.variables, has_objective=real)

    def solve(self, artifact: Artifact, limits: Limits, on_incumbent: OnIncumbent | None = None) -> RawOutcome:
        module = parse_module(artifact.text)
        return self.fault(module, limits) if self.wrong(module) else self.right(module, limits)

    def right(self, module: Module, limits: Limits) -> RawOutcome:
        return super().solve(super().emit(module), limits)


class NoneForFeature(Faulty):
    name = "none-for-feature"

    def wrong(self, module: Module) -> bool:
        return has_feature(module, "c")


class NoneForDeepTree(Faulty):
    name = "none-for-deep-tree"

    def wrong(self, module: Module) -> bool:
        return has_deep_tree(module)


class NoneForLargeLeaf(Faulty):
    name = "none-for-large-leaf"

    def wrong(self, module: Module) -> bool:
        return has_large_leaf(module) and has_feature(module, "b")


class WorseOptimum(Faulty):
    """Any solution counts as the best."""

    name = "worse-optimum"

    def wrong(self, module: Module) -> bool:
        return module.optimises and has_feature(module, "a")

    def fault(self, module: Module, limits: Limits) -> RawOutcome:
        found = self.right(replace(module, objective=None), limits)
        return replace(found, termination=Termination.OPTIMAL) if found.assignment is not None else found


class Dies(NoneForFeature):
    name = "dies"

    def fault(self, module: Module, limits: Limits) -> RawOutcome:
        os.kill(os.getpid(), signal.SIGKILL)
        raise AssertionError


class Sleeps(NoneForLargeLeaf):
    name = "sleeps"

    def fault(self, module: Module, limits: Limits) -> RawOutcome:
        time.sleep(1)
        return self.right(module, limits)


class GivesUp(NoneForDeepTree):
    name = "gives-up"

    def fault(self, module: Module, limits: Limits) -> RawOutcome:
        return RawOutcome(Termination.NUMERICAL, detail="planted")


@dataclass(frozen=True)
class Explodes:
    name: ClassVar[str] = "explodes"
    relation: ClassVar[Relation] = Relation.EQUIVALENT

    def run(self, module: Module) -> PassResult:
        for op in module.ops_of(Membership):
            raise RuntimeError(f"planted: {len(op.members)} members")
        return PassResult(module)


@dataclass(frozen=True)
class Refuses:
    name: ClassVar[str] = "refuses"
    relation: ClassVar[Relation] = Relation.EQUIVALENT

    def run(self, module: Module) -> PassResult:
        if any(len(op.leaves) for op in module.ops_of(LeafSum)) and has_feature(module, "d"):
            raise IRError("planted")
        return PassResult(module)


BACKENDS = (NoneForFeature, NoneForDeepTree, NoneForLargeLeaf, WorseOptimum, Dies, Sleeps, GivesUp)
PASSES = (Explodes, Refuses)
