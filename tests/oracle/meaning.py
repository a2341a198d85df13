"""What a constraint means, from docs/language.md alone, on arrays of pairs of points.

A score of the library and the exact sum of the leaves differ in the last bits. Every constraint therefore has two truth
values per pair: `sure` (it holds whatever the rounding) and `may` (it holds for some rounding within the band). A `none` is
wrong if a pair is sure, a `found` if its pair may not be.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Any

import numpy as np

from tests.oracle import decisions, sums
from tests.oracle.language import Node
from tests.oracle.typical import typical, typicality

Truth = tuple[np.ndarray, np.ndarray]
"""(sure, may): bool[pairs] each."""
TINY = 1e-9


@dataclass
class Points:
    """Some inputs of one model: `user` float64[points, features]; `margins` float64[points, outputs]; `classes` int[points];
    `cells` int[points, features]; `band` is how far a margin may be from the exact sum; `leaves` int[points, trees] or None.
    """

    user: np.ndarray
    margins: np.ndarray
    classes: np.ndarray
    cells: np.ndarray
    band: float
    model: Any
    leaves: np.ndarray | None = None
    exact: np.ndarray | None = None
    """object[points]: the exact sum of the one output in units of 2^-shift, if it is known."""
    shift: int = 0
    reported: tuple[np.ndarray, int] | None = None
    """What the library says of the one output, in the same form, once it is asked for."""


@dataclass
class Rows:
    """A table: `user` float64[rows, features] with NaN for missing; unknown categories have numbers of their own.

    `places` int[rows, features] are places among the values of the domain, -1 if the value lies outside.
    """

    name: str
    user: np.ndarray
    places: np.ndarray
    cells: Mapping[str, np.ndarray]
    """Cells by model: int[rows, features]."""
    inside: np.ndarray
    """bool[rows]."""
    gaps: bool = False
    """Whether a row lies outside the domain; the reference does not say what cavities and likelihoods make of that."""
    stored: Any = None
    """What the model reads, one array per feature."""


@dataclass
class Setting:
    """The pairs under judgement: points by name with the places of each pair's point in them."""

    features: Sequence[Any]
    points: Mapping[str, Points]
    at: Mapping[str, np.ndarray]
    tables: Mapping[str, Rows]
    left_out: frozenset[str] = frozenset()
    """Sensitive features, which distances leave out."""
    exact: bool = False
    """Judge by the library's numbers alone (for a witness)."""
    rational: bool = False
    """Judge by exact sums alone, if they are known (for a proof)."""
    cache: dict[Any, Any] = field(default_factory=dict)

    def column(self, p: str, f: str) -> np.ndarray:
        return self.points[p].user[:, self.index(f)][self.at[p]]

    def index(self, f: str) -> int:
        return next(i for i, feature in enumerate(self.features) if feature.name == f)

    def both(self, truth: np.ndarray) -> Truth:
        return truth, truth

    def joined(self, exact: Truth, library: Truth) -> Truth:
        """An answer needs both arithmetics; a proof is about the exact one, a prediction about the library's."""
        if self.exact or self.rational:
            return library if self.exact else exact
        return exact[0] & library[0], exact[1] | library[1]


def holds(node: Node, s: Setting) -> Truth:
    """The truth of a constraint for every pair."""
    kind, *rest = node
    if kind in ("and", "or"):
        combine = np.logical_and if kind == "and" else np.logical_or
        parts = [holds(n, s) for n in rest[0]]
        return combine.reduce([p[0] for p in parts]), combine.reduce([p[1] for p in parts])
    if kind == "not":
        sure, may = holds(rest[0], s)
        return ~may, ~sure
    if kind == "implies":
        return holds(["or", [["not", rest[0]], rest[1]]], s)
    if kind in ("decided", "alike"):
        left, op, right = rest
        alone = replace(s, left_out=frozenset(), cache={})  # a decision is a function of an input alone
        sure, may = (
            decisions.truth(left, right, lambda n: holds(n, alone))
            if kind == "decided"
            else decisions.alike(left, right, lambda n: holds(n, alone))
        )
        return (sure, may) if op == "=" else (~may, ~sure)
    return _FORMS[kind](s, *rest)


def _equal(s: Setting, p: str, q: str, free: list[str]) -> Truth:
    truth = np.ones(len(s.at[p]), bool)
    for f in s.features:
        if f.name not in free:
            truth &= same(s.column(p, f.name), s.column(q, f.name))
    return s.both(truth)


def same(x: np.ndarray, y: np.ndarray | float) -> np.ndarray:
    """Agreement of values: missing agrees with missing."""
    return (x == y) | (np.isnan(x) & np.isnan(y))


def _pin(s: Setting, p: str, data: str, row: int, free: list[str]) -> Truth:
    truth = np.ones(len(s.at[p]), bool)
    for i, f in enumerate(s.features):
        if f.name not in free:
            truth &= same(s.column(p, f.name), s.tables[data].user[row, i])
    return s.both(truth)


def _compare(s: Setting, left: Node, op: str, right: Node) -> Truth:
    """`E op E`: a sum of differences; no relation holds for a missing value, and `!=` is `not =`."""
    if op == "!=":
        sure, may = _compare(s, left, "=", right)
        return ~may, ~sure
    terms = [*left, *([_negated(c), t] for c, t in right)]
    moving = [(Fraction(c), t) for c, t in terms if t[0] != "one"]
    constant = -sum((Fraction(c) for c, t in terms if t[0] == "one"), Fraction(0))
    if sums.known(s, moving):
        return s.joined(*(s.both(x) for x in sums.compared(s, moving, op, constant)))
    if len(moving) == 1:
        return _one_term(s, moving[0], op, constant)
    value, band = np.zeros(len(next(iter(s.at.values())))), 0.0
    for coefficient, term in moving:
        more, width = quantity(s, term)
        value, band = value + float(coefficient) * more, band + abs(float(coefficient)) * width
    return against(value - float(constant), op, band + TINY if band or _scores(moving) else 0.0, snap=True)


def _negated(c: str) -> str:
    return c[1:] if c.startswith("-") else f"-{c}"


def _scores(terms: Sequence[tuple[Fraction, Node]]) -> bool:
    return any(t[0] in ("prob", "margin", "value") for _, t in terms)


TURNED = {"<": ">", "<=": ">=", ">": "<", ">=": "<=", "=": "=", "!=": "!="}


def _one_term(s: Setting, moving: tuple[Fraction, Node], op: str, constant: Fraction) -> Truth:
    coefficient, term = moving
    if coefficient < 0:
        op = TURNED[op]
    limit = constant / coefficient
    if term[0] == "feature":
        return s.both(exactly(s.column(term[1], term[2]), op, limit))
    if term[0] == "prob" and not s.points[term[1]].model.linear:
        return _probability(s, term, op, limit)
    value, band = quantity(s, term)
    if term[0] == "prob" and s.points[term[1]].model.link == "calibrated":
        if s.points[term[1]].model.sigmoid:
            return against(value - float(limit), op, TINY)
        near = float(limit)
        if near not in s.points[term[1]].model.knots:
            return against(value - near, op, TINY)
        limit = Fraction(near) if Fraction(repr(near)) == limit else limit
    if term[0] in ("margin", "prob", "value") and band == 0:
        return s.both(exactly(value, op, limit))
    if term[0] == "likelihood":
        with np.errstate(divide="ignore"):
            return against(np.log(value) - math.log(max(float(limit), 1e-300)), op, 1e-8)
    return against(value - float(limit), op, band, snap=band == 0)


def _probability(s: Setting, term: Node, op: str, limit: Fraction) -> Truth:
    """Of a logistic output: the margin against the exact inverse of the link; of a softmax the probability itself."""
    if not 0 < limit < 1:
        raise ValueError(f"a probability of {limit}")
    if s.points[term[1]].model.link == "softmax":
        value, band = quantity(s, term)
        return against(value - float(limit), op, band)
    model = s.points[term[1]].model
    if model.link == "logit" and term[2] is not None and model.class_of(term[2]) == 0:
        op, limit, term = TURNED[op], 1 - limit, ["prob", term[1], None]
    score = ["margin", term[1], term[2] if model.link == "ova" else None]
    if s.points[term[1]].exact is not None:
        if limit == Fraction(1, 2):
            return s.joined(*(s.both(x) for x in sums.compared(s, [(Fraction(1), score)], op, Fraction(0))))
        wanted = math.log(limit / (1 - limit))
        parts = [x[s.at[term[1]]] for x in both_margins(s.points[term[1]])]
        return s.joined(*(against(x - wanted, op, 1e-12) for x in parts))
    value, band = quantity(s, score)
    if limit == Fraction(1, 2) and band == 0:
        return s.both(exactly(value, op, Fraction(0)))
    return against(value - math.log(limit / (1 - limit)), op, band + 1e-12)


def exactly(x: np.ndarray, op: str, limit: Fraction) -> np.ndarray:
    """Floats against an exact number; nothing holds for NaN."""
    near = float(limit)
    below, above = Fraction(near) < limit, Fraction(near) > limit
    if op == "=":
        return (x == near) & (not below and not above)
    if op in ("<", "<="):
        return x <= near if below else (x < near if above or op == "<" else x <= near)
    return x >= near if above else (x > near if below or op == ">" else x >= near)


def against(difference: np.ndarray, op: str, band: float, *, snap: bool = False) -> Truth:
    """A difference against 0, known up to `band`; `snap` takes what is within 1e-9 for 0 (values on coarse grids)."""
    d = np.where(np.abs(difference) < TINY, 0.0, difference) if snap and band == 0 else difference
    if op == "=":
        return (d == 0) & (band == 0), np.abs(d) <= band
    sign = -d if op in ("<", "<=") else d
    if band == 0:
        truth = sign > 0 if op in ("<", ">") else sign >= 0
        return truth, truth
    return sign > band, sign >= -band


def quantity(s: Setting, term: Node) -> tuple[np.ndarray, float]:
    """A term per pair, and how far it may be from the exact one."""
    kind, p = term[0], term[1]
    if kind == "feature":
        return s.column(p, term[2]), 0.0
    if kind in ("margin", "value", "prob"):
        points = s.points[p]
        band = 0.0 if s.exact else points.band
        if kind == "prob" and not points.model.linear:
            return probabilities(points, term[2])[s.at[p]], band + 1e-12
        output = 0 if term[2] is None else points.model.output_of(term[2])
        value = points.margins[:, output][s.at[p]]
        if kind == "value" and points.model.link == "exp":
            with np.errstate(over="ignore"):
                value = np.exp(value)
            band = float(np.max(np.abs(value), initial=1.0)) * max(band, 1e-6)
        return value, band
    if kind == "typicality":
        return _typicality(s, p, term[2], term[3])
    if kind == "changes":
        return changed(s, p, term[2]).astype(float), 0.0
    if kind == "distance":
        return distance(s, p, [s.column(term[2], f.name) for f in s.features], term[3]), 0.0
    if kind == "rowdistance":
        row = s.tables[term[2]].user[int(term[3])]
        return distance(s, p, [np.full(1, v) for v in row], term[4]), 0.0
    if kind == "nearest":
        return nearest(s, p, term[2], term[3]), 0.0
    return np.prod([likelihood(s, q, data) for q, data in p], axis=0), 0.0


def probabilities(points: Points, name: str | None) -> np.ndarray:
    """Of a class (of two the second, if none is named): the logistic function of one margin, or the softmax of several.

    No probability moves by more than the margins do.
    """
    margins, place = points.margins, 1 if name is None else points.model.class_of(name)
    scores = np.column_stack([np.zeros(len(margins)), margins]) if margins.shape[1] == 1 else margins
    powers = np.exp(scores - scores.max(axis=1, keepdims=True))
    return powers[:, place] / powers.sum(axis=1)


def changed(s: Setting, p: str, q: str) -> np.ndarray:
    """The number of features whose values differ."""
    return np.sum([~same(s.column(p, f.name), s.column(q, f.name)) for f in s.features], axis=0)


def distance(s: Setting, p: str, other: Sequence[np.ndarray], norm: str) -> np.ndarray:
    """In widths of the domains, sensitive features left out; unequal categories and missing values are one width away."""
    total = np.zeros(len(s.at[p]))
    for f, y in zip(s.features, other, strict=True):
        if f.name in s.left_out:
            continue
        total = _add(total, apart(f, s.column(p, f.name), y), norm)
    return np.sqrt(total) if norm == "l2" else total


def apart(f: Any, x: np.ndarray, y: np.ndarray) -> np.ndarray:
    agree = same(x, y)
    if f.kind == "category":
        return np.where(agree, 0.0, 1.0)
    away = np.abs(x - y) / (f.width or 1.0)
    return np.where(agree, 0.0, np.where(np.isnan(away), 1.0, away))


def _add(total: np.ndarray, away: np.ndarray, norm: str) -> np.ndarray:
    if norm == "l0":
        return total + (away != 0)
    if norm == "linf":
        return np.maximum(total, away)
    return total + (away**2 if norm == "l2" else away)


def nearest(s: Setting, p: str, data: str, norm: str) -> np.ndarray:
    """The distance to the nearest row, once per point."""
    key = ("nearest", p, data, norm)
    if key not in s.cache:
        places = np.unique(s.at[p])
        alone = Setting(s.features, {p: s.points[p]}, {p: places}, s.tables, s.left_out)
        rows = np.unique(s.tables[data].user, axis=0)
        best = np.full(len(s.points[p].user), np.inf)
        for row in rows:
            best[places] = np.minimum(best[places], distance(alone, p, [np.full(1, v) for v in row], norm))
        s.cache[key] = best
    return s.cache[key][s.at[p]]


def likelihood(s: Setting, p: str, data: str) -> np.ndarray:
    """The product of the shares of all rows in the cells of a point; a cell without rows counts as half a row.

    A row whose value is missing where the domain has none is in no cell.
    """
    points, rows = s.points[p], s.tables[data]
    out = np.ones(len(points.user))
    theirs = rows.cells[points.model.name]
    for i in range(len(s.features)):
        last = int(max(points.cells[:, i].max(), theirs[:, i].max()))
        counts = np.array([np.sum(theirs[:, i] == c) for c in range(last + 1)])
        out *= np.where(counts > 0, counts, 0.5)[points.cells[:, i]] / len(theirs)
    return out[s.at[p]]


def _cavities(s: Setting, names: list[str], data: str, width: int, limit: int | str = "all") -> Truth:
    """In no empty box of at most `width` features. With a limit some boxes are left out, and only that is known."""
    from itertools import combinations

    truth = np.ones(len(s.at[names[0]]), bool)
    for p in names:
        points, rows = s.points[p], s.tables[data]
        theirs, ok = rows.cells[points.model.name], np.ones(len(points.user), bool)
        for size in range(1, min(int(width), len(s.features)) + 1):
            for chosen in combinations(range(len(s.features)), size):
                kept = {tuple(row) for row in theirs[:, chosen].tolist()}
                ok &= np.array([tuple(cell) in kept for cell in points.cells[:, chosen].tolist()])
        truth &= ok[s.at[p]]
    return s.both(truth) if limit == "all" else (truth, np.ones_like(truth))


def _typicality(s: Setting, p: str, data: str, way: str | None) -> tuple[np.ndarray, float]:
    """The score per pair; nothing is known of it where the reference leaves it open."""
    points, rows = s.points[p], s.tables[data]
    key = ("typicality", data, way, id(points))
    if key not in s.cache:
        s.cache[key] = typicality(*_cells(points, rows, way), way or "chow-liu")
    found = s.cache[key]
    return (np.zeros(len(s.at[p])), math.inf) if found is None else (found[s.at[p]], 0.0)


def _cells(points: Points, rows: Rows, way: str | None) -> tuple[np.ndarray, np.ndarray]:
    """The cells of the points and of the rows that lie in the domain."""
    theirs, mine = rows.cells[points.model.name][rows.inside], points.cells
    if way == "isolation":
        return mine, theirs
    absent = np.isnan(rows.user[rows.inside])
    return np.where(np.isnan(points.user), -1, mine), np.where(absent, -1, theirs)


def _typical(s: Setting, names: list[str], data: str, level: str | None, way: str | None) -> Truth:
    """In the region that is learnt from the rows that lie in the domain."""
    sure, may = np.ones(len(s.at[names[0]]), bool), np.ones(len(s.at[names[0]]), bool)
    share = Fraction(level or "95") / 100
    for p in names:
        points, rows = s.points[p], s.tables[data]
        key = ("typical", data, share, way, id(points))
        if key not in s.cache:
            s.cache[key] = typical(*_cells(points, rows, way), share, way or "chow-liu")
        sure, may = sure & s.cache[key][0][s.at[p]], may & s.cache[key][1][s.at[p]]
    return sure, may


def _category(s: Setting, p: str, f: str, op: str, label: str) -> Truth:
    feature = s.features[s.index(f)]
    place = next(k for k, v in enumerate(feature.typed) if v is not None and feature.text_of(v) == label)
    is_it = s.column(p, f) == feature.user[place]
    return s.both(is_it if op == "=" else ~is_it)


def _within(s: Setting, p: str, f: str, low: str, high: str, ends: str, negated: bool) -> Truth:
    x = s.column(p, f)
    truth = exactly(x, ">=" if ends[0] == "[" else ">", Fraction(low)) & exactly(
        x, "<=" if ends[1] == "]" else "<", Fraction(high)
    )
    return s.both(truth != negated)


def _among(s: Setting, p: str, f: str, members: list[str], negated: bool) -> Truth:
    feature = s.features[s.index(f)]
    if feature.kind == "category":
        parts = [_category(s, p, f, "=", m)[0] for m in members]
    else:
        parts = [exactly(s.column(p, f), "=", Fraction(m)) for m in members]
    return s.both(np.logical_or.reduce(parts) != negated)


def _abs(s: Setting, p: str, f: str, q: str, op: str, c: str) -> Truth:
    if op == "!=":
        sure, may = _abs(s, p, f, q, "=", c)
        return ~may, ~sure
    return against(np.abs(s.column(p, f) - s.column(q, f)) - float(Fraction(c)), op, 0.0, snap=True)


def _class(s: Setting, p: str, op: str, c: str, by: str, size: str) -> Truth:
    if op == "!=":
        sure, may = _class(s, p, "=", c, by, size)
        return ~may, ~sure
    points = s.points[p]
    wanted = points.model.class_of(c)
    if not by or Fraction(size) == (1 if by == "factor" else 0):
        sure, may = predicted(s, points, wanted)
        return sure[s.at[p]], may[s.at[p]]
    if points.exact is not None and not points.model.linear:
        return _leads(s, p, wanted, by, Fraction(size))
    sure, may = wins(points, wanted, by, float(Fraction(size)), 0.0 if s.exact else points.band)
    return sure[s.at[p]], may[s.at[p]]


def predicted(s: Setting, points: Points, wanted: int) -> Truth:
    """The class that the library predicts; close calls within the band may go either way."""
    is_it = points.classes == wanted
    if points.exact is not None:
        return s.joined(s.both(np.asarray((points.exact > 0) == (wanted == 1), bool)), s.both(is_it))
    if points.model.link == "ova":
        # The library cannot tell classes apart whose probabilities it rounds to one number, exact sums can.
        with np.errstate(over="ignore"):
            told = 1 / (1 + np.exp(-points.margins))
        tied = (told == told.max(axis=1, keepdims=True)).sum(axis=1) > 1
        if tied.any():
            leads = points.margins.argmax(axis=1) == wanted
            return is_it & (leads | ~tied), is_it | (leads & tied)
    if s.exact or points.band == 0:
        return is_it, is_it
    lead = points.model.lead(points.margins, wanted)
    close = np.abs(lead) <= 2 * points.band
    return is_it & ~close, is_it | close


def both_margins(points: Points) -> tuple[np.ndarray, np.ndarray]:
    """(exact, as the library says) margins as float64[points], the exact ones rounded once."""
    unit = 2**points.shift
    return np.array([float(Fraction(x, unit)) for x in points.exact]), points.margins[:, 0]


def _leads(s: Setting, p: str, wanted: int, by: str, size: Fraction) -> Truth:
    """`class(P) = C by ..` of two classes whose exact margins are known."""
    sign = Fraction(1 if wanted == 1 else -1)
    if by == "margin":
        return s.joined(*(s.both(x) for x in sums.compared(s, [(sign, ["margin", p, None])], ">=", size)))
    needed = math.log(size)
    return s.joined(*(against(float(sign) * x[s.at[p]] - needed, ">=", 1e-12) for x in both_margins(s.points[p])))


def wins(points: Points, wanted: int, by: str, size: float, band: float) -> Truth:
    """By a margin, or a ratio of probabilities, against every other class."""
    model = points.model
    if by == "factor" and model.linear:
        others = np.delete(points.margins, wanted, axis=1)
        lead = points.margins[:, wanted] - size * others.max(axis=1)
        return against(lead, ">=", (1 + size) * (band + 1e-12))
    needed = size if by == "margin" else math.log(size)
    lead = model.lead(points.margins, wanted)
    return against(lead - needed, ">=", 2 * band + (0.0 if by == "margin" and model.dyadic else 1e-12))


def _classes(s: Setting, p: str, op: str, q: str) -> Truth:
    pairs = [
        (predicted(s, s.points[p], c), predicted(s, s.points[q], c)) for c in range(len(s.points[p].model.classes))
    ]
    sure = np.logical_or.reduce([x[0][s.at[p]] & y[0][s.at[q]] for x, y in pairs])
    may = np.logical_or.reduce([x[1][s.at[p]] & y[1][s.at[q]] for x, y in pairs])
    # Equal for certain means that no other pair of classes may be; different for certain, that no equal one may be.
    apart_may = np.logical_or.reduce(
        [x[1][s.at[p]] & z[1][s.at[q]] for i, (x, _) in enumerate(pairs) for j, (_, z) in enumerate(pairs) if i != j]
    )
    return (sure & ~apart_may, may) if op == "=" else (~may, apart_may)


def _changes(s: Setting, p: str, q: str, op: str, c: str) -> Truth:
    n = changed(s, p, q).astype(float)
    return s.both(~exactly(n, "=", Fraction(c)) if op == "!=" else exactly(n, op, Fraction(c)))


def _missing(s: Setting, p: str, f: str) -> Truth:
    return s.both(np.isnan(s.column(p, f)))


_FORMS: dict[str, Any] = {
    "equal": _equal,
    "pin": _pin,
    "compare": _compare,
    "category": _category,
    "within": _within,
    "among": _among,
    "missing": _missing,
    "abs": _abs,
    "class": _class,
    "classes": _classes,
    "changes": _changes,
    "cavities": _cavities,
    "typical": _typical,
}
