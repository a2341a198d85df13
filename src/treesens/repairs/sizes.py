"""What users ask of a repair, checked: sizes in one unit, sets of features, a method."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Any, cast

from treesens.compiler.base.numbers import fraction_of
from treesens.errors import UsageError
from treesens.repairs.proof import PromiseKind
from treesens.repairs.run import METHODS, RepairOptions


def options_of(
    vary: Sequence[Sequence[str]], sizes: Mapping[str, str | None], *, method: str, **others: Any
) -> RepairOptions:
    """Options from texts: `sizes` by their kind (`gap`, `margin`, `swing`), one of which is given. UsageError otherwise."""
    given = {kind: text for kind, text in sizes.items() if text is not None}
    if len(given) != 1:
        raise UsageError("a repair needs one of --gap, --margin and --swing", remedy="write e.g. --gap 0.1")
    if method not in METHODS:
        raise UsageError(f"there is no method `{method}`", remedy=f"methods: {', '.join(METHODS)}")
    if not vary:
        raise UsageError("no feature is named", remedy="name one: vary=['sex']")
    ((kind, text),) = given.items()
    numbers = tuple(dict.fromkeys(_size(kind, part.strip()) for part in text.split(",")))
    groups = tuple(dict.fromkeys(tuple(group) for group in vary))
    return RepairOptions(groups, cast(PromiseKind, kind), numbers, method, **others)


def _size(kind: str, text: str) -> Fraction:
    try:
        size = fraction_of(text)
    except (ValueError, ZeroDivisionError):
        raise UsageError(f"--{kind}: `{text}` is no number", remedy="write e.g. 0.1 or 0.05,0.1") from None
    if size < 0:
        raise UsageError(f"--{kind} {text} is below 0", remedy="write e.g. 0.1; 0 is any change of the decision")
    return size
