"""Random questions in cases with random parts: whatever the checker accepts of parts that are true is true, by brute force."""

from __future__ import annotations

import hashlib
import itertools
import random
from collections import Counter
from pathlib import Path
from typing import Any

from tests.extensions.certify.models import FEATURES, train
from tests.extensions.certify.truth import NotJudged, Truth
from treesens.extensions import treesens_verify as checker

LISTS = ("domain", "rows", "clauses", "orders")
MOST_PAIRS = 60_000
Document = dict[str, Any]


class Dice:
    """Random parts of statements about one model with two points."""

    def __init__(self, seed: int, data: bytes) -> None:
        self.random = random.Random(seed)
        self.sha256 = hashlib.sha256(data).hexdigest()

    def allowed(self) -> Document:
        low = self.random.choice([None, 0.25, 0.75])
        high = self.random.choice([None, 0.75, 1.25])
        found: Document = {"runs": [[low, high]]}
        if self.random.random() < 0.4:
            found["missing"] = True
        return found

    def place(self) -> list[Any]:
        return [self.random.randrange(2), self.random.randrange(FEATURES), self.allowed()]

    def row(self) -> Document:
        sign, bound = self.random.choice(["1", "-1"]), self.random.choice(["-1/2", "1/4", "1", "3/2"])
        terms = [[sign, self.random.randrange(2), 0]]
        if self.random.random() < 0.5:
            terms = [["1", 0, 0], ["-1", 1, 0]]
        return {
            "terms": terms,
            "costs": [],
            "bound": {"rational": bound, "logs": []},
            "strict": self.random.random() < 0.3,
        }

    def lists(self, most: int) -> Document:
        """Random constraints, at most so many of each kind."""
        count = [self.random.randint(0, most) for _ in LISTS]
        return {
            "domain": [self.place() for _ in range(count[0])],
            "rows": [self.row() for _ in range(count[1])],
            "clauses": [[self.place(), self.place()] for _ in range(count[2] // 2)],
            "orders": [[0, 1, self.random.randrange(FEATURES)] for _ in range(count[3] // 2)],
        }

    def varied(self) -> list[int] | None:
        chosen = self.random.sample(range(FEATURES), self.random.randint(0, FEATURES))
        return None if self.random.random() < 0.3 else sorted(chosen)

    def changes(self) -> list[Document]:
        features = self.random.sample(range(FEATURES), self.random.randint(1, FEATURES))
        return [{"features": features, "most": self.random.randint(0, 2)}] if self.random.random() < 0.4 else []

    def apart(self) -> list[Document]:
        features = self.random.sample(range(FEATURES), self.random.randint(1, FEATURES))
        return [{"features": features, "least": self.random.randint(0, 2)}] if self.random.random() < 0.3 else []

    def alternative(self, depth: int) -> Document:
        return {**self.lists(1), "either": self.either(depth - 1), "changes": self.changes(), "apart": self.apart()}

    def either(self, depth: int) -> list[Any]:
        if depth <= 0 or self.random.random() < 0.3:
            return []
        return [[self.alternative(depth) for _ in range(self.random.randint(1, 2))]]


def cases(whole: Document) -> list[tuple[Document, list[int]]]:
    """Every way to take alternatives, as the constraints and a set of features in which the points may differ, of as many
    as they have to differ in at least.
    """
    picks = [(dict(whole["statement"]), list(whole["changes"]), list(whole["apart"]), list(whole["either"]))]
    found = []
    while picks:
        statement, changes, apart, either = picks.pop()
        if either:
            for one in either[0]:
                lists = {name: statement[name] + one[name] for name in LISTS}
                further = changes + one["changes"], apart + one["apart"], either[1:] + one["either"]
                picks.append(({**statement, **lists}, *further))
            continue
        varied = statement["same_except"]
        for size in range(FEATURES + 1):
            for free in itertools.combinations(range(FEATURES), size):
                kept = all(len(set(free) & set(c["features"])) <= c["most"] for c in changes)
                kept &= all(len(set(free) & set(c["features"])) >= c["least"] for c in apart)
                if kept and (varied is None or set(free) <= set(varied)):
                    found.append((statement, list(free)))
    return found


def is_false(truth: Truth, whole: Document) -> bool:
    """Whether some inputs satisfy the whole as its words say: a feature without a set is finite, whatever alternatives add."""
    listed = {(p, f) for p, f, _ in whole["statement"]["domain"]}
    free = [[p, f, {"runs": [[None, None]]}] for p in range(2) for f in range(FEATURES) if (p, f) not in listed]
    return any(
        truth.has_solution({**case, "domain": [*case["domain"], *free], "same_except": varied}, MOST_PAIRS)
        for case, varied in cases(whole)
    )


def parts_of(dice: Dice, whole: Document) -> list[Document]:
    """Some of the cases, a few of them changed a little."""
    found = []
    for case, varied in cases(whole):
        part = {**case, "same_except": varied if dice.random.random() < 0.8 else None}
        for name in LISTS:
            kept = [x for x in part[name] if dice.random.random() < 0.9]
            part[name] = kept if dice.random.random() < 0.4 else list(part[name])
        if dice.random.random() < 0.1:
            part["domain"] = [*part["domain"], dice.place()]
        if dice.random.random() < 0.1:
            part["rows"] = [*part["rows"], dice.row()]
        if dice.random.random() < 0.97:
            found.append(part)
    return found


def test_what_is_accepted_of_true_parts_is_true(tmp_path: Path) -> None:
    outcomes: Counter[str] = Counter()
    for seed in range(4):
        truth = Truth(train(seed, tmp_path / f"{seed}.json"), FEATURES)
        data = (tmp_path / f"{seed}.json").read_bytes()
        dice, known = Dice(seed, data), dict[str, bool]()
        model = {"sha256": dice.sha256, "format": "xgboost-json", "trees": 3, "base": ["0"]}
        points = [{"name": name, "model": 0} for name in "ab"]
        for _ in range(120):
            statement = {"models": [model], "points": points, "same_except": dice.varied(), **dice.lists(2)}
            whole = {"statement": statement, "either": dice.either(2), "changes": dice.changes(), "apart": dice.apart()}
            try:
                outcomes[outcome(truth, dice, whole, data, known)] += 1
            except NotJudged:
                outcomes["not judged"] += 1
    assert not outcomes["accepted, and false"], outcomes
    assert outcomes["accepted, and true"] >= 50, outcomes
    assert outcomes["rejected"] >= 50, outcomes


def outcome(truth: Truth, dice: Dice, whole: Document, data: bytes, known: dict[str, bool]) -> str:
    parts = []
    for part in parts_of(dice, whole):
        key = repr(part)
        if key not in known:
            known[key] = truth.has_solution(part, MOST_PAIRS)
        if not known[key]:
            parts.append({"claim": "none", "statement": part})
    claim = {"kind": "cases", "whole": whole, "parts": list(range(len(parts)))}
    try:
        checker.together(claim, parts, lambda stated: checker.core.model_of(stated, [data]))
    except checker.Rejected:
        return "rejected"
    return "accepted, and false" if is_false(truth, whole) else "accepted, and true"
