"""Converts XGBoost's old binary files, the default up to version 2.1, to the JSON documents of the same models.

The layout is that of the sources 0.6 to 2.1 (learner.cc, gbtree_model.h, tree_model.h): parameters of the learner,
names of objective and booster, parameters of the booster, nodes and statistics of every tree, outputs of the trees, weights of
DART, and attributes. Metrics of training at the end are not read.
"""

from __future__ import annotations

import json
import math
import struct
from typing import Any

import numpy as np
from numpy.typing import NDArray

from treesens.compiler.base.floats import libm_float32
from treesens.errors import ModelError

_NODE = np.dtype([("parent", "<i4"), ("left", "<i4"), ("right", "<i4"), ("split", "<u4"), ("info", "<f4")])
_STATISTICS = np.dtype([("loss", "<f4"), ("hessian", "<f4"), ("weight", "<f4"), ("leaves", "<i4")])
_LEARNER = struct.Struct("<f I 7i 100x")
_BOOSTER = struct.Struct("<2i 8x q 2i 128x")
_TREE = struct.Struct("<4x 2i 4x 2i 124x")
_INDEX = (1 << 31) - 1
"""The bits of an index; the highest bit of `split` means that missing values go left."""
_AS_JSON = "load it with an xgboost before 3.1 and save it as .json or .ubj"
_LOSSES: dict[str, dict[str, str]] = {
    "poisson_regression_param": {"max_delta_step": "0.7"},
    "reg_loss_param": {"scale_pos_weight": "1"},
    "tweedie_regression_param": {"tweedie_variance_power": "1.5"},
}
"""Parameters of losses in files before 1.0, which XGBoost requires in JSON, but which do not affect predictions."""


class _File:
    def __init__(self, data: bytes, place: str) -> None:
        self.data, self.at, self.place = data, 0, place

    def error(self, message: str, remedy: str = "copy or save it again") -> ModelError:
        return ModelError(
            f"XGBoost's old binary format: {message}", place=f"{self.place}: byte {self.at}", remedy=remedy
        )

    def take(self, count: int) -> bytes:
        if not 0 <= count <= len(self.data) - self.at:
            raise self.error("the file ends in the middle of the model")
        self.at += count
        return self.data[self.at - count : self.at]

    def unpack(self, form: struct.Struct) -> tuple[Any, ...]:
        return form.unpack(self.take(form.size))

    def array(self, kind: str | np.dtype[Any], count: int) -> NDArray[Any]:
        return np.frombuffer(self.take(np.dtype(kind).itemsize * count), kind)

    def count(self) -> int:
        return int(struct.unpack("<Q", self.take(8))[0])

    def text(self) -> str:
        raw = self.take(self.count())
        try:
            return raw.decode()
        except UnicodeDecodeError:
            raise self.error("a text is not UTF-8") from None


def convert_file(data: bytes, place: str) -> bytes:
    """The JSON document of a binary file. Raises ModelError for a file that is cut off, and for models other than trees.

    Files before 1.0 contain a margin instead of a base score. It is converted to the prediction, as in XGBoost 1.0 to 3.0.
    """
    file = _File(data, place)
    file.take(4 if data.startswith(b"binf") else 0)
    base, features, classes, has_attributes, _, major, minor, targets, estimated = file.unpack(_LEARNER)
    if not (0 <= major <= 2 and 0 <= minor < 100):
        raise file.error(f"version {major}.{minor} is not known here", _AS_JSON)
    objective, booster = file.text(), file.text()
    if booster not in ("gbtree", "dart"):
        raise file.error(f"booster `{booster[:40]}` is not supported", _AS_JSON)
    count, parallel, buffers, _, width = file.unpack(_BOOSTER)
    if buffers or width > 1:
        raise file.error("prediction buffers and vector leaves are not supported", _AS_JSON)
    trees = [_tree(file, number, features) for number in range(count)]
    sizes = {"num_trees": str(count), **({"num_parallel_tree": str(parallel)} if (major, minor) >= (1, 6) else {})}
    model: dict[str, Any] = {"gbtree_model_param": sizes, "trees": trees}
    model["tree_info"] = file.array("<i4", count).tolist()
    learner: dict[str, Any] = {
        "gradient_booster": {"name": "gbtree", "model": model},
        "feature_names": [],
        "feature_types": [],
    }
    if booster == "dart":
        weights = _decimals(file.array("<f4", file.count() if count else 0))
        learner["gradient_booster"] = {"name": "dart", "gbtree": learner["gradient_booster"], "weight_drop": weights}
    attributes = {file.text(): file.text() for _ in range(file.count())} if has_attributes else {}
    if not major:
        base = _prediction(file, objective, base)
    learner["learner_model_param"] = {
        **{"base_score": str(np.float32(base)), "num_class": str(classes), "num_feature": str(features)},
        **({"num_target": str(targets)} if (major, minor) >= (1, 6) else {}),
        **({"boost_from_average": str(estimated)} if (major, minor) >= (1, 7) else {}),
    }
    learner["objective"] = {**_loss(file, attributes, classes), "name": objective}
    learner["attributes"] = {key: attributes[key] for key in ("best_iteration",) if key in attributes}
    return json.dumps({"version": [major, minor, 0], "learner": learner}).encode()


def _tree(file: _File, number: int, features: int) -> dict[str, Any]:
    nodes, deleted, _, width = file.unpack(_TREE)
    if nodes < 1 or width > 1:
        raise file.error(f"tree {number} has {nodes} nodes and {width} values in a leaf", _AS_JSON)
    node, counted = file.array(_NODE, nodes), file.array(_STATISTICS, nodes)
    return {
        "id": number,
        "tree_param": {
            **{"num_nodes": str(nodes), "num_deleted": str(deleted)},
            **{"num_feature": str(features), "size_leaf_vector": "0"},
        },
        "left_children": node["left"].tolist(),
        "right_children": node["right"].tolist(),
        "parents": (node["parent"] & _INDEX).tolist(),
        "split_indices": (node["split"] & _INDEX).tolist(),
        "default_left": (node["split"] >> 31).tolist(),
        "split_conditions": _decimals(node["info"]),
        "split_type": [0] * nodes,
        **{key: [] for key in ("categories", "categories_nodes", "categories_segments", "categories_sizes")},
        "loss_changes": _decimals(np.nan_to_num(counted["loss"])),
        "sum_hessian": _decimals(np.nan_to_num(counted["hessian"])),
        "base_weights": _decimals(np.nan_to_num(counted["weight"])),
    }


def _decimals(values: NDArray[np.float32]) -> list[float]:
    """The numbers whose shortest decimals are those of the float32 values."""
    return [float(str(value)) for value in values]


def _prediction(file: _File, objective: str, margin: float) -> float:
    """The base score of a file before 1.0, which contains the margin (PredTransform of each objective, in float32)."""
    if objective == "binary:hinge":
        raise file.error(
            "for `binary:hinge`, versions since 1.0 read the base score of this file wrongly", "train it again"
        )
    if not math.isfinite(margin):
        raise file.error("base_score is not finite")
    if objective in ("binary:logistic", "reg:logistic"):
        one = np.float32(1)
        return float(one / (one + np.float32(libm_float32("expf", min(-margin, 88.0)))))
    logarithmic = ("count:poisson", "reg:gamma", "reg:tweedie", "survival:cox")
    return libm_float32("expf", margin) if objective in logarithmic else margin


def _loss(file: _File, attributes: dict[str, str], classes: int) -> dict[str, Any]:
    """The parameters of the loss, an attribute of files since 1.0."""
    if "objective" not in attributes:
        return {**_LOSSES, "softmax_multiclass_param": {"num_class": str(classes)}}
    try:
        found = json.loads(attributes["objective"])
    except (ValueError, RecursionError):
        found = None
    if not isinstance(found, dict):
        raise file.error("the parameters of the objective are not a JSON object")
    return found
