"""Draws questions over the whole language, about models, a domain and tables that are known."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import combinations
from typing import Any

import numpy as np

from tests.oracle import sums
from tests.oracle.decisions import draw_decided
from tests.oracle.language import Node, constraint
from tests.oracle.meaning import Points, Rows, probabilities
from tests.oracle.models import Model, quoted_class
from tests.oracle.models_sklearn import OF_CLASSES
from tests.oracle.shares import draw_share
from tests.oracle.spaces import Feature, Space, quoted
from tests.oracle.typical import enough

OPS = ["<", "<=", "=", "!=", ">=", ">"]
NORMS = ["l0", "l1", "l2", "linf"]
LEVELS = ["20", "33.3", "50", "60", "75", "80", "87.5", "90"]
MOST_OF_A_LOOP = 8
"""Questions of one `for each`."""
NOTHING: dict[str, Any] = {"objective": None, "top": None, "expect": None, "count": None}


@dataclass
class Draw:
    """What questions may be about."""

    rng: np.random.Generator
    space: Space
    models: Mapping[str, Model]
    points: Mapping[str, Points]
    tables: Mapping[str, Rows]
    widest: int
    """The most points for which two free points are asked about."""
    longest: int = 3
    """The most constraints of a question that is not a short form."""
    pairs: float = 0.03
    """The share of questions about every pair of classes, of those that may be."""

    def pick(self, options: Sequence[Any]) -> Any:
        return options[int(self.rng.integers(len(options)))]

    def chance(self, share: float) -> bool:
        return bool(self.rng.random() < share)


def draw_questions(d: Draw, name: str) -> list[dict[str, Any]]:
    """One question, or those of a `for each`."""
    if d.chance(0.04):
        return loop(d, name)
    if d.chance(d.pairs):
        return every_pair(d, name)
    return [draw_question(d, name)]


def every_pair(d: Draw, name: str) -> list[dict[str, Any]]:
    """`sensitive M to F` without classes: every ordered pair of classes is a question, named NAME[C1->C2]."""
    model = d.pick(list(d.models))
    m = d.models[model]
    if m.kind != "multi" or m.link in ("ova", *OF_CLASSES):
        return [draw_question(d, name)]
    free = some_features(d) or [d.space.features[0].name]
    text = f"query {name}:\n  sensitive {model} to {{{', '.join(map(quoted, free))}}}\n"
    return [
        {
            **NOTHING, "name": f"{name}[{one}->{two}]", "points": [["a", model], ["b", model]], "loop": text,
            "constraints": [
                ["equal", "a", "b", free], ["class", "a", "=", quoted_class(one), "", ""],
                ["class", "b", "=", quoted_class(two), "", ""],
            ],
        }
        for one in m.classes for two in m.classes if one != two
    ]  # fmt: skip


def loop(d: Draw, name: str) -> list[dict[str, Any]]:
    """`for each f in features`, `in {..}` or `in pairs`: a question per choice, named NAME[f] or NAME[f+g]."""
    model = d.pick(list(d.models))
    names = [f.name for f in d.space.features if quoted(f.name) == f.name]
    some = [str(n) for n in d.rng.permutation(names)[:3]]
    if len(some) < 2:
        return [draw_question(d, name)]
    every = len(names) == len(d.space.features)
    points = [["a", model], ["b", model]]
    form = d.pick(["features", "pairs", "two in pairs", "set", "set"] if every else ["set", "groups"])
    parameters = ["f", "g"] if form == "two in pairs" else ["f"]
    if form in ("pairs", "two in pairs"):
        choices, head = [list(pair) for pair in combinations(names, 2)], "pairs"
    elif form == "features":
        choices, head = [[n] for n in names], "features"
    elif form == "groups" and len(some) == 3:
        choices, head = [some[:1], some[1:]], f"{{{some[0]}, {{{some[1]}, {some[2]}}}}}"
    else:
        choices, head = [[n] for n in some[:2]], f"{{{some[0]}, {some[1]}}}"
    if len(choices) > MOST_OF_A_LOOP:
        return [draw_question(d, name)]
    more = [draw_constraint(d, points, ["f"], depth=2) for _ in range(int(d.rng.integers(1, 3)))]
    lines = "".join(f"\n      {constraint(node)}" for node in more)
    free = "{f, g}" if len(parameters) == 2 else "f"
    text = f"for each {', '.join(parameters)} in {head}:\n  query {name}:\n    find a, b in {model} such that\n"
    text += f"      a = b except {free}{lines}\n"
    return [
        {
            **NOTHING, "name": f"{name}[{'+'.join(chosen)}]", "points": points,
            "constraints": [["equal", "a", "b", chosen], *more], "loop": text,
            "construct": f"for each in {'pairs' if 'pairs' in form else form}",
        }
        for chosen in choices
    ]  # fmt: skip


def draw_question(d: Draw, name: str) -> dict[str, Any]:
    """One question; `find` with one or two points, `count`, or a shorthand."""
    model = d.pick(list(d.models))
    kind = d.rng.random()
    if kind < 0.12 and d.models[model].kind != "multi":
        made = shorthand(d, model)
    elif kind < 0.17 and d.models[model].kind == "multi":
        made = shorthand_of_classes(d, model)
    else:
        made = _found(d, model)
    made |= {"name": name}
    if d.chance(0.1):
        made["expect"] = d.pick(["none", "some"])
    draw_share(d, made)
    return made


def _found(d: Draw, model: str) -> dict[str, Any]:
    two = d.chance(0.55)
    others = [m for m in d.models if m != model]
    second = d.pick(others) if others and d.chance(0.5) else model
    points = [["a", model], ["b", second]] if two else [["a", model]]
    question: dict[str, Any] = {
        "points": points,
        "constraints": [],
        "objective": None,
        "top": None,
        "expect": None,
        "count": None,
    }
    free: list[str] | None = None
    if two and (d.space.size > d.widest or d.chance(0.5)):
        free = some_features(d)
        question["constraints"].append(["equal", "a", "b", free])
    wanted = int(d.rng.integers(0 if free is not None else 1, d.longest + 1))
    for _ in range(wanted):
        question["constraints"].append(draw_constraint(d, points, free, depth=0))
    if not question["constraints"]:
        question["constraints"].append(draw_constraint(d, points, free, depth=0))
    if d.tables and d.chance(0.12):
        question["count"] = d.pick(list(d.tables))
        if d.space.size > d.widest and two and free is None:
            question["constraints"].append(["equal", "a", "b", some_features(d)])
        return question
    if d.chance(0.35):
        question["objective"] = draw_objective(d, points, free)
    if d.chance(0.12):
        question["top"] = int(d.rng.integers(2, 5))
        question["diverse"] = d.chance(0.25)
    return question


def some_features(d: Draw) -> list[str]:
    names = [f.name for f in d.space.features]
    count = int(d.rng.choice([0, 1, 1, 1, 2, 2]))
    return [str(n) for n in d.rng.permutation(names)[: min(count, len(names))]]


def discrete(d: Draw) -> bool:
    """Whether values are few, so that relations and distances are judged completely."""
    return all(f.discrete for f in d.space.features)


def draw_constraint(d: Draw, points: list[list[str]], free: list[str] | None, depth: int) -> Node:
    if depth < 2 and d.chance(0.18):
        form = d.pick(["and", "or", "or", "not", "not", "implies"])
        parts = [draw_constraint(d, points, free, depth + 1) for _ in range(2)]
        if form in ("and", "or"):
            return [form, parts]
        if form == "not":
            return ["not", parts[0] if d.chance(0.5) else [d.pick(["and", "or"]), parts]]
        return ["implies", *parts]
    two = len(points) > 1
    forms: list[Any] = [score, score, score, unary, unary, unary]
    if d.tables:
        forms.append(pin)
        if all(d.models[m].celled for _, m in points) and len({m for _, m in points}) == 1:
            forms += [typical_of, typicality_of] if d.chance(0.5) else [typical_of]
        if discrete(d):
            forms += [row_distance, row_distance]
            if all(d.models[m].celled for _, m in points) and len({m for _, m in points}) == 1:
                forms += [likely, cavity]
    if discrete(d):
        forms.append(plain_sum)
        if two:
            forms += [relation, relation, differ]
            if free is None:
                forms += [pair_distance, pair_distance, pair_distance]
    if two:
        forms += [two_scores] * (5 if all(d.models[m].link == "calibrated" for _, m in points) else 1)
    if depth < 2:  # a loop writes no declarations
        forms.append(decided)
    node: Node = d.pick(forms)(d, points)
    return all_cavities(d, node) if depth == 0 and node[0] == "cavities" else node


def decided(d: Draw, points: list[list[str]]) -> Node:
    """What a decision of up to three cases says, about scores and features of one point."""
    return draw_decided(d, points, case_of_decision)


def case_of_decision(d: Draw, point: list[list[str]]) -> Node:
    """When a decision has an outcome: by a score or a feature of its point, or by two of them."""
    first = d.pick([score, score, unary])(d, point)
    if d.chance(0.6):
        return first  # type: ignore[no-any-return]
    return [d.pick(["and", "or"]), [first, d.pick([score, unary])(d, point)]]


def point_of(d: Draw, points: list[list[str]]) -> tuple[str, Model]:
    p, m = d.pick(points)
    return p, d.models[m]


def constant(d: Draw, values: np.ndarray, digits: int = 3) -> str:
    """A number near those of the points, often exactly one of them."""
    value = float(d.pick(values))
    if d.chance(0.4):
        value = round(value, digits)
    if abs(value) > 1e30:
        value = 1.0
    return exact_text(value)


def exact_text(value: float) -> str:
    """The exact decimal of a float, as the language writes numbers."""
    from tests.oracle.spaces import number

    return number(value).replace("E+", "e").replace("E", "e")


def reached(d: Draw, *names: str) -> str | None:
    """The exact score of some point, or the difference of two, as a decimal; None if exact sums are not known."""
    tables = [d.points[name] for name in names]
    if any(t.exact is None for t in tables) or not d.chance(TIES):
        return None
    shift = max(t.shift for t in tables)
    one, *more = (int(d.pick(list(t.exact))) << (shift - t.shift) for t in tables if t.exact is not None)
    return sums.text_of_sum(one - sum(more), shift)


TIES = float(os.environ.get("ORACLE_TIES", "0.5"))
"""The share of bounds on scores at a sum that is reached, of models whose exact sums are known."""


def score(d: Draw, points: list[list[str]]) -> Node:
    p, m = point_of(d, points)
    table = d.points[m.name]
    tie = reached(d, m.name) if m.link in ("logit", "identity") and len(m.classes) in (0, 2) else None
    if tie is not None:
        return ["compare", [["1", ["value" if m.kind == "regression" else "margin", p, None]]], d.pick(OPS), one(tie)]
    if m.kind == "regression":
        value = table.margins[:, 0]
        if m.link == "exp":
            return [
                "compare",
                [["1", ["value", p, None]]],
                d.pick(["<", "<=", ">=", ">"]),
                one(constant(d, np.exp(value))),
            ]
        return ["compare", [["1", ["value", p, None]]], d.pick(OPS), one(constant(d, value))]
    c = d.pick(m.classes)
    if m.link in ("softmax", "logit") and d.chance(PROBABILITIES):
        return chances(d, points)
    if m.link == "counted":
        return ["class", p, d.pick(["=", "=", "!="]), quoted_class(c), "", ""]
    form = d.pick(["prob", "class"] if m.link == "calibrated" else ["margin", "prob", "class", "class", "by"])
    if form == "class" or (form == "prob" and m.link in ("softmax", "votes")):
        return ["class", p, d.pick(["=", "=", "!="]), quoted_class(c), "", ""]
    if form == "by" and m.link not in ("ova", "votes"):
        factor = d.chance(0.6)
        return [
            "class",
            p,
            "=",
            quoted_class(c),
            "factor" if factor else "margin",
            d.pick(["1.5", "2", "1.1", "4", "1"] if factor else ["0.25", "0.5", "1", "0.125", "0"]),
        ]
    if form == "prob":
        if m.linear:
            return compare_score(d, p, "prob", m, c)
        limit = d.pick(["0.5", "0.5", "0.25", "0.6", "0.9", "0.45"])
        named = quoted_class(c) if m.link == "ova" else None
        return ["compare", [["1", ["prob", p, named]]], d.pick(OPS[:2] + OPS[4:]), one(limit)]
    if m.link == "votes":
        return ["class", p, "=", quoted_class(c), "", ""]
    if table.margins.shape[1] == 1:
        return ["compare", [["1", ["margin", p, None]]], d.pick(OPS), one(constant(d, table.margins[:, 0]))]
    if d.chance(0.5):
        return compare_score(d, p, "margin", m, c)
    other = d.pick([x for x in m.classes if x != c])
    gap = table.margins[:, m.classes.index(c)] - table.margins[:, m.classes.index(other)]
    sums = [["1", ["margin", p, quoted_class(c)]], ["-1", ["margin", p, quoted_class(other)]]]
    return ["compare", sums, d.pick(["<", "<=", ">=", ">"]), one(constant(d, gap))]


WITH_CHANCES = ("softmax", "logit", "calibrated")
"""Links of models whose probabilities can be added up."""
PROBABILITIES = float(os.environ.get("ORACLE_PROBABILITIES", "0.15"))
"""The share of constraints on scores that are about probabilities no linear constraint can say."""


def probability_terms(d: Draw, points: list[list[str]], p: str, m: Model) -> tuple[Node, float]:
    """A sum of up to three probabilities of logistic models and softmaxes, with one that it may be."""
    able = [(q, d.models[name]) for q, name in points if d.models[name].link in WITH_CHANCES]
    count = 1 if m.link == "softmax" and d.chance(0.5) else d.pick([2, 2, 3])
    sums, near = [], 0.0
    for i in range(count):
        q, other = (p, m) if i == 0 else d.pick(able)
        c, factor = d.pick(other.classes), d.pick(["1", "-1", "-1", "0.5"]) if i else "1"
        term = [factor, ["prob", q, quoted_class(c)]]
        # Of one point of two classes both probabilities are one of them, and a bound may then lie outside of (0, 1).
        if any(term[1] == known[1] or (len(other.classes) == 2 and known[1][1] == q) for known in sums):
            continue
        sums.append(term)
        here = d.points[other.name]
        shown = (
            here.margins[:, other.class_of(quoted_class(c))] if other.linear else probabilities(here, quoted_class(c))
        )
        near += float(factor) * float(d.pick(list(shown)))
    return sums, near


def chances(d: Draw, points: list[list[str]]) -> Node:
    """One probability of a softmax, or a sum of two or three probabilities of logistic models and softmaxes."""
    p, m = point_of(d, points)
    sums, near = probability_terms(d, points, p, m)
    if len(sums) == 1:
        near = min(max(near, 0.01), 0.99)
    limit = f"{near:.{d.pick([1, 2, 4])}f}"
    if len(sums) == 1 and (m.link != "softmax" or not 0 < Fraction(limit) < 1):
        limit = "0.5"
    return ["compare", sums, d.pick(["<", "<=", ">=", ">", ">=", "<=", "=", "!="]), one(limit)]


def compare_score(d: Draw, p: str, term: str, m: Model, c: str) -> Node:
    values = d.points[m.name].margins[:, m.classes.index(c)]
    # Values of a calibration count as they are printed (docs/frontends.md).
    text = constant(d, values) if m.link != "calibrated" else repr(float(d.pick(values)))
    if term == "prob" and not 0 < Fraction(text) < 1:
        text = "0.5"
    return ["compare", [["1", [term, p, quoted_class(c)]]], d.pick(OPS), one(text)]


def one(text: str) -> Node:
    return [[text, ["one"]]]


def unary(d: Draw, points: list[list[str]]) -> Node:
    p = d.pick(points)[0]
    f: Feature = d.pick(d.space.features)
    if f.missing and (d.chance(0.3) or not f.constants):  # of a column without a number there is nothing else to say
        return ["missing", p, f.name]
    if f.kind == "category":
        shown = [f.text_of(v) for v in f.typed if v is not None]
        if d.chance(0.6):
            return ["category", p, f.name, d.pick(["=", "!="]), d.pick(shown)]
        some = [str(x) for x in d.rng.permutation(shown)[: int(d.rng.integers(1, len(shown) + 1))]]
        return ["among", p, f.name, some, d.chance(0.4)]
    if d.chance(0.25):
        low, high = sorted((d.pick(f.constants), d.pick(f.constants)), key=Fraction)
        if Fraction(low) < Fraction(high):
            return ["within", p, f.name, low, high, d.pick(["[]", "[)", "(]", "()"]), d.chance(0.3)]
    if f.kind == "integer" and d.chance(0.25):
        whole = [str(v) for v in f.typed if v is not None]
        some = [str(x) for x in d.rng.permutation(whole)[: int(d.rng.integers(1, len(whole) + 1))]]
        return ["among", p, f.name, some, d.chance(0.4)]
    ops = OPS if f.kind == "integer" else [o for o in OPS if o not in ("=", "!=")]
    return ["compare", [["1", ["feature", p, f.name]]], d.pick(ops), one(str(d.pick(f.constants)))]


def pin(d: Draw, points: list[list[str]]) -> Node:
    data = d.pick(list(d.tables))
    row = int(d.rng.integers(len(d.tables[data].user)))
    return ["pin", d.pick(points)[0], data, row, some_features(d)]


def row_distance(d: Draw, points: list[list[str]]) -> Node:
    data = d.pick(list(d.tables))
    p, rows = d.pick(points)[0], len(d.tables[data].user)
    term = ["rowdistance", p, data, int(d.rng.integers(rows)), d.pick(NORMS)]
    if d.chance(0.15):
        other = ["rowdistance", p, data, (term[3] + int(d.rng.integers(1, rows))) % rows, "l1"]
        return ["compare", [["1", [*term[:4], "l1"]]], d.pick(["<=", "<", ">="]), [["1", other]]]
    return ["compare", [["1", term]], d.pick(["<=", "<", ">=", ">"]), one(limit_of(d, term[-1]))]


def limit_of(d: Draw, norm: str) -> str:
    if norm == "l0":
        return str(int(d.rng.integers(0, len(d.space.features) + 1)))
    return str(d.pick(["0", "0.25", "0.5", "0.75", "1", "1.25", "0.2", "0.3"]))


def pair_distance(d: Draw, points: list[list[str]]) -> Node:
    del points
    norm = d.pick(NORMS)
    return ["compare", [["1", ["distance", "a", "b", norm]]], d.pick(["<=", "<", ">=", ">"]), one(limit_of(d, norm))]


def whole_tables(d: Draw) -> list[str]:
    """Tables whose rows all lie in the domain, from which likelihoods and cavities are learnt."""
    return [name for name, rows in d.tables.items() if not rows.gaps]


def likely(d: Draw, points: list[list[str]]) -> Node:
    if not whole_tables(d):
        return unary(d, points)
    data = d.pick(whole_tables(d))
    whose = [[p, data] for p, _ in points] if d.chance(0.4) else [[d.pick(points)[0], data]]
    return [
        "compare",
        [["1", ["likelihood", whose]]],
        ">=",
        one(d.pick(["0.01", "0.001", "0.05", "0.1", "1e-6", "1e-20"])),
    ]


def cavity(d: Draw, points: list[list[str]]) -> Node:
    whole = whole_tables(d)
    if not whole:
        return unary(d, points)
    some = [p for p, _ in points[: int(d.rng.integers(1, 3))]]
    width = int(d.rng.integers(1, 4 if len(d.space.features) < 10 else 2))
    if d.chance(0.3):
        return ["cavities", some, d.pick(whole), width, int(d.pick([1, 3, 10, 100]))]
    return ["cavities", some, d.pick(whole), width]


def all_cavities(d: Draw, node: Node) -> Node:
    """Sometimes every cavity of any width; `not` cannot ask for these."""
    if len(node) > 4 or d.chance(0.5):
        return node
    width = int(d.rng.integers(1, 7 if len(d.space.features) < 10 else 3))
    return [*node[:3], width, "all"]


def typical_of(d: Draw, points: list[list[str]]) -> Node:
    some = [p for p, _ in points[: int(d.rng.integers(1, 3))]]
    data = d.pick(list(d.tables))
    count = int(d.tables[data].inside.sum())
    levels = [level for level in LEVELS if enough(count, Fraction(level) / 100)]
    if not levels:
        return unary(d, points)
    return ["typical", some, data, d.pick(levels), d.pick([None, "chow-liu", "isolation"])]


def typicality_of(d: Draw, points: list[list[str]]) -> Node:
    data = d.pick(list(d.tables))
    if int(d.tables[data].inside.sum()) < 2:
        return unary(d, points)
    way = d.pick([None, "chow-liu", "isolation"])
    size = float(d.rng.uniform(300, 700)) if way == "isolation" else -float(d.rng.uniform(0, 15))
    terms = [["1", ["typicality", d.pick(points)[0], data, way]]]
    if len(points) > 1 and d.chance(0.3):
        terms, size = [[c, ["typicality", p, data, way]] for c, p in (("1", "a"), ("-2", "b"))], -size
    return ["compare", terms, d.pick(["<", "<=", ">=", ">"]), one(exact_text(round(size, 2)))]


def ordered(d: Draw) -> list[Feature]:
    return [f for f in d.space.features if f.kind != "category"]


def feature_terms(d: Draw, points: list[list[str]], least: int) -> Node:
    """Multiples of up to three features, `least` of them drawn."""
    terms: dict[tuple[str, str], str] = {}
    for _ in range(int(d.rng.integers(least, 4))):
        terms[d.pick(points)[0], d.pick(ordered(d)).name] = str(d.pick(["1", "-1", "2", "0.5", "1"]))
    return [[c, ["feature", p, f]] for (p, f), c in terms.items()]


def plain_sum(d: Draw, points: list[list[str]]) -> Node:
    """A sum of features of the points against a number."""
    if not ordered(d):
        return unary(d, points)
    sums = feature_terms(d, points, 2)
    if d.chance(0.4):
        return [
            "compare",
            sums[:1],
            d.pick(OPS),
            [*([c, t] for c, t in sums[1:]), [str(int(d.rng.integers(1, 5))), ["one"]]],
        ]
    return ["compare", sums, d.pick(OPS), one(str(int(d.rng.integers(-4, 9))))]


def relation(d: Draw, points: list[list[str]]) -> Node:
    del points
    f: Feature = d.pick(d.space.features)
    if f.kind == "category":
        return ["compare", [["1", ["feature", "a", f.name]]], d.pick(["=", "!="]), [["1", ["feature", "b", f.name]]]]
    size = str(int(d.rng.integers(0, 4)))
    if d.chance(0.35):
        return ["abs", "a", f.name, "b", d.pick(["<=", "<", ">=", ">", "=", "!="]), size]
    right: Node = [["1", ["feature", "b", f.name]]]
    if d.chance(0.5):
        right.append([d.pick(["1", "-1", "0.5", "2"]), ["one"]])
    return ["compare", [["1", ["feature", "a", f.name]]], d.pick(OPS), right]


def differ(d: Draw, points: list[list[str]]) -> Node:
    del points
    return ["changes", "a", "b", d.pick(OPS), str(int(d.rng.integers(0, len(d.space.features) + 1)))]


def two_scores(d: Draw, points: list[list[str]]) -> Node:
    m, n = (d.models[model] for _, model in points)
    calibrated = m.link == n.link == "calibrated"
    if m.kind != "regression" and (m.link == "counted" or d.chance(0.2 if calibrated else 0.5)):
        return ["classes", "a", d.pick(["=", "!=", "!="]), "b"]
    if calibrated:  # most often whose probability of a class is greater, which margins tell for one calibration alone
        c = d.pick(m.classes)
        other = c if d.chance(0.7) else d.pick(n.classes)
        sums = [["1", ["prob", "a", quoted_class(c)]], ["-1", ["prob", "b", quoted_class(other)]]]
        return ["compare", sums, d.pick(["<", "<=", ">=", ">"]), one(d.pick(["0", "0", "0", "0.1", "-0.05"]))]
    term = "value" if m.kind == "regression" else "prob" if m.linear and d.chance(0.5) else "margin"
    if m.link in ("exp", "votes", "calibrated") or n.link != m.link:
        return score(d, points)
    c = None if d.points[m.name].margins.shape[1] == 1 else quoted_class(d.pick(m.classes))
    output = 0 if c is None else m.class_of(c)
    x, y = d.points[m.name].margins[:, output], d.points[n.name].margins[:, output]
    gap = d.rng.choice(x, 8) - d.rng.choice(y, 8)
    tie = reached(d, m.name, n.name) if c is None and term in ("margin", "value") else None
    return [
        "compare",
        [["1", [term, "a", c]], ["-1", [term, "b", c]]],
        d.pick(["<", "<=", ">=", ">"] if tie is None else ["<", "<=", ">=", ">", "=", "!="]),
        one(constant(d, gap) if tie is None else tie),
    ]


def draw_objective(d: Draw, points: list[list[str]], free: list[str] | None) -> Node | None:
    two = len(points) > 1
    m = d.models[points[0][1]]
    forms = []
    if two and m.link not in ("exp", "votes", "ova", "calibrated", "counted") and d.models[points[1][1]].link == m.link:
        forms.append("scores")
    if m.link in WITH_CHANCES:
        forms.append("prob")
    if discrete(d):
        if two:
            forms += ["changes"] + (["distance", "distance"] if free is None else [])
        if d.tables:
            forms += ["rowdistance", "nearest"]
            if m.celled and whole_tables(d) and len({x for _, x in points}) == 1:
                forms.append("likelihood")
        forms += ["features"] * bool(ordered(d))
    if any(int(t.inside.sum()) > 1 for t in d.tables.values()) and m.celled and len({x for _, x in points}) == 1:
        forms.append("typicality")
    if not forms:
        return None
    form = d.pick(forms)
    sense = d.pick(["maximize", "minimize"])
    p = d.pick(points)[0]
    if form == "scores":
        c = None if d.points[m.name].margins.shape[1] == 1 else quoted_class(d.pick(m.classes))
        term = "value" if m.kind == "regression" else "margin"
        return [sense, [["1", [term, "a", c]], ["-1", [term, "b", c]]]]
    if form == "prob":
        return [sense, probability_terms(d, points, points[0][0], m)[0]]
    if form == "features":
        return [sense, feature_terms(d, points, 1)]
    if form == "changes":
        return [sense, [["1", ["changes", "a", "b"]]]]
    if form == "typicality":
        data = d.pick([name for name, t in d.tables.items() if int(t.inside.sum()) > 1])
        way = d.pick([None, "isolation"])
        return [sense, [[d.pick(["1", "0.5", "-1"]), ["typicality", q, data, way]] for q, _ in points]]
    if form == "distance":
        return [sense, [["1", ["distance", "a", "b", d.pick(NORMS)]]]]
    data = d.pick(list(d.tables))
    if form == "rowdistance":
        return [sense, [["1", ["rowdistance", p, data, int(d.rng.integers(len(d.tables[data].user))), d.pick(NORMS)]]]]
    if form == "nearest":
        return ["minimize", [["1", ["nearest", p, data, d.pick(NORMS)]]]]
    data = d.pick(whole_tables(d))
    whose = [[q, data] for q, _ in points[: int(d.rng.integers(1, 3))]]
    return [sense, [["1", ["likelihood", whose]]]]


NOT_LINEAR = ("exp", "votes", "ova", "calibrated", "counted")
"""Links of models without a margin that is a sum of leaves."""


def draw_mixed(d: Draw) -> list[dict[str, Any]]:
    """A question about sums of scores and features, with a generator of its own: all other questions stay as they are."""
    able = [name for name, m in d.models.items() if m.link not in NOT_LINEAR]
    if not able or not ordered(d) or not discrete(d):
        return []
    free, model = some_features(d), d.pick(able)
    points = [[p, model] for p in ("a", "b")[: int(d.rng.integers(1, 3))]]
    rows: list[Node] = [["equal", "a", "b", free]] if len(points) > 1 else []
    rows += [mixed_row(d, points) for _ in range(int(d.rng.integers(1, 3)))]
    if d.chance(0.3):
        rows = [*rows[:-1], [d.pick(["or", "and"]), [rows[-1], draw_constraint(d, points, free, depth=2)]]]
    objective = [d.pick(["maximize", "minimize"]), mixed_sum(d, points)[0]] if d.chance(0.5) else None
    return [{**NOTHING, "name": "mixed", "points": points, "constraints": rows, "objective": objective}]


def mixed_row(d: Draw, points: list[list[str]]) -> Node:
    sums, near = mixed_sum(d, points)
    row: Node = ["compare", sums[:1], d.pick(OPS), [*([_turned(c), t] for c, t in sums[1:]), [near, ["one"]]]]
    return ["not", row] if d.chance(0.25) else row


def _turned(coefficient: str) -> str:
    return coefficient[1:] if coefficient.startswith("-") else f"-{coefficient}"


def mixed_sum(d: Draw, points: list[list[str]]) -> tuple[Node, str]:
    """A sum of one or two scores and of features, the score first; and a number near one of its values, but never equal."""
    m = d.models[points[0][1]]
    table = d.points[m.name]
    c = None if table.margins.shape[1] == 1 else quoted_class(d.pick(m.classes))
    term = "value" if m.kind == "regression" else "margin"
    scores = [[str(d.pick(["1", "-1", "0.5", "2"])), [term, p, c]] for p, _ in d.rng.permutation(points).tolist()]
    sums = scores[: int(d.rng.integers(1, 3))] + feature_terms(d, points, 1)
    at = {p: int(d.rng.integers(len(table.user))) for p, _ in points}
    names = [f.name for f in d.space.features]
    near = 0.00037
    for factor, (kind, p, which) in sums:
        value = (
            table.user[at[p], names.index(which)]
            if kind == "feature"
            else table.margins[at[p], m.output_of(c) if c else 0]
        )
        near += float(factor) * float(np.nan_to_num(value))
    return sums, f"{near:.5f}"


def shorthand(d: Draw, model: str) -> dict[str, Any]:
    """`sensitive M to F gap|margin ..`, with the constraints that it stands for."""
    m = d.models[model]
    free = some_features(d) or [d.space.features[0].name]
    named = "{" + ", ".join(map(quoted, free)) + "}"
    made: dict[str, Any] = {
        "points": [["a", model], ["b", model]],
        "objective": None,
        "top": None,
        "expect": None,
        "count": None,
    }
    made["constraints"] = [["equal", "a", "b", free]]
    if m.kind == "regression":
        gap = str(d.pick(["0.1", "0.5", "1", "2"]))
        end = [["compare", [["1", ["value", "a", None]], ["-1", ["value", "b", None]]], ">=", one(gap)]]
        wording = f"sensitive {model} to {named} gap {gap}"
        if m.link == "exp":
            return _found(d, model)
    elif m.linear:
        gap = str(d.pick(["0.05", "0.1", "0.25"]))
        positive = quoted_class(m.classes[1])
        end = [
            [
                "compare",
                [["1", ["prob", "a", positive]]],
                ">=",
                one(str(Fraction(gap) + Fraction(1, 2)) and exact_sum("0.5", gap)),
            ],
            ["compare", [["1", ["prob", "b", positive]]], "<=", one(exact_sum("0.5", "-" + gap))],
        ]
        wording = f"sensitive {model} to {named} gap {gap}"
    elif m.link in OF_CLASSES:
        return _found(d, model)
    elif d.chance(0.5):
        gap = str(d.pick(["0.05", "0.1", "0.25"]))
        end = [
            ["compare", [["1", ["prob", "a", None]]], ">=", one(exact_sum("0.5", gap))],
            ["compare", [["1", ["prob", "b", None]]], "<=", one(exact_sum("0.5", "-" + gap))],
        ]
        wording = f"sensitive {model} to {named} gap {gap}"
    else:
        size = constant(d, np.abs(d.points[model].margins[:, 0]) + 0.125)
        end = [
            ["compare", [["1", ["margin", "a", None]]], ">=", one(size)],
            ["compare", [["1", ["margin", "b", None]]], "<=", one("-" + size)],
        ]
        wording = f"sensitive {model} to {named} margin {size}"
    made["constraints"] += end
    made["wording"] = wording
    if d.tables and discrete(d) and d.chance(0.4):
        _near(d, made, m)
    return made


def exact_sum(x: str, y: str) -> str:
    from decimal import Decimal

    return str(Decimal(x) + Decimal(y))


def _near(d: Draw, made: dict[str, Any], m: Model) -> None:
    using = d.pick(["likelihood", "cavities", "both", "", "distance"] if m.celled and whole_tables(d) else ["distance"])
    data = d.pick(list(d.tables) if using == "distance" else whole_tables(d))
    made["wording"] += f" near {data}" + (f" using {using}" if using else "")
    made["near"] = using or "both"
    if using == "distance":
        made["objective"] = ["minimize", [["1", ["nearest", "a", data, "l2"]]]]
        return
    if using != "cavities":
        made["objective"] = ["maximize", [["1", ["likelihood", [["a", data], ["b", data]]]]]]
    if using != "likelihood":
        made["constraints"].append(["cavities", ["a", "b"], data, 3])


def shorthand_of_classes(d: Draw, model: str) -> dict[str, Any]:
    """`sensitive M to F from C1 to C2 [factor g]`."""
    m = d.models[model]
    if m.link in ("ova", *OF_CLASSES):
        return _found(d, model)
    free = some_features(d) or [d.space.features[0].name]
    named = "{" + ", ".join(map(quoted, free)) + "}"
    first, second = (quoted_class(str(c)) for c in d.rng.permutation(m.classes)[:2])
    by, size = ("factor", str(d.pick(["1.5", "2"]))) if d.chance(0.5) else ("", "")
    return {
        "points": [["a", model], ["b", model]],
        "objective": None, "top": None, "expect": None, "count": None,
        "constraints": [["equal", "a", "b", free], ["class", "a", "=", first, by, size], ["class", "b", "=", second, by, size]],
        "wording": f"sensitive {model} to {named} from {first} to {second}" + (f" factor {size}" if by else ""),
    }  # fmt: skip
