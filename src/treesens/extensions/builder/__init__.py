"""Builds questions as Python objects, which are equivalent to their `.sens` text.

import treesens as ts

a, b = ts.query.points("a", "b")
question = (
    ts.query.find(a, b)
    .such_that(a == b.except_("sex"), a.prob() >= 0.6, b.prob() <= 0.4, a["age"] >= 30)
    .maximize(a.margin() - b.margin())
)
print(question)  # find a, b such that ..
question.answer(model).pair
"""

from __future__ import annotations

from treesens.extensions.builder.declarations import (
    Declaration,
    category,
    data,
    decision,
    domain_from,
    integer,
    measure,
    model,
    onehot,
    real,
)
from treesens.extensions.builder.points import (
    NearestRow,
    Point,
    Row,
    avoid_cavities,
    avoid_listed,
    nearest_row,
    point,
    points,
    row,
    typical,
)
from treesens.extensions.builder.questions import (
    File,
    Question,
    count,
    decreasing,
    explain,
    file,
    find,
    increasing,
    parse,
    sensitive,
)
from treesens.extensions.builder.terms import Constraint, Quantity, all_of, any_of, number

__all__ = [
    "Constraint",
    "Declaration",
    "File",
    "NearestRow",
    "Point",
    "Quantity",
    "Question",
    "Row",
    "all_of",
    "any_of",
    "avoid_cavities",
    "avoid_listed",
    "category",
    "count",
    "data",
    "decision",
    "decreasing",
    "domain_from",
    "explain",
    "file",
    "find",
    "increasing",
    "integer",
    "measure",
    "model",
    "nearest_row",
    "number",
    "onehot",
    "parse",
    "point",
    "points",
    "real",
    "row",
    "sensitive",
    "typical",
]
