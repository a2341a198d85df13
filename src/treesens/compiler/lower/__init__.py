"""Lowering: a typed question becomes a module, by the paper's base encoding (eqs. predicate_consistency to Gap).

Every point has its own copy of everything; nothing is shared or omitted here. That is the baseline of Kantchelian et al. that
the paper calls Kant; every improvement on it is a pass.
"""

from __future__ import annotations

from treesens.compiler.base.budget import check_in
from treesens.compiler.ir import FeatureInfo, Module
from treesens.compiler.lower.builder import Builder
from treesens.compiler.lower.constraints import lower_constraint, lower_objective
from treesens.compiler.lower.trees import lower_trees
from treesens.compiler.query.query import Query
from treesens.errors import QueryError

__all__ = ["lower"]


def lower(query: Query) -> Module:
    """The module of a question. Exact: an assignment satisfies it iff its cells satisfy the question.

    Raises `QueryError` for questions that need several searches: counting rows, the distance to the nearest of many rows.
    """
    _refuse_other_searches(query)
    builder = Builder(query)
    builder.declare_orders()
    lower_trees(builder)
    for constraint in query.constraints:
        check_in()
        lower_constraint(builder, constraint)
    objective = lower_objective(builder, query.objective) if query.objective is not None else None
    return Module(
        name=query.name,
        features=tuple(
            FeatureInfo(name, grid.n_cells)
            for name, grid in zip(query.space.names, query.space.grid.features, strict=True)
        ),
        points=tuple(p.name for p in query.points),
        variables=builder.variables,
        blocks=builder.finished_blocks(),
        ops=builder.finished_ops(),
        objective=objective,
        provenance=("lower",),
    )


def _refuse_other_searches(query: Query) -> None:
    if query.rows is not None:
        raise QueryError(
            f"query `{query.name}` counts rows, which is one question for every row",
            remedy="it is answered row by row; ask about one row with `a = row N of DATA`",
        )
    if query.explained is not None:
        raise QueryError(
            f"query `{query.name}` explains a row, which takes one question for every set of features",
            remedy="it is answered decision by decision; ask about one set with `a = row N of DATA except F`",
        )
    if query.objective is not None and query.objective.probability is not None:
        raise QueryError(
            f"query `{query.name}` has a probability as its objective, which no linear objective can say",
            remedy="it is answered by one decision after the other; a margin is linear: `margin(P)`",
        )
    if query.objective is not None and query.objective.nearest is not None:
        raise QueryError(
            f"query `{query.name}` minimizes the distance to the nearest of many rows, which no linear objective can say",
            remedy="it is answered by the search over rows; for one row write `distance(a, row N of DATA, l2)`",
        )
