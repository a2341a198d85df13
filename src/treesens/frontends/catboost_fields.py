"""Every field of CatBoost's JSON (1.2)."""

from treesens.frontends.known_fields import ANY, Table, inside, irrelevant, refused, used

TABLE: Table = {
    "model": {
        "features_info": inside("features"),
        "model_info": inside("info"),
        "oblivious_trees": inside("tree"),
        "trees": inside("node"),
        **used("scale_and_bias"),
        **refused("the file has hashes of texts, and no names to ask about", ("ctr_data",)),
    },
    "features": {
        "float_features": inside("float_feature"),
        **refused(
            "the file has hashes, and no names to ask about",
            ("categorical_features", "text_features", "embedding_features", "ctrs"),
        ),
    },
    "float_feature": {
        **used("feature_id", "feature_index", "flat_feature_index", "nan_value_treatment"),
        **irrelevant("each split says its border", ("borders",)),
        **irrelevant("the treatment of missing values counts", ("has_nans",)),
    },
    "info": {
        **used("binclass_probability_threshold", "params"),
        "class_params": inside("classes"),
        **irrelevant(
            "of training, or about the file", ("training", "output_options", "train_finish_time", "model_guid")
        ),
        **irrelevant("the version that wrote it", ("catboost_version_info",)),
        # `get_metadata()` is a dictionary in which users may keep whatever they like.
        **irrelevant("a user's own metadata", (ANY,)),
    },
    "classes": {
        **used("class_names"),
        **irrelevant(
            "the outputs come in the order of the names", ("class_label_type", "class_to_label", "classes_count")
        ),
    },
    "tree": {
        **used("leaf_values"),
        "splits": inside("split"),
        **irrelevant("what training has counted", ("leaf_weights",)),
    },
    "split": {
        **used("border", "float_feature_index", "split_type"),
        **irrelevant("the number of the split among all borders", ("split_index",)),
        **irrelevant("splits of other kinds are refused", ("cat_feature_index", "ctr_target_border_idx", "value")),
    },
    "node": {
        **used("value"),
        "split": inside("split"),
        "left": inside("node"),
        "right": inside("node"),
        **irrelevant("what training has counted", ("weight",)),
    },
}
