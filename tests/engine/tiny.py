"""Random tiny problems for the engine, and their answers by brute force."""

from __future__ import annotations

import itertools
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from treesens.backends.native.problem import SearchProblem

Box = dict[int, tuple[int, int]]


@dataclass
class Group:
    """Leaves of one tree for some points: a list of boxes and a list of (row, coefficient) each."""

    tree: int
    boxes: list[list[Box]]
    coefficients: list[list[tuple[int, int]]]


@dataclass
class Answers:
    """All assignments that satisfy domains and clauses, with the value of every row (without bounds)."""

    points: NDArray[np.int64]
    rows: NDArray[np.int64]


def assemble(
    size: list[int],
    feature: list[int],
    groups: list[Group],
    bound: list[int],
    *,
    allowed: NDArray[np.uint8] | None = None,
    unary: list[tuple[int, int, int, int]] = [],  # noqa: B006
    clauses: list[list[tuple[int, int, int]]] = [],  # noqa: B006
    objective: bool = False,
    slack_weight: list[int] | None = None,
) -> SearchProblem:
    offsets: dict[str, list[int]] = {"group": [0], "leaf": [0], "box": [0], "coefficient": [0]}
    literals: list[tuple[int, int, int]] = []
    coefficients: list[tuple[int, int]] = []
    for group in groups:
        for boxes, terms in zip(group.boxes, group.coefficients, strict=True):
            for box in boxes:
                literals += [(v, low, high) for v, (low, high) in box.items()]
                offsets["box"].append(len(literals))
            offsets["leaf"].append(len(offsets["box"]) - 1)
            coefficients += terms
            offsets["coefficient"].append(len(coefficients))
        offsets["group"].append(len(offsets["leaf"]) - 1)
    literal = np.array(literals, np.int32).reshape(-1, 3)
    clause = np.array([term for c in clauses for term in c], np.int32).reshape(-1, 3)
    terms_array = np.array(unary, np.int64).reshape(-1, 4)
    return SearchProblem(
        size=np.array(size, np.int32),
        feature=np.array(feature, np.int32),
        allowed=np.ones(sum(size), np.uint8) if allowed is None else allowed,
        group_tree=np.array([g.tree for g in groups], np.int32),
        group_offset=np.array(offsets["group"], np.int64),
        leaf_offset=np.array(offsets["leaf"], np.int64),
        box_offset=np.array(offsets["box"], np.int64),
        literal_variable=literal[:, 0],
        literal_low=literal[:, 1],
        literal_high=literal[:, 2],
        coefficient_offset=np.array(offsets["coefficient"], np.int64),
        coefficient_row=np.array([r for r, _ in coefficients], np.int32),
        coefficient_value=np.array([c for _, c in coefficients], np.int64),
        bound=np.array(bound, np.int64),
        slack_weight=np.ones(len(bound), np.uint8) if slack_weight is None else np.array(slack_weight, np.uint8),
        objective=objective,
        unary_row=terms_array[:, 0],
        unary_variable=terms_array[:, 1],
        unary_cell=terms_array[:, 2],
        unary_value=terms_array[:, 3],
        clause_offset=np.cumsum([0, *(len(c) for c in clauses)]).astype(np.int64),
        clause_variable=clause[:, 0],
        clause_low=clause[:, 1],
        clause_high=clause[:, 2],
    )


def random_tree(rng: np.random.Generator, size: list[int], variables: list[int], depth: int) -> list[list[Box]]:
    """Leaves of a random tree; questions may send the last cell ("missing") the other way: unions."""

    def split(boxes: list[Box], left: int) -> list[list[Box]]:
        if left == 0 or rng.random() < 0.15:
            return [boxes]
        v = int(rng.choice(variables))
        if size[v] < 2:
            return [boxes]
        cut = int(rng.integers(0, size[v] - 1))
        cells = np.arange(size[v]) <= cut
        if rng.random() < 0.3 and cut < size[v] - 2:
            cells[-1] = True
        sides: tuple[list[Box], list[Box]] = ([], [])
        for box in boxes:
            low, high = box.get(v, (0, size[v] - 1))
            start = low
            for k in range(low, high + 1):
                if k == high or cells[k + 1] != cells[k]:
                    sides[0 if cells[k] else 1].append({**box, v: (start, k)})
                    start = k + 1
        if not sides[0] or not sides[1]:
            return [boxes]
        return split(sides[0], left - 1) + split(sides[1], left - 1)

    return split([{}], depth)


@dataclass
class Shape:
    """What a random problem contains."""

    shared: int = 3
    sensitive: int = 1
    cells: int = 4
    trees: int = 5
    depth: int = 3
    classes: int = 2
    unary: bool = False
    clauses: int = 0
    domains: bool = False
    objective: str = ""  # "", "swing", "unary"
    magnitude: int = 100
    constraint_unary: bool = False


def random_problem(rng: np.random.Generator, shape: Shape) -> SearchProblem:
    """A pair of points that share `shared` features and differ in `sensitive` ones, bounds all zero."""
    features = shape.shared + shape.sensitive
    cells = [int(rng.integers(2, shape.cells + 1)) for _ in range(features)]
    size = cells + cells[shape.shared :]
    feature = list(range(features)) + list(range(shape.shared, features))
    # In random order, so that no code relies on copies coming last.
    order = rng.permutation(len(size))
    place = [int(i) for i in np.argsort(order)]
    size = [size[i] for i in order]
    feature = [feature[i] for i in order]
    first = {f: place[f] for f in range(features)}
    second = {f: place[f] if f < shape.shared else place[f + shape.sensitive] for f in range(features)}
    rows_per_point = shape.classes - 1 if shape.classes > 2 else 1
    constraints = 2 * rows_per_point
    groups: list[Group] = []
    top = (0, 1)  # the classes of the two points
    for t in range(shape.trees):
        tree = random_tree(rng, cells, list(range(features)), shape.depth)
        values = [int(x) for x in rng.integers(-shape.magnitude, shape.magnitude + 1, len(tree))]
        label = int(rng.integers(0, shape.classes))

        def terms(point: int, value: int, label: int = label) -> list[tuple[int, int]]:
            if shape.classes == 2:
                return [(point, value if point == 0 else -value)]
            others = [c for c in range(shape.classes) if c != top[point]]
            base = point * rows_per_point
            if label == top[point]:
                return [(base + i, value) for i in range(rows_per_point)]
            return [(base + others.index(label), -value)]

        uses = any(f >= shape.shared for leaf in tree for box in leaf for f in box)
        for points in [(0,), (1,)] if uses else [(0, 1)]:
            name = first if points[0] == 0 else second
            coefficients = [[term for p in points for term in terms(p, value)] for value in values]
            if shape.objective == "swing" and len(points) == 1:
                for row, value in zip(coefficients, values, strict=True):
                    row.append((constraints, value if points[0] == 0 else -value))
            groups.append(
                Group(t, [[{name[f]: r for f, r in box.items()} for box in leaf] for leaf in tree], coefficients)
            )
    unary: list[tuple[int, int, int, int]] = []
    for row in range(constraints + (shape.objective == "unary")):
        wanted = shape.objective == "unary" and row == constraints
        if not wanted and not shape.constraint_unary:
            continue
        for v in range(len(size)):
            if rng.random() < 0.5:
                unary += [(row, v, k, int(rng.integers(-shape.magnitude, shape.magnitude))) for k in range(size[v])]
    clauses = []
    for _ in range(shape.clauses):
        clause = []
        for v in rng.choice(len(size), min(len(size), int(rng.integers(1, 4))), replace=False):
            low, high = sorted(int(k) for k in rng.integers(0, size[v], 2))
            clause.append((int(v), low, high))
        clauses.append(clause)
    allowed = np.ones(sum(size), np.uint8)
    if shape.domains:
        allowed = (rng.random(sum(size)) < 0.8).astype(np.uint8)
    return assemble(
        size,
        feature,
        groups,
        [0] * constraints,
        allowed=allowed,
        unary=unary,
        clauses=clauses,
        objective=bool(shape.objective),
    )


def rows_at(problem: SearchProblem, points: NDArray[np.int64]) -> NDArray[np.int64]:
    """Value of every row (the objective last) at every point, straight from the definition.

    A box holds a point if none of its literals is broken, and a leaf is reached if one of its boxes holds the point.
    """
    p = problem
    column = points[:, p.literal_variable]
    broken = _sums((column < p.literal_low) | (column > p.literal_high), p.box_offset)
    reached = _sums(broken == 0, p.leaf_offset) > 0
    leaf = np.repeat(np.arange(len(p.leaf_offset) - 1), np.diff(p.coefficient_offset))
    out = np.zeros((p.constraints + p.objective, len(points)), np.int64)
    np.add.at(out, p.coefficient_row, (reached[:, leaf] * p.coefficient_value).T)
    np.add.at(out, p.unary_row, ((points[:, p.unary_variable] == p.unary_cell) * p.unary_value).T)
    return out.T


def _sums(flags: NDArray[np.bool_], offset: NDArray[np.int64]) -> NDArray[np.int64]:
    """How many flags [points, n] are set from each offset to the next one, [points, len(offset) - 1]."""
    counts = np.zeros((len(flags), flags.shape[1] + 1), np.int64)
    np.cumsum(flags, axis=1, out=counts[:, 1:])
    return counts[:, offset[1:]] - counts[:, offset[:-1]]


def satisfies(problem: SearchProblem, points: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Domains and clauses."""
    p = problem
    fine = np.ones(len(points), bool)
    start = np.concatenate([[0], np.cumsum(p.size)])
    for v in range(p.variables):
        fine &= p.allowed[start[v] + points[:, v]] != 0
    for c in range(len(p.clause_offset) - 1):
        holds = np.zeros(len(points), bool)
        for i in range(p.clause_offset[c], p.clause_offset[c + 1]):
            column = points[:, p.clause_variable[i]]
            holds |= (column >= p.clause_low[i]) & (column <= p.clause_high[i])
        fine &= holds
    return fine


def brute_force(problem: SearchProblem) -> Answers:
    points = np.array(list(itertools.product(*(range(int(n)) for n in problem.size))), np.int64)
    points = points[satisfies(problem, points)]
    return Answers(points, rows_at(problem, points))
