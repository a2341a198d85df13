"""Lowering: a typed question becomes a module, by the paper's base encoding (eqs. predicate_consistency to Gap).

Every point has its own copy of all variables and rows; lowering neither shares nor omits anything. This encoding is the
baseline of Kantchelian et al. (Kant in the paper); every improvement on the baseline is a pass.
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
    """The module of a question. The module is exact: an assignment satisfies it iff its cells satisfy the question.

    Raises `QueryError` if the question requires several searches: counts of rows, or the distance to the nearest of many rows.
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
            f"query `{query.name}` counts rows, which requires one question per row",
            remedy="a count is answered row by row; for one row write `a = row N of DATA`",
        )
    if query.explained is not None:
        raise QueryError(
            f"query `{query.name}` explains a row, which requires one question per set of features",
            remedy="an explanation is answered set by set; for one set write `a = row N of DATA except F`",
        )
    if query.objective is not None and query.objective.probability is not None:
        raise QueryError(
            f"query `{query.name}` has a probability as its objective, which is not linear",
            remedy="it is answered by a sequence of decisions; a margin is linear: `margin(P)`",
        )
    if query.objective is not None and query.objective.nearest is not None:
        raise QueryError(
            f"query `{query.name}` minimizes the distance to the nearest of many rows, which is not linear",
            remedy="it is answered by a search over rows; for one row write `distance(a, row N of DATA, l2)`",
        )
