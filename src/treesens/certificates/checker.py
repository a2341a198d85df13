"""Checks certificates about tree ensembles. One file, the standard library only: copy it anywhere and run

    python checker.py FILE.cert.xz --model MODEL.json

It reads the certificate and the original model file, says in words what is claimed, and then `accepted` or why not. Why this
is a proof stands in docs/certificates.md; what is trusted is this file, Python, and what `read_xgboost` takes a model for.
"""

import argparse
import hashlib
import json
import lzma
import math
import struct
import sys
from bisect import bisect_right
from fractions import Fraction
from functools import reduce
from itertools import accumulate

MOST_BYTES, MOST_SHIFT = 1 << 30, 10_000
LOGISTIC = {"binary:logistic", "reg:logistic"}
LOG = {"count:poisson", "reg:gamma", "reg:tweedie", "survival:cox", "survival:aft"}
LARGEST = struct.unpack("f", b"\xff\xff\x7f\x7f")[0]
ANY = {"runs": [[None, None]]}
MALFORMED = (
    *(ArithmeticError, AttributeError, EOFError, LookupError, RecursionError, TypeError, ValueError),
    *(lzma.LZMAError, struct.error),
)


class Rejected(Exception):
    """The certificate proves nothing; the text says why."""


def require(condition, words):
    if not condition:
        raise Rejected(words)


def float32(text):
    """The float32 nearest to a decimal. Rounding by way of float64 can only be wrong where float64 lies halfway."""
    wide = float(text)
    near = struct.unpack("f", struct.pack("f", wide))[0] + 0.0
    if struct.unpack("Q", struct.pack("d", wide))[0] & 0x1FFFFFFF != 1 << 28 and abs(near) >= 2.0**-126:
        return near
    around = [step(near, -1), near, step(near, 1)]
    return min((x for x in around if math.isfinite(x)), key=lambda x: (abs(Fraction(x) - Fraction(text)), x != near))


def step(x, direction):
    """The next float32 above (1) or below (-1)."""
    if x == 0:
        return direction * 2.0**-149
    bits = struct.unpack("I", struct.pack("f", x))[0] + (direction if x > 0 else -direction)
    return struct.unpack("f", struct.pack("I", bits))[0] + 0.0


def ln_bounds(x, bits=256):
    """Rationals around the natural logarithm of a positive rational.

    x = 2^k m with 2/3 <= m <= 4/3, and ln m = 2 artanh((m-1)/(m+1)) as a series of whole numbers of units 2^-bits. Powers
    are at most 9/8 units too low, each of fewer than bits/3 + 2 terms less than 3 units, and what is left out is below 3.
    """

    def artanh(t):
        power, total, n = abs(t.numerator) * (1 << bits) // t.denominator, 0, 1
        while power:
            total, n = total + power // n, n + 2
            power = power * t.numerator**2 // t.denominator**2
        return total if t >= 0 else -total

    require(x > 0, f"{x} has no logarithm")
    k = x.numerator.bit_length() - x.denominator.bit_length()
    k += (x / Fraction(2) ** k > Fraction(4, 3)) - (x / Fraction(2) ** k < Fraction(2, 3))
    m = x / Fraction(2) ** k
    middle, error = artanh((m - 1) / (m + 1)) + k * artanh(Fraction(1, 3)), (1 + abs(k)) * 3 * (bits // 3 + 3)
    return Fraction(2 * (middle - error), 1 << bits), Fraction(2 * (middle + error), 1 << bits)


def content_of(sha256, data):
    content = next((d for d in data if hashlib.sha256(d).hexdigest() == sha256), None)
    require(content is not None, f"no model file has the SHA-256 {sha256}")
    return content


def read_xgboost(data, stated):
    """Trees of nodes (feature, cut, missing goes left, left, right) or (leaf value,); x goes left iff x < cut in float32."""
    learner = json.loads(data, parse_float=str)["learner"]
    booster = learner["gradient_booster"]
    model = (booster["gbtree"] if booster["name"] == "dart" else booster)["model"]
    used, parameters = model["trees"][: stated["trees"]], learner["learner_model_param"]
    require(type(stated["trees"]) is int and len(used) == stated["trees"], "the model has fewer trees than stated")
    weights = booster["weight_drop"] if booster["name"] == "dart" else [1] * len(used)
    count, outputs = int(parameters["num_feature"]), max(1, int(parameters["num_class"]))
    require(all(0 <= o < outputs for o in model["tree_info"]), "a tree feeds no output")
    trees = []
    for tree, weight in zip(used, weights, strict=len(weights) == len(used)):
        require(not tree.get("categories"), "categorical splits are not read here")
        require(int(tree["tree_param"].get("size_leaf_vector") or 0) <= 1, "leaves that hold vectors are not read here")
        columns = [
            tree[k] for k in ("left_children", "right_children", "split_indices", "default_left", "split_conditions")
        ]
        nodes, factor = [], float32(weight)
        for left, right, feature, default, text in zip(*columns, strict=True):
            number = float32(text)
            require(
                left == -1 or (len(nodes) < left < len(columns[0]) and right == left + 1 < len(columns[0])), "bad child"
            )
            require(left == -1 or 0 <= feature < count, "a split uses a feature that does not exist")
            require(not math.isnan(number) and (left != -1 or math.isfinite(number)), "a number of a tree is none")
            leaf = number if factor == 1 else Fraction(factor) * Fraction(number)
            nodes.append((leaf,) if left == -1 else (feature, number, bool(default), left, right))
        trees.append(nodes)
    base, scores = [Fraction(b) for b in stated["base"]], str(parameters["base_score"]).strip("[]").split(",")
    require(len(base) == outputs and len(scores) in (1, outputs), "the base margin needs one number per output")
    for margin, score in zip(base, map(float32, scores * outputs)):
        check_base(learner["objective"]["name"], score, margin)
    features = learner.get("feature_names") or [f"f{i}" for i in range(count)]
    require(len(features) == count, "the names of the features are not as many as the features")
    return {"trees": trees, "output": model["tree_info"], "base": base, "features": features}


def check_base(objective, score, margin):
    """The stated margin is that of base_score: exactly, or to 1e-6 where XGBoost takes a float32 logarithm."""
    exact = Fraction(0) if objective in LOGISTIC and score == 0.5 else Fraction(score)
    if (objective in LOGISTIC and score != 0.5) or objective in LOG:
        p = min(max(score, 1e-6), 1 - 1e-6)
        value = math.log(score) if objective in LOG else math.log(p / (1 - p))
        exact = margin if abs(float(margin) - value) <= 1e-6 * (1 + abs(value)) else None
    require(margin == exact, f"the base margin {float(margin)} does not follow from base_score {score}")


class Problem:
    """A statement with every feature cut into cells: cell j holds cuts[j-1] <= x < cuts[j], and the last one a missing value.

    A variable is a feature at a point, or at both points if they agree on it. Sets of cells are the bits of an integer.
    """

    def __init__(self, statement, models):
        keys = {"models", "points", "same_except", "domain", "rows", "clauses", "orders"}
        require(set(statement) == keys, f"a statement has the parts {sorted(keys)}")
        self.statement, self.points = statement, [models[p["model"]] for p in statement["points"]]
        require(all(0 <= p["model"] < len(models) for p in statement["points"]), "a point of no model")
        self.features, varied = self.points[0]["features"], statement["same_except"]
        require(
            len(self.points) in (1, 2) and all(m["features"] == self.features for m in self.points), "no such points"
        )
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
        return self.statement["domain"] + free

    def find_cuts(self):
        found = [set() for _ in self.features]
        for f, cut in {n[:2] for m in self.points for t in m["trees"] for n in t if len(n) > 1}:
            found[f].add(cut + 0.0)
        sets = self.statement["domain"] + [part for clause in self.statement["clauses"] for part in clause]
        places = [s[:2] for s in sets] + self.statement["orders"]
        places += [x[-2:] for row in self.statement["rows"] for x in row["terms"]]
        places += [x[:2] for row in self.statement["rows"] for x in row["costs"]]
        require(all(type(i) is int for place in places for i in place), "an index is not a whole number")
        for _, f, allowed in sets:
            require(set(allowed) <= {"runs", "values", "whole", "missing"}, "a set of values of an unknown kind")
            numbers = [
                *allowed.get("values", []),
                *(x for run in allowed.get("runs", []) for x in run if x is not None),
            ]
            require(all(type(x) in (int, float) for x in numbers), "a set of what are no numbers")
            for low, high in allowed.get("runs", []):
                found[f] |= {x + 0.0 for x in (low, None if high is None else step(high, 1)) if x is not None}
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
            low, high = -LARGEST if low is None else low, LARGEST if high is None else high
            for j in range(bisect_right(cuts, low), bisect_right(cuts, high) + 1) if low <= high else ():
                least = math.ceil(max(low, cuts[j - 1] if j else low)) if allowed.get("whole") else low
                if least <= high and (least == low or j == len(cuts) or least < cuts[j]):
                    found |= 1 << j
        return found

    def make_rows(self):
        """Rows in whole numbers: what a row asks is constant + sum of coefficient * leaf + sum of costs >= 0."""
        numbers = [n[0] for m in self.points for nodes in m["trees"] for n in nodes if len(n) == 1]
        numbers += [b for m in self.points for b in m["base"]]
        scale = self.scale = max(v.as_integer_ratio()[1] for v in numbers)
        self.units, self.constant, self.coefficients, self.costs = [], [], [], []
        for row in self.statement["rows"]:
            terms = [(Fraction(c), p, o) for c, p, o in row["terms"]]
            require(
                all(0 <= p < len(self.points) and 0 <= o < len(self.points[p]["base"]) for _, p, o in terms), "no score"
            )
            prices = [Fraction(c) for _, _, steps, other in row["costs"] for c in [*(s[1] for s in steps), other]]
            unit = scale * reduce(math.lcm, [c.denominator for c, _, _ in terms] + [c.denominator for c in prices], 1)
            low = Fraction(row["bound"]["rational"])
            low += sum(min(Fraction(c) * end for end in ln_bounds(Fraction(a))) for c, a in row["bound"]["logs"])
            bound = math.floor(low * unit) + 1 if row["strict"] and not row["bound"]["logs"] else math.ceil(low * unit)
            self.constant.append(int(sum(c * self.points[p]["base"][o] for c, p, o in terms) * unit) - bound)
            coefficient, costs = {}, {}
            for c, p, o in terms:
                coefficient[p, o] = coefficient.get((p, o), 0) + int(c * (unit // scale))
            for p, f, steps, other in row["costs"]:
                require(steps[0][0] is None, "costs begin at the least value")
                whole = [(-math.inf if s is None else s, int(Fraction(c) * unit)) for s, c in steps]
                table = [[c for s, c in whole if s <= start][-1] for start in [-math.inf, *self.cuts[f]]]
                before = costs.get(self.variable[p, f], [0] * (len(table) + 1))
                costs[self.variable[p, f]] = [x + y for x, y in zip(before, [*table, int(Fraction(other) * unit)])]
            self.units.append(unit)
            self.coefficients.append(coefficient)
            self.costs.append(costs)

    def tree(self, p, t):
        """A tree over cells: nodes (feature, cells that go left, left, right) or (whole leaf value,)."""
        nodes = self.points[p]["trees"][t]
        if id(nodes) not in self.trees:
            self.trees[id(nodes)] = [
                (int(Fraction(n[0]) * self.scale),) if len(n) == 1 else (n[0], self.left(*n[:3]), *n[3:]) for n in nodes
            ]
        return self.trees[id(nodes)]

    def left(self, f, cut, missing):
        cuts = self.cuts[f]
        return (1 << bisect_right(cuts, cut + 0.0)) - 1 | (1 << len(cuts) + 1) * missing

    def make_factors(self, apart):
        """A factor is a tree at a point, or at both points if they agree on some features, but for trees named in `apart`."""
        number = range(len(self.points))
        self.joint, self.factors = self.agree and self.points[0] is self.points[1], []
        self.entries, self.along, self.trees = {}, {}, {}
        for group in [tuple(number)] if self.joint else [(p,) for p in number]:
            for t in range(len(self.points[group[0]]["trees"])):
                self.factors += [(t, (p,)) for p in group] if t in apart else [(t, group)]
        used = [[{n[0] for n in nodes if len(n) > 1} for nodes in m["trees"]] for m in self.points]
        self.scope = [{self.variable[p, f] for p in ps for f in used[p][t]} for t, ps in self.factors]

    def entries_of(self, i, cancels):
        """All combinations of leaves of a factor that some cells of the domain reach: both leaf values, and the cells.

        If equal leaves cancel, subtrees in which both copies go the same way are one combination of two zeros.
        """
        if (i, cancels) not in self.entries:
            t, points = self.factors[i]
            trees, found, stack = [self.tree(p, t) for p in points], [], [((0,) * len(points), {})]
            while stack:
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
                    leaves = [0 if equal else tree[n][0] for tree, n in zip(trees, at)]
                    found.append((leaves[0], leaves[-1], list(box.items())))
            self.entries[i, cancels] = found
        return self.entries[i, cancels]

    def refutes(self, box):
        """Whether an order, or a clause of two parts, excludes all of a box."""
        if any(v in box and w in box and lowest(box[v]) > highest(box[w]) for v, w in self.orders):
            return True
        return any(len(c) == 2 and all(not cells & box.get(v, self.domain[v]) for v, cells in c) for c in self.clauses)

    def goes_along(self, t):
        """Of every node of a tree: whether both points reach the same leaf below it, since they agree on all its features."""
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
    """Goes through a tree of cuts in preorder. A leaf keeps the messages of the leaf before it, but for the changes."""

    def __init__(self, problem):
        self.problem, self.weights, self.messages, self.domain = problem, None, {}, None
        self.factor, self.rest = [0] * len(problem.factors), [0] * len(problem.domain)

    def check(self, nodes):
        stack = [list(self.problem.domain)]
        for node in nodes:
            require(stack, "there are nodes after the last one")
            domain = stack.pop()
            possible = self.problem.propagate(domain)
            if len(node) == 2:
                v, cell = node
                require(0 <= v < len(domain) and 0 < cell < self.problem.sizes[v], "a cut between no cells")
                for side in (-1 << cell, (1 << cell) - 1):
                    stack.append([cells & side if w == v else cells for w, cells in enumerate(domain)])
            elif possible:
                require(node and self.bound(domain, *node) < 0, "a leaf of the proof does not refute its cells")
        require(not stack, "a part of the domain is not dealt with")

    def bound(self, domain, weights, exponent, changes):
        """At most this is the weighted sum of what all rows have left, anywhere in the domain."""
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
            sum(w * c.get((p, problem.points[p]["output"][t]), 0) for w, c in zip(self.weights, problem.coefficients))
            for p in points
        ]
        messages = {v: runs for v, runs in self.messages.get(i, {}).items() if runs}
        cancels = len(points) == 2 and sum(sums) == 0
        if not messages and (not any(sums) or (cancels and problem.goes_along(t)[0])):
            return 0
        best, free, known = None, {v: self.best_message(v, runs, domain[v]) for v, runs in messages.items()}, {}
        first, second = [*sums, 0][:2]
        for leaf, other, box in problem.entries_of(i, cancels):
            total = first * leaf + second * other
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
        """The greatest of the costs of a cell minus the messages about it, over the cells of the domain."""
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


def holds(allowed, x):
    """Whether a set holds a value; a missing one is NaN."""
    if math.isnan(x):
        return bool(allowed.get("missing"))
    inside = any((low is None or low <= x) and (high is None or x <= high) for low, high in allowed.get("runs", []))
    return x in allowed.get("values", []) or (
        inside and abs(x) <= LARGEST and (not allowed.get("whole") or x == int(x))
    )


def check_found(problem, inputs):
    """Inputs (null: missing) that satisfy everything: sets, agreement, clauses and orders by value, rows in whole numbers."""
    statement, features = problem.statement, range(len(problem.features))
    x = [[math.nan if value is None else float(value) for value in point] for point in inputs]
    require([len(point) for point in x] == [len(features)] * len(problem.points), "the inputs have a wrong shape")
    require(all(v != v or float32(repr(v)) == v for point in x for v in point), "a value is no float32")
    require(all(holds(s, x[p][f]) for p, f, s in problem.domains()), "a value lies outside of its domain")
    same = [
        f in (statement["same_except"] or ()) or x[0][f] == x[-1][f] or x[0][f] != x[0][f] != x[-1][f] for f in features
    ]
    require(not problem.agree or all(same), "the points differ in a feature that they agree on")
    require(all(any(holds(s, x[p][f]) for p, f, s in c) for c in statement["clauses"]), "a clause does not hold")
    require(all(x[p][f] <= x[q][f] for p, q, f in statement["orders"]), "an order does not hold")
    cell = {
        problem.variable[p, f]: len(problem.cuts[f]) + 1 if v != v else bisect_right(problem.cuts[f], v)
        for p, point in enumerate(x) for f, v in enumerate(point)
    }  # fmt: skip
    for total, coefficient, costs in zip(problem.constant, problem.coefficients, problem.costs):
        total += sum(table[cell[v]] for v, table in costs.items())
        for (p, o), c in coefficient.items():
            for t, output in enumerate(problem.points[p]["output"][: len(problem.points[p]["trees"])]):
                at, nodes = 0, problem.tree(p, t)
                while len(nodes[at]) > 1:
                    f, left, *children = nodes[at]
                    at = children[not left >> cell[problem.variable[p, f]] & 1]
                total += c * nodes[at][0] * (output == o)
        require(total >= 0, "a row does not hold")


def in_words(problem, found):
    """What a certificate claims, line by line."""
    statement, names, feature = problem.statement, [p["name"] for p in problem.statement["points"]], problem.features
    yield (
        "These inputs exist" if found else "No inputs exist"
    ) + f": {', '.join(names)} (values as the model stores them), with"
    if problem.agree:
        yield "  the same values of all features but " + ", ".join(feature[f] for f in statement["same_except"])
    for p, f, allowed in statement["domain"]:
        kind = ("whole numbers in " if allowed.get("whole") else "in ") if "runs" in allowed else "one of "
        values = allowed.get("runs", allowed.get("values", []))
        yield f"  {names[p]}.{feature[f]} {kind}{json.dumps(values)}{' or missing' if allowed.get('missing') else ''}"
    for row in statement["rows"]:
        terms = [f"{c} * margin({names[p]}, output {o})" for c, p, o in row["terms"]]
        terms += [f"cost of {names[p]}.{feature[f]} {json.dumps([*s, ['missing', m]])}" for p, f, s, m in row["costs"]]
        logs = "".join(f" + {c} * ln({a})" for c, a in row["bound"]["logs"])
        yield f"  {' + '.join(terms) or '0'} {'>' if row['strict'] else '>='} {row['bound']['rational']}{logs}"
    yield from (f"  {names[p]}.{feature[f]} <= {names[q]}.{feature[f]}" for p, q, f in statement["orders"])
    for clause in statement["clauses"]:
        yield "  " + " or ".join(f"{names[p]}.{feature[f]} in {json.dumps(s)}" for p, f, s in clause)


def check(certificate, data):
    """Checks a certificate (a JSON object) against the bytes of model files. Raises Rejected with the reason."""
    try:
        known = certificate["format"] == "treesens-certificate" and certificate["version"] == 1
        require(known and certificate["claim"] in ("none", "found"), "not a certificate of version 1")
        statement = certificate["statement"]
        problem = Problem(statement, [read_xgboost(content_of(m["sha256"], data), m) for m in statement["models"]])
        if certificate["claim"] == "found":
            check_found(problem, certificate["inputs"])
        else:
            problem.make_factors(set(certificate["apart"]))
            Proof(problem).check(certificate["nodes"])
    except MALFORMED as error:
        raise Rejected(f"it is not well formed: {type(error).__name__}: {error}") from error
    return problem


def read(path):
    with lzma.open(path) as file:
        text = file.read(MOST_BYTES + 1)
    require(len(text) <= MOST_BYTES, "the certificate is too large")
    return json.loads(text, parse_constant=lambda name: require(False, f"{name} is no number"))


def say(text):
    # Names come from files that nobody trusts: no control character reaches a terminal.
    print("".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text), flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("certificate", nargs="+")
    parser.add_argument("--model", action="append", required=True, help="a model file; may be repeated")
    asked, data = parser.parse_args(), []
    for path in asked.model:
        with open(path, "rb") as file:
            data.append(file.read())
    failures = 0
    for path in asked.certificate:
        try:
            certificate = read(path)
            for line in in_words(check(certificate, data), certificate["claim"] == "found"):
                say(line)
            say(f"{path}: accepted")
        except (Rejected, *MALFORMED) as reason:
            failures += 1
            say(f"{path}: rejected: {reason}")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
