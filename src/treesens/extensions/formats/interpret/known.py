"""Every field of the JSON that InterpretML (0.6, 0.7) writes for an explainable boosting machine."""

from treesens.frontends.documents import Table, inside, irrelevant, optional, used

_MEASURED = "training statistics"

TABLE: Table = {
    "model": {
        "ebm": inside("ebm"),
        **used("version"),
        **irrelevant("the model before it was edited", ("edits", "initial_ebm")),
    },
    "ebm": {
        **used("intercept"),
        "outputs": inside("output"),
        "features": inside("feature"),
        "terms": inside("term"),
        **irrelevant("the scores are averages of these bags", ("bag_weights", "bagged_intercept")),
        **irrelevant("a setting of training", ("implementation", "implementation_params")),
        **irrelevant(_MEASURED, ("best_iteration", "noise_scale_binning", "noise_scale_boosting")),
    },
    "output": {
        **used("link", "task"),
        **optional("a value", used("classes")),
        **irrelevant("a parameter of unsupported links", ("link_param",)),
        **irrelevant(_MEASURED, ("max_target", "min_target")),
    },
    "feature": {
        **used("name", "type"),
        **optional("the feature is categorical", used("cuts")),
        **optional("the feature is numeric", used("categories")),
        **irrelevant(_MEASURED, ("histogram_weights", "max", "min", "num_unique_vals")),
    },
    "term": {
        **used("scores", "term_features"),
        **irrelevant("the scores are averages of these bags", ("bagged_scores", "standard_deviations")),
        **irrelevant(_MEASURED, ("bin_weights",)),
    },
}
