"""All fields of XGBoost's documents, 1.0 to 3.2, and of trees in documents of 3.4."""

from treesens.frontends.documents import ANY, Table, inside, irrelevant, optional, used

_CATEGORICAL = used("categories", "categories_nodes", "categories_segments", "categories_sizes", "split_type")

TABLE: Table = {
    "model": {**used("version"), "learner": inside("learner")},
    "learner": {
        **optional(
            "features have numbers as names, and are numeric", used("feature_names", "feature_types"), since="1.4"
        ),
        "attributes": inside("attributes"),
        "gradient_booster": inside("booster"),
        "learner_model_param": inside("parameters"),
        "objective": inside("objective"),
        **irrelevant("about training", ("learner_train_param", "metrics")),
    },
    "attributes": {
        **optional("training was not stopped early", used("best_iteration")),
        **irrelevant("attributes set by the user, and the best score", (ANY,)),
    },
    "parameters": {
        **used("base_score", "num_class", "num_feature"),
        **optional("one target", used("num_target"), since="1.6"),
        **optional("the base from which training started", used("boost_from_average"), since="1.7"),
    },
    # An objective's predictions depend only on its name; its parameters belong to the training loss.
    "objective": {**used("name"), **irrelevant("parameters of the loss in training", (ANY,))},
    "booster": {
        **used("name"),
        **optional("a DART booster, whose trees are in `gbtree`", {"model": inside("trees")}),
        **optional("not DART", {"gbtree": inside("booster"), **used("weight_drop")}),
        **irrelevant("about training", ("dart_train_param", "gbtree_train_param")),
    },
    "trees": {
        **used("tree_info"),
        **optional("the categories have no names", used("cats"), since="3.1"),
        **optional("every round adds the same number of trees", used("iteration_indptr"), since="2.0"),
        **optional("no tree has a weight", used("weight_drop"), since="3.4"),
        "gbtree_model_param": inside("sizes"),
        "trees": inside("tree"),
    },
    "sizes": {
        **used("num_trees"),
        **optional("the number of trees per round is unknown", used("num_parallel_tree"), since="1.6"),
        **irrelevant("stored with each tree", ("size_leaf_vector",)),
        **irrelevant("also stored with the learner", ("num_feature", "num_output_group")),
    },
    "tree": {
        **_CATEGORICAL,
        **used("default_left", "id", "left_children", "right_children", "split_conditions", "split_indices"),
        **optional("leaves of one value", used("leaf_weights"), since="3.1"),
        "tree_param": inside("tree_param"),
        **irrelevant(
            "counts from training",
            ("base_weights", "leaf_child_cnt", "leaf_child_counts", "loss_changes", "sum_hessian"),
        ),
        **irrelevant("follows from the children", ("parents",)),
    },
    "tree_param": {
        **used("num_nodes", "size_leaf_vector"),
        **irrelevant("unreachable nodes are refused", ("num_deleted",)),
        **irrelevant("stated by the learner", ("num_feature",)),
    },
}

EARLY_TABLE: Table = {
    **TABLE,
    "tree": {**TABLE["tree"], **optional("no split on a category", _CATEGORICAL, since="1.3")},
}
"""The table for trees of XGBoost before 1.3, which have no splits on categories."""

LINEAR_TABLE: Table = {
    **TABLE,
    "booster": {**used("name"), "model": inside("coefficients")},
    "coefficients": {
        **used("weights"),
        **optional("no round was counted", used("boosted_rounds"), since="1.4"),
    },
}
"""The table for a linear booster."""
