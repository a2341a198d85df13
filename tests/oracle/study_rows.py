"""Judges why, robust, diff and learn: studies of the rows of a table, whose columns are the domain."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from itertools import permutations
from math import isnan
from types import SimpleNamespace
from typing import Any

import numpy as np

from tests.oracle.brute import World
from tests.oracle.cases import LARGEST, Case, draw_places, ranged, rows_of
from tests.oracle.decisions import outcomes
from tests.oracle.explained import Truth, judge_explained
from tests.oracle.judge import witness_setting
from tests.oracle.language import Node
from tests.oracle.meaning import Setting, distance, holds, predicted
from tests.oracle.models import evaluate
from tests.oracle.spaces import column, combinations, complete, number
from tests.oracle.study import Wrong, alone
from tests.oracle.study_pairs import tolerance

NEAR = 1.1e-6
"""How far a distance may be from its bound: a millionth of it (docs/cli.md, robust)."""
FEWEST_ROWS = 8


def tabled(case: Case, rng: np.random.Generator) -> Case | None:
    """The case over the domain that the columns of a table make, without groups and units; None if that is left open."""
    if any(f.codes != "number" for f in case.features):
        return None
    places = draw_places(rng, case.features)
    while len(places) < FEWEST_ROWS:
        places = np.concatenate([places, draw_places(rng, case.features)])
    made = []
    for i, f in enumerate(case.features):
        plain = tuple(None if isnan(v) else v for v in f.stored)
        free = replace(
            f, kind="real" if f.kind == "real" else "integer", typed=plain, user=f.stored, unit=None, group=None,
            declaration=None, missing_text=f.missing, constants=f.constants or tuple(number(v) for v in plain if v is not None),
        )  # fmt: skip
        found = ranged(free, places[:, i], "undeclared")
        if found is None or len(found[0].typed) > 12:
            return None
        if f.kind != "real" and not all(v is None or v == round(v) for v in found[0].typed):
            return None  # few values that are not whole are all there are only if many rows have them
        if f.kind != "real" and not f.missing and len(found[0].typed) < 2:
            return None
        made.append(found[0])
        places[:, i] = found[1]
    if combinations(made) > LARGEST:
        return None
    space = complete(made)
    user = np.stack([np.array(f.user, float)[places[:, i]] for i, f in enumerate(made)], axis=1)
    stored = [column(f.stored)[places[:, i]] for i, f in enumerate(made)]
    rows = rows_of("D", made, case.models, places, user, stored)
    try:
        world = World(space, {name: evaluate(m, space) for name, m in case.models.items()}, {"D": rows})
    except ValueError:
        return None
    import pandas as pd

    frame = pd.DataFrame({f.name: c for f, c in zip(made, stored, strict=True)})
    return replace(case, features=made, world=world, frames={"D": frame}, sources={"D": frame}, forms={"D": "frame"},
                   labels={"D": None}, limits={}, questions=[], domain=None)  # fmt: skip


# Reasons -----------------------------------------------------------------------------------------------------------------


def judge_why(
    case: Case,
    records: list[dict[str, Any]],
    rows: list[int],
    arguments: dict[str, Any],
    wrong: Wrong,
    policy: Node | None = None,
) -> None:
    """Reasons for the classes of rows, or for their outcomes of a decision."""
    if [r["row"] for r in records] != rows:
        wrong("lost", f"rows {[r['row'] for r in records]} instead of {rows}")
        return
    without = list(arguments.get("without", []))
    for record in records:
        asked = {
            "data": "D", "row": record["row"], "without": without, "smallest": bool(arguments.get("smallest")),
            "decision": policy,
        }  # fmt: skip
        question = {"name": "why", "points": [["a", "m"]], "constraints": [], "explain": asked}
        known = {"class": str(record["class"]), "sufficient": record["sufficient"], "contrast": record["contrast"]}
        said = {"verdict": "found", "explanation": known, "reason": record["reason"]}
        if record["sufficient"] is None:
            said["verdict"] = "unknown" if "time" in record["reason"] or "interrupt" in record["reason"] else "none"
        many = arguments.get("most", 1) > 1
        holder: Any = SimpleNamespace(world=case.world, features=case.features, models=case.models)
        judge_explained(holder, {**question, "explain": {**asked, "smallest": asked["smallest"] or many}}, said, wrong)
        t = Truth(holder, question, exact=False)
        if record["sufficient"] is not None:
            _values(case, record, wrong)
            _contrast(t, record, wrong)
            if many:
                _several(t, record, arguments["most"], wrong)
        if record["point"] is not None:
            s = witness_setting(case, {**question, "points": [["a", "m"]]}, {"a": record["point"]}, wrong)
            if s is not None and _is_of(case, s, str(record["class"]), policy):
                wrong("wrong found", f"{record['point']} has the class of the row")
        for kind, norm in (("radius", "linf"), ("recourse", "l1")):
            if record.get(kind):
                # A change may use no feature that a reason may not use; the distance is about any input.
                held = without if kind == "recourse" else []
                _distance(case, record["row"], record[kind], norm, None, wrong, held)


def _is_of(case: Case, s: Setting, name: str, policy: Node | None) -> bool:
    """Whether a point has a class by the library, or for sure an outcome."""
    if policy is not None:
        return bool(holds(["decided", policy, "=", name], s)[0][0])
    return str(case.models["m"].classes[int(s.points["a"].classes[0])]) == name


def _values(case: Case, record: dict[str, Any], wrong: Wrong) -> None:
    """A reason tells the values of the row."""
    row = case.world.tables["D"].places[record["row"]]
    for i, f in enumerate(case.features):
        if f.name in record["sufficient"] and f.position(record["sufficient"][f.name]) != row[i]:
            wrong("record", f"row {record['row']} has {f.typed[row[i]]!r}, not {record['sufficient'][f.name]!r}")


def _contrast(t: Truth, record: dict[str, Any], wrong: Wrong) -> None:
    changed = frozenset(record["contrast"] or ())
    every, own = frozenset(t.names), str(record["class"])
    if not changed:
        return
    if t.decides(every - changed, own)[0]:
        wrong("wrong found", f"{sorted(changed)} together cannot change the class of row {record['row']}")
    for name in changed:
        if not t.decides(every - (changed - {name}), own)[1]:
            wrong("optimum", f"{sorted(changed - {name})} change the class of row {record['row']} without {name}")


def _several(t: Truth, record: dict[str, Any], most: int, wrong: Wrong) -> None:
    own = str(record["class"])
    truth = {s: t.decides(s, own) for s in t.usable()}
    told = [frozenset(r) for r in record["reasons"]]
    if any(sure != may for sure, may in truth.values()):
        return
    least = sorted(
        (s for s, (sure, _) in truth.items() if sure and not any(o < s and truth[o][0] for o in truth)), key=len
    )
    if record["reason"] == "time" and len(told) < min(most, len(least)) and set(told) <= set(least):
        wrong("lost", f"reasons {_shown(told)} in the time there was, by brute force {_shown(least)}, {most} asked")
    elif len(told) != min(most, len(least)) or len(set(told)) < len(told) or not set(told) <= set(least):
        wrong("sets", f"reasons {_shown(told)}, by brute force {_shown(least)}, {most} asked")
    elif [len(s) for s in told] != [len(s) for s in least[: len(told)]]:
        wrong("optimum", f"reasons {_shown(told)} are not the smallest of {_shown(least)}")
    if record["complete"] and len(told) < len(least):
        wrong("sets", f"reasons {_shown(told)} are called complete, by brute force {_shown(least)}")
    if not record["complete"] and len(least) < most:
        wrong("open", f"all reasons are there, and not called complete: {_shown(told)}")


def _shown(sets: Any) -> list[list[str]]:
    return [sorted(s) for s in sets]


# Distances ---------------------------------------------------------------------------------------------------------------


def judge_robust(
    case: Case, records: list[dict[str, Any]], rows: list[int], norm: str, targeted: bool, wrong: Wrong
) -> None:
    if [r["row"] for r in records] != rows:
        wrong("lost", f"rows {[r['row'] for r in records]} instead of {rows}")
        return
    for record in records:
        _distance(case, record["row"], record, norm, None, wrong)
        for told in record.get("targets") or []:
            _distance(case, record["row"], told, norm, str(told["target"]), wrong)
        if targeted and len(record["targets"]) != len(case.models["m"].classes) - 1:
            wrong("lost", f"targets {[t['target'] for t in record['targets']]}")


def _distance(
    case: Case,
    row: int,
    told: dict[str, Any],
    norm: str,
    target: str | None,
    wrong: Wrong,
    held: Sequence[str] = (),
) -> None:
    """The distance of a row to another class (or to one of them), against every input that agrees on what is held."""
    world, model = case.world, case.models["m"]
    points, table = world.points["m"], world.tables["D"]
    place = world.place(table.places[row])
    assert place is not None
    s = Setting(world.space.features, {"a": points}, {"a": np.arange(world.space.size)}, world.tables)
    own = int(points.classes[place])
    near = predicted(s, points, own)
    if near[1][place] and not near[0][place]:
        return  # the class of the row itself is a matter of rounding
    if "class" in told and str(model.classes[own]) != str(told["class"]):
        wrong("wrong found", f"row {row} is said to be of class {told['class']}, by the library {model.classes[own]}")
        return
    wanted = None if target is None else [str(c) for c in model.classes].index(target)
    sure, may = (~near[1], ~near[0]) if wanted is None else predicted(s, points, wanted)
    agree = world.group([f.name for f in case.features if f.name not in held])
    sure, may = sure & (agree == agree[place]), may & (agree == agree[place])
    away = distance(s, "a", [np.full(1, v) for v in table.user[row]], norm)
    least = float(away[sure].min(initial=np.inf))
    low = float(away[may].min(initial=np.inf))
    value, bound = told["distance"], told["bound"]
    said = f"row {row}, {norm}, {target or 'any'}: {told['verdict']} {value} of {bound}, by brute force {low}..{least}"
    if told["verdict"] == "none":
        if sure.any():
            wrong("wrong none", said)
        return
    if told["verdict"] == "unknown" or value is None:
        if sure.any() or not may.any():
            wrong("lost", f"{told['reason']}: {said}")
        return
    slack = NEAR * max(1.0, abs(value)) if norm != "linf" else 1e-12
    if value < low - slack:
        wrong("optimum", said)
    if bound is not None and bound > least + slack:
        wrong("bound", said)
    if not told["closed"] or bound is None or abs(value - bound) > slack:
        wrong("open", said)
    one = witness_setting(
        case, {"name": "robust", "points": [["a", "m"]], "constraints": []}, {"a": told["point"]}, wrong
    )
    if one is None:
        return
    class_there = int(one.points["a"].classes[0])
    if class_there == own or wanted not in (None, class_there):
        wrong("wrong found", f"the point has class {model.classes[class_there]}: {said}")
    reached = float(distance(one, "a", [np.full(1, v) for v in table.user[row]], norm)[0])
    if abs(reached - value) > slack:
        wrong("wrong found", f"the point is {reached} away: {said}")


# Two models --------------------------------------------------------------------------------------------------------------


def judge_diff(case: Case, record: dict[str, Any], old: str, new: str, wrong: Wrong) -> None:
    one, two = case.world.points[old], case.world.points[new]
    slack = 2 * (tolerance(one) + tolerance(two))
    outputs = one.margins.shape[1]
    if len(record["scores"]) != 2 * outputs:
        wrong("lost", f"{len(record['scores'])} records of {outputs} scores")
        return
    names = [str(c) for c in case.models[old].classes]
    largest = 0.0
    for told in record["scores"]:
        output = names.index(str(told["score"])) if outputs > 1 else 0
        sign = 1.0 if told["direction"] == "old - new" else -1.0
        differences = sign * (one.margins[:, output] - two.margins[:, output])
        true = float(differences.max())
        largest = max(largest, true)
        said = f"{told['score']} {told['direction']}: {told['largest']} of {told['bound']}, by brute force {true}"
        bound = math.inf if told["bound"] is None else told["bound"]
        if told["largest"] is not None and told["largest"] - true > slack + NEAR * abs(true):
            wrong("optimum", said)
        if bound < true - slack:
            wrong("bound", said)
        if told["largest"] is None or bound - told["largest"] > slack + NEAR * abs(true):
            wrong("open", said)
        if told["input"] is None:
            continue
        asked = {"name": "diff", "points": [["a", old], ["b", new]], "constraints": []}
        s = witness_setting(case, asked, {"a": told["input"], "b": told["input"]}, wrong)
        if s is not None:
            there = sign * float(s.points["a"].margins[0, output] - s.points["b"].margins[0, output])
            if told["largest"] is not None and abs(there - told["largest"]) > slack:
                wrong("wrong found", f"the input has {there}: {said}")
    if record["verdict"] == "equal" and largest > slack:
        wrong("wrong none", f"called equal, by brute force {largest} apart")
    if record["verdict"] == "different" and largest <= 0 and slack < 1e-8:
        wrong("wrong found", "called different, by brute force equal")
    if record["bound"] is not None and record["bound"] < largest - slack:
        wrong("bound", f"the bound {record['bound']} of all, by brute force {largest}")
    _changed_rows(case, record["data"], old, new, slack, wrong)


def judge_changed_outcomes(
    case: Case, records: list[dict[str, Any]], policy: Node, old: str, new: str, wrong: Wrong
) -> None:
    """Which outcomes of a decision become which from one model to the other (docs/cli-compare.md, diff)."""
    names = outcomes(policy)
    if sorted((r["old"], r["new"]) for r in records) != sorted(permutations(names, 2)):
        wrong("lost", f"records of {[(r['old'], r['new']) for r in records]}")
        return
    world, point = case.world, policy[1]
    every = np.array([world.place(p) for p in world.tables["D"].places], int)
    for record in records:
        asked = [(m, ["decided", policy, "=", o]) for m, o in ((old, record["old"]), (new, record["new"]))]
        both = [alone(world, world.points[m], node, point) for m, node in asked]
        sure, may = (np.logical_and(both[0][i], both[1][i]) for i in (0, 1))
        said = f"{record['old']} to {record['new']}: {record['verdict']} ({record['reason']}), {sure.sum()}..{may.sum()} inputs"
        if record["verdict"] == "none" and sure.any():
            wrong("wrong none", said)
        elif record["verdict"] == "found" and not may.any():
            wrong("wrong found", said)
        elif record["verdict"] == "unknown" and (sure.any() or not may.any()):
            wrong("lost", said)
        if record["input"] is not None:
            question = {"name": "diff", "points": [["a", old], ["b", new]], "constraints": []}
            s = witness_setting(case, question, {"a": record["input"], "b": record["input"]}, wrong)
            for name, (_, node) in zip("ab", asked, strict=True):
                if s is None:
                    break
                there = replace(s, points={point: s.points[name]}, at={point: s.at[name]}, cache={})
                if not holds(node, there)[1][0]:
                    wrong("wrong found", f"{record['input']} does not have the outcome {node[3]}: {said}")
        rows_sure, rows_may = sure[every], may[every]
        listed = record["changed_rows"]
        if record["rows"] != len(every) or not rows_sure.sum() <= record["rows_changed"] <= rows_may.sum():
            wrong(
                "rows", f"{record['rows_changed']} of {record['rows']} rows, by brute force {rows_sure.sum()}: {said}"
            )
        elif not all(rows_may[r] for r in listed):
            wrong("rows", f"rows {listed}, by brute force {np.flatnonzero(rows_may).tolist()}: {said}")


def _changed_rows(case: Case, told: dict[str, Any], old: str, new: str, slack: float, wrong: Wrong) -> None:
    world = case.world
    places = [world.place(p) for p in world.tables["D"].places]
    one, two = (world.points[m] for m in (old, new))
    listed = {r["row"] if isinstance(r, dict) else r for r in told["changed_rows"]}
    every = np.array(places, int)
    if case.models[old].kind == "regression":
        apart = np.abs(one.margins[every, 0] - two.margins[every, 0])
        sure, may = apart > slack, apart > 0
    else:
        s = Setting(world.space.features, {"a": one, "b": two}, {"a": every, "b": every}, world.tables)
        both = [(predicted(s, one, c), predicted(s, two, c)) for c in range(len(case.models[old].classes))]
        same_may = np.logical_or.reduce([x[1][every] & y[1][every] for x, y in both])
        same_sure = np.logical_or.reduce([x[0][every] & y[0][every] for x, y in both])
        sure, may = ~same_may, ~same_sure
    if not sure.sum() <= told["changed"] <= may.sum() or not all(may[r] for r in listed):
        wrong("rows", f"{told['changed']} rows change ({sorted(listed)}), by brute force {sure.sum()}..{may.sum()}")


# Rules of a table --------------------------------------------------------------------------------------------------------


def draw_rules_table(rng: np.random.Generator) -> Any:
    """Columns that depend on one another: functions, orders, groups, gaps, exceptions."""
    import pandas as pd

    count = int(rng.integers(60, 300))
    a = rng.integers(0, int(rng.integers(2, 6)), count)
    c = rng.integers(0, 10, count)
    of_a = rng.integers(0, 3, 6)
    made: dict[str, Any] = {
        "a": a, "copy": a * 2 + 1, "of a": of_a[a], "c": c, "d": c + rng.integers(0, 6, count),
        "name": np.array(["x", "y", "z", "w", "u", "v"], dtype=object)[a],
        "given": np.where(a == 1, 7, rng.integers(0, 9, count)), "noise": rng.integers(0, 5, count),
        "half": rng.integers(0, 4, count) / 2,
    }  # fmt: skip
    group = rng.integers(0, 3, count)
    made |= {f"g{k}": (group == k).astype(int) for k in range(3)}
    for name in ("of a", "d", "given"):
        if rng.random() < 0.5:
            at = rng.choice(count, 2, replace=False)
            made[name] = made[name].copy()
            made[name][at] = rng.integers(0, 9, 2)
    if rng.random() < 0.4:
        made["c"] = np.where(rng.random(count) < 0.05, np.nan, made["c"])
    order = [str(n) for n in rng.permutation(list(made))[: int(rng.integers(5, len(made) + 1))]]
    return pd.DataFrame({n: made[n] for n in order})


def judge_learn(frame: Any, record: dict[str, Any], share: float, wrong: Wrong) -> int:
    """The number of things that were judged: domains, groups and rules."""
    columns = {str(n): frame[n].to_numpy() for n in frame.columns}
    _domains(columns, record, wrong)
    for group in record["onehot"]:
        total = sum((columns[n] == 1).astype(int) for n in group)
        if (total != 1).any():
            wrong("rule", f"{group} is no one-hot group")
    bits = [n for n, v in columns.items() if n.startswith("g") and n != "given"]
    if len(bits) == 3 and sorted(bits) not in [sorted(g) for g in record["onehot"]]:
        wrong("lost", f"the group {bits} is not told")
    for rule in record["rules"]:
        _rule(columns, rule, share, wrong)
    return len(record["features"]) + len(record["onehot"]) + len(record["rules"])


def _domains(columns: dict[str, Any], record: dict[str, Any], wrong: Wrong) -> None:
    if {f["feature"] for f in record["features"]} != set(columns):
        wrong("lost", f"domains of {[f['feature'] for f in record['features']]}")
        return
    for told in record["features"]:
        values = [v for v in columns[told["feature"]].tolist() if isinstance(v, str) or not isnan(v)]
        run = re.search(r"(?:integer|real) in \[(\S+), (\S+)\]", told["text"])
        if run and "stored as" not in told["text"]:
            ends = float(Fraction(run[1])), float(Fraction(run[2]))
            if ends != (min(values), max(values)):
                wrong("domain", f"{told['text']}: the column has {min(values)}..{max(values)}")
        listed = re.search(r"category \{(.*)\}", told["text"])
        if listed:
            members = {m.strip().strip('"`') for m in listed[1].split(",")}
            if members != {str(int(v)) if isinstance(v, float) and v == int(v) else str(v) for v in values}:
                wrong("domain", f"{told['text']}: the column has {sorted(set(map(str, values)))}")
        gaps = len(values) < len(columns[told["feature"]])
        if gaps != ("or missing" in told["text"]):
            wrong("domain", f"{told['text']}: gaps {gaps}")


def _rule(columns: dict[str, Any], rule: dict[str, Any], share: float, wrong: Wrong) -> None:
    one, two = (columns[c] for c in rule["columns"])
    if rule["kind"] in ("implication", "equivalence"):
        left, right = (
            np.array([v in side for v in values.tolist()])
            for values, side in ((one, rule["left"]), (two, rule["right"]))
        )
        premise = left | right if rule["kind"] == "equivalence" else left
        broken = premise & ~(left & right)
        support = (int(left.sum()),) if rule["kind"] == "implication" else (int(left.sum()), int(premise.sum()))
    else:
        both = ~np.isnan(one.astype(float)) & ~np.isnan(two.astype(float))
        holds = one == two if rule["constraint"].count("=") and "<=" not in rule["constraint"] else one <= two
        broken, support = both & ~holds, (int(both.sum()),)
    where = np.flatnonzero(broken).tolist()
    if sorted(rule["exceptions"]) != where:
        wrong("rule", f"{rule['constraint']}: exceptions {rule['exceptions']}, by brute force {where}")
    if rule["support"] not in support:
        wrong("rule", f"{rule['constraint']}: support {rule['support']}, by brute force {support}")
    if len(where) > share * rule["support"]:
        wrong("rule", f"{rule['constraint']}: {len(where)} exceptions of {rule['support']} rows, allowed {share}")
