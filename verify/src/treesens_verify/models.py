"""Readers of model files: XGBoost's JSON and UBJSON, and the trees that `treesens export` writes of any other model.

Their reading of a model is trusted: the side of each split, and the value and output of each leaf.
"""

import gc
import hashlib
import json
import math
import struct
from contextlib import contextmanager
from fractions import Fraction
from functools import cached_property
from itertools import chain
from operator import eq, lt

from .numbers import LARGEST, WHOLE, Rejected, common, float32, fraction, require

LOGISTIC = {"binary:logistic", "reg:logistic"}
LOG = {"count:poisson", "reg:gamma", "reg:tweedie", "survival:cox", "survival:aft"}
MOST_FEATURES = 1 << 22
UBJSON = {"i": ">b", "U": ">B", "I": ">h", "l": ">i", "L": ">q", "d": ">f", "D": ">d"}


class Tree:
    """A tree in columns: `splits` are features, tests, flags (missing goes left), left and right children of the nodes
    `at`.

    All other nodes are leaves, each with its numbers. Objects for nodes are made on demand (`nodes`).
    """

    def __init__(self, size, at, splits, leaves):
        self.size, self.at, self.splits, self.leaves = size, at, splits, leaves

    def __eq__(self, other):
        return self.nodes == other.nodes

    __hash__ = None

    @cached_property
    def nodes(self):
        """Nodes (feature, test, missing goes left, left, right), and leaves (values,)."""
        found, leaves = [None] * self.size, iter(self.leaves)
        for i, split in zip(self.at, zip(*self.splits)):
            found[i] = split
        return [(tuple(next(leaves)),) if node is None else node for node in found]

    def checked(self, features):
        """Checks that children come later and have one parent, so that every path ends in a leaf and a tree is a tree."""
        feature, _, _, left, right = self.splits
        require({*map(type, chain(feature, left, right))} <= {int}, "an index is not a whole number")
        later = (
            all(map(lt, self.at, left)) and all(map(lt, self.at, right)) and max(left + right, default=-1) < self.size
        )
        require(later, "a child does not follow its parent")
        require(all(0 <= f < features for f in {*feature}), "a split uses a feature that does not exist")
        require(len({*left, *right}) == 2 * len(left), "a node has two parents")
        require(self.size, "a tree without nodes")
        return self


class Model:
    """Trees whose splits have a feature and a test, and whose leaves hold one number per output of the tree.

    x goes left iff x < test, or if the test is a set: iff it holds the category x. A margin is base + sum of leaves /
    average. The file has `total` trees. `made_from` is the SHA-256 of a trees file's original model. `learnt` trees score
    how typical an input is of some rows, and are not a model.
    """

    def __init__(
        self, features, trees, outputs, base, total, number="float32", average=1, made_from=None, learnt=False
    ):
        require(all(type(name) is str for name in features), "the name of a feature is no text")
        self.total, self.made_from, self.learnt = total, made_from, learnt
        self.features, self.trees, self.outputs, self.base = features, trees, outputs, base
        self.number, self.average, self.cuts = number, average, [set() for _ in features]
        self.categories, self.uses = set(), [{*tree.splits[0]} for tree in trees]
        for f, test in {*chain.from_iterable(zip(*tree.splits[:2]) for tree in trees)}:
            if isinstance(test, frozenset):
                require(
                    all(0 <= code < WHOLE[number] for code in test),
                    f"a category is no whole number below {WHOLE[number]}",
                )
                self.categories.add(f)
                self.cuts[f] |= {0.0} | {float(code + i) for code in test for i in (0, 1)}
            else:
                self.cuts[f].add(test + 0.0)
        numbers = {*chain.from_iterable(chain.from_iterable(tree.leaves for tree in trees)), *base}
        ratios = {x: x.as_integer_ratio() for x in numbers}  # most leaves of a forest hold the same few numbers
        self.scale = common(b for _, b in ratios.values())
        self.units = {x: a * (self.scale // b) for x, (a, b) in ratios.items()}

    def whole(self, t):
        """The nodes of a tree, the numbers of leaves in units of 1 / scale."""
        return [(tuple(map(self.units.get, n[0])),) if len(n) == 1 else n for n in self.trees[t].nodes]


def beside(model, others):
    """A model with learnt trees: their sums are further outputs after its own."""
    trees, outputs, base = list(model.trees), list(model.outputs), list(model.base)
    for other in others:
        outputs += [tuple(len(base) + o for o in own) for own in other.outputs]
        for tree in other.trees:  # a margin divides by the average of the model
            leaves = [tuple(Fraction(x) * model.average for x in numbers) for numbers in tree.leaves]
            trees.append(Tree(tree.size, tree.at, tree.splits, leaves))
        base += other.base
    return Model(model.features, trees, outputs, base, len(trees), model.number, model.average) if others else model


@contextmanager
def no_circles():
    """Suspends Python's search for cyclic objects, which would take as long as reading many nodes."""
    collects = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if collects:
            gc.enable()


def read_model(data, stated):
    """Reads a model file (bytes) as a certificate specifies."""
    with no_circles():
        return read_any(data, stated)


def read_any(data, stated):
    require(stated["format"] in ("treesens-trees", "xgboost-ubj", "xgboost-json"), "a model file of an unknown format")
    if stated["format"] == "treesens-trees":
        return read_trees(read_json(data), stated)
    return read_xgboost(Ubjson(data).whole() if stated["format"] == "xgboost-ubj" else read_json(data, str), stated)


def read_json(data, parse_float=float):
    """JSON in UTF-8 without duplicate keys."""
    return json.loads(data.decode(), parse_float=parse_float, object_pairs_hook=object_of)


def object_of(pairs):
    found = dict(pairs)
    require(len(found) == len(pairs), "an object has a key twice")
    return found


def by_sha256(data):
    return {hashlib.sha256(d).hexdigest(): d for d in data}


def content_of(sha256, data):
    content = by_sha256(data).get(sha256)
    require(content is not None, f"no model file has the SHA-256 {sha256}")
    return content


def check_origin(made_from, data):
    """Checks that a trees file is needed: its original model is given, and is of a kind that is not read here."""
    require(
        made_from in by_sha256(data),
        f"a trees file made from a model with the SHA-256 {made_from}, which is not among the model files",
    )
    require(
        not is_xgboost(content_of(made_from, data)), "a trees file of a model of XGBoost, which is read here itself"
    )


def is_xgboost(data):
    """True if `read_xgboost` reads a file: a model of XGBoost whose leaves hold one number each."""
    for read in (read_json, lambda data: Ubjson(data).whole()):
        try:
            _, trees, _ = trees_of(read(data))
            return not any(int(tree["tree_param"].get("size_leaf_vector") or 0) > 1 for tree in trees)
        except (ArithmeticError, AttributeError, LookupError, RecursionError, TypeError, ValueError, Rejected):
            continue
    return False


def read_trees(file, stated):
    """The neutral format. Numbers of leaves may be texts of fractions, and thresholds `inf` or `-inf`."""
    require(file["format"] == "treesens-trees" and file["version"] == 1, "no trees of version 1")
    learnt = file["made_from"] == {"format": "rows"}
    made_from = None if learnt else file["made_from"]["sha256"]
    require(learnt or type(made_from) is str, "trees that do not say what they were made from")
    require(file["number"] in LARGEST, "numbers of an unknown type")
    require(type(file["average"]) is int and file["average"] > 0, "an average of no trees")
    base, trees, outputs = [fraction(b) for b in file["base"]], [], []
    require(stated["trees"] <= len(file["trees"]), "the model has fewer trees than stated")
    require(base == [fraction(b) for b in stated["base"]], "the base margin is another one")
    for tree in file["trees"][: stated["trees"]]:
        outputs.append(tuple(tree["outputs"]))
        require(all(type(o) is int and 0 <= o < len(base) for o in outputs[-1]), "a tree feeds no output")
        trees.append(neutral_tree(tree["nodes"], len(outputs[-1])).checked(len(file["features"])))
    total = len(file["trees"])
    return Model(file["features"], trees, outputs, base, total, file["number"], file["average"], made_from, learnt)


def neutral_tree(nodes, outputs):
    """The columns of lists: [feature, test, missing goes left, left, right], or [[value, ...]] for a leaf."""
    require({*map(type, nodes)} <= {list} and {*map(len, nodes)} <= {1, 5}, "a node is neither a split nor a leaf")
    flat = list(chain.from_iterable(node for node in nodes if len(node) == 5))
    feature, tests, missing, left, right = (flat[i::5] for i in range(5))
    tests = tests if {*map(type, tests)} <= {float} else list(map(neutral_test, tests))
    require(all(map(eq, tests, tests)), "a threshold is none")
    require({*map(type, missing)} <= {bool}, "a flag is neither true nor false")
    leaves = [node[0] for node in nodes if len(node) == 1]
    require({*map(type, leaves)} <= {list}, "a leaf is no list of numbers")
    require({*map(len, leaves)} <= {outputs}, "a leaf has another number of values than its tree")
    if not {*map(type, chain.from_iterable(leaves))} <= {float}:
        leaves = [[x if type(x) is float else fraction(x) for x in numbers] for numbers in leaves]
    at = [i for i, node in enumerate(nodes) if len(node) == 5]
    return Tree(len(nodes), at, [feature, tests, missing, left, right], leaves)


def neutral_test(test):
    """A threshold, or a set of categories."""
    if isinstance(test, list):
        require(all(type(c) is int and c >= 0 for c in test), "a category is no whole number")
        return frozenset(test)
    require(type(test) in (int, float) or test in ("inf", "-inf"), "a threshold is none")
    return float(test)


def read_xgboost(file, stated):
    """A model of XGBoost, or its first trees if fewer are stated. x < cut in float32."""
    learner = file["learner"]
    model, trees, weights = trees_of(file)
    used, parameters = trees[: stated["trees"]], learner["learner_model_param"]
    require(len(used) == stated["trees"], "the model has fewer trees than stated")
    require(len(model["tree_info"]) == len(model["trees"]), "trees without an output")
    count, classes = (
        int(parameters["num_feature"]),
        max(1, *(int(parameters.get(k, 0)) for k in ("num_class", "num_target"))),
    )
    rounds = model.get("iteration_indptr", [0, len(trees)])
    require(rounds == sorted(rounds) and [rounds[0], rounds[-1]] == [0, len(trees)], "rounds that leave trees out")
    require(0 <= count <= MOST_FEATURES, f"more than {MOST_FEATURES} features")
    require(all(type(o) is int and 0 <= o < classes for o in model["tree_info"]), "a tree feeds no output")
    trees = [xgboost_tree(tree, float32(w), count) for tree, w in zip(used, weights)]
    base, scores = [fraction(b) for b in stated["base"]], str(parameters["base_score"]).strip("[]").split(",")
    require(len(base) == classes and len(scores) in (1, classes), "the base margin needs one number per output")
    for margin, score in zip(base, map(float32, scores * classes)):
        check_base(learner["objective"]["name"], score, margin)
    features = learner.get("feature_names") or [f"f{i}" for i in range(count)]
    require(len(features) == count, "the names of the features are not as many as the features")
    return Model(features, trees, [(o,) for o in model["tree_info"][: len(used)]], base, len(model["trees"]))


def trees_of(file):
    """The model of a booster of trees, its trees and their weights. XGBoost puts a tree at its `id`, wherever it is listed."""
    booster = file["learner"]["gradient_booster"]
    require(booster["name"] in ("gbtree", "dart"), "a booster that is no sum of trees")
    dart = booster["name"] == "dart"
    model = (booster["gbtree"] if dart else booster)["model"]
    trees = sorted(model["trees"], key=lambda tree: tree["id"])
    require([tree["id"] for tree in trees] == list(range(len(trees))), "the ids of trees are not 0, 1, ..")
    home, other = (
        (booster, model) if dart else (model, booster)
    )  # XGBoost 3.4 writes the weights of DART into the model
    weights = home["weight_drop"] if dart or "weight_drop" in home else [1] * len(trees)
    require(
        dart or "weight_drop" not in home or file["version"][:2] >= [3, 4], "weights that this version does not use"
    )
    require("weight_drop" not in other and len(weights) == len(trees), "trees without a weight, or with two")
    return model, trees, weights


def xgboost_tree(tree, weight, features):
    require(int(tree["tree_param"].get("size_leaf_vector") or 0) <= 1, "leaves that hold vectors are not read here")
    segments = zip(
        tree.get("categories_nodes", ()), tree.get("categories_segments", ()), tree.get("categories_sizes", ())
    )
    right_sets = {node: frozenset(int(c) for c in tree["categories"][at : at + size]) for node, at, size in segments}
    pairs = zip(tree["left_children"], tree["right_children"])
    require(
        all(right == left + 1 for left, right in pairs if left != -1), "a right child that does not follow the left"
    )
    columns = [
        tree[k] for k in ("left_children", "right_children", "split_indices", "default_left", "split_conditions")
    ]
    nodes = []
    for left, right, feature, default, text in zip(*columns, strict=True):
        number = float32(text)
        require(default in (0, 1), "a flag is neither true nor false")
        if left == -1:
            require(math.isfinite(number), "the number of a leaf is none")
            nodes.append(((number if weight == 1 else Fraction(weight) * Fraction(number),),))
        elif len(nodes) in right_sets:  # the categories of a set go right
            require(min(right_sets[len(nodes)], default=0) >= 0, "a category is no whole number")
            nodes.append((feature, right_sets[len(nodes)], not default, right, left))
        else:
            require(not math.isnan(number), "a threshold is none")
            nodes.append((feature, number, bool(default), left, right))
    kinds = tree.get("split_type") or [0] * len(nodes)
    inner = {n for n, node in enumerate(nodes) if len(node) > 1}
    require({n for n in inner if kinds[n]} == inner & right_sets.keys(), "categories of a split that has none")
    at = sorted(inner)
    splits = list(map(list, zip(*(nodes[i] for i in at)))) or [[] for _ in range(5)]
    return Tree(len(nodes), at, splits, [n[0] for n in nodes if len(n) == 1]).checked(features)


def check_base(objective, score, margin):
    """The stated margin is that of base_score: exactly, or to 1e-6 where XGBoost takes a float32 logarithm."""
    exact = Fraction(0) if objective in LOGISTIC and score == 0.5 else Fraction(score)
    if (objective in LOGISTIC and score != 0.5) or objective in LOG:
        p = min(max(score, 1e-6), 1 - 1e-6)
        value = math.log(score) if objective in LOG else math.log(p / (1 - p))
        exact = margin if abs(float(margin) - value) <= 1e-6 * (1 + abs(value)) else None
    require(margin == exact, f"the base margin {float(margin)} does not follow from base_score {score}")


class Ubjson:
    """UBJSON as XGBoost writes it: objects, lists with or without a type and a length, texts and numbers."""

    def __init__(self, data):
        self.data, self.at = data, 0

    def take(self, count):
        require(0 <= count <= len(self.data) - self.at, "the model file ends too early")
        self.at += count
        return self.data[self.at - count : self.at]

    def mark(self):
        return self.take(1).decode("latin-1")

    def next_is(self, mark):
        found = self.data[self.at : self.at + 1] == mark.encode()
        self.at += found
        return found

    def numbers(self, kind, count):
        size = struct.calcsize(UBJSON[kind])
        return list(struct.unpack(f">{count}{UBJSON[kind][1]}", self.take(count * size)))

    def length(self):
        return self.numbers(self.mark(), 1)[0]

    def text(self):
        return self.take(self.length()).decode()

    def value(self, kind=None):
        kind = kind or self.mark()
        if kind in UBJSON:
            return self.numbers(kind, 1)[0]
        if kind in "TFZ":
            return {"T": True, "F": False, "Z": None}[kind]
        if kind in "SC":
            return self.text() if kind == "S" else self.mark()
        require(kind in "[{", "the model file is no UBJSON")
        inner = self.mark() if self.next_is("$") else None
        count = self.length() if self.next_is("#") else None
        require(count is not None or inner is None, "a list with a type has no length")
        if kind == "[" and inner in UBJSON:
            return self.numbers(inner, count)
        require(count is None or (0 <= count <= len(self.data) and inner not in ("T", "F", "Z")), "a length is none")
        found, close = [], "]" if kind == "[" else "}"
        while len(found) != count and not (count is None and self.next_is(close)):
            found.append((self.text() if kind == "{" else None, self.value(inner)))
        return object_of(found) if kind == "{" else [x for _, x in found]

    def whole(self):
        """The single value of the file."""
        found = self.value()
        require(self.at == len(self.data), "something follows the model")
        return found
