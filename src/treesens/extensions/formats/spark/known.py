"""Every field and every setting in the metadata of Spark's tree models, with its meaning."""

from treesens.frontends.documents import ANY, Meaning, Table, inside, irrelevant, optional, used

_TRAINING = "a setting of training"
_COLUMN = "the name of a column"


def _setting(*names: str) -> dict[str, Meaning]:
    """The meaning of settings; each setting appears in one of two maps."""
    return optional("set in the other map, or left at Spark's default", used(*names))


_METADATA = {
    **used("class", "sparkVersion", "numFeatures"),
    **optional("a regression model, or boosted trees", used("numClasses")),
    **optional("a single tree", used("numTrees")),
    "paramMap": inside("settings"),
    "defaultParamMap": inside("settings"),
    **irrelevant("a name or a date", ("uid", "timestamp")),
}
_TREES = {
    **irrelevant(_TRAINING, ("cacheNodeIds", "checkpointInterval", "impurity", "maxBins", "maxDepth", "maxMemoryInMB")),
    **irrelevant(_TRAINING, ("minInfoGain", "minInstancesPerNode", "minWeightFractionPerNode", "seed")),
    **irrelevant(_TRAINING, ("numTrees", "featureSubsetStrategy", "subsamplingRate", "bootstrap", "pruneTree")),
    **irrelevant(_TRAINING, ("stepSize", "maxIter", "validationIndicatorCol", "validationTol")),
    **irrelevant(_COLUMN, ("featuresCol", "labelCol", "weightCol", "leafCol", "predictionCol", "varianceCol")),
    **_setting("rawPredictionCol", "lossType", "thresholds"),
    **irrelevant(_COLUMN, ("probabilityCol",)),
}

_STAGE = {
    **used("class", "paramMap", "defaultParamMap", "sparkVersion"),
    **irrelevant("a name or a date", ("uid", "timestamp", "language")),
}
_COLUMNS = _setting("inputCol", "outputCol", "inputCols", "outputCols", "handleInvalid")


def _stage(kind: str) -> dict[str, Meaning]:
    """The metadata fields of a stage with settings of the kind `kind`."""
    return {**_STAGE, "paramMap": inside(kind), "defaultParamMap": inside(kind)}


TABLE: Table = {
    "model": _METADATA,
    "settings": _TREES,
    "pipeline": {**_STAGE, "paramMap": inside("pipeline settings"), "defaultParamMap": inside("pipeline settings")},
    "pipeline settings": _setting("stageUids"),
    "search": {**_STAGE, ANY: Meaning("irrelevant", "a record of the search; predictions use only the best model")},
    "string indexer": _stage("string indexer settings"),
    "string indexer settings": {**_COLUMNS, **irrelevant(_TRAINING, ("stringOrderType",))},
    "assembler": _stage("assembler settings"),
    "assembler settings": _COLUMNS,
    "vector indexer": _stage("vector indexer settings"),
    "vector indexer settings": {**_COLUMNS, **irrelevant(_TRAINING, ("maxCategories",))},
    "one-hot encoder": _stage("one-hot encoder settings"),
    "one-hot encoder settings": {**_COLUMNS, **_setting("dropLast")},
    "standard scaler": _stage("standard scaler settings"),
    "standard scaler settings": {**_COLUMNS, **_setting("withMean", "withStd")},
    "min-max scaler": _stage("min-max scaler settings"),
    "min-max scaler settings": {**_COLUMNS, **_setting("min", "max")},
    "max-abs scaler": _stage("max-abs scaler settings"),
    "max-abs scaler settings": _COLUMNS,
    "imputer": _stage("imputer settings"),
    "imputer settings": {
        **_COLUMNS,
        **_setting("missingValue"),
        **irrelevant(_TRAINING, ("strategy", "relativeError")),
    },
    "binarizer": _stage("binarizer settings"),
    "binarizer settings": {**_COLUMNS, **_setting("threshold", "thresholds")},
    "bucketizer": _stage("bucketizer settings"),
    "bucketizer settings": {**_COLUMNS, **_setting("splits", "splitsArray")},
    "slicer": _stage("slicer settings"),
    "slicer settings": {**_COLUMNS, **_setting("indices", "names")},
    "names": _stage("names settings"),
    "names settings": {**_COLUMNS, **_setting("labels")},
}
