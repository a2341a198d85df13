"""Whole questions: shorthand, sweeps, several models, objectives, counting, and that they compile."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from tests.binder.setting import DOMAINS, NAMES, bound, ensemble, loaded, one, values
from treesens.binder.scope import align_features
from treesens.compiler.ir.evaluate import brute_force
from treesens.compiler.lower import lower
from treesens.compiler.model import Feature
from treesens.compiler.query.evaluate import difference_holds, form_value, inputs_of
from treesens.compiler.query.query import Difference, Query
from treesens.errors import QueryError
from treesens.grammar.parsing.parser import parse
from treesens.grammar.printing.printer import to_text

SHORTHAND = [
    (
        "sensitive binary to {sex, x} gap 0.1",
        "find a, b in binary such that a = b except {sex, x}\n prob(a) >= 0.6\n prob(b) <= 0.4",
    ),
    (
        "sensitive binary to sex margin 1.5 expect none",
        "find a, b in binary such that a = b except sex\n margin(a) >= 1.5\n margin(b) <= -1.5\n expect none",
    ),
    (
        "sensitive binary to sex gap 0.1 from 0 to 1",
        "find a, b in binary such that a = b except sex\n prob(a, 0) >= 0.6\n prob(b, 1) >= 0.6",
    ),
    (
        "sensitive multi to sex from low to high factor 2",
        "find a, b in multi such that a = b except sex\n class(a) = low by factor 2\n class(b) = high by factor 2",
    ),
    (
        "sensitive regressor to sex gap 1",
        "find a, b in regressor such that a = b except sex\n value(a) - value(b) >= 1",
    ),
    (
        "sensitive binary to sex gap 0.1 near rows",
        "find a, b in binary such that a = b except sex\n prob(a) >= 0.6\n prob(b) <= 0.4\n"
        " a, b avoid cavities(rows, width = 3)\n maximize likelihood(a, rows) * likelihood(b, rows)",
    ),
    pytest.param(
        "sensitive binary to sex gap 0.1 near rows using distance top 3",
        "find a, b in binary such that a = b except sex\n prob(a) >= 0.6\n prob(b) <= 0.4\n"
        " minimize distance(a, nearest row of rows, l2) top 3",
        marks=pytest.mark.extensions,
    ),
]


@pytest.mark.parametrize(("short", "long"), SHORTHAND)
def test_the_shorthand_is_its_expansion(short: str, long: str) -> None:
    (found,) = bound(f"query q: {short}").queries
    (wanted,) = bound(f"query q: {long}").queries
    assert found.find == parse(f"query q: {long}").queries[0].body
    assert parse(f"query q: {to_text(found.find)}").queries[0].body == found.find
    assert found.query.constraints == wanted.query.constraints
    assert found.query.objective == wanted.query.objective
    assert (found.query.top, found.query.expect, found.query.varied) == (
        wanted.query.top,
        wanted.query.expect,
        wanted.query.varied,
    )


def test_names_of_sweeps() -> None:
    names = [q.name for q in bound("query s: for each f in {age, {sex, x}}: sensitive binary to f gap 0.1").queries]
    assert names == ["s[age]", "s[sex+x]"]
    every = bound("query s: for each f in features: sensitive binary to f gap 0.1").queries
    assert [q.name for q in every] == [f"s[{name}]" for name in NAMES]
    assert [q.query.varied for q in every] == [(name,) for name in NAMES]
    text = "query s: for each f, g in {{x, y}, {age, height}}: find a in binary such that a.f >= a.g"
    assert [q.name for q in bound(text).queries] == ["s[x+y]", "s[age+height]"]
    pairs = bound("query s: for each f in pairs: sensitive binary to f gap 0.1").queries
    assert len(pairs) == 21
    assert pairs[0].query.varied == ("x", "y")
    classes = bound("query s: sensitive multi to sex").queries
    assert [q.name for q in classes][:2] == ["s[low->mid]", "s[low->high]"]
    assert len(classes) == 6
    both = bound("query s: for each f in {sex}: sensitive multi to f").queries
    assert both[0].name == "s[sex, low->mid]"
    assert both[0].query.text.startswith("query s: for each")


def test_two_models_share_one_space() -> None:
    question = bound("query q: find a in binary, b in raw such that a = b\n margin(a) - margin(b) >= 0.5").queries[0]
    cuts = [set(ensemble("binary").grid()[i].cuts) | set(ensemble("raw").grid()[i].cuts) for i in range(len(NAMES))]
    assert [set(g.cuts) for g in question.query.space.grid] == cuts
    rng = np.random.default_rng(0)
    a = values(rng)
    row = np.array([[a[f] for f in NAMES]] * 2)
    scores = inputs_of(question.query, row).scores
    assert scores[0][0] == ensemble("binary").margins_exact(row)[0, 0]
    assert scores[1][0] == ensemble("raw").margins_exact(row)[0, 0]
    assert question.model_of(1).ensemble.name == "raw"


def test_a_model_over_more_features_reaches_the_same_leaves() -> None:
    own = loaded(ensemble("binary"))
    wide = (Feature("new"), *reversed(own.ensemble.features))
    moved = align_features(own, wide)
    rng = np.random.default_rng(0)
    rows = [values(rng) | {"new": 3.0} for _ in range(20)]
    here = np.array([[r[f] for f in NAMES] for r in rows])
    there = np.array([[r[f.name] for f in wide] for r in rows])
    assert np.array_equal(own.ensemble.leaves(here), moved.ensemble.leaves(there))
    assert np.array_equal(own.margins(here), moved.margins(there))


OBJECTIVES = [
    ("maximize margin(a) - margin(b)", "margin"),
    ("minimize 0.3 * margin(a) + 1", "margin"),
    ("maximize likelihood(a, rows) * likelihood(b, rows)", "log-likelihood"),
    ("minimize changes(a, b)", "changes"),
    ("minimize distance(a, b, l0)", "distance l0"),
    ("minimize distance(a, row 0 of rows, l0)", "distance l0"),
    ("minimize distance(a, row 0 of rows, l1)", "distance l1"),
    ("minimize distance(a, row 0 of rows, l2)", "distance l2"),
    ("maximize distance(a, row 0 of rows, linf)", "distance linf"),
    ("minimize distance(a, row 0 of rows, linf)", "distance linf"),
    ("maximize distance(a, b, l1)", "distance l1"),
    ("minimize distance(a, b, l2)", "distance l2"),
    ("minimize distance(a, b, linf)", "distance linf"),
    ("maximize distance(a, b, linf)", "distance linf"),
]


@pytest.mark.parametrize(("text", "kind"), OBJECTIVES)
def test_objectives_compile(text: str, kind: str) -> None:
    same = "" if "distance(a, b" in text else "a = b except {sex, x}\n "
    question = one(f"{same}margin(a) >= 0.1\n {text}")
    objective = question.query.objective
    assert objective is not None
    assert objective.kind == kind
    assert objective.kind in objective.KINDS
    lower(question.query)


def test_the_unit_of_a_margin_objective() -> None:
    question = one("a = b except sex\n minimize 0.3 * margin(a) + 1")
    objective = question.query.objective
    assert objective is not None
    rng = np.random.default_rng(0)
    a = values(rng)
    x = inputs_of(question.query, np.array([[a[f] for f in NAMES]] * 2))
    shown = form_value(objective.form, x) * objective.unit + objective.offset
    assert shown == x.scores[0][0] * Fraction(3, 10) + 1
    forest = bound("query q: find a in forest such that a.x >= 0\n maximize margin(a, low)").queries[0].query
    x = inputs_of(forest, np.array([[a[f] for f in NAMES]]))
    assert forest.objective is not None
    margin = ensemble("forest").margins_exact(np.array([[a[f] for f in NAMES]]))[0, 0]
    assert form_value(forest.objective.form, x) * forest.objective.unit == margin


@pytest.mark.extensions
def test_the_nearest_of_many_rows_is_described_and_refused_by_lowering() -> None:
    question = one("a = b except sex\n minimize distance(a, nearest row of rows, l2)")
    nearest = question.query.objective and question.query.objective.nearest
    assert nearest is not None
    assert nearest.features == tuple(i for i, name in enumerate(NAMES) if name != "sex")
    assert nearest.values.shape == (8, 6)
    assert nearest.same_or_not.tolist() == [False, False, False, False, True, False]
    with pytest.raises(QueryError, match="nearest of many rows"):
        lower(question.query)


def test_counting_rows() -> None:
    question = bound("query q: count rows of rows as a in binary such that margin(a) >= 0").queries[0]
    rows = question.query.rows
    assert rows is not None
    assert (rows.index.tolist(), rows.outside) == ([0, 1, 2, 3, 4, 5, 6], 1)
    with pytest.raises(QueryError, match="counts rows"):
        lower(question.query)


@pytest.mark.parametrize(
    "text",
    [
        "a.x >= a.y",
        "a.x <= 2 * a.y - 1",
        "a.x + a.y >= 1",
        "3 * a.x - 2 * a.y in [0, 1]",
        "abs(a.x - a.y) <= 0.25",
        "a.age >= a.height",
        "2 * a.age >= a.x + 35",
    ],
)
def test_relations_compile_to_the_pairs_of_cells_that_allow_them(text: str) -> None:
    domains = DOMAINS.replace("[-2, 2]", "[-1, 1]").replace("[0, 4]", "[0, 1]")
    question = one(text, points="a", domains=domains)
    (relation,) = question.query.constraints
    assert isinstance(relation, Difference)
    small = _without_trees(question.query)
    solutions = brute_force(lower(small)).solutions
    grids = question.query.space.grid
    compatible = 0
    left, right = relation.feature, relation.other
    for i in np.flatnonzero(question.query.space.legal[left]):
        for j in np.flatnonzero(question.query.space.legal[right]):
            compatible += any(
                difference_holds(relation, x, y)
                for x in _samples(question.query, left, int(i))
                for y in _samples(question.query, right, int(j))
            )
    rest = [int(m.sum()) for f, m in enumerate(question.query.space.legal) if f not in (left, right)]
    assert solutions == compatible * int(np.prod(rest, dtype=np.int64)), grids


def _samples(query: Query, feature: int, cell: int) -> list[float]:
    """Values of a cell: enough to see whether some pair satisfies a relation with few digits."""
    from treesens.compiler.lower.differences import cell_extremes

    extremes = cell_extremes(query.space.domains[feature], query.space.grid[feature], cell)
    assert extremes is not None
    low, high = (float(v) for v in extremes)
    if not hasattr(query.space.domains[feature], "values"):
        return [float(np.float32(v)) for v in np.linspace(low, high, 41)]
    values = query.space.domains[feature].values  # type: ignore[union-attr]
    return [float(v) for v in values[(values >= low) & (values <= high)]]


def _without_trees(query: Query) -> Query:
    import dataclasses

    bare = dataclasses.replace(
        ensemble("binary"),
        tree_offset=np.array([0, 1]),
        node_feature=np.array([-1]),
        threshold=np.array([np.nan]),
        left=np.array([-1]),
        right=np.array([-1]),
        default_left=np.array([False]),
        node_leaf=np.array([0]),
        leaf_value=np.zeros((1, 1)),
        leaf_tree=np.array([0]),
        leaf_node=np.array([0]),
        tree_output=np.array([0]),
        tree_weight=np.ones(1),
        category_set=np.array([-1]),
    )
    return dataclasses.replace(query, models=(bare.on(query.space.grid),))
