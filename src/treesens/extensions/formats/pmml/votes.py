"""Reads trees that vote for classes (`majorityVote`, `weightedMajorityVote`) as sums of leaves; the class with most votes wins.

JPMML-Evaluator keeps the classes in voting order, and predicts the first of the tied classes. Thus, among tied classes, the
class with the earliest vote wins. To express this rule in sums, the weight of each vote is increased by a part of the smallest
difference between two sums. Each part is larger than all later parts together: 1/2, 1/4, 1/8, …
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from math import gcd, lcm

from treesens.compiler.base.floats import NumberType
from treesens.extensions.formats.pmml.tree_model import Score, class_score
from treesens.extensions.formats.pmml.xml import Element


def labels_of(trees: Sequence[Element], *, voting: bool = False) -> list[str]:
    """The classes of distributions, in order of first appearance; if shares are equal, the first class wins.

    If `voting`, classes that occur only in scores are appended. Raises ModelError for fewer than two classes.
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
        raise trees[0].error("the classifier has fewer than two classes", "export the probabilities of all classes")
    if voting and len({_value(label) for label in labels}) < len(labels):
        raise trees[0].error("two labels are the same class in different spellings", "write each class in only one way")
    return labels


def _value(label: str) -> object:
    """A label as a number, a truth value or a text; the type is inferred, because the field that declares it may be missing."""
    try:
        return float(label)
    except ValueError:
        return label.lower() if label.lower() in ("true", "false") else label


def vote_score(labels: Sequence[str], value: float) -> Score:
    """A `Score` that reads votes: `value` for the class in the node's score, and 0 for all other classes."""

    def score(node: Element) -> Sequence[float] | None:
        if "score" not in node.attributes:
            if node.child("Node") is None:
                raise node.error("a leaf without a score casts no vote", "export the scores, too")
            return None
        if node.get("score") not in labels:
            raise node.error(f"`{node.get('score')[:40]}` is not one of the vote's classes")
        return [value if label == node.get("score") else 0.0 for label in labels]

    return score


def score_decides(tree: Element) -> bool:
    """True if scores determine the predicted class: some node's score is not the first of its most probable classes."""
    nodes, todo = [], list(tree.each("Node"))
    while todo:
        nodes.append(todo.pop())
        todo += nodes[-1].each("Node")
    scored = [node for node in nodes if "score" in node.attributes]
    # Exporters may also write scores at inner nodes that no input ends in.
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
    """Weights of votes such that the winning class has the greatest sum; None if float64 cannot add them exactly.

    Equal weights become votes of 1, since rounded sums still increase with the number of votes. With two classes, only the
    first vote, which is for one of the tied classes, needs a part; if votes have distinct sums, no vote needs a part.
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
