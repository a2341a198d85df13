"""The scores of a witness, line by line: what a terminal shows below the features."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import fields
from typing import Any

from treesens.binder.file import ResolvedQuestion
from treesens.binder.terms import position_of_class
from treesens.grammar.tree import ast
from treesens.grammar.tree.node import nodes_in
from treesens.records.answers import scores_of
from treesens.values.verify import Witness

ALL_SHOWN = 4
"""Classes of a model that all get a line; of more, those that the question names or that are predicted."""


def score_rows(bound: ResolvedQuestion, witness: Witness) -> list[tuple[str, list[Any]]]:
    """A label and a value per point (None if the model of a point has no such score): `margin` and `prob` or `value` of models
    with one score; `class`, then a line per class, of models with several. These show probabilities, unless the question
    is about margins alone.
    """
    query, nodes = bound.query, list(nodes_in(bound.find))
    labels = [label for node in nodes for label in _labels(node)]
    wanted = {kind for kind, about in _ABOUT.items() if any(isinstance(node, about) for node in nodes)} or {"prob"}
    of_points: list[dict[str, Any]] = []
    shown: set[str] = set()
    for i, point in enumerate(query.points):
        ensemble = query.models[point.model].ensemble
        scores = scores_of(query, witness, i)
        of_points.append(scores)
        shown |= _shown(scores, ensemble.classes, labels)
    flat = [_flat(scores, wanted, shown) for scores in of_points]
    return [(key, [one.get(key) for one in flat]) for key in dict.fromkeys(key for one in flat for key in one)]


_ABOUT: dict[str, type[ast.Node]] = {"margin": ast.Margin, "prob": ast.Prob}


def _labels(node: ast.Node) -> Iterator[ast.Label]:
    """The classes that a node names: `prob(a, C)`, `class(a) = C`, `class(a) != C`, `class(a) in {C, D}`."""
    if isinstance(node, ast.Prob | ast.Margin | ast.ClassIs):
        yield from () if node.label is None else (node.label,)
        return
    parts = [getattr(node, field.name) for field in fields(node)]
    if not isinstance(node, ast.ClassOf) and any(isinstance(part, ast.ClassOf) for part in parts):
        parts += [label for part in parts if isinstance(part, ast.ValueSet) for label in part.values]
        yield from (part for part in parts if isinstance(part, ast.Name | ast.Number))


def _shown(scores: dict[str, Any], classes: Sequence[str | int], labels: Sequence[ast.Label]) -> set[str]:
    """The classes of one point that get a line."""
    names = list(next((score for score in scores.values() if isinstance(score, dict)), ()))
    if len(names) <= ALL_SHOWN:
        return set(names)
    places = {position_of_class(classes, label) for label in labels} - {None}
    return {name for place, name in enumerate(names) if place in places or name == scores.get("class")}


def _flat(scores: dict[str, Any], wanted: set[str], shown: set[str]) -> dict[str, Any]:
    """The scores of a point with a line for each class that is shown, of the kinds that are wanted if there are several."""
    known = {kind for kind, score in scores.items() if isinstance(score, dict)}
    kinds = known & wanted or known
    result: dict[str, Any] = {}
    for kind, score in scores.items():
        if not isinstance(score, dict):
            result[kind] = score
        elif kind in kinds:
            result |= {f"{kind} {name}": value for name, value in score.items() if name in shown}
    return result
