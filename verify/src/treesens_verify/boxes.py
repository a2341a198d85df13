"""Proofs of deep trees with numpy: leaves that are weights alone, without messages. Nothing else in this folder needs numpy.

Of every tree those boxes are kept, the most valuable first, that a node of the proof still meets; a node has no more than the
sum of the first ones. A box is a run of cells of every variable, and perhaps its missing value: what a domain has in between is
taken to be there, and values are rounded upwards to units that fit 64 bits. Of rows that cancel only boxes above 0 are
kept, since one that is not kept has no more than 0. All of this only makes bounds greater: what is accepted here the
proof in core.py accepts, too, if it has the time. What is not accepted here is left to that one.
"""

from bisect import bisect_right
from collections import Counter

import numpy as np

from .core import MOST_ENTRIES, MOST_SHIFT, Proof, highest, lowest
from .core import check as check_by
from .models import read_model
from .numbers import Rejected, require

BITS = 62  # of a sum
MOST_BOXES = 1 << 24  # combinations of leaves of one tree that are gone through
NOTHING = -(1 << 61)  # less than any value


class BoxProof:
    """Goes through a tree of cuts in preorder, as `Proof` does."""

    def __init__(self, problem):
        self.problem, self.layers = problem, {}
        self.ends = [self.ends_of(v, cells) for v, cells in enumerate(problem.domain)]

    def check(self, nodes):
        """Rejected if neither boxes nor the proof in core.py refute every leaf."""
        try:
            require(self.suits(nodes), "messages, categories or costs")
            self.go_through(nodes)
        except Rejected:
            Proof(self.problem).check(nodes)

    def go_through(self, nodes):
        problem = self.problem
        weights = Counter(tuple(node[0]) for node in nodes if len(node) == 3).most_common(1)
        kept = {key: self.layer(key).every for key, _ in weights}  # others are narrowed at their leaves
        stack = [(list(problem.domain), self.ends, kept)]
        for node in nodes:
            require(stack, "there are nodes after the last one")
            require(len(stack) * len(stack[0][0]) <= MOST_ENTRIES, "too many parts of the domain wait")
            domain, ends, kept = stack.pop()
            possible = problem.propagate(domain)
            if len(node) == 2:
                v, cell = node
                require(0 <= v < len(domain) and 0 < cell < problem.sizes[v], "a cut between no cells")
                for side in (-1 << cell, (1 << cell) - 1):
                    cells = domain[v] & side
                    child = [*ends[:v], self.ends_of(v, cells), *ends[v + 1 :]]
                    fewer = {key: self.layers[key].narrowed(boxes, v, ends[v], child[v]) for key, boxes in kept.items()}
                    stack.append(([*domain[:v], cells, *domain[v + 1 :]], child, fewer))
            elif possible:
                require(
                    node and self.bound(domain, ends, kept, *node) < 0, "a leaf of the proof does not refute its cells"
                )
        require(not stack, "a part of the domain is not dealt with")

    def layer(self, weights):
        require(len(weights) == len(self.problem.constant), "one weight per row is needed")
        require(all(type(x) is int and x >= 0 for x in weights), "no weights")
        key = tuple(weights)
        if key not in self.layers:
            self.layers[key] = Layer(self.problem, key, self.ends)
        return self.layers[key]

    def suits(self, nodes):
        """Whether all leaves are weights alone, all splits cut numbers, and no row has costs."""
        plain = not any(self.problem.costs) and not any(model.categories for model in self.problem.points)
        return plain and all(len(node) != 1 and (len(node) != 3 or node[2] == []) for node in nodes)

    def ends_of(self, v, cells):
        """The first cell with a value, the one after the last, and whether it may be missing."""
        missing = self.problem.sizes[v] - 1
        present = cells & (1 << missing) - 1
        return (lowest(present), highest(present) + 1, bool(cells >> missing)) if present else (0, 0, True)

    def bound(self, domain, ends, kept, weights, exponent, _):
        """At most this is the weighted sum of what all rows have left, anywhere in the domain, in units of the layer."""
        require(type(exponent) is int and 0 <= exponent <= MOST_SHIFT, "no weights")
        key, layer = tuple(weights), self.layer(weights)
        boxes, ends = (kept[key], ends) if key in kept else (layer.every, self.ends)
        for v, cells in enumerate(domain):  # what clauses and orders leave of it, too
            boxes = layer.narrowed(boxes, v, ends[v], self.ends_of(v, cells))
        return layer.bound(boxes)


class Layer:
    """The boxes of all trees for some weights of the rows: by tree, and the most valuable ones first."""

    def __init__(self, problem, weights, ends):
        self.problem, self.ends = problem, ends
        constant = sum(w * c for w, c in zip(weights, problem.constant))
        parts, most = [], abs(constant)
        for t, points in problem.factors:
            sums = {p: problem_sums(problem, weights, p, t) for p in points}
            values = {p: leaf_values(problem, p, t, own) for p, own in sums.items() if any(own)}
            cancels = len(points) == 2 and not any(map(sum, zip(*sums.values())))
            if values:
                parts.append((t, tuple(values), values, cancels and problem.goes_along(t)))
            most += sum(max(map(abs, own.values())) for own in values.values())
        self.shift = max(0, most.bit_length() - BITS + 1)
        self.constant = rounded_up(constant, self.shift)
        self.floor, made = [], []
        for number, (t, points, values, along) in enumerate(parts):
            box = Boxes(problem, t, points, {p: self.whole(own) for p, own in values.items()}, along, ends)
            self.floor.append(0 if along else NOTHING)
            made.append((np.full(len(box.value), number, np.int32), box))
        self.factor = joined([factor for factor, _ in made], np.int32)
        self.value = joined([box.value for _, box in made], np.int64)
        self.floor = np.array(self.floor, np.int64)
        self.every = np.arange(len(self.value), dtype=np.int32)
        self.columns = [self.column(v, [box for _, box in made]) for v in range(len(problem.sizes))]

    def whole(self, values):
        return {n: rounded_up(x, self.shift) for n, x in values.items()}

    def column(self, v, boxes):
        """First cells, the cells after the last ones, and missing values of all boxes about a variable."""
        low, high, missing = self.ends[v]
        kind = np.uint16 if high < 1 << 16 else np.int32
        found = [box.columns.get(v) or tuple(np.full(len(box.value), x) for x in (low, high, missing)) for box in boxes]
        return tuple(
            joined([one[i] for one in found], kind if i < 2 else bool) for i in range(3)
        )  # fmt: skip

    def narrowed(self, boxes, v, before, ends):
        """The boxes that meet the ends of a variable, of those that met earlier ones."""
        if ends == before:
            return boxes
        low, high, missing = ends
        starts, stops, gone = self.columns[v]
        meets = (starts[boxes] < high) & (stops[boxes] > low)
        if missing:
            meets |= gone[boxes]
        return boxes[meets]

    def bound(self, boxes):
        """The sum of the best boxes; -1 if a tree has none left."""
        best, factor = self.floor.copy(), self.factor[boxes]
        if len(factor):
            first = np.concatenate(([0], np.flatnonzero(factor[1:] != factor[:-1]) + 1))
            best[factor[first]] = np.maximum(best[factor[first]], self.value[boxes[first]])
        return -1 if (best == NOTHING).any() else int(best.sum()) + self.constant


class Boxes:
    """The combinations of leaves of one tree at some points, with their values and, by variable, their cells."""

    def __init__(self, problem, t, points, values, along, ends):
        self.trees = [Arrays(problem, p, t, values[p]) for p in points]
        self.scope = sorted({problem.variable[p, f] for p in points for f in problem.points[p].uses[t]})
        place = {v: i for i, v in enumerate(self.scope)}
        for p, tree in zip(points, self.trees):
            of = {f: place[problem.variable[p, f]] for f in problem.points[p].uses[t]}
            tree.place = np.array([of.get(f, 0) for f in tree.feature], np.int32)
        equal = np.array([along[n] for n in range(len(along))]) if along else None
        low, high, missing = (np.array([[ends[v][i] for v in self.scope]]) for i in range(3))
        front, done = ([np.zeros(1, np.int64) for _ in points], low, high, missing), []
        held = 0
        while len(front[1]):
            held += len(front[1])
            require(held <= MOST_BOXES, "too many combinations of leaves of one tree")
            at, low, high, missing = front
            if along:  # equal leaves, and whatever is not above 0, is no box
                keep = sum(tree.top[n] for tree, n in zip(self.trees, at)) > 0
                keep &= ~((at[0] == at[1]) & equal[at[0]])
                at, low, high, missing = [n[keep] for n in at], low[keep], high[keep], missing[keep]
            ended, sides = np.ones(len(low), bool), []
            for j, tree in enumerate(self.trees):
                parted = ended & ~tree.leaf[at[j]]
                ended &= tree.leaf[at[j]]
                sides += self.parted(j, [n[parted] for n in at], low[parted], high[parted], missing[parted])
            done.append(([n[ended] for n in at], low[ended], high[ended], missing[ended]))
            there = [np.concatenate([side[0][i] for side in sides]) for i in range(len(points))]
            front = there, *(np.concatenate([side[i] for side in sides]) for i in (1, 2, 3))
        value = joined([sum(tree.top[n] for tree, n in zip(self.trees, at)) for at, *_ in done], np.int64)
        order = np.argsort(-value, kind="stable")
        self.value = value[order]
        table = [np.concatenate([one[i] for one in done])[order] for i in (1, 2, 3)]
        self.columns = {v: tuple(x[:, i] for x in table) for i, v in enumerate(self.scope)}

    def parted(self, j, at, low, high, missing):
        """Both sides of the splits at which some combinations are at one point."""
        tree, rows = self.trees[j], np.arange(len(at[j]))
        node = at[j]
        column, cell, gone = tree.place[node], tree.cell[node], tree.missing[node]
        for child, is_left in ((tree.left, True), (tree.right, False)):
            low_, high_, missing_ = low.copy(), high.copy(), missing.copy()
            if is_left:
                high_[rows, column] = np.minimum(high[rows, column], cell)
                missing_[rows, column] &= gone
            else:
                low_[rows, column] = np.maximum(low[rows, column], cell)
                missing_[rows, column] &= ~gone
            meets = (low_[rows, column] < high_[rows, column]) | missing_[rows, column]
            there = [child[node] if i == j else n for i, n in enumerate(at)]
            yield [n[meets] for n in there], low_[meets], high_[meets], missing_[meets]


class Arrays:
    """A tree at a point, node by node; `top` is the greatest value of a leaf at or below a node."""

    def __init__(self, problem, p, t, values):
        nodes = problem.points[p].whole[t]
        inner = [n if len(n) > 1 else (0, 0.0, False, 0, 0) for n in nodes]
        self.leaf = np.array([len(n) == 1 for n in nodes])
        self.feature = [f for f, *_ in inner]
        self.cell = np.array([bisect_right(problem.cuts[f], test + 0.0) for f, test, *_ in inner], np.int64)
        self.missing = np.array([missing for _, _, missing, _, _ in inner])
        self.left, self.right = (np.array([n[i] for n in inner], np.int64) for i in (3, 4))
        top = [0] * len(nodes)
        for n in range(len(nodes) - 1, -1, -1):
            top[n] = values[n] if n in values else max(top[inner[n][3]], top[inner[n][4]])
        self.top = np.array(top, np.int64)


def problem_sums(problem, weights, p, t):
    """How often some weights count every output of a tree at a point."""
    outputs = problem.points[p].outputs[t]
    return [sum(w * c.get((p, o), 0) for w, c in zip(weights, problem.coefficients)) for o in outputs]


def leaf_values(problem, p, t, sums):
    """The value of every leaf, by the number of its node."""
    return {
        n: sum(s * x for s, x in zip(sums, node[0]))
        for n, node in enumerate(problem.points[p].whole[t])
        if len(node) == 1
    }


def rounded_up(x, shift):
    return -(-x >> shift)


def joined(arrays, kind):
    return np.concatenate([np.zeros(0, kind), *(array.astype(kind) for array in arrays)])


def check(certificate, data, read=read_model, **allowed):
    """What `check` in core.py does, with numpy for proofs that suit."""
    return check_by(certificate, data, read, prove=BoxProof, **allowed)
