"""Every sentence of a page and of a terminal that has a number or a quantifier, judged by the library that made the model.

30 audits of small models, with searches cut short, combinations left out, features that were not audited, features that no
tree splits on, missing values and names of classes. A sentence is matched with a known template; one without a template fails.
The claim of a template is judged by the library's predictions for all inputs of the domain.
"""

from __future__ import annotations

import html
import itertools
import json
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import treesens as ts
from treesens.extensions.studies.report.audit_table import show_audit
from treesens.extensions.studies.report.audit_words import limits, trusted

pytest.importorskip("jinja2")
NAMES = ["p", "q", "r", "s"]
LEVELS = 4
DIGITS = 1e-5
"""Of sums of floats of the library."""
COUNTS = re.compile(
    r"\d|\b(every|no|not|none|nothing|all|any|largest|most|up to|at least|at most|only|each|never|always)\b",
    re.IGNORECASE,
)


@dataclass(frozen=True, eq=False)
class Case:
    """An audit, and the library's predictions for all inputs: `columns` are the values of each feature, the last of them
    perhaps missing; `score` [.., ..] and `chance` are of all combinations.
    """

    name: str
    model: Any
    frame: pd.DataFrame
    raw: Callable[[Any, pd.DataFrame], Any]
    options: dict[str, Any]
    meaning: dict[str, Any] = field(default_factory=dict)
    cut: bool = False

    @cached_property
    def values(self) -> list[list[float]]:
        return [sorted(set(self.frame[n].dropna())) + [np.nan] * bool(self.frame[n].isna().any()) for n in NAMES]

    @cached_property
    def grid(self) -> pd.DataFrame:
        return pd.DataFrame(list(itertools.product(*self.values)), columns=NAMES)

    @property
    def regressor(self) -> bool:
        return not hasattr(self.model, "predict_proba")

    @property
    def shape(self) -> tuple[int, ...]:
        return tuple(map(len, self.values))

    @cached_property
    def score(self) -> np.ndarray:
        return np.asarray(self.raw(self.model, self.grid), float).reshape(self.shape)

    @cached_property
    def chance(self) -> np.ndarray:
        chosen = int(next(iter(self.options.get("classes", ["1"]))))
        return np.asarray(self.model.predict_proba(self.grid)[:, chosen], float).reshape(self.shape)

    @cached_property
    def places(self) -> tuple[np.ndarray, ...]:
        """The places of the rows among all inputs."""
        return tuple(
            np.array([len(v) - 1 if pd.isna(x) else v.index(x) for x in self.frame[n]])
            for n, v in zip(NAMES, self.values, strict=True)
        )

    def axes(self, varied: str) -> tuple[int, ...]:
        return tuple(NAMES.index(name) for name in varied.split(", "))

    def answers(self, gap: str) -> tuple[np.ndarray, np.ndarray] | None:
        """The inputs that give the one answer and those that give the other; None if the gap is a distance of two scores."""
        size, centre = float(gap.split()[1]), self.options.get("threshold", 0.5)
        if gap.startswith("margin"):
            return (self.score >= size, self.score <= -size) if not self.regressor else None
        if self.regressor:
            return None
        return self.chance >= centre + size, self.chance <= centre - size

    def flips(self, varied: str, gap: str) -> np.ndarray:
        """Which inputs flip, for all of them."""
        axes, both = self.axes(varied), self.answers(gap)
        if both is None:
            high, low = self.score.max(axis=axes, keepdims=True), self.score.min(axis=axes, keepdims=True)
            found = high - low >= float(gap.split()[1])
        else:
            found = both[0].any(axis=axes, keepdims=True) & both[1].any(axis=axes, keepdims=True)
        return np.broadcast_to(found, self.shape)

    def rows(self, varied: str, gap: str) -> int:
        return int(self.flips(varied, gap)[self.places].sum())

    def swing(self, varied: str) -> float:
        axes = self.axes(varied)
        return float((self.score.max(axis=axes) - self.score.min(axis=axes)).max())


def number(text: str) -> float:
    return float(text.replace(",", ""))


def holds(words: str, truth: float, digits: int = 4) -> bool:
    """True if the words about a largest value are true: exactly to so many digits, or as the bound that they name."""
    if words in {"not known", "not audited"}:
        return True
    if words.startswith("not used"):
        return truth <= DIGITS
    parts = words.split(", ")
    if not words.startswith("at "):
        (only,) = parts
        return abs(number(only) - truth) <= 10.0 ** (1 - digits) * max(abs(truth), 1e-3) + DIGITS
    return all(
        number(part.split()[2]) <= truth + DIGITS
        if part.startswith("at least ")
        else number(part.split()[2]) >= truth - DIGITS
        for part in parts
    )


def whole(words: str, truth: int) -> bool:
    """The same of a count."""
    if words == "not known":
        return True
    return truth >= number(words[9:]) if words.startswith("at least ") else truth == number(words)


FEATURES = "|".join([", ".join(some) for n in (4, 3, 2, 1) for some in itertools.permutations(NAMES, n)])
NUMBER = r"[\d.e+-]+"
EXACT = rf"(?:{NUMBER}|not (?:known|audited|used \(proved\)))"
LARGEST = rf"(?:at least {NUMBER}, at most {NUMBER}|at (?:least|most) {NUMBER}|{EXACT})"
TOLD = r"(?:[\d.]+ %|determines it in every row of the table)"
CUT = r" \(\w+ at [\d.]+\)"
"""After a feature: the chosen class and cut-off."""
COUNT = r"(?:at least )?[\d,]+"
GAP = r"(?:gap|margin) [\d.]+"
FLIPS = (
    rf"(?:{COUNT} of \d+ rows flips?|[Nn]one of \d+ rows flips|"
    r"[Nn]o row is known to flip; not all combinations of values were tried)"
)


def flips_hold(case: Case, words: str, varied: str, gap: str) -> bool:
    """True if a sentence such as `27 of 700 rows flip` is true."""
    truth = case.rows(varied, gap)
    if words.lower().startswith("none of"):
        return truth == 0
    found = re.fullmatch(rf"({COUNT}) of (\d+) rows flips?", words)
    return found is None or (whole(found[1], truth) and int(found[2]) == len(case.frame))


class Judge:
    """The templates of sentences, each with its claim."""

    def __init__(self, case: Case, facts: dict[str, Any], records: list[dict[str, Any]]) -> None:
        self.case, self.facts, self.records = case, facts, records
        self.asked = list(dict.fromkeys(", ".join(one["varied"]) for one in records))
        self.gaps = list(dict.fromkeys(self.gap_of(one) for one in records))
        self.protected = [a for a in self.asked if set(a.split(", ")) & set(case.meaning.get("protected", ()))]
        self.where = ("", "")
        """The feature and the gap of the evidence that is being read."""
        self.fixed = {
            *(part for text in (*limits(records, facts), *trusted(records)) for part in sentences(text)),
        }
        self.templates: list[tuple[str, Callable[..., bool]]] = [
            (rf"At ({GAP}), (.*)", self.headline),
            (r"Undecided: (\d+) of (\d+) questions; run again with (.*)", self.undecided),
            (rf"Of the others at ({GAP}), (.*)", self.others),
            (rf"Protected: ({FEATURES}): (.*)", self.of_protected),
            (r"Protected, and not audited: (.*)", self.left_out),
            (rf"({FEATURES}) has the largest swing of the [a-z ]+ found: ({LARGEST})", self.reached),
            (r"It is the largest of all audited features \(proved\)", lambda: self.closed),
            (rf"The largest of all audited features: ({LARGEST})", lambda w: holds(w, self.widest)),
            (
                rf"(?:proxy: )?(\w+) (explains [\d.]+ % of|determines) (\w+) in (?:every row of )?the table; "
                rf"largest swing: ({LARGEST})",
                self.proxy,
            ),
            (rf"(\w+): ((?:\w+ \({TOLD}, largest swing: {LARGEST}\)(?:; )?)+)", self.proxies),
            (rf"({FLIPS})(?:: (.*))?", self.evidence),
            (rf"(\w+): (\w+); largest fall ({LARGEST}); largest rise ({LARGEST})", self.shape),
            (r"The pair is made of row (\d+) of the data: its distance is 0", self.made_of),
            (
                r"(?:(?:input a → input b|gap [\d.]+|margin [\d.]+): )*([^:]* → [^:]*): (.*?)(?:; equal: (.*))?",
                self.pair,
            ),
            (r"Assumed, since nothing says otherwise: (.*)", self.assumed),
            (rf"({GAP}): (.*)", self.question),
        ]

    @staticmethod
    def gap_of(record: dict[str, Any]) -> str:
        return f"gap {record['gap']:g}" if "gap" in record else f"margin {record['margin']:g}"

    @cached_property
    def widest(self) -> float:
        return max(map(self.case.swing, self.asked))

    closed: Any = False

    def headline(self, gap: str, words: str) -> bool:
        """`2 of 3 protected features can change a decision: ..`, and the lines of the summary."""
        exact = re.fullmatch(
            rf"({COUNT}) of (\d+) audited features? \(or sets\) flips? rows of the data; ({FEATURES}) flips "
            rf"(most|most as far as is known): ({FLIPS})",
            words,
        )
        counts = {one: self.case.rows(one, gap) for one in self.asked}
        if exact:
            some, name = sum(map(bool, counts.values())), exact[3]
            return (
                whole(exact[1], some)
                and int(exact[2]) == len(self.asked)
                and (exact[4] != "most" or counts[name] == max(counts.values()))
                and flips_hold(self.case, exact[5], name, gap)
            )
        none = re.fullmatch(
            r"none of (\d+) audited features? \(or sets\) (flips a row of the data|is known to flip a row of the data; not "
            r"all combinations of values were tried)",
            words,
        )
        if none:
            return int(none[1]) == len(self.asked) and (none[2].startswith("is known") or not any(counts.values()))
        of = self.protected or self.asked
        return all(
            self.part(gap, part, of) for part in words.split("; ") if not part.startswith("not all combinations")
        )

    def part(self, gap: str, words: str, of: Sequence[str]) -> bool:
        kind = "protected" if self.protected else "audited"
        found = re.fullmatch(
            rf"(\d+) of (\d+)(?: {kind} (?:features?|sets? of features))? "
            r"(can (?:change a decision|move the prediction so far): (.*)|"
            r"(?:is|are) proved not to (?:change a decision|move the prediction so far|do so)|(?:is|are) undecided)",
            words,
        )
        if found is None or int(found[2]) != len(of):
            return False
        truly = [name for name in of if self.case.flips(name, gap).any()]
        if found[4] is not None:
            named = re.findall(rf"({FEATURES}) \(({FLIPS}|no row is known to flip)", found[4])
            return (
                bool(named)
                and int(found[1]) <= len(truly)
                and all(name in truly and flips_hold(self.case, said, name, gap) for name, said in named)
            )
        return "undecided" in found[3] or int(found[1]) <= len(of) - len(truly)

    def undecided(self, some: str, of: str, again: str) -> bool:
        """The numbers of questions; features that are undecided have more time in the proposed run."""
        unknown = [", ".join(one["varied"]) for one in self.records if one["verdict"] == "unknown"]
        named = [name.replace(",", ", ") for name in re.findall(r"-v (\S+)", again)]
        return (int(some), int(of)) == (len(unknown), len(self.records)) and bool(named) and set(named) <= set(unknown)

    def others(self, gap: str, words: str) -> bool:
        """Of the features without a row that flips."""
        none = [a for a in self.asked for r in self.records if self.of(r, a, gap) and not r["rows_flipped"]]
        truly = [name for name in none if self.case.flips(name, gap).any()]
        for part in re.split(r", (?=\d)", words):
            found = re.fullmatch(
                r"(\d+) (flips? an input of the domain|(?:is|are) proved to flip no input of the domain|(?:is|are) undecided)",
                part,
            )
            if found is None:
                return False
            most = {"f": len(truly), "p": len(none) - len(truly), "u": len(none)}
            word = re.sub(r"^(is|are) ", "", found[2])[0]
            if int(found[1]) > most[word]:
                return False
        return True

    def of(self, record: dict[str, Any], name: str, gap: str) -> bool:
        return ", ".join(record["varied"]) == name and self.gap_of(record) == gap

    def of_protected(self, name: str, words: str) -> bool:
        for part in re.split(r"; (?=at )", words):
            found = re.fullmatch(
                rf"at ({GAP}) ({FLIPS}|an input of the domain flips|no input of the domain flips \(proved\)|undecided)",
                part,
            )
            if found is None:
                return False
            flips = self.case.flips(name, found[1]).any()
            if "rows" in found[2] and not flips_hold(self.case, found[2], name, found[1]):
                return False
            if (found[2].startswith("an input") and not flips) or (found[2].startswith("no input") and flips):
                return False
        return True

    def left_out(self, names: str) -> bool:
        return set(names.split(", ")) == set(self.case.meaning["protected"]) - {
            n for a in self.asked for n in a.split(", ")
        }

    def reached(self, name: str, words: str) -> bool:
        self.closed = holds(words, self.widest)
        return holds(words, self.case.swing(name))

    def proxy(self, name: str, told: str, of: str, words: str) -> bool:
        """A feature that was not audited is reported as such, unless no tree splits on it."""
        same = self.case.frame.groupby(name, dropna=False)[of].nunique(dropna=False).max() == 1
        if told.startswith("determines") and not same:
            return False
        if name not in self.asked and words == "not known":
            return False
        return of in self.case.meaning["protected"] and holds(words, self.case.swing(name))

    def proxies(self, of: str, words: str) -> bool:
        return all(
            self.proxy(name, told, of, said)
            for name, told, said in re.findall(rf"(\w+) \(({TOLD}), largest swing: ({LARGEST})\)", words)
        )

    def evidence(self, flips: str, more: str | None) -> bool:
        name, gap = self.where
        if not flips_hold(self.case, flips, name, gap):
            return False
        if more is None:
            return True
        found = re.fullmatch(
            r"(\d+) of them change from (\w+|the first answer) to (\w+|the other one), (\d+) from \3 to \2"
            r"(?:, and (\d+) have neither answer as they are)?",
            more,
        )
        both = self.case.answers(gap)
        if found is None or both is None:
            return False
        rows = self.case.flips(name, gap)[self.case.places]
        high, low = (int((rows & side[self.case.places]).sum()) for side in both)
        called = self.case.meaning.get("classes")
        if called:
            chosen = int(next(iter(self.case.options.get("classes", ["1"]))))
            if (found[2], found[3]) != (called[chosen], called[1 - chosen]):
                return False
        said = (int(found[1]), int(found[4]), int(found[5] or 0))
        complete = flips.split(maxsplit=1)[0] != "at"
        return said == (high, low, int(rows.sum()) - high - low) if complete else said[0] <= high and said[1] <= low

    def shape(self, name: str, word: str, fall: str, rise: str) -> bool:
        """How far the score falls and rises with a feature, between values that are not missing."""
        axis = NAMES.index(name)
        known = [i for i, v in enumerate(self.case.values[axis]) if not pd.isna(v)]
        score = np.moveaxis(self.case.score, axis, 0)[known]
        pairs = [(score[j] - score[i]) for i in range(len(known)) for j in range(i + 1, len(known))]
        falls, rises = float(-np.min(pairs)), float(np.max(pairs))
        words = {
            "increasing": falls <= DIGITS,
            "decreasing": rises <= DIGITS,
            "constant": max(falls, rises) <= DIGITS,
            "neither": min(falls, rises) > DIGITS,
        }
        return holds(fall, max(falls, 0.0)) and holds(rise, max(rises, 0.0)) and words.get(word, True)

    def made_of(self, row: str) -> bool:
        """The row flips."""
        return bool(self.case.flips(*self.where)[self.case.places][int(row)])

    def question(self, gap: str, words: str) -> bool:
        """The condition on the two inputs of a pair."""
        shown = re.fullmatch(
            r"(\w+|P\(\w+\)|raw score) >= (-?[\d.]+) for one input, <=? (-?[\d.]+) for the other", words
        )
        size = float(gap.split()[1])
        if shown is None:
            return bool(re.fullmatch(rf"(predictions|raw scores) of the two inputs at least {size:g} apart", words))
        centre = self.case.options.get("threshold", 0.5) if gap.startswith("gap") else 0.0
        return np.allclose([float(shown[2]), float(shown[3])], [centre + size, centre - size])

    def pair(self, changes: str, scores: str, equal: str | None) -> bool:
        """`p 1 → 3: prob 0.2 → 0.7, row 5`: some two inputs of the domain are like that."""
        fixed: dict[str, tuple[str, str]] = {}
        for one in changes.split(", "):
            name, _, rest = one.partition(" ")
            fixed[name] = tuple(rest.split(" → "))  # type: ignore[assignment]
        for one in (equal or "").split(", ") if equal else ():
            name, _, value = one.partition(" ")
            fixed[name] = (value, value)
        if equal is not None and set(fixed) != set(NAMES):
            return False
        classes = re.fullmatch(r"class (\w+) \(([\d.]+)\) → (\w+) \(([\d.]+)\)(?:, row \d+)?", scores)
        if classes is not None:
            # Each with the probability of its own class.
            scores = f"prob {classes[2]} → {classes[4]}"
        named = re.fullmatch(r"P\((\w+)\) ([\d.e+-]+) \((\w+)\) → ([\d.e+-]+) \((\w+)\)(?:, row \d+)?", scores)
        if named is not None:
            if any((float(p) > 0.5) != (name == named[1]) for p, name in (named.group(2, 3), named.group(4, 5))):
                return False
            scores = f"{named[1]} {named[2]} → {named[1]} {named[4]}"
        found = re.fullmatch(
            r"(\w+ )?([\d.e+-]+) → (\w+ )?([\d.e+-]+)(?:, row (\d+))?", scores.replace("raw score", "raw")
        )
        if found is None:
            return False
        meaning, words = self.case.meaning, (found[1] or "").strip()
        truth = self.case.score
        if words == "prob" or "classes" in meaning:
            one = int(next(iter(self.case.options.get("classes", ["1"]))))
            of_second = self.case.chance if one == 1 else 1 - self.case.chance
            favourable = meaning.get("favourable")
            truth = of_second if favourable is None or meaning["classes"][1] == favourable else 1 - of_second
        ends = []
        for side in (0, 1):
            places = [
                [i for i, v in enumerate(values) if n not in fixed or _same(fixed[n][side], v)]
                for n, values in zip(NAMES, self.case.values, strict=True)
            ]
            of = (
                truth
                if classes is None
                else (1 - self.case.chance if classes[1 + 2 * side] == "0" else self.case.chance)
            )
            ends.append(of[np.ix_(*places)])
        if ends[0].shape != ends[1].shape or not ends[0].size:
            return False
        first, second = number(found[2]), number(found[4])
        near = (abs(ends[0] - first) <= 2e-3 * max(1, abs(first))) & (
            abs(ends[1] - second) <= 2e-3 * max(1, abs(second))
        )
        return bool(near.any())

    def assumed(self, words: str) -> bool:
        """A choice left to its default."""
        options, frame = self.case.options, self.case.frame
        lacking = ", ".join(name for name in NAMES if frame[name].isna().any())
        claims = {
            "inputs lie in the ranges of the table's columns": "domain" not in options,
            "no value is missing": not lacking,
            f"values may be missing in {lacking} alone": bool(lacking),
            "the model's own cut-off decides, at a probability of 0.5": (
                "threshold" not in options and not self.case.regressor
            ),
            "scores are those of class 1": (
                "classes" not in options and not self.case.regressor and self.case.model.classes_[1] == 1
            ),
        }
        return bool(claims.get(words, False))

    def cell(self, name: str, gap: str, kind: str, words: str) -> bool:
        """A finding of the table of results."""
        flips, rows = self.case.flips(name, gap).any(), self.case.rows(name, gap)
        if kind == "rows":
            found = re.fullmatch(rf"on rows: ({COUNT}) of (\d+) \(([\d.]+) %\)", words)
            return (
                found is not None
                and whole(found[1], rows)
                and int(found[2]) == len(self.case.frame)
                and (found[1].startswith("at") or abs(number(found[3]) - 100 * rows / len(self.case.frame)) < 0.01)
            )
        claims = {
            "on inputs only": flips and rows == 0,
            "on inputs: not all values were tried for rows": flips,
            "none (proved)": not flips,
            "undecided: more time may decide it": True,
        }
        return bool(claims.get(words, False))

    def figures(self, name: str, gap: str, rows: str, share: str, verdict: str, swing: str) -> bool:
        """A line of all figures."""
        flips, truth = self.case.flips(name, gap).any(), self.case.rows(name, gap)
        return (
            whole(rows, truth)
            and (
                share == "–"
                or abs(number(share.replace("\u00a0", " ").removesuffix(" %")) - 100 * truth / len(self.case.frame))
                < 0.06
            )
            and {"found": flips, "none": not flips, "unknown": True}[verdict]
            and (swing == "–" or self.swings(name, swing))
        )

    def swings(self, name: str, words: str) -> bool:
        """A largest swing, and the probabilities of the second class in a pair that reaches it."""
        found = re.fullmatch(r"(.*?)(?: \(P ([\d.e+-]+) to ([\d.e+-]+)\))?", words)
        assert found is not None
        if not holds(found[1], self.case.swing(name)) or found[2] is None:
            return holds(found[1], self.case.swing(name))
        one, axes = int(next(iter(self.case.options.get("classes", ["1"])))), self.case.axes(name)
        chance = self.case.chance if one == 1 else 1 - self.case.chance
        rest = [axis for axis in range(len(NAMES)) if axis not in axes]
        groups, scores = (
            np.transpose(of, (*rest, *axes)).reshape(int(np.prod([of.shape[i] for i in rest])), -1)
            for of in (chance, self.case.score)
        )
        low, high = (np.abs(groups - float(end)) <= 6e-3 * float(end) for end in found.groups()[1:])
        reached = float(found[1].removeprefix("at least ").partition(",")[0])
        return any(
            (np.abs(np.abs(s[h][:, None] - s[lo][None]) - reached) <= 2e-3 * reached).any()
            for s, h, lo in zip(scores, high, low, strict=True)
        )

    def wrong(self, text: str) -> str | None:
        """The error in a sentence; None if the sentence is true."""
        text = re.sub(CUT, "", text)
        plain = text.removesuffix(".")
        if text in self.fixed or any(re.fullmatch(one, plain) for one in FIXED):
            return None
        for template, claim in self.templates:
            found = re.fullmatch(template, plain)
            if found is not None:
                return None if claim(*found.groups()) else f"false: {text}"
        return f"of no template: {text}"


FIXED = [
    # Definitions: they explain words, and claim nothing about the model.
    r"(?:On rows: the number of rows of the data that flip; |[Rr]ows that flip: )a row flips if, with its other features "
    r"fixed, one value of the feature from the domain gives one answer and another value gives the other answer; the row "
    r"itself may give neither",
    r"On inputs only: no row flips, but other inputs of the domain do; their share was not requested",
    r"None: proved that no input of the domain flips, seen or unseen",
    r"[Ll]argest swing: the largest difference of the [a-z ]+ between two inputs of the domain that differ only in the feature"
    r"(; P: the probabilities of class \w+ for two such inputs)?",
    r"In brackets: the part of the entropy of the protected feature that the other feature explains in the table, and .*",
    r"The largest swing is the largest difference of .*; if only limits are known, a verified pair reaches the lower limit "
    r"\(“at least”\), and the upper limit \(“at most”\) is proved",
    r"Answers: found, a verified pair of inputs; none, proved that no input of the domain flips; unknown, undecided",
    r"Distances are in widths of the domain \(l2\)",
    r"∅: proved that no input at all flips; \?: undecided",
    r"Every number is in the table above",
    r"A fall is a lower score at a greater value of the feature, all others being equal, and a rise a higher one; a missing "
    r"value is neither greater nor smaller",
    r"All answers are about inputs of this domain",
    r"All pairs of the region answer the question; “any” is every value of the domain",
    r"The greatest effect first: rows that flip at the smallest gap, then the largest swing",
    r"Values and ends of regions are given in full, scores with six digits; the records next to this page have all digits",
    r"Values are rounded to six digits here; a number next to a threshold of a tree is marked as just below or just above it",
    r"The records next to this page have all digits",
    r"For every feature \(or set of features\): are there two inputs of the domain that differ in nothing else, with",
    # How an answer was found; and the inputs of the audit.
    r"Rests on: .*",
    *(r".*: \d+ trees, \d+ leaves, 4 features", r".*: [\d,]+ rows", r"Date: .*", r"Model: .*", r"No row was left out"),
    *(r".*: \d+ trees, \d+ leaves; .*: \d+ rows; [\d.]+ s", r"There were no warnings", r"Here class .*"),
]


def sentences(text: str) -> list[str]:
    return [part for part in re.split(r"(?<=[.?])\s+(?=[A-Z∅])", " ".join(text.split())) if part]


def blocks(text: str) -> Iterator[tuple[str, str]]:
    """The paragraphs and points of a page, with the tag of each; and the headings of the evidence."""
    body = re.sub(r"<(style|svg|pre)\b.*?</\1>", "", text, flags=re.DOTALL)
    for tag, inner in re.findall(r"<(p|li|caption|summary|h3)\b[^>]*>(.*?)</\1>", body, re.DOTALL):
        yield tag, plain(inner)


def plain(text: str) -> str:
    return " ".join(html.unescape(re.sub(r"<[^>]+>", "", text)).split())


def _same(shown: str, value: float) -> bool:
    return shown == "missing" if pd.isna(value) else shown != "missing" and float(shown) == value


def rows_of(missing: bool = False) -> pd.DataFrame:
    """120 rows: `q` and `s` reveal much of `p`; `s` is constant in training, so that no tree splits on it."""
    rng = np.random.default_rng(5)
    p = rng.integers(0, LEVELS, 120)
    frame = pd.DataFrame(
        {"p": p, "q": np.clip(p + rng.integers(-1, 2, 120), 0, 3), "r": rng.integers(0, LEVELS, 120), "s": p}
    )
    frame = frame.astype(float)
    if missing:
        frame.loc[::9, "p"] = np.nan
    return frame


def margin(model: Any, x: pd.DataFrame) -> Any:
    kind = type(model).__module__.partition(".")[0]
    if kind == "xgboost":
        return model.predict(x, output_margin=True)
    if kind == "lightgbm":
        return model.predict(x, raw_score=True)
    return model.decision_function(x)


def second(model: Any, x: pd.DataFrame) -> Any:
    return model.predict_proba(x)[:, 1]


def value(model: Any, x: pd.DataFrame) -> Any:
    return model.predict(x)


MODELS = ("xgboost", "lightgbm", "histogram", "forest", "missing", "regressor")
WAYS = ("all", "left out", "cut", "incomplete", "named")


def case_of(kind: str, way: str) -> Case:
    """A model, trained anew, and how it is audited."""
    frame = rows_of(kind == "missing")
    rng = np.random.default_rng(8)
    p, q, r = (frame[n].fillna(0).to_numpy() for n in "pqr")
    target = p + 2 * ((q > 1) ^ (r > 2)) + 0.4 * r + rng.normal(0, 0.5, len(frame))
    label = (target > np.median(target)).astype(int)
    sklearn = partial(pytest.importorskip, "sklearn.ensemble")
    train = frame.assign(s=0.0)
    if kind in ("xgboost", "missing"):
        model = pytest.importorskip("xgboost").XGBClassifier(n_estimators=6, max_depth=3, n_jobs=1).fit(train, label)
    elif kind == "lightgbm":
        make = pytest.importorskip("lightgbm").LGBMClassifier
        model = make(n_estimators=6, num_leaves=6, min_child_samples=4, verbose=-1, n_jobs=1).fit(train, label)
    elif kind == "histogram":
        model = (
            sklearn().HistGradientBoostingClassifier(max_iter=6, min_samples_leaf=4, random_state=1).fit(train, label)
        )
    elif kind == "forest":
        model = sklearn().RandomForestClassifier(7, max_depth=4, min_samples_leaf=3, random_state=1).fit(train, label)
    else:
        model = sklearn().GradientBoostingRegressor(n_estimators=8, random_state=1).fit(train, target)
    regressor, gaps = kind == "regressor", [0.5, 1.5] if kind == "regressor" else [0.05, 0.2]
    meaning: dict[str, Any] = {"protected": ["p", "r"]}
    options: dict[str, Any] = {"gap": gaps, "time_limit": 20.0, "jobs": 1}
    match way:
        case "all":
            options["shape"] = True
        case "left out":
            options["vary"] = ["p"]
        case "cut":
            options |= {"time_limit": 1e-6, "vary": ["p", "q", "r"], "gap": gaps[-1:]}
        case "incomplete":
            options |= {"vary": [["p", "q", "r"], ["r", "q"], "q"], "time_limit": 2.0}
        case "named" if not regressor:
            meaning |= {"classes": {0: "granted", 1: "refused"}, "favourable": "granted"}
            options |= {"threshold": 0.4, "classes": ["0"], "gap": [0.1], "vary": ["p", "q"]}
        case "named":
            options |= {"vary": ["p", "s"]}
    return Case(
        f"{kind} {way}",
        model,
        frame,
        {"forest": second, "regressor": value}.get(kind, margin),
        options,
        meaning,
        way == "cut",
    )


def read(case: Case, folder: Path, capsys: pytest.CaptureFixture[str]) -> tuple[str, str, dict[str, Any]]:
    """The page of an audit, its terminal output, and its facts."""
    found: Any = ts.audit(ts.load(case.model, **case.meaning), case.frame, **case.options)
    found.report(folder / "r.html", date="2026-01-01")
    facts = json.loads((folder / "r.audit.json").read_text())
    capsys.readouterr()
    show_audit(found.records, {**facts, "seconds": 1.0})
    return (folder / "r.html").read_text(), capsys.readouterr().out, facts


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("kind", MODELS)
@pytest.mark.sampled
def test_every_sentence_is_true(
    kind: str, way: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("COLUMNS", "2000")
    if way == "cut":
        monkeypatch.setattr("treesens.extensions.studies.audit_search._MOMENT", 0.0)
    if way == "incomplete":
        monkeypatch.setattr("treesens.data.flips.MOST_COMBINATIONS", 2)
        monkeypatch.setattr("treesens.extensions.studies.rows._FEWEST", 2, raising=False)
    case = case_of(kind, way)
    text, shown, facts = read(case, tmp_path, capsys)
    judge = Judge(case, facts, facts["results"])
    wrong, judged = [], 0
    for tag, words in blocks(text):
        if tag == "summary":
            judge.where = (re.sub(CUT, "", words[: words.index(f" {judge.gaps[0]}")]), "")
            continue
        if tag == "h3":
            judge.where = (judge.where[0], words.partition(":")[0])
            continue
        for one in sentences(words):
            if COUNTS.search(one):
                judged += 1
                wrong.append(judge.wrong(one))
    for line in shown.splitlines():
        words = line.strip()
        cells = re.split(r"\s{2,}", words)
        if not COUNTS.search(words) or cells[0] == "varied":
            continue
        judged += 1
        if len(cells) < 6:
            wrong.append(judge.wrong(words))
            continue
        name, place = cells[0].removesuffix(" (protected)"), next(i for i, c in enumerate(cells) if c in judge.gaps)
        rows, verdict, swing = cells[place + 1], cells[place + 3], cells[place + 6]
        wrong.append(None if judge.figures(name, cells[place], rows, "–", verdict, swing) else f"false: {words}")
    for name, line in re.findall(r'<tr><th scope="row" class="(?:name|long)">(.*?)</th>(.*?)</tr>', text):
        cells = re.findall(r'<td class="finding (\w+)" data-label="[^"]+">(.*?)</td>', line)
        about = name.partition(" (")[0]
        for gap, (kind_of, words) in zip(judge.gaps, cells, strict=True):
            judged += 1
            wrong.append(None if judge.cell(about, gap, kind_of, plain(words)) else f"false: {name} {gap} {words}")
        swing = re.findall(r'<td data-label="largest swing">([^<]*)</td>$', line)[0]
        wrong.append(None if swing == "–" or judge.swings(about, swing) else f"false: {name} {swing}")
    for line in re.findall(r'<tr><th scope="row">([^<]*)</th><td class="gap">(.*?)</tr>', text):
        name, cells = line[0].partition(" (")[0], [plain(cell) for cell in re.split(r"</td>", line[1])]
        judged += 1
        right = judge.figures(name, cells[0], cells[1], cells[2], cells[3], cells[6])
        wrong.append(None if right else f"false: {line}")
    assert judged > 20
    assert not list(filter(None, wrong)), "\n".join(filter(None, wrong))
