"""Shares: two numbers with the share of a measure that a question affects between them.

Boxes without inputs and boxes of affected inputs are disjoint; the rest is open. A measure draws features one after the
other: a group of values, with chances that depend on the group of an earlier draw, and then a set of the group.
"""

from collections import namedtuple
from fractions import Fraction
from math import ceil, floor
from operator import mul

from .by_value import holds, values_of
from .cases import check_none, checked
from .form import BY_VALUE, CASES, check_set, check_statement, index, listed, parts, text, value
from .numbers import fraction, require
from .words import Words, in_further_words, stated_words

MOST_LEAVES, DIGITS = 100_000, 10**12
Draw = namedtuple(
    "Draw", "feature sets after chances"
)  # sets with their weights and groups; chances by group of `after`


def share(claim, part, models_of, files=None):
    """The claim that the share of a whole question lies between two numbers, line by line; Rejected if not."""
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
            apart(below, above, problem.number)
            stack += [(right, (*path, (f, above))), (left, (*path, (f, below)))]
        elif "none" in node:
            parts(node, {"none"}, "a box without answers")
            check_none(seen.within(path), [part(i) for i in listed(node["none"], "parts")], len(problem.features))
            none += seen.mass(path)
        else:
            parts(node, {"all", "values", "sets"}, "a box of answers")
            seen.check_all(path, node["values"], node["sets"], [part(i) for i in listed(node["all"], "parts")])
            low += seen.mass((*path, *seen.allowed()))
    return seen.words(low, 1 - none, files)


def apart(low, high, kind):
    """Checks that no value is on both sides of a cut."""
    for side in (low, high):
        check_set(side, kind)
        parts(side, {"runs"}, "a side of a cut", ["missing"])
        require(len(side["runs"]) <= 1, "a side of a cut is more than a run")
    require(not (low.get("missing") and high.get("missing")), "a missing value is on both sides of a cut")
    if low["runs"] and high["runs"]:
        end, start = low["runs"][0][1], high["runs"][0][0]
        require(None not in (end, start) and end < start, "a value is on both sides of a cut")


def filled(entry):
    """True if a set holds a number, or a missing value."""
    whole = entry.get("whole")
    runs = [
        None in run or (ceil(run[0]) <= floor(run[1]) if whole else run[0] <= run[1]) for run in entry.get("runs", [])
    ]
    return any(runs) or bool(entry.get("values")) or bool(entry.get("missing"))


def lies_in(entry, allowed, largest):
    """True if a set is contained in another one."""
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
    """A whole question, and a measure of the features that do not vary, by draws."""

    def __init__(self, problem, whole, measure):
        self.problem, self.whole, self.statement = problem, whole, whole["statement"]
        same_except, features = self.statement["same_except"], range(len(problem.features))
        require(len(problem.points) == 1 or same_except is not None, "points that may differ in all features")
        self.varied, self.draws, self.entries = sorted(same_except or ()), [], {}
        for one in listed(measure, "a measure"):
            self.add(*listed(one, "the measure of a feature", (2, 4)))
        fixed = [f for f in features if f not in self.varied]
        require(sorted(self.entries) == fixed, "a measure of other features than those that do not vary")

    def add(self, f, entries, *drawn):
        """One draw: of a feature, or of a group alone, on which others depend."""
        after, chances = drawn or (None, [["1"]])
        if after is not None:
            index(after, len(self.draws), "what a feature is drawn after")
        above = 1 if after is None else len(self.draws[after].chances[0])
        rows = [[weight(x) for x in listed(row, "chances")] for row in listed(chances, "chances", (above,))]
        require(all(len(row) == len(rows[0]) for row in rows), "chances of other groups")
        require(all(sum(row) == 1 for row in rows), "the chances of groups do not add up to 1")
        sets, total = [], [Fraction(0)] * len(rows[0])
        for entry in listed(entries, "the measure of a feature"):
            allowed, part, *others = listed(entry, "a part of a measure", (2, 3))
            (group,) = others or [0]
            index(group, len(total), "the group of a part of a measure")
            check_set(allowed, self.problem.number)
            require(filled(allowed), "a part of a measure without values")
            sets.append((allowed, weight(part), group))
            total[group] += weight(part)
        if f is None:
            require(not sets, "values of no feature")
        else:
            index(f, len(self.problem.features), "the measure of a feature")
            require(f not in self.entries, "a feature is measured twice")
            require(all(x == 1 for x in total), "the measure of a feature does not add up to 1")
            self.entries[f] = sets
        self.draws.append(Draw(f, sets, after, rows))

    def within(self, path):
        """The question about a box."""
        sets = [[0, f, side] for f, side in path]
        stated = {**self.statement, "domain": [*self.statement["domain"], *sets]}
        check_statement(stated, self.problem.models)
        return {**self.whole, "statement": stated}

    def allowed(self):
        """The constraints on the features that do not vary, and on no other one."""
        return [(f, allowed) for _, f, allowed in self.problem.domains() if f in self.entries]

    def mass(self, inside, outside=()):
        """The weight of all choices of sets that are inside the sides `inside` and outside the sides `outside`."""
        found, waiting = Fraction(1), {}
        for i, (f, sets, after, chances) in reversed(list(enumerate(self.draws))):
            here = waiting.pop(i, None)
            wanted, missed = ([side for g, side in sides if g == f] for sides in (inside, outside))
            if wanted or missed:
                kept = [Fraction(0)] * len(chances[0])
                for entry, part, group in sets:
                    lies = lambda side: lies_in(entry, side, self.problem.largest)  # noqa: B023, E731
                    if all(map(lies, wanted)) and not any(map(lies, missed)):
                        kept[group] += part
                here = kept if here is None else list(map(mul, here, kept))
            if here is None:
                continue  # whatever is drawn
            said = [sum(map(mul, row, here)) for row in chances]
            if after is None:
                found *= said[0]
            else:
                waiting[after] = list(map(mul, waiting[after], said)) if after in waiting else said
        return found

    def check_all(self, path, values, sets, certificates):
        """Checks that with some values of the varied features every input of a box is an answer: a part proves for each row
        that no input with values in these or given sets misses it.
        """
        stated, problem = self.statement, self.problem
        require(not any(self.whole[name] for name in CASES), "a box of answers of a question in cases")
        require(not any(self.whole.get(name) for name in BY_VALUE), "a box of answers of sums, or of cavities")
        require(not stated["orders"], "a box of answers of more than sets, clauses and rows")
        require(len(certificates) == len(stated["rows"]), "one part for each row is needed")
        pinned, shape, shown = [], (len(problem.points),), {}
        for p, pair in enumerate(zip(listed(values, "values", shape), listed(sets, "sets", shape), strict=True)):
            known = [listed(one, "values and sets of what varies", (len(self.varied),)) for one in pair]
            for f, x, pin in zip(self.varied, *known, strict=True):
                if x is not None:
                    value(x, problem.number, "a value of what varies")
                row = [[None] * len(problem.features) for _ in problem.points]
                row[p][f] = x
                stored, mine = values_of(problem, row)[p][f], [s for q, g, s in problem.domains() if (q, g) == (p, f)]
                check_set(pin, problem.number)
                allowed = all(holds(s, stored, problem.largest) for s in [pin, *mine])
                require(allowed, "a value of what varies is not allowed")
                pinned.append([p, f, pin])
                shown[p, f] = stored
        counted = (*path, *self.allowed())
        for clause in stated["clauses"]:
            met = any((p, f) in shown and holds(s, shown[p, f], problem.largest) for p, f, s in clause)
            rest = [(f, s) for _, f, s in clause if f in self.entries]
            require(met or self.mass(counted, rest) == 0, "an input of a box of answers may not satisfy a clause")
        box = self.within(path)
        lists = box["statement"]
        for row, certificate in zip(stated["rows"], certificates, strict=True):
            missed = {**lists, "domain": [*lists["domain"], *pinned], "rows": [negated(row)]}
            check_none({**box, "statement": missed}, [certificate], len(problem.features))

    def words(self, low, high, files=None):
        """The claim in words."""
        say, names = Words(self.problem), self.problem.statement["points"]
        free = ", ".join(say.features[f] for f in self.varied)
        what = f"with some values of {free} are an answer" if self.varied else "are an answer"
        yield f"of the measure below at least {decimal(low, floor)} and at most {decimal(high, ceil)} {what}."
        tree = any(len(draw.chances[0]) > 1 for draw in self.draws)
        how = "tree: features are drawn one after the other" if tree else "product: features are drawn one by one"
        yield f"It is a {how}, and that inputs are so is trusted, not proved:"
        for i, draw in enumerate(self.draws):
            yield from self.drawn(i, draw, say, tree)
        yield f"The question about {' and '.join(p['name'] for p in names)}:"
        yield from stated_words(self.problem, files)
        yield from in_further_words(say, self.whole, "  ")

    def drawn(self, i, draw, say, tree):
        """One draw: the chances of its groups, and the weights of the sets of each."""
        if tree:
            what = "nothing but a group" if draw.feature is None else say.features[draw.feature]
            yield f"  draw {i}: {what}, after {'none' if draw.after is None else f'draw {draw.after}'}"
            for above, row in enumerate(draw.chances):
                given = "" if draw.after is None else f" if draw {draw.after} is of group {above}"
                yield f"    chances of groups{given}: {', '.join(map(str, row))}"
        for group in range(len(draw.chances[0])):
            mine = [f"{say.place(0, draw.feature, entry)}: {w}" for entry, w, g in draw.sets if g == group]
            if mine:
                yield f"    group {group}: {'; '.join(mine)}" if tree else f"  {'; '.join(mine)}"


def weight(x):
    """A share of a measure."""
    text(x, "a weight")
    require(fraction(x) >= 0, "a weight below 0")
    return fraction(x)


def decimal(x, end):
    """A fraction in twelve digits, rounded to one side."""
    return f"{end(x * DIGITS) / DIGITS:.12f}"


def negated(row):
    """The constraint that holds if and only if a row fails."""
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
