"""What a list of implications forbids, so that rules that follow from earlier ones can be left out."""

from __future__ import annotations

from treesens.data.contingency import Contingency

Item = tuple[int, int]
"""A column and one of its values."""


class Known:
    """Pairs of values that no row may hold, and which value leads to which other one without exception."""

    def __init__(self, table: Contingency) -> None:
        self.table = table
        self.forbidden: dict[Item, set[Item]] = {}
        self.steps: dict[Item, set[Item]] = {}

    def add(self, x: int, value: int, y: int, conclusion: list[int]) -> bool:
        """Notes that a value of x leaves some values of y; False if this follows from what is known."""
        premise = (x, value)
        others = {(y, v) for v in range(len(self.table.columns[y].values))} - {(y, v) for v in conclusion}
        ways = [premise, *self.steps.get(premise, ())]
        if any(others <= self.forbidden.get(way, set()) for way in ways):
            return False
        self.forbidden.setdefault(premise, set()).update(others)
        for other in others:
            self.forbidden.setdefault(other, set()).add(premise)
        if len(conclusion) == 1 and self.table.row(x, value, y)[conclusion[0]] == self.table.count(x, value):
            self.steps.setdefault(premise, set()).add((y, conclusion[0]))
            if self._two(x) and self._two(y):
                self.steps.setdefault((y, 1 - conclusion[0]), set()).add((x, 1 - value))
        return True

    def _two(self, x: int) -> bool:
        return len(self.table.columns[x].values) == 2 and not self.table.columns[x].missing
