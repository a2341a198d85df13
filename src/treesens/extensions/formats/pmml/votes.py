"""Trees that vote for classes (`majorityVote`, `weightedMajorityVote`), as sums of leaves whose greatest one wins.

JPMML-Evaluator keeps the classes in voting order, and takes the first of the best. So a class wins a tie if the earliest vote
for one of the tied classes is its own. Sums express that by adding to each vote's weight a part of the smallest difference of
two sums, larger than all later parts together: 1/2, 1/4, 1/8, …
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from math import gcd, lcm

from treesens.compiler.base.floats import NumberType
from treesens.extensions.formats.pmml.tree_model import Score, class_score
from treesens.extensions.formats.pmml.xml import Element


def labels_of(trees: Sequence[Element], *, voting: bool = False) -> list[str]:
    """The classes of distributions, in order of first appearance: of equal shares the first one wins.

    If `voting`, those of scores follow. ModelError for fewer than two.
    """
    shared: dict[str, None] = {}
    scored: dict[str, None] = {}
    for tree in trees:
        todo = list(tree.each("Node"))
        while todo:
            node = todo.pop(0)
            shared.update(dict.fromkeys(part.require("value") for part in node.each("ScoreDistribution")))
            if "score" in node.attributes:
                scored[node.get("score")] = None
            todo = [*node.each("Node"), *todo]
    labels = list(shared | scored if voting else shared)
    if len(labels) < 2:
        raise trees[0].error("a classifier of fewer than two classes", "export the probabilities of all classes")
    if voting and len({_value(label) for label in labels}) < len(labels):
        raise trees[0].error("two of the classes are one, written in two ways", "write each class in one way")
    return labels


def _value(label: str) -> object:
    """The possible readings of a label: its field says whether it is a text, a number or a truth, but may be missing."""
    try:
        return float(label)
    except ValueError:
        return label.lower() if label.lower() in ("true", "false") else label


def vote_score(labels: Sequence[str], value: float) -> Score:
    """The vote of a node: `value` for its score, and 0 for all other classes."""

    def score(node: Element) -> Sequence[float] | None:
        if "score" not in node.attributes:
            if node.child("Node") is None:
                raise node.error("a leaf without a score votes for nothing", "export the scores, too")
            return None
        if node.get("score") not in labels:
            raise node.error(f"`{node.get('score')[:40]}` is not one of the vote's classes")
        return [value if label == node.get("score") else 0.0 for label in labels]

    return score


def score_decides(tree: Element) -> bool:
    """True if some node's score is not the first of its most probable classes: then the score is the class."""
    nodes, todo = [], list(tree.each("Node"))
    while todo:
        nodes.append(todo.pop())
        todo += nodes[-1].each("Node")
    scored = [node for node in nodes if "score" in node.attributes]
    # An inner node may have an unreachable score, as exporters write it.
    if any(node.child("ScoreDistribution", "Node") is None for node in scored):
        return True
    labels = labels_of([tree])
    shares = class_score(labels)
    for node in scored:
        values = shares(node)
        if values is not None and node.get("score") != labels[values.index(max(values))]:
            return True
    return False


def vote_values(weights: Sequence[float], classes: int) -> list[float] | None:
    """The weight of each vote, so that the class with the greatest sum wins. None if float64 cannot add that exactly.

    Equal weights are votes of 1: their sums grow with their number, whatever is rounded. Two classes need a part for the first
    vote alone, since it is for one of the two tied classes; and none if no two sums are equal.
    """
    exact = [Fraction(1 if len(set(weights)) == 1 and weights[0] else weight) for weight in weights]
    scale = lcm(*(weight.denominator for weight in exact))
    counts = [int(weight * scale) for weight in exact]
    step = gcd(*counts)
    if not step:
        return None
    unit, total = Fraction(step, scale), sum(counts) // step
    if classes == 2:
        parts = [Fraction(1 - total % 2, 2), *[Fraction(0)] * (len(weights) - 1)]
    else:
        parts = [Fraction(1, 2 << vote) for vote in range(len(weights))]
    finest = max(part.denominator for part in parts)
    if (total + 1) * step * finest > 1 << NumberType.FLOAT64.precision:
        return None
    return [float(weight + unit * part) for weight, part in zip(exact, parts, strict=True)]
