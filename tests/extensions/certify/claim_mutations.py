"""Mutated claims and listed sums over tiny models: nothing may be accepted that is false.

    python -m tests.extensions.certify.claim_mutations --count 100000 --seed 1

Claims of manifests (`cases`, `answers`, `cover`, `border`, `share`) are drawn with parts whose truth is known by brute force,
and then changed at random: the claim, its numbers, and the statements of the parts, of which only true ones are offered.
Leaves that list sums are changed in their statement. What is accepted is judged by brute force with the leaves of XGBoost
(`truth.py`). Certificates of inputs with sums, alternatives and limits of changes, and rows that are given by their values, are
changed as well, and judged by value (`given.py`).
"""

from __future__ import annotations

import argparse
import copy
import itertools
import json
import pickle
import sys
import tempfile
from collections import Counter
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any, TypeVar

from treesens.extensions.treesens_verify.shares import negated

from tests.extensions.certify.given import Inputs, Reached
from tests.extensions.certify.models import FEATURES, train
from tests.extensions.certify.mutations import changed, spots
from tests.extensions.certify.share_truth import Known, share_of
from tests.extensions.certify.test_random_wholes import Dice, cases, is_false
from tests.extensions.certify.truth import NotJudged, Truth
from treesens.extensions import treesens_verify as checker

ROUND = 2_000
PER_DRAW = 8
"""Mutants of what was drawn once: most of the time goes into the truth of its parts."""
MOST_PAIRS = 60_000
FLOATS = (0.25, 0.75, 1.25)

Document = dict[str, Any]
Outcome = str
Drawn = TypeVar("Drawn")


class Round:
    """One model, random questions about it, and what is known of statements."""

    def __init__(self, seed: int, folder: Path) -> None:
        path = folder / f"{seed}.json"
        self.booster = train(seed, path, depth=1 + seed % 2)
        self.truth, self.reached = Truth(self.booster, FEATURES), Reached(self.booster)
        self.data = path.read_bytes()
        self.draw = Dice(seed, self.data)
        self.dice = self.draw.random
        self.known: dict[str, bool] = {}
        self.shares: dict[str, Known] = {}
        self.read: dict[str, Any] = {}
        self.kept: dict[Callable[[], Any], tuple[int, Any]] = {}

    def statement(self) -> Document:
        model = {"sha256": self.draw.sha256, "format": "xgboost-json", "trees": 3, "base": ["0"]}
        points = [{"name": name, "model": 0} for name in "ab"]
        return {"models": [model], "points": points, "same_except": self.draw.varied(), **self.draw.lists(2)}

    def holds(self, statement: Document) -> bool:
        """Whether inputs satisfy a statement."""
        key = json.dumps(statement, sort_keys=True)
        if key not in self.known:
            self.known[key] = self.truth.has_solution(statement, MOST_PAIRS)
        return self.known[key]

    def well_formed(self, statement: Document) -> bool:
        """Whether the checker reads it: a part is offered only if it could have been accepted."""
        try:
            self.problem(statement)
        except (checker.Rejected, *checker.core.MALFORMED):
            return False
        return True

    def problem(self, statement: Document) -> Any:
        return checker.Problem(statement, [self.model_of(stated) for stated in statement["models"]])

    def model_of(self, stated: Document) -> Any:
        key = json.dumps(stated)
        if key not in self.read:
            self.read[key] = checker.core.model_of(stated, [self.data], first_trees=True)
        return self.read[key]

    def mutant(self, document: Any) -> Any:
        """A copy with one change, sometimes two."""
        result = pickle.loads(pickle.dumps(document))  # a deep copy in a fifth of the time
        for _ in range(self.dice.choice([1, 1, 2])):
            places = list(spots(result))
            holder, key = self.dice.choice(places)
            elsewhere, at = self.dice.choice(places)
            holder[key] = changed(holder[key], copy.deepcopy(elsewhere[at]), self.dice)
        return result

    def follows(self, claim: Document, parts: list[Document]) -> bool:
        try:
            checker.check_manifest({"format": "treesens-manifest", "version": 1, "parts": [], "claims": [claim]})
            checker.together(claim, parts, self.model_of)
        except (checker.Rejected, *checker.core.MALFORMED):
            return False
        return True

    def true_parts(self, statements: list[Document]) -> list[Document]:
        """Statements as certificates, each with the claim that is true of it."""
        return [
            {"claim": "found" if self.holds(one) else "none", "statement": one}
            for one in statements
            if self.well_formed(one)
        ]

    def drawn(self, draw: Callable[[], Drawn]) -> Drawn:
        """What is drawn, once for several mutants."""
        turns, what = self.kept.get(draw, (0, None))
        if turns % PER_DRAW == 0:
            what = draw()
        self.kept[draw] = turns + 1, what
        return what

    # --- kinds --------------------------------------------------------------------------------------------------------

    def draw_cases(self) -> tuple[Document, list[Document]]:
        whole = {
            "statement": self.statement(),
            "either": self.draw.either(2),
            "changes": self.draw.changes(),
            "apart": self.draw.apart(),
        }
        statements = [{**case, "same_except": varied} for case, varied in cases(whole)]
        parts = [part for part in self.true_parts(statements) if part["claim"] == "none"]
        return {"kind": "cases", "whole": whole, "parts": list(range(len(parts)))}, parts

    def of_cases(self) -> Outcome:
        claim, parts = self.changed_by_half(*self.drawn(self.draw_cases))
        if not self.follows(claim, parts):
            return "rejected"
        return "accepted, and false" if is_false(self.truth, claim["whole"]) else "accepted, and true"

    def draw_answers(self) -> tuple[Document, list[Document]]:
        """Rows with an answer of a question, and rows without: the parts of each are its cases, or one case with inputs."""
        statement, parts, rows = self.statement(), list[Document](), list[Document]()
        whole = {"statement": statement, "either": self.draw.either(1)}
        whole |= {"changes": self.draw.changes(), "apart": self.draw.apart()}
        for _ in range(self.dice.choice([1, 2])):
            sets = [[0, f, self.draw.allowed()] for f in range(FEATURES)]
            for _, f, allowed in sets:
                if self.dice.random() < 0.9 and not any(place[:2] == [0, f] for place in statement["domain"]):
                    allowed.pop("missing", None)
            mine = self.true_parts([{**case, "same_except": varied} for case, varied in cases(about(whole, sets))])
            mine = [part for part in mine if part["claim"] == "found"][:1] or mine
            rows.append({"sets": sets, "parts": list(range(len(parts), len(parts) + len(mine)))})
            parts += mine
        return {"kind": "answers", "whole": whole, "rows": rows}, parts

    def of_answers(self) -> Outcome:
        claim, parts = self.changed_by_half(*self.drawn(self.draw_answers))
        if not self.follows(claim, parts):
            return "rejected"
        for row in claim["rows"]:
            said = any(parts[i]["claim"] == "found" for i in row["parts"])
            if said != is_false(self.truth, about(claim["whole"], [*row["sets"], *never_missing(claim["whole"])])):
                return "accepted, and false"
        return "accepted, and true"

    def draw_cover(self) -> tuple[Document, list[Document]]:
        base, statements = self.statement(), list[Document]()

        def tree(path: list[Any], depth: int) -> Any:
            if depth == 0:
                statements.append({**base, "domain": [*base["domain"], *path]})
                return len(statements) - 1
            p, f, cut = self.dice.randrange(2), self.dice.randrange(FEATURES), self.dice.choice(FLOATS)
            low, high = {"runs": [[None, cut]]}, {"runs": [[checker.step(cut, 1, "float32"), None]], "missing": True}
            sides = [tree([*path, [p, f, side]], depth - 1) for side in (low, high)]
            return [p, f, low, high, *sides]

        claim = {"kind": "cover", "tree": tree([], self.dice.choice([1, 1, 2]))}
        return claim, self.true_parts(statements)

    def of_cover(self) -> Outcome:
        claim, parts = self.changed_by_half(*self.drawn(self.draw_cover))
        if not self.follows(claim, parts):
            return "rejected"
        depth = self.first_depth(claim["tree"])
        said = parts[self.first(claim["tree"])]["statement"]
        whole = {**said, "domain": said["domain"][: len(said["domain"]) - depth]}
        return "accepted, and false" if self.holds(whole) else "accepted, and true"

    def first_depth(self, tree: Any) -> int:
        return 0 if isinstance(tree, int) else 1 + self.first_depth(tree[4])

    def first(self, tree: Any) -> int:
        return tree if isinstance(tree, int) else self.first(tree[4])

    def draw_border(self) -> tuple[Document, list[Document]]:
        base = self.statement()
        every = [list(s) for n in range(FEATURES + 1) for s in itertools.combinations(range(FEATURES), n)]
        chosen = self.dice.sample(every, self.dice.randint(3, len(every)))
        parts = self.true_parts([{**base, "same_except": one} for one in chosen])
        return {"kind": "border", "features": list(range(FEATURES)), "parts": list(range(len(parts)))}, parts

    def of_border(self) -> Outcome:
        claim, parts = self.changed_by_half(*self.drawn(self.draw_border))
        if not self.follows(claim, parts):
            return "rejected"
        used = [parts[i] for i in claim["parts"]]
        found = [set(one["statement"]["same_except"]) for one in used if one["claim"] == "found"]
        said = used[0]["statement"]
        for n in range(len(claim["features"]) + 1):
            for free in itertools.combinations(sorted(claim["features"]), n):
                if self.holds({**said, "same_except": list(free)}) != any(one <= set(free) for one in found):
                    return "accepted, and false"
        return "accepted, and true"

    def changed_by_half(self, claim: Document, parts: list[Document]) -> tuple[Document, list[Document]]:
        """The claim, or one of its statements, is changed; a changed statement comes with what is true of it."""
        if self.dice.random() < 0.6 or not parts:
            return self.mutant(claim), parts
        number = self.dice.randrange(len(parts))
        more = self.true_parts([self.mutant(parts[number]["statement"])])
        if claim["kind"] == "cases":
            more = [one for one in more if one["claim"] == "none"]
        return claim, [*parts[:number], *more, *parts[number + 1 :]]

    def of_sums(self) -> Outcome:
        drawn = self.drawn(self.statement)
        statement = self.mutant({**drawn, "orders": []}) if self.dice.random() < 0.8 else drawn
        document = {"format": "treesens-certificate", "version": 1, "claim": "none", "statement": statement}
        try:
            checker.check({**document, "apart": [], "nodes": [["sums"]]}, [self.data], first_trees=True)
        except (checker.Rejected, *checker.core.MALFORMED):
            return "rejected"
        return "accepted, and false" if self.holds(statement) else "accepted, and true"

    def value(self) -> list[Any]:
        """A term of a sum of values."""
        dice = self.dice
        factor, place = dice.choice(["1", "-1", "1/2"]), [dice.randrange(2), dice.randrange(FEATURES)]
        if dice.random() < 0.4:
            return [factor, *place]
        other = dice.choice([{"point": dice.randrange(2)}, {"value": dice.choice([None, 0.5, 1.25])}])
        return [factor, *place, other, dice.choice([None, "1", "3/2"]), dice.choice([1, 2])]

    def chance(self) -> list[Any]:
        """A term of a sum of probabilities."""
        dice = self.dice
        factor, scores = dice.choice(["1", "-1"]), [["-1", dice.randrange(2), 0]]
        if dice.random() < 0.5:
            return [factor, [[scores, dice.choice(["0", "1/3"])]]]
        knots = [["-1", "0"], ["0", "1/4"], ["1/2", "1/4"], ["3/4", "1"]]
        curves = [None, {"slope": "-2", "intercept": "1/2"}, {"knots": knots}]
        curve = dice.choice(curves)
        return [factor, scores, None if curve is None else {**curve, "of_probability": dice.random() < 0.5}]

    def further(self) -> Document:
        """What else is asked of two points."""
        dice = self.dice
        found: Document = {"either": self.draw.either(2), "changes": self.draw.changes(), "apart": self.draw.apart()}
        for one in [found, *(alternative for several in found["either"] for alternative in several)]:
            one["values"] = [
                {
                    "terms": [self.value() for _ in range(dice.randint(1, 3))],
                    "most": dice.choice(["-1/2", "0", "1", "9/4"]),
                    "strict": dice.random() < 0.4,
                }
                for _ in range(dice.choice([0, 0, 1, 2]))
            ]
            one["chances"] = [
                {
                    "terms": [self.chance() for _ in range(dice.randint(1, 2))],
                    "least": dice.choice(["-1/4", "1/2", "4/5"]),
                    "strict": dice.random() < 0.4,
                }
                for _ in range(dice.choice([0, 0, 1]))
            ]
            if dice.random() < 0.3:
                one["cavities"] = [self.cavities()]
        return found

    def cavities(self) -> Document:
        """The cells of some rows, a few of each feature; values on their ends are often drawn (`inputs`)."""
        dice, features = self.dice, sorted(self.dice.sample(range(FEATURES), self.dice.randint(1, FEATURES)))
        cells: list[list[Document]] = [
            [{"runs": [[None, 0.5]], "missing": True}, {"runs": [[0.75, 1.25]]}, {"runs": [[0.25, None]]}]
            for _ in features
        ]
        rows = [[dice.choice([0, 1, 2, None]) for _ in features] for _ in range(dice.randint(0, 5))]
        width = dice.randint(1, FEATURES)
        return {"point": dice.randrange(2), "width": width, "features": features, "cells": cells, "rows": rows}

    def inputs(self, points: int) -> list[list[float | None]]:
        values = [0.0, 0.25, 0.5, 0.75, 1.0, 1.25, 2.0, None]
        return [[self.dice.choice(values) for _ in range(FEATURES)] for _ in range(points)]

    def draw_inputs(self) -> Document:
        """A certificate of inputs, of several that are tried one that is accepted if there is any."""
        for _ in range(40):
            lists = self.statement() | self.draw.lists(1) | {"further": self.further()}
            document = {"format": "treesens-certificate", "version": 1, "claim": "found", "statement": lists}
            document["inputs"] = self.inputs(2)
            if self.dice.random() < 0.5:
                lists["same_except"] = None
            if self.accepts(document):
                break
        return document

    def accepts(self, document: Document) -> bool:
        try:
            checker.check(document, [self.data], first_trees=True)
        except (checker.Rejected, *checker.core.MALFORMED):
            return False
        return True

    def of_inputs(self) -> Outcome:
        drawn = self.drawn(self.draw_inputs)
        document = self.mutant(drawn) if self.dice.random() < 0.8 else drawn
        if not self.accepts(document):
            return "rejected"
        statement = document["statement"]
        satisfied = self.satisfy(statement, statement.get("further", {}), document["inputs"])
        return "accepted, and true" if satisfied else "accepted, and false"

    def satisfy(self, statement: Document, further: Document, points: list[list[float | None]]) -> bool:
        """Whether inputs satisfy a statement and what else is asked, by value."""
        nothing: Document = {"either": [], "changes": [], "apart": []}
        names = ("domain", "rows", "clauses", "orders")
        listed = {(p, f) for p, f, _ in statement["domain"]}
        present = all(x is not None or (p, f) in listed for p, point in enumerate(points) for f, x in enumerate(point))
        kept = range(FEATURES) if statement["same_except"] is not None and len(points) == 2 else ()
        agreed = all(points[0][f] == points[1][f] for f in kept if f not in statement["same_except"])
        (model,) = statement["models"]
        given = Inputs(self.reached, Fraction(model["base"][0]), points, model["trees"])
        asked = [{**nothing, **{name: statement[name] for name in names}}, nothing | further]
        return present and agreed and all(map(given.satisfy, asked))

    def draw_looked_at(self) -> Document:
        """A claim about rows of one point that are given by their values."""
        one_point = json.loads(json.dumps(self.statement() | {"same_except": None, "orders": [], "rows": []}))
        one_point["points"] = one_point["points"][:1]
        rows = self.draw.lists(2)["rows"]
        further = self.further() | {"either": [], "changes": [], "apart": []}
        for row in rows:
            row["terms"] = [[c, 0, o] for c, _, o in row["terms"]]
        for chance in further["chances"]:
            chance["terms"] = [[c, [[[["-1", 0, 0]], "0"]]] for c, *_ in chance["terms"]]
        for cavities in further.get("cavities", []):
            cavities["point"] = 0
        for relation in further["values"]:
            relation["terms"] = [[c, 0, f] for c, _, f, *_ in relation["terms"]]
        for name in ("domain", "clauses"):
            one_point[name] = json.loads(json.dumps(one_point[name]).replace("[1, ", "[0, "))
        whole = {"statement": one_point | {"rows": rows}, **further}
        return {
            "kind": "answers",
            "whole": whole,
            "rows": [{"values": x} for x in self.inputs(self.dice.randint(1, 4))],
        }

    def of_looked_at(self) -> Outcome:
        claim = self.drawn(self.draw_looked_at)
        claim = self.mutant(claim) if self.dice.random() < 0.8 else claim
        if not self.follows(claim, []):
            return "rejected"
        whole = claim["whole"]
        further = {name: part for name, part in whole.items() if name != "statement"}
        count = sum(self.satisfy(whole["statement"], further, [row["values"]]) for row in claim["rows"])
        said = checker.together(claim, [], self.model_of)[0]
        wanted = f"of {len(claim['rows'])} rows, each given by its values, {count} are an answer of the question:"
        return "accepted, and true" if said == wanted else "accepted, and false"

    def draw_share(self) -> tuple[Document, list[Document]]:
        """A claim about a share, of boxes of which the truth is known."""
        dice, parts, f = self.dice, list[Document](), self.dice.randrange(FEATURES)
        statement = self.statement() | self.draw.lists(1) | {"same_except": [f], "orders": []}
        if dice.random() < 0.6:
            statement["clauses"] = []
        statement["rows"] = [self.draw.row() for _ in range(dice.choice([1, 1, 2]))]
        for row in statement["rows"]:
            row["bound"]["rational"] = dice.choice(["-3/2", "-1/2", "0", "1/2"])
        if dice.random() < 0.6:
            statement["domain"] = []
        whole = {"statement": statement, "either": [], "changes": [], "apart": []}
        sets = [
            {"runs": [[None, 0.25]]},
            {"runs": [[0.5, 1.0]]},
            {"runs": [[1.25, 2.0]]},
            {"runs": [], "missing": True},
        ]
        measure = self.measure([g for g in range(FEATURES) if g != f], sets)

        def lacks(path: list[Any], rows: list[Document]) -> int | None:
            asked = {**statement, "domain": [*statement["domain"], *path], "rows": rows}
            (part,) = self.true_parts([asked]) or [{"claim": ""}]
            if part["claim"] != "none":
                return None
            parts.append(part)
            return len(parts) - 1

        def tree(path: list[Any], depth: int) -> Any:
            number = lacks(path, statement["rows"])
            if number is not None:
                return {"none": [number]}
            for _ in range(4):
                values = [dice.choice([0.0, 0.5, 1.0, 2.0]) for _ in range(2)]
                pins = [{"runs": [[None, None]]} if dice.random() < 0.2 else {"values": [x]} for x in values]
                pinned = [[p, f, s] for p, s in enumerate(pins)]
                numbers = [lacks([*path, *pinned], [negated(row)]) for row in statement["rows"]]
                if None not in numbers:
                    return {"all": numbers, "values": [[x] for x in values], "sets": [[s] for s in pins]}
            if not depth:
                return None
            g, cut = dice.choice([g for g in range(FEATURES) if g != f]), dice.choice(FLOATS)
            sides = [{"runs": [[None, cut]]}, {"runs": [[checker.step(cut, 1, "float32"), None]], "missing": True}]
            return [g, *sides, *(tree([*path, [0, g, side]], depth - 1) for side in sides)]

        return {"kind": "share", "whole": whole, "measure": measure, "tree": tree([], 3)}, parts

    def measure(self, features: list[int], sets: list[Document]) -> list[Any]:
        """A measure of some features: a product, or draws of groups, perhaps after one of no feature."""
        dice = self.dice
        if dice.random() < 0.5:
            return [[g, [[s, w] for s, w in zip(sets, self.weights(), strict=True)]] for g in features]
        found: list[Any] = [[None, [], None, [self.weights()]]] if dice.random() < 0.5 else []
        for g in features:
            after = dice.randrange(len(found)) if found and dice.random() < 0.8 else None
            rows = 1 if after is None else len(found[after][3][0])
            chances = [[w, str(1 - Fraction(w))] for w in (dice.choice(["0", "1/3", "1/2", "1"]) for _ in range(rows))]
            entries = [[s, w, n] for n in range(2) for s, w in zip(sets, self.weights(), strict=True)]
            found.append([g, entries, after, chances])
        return found

    def weights(self) -> list[str]:
        """Four weights that add up to 1."""
        first, second = self.dice.choice(["1/2", "1/4", "0"]), self.dice.choice(["1/4", "1/3", "0"])
        third = self.dice.choice(["0", "1/8"])
        return [first, second, third, str(1 - Fraction(first) - Fraction(second) - Fraction(third))]

    def of_share(self) -> Outcome:
        claim, parts = self.changed_by_half(*self.drawn(self.draw_share))
        if not self.follows(claim, parts):
            return "rejected"
        first = checker.together(claim, parts, self.model_of)[0].split()
        low, high = [Fraction(word) for word in first if word[0].isdigit()][:2]
        known = self.shares.setdefault(json.dumps(claim["whole"]["statement"], sort_keys=True), {})
        certain, possible = share_of(self.truth, claim, known)
        return "accepted, and true" if low <= certain and possible <= high else "accepted, and false"


def never_missing(whole: Document) -> list[Any]:
    """What the words say of the features of the first point without a set."""
    listed = {f for p, f, _ in whole["statement"]["domain"] if p == 0}
    return [[0, f, {"runs": [[None, None]]}] for f in range(FEATURES) if f not in listed]


def about(whole: Document, sets: list[Any]) -> Document:
    """The whole question about a row."""
    statement = whole["statement"]
    return {**whole, "statement": {**statement, "domain": [*statement["domain"], *sets]}}


KINDS: dict[str, Callable[[Round], Outcome]] = {
    "cases": Round.of_cases, "answers": Round.of_answers, "cover": Round.of_cover, "border": Round.of_border,
    "sums": Round.of_sums, "inputs": Round.of_inputs, "looked at": Round.of_looked_at,
    "share": Round.of_share,
}  # fmt: skip


def run(count: int, seed: int, folder: Path) -> Counter[tuple[str, Outcome]]:
    """What became of so many mutants about one model, by kind."""
    one, total = Round(seed, folder), Counter[tuple[str, Outcome]]()
    for number in range(count):
        kind = list(KINDS)[number % len(KINDS)]
        try:
            outcome = KINDS[kind](one)
        except NotJudged:
            outcome = "accepted, not judged"  # too many inputs, or a score too close to a logarithm
        except checker.core.MALFORMED as error:
            outcome = f"not read by the brute force ({type(error).__name__})"
        total[kind, outcome] += 1
    return total


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--count", type=int, default=100_000)
    parser.add_argument("--seed", type=int, default=1)
    asked = parser.parse_args()
    total = Counter[tuple[str, Outcome]]()
    for number, done in enumerate(range(0, asked.count, ROUND)):
        with tempfile.TemporaryDirectory() as folder:
            total += run(min(ROUND, asked.count - done), asked.seed + number, Path(folder))
        print(f"seed {asked.seed + number}: {sum(total.values()):,} mutants", flush=True)
        print("  " + "; ".join(f"{kind} {what}: {n:,}" for (kind, what), n in sorted(total.items())), flush=True)
        if any(what == "accepted, and false" for _, what in total):
            return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
