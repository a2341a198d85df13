"""What a person reads in the words of a claim: a parser of them, which shares nothing with what prints them.

Every sentence of a claim is read in full. What is no sentence of the language raises `Unread`. A claim is read as a dictionary:
`says` is its first sentence, and a statement has the fields of docs/certificates.md, with `free` besides: per point what may be
of features that no set is about.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import Any, TypeVar

Document = dict[str, Any]
Item = TypeVar("Item")
FEATURE = r'(?:[A-Za-z_][A-Za-z0-9_]*|"(?:[^"\\]|\\.)*")(?:#\d+)?'
POINT = r"[A-Za-z_][A-Za-z0-9_]*"
NUMBER = r"-?(?:\d+\.?\d*(?:e[+-]?\d+)?)"
FRACTION = r"-?\d+(?:/\d+)?"
FREE = (
    "any finite value, not missing",
    "any code of a category (0, 1, 2, ...), not missing",
    "a code of a category or missing, and as below",
)


class Unread(Exception):
    """A text that says nothing in the language of claims."""


class Text:
    """A line from left to right."""

    def __init__(self, text: str) -> None:
        self.text, self.at = text, 0

    def take(self, pattern: str) -> re.Match[str]:
        """What stands here; Unread if it is something else."""
        found = self.maybe(pattern)
        if found is None:
            raise Unread(self.text[self.at :])
        return found

    def maybe(self, pattern: str) -> re.Match[str] | None:
        found = re.compile(pattern).match(self.text, self.at)
        if found is not None:
            self.at = found.end()
        return found

    def said(self, words: str) -> bool:
        return self.maybe(re.escape(words)) is not None

    def must(self, words: str) -> None:
        self.take(re.escape(words))

    def several(self, one: Callable[[], Item], between: str) -> list[Item]:
        found = [one()]
        while self.said(between):
            found.append(one())
        return found

    def end(self, found: Item) -> Item:
        if self.at != len(self.text):
            raise Unread(self.text[self.at :])
        return found


class Reader:
    """The lines of one claim. `features` are the names of the model."""

    def __init__(self, lines: list[str], features: list[str]) -> None:
        self.lines, self.features, self.place = lines, features, 0
        self.points: list[Document] = []
        self.models: list[Document] = []

    def line(self) -> str:
        if self.place == len(self.lines):
            raise Unread("the end")
        self.place += 1
        return self.lines[self.place - 1]

    def attempt(self, one: Callable[[Text], Item], indent: str = "  ") -> Item | None:
        """The next line, if it is a sentence of a kind."""
        if self.place == len(self.lines) or not self.lines[self.place].startswith(indent):
            return None
        text = Text(self.lines[self.place].removeprefix(indent))
        try:
            found = text.end(one(text))
        except Unread:
            return None
        self.place += 1
        return found

    def all(self, one: Callable[[Text], Item], indent: str = "  ") -> list[Item]:
        found: list[Item] = []
        while (item := self.attempt(one, indent)) is not None:
            found.append(item)
        return found

    # Names, numbers and sets

    def feature(self, t: Text) -> int:
        name = t.take(FEATURE).group()
        plain, _, number = name.rpartition("#") if re.search(r"#\d+$", name) else (name, "", "")
        word = json.loads(plain) if plain.startswith('"') else plain
        if number and int(number) < len(self.features) and self.features[int(number)] == word:
            return int(number)
        if number or self.features.count(word) != 1:
            raise Unread(name)
        return self.features.index(word)

    def features_of(self, t: Text) -> list[int]:
        return [] if t.said("no features") else sorted(t.several(lambda: self.feature(t), ", "))

    def point(self, t: Text) -> int:
        names = [one["name"] for one in self.points]
        name = t.take(POINT).group()
        if name not in names:
            raise Unread(name)
        return names.index(name)

    def spot(self, t: Text) -> tuple[int, int]:
        p = self.point(t)
        t.must(".")
        return p, self.feature(t)

    def allowed(self, t: Text) -> Document:
        """A set: runs, then single values, then what is missing. `or` may go on with another sentence."""
        if t.said("in an empty set: false"):
            return {}
        found: Document = {}
        whole = t.said("a whole number ")

        def run() -> list[float | None] | None:
            if m := t.maybe(f"from ({NUMBER}) to ({NUMBER})"):
                return [float(m[1]), float(m[2])]
            if m := t.maybe(f"from ({NUMBER}) on"):
                return [float(m[1]), None]
            if m := t.maybe(f"up to ({NUMBER})"):
                return [None, float(m[1])]
            return [None, None] if t.said("of any finite value") else None

        def more(one: Callable[[], Any]) -> Any:
            before = t.at
            if found and not t.said(" or "):
                return None
            item = one()
            if item is None or item is False:
                t.at = before
            return item

        while (item := more(run)) is not None:
            found.setdefault("runs", []).append(item)
        if whole:
            if not found:
                raise Unread("a whole number of no kind")
            found["whole"] = True
        if more(lambda: t.said("one of ")):
            found["values"] = t.several(lambda: float(t.take(NUMBER).group()), ", ")
        if more(lambda: t.said("missing")):
            found["missing"] = True
        if not found:
            raise Unread("no set")
        return found

    def place_of(self, t: Text) -> list[Any]:
        p, f = self.spot(t)
        t.must(" is ")
        return [p, f, self.allowed(t)]

    # Sentences about single features

    def domain(self, t: Text) -> list[list[Any]]:
        before = t.at
        spots = t.several(lambda: self.spot(t), " and ") if re.search(r" are each ", t.text[t.at :]) else []
        if spots and t.said(" are each "):
            what = self.allowed(t)
            return [[p, f, what] for p, f in spots]
        t.at = before
        return t.several(lambda: self.place_of(t), " and ")

    def order(self, t: Text) -> list[int]:
        p, f = self.spot(t)
        t.must(" <= ")
        q, g = self.spot(t)
        t.must(" (neither one is missing)")
        if f != g:
            raise Unread("an order of two features")
        return [p, q, f]

    def clause(self, t: Text) -> list[list[Any]]:
        return [] if t.said("false") else t.several(lambda: self.place_of(t), " or ")

    def sets(self, indent: str, *, free: list[set[int]]) -> Document:
        """Sets, orders and clauses. A line about one feature is a clause where the feature is free besides."""
        domain = [part for one in self.all(self.domain, indent) for part in one]
        orders, clauses = self.all(self.order, indent), self.all(self.clause, indent)
        single = [*domain, *(clause[0] for clause in clauses if len(clause) == 1)]
        loose = [[part] for part in single if part[1] in free[part[0]]]
        return {
            "domain": [part for part in single if part[1] not in free[part[0]]],
            "orders": orders,
            "clauses": [*loose, *(clause for clause in clauses if len(clause) != 1)],
        }

    # Rows

    def score(self, t: Text) -> list[int]:
        """A point, and the number of an output among those of its model and of learnt trees."""
        m = t.take(r"(?:margin|trees of model (\d+))\(")
        p = self.point(t)
        output = int(t.take(r", output (\d+)\)")[1])
        mine = self.points[p]["model"]
        after = [mine, *(m for m, one in enumerate(self.models) if one["learnt"])]
        if m[1] is not None and int(m[1]) not in after[1:]:
            raise Unread(t.text)
        where = after.index(mine if m[1] is None else int(m[1]))
        if output >= len(self.models[after[where]]["base"]):
            raise Unread(t.text)
        return [p, output + sum(len(self.models[i]["base"]) for i in after[:where])]

    def cost(self, t: Text) -> list[Any]:
        t.must("cost(")
        p, f = self.spot(t)
        t.must(": ")
        steps: list[Any] = [[None, t.take(FRACTION).group()]]
        missing = None
        while missing is None:
            t.must(", ")
            price = t.take(FRACTION).group()
            if t.said(" if missing)"):
                missing = price
            else:
                steps.append([float(t.take(f" from ({NUMBER}) on")[1]), price])
        return [p, f, steps, missing]

    def row(self, t: Text) -> Document:
        found: Document = {"terms": [], "costs": []}

        def term() -> None:
            if t.text.startswith("cost(", t.at):
                found["costs"].append(self.cost(t))
            else:
                factor = t.take(f"({FRACTION}) \\* ")[1]
                found["terms"].append([factor, *self.score(t)])

        if not t.maybe("0(?= >)"):
            t.several(term, " + ")
        found["strict"] = t.take(" (>=?) ")[1] == ">"
        bound: Document = {"rational": t.take(FRACTION).group(), "logs": []}
        while m := t.maybe(f" \\+ ({FRACTION}) \\* ln\\(({FRACTION})\\)"):
            bound["logs"].append([m[1], m[2]])
        return {**found, "bound": bound}

    # What is asked by value

    def limit(self, t: Text) -> tuple[str, Document]:
        m = t.take(r"the points differ in at (most|least) (-?\d+) of ")
        named = self.features_of(t)
        if m[1] == "most" and int(m[2]) < 0:
            t.must(": false")
        word = "changes" if m[1] == "most" else "apart"
        return word, {"features": named, m[1]: int(m[2])}

    def relation(self, t: Text) -> Document:
        def term() -> list[Any]:
            factor = t.take(f"({FRACTION}) \\* ")[1]
            apart = t.maybe(r"\((1 if|how far) ")
            p, f = self.spot(t)
            if apart is None:
                t.must(" (not missing)")
                return [factor, p, f]
            t.must(" and ")
            other: Document
            if m := t.maybe(NUMBER):
                other = {"value": float(m.group())}
            elif t.said("missing"):
                other = {"value": None}
            else:
                q, g = self.spot(t)
                if g != f:
                    raise Unread(t.text)
                other = {"point": q}
            unit = None
            if apart[1] == "1 if":
                t.must(" are unequal, else 0)")
            else:
                unit = t.take(f" are apart in units of ({FRACTION}); 1 if one of them is missing, 0 if both are\\)")[1]
            return [factor, p, f, other, unit, 2 if t.said("^2") else 1]

        terms = [] if t.maybe("0(?= <)") else t.several(term, " + ")
        strict = t.take(" (<=?) ")[1] == "<"
        return {"terms": terms, "most": t.take(FRACTION).group(), "strict": strict}

    def chance(self, t: Text) -> Document:
        def power() -> list[Any]:
            t.must("e^(")
            scores: list[Any] = []
            while m := t.maybe(f"({FRACTION}) \\* "):
                scores.append([m[1], *self.score(t)])
                t.must(" + ")
            return [scores, t.take(f"({FRACTION})\\)")[1]]

        def term() -> list[Any]:
            factor = t.take(f"({FRACTION}) / \\(1")[1]
            powers = []
            while t.said(" + "):
                powers.append(power())
            t.must(")")
            return [factor, powers]

        terms = [] if t.maybe("0(?= >)") else t.several(term, " + ")
        strict = t.take(" (>=?) ")[1] == ">"
        return {"terms": terms, "least": t.take(FRACTION).group(), "strict": strict}

    def further(self, indent: str) -> Document:
        limits = self.all(self.limit, indent)
        found: Document = {w: [x for word, x in limits if word == w] for w in ("changes", "apart")}
        found |= {"values": self.all(self.relation, indent), "chances": self.all(self.chance, indent), "either": []}
        while self.place < len(self.lines):
            if self.lines[self.place] == f"{indent}false":
                self.place += 1
                found["either"].append([])
            elif self.lines[self.place] == f"{indent}and one of these holds:":
                self.place += 1
                found["either"].append(self.alternatives(indent))
            else:
                break
        return found

    def alternatives(self, indent: str) -> list[Document]:
        found = []
        first, deeper = f"{indent}  - ", indent + "    "
        while self.place < len(self.lines) and self.lines[self.place].startswith(first):
            self.lines[self.place] = deeper + self.lines[self.place].removeprefix(first)
            start = self.place
            rows = self.all(self.row, deeper)
            one = {"rows": rows, **self.sets(deeper, free=[set() for _ in self.points]), **self.further(deeper)}
            if self.place == start and self.line() != f"{deeper}true":
                raise Unread(self.lines[start])
            found.append(one)
        if not found:
            raise Unread(self.lines[self.place])
        return found

    # Statements

    def model(self, t: Text) -> Document:
        t.take(f'model {len(self.models)} is "(?:[^"\\\\]|\\\\.)*", SHA-256 ')
        sha256, kind = t.take("[0-9a-f]{64}").group(), t.take(r" \(([a-z0-9-]+)\): ")[1]
        m = t.take(r"(?:all (\d+)|the first (\d+) of (\d+)) trees")
        average = t.maybe(r" divided by (\d+)")
        t.must(", base margin ")
        base = t.several(lambda: t.take(FRACTION).group(), ", ")
        trees, total = (m[1], m[1]) if m[1] else (m[2], m[3])
        made = {"trees": int(trees), "total": int(total), "average": int(average[1]) if average else 1}
        return {"sha256": sha256, "format": kind, "base": base, "learnt": False, "made_from": None, **made}

    def models_in(self) -> list[Document]:
        self.models = []
        learnt = "    These trees are no model: that they are learnt from rows is trusted, not proved"
        made = r'    It is trusted, not proved, that these are the trees of "(?:[^"\\]|\\.)*", SHA-256 ([0-9a-f]{64})'
        while (one := self.attempt(self.model)) is not None:
            self.models.append(one)
            while self.place < len(self.lines) and self.lines[self.place].startswith("    "):
                line = self.line()
                m = re.fullmatch(made, line)
                if m is not None:
                    one["made_from"] = m[1]
                elif line == learnt:
                    one["learnt"] = True
                else:
                    raise Unread(line)
        if not self.models:
            raise Unread(self.lines[self.place])
        return self.models

    def free(self, t: Text) -> Document:
        """What features without a set may be, by the words; they are listed, or all of a kind are."""
        if t.said("all features as below"):
            return {}
        found: Document = {}

        def kind() -> None:
            every = t.maybe(r"all (\d+) features that have (codes|no codes)")
            named = [every.group()] if every else t.several(lambda: self.feature(t), ", ")
            t.must(": ")
            (words,) = [one for one in FREE if t.said(one)] or [""]
            if not words or words in found:
                raise Unread(t.text)
            found[words] = named

        t.several(kind, "; ")
        return found

    def input_of(self, t: Text) -> Document:
        m = t.take(f"({POINT}) is an input of model (\\d+), with ")
        if int(m[2]) >= len(self.models):
            raise Unread(t.text)
        return {"name": m[1], "model": int(m[2]), "free": self.free(t)}

    def same(self, t: Text) -> list[list[int]]:
        if t.said("all features may differ"):
            return []
        t.must("the same values of all features")
        return [self.features_of(t)] if t.said(" but ") else [[]]

    def statement(self, *, agreement: bool = True) -> Document:
        models = self.models_in()
        self.points = self.all(self.input_of)
        rows = self.all(self.row)
        same: list[list[int]] | None = []
        if len(self.points) == 2 and agreement and (same := self.attempt(self.same)) is None:
            raise Unread(self.lines[self.place] if self.place < len(self.lines) else "the end")
        free = [{f for w in FREE[:2] for f in one["free"].get(w, []) if isinstance(f, int)} for one in self.points]
        found = {"models": models, "points": self.points, "rows": rows, "same_except": same[0] if same else None}
        return {**found, **self.sets("  ", free=free), **self.further("  ")}

    def match(self, pattern: str) -> re.Match[str]:
        line = self.line()
        found = re.fullmatch(pattern, line)
        if found is None:
            raise Unread(line)
        return found

    def reads(self, one: Callable[[Text], Item], text: str) -> Item:
        t = Text(text)
        return t.end(one(t))

    def end(self, found: Document) -> Document:
        if self.place != len(self.lines):
            raise Unread(self.lines[self.place])
        return found

    # Claims

    def claim(self) -> Document:
        """All of the lines."""
        first = self.line()
        plain = {
            "No inputs exist, in values as the models store them:": "none",
            "These inputs exist, in values as the models store them:": "found",
            "all scores of both models are equal, for all of these inputs:": "equal",
            "some inputs reach all of this:": "reached",
            "nothing reaches all of this:": "beyond",
        }
        if plain.get(first) == "found":
            stated = self.statement()
            return self.end({"says": "found", "statement": stated, "inputs": self.all(self.input_values)})
        if first in plain:
            return self.end({"says": plain[first], "statement": self.statement()})
        if first == "these models are the same, tree by tree:":
            return self.end({"says": "same", "models": self.models_in()})
        if first == "among these inputs:":
            return self.end(self.among())
        if m := re.fullmatch(r"(\d+) parts cover a whole:", first):
            return {"says": "cover", "parts": int(m[1]), "whole": self.claim()}
        if first.startswith("of all sets of "):
            return self.end(self.border(first))
        return self.end(self.share(first) if first.startswith("of the measure ") else self.rows_of(first))

    def input_values(self, t: Text) -> list[Any]:
        """The values of one input, feature by feature; None if it is missing."""
        p = self.point(t)
        t.must(": ")

        def one() -> list[Any]:
            f = self.feature(t)
            return [f, None if t.said(" missing") else float(t.take(f" = ({NUMBER})")[1])]

        return [p, t.several(one, ", ")]

    def among(self) -> Document:
        stated = self.statement()
        line = self.line()
        if m := re.fullmatch(r"  some reach( together)? (.*)", line):
            both = m[1] or ""
            ends = [m[2], self.match(f"  none reaches{both} (.*)")[1]]
            rows = [self.reads(lambda t: t.several(lambda: self.row(t), " and "), end) for end in ends]
            if any((len(one) > 1) != bool(both) for one in rows):
                raise Unread(line)
            return {"says": "between", "statement": stated, "reached": rows[0], "beyond": rows[1]}
        if m := re.fullmatch(r"  if (.*), none of these cases holds:", line):
            values = self.reads(self.values, m[1])
            cases: list[Document] = []
            while (one := self.attempt(lambda t: self.case(t, len(cases)))) is not None:
                cases.append(one)
            self.match("  if any one of these features is free, there are inputs of one of the cases")
            found = {"says": "reason", "statement": stated, "values": values, "cases": cases}
            if self.place == len(self.lines):
                return found
            fewer = self.match(r"  (?:and no (\d+) features or fewer have such values|of no features)")[1]
            return {**found, "says": "smallest", "fewer": None if fewer is None else int(fewer)}
        m = re.fullmatch(r"  from one with (.*), a change of these alone reaches (.*):", line)
        if m is None:
            raise Unread(line)
        values, case = self.reads(self.values, m[1]), self.reads(self.case, m[2])
        changed = self.line().removeprefix("  ")
        features = [] if changed == "nothing" else self.reads(self.features_of, changed)
        self.match("  no change of only some of these features does")
        return {"says": "change", "statement": stated, "values": values, "case": case, "features": features}

    def values(self, t: Text) -> list[list[Any]]:
        return [] if t.said("whatever its values are") else t.several(lambda: self.place_of(t), " and ")

    def case(self, t: Text, number: int | None = None) -> Document:
        """What a case asks besides: rows, places, and what features may be of which other cases say more."""
        if number is not None:
            t.must(f"case {number}: ")
        found: Document = {"rows": [], "places": [], "free": []}

        def part() -> None:
            before = t.at
            for name, one in (("rows", self.row), ("places", self.clause), ("free", self.free)):
                try:
                    found[name].append(one(t))
                    return
                except Unread:
                    t.at = before
            raise Unread(t.text)

        if not t.said("true"):
            t.several(part, " and ")
        return found

    def border(self, first: str) -> Document:
        if not first.endswith(AFTER):
            raise Unread(first)
        every = self.reads(self.features_of, first.removeprefix("of all sets of ").removesuffix(AFTER))
        least = []
        while self.place < len(self.lines) and self.lines[self.place].startswith("  "):
            line = self.line().removeprefix("  ")
            if line != "(none does)":
                least.append([] if line == "nothing" else self.reads(self.features_of, line))
        self.match("A set has a pair if these inputs exist, with the same values of all features but those of the set:")
        stated = self.statement(agreement=False)
        return {"says": "border", "features": every, "least": sorted(least), "statement": stated}

    def rows_of(self, first: str) -> Document:
        by_part = r"of (\d+) rows, each one of a part \(a part stands for all rows of its sets\), (\d+) have an answer"
        by_sets = r"of (\d+) rows, each given by one set for each feature, (\d+) have an answer\."
        by_values = r"of (\d+) rows, each given by its values, (\d+) are an answer of the question:"
        for says, pattern in (("rows", by_part), ("sets", by_sets), ("values", by_values)):
            m = re.fullmatch(pattern, first)
            if m is None:
                continue
            counted = {"says": says, "rows": int(m[1]), "have": int(m[2])}
            if says == "values":
                stated = self.statement()
                return {**counted, "statement": stated, **self.listed_rows()}
            listed = self.listed_rows()
            self.match("The question, in which the features of the first point are as the sets of a row say, too:")
            return {**counted, **listed, "statement": self.statement()}
        raise Unread(first)

    def share(self, first: str) -> Document:
        """A share of a measure: the question comes after the measure, which names its first point."""
        ends = r"at least (\d\.\d{12}) and at most (\d\.\d{12})(?: with some values of (.+))? are an answer\."
        m = re.fullmatch("of the measure below " + ends, first)
        how = self.match("It is a (tree: features are drawn one after the other|product: features are drawn one by one)"
                         ", and that inputs are so is trusted, not proved:")[1]  # fmt: skip
        start, tree = self.place, how.startswith("tree")
        abouts = [i for i, line in enumerate(self.lines) if line.startswith("The question about ")]
        if m is None or len(abouts) != 1:
            raise Unread(first)
        self.place = abouts[0] + 1
        stated, end = self.statement(), len(self.lines)
        if self.lines[abouts[0]] != f"The question about {' and '.join(one['name'] for one in self.points)}:":
            raise Unread(self.lines[abouts[0]])
        varied = [] if m[3] is None else self.reads(self.features_of, m[3])
        if self.place != end:
            raise Unread(self.lines[self.place])
        self.place, draws = start, list[Document]()
        while self.place < abouts[0]:
            draws.append(self.drawn(len(draws)) if tree else self.weights("  ", 0, {}))
        self.place = end
        found = {"says": "share", "least": float(m[1]), "most": float(m[2]), "varied": varied}
        return {**found, "measure": draws, "statement": stated}

    def drawn(self, number: int) -> Document:
        m = self.match(f"  draw {number}: (.*), after (?:none|draw (\\d+))")
        feature = None if m[1] == "nothing but a group" else self.reads(self.feature, m[1])
        found: Document = {"feature": feature, "sets": [], "after": m[2] and int(m[2]), "chances": []}
        while chances := re.fullmatch(r"    chances of groups(.*?): (.*)", self.lines[self.place]):
            if chances[1] != ("" if m[2] is None else f" if draw {m[2]} is of group {len(found['chances'])}"):
                raise Unread(self.lines[self.place])
            found["chances"].append(chances[2].split(", "))
            self.place += 1
        while group := re.match(r"    group (\d+): ", self.lines[self.place]):
            self.weights(group.group(), int(group[1]), found)
        return found

    def weights(self, indent: str, group: int, into: Document) -> Document:
        """The sets of a group with their weights."""

        def one(t: Text) -> list[Any]:
            _, f, allowed = self.place_of(t)
            return [f, allowed, t.take(f": ({FRACTION})")[1], group]

        sets = self.reads(lambda t: t.several(lambda: one(t), "; "), self.line().removeprefix(indent))
        features = {f for f, *_ in sets} | ({into["feature"]} if into else set())
        if len(features) != 1:
            raise Unread("a draw of several features")
        mine = into or {"feature": sets[0][0], "sets": [], "after": None, "chances": [["1"]]}
        mine["sets"].extend(rest for _, *rest in sets)
        return mine

    def listed_rows(self) -> Document:
        of = r"Rows may be equal \(different ones: (\d+) of (\d+)\)\. Their list in JSON has the SHA-256 ([0-9a-f]{64})"
        m = self.match(of)
        return {"different": int(m[1]), "of": int(m[2]), "list": m[3]}


AFTER = " exactly those have a pair that hold one of:"


def read(lines: list[str], features: list[str]) -> Document:
    """The claim that lines print."""
    return Reader(list(lines), features).claim()
