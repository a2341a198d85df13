"""Every attribute of the supported elements of PMML 4.4, and those that JPMML adds."""

from treesens.errors import ModelError
from treesens.extensions.formats.pmml.xml import Element
from treesens.frontends.documents import Meaning, Table, check_names, irrelevant, optional, refused, used

_NAMES = irrelevant("a name for people", ("algorithmName", "displayName", "modelName", "name"))
_COUNTED = irrelevant("what training has counted", ("confidence", "recordCount", "importance"))
_PENALTY = "a confidence, not part of the prediction"
_REASONS = irrelevant(
    "for reasons, not the score",
    ("baselineMethod", "baselineScore", "reasonCode", "reasonCodeAlgorithm", "useReasonCodes"),
)
_OF_VALUE = ("dataType", "optype")
_MODEL = {
    **_NAMES,
    **used("functionName"),
    **optional("true", used("isScorable")),
    **optional("double", used("x-mathContext")),
}
_MISSING = optional("what is missing stays so", used("mapMissingTo"))
_PREDICTOR = optional("the other attribute names the field", used("name", "field"))
_DEFAULT = optional("values in no bin or row become missing", used("defaultValue"))

TABLE: Table = {
    "PMML": {**used("version"), **irrelevant("where the format is described", ("schemaLocation",))},
    "DataDictionary": irrelevant("a count of the following elements", ("numberOfFields",)),
    "DataField": {
        **used("name", *_OF_VALUE),
        **_NAMES,
        **refused("cyclic values have no order", ("isCyclic", "taxonomy")),
    },
    "Value": {**used("value"), **optional("valid", used("property")), **_NAMES},
    "Interval": {**used("closure"), **optional("no end on that side", used("leftMargin", "rightMargin"))},
    "MiningField": {
        **used("name"),
        **optional("active", used("usageType")),
        **optional("that of the dictionary", used("optype")),
        **optional("asIs", used("outliers", "missingValueTreatment")),
        **optional("numbers have no ends", used("lowValue", "highValue")),
        **optional("what is missing stays so", used("missingValueReplacement")),
        **optional("returnInvalid", used("invalidValueTreatment")),
        **_COUNTED,
        **refused("invalid values have their own treatment", ("invalidValueReplacement",)),
    },
    "DerivedField": {**used("name", *_OF_VALUE), **_NAMES},
    "DefineFunction": {**used("name"), **irrelevant("the field says it, too", _OF_VALUE)},
    "ParameterField": {**used("name"), **irrelevant("the argument says it, too", _OF_VALUE), **_NAMES},
    "FieldRef": {**used("field"), **_MISSING},
    "Constant": {
        **optional("the type that its text has", used("dataType")),
        **refused("a constant that is missing", ("missing",)),
    },
    "Apply": {
        **used("function"),
        **_MISSING,
        **optional("a result that is missing stays so", used("defaultValue")),
        **optional("returnInvalid", used("invalidValueTreatment")),
    },
    "NormDiscrete": {**used("field", "value"), **_MISSING, **irrelevant("the only method there is", ("method",))},
    "Discretize": {**used("field"), **_MISSING, **_DEFAULT, **irrelevant("the field says it, too", _OF_VALUE)},
    "DiscretizeBin": used("binValue"),
    "MapValues": {**used("outputColumn"), **_MISSING, **_DEFAULT, **irrelevant("the field says it, too", _OF_VALUE)},
    "FieldColumnPair": used("field", "column"),
    "MiningModel": _MODEL,
    "Segmentation": {
        **used("multipleModelMethod"),
        **irrelevant("about values that no question may lack", ("missingPredictionTreatment", "missingThreshold")),
    },
    "Segment": {**optional("1", used("weight")), **irrelevant("a name for people", ("id",))},
    "TreeModel": {
        **_MODEL,
        **optional("none", used("missingValueStrategy")),
        **optional("returnNullPrediction", used("noTrueChildStrategy")),
        **irrelevant(_PENALTY, ("missingValuePenalty",)),
        **irrelevant("the nodes show it", ("splitCharacteristic",)),
    },
    "Node": {
        **optional("no name, no prediction, no side for missing values", used("id", "score", "defaultChild")),
        **_COUNTED,
    },
    "ScoreDistribution": {
        **used("value", "recordCount"),
        **optional("the counts say it", used("probability")),
        **irrelevant(_PENALTY, ("confidence",)),
    },
    "SimplePredicate": {**used("field", "operator"), **optional("it only tests for missing values", used("value"))},
    "SimpleSetPredicate": used("field", "booleanOperator"),
    "CompoundPredicate": used("booleanOperator"),
    "Array": {**optional("nobody has counted", used("n")), **irrelevant("the field says it, too", ("type",))},
    "RegressionModel": {
        **_MODEL,
        **optional("none", used("normalizationMethod")),
        **irrelevant("the schema and the tables say it, too", ("modelType", "targetFieldName")),
    },
    "RegressionTable": {**used("intercept"), **optional("a value, and no class", used("targetCategory"))},
    "NumericPredictor": {**used("coefficient"), **_PREDICTOR, **optional("1", used("exponent"))},
    "CategoricalPredictor": {**used("value", "coefficient"), **_PREDICTOR},
    "Scorecard": {**_MODEL, **optional("0", used("initialScore")), **_REASONS},
    "Characteristic": {**_NAMES, **_REASONS},
    "Attribute": {**optional("the points are an expression", used("partialScore")), **_REASONS},
    "Target": {
        **optional("0", used("rescaleConstant")),
        **optional("1", used("rescaleFactor")),
        **optional("no end, and no rounding", used("min", "max", "castInteger")),
        **irrelevant("there is one target", ("field", "optype")),
    },
    "OutputField": {
        **used("name"),
        **optional("that of the result", used("dataType")),
        **optional("predictedValue", used("feature")),
        **irrelevant("the display of the result", ("displayName", "isFinalResult", "optype", "targetField", "value", "rank")),
    },
}  # fmt: skip
_APART: dict[str, Meaning] = irrelevant(
    "no part of the prediction",
    ("Header", "MiningBuildTask", "ModelStats", "ModelExplanation", "ModelVerification", "Extension", "InlineTable"),
)


def check_attributes(root: Element) -> None:
    """Refuses an attribute missing from the tables. ModelError with its element and line."""
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
