"""Tree ensembles over integer cells."""

from treesens.compiler.model.cells import CellEnsemble, LeafBoxes
from treesens.compiler.model.ensemble import Ensemble
from treesens.compiler.model.grid import Comparison, FeatureGrid, Grid, strict_cut, strict_cut_array
from treesens.compiler.model.kinds import Accumulation, Feature, FeatureKind, ModelSource, Task

__all__ = [
    "Accumulation",
    "CellEnsemble",
    "Comparison",
    "Ensemble",
    "Feature",
    "FeatureGrid",
    "FeatureKind",
    "Grid",
    "LeafBoxes",
    "ModelSource",
    "Task",
    "strict_cut",
    "strict_cut_array",
]
