"""The table of docs/certificates.md, from small questions that are asked: python -m tests.docs.certificate_table --write.

For every construct the greatest score is found under it. Then each claim is asked for: that this score is reached, that none
is greater, that a greater one has no answer, and so on. What is written is whether the checker has accepted a certificate.
"""

from __future__ import annotations

import argparse
import re
import tempfile
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import xgboost

from treesens.binder.file import bind
from treesens.compiler.result import Result, Verdict
from treesens.grammar.parsing.parser import parse
from treesens.solve.options import Options
from treesens.solve.question import answer_question

PAGE = Path(__file__).parents[2] / "docs" / "certificates.md"
BEGIN = "<!-- asked by python -m tests.docs.certificate_table --write -->\n"
END = "<!-- end of what was asked -->\n"
HEAD = (
    'model m from "m.json"\nmodel n from "n.json"\nmodel k from "k.json"\ndata d from "d.csv"\ndata e from "e.csv"\n'
    "feature f0: real in [0, 2]\nfeature f1: real in [0, 2] or missing\nfeature f2: real in [0, 2]\n"
    "feature f3: integer in [0, 1]\nfeature f4: integer in [0, 1]\n"
)
ONE, PAIR = "a in m", "a, b in m"
SAME = "a = b except {f0, f1}; "


@dataclass(frozen=True)
class Construct:
    """A constraint with its points, and the score that is maximised under it."""

    points: str
    text: str
    goal: str
    declared: str = ""


DIFFERENCE = "margin(a) - margin(b)"
CONSTRUCTS = {
    "margins and probabilities": Construct(PAIR, SAME + "prob(b) <= 0.45", "margin(a)"),
    "a class of three": Construct("a in k", "class(a) = 1", "margin(a, 1)"),
    "two models at one input": Construct("a in m, b in n", "a = b", DIFFERENCE),
    "sets of values": Construct(ONE, "a.f0 in [0.2, 0.7]; a.f4 in {0}", "margin(a)"),
    "`onehot`": Construct(ONE, "a.f0 <= 1.5", "margin(a)", "onehot {f3, f4}\n"),
    "`avoid cavities`": Construct(ONE, "a avoid cavities(d, width = 2)", "margin(a)"),
    "`avoid cavities`, all": Construct(ONE, "a avoid cavities(d, width = 2, limit = all)", "margin(a)"),
    "`a.f <= b.f`": Construct(PAIR, SAME + "a.f0 <= b.f0", DIFFERENCE),
    "`a.f <= b.f - 1`": Construct(PAIR, SAME + "a.f0 <= b.f0 - 1", DIFFERENCE),
    "sums of features": Construct(ONE, "a.f0 + a.f2 <= 0.75", "margin(a)"),
    "sums of margins and features": Construct(PAIR, SAME + "margin(b) <= b.f0 - a.f1", DIFFERENCE),
    "disjunctions of sets": Construct(ONE, "a.f0 <= 0.2 or a.f2 >= 1.2", "margin(a)"),
    "disjunctions with scores": Construct(PAIR, SAME + "margin(b) >= 0.9 or a.f2 >= 1.8", DIFFERENCE),
    "`changes(a, b) <= 1`": Construct(PAIR, "changes(a, b) <= 1", DIFFERENCE),
    "`distance(a, row .., l0) <= 1`": Construct(ONE, "distance(a, row 0 of d, l0) <= 1", "margin(a)"),
    "`distance(a, row .., l1) <= 0.5`": Construct(ONE, "distance(a, row 0 of d, l1) <= 0.5", "margin(a)"),
    "`distance(a, row .., l2) <= 0.5`": Construct(ONE, "distance(a, row 0 of d, l2) <= 0.5", "margin(a)"),
    "`distance(a, row .., linf) <= 0.3`": Construct(ONE, "distance(a, row 0 of d, linf) <= 0.3", "margin(a)"),
    "`distance(a, b, l1) <= 0.2`": Construct(PAIR, "distance(a, b, l1) <= 0.2", DIFFERENCE),
    "`distance(a, b, linf) <= 0.2`": Construct(PAIR, "distance(a, b, linf) <= 0.2", DIFFERENCE),
    "`likelihood(a, d) >= ..`": Construct(ONE, "likelihood(a, d) >= 0.001", "margin(a)"),
    "`a typical of d`": Construct(ONE, "a typical of d", "margin(a)"),
    "sums of probabilities": Construct(PAIR, SAME + "prob(a) + prob(b) <= 0.8", DIFFERENCE),
}
FEW = 12
"""Rows that are counted: each has a proof of its own, which takes a third of a second under a distance."""
CLAIMS = ("`found`", "a bound", "`none`", "nearest row", "`count rows`", "`top 2`")


def write_files(folder: Path) -> None:
    """Two models, one of three classes, and rows."""
    random = np.random.default_rng(7)
    x = np.column_stack([random.integers(0, 9, (80, 3)) / 4, random.integers(0, 2, (80, 2))]).astype(np.float32)
    score = x[:, 0] - x[:, 1] * x[:, 2] / 2 + x[:, 3] / 2
    for name, seed, classes in (("m", 1, 2), ("n", 2, 2), ("k", 3, 3)):
        wanted = {"objective": "multi:softmax", "num_class": 3} if classes > 2 else {"objective": "binary:logistic"}
        y = np.digitize(score, np.quantile(score, np.arange(1, classes) / classes))
        options = {
            **wanted,
            "max_depth": 3,
            "eta": 0.6,
            "base_score": 0.5,
            "seed": seed,
            "nthread": 1,
            "subsample": 0.8,
        }
        xgboost.train(options, xgboost.DMatrix(x, y), num_boost_round=3).save_model(folder / f"{name}.json")
    rows = [",".join(f"{value:g}" for value in row) for row in x[:40]]
    for name, count in (("d", 40), ("e", FEW)):
        (folder / f"{name}.csv").write_text("\n".join(["f0,f1,f2,f3,f4", *rows[:count], ""]))


class Table:
    """The questions, asked in a folder; `reasons` number why there are no certificates."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.reasons: list[str] = []

    def ask(self, construct: Construct, question: str) -> Result:
        text = f"{HEAD}{construct.declared}query q: {question}\n"
        (asked,) = bind(parse(text, "<table>"), self.folder).queries
        options = Options(time_limit=90, certificates=self.folder / "out", regions=False)
        return answer_question(asked, options)

    def row(self, construct: Construct) -> list[str]:
        """What has a certificate, claim by claim."""
        such = f"find {construct.points} such that {construct.text}"
        best = self.ask(construct, f"{such} maximize {construct.goal}")
        assert best.objective is not None, best
        assert best.objective.bound is not None
        value, bound = best.objective.value, best.objective.bound
        above = f"{bound + 1e-3 * (1 + abs(bound)):.6f}"
        below = f"{value - 0.2 * (1 + abs(value)):.6f}"
        none = self.ask(construct, f"{such}; {construct.goal} >= {above}")
        assert none.verdict is Verdict.NONE, none
        asked = (
            f"{such}; {construct.goal} >= {below} minimize distance(a, row 1 of d, l1)",
            f"count rows of e as {construct.points} such that {construct.text}; {construct.goal} >= {below}",
            f"{such}; {construct.goal} >= {below} top 2",
        )
        nearest, count, top = (self.ask(construct, question) for question in asked)
        told = [
            self.told(best, "found"),
            self.told(best, "bound"),
            self.told(none, "none"),
            self.told(nearest, "bound"),
        ]
        return [*told, *(self.told(several, "") for several in (count, top))]

    def told(self, result: Result, claim: str) -> str:
        """`yes`, the number of cases, or the number of the reason why there is none."""
        mine = [one for one in result.certificates if one.claim == claim or not claim]
        assert mine, result
        missing = [one.reason for one in mine if not one.path]
        if not missing:
            cases = sum(not one.manifest for one in mine)
            return "yes" if cases == 1 or not claim else f"{cases} cases"
        if missing[0] not in self.reasons:
            self.reasons.append(missing[0])
        return f"no ({self.reasons.index(missing[0]) + 1})"


def table() -> str:
    """What was asked, as Markdown."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write_files(folder)
        asked = Table(folder)
        rows = [f"| {words} | {' | '.join(asked.row(one))} |" for words, one in CONSTRUCTS.items()]
    head = [f"| with | {' | '.join(CLAIMS)} |", "| --- |" + " --- |" * len(CLAIMS)]
    reasons = [f"{number}. {reason}" for number, reason in enumerate(asked.reasons, 1)]
    return "\n".join([*head, *rows, "", *reasons]) + "\n"


def differences(text: str, every: int) -> list[str]:
    """Compare every n-th row of the page with the program, with reasons by their words; return today's rows that differ."""
    found = []
    stated = {line.split(" | ")[0].removeprefix("| "): line for line in text.splitlines() if line.startswith("| ")}
    printed = dict(re.findall(r"^(\d+)\. (.*)$", text.partition(BEGIN)[2].partition(END)[0], re.MULTILINE))
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write_files(folder)
        asked = Table(folder)
        for words in list(CONSTRUCTS)[::every]:
            row = f"| {words} | {' | '.join(asked.row(CONSTRUCTS[words]))} |"
            today = re.sub(r"\((\d+)\)", lambda place: asked.reasons[int(place[1]) - 1], row)
            if re.sub(r"\((\d+)\)", lambda place: printed[place[1]], stated.get(words, "")) != today:
                found.append(today)
    return found


def page(text: str) -> str:
    """The page with the table of today."""
    before, _, rest = text.partition(BEGIN)
    return f"{before}{BEGIN}{table()}{END}{rest.partition(END)[2]}"


if __name__ == "__main__":
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--write", action="store_true", help="write it into the page")
    if options.parse_args().write:
        PAGE.write_text(page(PAGE.read_text("utf-8")), "utf-8")
    else:
        print(table())
