"""Every attribute of the supported elements of PMML 4.4, and the attributes that JPMML adds."""

from treesens.errors import ModelError
from treesens.extensions.formats.pmml.xml import Element
from treesens.frontends.documents import Meaning, Table, check_names, irrelevant, optional, refused, used

_NAMES = irrelevant("a label for readers", ("algorithmName", "displayName", "modelName", "name"))
_COUNTED = irrelevant("training counts", ("confidence", "recordCount", "importance"))
_PENALTY = "a confidence, not part of the prediction"
_REASONS = irrelevant(
    "concerns reasons, not the score",
    ("baselineMethod", "baselineScore", "reasonCode", "reasonCodeAlgorithm", "useReasonCodes"),
)
_OF_VALUE = ("dataType", "optype")
_MODEL = {
    **_NAMES,
    **used("functionName"),
    **optional("true", used("isScorable")),
    **optional("double", used("x-mathContext")),
}
_MISSING = optional("missing values stay missing", used("mapMissingTo"))
_PREDICTOR = optional("the other attribute names the field", used("name", "field"))
_DEFAULT = optional("values in no bin or row become missing", used("defaultValue"))

TABLE: Table = {
    "PMML": {**used("version"), **irrelevant("a reference to the format", ("schemaLocation",))},
    "DataDictionary": irrelevant("the number of elements that follow", ("numberOfFields",)),
    "DataField": {
        **used("name", *_OF_VALUE),
        **_NAMES,
        **refused("cyclic values have no order", ("isCyclic", "taxonomy")),
    },
    "Value": {**used("value"), **optional("valid", used("property")), **_NAMES},
    "Interval": {**used("closure"), **optional("unbounded on that side", used("leftMargin", "rightMargin"))},
    "MiningField": {
        **used("name"),
        **optional("active", used("usageType")),
        **optional("defined by the dictionary", used("optype")),
        **optional("asIs", used("outliers", "missingValueTreatment")),
        **optional("numbers are unbounded", used("lowValue", "highValue")),
        **optional("missing values stay missing", used("missingValueReplacement")),
        **optional("returnInvalid", used("invalidValueTreatment")),
        **_COUNTED,
        **refused("invalid values are treated separately", ("invalidValueReplacement",)),
    },
    "DerivedField": {**used("name", *_OF_VALUE), **_NAMES},
    "DefineFunction": {**used("name"), **irrelevant("given by the field", _OF_VALUE)},
    "ParameterField": {**used("name"), **irrelevant("given by the argument", _OF_VALUE), **_NAMES},
    "FieldRef": {**used("field"), **_MISSING},
    "Constant": {
        **optional("the text determines the type", used("dataType")),
        **refused("a missing constant", ("missing",)),
    },
    "Apply": {
        **used("function"),
        **_MISSING,
        **optional("a missing result stays missing", used("defaultValue")),
        **optional("returnInvalid", used("invalidValueTreatment")),
    },
    "NormDiscrete": {**used("field", "value"), **_MISSING, **irrelevant("the only method", ("method",))},
    "Discretize": {**used("field"), **_MISSING, **_DEFAULT, **irrelevant("given by the field", _OF_VALUE)},
    "DiscretizeBin": used("binValue"),
    "MapValues": {**used("outputColumn"), **_MISSING, **_DEFAULT, **irrelevant("given by the field", _OF_VALUE)},
    "FieldColumnPair": used("field", "column"),
    "MiningModel": _MODEL,
    "Segmentation": {
        **used("multipleModelMethod"),
        **irrelevant("concerns values that questions always have", ("missingPredictionTreatment", "missingThreshold")),
    },
    "Segment": {**optional("1", used("weight")), **irrelevant("a label for readers", ("id",))},
    "TreeModel": {
        **_MODEL,
        **optional("none", used("missingValueStrategy")),
        **optional("returnNullPrediction", used("noTrueChildStrategy")),
        **irrelevant(_PENALTY, ("missingValuePenalty",)),
        **irrelevant("given by the nodes", ("splitCharacteristic",)),
    },
    "Node": {
        **optional("no name, no prediction, no branch for missing values", used("id", "score", "defaultChild")),
        **_COUNTED,
    },
    "ScoreDistribution": {
        **used("value", "recordCount"),
        **optional("given by the counts", used("probability")),
        **irrelevant(_PENALTY, ("confidence",)),
    },
    "SimplePredicate": {**used("field", "operator"), **optional("the predicate tests for missing values", used("value"))},
    "SimpleSetPredicate": used("field", "booleanOperator"),
    "CompoundPredicate": used("booleanOperator"),
    "Array": {**optional("no counts", used("n")), **irrelevant("given by the field", ("type",))},
    "RegressionModel": {
        **_MODEL,
        **optional("none", used("normalizationMethod")),
        **irrelevant("determined by the schema and the tables", ("modelType", "targetFieldName")),
    },
    "RegressionTable": {**used("intercept"), **optional("a value, not a class", used("targetCategory"))},
    "NumericPredictor": {**used("coefficient"), **_PREDICTOR, **optional("1", used("exponent"))},
    "CategoricalPredictor": {**used("value", "coefficient"), **_PREDICTOR},
    "Scorecard": {**_MODEL, **optional("0", used("initialScore")), **_REASONS},
    "Characteristic": {**_NAMES, **_REASONS},
    "Attribute": {**optional("the points are an expression", used("partialScore")), **_REASONS},
    "Target": {
        **optional("0", used("rescaleConstant")),
        **optional("1", used("rescaleFactor")),
        **optional("no limits, no rounding", used("min", "max", "castInteger")),
        **irrelevant("there is one target", ("field", "optype")),
    },
    "OutputField": {
        **used("name"),
        **optional("the result determines the type", used("dataType")),
        **optional("predictedValue", used("feature")),
        **irrelevant("the display of the result", ("displayName", "isFinalResult", "optype", "targetField", "value", "rank")),
    },
}  # fmt: skip
_APART: dict[str, Meaning] = irrelevant(
    "not part of the prediction",
    ("Header", "MiningBuildTask", "ModelStats", "ModelExplanation", "ModelVerification", "Extension", "InlineTable"),
)


def check_attributes(root: Element) -> None:
    """Raises ModelError, with element and line, for an attribute that is not in the tables."""
    todo = [root]
    while todo:
        element = todo.pop()
        if element.tag in _APART:
            continue
        todo += element.children
        if element.tag not in TABLE and not element.attributes:
            continue
        try:
            check_names({element.tag: TABLE.get(element.tag, {})}, element.attributes, element.place, element.tag)
        except ModelError as error:
            raise element.error(error.message, error.remedy) from None
