"""Compares the answers of treesens with brute force. Only its public interface is called."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from tests.oracle import decisions
from tests.oracle.brute import TooManyPairs, Truths, best, count_rows, judge_all, left_out, objective_of, regions
from tests.oracle.cases import Case
from tests.oracle.explained import judge_explained
from tests.oracle.language import text_of
from tests.oracle.meaning import Points, Setting, holds
from tests.oracle.models import column_of_values, quoted_class
from tests.oracle.shares import judge_share

CLOSE = 1.1e-4
"""How far a distance that is called optimal may be from the optimum, in widths (docs/language.md, Objectives)."""

DOUBT = "numerical band: exact arithmetic has no such inputs"
"""How `--confirm library` says that the library may predict what exact arithmetic rules out."""

ROUNDED, ROUNDING = ("highs", "cbc", "scip", "gurobi", "cpsat"), 1e-4
"""Solvers that get rounded rows stop at a gap of their own."""


@dataclass
class Finding:
    """Something wrong about one answer."""

    kind: str
    """wrong none, wrong found, outside, optimum, bound, objective, count, top, lost, open, error, expect, share."""
    detail: str
    question: dict[str, Any]
    options: dict[str, Any]
    record: dict[str, Any] | None = None


TIME_LIMIT = 10.0
"""Seconds that a question has; one that is asked in a hurry has fewer, and may stay open."""
HURRIES = (0.005, 0.02, 0.1, 0.4)


@dataclass
class Judged:
    """The outcome for one question: `status` is compared, refused, skipped or wrong."""

    status: str
    findings: list[Finding]
    verdict: str = ""
    prover: str = ""


def judge(case: Case, question: dict[str, Any], record: dict[str, Any], options: dict[str, Any]) -> Judged:
    """One answer against brute force."""
    found: list[Finding] = []

    def wrong(kind: str, detail: str) -> None:
        if kind in ("open", "lost") and options["time_limit"] < TIME_LIMIT:
            return
        if kind in ("open", "lost") and (options["backend"] not in ("native", "auto") or options.get("left_out")):
            kind = f"{kind} elsewhere"
        found.append(Finding(kind, detail, question, options, record))

    verdict = record["verdict"]
    try:
        if question.get("explain"):
            judge_explained(case, question, record, wrong)
            _of_another_class(case, question, record, wrong)
        elif question.get("count"):
            _count(case, question, record, wrong)
        else:
            truths = judge_all(case.world, question)
            _verdict(question, record, truths, wrong)
            _proof(case, question, record, wrong)
            _confirmation(case, question, record, wrong)
            _witnesses(case, question, record, truths, wrong)
            if question.get("share"):
                judge_share(case.world, question, record, truths, wrong)
    except TooManyPairs:
        return Judged("skipped", [], verdict)
    _expectation(question, record, wrong)
    return Judged("wrong" if found else "compared", found, verdict, prover_of(record, options))


def prover_of(record: dict[str, Any], options: dict[str, Any]) -> str:
    """Who answered: the backend, whether on the trees or compiled, whether it branched, under which schedule."""
    if record.get("count") or record.get("explanation") or record.get("ranked"):
        return next(kind for kind in ("count", "explanation", "ranked") if record.get(kind))
    attempts = record.get("attempts") or []
    if not attempts:
        return f"{record.get('backend') or 'compiler'}, without a search"
    last = attempts[-1]
    if last["backend"] != "native":
        return str(last["backend"])
    if last.get("pipeline") == "exhaustive" or "gone through" in last["detail"]:
        return "enumeration"
    way = "compiled" if record.get("size") else "on the trees"
    nodes = "branching" if (last["statistics"] or {}).get("nodes", 0) > 1 else "at once"
    several = "threads" if options.get("threads", 1) > 1 else ""
    left_out = f"without {options['left_out']}" if options.get("left_out") else ""
    return ", ".join(filter(None, ("native", way, nodes, options.get("schedule", ""), several, left_out)))


def _of_another_class(case: Case, question: dict[str, Any], record: dict[str, Any], wrong: Any) -> None:
    """The input beside a reason has another class than the row, by the library."""
    if record["points"] is None:
        return
    s = witness_setting(case, question, record["points"], wrong)
    own = quoted_class(record["explanation"]["class"])
    if s is not None and not holds(["class", "a", "!=", own, "", ""], s)[1][0]:
        wrong("wrong found", f"{record['points']} has the class of the row; scores {scores(s)}")


def _expectation(question: dict[str, Any], record: dict[str, Any], wrong: Any) -> None:
    expect, verdict = question.get("expect"), record["verdict"]
    if question.get("bound"):
        return
    if expect is None or verdict == "unknown" or question.get("count"):
        return
    right = (verdict == "found") == (expect == "some")
    if record["as_expected"] != right:
        wrong("expect", f"as_expected is {record['as_expected']} for {verdict}, expect {expect}")


def _count(case: Case, question: dict[str, Any], record: dict[str, Any], wrong: Any) -> None:
    sure, may, outside = count_rows(case.world, question)
    count = record["count"]
    if count is None:
        wrong("lost", f"no count: {record['reason']}")
        return
    if count["at_most"] < sure or count["at_least"] > may:
        wrong("count", f"{count['at_least']}..{count['at_most']}, by brute force {sure}..{may}")
    elif count["at_least"] != count["at_most"] and sure == may:
        wrong("lost", f"count left open: {count['at_least']}..{count['at_most']}, by brute force {sure}")
    if count["outside"] != outside:
        wrong("count", f"{count['outside']} rows outside, by brute force {outside}")


def _verdict(question: dict[str, Any], record: dict[str, Any], truths: Truths, wrong: Any) -> None:
    verdict = record["verdict"]
    if verdict == "none" and truths.sure.any():
        wrong("wrong none", f"{int(truths.sure.sum())} answers exist, e.g. {example(question, truths)}")
    # A tie of probabilities that the library might break either way is honest doubt where a confirmation was asked for.
    doubt = not truths.sure.any() and record["reason"].startswith(DOUBT)
    if verdict == "unknown" and (truths.sure.any() or not truths.count) and not doubt:
        wrong("lost", f"unknown ({record['reason']}); by brute force {'found' if truths.sure.any() else 'none'}")


def _proof(case: Case, question: dict[str, Any], record: dict[str, Any], wrong: Any) -> None:
    """An exact proof is about exact sums, whatever the library's rounding makes of them."""
    if record["verdict"] != "none" or record.get("proof") != "exact":
        return
    if all(case.world.points[m].exact is None for _, m in question["points"]):
        return
    truths = judge_all(case.world, question, rational=True)
    if truths.sure.any():
        wrong("wrong none", f"called exact; in exact arithmetic there is {example(question, truths)}")


def _confirmation(case: Case, question: dict[str, Any], record: dict[str, Any], wrong: Any) -> None:
    """What is confirmed by the library has no answer by its own scores, without any band."""
    if record["verdict"] != "none" or record.get("confirmed_by") != "library":
        return
    truths = judge_all(case.world, question, exact=True)
    if truths.sure.any():
        wrong("wrong none", f"confirmed by the library, which answers with {example(question, truths)}")


def example(question: dict[str, Any], truths: Truths, which: int | None = None) -> dict[str, Any]:
    """A pair of the brute force, with the labels of the features."""
    place = int(np.argmax(truths.sure)) if which is None else which
    shown = {}
    for p, _ in question["points"]:
        row = truths.setting.points[p].user[truths.setting.at[p][place]]
        shown[p] = {f.name: label(f, v) for f, v in zip(truths.setting.features, row, strict=True)}
    return shown


def label(feature: Any, user: float) -> Any:
    if math.isnan(user):
        return None
    return feature.typed[int(user)] if feature.kind == "category" else float(user)


def _witnesses(case: Case, question: dict[str, Any], record: dict[str, Any], truths: Truths, wrong: Any) -> None:
    if record["verdict"] != "found":
        return
    answers = record.get("answers") or [record]
    settings = []
    for answer in answers:
        s = witness_setting(case, question, answer["points"], wrong)
        if s is None:
            return
        for node in question["constraints"]:
            if not holds(node, s)[1][0]:
                wrong("wrong found", f"{node} does not hold for {answer['points']}; scores {scores(s)}")
                return
        settings.append(s)
        _rational(question, answer, s, wrong)
        _outcomes(question, answer, s, wrong)
    if question.get("objective"):
        _objective(question, answers, settings, truths, wrong)
    if question.get("top"):
        _top(question, record, answers, settings, truths, wrong)


def _rational(question: dict[str, Any], answer: dict[str, Any], s: Setting, wrong: Any) -> None:
    """An answer holds in exact arithmetic, too."""
    if all(x.exact is None for x in s.points.values()):
        return
    exactly = replace(s, exact=False, rational=True, cache={})
    for node in question["constraints"]:
        if not holds(node, exactly)[1][0]:
            wrong("wrong found", f"{node} does not hold in exact arithmetic for {answer['points']}")


def _outcomes(question: dict[str, Any], answer: dict[str, Any], s: Setting, wrong: Any) -> None:
    """What is shown of decisions is what their cases say of the library's scores."""
    made = {(one[0], one[1]): one for one in decisions.declared(question["constraints"])}
    for (name, point), decision in made.items():
        several = sum(p == point for _, p in made) > 1
        shown = answer["scores"][point].get(f"decision {name}" if several else "decision")
        if shown is not None and not decisions.truth(decision, shown, lambda node: holds(node, s))[1][0]:
            wrong("wrong outcome", f"`{name}` is shown as {shown} for {answer['points']}; scores {scores(s)}")


def scores(s: Setting) -> dict[str, Any]:
    return {p: {"margins": x.margins.tolist(), "class": int(x.classes[0])} for p, x in s.points.items()}


def witness_setting(case: Case, question: dict[str, Any], points: dict[str, Any], wrong: Any) -> Setting | None:
    """The printed points, evaluated by the library; None (and a finding) if one lies outside the domain."""
    made: dict[str, Points] = {}
    for p, model in question["points"]:
        known = places_of(case, points[p])
        if known is not None:
            made[p] = one_of(case.world.points[model], case.world.place(known))
            continue
        user, stored = [], []
        for f in case.features:
            value = points[p][f.name]
            place = f.position(value)
            if place is None and not (f.kind == "real" and _in_real(f, value, case.models[model].real)):
                wrong("outside", f"{p}.{f.name} = {value!r} is not in {f.declaration}")
                return None
            typed = None if place is not None else float(case.models[model].real(value))
            user.append(f.user[place] if typed is None else typed)
            stored.append(column_of_values(f, f.stored[place] if typed is None else typed))
        for group in {f.group for f in case.features if f.group is not None}:
            if sum(u for u, f in zip(user, case.features, strict=True) if f.group == group) != 1:
                wrong("outside", f"{points[p]} is not one-hot")
                return None
        one = case.models[model].points(stored, np.array([user]))
        if case.models[model].leaves_of is not None and question.get("top"):
            one.leaves = np.asarray(case.models[model].leaves_of(stored)).reshape(1, -1)
        made[p] = one
    at = {p: np.zeros(1, int) for p in made}
    return Setting(case.features, made, at, case.world.tables, left_out(question), exact=True)


def places_of(case: Case, values: dict[str, Any]) -> list[int] | None:
    """The places of a point's values, if it is one of the points that the library has evaluated."""
    places = [f.position(values[f.name]) for f in case.features]
    known = [p for p in places if p is not None]
    return known if len(known) == len(places) and case.world.place(known) is not None else None


def one_of(points: Points, place: int | None) -> Points:
    """One of many points, alone."""
    at = slice(place, (place or 0) + 1)
    leaves = None if points.leaves is None else points.leaves[at]
    exact = None if points.exact is None else points.exact[at]
    return Points(
        points.user[at], points.margins[at], points.classes[at], points.cells[at], points.band, points.model, leaves,
        exact, points.shift,
    )  # fmt: skip


def _in_real(feature: Any, value: Any, kind: type) -> bool:
    """Whether a printed number, read in the number type of the model, lies in the domain."""
    inside = isinstance(value, int | float) and np.nanmin(feature.user) <= float(kind(value)) <= np.nanmax(feature.user)
    return bool(inside)


def _objective(
    question: dict[str, Any], answers: list[Any], settings: list[Setting], truths: Truths, wrong: Any
) -> None:
    sense = question["objective"][0]
    slack = truths.band + (
        CLOSE if "distance" in str(question["objective"][1]) or "nearest" in str(question["objective"][1]) else 1e-7
    )
    for answer, s in zip(answers, settings, strict=True):
        told = answer["objective"]
        if told is None:
            wrong("objective", "no objective is told")
            return
        mine = float(objective_of(question, s)[0][0])
        if abs(told["value"] - mine) > 1e-6 + truths.band:
            wrong("objective", f"{told['value']} is told for a point with {mine}")
    told = answers[0]["objective"]
    sure, any_ = best(truths, sense)
    sign = 1 if sense == "maximize" else -1
    if any_ is not None and sign * (told["value"] - any_) > slack and all(f.discrete for f in truths.setting.features):
        wrong("objective", f"{told['value']} is better than the optimum {any_}")
    if told["bound"] is None:
        wrong("open", f"no bound (value {told['value']}, optimum {any_})")
        return
    if sure is not None and sign * (sure - told["bound"]) > 1e-6 + truths.band:
        wrong("bound", f"bound {told['bound']} of {sense}, but {sure} exists: {_at(question, truths, sure)}")
    apart = abs(told["bound"] - told["value"])
    if told["status"] == "optimal" and apart > max(1e-15 * abs(told["value"]), 1e-300):
        wrong("objective", f"{told['value']} is called optimal with the bound {told['bound']}")
    allowed = told["tolerance"]["relative"] * abs(told["value"])
    enough = slack + allowed + (ROUNDING if answers[0]["backend"] in ROUNDED else 0.0)
    # Points whose rounding decides whether they count are bounded, too, though the answer need not be one of them.
    rounded = None not in (sure, any_) and max(sign * (sure - told["value"]), sign * (told["bound"] - any_)) <= enough
    if apart > enough and not rounded:
        wrong("open", f"value {told['value']}, bound {told['bound']}, optimum {sure}")


def _at(question: dict[str, Any], truths: Truths, value: float) -> Any:
    assert truths.objective is not None
    return example(question, truths, int(np.argmax(truths.sure & (truths.objective == value))))


def _top(
    question: dict[str, Any],
    record: dict[str, Any],
    answers: list[Any],
    settings: list[Setting],
    truths: Truths,
    wrong: Any,
) -> None:
    """Regions are disjoint; without `diverse`, values are the best ones of the regions, and as many as there are."""
    if any(x.leaves is None for s in settings for x in s.points.values()):
        return
    seen = [tuple(tuple(s.points[p].leaves[0]) for p, _ in question["points"]) for s in settings]
    if len(set(seen)) < len(seen):
        wrong("top", f"two answers reach the same leaves: {[a['points'] for a in answers]}")
    if len(answers) > question["top"]:
        wrong("top", f"{len(answers)} answers instead of {question['top']}")
    numbers = regions(question, truths)
    if numbers is None:
        return
    sure = set(numbers[truths.sure].tolist())
    complete = record["ranked"]["complete"]
    if not question.get("diverse") and len(answers) < min(question["top"], len(sure)):
        wrong(
            "top" if complete else "lost",
            f"{len(answers)} answers (complete: {complete}), by brute force {len(sure)} regions",
        )
    if truths.objective is None or question.get("diverse") or truths.sure.sum() != truths.count:
        return
    _ranking(question, answers, truths, numbers, wrong)


def _ranking(question: dict[str, Any], answers: list[Any], truths: Truths, numbers: np.ndarray, wrong: Any) -> None:
    assert truths.objective is not None
    sign = 1 if question["objective"][0] == "maximize" else -1
    places, where = np.unique(numbers, return_inverse=True)
    tops = np.full(len(places), -np.inf)
    np.maximum.at(tops, where.reshape(-1), sign * truths.objective)
    ranked = np.sort(tops)[::-1][: len(answers)] * sign
    told = [a["objective"]["value"] for a in answers]
    tolerance = truths.band + (
        CLOSE if "dist" in str(question["objective"][1]) or "near" in str(question["objective"][1]) else 1e-6
    )
    if not all(f.discrete for f in truths.setting.features):
        return
    # Each search may miss the best of what is left by as much as was allowed.
    tolerance += 2 * answers[0]["objective"]["tolerance"]["relative"] * max(map(abs, told), default=0.0)
    if np.abs(np.array(told) - ranked[: len(told)]).max(initial=0) > tolerance:
        said = any(a["objective"]["status"] == "open" for a in answers)
        wrong("open" if said else "top", f"values {told}, by brute force {ranked.tolist()}")


def asked(question: dict[str, Any]) -> str:
    return text_of(question)
