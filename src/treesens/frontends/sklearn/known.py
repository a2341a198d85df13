"""All attributes of the supported scikit-learn estimators, 1.4 to 1.9.

Later versions add attributes, most of which concern training. An unlisted attribute is reported in a note, and `treesens info
MODEL --check` compares the model as read with the estimator's own predict.
"""

from treesens.frontends.documents import Table, irrelevant, optional, used

_READ = optional(
    "an estimator of another class, or of an older version",
    used(
        "_baseline_prediction",
        "_bin_mapper",
        "_loss",
        "_predictors",
        "_preprocessor",
        "algorithm",
        "classes_",
        "estimator_weights_",
        "estimators_",
        "estimators_features_",
        "feature_names_in_",
        "init_",
        "is_categorical_",
        "learning_rate",
        "loss",
        "n_features_in_",
        "n_trees_per_iteration_",
        "tree_",
    ),
)
_SETTINGS = irrelevant(
    "a setting of training",
    (
        "alpha",
        "bootstrap",
        "bootstrap_features",
        "categorical_features",
        "ccp_alpha",
        "class_weight",
        "criterion",
        "early_stopping",
        "estimator",
        "estimator_params",
        "init",
        "interaction_cst",
        "l2_regularization",
        "max_bins",
        "max_depth",
        "max_features",
        "max_iter",
        "max_leaf_nodes",
        "max_samples",
        "min_impurity_decrease",
        "min_samples_leaf",
        "min_samples_split",
        "min_weight_fraction_leaf",
        "monotonic_cst",
        "n_estimators",
        "n_iter_no_change",
        "n_jobs",
        "oob_score",
        "quantile",
        "random_state",
        "scoring",
        "splitter",
        "subsample",
        "tol",
        "validation_fraction",
        "verbose",
        "warm_start",
    ),
)
_FITTED = irrelevant(
    "counts from training, or facts also stored in the trees and the classes",
    (
        "_feature_subsample_rng",
        "_is_categorical_remapped",
        "_label_encoder",
        "_n_features",
        "_max_features",
        "_max_samples",
        "_n_samples",
        "_seeds",
        "_n_samples_bootstrap",
        "_random_seed",
        "_rng",
        "_sample_weight",
        "_scorer",
        "_use_validation_data",
        "do_early_stopping_",
        "estimator_",
        "estimator_errors_",
        "max_features_",
        "n_classes_",
        "n_estimators_",
        "n_outputs_",
        "train_score_",
        "validation_score_",
    ),
)
TABLE: Table = {"estimator": {**_READ, **_SETTINGS, **_FITTED}}


def unknown_attributes(estimator: object) -> list[str]:
    """The attributes of an estimator that are not listed here."""
    return sorted(
        set(vars(estimator)) - set(TABLE["estimator"]) - {"__sklearn_output_config", "_sklearn_output_config"}
    )
