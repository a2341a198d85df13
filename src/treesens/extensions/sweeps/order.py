"""The order of questions, and the answers that decide other questions.

Questions with the highest level come first, then single features before sets, and features with many splits before others, so
that important answers come early and decide most other questions. A pair found for a question is tried, and verified again, on
every easier question; the answer `none` decides every harder question.
"""

from __future__ import annotations

import threading
from collections import defaultdict
from collections.abc import Sequence
from fractions import Fraction

from treesens.records.questions import Question

MODELS_AT_A_TIME = 6
"""Number of documents whose questions are interleaved; workers keep this many open."""


def order_questions(questions: Sequence[Question]) -> list[Question]:
    """The questions in the order in which they are solved."""
    documents = {digest: i for i, digest in enumerate(dict.fromkeys(q.document.digest for q in questions))}
    levels: dict[str, set[Fraction]] = defaultdict(set)
    for q in questions:
        if q.family is not None:
            levels[q.family].add(q.level)
    turns = {family: _turns(sorted(values)) for family, values in levels.items()}

    def rank(q: Question) -> tuple[float, ...]:
        turn = 0 if q.family is None else turns[q.family][q.level]
        return documents[q.document.digest] // MODELS_AT_A_TIME, turn, len(q.features), -q.interest

    return sorted(questions, key=rank)


def _turns(levels: Sequence[Fraction]) -> dict[Fraction, int]:
    """The turn of a level: the highest first, then the lowest, then repeatedly the midpoints between levels with a turn."""
    turn = {levels[-1]: 0, levels[0]: min(1, len(levels) - 1)}
    spans, number = [(0, len(levels) - 1)], 2
    while spans:
        next_spans = []
        for low, high in spans:
            if high - low > 1:
                middle = (low + high) // 2
                turn[levels[middle]] = number
                next_spans += [(low, middle), (middle, high)]
        spans, number = next_spans, number + 1
    return turn


class Plan:
    """The open questions. One thread may take questions while another thread reports answers."""

    def __init__(self, questions: Sequence[Question], *, share: bool = True) -> None:
        self.share = share
        self.open: dict[str, Question] = {q.digest: q for q in order_questions(questions)}
        self.helpers: dict[str, str] = {}
        """For an open question, the digest of an answered question whose pair is worth trying."""
        self._lock = threading.Lock()
        self._families: dict[str, list[Question]] = defaultdict(list)
        for q in self.open.values():
            if q.family is not None:
                self._families[q.family].append(q)

    def take(self) -> tuple[Question, str | None] | None:
        """The next question, and the digest of the question whose pair may answer it; None if no question is open."""
        with self._lock:
            if not self.open:
                return None
            digest = next(iter(self.open))
            return self.open.pop(digest), self.helpers.pop(digest, None)

    def found(self, answered: Question) -> None:
        """Marks the pair of an answered question as worth trying on every easier question that is still open."""
        with self._lock:
            for other in self._open_relatives(answered):
                if answered.is_harder_than(other):
                    self.helpers.setdefault(other.digest, answered.digest)

    def none(self, answered: Question) -> list[Question]:
        """Closes and returns the open questions that a `none` for this question decides."""
        with self._lock:
            decided = [q for q in self._open_relatives(answered) if q.is_harder_than(answered)]
            for other in decided:
                del self.open[other.digest]
                self.helpers.pop(other.digest, None)
            return decided

    def _open_relatives(self, answered: Question) -> list[Question]:
        if not self.share or answered.family is None:
            return []
        alive = [q for q in self._families[answered.family] if q.digest in self.open]
        self._families[answered.family] = alive
        return alive
