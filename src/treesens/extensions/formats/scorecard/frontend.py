"""Reads scorecards from CSV: each line contains a feature, a bin and its points, as in optbinning's `Scorecard.table()`.

The score is the sum of the points of the bins that contain the input, added in float64 in the order of the features; the cuts
are used as written. optbinning prints its cuts with two decimals, but scores with all digits: if all cuts have the same number
of decimals, a note warns that the cuts may be rounded (Siddiqi, Intelligent Credit Scoring, 2017).
"""

from __future__ import annotations

import csv
import hashlib
import io
import math
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from treesens.compiler.base.floats import NumberType
from treesens.compiler.model import Accumulation, Feature, ModelSource, Task
from treesens.errors import ModelError
from treesens.extensions.formats.additive import Axis, Categories, Numbers, term_tree
from treesens.extensions.formats.of_files import OfFiles
from treesens.extensions.formats.scorecard.bins import Interval, Listed, Word, parse_bin
from treesens.frontends.base import LoadedModel
from treesens.frontends.columns import MAX_CATEGORIES, as_categorical, ensemble_of, feature_tuple, stack_trees
from treesens.links import Identity

_COLUMNS = {
    "feature": ("feature", "variable", "characteristic"),
    "bin": ("bin", "attribute"),
    "points": ("points", "score"),
}
_BASE = ("", "base", "(base)", "intercept")
_MAX_LINES = 1_000_000
_PRINTED = (
    "all cuts have {digits} digits after the point, and look rounded: the library's cuts may have more digits, and "
    "inputs between the two get other points there. If they are rounded, write the exact cuts into the bins "
    "(optbinning: binning_process_.get_binned_variable(NAME).splits)"
)
_REMEDY = "write `feature,bin,points`, with bins like `[20, 30)`, `<= 5`, `['a' 'b']` or `Missing`"


class ScorecardFrontend(OfFiles):
    """Reads tables of points; there are no live objects."""

    name = "scorecard"

    def recognises_bytes(self, head: bytes) -> bool:
        first = head.partition(b"\n")[0].decode("utf-8", "replace")
        return _places([cell.strip().strip('"') for cell in first.split(_delimiter(first))]) is not None

    def load(self, path: Path, data: bytes) -> LoadedModel:
        place = str(path)
        base, terms = _read(data, place)
        features, axes, scores = [], [], []
        plain = feature_tuple([term.name for term in terms], place)
        for column, term in enumerate(terms):
            feature, axis, points = term.axis(column, plain[column])
            features.append(feature)
            axes.append(axis)
            scores.append(points)
        ensemble = ensemble_of(
            stack_trees([term_tree([axis], points) for axis, points in zip(axes, scores, strict=True)]),
            tuple(features),
            place,
            name=path.stem,
            source=ModelSource("scorecard-csv", sha256=hashlib.sha256(data).hexdigest(), path=place),
            number_type=NumberType.FLOAT64,
            comparison="<",
            tree_output=np.zeros(len(terms), np.int32),
            tree_weight=np.ones(len(terms)),
            base=np.array([base]),
            link=Identity(),
            task=Task.REGRESSION,
            accumulation=Accumulation.FLOAT64_BASE_FIRST,
        )
        digits = {d for term in terms for interval, _, _ in term.intervals for d in interval.digits}
        printed = len(digits) == 1 and digits != {0}
        notes = [_PRINTED.format(digits=digits.pop())] if printed else []
        special = [term.name for term in terms if term.special]
        left_out = "the points of special codes are omitted, since the file does not list these codes"
        table = _Table(base, axes, scores)
        notes += [f"{left_out} ({', '.join(special)[:200]})"] if special else []
        return LoadedModel(ensemble, self.name, table.score, notes=tuple(notes), printed=printed)


@dataclass(frozen=True, eq=False)
class _Table:
    """The points of rows, looked up by bin: an evaluation of the file that does not use the trees."""

    base: float
    axes: list[Axis]
    scores: list[NDArray[np.float64]]

    def score(self, rows: NDArray[np.float64]) -> NDArray[np.float64]:
        """The scores of `rows`, float64[rows, 1]."""
        total = np.full(len(rows), self.base)
        for column, (axis, points) in enumerate(zip(self.axes, self.scores, strict=True)):
            x = rows[:, column]
            if isinstance(axis, Numbers):
                bins = np.searchsorted(axis.cuts, x, side="right") + 1
            else:
                known = (x >= 0) & (x < len(axis.bin_of) - 1)
                bins = axis.bin_of[np.where(known, x, len(axis.bin_of) - 1).astype(np.int64)]
            total += points[np.where(np.isnan(x), 0, bins), 0]
        return total[:, None]


@dataclass(eq=False)
class _Term:
    """The bins of a feature that have been read so far."""

    name: str
    place: str
    missing: float | None = None
    other: float | None = None
    special: bool = False
    intervals: list[tuple[Interval, float, str]] = field(default_factory=list)
    categories: dict[str, float] = field(default_factory=dict)

    def axis(self, column: int, feature: Feature) -> tuple[Feature, Axis, NDArray[np.float64]]:
        """The feature, its bins, and the points of the bins, [bins, 1]; the missing value comes first."""
        feature = replace(feature, needs_value=self.missing is None)
        lost = 0.0 if self.missing is None else self.missing
        if self.categories:
            names = list(self.categories)
            bins: Axis = Categories(column, np.arange(1, len(names) + 2))
            points = [lost, *self.categories.values(), 0.0 if self.other is None else self.other]
            labels = [_number(name) for name in names]
            whole = labels if all(label is not None for label in labels) else names
            return as_categorical(feature, len(names), whole), bins, np.array(points)[:, None]
        ordered = sorted(self.intervals, key=lambda item: item[0].low)
        if not ordered:
            raise ModelError(f"`{self.name[:60]}` has no bins", place=self.place, remedy=_REMEDY)
        before = -math.inf
        for interval, _, at in ordered:
            if interval.low != before:
                what = "lie in two bins" if interval.low < before else "are in no bin"
                message = f"values of `{self.name[:60]}` between {interval.low:g} and {before:g} {what}"
                raise ModelError(message, place=at, remedy="let each bin start at the end of the previous bin")
            before = interval.high
        if before != math.inf:
            message = f"values of `{self.name[:60]}` from {before:g} on are in no bin"
            raise ModelError(message, place=ordered[-1][2], remedy="let the last bin end with `inf)`")
        cuts = np.array([interval.low for interval, _, _ in ordered[1:]], dtype=np.float64)
        return feature, Numbers(column, cuts), np.array([lost, *(points for _, points, _ in ordered)])[:, None]


def _number(name: str) -> int | float | None:
    try:
        value = float(name)
    except ValueError:
        return None
    return (int(value) if value.is_integer() else value) if math.isfinite(value) else None


def _delimiter(line: str) -> str:
    return max(",;\t", key=line.count)


def _places(header: list[str]) -> dict[str, int] | None:
    """The positions of the columns feature, bin and points; None if the file is not a scorecard."""
    words = [word.strip().strip("\ufeff").lower() for word in header]
    found = {}
    for wanted, names in _COLUMNS.items():
        places = [place for place, word in enumerate(words) if word in names]
        if len(places) != 1:
            return None
        found[wanted] = places[0]
    return found


def _read(data: bytes, place: str) -> tuple[float, list[_Term]]:
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise ModelError("the file is not UTF-8", place=place, remedy="save it as UTF-8") from None
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=_delimiter(text.partition("\n")[0]))
    base, terms, places = 0.0, dict[str, _Term](), None
    try:
        for row in reader:
            at = f"{place}:{reader.line_num}"
            if reader.line_num > _MAX_LINES:
                raise ModelError(f"a scorecard has at most {_MAX_LINES} lines", place=at)
            if places is None:
                places = _places(row)
                if places is None:
                    raise ModelError("the first line must contain feature, bin and points", place=at, remedy=_REMEDY)
            elif any(cell.strip() for cell in row):
                base += _line(row, places, terms, at)
    except csv.Error as error:
        raise ModelError(f"this is not CSV: {error}", place=f"{place}:{reader.line_num}", remedy=_REMEDY) from None
    if not terms:
        raise ModelError("the scorecard has no bins", place=place, remedy=_REMEDY)
    return base, list(terms.values())


def _line(row: list[str], places: dict[str, int], terms: dict[str, _Term], at: str) -> float:
    """Reads one line, and returns the points that the line adds to every input."""
    if len(row) <= max(places.values()):
        raise ModelError(f"the line has {len(row)} cells", place=at, remedy=_REMEDY)
    name, text, given = (row[places[part]].strip() for part in ("feature", "bin", "points"))
    points = _number(given)
    if points is None:
        raise ModelError(f"`{given[:40]}` is not a number of points", place=at, remedy=_REMEDY)
    if name.lower() in _BASE and not text:
        return float(points)
    if not name:
        raise ModelError("the line names no feature", place=at, remedy=_REMEDY)
    found = parse_bin(text)
    if found is None:
        raise ModelError(f"`{text[:60]}` is not a bin", place=at, remedy=_REMEDY)
    _add(terms.setdefault(name, _Term(name, at)), found, float(points), at)
    return 0.0


def _add(term: _Term, found: Interval | Listed | Word, points: float, at: str) -> None:
    twice = ModelError(f"this bin of `{term.name[:60]}` appears twice", place=at, remedy="remove one of the lines")
    match found:
        case Word("missing"):
            if term.missing is not None:
                raise twice
            term.missing = points
        case Word("special"):
            term.special = True
        case Word():
            if term.other is not None:
                raise twice
            term.other = points
        case Interval(low, high):
            if low >= high:
                raise ModelError("this interval is empty", place=at, remedy=_REMEDY)
            term.intervals.append((found, points, at))
        case Listed(names):
            if not names or any(name in term.categories for name in names) or len(set(names)) < len(names):
                raise twice
            term.categories |= dict.fromkeys(names, points)
            if len(term.categories) > MAX_CATEGORIES:
                raise ModelError(f"more than {MAX_CATEGORIES} categories", place=at)
    if term.intervals and term.categories:
        raise ModelError(
            f"`{term.name[:60]}` has intervals and categories", place=at, remedy="split it into two features"
        )
