"""The domain of a question as a table: what every proof about it quantifies over."""

from __future__ import annotations

from typing import Any

from treesens.compiler.query.domain import RealDomain
from treesens.compiler.query.query import OneHot, Query
from treesens.records.answers import label_of

_LISTED = 24
"""Values of a feature that are listed one by one."""


def domain_records(query: Query, declared: set[str]) -> list[dict[str, Any]]:
    """Per feature: its kind, its range or its values, whether it may be missing, and where this comes from.

    `declared` are the features whose domain somebody wrote down; the others have the range of the data.
    """
    result = []
    for name, domain, grid in zip(query.space.names, query.space.domains, query.space.grid, strict=True):
        kind = grid.number_type.dtype
        record: dict[str, Any] = {
            "feature": name,
            "missing": domain.missing,
            "source": "declared" if name in declared else "data",
        }
        if isinstance(domain, RealDomain):
            low, high = (label_of(domain, value, kind) for value in (domain.low, domain.high))
            record |= {"kind": "integer" if domain.whole else "real", "low": low, "high": high}
        else:
            values = list(dict.fromkeys(domain.labels))
            text = any(isinstance(value, str) for value in values)
            record |= {"kind": "category" if text else "values", "count": len(values)}
            if len(values) <= _LISTED or text:
                record["listed"] = values
            else:
                record |= {"low": values[0], "high": values[-1]}
        result.append(record)
    return result


def rule_records(query: Query) -> list[list[str]]:
    """The features of every `onehot` rule."""
    rules = [c for c in query.constraints if isinstance(c, OneHot) and c.point == 0]
    return [[query.space.names[member.feature] for member in rule.members] for rule in rules]
