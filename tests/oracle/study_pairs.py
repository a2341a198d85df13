"""Judges audit, gap, count, sets and range: studies of pairs that differ in the varied features only."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from fractions import Fraction
from itertools import chain, combinations
from typing import Any

import numpy as np

from tests.oracle.brute import World
from tests.oracle.cases import Case
from tests.oracle.decisions import outcomes
from tests.oracle.judge import witness_setting
from tests.oracle.language import Node
from tests.oracle.meaning import Points, Rows, Setting, holds
from tests.oracle.models import Model
from tests.oracle.models_sklearn import WITHOUT_SCORES
from tests.oracle.shares import weights
from tests.oracle.study import SLACK, Asked, Decision, Groups, Wrong, alone, decisions_of, gap_of_pair, largest_gap
from tests.oracle.typical import Undecided, _tree, bins

AB = {"name": "study", "points": [["a", "m"], ["b", "m"]], "constraints": []}
CLOSE = 1.1e-6
"""How far an optimum may be from its bound, as a part of it (docs/cli.md, check)."""
MOST_FLIPPED = 100
"""So many rows are listed."""


def tolerance(points: Points, factor: float = 2.0) -> float:
    """How far a difference of scores may be from the exact one."""
    size = float(np.max(np.abs(points.margins), initial=1.0))
    return factor * points.band + SLACK * size


def pair_of(case: Case, record: dict[str, Any], varied: Sequence[str], wrong: Wrong) -> Setting | None:
    """The printed pair, evaluated by the library; a finding if it leaves the domain or differs in other features."""
    s = witness_setting(case, AB, record["points"], wrong)
    if s is not None and not holds(["equal", "a", "b", list(varied)], s)[1][0]:
        wrong("wrong found", f"{record['points']} differ in more than {varied}")
        return None
    return s


def decision_of(record: dict[str, Any], decisions: list[Decision], wrong: Wrong) -> Decision | None:
    """The decision that a record is about, by its classes."""
    if len(decisions) == 1:
        return decisions[0]
    named = [str(c) for c in record.get("classes", [])]
    found = [d for d in decisions if list(d.classes) == named]
    if not found:
        wrong("record", f"no such decision: {named}")
    return found[0] if found else None


def complete(records: list[dict[str, Any]], wanted: Counter[Any], key: Any, wrong: Wrong) -> None:
    """Every record that was asked for is there, once."""
    told = Counter(key(r) for r in records)
    if told != wanted:
        wrong("lost", f"records {sorted(map(str, (told - wanted).items()))} too many, {wanted - told} missing")


def size_of(record: dict[str, Any]) -> Fraction:
    return Fraction(repr(record["gap"] if "gap" in record else record["margin"]))


def judge_audit(
    case: Case, records: list[dict[str, Any]], asked: Asked, sets: list[tuple[str, ...]], wrong: Wrong
) -> None:
    points, decisions = case.world.points["m"], decisions_of(case.models["m"], asked)
    wanted = Counter((s, Fraction(g), d.classes) for s in sets for g in asked.sizes for d in decisions)
    complete(records, wanted, lambda r: (tuple(r["varied"]), size_of(r), _classes(r, decisions)), wrong)
    for record in records:
        decision = decision_of(record, decisions, wrong)
        if decision is None:
            continue
        size, groups = size_of(record), Groups(case.world, record["varied"])
        sure, may = groups.concerned(case.world, points, decision, size)
        _verdict(record, sure, may, wrong)
        if record["verdict"] == "found":
            _pair(case, record, decision, size, wrong)
        _rows(case.world, record, groups, sure, may, wrong)
        if case.trainer not in WITHOUT_SCORES:
            _swing(record, decision, groups, points, wrong)
        if record.get("share"):
            _interval(record["share"], *masses(case, record["share"]["measure"], groups, sure, may), wrong)


def judge_outcomes(
    case: Case, records: list[dict[str, Any]], policy: Node, sets: list[tuple[str, ...]], wrong: Wrong
) -> None:
    """An audit by the outcomes of a decision: for every two of them, one input has the one, another input the other
    (docs/cli-study.md, audit).
    """
    points = case.world.points["m"]
    names = outcomes(policy)
    wanted = Counter((s, frozenset(two)) for s in sets for two in combinations(names, 2))
    complete(records, wanted, lambda r: (tuple(r["varied"]), frozenset(r["outcomes"])), wrong)
    truth = {name: alone(case.world, points, ["decided", policy, "=", name], policy[1]) for name in names}
    for record in records:
        groups, (one, other) = Groups(case.world, record["varied"]), record["outcomes"]
        sure, may = (groups.any(truth[one][i]) & groups.any(truth[other][i]) for i in (0, 1))
        _verdict(record, sure, may, wrong)
        if record["verdict"] == "found" and (s := pair_of(case, record, record["varied"], wrong)) is not None:
            for point, name in zip("ab", record["outcomes"], strict=True):
                alone_at = replace(s, points={policy[1]: s.points[point]}, at={policy[1]: s.at[point]}, cache={})
                if not holds(["decided", policy, "=", name], alone_at)[1][0]:
                    wrong("wrong found", f"{record['points'][point]} does not have the outcome {name}")
        _rows(case.world, record, groups, sure, may, wrong)


def _classes(record: dict[str, Any], decisions: list[Decision]) -> tuple[str, ...]:
    return decisions[0].classes if len(decisions) == 1 else tuple(str(c) for c in record.get("classes", []))


def _verdict(record: dict[str, Any], sure: np.ndarray, may: np.ndarray, wrong: Wrong) -> None:
    if record["verdict"] == "none" and sure.any():
        wrong("wrong none", f"{record['varied']} flip {int(sure.sum())} groups: {record['question']}")
    elif record["verdict"] == "found" and not may.any():
        wrong("wrong found", f"{record['varied']} flip nothing: {record['question']}")
    elif record["verdict"] == "unknown" and (sure.any() or not may.any()):
        wrong("lost", f"unknown ({record['reason']}): {record['varied']}, {record['question']}")


def _pair(case: Case, record: dict[str, Any], decision: Decision, size: Fraction, wrong: Wrong) -> None:
    s = pair_of(case, record, record["varied"], wrong)
    if s is None:
        return
    if decision.form == "apart":
        reached = gap_of_pair(decision, s.points["a"], s.points["b"])
        if reached < float(size) - tolerance(case.world.points["m"]):
            wrong("wrong found", f"{record['points']} lie {reached} apart, asked {size}")
        return
    for node in decision.sides(size):
        if not holds(node, s)[1][0]:
            wrong("wrong found", f"{node} does not hold for {record['points']}")


def places_of_rows(world: World, rows: Rows) -> np.ndarray:
    """The places of the rows that lie in the domain, -1 of the others."""
    return np.array([world.place(p) if i else -1 for p, i in zip(rows.places, rows.inside, strict=True)], int)


def _rows(
    world: World, record: dict[str, Any], groups: Groups, sure: np.ndarray, may: np.ndarray, wrong: Wrong
) -> None:
    places = places_of_rows(world, world.tables["D"])
    within = places >= 0
    certain, possible = np.zeros(len(places), bool), np.zeros(len(places), bool)
    certain[within], possible[within] = sure[groups.number[places[within]]], may[groups.number[places[within]]]
    told = record["rows_flipped"]
    if told > possible.sum() or (record["rows_complete"] and told < certain.sum()):
        wrong("rows", f"{told} rows of {record['varied']} flip, by brute force {certain.sum()}..{possible.sum()}")
    listed = set(record["flipped_rows"])
    if len(listed) != min(told, MOST_FLIPPED) or not all(possible[r] for r in listed):
        wrong("rows", f"rows {sorted(listed)} are listed, by brute force {np.flatnonzero(possible).tolist()}")
    if record.get("rows_flipped_down", 0) + record.get("rows_flipped_up", 0) > told:
        wrong("rows", f"more than {told} rows are past the gap")


def _swing(record: dict[str, Any], decision: Decision, groups: Groups, points: Points, wrong: Wrong) -> None:
    value, bound = record["max_swing"], record["max_swing_bound"]
    score = decision.score(points)
    true = float((groups.largest(score) + groups.largest(-score)).max())
    slack = tolerance(points, 4.0)
    if value is not None and value > true + slack:
        wrong("swing", f"{record['varied']} swing by {value}, by brute force {true} at most")
    if bound is not None and bound < true - slack and decision.form != "between":
        wrong("bound", f"{record['varied']} swing by {bound} at most, by brute force {true}")
    if value is None or bound is None or bound - value > slack + CLOSE * abs(value):
        wrong("open", f"the swing of {record['varied']}: {value} of {bound}")


def judge_gap(
    case: Case, records: list[dict[str, Any]], asked: Asked, sets: list[tuple[str, ...]], close: float, wrong: Wrong
) -> None:
    points, decisions = case.world.points["m"], decisions_of(case.models["m"], asked)
    wanted = Counter((s, d.classes) for s in sets for d in decisions)
    complete(records, wanted, lambda r: (tuple(r["varied"]), _classes(r, decisions)), wrong)
    slack = tolerance(points, 4.0)
    for record in records:
        decision = decision_of(record, decisions, wrong)
        if decision is None:
            continue
        true = largest_gap(case.world, points, decision, record["varied"])
        value, bound = record["largest_gap"], record["largest_gap_bound"]
        said = f"{record['varied']} {decision.classes}: {record['verdict']} {value} of {bound}, by brute force {true}"
        if record["verdict"] == "none":
            if true > slack:
                wrong("wrong none", said)
            continue
        if record["verdict"] == "unknown":
            if abs(true) > slack:  # a gap of 0 is a tie, which rounding may break
                wrong("lost", said)
            continue
        if value > true + slack:
            wrong("optimum", said)
        if bound is None:
            wrong("open", f"{record['reason']}: {said}")
        elif bound < true - slack:
            wrong("bound", said)
        elif record["closed"] and bound - value > close * abs(value) + slack:
            wrong("closed", f"called closed: {said}")
        elif not record["closed"] and not record["reason"].startswith("the cut-off lies between"):
            wrong("open", said)
        s = pair_of(case, record, record["varied"], wrong)
        if s is not None and gap_of_pair(decision, s.points["a"], s.points["b"]) < value - slack:
            wrong("wrong found", f"the pair reaches {gap_of_pair(decision, s.points['a'], s.points['b'])}: {said}")


def judge_range(case: Case, records: list[dict[str, Any]], classes: list[str], wrong: Wrong) -> None:
    model, points = case.models["m"], case.world.points["m"]
    several = points.margins.shape[1] > 1
    names = [str(c) for c in model.classes]
    wanted = Counter((c, end) for c in (classes or names if several else [None]) for end in ("smallest", "largest"))
    complete(records, wanted, lambda r: (None if r["class"] is None else str(r["class"]), r["end"]), wrong)
    slack = tolerance(points)
    for record in records:
        output = names.index(str(record["class"])) if several else 0
        scores = points.margins[:, output]
        high = record["end"] == "largest"
        true = float(scores.max() if high else scores.min())
        sign = 1 if high else -1
        said = f"{record['end']} of {record['class']}: {record['value']} of {record['bound']}, by brute force {true}"
        if record["value"] is None or not record["closed"]:
            wrong("open", said)
            continue
        if abs(record["value"] - true) > slack + CLOSE * abs(true):
            wrong("optimum", said)
        if sign * (true - record["bound"]) > slack:
            wrong("bound", said)
        s = witness_setting(case, {**AB, "points": [["a", "m"]]}, record["points"], wrong)
        if s is not None and abs(float(s.points["a"].margins[0, output]) - record["value"]) > slack:
            wrong("wrong found", f"the input has {s.points['a'].margins}: {said}")


def subsets(names: Sequence[str]) -> Iterator[tuple[str, ...]]:
    return chain.from_iterable(combinations(names, k) for k in range(len(names) + 1))


def judge_sets(case: Case, records: list[dict[str, Any]], asked: Asked, features: list[str], wrong: Wrong) -> None:
    points, decisions = case.world.points["m"], decisions_of(case.models["m"], asked)
    size = Fraction(asked.sizes[0])
    if len(records) != len(decisions):
        wrong("lost", f"{len(records)} records of {len(decisions)} decisions")
    for record in records:
        decision = decision_of(record, decisions, wrong)
        if decision is None:
            continue
        truth: dict[frozenset[str], tuple[bool, bool]] = {}
        for chosen in subsets(features):
            sure, may = Groups(case.world, chosen).concerned(case.world, points, decision, size)
            truth[frozenset(chosen)] = bool(sure.any()), bool(may.any())
        flip = {frozenset(one["features"]): one for one in record["flip"]}
        hold = {frozenset(one["features"]) for one in record["hold"]}
        for one, told in flip.items():
            if not truth[one][1]:
                wrong("wrong found", f"{sorted(one)} flip nothing")
            _pair(case, {**told, "varied": sorted(one)}, decision, size, wrong)
        for one in hold:
            if truth[one][0]:
                wrong("wrong none", f"{sorted(one)} flip the decision")
        if any(sure != may for sure, may in truth.values()):
            continue
        flips = {one for one, (sure, _) in truth.items() if sure}
        least = {one for one in flips if not any(other < one for other in flips)}
        most = {one for one in truth if one not in flips and not any(one < o and o not in flips for o in truth)}
        if not record["complete"] or record["open"]:
            wrong("open", f"sets are open: {record['open']}")
        elif set(flip) != least or hold != most:
            wrong(
                "sets",
                f"flip {_shown(flip)}, hold {_shown(hold)}; by brute force {_shown(least)}, {_shown(most)}",
            )


def _shown(sets: Any) -> list[list[str]]:
    return sorted(sorted(s) for s in sets)


# Shares ------------------------------------------------------------------------------------------------------------------


def judge_count(
    case: Case, records: list[dict[str, Any]], asked: Asked, sets: list[tuple[str, ...]], measure: str, wrong: Wrong
) -> None:
    points, decisions = case.world.points["m"], decisions_of(case.models["m"], asked)
    wanted = Counter((s, Fraction(g), d.classes) for s in sets for g in asked.sizes for d in decisions)
    complete(records, wanted, lambda r: (tuple(r["varied"]), size_of(r), _classes(r, decisions)), wrong)
    for record in records:
        decision = decision_of(record, decisions, wrong)
        if decision is None:
            continue
        groups = Groups(case.world, record["varied"])
        sure, may = groups.concerned(case.world, points, decision, size_of(record))
        least, most = masses(case, measure, groups, sure, may)
        _interval(record, least, most, wrong)
        if measure == "rows":
            _counted_rows(case.world, record, groups, sure, may, wrong)


def _counted_rows(
    world: World, record: dict[str, Any], groups: Groups, sure: np.ndarray, may: np.ndarray, wrong: Wrong
) -> None:
    places = places_of_rows(world, world.tables["D"])
    number = groups.number[places[places >= 0]]
    if not sure[number].sum() <= record["rows_concerned"] <= may[number].sum():
        wrong("rows", f"{record['rows_concerned']} rows, by brute force {sure[number].sum()}..{may[number].sum()}")
    if record["rows_outside"] != int((places < 0).sum()):
        wrong("rows", f"{record['rows_outside']} rows outside, by brute force {int((places < 0).sum())}")


def masses(case: Case, measure: str, groups: Groups, sure: np.ndarray, may: np.ndarray) -> tuple[float, float]:
    """The share of inputs in groups that are concerned for sure, and that may be; 0 and 1 if that is left open."""
    mass = mass_of(case, measure)
    if mass is None:
        return 0.0, 1.0
    return float(mass[sure[groups.number]].sum()), float(mass[may[groups.number]].sum())


def mass_of(case: Case, measure: str) -> np.ndarray | None:
    """float64[points] by a measure (docs/measures.md)."""
    world = case.world
    if measure in ("uniform", "rows", "marginals"):
        return weights(world, measure if measure == "uniform" else f"{measure} of D")
    columns, rows = cell_columns(case.models["m"], world, case.world.points["m"], world.tables["D"])
    if measure == "cells":
        _, number, count = np.unique(columns, axis=0, return_inverse=True, return_counts=True)
        return np.asarray(1.0 / len(count) / count[number.reshape(-1)])
    try:
        return chow_liu_mass(columns, rows, coded_columns(world))
    except Undecided:
        return None


def column_sets(world: World) -> list[list[int]]:
    """The features of every column of a measure: a one-hot group is one."""
    made: dict[Any, list[int]] = {}
    for i, f in enumerate(world.space.features):
        made.setdefault(("feature", i) if f.group is None else ("group", f.group), []).append(i)
    return list(made.values())


def coded_columns(world: World) -> list[bool]:
    features = world.space.features
    return [len(m) > 1 or features[m[0]].codes != "number" for m in column_sets(world)]


def cell_columns(model: Model, world: World, points: Points, rows: Rows) -> tuple[np.ndarray, np.ndarray]:
    """int[points, columns] and int[rows inside, columns] of cells: -1 for missing, and the member of a one-hot group."""
    mine, theirs = [], []
    places, inside = world.space.grid, rows.places[rows.inside]
    for members in column_sets(world):
        if len(members) > 1:
            ones = [np.array(world.space.features[i].user) == 1 for i in members]
            mine.append(np.argmax([one[places[:, i]] for one, i in zip(ones, members, strict=True)], axis=0))
            theirs.append(np.argmax([one[inside[:, i]] for one, i in zip(ones, members, strict=True)], axis=0))
            continue
        i = members[0]
        feature = world.space.features[i]
        known, row_cells = points.cells[:, i], rows.cells[model.name][rows.inside][:, i]
        absent = np.isnan(np.array(feature.user))
        mine.append(np.where(absent[places[:, i]], -1, known))
        theirs.append(np.where(absent[inside[:, i]], -1, row_cells))
    return np.stack(mine, axis=1), np.stack(theirs, axis=1)


def chow_liu_mass(columns: np.ndarray, rows: np.ndarray, coded: list[bool]) -> np.ndarray:
    """Bins, a tree of pairs with one more row spread by the marginals, and cells by their share of a bin's rows."""
    count, width = rows.shape
    if not count:
        raise Undecided
    grouped = [_binned(rows[:, c].tolist(), coded=coded[c]) for c in range(width)]
    table = np.array([[grouped[c][v] for c, v in enumerate(row)] for row in rows.tolist()])
    parent = _tree(table)
    own = [Counter(table[:, c].tolist()) for c in range(width)]
    pairs = [
        Counter(zip(table[:, max(parent[c], 0)].tolist(), table[:, c].tolist(), strict=True)) for c in range(width)
    ]
    inside = [Counter(rows[:, c].tolist()) for c in range(width)]
    different, number, times = np.unique(columns, axis=0, return_inverse=True, return_counts=True)
    mass = np.array([_mass_of_cells(row, grouped, parent, own, pairs, inside, count) for row in different.tolist()])
    return np.asarray((mass / times)[number.reshape(-1)])


def _mass_of_cells(
    row: list[int], grouped: Any, parent: list[int], own: Any, pairs: Any, inside: Any, count: int
) -> float:
    out = 1.0
    for c, cell in enumerate(row):
        rows = inside[c][cell]
        if not rows:
            return 0.0
        g = grouped[c][cell]
        out *= rows / own[c][g]
        if parent[c] < 0:
            out *= own[c][g] / count
            continue
        above = grouped[parent[c]].get(row[parent[c]])
        if above is None:
            return 0.0
        m, n = own[parent[c]][above], own[c][g]
        if not m:
            return 0.0
        out *= (pairs[c][above, g] + m * n / count**2) / (m + m / count)
    return out


def _binned(column: list[int], *, coded: bool) -> dict[int, int]:
    """The bin of every cell that has rows."""
    present = [v for v in column if v >= 0]
    kinds = sorted(set(present))
    found = {v: i for i, v in enumerate(kinds)} if coded else (bins(present) if present else {})
    return found | {-1: max(found.values(), default=-1) + 1}


def _interval(record: dict[str, Any], least: float, most: float, wrong: Wrong) -> None:
    lower, upper = record["lower"], record["upper"]
    said = f"{record.get('varied')} {record['measure']}: {lower}..{upper}, by enumeration {least}..{most}"
    if lower > most + SLACK or upper < least - SLACK or not 0 <= lower <= upper <= 1 + SLACK:
        wrong("share", said)
    estimate = record.get("estimate")
    if estimate and (estimate["low"] > most + SLACK or estimate["high"] < least - SLACK):
        wrong("share", f"an estimate of {estimate['low']}..{estimate['high']}; {said}")
    if not record["closed"] and least == most:
        wrong("open", f"{record['reason']}; {said}")
    for box in record.get("boxes") or []:
        if box["share"] > most + SLACK:
            wrong("share", f"a box of {box['share']} is said to be concerned; {said}")
