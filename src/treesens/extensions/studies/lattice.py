"""What is known of the sets of a lattice on which a property is monotone: a larger set has it wherever a smaller one does.

A set that has it rules on all sets around it, one that has not on all sets inside. The next set to ask about is a large one on
which nothing rules yet (MARCO: Liffiton, Previti, Malik and Marques-Silva, Constraints 21, 2016).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TypeAlias

Set: TypeAlias = frozenset[int]


@dataclass
class Lattice:
    """The subsets of `every`: the least sets known to have the property, the greatest known not to, and those still open."""

    every: Set
    having: list[Set] = field(default_factory=list)
    lacking: list[Set] = field(default_factory=list)
    open_sets: list[Set] = field(default_factory=list)

    def has(self, one: Set) -> None:
        """The set has the property, and so have all around it."""
        if not self.is_having(one):
            self.having = [other for other in self.having if not one <= other] + [one]
            self.open_sets = [other for other in self.open_sets if not one <= other]

    def lacks(self, one: Set) -> None:
        """The set does not have it, nor has any set inside."""
        if not self.is_lacking(one):
            self.lacking = [other for other in self.lacking if not other <= one] + [one]
            self.open_sets = [other for other in self.open_sets if not other <= one]

    def stays_open(self, one: Set) -> None:
        """The question about this set was not answered."""
        if one not in self.open_sets and not (self.is_having(one) or self.is_lacking(one)):
            self.open_sets.append(one)

    def is_having(self, one: Set) -> bool:
        return any(known <= one for known in self.having)

    def is_lacking(self, one: Set) -> bool:
        return any(one <= known for known in self.lacking)

    def is_minimal(self, one: Set) -> bool:
        """True if it is known of a set with the property that no set inside has it."""
        return all(self.is_lacking(one - {x}) for x in one)

    def is_maximal(self, one: Set) -> bool:
        """True if it is known of a set without the property that every larger one has it."""
        return all(self.is_having(one | {x}) for x in self.every - one)

    def unexplored(self, over: Callable[[], bool] = lambda: False) -> Set | None:
        """A set that nothing rules on, as large as single elements make it; None if there is none. Raises TimeoutError where
        `over` says so.
        """
        removed = self._search(frozenset(), frozenset(), over)
        if removed is None:
            return None
        found = self.every - removed
        for x in sorted(removed):
            if not self.is_having(found | {x}) and found | {x} not in self.open_sets:
                found |= {x}
        return found

    def _search(self, removed: Set, kept: Set, over: Callable[[], bool]) -> Set | None:
        """What to remove so that nothing rules on the rest; nothing of `kept`."""
        if over():
            raise TimeoutError
        if any(self.every - known <= removed for known in self.lacking):
            return None
        rest = self.every - removed
        inside = [known for known in self.having if known <= rest]
        if not inside and rest not in self.open_sets:
            return removed
        # One element of each set with the property has to go, and some element of a set that stays open.
        choices = min((known - kept for known in inside), key=len, default=rest - kept)
        for x in sorted(choices):
            found = self._search(removed | {x}, kept, over)
            if found is not None:
                return found
            kept |= {x}
        return None
