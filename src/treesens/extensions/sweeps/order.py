"""The order of questions, and the answers that decide other questions.

Questions with the highest level come first; within a level, single features come before sets, and features with many splits
come before others, so that important answers come early and decide most other questions. A pair found for a question is tried,
and verified again, on every easier question; the answer `none` decides every harder question.
"""

from __future__ import annotations

import threading
from collections import defaultdict
from collections.abc import Mapping, Sequence
from fractions import Fraction

from treesens.records.questions import Question

MODELS_AT_A_TIME = 6
"""Number of documents whose questions are interleaved; workers keep this number of documents open."""


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
    """The turn of each level: first the highest, then the lowest, then repeatedly midpoints between levels with a turn."""
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
    """The open questions, by key and in order. One thread may take questions while another thread reports answers."""

    def __init__(self, questions: Mapping[str, Question], *, share: bool = True) -> None:
        self.share = share
        self.questions = questions
        self.open = dict(questions)
        self.helpers: dict[str, str] = {}
        """For an open question, the key of an answered question whose pair is worth trying."""
        self._lock = threading.Lock()
        self._families: dict[str, list[str]] = defaultdict(list)
        for key, q in questions.items():
            if q.family is not None:
                self._families[q.family].append(key)

    def take(self) -> tuple[str, str | None] | None:
        """The next question, and the question whose pair may answer it; None if no question is open."""
        with self._lock:
            if not self.open:
                return None
            key = next(iter(self.open))
            del self.open[key]
            return key, self.helpers.pop(key, None)

    def found(self, key: str) -> None:
        """Marks the pair of an answered question as worth trying on every easier question that is still open."""
        with self._lock:
            for other in self._open_relatives(key):
                if self.questions[key].is_harder_than(self.questions[other]):
                    self.helpers.setdefault(other, key)

    def none(self, key: str) -> list[str]:
        """Closes and returns the open questions that the answer `none` to this question decides."""
        with self._lock:
            answered = self.questions[key]
            decided = [other for other in self._open_relatives(key) if self.questions[other].is_harder_than(answered)]
            for other in decided:
                del self.open[other]
                self.helpers.pop(other, None)
            return decided

    def _open_relatives(self, key: str) -> list[str]:
        family = self.questions[key].family
        if not self.share or family is None:
            return []
        alive = [other for other in self._families[family] if other in self.open]
        self._families[family] = alive
        return alive
