"""Models that are files alone: scorecards and PMML, drawn, and judged by looking up their points and walking their trees.

No library makes these files, so the judge reads what was drawn, and not what was written.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any
from xml.sax.saxutils import quoteattr

import numpy as np

from tests.oracle.models import Columns, Model, training
from tests.oracle.models_boosted import folder
from tests.oracle.spaces import Feature

Node = tuple[Any, ...]
"""A leaf (points,) or a split (feature, test, missing, left, right); a test is a number, or a set of labels."""


def train_scorecard(rng: np.random.Generator, features: Sequence[Feature], name: str, kind: str) -> Model:
    """A table of points: a line per bin, one for missing values, and one for categories that are not listed."""
    _check(features, kind)
    columns, grid = training(rng, features, 30), bool(rng.random() < 0.5)
    base = _points(rng, grid)
    lines, terms, cuts = [f"(base),,{base!r}"], [], {}
    for f, values in zip(features, columns, strict=True):
        of_missing = _points(rng, grid)
        if f.codes == "label":
            # A category that the file does not list has no name that a question could use.
            table = {label: _points(rng, grid) for label in f.labels}
            other = _points(rng, grid)
            lines += [f"{_cell(f.name)},{_cell(_listed([label]))},{points!r}" for label, points in table.items()]
            lines.append(f"{_cell(f.name)},other,{other!r}")
            terms.append(_of_labels(table, other, of_missing))
        else:
            marks = _marks(rng, values, int(rng.integers(1, 5)))
            cuts[f.name] = marks
            points = [_points(rng, grid) for _ in range(len(marks) + 1)]
            ends = ["-inf", *map(repr, marks), "inf"]
            for i, (low, high) in enumerate(pairwise(ends)):
                lines.append(f'{_cell(f.name)},"{"[" if i else "("}{low}, {high})",{points[i]!r}')
            terms.append(_of_numbers(marks, points, of_missing))
        lines.append(f"{_cell(f.name)},Missing,{of_missing!r}")
    text = "\n".join(["feature,bin,points", *lines, ""])

    def margins(c: Columns) -> np.ndarray:
        total = np.full(len(c[0]), base)
        for term, values in zip(terms, c, strict=True):
            total = total + term(values)
        return total[:, None]

    return _described(name, "scorecard", f"{name}.csv", text, features, margins, cuts, grid, len(features), strict=True)


def train_pmml(rng: np.random.Generator, features: Sequence[Feature], name: str, kind: str) -> Model:
    """A sum or an average of a few trees; missing values go to the child that each node names."""
    _check(features, kind)
    columns, grid = training(rng, features, 30), bool(rng.random() < 0.5)
    average, operator = bool(rng.random() < 0.3), str(rng.choice(["lessThan", "lessOrEqual"]))
    cuts: dict[str, list[float]] = {}
    trees = [_tree(rng, features, columns, int(rng.integers(1, 4)), grid, cuts) for _ in range(int(rng.integers(1, 6)))]
    text = _pmml(features, trees, operator, average=average)

    def margins(c: Columns) -> np.ndarray:
        total = np.zeros(len(c[0]))
        for tree in trees:
            total = total + np.array([_walked(tree, row, operator) for row in zip(*c, strict=True)])
        return (total / len(trees) if average else total)[:, None]

    path = f"{name}.pmml"
    strict = operator == "lessThan"
    return _described(
        name, "pmml", path, text, features, margins, cuts, grid and not average, len(trees), strict=strict
    )


def _described(
    name: str,
    frontend: str,
    file: str,
    text: str,
    features: Sequence[Feature],
    margins: Callable[[Columns], np.ndarray],
    cuts: dict[str, list[float]],
    grid: bool,
    trees: int,
    *,
    strict: bool,
) -> Model:
    place = folder() / f"{name}.{np.random.default_rng().integers(1 << 40)}"
    place.mkdir()

    def save(into: Path) -> str:
        (into / file).write_text(text, encoding="utf-8")
        return file

    asked = tuple(f.codes == "label" or f.name in cuts for f in features)
    return Model(
        name, frontend, "regression", "identity", str(place / save(place)), margins, None, None, (), cuts, strict, asked,
        any(f.codes == "label" for f in features), False, np.float64, trees=trees, save=save, dyadic=grid,
        feature_names=tuple(f.name for f in features),
    )  # fmt: skip


def _check(features: Sequence[Feature], kind: str) -> None:
    """ValueError for what neither format is about; then something else is drawn."""
    if kind != "regression":
        raise ValueError("these files hold a score")
    if any(set("'\"\n") & set(label) or label != label.strip() for f in features for label in f.labels):
        raise ValueError("a list of labels is written with quotes")


def _points(rng: np.random.Generator, grid: bool) -> float:
    return float(np.round(rng.normal() * 8) / 8) if grid else float(np.round(rng.normal(), int(rng.integers(1, 6))))


def _marks(rng: np.random.Generator, values: np.ndarray, count: int) -> list[float]:
    """Cuts at and between the values of a column."""
    seen = np.unique(values[~np.isnan(values)])
    pool = np.concatenate([seen, (seen[1:] + seen[:-1]) / 2])
    return sorted({float(v) for v in rng.choice(pool, count)})


def _of_numbers(marks: list[float], points: list[float], missing: float) -> Callable[[np.ndarray], np.ndarray]:
    def term(values: np.ndarray) -> np.ndarray:
        found = [next((p for m, p in zip(marks, points, strict=False) if v < m), points[-1]) for v in values.tolist()]
        return np.where(np.isnan(values), missing, found)

    return term


def _of_labels(table: dict[str, float], other: float, missing: float) -> Callable[[np.ndarray], np.ndarray]:
    return lambda values: np.array([missing if v is None else table.get(v, other) for v in values.tolist()])


def _cell(text: str) -> str:
    return '"' + text.replace('"', '""') + '"'


def _listed(labels: Sequence[str]) -> str:
    return "[" + " ".join(f"'{label}'" for label in labels) + "]"


# PMML ---------------------------------------------------------------------------------------------------------------------


def _tree(
    rng: np.random.Generator,
    features: Sequence[Feature],
    columns: Columns,
    depth: int,
    grid: bool,
    cuts: dict[str, list[float]],
) -> Node:
    """Some values of a column are on either side of every split: cuts that nothing reaches are no cuts of the model."""
    at = int(rng.integers(len(features)))
    f, values = features[at], columns[at]
    test: Any = None
    if f.codes == "label":
        known = sorted({v for v in values.tolist() if v is not None})
        test = frozenset(label for label in f.labels if rng.random() < 0.5)
        inside = np.array([v in test for v in values.tolist()], bool)
        fits = bool(test & set(known)) and bool(set(known) - test)
    else:
        seen = values[~np.isnan(values)]
        inside = np.zeros(len(values), bool)
        if len(seen):
            (test,) = _marks(rng, values, 1)
            inside = values < test
        fits = len(seen) > 0 and bool((seen < test).any()) and bool((seen > test).any())
    if depth == 0 or not fits or rng.random() < 0.1:
        return (_points(rng, grid),)
    if f.codes != "label":
        cuts.setdefault(f.name, []).append(test)
    sides = []
    for side in (inside, ~inside):
        rest = [c[side] if i == at else c for i, c in enumerate(columns)]
        sides.append(_tree(rng, features, rest, depth - 1, grid, cuts))
    return (at, test, int(rng.integers(2)), *sides)


def _walked(node: Node, row: Sequence[Any], operator: str) -> float:
    """The points of one input."""
    while len(node) > 1:
        at, test, missing, *sides = node
        value = row[at]
        if value is None or (isinstance(value, float) and np.isnan(value)):
            node = sides[missing]
        elif isinstance(test, frozenset):
            node = sides[int(value not in test)]
        else:
            node = sides[int(not (value < test if operator == "lessThan" else value <= test))]
    return float(node[0])


def _pmml(features: Sequence[Feature], trees: Sequence[Node], operator: str, *, average: bool) -> str:
    fields = []
    for f in features:
        values = "".join(f"<Value value={quoteattr(label)}/>" for label in f.labels) if f.codes == "label" else ""
        kind = 'optype="categorical" dataType="string"' if values else 'optype="continuous" dataType="double"'
        fields.append(f"<DataField name={quoteattr(f.name)} {kind}>{values}</DataField>")
    schema = "".join(f"<MiningField name={quoteattr(f.name)}/>" for f in features)
    schema = f"<MiningSchema>{schema}</MiningSchema>"
    segments = "".join(
        f'<Segment id="{number}"><True/><TreeModel functionName="regression" splitCharacteristic="binarySplit" '
        f'missingValueStrategy="defaultChild">{schema}{_node("0", tree, "<True/>", features, operator)}</TreeModel></Segment>'
        for number, tree in enumerate(trees)
    )
    return (
        '<PMML version="4.4" xmlns="http://www.dmg.org/PMML-4_4"><Header/>'
        f'<DataDictionary>{"".join(fields)}</DataDictionary><MiningModel functionName="regression">{schema}'
        f'<Segmentation multipleModelMethod="{"average" if average else "sum"}">{segments}</Segmentation></MiningModel></PMML>'
    )


def _node(place: str, node: Node, predicate: str, features: Sequence[Feature], operator: str) -> str:
    if len(node) == 1:
        return f'<Node id="{place}" score="{node[0]!r}">{predicate}</Node>'
    at, test, missing, *sides = node
    field = quoteattr(features[at].name)
    if isinstance(test, frozenset):
        known = " ".join(f'"{label}"' for label in sorted(test))
        array = f'<Array n="{len(test)}" type="string">{known.replace("&", "&amp;").replace("<", "&lt;")}</Array>'
        both = [
            f'<SimpleSetPredicate field={field} booleanOperator="{word}">{array}</SimpleSetPredicate>'
            for word in ("isIn", "isNotIn")
        ]
    else:
        beyond = "greaterOrEqual" if operator == "lessThan" else "greaterThan"
        both = [f'<SimplePredicate field={field} operator="{word}" value="{test!r}"/>' for word in (operator, beyond)]
    children = "".join(_node(f"{place}{side}", sides[side], both[side], features, operator) for side in range(2))
    return f'<Node id="{place}" score="0.0" defaultChild="{place}{missing}">{predicate}{children}</Node>'
