"""The form of a certificate: rejects everything ambiguous, and everything that would be proved but not printed.

Nothing here can make a certificate accepted.
"""

import re

from .numbers import fraction, is_value, require

TEXT = re.compile(r"-?[0-9]+(/[0-9]+|\.[0-9]+)?")
NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
PROOFS = {"none": {"apart", "nodes"}, "found": {"inputs"}}
STATEMENT = {"models", "points", "same_except", "domain", "rows", "clauses", "orders"}
LEARNT = ("learnt",)
FURTHER = ("further",)  # what inputs are looked at for, and no proof is about
LISTS = ("domain", "rows", "clauses", "orders")
CASES, BY_VALUE = ("either", "changes", "apart"), ("values", "chances", "cavities")


def parts(item, named, what, maybe=()):
    require(type(item) is dict, f"{what} is no object")
    require(named <= item.keys() <= named | {*maybe}, f"{what} has the parts {', '.join(sorted(named))}")


def listed(item, what, count=None):
    require(type(item) is list and (count is None or len(item) in count), f"{what} is no list of the right length")
    return item


def index(x, end, what):
    require(type(x) is int and 0 <= x < end, f"{what} has an index that is no whole number from 0 to {end - 1}")


def value(x, kind, what):
    """A value that features of a number type can have; integers in JSON are checked as well."""
    require(is_value(x, kind), f"{what} has a number that is no {kind}")


def text(x, what):
    require(type(x) is str and TEXT.fullmatch(x), f"{what} has a number that is no text of a fraction")


def check_certificate(certificate):
    """The parts of a certificate, its models, and the proof; the statement needs the models (below)."""
    require(type(certificate) is dict, "not a certificate of version 1")
    version, claim = certificate.get("version"), certificate.get("claim")
    known = certificate.get("format") == "treesens-certificate" and type(version) is int and version == 1
    require(known and type(claim) is str and claim in PROOFS, "not a certificate of version 1")
    parts(certificate, {"format", "version", "claim", "statement", *PROOFS[claim]}, "the certificate", ["about"])
    maybe = LEARNT + FURTHER if claim == "found" else LEARNT
    parts(certificate["statement"], STATEMENT, "the statement", maybe)
    models = listed(certificate["statement"]["models"], "models")
    require(models, "a statement about no model")
    for m in models:
        check_model(m)
    require(len({m["sha256"] for m in models}) == len(models), "a model is named twice")
    if claim == "none":
        for t in listed(certificate["apart"], "the trees apart"):
            require(type(t) is int, "a tree apart is no whole number")
        for node in listed(certificate["nodes"], "the proof"):
            check_node(node)
    else:
        for point in listed(certificate["inputs"], "the inputs"):
            for x in listed(point, "an input"):
                require(x is None or value(x, "float64", "an input") is None, "an input")


def check_model(m):
    parts(m, {"sha256", "format", "trees", "base"}, "a model")
    require(type(m["sha256"]) is str and re.fullmatch("[0-9a-f]{64}", m["sha256"]), "a model without a SHA-256")
    index(m["trees"], 1 << 40, "the number of trees")
    for x in listed(m["base"], "the base margin"):
        text(x, "the base margin")


def check_node(node):
    listed(node, "a node of the proof", (0, 1, 2, 3))
    require(len(node) != 1 or node == ["sums"], "a node of the proof that has no meaning")
    if len(node) == 3:
        weights, exponent, changes = node
        runs = [x for change in listed(changes, "messages") for x in listed(change, "a message")]
        whole = all(type(x) is int for x in [*listed(weights, "weights"), exponent, *runs])
        require(whole and all(len(change) % 2 == 0 and change for change in changes), "messages are whole numbers")
    elif len(node) == 2:
        require(all(type(x) is int for x in node), "a cut is no whole number")


def check_statement(statement, models):
    """Checks that every index, name and set of a statement about these models is unambiguous."""
    points = listed(statement["points"], "points", (1, 2))
    for point in points:
        parts(point, {"name", "model"}, "a point")
        index(point["model"], len(models), "a point")
        require(type(point["name"]) is str and NAME.fullmatch(point["name"]), "the name of a point is no identifier")
    require(len({p["name"] for p in points}) == len(points), "two points have one name")
    learnt = check_learnt(statement, models, {p["model"] for p in points})
    first = models[points[0]["model"]]
    require(all((m.features, m.number) == (first.features, first.number) for m in models), "models of other features")
    features, kind = len(first.features), first.number
    if statement["same_except"] is not None:
        require(len(points) == 2, "one point agrees with no other")
        for f in listed(statement["same_except"], "the features that vary"):
            index(f, features, "the features that vary")
        require(len(set(statement["same_except"])) == len(statement["same_except"]), "a feature that varies twice")

    def place(part, what):
        p, f, allowed = listed(part, what, (3,))
        index(p, len(points), what)
        index(f, features, what)
        check_set(allowed, kind)

    for part in listed(statement["domain"], "the domain"):
        place(part, "the domain")
    for clause in listed(statement["clauses"], "clauses"):
        for part in listed(clause, "a clause"):
            place(part, "a clause")
    for order in listed(statement["orders"], "orders"):
        p, q, f = listed(order, "an order", (3,))
        index(p, len(points), "an order")
        index(q, len(points), "an order")
        index(f, features, "an order")
    for row in listed(statement["rows"], "rows"):
        check_row(row, [len(models[p["model"]].base) + learnt for p in points], features, kind)
    if "further" in statement:
        parts(statement["further"], {*CASES, "values", "chances"}, "what else is asked", BY_VALUE)
        check_further(statement, models, statement["further"])


def check_further(statement, models, asked):
    """Alternatives, limits of changes, sums of values and sums of probabilities."""
    points, first = statement["points"], models[statement["points"][0]["model"]]
    features, kind = len(first.features), first.number
    learnt = check_learnt(statement, models, {p["model"] for p in points})
    outputs = [len(models[p["model"]].base) + learnt for p in points]
    for name, end in (("changes", "most"), ("apart", "least")):
        for limit in listed(asked[name], "limits of changes"):
            parts(limit, {"features", end}, "a limit of changes")
            require(len(points) == 2, "one point has no changes")
            for f in listed(limit["features"], "the features that are counted"):
                index(f, features, "the features that are counted")
            require(len(set(limit["features"])) == len(limit["features"]), "a feature is counted twice")
            require(type(limit[end]) is int and limit[end] >= -1, "a limit of changes is no whole number from -1 on")
    for relation in listed(asked.get("values", []), "sums of values"):
        parts(relation, {"terms", "most", "strict"}, "a sum of values", ["scores"])
        check_scores(relation.get("scores", []), outputs)
        check_limit(relation, "most", "a sum of values")
        for term in listed(relation["terms"], "a sum of values"):
            check_value(term, len(points), features, kind)
    for chance in listed(asked.get("chances", []), "sums of probabilities"):
        parts(chance, {"terms", "least", "strict"}, "a sum of probabilities")
        check_limit(chance, "least", "a sum of probabilities")
        for term in listed(chance["terms"], "a sum of probabilities"):
            factor, exponents, *curve = listed(term, "a probability", (2, 3))
            text(factor, "a probability")
            if curve:  # a function of a sum of scores
                check_scores(exponents, outputs)
                check_curve(*curve)
                continue
            for exponent in listed(exponents, "a probability"):
                scores, constant = listed(exponent, "an exponent", (2,))
                text(constant, "an exponent")
                check_scores(scores, outputs)
    for one in listed(asked.get("cavities", []), "cavities"):
        check_cavities(one, len(points), features, kind)
    for disjunction in listed(asked["either"], "alternatives"):
        for one in listed(disjunction, "alternatives"):
            parts(one, {*LISTS, *CASES}, "an alternative", BY_VALUE)
            plain = {name: part for name, part in statement.items() if name not in FURTHER}
            check_statement({**plain, **{name: one[name] for name in LISTS}}, models)
            check_further(statement, models, one)


def check_curve(curve):
    """A function of a sum of scores s, or if it is `of_probability` of 1 / (1 + e^-s): the identity (null), 1 / (1 +
    e^(slope x + intercept)), or rising lines from knot to knot.
    """
    if curve is None:
        return
    sigmoid = type(curve) is dict and "slope" in curve
    parts(curve, {"of_probability", *(("slope", "intercept") if sigmoid else ("knots",))}, "a curve")
    require(type(curve["of_probability"]) is bool, "a flag is neither true nor false")
    if sigmoid:
        text(curve["slope"], "a curve")
        text(curve["intercept"], "a curve")
        return
    knots = [listed(knot, "a knot", (2,)) for knot in listed(curve["knots"], "knots")]
    for x in (x for knot in knots for x in knot):
        text(x, "a knot")
    columns = [list(map(fraction, column)) for column in zip(*knots)]
    require(knots and all(column == sorted(column) for column in columns), "knots that fall, or none")


def check_cavities(asked, points, features, kind):
    """The cells of some rows: sets of each of some features, and per row the number of its set, or null."""
    parts(asked, {"point", "width", "features", "cells", "rows"}, "cavities")
    index(asked["point"], points, "cavities")
    require(type(asked["width"]) is int and asked["width"] > 0, "the width of cavities is no whole number from 1 on")
    for f in listed(asked["features"], "the features of cavities"):
        index(f, features, "the features of cavities")
    count = len(set(asked["features"]))
    require(count == len(asked["features"]), "a feature of cavities is named twice")
    for sets in listed(asked["cells"], "cells", (count,)):
        for allowed in listed(sets, "cells"):
            check_set(allowed, kind)
    for row in listed(asked["rows"], "rows of cells"):
        for number, sets in zip(listed(row, "a row of cells", (count,)), asked["cells"]):
            require(number is None or index(number, len(sets), "a row of cells") is None, "a row of cells")


def check_limit(asked, end, what):
    text(asked[end], what)
    require(type(asked["strict"]) is bool, "a flag is neither true nor false")


def check_value(term, points, features, kind):
    """[factor, point, feature], or a distance, followed by its origin, its unit (null: 1 if unequal) and its power."""
    factor, p, f, *distance = listed(term, "a term of values", (3, 6))
    text(factor, "a term of values")
    index(p, points, "a term of values")
    index(f, features, "a term of values")
    if distance:
        other, unit, power = distance
        require(type(other) is dict and len(other) == 1, "a distance from nothing, or from two things")
        if "point" in other:
            index(other["point"], points, "a distance")
        else:
            parts(other, {"value"}, "a distance")
            require(other["value"] is None or value(other["value"], kind, "a distance") is None, "a distance")
        require(unit is None or text(unit, "a distance") is None, "a distance")
        require(unit is None or fraction(unit) > 0, "the unit of a distance is not above 0")
        require(type(power) is int and power in (1, 2), "the power of a distance is neither 1 nor 2")


def check_learnt(statement, models, seen):
    """Checks that every model but learnt trees belongs to a point; returns the number of outputs of these trees."""
    others = listed(statement.get("learnt", []), "what is learnt")
    for i in others:
        index(i, len(models), "what is learnt")
    require(len(set(others)) == len(others) and seen.isdisjoint(others), "what is learnt is named twice")
    require(seen.union(others) == set(range(len(models))), "a model that no point sees")
    require(
        all(models[i].learnt == (i in others) for i in range(len(models))),
        "trees that are learnt from rows are no model",
    )
    require(all(models[i].average == 1 for i in others), "what is learnt is no average")
    return sum(len(models[i].base) for i in others)


def check_set(allowed, kind):
    parts(allowed, set(), "a set", ["runs", "values", "whole", "missing"])
    require(not {"runs", "values"} <= allowed.keys(), "a set with values beside runs")
    require("whole" not in allowed or "runs" in allowed, "a set of whole numbers without runs")
    require(all(type(allowed.get(k, True)) is bool for k in ("whole", "missing")), "a flag is neither true nor false")
    for x in listed(allowed.get("values", []), "a set"):
        value(x, kind, "a set")
    for run in listed(allowed.get("runs", []), "a set"):
        for x in listed(run, "a run", (2,)):
            require(x is None or value(x, kind, "a run") is None, "a run")
        require(None in run or run[0] <= run[1], "a run ends before it begins")


def check_scores(terms, outputs):
    for term in listed(terms, "scores"):
        c, p, o = listed(term, "a score", (3,))
        text(c, "a score")
        index(p, len(outputs), "a score")
        index(o, outputs[p], "a score")


def check_row(row, outputs, features, kind):
    """`outputs`: the number of outputs of every point."""
    parts(row, {"terms", "costs", "bound", "strict"}, "a row", ["name"])
    require(type(row["strict"]) is bool, "a flag is neither true nor false")
    parts(row["bound"], {"rational", "logs"}, "a bound")
    text(row["bound"]["rational"], "a bound")
    for log in listed(row["bound"]["logs"], "logarithms"):
        for x in listed(log, "a logarithm", (2,)):
            text(x, "a logarithm")
    check_scores(row["terms"], outputs)
    for cost in listed(row["costs"], "costs"):
        p, f, steps, missing = listed(cost, "a cost", (4,))
        index(p, len(outputs), "a cost")
        index(f, features, "a cost")
        text(missing, "a cost")
        starts = [listed(step, "a step of costs", (2,))[0] for step in listed(steps, "costs")]
        require(starts and starts[0] is None, "costs begin at the least value")
        for (start, price), before in zip(steps, [None, None, *starts[1:]]):
            text(price, "a cost")
            require(start is None or value(start, kind, "costs") is None, "costs")
            require(before is None or (start is not None and before < start), "costs are out of order")
        require(None not in starts[1:], "costs are out of order")
