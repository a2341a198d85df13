"""Writes XGBoost files with other trees: the original document with the arrays of its trees replaced.

Copies of a tree are placed in the round of that tree, so that round numbers, such as `best_iteration`, stay valid.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from treesens.compiler.base.arrays import FloatArray
from treesens.compiler.base.floats import NumberType
from treesens.compiler.model import Ensemble
from treesens.errors import MissingPackageError, ModelError
from treesens.extensions.repair.forest import Copy, Tree, leaves_of_trees, nodes_in_file
from treesens.frontends.documents import is_ubjson

_NO_PARENT = 2147483647


class XGBoostWriter:
    """Writes JSON or UBJSON, whichever the original file uses. Raises ModelError for repairs that the file cannot express."""

    leaf_type = NumberType.FLOAT32

    def __init__(self, ensemble: Ensemble, data: bytes) -> None:
        self._ensemble, self._place = ensemble, ensemble.source.path
        self._binary = is_ubjson(data[:3])
        self._root: dict[str, Any] = json.loads(_as_json(data) if self._binary else data)
        learner = self._root["learner"]
        booster = learner["gradient_booster"]
        self._booster = booster
        model = (booster["gbtree"] if booster["name"] == "dart" else booster)["model"]
        # The reader has checked that the ids are 0, 1, ..: trees are identified by id, in whatever order the file lists them.
        self._model = {**model, "trees": sorted(model["trees"], key=lambda tree: int(tree["id"]))}
        self._leaves = leaves_of_trees(ensemble)
        if "weight_drop" in model:
            raise ModelError(
                "DART models in the layout of XGBoost 3.4 cannot be written here",
                place=self._place,
                remedy="save the model with XGBoost 3.2 or earlier, or train it without DART",
            )
        if len(self._model["trees"]) != ensemble.n_trees:
            raise ModelError(
                "only some rounds of the file were read",
                place=self._place,
                remedy="pass `xgboost:all` as the format, or save the model with these rounds alone (booster[:n])",
            )
        if "iteration_indptr" not in self._model and "best_iteration" in learner.get("attributes", {}):
            raise ModelError(
                "the file names a best round, but its old format does not allow trees to be added to a round",
                place=self._place,
                remedy="load the model with xgboost 3 and save it again",
            )

    def written(self, trees: Sequence[Tree]) -> bytes:
        """The content of the file with other trees."""
        # A model without trees is loaded as one leaf of 0, which is not in the file.
        trees = [tree for tree in trees if tree.source < len(self._model["trees"])]
        documents, sources = [self._tree(tree) for tree in trees], [tree.source for tree in trees]
        info = list(map(int, self._model["tree_info"]))
        groups = [info[source] for source in sources]
        model = dict(self._model)
        if (pointers := self._model.get("iteration_indptr")) is not None:
            model["iteration_indptr"] = np.searchsorted(sources, np.asarray(pointers, dtype=np.int64)).tolist()
        else:
            self._fill_round(documents, groups)
        for number, document in enumerate(documents):
            document["id"] = number
        parameters = {**model["gbtree_model_param"], "num_trees": str(len(documents))}
        model.update(trees=documents, tree_info=groups, gbtree_model_param=parameters)
        learner = self._root["learner"]
        booster = dict(self._booster)
        if booster["name"] == "dart":
            booster["gbtree"] = {**booster["gbtree"], "model": model}
            booster["weight_drop"] = [booster["weight_drop"][source] for source in sources]
        else:
            booster["model"] = model
        root = {**self._root, "learner": {**learner, "gradient_booster": booster}}
        text = json.dumps(root, separators=(",", ":")).encode()
        return _as_ubjson(text) if self._binary else text

    def _fill_round(self, documents: list[dict[str, Any]], groups: list[int]) -> None:
        """Appends empty trees until the last round is complete, because files before 1.7 do not record the ends of rounds."""
        per_round = self._ensemble.n_outputs * int(self._model["gbtree_model_param"].get("num_parallel_tree", 1))
        if self._booster["name"] == "dart" and len(documents) != self._ensemble.n_trees:
            raise ModelError(
                "the old format of the file does not allow trees to be added to a round",
                place=self._place,
                remedy="load the model with xgboost 3 and save it again",
            )
        while len(documents) % per_round:
            leaf = self._ensemble.tree_offset[0] + np.zeros(1, np.int32)
            none, zero = np.full(1, -1, np.int32), np.zeros(1)
            empty = Copy(0, leaf.astype(np.int32), none, none, none, none, zero)
            documents.append(self._tree(Tree(0, empty, zero[:, None])))
            groups.append(len(groups) % self._ensemble.n_outputs)

    def _tree(self, tree: Tree) -> dict[str, Any]:
        document = self._model["trees"][tree.source]
        if tree.copy is not None:
            assert tree.values is not None
            return self._copied(document, tree.copy, tree.values)
        document = dict(document)
        if tree.values is not None:
            ids = self._ensemble.leaf_node[self._leaves[tree.source]].tolist()
            _set_leaves(document, ids, tree.values)
        return document

    def _copied(self, document: Mapping[str, Any], copy: Copy, values: FloatArray) -> dict[str, Any]:
        place = nodes_in_file(self._ensemble, copy.tree, document["left_children"], document["right_children"])
        ids, count = [place[int(node)] for node in copy.node], len(document["left_children"])
        result = {
            key: [value[i] for i in ids] if isinstance(value, list) and len(value) == count else value
            for key, value in document.items()
            if not key.startswith("categories")
        }
        parents = [_NO_PARENT] * len(ids)
        for at, (left, right) in enumerate(zip(copy.left.tolist(), copy.right.tolist(), strict=True)):
            if left >= 0:
                parents[left] = parents[right] = at
        result["left_children"], result["right_children"] = copy.left.tolist(), copy.right.tolist()
        result["parents"] = parents
        result["tree_param"] = {**document["tree_param"], "num_nodes": str(len(ids)), "num_deleted": "0"}
        if "categories" in document:
            result.update(_categories(document, ids, copy))
        for at in copy.leaves.tolist():
            result["default_left"][at] = 0
            if "split_type" in result:
                result["split_type"][at] = 0
        _set_leaves(result, copy.leaves.tolist(), values)
        return result


def _categories(document: Mapping[str, Any], ids: Sequence[int], copy: Copy) -> dict[str, Any]:
    """The category sets of some nodes, stored under the new node numbers."""
    starts, sizes = document["categories_segments"], document["categories_sizes"]
    sets = {
        int(node): document["categories"][start : start + size]
        for node, start, size in zip(document["categories_nodes"], starts, sizes, strict=True)
    }
    nodes = [at for at, node in enumerate(ids) if node in sets and copy.left[at] >= 0]
    members = [sets[ids[at]] for at in nodes]
    return {
        "categories": [code for codes in members for code in codes],
        "categories_nodes": nodes,
        "categories_segments": np.cumsum([0, *map(len, members)])[:-1].tolist(),
        "categories_sizes": [len(codes) for codes in members],
    }


def _set_leaves(document: dict[str, Any], ids: Sequence[int], values: FloatArray) -> None:
    """Writes leaf values in float32, as the shortest decimals that parse to the same number."""
    for key in ("split_conditions", "base_weights"):
        document[key] = list(document[key])
    for at, value in zip(ids, np.asarray(values[:, 0], dtype=np.float32), strict=True):
        document["split_conditions"][at] = document["base_weights"][at] = float(str(value))


def _as_json(data: bytes) -> bytes:
    return bytes(_booster_of(data).save_raw("json"))


def _as_ubjson(text: bytes) -> bytes:
    return bytes(_booster_of(text).save_raw("ubj"))


def _booster_of(data: bytes) -> Any:
    try:
        import xgboost
    except ImportError:
        raise MissingPackageError(
            "repairing a UBJSON file requires the library, which is not installed",
            remedy="pip install 'treesens[xgboost]', or save the model as .json",
        ) from None
    booster = xgboost.Booster()
    booster.load_model(bytearray(data))
    return booster
