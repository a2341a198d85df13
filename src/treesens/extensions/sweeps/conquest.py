"""What is known of a question in parts: the tree of cuts, with what is open and what is closed, and the best answer."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field
from typing import Any

from treesens.compiler.result import Proof
from treesens.extensions.sweeps.parts import Part
from treesens.values.witness import Witness


@dataclass
class Conquest:
    """What is known: the tree of cuts, with the parts that are closed, and the best answer."""

    tree: Any = field(default_factory=Part)
    open: deque[Part] = field(default_factory=deque)
    closed: dict[Part, Proof] = field(default_factory=dict)
    best: Witness | None = None
    again: list[Part] = field(default_factory=list)
    """Parts whose workers were lost in this round."""
    losses: dict[Part, int] = field(default_factory=dict)
    lost: str = ""
    asked: int = 0
    cpu: float = 0.0

    def leaves(self) -> list[Part]:
        """All parts, from left to right."""
        found, stack = [], [self.tree]
        while stack:
            node = stack.pop()
            if isinstance(node, Part):
                found.append(node)
            else:
                stack += [node[4], node[3]]
        return found


def with_part_cut(tree: Any, part: Part, by: Any) -> Any:
    """The tree with another one in the place of a part; it is changed where it stands."""
    if isinstance(tree, Part):
        return by
    node = tree
    for cut in part.cuts[:-1]:
        node = node[4 if cut.upper else 3]
    node[4 if part.cuts[-1].upper else 3] = by
    return tree
