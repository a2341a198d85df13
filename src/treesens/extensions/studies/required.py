"""What is left of a study with `--require-certificate`: nothing that rests on work without an accepted certificate."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import fields, is_dataclass, replace
from typing import Any

from treesens.compiler.result import Verdict
from treesens.extensions.studies.audit import AuditRecord, SharePart
from treesens.extensions.studies.count import CountRecord
from treesens.extensions.studies.diff import DiffRecord, OneSide, OutcomeChange
from treesens.extensions.studies.groups import GroupRecord
from treesens.extensions.studies.reasons import DenialRecord, PrincipalReason
from treesens.extensions.studies.report.audit_facts import Audit
from treesens.extensions.studies.robust import RobustRecord, TargetRecord
from treesens.extensions.studies.robust_search import Robustness
from treesens.extensions.studies.study import Found
from treesens.extensions.studies.why import WhyRecord
from treesens.records.plain import ABSENT

_ROWS = {"rows_flipped": 0, "rows_complete": False}
"""That no row is known to flip."""
_NO_SWING = {"max_swing": None, "max_swing_status": None}
BESIDE: Mapping[type, Mapping[str, Any]] = {
    AuditRecord: {
        **_ROWS, **_NO_SWING, "flipped_rows": [], "rows_flipped_down": ABSENT, "rows_flipped_up": ABSENT,
        "nearest_row": ABSENT, "region": ABSENT, "near_miss": ABSENT, "shape": ABSENT,
    },
    CountRecord: {
        "estimate": None, "who": [], "boxes": [], "nodes": ABSENT, "open_boxes": ABSENT, "full_boxes": ABSENT,
    },
    DenialRecord: {"shap": ABSENT},
    DiffRecord: {"data": None, "prices": None},
    GroupRecord: {"estimate": None},
    OneSide: {**_ROWS, "max_swing": None, "max_swing_bound": None},
    OutcomeChange: {"rows": None, "rows_changed": None, "changed_rows": None},
    PrincipalReason: {"rise": None},
    RobustRecord: {"distance": None},
    SharePart: {"estimate": None, "who": ABSENT},
    TargetRecord: {"distance": None},
    WhyRecord: {"shap": ABSENT},
}  # fmt: skip
"""What no claim of a study is about, by the class of a record, and what stands there instead."""


def with_nothing_else(found: Found[Any], left: Collection[int]) -> Found[Any]:
    """What was found, without the records that are `left` without a certificate, and without what no claim is about."""
    kept = [_bare(one) for number, one in enumerate(found.records) if number not in left]
    if left and found.records and isinstance(found.records[0], DiffRecord):
        kept = [_unknown(found.records[0])]
    if left and kept and isinstance(kept[0], GroupRecord):
        # Ratios are those to the best group, which may be among what is left.
        kept = [replace(one, ratio_lower=None, ratio_upper=None, reaches="open") for one in kept]
    return replace(found, records=kept, result=_result(found.result, left))


def _bare(value: Any) -> Any:
    if isinstance(value, list):
        return [_bare(one) for one in value]
    if not is_dataclass(value) or isinstance(value, type):
        return value
    known = {field.name: _bare(getattr(value, field.name)) for field in fields(value)}
    gone = {name: other for name, other in BESIDE.get(type(value), {}).items() if known[name] is not ABSENT}
    return replace(value, **{**known, **gone})


def _unknown(record: DiffRecord) -> DiffRecord:
    return DiffRecord(
        verdict="unknown",
        bound=None,
        scores=[],
        data=None,
        prices=None,
        sensitivities=None,
        outcomes=None,
        interrupted=record.interrupted,
    )


def _result(result: Any, left: Collection[int]) -> Any:
    """What documents and pictures take from a study besides its records."""
    if isinstance(result, Robustness):
        # A row that is left counts as one that is not robust: a part of fewer rows would be another claim.
        nothing: dict[str, Any] = {"verdict": Verdict.UNKNOWN, "distance": None, "bound": None, "targets": ()}
        rows = [
            replace(one, **nothing) if number in left and one.verdict is not None else one
            for number, one in enumerate(result.rows)
        ]
        return replace(result, rows=rows)
    if isinstance(result, Audit):
        records: Sequence[dict[str, Any]] = result.records
        swingless = [{**one, "max_swing": None, "max_swing_bound": None} for one in records]
        return replace(result, records=swingless, mending=None)
    return result
