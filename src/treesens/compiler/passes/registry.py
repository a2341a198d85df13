"""All passes by name: built-in passes, and passes of plug-ins (entry points `treesens.passes`)."""

from __future__ import annotations

from typing import Final

from treesens.compiler.base.plugins import Registry
from treesens.errors import PipelineError

_HERE = "treesens.compiler.passes"

PASSES: Final = Registry(
    kind="pass",
    group="treesens.passes",
    builtin={
        "share-copies": f"{_HERE}.share_copies:ShareCopies",
        "unaffected-leaves": f"{_HERE}.unaffected_leaves:UnaffectedLeaves",
        "aff-reduce": f"{_HERE}.aff_reduce:AffReduce",
        "gap-objective": f"{_HERE}.gap_objective:GapObjective",
        "order-predicates": f"{_HERE}.order_predicates:OrderPredicates",
        "merge-guards": f"{_HERE}.merge_guards:MergeGuards",
        "drop-dead": f"{_HERE}.drop_dead:DropDead",
        "leaf-rows": f"{_HERE}.leaf_rows:LeafRows",
        "score-bounds": f"{_HERE}.score_bounds:ScoreBounds",
        "bound-fixing": "treesens.backends.native.passes.bound_fixing:BoundFixing",
        "warm-start": "treesens.backends.native.passes.warm_start:WarmStart",
    },
    error=PipelineError,
)
