"""`explain row N of DATA`: drawn, and judged by every set of features over the complete domain."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations
from typing import Any

import numpy as np

from tests.oracle.cases import Case
from tests.oracle.decisions import outcomes
from tests.oracle.meaning import Setting, holds
from tests.oracle.models import quoted_class
from tests.oracle.questions import NOTHING

SHARE = 0.6
"""Cases with such a question."""
FILLING = 12
"""Questions of a case that are drawn to fill the table of coverage: no other question is one of these."""


def draw_explained(case: Case, count: int = 1) -> list[dict[str, Any]]:
    """Questions about rows, or none. Their own generator: the other questions of a seed stay what they are."""
    rng = np.random.default_rng([11, case.seed])
    drawn = [_draw(case, rng, "why" if i == 0 else f"why{i + 1}") for i in range(count)]
    return [q for q in drawn if q is not None]


def _draw(case: Case, rng: np.random.Generator, name: str) -> dict[str, Any] | None:
    models = [name for name, model in case.models.items() if model.kind != "regression"]
    tables = list(case.world.tables)
    if not models or not tables or rng.random() > SHARE:
        return None
    model, data = str(rng.choice(models)), str(rng.choice(tables))
    inside = np.flatnonzero(case.world.tables[data].inside)
    if not len(inside):
        return None
    names = [f.name for f in case.features]
    barred = [str(n) for n in rng.permutation(names)[: int(rng.choice([0, 0, 1, 1, 2, len(names)]))]]
    smallest = bool(rng.random() < 0.5) and len(names) <= 8
    asked = {"data": data, "row": int(rng.choice(inside)), "without": barred, "smallest": smallest}
    expect = str(rng.choice(["none", "some"])) if rng.random() < 0.1 else None
    return {**NOTHING, "name": name, "points": [["a", model]], "constraints": [], "explain": asked, "expect": expect}


class Truth:
    """What holds of a row: for every set of features whether all inputs that agree with the row on it have its class, or its
    outcome of the `decision` that is asked about.
    """

    def __init__(self, case: Case, question: dict[str, Any], *, exact: bool) -> None:
        self.world, self.asked = case.world, question["explain"]
        self.names = [f.name for f in case.features]
        (point, model), *_ = question["points"]
        place = self.world.place(self.world.tables[self.asked["data"]].places[self.asked["row"]])
        assert place is not None
        self.place = place
        everything = np.arange(self.world.space.size)
        s = Setting(
            self.world.space.features,
            {point: self.world.points[model]},
            {point: everything},
            self.world.tables,
            exact=exact,
        )
        policy = self.asked.get("decision")
        if policy is None:
            classes = [str(c) for c in case.models[model].classes]
            judged = {c: holds(["class", point, "=", quoted_class(c), "", ""], s) for c in classes}
        else:
            classes = outcomes(policy)
            judged = {c: holds(["decided", policy, "=", c], s) for c in classes}
        self.own = [c for c in classes if judged[c][0][place]]
        self.may_be = [c for c in classes if judged[c][1][place]]
        self.judged = judged

    def agreeing(self, features: frozenset[str]) -> np.ndarray:
        """Which inputs agree with the row on features."""
        group = self.world.group([n for n in self.names if n not in features])
        return np.asarray(group == group[self.place])

    def decides(self, features: frozenset[str], of: str) -> tuple[bool, bool]:
        """Whether features decide the class for sure, and whether they may."""
        same = self.agreeing(features)
        sure, may = self.judged[of]
        return bool(sure[same].all()), bool(may[same].all())

    def usable(self) -> Iterator[frozenset[str]]:
        """All sets of features that may be used, the smallest first."""
        free = [n for n in self.names if n not in self.asked["without"]]
        return (frozenset(c) for k in range(len(free) + 1) for c in combinations(free, k))


def judge_explained(case: Case, question: dict[str, Any], record: dict[str, Any], wrong: Any) -> None:
    """One answer against every set of features."""
    confirmed = record.get("confirmed_by") == "library"
    t = Truth(case, question, exact=False)
    known, verdict = record.get("explanation"), record["verdict"]
    if verdict == "unknown":
        clear = all((sure == may).all() for sure, may in t.judged.values())
        if clear:
            wrong("lost", f"unknown ({record['reason']}), and no score is near a bound")
        return
    if known is None:
        wrong("lost", f"no explanation beside {verdict}")
        return
    own = known["class"]
    if own not in t.may_be:
        wrong("wrong found", f"the row is said to be of class {own}, and the library says {t.own}")
        return
    if verdict == "none":
        free = frozenset(t.names) - frozenset(t.asked["without"])
        if t.decides(free, own)[0]:
            wrong("wrong none", f"{sorted(free)} decide the class")
        return
    _reason(t, known, own, wrong)
    if confirmed and not Truth(case, question, exact=True).decides(frozenset(known["sufficient"]), own)[1]:
        wrong(
            "wrong found",
            f"confirmed by the library, which gives an input that agrees on {known['sufficient']} another class",
        )


def _reason(t: Truth, known: dict[str, Any], own: str, wrong: Any) -> None:
    used = frozenset(known["sufficient"])
    if not t.decides(used, own)[1]:
        wrong("wrong found", f"{sorted(used)} do not decide the class {own}")
    if used & set(t.asked["without"]):
        wrong("wrong found", f"{sorted(used)} holds features that are left out")
    for name in used:
        if t.decides(used - {name}, own)[0]:
            wrong("optimum", f"{sorted(used)} do without {name}")
    if t.asked["smallest"]:
        fewer = next((s for s in t.usable() if len(s) < len(used) and t.decides(s, own)[0]), None)
        if fewer is not None:
            wrong("optimum", f"{sorted(fewer)} are fewer features than {sorted(used)}")
    fixed = frozenset(t.asked["without"])
    if known["contrast"] is None and not t.decides(fixed, own)[1]:
        wrong("wrong found", f"no input that agrees on {sorted(fixed)} is said to have another class")
    if known["contrast"] is not None and fixed & set(known["contrast"]):
        wrong("wrong found", f"the change {known['contrast']} is of features that are left out")
