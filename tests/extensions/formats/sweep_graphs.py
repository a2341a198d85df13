"""Random graphs of ONNX with one tree ensemble: scores, transforms, base values, weights and classes in every mixture."""

from __future__ import annotations

from typing import Any

import numpy as np

_MODES = ["BRANCH_LEQ", "BRANCH_LT", "BRANCH_GTE", "BRANCH_GT"]
_VALUES = [-1.0, -0.5, 0.0, 0.25, 0.5, 1.0, 0.1]
_WEIGHTS = {
    "positive": [0.0, 0.1, 0.25, 0.3, 0.5, 0.7],
    "mixed": [-1.0, -0.5, -0.1, 0.0, 0.1, 0.5, 1.0, 0.3],
    "above": [0.05, 0.1, 0.5],
    "large": [-1e30, 1e-30, 3.0, -40.0, 1e7],
}


def _tree(rng: np.random.Generator, tree: int, width: int, modes: list[str]) -> list[dict[str, Any]]:
    """The nodes of a tree, with ids in any order."""
    nodes: list[dict[str, Any]] = []

    def grow(depth: int) -> int:
        number = len(nodes)
        nodes.append({"treeids": tree, "nodeids": number, "featureids": 0, "modes": "LEAF", "values": 0.0})
        nodes[number] |= {"truenodeids": 0, "falsenodeids": 0, "missing_value_tracks_true": 0}
        if depth and rng.random() < 0.8:
            split = {"featureids": int(rng.integers(width)), "modes": str(rng.choice(modes))}
            split |= {"values": float(rng.choice(_VALUES)), "missing_value_tracks_true": int(rng.integers(2))}
            nodes[number] |= split
            nodes[number] |= {"truenodeids": grow(depth - 1), "falsenodeids": grow(depth - 1)}
        return number

    grow(int(rng.integers(0, 4)))
    renamed = rng.permutation(len(nodes)) if rng.random() < 0.3 else np.arange(len(nodes))
    for node in nodes:
        inner = node["modes"] != "LEAF"
        node["nodeids"] = int(renamed[node["nodeids"]])
        for key in ("truenodeids", "falsenodeids"):
            node[key] = int(renamed[node[key]]) if inner else 0
    return nodes


def graph(rng: np.random.Generator) -> Any:
    """A model of one TreeEnsembleClassifier or TreeEnsembleRegressor over the input `x`."""
    from onnx import helper

    classifier = bool(rng.random() < 0.75)
    width, trees = int(rng.integers(1, 4)), int(rng.integers(1, 6))
    outputs = int(rng.choice([2, 2, 2, 3, 4])) if classifier else int(rng.choice([1, 1, 2, 3]))
    modes = [str(rng.choice(_MODES))] if rng.random() < 0.6 else _MODES + (["BRANCH_EQ"] if rng.random() < 0.05 else [])
    nodes = [node for tree in range(trees) for node in _tree(rng, tree, width, modes)]
    kind = str(rng.choice(list(_WEIGHTS), p=[0.4, 0.4, 0.1, 0.1]))
    fed = str(rng.choice(["all", "one per tree", "one", "some"], p=[0.4, 0.25, 0.25, 0.1]))
    only = int(rng.integers(outputs))
    entries = []
    for node in nodes:
        if node["modes"] != "LEAF":
            continue
        ids = {"all": range(outputs), "one per tree": [node["treeids"] % outputs], "one": [only]}.get(
            fed, [i for i in range(outputs) if rng.random() < 0.6]
        )
        ids = list(ids)
        rng.shuffle(ids)
        entries += [(node["treeids"], node["nodeids"], int(i), float(rng.choice(_WEIGHTS[kind]))) for i in ids]
    if not entries:
        entries = [(n["treeids"], n["nodeids"], 0, 0.5) for n in nodes if n["modes"] == "LEAF"]
    prefix = "class" if classifier else "target"
    transforms = ["NONE", "LOGISTIC", "SOFTMAX", "SOFTMAX_ZERO", "PROBIT"]
    given: dict[str, Any] = {f"nodes_{key}": [node[key] for node in nodes] for key in nodes[0]}
    for place, key in enumerate(("treeids", "nodeids", "ids", "weights")):
        given[f"{prefix}_{key}"] = [entry[place] for entry in entries]
    given["post_transform"] = str(rng.choice(transforms, p=[0.4, 0.3, 0.2, 0.07, 0.03]))
    if rng.random() < 0.3:
        size = int(rng.choice([1, outputs]))
        given["base_values"] = [float(v) for v in rng.choice([-0.5, 0.0, 0.25, 1.0, 0.1], size)]
    results = [helper.make_tensor_value_info("y", 1, None)]
    if classifier:
        text = bool(rng.random() < 0.4)
        if text:
            given["classlabels_strings"] = [str(s) for s in rng.permutation(["b", "a", "no", "yes"])[:outputs]]
        else:
            plain = rng.random() < 0.7
            given["classlabels_int64s"] = (
                list(range(outputs)) if plain else [int(v) for v in rng.permutation(9)[:outputs]]
            )
        results.insert(0, helper.make_tensor_value_info("l", 8 if text else 7, None))
    else:
        given["n_targets"] = outputs
        given["aggregate_function"] = str(rng.choice(["SUM", "SUM", "AVERAGE", "MIN", "MAX"]))
    name = "TreeEnsembleClassifier" if classifier else "TreeEnsembleRegressor"
    node = helper.make_node(name, ["x"], ["l", "y"] if classifier else ["y"], domain="ai.onnx.ml", **given)
    words = (
        f"{name}, {outputs} outputs, {fed}, {kind}, {given['post_transform']}, base {len(given.get('base_values', []))}"
    )
    made = helper.make_graph([node], words, [helper.make_tensor_value_info("x", 1, [None, width])], results)
    opsets = [helper.make_opsetid("", 15), helper.make_opsetid("ai.onnx.ml", 3)]
    return helper.make_model(made, opset_imports=opsets, ir_version=8)
