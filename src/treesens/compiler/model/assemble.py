"""Converts the node numbers in a file to an Ensemble's columns: drops unreached nodes, sorts the rest, detects cycles."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from treesens.errors import ModelError

Int32 = NDArray[np.int32]
Int64 = NDArray[np.int64]


# Deeper than any library's trees; a longer chain of nodes can only be malicious or damaged.
MAX_DEPTH = 10_000


@dataclass(frozen=True, eq=False)
class Order:
    """Reached nodes, tree by tree, parents first. `node` [N] holds old global numbers; all other fields hold new numbers."""

    node: Int64
    tree_offset: Int64
    left: Int32
    right: Int32
    inner: NDArray[np.bool_]
    node_leaf: Int32
    leaf_tree: Int32
    leaf_id: Int32


def order_nodes(tree_offset: Int64, left: Int64, right: Int64, *, place: str = "") -> Order:
    """Walks all trees level by level from their roots (the first node of each tree), and drops unreached nodes.

    `tree_offset` [T+1] delimits the nodes of each tree; `left` and `right` are numbers within the tree, -1 at leaves.
    Raises ModelError if a child is out of range, a node has only one child or two parents, or there is a cycle.
    """
    trees, nodes = len(tree_offset) - 1, len(left)
    tree = np.repeat(np.arange(trees, dtype=np.int64), np.diff(tree_offset))
    size = np.diff(tree_offset)[tree]

    def broken(message: str, node: int) -> ModelError:
        at = f"tree {tree[node]}, node {node - tree_offset[tree[node]]}"
        return ModelError(f"{message} ({at})", place=place, remedy="the file is damaged; save the model again")

    if (np.diff(tree_offset) < 1).any():
        raise ModelError(f"tree {int(np.argmin(np.diff(tree_offset)))} has no nodes", place=place)
    level = np.full(nodes, -1, dtype=np.int64)
    mark = np.zeros(nodes, dtype=np.int64)
    frontier, depth = tree_offset[:-1].astype(np.int64), 0
    while frontier.size:
        seen = frontier[level[frontier] >= 0]
        if seen.size:
            raise broken("a node is reached twice: the children form a cycle", int(seen[0]))
        level[frontier] = depth
        inner = frontier[(left[frontier] != -1) | (right[frontier] != -1)]
        for side in (left, right):
            bad = inner[(side[inner] < 0) | (side[inner] >= size[inner])]
            if bad.size:
                raise broken(f"child {side[bad[0]]} does not exist", int(bad[0]))
        start = tree_offset[tree[inner]]
        frontier = np.concatenate([start + left[inner], start + right[inner]])
        # Of several equal entries, only the last one finds its own position.
        position = np.arange(frontier.size)
        mark[frontier] = position
        if (twice := frontier[mark[frontier] != position]).size:
            raise broken("a node has two parents", int(twice[0]))
        depth += 1
        if depth > MAX_DEPTH:
            raise broken(f"the tree is deeper than {MAX_DEPTH}", int(frontier[0]))

    reached = np.flatnonzero(level >= 0)
    order = reached[np.lexsort((reached, level[reached], tree[reached]))]
    rank = np.full(nodes, -1, dtype=np.int64)
    rank[order] = np.arange(len(order))
    is_inner = left[order] != -1
    start = tree_offset[tree[order]]
    new_left, new_right = (
        np.where(is_inner, rank[np.where(is_inner, start + side[order], 0)], -1).astype(np.int32)
        for side in (left, right)
    )
    node_leaf = np.full(len(order), -1, dtype=np.int32)
    node_leaf[~is_inner] = np.arange(np.count_nonzero(~is_inner), dtype=np.int32)
    return Order(
        node=order,
        tree_offset=np.concatenate([[0], np.cumsum(np.bincount(tree[order], minlength=trees))]).astype(np.int64),
        left=new_left,
        right=new_right,
        inner=is_inner,
        node_leaf=node_leaf,
        leaf_tree=tree[order][~is_inner].astype(np.int32),
        leaf_id=(order - start)[~is_inner].astype(np.int32),
    )
