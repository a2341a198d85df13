"""The constraint IR."""

from treesens.compiler.ir.module import FALSE, TRUE, Block, Bool, ExactlyOne, FeatureInfo, Module, Order
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
