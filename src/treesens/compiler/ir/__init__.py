"""The constraint IR."""

from treesens.compiler.ir.literals import FALSE, TRUE
from treesens.compiler.ir.module import FeatureInfo, Module
from treesens.compiler.ir.ops import Clause, Const, Equal, LeafSum, Linear, Objective, Op, Path, Start, Table
from treesens.compiler.ir.types import Block, Bool, Order, Unit

__all__ = [
    "FALSE",
    "TRUE",
    "Block",
    "Bool",
    "Clause",
    "Const",
    "Equal",
    "FeatureInfo",
    "LeafSum",
    "Linear",
    "Module",
    "Objective",
    "Op",
    "Order",
    "Path",
    "Start",
    "Table",
    "Unit",
]
