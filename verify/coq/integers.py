"""Writes a certificate of `none` as the integers that the checker extracted from Coq reads (Read.v defines their order).

    python verify/coq/integers.py FILE.cert.xz --model MODEL.json > FILE.integers

It reads with `treesens_verify`: model files, floats as fractions, logarithms. Cells, variables and units of rows are written as
well, but nobody has to trust them: the checker finds out whether they fit the statement.
"""

import argparse
import math
import sys
from functools import reduce
from itertools import chain
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "src"))
import treesens_verify as verify
from treesens_verify.numbers import fraction


class Unit:
    """Numbers of a statement in units in which all of them are whole; infinite ones lie beyond all others."""

    def __init__(self, numbers, largest):
        finite = [x for x in numbers if math.isfinite(x)]
        self.parts = reduce(math.lcm, (x.as_integer_ratio()[1] for x in finite), 1)
        self.beyond = 2 * max(map(self.whole, [largest, *map(abs, finite)]))

    def whole(self, x):
        if math.isinf(x):
            return self.beyond if x > 0 else -self.beyond
        above, below = x.as_integer_ratio()
        return above * self.parts // below


def listed(items, write=lambda x: [x]):
    """How many, and then each."""
    items = list(items)
    return chain([len(items)], *map(write, items))


def numbers_of(problem, sets):
    """Every number that values are compared with."""
    yield from chain(*problem.cuts)
    for _, _, allowed in sets:
        yield from allowed.get("values", ())
        yield from (x for run in allowed.get("runs", ()) for x in run if x is not None)


def tree(model, t, unit, at=0):
    node = model.trees[t].nodes[at]
    if len(node) == 1:
        pairs = [x.as_integer_ratio() for x in node[0]]
        return [0, *listed(above * (model.scale // below) for above, below in pairs)]
    feature, test, missing, left, right = node
    asks = [1, *listed(sorted(test))] if isinstance(test, frozenset) else [0, unit.whole(test)]
    children = (tree(model, t, unit, child) for child in (left, right))
    return chain([1, feature, *asks, int(missing)], *children)


def place_set(problem, unit, part):
    p, f, allowed = part
    ends = [-problem.largest, problem.largest]
    runs = [
        [unit.whole(end if x is None else x) for x, end in zip(run, ends, strict=True)]
        for run in allowed.get("runs", ())
    ]
    singles = [unit.whole(x) for x in allowed.get("values", ())]
    return [
        p,
        f,
        *listed(runs, list),
        int(bool(allowed.get("whole"))),
        *listed(singles),
        int(bool(allowed.get("missing"))),
    ]


def ratio(x):
    return list(fraction(x).as_integer_ratio())


def model_of(model, unit):
    """Trees with the outputs that they feed, the unit of leaves (of averages of leaves), and the base margins."""
    if model is None:  # no point sees it
        return [0, 1, 0]
    trees = listed(range(len(model.trees)), lambda t: chain(listed(model.outputs[t]), tree(model, t, unit)))
    return chain(trees, [model.scale * model.average], listed(model.base, ratio))


def cost(unit, scale, price):
    """The first cost, the cost from every start on, and the one of a missing value."""
    p, f, steps, other = price
    whole = [(-math.inf if s is None else s + 0.0, int(fraction(c) * scale)) for s, c in steps]
    starts = sorted({s for s, _ in whole})
    first, *rest = [[c for s, c in whole if s <= start][-1] for start in starts]
    return [
        *[p, f, first],
        *listed(zip(map(unit.whole, starts[1:]), rest, strict=True), list),
        int(fraction(other) * scale),
    ]


def row(unit, stated):
    """Fractions as they are stated; of a logarithm the lesser end."""
    terms = ([*ratio(c), p, o] for c, p, o in stated["terms"])
    prices = [fraction(c) for _, _, steps, other in stated["costs"] for c in [*(c for _, c in steps), other]]
    scale, logs = math.lcm(*(c.denominator for c in prices)), stated["bound"]["logs"]
    low = fraction(stated["bound"]["rational"])
    low += sum(min(fraction(c) * end for end in verify.ln_bounds(fraction(a))) for c, a in logs)
    return [
        *listed(terms, list),
        *listed(stated["costs"], lambda c: cost(unit, scale, c)),
        *[scale, *ratio(low), int(stated["strict"])],
    ]


def node(item):
    """A node of the proof: 0, or 1 variable cell, or 2 weights exponent changes. What is no leaf closes nothing: 0."""
    if len(item) == 2:
        return [1, *map(int, item)]
    try:
        weights, exponent, changes = item
        message = lambda c: [int(c[0]), int(c[1]), *listed(zip(c[2::2], c[3::2], strict=True), list)]  # noqa: E731
        written = [2, *listed(weights), exponent, *listed(changes, message)]
    except (TypeError, ValueError, LookupError):
        return [0]
    return written if all(type(x) is int for x in written) else [0]


def integers(problem, certificate):
    """All integers of a certificate of `none`, whose statement is `problem`."""
    statement, features = problem.statement, range(len(problem.features))
    sets = problem.domains() + [part for clause in statement["clauses"] for part in clause]
    unit = Unit(list(numbers_of(problem, sets)), problem.largest)
    models = {p["model"]: model for p, model in zip(statement["points"], problem.points, strict=True)}
    yield unit.parts
    yield from listed((models.get(m) for m in range(len(statement["models"]))), lambda m: model_of(m, unit))
    yield from listed(int(p["model"]) for p in statement["points"])
    yield from [int(problem.agree), *listed(f for f in features if problem.agree and f in statement["same_except"])]
    yield from listed(problem.domains(), lambda part: place_set(problem, unit, part))
    yield from listed(statement["rows"], lambda stated: row(unit, stated))
    yield from listed(statement["clauses"], lambda clause: listed(clause, lambda part: place_set(problem, unit, part)))
    yield from listed(statement["orders"], list)
    yield from listed(problem.units)
    yield from layout(problem, unit)
    yield int(problem.joint)
    apart = set(certificate["apart"])
    yield from listed(t for t in range(max(len(m.trees) for m in problem.points)) if t in apart)
    yield from listed(certificate["nodes"], node)


def layout(problem, unit):
    """The cuts of every feature, the variable of every feature at every point, and what each variable is about."""
    features, points = range(len(problem.features)), range(len(problem.points))
    owners = {problem.variable[p, f]: (p, f) for p in reversed(points) for f in features}
    yield from listed(problem.cuts, lambda cuts: listed(map(unit.whole, cuts)))
    yield from listed(points, lambda p: listed(problem.variable[p, f] for f in features))
    yield from listed((owners[v] for v in range(len(owners))), list)


def integers_of(certificate, data, **allowed):
    """The integers of a certificate about models of which the contents of files are given."""
    return integers(verify.problem_of(certificate, data, **allowed), certificate)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("certificate")
    parser.add_argument("--model", action="append", required=True, help="a model file; may be repeated")
    asked = parser.parse_args()
    try:
        certificate, data = verify.read(asked.certificate), [Path(path).read_bytes() for path in asked.model]
        verify.numbers.require(certificate["claim"] == "none", "it claims that inputs exist: look at them")
        print(*integers_of(certificate, data), sep="\n")
    except (verify.Rejected, OSError, *verify.core.MALFORMED) as reason:
        sys.exit(f"{asked.certificate}: {reason}")


if __name__ == "__main__":
    main()
