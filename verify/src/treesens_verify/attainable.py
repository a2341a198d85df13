"""A leaf of a proof without weights: all sums that the parts of a statement can attain are enumerated.

Trees that share no variable, directly or through others, choose their leaves independently, so each choice per part gives a
pair of sums for two rows. Parts that add to one row what they take from the other, in one proportion, share a table with a
bit per attainable sum; of all other choices the undominated ones are kept. Orders and clauses are ignored, which only
admits more inputs. Proof: docs/certificates.md.
"""

from collections import Counter
from functools import reduce
from itertools import product
from math import gcd

from .numbers import require

MOST_BITS = 1 << 27  # of a table of sums, which is an integer


def sums_refute(problem, domain):
    """True if no choice of cells of a domain gives every row at least 0."""
    rows = len(problem.constant)
    require(rows in (1, 2), "sums of parts are for one or two rows")
    found = [undominated(sums) for sums in sums_of_parts(problem, domain)]
    lines = [line_of(sums) for sums in found]
    step = next((line for line, _ in Counter(filter(None, lines)).most_common(1)), None)
    front, table, least = [tuple(problem.constant)], 1, tuple(0 for _ in range(rows))
    for sums, line in zip(found, lines):
        if line is None or line != step:
            problem.hold(len(front) * len(sums))
            front = undominated({added(x, y) for x in front for y in sums})
        else:
            first = min(sums)
            moves = sorted({(x[0] - first[0]) // step[0] for x in sums})
            require(table.bit_length() + moves[-1] <= MOST_BITS, "the sums are too far apart for a table")
            table, least = reduce(int.__or__, (table << move for move in moves)), added(least, first)
    return not any(reaches(table, step, added(x, least)) for x in front)


def reaches(table, step, start):
    """True if start + i * step is at least 0 in both rows, for a bit i of the table: the first row rises, the other falls."""
    if step is None:
        return min(start) >= 0
    low, high = max(0, -(start[0] // step[0])), start[1] // -step[1]
    return low <= high and (table >> low) & ((1 << min(high - low + 1, table.bit_length())) - 1) != 0


def parts_of(problem):
    """The parts: variables joined by trees, and the trees (point, number) that split on them, or on nothing."""
    owner = list(range(len(problem.domain)))

    def root(v):
        while owner[v] != v:
            v = owner[v]
        return v

    trees = [(p, t) for p, model in enumerate(problem.points) for t in range(len(model.trees))]
    scopes = [sorted({problem.variable[p, f] for f in problem.points[p].uses[t]}) for p, t in trees]
    for scope in scopes:
        for v in scope:
            owner[root(v)] = root(scope[0])
    found = {None: ([], [])}
    for v in range(len(owner)):
        found.setdefault(root(v), ([], []))[0].append(v)
    for tree, scope in zip(trees, scopes):
        found[root(scope[0]) if scope else None][1].append(tree)
    used = set().union(*problem.costs)
    return [(variables, inside) for variables, inside in found.values() if inside or not used.isdisjoint(variables)]


def sums_of_parts(problem, domain):
    """Per part, the sums that each choice of its cells adds to the rows."""
    for variables, trees in parts_of(problem):
        cells = [[k for k in range(problem.sizes[v]) if domain[v] >> k & 1] for v in variables]
        yield {sum_of(problem, trees, dict(zip(variables, at))) for at in counted(problem, cells)}


def counted(problem, cells):
    """The choices of some cells, counted against the limit on combinations."""
    for at in product(*cells):
        problem.hold(1)
        yield at


def sum_of(problem, trees, at):
    """The sums of some trees, and of the costs of their variables, in each row at these cells."""
    total = [sum(costs[v][k] for v, k in at.items() if v in costs) for costs in problem.costs]
    for p, t in trees:
        nodes, n = problem.tree(p, t), 0
        while len(nodes[n]) > 1:
            f, left, *children = nodes[n]
            n = children[not left >> at[problem.variable[p, f]] & 1]
        for r, row in enumerate(problem.coefficients):
            total[r] += sum(row.get((p, o), 0) * x for o, x in zip(problem.points[p].outputs[t], nodes[n][0]))
    return tuple(total)


def undominated(sums):
    """The undominated sums: no other one is at least as good in every row."""
    kept = []
    for one in sorted(sums, reverse=True):
        if not kept or one[-1] > kept[-1][-1]:
            kept.append(one)
    return kept


def line_of(sums):
    """The direction, in lowest terms, of which all differences of some undominated sums are multiples; None if there is
    none.
    """
    moves = [(x[0] - sums[-1][0], x[1] - sums[-1][1]) for x in sums[:-1] if len(x) == 2]
    if not moves:
        return None
    divisor = gcd(*moves[0])
    step = moves[0][0] // divisor, moves[0][1] // divisor
    return step if all(x * step[1] == y * step[0] for x, y in moves) else None


def added(x, y):
    return tuple(a + b for a, b in zip(x, y))
