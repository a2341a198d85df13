"""Every attribute of ONNX's TreeEnsembleClassifier and TreeEnsembleRegressor (ai.onnx.ml 1 to 3)."""

from treesens.frontends.known_fields import Table, irrelevant, refused, used

_COMMON = {
    **used(
        "base_values", "post_transform", "nodes_falsenodeids", "nodes_featureids", "nodes_missing_value_tracks_true"
    ),
    **used("nodes_modes", "nodes_nodeids", "nodes_treeids", "nodes_truenodeids", "nodes_values"),
    **irrelevant("how often a node was reached in training", ("nodes_hitrates", "nodes_hitrates_as_tensor")),
    **refused("values in double precision are not read", ("base_values_as_tensor", "nodes_values_as_tensor")),
}
TABLE: Table = {
    "Scaler": used("offset", "scale"),
    "Imputer": {
        **used("imputed_value_floats", "replaced_value_float"),
        **refused("an Imputer of whole numbers is not read", ("imputed_value_int64s",)),
        **irrelevant("numbers here are floats", ("replaced_value_int64",)),
    },
    "Identity": {},
    "arithmetic": {},
    "Cast": {**used("to"), **irrelevant("it is about floats of 8 bits", ("saturate", "round_mode"))},
    "TreeEnsembleClassifier": {
        **_COMMON,
        **used(
            "class_ids", "class_nodeids", "class_treeids", "class_weights", "classlabels_int64s", "classlabels_strings"
        ),
        **refused("values in double precision are not read", ("class_weights_as_tensor",)),
    },
    "TreeEnsembleRegressor": {
        **_COMMON,
        **used("aggregate_function", "n_targets", "target_ids", "target_nodeids", "target_treeids", "target_weights"),
        **refused("values in double precision are not read", ("target_weights_as_tensor",)),
    },
}
