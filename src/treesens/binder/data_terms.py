"""Constraints that depend on data or on the number of changed features: likelihoods and changes.

Quantities learnt from data are inexact: logarithms are rounded to multiples of 2**-40. In constraints, logarithms are rounded
to weaken the constraint: a `none` remains a proof, and a `found` satisfies the constraint up to 2**-40 per feature.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction

from treesens.binder.inputs import MIRRORED, NEGATED, all_of, any_of
from treesens.binder.scope import Pending, Scope
from treesens.binder.terms import ChangesAtom, LikelihoodAtom
from treesens.compiler.base.arrays import frozen
from treesens.compiler.base.diagnostics import Span
from treesens.compiler.query import query as q
from treesens.compiler.query.bounds import LogRational
from treesens.compiler.query.values import ValueSum, changed_features
from treesens.data.rows import SHIFT, Marginals, Rounding, coarse_cells, marginals
from treesens.grammar.tree import ast

_Side = Callable[[int, bool], Pending]
"""Makes a one-sided row from a direction (1 for at least, -1 for at most) and a flag for strictness."""


# --- likelihood --------------------------------------------------------------------------------------------------------------


def log_costs(
    scope: Scope, space: q.Space, factors: Sequence[tuple[int, str]], sign: int, rounding: Rounding
) -> tuple[q.CellCost, ...]:
    """sign * ln(product of likelihoods), as a cost per cell; `rounding` applies to the signed cost."""
    inner: Rounding = rounding if sign > 0 or rounding == "nearest" else ("up" if rounding == "down" else "down")
    costs = []
    for point, table in factors:
        found = _marginals(scope, table)
        for f, (coarse, fine) in enumerate(zip(scope.inputs.base, space.grid, strict=True)):
            values = found.log_costs(f, inner)[coarse_cells(coarse, fine)] * sign
            costs.append(q.CellCost(point, f, frozen(values), SHIFT))
    return tuple(costs)


def _marginals(scope: Scope, table: str) -> Marginals:
    key = ("marginals", table)
    if key not in scope.inputs.cache:
        cells = scope.inputs.cache[("cells", table)]
        scope.inputs.cache[key] = marginals(cells, scope.inputs.base.n_cells)  # type: ignore[arg-type]
    return scope.inputs.cache[key]  # type: ignore[return-value]


def use_likelihoods(scope: Scope, atoms: Sequence[LikelihoodAtom]) -> None:
    """Reads likelihood tables, and reports errors at the location of the tables' names."""
    for atom in atoms:
        scope.cells(atom.node.data)
        for _, table in atom.factors:
            scope.cells(ast.Name(table, span=atom.node.data.span))


def compare_likelihoods(
    scope: Scope,
    terms: Mapping[LikelihoodAtom, Fraction],
    operator: ast.Operator,
    number: Fraction,
    positive: bool,
    span: Span,
) -> Pending:
    """A product of likelihoods, compared with a number or with another product: a sum of logarithms."""
    use_likelihoods(scope, list(terms))
    atoms = list(terms)
    factor = terms[atoms[0]]
    found = operator if factor > 0 else MIRRORED[operator]
    found = found if positive else NEGATED[found]
    signed = [(factors, 1) for factors in atoms[0].factors]
    if len(atoms) == 2 and number == 0 and factor * terms[atoms[1]] < 0:
        ratio = -terms[atoms[1]] / factor
        signed += [(factors, -1) for factors in atoms[1].factors]
    elif len(atoms) == 1:
        ratio = number / factor
    else:
        raise scope.fail("E215", "likelihoods cannot be added", span, "multiply them, and compare with a number")
    if ratio <= 0:
        raise scope.fail("E211", "a likelihood is always above 0", span, "compare with a positive number")
    bound = LogRational.ln(ratio)

    def side(direction: int, strict: bool) -> Pending:
        def build(space: q.Space) -> q.AtLeast:
            costs = [c for factors, sign in signed for c in log_costs(scope, space, [factors], sign * direction, "up")]
            return q.AtLeast(q.LinearForm(costs=tuple(costs)), bound * direction, strict, "likelihood")

        return build

    return put_on_side(found, side)


def put_on_side(operator: ast.Operator, side: _Side) -> Pending:
    """Converts a comparison to one-sided rows: two rows for `=` and `!=`, otherwise one row."""
    match operator:
        case ">=" | ">":
            return side(1, operator == ">")
        case "<=" | "<":
            return side(-1, operator == "<")
        case "=":
            return all_of((side(1, False), side(-1, False)))
        case "!=":
            return any_of((side(1, True), side(-1, True)))


# --- changes -----------------------------------------------------------------------------------------------------------------


def compare_changes(
    scope: Scope, terms: Mapping[ChangesAtom, Fraction], operator: ast.Operator, number: Fraction, positive: bool
) -> Pending:
    """The number of features whose values differ, compared with a number."""
    every = range(len(scope.inputs.features))

    def side(direction: int, strict: bool) -> Pending:
        counted = [changed_features(a.left, a.right, every, -direction * c) for a, c in terms.items()]
        relation = ValueSum(tuple(t for part in counted for t in part), -direction * number, strict, "changes")
        return lambda _space: relation

    return put_on_side(operator if positive else NEGATED[operator], side)
