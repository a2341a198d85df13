"""LightGBM text files with changed trees: only the lines about trees differ."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from treesens.compiler.base.arrays import FloatArray
from treesens.compiler.base.floats import NumberType
from treesens.compiler.model import Ensemble
from treesens.errors import ModelError
from treesens.extensions.repair.forest import Copy, Tree, leaves_of_trees, nodes_in_file

_QUESTIONS = ("split_feature", "split_gain", "threshold", "decision_type", "left_child", "right_child")
_INNER = frozenset([*_QUESTIONS, "internal_value", "internal_weight", "internal_count"])
_LEAVES = frozenset(["leaf_value", "leaf_weight", "leaf_count"])


class LightGBMWriter:
    """Writes the text format. Raises ModelError for repairs that the file cannot express."""

    leaf_type = NumberType.FLOAT64

    def __init__(self, ensemble: Ensemble, data: bytes) -> None:
        if ensemble.average > 1:
            raise ModelError(
                "the trees of the model are averaged (boosting=rf): adding a tree would change all other trees",
                place=ensemble.source.path,
                remedy="train the model as a booster",
            )
        self._ensemble = ensemble
        head, *rest = data.decode("utf-8").split("\nTree=")
        blocks, self._end = "\nTree=".join(["", *rest]).split("\nend of trees", 1)
        self._head = head.splitlines()
        self._trees = [
            dict(line.partition("=")[::2] for line in f"Tree={block}".splitlines() if line)
            for block in blocks.split("\nTree=")[1:]
        ]
        self._leaves = leaves_of_trees(ensemble)

    def written(self, trees: Sequence[Tree]) -> bytes:
        """The content of the file with changed trees; copies are at the end, in separate rounds."""
        outputs = self._ensemble.n_outputs
        first = {tree.source: tree for tree in reversed(trees)}
        made = [self._tree(first[t]) if t in first else _empty() for t in range(self._ensemble.n_trees)]
        later = [t for t in trees if t is not first[t.source]]
        waiting = [[self._tree(t) for t in later if t.source % outputs == output] for output in range(outputs)]
        for round_ in range(max(map(len, waiting))):
            made += [queue[round_] if round_ < len(queue) else _empty() for queue in waiting]
        blocks = []
        for number, lines in enumerate(made):
            lines["Tree"] = str(number)
            blocks.append("".join(f"{key}={value}\n" for key, value in lines.items()) + "\n\n")
        sizes = " ".join(str(len(block.encode())) for block in blocks)
        head = "\n".join(f"tree_sizes={sizes}" if line.startswith("tree_sizes=") else line for line in self._head)
        return f"{head}\n\n{''.join(blocks)}end of trees{self._end}".encode()

    def _tree(self, tree: Tree) -> dict[str, str]:
        lines = dict(self._trees[tree.source])
        if tree.copy is not None:
            assert tree.values is not None
            return self._copied(lines, tree.copy, tree.values)
        if tree.values is not None:
            ids = self._ensemble.leaf_node[self._leaves[tree.source]]
            values = np.empty(len(ids))
            values[ids] = tree.values[:, 0]
            lines["leaf_value"] = _text(values)
        return lines

    def _copied(self, lines: dict[str, str], copy: Copy, values: FloatArray) -> dict[str, str]:
        inner = int(lines["num_leaves"]) - 1

        def children(key: str) -> list[int]:
            # `nodes_in_file` numbers the leaves after the inner nodes; the file writes leaf n as ~n.
            return [c if c >= 0 else inner + ~c for c in map(int, lines.get(key, "").split())]

        root = 0 if inner else inner
        place = nodes_in_file(self._ensemble, copy.tree, children("left_child"), children("right_child"), root)
        ids = [place[int(node)] for node in copy.node]
        splits = [at for at, left in enumerate(copy.left.tolist()) if left >= 0]
        leaves = copy.leaves.tolist()
        number = {at: n for n, at in enumerate(splits)} | {at: ~n for n, at in enumerate(leaves)}
        result = {}
        for key, value in lines.items():
            words = value.split()
            if key in _INNER:
                result[key] = " ".join(words[ids[at]] for at in splits)
            elif key in _LEAVES:
                result[key] = " ".join(words[ids[at] - inner] for at in leaves) if words else ""
            else:
                result[key] = value
        result["left_child"] = " ".join(str(number[int(copy.left[at])]) for at in splits)
        result["right_child"] = " ".join(str(number[int(copy.right[at])]) for at in splits)
        result["num_leaves"], result["leaf_value"] = str(len(leaves)), _text(values[:, 0])
        return result


def _empty() -> dict[str, str]:
    """The lines of a tree that consists of a single leaf with the value 0."""
    lines = {"Tree": "0", "num_leaves": "1", "num_cat": "0", **dict.fromkeys(_QUESTIONS, "")}
    lines |= {"leaf_value": "0", "leaf_weight": "", "leaf_count": "", "internal_value": "", "internal_weight": ""}
    return lines | {"internal_count": "", "is_linear": "0", "shrinkage": "1"}


def _text(values: FloatArray) -> str:
    return " ".join(repr(value) for value in np.asarray(values, dtype=np.float64).tolist())
