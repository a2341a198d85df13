"""Proofs of deep trees with numpy: leaves that are weights alone, without messages. Nothing else in this folder needs numpy.

Of every tree those boxes are kept, the most valuable first, that a node of the proof still meets; a node has no more than the
sum of the first ones. A box is a run of cells of every variable, and perhaps its missing value: what a domain has in between is
taken to be there, and values are rounded upwards to units that fit 64 bits. Of rows that cancel only boxes above 0 are
kept, since one that is not kept has no more than 0. All of this only makes bounds greater: what is accepted here the
proof in core.py accepts, too, if it has the time. What is not accepted here is left to that one.
"""

from collections import Counter, namedtuple
from copy import copy
from operator import mul

import numpy as np

from .core import MOST_ENTRIES, MOST_SHIFT, Proof, highest, lowest
from .core import check as check_by
from .models import read_model
from .numbers import Rejected, require

BITS = 62  # of a sum
MOST_BOXES = 1 << 24  # combinations of leaves of one tree that are gone through
LARGE, FEW = 10_000, 8  # a layer of so many boxes, and how much smaller one of a part of them is made
Seen = namedtuple(
    "Seen", "tree top place"
)  # at a point: by node the greatest value from there on, and where its variable stands


class BoxProof:
    """Goes through a tree of cuts in preorder, as `Proof` does."""

    def __init__(self, problem):
        self.problem, self.layers, self.trees = problem, {}, {}
        self.free = not problem.clauses and not problem.orders
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
        kept = {
            key: (self.layer(key), self.layer(key).every) for key, _ in weights
        }  # others are narrowed at their leaves
        stack = [(list(problem.domain), self.ends, kept)]
        for node in nodes:
            require(stack, "there are nodes after the last one")
            require(len(stack) * len(stack[0][0]) <= MOST_ENTRIES, "too many parts of the domain wait")
            domain, ends, kept = stack.pop()
            possible = all(domain) if self.free else problem.propagate(domain)
            if len(node) == 2:
                v, cell = node
                require(0 <= v < len(domain) and 0 < cell < problem.sizes[v], "a cut between no cells")
                for side in (-1 << cell, (1 << cell) - 1):
                    cells = domain[v] & side
                    child = [*ends[:v], self.ends_of(v, cells), *ends[v + 1 :]]
                    fewer = {
                        key: layer.compact(layer.narrowed(boxes, v, ends[v], child[v]))
                        for key, (layer, boxes) in kept.items()
                    }
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
            self.layers[key] = Layer(self.problem, key, self.ends, self.tree)
        return self.layers[key]

    def tree(self, p, t):
        """The arrays of a tree at a point."""
        key = id(self.problem.points[p]), t
        if key not in self.trees:
            self.trees[key] = Tree(self.problem, p, t)
        return self.trees[key]

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
        (layer, boxes), before = (kept[key], ends) if key in kept else ((layer, layer.every), self.ends)
        if key not in kept or not self.free:  # what clauses and orders leave of it, too
            for v, cells in enumerate(domain):
                boxes = layer.narrowed(boxes, v, before[v], self.ends_of(v, cells))
        return layer.bound(boxes)


class Layer:
    """The boxes of all trees for some weights of the rows: by tree, and the most valuable ones first."""

    def __init__(self, problem, weights, ends, tree_of):
        self.ends = ends
        constant = sum(w * c for w, c in zip(weights, problem.constant))
        parts, most = [], abs(constant)
        for t, points in problem.factors:
            sums = {p: problem_sums(problem, weights, p, t) for p in points}
            values = {p: tree_of(p, t).values(own) for p, own in sums.items() if any(own)}
            cancels = len(points) == 2 and not any(map(sum, zip(*sums.values())))
            if values:
                parts.append((t, values, cancels))
            most += sum(int(abs(own).max()) for own in values.values())
        self.shift = max(0, most.bit_length() - BITS + 1)
        self.constant = rounded_up(constant, self.shift)
        made = []
        for t, values, cancels in parts:
            whole = {p: rounded_up(own, self.shift).astype(np.int64) for p, own in values.items()}
            made.append(Boxes(problem, {p: tree_of(p, t) for p in values}, whole, cancels, ends))
        self.must = np.array([not cancels for *_, cancels in parts], bool)
        self.factor = joined([np.full(len(box.value), number) for number, box in enumerate(made)], np.int32)
        self.value = joined([box.value for box in made], np.int64)
        self.every = np.arange(len(self.value))
        self.columns = [self.column(v, made) for v in range(len(problem.sizes))]

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
        (low, high, missing), (starts, stops, gone) = ends, self.columns[v]
        if not before[2] and low == before[0]:  # so all of them meet the end that stays
            meets = starts.take(boxes) < high
        elif not before[2] and high == before[1]:
            meets = stops.take(boxes) > low
        else:
            meets = (starts.take(boxes) < high) & (stops.take(boxes) > low)
        if missing:
            meets |= gone.take(boxes)
        return boxes.compress(meets)

    def compact(self, boxes):
        """A layer of few boxes alone, with arrays that are small, and all of its boxes; this one with them if they are many."""
        if len(self.every) < LARGE or len(boxes) * FEW > len(self.every):
            return self, boxes
        small = copy(self)
        small.factor, small.value, small.every = self.factor.take(boxes), self.value.take(boxes), np.arange(len(boxes))
        small.columns = [tuple(x.take(boxes) for x in one) for one in self.columns]
        return small, small.every

    def bound(self, boxes):
        """The sum of the best boxes, the first ones of their trees; -1 if a tree that has to have one has none left."""
        factor = self.factor.take(boxes)
        best = boxes.compress(np.concatenate((np.ones(min(len(factor), 1), bool), factor[1:] != factor[:-1])))
        if np.count_nonzero(self.must[self.factor[best]]) < np.count_nonzero(self.must):
            return -1
        return int(self.value.take(best).sum()) + self.constant


class Boxes:
    """The combinations of leaves of one tree at some points, with their values and, by variable, their cells."""

    def __init__(self, problem, trees, values, cancels, ends):
        self.scope = sorted({problem.variable[p, f] for p, tree in trees.items() for f in tree.uses})
        place = {v: i for i, v in enumerate(self.scope)}
        self.seen = []
        for p, tree in trees.items():
            of = np.array([place.get(problem.variable[p, f], 0) for f in range(len(problem.features))], np.int32)
            self.seen.append(Seen(tree, tree.greatest(values[p]), of[tree.feature]))
        low, high = (np.array([[ends[v][i] for v in self.scope]], np.int32) for i in range(2))
        missing = np.array([[ends[v][2] for v in self.scope]], bool)
        front, done, held = ([np.zeros(1, np.int32) for _ in trees], low, high, missing), [], 0
        equal = next(iter(trees.values())).goes_along(problem) if cancels else None
        while len(front[1]):
            held += len(front[1])
            require(held <= MOST_BOXES, "too many combinations of leaves of one tree")
            at, low, high, missing = front
            if cancels:  # equal leaves, and whatever is not above 0, is no box
                keep = sum(one.top[n] for one, n in zip(self.seen, at)) > 0
                keep &= ~((at[0] == at[1]) & equal[at[0]])
                at, low, high, missing = [n[keep] for n in at], low[keep], high[keep], missing[keep]
            ended, sides = np.ones(len(low), bool), []
            for j, one in enumerate(self.seen):
                parted = ended & ~one.tree.leaf[at[j]]
                ended &= one.tree.leaf[at[j]]
                sides += self.parted(j, [n[parted] for n in at], low[parted], high[parted], missing[parted])
            done.append(([n[ended] for n in at], low[ended], high[ended], missing[ended]))
            there = [np.concatenate([side[0][i] for side in sides]) for i in range(len(self.seen))]
            front = there, *(np.concatenate([side[i] for side in sides]) for i in (1, 2, 3))
        value = joined([sum(one.top[n] for one, n in zip(self.seen, at)) for at, *_ in done], np.int64)
        order = np.argsort(-value, kind="stable")
        self.value = value[order]
        table = [np.concatenate([one[i] for one in done])[order] for i in (1, 2, 3)]
        self.columns = {v: tuple(x[:, i] for x in table) for i, v in enumerate(self.scope)}

    def parted(self, j, at, low, high, missing):
        """Both sides of the splits at which some combinations are at one point."""
        (tree, _, place), node, rows = self.seen[j], at[j], np.arange(len(at[j]))
        column, cell, gone = place[node], tree.cell[node], tree.missing[node]
        for child, is_left in ((tree.left, True), (tree.right, False)):
            least, end, absent = low[rows, column], high[rows, column], missing[rows, column]
            if is_left:
                end, absent = np.minimum(end, cell), absent & gone
            else:
                least, absent = np.maximum(least, cell), absent & ~gone
            meets = np.flatnonzero((least < end) | absent)
            narrowed, where = [x[meets] for x in (low, high, missing)], (np.arange(len(meets)), column[meets])
            for x, mine in zip(narrowed, (least, end, absent)):
                x[where] = mine[meets]
            yield [(child[node] if i == j else n)[meets] for i, n in enumerate(at)], *narrowed


class Tree:
    """A tree, node by node, and the numbers of its leaves; `levels` are its nodes from the root on."""

    def __init__(self, problem, p, t):
        model = problem.points[p]
        nodes, self.uses = model.whole[t], model.uses[t]
        feature, test, missing, left, right = zip(*(n if len(n) > 1 else (0, 0.0, False, 0, 0) for n in nodes))
        self.leaf = np.array([len(n) == 1 for n in nodes])
        self.numbers = [n[0] for n in nodes if len(n) == 1]
        self.most = max(abs(x) for row in self.numbers for x in (*row, 0))
        self.feature, self.missing = np.array(feature, np.int32), np.array(missing)
        self.left, self.right, tests = np.array(left, np.int32), np.array(right, np.int32), np.array(test, np.float64)
        self.cell = np.zeros(len(nodes), np.int32)
        for f in self.uses:
            mine = ~self.leaf & (self.feature == f)
            self.cell[mine] = np.searchsorted(np.array(problem.cuts[f]), tests[mine] + 0.0, side="right")
        self.levels, level = [], np.zeros(1, np.int32)
        while len(level):
            self.levels.append(level[~self.leaf[level]])
            level = np.concatenate((self.left[self.levels[-1]], self.right[self.levels[-1]]))

    def values(self, sums):
        """What some weights make of every leaf: whole numbers, of 64 bits if they fit."""
        if sum(map(abs, sums)) * self.most < 1 << BITS:
            return np.array(self.numbers, np.int64).reshape(len(self.numbers), -1) @ np.array(sums, np.int64)
        return np.array([sum(map(mul, sums, row)) for row in self.numbers], object)

    def greatest(self, values):
        """Of every node the greatest value of a leaf at or below it."""
        top = np.zeros(len(self.leaf), np.int64)
        top[self.leaf] = values
        for level in reversed(self.levels):
            top[level] = np.maximum(top[self.left[level]], top[self.right[level]])
        return top

    def goes_along(self, problem):
        """Of every node whether two points that reach it reach one leaf, as they agree on all features below."""
        agree = [problem.variable[0, f] == problem.variable[1, f] for f in range(len(problem.features))]
        along = self.leaf | np.array(agree, bool)[self.feature]
        for level in reversed(self.levels):
            along[level] &= along[self.left[level]] & along[self.right[level]]
        return along


def problem_sums(problem, weights, p, t):
    """How often some weights count every output of a tree at a point."""
    outputs = problem.points[p].outputs[t]
    return [sum(w * c.get((p, o), 0) for w, c in zip(weights, problem.coefficients)) for o in outputs]


def rounded_up(x, shift):
    return -(-x >> shift)


def joined(arrays, kind):
    return np.concatenate([np.zeros(0, kind), *(array.astype(kind) for array in arrays)])


def check(certificate, data, read=read_model, **allowed):
    """What `check` in core.py does, with numpy for proofs that suit."""
    return check_by(certificate, data, read, prove=BoxProof, **allowed)
