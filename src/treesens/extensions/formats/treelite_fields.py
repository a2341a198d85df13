"""Every field of treelite's dump (4)."""

from treesens.frontends.documents import Table, inside, irrelevant, optional, used

TABLE: Table = {
    "model": {
        **used(
            "average_tree_output",
            "base_scores",
            "class_id",
            "leaf_output_type",
            "num_class",
            "num_feature",
            "num_target",
        ),
        **used("postprocessor", "sigmoid_alpha", "target_id", "task_type", "threshold_type"),
        "trees": inside("tree"),
        **irrelevant("the leaves have the width of the outputs", ("leaf_vector_shape",)),
        **irrelevant("a postprocessor that is refused reads it", ("ratio_c",)),
        **irrelevant("a user's own words", ("attributes",)),
    },
    "tree": {"nodes": inside("node"), **irrelevant("the nodes show it", ("has_categorical_split", "num_nodes"))},
    "node": {
        **used("node_id"),
        **optional("a split", used("leaf_value")),
        **optional("a leaf", used("default_left", "left_child", "right_child", "split_feature_id")),
        **optional("a leaf, or a split on a category", used("comparison_op", "threshold")),
        **optional("a leaf, or a split on a number", used("category_list", "category_list_right_child")),
        **irrelevant("the fields of the node show it", ("node_type",)),
        **irrelevant("what training has counted", ("data_count", "gain", "sum_hess")),
    },
}
