"""Every field of LightGBM's text (v2 to v4) and of its JSON dump."""

from treesens.frontends.documents import ANY, Table, inside, irrelevant, optional, used

_COUNTED = irrelevant(
    "counts from training",
    ("internal_count", "internal_value", "internal_weight", "leaf_count", "leaf_weight", "split_gain"),
)
_SCALED = irrelevant("already part of the leaf values", ("shrinkage",))
_MODEL = {
    **used("feature_names", "max_feature_idx", "num_tree_per_iteration", "version"),
    **optional("predictions are the raw scores", used("objective")),
    **irrelevant("num_tree_per_iteration is used instead", ("num_class",)),
    **optional("training had no monotone constraints", used("monotone_constraints"), since="2.3"),
    **irrelevant("the column of the label", ("label_index",)),
}
_LINEAR = optional(
    "leaves are constants",
    used("is_linear", "leaf_const", "leaf_coeff", "leaf_features", "leaf_features_inner", "num_features"),
    since="3.2",
)

TABLE: Table = {
    "header": {
        **_MODEL,
        **used("feature_infos", "tree"),
        **optional("the trees are added", used("average_output")),
        **optional("only the lines `Tree=` mark the starts of trees", used("tree_sizes"), since="2.2"),
    },
    "tree": {
        **used("Tree", "decision_type", "leaf_value", "left_child", "num_cat", "num_leaves", "right_child"),
        **used("split_feature", "threshold"),
        **optional("no split on a category", used("cat_boundaries", "cat_threshold")),
        **_LINEAR,
        **_COUNTED,
        **_SCALED,
    },
    "model": {
        **_MODEL,
        **used("average_output"),
        **optional("the columns are unknown", used("feature_infos"), since="3.0"),
        **optional("the categories have no names", used("pandas_categorical")),
        "tree_info": inside("json_tree"),
        **irrelevant("the word `tree`, and the split counts of features", ("name", "feature_importances")),
    },
    "json_tree": {
        **used("num_leaves", "num_cat"),
        "tree_structure": inside("node"),
        **irrelevant("its place", ("tree_index",)),
        **_SCALED,
    },
    "node": {
        **optional("a split", used("leaf_value")),
        **optional("a split, or the only leaf of a tree", used("leaf_index")),
        **optional(
            "a leaf",
            {
                **used("decision_type", "default_left", "missing_type", "split_feature", "split_index", "threshold"),
                "left_child": inside("node"),
                "right_child": inside("node"),
            },
        ),
        **_LINEAR,
        **_COUNTED,
    },
    # After the trees: names and counts, the training parameters, and pandas' categories.
    "after": {
        **optional("the categories have no names", used("pandas_categorical")),
        **irrelevant("importances and parameters of training", (ANY,)),
    },
}
