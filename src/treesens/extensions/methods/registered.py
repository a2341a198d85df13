"""The methods of this extension, and the questions for which they are used; `treesens/builtin.py` lists them in order."""

from __future__ import annotations

from typing import Final

from treesens.compiler.model import cells
from treesens.compiler.query.known_cavities import all_cavities_in
from treesens.compiler.query.query import Query
from treesens.extensions.methods.slots import count_inputs
from treesens.solve.fits import by_engine, on_trees, sums_scores
from treesens.solve.method import Method, Stage
from treesens.values.relations import relates_values
from treesens.values.stated_changes import changes_wanted

MOST_COMBINATIONS = 100_000
"""Maximum number of combinations of cells that are enumerated, over all points together."""


def is_small(query: Query) -> bool:
    """True if the domain of one point is small enough to try `Combinations` (a quick estimate)."""
    return query.rows is None and count_inputs(query, 0) <= MOST_COMBINATIONS


def is_cheapest(query: Query) -> bool:
    """True if the question minimises a sum of single-cell costs, or has a sum of features as its objective."""
    goal = query.objective
    if goal is None or goal.largest or goal.nearest is not None or query.rows is not None:
        return False
    if goal.kind == "features":
        return not relates_values(query)
    if goal.maximize:
        return False
    if not goal.kind.startswith("distance") or goal.unit != 1 or goal.offset != 0 or relates_values(query):
        return False
    if not goal.values:
        form = goal.form
        return bool(form.costs) and not (form.scores or form.changes or form.pairs or form.levels or form.forests)
    places = [term.places for term in goal.values]
    alone = all(len(p) == 1 for p in places) and len(set(places)) == len(places)
    return alone and all(t.factor > 0 for t in goal.values)


def counts_changes(query: Query) -> bool:
    """True if the question minimises or limits the number of features in which two inputs differ."""
    return changes_wanted(query) is not None


def is_radius(query: Query) -> bool:
    """True if the question minimises the greatest distance of some places from given values, and cells determine it."""
    goal = query.objective
    if goal is None or goal.maximize or not goal.largest or not goal.values:
        return False
    places = [term.places for term in goal.values]
    features = {term.feature for term in goal.values}
    alone = all(len(p) == 1 for p in places) and len(features) == len(places)
    return alone and all(t.factor > 0 for t in goal.values) and not relates_values(query)


def may_be_additive(query: Query) -> bool:
    """True if the first tree of every model splits on so few features that the trees may form independent groups."""
    return sums_scores(query.objective) and all(cells.may_be_additive(query.models[p.model]) for p in query.points)


BRIEF_SMALL: Final = Method(
    name="brief search, small domain",
    questions=f"domains of at most {MOST_COMBINATIONS:,} combinations of cells, with the engine",
    fits=lambda query, options: by_engine(options) and is_small(query),
    proves="facts proved by the first applicable search below",
    run="treesens.solve.methods.steps:search_briefly",
    stage=Stage.STEP,
    share=0.5,
    most=0.2,
    to_the_last_unit=True,
    before="brief search, disjunction",
)
COMBINATIONS: Final = Method(
    name="combinations",
    questions="the same questions, if still undecided",
    fits=lambda query, options: by_engine(options) and is_small(query),
    proves="verdict and optimum, by trying all combinations of cells (of one point for sums of scores; Z3: values inside)",
    run="treesens.extensions.methods.enumerate_rows:search_combinations",
    stage=Stage.STEP,
    takes_over=True,
    before="brief search, disjunction",
)
BRIEF_FEW: Final = Method(
    name="brief search, few changes",
    questions="a limit on the number of features in which two points differ, by the tree path",
    fits=lambda query, options: on_trees(options) and query.objective is None and counts_changes(query),
    proves="facts proved by the first applicable search below",
    run="treesens.solve.methods.steps:search_briefly",
    stage=Stage.STEP,
    share=0.5,
    most=0.5,
    before="brief search, disjunction",
)
FEWEST: Final = Method(
    name="fewest changes",
    questions="the least number of features in which two points differ, or an undecided limit on it",
    fits=lambda query, options: on_trees(options) and counts_changes(query),
    proves="verdict and bound, by questions in which inputs may differ only in some features",
    run="treesens.extensions.methods.fewest_changes:search_fewest_changes",
    stage=Stage.STEP,
    share=0.9,  # the rest is for questions that stay open
    before="brief search, disjunction",
)
CAVITIES: Final = Method(
    name="all cavities",
    questions="`avoid cavities` of any width, without a list of the cavities",
    fits=lambda query, _: next(all_cavities_in(query.constraints), None) is not None,
    proves="verdict and bound, by questions with the known cavities only; every rejected candidate adds cavities",
    run="treesens.extensions.answers.learn_cavities:search_cavities",
    always=True,
    before="best probability",
)
NEAREST: Final = Method(
    name="nearest pair",
    questions="the least distance to the nearest row of a table",
    fits=lambda query, _: query.objective is not None and query.objective.nearest is not None,
    proves="verdict and bound, by branch and bound over groups of rows",
    run="treesens.extensions.answers.nearest_pair:search_nearest",
    always=True,
    before="any answer",
)
CHEAPEST: Final = Method(
    name="cheapest cells",
    questions="the least l0, l1 or l2 distance from a row, and the best sum of features, by the tree path",
    fits=lambda query, options: on_trees(options) and is_cheapest(query),
    proves="verdict and bound, exactly; at most half a second if scores are rounded for the engine",
    run="treesens.extensions.methods.least_cost:search_least_cost",
    share=0.9,  # the rest is for questions that stay open
    before="any answer",
)
RADIUS: Final = Method(
    name="least radius",
    questions="the least linf distance from a row",
    fits=lambda query, options: by_engine(options) and is_radius(query),
    proves="verdict and bound, exactly: no answer exists below this radius",
    run="treesens.extensions.methods.least_cost:search_least_radius",
    share=0.9,  # the rest is for questions that stay open
    before="any answer",
)
SUMS: Final = Method(
    name="attainable sums",
    questions="one or two sums of scores of trees that form groups without common features",
    fits=lambda query, options: on_trees(options) and may_be_additive(query),
    proves="verdict and optimum, exactly, if leaves are multiples of a common number and sums fit into a table",
    run="treesens.extensions.methods.attainable_sums:search_sums",
    stage=Stage.CELLS,
    share=0.5,
    before="trees, large model",
)
