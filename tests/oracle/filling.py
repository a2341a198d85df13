"""Which questions fill the table of coverage: those whose constructs have been compared least often with their frontend.

A run with `--fill N` draws several times the questions that it asks, and asks those with the most constructs below N. The kind
of model is drawn by what it lacks, too. Seeds and drawn questions stay what they are, so a failure can be asked again by its
seed.

With `--provers` a case is asked of the solver that has answered least, and only what a solver is asked: no counts, lists or
reasons, which the engine or an enumeration answers.
"""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np

from tests.oracle.asking import SOLVERS
from tests.oracle.cases import TRAINERS, reader
from tests.oracle.language import constructs, family

DRAWN = 48
"""Questions that are drawn for each that is asked; to draw one takes a hundredth of the time that it takes to ask it."""

ALIKE = 18
"""So many questions of a case with one construct halve what another one with it is worth."""

LEAST = 0.005
"""What a kind of model weighs of which every construct has been compared often enough as a whole."""


class Filling:
    """What has been compared so far, by construct and frontend, and what is wanted."""

    def __init__(self, wanted: int, before: Path | None = None) -> None:
        self.wanted = wanted
        self.seen: Counter[tuple[str, str]] = Counter()
        self.families: Counter[tuple[str, str]] = Counter()
        """By the construct of the language and the reader of models."""
        self.drawn: Counter[str] = Counter()
        if before is not None:
            for construct, frontend, _, count in json.loads(before.read_text())["compared"]:
                self._count(construct, frontend, count)

    def _count(self, construct: str, frontend: str, count: int) -> None:
        self.seen[construct, frontend] += count
        self.families[family(construct), reader(frontend)] += count

    def lack(self, construct: str, frontend: str) -> float:
        """From 1 (never compared) to 0 (as often as wanted); what is lacking of the whole construct counts nine times."""
        form = max(0.0, 1 - self.seen[construct, frontend] / self.wanted)
        return (9 * self._lack_of_whole(family(construct), frontend) + form) / 10

    def _lack_of_whole(self, whole: str, frontend: str) -> float:
        return max(0.0, 1 - self.families[whole, reader(frontend)] / self.wanted)

    def trainer(self, seed: int) -> str:
        """The kind of model of a seed: by what is lacking, and less often what was drawn often without a gain."""
        names = list(TRAINERS)
        known = {construct for construct, _ in self.families}
        lacks = np.array([sum(self._lack_of_whole(c, name) for c in known) + LEAST for name in names])
        weights = lacks / np.array([40 + self.drawn[name] for name in names])
        trainer = str(np.random.default_rng([23, seed]).choice(names, p=weights / weights.sum()))
        self.drawn[trainer] += 1
        return trainer

    def pick(self, questions: list[dict[str, Any]], frontend: str, count: int) -> list[dict[str, Any]]:
        """The `count` questions that lack most, in the order in which they were drawn.

        Every second one is the best of those with the construct that lacks most: a sum over constructs alone takes long
        questions, and never one whose only construct is rare. A construct counts for less with each question that has it.
        """
        asked = Counter[str]()
        left = {id(q): sorted(set(constructs(q))) for q in questions}
        picked = set[int]()
        lack = {c: self.lack(c, frontend) for kinds in left.values() for c in kinds}
        while left and len(picked) < count:
            gains = {c: lack[c] / (1 + asked[c] / ALIKE) for c in lack}
            rarest = max({c for kinds in left.values() for c in kinds}, key=lambda c: (gains[c], c))
            able = left if len(picked) % 2 else [i for i, kinds in left.items() if rarest in kinds]
            best = max(able, key=lambda i: sum(gains[c] for c in left[i]))
            picked.add(best)
            asked.update(left.pop(best))
        return [q for q in questions if id(q) in picked]

    def add(self, kinds: list[str], frontend: str) -> None:
        for construct in kinds:
            self._count(construct, frontend, 1)


class Solvers:
    """How many questions each other solver has answered so far."""

    def __init__(self, before: Path | None = None) -> None:
        self.answered = Counter(dict.fromkeys(SOLVERS, 0))
        if before is not None:
            for _, prover, count in json.loads(before.read_text())["provers"]:
                self.add(prover, count)

    def add(self, prover: str, count: int = 1) -> None:
        if prover in self.answered:
            self.answered[prover] += count

    def least(self) -> str:
        """The solver that has answered least."""
        return min(SOLVERS, key=lambda name: self.answered[name])


def goes_to_a_solver(question: dict[str, Any]) -> bool:
    """Whether a question is one search, for which every backend may be asked."""
    return not any(question.get(kind) for kind in ("count", "explain", "top"))
