"""Every field of XGBoost's documents, 1.3 to 3.2, and of trees in those of 3.4."""

from treesens.frontends.known_fields import ANY, Table, inside, irrelevant, used

TABLE: Table = {
    "model": {**used("version"), "learner": inside("learner")},
    "learner": {
        **used("feature_names", "feature_types"),
        "attributes": inside("attributes"),
        "gradient_booster": inside("booster"),
        "learner_model_param": inside("parameters"),
        "objective": inside("objective"),
        **irrelevant("they are about training", ("learner_train_param", "metrics")),
    },
    "attributes": {**used("best_iteration"), **irrelevant("a user's own words, and the best score", (ANY,))},
    "parameters": used("base_score", "boost_from_average", "num_class", "num_feature", "num_target"),
    # What an objective predicts depends on its name alone; its parameters are those of its loss in training.
    "objective": {**used("name"), **irrelevant("parameters of the loss in training", (ANY,))},
    "booster": {
        **used("name", "weight_drop"),
        "model": inside("trees"),
        "gbtree": inside("booster"),
        **irrelevant("they are about training", ("dart_train_param", "gbtree_train_param")),
    },
    "trees": {
        **used("cats", "iteration_indptr", "tree_info", "weight_drop"),
        "gbtree_model_param": inside("sizes"),
        "trees": inside("tree"),
    },
    "sizes": {
        **used("num_trees", "num_parallel_tree"),
        **irrelevant("each tree says it itself", ("size_leaf_vector",)),
        **irrelevant("the learner says it, too", ("num_feature", "num_output_group")),
    },
    "tree": {
        **used(
            "categories",
            "categories_nodes",
            "categories_segments",
            "categories_sizes",
            "default_left",
            "id",
            "leaf_weights",
            "left_children",
            "right_children",
            "split_conditions",
            "split_indices",
            "split_type",
        ),
        "tree_param": inside("tree_param"),
        **irrelevant("what training has counted", ("base_weights", "leaf_child_cnt", "loss_changes", "sum_hessian")),
        **irrelevant("the children say it, too", ("parents",)),
    },
    "tree_param": {
        **used("num_nodes", "size_leaf_vector"),
        **irrelevant("nodes that nothing leads to are refused", ("num_deleted",)),
        **irrelevant("the learner says it", ("num_feature",)),
    },
}

LINEAR_TABLE: Table = {
    **TABLE,
    "booster": {**used("name"), "model": inside("coefficients")},
    "coefficients": {**used("boosted_rounds", "weights")},
}
"""The same of a linear booster."""
