"""Every line of the first section of `model.ini` in a MOJO with trees, and the meaning of the line."""

from treesens.frontends.documents import Table, irrelevant, optional, refused, used

_BESIDE = "calibrated probabilities are additional outputs, and do not affect the class"
_ENCODED = ("_orig_projection_array", "_n_orig_names", "_n_orig_domain_values")
_EXPLICIT = "categories are encoded before they reach the trees"

_MODEL = {
    **used(
        "algo",
        "algorithm",
        "mojo_version",
        "endianness",
        "category",
        "supervised",
        "n_features",
        "n_classes",
        "n_columns",
    ),
    **used("balance_classes", "default_threshold", "n_domains", "n_trees"),
    **optional("an unknown version", used("h2o_version")),
    **optional("determined by the classes and `binomial_double_trees`", used("n_trees_per_class"), since="MOJO 1.1"),
    **optional("a forest", used("distribution", "init_f")),
    **optional("a forest, or the usual link of the distribution", used("link_function")),
    **optional("boosted trees", used("binomial_double_trees")),
    **optional("every column has its own categories", used("_genmodel_encoding"), since="MOJO 1.4"),
    **irrelevant("a name, a date or a licence", ("license", "uuid", "timestamp")),
    **irrelevant("category labels with a quote or a backslash are not used", ("escape_domain_values",)),
    **used("prior_class_distrib", "model_class_distrib"),
    **refused("a row needs its offset, and questions have no offsets", ("offset_column",)),
    **irrelevant(_BESIDE, ("calib_method", "calib_glm_beta", "calib_min_x", "calib_max_x")),
}
TABLE: Table = {
    "model": {**_MODEL, **refused(_EXPLICIT, _ENCODED)},
    "encoded": {
        **_MODEL,
        **used(*_ENCODED[1:]),
        **irrelevant("belongs to another encoding (`Eigen`)", _ENCODED[:1]),
    },
}
