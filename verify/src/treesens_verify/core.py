"""The core: a statement on cells, and its proof. Trusted are this file, its numbers and its readers of models.

docs/certificates.md shows why this is a proof; its notation is used here.
"""

import lzma
import math
import struct
from bisect import bisect_right
from functools import reduce
from itertools import accumulate
from operator import mul

from .attainable import sums_refute
from .form import check_certificate, check_statement
from .found import check_found
from .models import beside, check_origin, content_of, read_model
from .numbers import LARGEST, Rejected, common, fraction, ln_bounds, require, step

MOST_SHIFT = 10_000
MOST_ENTRIES = 2_000_000  # combinations of leaves, and cells of waiting parts, that are held at a time
ANY = {"runs": [[None, None]]}
CATEGORY = {"runs": [[0, None]], "whole": True, "missing": True}
MALFORMED = (
    *(ArithmeticError, AttributeError, EOFError, LookupError, RecursionError, TypeError, ValueError),
    *(lzma.LZMAError, struct.error),
)


class Problem:
    """A statement with every feature cut into cells: cell j holds cuts[j-1] <= x < cuts[j], and the last one a missing value.

    A variable is a feature at a point, or at both points if they agree on it. Sets of cells are the bits of an integer.
    """

    def __init__(self, statement, models, found=False, most=MOST_ENTRIES):
        check_statement(statement, models)
        self.statement, self.models, self.found, self.free = statement, models, found, most
        learnt, seen = [models[i] for i in statement.get("learnt", ())], {p["model"] for p in statement["points"]}
        whole = {m: beside(models[m], learnt) for m in seen}
        self.points = [whole[p["model"]] for p in statement["points"]]
        self.features, self.number = self.points[0].features, self.points[0].number
        varied, self.largest = statement["same_except"], LARGEST[self.number]
        self.agree = len(self.points) == 2 and varied is not None
        self.find_cuts()
        self.variable, self.feature_of = {}, []
        for f in range(len(self.features)):
            for p in range(len(self.points)):
                if not (p and self.agree and f not in varied):
                    self.feature_of.append(f)
                self.variable[p, f] = len(self.feature_of) - 1
        self.sizes = [len(self.cuts[f]) + 2 for f in self.feature_of]
        self.domain = [(1 << size) - 1 for size in self.sizes]
        for p, f, allowed in self.domains():
            self.domain[self.variable[p, f]] &= self.mask(f, allowed)
        self.clauses = [
            [(self.variable[p, f], self.mask(f, s)) for p, f, s in clause] for clause in statement["clauses"]
        ]
        self.orders = [(self.variable[p, f], self.variable[q, f]) for p, q, f in statement["orders"]]
        for v in {u for pair in self.orders for u in pair}:  # a missing value is in no order
            self.domain[v] &= (1 << self.sizes[v] - 1) - 1
        self.make_rows()
        self.make_factors(())

    def domains(self):
        listed = {(p, f) for p, f, _ in self.statement["domain"]}
        free = [[p, f, ANY] for p in range(len(self.points)) for f in range(len(self.features)) if (p, f) not in listed]
        codes = [[p, f, CATEGORY] for p, model in enumerate(self.points) for f in sorted(model.categories)]
        return self.statement["domain"] + free + codes

    def find_cuts(self):
        found = [set().union(*(m.cuts[f] for m in self.points)) for f in range(len(self.features))]
        sets = self.statement["domain"] + [part for clause in self.statement["clauses"] for part in clause]
        for _, f, allowed in sets:
            for low, high in allowed.get("runs", []):
                found[f] |= {
                    x + 0.0 for x in (low, None if high is None else step(high, 1, self.number)) if x is not None
                }
        for row in self.statement["rows"]:
            for _, f, steps, _ in row["costs"]:
                found[f] |= {start + 0.0 for start, _ in steps[1:]}
        self.cuts = [sorted(cuts) for cuts in found]

    def mask(self, f, allowed):
        """The cells that hold a value of a set: of closed runs of (whole) numbers, single values, missing or not."""
        cuts, found = self.cuts[f], (1 << len(self.cuts[f]) + 1) * bool(allowed.get("missing"))
        for value in allowed.get("values", []):
            found |= 1 << bisect_right(cuts, value)
        for low, high in allowed.get("runs", []):
            low, high = -self.largest if low is None else low, self.largest if high is None else high
            for j in range(bisect_right(cuts, low), bisect_right(cuts, high) + 1) if low <= high else ():
                least = math.ceil(max(low, cuts[j - 1] if j else low)) if allowed.get("whole") else low
                if least <= high and (least == low or j == len(cuts) or least < cuts[j]):
                    found |= 1 << j
        return found

    def make_rows(self):
        """Rows in whole numbers: constant + sum of coefficient * leaf + sum of costs >= 0."""
        scale = common(m.scale for m in self.points)
        self.units, self.constant, self.coefficients, self.costs = [], [], [], []
        for row in self.statement["rows"]:
            terms = [(fraction(c), p, o) for c, p, o in row["terms"]]
            shares = [(c / self.points[p].average, p, o) for c, p, o in terms]  # of a sum of leaves
            prices = [[fraction(c) for c in [*(s[1] for s in steps), other]] for _, _, steps, other in row["costs"]]
            unit = scale * common(
                [c.denominator for c, _, _ in terms + shares] + [c.denominator for p in prices for c in p]
            )
            level = self.level(row["bound"])
            bound = math.floor(level * unit) + 1 if row["strict"] else math.ceil(level * unit)
            self.constant.append(int(sum(c * self.points[p].base[o] for c, p, o in terms) * unit) - bound)
            coefficient, costs = {}, {}
            for c, p, o in shares:
                coefficient[p, o] = coefficient.get((p, o), 0) + int(c * (unit // self.points[p].scale))
            for (p, f, steps, _), price in zip(row["costs"], prices, strict=True):
                starts, whole = [s for s, _ in steps[1:]], [c.numerator * (unit // c.denominator) for c in price]
                table = [whole[bisect_right(starts, start)] for start in [-math.inf, *self.cuts[f]]]
                before = costs.get(self.variable[p, f], [0] * (len(table) + 1))
                costs[self.variable[p, f]] = [x + y for x, y in zip(before, [*table, whole[-1]])]
            self.units.append(unit)
            self.coefficients.append(coefficient)
            self.costs.append(costs)

    def level(self, bound):
        """A fraction that the bound does not fall below, or for claimed inputs does not exceed."""
        choose = max if self.found else min
        logs = (choose(fraction(c) * end for end in ln_bounds(fraction(a))) for c, a in bound["logs"])
        return fraction(bound["rational"]) + sum(logs)

    def tree(self, p, t):
        """A tree over cells: nodes (feature, cells that go left, left, right) or (whole values of a leaf,)."""
        model = self.points[p]
        if (id(model), t) not in self.trees:
            nodes = [n if len(n) == 1 else (n[0], self.left(*n[:3]), *n[3:]) for n in model.whole(t)]
            self.trees[id(model), t] = nodes
        return self.trees[id(model), t]

    def left(self, f, test, missing):
        cuts = self.cuts[f]
        if isinstance(test, frozenset):  # every category has a cell of its own
            return reduce(int.__or__, (1 << bisect_right(cuts, code) for code in test), missing << len(cuts) + 1)
        return (1 << bisect_right(cuts, test + 0.0)) - 1 | missing << len(cuts) + 1

    def make_factors(self, apart):
        """A factor is a tree at a point, or at both points if they agree on some features, except trees named in `apart`."""
        number = range(len(self.points))
        self.joint, self.factors = self.agree and self.points[0] is self.points[1], []
        self.entries, self.along, self.trees = {}, {}, {}
        for group in [tuple(number)] if self.joint else [(p,) for p in number]:
            for t in range(len(self.points[group[0]].trees)):
                self.factors += [(t, (p,)) for p in group] if t in apart else [(t, group)]
        self.scope = [{self.variable[p, f] for p in ps for f in self.points[p].uses[t]} for t, ps in self.factors]

    def entries_of(self, i, cancels):
        """All combinations of leaves of a factor that some cells of the domain reach: a node per point, and the cells.

        If equal leaves cancel, subtrees in which both copies go the same way are one combination without nodes.
        """
        if (i, cancels) not in self.entries:
            t, points = self.factors[i]
            trees, found, stack = [self.tree(p, t) for p in points], [], [((0,) * len(points), {})]
            while stack:
                self.hold(1)
                at, box = stack.pop()
                turn = next((j for j, tree in enumerate(trees) if len(tree[at[j]]) > 1), None)
                equal = cancels and at[0] == at[1] and self.goes_along(t)[at[0]]
                if turn is not None and not equal:
                    feature, left, *children = trees[turn][at[turn]]
                    v = self.variable[points[turn], feature]
                    for child, side in zip(children, (left, ~left)):
                        if cells := box.get(v, self.domain[v]) & side:
                            stack.append(((*at[:turn], child, *at[turn + 1 :]), {**box, v: cells}))
                elif not self.refutes(box):
                    found.append(((None,) * len(at) if equal else at, list(box.items())))
            self.entries[i, cancels] = found
        return self.entries[i, cancels]

    def hold(self, count):
        self.free -= count
        require(self.free >= 0, "it needs more combinations of leaves than are allowed (--entries allows more)")

    def refutes(self, box):
        """True if an order, or a clause of two parts, excludes all of a box."""
        if any(v in box and w in box and lowest(box[v]) > highest(box[w]) for v, w in self.orders):
            return True
        return any(len(c) == 2 and all(not cells & box.get(v, self.domain[v]) for v, cells in c) for c in self.clauses)

    def goes_along(self, t):
        """Per node of a tree, True if both points reach the same leaf below it, since they agree on all its features."""
        if t not in self.along:
            tree, along = self.tree(0, t), {}
            for n in range(len(tree) - 1, -1, -1):
                f, _, *children = tree[n] if len(tree[n]) > 1 else (None, None)
                along[n] = f is None or (self.variable[0, f] == self.variable[1, f] and all(along[c] for c in children))
            self.along[t] = along
        return self.along[t]

    def propagate(self, domain):
        """Unit propagation over the clauses and orders; False if nothing is left."""
        before = None
        while domain != before and all(domain):
            before = list(domain)
            for v, w in self.orders:
                domain[v] &= (2 << highest(domain[w])) - 1
                domain[w] &= -(1 << lowest(domain[v])) if domain[v] else 0
                if not domain[w]:
                    return False
            for clause in self.clauses:
                left = {v for v, cells in clause if cells & domain[v]}
                if not left:
                    return False
                if len(left) == 1:
                    (v,) = left
                    domain[v] &= reduce(int.__or__, [cells for w, cells in clause if w == v])
        return all(domain)


def lowest(cells):
    return (cells & -cells).bit_length() - 1


def highest(cells):
    return cells.bit_length() - 1


class Proof:
    """Walks a tree of cuts in preorder. A leaf keeps the messages of the leaf before it, apart from the changes."""

    def __init__(self, problem):
        self.problem, self.weights, self.messages, self.domain = problem, None, {}, None
        self.factor, self.rest = [0] * len(problem.factors), [0] * len(problem.domain)
        self.ranked = {}  # of a factor: the sums of its rows, and its entries with their values, the greatest first

    def check(self, nodes):
        stack = [list(self.problem.domain)]
        for node in nodes:
            require(stack, "there are nodes after the last one")
            require(len(stack) * len(stack[0]) <= MOST_ENTRIES, "too many parts of the domain wait")
            domain = stack.pop()
            possible = self.problem.propagate(domain)
            if len(node) == 2:
                v, cell = node
                require(0 <= v < len(domain) and 0 < cell < self.problem.sizes[v], "a cut between no cells")
                for side in (-1 << cell, (1 << cell) - 1):
                    stack.append([cells & side if w == v else cells for w, cells in enumerate(domain)])
            elif possible and len(node) == 1:
                require(sums_refute(self.problem, domain), "some sums that are attained satisfy all rows")
            elif possible:
                require(node and self.bound(domain, *node) < 0, "a leaf of the proof does not refute its cells")
        require(not stack, "a part of the domain is not dealt with")

    def bound(self, domain, weights, exponent, changes):
        """An upper bound of the weighted slacks of all rows over the domain."""
        problem, before = self.problem, self.domain if weights == self.weights else None
        require(len(weights) == len(problem.constant), "one weight per row is needed")
        require(all(type(x) is int and x >= 0 for x in [*weights, exponent]) and exponent <= MOST_SHIFT, "no weights")
        narrowed = {v for v, cells in enumerate(domain) if before is None or cells != before[v]}
        touched, dirty = set(), set(narrowed)
        for i, v, *runs in changes:
            require(0 <= i < len(problem.factors) and v in problem.scope[i], "a message lies outside of its factor")
            require(all(type(x) is int for x in runs) and runs[::2] == sorted(set(runs[::2])), "runs are out of order")
            require(all(0 <= s < problem.sizes[v] for s in runs[::2]), "a run outside of the cells")
            self.messages.setdefault(i, {})[v] = [
                (s, x << exponent) for s, x in zip(runs[::2], runs[1::2], strict=True)
            ]
            touched.add(i)
            dirty.add(v)
        self.weights, self.domain = list(weights), domain
        for i, scope in enumerate(problem.scope):
            if before is None or i in touched or not narrowed.isdisjoint(scope):
                self.factor[i] = self.best_entry(i)
        for v in dirty:
            self.rest[v] = self.best_cell(v)
        if None in self.factor:  # no combination of leaves can be reached
            return -1
        return sum(w * c for w, c in zip(weights, problem.constant)) + sum(self.factor) + sum(self.rest)

    def best_entry(self, i):
        """The greatest value of a factor with its messages, over the entries that meet the domain."""
        problem, domain = self.problem, self.domain
        t, points = problem.factors[i]
        sums = [
            [sum(w * c.get((p, o), 0) for w, c in zip(self.weights, problem.coefficients)) for o in outputs]
            for p in points for outputs in [problem.points[p].outputs[t]]
        ]  # fmt: skip
        messages = {v: runs for v, runs in self.messages.get(i, {}).items() if runs}
        cancels = len(points) == 2 and not any(map(sum, zip(*sums)))
        if not messages and (not any(map(any, sums)) or (cancels and problem.goes_along(t)[0])):
            return 0
        if self.ranked.get(i, [None])[0] != sums:
            worth = [
                {n: sum(map(mul, weights, node[0])) for n, node in enumerate(problem.tree(p, t)) if len(node) == 1}
                for p, weights in zip(points, sums)
            ]
            entries = problem.entries_of(i, cancels)
            totals = [sum(table.get(n, 0) for table, n in zip(worth, leaves)) for leaves, _ in entries]
            order = sorted(range(len(entries)), key=totals.__getitem__, reverse=True)
            self.ranked[i] = sums, [(totals[e], entries[e][1]) for e in order]
        best, free, known = None, {v: self.best_message(v, runs, domain[v]) for v, runs in messages.items()}, {}
        for total, box in self.ranked[i][1]:
            if best is not None and total <= best:
                break  # what the messages add, less than the greatest of them, is never more than 0
            for v, cells in box:
                if not (reached := cells & domain[v]):
                    break
                if v in messages:
                    if (v, reached) not in known:
                        known[v, reached] = self.best_message(v, messages[v], reached) - free[v]
                    total += known[v, reached]
            else:
                best = total if best is None or total > best else best
        return None if best is None else best + sum(free.values())

    def best_message(self, v, runs, cells):
        """The greatest message over some cells; a run goes from its cell to the next one, and before the first it is 0."""
        ends = [s for s, _ in runs[1:]] + [self.problem.sizes[v]]
        found = [x for (s, x), end in zip(runs, ends) if cells >> s & (1 << max(0, end - s)) - 1]
        return max([*found, 0] if cells & (1 << runs[0][0]) - 1 else found)

    def best_cell(self, v):
        """The greatest value of costs minus messages of a variable, over the cells of the domain."""
        size = self.problem.sizes[v]
        steps = [0] * (size + 1)
        for about in self.messages.values():
            before = 0
            for s, x in about.get(v, ()):
                steps[min(s, size)] += before - x
                before = x
        values = list(accumulate(steps[:size]))
        for w, costs in zip(self.weights, self.problem.costs):
            if w and v in costs:
                values = [x + w * c for x, c in zip(values, costs[v])]
        return max(x for k, x in enumerate(values) if self.domain[v] >> k & 1)


def model_of(stated, data, read=read_model, *, first_trees=False, trees_alone=False):
    """The model that a statement names, from files with the contents `data`."""
    model = read(content_of(stated["sha256"], data), stated)
    first = f"it is about the first {stated['trees']} of {model.total} trees (--first-trees allows this)"
    require(first_trees or stated["trees"] == model.total, first)
    if model.made_from is not None and not trees_alone:
        check_origin(model.made_from, data)
    return model


def problem_of(certificate, data, read=read_model, *, entries=MOST_ENTRIES, **allowed):
    """The statement of a certificate about models whose files have the contents `data`."""
    check_certificate(certificate)
    statement = certificate["statement"]
    models = [model_of(stated, data, read, **allowed) for stated in statement["models"]]
    return Problem(statement, models, certificate["claim"] == "found", entries)


def check(certificate, data, read=read_model, prove=None, **allowed):
    """Checks a certificate (a JSON object) against the bytes of model files. Raises Rejected with the reason.

    `first_trees`: accepts claims about the first trees of a model; `trees_alone`: accepts trees files without their models;
    `entries`: limit on combinations of leaves; `prove`: the class that walks a proof, Proof by default.
    """
    try:
        problem = problem_of(certificate, data, read, **allowed)
        if problem.found:
            check_found(problem, certificate["inputs"])
        else:
            problem.make_factors(set(certificate["apart"]))
            (prove or Proof)(problem).check(certificate["nodes"])
    except MALFORMED as error:
        raise Rejected(f"it is not well formed: {type(error).__name__}: {error}") from error
    return problem
