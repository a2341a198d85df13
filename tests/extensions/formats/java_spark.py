"""Predictions of Spark itself, by pyspark in this process, which starts Java on first use."""

from __future__ import annotations

import math
import tempfile
from collections.abc import Iterator, Sequence
from functools import cached_property
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from treesens.compiler.base.folders import read_folder
from treesens.compiler.model import Ensemble
from treesens.compiler.model.evaluate import Predicted
from treesens.errors import ModelError
from treesens.extensions.formats.spark.folder import Folder, folder_of, open_folder
from treesens.extensions.formats.spark.frontend import _KINDS, _columns
from treesens.extensions.formats.spark.parquet import read_tables
from treesens.extensions.formats.spark.stages import _READ, _SCALERS, PIPELINE, Slot, Stage, flow_through, stages_of

_ROW, _LEAF = "treesens row", "treesens leaf"
"""Columns that no table has."""
_OF_VECTORS = ("vector indexer", "slicer", *_SCALERS)
"""Stages whose column is a vector."""
_UNKNOWN = "treesens: no label of the column"


def library_of(ensemble: Ensemble) -> Pyspark:
    """The library's model of the folder or file from which an ensemble was read."""
    place = ensemble.source.path
    whole = Path(place).is_dir()
    stages, root = stages_of(
        folder_of(read_folder(Path(place)), place) if whole else open_folder(Path(place).read_bytes(), place)
    )
    number = next(i for i, stage in enumerate(stages) if stage.metadata["class"].text() in _KINDS)
    model, before = stages[number], stages[:number]
    small = {stage.folder.path: stage.folder.inside("data") for stage in before if stage.has_table}
    _, rows = read_tables({"data": model.folder.inside("data")}, small, place)
    slots = flow_through(before, rows).vectors.get(model.text("featuresCol"))
    if slots is None:
        slots = [Slot(f"f{i}") for i in range(model.metadata["numFeatures"].integer())]
    return Pyspark(root, model, stages, [slots[i] for i in _columns(slots)[0]], ensemble)


class Pyspark:
    """A saved model, or a pipeline of `stages` with it, for Spark.

    `root` is its folder; `slots` are the features.
    """

    def __init__(
        self, root: Folder, model: Stage, stages: Sequence[Stage], slots: Sequence[Slot], ensemble: Ensemble
    ) -> None:
        self._root, self._model, self._stages = root, model, stages
        self._slots, self._ensemble = slots, ensemble
        # Margins, leaves and classes of the same rows are requested in turn.
        self._last: tuple[bytes, list[Any]] | None = None
        self._scratch: tempfile.TemporaryDirectory[str] | None = None

    def margins(self, rows: NDArray[np.float64]) -> NDArray[Any]:
        """Shares of the votes, log-odds, or the value, float64[rows, n_outputs]."""
        found = self._transformed(rows)
        if not self._ensemble.classes:
            return np.array([[row[self._column("prediction")]] for row in found], np.float64)
        if self._model.metadata["class"].text().endswith("DecisionTreeClassificationModel"):
            return self._vectors(found, "probability")
        scores = self._vectors(found, "rawPrediction")
        return 2 * scores[:, 1:] if self._ensemble.n_outputs == 1 else scores / self._ensemble.average

    def leaf_ids(self, rows: NDArray[np.float64]) -> NDArray[Any]:
        """The number of the leaf in each tree, int64[rows, trees]."""
        found = [row[_LEAF] for row in self._transformed(rows)]
        numbers = [leaf.toArray() if hasattr(leaf, "toArray") else [leaf] for leaf in found]
        return np.array(numbers).astype(np.int64)

    def predicts(self, rows: NDArray[np.float64]) -> Predicted:
        """The results of `transform`: probabilities and the class, or the value."""
        found = self._transformed(rows)
        told = [row[self._column("prediction")] for row in found]
        if not self._ensemble.classes:
            return Predicted(np.array(told)[:, None], None)
        shares = self._vectors(found, "probability")[:, -self._ensemble.n_outputs :]
        return Predicted(shares, np.array(told).astype(np.int64))

    def _vectors(self, found: list[Any], column: str) -> NDArray[Any]:
        """A column of vectors, float64[rows, size]."""
        return np.array([row[self._column(column)].toArray() for row in found], np.float64)

    def _column(self, name: str) -> str:
        """The name of a column that the model reads or writes."""
        value = self._model.setting(f"{name}Col")
        return name if value is None or value.value == "" else value.text()

    def _transformed(self, rows: NDArray[np.float64]) -> list[Any]:
        """Spark's results for these rows, in order. ModelError if it refuses some."""
        asked = rows.tobytes()
        if self._last is not None and self._last[0] == asked:
            return self._last[1]
        session, model = self._opened
        from py4j.protocol import Py4JError
        from pyspark.errors import PySparkException

        try:
            found = model.transform(self._frame(session, rows)).collect()
        except (Py4JError, PySparkException) as error:
            raise ModelError(f"Spark does not take the rows: {_first_line(error)}") from None
        if len(found) != len(rows):
            raise ModelError(f"Spark leaves {len(rows) - len(found)} rows out")
        self._last = asked, sorted(found, key=lambda row: int(row[_ROW]))
        return self._last[1]

    def _frame(self, session: Any, rows: NDArray[np.float64]) -> Any:
        """The rows as columns of a table, or as vectors if no stage assembles them."""
        columns = [self._values(number, rows[:, number]) for number in range(len(self._slots))]
        if any(stage.kind == "assembler" for stage in self._stages):
            from pyspark.sql import types

            kinds = [types.StringType() if _is_text(slot) else types.DoubleType() for slot in self._slots]
            fields = [types.StructField(slot.column, kind) for slot, kind in zip(self._slots, kinds, strict=True)]
            # Unused columns that a stage requires nevertheless.
            others = self._unused()
            fields += [
                types.StructField(name, types.StringType() if isinstance(value, str) else types.DoubleType())
                for name, value in others.items()
            ]
            columns += [[value] * len(rows) for value in others.values()]
            schema = types.StructType([types.StructField(_ROW, types.IntegerType()), *fields])
            return session.createDataFrame(list(zip(range(len(rows)), *columns, strict=True)), schema)
        from pyspark.ml.linalg import Vectors

        vectors = [Vectors.dense(row) for row in zip(*columns, strict=True)]
        first = [stage for stage in self._stages if stage.kind in _OF_VECTORS]
        name = first[0].text("inputCol") if first else self._column("features")
        return session.createDataFrame(list(enumerate(vectors)), [_ROW, name])

    def _unused(self) -> dict[str, float | str]:
        """Columns that stages need and that are not features, with an accepted value."""
        known = {slot.column for slot in self._slots}
        before = [stage for stage in self._stages if stage.kind in _READ.values() and stage.kind != "names"]
        asked = {name for stage in before for name in stage.columns("input")}
        # Matched by position, since two stages may have the same `uid`.
        indexers = (stage for stage in _parts(self._opened[1]) if hasattr(stage, "labelsArray"))
        found: dict[str, float | str] = {}
        for stage in before:
            given, made = stage.columns("input"), stage.columns("output")
            if stage.kind in ("imputer", "binarizer", "bucketizer", "assembler"):
                found.update(dict.fromkeys((name for name in given if name not in known), 0.0))
            elif stage.kind == "string indexer":
                # Class labels are indexed in training only: no stage needs their numbers.
                labels = next(indexers).labelsArray
                for name, target, own in zip(given, made, labels, strict=True):
                    if name not in known and target in asked:
                        found[name] = str(own[0])
            known.update(made)
        return found

    def _values(self, number: int, codes: NDArray[np.float64]) -> list[Any]:
        """A column of the table. Spark treats a fraction as an unlisted code: integers are passed."""
        slot, count = self._slots[number], self._ensemble.features[number].categories
        if not count:
            return list((codes + 0.0 if slot.parts_at_zero else codes).tolist())
        listed = (codes >= 0) & (codes < count)
        whole = np.where(listed, np.floor(codes), codes)
        if slot.labels is None:
            return list(whole.tolist())
        if _is_text(slot):
            return [
                slot.labels[int(c)] if known else None if math.isnan(c) else _UNKNOWN
                for c, known in zip(whole.tolist(), listed.tolist(), strict=True)
            ]
        beyond = max(float(label) for label in slot.labels) * 2 + 1.5
        return [
            float(slot.labels[int(c)]) if known else c if math.isnan(c) else abs(beyond)
            for c, known in zip(whole.tolist(), listed.tolist(), strict=True)
        ]

    @cached_property
    def _opened(self) -> tuple[Any, Any]:
        """The session and the model. ModelError if Spark cannot read the model."""
        session = _session()
        from py4j.protocol import Py4JError
        from pyspark.errors import PySparkException

        alone = self._root.path == self._model.folder.path
        name = self._model.metadata["class"].text() if alone else PIPELINE
        module, _, kind = name.removeprefix("org.apache.spark.ml.").rpartition(".")
        reader = getattr(import_module(f"pyspark.ml.{module}".rstrip(".")), kind)
        # Spark reads an imputer's table only when it is used.
        self._scratch = tempfile.TemporaryDirectory(prefix="treesens-spark-")
        for file in self._root.archive.names:
            if file.startswith(self._root.path):
                target = Path(self._scratch.name) / file
                target.parent.mkdir(parents=True, exist_ok=True)
                target.write_bytes(self._root.archive.blob(file))
        try:
            model = reader.load((Path(self._scratch.name) / self._root.path).as_uri())
        except (Py4JError, PySparkException) as error:
            raise ModelError(f"Spark cannot read the model: {_first_line(error)}") from None
        uid = self._model.metadata["uid"].text()
        inner = next((stage for stage in _parts(model) if stage.uid == uid), None)
        if inner is None:
            raise ModelError("Spark finds another model in the file")
        inner.setLeafCol(_LEAF)
        if self._ensemble.classes:
            inner.setProbabilityCol(self._column("probability"))
        return session, model


def _is_text(slot: Slot) -> bool:
    return slot.labels is not None and isinstance(slot.labels[0], str)


def _parts(model: Any) -> Iterator[Any]:
    """The stages of a pipeline, with nested ones, or the model alone."""
    for stage in getattr(model, "stages", [model]):
        inside = getattr(stage, "bestModel", stage)
        yield from _parts(inside) if inside is not stage or hasattr(stage, "stages") else [stage]


def _first_line(error: Exception) -> str:
    return (str(error).strip().splitlines() or ["?"])[0][:300]


def _session() -> Any:
    """The session of this process, or a small new one."""
    from pyspark.sql import SparkSession

    builder = SparkSession.builder.master("local[1]").appName("treesens").config("spark.ui.enabled", "false")
    return builder.config("spark.driver.bindAddress", "127.0.0.1").getOrCreate()
