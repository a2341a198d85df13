"""Applies `--require-certificate`: removes all results that do not follow from accepted certificates.

Fields that no claim covers declare their replacement (`columns.uncertified`).
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import fields, is_dataclass, replace
from typing import Any

from treesens.compiler.result import Verdict
from treesens.extensions.studies.diff import DiffRecord
from treesens.extensions.studies.groups import GroupRecord
from treesens.extensions.studies.report.audit_facts import Audit
from treesens.extensions.studies.robust_search import Robustness
from treesens.extensions.studies.study import Found
from treesens.records.plain import ABSENT


def with_nothing_else(found: Found[Any], left: Collection[int]) -> Found[Any]:
    """The findings without the records in `left`, which have no certificates, and without fields that no claim covers."""
    kept = [_bare(one) for number, one in enumerate(found.records) if number not in left]
    if left and found.records and isinstance(found.records[0], DiffRecord):
        kept = [_unknown(found.records[0])]
    if left and kept and isinstance(kept[0], GroupRecord):
        # Ratios refer to the best group, which may be among the removed records.
        kept = [replace(one, ratio_lower=None, ratio_upper=None, reaches="open") for one in kept]
    return replace(found, records=kept, result=_result(found.result, left))


def _bare(value: Any) -> Any:
    if isinstance(value, list):
        return [_bare(one) for one in value]
    if not is_dataclass(value) or isinstance(value, type):
        return value
    known = {field.name: _bare(getattr(value, field.name)) for field in fields(value)}
    declared = {one.name: one.metadata["uncertified"] for one in fields(value) if "uncertified" in one.metadata}
    return replace(value, **{**known, **{name: other for name, other in declared.items() if known[name] is not ABSENT}})


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
    """The result that documents and pictures use in addition to the records."""
    if isinstance(result, Robustness):
        # A removed row counts as not robust, because a part of fewer rows would be a different claim.
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
