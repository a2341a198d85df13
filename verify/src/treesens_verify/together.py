"""Manifests: certificates with a joint claim. Every part is checked; this file decides what follows from all of them.

A claim is derived from the statements of its parts, compared part by part. A manifest adds no fact of its own.
"""

import hashlib
import json
import math
import re

from .by_value import Given, values_of
from .cases import cases, check_found, check_none, checked
from .core import Problem
from .form import FURTHER, check_model, check_set, check_statement, index, listed, parts, value
from .numbers import fraction, require, step
from .shares import share
from .words import Words, in_further_words, in_words, models_in_words, names_of, stated_words

PLAIN = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]*\.cert\.xz")
MOST_PARTS, MOST_SETS = 100_000, 100_000
ASKED = ("domain", "clauses", "orders")
KINDS = {
    "each": {"parts"},
    "same": {"models"},
    "equal": {"parts"},
    "between": {"reached", "beyond"},
    "border": {"features", "parts"},
    "reason": {"features", "row", "kept", "parts"},
    "smallest": {"features", "row", "kept", "parts"},
    "change": {"features", "row", "kept", "parts"},
    "rows": {"parts"},
    "cover": {"tree"},
    "cases": {"whole", "parts"},
    "answers": {"whole", "rows"},
    "share": {"whole", "measure", "tree"},
}


def check_manifest(manifest):
    """Checks the form of a manifest: names of files next to it, and claims of known kinds."""
    parts(manifest, {"format", "version", "parts", "claims"}, "the manifest", ["about"])
    known = manifest["format"] == "treesens-manifest" and type(manifest["version"]) is int and manifest["version"] == 1
    require(known, "not a manifest of version 1")
    for part in listed(manifest["parts"], "the parts"):
        parts(part, {"file", "sha256"}, "a part")
        require(type(part["file"]) is str and PLAIN.fullmatch(part["file"]), "a part is no file beside the manifest")
        require(
            type(part["sha256"]) is str and re.fullmatch("[0-9a-f]{64}", part["sha256"]), "a part without a SHA-256"
        )
    require(len(manifest["parts"]) <= MOST_PARTS, "too many parts")
    for claim in listed(manifest["claims"], "the claims"):
        require(type(claim) is dict and claim.get("kind") in KINDS, "a claim of an unknown kind")
        parts(claim, {"kind", *KINDS[claim["kind"]]}, "a claim")
    require(manifest["claims"], "a manifest that claims nothing")


def together(claim, certificates, models_of, files=None):
    """The joint claim of accepted certificates, line by line; Rejected if it does not follow.

    `certificates` are all parts, `models_of(stated)` reads a model as a certificate states it. `files`: names of files by
    their SHA-256. The lines contain the complete statement, so that the manifest need not be opened.
    """

    def part(i):
        index(i, len(certificates), "a claim")
        return certificates[i]

    def several(items):
        require(items, "a claim of no parts")
        return [part(i) for i in listed(items, "the parts of a claim")]

    kind = claim["kind"]
    if kind == "each":
        several(claim["parts"])
        return [f"these parts hold, each by itself: {', '.join(map(str, claim['parts']))}"]
    if kind == "same":
        return same(claim["models"], models_of, files)
    if kind == "equal":
        return equal(several(claim["parts"]), models_of, files)
    if kind == "between":
        ends = (None if claim[end] is None else part(claim[end]) for end in ("reached", "beyond"))
        return between(*ends, models_of, files)
    if kind == "rows":
        return rows(several(claim["parts"]), models_of, files)
    if kind == "cover":
        return cover(claim["tree"], part, models_of, files)
    if kind == "cases":
        mine = [part(i) for i in listed(claim["parts"], "the parts of a claim")]
        return cases(claim["whole"], mine, models_of, files)
    if kind == "answers":
        return answers(claim, part, models_of, files)
    if kind == "share":
        return list(share(claim, part, models_of, files))
    if kind == "border":
        return border(claim["features"], several(claim["parts"]), models_of, files)
    known = {"reason": reason, "smallest": smallest, "change": change}[kind]
    return known(claim["features"], OfRow(claim, several(claim["parts"]), models_of, files))


def statement_of(certificate):
    """A statement without the names of its rows, which mean nothing, and without further constraints on its inputs, which
    satisfy the statement as well.
    """
    stated = {name: asked for name, asked in certificate["statement"].items() if name not in FURTHER}
    return {**stated, "rows": [{k: v for k, v in row.items() if k != "name"} for row in stated["rows"]]}


def alike(certificates, *but):
    """The statements, which are equal but for some of their parts."""
    found = [statement_of(one) for one in certificates]
    rest = [{k: v for k, v in one.items() if k not in but} for one in found]
    require(all(one == rest[0] for one in rest), "parts of a claim differ in what they should have in common")
    return found


def problem_of(statement, models_of, **instead):
    """A statement, with some of its parts replaced."""
    stated = {**statement, **instead}
    return Problem(stated, [models_of(model) for model in stated["models"]])


def same(stated, models_of, files=None):
    """Two model files hold the same trees."""
    for model in listed(stated, "the models", (2,)):
        check_model(model)
    one, other = map(models_of, stated)
    for name in ("features", "trees", "outputs", "base", "number", "average"):
        require(getattr(one, name) == getattr(other, name), f"the models differ in their {name}")
    return ["these models are the same, tree by tree:", *models_in_words(stated, [one, other], files)]


def equal(certificates, models_of, files=None):
    """No score of one model exceeds, or falls below, that of the other one at the same input."""
    found, directions = alike(certificates, "rows"), set()
    first = found[0]
    require(len(first["points"]) == 2 and first["same_except"] == [], "the points are not one input")
    require(len(first["models"]) == 2, "more than the scores of two models are compared")
    require({p["model"] for p in first["points"]} == {0, 1}, "the points do not see both models")
    require(not first["clauses"] and not first["orders"], "equal scores are claimed where more than sets is asked")
    for certificate, stated in zip(certificates, found):
        require(certificate["claim"] == "none" and len(stated["rows"]) == 1, "a part does not compare two scores")
        (row,) = stated["rows"]
        plain = not row["costs"] and not row["bound"]["logs"] and fraction(row["bound"]["rational"]) == 0
        terms = sorted((fraction(c), p, o) for c, p, o in row["terms"])
        require(plain and row["strict"] and len(terms) == 2, "a part does not compare two scores")
        (low, p, o), (high, q, other) = terms
        require(low == -1 and high == 1 and p != q and o == other, "a part does not compare two scores")
        directions.add((p, o))
    outputs = [len(models_of(stated).base) for stated in first["models"]]
    require(outputs[0] == outputs[1], "one model has more scores than the other one")
    wanted = {(p, o) for p in range(2) for o in range(outputs[0])}
    require(directions == wanted, "a score, or a direction, is compared by no part")
    return [
        "all scores of both models are equal, for all of these inputs:",
        *stated_words(problem_of(first, models_of, rows=[]), files),
    ]


def between(reached, beyond, models_of, files=None):
    """Inputs reach one bound of rows, and none reaches more than another."""
    require(beyond is not None or reached is not None, "a claim of no parts")
    require(reached is None or reached["claim"] == "found", "what is reached is not shown by inputs")
    require(beyond is None or beyond["claim"] == "none", "that nothing is beyond is not proved")
    if reached is None or beyond is None:
        (only,) = alike([beyond if reached is None else reached])
        said = "nothing reaches" if reached is None else "some inputs reach"
        return [f"{said} all of this:", *stated_words(problem_of(only, models_of), files)]
    low, high = alike([reached, beyond], "rows")
    require(len(low["rows"]) == len(high["rows"]), "the parts have other rows")
    moved = []
    for r, (one, other) in enumerate(zip(low["rows"], high["rows"])):
        require(one["terms"] == other["terms"] and one["costs"] == other["costs"], "the parts have other rows")
        require(one["bound"]["logs"] == other["bound"]["logs"], "the parts have other rows")
        ends = [fraction(row["bound"]["rational"]) for row in (one, other)]
        require(ends[0] <= ends[1], "a bound lies below what is reached")
        if one != other:
            moved.append(r)
    require(moved, "the parts contradict each other")
    kept = [row for r, row in enumerate(low["rows"]) if r not in moved]
    problem = problem_of(low, models_of, rows=kept)
    ends = [" and ".join(map(Words(problem).row, (one["rows"][r] for r in moved))) for one in (low, high)]
    both = " together" * (len(moved) > 1)
    return [
        "among these inputs:",
        *stated_words(problem, files),
        f"  some reach{both} {ends[0]}",
        f"  none reaches{both} {ends[1]}",
    ]


def minimal_hitting_sets(sets):
    """All minimal sets that intersect each given one (Berge)."""
    found = {frozenset()}
    for one in sets:
        hit = {h for h in found if h & one}
        more = {h | {x} for h in found - hit for x in one}
        found = hit | {m for m in more if not any(h <= m for h in hit)}
        require(len(found) <= MOST_SETS, "too many sets of features")
    return found


def border(features, certificates, models_of, files=None):
    """Exactly the supersets of the found sets have a pair: every other set lies inside one that is proved to have none."""
    found = alike(certificates, "same_except")
    problem = problem_of(found[0], models_of)
    every, names = chosen(features, problem), names_of(problem.features)
    named = lambda some: ", ".join(names[f] for f in sorted(some)) or "nothing"  # noqa: E731
    require(all(one["same_except"] is not None for one in found), "a part in which all features may differ")
    sets = [(c["claim"], frozenset(one["same_except"])) for c, one in zip(certificates, found)]
    require(all(one <= every for _, one in sets), "a part lets other features vary")
    having = [one for claim, one in sets if claim == "found"]
    lacking = [one for claim, one in sets if claim == "none"]
    require(not any(h <= n for h in having for n in lacking), "the parts contradict each other")
    # A largest set around none of those that have a pair leaves out one feature of each.
    for left_out in minimal_hitting_sets(having):
        rest = every - left_out
        require(any(rest <= n for n in lacking), f"nothing is proved of the set {named(rest)}")
    least = [h for h in having if not any(other < h for other in having)]
    shown = sorted({named(h) for h in least})
    return [
        f"of all sets of {named(every)} exactly those have a pair that hold one of:",
        *(f"  {words}" for words in shown or ["(none does)"]),
        "A set has a pair if these inputs exist, with the same values of all features but those of the set:",
        *stated_words(problem, files, agreement=False),
    ]


def chosen(features, problem):
    """The numbers of a claim's features."""
    for f in listed(features, "the features of a claim"):
        index(f, len(problem.features), "the features of a claim")
    require(len(set(features)) == len(features), "a feature twice")
    return frozenset(features)


class OfRow:
    """Parts about a row. Its values are `row`, a set for a feature. A part has those of the features in its `kept`; its
    other constraints are its case.
    """

    def __init__(self, claim, certificates, models_of, files=None):
        found = alike(certificates, "rows", *ASKED)
        require(len(found[0]["points"]) == 1, "what is claimed of a row is about one input")
        self.files, problem = files, problem_of(found[0], models_of)
        self.every, self.values = frozenset(range(len(problem.features))), {}
        for one in listed(claim["row"], "the values of a row"):
            f, allowed = listed(one, "a value of a row", (2,))
            index(f, len(self.every), "a value of a row")
            require(f not in self.values, "a row with two values of a feature")
            check_set(allowed, problem.number)
            self.values[f] = allowed
        kept = [frozenset(listed(one, "what a part keeps")) for one in listed(claim["kept"], "what parts keep")]
        require(len(kept) == len(found), "not every part says what it keeps")
        cases = [self.case(*one) for one in zip(found, kept)]
        # A feature without a set is never missing, so a part that leaves it out says nothing of a missing value.
        missing = {f for f in frozenset().union(*kept) if self.values[f].get("missing")}
        free = (all(f in {g for _, g, _ in case["domain"]} for f in missing) for case in cases)
        require(all(free), "a missing value is pinned where none is free")
        self.cases = cases
        common = {name: [x for x in cases[0][name] if all(x in case[name] for case in cases)] for name in ASKED}
        self.common = problem_of({**found[0], "rows": [], **common}, models_of)
        self.say = Words(self.common)
        # What some cases say of a feature, and others do not, each says by itself.
        self.own = {f for case in cases for _, f, _ in case["domain"]}.difference(f for _, f, _ in common["domain"])
        self.lacking = [(k, case) for k, case, c in zip(kept, cases, certificates) if c["claim"] == "none"]
        self.having = [k for k, c in zip(kept, certificates) if c["claim"] == "found"]

    def case(self, stated, kept):
        """The constraints of a part beyond the values that it keeps."""
        rest = list(stated["domain"])
        for f in kept:
            require(f in self.values and [0, f, self.values[f]] in rest, "a part does not keep what it says")
            rest.remove([0, f, self.values[f]])
        rest.sort(key=json.dumps)
        return {"rows": stated["rows"], **{name: stated[name] for name in ASKED}, "domain": rest}

    def chosen(self, features):
        return chosen(features, self.common)

    def domain(self):
        """The constraints of all cases on single features, line by line."""
        return stated_words(self.common, self.files, but=self.own)

    def words(self, case):
        """The constraints of a case beyond the domain."""
        stated = self.common.statement
        mine = {name: [x for x in case[name] if x not in stated[name]] for name in ASKED}
        here = self.own.difference(f for _, f, _ in mine["domain"])
        free = [self.say.free(0, self.every - here)] if here else []
        return " and ".join([*self.say.rows(case, ""), *self.say.sets(mine, ""), *free]) or "true"

    def with_values(self, features):
        told = sorted(f for f in features if any(f in k for k in (*self.having, *(k for k, _ in self.lacking))))
        return " and ".join(self.say.place(0, f, self.values[f]) for f in told) or "whatever its values are"


def holds_all_of(one, case):
    """True if one case has every input of another: the other has all constraints of the one, and lists as many features as
    perhaps missing.
    """
    sure = {f for _, f, _ in one["domain"]}.union(f for _, f, allowed in case["domain"] if not allowed.get("missing"))
    asked = all(x in case[name] for name in ("rows", *ASKED) for x in one[name])
    return asked and all(f in sure for _, f, _ in case["domain"])


def reason(features, seen):
    """Inputs that agree with a row on these features are in none of the cases, and each of the features is needed."""
    least, kinds = seen.chosen(features), []
    for k, case in seen.lacking:
        if k <= least and case not in kinds:
            kinds.append(case)
    require(all(any(holds_all_of(one, case) for one in kinds) for case in seen.cases), "a case is left open")
    for f in least:
        shown = any(least - {f} <= k and f not in k for k in seen.having)
        require(shown, "a feature of the reason may be left out")
    return [
        "among these inputs:",
        *seen.domain(),
        f"  if {seen.with_values(least)}, none of these cases holds:",
        *(f"  case {i}: {seen.words(case)}" for i, case in enumerate(kinds)),
        "  if any one of these features is free, there are inputs of one of the cases",
    ]


def smallest(features, seen):
    """A reason, with no smaller one: each holds a feature that every input of another class leaves free."""
    said = reason(features, seen)
    least = min((len(one) for one in minimal_hitting_sets([seen.every - k for k in seen.having])), default=0)
    require(least >= len(features), "a reason may have fewer features")
    return [
        *said,
        f"  and no {len(features) - 1} features or fewer have such values" if features else "  of no features",
    ]


def change(features, seen):
    """Inputs that differ from a row in these features alone satisfy the rows, and none that keeps one of these does."""
    mine = seen.chosen(features)
    require(
        all(case == seen.cases[0] for case in seen.cases), "parts of a claim differ in what they should have in common"
    )
    others = seen.every - mine
    require(any(others <= k for k in seen.having), "no such change is shown")
    for f in mine:
        require(any(k <= others | {f} for k, _ in seen.lacking), "a feature of the change may be left out")
    return [
        "among these inputs:",
        *seen.domain(),
        f"  from one with {seen.with_values(seen.every)}, a change of these alone reaches {seen.words(seen.cases[0])}:",
        f"  {', '.join(seen.say.features[f] for f in sorted(mine)) or 'nothing'}",
        "  no change of only some of these features does",
    ]


def rows(certificates, models_of, files=None):
    """The number of inputs, each given by one set per feature, that are, or have, an answer."""
    found, bases, sets = [statement_of(one) for one in certificates], [], []
    features = len(models_of(found[0]["models"][0]).features)
    for stated in found:
        base, mine = stated["domain"][:-features], stated["domain"][-features:]
        require(
            [part[:2] for part in mine] == [[0, f] for f in range(features)], "a row without a set for each feature"
        )
        bases.append({**stated, "domain": base})
        sets.append(mine)
    require(all(base == bases[0] for base in bases), "parts of a claim differ in what they should have in common")
    yes = sum(one["claim"] == "found" for one in certificates)
    return [
        f"of {len(certificates)} rows, each one of a part (a part stands for all rows of its sets), {yes} have an answer",
        which(sets),
        OF_SETS,
        *stated_words(problem_of(bases[0], models_of), files),
    ]


OF_SETS = "The question, in which the features of the first point are as the sets of a row say, too:"


def which(rows):
    """The counted rows, by the SHA-256 of their list; certificates do not say which table they come from."""
    texts = [json.dumps(row, separators=(",", ":"), sort_keys=True) for row in rows]
    digest = hashlib.sha256(f"[{','.join(texts)}]".encode()).hexdigest()
    return f"Rows may be equal (different ones: {len(set(texts))} of {len(texts)}). Their list in JSON has the SHA-256 {digest}"


def answers(claim, part, models_of, files=None):
    """The number of some rows with an answer of a whole question: each is given by one set per feature, and has parts.

    The rows of a question about one input may be given by their values instead: then each is evaluated.
    """
    whole, count = claim["whole"], 0
    problem, seen = checked(whole, models_of), {}
    every = [[0, f] for f in range(len(problem.features))]
    maybe = {f for p, f, _ in whole["statement"]["domain"] if p == 0}
    require(claim["rows"], "a claim of no parts")
    question = [*stated_words(problem, files), *in_further_words(Words(problem), whole, "  ")]
    if any(type(row) is dict and "values" in row for row in listed(claim["rows"], "rows")):
        for row in claim["rows"]:
            parts(row, {"values"}, "a row")
            count += is_answer(problem, whole, listed(row["values"], "the values of a row"))
        said = f"of {len(claim['rows'])} rows, each given by its values, {count} are an answer of the question:"
        return [said, *question, which([row["values"] for row in claim["rows"]])]
    for row in claim["rows"]:
        parts(row, {"sets", "parts"}, "a row")
        sets = [listed(one, "a set of a row", (3,)) for one in listed(row["sets"], "the sets of a row")]
        require([one[:2] for one in sets] == every, "a row without a set for each feature")
        key = json.dumps(row)
        if key not in seen:
            stated = {**whole["statement"], "domain": [*whole["statement"]["domain"], *sets]}
            check_statement(stated, problem.models)
            lost = any(allowed.get("missing") and f not in maybe for _, f, allowed in sets)
            require(not lost, "a row has a missing value where the question has none")
            mine = [part(i) for i in listed(row["parts"], "the parts of a row")]
            seen[key] = any(one["claim"] == "found" for one in mine)
            if seen[key]:
                require(len(mine) == 1, "an answer of a row has one part")
                check_found({**whole, "statement": stated}, mine[0])
            else:
                check_none({**whole, "statement": stated}, mine, len(every))
        count += seen[key]
    return [
        f"of {len(claim['rows'])} rows, each given by one set for each feature, {count} have an answer.",
        which([row["sets"] for row in claim["rows"]]),
        OF_SETS,
        *question,
    ]


def is_answer(problem, whole, values):
    """True if one input satisfies a whole question, by value."""
    require(len(problem.points) == 1, "a row of values is more than one input")
    for x in values:
        require(x is None or value(x, problem.number, "a value of a row") is None, "a value of a row")
    x = values_of(problem, [values])
    asked = {**whole["statement"], **{k: v for k, v in whole.items() if k != "statement"}, "domain": problem.domains()}
    surely, perhaps = (Given(problem, x, sure).satisfies(asked) for sure in (True, False))
    require(surely == perhaps, "a row is too close to a bound to be told from it")
    return surely


def cover(tree, part, models_of, files=None):
    """Parts of one domain, each without inputs, that cover all of it: the statement without their sets has no inputs."""
    leaves, cuts, stack = [], [], [(tree, ())]
    while stack:
        node, path = stack.pop()
        require(len(leaves) + len(stack) <= MOST_PARTS, "too many parts")
        if type(node) is int:
            leaves.append((part(node), path))
            continue
        p, f, low, high, left, right = listed(node, "a cut", (6,))
        cuts.append((p, f, low, high))
        stack += [(right, (*path, [p, f, high])), (left, (*path, [p, f, low]))]
    bases = []
    for certificate, path in leaves:
        stated = statement_of(certificate)
        count = len(stated["domain"]) - len(path)
        require(certificate["claim"] == "none", "a part of the domain has inputs")
        require(count >= 0 and stated["domain"][count:] == [*path], "a part is about other cells than its place says")
        bases.append({**stated, "domain": stated["domain"][:count]})
    require(all(base == bases[0] for base in bases), "parts of a claim differ in what they should have in common")
    models = [models_of(bases[0]["models"][point["model"]]) for point in bases[0]["points"]]
    for p, f, low, high in cuts:
        mine = [allowed for q, g, allowed in bases[0]["domain"] if (q, g) == (p, f)]
        never_missing = not mine or any(allowed.get("missing", False) is False for allowed in mine)
        model = models[p]
        check_cut(low, high, model.number, f in model.categories, never_missing)
    problem = problem_of(bases[0], models_of)
    return [f"{len(leaves)} parts cover a whole:", *in_words(problem, files)]


def check_cut(low, high, kind, codes, never_missing):
    """Checks two sets that together hold every value: up to a float, and from the next one on; one of them holds a missing
    value.
    """
    for side in (low, high):
        check_set(side, kind)
        parts(side, {"runs"}, "a side of a cut", ["missing"])
        require(len(side["runs"]) == 1, "a side of a cut is no run")
    kept = low.get("missing", False) is True or high.get("missing", False) is True
    require(kept or never_missing, "a cut loses the missing value")
    (first, end), (start, last) = low["runs"][0], high["runs"][0]
    require(first is None or (codes and first == 0), "a cut loses the least values")
    require(last is None and None not in (end, start), "a cut loses the greatest values")
    require(start <= (math.floor(end) + 1 if codes else step(end, 1, kind)), "a cut loses the values in the middle")
