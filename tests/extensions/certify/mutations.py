"""Mutated certificates over tiny models: none may be accepted whose statement is false.

    python -m tests.extensions.certify.mutations --count 1000000 --seed 1

Certificates of tiny models are changed at random: numbers, fractions, lists and flags, in the statement and in the proof. What
the checker still accepts is judged by brute force with the leaves of XGBoost (`truth.py`). Every round has models of its own.
"""

from __future__ import annotations

import argparse
import copy
import json
import pickle
import random
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path
from typing import Any

from tests.extensions.certify.made import Made, make
from tests.extensions.certify.truth import NotJudged
from treesens.extensions import treesens_verify as checker

ROUND, MODELS = 50_000, 3

Spot = tuple[Any, Any]
"""A list or object, and an index or key of it."""

MOST_PAIRS = 300_000
"""Beyond, a mutant is not judged: a million of them shall be through in an hour."""


def spots(item: Any) -> Iterator[Spot]:
    """Every place in a document."""
    keys: Any = range(len(item)) if isinstance(item, list) else list(item) if isinstance(item, dict) else ()
    for key in keys:
        yield item, key
        yield from spots(item[key])


def changed(value: Any, other: Any, dice: random.Random) -> Any:
    """Something else that could stand where `value` does; `other` is a value from elsewhere in the document."""
    match value:
        case bool():
            return not value
        case int():
            return dice.choice([value + 1, value - 1, -value, value * 2, value // 2, 0, 1 << dice.randrange(40), other])
        case float():
            return dice.choice([value + dice.uniform(-1, 1), -value, float(dice.randrange(-3, 4)), None, other])
        case None:
            return dice.choice([0.5, -1.0, [0], other])
        case str():
            return fraction_near(value, other, dice)
        case list():
            return shuffled(value, other, dice)
        case _:
            return other


def fraction_near(text: str, other: Any, dice: random.Random) -> Any:
    """Another fraction, if the text is one."""
    try:
        number = Fraction(text)
    except ValueError:
        return other if isinstance(other, str) else text
    step = Fraction(dice.randrange(-64, 65), dice.choice([1, 64, 1 << 20, 1 << 40]))
    return str(dice.choice([number + step, -number, number * 2, Fraction(0)]))


def shuffled(value: list[Any], other: Any, dice: random.Random) -> list[Any]:
    """A list with one element less, more, or elsewhere."""
    result = list(value)
    if result and dice.random() < 0.6:
        result.pop(dice.randrange(len(result)))
    elif result and dice.random() < 0.5:
        result.insert(dice.randrange(len(result) + 1), copy.deepcopy(dice.choice(result)))
    else:
        result.insert(dice.randrange(len(result) + 1), copy.deepcopy(other))
    return result


def mutant(document: dict[str, Any], dice: random.Random) -> dict[str, Any]:
    """The document with one to three changes."""
    result: dict[str, Any] = pickle.loads(pickle.dumps(document))  # a deep copy in a fifth of the time
    for _ in range(dice.choice([1, 1, 1, 2, 3])):
        part = result["statement"] if dice.random() < 0.2 else {"nodes": result["nodes"], "apart": result["apart"]}
        places = list(spots(part))
        holder, key = dice.choice(places)
        elsewhere, at = dice.choice(places)
        new = changed(holder[key], copy.deepcopy(elsewhere[at]), dice)
        holder[key] = new
        if part is not result["statement"]:
            result["nodes"], result["apart"] = part["nodes"], part["apart"]
    return result


_READ: dict[tuple[bytes, str], Any] = {}


def read_once(data: bytes, stated: dict[str, Any]) -> Any:
    """What the checker reads of a model file, once for every way to state it."""
    key = data, json.dumps(stated)
    if key not in _READ:
        _READ[key] = checker.read_model(data, stated)
    return _READ[key]


def judge(made: Made, document: dict[str, Any], known: dict[str, bool]) -> str:
    """What became of a mutant: rejected, accepted and true, or accepted and false."""
    try:
        checker.check(document, [made.data], read_once)
    except checker.Rejected:
        return "rejected"
    key = json.dumps(document["statement"], sort_keys=True)
    try:
        if key not in known:
            known[key] = made.truth.has_solution(document["statement"], MOST_PAIRS)
    except NotJudged:
        return "accepted, not judged"
    return "accepted, and false" if known[key] else "accepted, and true"


def run(count: int, seed: int, folder: Path) -> tuple[Counter[str], dict[str, Any] | None]:
    """How many mutants were rejected, or accepted; and the first one that was accepted with a false statement."""
    dice = random.Random(seed)
    models = [make(seed + i, folder, gaps=("0.8", "1.6", "3.5")) for i in range(MODELS)]
    made = [(m, document) for m in models for document in m.documents.values()]
    known: list[dict[str, bool]] = [{} for _ in models]
    total: Counter[str] = Counter()
    for _ in range(count):
        one, document = dice.choice(made)
        wrong = mutant(document, dice)
        if wrong["statement"] == document["statement"] and wrong["nodes"] == document["nodes"]:
            total["unchanged"] += 1
            continue
        outcome = judge(one, wrong, known[models.index(one)])
        total[outcome] += 1
        if outcome == "accepted, and false":
            return total, wrong
    return total, None


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--count", type=int, default=1_000_000)
    parser.add_argument("--seed", type=int, default=1)
    asked = parser.parse_args()
    total: Counter[str] = Counter()
    for number, done in enumerate(range(0, asked.count, ROUND)):
        seed = asked.seed + MODELS * number
        _READ.clear()
        with tempfile.TemporaryDirectory() as folder:
            more, wrong = run(min(ROUND, asked.count - done), seed, Path(folder))
        total += more
        print(f"seed {seed}: {sum(total.values()):,} mutants: {dict(total)}", flush=True)
        if wrong is not None:
            break
    if wrong is not None:
        print(json.dumps(wrong))
    return 1 if wrong is not None else 0


if __name__ == "__main__":
    sys.exit(main())
