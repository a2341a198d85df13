"""Finds contradictions among the conjuncts of a question, independently of the model, and merges bounds."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

from treesens.binder.scope import Scope
from treesens.compiler.base.arrays import BoolArray
from treesens.compiler.base.diagnostics import Span
from treesens.compiler.query import query as q
from treesens.grammar.constructs.decided import Decided, DecidedAlike
from treesens.grammar.tree import ast

Item = TypeVar("Item")


@dataclass(frozen=True, eq=False)
class Conjunct:
    """One constraint of a question: as written, and in typed form."""

    node: ast.Formula
    parts: tuple[q.Constraint, ...]

    @property
    def span(self) -> Span:
        return self.node.span


def parts_of(conjuncts: Iterable[Conjunct]) -> list[q.Constraint]:
    """The constraints of some conjuncts."""
    return [part for conjunct in conjuncts for part in conjunct.parts]


def minimal(items: Sequence[Item], clash: Callable[[Sequence[Item]], bool]) -> list[Item]:
    """A minimal set of clashing items: removal of each is tried in turn, starting with the last."""
    kept = list(items)
    for item in reversed(items):
        without = [other for other in kept if other is not item]
        if clash(without):
            kept = without
    return kept


def check_satisfiable(
    scope: Scope, space: q.Space, conjuncts: Sequence[Conjunct], background: Sequence[q.Constraint], whole: Span
) -> None:
    """Raises an error for a contradiction that does not depend on the model: a feature of a point without a legal cell, or
    relations between two values that exclude each other. `whole` is the location of the declarations' constraints.

    If no input of the domain has the wanted outcome of a declared decision, the answer is `none`; this is not an error.
    """
    written = [conjunct for conjunct in conjuncts if not _asks_a_policy(conjunct.node)]
    placed = [(part, conjunct.span) for conjunct in written for part in conjunct.parts]
    placed += [(part, whole) for part in background]
    _check_cells(scope, space, placed)
    _check_relations(scope, placed)


def _asks_a_policy(node: ast.Formula) -> bool:
    while isinstance(node, ast.Not):
        node = node.operand
    return isinstance(node, Decided | DecidedAlike)


def _check_cells(scope: Scope, space: q.Space, placed: Sequence[tuple[q.Constraint, Span]]) -> None:
    seen: dict[tuple[int, int], list[tuple[q.CellSet, Span]]] = {}
    for constraint, span in placed:
        if not isinstance(constraint, q.CellSet):
            continue
        key = constraint.point, constraint.feature
        legal = space.legal[constraint.feature]
        name = f"{scope.points[key[0]]}.{scope.inputs.names[key[1]]}"
        if not (constraint.mask & legal).any():
            remedy = f"the domain of `{scope.inputs.names[key[1]]}`: {scope.spec(key[1]).words}"
            raise scope.fail("E306", f"no value in its domain lets `{name}` satisfy this", span, remedy)
        mine = [*seen.get(key, []), (constraint, span)]

        def clash(items: Sequence[tuple[q.CellSet, Span]], legal: BoolArray = legal) -> bool:
            left = legal.copy()
            for item, _ in items:
                left &= item.mask
            return not left.any()

        if clash(mine):
            raise _contradiction(scope, f"no value of `{name}` satisfies", [s for _, s in minimal(mine, clash)])
        seen[key] = mine


def _check_relations(scope: Scope, placed: Sequence[tuple[q.Constraint, Span]]) -> None:
    seen: dict[tuple[object, ...], list[tuple[q.Difference, Span]]] = {}
    for constraint, span in placed:
        if not isinstance(constraint, q.Difference):
            continue
        normal = _ordered(constraint)
        mine = [*seen.get(_key(normal), []), (normal, span)]

        def clash(items: Sequence[tuple[q.Difference, Span]]) -> bool:
            return any(_empty(joined) for joined in merge_conjuncts([item for item, _ in items]))

        if clash(mine):
            left = f"{scope.points[normal.left]}.{scope.inputs.names[normal.feature]}"
            right = f"{scope.points[normal.right]}.{scope.inputs.names[normal.other]}"
            message = f"no values of `{left}` and `{right}` satisfy"
            raise _contradiction(scope, message, [s for _, s in minimal(mine, clash)])
        seen[_key(normal)] = mine


def _contradiction(scope: Scope, message: str, spans: Sequence[Span]) -> Exception:
    *others, last = dict.fromkeys(spans)
    if not others:
        return scope.fail("E309", f"{message} this", last, "correct it")
    listed = " and ".join(f"`{span.text}`" for span in others)
    return scope.fail("E309", f"{message} both {listed} and this", last, "remove one of them", tuple(others))


def _ordered(d: q.Difference) -> q.Difference:
    """The same relation with its two sides in a fixed order, since value(right, left) = -value(left, right)."""
    if (d.left, d.feature) <= (d.right, d.other):
        return d
    return q.Difference(
        d.right,
        d.other,
        d.left,
        d.feature,
        None if d.high is None else -d.high,
        None if d.low is None else -d.low,
        d.high_strict,
        d.low_strict,
        d.right_factor,
        d.left_factor,
    )


def _key(d: q.Difference) -> tuple[object, ...]:
    return (d.left, d.feature, d.right, d.other, d.left_factor, d.right_factor)


def _empty(constraint: q.Constraint) -> bool:
    assert isinstance(constraint, q.Difference)
    low, high = constraint.low, constraint.high
    if low is None or high is None:
        return False
    return low > high or (low == high and (constraint.low_strict or constraint.high_strict))


def merge_conjuncts(constraints: Sequence[q.Constraint]) -> tuple[q.Constraint, ...]:
    """Merges bounds on the same difference into one bound, which is stronger over cells than each bound alone."""
    result: list[q.Constraint] = []
    at: dict[tuple[object, ...], int] = {}
    for constraint in constraints:
        if not isinstance(constraint, q.Difference):
            result.append(constraint)
            continue
        key = _key(constraint)
        if key not in at:
            at[key] = len(result)
            result.append(constraint)
            continue
        known = result[at[key]]
        assert isinstance(known, q.Difference)
        result[at[key]] = _both(known, constraint)
    return tuple(result)


def _both(one: q.Difference, other: q.Difference) -> q.Difference:
    """The tighter bound on each side; of two equal bounds, the strict one."""
    lows = [(d.low, d.low_strict) for d in (one, other) if d.low is not None]
    highs = [(-d.high, d.high_strict) for d in (one, other) if d.high is not None]
    low, low_strict = max(lows, default=(None, False))
    high, high_strict = max(highs, default=(None, False))
    return replace(one, low=low, high=None if high is None else -high, low_strict=low_strict, high_strict=high_strict)
