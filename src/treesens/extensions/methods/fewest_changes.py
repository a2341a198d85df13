"""Minimises the number of features in which two inputs differ, or decides a limit on this number, by implicit hitting sets.

The claim "no answer changes only this set" is a question like `sensitive m to {..}`. It is proved quickly, while a search that
minimises a count makes little progress. A proof shows that every answer differs in a feature outside the set; the next sets to
try are the smallest sets that hit the complements of all proved sets (Moreno-Centeno and Karp, "The implicit hitting set
approach to solve combinatorial optimization problems", Operations Research 61, 2013). The size of these sets is a lower bound.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from treesens.compiler.base.budget import LEAST, Budget
from treesens.compiler.query.evaluate import inputs_of, objective_form_value
from treesens.compiler.query.query import Query, SameExcept
from treesens.compiler.result import Attempt, Proof, Result, Verdict
from treesens.solve.bounds import consistent, within_range
from treesens.solve.combine import check_agreement, proof_of_parts
from treesens.solve.conclude import conclude_none, leave_open, shown_objective
from treesens.solve.method import OpenQuestion
from treesens.solve.options import Options
from treesens.values.stated_changes import changes_wanted, implied_changes
from treesens.values.verify import Witness, verify_values

_PART = 1 / 8
"""Share of the remaining time that one set may use."""
_SINGLES = 1 / 2
"""Share of the time for sets of one feature, because one feature suffices for most questions."""

Features = frozenset[int]


class TimeUp(Exception):
    """Raised if a decision fails within the remaining time or the available arithmetic."""


Ask = Callable[[Query, Budget], Result]
"""Solves one question within a budget."""


class FewestChanges:
    """One search. `best` is the answer with the fewest changes; `value` is their number, and `low` is a proved bound on it.

    If there is a limit `most` instead of an objective, the search ends as soon as the limit is decided.
    """

    def __init__(self, query: Query, options: Options, ask: Ask, budget: Budget) -> None:
        self.query, self.options, self.ask, self.budget = query, options, ask, budget
        wanted = changes_wanted(query)
        assert wanted is not None
        self.most, self.constraints = wanted.most, wanted.others
        same = [c.varied for c in self.constraints if isinstance(c, SameExcept) and {c.left, c.right} == {0, 1}]
        self.free: Features = wanted.features.intersection(*same)
        self.uncounted = frozenset(range(len(query.space.names))) - wanted.features
        self.best: Result | None = None
        self.seen: Witness | None = None
        """The answer that differs only in features of the set that was tried last, if any."""
        self.value = len(self.free) + 1
        counted = [one for one, least in implied_changes(self.constraints) if least == 1 and one <= wanted.features]
        self.to_hit = [one & self.free for one in counted]
        self.low = min(1, len(self.to_hit))
        self.stated = int(within_range(query, 0.0) or 0)
        """The bound that the question's constraints imply."""
        self.attempts: list[Attempt] = []
        self.premises: list[str] = []
        self.proofs: list[Proof | None] = []
        self.seconds = Counter[str]()

    def run(self) -> Result:
        """The answer with value and bound; `none` or `unknown` if that is the result without the objective or limit."""
        first = self._ask(self.free, self.budget.share(1 / 2))
        if self.best is None or first.witness is None:
            return first
        try:
            if self._is_open() and self._ask_singles():
                self._raise_bound(self._changed(first.witness))
        except TimeUp:
            pass
        known = {"attempts": tuple(self.attempts), "seconds": dict(self.seconds)}
        premises = tuple(dict.fromkeys(self.premises))
        return self._decided(known, premises) if self.most is not None else self._optimum(known, premises)

    def _is_open(self) -> bool:
        """True if the question is still undecided."""
        return self.value > self._bound() and (self.most is None or self.value > self.most >= self._bound())

    def _ask_singles(self) -> bool:
        """Tries the empty set and each single feature; returns True if larger sets must still be tried."""
        if not self.to_hit and not self._is_none(frozenset(), self._part()):
            return False
        best = self._changed_by_best()
        until = self.budget.share(_SINGLES)
        for feature in sorted(self.free, key=lambda feature: (feature not in best, feature)):
            if until.over or not self._is_open():
                break
            self._is_none(frozenset({feature}), until.share(_PART).at_least(LEAST))
        return self._is_open()

    def _raise_bound(self, differing: Features) -> None:
        """Tries hitting sets of the known complements, the smallest first, until one set has an answer or cannot be proved."""
        while self._is_open() and not self.budget.over:
            chosen = hitting_set(self.to_hit, lambda: self.budget.over)
            assert chosen is not None
            self.low = len(chosen)
            if not self._is_open():
                break
            chosen = self._filled(chosen)
            if self._is_none(chosen, self._part()):
                self._grow(chosen, differing)
            elif self._is_open():
                self._leave_out()
                if self._is_open() and not self._is_none(chosen, self.budget.share(1 / 2)):
                    break

    def _filled(self, chosen: Features) -> Features:
        """The set `chosen`, extended up to the limit; features of the best answer are added first."""
        if self.most is None:
            return chosen
        best = self._changed_by_best()
        more = sorted(self.free - chosen, key=lambda feature: (feature not in best, feature))
        return chosen | frozenset(more[: max(0, self.most - len(chosen))])

    def _leave_out(self) -> None:
        """Drops features from those in which the best answer differs, until no more features can be dropped."""
        tried = set[Features]()
        while self._is_open():
            changed = self._changed_by_best()
            smaller = next((one for f in changed if (one := changed - {f}) not in tried), None)
            if smaller is None or self.budget.over:
                break
            tried.add(smaller)
            self._is_none(smaller, self._part())

    def _bound(self) -> int:
        """The greater of the proved bound and the stated bound."""
        return max(self.low, self.stated)

    def _grow(self, inside: Features, differing: Features) -> None:
        """Searches for a larger set such that every answer differs outside the set; some answer differs in `differing`.

        All remaining features are tried at once, as an answer is found sooner than a proof, and shows a feature to leave out.
        """
        left = self.free - inside
        while self._is_open() and not self.budget.over:
            # A set with all of them has an answer. The feature that the fewest other complements contain is left out.
            left -= {min(sorted(differing & left), key=lambda feature: sum(feature in one for one in self.to_hit))}
            if not left or self._is_none(inside | left, self._part()):
                break
            differing = left if self.seen is None else self._changed(self.seen)

    def _is_none(self, inside: Features, budget: Budget) -> bool:
        """True if it is proved that no answer differs only in these features; every answer then differs in another feature."""
        if any(inside.isdisjoint(one) for one in self.to_hit):
            self.seen = None
            return True
        result = self._ask(inside, budget)
        # Exclusions that depend on the library's rounding give no bound, because other sets are decided in exact arithmetic.
        if result.verdict is not Verdict.NONE or result.proof is Proof.LIBRARY:
            return False
        if self.best is not None and self._changed_by_best() <= inside:
            check_agreement(self.best, result)
        self.proofs.append(result.proof)
        self.premises += result.proof_dependencies
        if result.proof is not Proof.EXACT:
            self.premises.append(f"infeasible by {result.backend} ({result.proof})")
        outside = self.free - inside
        self.to_hit = [one for one in self.to_hit if not outside <= one] + [outside]
        self.low = max(self.low, 1)
        return True

    def _part(self) -> Budget:
        return self.budget.share(_PART).at_least(LEAST)

    def _ask(self, free: Features, budget: Budget) -> Result:
        """The answer if inputs may differ only in the features `free` and in uncounted features."""
        same = () if free == self.free else (SameExcept(0, 1, free | self.uncounted),)
        part = replace(self.query, objective=None, constraints=(*self.constraints, *same))
        self.seen = None
        result = self.ask(part, budget)
        self.attempts += result.attempts
        self.seconds.update(result.seconds)
        if result.verdict is not Verdict.FOUND or result.witness is None:
            return result
        witness = verify_values(
            replace(part, constraints=self.constraints),
            result.witness.values,
            library_predict=self.options.library_predict,
        )
        if not isinstance(witness, Witness):
            reason = "an answer that differs in few features is not an answer to the question"
            return leave_open(self.query.name, reason, backend=result.backend, attempts=result.attempts)
        result = replace(result, witness=witness)
        self.seen = witness
        value = len(self._changed(witness))
        if value < self.value:
            self.best, self.value = result, value
        return result

    def _changed(self, witness: Witness) -> Features:
        """The counted features in which the inputs differ; two missing values are equal."""
        one, other = witness.values[0], witness.values[1]
        return frozenset(f for f in self.free if one[f] != other[f] and not (one[f] != one[f] and other[f] != other[f]))

    def _changed_by_best(self) -> Features:
        assert self.best is not None
        assert self.best.witness is not None
        return self._changed(self.best.witness)

    def _optimum(self, known: dict[str, Any], premises: tuple[str, ...]) -> Result:
        goal, best = self.query.objective, self.best
        assert goal is not None
        assert best is not None
        assert best.witness is not None
        value = objective_form_value(goal, inputs_of(self.query, best.witness.values))
        bound = consistent(self._bound(), self.value, maximize=False, exact=True, who="native")
        return replace(best, objective=shown_objective(goal, value, bound), proof_dependencies=premises, **known)

    def _decided(self, known: dict[str, Any], premises: tuple[str, ...]) -> Result:
        assert self.most is not None
        assert self.best is not None
        assert self.best.witness is not None
        if self.value <= self.most:
            values = self.best.witness.values
            witness = verify_values(self.query, values, library_predict=self.options.library_predict)
            if isinstance(witness, Witness):
                return replace(self.best, witness=witness, **known)
            return leave_open(self.query.name, witness.reason, backend=self.best.backend, **known)
        bare = leave_open(
            self.query.name, self.budget.reason, backend="native", pipeline=self.options.pipeline, **known
        )
        if self.low <= self.most:
            return bare
        # Constraints on changes alone are exact.
        proof = proof_of_parts([Proof.EXACT, *self.proofs])
        assert proof is not None
        words = f"native: every answer differs in {self.low} features or more"
        return conclude_none(replace(bare, proof_dependencies=premises), words, proof)


def search_fewest_changes(question: OpenQuestion, budget: Budget) -> Result:
    """The method named in `solve/methods/registry.py`."""

    def ask(query: Query, part: Budget) -> Result:
        return question.ask(query, question.options, part)

    result = FewestChanges(question.query, question.options, ask, budget).run()
    question.show(result)
    return result


def hitting_set(sets: Sequence[Features], over: Callable[[], bool], barred: Sequence[Features] = ()) -> Features | None:
    """A smallest set that hits all (nonempty) `sets` and contains none of `barred`, or None. Raises TimeUp at the limit."""
    for size in range(len(frozenset[int]().union(*sets)) + 1):
        found = _hit(list(sets), size, over, frozenset(), barred)
        if found is not None:
            return found
    return None


def _hit(
    sets: list[Features], size: int, over: Callable[[], bool], chosen: Features, barred: Sequence[Features]
) -> Features | None:
    """`chosen` with at most `size` more elements, such that it hits all sets, or None."""
    if any(one <= chosen for one in barred):
        return None
    if not sets:
        return chosen
    if over():
        raise TimeUp
    # Each of several disjoint sets needs its own element.
    ordered: list[Features] = sorted(sets, key=len)
    apart: set[int] = set()
    needed = 0
    for one in ordered:
        if apart.isdisjoint(one):
            apart |= one
            needed += 1
    if needed > size:
        return None
    for f in sorted(ordered[0], key=lambda f: -sum(f in one for one in sets)):
        found = _hit([one for one in sets if f not in one], size - 1, over, chosen | {f}, barred)
        if found is not None:
            return found
    return None
