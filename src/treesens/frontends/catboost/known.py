"""Every field of CatBoost's JSON (1.2)."""

from treesens.frontends.known_fields import ANY, Table, inside, irrelevant, refused, used

TABLE: Table = {
    "model": {
        "features_info": inside("features"),
        "model_info": inside("info"),
        "oblivious_trees": inside("tree"),
        "trees": inside("node"),
        **used("scale_and_bias"),
        "ctr_data": inside("tables"),
    },
    "features": {
        "float_features": inside("float_feature"),
        "categorical_features": inside("categorical_feature"),
        "cat_features_hash": inside("hash"),
        "ctrs": inside("ctr"),
        **refused("its values are no numbers and no categories", ("text_features", "embedding_features")),
    },
    "categorical_feature": {
        **used("feature_id", "feature_index", "flat_feature_index", "values"),
        **irrelevant("the same as its id", ("feature_name",)),
    },
    "hash": used("hash", "value"),
    "ctr": {
        **used("borders", "ctr_type", "identifier", "prior_denomerator", "prior_numerator", "scale", "shift"),
        **used("target_border_idx"),
        "elements": inside("element"),
    },
    "element": used("border", "cat_feature_index", "combination_element", "float_feature_index", "value"),
    "tables": {ANY: inside("table")},
    "table": used("counter_denominator", "hash_map", "hash_stride"),
    "float_feature": {
        **irrelevant("the same as its id, in files that are saved with rows", ("feature_name",)),
        **used("feature_id", "feature_index", "flat_feature_index", "nan_value_treatment"),
        **used("borders", "has_nans"),
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
        **used("border", "cat_feature_index", "float_feature_index", "split_index", "split_type", "value"),
        **irrelevant("the split of this number says it, too", ("ctr_target_border_idx",)),
    },
    "node": {
        **used("value"),
        "split": inside("split"),
        "left": inside("node"),
        "right": inside("node"),
        **irrelevant("what training has counted", ("weight",)),
    },
}
