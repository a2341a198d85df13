"""Questions in cases: a whole question, with alternatives that no statement can express, and parts that cover all cases.

The cases are derived here from the whole. A part answers a case if the case has all constraints of the part: then the part
has every input of the case. The descriptions in parts are not used.
"""

import json
from itertools import combinations, product
from math import comb

from .core import Problem
from .form import BY_VALUE, CASES, LEARNT, LISTS, STATEMENT, check_further, check_model, listed, parts
from .numbers import require
from .words import Words, in_further_words, in_words

MOST_CASES = 10_000


def cases(whole, certificates, models_of, files=None):
    """No inputs satisfy the whole question, line by line; Rejected if no part answers a case of it."""
    problem = checked(whole, models_of)
    check_none(whole, certificates, len(problem.features))
    return [*in_words(problem, files), *in_further_words(Words(problem), whole, "  ")]


def checked(whole, models_of):
    """The statement of a whole question, with all forms checked."""
    parts(whole, {"statement", *CASES}, "the whole question", BY_VALUE)
    parts(whole["statement"], STATEMENT, "the statement", LEARNT)
    models = listed(whole["statement"]["models"], "models")
    for stated in models:
        check_model(stated)
    problem = Problem(whole["statement"], [models_of(stated) for stated in models])
    check_further(problem.statement, problem.models, whole)
    return problem


def check_none(whole, certificates, features):
    """Checks that a part without inputs answers every case of a question."""
    answers = [Asked(one["statement"]) for one in certificates]
    require(all(one["claim"] == "none" for one in certificates), "a part of the question has inputs")
    free = range(features)
    held = 0
    for case, limits, apart in expanded(whole):
        asked = Asked(case)
        mine = [one for one in answers if asked.has_all_of(one)]
        for varied in widest(case["same_except"], limits, free):
            held += 1
            require(held <= MOST_CASES, "too many cases")
            if any(len(varied.intersection(one["features"])) < one["least"] for one in apart):
                continue  # the points agree in more features than they may
            require(any(one.varied is None or varied <= one.varied for one in mine), "a case is answered by no part")


def check_found(whole, certificate):
    """Checks that a certificate's inputs are an answer of a question: they satisfy its constraints, or those of one of its
    cases.

    A feature without a set in the question itself is never missing, whatever an alternative says.
    """
    require(certificate["claim"] == "found", "an answer is not shown by inputs")
    shown, own = Asked(certificate["statement"]), Asked(whole["statement"])
    require(shown.listed == own.listed, "inputs are an answer of no case")
    further = certificate["statement"].get("further", {})
    at_once = all(kinds(further, name) >= kinds(whole, name) for name in (*CASES, *BY_VALUE))
    at_once = at_once and shown.places == own.places
    if at_once and shown.has_all_of(own) and differs_in(shown.varied, whole["statement"]["same_except"], []):
        return
    for number, (case, limits, apart) in enumerate(expanded(whole)):
        require(number < MOST_CASES, "too many cases")
        if shown.has_all_of(Asked(case)) and not apart and differs_in(shown.varied, case["same_except"], limits):
            return
    require(False, "inputs are an answer of no case")


def differs_in(varied, same_except, limits):
    """True if points that differ in some features (None: in any) keep the limits of a case."""
    if varied is None:
        return same_except is None and not limits
    kept = all(len(varied.intersection(limit["features"])) <= limit["most"] for limit in limits)
    return kept and (same_except is None or varied.issubset(same_except))


def kinds(asked, name):
    """The constraints of one of its lists, as texts."""
    return {text(item) for item in asked.get(name, [])}


class Asked:
    """The constraints of a statement, as sets of texts. `listed`: the points and features with sets.

    A case has sums separately, a statement within its further constraints.
    """

    def __init__(self, statement):
        models, learnt = statement["models"], statement.get("learnt", [])
        self.points = text([[p["name"], models[p["model"]]] for p in statement["points"]])
        self.learnt = {text(models[i]) for i in learnt}
        self.listed = {(p, f) for p, f, _ in statement["domain"]}
        self.asked = {(name, text(item)) for name in LISTS if name != "rows" for item in statement[name]}
        self.asked |= {("rows", text(plain_row(row, statement))) for row in statement["rows"]}
        # Sums of probabilities, and alternatives, name outputs by their number: learnt trees have the same places there.
        self.places = text([models[i] for i in statement.get("learnt", [])])
        sums = statement.get("further", statement)
        self.asked |= {(name, item, self.places) for name in BY_VALUE for item in kinds(sums, name)}
        varied = statement["same_except"]
        self.varied = None if varied is None else frozenset(varied)

    def has_all_of(self, other):
        """True if this has all constraints of the other one. A feature without a set is never missing: both list the same.

        Trees next to a model may make a feature one of codes, so the other one may not have more of them.
        """
        alike = (self.points, self.listed) == (other.points, other.listed) and other.learnt <= self.learnt
        return alike and other.asked <= self.asked


def plain_row(row, statement):
    """A row without its name, which means nothing; an output of learnt trees is named by their content."""
    terms = [[c, p, *output_of(statement, p, o)] for c, p, o in row["terms"]]
    return {**{k: v for k, v in row.items() if k != "name"}, "terms": terms}


def output_of(statement, p, o):
    """The model that an output of a point belongs to, and its number there."""
    seen = statement["points"][p]["model"]
    for m in (seen, *statement.get("learnt", [])):
        if o < len(statement["models"][m]["base"]):
            return statement["models"][m], o
        o -= len(statement["models"][m]["base"])
    raise IndexError(o)


def text(item):
    return json.dumps(item, sort_keys=True)


def expanded(whole):
    """The cases of a question: statements with their sums, each with the most and the least changes that it has."""
    sums = {name: whole.get(name, []) for name in BY_VALUE}
    waiting = [({**whole["statement"], **sums}, *(whole[name] for name in CASES))]
    while waiting:
        require(len(waiting) <= MOST_CASES, "too many cases")
        statement, either, limits, apart = waiting.pop()
        if not either:
            yield statement, limits, apart
            continue
        for one in either[0]:
            more = {name: statement[name] + one.get(name, []) for name in (*LISTS, *BY_VALUE)}
            further = either[1:] + one["either"], limits + one["changes"], apart + one["apart"]
            waiting.append(({**statement, **more}, *further))


def widest(same_except, limits, features):
    """Sets of features such that points that keep the limits differ only in features of one of them."""
    free = frozenset(features if same_except is None else same_except)
    choices = []
    for limit in limits:
        counted = sorted(free.intersection(limit["features"]))
        most = min(limit["most"], len(counted))
        if most < 0:  # never
            return
        require(comb(len(counted), most) <= MOST_CASES, "too many cases")
        choices.append([free.difference(counted).union(chosen) for chosen in combinations(counted, most)])
    for chosen in product(*choices):
        yield free.intersection(*chosen)
