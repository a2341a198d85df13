"""Every field of LightGBM's text (v2 to v4) and of its JSON dump."""

from treesens.frontends.known_fields import ANY, Table, inside, irrelevant, used

_COUNTED = irrelevant(
    "what training has counted",
    ("internal_count", "internal_value", "internal_weight", "leaf_count", "leaf_weight", "split_gain"),
)
_SCALED = irrelevant("it is in the leaf values already", ("shrinkage",))
_MODEL = {
    **used("average_output", "feature_infos", "feature_names", "max_feature_idx", "num_tree_per_iteration"),
    **used("objective", "version"),
    **irrelevant("the number of trees per iteration counts", ("num_class",)),
    **used("monotone_constraints"),
    **irrelevant("the column of the label", ("label_index",)),
}
_LINEAR = used("is_linear", "leaf_const", "leaf_coeff", "leaf_features", "leaf_features_inner", "num_features")

TABLE: Table = {
    "header": {**_MODEL, **used("tree", "tree_sizes")},
    "tree": {
        **used("Tree", "cat_boundaries", "cat_threshold", "decision_type", "leaf_value", "left_child", "num_cat"),
        **used("num_leaves", "right_child", "split_feature", "threshold"),
        **_LINEAR,
        **_COUNTED,
        **_SCALED,
    },
    "model": {
        **_MODEL,
        **used("pandas_categorical"),
        "tree_info": inside("json_tree"),
        **irrelevant("the word `tree`, and how often features split", ("name", "feature_importances")),
    },
    "json_tree": {
        **used("num_leaves", "num_cat"),
        "tree_structure": inside("node"),
        **irrelevant("its place", ("tree_index",)),
        **_SCALED,
    },
    "node": {
        **used("decision_type", "default_left", "leaf_index", "leaf_value", "missing_type", "split_feature"),
        **used("split_index", "threshold"),
        **_LINEAR,
        "left_child": inside("node"),
        "right_child": inside("node"),
        **_COUNTED,
    },
    # After the trees: names and counts, the parameters of training, and the categories of pandas.
    "after": {**used("pandas_categorical"), **irrelevant("importances and parameters of training", (ANY,))},
}
