"""Models of Apache Spark (2 to 4): decision trees, random forests and boosted trees, as folders or zip files of these folders.

How Spark scores (`RandomForestClassificationModel`, `DecisionTreeClassificationModel`, and their regression counterparts):
inputs, thresholds, leaves and sums are float64. A leaf of a classifier stores the number of training rows per class. Divided by
their sum, these numbers are the probabilities of a tree, or the votes of the tree in a forest. A forest predicts the first
class with the most votes. The forest's probabilities are the votes divided by their sum, which equals the number of trees up to
rounding; here, votes are divided by the number of trees, like the sum of leaves in a regression forest.

For boosted trees, leaves * weights are added with the `ddot` of a linear algebra library. The machine determines the library
and its order of additions: Java uses four parallel sums with fused products; native libraries use other orders. Here products
are rounded, and sums have one order; sums in other orders are within the band of `Accumulation.FLOAT64_ANY_ORDER`. The second
of two classes is predicted if the sum is above 0; its probability is the sigmoid of the margin, here twice the sum.
"""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from treesens.compiler.base.arrays import FloatArray
from treesens.compiler.base.floats import NumberType
from treesens.compiler.base.folders import folder_digest
from treesens.compiler.model import Accumulation, Feature, ModelSource, Task
from treesens.compiler.model.ties import Ties
from treesens.errors import ModelError
from treesens.extensions.formats.of_files import in_java
from treesens.extensions.formats.spark.folder import DAMAGED, Folder, folder_of, open_folder
from treesens.extensions.formats.spark.known import TABLE
from treesens.extensions.formats.spark.parquet import Columns, Rows, check_columns, read_tables
from treesens.extensions.formats.spark.stages import UNKNOWN_CLASS, Slot, Stage, class_names, flow_through, stages_of
from treesens.extensions.formats.spark.trees import Grown, by_labels, grow
from treesens.frontends.archives import zip_of
from treesens.frontends.base import LoadedModel
from treesens.frontends.columns import MAX_FEATURES, Nodes, as_categorical, ensemble_of, feature_tuple, labels_of_texts
from treesens.frontends.documents import Field, check_document
from treesens.links import Identity, Logistic

_CLASSES = "org.apache.spark.ml.classification."
_NUMBERS = "org.apache.spark.ml.regression."
_LIST = "list of trees"
_COLUMNS, _LATER_COLUMNS = ("treeID", "metadata", "weights"), ("_1", "_2", "_3")
"""The columns of the table of trees, followed by their names in Spark 4.3."""
_MOST_TREES = 1_000_000
_MOST_CLASSES = 10_000
_ANOTHER = "convert it to PMML (jpmml-sparkml); PMML is supported; compare both models on your rows"
_BOOSTED = (
    "Spark adds up boosted trees in an order that depends on the machine: results within rounding are open; margins of "
    "two classes are log-odds, twice the raw predictions of Spark"
)
_DIVIDED = (
    "classes are those of `transform`: the greatest ratio of probability to threshold; `predict` of a single tree "
    "ignores the thresholds"
)
_CUT = (
    "the second class is predicted if its probability over its threshold exceeds the first class's; the class is "
    "open if both are equal up to their last digits"
)
_ZERO = "Spark assigns -0.0 to the bucket below the bucket that begins at 0; here -0.0 is treated as 0, so pass 0"


@dataclass(frozen=True)
class _Kind:
    """A class of Spark models; the flags mean that it has `many` trees, that it `classifies`, and that trees are `boosted`."""

    many: bool
    classifies: bool
    boosted: bool = False


_KINDS = {
    _CLASSES + "DecisionTreeClassificationModel": _Kind(many=False, classifies=True),
    _CLASSES + "RandomForestClassificationModel": _Kind(many=True, classifies=True),
    _NUMBERS + "DecisionTreeRegressionModel": _Kind(many=False, classifies=False),
    _NUMBERS + "RandomForestRegressionModel": _Kind(many=True, classifies=False),
    _CLASSES + "GBTClassificationModel": _Kind(many=True, classifies=True, boosted=True),
    _NUMBERS + "GBTRegressionModel": _Kind(many=True, classifies=False, boosted=True),
}


@dataclass(frozen=True)
class Thresholds(Ties):
    """Spark's `thresholds`, all above 0: the class with the greatest ratio of probability to threshold is predicted.

    Ratios are rounded, so if two ratios differ only in the last digits, the winner is undecided, as at a tie.
    """

    values: tuple[float, ...]

    def choose(self, scores: FloatArray, row: FloatArray) -> int:  # noqa: ARG002 - as `Ties.choose`
        """The class for the probabilities `scores`, float64[classes], which does not depend on the row."""
        return int(np.argmax(np.asarray(scores, np.float64) / np.asarray(self.values)))

    @cached_property
    def factors(self) -> tuple[Fraction, ...]:
        """The factor by which each class's score is multiplied before the comparison."""
        return tuple(1 / Fraction(value) for value in self.values)

    @property
    def cut(self) -> Fraction | None:
        """The probability of the second of two classes at which the two ratios are equal; None for three or more classes."""
        if len(self.values) != 2:
            return None
        first, second = (Fraction(repr(value)) for value in self.values)
        return second / (first + second)


class SparkFrontend:
    """Reads the folder written by `model.save`, or a zip file of the folder; live models are Java objects."""

    name = "spark"
    library = ""
    reads_with = "pyarrow"

    def recognises_bytes(self, head: bytes) -> bool:
        return zip_of(head) == "spark"

    def recognises_object(self, obj: object) -> bool:
        return type(obj).__module__.startswith("pyspark.ml.")

    def from_object(self, obj: Any) -> LoadedModel:
        kind = type(obj).__qualname__
        raise ModelError(f"a live {kind} of Spark is a Java object", remedy="save the model, and pass its folder")

    def recognises_folder(self, names: Collection[str]) -> bool:
        return "metadata" in names

    def load(self, path: Path, data: bytes) -> LoadedModel:
        return self._read(path, open_folder(data, str(path)), hashlib.sha256(data).hexdigest())

    def load_folder(self, path: Path, files: Mapping[str, bytes]) -> LoadedModel:
        return self._read(path, folder_of(files, str(path)), folder_digest(files))

    def _read(self, path: Path, folder: Folder, sha256: str) -> LoadedModel:
        stages, _ = stages_of(folder)
        which = [i for i, stage in enumerate(stages) if stage.kind == "model"] or [0]
        which = [i for i in which if stages[i].metadata["class"].text() in _KINDS] or which
        before, model, after = stages[: which[0]], stages[which[0]], stages[which[0] + 1 :]
        kind = _kind(model)
        small = {stage.folder.path: stage.folder.inside("data") for stage in before if stage.has_table}
        if kind.many:
            small[_LIST] = model.folder.inside("treesMetadata")
        tables, rows = read_tables({"data": model.folder.inside("data")}, small, str(path))
        grown = _grow(model, kind, tables["data"], rows.get(_LIST))
        slots = flow_through(before, rows).vectors.get(model.text("featuresCol"))
        names = class_names(before, rows, model, after)
        return _loaded(model, kind, grown, slots, names if kind.classifies else None, path, sha256)


def _kind(model: Stage) -> _Kind:
    """The kind of model that the metadata declares. Raises ModelError for unsupported kinds and unknown fields or settings."""
    metadata = model.metadata
    name = metadata["class"].text()
    if name not in _KINDS:
        known = ", ".join(sorted(known.rpartition(".")[2] for known in _KINDS))
        raise metadata["class"].error(
            f"a model of the class {name[:80]} is not read", f"supported: {known}; {_ANOTHER}"
        )
    check_document(TABLE, metadata.value, metadata.place)
    version = metadata["sparkVersion"].text()
    if version.partition(".")[0] not in ("2", "3", "4"):
        raise metadata["sparkVersion"].error(f"unknown Spark version {version[:20]}", "save the model in Spark 2 to 4")
    raw = model.setting("rawPredictionCol")
    if raw is not None and raw.value == "":
        raise raw.error(
            "without a raw prediction column Spark compares rounded probabilities",
            "set rawPredictionCol, and save the model again",
        )
    kind = _KINDS[name]
    loss = model.setting("lossType")
    if kind.boosted and kind.classifies and loss is not None and loss.text().lower() != "logistic":
        raise loss.error(f"the loss {loss.text()[:40]} is not read", "train with lossType=logistic")
    return kind


@dataclass(frozen=True, eq=False)
class _Read:
    """The trees, and the counts of features, of classes for which leaves vote (0 for regression), and of all classes."""

    grown: Grown
    width: int
    votes: int
    classes: int


def _grow(model: Stage, kind: _Kind, columns: Columns, trees: Rows | None) -> _Read:
    """Reads the trees, and multiplies the leaves of each tree by its weight."""
    metadata = model.metadata
    width = metadata["numFeatures"].integer()
    if not 0 < width <= MAX_FEATURES:
        raise metadata["numFeatures"].error(f"{width} features are not plausible")
    weights = _weights(metadata, kind, trees, model.folder.inside("treesMetadata"))
    votes = _classes(metadata) if kind.classifies and not kind.boosted else 0
    place = model.folder.inside("data").place
    grown = grow(columns, place, trees=len(weights) if kind.many else None, classes=votes)
    if kind.boosted:
        grown = replace(grown, nodes=_weighted(grown.nodes, weights, twice=kind.classifies))
    return _Read(grown, width, votes, 2 if kind.boosted and kind.classifies else votes)


def _loaded(
    model: Stage, kind: _Kind, read: _Read, slots: list[Slot] | None, names: list[str] | None, path: Path, sha256: str
) -> LoadedModel:
    """The model of these trees over the columns of a table or, without stages, over the numbers of a vector."""
    place, metadata = str(path), model.metadata
    if slots is None:
        slots = [Slot(f"f{number}") for number in range(read.width)]
    if len(slots) != read.width:
        raise metadata["numFeatures"].error(
            f"the model has {read.width} features, but the stages before it make {len(slots)}: some column contains a vector",
            "pass the tree model alone",
        )
    if (read.grown.nodes.feature >= read.width).any():
        raise ModelError(
            "a split uses a feature that does not exist", place=model.folder.inside("data").place, remedy=DAMAGED
        )
    # Several numbers made from one column of labels are one feature.
    which, of_slot = _columns(slots)
    needed = {of_slot[number] for number, slot in enumerate(slots) if slot.values_only}
    features: list[Feature] = []
    for feature, number in zip(feature_tuple([slots[i].column for i in which], place), which, strict=True):
        slot = slots[number]
        if slot.labels is not None:
            listed = labels_of_texts(slot.labels) if isinstance(slot.labels[0], str) else slot.labels
            made = as_categorical(feature, len(slot.labels), listed)
        elif number in read.grown.categories and not slot.steps:
            made = as_categorical(feature, read.grown.categories[number], None)
        else:
            made = feature
        features.append(replace(made, needs_value=len(features) in needed))
    nodes = by_labels(read.grown.nodes, slots, of_slot, place)
    if names is not None and names[-1:] == [UNKNOWN_CLASS] and len(names) == read.classes + 1:
        names = names[:-1]
    if names is not None and (len(names) != read.classes or len(set(names)) != len(names)):
        raise metadata.error(f"there are {len(names)} names for {read.classes} classes, or one is repeated", DAMAGED)
    trees = len(nodes.tree_offset) - 1
    divided = _thresholds(model, read)
    # For boosted trees the two probabilities add up to 1, so the thresholds are a cut-off of the second class.
    thresholds, cutoff = (None, divided.cut) if divided is not None and kind.boosted else (divided, None)
    ensemble = ensemble_of(
        nodes,
        tuple(features),
        place,
        name=path.stem,
        source=ModelSource("spark", version=metadata["sparkVersion"].text(), sha256=sha256, path=place),
        number_type=NumberType.FLOAT64,
        comparison="<=",
        tree_output=np.full(trees, -1 if read.votes else 0),
        tree_weight=np.ones(trees),
        base=np.zeros(read.votes or 1),
        link=Logistic() if kind.boosted and read.classes else Identity(),
        task={0: Task.REGRESSION, 2: Task.BINARY}.get(read.classes, Task.MULTICLASS),
        accumulation=Accumulation.FLOAT64_ANY_ORDER if kind.boosted else Accumulation.FLOAT64_BASE_LAST,
        average=1 if kind.boosted else trees,
        classes=_names_of(names) if names is not None else tuple(range(read.classes)),
        ranks_scores=kind.boosted,
        cutoff=cutoff,
        ranks_sums=read.votes > 0 and thresholds is None,
        ties=thresholds,
        probability_cut=None if thresholds is None else thresholds.cut,
    )
    parts = any(slot.parts_at_zero for slot in slots)
    told = {_BOOSTED: kind.boosted, _ZERO: parts, _DIVIDED: thresholds is not None, _CUT: cutoff is not None}
    notes = tuple(note for note, holds in told.items() if holds)
    return LoadedModel(ensemble, SparkFrontend.name, in_java, notes=notes)


def _columns(slots: list[Slot]) -> tuple[list[int], list[int]]:
    """For each column of the table, the index of a number of the vector; for each such number, the index of its column.

    Numbers from one column are merged if all of them encode the column's labels in the same way, or if all equal the column.
    """
    first: dict[object, int] = {}
    which: list[int] = []
    of_slot: list[int] = []
    for number, slot in enumerate(slots):
        # Two codings of one column's labels would be two features with the same name, which is refused.
        alone = slot.labels is not None and slot.ones is None
        key: object = number if alone else (slot.column, slot.labels, slot.kept)
        if key not in first:
            first[key] = len(which)
            which.append(number)
        of_slot.append(first[key])
    return which, of_slot


def _thresholds(model: Stage, read: _Read) -> Thresholds | None:
    """The thresholds, which divide probabilities. Raises ModelError for a threshold of 0, or a wrong number of thresholds."""
    given = model.setting("thresholds")
    if given is None:
        return None
    values = given.floats().tolist()
    if len(values) != read.classes or not all(2.0**-40 <= value <= 2.0**40 for value in values):
        raise given.error(
            f"there are {len(values)} thresholds for {read.classes} classes, or one is 0",
            "clear them, and use `prob(P, CLASS) >= c`: with a threshold of 0 a class is predicted wherever it is possible",
        )
    return Thresholds(tuple(values))


def _names_of(names: list[str]) -> tuple[str | int, ...]:
    """The classes; integers if all names are integers."""
    found = labels_of_texts(names)
    whole = [label for label in found or () if isinstance(label, int)]
    return tuple(whole) if len(whole) == len(names) else tuple(names)


def _classes(metadata: Field) -> int:
    """The number of classes."""
    count = metadata["numClasses"].integer()
    if not 2 <= count <= _MOST_CLASSES:
        raise metadata["numClasses"].error(f"{count} classes are not plausible")
    return count


def _weighted(nodes: Nodes, weights: NDArray[np.float64], *, twice: bool) -> Nodes:
    """The nodes of boosted trees, with leaf values converted to contributions to the margin."""
    of_node = np.repeat(weights, np.diff(nodes.tree_offset))
    with np.errstate(over="ignore", under="ignore", invalid="ignore"):
        return replace(nodes, leaf_value=nodes.leaf_value * of_node[:, None] * (2.0 if twice else 1.0))


def _weights(metadata: Field, kind: _Kind, trees: Rows | None, folder: Folder) -> NDArray[np.float64]:
    """The weights of all trees, in numeric order. Raises ModelError unless each tree is listed exactly once."""
    if trees is None:
        return np.ones(1)
    count = metadata["numTrees"].integer()
    if not 0 < count <= _MOST_TREES:
        raise metadata["numTrees"].error(f"{count} trees are not plausible")
    which, told, weight = _LATER_COLUMNS if "_1" in trees.names else _COLUMNS
    check_columns(trees.names, (which, told, weight), folder.place)
    listed = sorted(Field(list(trees.rows), folder.place).items(), key=lambda row: row[which].integer())
    if [row[which].integer() for row in listed] != list(range(count)):
        raise ModelError(
            f"there are {len(listed)} trees, but the metadata says {count}", place=folder.place, remedy=DAMAGED
        )
    weights = Field([row[weight].value for row in listed], folder.place).floats()
    if not np.isfinite(weights).all() or (not kind.boosted and (weights != 1).any()):
        raise ModelError("the weights of the trees are not plausible", place=folder.place, remedy=DAMAGED)
    return weights
