"""What `reasons` claims of denials, as parts that can have certificates."""

from __future__ import annotations

from collections.abc import Iterator

from treesens.compiler.query.explained import pinned
from treesens.extensions.certify.claims import Ask, having, lacking, reason_claim, values_of
from treesens.extensions.certify.together import Claim, Part, each, open_claim
from treesens.extensions.studies.claims_of_sets import asking
from treesens.extensions.studies.denials import NOTHING_HELPS, Shown
from treesens.extensions.studies.principal_reasons import DenialRecord, ReasonOptions
from treesens.extensions.studies.study import Asking, Found


def claim_denials(asked: Asking[ReasonOptions], found: Found[DenialRecord]) -> Iterator[list[Claim]]:
    """Of every denial that its reasons suffice, and that none can be left out; or that nothing helps."""
    for record in found.records:
        yield [_of_denial(asked, record, found.result.shown.get(record.row))]


def _of_denial(asked: Asking[ReasonOptions], record: DenialRecord, shown: Shown | None) -> Claim:
    title, ask = f"the reasons of row {record.row}", asking(asked.options)
    if shown is None or record.suffice == "open":
        return open_claim(title, record.reason or "no reasons were found")
    if record.suffice == "yes" and asked.options.way == "values":
        return reason_claim(title, [shown.query], shown.cells, shown.features, ask)
    if record.suffice == "yes":
        return _of_change(title, shown, ask)
    if record.reason == NOTHING_HELPS:
        return each(title, [lacking(pinned(shown.query, shown.cells, _every(shown) - shown.usable))])
    return open_claim(title, f"that {record.reason.removesuffix(' (proved)')} has no certificate")


def _every(shown: Shown) -> frozenset[int]:
    return frozenset(range(len(shown.cells)))


def _of_change(title: str, shown: Shown, ask: Ask) -> Claim:
    """That changes of the features alone are favourable, and of fewer of them none."""
    kept = _every(shown) - shown.features
    asked = pinned(shown.query, shown.cells, kept)
    witness = ask(asked).witness
    if witness is None:
        return open_claim(title, "no input was found that shows that they suffice")
    features, row = sorted(shown.features), values_of(shown.query, shown.cells)
    more = [pinned(shown.query, shown.cells, kept | {f}) for f in features]
    parts: list[Part] = [having(asked, witness), *map(lacking, more)]
    return Claim(
        title,
        "change",
        parts,
        lambda numbers: {"features": features, "row": row, "parts": numbers},
        kept=[kept, *(kept | {f} for f in features)],
    )
