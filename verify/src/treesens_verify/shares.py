"""Shares: how much of a product of measures of single features a question is about, between two numbers.

Boxes without inputs and boxes all of whose inputs are concerned lie apart from each other. What they do not hold is open.
"""

from fractions import Fraction
from math import ceil, floor, prod

from .by_value import holds, values_of
from .cases import check_none, checked
from .form import CASES, check_set, check_statement, index, listed, number, parts, text
from .numbers import fraction, require
from .words import Words, in_further_words, in_words

MOST_LEAVES, DIGITS = 100_000, 10**12


def share(claim, part, models_of):
    """The claim that between two numbers of a measure a whole question has an answer, line by line; Rejected if not."""
    whole = claim["whole"]
    problem = checked(whole, models_of)
    seen = Measured(problem, whole, claim["measure"])
    low, none, leaves, stack = Fraction(0), Fraction(0), 0, [(claim["tree"], ())]
    while stack:
        node, path = stack.pop()
        leaves += 1
        require(leaves + len(stack) <= MOST_LEAVES, "too many boxes")
        if node is None:
            continue
        if type(node) is list:
            f, below, above, left, right = listed(node, "a cut of a measure", (5,))
            require(type(f) is int and f in seen.entries, "a cut of a feature that is not measured")
            apart(below, above)
            stack += [(right, (*path, (f, above))), (left, (*path, (f, below)))]
        elif "none" in node:
            parts(node, {"none"}, "a box without answers")
            check_none(seen.within(path), [part(i) for i in listed(node["none"], "parts")], len(problem.features))
            none += seen.mass(path)
        else:
            parts(node, {"all", "values", "sets"}, "a box of answers")
            seen.check_all(path, node["values"], node["sets"], [part(i) for i in listed(node["all"], "parts")])
            low += seen.mass(path, seen.allowed())
    return seen.words(low, 1 - none)


def apart(low, high):
    """That no value is on both sides of a cut."""
    for side in (low, high):
        check_set(side)
        parts(side, {"runs"}, "a side of a cut", ["missing"])
        require(len(side["runs"]) <= 1, "a side of a cut is more than a run")
    require(not (low.get("missing") and high.get("missing")), "a missing value is on both sides of a cut")
    if low["runs"] and high["runs"]:
        end, start = low["runs"][0][1], high["runs"][0][0]
        require(None not in (end, start) and end < start, "a value is on both sides of a cut")


def filled(entry):
    """Whether a set holds a number at least, or a missing value."""
    whole = entry.get("whole")
    runs = [
        None in run or (ceil(run[0]) <= floor(run[1]) if whole else run[0] <= run[1]) for run in entry.get("runs", [])
    ]
    return any(runs) or bool(entry.get("values")) or bool(entry.get("missing"))


def lies_in(entry, allowed, largest):
    """Whether all of a set lies in another one."""
    if entry.get("missing") and not allowed.get("missing"):
        return False
    if not all(holds(allowed, float(x), largest) for x in entry.get("values", [])):
        return False
    for low, high in entry.get("runs", []):
        wide = any(
            (a is None or (low is not None and a <= low)) and (b is None or (high is not None and high <= b))
            for a, b in allowed.get("runs", [])
        )
        if not wide or (allowed.get("whole") and not entry.get("whole")):
            return False
    return True


class Measured:
    """A whole question, and a measure of the features that do not vary: sets of their values, with a weight for each."""

    def __init__(self, problem, whole, measure):
        self.problem, self.whole, self.statement = problem, whole, whole["statement"]
        same_except, features = self.statement["same_except"], range(len(problem.features))
        require(len(problem.points) == 1 or same_except is not None, "points that may differ in all features")
        self.varied = sorted(same_except or ())
        self.entries = {}
        for one in listed(measure, "a measure"):
            f, entries = listed(one, "the measure of a feature", (2,))
            index(f, len(features), "the measure of a feature")
            require(f not in self.entries, "a feature is measured twice")
            self.entries[f] = entries
            for entry in listed(entries, "the measure of a feature"):
                allowed, weight = listed(entry, "a part of a measure", (2,))
                check_set(allowed)
                text(weight, "a weight")
                require(filled(allowed) and fraction(weight) >= 0, "a part of a measure without values, or below 0")
            require(sum(fraction(w) for _, w in entries) == 1, "the measure of a feature does not add up to 1")
        fixed = [f for f in features if f not in self.varied]
        require(sorted(self.entries) == fixed, "a measure of other features than those that do not vary")

    def within(self, path):
        """The question about a box."""
        sets = [[0, f, side] for f, side in path]
        stated = {**self.statement, "domain": [*self.statement["domain"], *sets]}
        check_statement(stated, self.problem.models)
        return {**self.whole, "statement": stated}

    def allowed(self):
        """What the question says of the features that do not vary, and of no other one."""
        return [(f, allowed) for _, f, allowed in self.problem.domains() if f in self.entries]

    def mass(self, path, allowed=()):
        """The weight of all that surely lies in a box, and in what is allowed besides."""
        sides = {}
        for f, side in (*path, *allowed):
            sides.setdefault(f, []).append(side)
        inside = lambda f, entry: all(lies_in(entry, side, self.problem.largest) for side in sides[f])  # noqa: E731
        return prod(sum(fraction(w) for entry, w in self.entries[f] if inside(f, entry)) for f in sides)

    def check_all(self, path, values, sets, certificates):
        """That with some values of what varies every input of a box is an answer: of every row, none with these or others of
        some sets is proved to miss it.
        """
        stated, problem = self.statement, self.problem
        require(not any(self.whole[name] for name in CASES), "a box of answers of a question in cases")
        require(not any(self.whole.get(name) for name in ("values", "chances")), "a box of answers of sums")
        require(not stated["clauses"] and not stated["orders"], "a box of answers of more than sets and rows")
        require(len(certificates) == len(stated["rows"]), "one part for each row is needed")
        pinned, shape = [], (len(problem.points),)
        for p, pair in enumerate(zip(listed(values, "values", shape), listed(sets, "sets", shape), strict=True)):
            known = [listed(one, "values and sets of what varies", (len(self.varied),)) for one in pair]
            for f, x, pin in zip(self.varied, *known, strict=True):
                require(x is None or number(x, "a value of what varies") is None, "a value of what varies")
                row = [[None] * len(problem.features) for _ in problem.points]
                row[p][f] = x
                value, mine = values_of(problem, row)[p][f], [s for q, g, s in problem.domains() if (q, g) == (p, f)]
                check_set(pin)
                allowed = all(holds(s, value, problem.largest) for s in [pin, *mine])
                require(allowed, "a value of what varies is not allowed")
                pinned.append([p, f, pin])
        box = self.within(path)
        lists = box["statement"]
        for row, certificate in zip(stated["rows"], certificates, strict=True):
            missed = {**lists, "domain": [*lists["domain"], *pinned], "rows": [negated(row)]}
            check_none({**box, "statement": missed}, [certificate], len(problem.features))

    def words(self, low, high):
        """What is claimed."""
        say, names = Words(self.problem, {}), self.problem.statement["points"]
        free = ", ".join(say.features[f] for f in self.varied)
        what = f"with some values of {free} are an answer" if self.varied else "are an answer"
        yield f"of the measure below at least {decimal(low, floor)} and at most {decimal(high, ceil)} {what}."
        yield "It is a product: features are drawn one by one, and that inputs are so is trusted, not proved:"
        for f, entries in sorted(self.entries.items()):
            listed_ = "; ".join(f"{say.place(0, f, entry)}: {w}" for entry, w in entries)
            yield f"  {listed_}"
        yield f"The question about {' and '.join(p['name'] for p in names)}:"
        yield from list(in_words(self.problem))[1:]
        yield from in_further_words(say, self.whole, "  ")


def decimal(x, end):
    """A fraction in twelve digits, rounded to one side."""
    return f"{end(x * DIGITS) / DIGITS:.12f}"


def negated(row):
    """What an input satisfies if and only if it misses a row."""
    opposite = lambda x: str(-fraction(x))  # noqa: E731
    return {
        **row,
        "terms": [[opposite(c), p, o] for c, p, o in row["terms"]],
        "costs": [[p, f, [[s, opposite(c)] for s, c in steps], opposite(m)] for p, f, steps, m in row["costs"]],
        "bound": {
            "rational": opposite(row["bound"]["rational"]),
            "logs": [[opposite(c), a] for c, a in row["bound"]["logs"]],
        },
        "strict": not row["strict"],
    }
