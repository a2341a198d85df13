"""Every field of CatBoost's JSON (1.2)."""

from treesens.frontends.documents import ANY, Table, inside, irrelevant, optional, refused, used

_OTHER = "a split of another kind"

TABLE: Table = {
    "model": {
        "features_info": inside("features"),
        "model_info": inside("info"),
        **optional("the trees are in `trees`", {"oblivious_trees": inside("tree")}),
        **optional("the trees are in `oblivious_trees`", {"trees": inside("node")}),
        **used("scale_and_bias"),
        **optional("not a statistic of a category", {"ctr_data": inside("tables")}),
    },
    "features": {
        **optional("the model has no numeric columns", {"float_features": inside("float_feature")}),
        **optional("the model has no categories", {"categorical_features": inside("categorical_feature")}),
        **optional("saved without rows, so that categories have no names", {"cat_features_hash": inside("hash")}),
        **optional("not a statistic of a category", {"ctrs": inside("ctr")}),
        **refused("its values are neither numbers nor categories", ("text_features", "embedding_features")),
    },
    "categorical_feature": {
        **used("feature_index", "flat_feature_index"),
        **optional("the column has a number for a name", used("feature_id")),
        **optional("no split is on a category of the column", used("values")),
        **irrelevant("the same as its id", ("feature_name",)),
    },
    "hash": used("hash", "value"),
    "ctr": {
        **used("borders", "ctr_type", "identifier", "prior_denomerator", "prior_numerator", "scale", "shift"),
        **used("target_border_idx"),
        "elements": inside("element"),
    },
    "element": {
        **used("combination_element"),
        **optional(_OTHER, used("border", "cat_feature_index", "float_feature_index", "value")),
    },
    "tables": {ANY: inside("table")},
    "table": used("counter_denominator", "hash_map", "hash_stride"),
    "float_feature": {
        **irrelevant("the same as its id, in files that are saved with rows", ("feature_name",)),
        **used("borders", "feature_index", "flat_feature_index", "has_nans", "nan_value_treatment"),
        **optional("the column has a number for a name", used("feature_id")),
    },
    "info": {
        **used("params"),
        **optional("the second of two classes is predicted from 1/2 on", used("binclass_probability_threshold")),
        **optional("no classes", {"class_params": inside("classes")}),
        **irrelevant(
            "a record of training, or about the file", ("training", "output_options", "train_finish_time", "model_guid")
        ),
        **irrelevant("the version that wrote it", ("catboost_version_info",)),
        # Users may store any keys in `get_metadata()`.
        **irrelevant("a user's own metadata", (ANY,)),
    },
    "classes": {
        **used("class_names"),
        **irrelevant(
            "the outputs are in the order of the names", ("class_label_type", "class_to_label", "classes_count")
        ),
    },
    "tree": {
        **used("leaf_values"),
        "splits": inside("split"),
        **irrelevant("training counts", ("leaf_weights",)),
    },
    "split": {
        **used("split_index", "split_type"),
        **optional(_OTHER, used("border", "cat_feature_index", "float_feature_index", "value")),
        **irrelevant("determined by the split with this number", ("ctr_target_border_idx",)),
    },
    "node": {
        **optional("a split", used("value")),
        **optional("a leaf", {"split": inside("split"), "left": inside("node"), "right": inside("node")}),
        **irrelevant("training counts", ("weight",)),
    },
}
