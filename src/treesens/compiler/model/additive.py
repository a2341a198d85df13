"""Whether the trees of a model may fall apart into groups that share no feature."""

from __future__ import annotations

from treesens.compiler.model.cells import CellEnsemble

MOST_FEATURES_OF_A_TREE = 3
"""Of the first tree of an additive model: a look at it says of most models that they are not."""


def may_be_additive(model: CellEnsemble) -> bool:
    """Whether the first tree asks for so few features that trees may fall apart; cheap, and no promise."""
    if model.n_trees == 0:
        return False
    last = int(model.root[1]) if model.n_trees > 1 else len(model.feature)
    features = model.feature[int(model.root[0]) : last]
    return len(set(features[features >= 0][:64].tolist())) <= MOST_FEATURES_OF_A_TREE
