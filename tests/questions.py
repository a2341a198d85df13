"""Random tiny ensembles and questions, and the oracle that answers them by trying every cell.

Everything awkward is in here on purpose: thresholds that tie, guards that repeat, constant trees, unused features, missing
values with both default directions, categorical sets, domains with holes.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from fractions import Fraction

import numpy as np

from treesens.compiler.base.arrays import Int32Array
from treesens.compiler.base.floats import NumberType
from treesens.compiler.model.ensemble import Ensemble
from treesens.compiler.model.kinds import Accumulation, Feature, FeatureKind, ModelSource, Task
from treesens.compiler.query.bounds import LogRational
from treesens.compiler.query.domain import Domain, RealDomain, ValueDomain, legal_cells
from treesens.compiler.query.evaluate import Inputs, holds
from treesens.compiler.query.query import (
    AllOf,
    AnyOf,
    AtLeast,
    AvoidBoxes,
    CellCost,
    CellSet,
    Changes,
    Constraint,
    LinearForm,
    Objective,
    Point,
    Query,
    SameExcept,
    ScoreTerm,
    Space,
)
from treesens.links import Logistic, Softmax

LEVELS = np.array([0.25, 0.5, 0.75, 1.0], np.float32).astype(np.float64)


def random_ensemble(rng: np.random.Generator, *, outputs: int = 1, features: int = 3, trees: int = 4) -> Ensemble:
    """A tiny ensemble with float32 leaves; the last feature is categorical one time in two."""
    categorical = bool(rng.integers(2))
    kinds = [
        Feature(f"f{i}", FeatureKind.CATEGORICAL, categories=3)
        if categorical and i == features - 1
        else Feature(f"f{i}", FeatureKind.NUMERIC)
        for i in range(features)
    ]
    columns: dict[str, list[float]] = {
        k: [] for k in ("feature", "threshold", "left", "right", "default", "set", "leaf")
    }
    set_codes: list[int] = []
    set_offset = [0]
    tree_offset = [0]
    leaf_value: list[float] = []
    leaf_tree: list[int] = []

    def add(feature: int, threshold: float, default: bool, category_set: int, leaf: int) -> int:
        for name, value in zip(columns, (feature, threshold, -1, -1, default, category_set, leaf), strict=True):
            columns[name].append(value)
        return len(columns["feature"]) - 1

    def grow(depth: int, tree: int) -> int:
        if depth == 0 or rng.random() < 0.25:
            value = float(np.float32(rng.choice([-1.0, -0.5, 0.1, 0.3, 0.7, rng.normal()])))
            leaf_value.append(value)
            leaf_tree.append(tree)
            return add(-1, np.nan, False, -1, len(leaf_value) - 1)
        f = int(rng.integers(features - 1 if features > 1 and rng.random() < 0.1 else features))
        chosen = -1
        if kinds[f].kind is FeatureKind.CATEGORICAL:
            codes = sorted(rng.choice(3, size=int(rng.integers(1, 3)), replace=False).tolist())
            set_codes.extend(codes)
            set_offset.append(len(set_codes))
            chosen = len(set_offset) - 2
        node = add(f, np.nan if chosen >= 0 else float(rng.choice(LEVELS)), bool(rng.integers(2)), chosen, -1)
        left = grow(depth - 1, tree)
        right = grow(depth - 1, tree)
        columns["left"][node], columns["right"][node] = left, right
        return node

    for tree in range(trees):
        grow(int(rng.integers(0, 4)), tree)
        tree_offset.append(len(columns["feature"]))
    count = len(columns["feature"])
    leaf_node = np.flatnonzero(np.array(columns["leaf"], int) >= 0)
    return Ensemble(
        name="random",
        features=tuple(kinds),
        number_type=NumberType.FLOAT32,
        comparison="<",
        tree_offset=np.array(tree_offset, np.int64),
        node_feature=np.array(columns["feature"], np.int32),
        threshold=np.array(columns["threshold"], np.float64),
        left=np.array(columns["left"], np.int32),
        right=np.array(columns["right"], np.int32),
        default_left=np.array(columns["default"], bool),
        node_leaf=np.array(columns["leaf"], np.int32),
        leaf_value=np.array(leaf_value, np.float64)[:, None],
        leaf_tree=np.array(leaf_tree, np.int32),
        leaf_node=np.arange(len(leaf_node), dtype=np.int32),
        tree_output=(np.arange(trees) % outputs).astype(np.int32),
        tree_weight=np.ones(trees),
        base=np.array([float(np.float32(rng.normal() * 0.2)) for _ in range(outputs)]),
        link=Logistic() if outputs == 1 else Softmax(),
        task=Task.BINARY if outputs == 1 else Task.MULTICLASS,
        accumulation=Accumulation.FLOAT32_BASE_LAST,
        source=ModelSource("test"),
        category_set=np.array(columns["set"], np.int32) if count else np.zeros(0, np.int32),
        set_offset=np.array(set_offset, np.int64),
        set_codes=np.array(set_codes, np.int32),
        classes=tuple(range(max(2, outputs))),
    ).validate()


VALUES = np.array([-1.0, 0.0, 0.1, 0.25, 0.4, 0.5, 0.6, 0.75, 0.9, 1.1, 2.0])
"""Some of them leave holes of one cell and of several between their cells."""


def random_space(rng: np.random.Generator, ensemble: Ensemble) -> Space:
    """Domains of every kind over the model's own grid."""
    missing = [bool(rng.integers(2)) for _ in ensemble.features]
    grid = ensemble.grid(missing)
    domains: list[Domain] = []
    for cells, may_miss in zip(grid, missing, strict=True):
        if cells.categories:
            domains.append(ValueDomain(np.arange(cells.categories, dtype=float), ("x", "y", "z"), missing=may_miss))
        elif rng.random() < 0.3:
            values = np.sort(rng.choice(VALUES, size=int(rng.integers(1, 8)), replace=False))
            domains.append(ValueDomain(values, tuple(values.tolist()), missing=may_miss))
        elif rng.random() < 0.3:
            domains.append(RealDomain(0.3, 0.8, missing=may_miss))
        else:
            domains.append(RealDomain(-3.0, 3.0, whole=bool(rng.random() < 0.2), missing=may_miss))
    legal = tuple(legal_cells(d, g) for d, g in zip(domains, grid, strict=True))
    return Space(ensemble.feature_names, grid, tuple(domains), legal)


def random_query(rng: np.random.Generator) -> Query:
    """A question about two points: the gap of the paper (binary or multiclass), some constraints, some objective."""
    outputs = int(rng.choice([1, 1, 3]))
    ensemble = random_ensemble(rng, outputs=outputs, features=int(rng.integers(2, 4)), trees=int(rng.integers(1, 6)))
    space = random_space(rng, ensemble)
    model = ensemble.on(space.grid)
    count = len(space.names)
    varied = frozenset(rng.choice(count, size=int(rng.integers(1, count + 1)), replace=False).tolist())
    constraints: list[Constraint] = [SameExcept(0, 1, varied)]
    margin = LogRational(Fraction(int(rng.integers(-2, 5)), 4))
    if rng.random() < 0.2:
        margin = LogRational.ln(Fraction(int(rng.integers(2, 7)), 4))
    constraints += gap(outputs, margin)
    if rng.random() < 0.4:
        constraints.append(random_cell_set(rng, space))
    if rng.random() < 0.2:
        constraints.append(AnyOf((random_cell_set(rng, space), gap(outputs, LogRational(Fraction(1)))[0])))
    if rng.random() < 0.2:
        constraints.append(
            AnyOf((AllOf((random_cell_set(rng, space), random_cell_set(rng, space))), gap(outputs, LogRational())[0]))
        )
    if rng.random() < 0.2:
        constraints.append(random_boxes(rng, space))
    return Query(
        "random", space, (model,), (Point("a", 0), Point("b", 0)), tuple(constraints), random_objective(rng, space)
    )


def gap(outputs: int, margin: LogRational) -> list[Constraint]:
    """Gap-bin for one output, Gap-multi for the first two of several."""
    if outputs == 1:
        return [
            AtLeast(LinearForm((ScoreTerm(0, 0, Fraction(1)),)), margin, name="gap.a"),
            AtLeast(LinearForm((ScoreTerm(1, 0, Fraction(-1)),)), margin, name="gap.b"),
        ]
    rows: list[Constraint] = []
    for point, winner in ((0, 0), (1, 1)):
        for other in range(outputs):
            if other != winner:
                terms = (ScoreTerm(point, winner, Fraction(1)), ScoreTerm(point, other, Fraction(-1)))
                rows.append(AtLeast(LinearForm(terms), margin, name=f"gap.{point}.{other}"))
    return rows


def random_cell_set(rng: np.random.Generator, space: Space) -> CellSet:
    point, feature = int(rng.integers(2)), int(rng.integers(len(space.names)))
    return CellSet(point, feature, rng.random(space.grid[feature].n_cells) < 0.7)


def random_boxes(rng: np.random.Generator, space: Space) -> AvoidBoxes:
    features = rng.choice(len(space.names), size=min(2, len(space.names)), replace=False)
    low, high = [], []
    for f in features:
        a, b = np.sort(rng.integers(0, space.grid[int(f)].n_cells, size=2))
        low.append(a)
        high.append(b)
    return AvoidBoxes(
        int(rng.integers(2)),
        np.array([0, len(features)], np.int64),
        features.astype(np.int32),
        np.array(low, np.int32),
        np.array(high, np.int32),
    )


def random_objective(rng: np.random.Generator, space: Space) -> Objective | None:
    if rng.random() < 0.5:
        return None
    form = LinearForm(
        scores=(ScoreTerm(0, 0, Fraction(1)), ScoreTerm(1, 0, Fraction(-1))) if rng.random() < 0.5 else (),
        costs=tuple(
            CellCost(int(rng.integers(2)), f, rng.integers(-5, 6, size=space.grid[f].n_cells), 2)
            for f in range(len(space.names))
        ),
        changes=(Changes(0, 1, (0,), 1),) if rng.random() < 0.3 else (),
    )
    return Objective(form, bool(rng.integers(2)), "random")


def every_input(query: Query) -> Iterator[Inputs]:
    """All combinations of legal cells that `SameExcept` allows, with exact scores. Values play no part here."""
    left, size = _every_cells(query), 4
    while batch := list(itertools.islice(left, size)):
        cells = np.stack(batch)
        scores = zip(
            *(_exact_scores(query, number, cells[:, number]) for number in range(len(query.points))), strict=True
        )
        for one, known in zip(batch, scores, strict=True):
            yield Inputs(one.astype(float), one, known)
        size = min(2 * size, 1024)  # who stops early has not paid for all


def _every_cells(query: Query) -> Iterator[Int32Array]:
    features = range(len(query.space.names))
    legal = [np.flatnonzero(mask) for mask in query.space.legal]
    same = next((c for c in query.constraints if isinstance(c, SameExcept)), None)
    varied = sorted(same.varied) if same is not None else list(features)
    for base in itertools.product(*legal):
        for changed in itertools.product(*(legal[f] for f in varied)):
            cells = np.array([base, base], np.int32)
            cells[1, varied] = changed
            yield cells


def _exact_scores(query: Query, point: int, cells: Int32Array) -> list[tuple[Fraction, ...]]:
    """The exact raw sums of a point at its model, for many rows of cells."""
    model = query.models[query.points[point].model]
    sums = model.ensemble.sums_exact(model.leaves(np.ascontiguousarray(cells)))
    outputs = range(model.ensemble.n_outputs)
    return [tuple(sums.fraction(row, output) for output in outputs) for row in range(len(cells))]


def oracle(query: Query) -> tuple[bool, Fraction | None]:
    """Whether the question has a solution, and its best objective value."""
    from treesens.compiler.query.evaluate import form_value

    best: Fraction | None = None
    some = False
    for x in every_input(query):
        if not all(holds(c, x) for c in query.constraints):
            continue
        some = True
        if query.objective is None:
            return True, None
        value = form_value(query.objective.form, x)
        if best is None or (value > best if query.objective.maximize else value < best):
            best = value
    return some, best
