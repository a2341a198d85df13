"""Cheap tests that decide which methods fit a question. The methods are listed in `solve/methods/registry.py`."""

from __future__ import annotations

from dataclasses import replace

from treesens.compiler.query.cases import cases_of_one
from treesens.compiler.query.evaluate import linear_constraints
from treesens.compiler.query.probabilities import names_probabilities
from treesens.compiler.query.query import Objective, Query
from treesens.solve.options import Options
from treesens.values.contradictions import NEVER
from treesens.values.relations import relates_values

MANY_LEAVES = 200_000
"""Number of leaves of all points above which a question is large: its module would contain millions of nonzeros."""


def by_engine(options: Options) -> bool:
    """True if the native engine runs, alone or first."""
    return options.backend in {"auto", "native"}


def on_trees(options: Options) -> bool:
    """True if the tree path may be used: a named pipeline always runs, and excludes this path."""
    return by_engine(options) and options.pipeline == "default" and not options.verify_each


def contradicts_itself(query: Query) -> bool:
    """True if `without_clashes` has found constraints that contradict each other."""
    return NEVER in query.constraints


def has_cases(query: Query) -> bool:
    """True if it is worthwhile to split a disjunction into cases."""
    return not names_probabilities(query.constraints) and bool(cases_of_one(query))


def wants_probability(query: Query) -> bool:
    """True if the objective is a sum of probabilities that no linear form expresses."""
    return query.objective is not None and query.objective.probability is not None


def needs_refinement(query: Query) -> bool:
    """True if one search over cells may not decide the question."""
    return relates_values(query) or (query.objective is not None and bool(query.objective.values))


def is_plain_but_for_values(query: Query) -> bool:
    """True if only the objective depends on values: the verdict depends on cells alone."""
    goal = query.objective
    return goal is not None and bool(goal.values) and not relates_values(replace(query, objective=None))


def is_large(query: Query) -> bool:
    """True if the points' trees have too many leaves for any solver but the native engine."""
    return leaves(query) >= MANY_LEAVES


def leaves(query: Query) -> int:
    """The number of leaves in the trees of all points."""
    return sum(query.models[point.model].n_leaves for point in query.points)


def names_forests(query: Query) -> bool:
    """True if a constraint uses trees learnt from rows."""
    return any(row.form.forests for row in linear_constraints(query.constraints))


def sums_scores(goal: Objective | None) -> bool:
    """True if there is no objective, or if the objective is a sum of scores."""
    if goal is None:
        return True
    form, beside = goal.form, goal.nearest is not None or bool(goal.values)
    return bool(form.scores) and not (beside or form.costs or form.changes or form.pairs or form.levels or form.forests)
