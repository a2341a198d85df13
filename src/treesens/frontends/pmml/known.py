"""Every attribute of the elements of PMML 4.4 that are read, and those that JPMML adds."""

from treesens.errors import ModelError
from treesens.frontends.known_fields import Meaning, Table, check_names, irrelevant, refused, used
from treesens.frontends.pmml.xml import Element

_NAMES = irrelevant("a name for people", ("algorithmName", "displayName", "modelName", "name"))
_COUNTED = irrelevant("what training has counted", ("confidence", "recordCount", "importance"))
_PENALTY = "a confidence, which is no part of the prediction"
_REASONS = irrelevant(
    "about reasons, and not the score",
    ("baselineMethod", "baselineScore", "reasonCode", "reasonCodeAlgorithm", "useReasonCodes"),
)
_OF_VALUE = ("dataType", "optype")
_MODEL = {**_NAMES, **used("functionName", "isScorable", "x-mathContext")}

TABLE: Table = {
    "PMML": {**used("version"), **irrelevant("where the format is described", ("schemaLocation",))},
    "DataDictionary": irrelevant("a count of what follows", ("numberOfFields",)),
    "DataField": {
        **used("name", *_OF_VALUE),
        **_NAMES,
        **refused("values that go round have no order", ("isCyclic", "taxonomy")),
    },
    "Value": {**used("value", "property"), **_NAMES},
    "Interval": used("closure", "leftMargin", "rightMargin"),
    "MiningField": {
        **used("name", "usageType", "optype", "outliers", "lowValue", "highValue"),
        **used("missingValueReplacement", "missingValueTreatment", "invalidValueTreatment"),
        **_COUNTED,
        **refused("what becomes of invalid values is their own", ("invalidValueReplacement",)),
    },
    "DerivedField": {**used("name", *_OF_VALUE), **_NAMES},
    "DefineFunction": {**used("name"), **irrelevant("the field says it, too", _OF_VALUE)},
    "ParameterField": {**used("name"), **irrelevant("the argument says it, too", _OF_VALUE), **_NAMES},
    "FieldRef": used("field", "mapMissingTo"),
    "Constant": {**used("dataType"), **refused("a constant that is missing", ("missing",))},
    "Apply": used("function", "mapMissingTo", "defaultValue", "invalidValueTreatment"),
    "NormDiscrete": {**used("field", "value", "mapMissingTo"), **irrelevant("the only method there is", ("method",))},
    "Discretize": {**used("field", "mapMissingTo", "defaultValue"), **irrelevant("the field says it, too", _OF_VALUE)},
    "DiscretizeBin": used("binValue"),
    "MapValues": {**used("outputColumn", "mapMissingTo", "defaultValue"), **irrelevant("the field says it, too", _OF_VALUE)},
    "FieldColumnPair": used("field", "column"),
    "MiningModel": _MODEL,
    "Segmentation": {
        **used("multipleModelMethod"),
        **irrelevant("about values that no question may lack", ("missingPredictionTreatment", "missingThreshold")),
    },
    "Segment": {**used("weight"), **irrelevant("a name for people", ("id",))},
    "TreeModel": {
        **_MODEL,
        **used("missingValueStrategy", "noTrueChildStrategy"),
        **irrelevant(_PENALTY, ("missingValuePenalty",)),
        **irrelevant("the nodes show it", ("splitCharacteristic",)),
    },
    "Node": {**used("id", "score", "defaultChild"), **_COUNTED},
    "ScoreDistribution": {**used("value", "recordCount", "probability"), **irrelevant(_PENALTY, ("confidence",))},
    "SimplePredicate": used("field", "operator", "value"),
    "SimpleSetPredicate": used("field", "booleanOperator"),
    "CompoundPredicate": used("booleanOperator"),
    "Array": {**used("n"), **irrelevant("the field says it, too", ("type",))},
    "RegressionModel": {
        **_MODEL,
        **used("normalizationMethod"),
        **irrelevant("the schema and the tables say it, too", ("modelType", "targetFieldName")),
    },
    "RegressionTable": used("intercept", "targetCategory"),
    "NumericPredictor": used("name", "field", "coefficient", "exponent"),
    "CategoricalPredictor": used("name", "field", "value", "coefficient"),
    "Scorecard": {**_MODEL, **used("initialScore"), **_REASONS},
    "Characteristic": {**_NAMES, **_REASONS},
    "Attribute": {**used("partialScore"), **_REASONS},
    "Target": {
        **used("rescaleConstant", "rescaleFactor", "min", "max", "castInteger"),
        **irrelevant("there is one target", ("field", "optype")),
    },
    "OutputField": {
        **used("name", "dataType", "feature"),
        **irrelevant("what is shown of the result", ("displayName", "isFinalResult", "optype", "targetField", "value", "rank")),
    },
}  # fmt: skip
_APART: dict[str, Meaning] = irrelevant(
    "no part of the prediction",
    ("Header", "MiningBuildTask", "ModelStats", "ModelExplanation", "ModelVerification", "Extension", "InlineTable"),
)


def check_attributes(root: Element) -> None:
    """Refuses an attribute that no table has. ModelError with its element and line."""
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
