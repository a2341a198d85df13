"""Proofs of deep trees with numpy: leaves that are weights alone, without messages. Only this file and bits.py need numpy.

A box is a combination of leaves of one tree: a run of cells of every variable, and perhaps its missing value. Gaps in a
domain are treated as filled, and values are rounded upwards to units that fit 64 bits. Of rows that cancel only boxes above
0 are kept, since the others add at most 0. All of this only raises bounds: core.py accepts every proof that is accepted
here, if it has the time, and judges the others.
"""

from collections import Counter
from operator import mul

import numpy as np

from .bits import Cuts, are_refuted
from .core import MALFORMED, MOST_SHIFT, Proof, highest, lowest
from .core import check as check_by
from .models import no_circles, read_model
from .numbers import Rejected, require

BITS = 62  # of a sum
MOST_BOXES = 1 << 25  # combinations of leaves that are gone through at a time
NARROW = np.maximum, np.minimum, np.logical_and  # of first cells, cells after the last ones, and missing values
MOST_CELLS = 1 << 24  # nodes of trees that are looked at together, times their features


class BoxProof:
    """Walks a tree of cuts in preorder, as `Proof` does."""

    def __init__(self, problem):
        self.problem, self.layers, self.forests = problem, {}, {}
        self.ends = [self.ends_of(v, cells) for v, cells in enumerate(problem.domain)]

    def check(self, nodes):
        """Rejected if neither boxes nor the proof in core.py refute every leaf.

        An error in the boxes decides nothing: numpy's versions raise different errors where a number does not fit.
        """
        try:
            require(self.suits(nodes), "messages, categories or costs")
            self.go_through(nodes)
        except (Rejected, MemoryError, *MALFORMED):
            Proof(self.problem).check(nodes)

    def go_through(self, nodes):
        """Processes the leaves with the most frequent weights together, all others one by one."""
        if self.problem.clauses or self.problem.orders:
            walk = Proof(self.problem)  # its cuts and its propagation
            walk.bound = self.bound
            return walk.check(nodes)
        usual = Counter(tuple(node[0]) for node in nodes if len(node) == 3).most_common(1)
        layer = self.layer(usual[0][0]) if usual else None
        cuts = Cuts(self.problem, self.ends, nodes, usual[0][0] if usual else None, self.bound_at)
        require(not len(cuts.asked) or are_refuted(cuts, layer), "a leaf of the proof does not refute its cells")

    def suits(self, nodes):
        """True if all leaves are weights alone, all splits cut numbers, and no row has costs."""
        plain = (
            self.problem.features
            and not any(self.problem.costs)
            and not any(model.categories for model in self.problem.points)
        )
        return plain and all(len(node) != 1 and (len(node) != 3 or node[2] == []) for node in nodes)

    def layer(self, weights):
        require(len(weights) == len(self.problem.constant), "one weight per row is needed")
        require(all(type(x) is int and x >= 0 for x in weights), "no weights")
        key = tuple(weights)
        if key not in self.layers:
            self.layers[key] = Layer(self.problem, key, self.ends, self.forest)
        return self.layers[key]

    def forest(self, p, trees):
        """Some trees of the model of a point, independent of weights."""
        key = id(self.problem.points[p]), *trees
        if key not in self.forests:
            self.forests[key] = Forest(self.problem, p, trees)
        return self.forests[key]

    def ends_of(self, v, cells):
        """The first cell with a value, the one after the last, and True if the value may be missing."""
        missing = self.problem.sizes[v] - 1
        present = cells & (1 << missing) - 1
        return (lowest(present), highest(present) + 1, bool(cells >> missing)) if present else (0, 0, True)

    def bound(self, domain, weights, exponent, _):
        """An upper bound of the weighted slacks of all rows over the domain, in units of the layer."""
        return self.bound_at([self.ends_of(v, cells) for v, cells in enumerate(domain)], weights, exponent)

    def bound_at(self, ends, weights, exponent):
        require(type(exponent) is int and 0 <= exponent <= MOST_SHIFT, "no weights")
        layer = self.layer(weights)
        boxes = layer.every
        for v, (before, mine) in enumerate(zip(self.ends, ends)):
            boxes = layer.narrowed(boxes, v, before, mine)
        return layer.bound(boxes)


class Layer:
    """The boxes of all trees for some weights of the rows: by tree, the most valuable ones first."""

    def __init__(self, problem, weights, ends, forest_of):
        self.problem, self.ends, self.columns, self.tables = problem, ends, {}, {}
        constant = sum(w * c for w, c in zip(weights, problem.constant))
        groups, most = {}, abs(constant)
        largest = [max(map(abs, model.units.values()), default=0) for model in problem.points]
        for t, points in problem.factors:
            sums = {p: problem_sums(problem, weights, p, t) for p in points}
            own = {p: one for p, one in sums.items() if any(one)}
            if own:  # else it adds nothing
                cancels = len(points) == 2 and not any(map(sum, zip(*sums.values())))
                groups.setdefault((tuple(own), cancels), []).append((t, own))
                most += sum(sum(map(abs, one)) * largest[p] for p, one in own.items())
        self.shift = max(0, most.bit_length() - BITS + 1)
        self.constant = rounded_up(constant, self.shift)
        self.made, self.must, factor = [], [], []
        for (points, cancels), trees in groups.items():
            for some in batches(problem, points, trees):
                values = {p: [self.values(p, t, tuple(own[p])) for t, own in some] for p in points}
                made = Boxes(problem, values, forest_of(points[0], [t for t, _ in some]), cancels, ends)
                factor.append(made.tree + len(self.must))
                self.made.append(made)
                self.must += [not cancels] * len(some)
        self.must, self.factor = np.array(self.must, bool), joined(factor, np.int32)
        self.value = joined([made.value for made in self.made], np.int64)
        self.every = np.arange(len(self.value))

    def values(self, p, t, sums):
        """The values of the leaves of a tree at a point."""
        model = self.problem.points[p]
        key = id(model), sums
        if key not in self.tables:
            self.tables[key] = Values(model, sums, self.shift)
        return self.tables[key].of(model.trees[t])

    def column(self, v, i):
        """First cells (0), the cells after the last ones (1), or missing values (2) of all boxes about a variable."""
        if (v, i) not in self.columns:
            kind = bool if i == 2 else kind_of_cells(self.problem.sizes[v])
            self.columns[v, i] = joined([made.column(v, i, self.ends[v][i]) for made in self.made], kind)
        return self.columns[v, i]

    def narrowed(self, boxes, v, before, ends):
        """The boxes that meet the ends of a variable, of those that met earlier ones."""
        if ends == before:
            return boxes
        low, high, missing = ends
        meets = (self.column(v, 0).take(boxes) < high) & (self.column(v, 1).take(boxes) > low)
        if missing:
            meets |= self.column(v, 2).take(boxes)
        return boxes.compress(meets)

    def bound(self, boxes):
        """The sum of the best boxes, the first ones of their trees; -1 if a tree that needs a box has none left."""
        factor = self.factor.take(boxes)
        best = boxes.compress(np.concatenate((np.ones(min(len(factor), 1), bool), factor[1:] != factor[:-1])))
        if np.count_nonzero(self.must[self.factor[best]]) < np.count_nonzero(self.must):
            return -1
        return int(self.value.take(best).sum()) + self.constant


class Boxes:
    """The combinations of leaves of some trees at some points with their values, by tree, the most valuable ones first."""

    def __init__(self, problem, values, forest, cancels, ends):
        self.problem, self.forest, self.points, points = problem, forest, [*values], [*values]
        self.ends = [forest.ends(problem, p, ends) for p in points]
        self.missing = any(one[2].any() for one in self.ends)
        here = [problem.variable[points[0], f] for f in forest.features]
        self.shared = np.array([problem.variable[points[-1], f] == v for f, v in zip(forest.features, here)], bool)
        tops = [forest.greatest(values[p]) for p in points]
        along = forest.goes_along(self.shared) if cancels else None
        front, done, held = [forest.roots] * len(points), [], 0
        while len(front[0]):
            if cancels:  # equal leaves, and whatever is not above 0, is no box
                keep = sum(top[n] for top, n in zip(tops, front)) > 0
                keep &= ~((front[0] == front[-1]) & along[front[0]])
                front = [n[keep] for n in front]
            ended = np.logical_and.reduce([forest.leaf[n] for n in front])
            done.append([n[ended] for n in front])
            front = self.after([n[~ended] for n in front])
            held += len(done[-1][0])
            require(held + len(front[0]) <= MOST_BOXES, "too many combinations of leaves")
        self.at = [joined([one[j] for one in done], np.int32) for j in range(len(points))]
        value, tree = sum(top[n] for top, n in zip(tops, self.at)), forest.tree[self.at[0]]
        order = np.lexsort((-value, tree))
        self.at, self.value, self.tree = [n[order] for n in self.at], value[order], tree[order]

    def after(self, front):
        """The combinations after a split; a split on a feature on which two points agree is one for both if they are at it."""
        forest, found = self.forest, [[] for _ in front]
        feature, last = [forest.feature[n] for n in front], len(front) - 1
        both = (front[0] == front[last]) & self.shared[feature[0]] if last else np.zeros(len(front[0]), bool)
        first = ~forest.leaf[front[0]] & (
            forest.leaf[front[last]] | (forest.level[front[0]] <= forest.level[front[last]])
        )
        for j in range(len(front)):
            moves = np.flatnonzero(first if j == 0 else ~first)
            old, f, along = [n[moves] for n in front], feature[j][moves], both[moves]
            for children in (forest.left, forest.right):
                child = children[old[j]]
                new = [child if i == j else np.where(along, child, n) for i, n in enumerate(old)]
                meets = self.meets(j, new, f)
                for mine, n in zip(found, new):
                    mine.append(n[meets])
        return [np.concatenate(mine) for mine in found]

    def meets(self, j, at, f):
        """True if some cell, or a missing value, of the variable of a feature at one point reaches all of its nodes."""
        found, apart = [one[f] for one in self.ends[j]], ~self.shared[f]
        for i, n in enumerate(at):
            for k in range(3 if self.missing else 2):
                mine = self.forest.cells_of(k, f, n)  # what is of a variable of its own narrows nothing
                found[k] = NARROW[k](found[k], mine if i == j else np.where(apart, found[k], mine))
        low, high, gone = found
        return (low < high) | gone if self.missing else low < high

    def column(self, v, i, end):
        """First cells, cells after the last ones, or missing values of the boxes about a variable whose domain has this end."""
        f, kind = self.problem.feature_of[v], bool if i == 2 else kind_of_cells(self.problem.sizes[v])
        found = np.full(len(self.value), end, kind)
        if f in self.forest.place:
            for p, n in zip(self.points, self.at):
                if self.problem.variable[p, f] == v:
                    found = NARROW[i](found, self.forest.cells_of(i, self.forest.place[f], n))
        return found


class Forest:
    """Some trees of the model of a point, one after the other, and the cells that reach every node.

    `features` are the features they split on, and splits name them by position. `levels` are the splits from the roots on.
    """

    def __init__(self, problem, p, trees):
        model = problem.points[p]
        self.features = sorted(set().union(*(model.uses[t] for t in trees))) or [0]
        self.place = {f: i for i, f in enumerate(self.features)}
        sizes = np.array([model.trees[t].size for t in trees])
        self.roots, count = (np.cumsum(sizes) - sizes).astype(np.int32), int(sizes.sum())
        at = np.concatenate([start + np.array(model.trees[t].at, np.int32) for start, t in zip(self.roots, trees)])
        self.tree, self.leaf = np.repeat(np.arange(len(trees), dtype=np.int32), sizes), np.ones(count, bool)
        self.leaf[at] = False
        inner, start = ~self.leaf, self.roots[self.tree[at]]
        columns = ([x for t in trees for x in model.trees[t].splits[i]] for i in range(5))
        feature, tests, missing, left, right = columns
        self.feature, self.left, self.right, self.cell = (np.zeros(count, np.int32) for _ in range(4))
        self.missing, self.level = np.zeros(count, bool), np.zeros(count, np.int32)
        of = np.zeros(len(problem.features), np.int32)
        of[self.features] = np.arange(len(self.features))
        self.feature[inner], self.missing[inner] = of[np.array(feature, np.int64)], np.array(missing, bool)
        self.left[inner], self.right[inner] = np.array(left, np.int32) + start, np.array(right, np.int32) + start
        tests = np.array(tests, np.float64) + 0.0
        for f, place in self.place.items():
            mine = self.feature[inner] == place
            self.cell[at[mine]] = np.searchsorted(np.array(problem.cuts[f]), tests[mine], side="right")
        self.reach([len(problem.cuts[f]) + 1 for f in self.features])

    def reach(self, cells):
        """The cells that reach every node, level by level."""
        kind = kind_of_cells(max(cells, default=0))
        shape = len(self.leaf), len(cells)
        low, high, gone = np.zeros(shape, kind), np.zeros(shape, kind), np.ones(shape, bool)
        high[self.roots], self.levels, level = cells, [], self.roots
        while len(level):
            level = level[~self.leaf[level]]
            self.levels.append(level)
            feature, cell = self.feature[level], self.cell[level].astype(kind)
            for child, is_left in ((self.left[level], True), (self.right[level], False)):
                self.level[child] = len(self.levels)
                for table in (low, high, gone):
                    table[child] = table[level]
                if is_left:
                    high[child, feature] = np.minimum(high[child, feature], cell)
                else:
                    low[child, feature] = np.maximum(low[child, feature], cell)
                gone[child, feature] &= self.missing[level] == is_left
            level = np.concatenate((self.left[level], self.right[level]))
        self.tables = [np.ascontiguousarray(table.T) for table in (low, high, gone)]

    def cells_of(self, i, feature, nodes):
        """The cells that reach nodes, of one feature or one each: first cells (0), cells after the last (1), or missing
        values (2).
        """
        return self.tables[i].ravel().take(nodes + feature * np.int64(len(self.leaf)))

    def ends(self, problem, p, ends):
        """The ends of the domain of every feature at a point."""
        mine = [ends[problem.variable[p, f]] for f in self.features]
        return [np.array([one[i] for one in mine], bool if i == 2 else self.tables[0].dtype) for i in range(3)]

    def greatest(self, values):
        """Per node, the greatest value of a leaf at or below it."""
        top = np.zeros(len(self.leaf), np.int64)
        top[self.leaf] = joined(values, np.int64)
        for level in reversed(self.levels):
            top[level] = np.maximum(top[self.left[level]], top[self.right[level]])
        return top

    def goes_along(self, shared):
        """Per node, True if two points that reach it reach one leaf, as they agree on all features below."""
        along = self.leaf | shared[self.feature]
        for level in reversed(self.levels):
            along[level] &= along[self.left[level]] & along[self.right[level]]
        return along


class Values(dict):
    """The values of leaves under some weights, one per output: in units of 1 / 2^shift, rounded upwards.

    Most leaves of a forest hold the same few numbers, so each number is converted once.
    """

    def __init__(self, model, sums, shift):
        self.units, self.sums, self.shift = model.units, sums, shift

    def __missing__(self, numbers):
        self[numbers] = rounded_up(sum(map(mul, self.sums, map(self.units.get, numbers))), self.shift)
        return self[numbers]

    def of(self, tree):
        return np.fromiter(map(self.__getitem__, map(tuple, tree.leaves)), np.int64, len(tree.leaves))


def batches(problem, points, trees):
    """The trees in batches, so that the cells that reach their nodes fit into memory."""
    model, some, nodes, features = problem.points[points[0]], [], 0, set()
    for one in trees:
        more, used = nodes + model.trees[one[0]].size, features | model.uses[one[0]]
        if some and more * len(used) > MOST_CELLS:
            yield some
            some, more, used = [], model.trees[one[0]].size, model.uses[one[0]]
        some, nodes, features = [*some, one], more, used
    yield some


def problem_sums(problem, weights, p, t):
    """The number of times that some weights count each output of a tree at a point."""
    outputs = problem.points[p].outputs[t]
    return [sum(w * c.get((p, o), 0) for w, c in zip(weights, problem.coefficients)) for o in outputs]


def kind_of_cells(largest):
    """A type that holds every cell number up to this one. Each variable has its own."""
    return np.uint16 if largest < 1 << 16 else np.int32


def rounded_up(x, shift):
    return -(-x >> shift)


def joined(arrays, kind):
    return np.concatenate([np.zeros(0, kind), *(array.astype(kind) for array in arrays)])


def check(certificate, data, read=read_model, **allowed):
    """`check` of core.py, with numpy for suitable proofs."""
    with no_circles():
        return check_by(certificate, data, read, prove=BoxProof, **allowed)
