"""`share of MEASURE`: against sums over every input of tiny domains, each predicted by the library."""

from __future__ import annotations

import json
from collections.abc import Callable
from fractions import Fraction
from itertools import product
from typing import Any

import numpy as np
import pytest

import treesens as ts
from tests.extensions.studies.share_cases import CASES, NAMES, Case
from treesens.compiler.base.diagnostics import DiagnosticsError
from treesens.compiler.base.tolerance import EXACT
from treesens.compiler.query.share import ShareAsked
from treesens.records.answers import as_expected, record

KINDS = ("uniform", "marginals", "chow-liu", "rows")
Row = tuple[float, ...]


def declared(case: Case) -> str:
    columns = [sorted({int(v) for v in case.frame[name]}) for name in NAMES]
    features = "".join(
        f"feature {n}: category {{{', '.join(map(str, c))}}}\n" for n, c in zip(NAMES, columns, strict=True)
    )
    measures = "measure w: uniform\nmeasure p: marginals of d\nmeasure t: chow-liu of d\nmeasure r: rows of d\n"
    return f'model m from "m"\ndata d from "d"\n{features}{measures}'


def asked(case: Case, text: str) -> ts.Answer:
    return next(iter(ts.check_text(declared(case) + text, models={"m": case.live}, data={"d": case.frame}).values()))  # type: ignore[attr-defined]


def weights(case: Case) -> dict[str, Callable[[Row], float]]:
    """The probability of a row by every measure that a table says by itself."""
    options = [np.unique(case.frame[name]) for name in NAMES]
    rows = case.frame.to_numpy()
    size = float(np.prod([len(o) for o in options]))

    def marginal(row: Row) -> float:
        return float(np.prod([np.mean(rows[:, f] == v) for f, v in enumerate(row)]))

    return {
        "w": lambda _: 1 / size,
        "p": marginal,
        "r": lambda row: float((rows == np.array(row)).all(axis=1).mean()),
    }


def truth(case: Case, varied: tuple[int, ...], says: Callable[[Any, Any], Any]) -> dict[str, float] | None:
    """Shares by measure of the inputs for which some choices are an answer; `says` sees the rows and scores of all choices.

    None if the library's rounding could decide one of them.
    """
    options = [np.unique(case.frame[name]) for name in NAMES]
    probabilities, found = weights(case), dict.fromkeys("wpr", 0.0)
    every = list(product(*options))
    choices_of = np.array(
        [[_with(row, varied, picked) for picked in product(*(options[f] for f in varied))] for row in every]
    )
    scores = case.scores(choices_of.reshape(-1, len(NAMES))).reshape(*choices_of.shape[:2], -1)
    for row, choices, of_choices in zip(every, choices_of, scores, strict=True):
        concerned = says(choices, of_choices)
        if concerned is None:
            return None
        for name, probability in probabilities.items():
            found[name] += probability(row) * concerned
    return found


def _with(row: Row, varied: tuple[int, ...], picked: tuple[float, ...]) -> list[float]:
    values = list(row)
    for f, value in zip(varied, picked, strict=True):
        values[f] = value
    return values


def near(scores: Any, *levels: float) -> bool:
    return any((np.abs(scores - level) < 1e-4).any() for level in levels)


def cases(seed: int) -> list[Case]:
    made = []
    for make in CASES:
        case = make(np.random.default_rng(seed))
        if case.kind == "margin" and len(case.concerned) == 1:
            made.append(case)
    return made


def holds(answer: ts.Answer, share: float) -> None:
    found = answer.result.share
    assert found is not None
    assert found.lower - 1e-12 <= share <= found.upper + 1e-12
    if found.estimate is None:
        assert found.upper - found.lower <= 0.11 * max(share, 1e-6)


@pytest.mark.parametrize("seed", range(5))
def test_pairs_are_counted_as_the_library_predicts(seed: int) -> None:
    for case in cases(seed):
        for varied in ((0,), (1, 3)):
            expected = truth(
                case, varied,
                lambda _, s: None if near(s, 0.2, -0.1) else bool((s[:, 0] >= 0.2).any() and (s[:, 0] <= -0.1).any()),
            )  # fmt: skip
            if expected is None:
                continue
            names = ", ".join(NAMES[f] for f in varied)
            for name, share in expected.items():
                text = f"query q: find a, b such that a = b except {{{names}}}; margin(a) >= 0.2; margin(b) <= -0.1"
                answer = asked(case, f"{text} share of {name}")
                holds(answer, share)
                assert (str(answer.verdict) == "none") == (truth_any(case, varied) is False)


def truth_any(case: Case, varied: tuple[int, ...]) -> bool:
    found = truth(case, varied, lambda _, s: bool((s[:, 0] >= 0.2).any() and (s[:, 0] <= -0.1).any()))
    assert found is not None
    return found["w"] > 0


@pytest.mark.parametrize("seed", range(5))
def test_one_point_and_constraints_on_features(seed: int) -> None:
    for case in cases(20 + seed):

        def says(rows: Any, scores: Any) -> bool | None:
            return (
                None if near(scores, 0.05) else bool(scores[0, 0] >= 0.05 and rows[0, 1] != 1 and rows[0, 2] in (0, 2))
            )

        expected = truth(case, (), says)
        if expected is None:
            continue
        for name, share in expected.items():
            holds(
                asked(
                    case, f"query q: find a such that margin(a) >= 0.05; a.f1 != 1; a.f2 in {{0, 2}} share of {name}"
                ),
                share,
            )


@pytest.mark.parametrize("seed", range(5))
def test_constraints_on_what_is_varied_hold_for_each_point(seed: int) -> None:
    for case in cases(40 + seed):

        def says(rows: Any, scores: Any) -> bool | None:
            if near(scores, 0.1, -0.1):
                return None
            high = (scores[:, 0] >= 0.1) & (rows[:, 0] != 0)
            low = (scores[:, 0] <= -0.1) & (rows[:, 0] != 2) & (rows[:, 3] != 1)
            return bool(high.any() and low.any())

        expected = truth(case, (0,), says)
        if expected is None:
            continue
        for name, share in expected.items():
            text = "find a, b such that a = b except f0; margin(a) >= 0.1; margin(b) <= -0.1; a.f0 != 0; b.f0 != 2; b.f3 != 1"
            holds(asked(case, f"query q: {text} share of {name}"), share)


@pytest.mark.parametrize("seed", range(5))
def test_differences_say_which_point_is_higher(seed: int) -> None:
    """The second point is the higher one, and the first one has a bound of its own."""
    for case in cases(60 + seed):

        def says(_: Any, scores: Any) -> bool | None:
            s = scores[:, 0]
            apart = s[None, :] - s[:, None]  # [first, second]
            if near(apart, 0.3) or near(s, 0.1):
                return None
            return bool(((apart >= 0.3) & (s >= 0.1)[:, None]).any())

        expected = truth(case, (0, 2), says)
        if expected is None:
            continue
        for name, share in expected.items():
            text = "find a, b such that a = b except {f0, f2}; margin(b) - margin(a) >= 0.3; margin(a) >= 0.1"
            holds(asked(case, f"query q: {text} share of {name}"), share)


def test_typical_inputs_alone_are_counted() -> None:
    """By rows: every row is asked about by itself, as a question about this very row."""
    counted = 0
    for seed in range(2):
        for case in cases(80 + seed):
            text = "find a, b such that a = b except f0; margin(a) >= 0.1; margin(b) <= -0.1; a typical of d at 80 %"
            found = asked(case, f"query q: {text} share of r").result.share
            questions = "".join(
                f"query q{i}: {text}; " + "; ".join(f"b.{n} = {int(row[n])}" for n in NAMES[1:]) + "\n"
                for i, row in case.frame.drop_duplicates().iterrows()
            )
            answers = ts.check_text(declared(case) + questions, models={"m": case.live}, data={"d": case.frame})  # type: ignore[attr-defined]
            hit = {
                tuple(case.frame.loc[int(name[1:]), NAMES[1:]])
                for name, a in answers.items()
                if str(a.verdict) == "found"
            }
            share = np.mean([tuple(row) in hit for row in case.frame[NAMES[1:]].to_numpy().tolist()])
            assert found is not None
            assert found.lower == found.upper == pytest.approx(share)
            counted += bool(hit)
    assert counted


def test_what_is_expected_is_judged_by_the_proved_interval() -> None:
    for bound, lower, upper, verdicts in (
        ("0.5", 0.1, 0.4, (True, True, False, False)),
        ("0.5", 0.5, 0.5, (False, True, False, True)),
        ("0.5", 0.4, 0.6, (None, None, None, None)),
        ("0.5", 0.5, 0.6, (False, None, None, True)),
        ("0.5", 0.4, 0.5, (None, True, False, None)),
        ("0.5", 0.6, 0.7, (False, False, True, True)),
    ):
        for operator, verdict in zip(("<", "<=", ">", ">="), verdicts, strict=True):
            asked = ShareAsked("m", "uniform", expected=(operator, Fraction(bound)))
            assert asked.decided(lower, upper) is verdict, (operator, lower, upper)


def test_records_and_expectations() -> None:
    case = next(c for seed in range(100, 200) for c in cases(seed) if 0.02 < (truth_of(c) or 0) < 0.9)
    share = truth_of(case)
    assert share is not None
    text = "query q: sensitive m to f0 margin 0.2 share of w expect share"
    for operator, bound, wanted in (("<=", share + 0.01, True), ("<", share - 0.01, False), (">=", share - 0.01, True)):
        answer = asked(case, f"{text} {operator} {bound:.6f}")
        query = answer.question.query
        found = record(query, answer.result)
        assert found["expect"].startswith(f"share {operator} 0.")
        assert found["as_expected"] is wanted is as_expected(query, answer.result)
        assert found["share"]["holds"] is wanted
        assert found["share"]["of"] == "w"
        assert found["share"]["measure"] == "uniform"
        json.dumps(found)
    answer = asked(case, "query q: sensitive m to f0 margin 99 share of t expect share <= 0.0001 %")
    assert (str(answer.verdict), answer.result.share.lower, answer.result.share.upper) == ("none", 0.0, 0.0)  # type: ignore[union-attr]
    assert as_expected(answer.question.query, answer.result) is True


def truth_of(case: Case) -> float | None:
    found = truth(
        case,
        (0,),
        lambda _, s: None if near(s, 0.2, -0.2) else bool((s[:, 0] >= 0.2).any() and (s[:, 0] <= -0.2).any()),
    )
    return None if found is None else found["w"]


def test_a_journal_keeps_a_share_and_judges_it_again() -> None:
    from treesens.records.kept import from_json, is_decided, to_json

    case = next(c for seed in range(100, 200) for c in cases(seed) if 0.02 < (truth_of(c) or 0) < 0.9)
    answer = asked(case, "query q: sensitive m to f0 margin 0.2 share of w expect share <= 0.99")
    kept = json.loads(json.dumps(to_json(answer.question.query, answer.result)))
    again = from_json(answer.question.query, kept, 0.0, None)
    assert again is not None
    assert again.share == answer.result.share
    assert is_decided(again, answer.result.objective.tolerance if answer.result.objective else EXACT)
    stricter = asked(case, "query q: sensitive m to f0 margin 0.2 share of w expect share <= 0.001").question.query
    told = from_json(stricter, kept, 0.0, None)
    assert told is not None
    assert told.share is not None
    assert told.share.holds is False
    for lower, upper in ((0.5, 0.4), (-1, 0.5), (0.1, 2)):
        wrong = kept | {"share": kept["share"] | {"lower": lower, "upper": upper}}
        with pytest.raises(ValueError, match="a number from 0 to 1"):
            from_json(answer.question.query, wrong, 0.0, None)


def test_objects_ask_the_same_question() -> None:
    from treesens import query as q

    case = cases(3)[0]
    text = declared(case) + "query q: sensitive m to f0 margin 0.2 share of w expect share <= 0.5"
    question = q.sensitive("m", "f0", margin=0.2).named("q").share_of("w").expect_share("<=", 0.5)
    parts = [*q.parse(declared(case)).declarations, question]
    assert str(q.file(*parts)) == str(q.parse(text))
    with pytest.raises(ts.errors.UsageError, match="has no share"):
        q.sensitive("m", "f0", margin=0.2).expect_share("<=", 0.5)


def test_what_cannot_be_counted_is_a_mistake_at_its_place() -> None:
    case = cases(3)[0]
    for body, message in (
        ("find a, b such that margin(a) >= 0.2; margin(b) <= -0.2 share of w", "agree except on some features"),
        (
            "find a, b such that a = b except f0; margin(a) >= 0.2; changes(a, b) <= 1 share of w",
            "without alternatives",
        ),
        ("find a such that margin(a) >= 0.2 or margin(a) <= -0.2 share of w", "without alternatives"),
        ("find a such that margin(a) >= 0.2 share of nothing", "no measure is called `nothing`"),
    ):
        with pytest.raises(DiagnosticsError, match=message):
            asked(case, f"query q: {body}")
