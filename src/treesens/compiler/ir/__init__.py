"""The constraint IR."""

from treesens.compiler.ir.literals import FALSE, TRUE
from treesens.compiler.ir.module import FeatureInfo, Module
from treesens.compiler.ir.ops import (
    Clauses,
    Equal,
    Facts,
    LeafImplies,
    LeafSum,
    Linear,
    Membership,
    Objective,
    Op,
    Start,
)
from treesens.compiler.ir.types import Block, Bool, ExactlyOne, Order

__all__ = [
    "FALSE",
    "TRUE",
    "Block",
    "Bool",
    "Clauses",
    "Equal",
    "ExactlyOne",
    "Facts",
    "FeatureInfo",
    "LeafImplies",
    "LeafSum",
    "Linear",
    "Membership",
    "Module",
    "Objective",
    "Op",
    "Order",
    "Start",
]
