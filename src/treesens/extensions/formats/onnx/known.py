"""Every attribute of ONNX's TreeEnsembleClassifier and TreeEnsembleRegressor (ai.onnx.ml 1 to 3)."""

from treesens.frontends.documents import Table, irrelevant, optional, refused, used

_COMMON = {
    **used(
        "nodes_falsenodeids", "nodes_featureids", "nodes_modes", "nodes_nodeids", "nodes_treeids", "nodes_truenodeids"
    ),
    **used("nodes_values"),
    **optional("0", used("base_values")),
    **optional("NONE", used("post_transform")),
    **optional("missing values go to the false node", used("nodes_missing_value_tracks_true")),
    **irrelevant("training counts of nodes", ("nodes_hitrates", "nodes_hitrates_as_tensor")),
    **refused("values in double precision are not supported", ("base_values_as_tensor", "nodes_values_as_tensor")),
}
TABLE: Table = {
    "Scaler": optional("without both, numbers are unchanged", used("offset", "scale")),
    "Imputer": {
        **optional("the Imputer is for integers", used("imputed_value_floats")),
        **optional("the Imputer replaces 0", used("replaced_value_float")),
        **refused("an Imputer for integers is not supported", ("imputed_value_int64s",)),
        **irrelevant("the columns are floats", ("replaced_value_int64",)),
    },
    "Identity": {},
    "arithmetic": {},
    "Cast": {**used("to"), **irrelevant("concerns 8-bit floats only", ("saturate", "round_mode"))},
    "TreeEnsembleClassifier": {
        **_COMMON,
        **used("class_ids", "class_nodeids", "class_treeids", "class_weights"),
        **optional("the class labels are of the other type", used("classlabels_int64s", "classlabels_strings")),
        **refused("values in double precision are not supported", ("class_weights_as_tensor",)),
    },
    "TreeEnsembleRegressor": {
        **_COMMON,
        **used("n_targets", "target_ids", "target_nodeids", "target_treeids", "target_weights"),
        **optional("SUM", used("aggregate_function")),
        **refused("values in double precision are not supported", ("target_weights_as_tensor",)),
    },
}
