"""All leaves of a proof at once: the boxes of trees that they meet, as bits, and the sums of the best ones (boxes.py).

A node meets the boxes that its parent meets, except those on the other side of its cut. Every side of a cut, and every
node, is a row of bits, one per box; the nodes of a level are processed together. Where a node has few boxes left, the tree
below it continues with these alone.
"""

from bisect import bisect_left

import numpy as np

from .core import MOST_ENTRIES, MOST_SHIFT
from .numbers import require

WHOLE, SMALL, PARTS = 4096, 256, 12
"""So many nodes are looked at together; of more, those that begin a twelfth of all, and those with few below."""
MOST_BYTES = 1 << 26  # of nodes that are looked at together
BELOW, ABOVE, ABOVE_OR_MISSING = range(3)
NEAR = 4  # so many words of a tree are looked at one after the other
WORD = np.dtype("<u8")  # 64 boxes, the first one in the lowest bit


class Cuts:
    """The tree of cuts in preorder: the kind of each node, and the side of the cut above it.

    `asked` are the leaves with the usual weights; `bound(ends, weights, exponent)` judges others at once.
    """

    def __init__(self, problem, ends, nodes, usual, bound):
        self.sides, self.gaps, self.first = {}, {}, ends
        self.problem, self.domain = problem, problem.domain
        side, second, right, asked = *([0] * len(nodes) for _ in range(3)), []
        now, trail = list(ends), []
        # The parent of a right child, the variable that was cut, its ends, how long the trail is, and whether nothing is left.
        stack = [(None, None, None, 0, not all(problem.domain))]
        for i, node in enumerate(nodes):
            require(stack, "there are nodes after the last one")
            require(len(stack) * len(now) <= MOST_ENTRIES, "too many parts of the domain wait")
            parent, v, mine, length, dead = stack.pop()
            while len(trail) > length:
                u, before = trail.pop()
                now[u] = before
            if parent is not None:
                right[parent] = i
            if v is not None:
                side[i] = self.side_of(v, now[v], mine, second, i)
                trail.append((v, now[v]))
                now[v] = mine
            if len(node) == 2:
                v, cell = node
                require(0 <= v < len(now) and 0 < cell < problem.sizes[v], "a cut between no cells")
                low, high, missing = now[v]
                above, below = self.run(v, max(low, cell), high, missing), self.run(v, low, min(high, cell), False)
                for where, one in ((i, above), (None, below)):
                    stack.append((where, v, one, len(trail), dead or not (one[0] < one[1] or one[2])))
            elif not dead:
                require(len(node) == 3, "a leaf of the proof does not refute its cells")
                weights, exponent, _ = node
                require(type(exponent) is int and 0 <= exponent <= MOST_SHIFT, "no weights")
                if tuple(weights) == usual:
                    asked.append(i)
                else:
                    require(bound(now, weights, exponent) < 0, "a leaf of the proof does not refute its cells")
        require(not stack, "a part of the domain is not dealt with")
        size, wanted = [1] * len(nodes), [0] * len(nodes)
        for i in asked:
            wanted[i] = 1
        for i in range(len(nodes) - 1, -1, -1):
            if right[i]:
                size[i] += size[i + 1] + size[right[i]]
                wanted[i] = wanted[i + 1] | wanted[right[i]]
        self.asked, self.wanted = asked, np.array(wanted, bool)
        self.right, self.size = np.array(right, np.int64), np.array(size, np.int64)
        self.table = np.array(
            [(-1, 0, 0), *sorted(self.sides)], np.int64
        )  # so those of one variable and kind are neighbours
        place = np.zeros(len(self.table), np.int64)
        place[[self.sides[one] for one in sorted(self.sides)]] = np.arange(1, len(self.table))
        self.side, self.second = place[side], place[second]

    def part(self, root, most):
        """The nodes below one that are processed together, level by level, with the places of their parents; and those that
        begin a part of their own: all if they are few, otherwise those with many nodes below, and with next to none.
        """
        whole, small, size = min(WHOLE, most), max(min(SMALL, most // PARTS), 1), int(self.size[root])
        limit, held = max(size // PARTS, whole) if size > whole else 0, 1
        levels = [(np.array([root]), None, np.zeros(1, bool))]
        while True:
            at, _, later = levels[-1]
            inner = np.flatnonzero((self.right[at] > 0) & ~later)
            child = np.concatenate((at[inner] + 1, self.right[at[inner]]))
            keep = self.wanted[child]
            if not keep.any():
                return levels
            child, sizes, held = child[keep], self.size[child[keep]], held + len(child)
            # Of cuts that lead far down one side there would be too many at a time.
            later = sizes > 1 if held > 4 * most else (sizes > small) & (sizes <= limit)
            levels.append((child, np.tile(inner, 2)[keep], later))

    def side_of(self, v, before, mine, second, i):
        """The number of the side of a cut with these ends; 0 if they equal those before."""
        (low, high, missing), (start, end, may) = before, mine
        if missing and not may:  # a box that held the missing value alone has to hold a cell now
            second[i] = self.number(v, ABOVE, start)
        if end < high and not (start == end == 0):
            return self.number(v, BELOW, end)
        if start > low or end < high:
            return self.number(v, ABOVE_OR_MISSING if may else ABOVE, start if end else self.problem.sizes[v] - 1)
        return 0

    def number(self, *side):
        return self.sides.setdefault(side, len(self.sides) + 1)

    def run(self, v, low, high, missing):
        """The ends of the cells of the domain from one to another."""
        allowed = self.allowed(v)
        if allowed is not None and low < high:
            first, last = bisect_left(allowed, low), bisect_left(allowed, high)
            low, high = (allowed[first], allowed[last - 1] + 1) if first < last else (0, 0)
        return (low, high, missing) if low < high else (0, 0, missing)

    def allowed(self, v):
        """The cells of the domain of a variable, if there are gaps between them."""
        if v not in self.gaps:
            (low, high, _), cells = self.first[v], self.domain[v]
            full = cells >> low & (1 << high - low) - 1 == (1 << high - low) - 1
            self.gaps[v] = None if full else [k for k in range(low, high) if cells >> k & 1]
        return self.gaps[v]


class Block:
    """Some boxes of a layer, or of a block, with a bit each. Every tree begins with a word of its own.

    It replaces a layer: `factor`, `value` and `column` are by bit.
    """

    def __init__(self, layer, boxes, cuts):
        factor = layer.factor.take(boxes)
        self.must, self.cuts, self.layer, self.columns = layer.must, cuts, layer, {}
        count = np.bincount(factor, minlength=len(self.must))
        self.lacks = bool((self.must & (count == 0)).any())  # nothing is left of a tree that has to have a box
        words = -(-count // 64)
        after = np.cumsum(words)
        self.there = np.flatnonzero(count)
        self.begin, self.end = (after - words)[self.there], after[self.there]
        self.bytes = 8 * max(int(words.sum()), 1)
        place = (64 * (after - words) - (np.cumsum(count) - count))[factor] + np.arange(len(boxes))
        self.count, self.of = len(boxes), np.zeros(8 * self.bytes, np.int64)
        self.of[place] = boxes
        every, self.value, self.factor = (np.zeros(8 * self.bytes, kind) for kind in (bool, np.int64, np.int32))
        every[place], self.value[place], self.factor[place] = True, layer.value.take(boxes), factor
        self.every = packed(every)

    def column(self, v, i):
        """First cells (0), the cells after the last ones (1), or missing values (2) of all boxes about a variable."""
        if (v, i) not in self.columns:
            self.columns[v, i] = self.layer.column(v, i).take(self.of)
        return self.columns[v, i]

    def bits(self, sides):
        """The boxes on the sides of some cuts, a row each; side 0 has all."""
        rows = np.full((len(sides), self.bytes), 255, np.uint8)
        kinds = self.cuts.table[sides, :2]
        ends = np.flatnonzero(np.any(kinds[1:] != kinds[:-1], axis=1)) + 1
        for start, end in zip([0, *ends.tolist()], [*ends.tolist(), len(sides)]):
            most = max(1, MOST_BYTES // (32 * self.bytes))
            for at in range(start, end, most) if sides[start] else ():
                rows[at : min(at + most, end)] = self.on(sides[at : min(at + most, end)])
        return rows

    def on(self, sides):
        """The boxes on some sides of one variable and kind."""
        v, kind = self.cuts.table[sides[0], :2].tolist()
        mine = self.column(v, 0 if kind == BELOW else 1)
        cells = self.cuts.table[sides, 2].astype(mine.dtype)[:, None]
        meets = mine < cells if kind == BELOW else mine > cells
        return packed(meets | self.column(v, 2) if kind == ABOVE_OR_MISSING else meets)

    def bounds(self, rows, constant):
        """For every row the sum of the best boxes, the first ones of their trees; -1 if a tree lacks a required box."""
        words = rows.view(WORD)
        found = words.take(self.begin, axis=1)
        total, lacks = (
            self.best(np.broadcast_to(self.begin, found.shape), found).sum(1) + constant,
            np.zeros(len(rows), bool),
        )
        leaf, tree = np.nonzero(found == 0)
        at = self.begin[tree]
        for turn in range(NEAR + 1):
            at = at + 1
            if turn == NEAR:  # all others, tree by tree
                order = np.argsort(tree, kind="stable")
                leaf, tree, at = leaf[order], tree[order], at[order]
                for some in np.split(np.arange(len(tree)), np.flatnonzero(np.diff(tree)) + 1) if len(tree) else ():
                    end = self.end[tree[some[0]]]
                    rest = words[leaf[some], at[some[0]] : end] != 0
                    at[some] = np.where(rest.any(1), at[some[0]] + rest.argmax(1), end) if rest.shape[1] else end
            inside = at < self.end[tree]
            lacks[leaf[~inside & self.must[self.there[tree]]]] = True
            leaf, tree, at = leaf[inside], tree[inside], at[inside]
            found = words[leaf, at]
            np.add.at(total, leaf, self.best(at, found))
            leaf, tree, at = (x[found == 0] for x in (leaf, tree, at))
        total[lacks] = -1
        return total

    def best(self, at, words):
        """The value of the first box of every word, 0 if it has none."""
        lowest = (words & -words).astype(np.float64).view(np.int64) >> 52  # the exponent of a power of two
        value = self.value.take(at * 64 + (lowest - 1023), mode="clip")
        return np.where(words == 0, 0, value)


def are_refuted(cuts, layer):
    """True if the bounds of all usual leaves are below 0."""
    return all((bounds < 0).all() for _, bounds in bounds_of(cuts, layer))


def bounds_of(cuts, layer):
    """The usual leaves in batches, with their bounds."""
    stack = [(layer, 0, None)]
    while stack:
        layer_of, root, row = stack.pop()
        boxes = layer.every if row is None else np.flatnonzero(np.unpackbits(row, bitorder="little").view(bool))
        block = Block(layer_of, boxes, cuts)
        if block.lacks:
            continue
        levels = cuts.part(root, max(1, MOST_BYTES // block.bytes))
        used = np.zeros(len(cuts.table), bool)
        for at, *_ in levels:
            used[cuts.side[at]] = used[cuts.second[at]] = True
        sides = np.flatnonzero(used)
        place = np.cumsum(used) - 1
        bits, rows, leaves = block.bits(sides), block.every[None], []
        for number, (at, parent, later) in enumerate(levels):
            if number:
                rows = rows[parent]
                rows &= bits[place[cuts.side[at]]]
                more = np.flatnonzero(cuts.second[at])
                if len(more):
                    rows[more] &= bits[place[cuts.second[at[more]]]]
            ended = cuts.right[at] == 0
            leaves.append((at[ended], rows[ended]))
            stack += [(block, int(at[i]), rows[i].copy()) for i in np.flatnonzero(later).tolist()]
        yield (
            np.concatenate([at for at, _ in leaves]),
            block.bounds(np.concatenate([x for _, x in leaves]), layer.constant),
        )


def packed(flags):
    return np.packbits(flags, axis=-1, bitorder="little")
