"""Results as JSON and back, for journals.

A `found` is stored by its values alone, and verified again when it is read; proofs and bounds are those of the run that wrote
them.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import numpy as np

from treesens.compiler.base.arrays import FloatArray
from treesens.compiler.base.tolerance import Tolerance
from treesens.compiler.model.evaluate import LibraryReplay
from treesens.compiler.query.evaluate import inputs_of
from treesens.compiler.query.query import Query
from treesens.compiler.result import (
    Estimate,
    Explanation,
    NearestRow,
    NearMiss,
    ObjectiveValue,
    Proof,
    Ranked,
    Region,
    Result,
    RowCount,
    Sense,
    ShareFound,
    Verdict,
)
from treesens.solve.bounds import left_open, value_of
from treesens.values.verify import Witness, verify_values

_CLOSE = 1e-9


def is_decided(result: Result, tolerance: Tolerance) -> bool:
    """True if more time could not improve a result: a verdict, an optimum within the tolerance, all answers, or every row."""
    if left_open(result, tolerance=tolerance) or (result.count is not None and result.count.undecided):
        return False
    share = result.share
    if share is not None and (share.holds is None if share.expected else not share.closed):
        return False
    ranked = result.ranked
    return ranked is None or ranked.complete or len(ranked.answers) == ranked.wanted


def to_json(result: Result) -> dict[str, Any]:
    """A result in the form that a journal stores."""
    kept: dict[str, Any] = {
        "verdict": str(result.verdict),
        "reason": result.reason,
        "proof": result.proof,
        "backend": result.backend,
        "pipeline": result.pipeline,
        "notes": list(result.notes),
        "confirmed_by": result.confirmed_by,
        "rests_on": list(result.proof_dependencies),
    }
    if result.witness is not None:
        kept["points"] = [[None if math.isnan(v) else v for v in point] for point in result.witness.values.tolist()]
    if result.objective is not None:
        goal = result.objective
        kept["objective"] = [goal.value, goal.bound, str(goal.sense), goal.kind]
        kept["tolerance"] = [goal.tolerance.relative, goal.tolerance.absolute]
    if result.near_miss is not None:
        kept["near_miss"] = [result.near_miss.best_slack, result.near_miss.slack_bound]
    if result.nearest is not None:
        near = result.nearest
        kept["nearest"] = [near.data, near.index, near.distance, near.point_distance]
    if result.region is not None:
        boxes = [[np.flatnonzero(mask).tolist() for mask in box] for box in result.region.boxes]
        kept["region"] = {"boxes": boxes, "shared": sorted(result.region.shared)}
    if result.count is not None:
        count = result.count
        kept["count"] = [list(count.rows), list(count.undecided), count.total, count.outside, count.shown]
    if result.share is not None:
        kept["share"] = _kept_share(result.share)
    if result.explanation is not None:
        why = result.explanation
        sets = [None if one is None else sorted(one) for one in (why.features, why.contrast)]
        kept["explanation"] = [why.predicted, *sets, why.smallest, why.decisions]
    if result.ranked is not None:
        ranked = result.ranked
        kept["answers"] = [to_json(one) for one in ranked.answers]
        kept["ranked"] = [ranked.wanted, ranked.complete, ranked.reason, ranked.proof]
    return kept


def _kept_share(share: ShareFound) -> dict[str, Any]:
    e = share.estimate
    return {
        "proved": [share.lower, share.upper],
        "estimate": None if e is None else [e.value, e.low, e.high, e.delta, e.draws, e.concerned],
        "closed": share.closed,
        "reason": share.reason,
        "rows": share.rows,
    }


def _share(query: Query, kept: Mapping[str, Any], verdict: Verdict) -> ShareFound:
    """A stored share, compared again with the question's bound."""
    lower, upper = map(float, kept["proved"])
    asked = query.share
    if asked is None or not 0 <= lower <= upper <= 1 or (verdict is Verdict.NONE and lower > 0):
        raise ValueError("a share is a part of 1 of a measure of the question")
    e = kept["estimate"]
    estimate = None if e is None else Estimate(float(e[0]), float(e[1]), float(e[2]), float(e[3]), int(e[4]), int(e[5]))
    rows = None if kept["rows"] is None else int(kept["rows"])
    closed, reason = bool(kept["closed"]), str(kept["reason"])
    found = ShareFound(asked.measure, asked.kind, lower, upper, estimate, closed, reason, rows=rows)
    return found.judged(asked)


def from_json(
    query: Query, kept: Mapping[str, Any], answered: float, library_predict: Sequence[LibraryReplay] | None
) -> Result | None:
    """The result stored in `kept`, answered at time `answered` (of `time.time`); None if its points fail verification, or do
    not have the stated value. Raises ValueError, KeyError or TypeError if the stored data is damaged.
    """
    result = _told(query, kept)
    if "answers" in kept:
        wanted, complete, reason, proof = kept["ranked"]
        answers = [from_json(query, one, answered, library_predict) for one in kept["answers"]]
        if any(one is None or one.witness is None for one in answers):
            return None
        known = tuple(one for one in answers if one is not None)
        ranked = Ranked(known, int(wanted), bool(complete), str(reason), None if proof is None else Proof(proof))
        result = replace(result, ranked=ranked)
    if "points" in kept:
        witness = _verified(query, kept["points"], library_predict)
        if witness is None or not _has_value(query, witness, result.objective):
            return None
        result = replace(result, witness=witness)
    elif result.verdict is Verdict.FOUND and result.count is None and not _is_constant(result.explanation):
        return None
    return replace(result, from_journal=datetime.fromtimestamp(answered, UTC).strftime("%Y-%m-%dT%H:%M:%SZ"))


def _told(query: Query, kept: Mapping[str, Any]) -> Result:
    """The result with all fields except witnesses."""
    objective = None
    if "objective" in kept:
        value, bound, sense, kind = kept["objective"]
        tolerance = Tolerance(*map(float, kept["tolerance"]))
        proved = None if bound is None else float(bound)
        objective = ObjectiveValue(float(value), proved, Sense(sense), str(kind), tolerance)
    return Result(
        query.name,
        Verdict(kept["verdict"]),
        str(kept["reason"]),
        None if kept["proof"] is None else Proof(kept["proof"]),
        objective=objective,
        near_miss=NearMiss(*kept["near_miss"]) if "near_miss" in kept else None,
        backend=str(kept["backend"]),
        pipeline=str(kept["pipeline"]),
        confirmed_by=None if kept["confirmed_by"] is None else str(kept["confirmed_by"]),
        notes=tuple(map(str, kept["notes"])),
        region=_region(query, kept["region"]) if "region" in kept else None,
        nearest=NearestRow(*kept["nearest"]) if "nearest" in kept else None,
        count=_count(*kept["count"]) if "count" in kept else None,
        share=_share(query, kept["share"], Verdict(kept["verdict"])) if "share" in kept else None,
        explanation=_explanation(query, *kept["explanation"]) if "explanation" in kept else None,
        proof_dependencies=tuple(map(str, kept["rests_on"])),
    )


def _count(rows: list[int], undecided: list[int], total: int, outside: int, shown: int | None) -> RowCount:
    return RowCount(tuple(map(int, rows)), tuple(map(int, undecided)), int(total), int(outside), shown)


def _explanation(
    query: Query, predicted: str, features: list[int] | None, contrast: list[int] | None, smallest: bool, decisions: int
) -> Explanation:
    known = [None if one is None else frozenset(map(int, one)) for one in (features, contrast)]
    if query.explained is None or any(
        one is not None and not one <= set(range(len(query.space.names))) for one in known
    ):
        raise ValueError("a reason is about features of the question")
    return Explanation(str(predicted), known[0], bool(smallest), known[1], int(decisions))


def _is_constant(why: Explanation | None) -> bool:
    """True if no input has another class than the row, so that there is no contrast."""
    return why is not None and why.features == frozenset() and why.contrast is None


def _region(query: Query, kept: Mapping[str, Any]) -> Region:
    boxes = []
    for box in kept["boxes"]:
        masks = []
        for grid, cells in zip(query.space.grid, box, strict=True):
            mask = np.zeros(grid.n_cells, bool)
            if any(not 0 <= cell < grid.n_cells for cell in cells):
                raise ValueError("a region has cells that are not in the question")
            mask[cells] = True
            mask.flags.writeable = False
            masks.append(mask)
        boxes.append(tuple(masks))
    if len(boxes) != len(query.points):
        raise ValueError("a region has a box for every point")
    return Region(tuple(boxes), frozenset(map(int, kept["shared"])))


def _verified(
    query: Query, points: Sequence[Sequence[float | None]], library_predict: Sequence[LibraryReplay] | None
) -> Witness | None:
    seen = verify_values(query, values_of(query, points), library_predict=library_predict)
    return seen if isinstance(seen, Witness) else None


def values_of(query: Query, points: Sequence[Sequence[float | None]]) -> FloatArray:
    """The values float64[points, features] of stored points. Raises ValueError if the stored data is damaged."""
    values = np.array([[np.nan if v is None else float(v) for v in point] for point in points])
    if values.shape != (len(query.points), len(query.space.names)):
        raise ValueError("a witness has a value for every point and feature")
    return values


def _has_value(query: Query, witness: Witness, told: ObjectiveValue | None) -> bool:
    """True if the points have the stated value, and the bound is consistent; the distance from the nearest row of a
    table is not computed again.
    """
    goal = query.objective
    if goal is None or told is None:
        return goal is None and told is None
    slack = _CLOSE * max(1.0, abs(told.value))
    beyond = 0.0 if told.bound is None else (told.value - told.bound) * (1 if goal.maximize else -1)
    if told.sense is not Sense.of(goal.maximize) or told.kind != goal.kind or beyond > slack:
        return False
    if goal.nearest is not None:
        return True
    value = value_of(goal, inputs_of(query, witness.values))
    return abs(value - told.value) <= slack
