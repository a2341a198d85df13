"""The result of `Booster.dump_model` as JSON: nested nodes with thresholds and category lists as text."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from treesens.frontends.documents import Field, check_document
from treesens.frontends.lightgbm.known import TABLE
from treesens.frontends.lightgbm.model import (
    MISSING_NAN,
    MISSING_NONE,
    MISSING_ZERO,
    LightGBMHeader,
    LightGBMTree,
)
from treesens.frontends.lightgbm.text import checked_codes

_MISSING = {"None": MISSING_NONE, "Zero": MISSING_ZERO, "NaN": MISSING_NAN}


def read_json(root: Field) -> tuple[LightGBMHeader, list[LightGBMTree]]:
    """Header and trees of a dumped model. Raises a ModelError that names the field."""
    names = root["feature_names"].texts()
    infos = root.get("feature_infos")
    pandas = root.value.get("pandas_categorical")
    objective = root.get("objective")
    if "average_output" not in root:
        raise root.error(
            "the prediction task is unknown: before LightGBM 2.2.3 a dump has no objective, and no "
            "`average_output`, which states whether the trees are averaged",
            "pass the text file of Booster.save_model, or the live Booster",
        )
    header = LightGBMHeader(
        version=root["version"].text(),
        outputs=root["num_tree_per_iteration"].integer(),
        objective=objective.text() if objective else "",
        average=root["average_output"].flag(),
        names=names,
        categories=[_known_codes(infos.get(name) if infos else None) for name in names],
        ranges=[_range(infos.get(name) if infos else None) for name in names],
        pandas=pandas if isinstance(pandas, list) and all(isinstance(p, list) for p in pandas) else [],
        monotone=root.value.get("monotone_constraints"),
    )
    trees = [_tree(tree, len(names)) for tree in root["tree_info"].items()]
    check_document(TABLE, root.value, root.place)
    return header, trees


def _known_codes(info: Field | None) -> NDArray[np.int64] | None:
    if info is None or not len(info["values"].floats()):
        return None
    codes = info["values"].integers()
    return checked_codes(codes[codes >= 0], info.error)


def _range(info: Field | None) -> tuple[float, float] | None:
    if info is None or "min_value" not in info or len(info["values"].floats()):
        return None
    return info["min_value"].number(), info["max_value"].number()


def _tree(tree: Field, features: int) -> LightGBMTree:
    leaves = tree["num_leaves"].integer()
    inner: dict[int, dict[str, Any]] = {}
    values: dict[int, float] = {}

    def number(node: Field) -> int:
        """The reference to a node as in LightGBM's text format: the node's number, or ~number for a leaf."""
        if "split_index" in node:
            return node["split_index"].integer()
        # A single-leaf tree has no leaf_index in some versions.
        return ~(node["leaf_index"].integer() if "leaf_index" in node else 0)

    todo = [tree["tree_structure"]]
    while todo:
        node = todo.pop()
        at = number(node)
        if at < 0:
            if "leaf_const" in node or "leaf_coeff" in node:
                raise node.error(
                    "linear trees have no constant leaves and are not supported", "train with linear_tree=false"
                )
            if ~at in values or not 0 <= ~at < leaves:
                raise node.error(f"leaf {~at} appears twice or does not exist")
            values[~at] = _number(node["leaf_value"])
            continue
        if at in inner or at >= leaves - 1:
            raise node.error(f"node {at} appears twice or does not exist")
        children = node["left_child"], node["right_child"]
        inner[at] = _split(node, features) | {"left": number(children[0]), "right": number(children[1])}
        todo.extend(children)
    if len(values) != leaves or len(inner) != leaves - 1:
        raise tree.error(f"expected {leaves} leaves, found {len(values)} leaves and {len(inner)} splits")
    if leaves > 1 and number(tree["tree_structure"]) != 0:
        raise tree["tree_structure"].error("the root is not node 0")

    def column(key: str, dtype: Any) -> NDArray[Any]:
        return np.array([inner[i][key] for i in range(leaves - 1)], dtype=dtype)

    return LightGBMTree(
        feature=column("feature", np.int64),
        threshold=column("threshold", np.float64),
        default_left=column("default", np.bool_),
        missing=column("missing", np.int64),
        left=column("left", np.int64),
        right=column("right", np.int64),
        leaf_value=np.array([values[i] for i in range(leaves)], dtype=np.float64),
        codes={i: split["codes"] for i, split in sorted(inner.items()) if split["codes"] is not None},
    )


def _number(field: Field) -> float:
    if isinstance(field.value, bool) or not isinstance(field.value, (int, float)):
        raise field.error("expected a number")
    try:
        return float(field.value)
    except OverflowError:
        raise field.error("the number is too large") from None


def _split(node: Field, features: int) -> dict[str, Any]:
    feature = node["split_feature"].integer()
    if not 0 <= feature < features:
        raise node["split_feature"].error("a split uses a feature that does not exist")
    kind, missing = node["decision_type"], node["missing_type"]
    if missing.text() not in _MISSING:
        raise missing.error(f"unknown missing type `{missing.text()[:20]}`")
    codes, threshold = None, 0.0
    if kind.text() == "==":
        codes = _codes(node["threshold"])
    elif kind.text() == "<=":
        threshold = _number(node["threshold"])
        if np.isnan(threshold):
            raise node["threshold"].error("a threshold is NaN")
    else:
        raise kind.error(f"unknown decision type `{kind.text()[:20]}`")
    return {
        "feature": feature,
        "threshold": threshold,
        "default": node["default_left"].flag(),
        "missing": _MISSING[missing.text()],
        "codes": codes,
    }


def _codes(field: Field) -> NDArray[np.int64]:
    try:
        codes = np.array(field.text().split("||") if field.text() else [], dtype=np.int64)
    except (ValueError, OverflowError):
        raise field.error("not a list of category codes") from None
    return checked_codes(codes, field.error)
