"""`share of MEASURE`, drawn, and judged by adding up the shares of all inputs (docs/measures.md)."""

from __future__ import annotations

import json
from collections import Counter
from typing import TYPE_CHECKING, Any

import numpy as np

from tests.oracle.brute import Truths, World, left_out
from tests.oracle.meaning import Rows

if TYPE_CHECKING:
    from tests.oracle.questions import Draw

SHARE = 0.25
"""Questions with it, of those that may have it."""
CLOSE = 1e-9
"""Masses are floats."""
LINEAR = ("prob", "margin", "value")


def draw_share(d: Draw, question: dict[str, Any]) -> None:
    """Gives a question the clause, if shares are counted of what it asks."""
    if question.get("count") or question.get("objective") or question.get("top") or question.get("near"):
        return
    if not all(f.discrete for f in d.space.features) or not d.chance(SHARE):
        return
    if len({m for _, m in question["points"]}) > 1 or not all(_counted(node) for node in question["constraints"]):
        return
    if len(question["points"]) > 1 and not any(node[0] == "equal" for node in question["constraints"]):
        return
    if any(d.models[m].link == "calibrated" for _, m in question["points"]):
        return  # a bound on a calibrated probability may be an alternative of scores
    if any(d.models[m].link == "counted" for _, m in question["points"]) and '"class"' in json.dumps(
        question["constraints"]
    ):
        return  # the class of votes that are counted is an alternative of scores
    if any(d.models[m].link == "softmax" for _, m in question["points"]) and '"prob"' in json.dumps(
        question["constraints"]
    ):
        return  # no sum of scores
    free = left_out(question)
    groups = {f.group for f in d.space.features if f.group is not None}
    for members in ({f.name for f in d.space.features if f.group == g} for g in groups):
        if 1 < len(members & free) < len(members):
            return  # a part of a group is refused
    measures = ["uniform"] * (not all(f.missing and len(f.typed) == 1 for f in d.space.features))
    for name, rows in d.tables.items():
        if rows.inside.any():
            measures += [f"rows of {name}", f"marginals of {name}"]
    if not measures:
        return
    question["share"] = d.pick(measures)
    if d.chance(0.5):
        question["bound"] = [d.pick(["<=", "<", ">=", ">"]), d.pick(["0", "0.01", "0.05", "0.2", "0.5", "0.9"])]
        question["expect"] = None


def _counted(node: Any) -> bool:
    """Scores of one point, single features, and the equality of the two points."""
    if node[0] in ("equal", "category", "within", "among", "missing"):
        return True
    if node[0] == "class":
        return not node[4] and node[2] == "="  # of several classes, `!=` is an alternative
    if node[0] != "compare":
        return False
    (_, left), *more = node[1]
    return not more and node[2] not in ("=", "!=") and node[3][0][1] == ["one"] and left[0] in ("feature", *LINEAR)


def weights(world: World, measure: str) -> np.ndarray:
    """float64[points]: the share of every input of the domain."""
    kind, _, table = measure.partition(" of ")
    space = world.space
    if kind == "uniform":
        given = ~np.isnan(space.user()).any(axis=1)
        return given / given.sum()
    rows = world.tables[table]
    if kind == "rows":
        places = [world.place(rows.places[row]) for row in np.flatnonzero(rows.inside)]
        return np.bincount(np.array(places, int), minlength=space.size) / len(places)
    return _marginals(world, rows)


def _marginals(world: World, rows: Rows) -> np.ndarray:
    """Feature by feature from the columns of the rows inside; a one-hot group is one column."""
    inside, grid = rows.places[rows.inside], world.space.grid
    columns: dict[Any, list[int]] = {}
    for i, f in enumerate(world.space.features):
        columns.setdefault(("feature", i) if f.group is None else ("group", f.group), []).append(i)
    out = np.ones(len(grid))
    for members in columns.values():
        seen = Counter(map(tuple, inside[:, members].tolist()))
        out *= np.array([seen[tuple(values)] for values in grid[:, members].tolist()]) / len(inside)
    return out


def judge_share(world: World, question: dict[str, Any], record: dict[str, Any], truths: Truths, wrong: Any) -> None:
    """The interval meets what enumeration says, and the bound that is expected is judged by it."""
    share = record.get("share")
    if share is None:
        # What contradicts itself word by word is refused with a message, and has no share.
        if record["verdict"] != "unknown" and "error[E309]" not in str(record.get("reason")):
            wrong("lost", f"no share beside {record['verdict']}")
        return
    mass = weights(world, question["share"])
    group = world.group(sorted(left_out(question)))
    at = truths.setting.at[question["points"][0][0]]
    least = float(mass[np.isin(group, group[at[truths.sure]])].sum())
    most = float(mass[np.isin(group, group[at])].sum())
    if share["lower"] > most + CLOSE or share["upper"] < least - CLOSE:
        wrong("share", f"{share['lower']}..{share['upper']} of {question['share']}, by enumeration {least}..{most}")
    if not 0 <= share["lower"] <= share["upper"] <= 1:
        wrong("share", f"{share['lower']}..{share['upper']} is no interval of shares")
    # Scores of wide range are rounded, and what they leave undecided at a tie stays in the interval.
    rounded = any(world.points[m].exact is not None for _, m in question["points"])
    if share["upper"] - share["lower"] > 1e-6 and least == most and not rounded:
        wrong("open", f"share left open: {share['lower']}..{share['upper']}, by enumeration {least}")
    _expected(question, share, least, most, wrong)


def _expected(question: dict[str, Any], share: dict[str, Any], least: float, most: float, wrong: Any) -> None:
    if not question.get("bound") or share["holds"] is None:
        return
    op, bound = question["bound"][0], float(question["bound"][1])
    if op in ("<=", "<"):
        possible = least - CLOSE <= bound if share["holds"] else most + CLOSE >= bound
    else:
        possible = most + CLOSE >= bound if share["holds"] else least - CLOSE <= bound
    if not possible:
        wrong("share", f"share {op} {bound} is said to be {share['holds']}, by enumeration {least}..{most}")
