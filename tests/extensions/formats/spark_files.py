"""Small models of Spark, made by hand: a zip file of metadata and of tables with a row for each node, as Spark writes them."""

from __future__ import annotations

import io
import json
import zipfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

CLASSES = "org.apache.spark.ml.classification."
NUMBERS = "org.apache.spark.ml.regression."


@dataclass(frozen=True)
class Split:
    """An inner node: a threshold, or with `categories` the codes that go left."""

    feature: int
    left: Node
    right: Node
    threshold: float = 0.0
    codes: Sequence[float] = ()
    categories: int = -1


@dataclass(frozen=True)
class Leaf:
    """What a leaf predicts; `counts` are how many rows each class has, or three sums of a value."""

    prediction: float = 0.0
    counts: Sequence[float] = (1.0, 1.0, 1.0)


Node = Split | Leaf


def counted(*counts: float) -> Leaf:
    """A leaf of a classifier."""
    return Leaf(float(max(range(len(counts)), key=counts.__getitem__)), counts)


def rows_of(tree: Node) -> list[dict[str, Any]]:
    """The nodes of a tree as Spark writes them, in pre-order."""
    rows: list[dict[str, Any]] = []

    def add(node: Node) -> int:
        row: dict[str, Any] = {"id": len(rows), "impurity": 0.5, "rawCount": 1, "leftChild": -1, "rightChild": -1}
        rows.append(row)
        split: dict[str, Any] = {"featureIndex": -1, "leftCategoriesOrThreshold": [], "numCategories": -1}
        leaf = node if isinstance(node, Leaf) else Leaf()
        row |= {"prediction": leaf.prediction, "impurityStats": [float(n) for n in leaf.counts], "gain": -1.0}
        if isinstance(node, Split):
            values = list(node.codes) if node.categories != -1 else [node.threshold]
            split = {
                "featureIndex": node.feature,
                "leftCategoriesOrThreshold": [float(v) for v in values],
                "numCategories": node.categories,
            }
            row["leftChild"] = add(node.left)
            row["rightChild"] = add(node.right)
        row["split"] = split
        return int(row["id"])

    add(tree)
    return rows


def node_type() -> Any:
    """The structure of a row."""
    import pyarrow as pa

    split = pa.struct(
        [
            ("featureIndex", pa.int32()),
            ("leftCategoriesOrThreshold", pa.list_(pa.float64())),
            ("numCategories", pa.int32()),
        ]
    )
    return pa.struct(
        [
            ("id", pa.int32()),
            ("prediction", pa.float64()),
            ("impurity", pa.float64()),
            ("impurityStats", pa.list_(pa.float64())),
            ("rawCount", pa.int64()),
            ("gain", pa.float64()),
            ("leftChild", pa.int32()),
            ("rightChild", pa.int32()),
            ("split", split),
        ]
    )


def parquet_of(rows: Sequence[Mapping[str, Any]], schema: Any = None) -> bytes:
    """A table of rows."""
    import pyarrow as pa
    from pyarrow import parquet

    out = io.BytesIO()
    parquet.write_table(pa.Table.from_pylist(list(rows), schema), out)
    return out.getvalue()


def written(
    path: Path,
    kind: str,
    trees: Sequence[Node] | None = None,
    *,
    rows: Sequence[Mapping[str, Any]] | None = None,
    weights: Sequence[float] | None = None,
    drop: Sequence[str] = (),
    settings: Mapping[str, Any] | None = None,
    **metadata: Any,
) -> Path:
    """A model of this class over the features f0 (a number), f1 (by its splits) and f2, in a zip file.

    `rows` are the rows of the table if they are not those of the trees; fields in `drop` are not in the metadata.
    """
    import pyarrow as pa

    many = "RandomForest" in kind or "GBT" in kind
    given = list(trees or [])
    if rows is None:
        rows = [
            {"treeID": number, "nodeData": row} if many else row
            for number, tree in enumerate(given)
            for row in rows_of(tree)
        ]
    fields: dict[str, Any] = {
        "class": kind,
        "timestamp": 1,
        "sparkVersion": "3.5.3",
        "uid": "made_1",
        "paramMap": dict(settings or {}),
        "defaultParamMap": {
            "impurity": "gini" if kind.startswith(CLASSES) and "GBT" not in kind else "variance",
            "featuresCol": "features",
            "predictionCol": "prediction",
        },
        "numFeatures": 3,
    }
    if kind.startswith(CLASSES) and "GBT" not in kind:
        leaves = [row for tree in given for row in rows_of(tree) if row["leftChild"] == -1]
        fields["numClasses"] = len(leaves[0]["impurityStats"]) if leaves else 2
    if many:
        fields["numTrees"] = len(given)
    fields = {name: value for name, value in (fields | metadata).items() if name not in drop}
    schema = node_type()
    whole = pa.schema([("treeID", pa.int32()), ("nodeData", schema)]) if many else pa.schema(list(schema))
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("m/metadata/part-00000", json.dumps(fields) + "\n")
        archive.writestr("m/metadata/_SUCCESS", "")
        archive.writestr("m/data/part-00000-a.snappy.parquet", parquet_of(rows, whole if rows and trees else None))
        if many:
            single = kind.replace("RandomForest", "DecisionTree").replace("GBT", "DecisionTree")
            inner = {**fields, "class": single}
            if "GBT" in kind:
                inner |= {"class": NUMBERS + "DecisionTreeRegressionModel", "paramMap": {}}
            listed = [
                {"treeID": number, "metadata": json.dumps(inner), "weights": float(weight)}
                for number, weight in enumerate(weights or [1.0] * len(given))
            ]
            names = pa.schema([("treeID", pa.int32()), ("metadata", pa.string()), ("weights", pa.float64())])
            archive.writestr("m/treesMetadata/part-00000-b.snappy.parquet", parquet_of(listed, names))
    return path
