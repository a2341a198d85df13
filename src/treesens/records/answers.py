"""Answers as records (docs/cli.md): one JSON object per question, sufficient to reproduce and judge the answer."""

from __future__ import annotations

import hashlib
import math
from dataclasses import asdict, replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np

import treesens
from treesens.compiler.base.arrays import BoolArray, runs_of
from treesens.compiler.base.floats import rounded_to, shortest
from treesens.compiler.query.domain import Domain, Unit, ValueDomain, cell_range
from treesens.compiler.query.evaluate import Inputs, holds, inputs_of, scores_of_margins
from treesens.compiler.query.query import DecidedPoint, ExplainedRow, Query
from treesens.compiler.result import Certified, Explanation, ObjectiveValue, Region, Result, ShareFound, Verdict
from treesens.errors import UndecidedError
from treesens.records.plain import SCHEMA_VERSION
from treesens.solve.plugins import plugins_of
from treesens.solve.tasks.unsat_core import diagnostic_of
from treesens.values.verify import Witness


def label_of(domain: Domain, value: float, number_type: np.dtype[Any]) -> str | int | float | None:
    """A stored value in the user's notation; None if the value is missing."""
    if math.isnan(value):
        return None
    if isinstance(domain, ValueDomain):
        at = int(np.argmin(np.abs(domain.values - value)))
        return domain.labels[at]
    if domain.unit is not None:
        return typed_number(domain.unit, value, number_type)
    if domain.whole:
        return int(value)
    return shortest(value, number_type)


def typed_number(unit: Unit, stored: float, number_type: np.dtype[Any]) -> int | float:
    """The shortest decimal that is stored as exactly this float; the nearest double if there is no such decimal."""
    nearest = float(unit.to_typed(Fraction(stored)))
    for digits in range(1, 18):
        text = f"{nearest:.{digits}g}"
        if rounded_to(unit.to_stored(Fraction(text)), number_type) == stored:
            return shortest(float(text), np.dtype(np.float64))
    return nearest


def points_of(query: Query, witness: Witness) -> dict[str, dict[str, Any]]:
    """The values of a witness, as labels by point and feature."""
    kinds = [grid.number_type.dtype for grid in query.space.grid]
    return {
        point.name: {
            name: label_of(domain, float(value), kind)
            for name, domain, value, kind in zip(
                query.space.names, query.space.domains, witness.values[number], kinds, strict=True
            )
        }
        for number, point in enumerate(query.points)
    }


def scores_of(query: Query, witness: Witness, point: int) -> dict[str, Any]:
    """Raw outputs and predictions of one point, with the words of the language as keys.

    The class is the library's prediction. The class is included if it does not follow directly from the scores, and omitted if
    only the library's own rounding decides between two classes. A non-finite probability or value is None: libraries return
    infinity or NaN for very large sums.
    """
    return {**_scores_of(query, witness, point), **_decisions_of(query, witness, point)}


def _decisions_of(query: Query, witness: Witness, point: int) -> dict[str, Any]:
    """The outcome of every decision that the question uses, for one point. An outcome is omitted if it is undecided, or if
    exact sums and the library's scores give different outcomes.
    """
    mine = [decided for decided in query.decided if decided.point == point]
    if not mine:
        return {}
    x, found = inputs_of(query, witness.values), dict[str, Any]()
    seen = replace(x, scores=scores_of_margins(query, [np.asarray(row) for row in witness.margins]))
    for decided in mine:
        try:
            outcomes = {_outcome(decided, x), _outcome(decided, seen)}
        except UndecidedError:
            continue
        if len(outcomes) == 1:
            found["decision" if len(mine) == 1 else f"decision {decided.name}"] = outcomes.pop()
    return found


def _outcome(decided: DecidedPoint, x: Inputs) -> str:
    return next((outcome for outcome, condition in decided.cases if holds(condition, x)), decided.otherwise)


def _scores_of(query: Query, witness: Witness, point: int) -> dict[str, Any]:
    ensemble = query.models[query.points[point].model].ensemble
    margins = witness.margins[point]
    probabilities = [p if math.isfinite(p) else None for p in witness.probabilities[point]]
    predicted = witness.classes[point] if witness.classes else None
    named: dict[str, Any] = {} if predicted is None else {"class": ensemble.classes[predicted]}
    shown: dict[str, Any]
    if ensemble.link.votes:
        return named
    if ensemble.link.is_probability and not ensemble.link.averages and len(margins) == 1:
        elsewhere = ensemble.cutoff is not None or ensemble.decides_at is not None
        return {"margin": margins[0], "prob": probabilities[-1], **(named if elsewhere else {})}
    if not ensemble.link.is_known and len(margins) == 1:
        return {"margin": margins[0], **(named if ensemble.decides_at is not None else {})}
    if len(margins) == 1:
        return {"value": probabilities[0]} if not ensemble.link.is_linear else {"value": margins[0]}
    if ensemble.link.averages:
        best = {} if predicted is None else {"class": ensemble.classes[predicted]}
        if len(probabilities) == 2:
            return {**best, "prob": probabilities[-1]}
        return {**best, "prob": dict(zip(map(str, ensemble.classes), probabilities, strict=True))}
    names = [str(c) for c in ensemble.classes] or [str(i) for i in range(len(margins))]
    best = {} if predicted is None else {"class": names[predicted]}
    shown = {**best, "margin": dict(zip(names, margins, strict=True))}
    if ensemble.link.is_known:
        shown["prob"] = dict(zip(names, probabilities, strict=True))
    return shown


def region_of(query: Query, region: Region) -> dict[str, dict[str, Any]]:
    """A region by point: for each feature, a list of labels, or [low, high] runs of numbers.

    Features whose whole domain is in the region are omitted; the part common to all points is under "all".
    """
    result: dict[str, dict[str, Any]] = {"all": {}} if len(query.points) > 1 else {}
    for number, point in enumerate(query.points):
        for f, name in enumerate(query.space.names):
            mask = region.boxes[number][f]
            if (query.space.legal[f] & ~mask).any():
                where = "all" if f in region.shared and len(query.points) > 1 else point.name
                result.setdefault(where, {})[name] = _values_of(query, f, mask)
    return result


def _values_of(query: Query, feature: int, mask: BoolArray) -> list[Any]:
    grid, domain = query.space.grid[feature], query.space.domains[feature]
    kind = grid.number_type.dtype
    lost: list[Any] = [None] if grid.missing and mask[grid.missing_cell] else []
    if isinstance(domain, ValueDomain):
        inside = domain.values[mask[grid.cell_of(domain.values)]]
        labels = list(dict.fromkeys(label_of(domain, float(v), kind) for v in inside))
        if len(labels) <= 12 or isinstance(labels[0], str):
            return labels + lost
        return [[labels[0], labels[-1]], *lost]
    runs = zip(*runs_of(mask[: grid.present_cells]), strict=True)
    ends = [(cell_range(domain, grid, int(a))[0], cell_range(domain, grid, int(b))[1]) for a, b in runs]
    if domain.whole and domain.unit is None:
        ends = _joined(ends)
    return [[label_of(domain, low, kind), label_of(domain, high, kind)] for low, high in ends] + lost


def _joined(ends: list[tuple[float, float]]) -> list[tuple[float, float]]:
    """Merges consecutive runs of integers: between 18 and 19 there may be cells without an integer."""
    joined: list[tuple[float, float]] = []
    for low, high in ends:
        if joined and low == joined[-1][1] + 1:
            joined[-1] = (joined[-1][0], high)
        else:
            joined.append((low, high))
    return joined


def explanation_of(query: Query, row: ExplainedRow, result: Result, known: Explanation) -> dict[str, Any]:
    """The reason for a row's class, with the fields of `treesens why`."""
    space = query.space

    def shown(f: int) -> str | int | float | None:
        return label_of(space.domains[f], float(row.values[0, f]), space.grid[f].number_type.dtype)

    return {
        "row": row.number,
        "class": known.predicted,
        "sufficient": None if known.features is None else {space.names[f]: shown(f) for f in sorted(known.features)},
        "minimal": known.features is not None,
        "smallest": known.smallest,
        "contrast": None if known.contrast is None else [space.names[f] for f in sorted(known.contrast)],
        "point": None if result.witness is None else points_of(query, result.witness)["a"],
        "decisions": known.decisions,
        "reason": result.reason,
    }


def record(query: Query, result: Result, **extra: Any) -> dict[str, Any]:
    """One result as a JSON-ready dictionary."""
    data: dict[str, Any] = {
        "query": result.query,
        "verdict": str(result.verdict),
        "reason": result.reason,
        "proof": result.proof_text,
        "expect": query.expect,
        "as_expected": as_expected(query, result),
        "varied": list(query.varied),
        "points": None,
        "replay": None,
        "objective": None,
        "backend": result.backend,
        "pipeline": result.pipeline,
        **({"parameters": dict(query.parameters)} if query.parameters else {}),
        "plugins": [asdict(plugin) for plugin in plugins_of(query, result)],
        "seconds": {k: round(v, 6) for k, v in result.seconds.items()},
        "size": result.size.to_dict(),
    }
    data |= found_record(query, result)
    if result.explanation is not None and query.explained is not None:
        data["explanation"] = explanation_of(query, query.explained, result, result.explanation)
    if result.ranked is not None:
        data["answers"] = [
            {"points": None, "objective": None, **found_record(query, one), "backend": one.backend}
            for one in result.ranked.answers
        ]
        data["ranked"] = {
            "wanted": result.ranked.wanted,
            "found": len(result.ranked.answers),
            "complete": result.ranked.complete,
            "reason": result.ranked.reason,
            "proof": result.words_of(result.ranked.proof),
        }
    if result.count is not None:
        count = result.count
        data["count"] = {
            "at_least": count.at_least,
            "at_most": count.at_most,
            "total": count.total,
            "outside": count.outside,
            "rows": list(count.rows),
            "undecided": list(count.undecided),
            "shown": count.shown,
        }
    if result.share is not None:
        data["share"] = share_record(result.share)
    if result.core is not None:
        data["core"] = {
            "code": diagnostic_of(result.core).code,
            "conjuncts": [
                {"text": text, "place": span.place}
                for text, span in zip(result.core.texts, result.core.spans, strict=True)
            ],
            "model_free": result.core.model_free,
            "minimal": result.core.minimal,
        }
    if result.proof_dependencies:
        data["rests_on"] = list(result.proof_dependencies)
    if result.warm_started:
        data["started_from"] = "native engine"
    if result.near_miss is not None:
        data["near_miss"] = result.near_miss.to_dict()
    if result.confirmed_by is not None:
        data["confirmed_by"] = result.confirmed_by
    if result.notes:
        data["notes"] = list(result.notes)
    if result.certificates:
        data["certificates"] = certificate_records(result)
    if result.from_journal:
        data["journal"] = {"answered": result.from_journal, "verified_again": result.witness is not None}
    data["attempts"] = attempt_records(result)
    data["query_sha256"] = hashlib.sha256(query.text.encode()).hexdigest()
    data["models"] = [
        {"name": m.ensemble.name, "format": m.ensemble.source.format, "sha256": m.ensemble.source.sha256}
        for m in query.models
    ]
    return data | extra


def share_record(share: ShareFound) -> dict[str, Any]:
    """The proved interval of a share and its estimate, with the fields of `treesens count`."""
    e = share.estimate
    estimate = None
    if e is not None:
        estimate = {"value": e.value, "low": e.low, "high": e.high, "delta": e.delta, "draws": e.draws}
    rows = {} if share.rows is None else {"rows": share.rows}
    return {
        "of": share.measure,
        "measure": share.kind,
        "lower": share.lower,
        "upper": share.upper,
        "estimate": estimate,
        "closed": share.closed,
        "reason": share.reason,
        "holds": share.holds,
        **rows,
    }


def certificate_records(result: Result) -> list[dict[str, Any]]:
    """The claims of a result, each with its certificate."""
    return [certificate_record(claim) for claim in result.certificates]


def certificate_record(claim: Certified) -> dict[str, Any]:
    """A claim and its certificate: file, size and times, or the reason why there is no certificate."""
    if not claim.path:
        return {"claim": claim.claim, "file": None, "reason": claim.reason}
    return {
        "claim": claim.claim,
        "file": claim.path,
        "sha256": claim.sha256,
        "bytes": claim.size,
        "seconds": {"produced": round(claim.produced_in, 6), "checked": round(claim.checked_in, 6)},
        "left_out": list(claim.left_out),
    }


def attempt_records(result: Result) -> list[dict[str, Any]]:
    """The outcome of every backend that worked on an answer."""
    return [
        {
            "backend": a.backend,
            "termination": a.termination,
            "verdict": str(a.verdict),
            "detail": a.detail,
            "seconds": {k: round(v, 6) for k, v in a.seconds.items()},
            "statistics": a.statistics,
        }
        for a in result.attempts
    ]


def objective_record(objective: ObjectiveValue) -> dict[str, Any]:
    """The value and the bound of an objective, with their tolerance."""
    return {
        "value": objective.value,
        "bound": objective.bound,
        "gap": objective.gap,
        "sense": objective.sense,
        "kind": objective.kind,
        "status": str(objective.status),
        "tolerance": objective.tolerance.record(),
    }


def found_record(query: Query, result: Result) -> dict[str, Any]:
    """The fields about a result's witness: points, scores, replay, objective, nearest row, region."""
    data: dict[str, Any] = {}
    witness = result.witness
    if witness is not None:
        data["points"] = points_of(query, witness)
        data["raw_points"] = {
            p.name: [None if math.isnan(v) else float(v) for v in witness.values[i]] for i, p in enumerate(query.points)
        }
        data["scores"] = {p.name: scores_of(query, witness, i) for i, p in enumerate(query.points)}
        data["replay"] = str(witness.replay)
        data["in_numerical_band"] = witness.in_band
    if result.objective is not None:
        data["objective"] = objective_record(result.objective)
    if result.nearest is not None:
        data["nearest_row"] = {
            "data": result.nearest.data,
            "index": result.nearest.index,
            "distance_l2": result.nearest.distance,
            "point_distance_l2": result.nearest.point_distance,
        }
    if result.region is not None:
        data["region"] = region_of(query, result.region)
    return data


def as_expected(query: Query, result: Result) -> bool | None:
    """True if the verdict, or the share, is the expected one; None if the answer is open."""
    if query.share is not None and query.share.expected is not None:
        return result.share.holds if result.share is not None else None
    if result.verdict is Verdict.UNKNOWN:
        return None
    if query.expect is None:
        # An unknown count is not an answer, even if some rows are known to count.
        counted = result.count is None or not result.count.undecided
        return True if counted and (result.share is None or result.share.closed) else None
    return (query.expect == "some") == (result.verdict is Verdict.FOUND)


def envelope(file: Path | str, results: list[dict[str, Any]], **extra: Any) -> dict[str, Any]:
    """The object printed by `--json`."""
    return {
        "schema_version": SCHEMA_VERSION,
        "treesens": treesens.__version__,
        "file": str(file),
        "results": results,
        **extra,
    }
