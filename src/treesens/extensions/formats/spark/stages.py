"""Reads pipelines of Spark, whose stages make the feature vector of a tree model from columns of a table.

The supported stages are `StringIndexerModel` (a label becomes its number), `VectorAssembler` (columns become a vector),
`VectorIndexerModel` (some numbers of a vector become categories), `OneHotEncoderModel` (numbers of labels become a vector of
zeros with a single 1), `VectorSlicer` (some numbers of a vector), `ImputerModel`, `Binarizer`, `Bucketizer`, scalers
(`StandardScalerModel`, `MinMaxScalerModel`, `MaxAbsScalerModel`) and `IndexToString` (the names of the predicted classes).
Depending on `handleInvalid`, unknown and missing labels and numbers are given a further category or remain NaN in the vector
(`keep`), or rows that contain them have no prediction (`error`, `skip`).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise

import numpy as np

from treesens.errors import ModelError
from treesens.extensions.formats.spark.folder import DAMAGED, Folder
from treesens.extensions.formats.spark.known import TABLE
from treesens.extensions.formats.spark.parquet import Rows
from treesens.extensions.formats.spark.steps import Float64, Operation, Step, follow
from treesens.frontends.columns import MAX_CATEGORIES, MAX_FEATURES
from treesens.frontends.documents import Field, check_document

PIPELINE = "org.apache.spark.ml.PipelineModel"
_FEATURE = "org.apache.spark.ml.feature."
_SEARCHES = ("org.apache.spark.ml.tuning.CrossValidatorModel", "org.apache.spark.ml.tuning.TrainValidationSplitModel")
_MOST_STAGES = 10_000
_READ = {
    _FEATURE + "StringIndexerModel": "string indexer",
    _FEATURE + "VectorAssembler": "assembler",
    _FEATURE + "VectorIndexerModel": "vector indexer",
    _FEATURE + "OneHotEncoderModel": "one-hot encoder",
    _FEATURE + "IndexToString": "names",
    _FEATURE + "StandardScalerModel": "standard scaler",
    _FEATURE + "MinMaxScalerModel": "min-max scaler",
    _FEATURE + "MaxAbsScalerModel": "max-abs scaler",
    _FEATURE + "ImputerModel": "imputer",
    _FEATURE + "Binarizer": "binarizer",
    _FEATURE + "Bucketizer": "bucketizer",
    _FEATURE + "VectorSlicer": "slicer",
}
"""Supported stages around a tree model, with the names of the tables of their settings."""
_MIXED = frozenset(_FEATURE + name for name in ("PCAModel", "PolynomialExpansion", "Interaction", "Normalizer", "DCT"))
"""Stages that compute each number from several columns."""
UNKNOWN_CLASS = "__unknown"
"""Spark's label for unknown classes, if an indexer keeps unknown values."""
_SCALERS = ("standard scaler", "min-max scaler", "max-abs scaler")
_WITH_DATA = ("string indexer", "vector indexer", "one-hot encoder", "imputer", *_SCALERS)
_ALONE = "pass the tree model alone"
_SPECIAL = {"-Inf": -math.inf, "Inf": math.inf, "-Infinity": -math.inf, "Infinity": math.inf}
"""Infinities in Spark's JSON."""


@dataclass(frozen=True, eq=False)
class Stage:
    """A stage with its folder; `kind` is the name of the stage's table of settings, or `model` for unknown stages."""

    folder: Folder
    metadata: Field
    kind: str

    @property
    def has_table(self) -> bool:
        """True if the stage has a table in addition to its settings."""
        return self.kind in _WITH_DATA

    def setting(self, name: str) -> Field | None:
        """The value of a setting, or the default value if the setting is not set."""
        return self.metadata["paramMap"].get(name) or self.metadata["defaultParamMap"].get(name)

    def text(self, name: str) -> str:
        """The text of a setting. Raises ModelError if the setting has no value."""
        value = self.setting(name)
        if value is None:
            raise self.metadata.error(f"the setting `{name}` is missing")
        return value.text()

    def number(self, name: str) -> float:
        """The number of a setting. Raises ModelError if the number is infinite or NaN."""
        value = self.setting(name)
        if value is None:
            raise self.metadata.error(f"the setting `{name}` is missing")
        found = value.number()
        if not math.isfinite(found):
            raise value.error(f"the setting `{name}` is not finite")
        return found

    def flag(self, name: str) -> bool:
        """The truth value of a setting. Raises ModelError if the setting is not a truth value."""
        value = self.setting(name)
        if value is None or not isinstance(value.value, bool):
            raise (value or self.metadata).error(f"the setting `{name}` is neither true nor false")
        return value.value

    def columns(self, name: str) -> list[str]:
        """The column in the setting `nameCol`, or the columns in `nameCols`."""
        several = self.setting(f"{name}Cols")
        return several.texts() if several is not None else [self.text(f"{name}Col")]

    @property
    def keeps_invalid(self) -> bool:
        """True if the stage keeps unknown values. Raises ModelError for an unknown mode."""
        value = self.setting("handleInvalid")
        told = "error" if value is None else value.text()
        if value is not None and told not in ("error", "skip", "keep"):
            raise value.error(f"`{told[:40]}` is not a way to handle unknown values")
        return told == "keep"


@dataclass(frozen=True)
class Slot:
    """A number in the feature vector: the column of the table, and the rule that computes the number from the column.

    `labels` holds the values of the column in code order, or is None for an unchanged number. Other values get the next code if
    `kept`, and otherwise have no prediction. If `values_only`, missing values have no prediction. The number is the code or, if
    `ones` is given, 1 for the codes in `ones` and 0 for other codes. Finally, `steps` are applied.
    """

    column: str
    labels: tuple[str, ...] | tuple[float, ...] | None = None
    kept: bool = False
    values_only: bool = False
    ones: frozenset[int] | None = None
    steps: tuple[Step, ...] = ()

    @property
    def numbers(self) -> Float64:
        """The numbers for the codes of all labels, followed by the number for the code of other values, float64[labels + 1]."""
        codes = range(len(self.labels or ()) + 1)
        made = list(codes) if self.ones is None else [int(code in self.ones) for code in codes]
        return follow(self.steps, np.array(made, np.float64))

    @property
    def parts_at_zero(self) -> bool:
        """True if a bucket of the number begins at 0; this matters because Spark assigns -0.0 to the bucket below."""
        return any(0.0 in step.edges for step in self.steps)

    def then(self, *steps: Step) -> Slot:
        """The slot with further steps."""
        return replace(self, steps=(*self.steps, *steps))


@dataclass
class Flow:
    """The outputs of the stages before a model: `scalars` hold one number per row, and `vectors` hold several numbers."""

    scalars: dict[str, Slot] = field(default_factory=dict)
    vectors: dict[str, list[Slot]] = field(default_factory=dict)

    def scalar(self, name: str) -> Slot:
        """The column `name`: the output of a stage or, if no stage outputs it, the column of the table."""
        return self.scalars.get(name, Slot(name))


def stages_of(folder: Folder) -> tuple[list[Stage], Folder]:
    """The stages of a pipeline in order, including nested pipelines' stages, and the root folder; a model alone is one stage.

    For a parameter search, only the best model is read.
    """
    found: list[Stage] = []
    waiting, root = [folder], folder
    while waiting:
        here = waiting.pop()
        metadata = here.metadata()
        name = metadata["class"].text()
        if name in _SEARCHES:
            check_document(TABLE, metadata.value, metadata.place, "search")
            waiting.append(here.inside("bestModel"))
            root = waiting[0] if not found and len(waiting) == 1 else root
            continue
        if name != PIPELINE:
            kind = _READ.get(name, "model")
            found.append(Stage(here, metadata, kind))
            if kind != "model":
                check_document(TABLE, metadata.value, metadata.place, kind)
            continue
        check_document(TABLE, metadata.value, metadata.place, "pipeline")
        names = metadata["paramMap"]["stageUids"].texts()
        if not 0 < len(found) + len(waiting) + len(names) <= _MOST_STAGES:
            raise metadata.error(f"{len(names)} stages are not plausible")
        digits = len(str(len(names)))
        waiting += [here.inside(f"stages/{i:0{digits}d}_{uid}") for i, uid in reversed(list(enumerate(names)))]
    return found, root


def flow_through(stages: Sequence[Stage], tables: Mapping[str, Rows]) -> Flow:
    """The outputs of the stages for the columns of a table; `tables` holds the tables of the stages, by folder."""
    flow = Flow()
    for stage in stages:
        match stage.kind:
            case "string indexer":
                _index(stage, tables[stage.folder.path], flow)
            case "one-hot encoder":
                _encode(stage, tables[stage.folder.path], flow)
            case "assembler":
                flow.vectors[stage.text("outputCol")] = _assemble(stage, flow)
            case "vector indexer":
                flow.vectors[stage.text("outputCol")] = _index_vector(stage, tables[stage.folder.path], flow)
            case "standard scaler" | "min-max scaler" | "max-abs scaler":
                flow.vectors[stage.text("outputCol")] = _scale(stage, tables[stage.folder.path], flow)
            case "slicer":
                flow.vectors[stage.text("outputCol")] = _slice(stage, flow)
            case "imputer":
                _impute(stage, tables[stage.folder.path], flow)
            case "binarizer":
                _binarize(stage, flow)
            case "bucketizer":
                _put_into_buckets(stage, flow)
            case _:
                name = stage.metadata["class"].text()
                why = ", because it computes each number from several columns" if name in _MIXED else ""
                raise stage.metadata["class"].error(
                    f"a stage {name[:80]} before the model is not supported{why}",
                    f"supported: {', '.join(name.rpartition('.')[2] for name in _READ)}; or pass only the tree model",
                )
    return flow


def _index(stage: Stage, table: Rows, flow: Flow) -> None:
    """Replaces labels by numbers, in one column or several."""
    given, made = stage.columns("input"), stage.columns("output")
    row = Field(list(table.rows), stage.folder.inside("data").place)
    rows = list(row.items())
    if len(rows) != 1 or len(table.names) != 1 or table.names[0] not in ("labels", "labelsArray"):
        raise row.error("this is not a table of labels", DAMAGED)
    told = rows[0][table.names[0]]
    labels = [told.texts()] if table.names[0] == "labels" else [part.texts() for part in told.items()]
    if not len(labels) == len(given) == len(made):
        raise row.error(f"the stage has labels for {len(labels)} columns, but indexes {len(given)}", DAMAGED)
    for source, target, own in zip(given, made, labels, strict=True):
        if len(set(own)) != len(own) or not 0 < len(own) <= MAX_CATEGORIES:
            raise row.error(f"`{source[:60]}` has {len(own)} labels, or one is repeated", DAMAGED)
        before = flow.scalar(source)
        if before.labels is not None or before.steps:
            raise stage.metadata.error(f"the column `{source[:60]}` is indexed after it has been changed", _ALONE)
        flow.scalars[target] = Slot(before.column, tuple(own), stage.keeps_invalid, not stage.keeps_invalid)


def _encode(stage: Stage, table: Rows, flow: Flow) -> None:
    """Replaces the codes of labels by one-hot vectors; if the last code is dropped, its vector contains only zeros."""
    given, made = stage.columns("input"), stage.columns("output")
    place = stage.folder.inside("data").place
    rows = list(Field(list(table.rows), place).items())
    if len(rows) != 1 or table.names != ("categorySizes",):
        raise ModelError("this is not a table of sizes", place=place, remedy=DAMAGED)
    sizes = [size.integer() for size in rows[0]["categorySizes"].items()]
    if not len(sizes) == len(given) == len(made):
        raise rows[0].error(f"the stage has sizes for {len(sizes)} columns, but encodes {len(given)}", DAMAGED)
    drop = stage.setting("dropLast")
    if drop is not None and not isinstance(drop.value, bool):
        raise drop.error("`dropLast` is neither true nor false")
    dropped = drop is None or drop.value is True
    for source, target, size in zip(given, made, sizes, strict=True):
        slot = flow.scalar(source)
        if slot.labels is None or slot.ones is not None or slot.steps:
            raise stage.metadata.error(
                f"the column `{source[:60]}` is encoded, but no StringIndexer made it", "pass the tree model alone"
            )
        codes = len(slot.labels) + slot.kept
        if size != codes:
            raise rows[0].error(f"the stage has {size} categories for `{source[:60]}`, which has {codes}", DAMAGED)
        width = size + stage.keeps_invalid - dropped
        # With `keep`, the vector has one more number, 0, for invalid codes.
        flow.vectors[target] = [
            replace(slot, ones=frozenset((number,)) if number < size else frozenset()) for number in range(width)
        ]


def _assemble(stage: Stage, flow: Flow) -> list[Slot]:
    """The vector that a stage assembles from columns."""
    made: list[Slot] = []
    for name in stage.columns("input"):
        slots = flow.vectors.get(name, [flow.scalar(name)])
        for slot in slots:
            # Indexers have handled the missing values of labels, and imputers leave none.
            missing = slot.labels is None and bool(np.isnan(follow(slot.steps, np.array([np.nan]))[0]))
            strict = not stage.keeps_invalid and missing
            made.append(replace(slot, values_only=slot.values_only or strict))
    if len(made) > MAX_FEATURES:
        raise stage.metadata.error(f"{len(made)} features are not plausible")
    return made


def _index_vector(stage: Stage, table: Rows, flow: Flow) -> list[Slot]:
    """The vector with some numbers converted to categories, which are labelled by these numbers."""
    given = stage.text("inputCol")
    place = stage.folder.inside("data").place
    rows = list(Field(list(table.rows), place).items())
    if len(rows) != 1 or set(table.names) != {"numFeatures", "categoryMaps"}:
        raise ModelError("this is not a table of categories", place=place, remedy=DAMAGED)
    width = rows[0]["numFeatures"].integer()
    slots = flow.vectors.get(given) or [Slot(f"f{number}") for number in range(min(max(width, 0), MAX_FEATURES))]
    if len(slots) != width:
        raise rows[0].error(f"the stage has categories for {width} features, but the vector has {len(slots)}", DAMAGED)
    made = list(slots)
    for pair in rows[0]["categoryMaps"].items():
        number, inside = list(pair.items())
        codes = {code.integer(): value for value, code in (tuple(entry.items()) for entry in inside.items())}
        values = [codes[code].value for code in range(len(codes)) if code in codes]
        if not 0 <= number.integer() < width or len(values) != len(list(inside.items())) or not values:
            raise pair.error("these values are not the categories of a feature", DAMAGED)
        slot = slots[number.integer()]
        if slot.labels is not None or slot.steps:
            raise stage.metadata.error(f"the column `{slot.column[:60]}` is indexed after it has been changed", _ALONE)
        floats = tuple(float(x) for x in Field(values, place).floats())
        made[number.integer()] = Slot(
            slot.column, floats, stage.keeps_invalid, slot.values_only or not stage.keeps_invalid
        )
    return made


def _scale(stage: Stage, table: Rows, flow: Flow) -> list[Slot]:
    """The vector with every number shifted and scaled by constants."""
    place = stage.folder.inside("data").place
    rows = list(Field(list(table.rows), place).items())
    needed = {"standard scaler": ("mean", "std"), "min-max scaler": ("originalMin", "originalMax")}.get(
        stage.kind, ("maxAbs",)
    )
    if len(rows) != 1 or set(table.names) != set(needed):
        raise ModelError("this is not a table of scaling constants", place=place, remedy=DAMAGED)
    if stage.kind != "standard scaler" and stage.metadata["sparkVersion"].text().startswith("2."):
        raise stage.metadata["sparkVersion"].error(
            "Spark 2 divides, but later versions multiply by a quotient", "save the pipeline with Spark 3 or 4"
        )
    first, *rest = (_vector(rows[0][name]) for name in needed)
    width = len(first)
    slots = _slots_of(stage, flow, width)
    if any(len(other) != width for other in rest) or len(slots) != width:
        raise rows[0].error(f"the scaler has {width} numbers, but the vector has {len(slots)}", DAMAGED)
    steps: list[tuple[Step, ...]]
    with np.errstate(over="ignore", divide="ignore", invalid="ignore"):
        match stage.kind:
            case "standard scaler":
                mean = [Step(Operation.SUBTRACT, m) for m in first.tolist()]
                scale = [Step(Operation.MULTIPLY, s) for s in np.where(rest[0] == 0, 0.0, 1 / rest[0]).tolist()]
                with_mean, with_std = stage.flag("withMean"), stage.flag("withStd")
                steps = [
                    ((m,) if with_mean else ()) + ((s,) if with_std else ()) for m, s in zip(mean, scale, strict=True)
                ]
            case "min-max scaler":
                low, high = stage.number("min"), stage.number("max")
                spread = rest[0] - first
                factor = np.where(spread == 0, 0.0, np.float64(high - low) / spread)
                steps = [
                    (Step(Operation.SUBTRACT, m), Step(Operation.MULTIPLY, s), Step(Operation.ADD, low))
                    for m, s in zip(first.tolist(), factor.tolist(), strict=True)
                ]
            case _:
                steps = [(Step(Operation.MULTIPLY, s),) for s in np.where(first == 0, 1.0, 1 / first).tolist()]
    return [slot.then(*own) for slot, own in zip(slots, steps, strict=True)]


def _vector(told: Field) -> Float64:
    """The numbers of a dense or sparse vector."""
    kind = told["type"].integer()
    values = told["values"].floats()
    if kind == 1:
        return values
    size, places = told["size"].integer(), [place.integer() for place in told["indices"].items()]
    ascending = all(one < other for one, other in pairwise(places))
    if kind != 0 or not 0 < size <= MAX_FEATURES or len(places) != len(values) or not ascending:
        raise told.error("this is not a vector", DAMAGED)
    if places and not 0 <= places[0] <= places[-1] < size:
        raise told.error("this is not a vector", DAMAGED)
    made = np.zeros(size)
    made[places] = values
    return made


def _slots_of(stage: Stage, flow: Flow, width: int) -> list[Slot]:
    """The vector that a stage uses: the output of an earlier stage, or otherwise the table's vector of `width` numbers."""
    return flow.vectors.get(stage.text("inputCol")) or [
        Slot(f"f{number}") for number in range(min(max(width, 0), MAX_FEATURES))
    ]


def _slice(stage: Stage, flow: Flow) -> list[Slot]:
    """The vector of the selected numbers of a vector, by index."""
    names, places = stage.setting("names"), stage.setting("indices")
    if names is not None and names.texts():
        raise names.error("a VectorSlicer that selects by names is not supported", f"choose by indices, or {_ALONE}")
    slots = flow.vectors.get(stage.text("inputCol"))
    if slots is None or places is None:
        raise stage.metadata.error("no stage outputs the vector that a VectorSlicer uses", _ALONE)
    chosen = [place.integer() for place in places.items()]
    if not chosen or len(set(chosen)) != len(chosen) or not all(0 <= place < len(slots) for place in chosen):
        raise places.error(f"the indices are outside a vector of {len(slots)} numbers", DAMAGED)
    return [slots[place] for place in chosen]


def _impute(stage: Stage, table: Rows, flow: Flow) -> None:
    """Replaces missing values in numeric columns by a constant."""
    given, made = stage.columns("input"), stage.columns("output")
    place = stage.folder.inside("data").place
    rows = list(Field(list(table.rows), place).items())
    if len(rows) != 1 or set(table.names) != set(given) or len(given) != len(made):
        raise ModelError("this is not a table of imputed values", place=place, remedy=DAMAGED)
    absent = stage.setting("missingValue")
    if (
        absent is not None
        and absent.value != "NaN"
        and not (isinstance(absent.value, float) and math.isnan(absent.value))
    ):
        raise absent.error(
            f"an Imputer that replaces {str(absent.value)[:40]} is not read", "use NaN for missing values"
        )
    for source, target in zip(given, made, strict=True):
        slot = flow.scalar(source)
        if slot.labels is not None:
            raise stage.metadata.error(f"the column `{source[:60]}` of labels is imputed", _ALONE)
        value = rows[0][source].number()
        if not math.isfinite(value):
            raise rows[0][source].error("an imputed value is not finite", DAMAGED)
        flow.scalars[target] = slot.then(Step(Operation.FILL, value))


def _binarize(stage: Stage, flow: Flow) -> None:
    """Replaces numbers above a threshold by 1 and all other numbers by 0, in one or several columns or in a vector."""
    given, made = stage.columns("input"), stage.columns("output")
    several = stage.setting("thresholds") if stage.setting("inputCols") is not None else None
    thresholds = [stage.number("threshold")] * len(given) if several is None else several.floats().tolist()
    if not len(given) == len(made) == len(thresholds):
        raise stage.metadata.error(f"there are {len(thresholds)} thresholds for {len(given)} columns", DAMAGED)
    for source, target, threshold in zip(given, made, thresholds, strict=True):
        step = Step(Operation.ABOVE, threshold)
        if not step.rises:
            raise stage.metadata.error("a threshold of a Binarizer is not finite", DAMAGED)
        if source in flow.vectors:
            flow.vectors[target] = [slot.then(step) for slot in flow.vectors[source]]
        else:
            flow.scalars[target] = flow.scalar(source).then(step)


def _put_into_buckets(stage: Stage, flow: Flow) -> None:
    """Replaces numbers by the index of their bucket, from 0, in one column or several."""
    given, made = stage.columns("input"), stage.columns("output")
    told = stage.setting("splitsArray" if stage.setting("inputCols") is not None else "splits")
    if told is None:
        raise stage.metadata.error("a Bucketizer has no splits", DAMAGED)
    splits = list(told.items()) if stage.setting("inputCols") is not None else [told]
    if not len(given) == len(made) == len(splits):
        raise stage.metadata.error(f"the stage has splits for {len(splits)} columns, but {len(given)} inputs", DAMAGED)
    for source, target, own in zip(given, made, splits, strict=True):
        ends = [
            _SPECIAL.get(end.value) or end.number() if isinstance(end.value, str) else end.number()
            for end in own.items()
        ]
        if not 3 <= len(ends) <= MAX_CATEGORIES or not all(one < other for one, other in pairwise(ends)):
            raise own.error("the splits of a Bucketizer are not ascending, or are missing", DAMAGED)
        if not math.isinf(ends[0]) or not math.isinf(ends[-1]):
            raise own.error(
                "Spark makes no prediction for a number outside the splits",
                "begin the splits with -Infinity, and end them with Infinity",
            )
        slot = flow.scalar(source)
        if slot.labels is not None:
            raise stage.metadata.error(f"the column `{source[:60]}` of labels is put into buckets", _ALONE)
        missing = float(len(ends) - 1) if stage.keeps_invalid else math.nan
        step = Step(Operation.BUCKET, missing, tuple(ends[1:-1]))
        # Earlier stages may have replaced missing values.
        strict = not stage.keeps_invalid and math.isnan(follow(slot.steps, np.array([np.nan]))[0])
        flow.scalars[target] = replace(slot.then(step), values_only=slot.values_only or strict)


def class_names(
    before: Sequence[Stage], tables: Mapping[str, Rows], model: Stage, after: Sequence[Stage]
) -> list[str] | None:
    """The names of the classes, from a stage after the model or from the indexer of the labels; otherwise None."""
    predicted = _column(model, "prediction")
    for stage in after:
        if stage.kind != "names" or stage.text("inputCol") != predicted:
            raise stage.metadata["class"].error(
                f"a stage {stage.metadata['class'].text()[:80]} after the model is not supported",
                "pass the tree model alone",
            )
        labels = stage.setting("labels")
        if labels is not None and labels.value:
            return labels.texts()
    labels_from = _column(model, "label")
    for stage in before:
        if stage.kind == "string indexer" and labels_from in stage.columns("output"):
            flow = Flow()
            _index(stage, tables[stage.folder.path], flow)
            unknown = [UNKNOWN_CLASS] if stage.keeps_invalid else []
            return [str(label) for label in flow.scalars[labels_from].labels or ()] + unknown
    return None


def _column(model: Stage, name: str) -> str:
    value = model.setting(f"{name}Col")
    return name if value is None else value.text()
