"""What studies of scores claim, as parts that can have certificates: gaps, ranges, shapes, differences, and an audit."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

from treesens.compiler.query.query import Query
from treesens.compiler.result import Certified, Result, Verdict
from treesens.extensions.certify.attach import form_limit, with_more
from treesens.extensions.certify.claims import having, lacking, not_beyond
from treesens.extensions.certify.together import Claim, Part, between, each, known, open_claim
from treesens.extensions.studies.audit import AuditOptions
from treesens.extensions.studies.claims_of_shares import claim_shares_of_audit
from treesens.extensions.studies.diff import DiffOptions, DiffRecord
from treesens.extensions.studies.diff_search import ChangedOutcome, ChangedSensitivity, Difference, Largest
from treesens.extensions.studies.gap import GapOptions, GapRecord
from treesens.extensions.studies.gap_search import LargestGap
from treesens.extensions.studies.range import RangeOptions, RangeRecord
from treesens.extensions.studies.shape import ShapeOptions, ShapeRecord
from treesens.extensions.studies.shape_search import Shaped
from treesens.extensions.studies.study import Asking, Found


def claim_gaps(_: Asking[GapOptions], found: Found[GapRecord]) -> Iterator[list[Claim]]:
    """Every largest gap: the pair that reaches it, and that no pair exceeds its bound."""
    for one in found.result:
        title = f"the largest gap of {', '.join(one.varied)}"
        if not one.result.certificates:
            yield [open_claim(title, one.reason or "nothing is proved")]
            continue
        beyond = known(one.query, *one.result.certificates)
        yield [between(title, _pair_of_gap(one, one.query), beyond)]


def _pair_of_gap(one: LargestGap, query: Query) -> Part | None:
    """The pair of a gap, with all rows as far up as it reaches; None if there is none."""
    if one.witness is None or one.value is None:
        return None
    if query.objective is not None:
        return having(query, one.witness)
    lower = max(0.0, one.value - 1e-9 * (1 + abs(one.value)))
    return having(with_more(query, lower), one.witness)


def claim_ranges(_: Asking[RangeOptions], found: Found[RangeRecord]) -> Iterator[list[Claim]]:
    """Both ends of every score."""
    for end in found.result:
        of_class = "" if end.label is None else f" of {end.label}"
        title = f"the {end.sense.value[:3]}imum of the {end.score}{of_class}"
        yield [_of_optimum(title, end.query, end.result)]


def _of_optimum(title: str, query: Query, result: Result) -> Claim:
    """What an answer with an objective claims: its value and its bound, or that there is no answer."""
    made: dict[str, list[Certified]] = {}
    for one in result.certificates:
        made.setdefault(one.claim, []).append(one)
    if result.verdict is Verdict.NONE:
        bare = replace(query, objective=None)
        return each(title, [known(bare, *made["none"]) if "none" in made else lacking(bare)])
    goal, reached = query.objective, result.objective
    if goal is None or reached is None or reached.bound is None:
        return open_claim(title, result.reason or "no bound is proved")
    limit = form_limit(goal, reached.bound)
    high = known(query, *made["bound"]) if "bound" in made else not_beyond(query, limit)
    low = None if result.witness is None else having(query, result.witness)
    if goal.largest and low is not None:
        return each(title, [low, high])  # a largest norm is no row
    return between(title, low, high)


def claim_shapes(_: Asking[ShapeOptions], found: Found[ShapeRecord]) -> Iterator[Iterator[Claim]]:
    """The largest fall and the largest rise of every score in every feature."""
    return map(_of_shape, found.result)


def _of_shape(one: Shaped) -> Iterator[Claim]:
    for word, turned in (("fall", one.fall), ("rise", one.rise)):
        title, query = f"the largest {word} in {one.record.feature}", turned.question.query
        yield between(title, _reversed_pair(query, turned.result), _at_most(query, turned.bound))


def _reversed_pair(query: Query, result: Result | None) -> Part | None:
    return None if result is None or result.witness is None else having(query, result.witness)


def _at_most(query: Query, most: float) -> Part:
    """That an objective is never more than a bound, in exact arithmetic if that is 0."""
    goal = query.objective
    assert goal is not None
    limit = most if most == 0 else form_limit(goal, most)
    return not_beyond(query, limit)


def claim_differences(asked: Asking[DiffOptions], found: Found[DiffRecord]) -> list[Iterator[Claim]]:
    """What is claimed of two models, all of it in one record."""
    return [_differences(asked, found)]


def _differences(asked: Asking[DiffOptions], found: Found[DiffRecord]) -> Iterator[Claim]:
    """That two models are equal, or the largest difference of every score in both directions."""
    difference: Difference = found.result
    if difference.same_trees:
        models = tuple(model.ensemble for model in asked.models)
        yield Claim("the models are equal", "same", say=lambda _: {}, models=models)
    elif difference.verdict == "equal" and not any(one.of_probability for one in difference.largest):
        parts = [_at_most(one.query, 0.0) for one in difference.largest]
        yield Claim("the models are equal", "equal", parts)
    else:
        yield from map(_of_difference, difference.largest)
    for change in difference.outcomes or ():
        yield _of_outcomes(change)
    yield from map(_of_sensitivity, difference.sensitivities or ())


def _of_sensitivity(one: ChangedSensitivity) -> Claim:
    """That a sensitivity appears, goes, stays or is never there: what both audits have found, each with its certificate."""
    title = f"the sensitivity to {', '.join(one.new['varied'])} {_size_of(one.new)}: {one.change}"
    if one.change == "unknown" or one.queries is None:
        return open_claim(title, "one of the answers is open")
    parts = []
    for query, record in zip(one.queries, (one.old, one.new), strict=True):
        made = [c for c in _certified(record.get("certificates") or ()) if c.claim == record["verdict"]]
        if not made:
            return open_claim(title, "an answer without a certificate")
        parts.append(known(query, *made))
    return each(title, parts)


def _of_outcomes(change: ChangedOutcome) -> Claim:
    """That an outcome becomes another one for an input, or for none."""
    title = f"{change.record.old} becomes {change.record.new}"
    if change.result.witness is not None:
        return each(title, [having(change.query, change.result.witness)])
    if change.result.verdict is Verdict.NONE:
        return each(title, [lacking(change.query)])
    return open_claim(title, change.result.reason or "nothing is proved")


def _of_difference(one: Largest) -> Claim:
    return _of_optimum(f"the largest difference {one.way} of {one.score}", one.query, one.result)


def claim_audit(asked: Asking[AuditOptions], found: Found[Any]) -> Iterator[Iterator[Claim]]:
    """Every answer of an audit by itself, with the bound of the largest swing and the shares."""
    query, share = found.result.query, claim_shares_of_audit(asked, found.result.records)

    def of_record(record: dict[str, Any]) -> Iterator[Claim]:
        title = f"{', '.join(record['varied'])} {_size_of(record)}"
        made = _certified(record.get("certificates") or ())
        if not made:
            yield open_claim(title, record["reason"] or "nothing is proved")
        for claim in dict.fromkeys(one.claim for one in made):
            # Cases of one proof hold together only.
            yield each(f"{title}: {claim}", [known(query, *(one for one in made if one.claim == claim))])
        if record.get("max_swing_bound") is not None and all(one.claim != "bound" for one in made):
            yield open_claim(f"the largest swing of {', '.join(record['varied'])}", "its bound has no certificate")
        if record.get("share") is not None:
            yield share(f"{title}: share", record)
        if record.get("typical") is not None:
            yield open_claim(f"{title}: typical", "what an audit says of typical inputs has none")

    return map(of_record, found.result.records)


def _size_of(record: dict[str, Any]) -> str:
    """At which gap a record asks, or between which outcomes."""
    if "outcomes" in record:
        return f"from {' to '.join(record['outcomes'])}"
    return next(f"at {kind} {record[kind]}" for kind in ("gap", "margin") if kind in record)


def _certified(records: Sequence[dict[str, Any]]) -> list[Certified]:
    """Certificates of records."""
    return [
        Certified(one["claim"], one.get("file") or "", one.get("sha256", ""), reason=one.get("reason", ""))
        for one in records
    ]
