"""Results in journals: their records (`records/answers.py`), and the readers of these records.

The points of a `found` result are verified again when it is read; proofs and bounds are those of the run that wrote the result.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields, replace
from datetime import UTC, datetime
from functools import partial
from typing import Any, TypeVar

import numpy as np

from treesens.compiler.base.plugins import Plugin
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
from treesens.records.answers import record
from treesens.solve.bounds import left_open, value_of
from treesens.values.verify import Rejected, Witness, verify_values

_CLOSE = 1e-9
_LEFT_OUT = frozenset({"scores", "seconds", "size", "attempts", "parameters"})
"""Fields of records that are not stored: they follow from other fields or the question, or belong to one
run, and may contain infinities."""

_PLUGIN = tuple(one.name for one in fields(Plugin))

_Part = TypeVar("_Part")


def is_decided(result: Result, tolerance: Tolerance) -> bool:
    """True if more time could not improve a result: a verdict, an optimum within the tolerance, all answers, or every row."""
    if left_open(result, tolerance=tolerance) or (result.count is not None and result.count.undecided):
        return False
    share = result.share
    if share is not None and (share.holds is None if share.expected else not share.closed):
        return False
    ranked = result.ranked
    return ranked is None or ranked.complete or len(ranked.answers) == ranked.wanted


def to_json(query: Query, result: Result) -> dict[str, Any]:
    """A result in the form that a journal stores: its record, with regions as numbers of cells, and whole answers of `top`."""
    kept = {name: part for name, part in record(query, result).items() if name not in _LEFT_OUT}
    if result.region is not None:
        boxes = [[np.flatnonzero(mask).tolist() for mask in box] for box in result.region.boxes]
        kept["region"] = {"boxes": boxes, "shared": sorted(result.region.shared)}
    if result.ranked is not None:
        kept["answers"] = [to_json(query, one) for one in result.ranked.answers]
    return kept


def from_json(
    query: Query, kept: Mapping[str, Any], answered: float, library_predict: Sequence[LibraryReplay] | None
) -> Result | None:
    """The result stored in `kept`, answered at time `answered` (of `time.time`); None if its points fail verification, or do
    not have the stated value. Raises ValueError, KeyError or TypeError if the stored data is damaged.
    """
    result = _told(query, kept)
    if "answers" in kept:
        answers = [from_json(query, one, answered, library_predict) for one in kept["answers"]]
        if any(one is None or one.witness is None for one in answers):
            return None
        known = tuple(one for one in answers if one is not None)
        told, proof = kept["ranked"], _part(kept["ranked"], "proof", Proof)
        ranked = Ranked(known, int(told["wanted"]), bool(told["complete"]), str(told["reason"]), proof)
        result = replace(result, ranked=ranked)
    if "raw_points" in kept:
        witness = _verified(query, kept["raw_points"], library_predict)
        if not isinstance(witness, Witness) or not _has_value(query, witness, result.objective):
            return None
        result = replace(result, witness=witness)
    elif result.verdict is Verdict.FOUND and result.count is None:
        why = result.explanation
        # Only if no input has another class than the row, there is no contrast.
        if why is None or why.features != frozenset() or why.contrast is not None:
            return None
    return replace(result, from_journal=datetime.fromtimestamp(answered, UTC).strftime("%Y-%m-%dT%H:%M:%SZ"))


def _told(query: Query, kept: Mapping[str, Any]) -> Result:
    """The result with all fields except witnesses."""
    verdict = Verdict(kept["verdict"])
    notes, rests_on = (_part(kept, name, lambda told: tuple(map(str, told))) or () for name in ("notes", "rests_on"))
    return Result(
        query.name,
        verdict,
        str(kept["reason"]),
        _part(kept, "proof", Proof),
        objective=_part(kept, "objective", _objective),
        near_miss=_part(kept, "near_miss", lambda told: NearMiss(**{name: _part(told, name, float) for name in told})),
        backend=str(kept["backend"]),
        pipeline=str(kept["pipeline"]),
        confirmed_by=_part(kept, "confirmed_by", str),
        notes=notes,
        region=_part(kept, "region", partial(_region, query)),
        nearest=_part(kept, "nearest_row", _nearest),
        count=_part(kept, "count", _count),
        share=_part(kept, "share", partial(_share, query, verdict)),
        explanation=_part(kept, "explanation", partial(_explanation, query)),
        proof_dependencies=rests_on,
        plugins=tuple(Plugin(**{name: str(one[name]) for name in _PLUGIN}) for one in kept["plugins"]),
    )


def _part(kept: Mapping[str, Any], name: str, read: Callable[[Any], _Part]) -> _Part | None:
    return read(kept[name]) if name in kept and kept[name] is not None else None


def _objective(kept: Mapping[str, Any]) -> ObjectiveValue:
    tolerance = Tolerance(**{name: float(value) for name, value in dict(kept["tolerance"]).items()})
    return ObjectiveValue(
        float(kept["value"]), _part(kept, "bound", float), Sense(kept["sense"]), str(kept["kind"]), tolerance
    )


def _nearest(kept: Mapping[str, Any]) -> NearestRow:
    distances = (float(kept[name]) for name in ("distance_l2", "point_distance_l2"))
    return NearestRow(str(kept["data"]), int(kept["index"]), *distances)


def _count(kept: Mapping[str, Any]) -> RowCount:
    rows, undecided = (tuple(map(int, kept[name])) for name in ("rows", "undecided"))
    return RowCount(rows, undecided, int(kept["total"]), int(kept["outside"]), _part(kept, "shown", int))


def _estimate(kept: Mapping[str, Any]) -> Estimate:
    value, low, high, delta = (float(kept[name]) for name in ("value", "low", "high", "delta"))
    return Estimate(value, low, high, delta, int(kept["draws"]))


def _share(query: Query, verdict: Verdict, kept: Mapping[str, Any]) -> ShareFound:
    """A stored share, compared again with the question's bound."""
    lower, upper = float(kept["lower"]), float(kept["upper"])
    asked = query.share
    if asked is None or not 0 <= lower <= upper <= 1 or (verdict is Verdict.NONE and lower > 0):
        raise ValueError("a share is a number from 0 to 1, for a measure in the question")
    estimate = _part(kept, "estimate", _estimate)
    closed, reason, rows = bool(kept["closed"]), str(kept["reason"]), _part(kept, "rows", int)
    found = ShareFound(asked.measure, asked.kind, lower, upper, estimate, closed, reason, rows=rows)
    return found.judged(asked)


def _explanation(query: Query, kept: Mapping[str, Any]) -> Explanation:
    places = {name: f for f, name in enumerate(query.space.names)}
    features, contrast = (
        _part(kept, name, lambda names: frozenset(places[one] for one in names)) for name in ("sufficient", "contrast")
    )
    return Explanation(str(kept["class"]), features, bool(kept["smallest"]), contrast, int(kept["decisions"]))


def _region(query: Query, kept: Mapping[str, Any]) -> Region:
    boxes = []
    for box in kept["boxes"]:
        masks = []
        for grid, cells in zip(query.space.grid, box, strict=True):
            mask = np.zeros(grid.n_cells, bool)
            if any(not 0 <= cell < grid.n_cells for cell in cells):
                raise ValueError("a region contains cells that are not in the question")
            mask[cells] = True
            mask.flags.writeable = False
            masks.append(mask)
        boxes.append(tuple(masks))
    if len(boxes) != len(query.points):
        raise ValueError("a region has a box for every point")
    return Region(tuple(boxes), frozenset(map(int, kept["shared"])))


def _verified(query: Query, kept: Mapping[str, Any], predict: Sequence[LibraryReplay] | None) -> Witness | Rejected:
    points = [kept[point.name] for point in query.points]
    values = np.array([[np.nan if v is None else float(v) for v in point] for point in points])
    if values.shape != (len(query.points), len(query.space.names)):
        raise ValueError("a witness has a value for every point and feature")
    return verify_values(query, values, library_predict=predict)


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
    return goal.nearest is not None or abs(value_of(goal, inputs_of(query, witness.values)) - told.value) <= slack
