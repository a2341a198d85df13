"""Judges shape, groups and reasons: how a score moves with one feature, and who gets the favourable decision.

Written from docs/cli-study.md; nothing of treesens is here.
"""

from __future__ import annotations

from collections import Counter
from fractions import Fraction
from itertools import combinations
from math import comb, isnan
from typing import Any

import numpy as np

from tests.oracle.cases import Case
from tests.oracle.judge import witness_setting
from tests.oracle.language import Node
from tests.oracle.meaning import Points, Truth, holds
from tests.oracle.models import quoted_class
from tests.oracle.models_sklearn import WITHOUT_SCORES
from tests.oracle.study import SLACK, Wrong, alone
from tests.oracle.study_pairs import AB, tolerance

ONE = {"name": "study", "points": [["a", "m"]], "constraints": []}
MOST_SETS = 3_000
"""Sets of features that are tried for one denial."""


# Shapes ------------------------------------------------------------------------------------------------------------------


def score_of(points: Points, output: int) -> np.ndarray:
    """The raw score of a class; of two classes that of the second, of a regressor its value before the link."""
    return np.asarray(points.margins[:, output if points.margins.shape[1] > 1 else 0])


def reversals(case: Case, feature: str, output: int) -> tuple[float, float]:
    """The largest fall and the largest rise of a score while a feature rises and all others stay, missing values aside."""
    world, points = case.world, case.world.points["m"]
    score, values = score_of(points, output), points.user[:, world.space.index(feature)]
    present = ~np.isnan(values)
    group = world.group([feature])[present]
    fall = rise = 0.0
    order = np.lexsort((values[present], group))
    highest = lowest = last = None
    for number, one in zip(group[order].tolist(), score[present][order].tolist(), strict=True):
        if number != last:
            highest, lowest, last = one, one, number
        assert highest is not None
        assert lowest is not None
        fall, rise = max(fall, highest - one), max(rise, one - lowest)
        highest, lowest = max(highest, one), min(lowest, one)
    return fall, rise


def judge_shape(case: Case, records: list[dict[str, Any]], names: list[str], wrong: Wrong) -> None:
    model = case.models["m"]
    several = model.kind != "regression" and case.world.points["m"].margins.shape[1] > 1
    outputs: dict[str, int] = {str(c): i for i, c in enumerate(model.classes)} if several else {"": 0}
    if len(model.classes) == 2 and several:
        outputs = {str(model.classes[1]): 1}
    wanted = Counter((name, c) for name in names for c in outputs)
    told = Counter((r["feature"], str(r.get("class", ""))) for r in records)
    if told != wanted:
        wrong("lost", f"records {told - wanted} too many, {wanted - told} missing")
        return
    for record in records:
        feature = case.features[case.world.space.index(record["feature"])]
        if record["shape"] == "unordered":
            if feature.kind != "category" and feature.codes == "number" and feature.group is None:
                wrong("record", f"{feature.name} is a number, and is said to have no order")
            continue
        if feature.kind == "category" or feature.codes != "number":
            wrong("record", f"{feature.name} is a category, and is said to be {record['shape']}")
            continue
        output = outputs[str(record.get("class", ""))]
        _shape(case, record, output, *reversals(case, feature.name, output), wrong)


def _shape(case: Case, record: dict[str, Any], output: int, fall: float, rise: float, wrong: Wrong) -> None:
    slack = tolerance(case.world.points["m"])
    said = f"{record['feature']} {record.get('class', '')}: {record['shape']}, by enumeration fall {fall}, rise {rise}"
    shape = record["shape"]
    if (shape in ("increasing", "constant") and fall > slack) or (shape in ("decreasing", "constant") and rise > slack):
        wrong("wrong none", said)
    if shape == "neither" and not (fall > 0 and rise > 0) and slack <= SLACK:
        wrong("wrong found", said)
    hidden = "vanishes in the library's rounding" in record["reason"] and min(fall, rise) <= slack
    if shape == "unknown" and not hidden:
        # Sums that move by less than the library rounds are shown by no pair of its own.
        wrong("lost", f"{record['reason']}; {said}")
    for word, true in (("fall", fall), ("rise", rise)):
        value, bound = record[f"largest_{word}"], record[f"largest_{word}_bound"]
        if bound < true - slack:
            wrong("bound", f"largest_{word}_bound {bound}; {said}")
        if value is not None and value > true + slack:
            wrong("optimum", f"largest_{word} {value}; {said}")
        if record["closed"] and (value is None or value < true - slack - 1.1e-6 * abs(true)):
            wrong("optimum", f"closed with largest_{word} {value}; {said}")
        if record[word] is not None:
            _reversal(case, record, word, output, value, wrong)
    if record["holds"] is not None:
        against = fall if record["declared"] == "increasing" else rise
        if record["holds"] and against > slack:
            wrong("wrong none", f"{record['declared']} is said to hold; {said}")
        if not record["holds"] and against <= 0 and slack <= SLACK:
            wrong("wrong found", f"{record['declared']} is said not to hold; {said}")


def _reversal(case: Case, record: dict[str, Any], word: str, output: int, value: float | None, wrong: Wrong) -> None:
    """The pair of a fall or a rise, evaluated by the library."""
    s = witness_setting(case, AB, record[word], wrong)
    if s is None:
        return
    name = record["feature"]
    place = case.world.space.index(name)
    low, high = (s.points[p].user[0, place] for p in "ab")
    if not holds(["equal", "a", "b", [name]], s)[1][0] or not low <= high:
        wrong("wrong found", f"{record[word]} is no {word} of {name}")
        return
    first, second = (float(score_of(s.points[p], output)[0]) for p in "ab")
    moved = first - second if word == "fall" else second - first
    if value is None or abs(moved - value) > tolerance(case.world.points["m"]):
        wrong("wrong found", f"{record[word]}: a {word} of {moved}, said {value}")


# Favourable decisions ----------------------------------------------------------------------------------------------------


def favourable_node(case: Case, favourable: str, threshold: str | None) -> Node:
    """What the favourable decision is of a point `a`."""
    if threshold is None:
        return ["class", "a", "=", quoted_class(favourable), "", ""]
    return ["compare", [["1", ["prob", "a", quoted_class(favourable)]]], ">=", [[threshold, ["one"]]]]


def favourable_rows(case: Case, truth: Truth) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Of every row: its place in the domain, and whether it surely and possibly gets the favourable decision."""
    rows = case.world.tables["D"]
    places = np.array([case.world.place(p) for p in rows.places], int)
    return places, truth[0][places], truth[1][places]


def judge_groups(
    case: Case, records: list[dict[str, Any]], by: list[list[str]], node: Node, options: dict[str, float], wrong: Wrong
) -> None:
    _, sure, may = favourable_rows(case, alone(case.world, case.world.points["m"], node, "a"))
    frame = case.frames["D"]
    for columns in by:
        keys = [tuple(map(_plain, row)) for row in frame[columns].itertuples(index=False, name=None)]
        mine = [r for r in records if r["by"] == columns]
        if Counter(keys) != Counter({tuple(map(_plain, r["group"])): r["rows"] for r in mine}):
            wrong("lost", f"groups of {columns}: {[(r['group'], r['rows']) for r in mine]}, there are {Counter(keys)}")
            continue
        truth = {}
        for key in dict.fromkeys(keys):
            inside = np.array([k == key for k in keys])
            truth[key] = (
                Fraction(int(sure[inside].sum()), int(inside.sum())),
                Fraction(int(may[inside].sum()), int(inside.sum())),
            )
        large = {k for k, n in Counter(keys).items() if n >= options["smallest"] * len(keys)}
        large = large if len(large) > 1 else set()  # one group alone has no other to be compared with
        best = tuple(max((truth[k][end] for k in large), default=Fraction(0)) for end in (0, 1))
        for record in mine:
            key = tuple(map(_plain, record["group"]))
            _group(record, truth[key], best, key in large, options["ratio"], wrong)


def _group(
    record: dict[str, Any],
    true: tuple[Fraction, Fraction],
    best: tuple[Fraction, ...],
    compared: bool,
    ratio: float,
    wrong: Wrong,
) -> None:
    said = f"{record['by']} = {record['group']}: {record['lower']}..{record['upper']}, by enumeration {true}"
    if record["lower"] > true[1] + SLACK or record["upper"] < true[0] - SLACK:
        wrong("share", said)
    if not record["closed"]:
        wrong("open", f"{record['reason']}; {said}")
    if not compared:
        if record["reaches"] != "not compared":
            wrong("record", f"a group that is too small is compared; {said}")
        return
    if true[0] != true[1] or best[0] != best[1]:
        return
    if not best[0]:
        if record["ratio_lower"] is not None:
            wrong("record", f"a ratio without a best group; {said}")
        return
    exact = true[0] / best[0]
    low, high = record["ratio_lower"], record["ratio_upper"]
    if low is None or abs(low - exact) > SLACK or abs(high - exact) > SLACK:
        wrong("share", f"ratio {low}..{high}, by enumeration {exact}; {said}")
    reaches = "yes" if exact >= Fraction(repr(ratio)) else "no"
    if record["reaches"] != reaches and abs(exact - Fraction(repr(ratio))) > 1e-12:
        wrong("wrong none", f"reaches {record['reaches']}, ratio {float(exact)}; {said}")


def _plain(value: Any) -> Any:
    if value is None or (isinstance(value, float) and isnan(value)):
        return None
    return float(value) if isinstance(value, int | float | np.number) else value


def judge_reasons(
    case: Case, records: list[dict[str, Any]], rows: list[int] | None, node: Node, options: dict[str, Any], wrong: Wrong
) -> None:
    truth = alone(case.world, case.world.points["m"], node, "a")
    places, sure, may = favourable_rows(case, truth)
    asked = list(range(len(places))) if rows is None else rows
    told = [r["row"] for r in records]
    missing = [r for r in asked if not may[r] and r not in told]
    extra = [r for r in told if r not in asked or sure[r]]
    if missing or extra or len(set(told)) != len(told):
        wrong("lost", f"denials {missing} are missing, {extra} are none")
    judge = _Denial(case, node, truth, options, wrong)
    for record in records:
        judge.judge(record, int(places[record["row"]]))


class _Denial:
    """Judges denials by every small set of features."""

    def __init__(self, case: Case, node: Node, truth: Truth, options: dict[str, Any], wrong: Wrong) -> None:
        self.case, self.node, self.options, self.wrong = case, node, options, wrong
        self.sure, self.may = truth
        self.names = [f.name for f in case.features]
        self.barred = frozenset(options.get("protected", ()))
        self.most = options.get("most", 4)

    def reachable(self, free: frozenset[str], place: int) -> tuple[bool, bool]:
        """Whether some input that differs from a row in these features alone gets the favourable decision."""
        group = self.case.world.group(sorted(free))
        same = group == group[place]
        return bool(self.sure[same].any()), bool(self.may[same].any())

    def works(self, chosen: frozenset[str], place: int) -> tuple[bool, bool]:
        """Whether features suffice: their change makes the decision favourable, or their values keep it what it is."""
        if self.options.get("way", "change") == "change":
            return self.reachable(chosen, place)
        sure, may = self.reachable(frozenset(self.names) - chosen, place)
        return not may, not sure

    def judge(self, record: dict[str, Any], place: int) -> None:
        reasons = frozenset(one["feature"] for one in record["reasons"])
        said = f"row {record['row']}: {record['suffice']}, {sorted(reasons)}, needed {record['needed']}"
        if reasons & self.barred or len(reasons) != len(record["reasons"]) or len(reasons) > self.most:
            self.wrong("record", f"{said}; at most {self.most}, without {sorted(self.barred)}")
        if record["suffice"] == "open":
            self.wrong("lost", f"{record['reason']}; {said}")
        elif record["suffice"] == "yes":
            if not self.works(reasons, place)[1]:
                self.wrong("wrong found", f"{said}: they do not suffice")
            for name in sorted(reasons):
                if self.works(reasons - {name}, place)[0]:
                    self.wrong("optimum", f"{said}: {name} can be left out")
            if self.options.get("way", "change") == "change":
                self._witness(record, place, said)
        else:
            self._none(record, place, said)
        self._rises(record, place, said)

    def _none(self, record: dict[str, Any], place: int, said: str) -> None:
        """No set of `most` features suffices, and no set of fewer than `needed`."""
        free = [n for n in self.names if n not in self.barred]
        if self.options.get("way", "change") != "change":
            smallest = self.most
        else:
            smallest = len(free) if record["needed"] is None else max(self.most, record["needed"] - 1)
        size = min(smallest, len(free))
        if sum(comb(len(free), k) for k in range(size + 1)) > MOST_SETS:
            return
        for chosen in (frozenset(c) for k in range(size + 1) for c in combinations(free, k)):
            if self.works(chosen, place)[0]:
                self.wrong("wrong none", f"{said}: {sorted(chosen)} suffice")
                return

    def _witness(self, record: dict[str, Any], place: int, said: str) -> None:
        """The row with the other values gets the favourable decision, by the library."""
        grid, features = self.case.world.space.grid, self.case.features
        point = {f.name: f.typed[grid[place, i]] for i, f in enumerate(features)}
        for one in record["reasons"]:
            if (
                features[self.names.index(one["feature"])].position(one["value"])
                != grid[place, self.names.index(one["feature"])]
            ):
                self.wrong("record", f"{said}: the row has {point[one['feature']]!r}, not {one['value']!r}")
            point[one["feature"]] = one["instead"]
        s = witness_setting(self.case, ONE, {"a": point}, self.wrong)
        if s is not None and not holds(self.node, s)[1][0]:
            self.wrong("wrong found", f"{said}: {point} is not favourable")

    def _rises(self, record: dict[str, Any], place: int, said: str) -> None:
        """By how much the score of two classes could rise if one feature alone changed."""
        model, points = self.case.models["m"], self.case.world.points["m"]
        if len(model.classes) != 2 or self.case.trainer in WITHOUT_SCORES or model.link == "votes":
            return
        sign = 1.0 if model.class_of(quoted_class(self.options["favourable"])) == 1 else -1.0
        score = sign * score_of(points, 0) if points.margins.shape[1] == 1 else None
        if score is None:
            return
        for one in record["reasons"]:
            group = self.case.world.group([one["feature"]])
            true = float(score[group == group[place]].max() - score[place])
            if one["rise"] is not None and abs(one["rise"] - true) > tolerance(points) + 1.1e-6 * abs(true):
                self.wrong("optimum", f"{said}: {one['feature']} could raise the score by {true}, said {one['rise']}")
