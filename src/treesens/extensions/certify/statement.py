"""Writes the statement of a certificate: the question in terms of the model file alone, for an independent checker.

Constraints that the format cannot express are omitted. A statement with fewer constraints is a stronger claim, so any proof of
the statement also proves the question.

A checker has one unit for the scores of all points. With costs, learnt trees or a second model, this unit is finer than the
sums of a row need, and a strict bound in this unit is weaker than a strict bound on the row's own grid.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from math import lcm
from pathlib import Path
from typing import Any

import numpy as np

from treesens.compiler.base.arrays import BoolArray, runs_of
from treesens.compiler.base.dyadic import Unit
from treesens.compiler.model.ensemble import Ensemble
from treesens.compiler.model.grid import FeatureGrid
from treesens.compiler.query import query as q
from treesens.compiler.query.bounds import LogRational
from treesens.compiler.query.domain import RealDomain
from treesens.compiler.query.forest import Forest, ForestTerm
from treesens.compiler.query.known_cavities import all_cavities_in, with_known
from treesens.compiler.query.query import AtLeast, LinearForm, Query
from treesens.compiler.query.values import LinearTerm, ValueSum
from treesens.errors import ModelError
from treesens.extensions.certify.trees import trees_file
from treesens.runtime.kept import Kept

FORMATS = ("xgboost-json", "xgboost-ubj")
"""Model formats that the checker can read; for other models, the checker reads the output of `trees_file`."""

_sent: dict[str, bytes] = {}
_MOST_SENT = 4


class NoCertificate(Exception):
    """Raised if an answer has no certificate; the message is the reason."""


def forests_of(rows: Iterable[q.AtLeast]) -> list[Forest]:
    """The learnt trees named in rows, each once, in compilation order."""
    return list(dict.fromkeys(term.forest for row in rows for term in row.form.forests))


def learnt_of(query: q.Query, extra: Iterable[q.AtLeast] = ()) -> list[Forest]:
    """The learnt trees named in a question's constraints (also in disjunctions) and in the `extra` rows."""
    return forests_of([*(c for c in q.parts_in(query.constraints) if isinstance(c, q.AtLeast)), *extra])


def ensembles_of(query: q.Query) -> list[Ensemble]:
    """The ensembles of a question: its models' ensembles, and its learnt trees."""
    goal = [] if query.objective is None else [q.AtLeast(query.objective.form, LogRational(Fraction(0)))]
    return [*(m.ensemble for m in query.models), *(forest.ensemble for forest in learnt_of(query, goal))]


@dataclass
class Statement:
    """`text` is the JSON object, `query` the question without omitted constraints, `rows` its score constraints in order.

    `files` holds the model files named in `text`.
    """

    text: dict[str, Any]
    files: tuple[bytes, ...]
    query: q.Query
    rows: list[q.AtLeast]
    left_out: list[str] = field(default_factory=list)


def statement_of(
    query: q.Query,
    extra: tuple[q.AtLeast, ...] = (),
    learnt: Sequence[Forest] | None = None,
    *,
    own_grids: bool = False,
) -> Statement:
    """The statement of a question with `extra` rows. Raises NoCertificate for models that the checker cannot read.

    The statement lists the learnt trees of its rows, or the trees in `learnt`. If the question names learnt trees, each bound
    is on the grid of its own sum. A case may lack learnt trees; with `own_grids`, its bounds are stated as in the question.
    """
    rows = [c for c in (*_flat(query.constraints), *extra) if isinstance(c, q.AtLeast)]
    forests = forests_of(rows) if learnt is None else list(learnt)
    models = [model_file(e) for e in (*(m.ensemble for m in query.models), *(f.ensemble for f in forests))]
    parts = _Parts(query, forests, own_grids or bool(forests or learnt_of(query, extra)))
    kept = [_as_stated(c) for c in _named_apart(_flat(with_known(query).constraints)) if parts.add(c)]
    if next(all_cavities_in(query.constraints), None) is not None:
        parts.left_out.append("unlisted cavities")
    for row in extra:
        if not parts.add(row):
            raise NoCertificate(f"objectives of the kind `{row.name}`")
        kept.append(row)
    text = {
        "models": [text for text, _ in models],
        "points": [{"name": name, "model": p.model} for name, p in zip(_names(query), query.points, strict=True)],
        "same_except": parts.same_except,
        "domain": [*domains_of(query), *parts.domain],
        "rows": parts.rows,
        "clauses": parts.clauses,
        "orders": parts.orders,
    }
    if forests:
        text["learnt"] = list(range(len(query.models), len(models)))
    reduced = replace(query, constraints=tuple(kept), objective=None, top=1, diverse=False)
    if reduced.constraints == query.constraints and query.objective is None and query.top == 1 and not query.diverse:
        reduced = query  # the question is compiled already
    return Statement(text, tuple(data for _, data in models), reduced, parts.kept_rows, parts.left_out)


def _names(query: q.Query) -> list[str]:
    """The names of the points if all are identifiers, and numbered names otherwise."""
    names = [p.name for p in query.points]
    plain = all(name.isascii() and name.isidentifier() for name in names)
    return names if plain else [f"p{i}" for i in range(len(names))]


_FILES: Kept[tuple[dict[str, Any], bytes]] = Kept(8, lambda made: len(made[1]))


def model_file(ensemble: Ensemble) -> tuple[dict[str, Any], bytes]:
    """The statement's entry for a model, and the content of the named file."""
    return _FILES.of((ensemble,), None, lambda: _model_file(ensemble))


def _model_file(ensemble: Ensemble) -> tuple[dict[str, Any], bytes]:
    name, data = ensemble.source.format, _original(ensemble)
    if data is None:
        name = "treesens-trees"
        try:
            data = trees_file(ensemble)
        except ModelError as error:
            raise NoCertificate(error.message) from None
    base = [str(Fraction(float(b))) for b in ensemble.base]
    sha256 = hashlib.sha256(data).hexdigest()
    return {"sha256": sha256, "format": name, "trees": ensemble.n_trees, "base": base}, data


def remember_file(content: bytes) -> None:
    """Keeps the content of a few model files whose paths do not exist on this machine, as in workers of a cluster."""
    _sent[hashlib.sha256(content).hexdigest()] = content
    while len(_sent) > _MOST_SENT:
        del _sent[next(iter(_sent))]


def _original(ensemble: Ensemble) -> bytes | None:
    """The content of the model's own file, if the checker reads the same model from this file; otherwise None."""
    if ensemble.source.format not in FORMATS or (ensemble.tree_output < 0).any() or ensemble.tables:
        # The file of a linear booster has no trees; they exist only over a domain.
        return None
    if ensemble.source.sha256 in _sent:
        return _sent[ensemble.source.sha256]
    try:
        data = Path(ensemble.source.path).read_bytes()
    except OSError:
        return None
    return data if hashlib.sha256(data).hexdigest() == ensemble.source.sha256 else None


def _flat(constraints: tuple[q.Constraint, ...]) -> list[q.Constraint]:
    result: list[q.Constraint] = []
    for constraint in constraints:
        result += _flat(constraint.parts) if isinstance(constraint, q.AllOf) else [constraint]
    return result


def domains_of(query: q.Query) -> list[list[Any]]:
    result: list[list[Any]] = []
    for feature, domain in enumerate(query.space.domains):
        grid = query.space.grid[feature]
        allowed: dict[str, Any]
        if isinstance(domain, RealDomain):
            allowed = {"runs": [_ends(domain.low, domain.high, grid)]}
            if domain.whole:
                allowed["whole"] = True
        else:
            allowed = {"values": [float(v) for v in domain.values]}
        if domain.missing:
            allowed["missing"] = True
        if allowed != {"runs": [[None, None]]}:
            result += [[p, feature, allowed] for p in range(len(query.points))]
    return result


def _ends(low: float, high: float, grid: FeatureGrid) -> list[float | None]:
    limit = grid.number_type.max
    return [None if low <= -limit else float(low), None if high >= limit else float(high)]


def set_of_cells(grid: FeatureGrid, mask: BoolArray) -> dict[str, Any]:
    """The values of some cells of an ordered feature, as runs with both ends."""
    present = grid.n_cells - (1 if grid.missing else 0)
    low, high = runs_of(np.asarray(mask[:present]))
    result: dict[str, Any] = {
        "runs": [
            _ends(grid.interval(int(a))[0], grid.interval(int(b))[1], grid) for a, b in zip(low, high, strict=True)
        ]
    }
    if grid.missing and mask[grid.missing_cell]:
        result["missing"] = True
    return result


def _named_apart(constraints: list[q.Constraint]) -> list[q.Constraint]:
    """The constraints; rows with equal names receive numbers, because rows of a compiled question are found by name."""
    seen: Counter[str] = Counter()
    found: list[q.Constraint] = []
    for one in constraints:
        if not isinstance(one, q.AtLeast):
            found.append(one)
            continue
        found.append(replace(one, name=f"{one.name} ({seen[one.name] + 1})") if seen[one.name] else one)
        seen[one.name] += 1
    return found


class _Parts:
    """The constraints of a question as parts of a statement."""

    def __init__(self, query: q.Query, forests: list[Forest], own_grids: bool) -> None:
        self.query = query
        self.forests = forests
        self.own_grids = own_grids
        self.grid = query.space.grid
        self.same_except: list[int] | None = None
        self.domain: list[list[Any]] = []
        self.rows: list[dict[str, Any]] = []
        self.kept_rows: list[q.AtLeast] = []
        self.clauses: list[list[list[Any]]] = []
        self.orders: list[list[int]] = []
        self.left_out: list[str] = []

    def add(self, constraint: q.Constraint) -> bool:
        """Adds a constraint and returns True if the statement can express it; otherwise notes the constraint's kind."""
        match constraint:
            case q.SameExcept() if {constraint.left, constraint.right} == {0, 1}:
                known = constraint.varied if self.same_except is None else set(self.same_except) & constraint.varied
                self.same_except = sorted(known)
            case q.CellSet():
                self.domain.append([constraint.point, constraint.feature, self._set(constraint)])
            case q.AtLeast() if is_plain(constraint.form):
                self.rows.append(self._row(constraint))
                self.kept_rows.append(constraint)
                if constraint.values:
                    self.left_out.append(f"the values of `{constraint.name}` inside cells")
            case q.AvoidBoxes():
                self._avoid(constraint)
            case q.OneHot():
                self._one_hot(constraint)
            case q.AnyOf() if all(isinstance(part, q.CellSet) for part in constraint.parts):
                self.clauses.append([self._literal(part) for part in constraint.parts if isinstance(part, q.CellSet)])
            case q.Difference() | ValueSum() if orders := _orders_of(constraint):
                self.orders += orders
                if not is_order(constraint):
                    self.left_out.append("the part of a relation between values that is more than an order")
            case _:
                self.left_out.append(_name_of(constraint))
                return False
        return True

    def _set(self, constraint: q.CellSet) -> dict[str, Any]:
        return set_of_cells(self.grid[constraint.feature], constraint.mask)

    def _literal(self, constraint: q.CellSet) -> list[Any]:
        return [constraint.point, constraint.feature, self._set(constraint)]

    def _avoid(self, constraint: q.AvoidBoxes) -> None:
        for row in range(len(constraint.indptr) - 1):
            clause = []
            for i in range(constraint.indptr[row], constraint.indptr[row + 1]):
                feature = int(constraint.feature[i])
                outside = np.ones(self.grid[feature].n_cells, bool)
                outside[constraint.low[i] : constraint.high[i] + 1] = False
                clause.append([constraint.point, feature, set_of_cells(self.grid[feature], outside)])
            self.clauses.append(clause)

    def _one_hot(self, constraint: q.OneHot) -> None:
        self.clauses.append([self._literal(member) for member in constraint.members])
        for i, left in enumerate(constraint.members):
            for right in constraint.members[:i]:
                self.clauses.append([self._literal(replace(m, mask=~m.mask)) for m in (left, right)])

    def _row(self, constraint: q.AtLeast) -> dict[str, Any]:
        if not constraint.form.scores or self.own_grids or self._is_about_some_models(constraint.form):
            constraint = on_own_grid(self.query, constraint)
        form = constraint.form
        terms = scores_of(self.query, form.scores)
        terms += [[str(t.coefficient), t.point, self._output(t)] for t in form.forests]
        return {
            "name": constraint.name,
            "terms": terms,
            "costs": [self._cost(c) for c in form.costs],
            "bound": _bound_text(constraint.bound),
            "strict": constraint.strict,
        }

    def _is_about_some_models(self, form: q.LinearForm) -> bool:
        """True if some point has a model that the row does not use; the leaves of that model may be finer than the row's."""
        points = self.query.points
        return len({points[t.point].model for t in form.scores}) < len({point.model for point in points})

    def _output(self, term: ForestTerm) -> int:
        """The output of learnt trees, numbered after the outputs of the model."""
        model = self.query.models[self.query.points[term.point].model]
        return len(model.ensemble.base) + self.forests.index(term.forest)

    def _cost(self, cost: q.CellCost) -> list[Any]:
        """A cost as steps from the left, each with the value at which it begins, and finally the cost of a missing value."""
        grid = self.grid[cost.feature]
        whole = [int(c) for c in cost.costs]
        written = {c: str(Unit(cost.shift).value(c)) for c in {*whole}}
        numbers = [written[c] for c in whole]
        # A category begins at its number; the other cells begin at their cuts.
        lows = np.arange(float(grid.present_cells)) if grid.categories else grid.intervals()[0]
        steps: list[list[Any]] = []
        for cell in range(grid.present_cells):
            if steps and steps[-1][1] == numbers[cell]:
                continue
            steps.append([None if cell == 0 else float(lows[cell]), numbers[cell]])
        return [cost.point, cost.feature, steps, numbers[grid.missing_cell] if grid.missing else "0"]


def scores_of(query: q.Query, terms: Iterable[q.ScoreTerm]) -> list[list[Any]]:
    """The score terms of a statement. Forms use sums over trees; statements use margins (means for averaging models)."""
    average = [query.models[p.model].ensemble.average for p in query.points]
    return [[str(t.coefficient * average[t.point]), t.point, t.output] for t in terms]


def is_plain(form: q.LinearForm) -> bool:
    """True if the form has only scores and costs of single cells."""
    return not (form.changes or form.pairs or form.levels)


def _bound_text(bound: LogRational) -> dict[str, Any]:
    return {"rational": str(bound.rational), "logs": [[str(c), str(a)] for c, a in bound.logs]}


def _orders_of(constraint: q.Difference | ValueSum) -> list[list[int]]:
    """The orders "feature at one point <= same feature at the other" that a relation implies."""
    if isinstance(constraint, ValueSum):
        terms = constraint.terms
        if len(terms) != 2 or not all(isinstance(t, LinearTerm) for t in terms):
            return []
        one, other = terms
        assert isinstance(one, LinearTerm)
        assert isinstance(other, LinearTerm)
        if one.feature != other.feature or one.factor + other.factor != 0 or constraint.limit > 0:
            return []
        small, large = (one, other) if one.factor > 0 else (other, one)
        return [[small.point, large.point, one.feature]]
    same = constraint.feature == constraint.other and constraint.left_factor == constraint.right_factor > 0
    orders = []
    if same and constraint.high is not None and constraint.high <= 0:
        orders.append([constraint.left, constraint.right, constraint.feature])
    if same and constraint.low is not None and constraint.low >= 0:
        orders.append([constraint.right, constraint.left, constraint.feature])
    return orders


def _as_stated(constraint: q.Constraint) -> q.Constraint:
    """The constraint without the parts that a statement omits; a relation between values keeps only its orders."""
    if isinstance(constraint, q.AtLeast):
        return replace(constraint, values=())
    if isinstance(constraint, ValueSum) and not is_order(constraint):
        return replace(constraint, limit=Fraction(0), strict=False)
    if isinstance(constraint, q.Difference) and not is_order(constraint):
        high = Fraction(0) if constraint.high is not None and constraint.high <= 0 else None
        low = Fraction(0) if constraint.low is not None and constraint.low >= 0 else None
        return replace(constraint, low=low, high=high, low_strict=False, high_strict=False)
    return constraint


def is_order(constraint: q.Difference | ValueSum) -> bool:
    """True if a relation only orders values."""
    if not _orders_of(constraint):
        return False
    if isinstance(constraint, ValueSum):
        return constraint.limit == 0 and not constraint.strict
    strict = constraint.low_strict or constraint.high_strict
    return not strict and {constraint.low, constraint.high} <= {None, Fraction(0)}


def _name_of(constraint: q.Constraint) -> str:
    match constraint:
        case q.AtLeast():
            return f"the constraint `{constraint.name}` on pairs of cells or on changes"
        case q.ProbabilitySum():
            return "a sum of probabilities, or a probability of a softmax"
        case q.Difference() | ValueSum():
            return "a relation between values"
        case q.AnyOf():
            return "a disjunction of constraints other than sets of values"
        case q.SameExcept():
            return "a second pair of points that agree"
        case _:
            return f"a constraint of the kind `{type(constraint).__name__}`"


def on_own_grid(query: Query, row: AtLeast) -> AtLeast:
    """A row with its bound raised to the next attainable sum; the same inputs satisfy both rows."""
    if row.bound.logs and not row.form.scores:
        return row  # the logarithm of a likelihood is not rounded
    factor, unit = _grid_of(query, row.form)
    level = unit.value((row.bound * factor).ceil(unit.shift, strict=row.strict)) / factor
    return replace(row, bound=LogRational(level), strict=False)


def _grid_of(query: Query, form: LinearForm) -> tuple[int, Unit]:
    """A factor and a unit such that every sum of the form, times the factor, is a multiple of the unit."""
    factor = lcm(1, *(_odd(t.coefficient.denominator) for t in form.scores))
    shifts = [*(cost.shift for cost in form.costs), *(term.shift for term in form.forests)]
    for term in form.scores:
        model = query.models[query.points[term.point].model].ensemble
        share = term.coefficient * factor
        base = share * model.average * Fraction(float(model.base[term.output]))
        shifts += [model.scaled_contributions.shift + _twos(share), _twos(base)]
    return factor, Unit(max(shifts, default=0))


def _odd(number: int) -> int:
    return number // (number & -number)


def _twos(value: Fraction) -> int:
    """The exponent of two in the denominator of a dyadic number."""
    return value.denominator.bit_length() - 1
