"""What the reason of a row claims, in parts that can have certificates.

No input of another class agrees with the row on the features of the reason: a proof for each class. And no feature can be
left out: for each an input of another class that agrees on the others.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence

from treesens.certificates.together import Claim, Part, having, lacking, open_claim
from treesens.compiler.base.arrays import Int32Array
from treesens.compiler.query.explained import pinned
from treesens.compiler.query.query import Query
from treesens.compiler.result import Result


def reason_claim(
    title: str,
    others: Sequence[Query],
    cells: Int32Array,
    features: Collection[int],
    ask: Callable[[Query], Result],
) -> Claim:
    """The claim that `features` are a reason of which none can be left out. `others` ask for an input of each other class,
    `cells` int32[features] are those of the row; `ask` looks for the inputs that show what cannot be left out.
    """
    parts = [lacking(pinned(other, cells, features)) for other in others]
    for left_out in sorted(features):
        shown = _shown(others, cells, [f for f in features if f != left_out], ask)
        if shown is None:
            name = others[0].space.names[left_out]
            return open_claim(title, f"no input was found that shows that {name} cannot be left out")
        parts.append(shown)
    return Claim(title, "reason", parts, lambda numbers: {"features": sorted(features), "parts": numbers})


def _shown(
    others: Sequence[Query], cells: Int32Array, kept: Collection[int], ask: Callable[[Query], Result]
) -> Part | None:
    """An input of another class that agrees with the row on the features that are kept."""
    for other in others:
        asked = pinned(other, cells, kept)
        witness = ask(asked).witness
        if witness is not None:
            return having(asked, witness)
    return None
