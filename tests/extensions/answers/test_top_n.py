"""`top N`: against brute force over cells on every backend, its proofs, and what a limit leaves."""

from __future__ import annotations

import json
import threading
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

from tests.commands.test_command_line import STUMP
from tests.questions import every_input, random_query
from treesens.cli import main
from treesens.compiler.base.budget import Budget
from treesens.compiler.query.bounds import LogRational
from treesens.compiler.query.evaluate import Inputs, form_value, holds
from treesens.compiler.query.query import AtLeast, Query
from treesens.compiler.result import Result, Verdict
from treesens.extensions.answers.top import answer_top, by_value
from treesens.solve.options import Options
from treesens.solve.question import answer

Leaves = tuple[int, ...]


def loose_query(seed: int) -> Query:
    """A random question whose bounds are lowered, so that many have several answers."""
    rng = np.random.default_rng(seed)
    query = random_query(rng)
    lower = LogRational(Fraction(int(rng.integers(-6, 2)), 4))
    constraints = tuple(replace(c, bound=lower) if isinstance(c, AtLeast) else c for c in query.constraints)
    return replace(query, constraints=constraints)


def leaves_of(query: Query, cells: np.ndarray) -> Leaves:
    """The leaf of every tree at every point: what the region of an answer is."""
    reached = [query.models[p.model].leaves(cells[i : i + 1])[0].tolist() for i, p in enumerate(query.points)]
    return tuple(leaf for row in reached for leaf in row)


def answers_by_region(query: Query) -> dict[Leaves, Fraction | None]:
    """The best value of every region that holds an answer, by trying all cells."""
    found: dict[Leaves, Fraction | None] = {}
    for x in every_input(query):
        if not all(holds(c, x) for c in query.constraints):
            continue
        key = leaves_of(query, x.cells)
        if query.objective is None:
            found[key] = None
            continue
        value = form_value(query.objective.form, x)
        known = found.get(key)
        if known is None or (value > known if query.objective.maximize else value < known):
            found[key] = value
    return found


def solved(query: Query, wanted: int, *, backend: str = "native", diverse: bool = False) -> Result:
    asked = replace(query, top=wanted, diverse=diverse)
    return answer_top(asked, lambda q, part: answer(q, Options(backend=backend), part), Budget.of(60))


def agrees(query: Query, result: Result, wanted: int) -> int:
    """The answers are those of brute force; returns how many there are."""
    by_region = answers_by_region(query)
    ranked = result.ranked
    assert ranked is not None
    regions = [leaves_of(query, one.witness.cells) for one in ranked.answers if one.witness is not None]
    assert len(set(regions)) == len(regions) == min(wanted, len(by_region))
    assert ranked.complete == (len(by_region) < wanted)
    assert (result.verdict is Verdict.FOUND) == bool(by_region)
    assert set(regions) <= set(by_region)
    if query.objective is not None:
        best = sorted((v for v in by_region.values() if v is not None), reverse=query.objective.maximize)
        values = [
            form_value(query.objective.form, Inputs(one.witness.values, one.witness.cells, one.witness.exact))
            for one in ranked.answers
            if one.witness is not None
        ]
        assert [float(v) for v in values] == pytest.approx([float(v) for v in best[: len(values)]], abs=1e-5)
    return len(regions)


@pytest.mark.parametrize("seed", range(300, 340))
@pytest.mark.sampled
def test_the_best_answers_are_those_of_brute_force(seed: int) -> None:
    query = loose_query(seed)
    agrees(query, solved(query, 4), 4)


def test_brute_force_had_something_to_say() -> None:
    counts = [len(answers_by_region(loose_query(seed))) for seed in range(300, 340)]
    assert min(counts) == 0
    assert sum(0 < n < 4 for n in counts) > 5
    assert sum(n >= 4 for n in counts) > 10


@pytest.mark.parametrize("backend", ["auto", "cpsat", "highs", "z3"])
def test_every_backend_ranks_alike(backend: str) -> None:
    seen = 0
    for seed in (301, 309, 317, 323):
        query = loose_query(seed)
        seen += agrees(query, solved(query, 3, backend=backend), 3)
    assert seen > 3


@pytest.mark.parametrize("seed", range(340, 370))
def test_diverse_answers_lie_outside_the_widened_regions_of_earlier_ones(seed: int) -> None:
    from treesens.extensions.answers.regions import RegionFinder

    query = loose_query(seed)
    result = solved(query, 3, diverse=True)
    assert result.ranked is not None
    witnesses = [one.witness for one in result.ranked.answers if one.witness is not None]
    assert len({leaves_of(query, w.cells) for w in witnesses}) == len(witnesses)
    if not witnesses:
        assert not answers_by_region(query)
        return
    region = RegionFinder(query).region(witnesses[0].cells)
    outside = [leaves_of(query, witnesses[0].cells)]
    for x in every_input(query):
        if not all(holds(c, x) for c in query.constraints):
            continue
        if leaves_of(query, x.cells) not in outside and (region is None or not inside(region.boxes, x.cells)):
            assert len(witnesses) > 1, "an answer is left, and only one was found"
            break
    else:
        assert len(witnesses) == 1
        assert result.ranked.complete
    if region is not None:
        assert not any(inside(region.boxes, w.cells) for w in witnesses[1:])


def inside(boxes: tuple[tuple[np.ndarray, ...], ...], cells: np.ndarray) -> bool:
    return all(box[cell] for point, row in zip(boxes, cells, strict=True) for box, cell in zip(point, row, strict=True))


def test_an_interruption_keeps_what_is_found() -> None:
    query = next(q for q in (loose_query(seed) for seed in range(300, 400)) if len(answers_by_region(q)) >= 4)
    stop = threading.Event()
    asked: list[Query] = []

    def one(question: Query, part: Budget) -> Result:
        asked.append(question)
        if len(asked) == 2:
            stop.set()
        return answer(question, Options(backend="native"), Budget(part.deadline))

    result = answer_top(replace(query, top=4), one, Budget.of(60, stop))
    assert result.ranked is not None
    assert len(result.ranked.answers) == 2
    assert (result.ranked.complete, result.ranked.reason) == (False, "interrupted")


def test_the_time_limit_is_for_all_answers_together() -> None:
    query = next(
        q
        for q in (loose_query(seed) for seed in range(300, 400))
        if q.objective is not None and len(answers_by_region(q)) >= 4
    )
    limits: list[float] = []

    def one(question: Query, part: Budget) -> Result:
        limits.append(part.left())
        return answer(question, Options(backend="native"), part)

    answer_top(replace(query, top=4), one, Budget.of(20))
    assert limits[0] == pytest.approx(5, abs=0.1)
    assert limits == sorted(limits), "what an answer leaves is for the next ones"


def distinct(found: dict[Leaves, Fraction | None]) -> bool:
    """Whether the three largest values differ."""
    values = sorted((v for v in found.values() if v is not None), reverse=True)
    return len(values) >= 3 and len(set(values[:3])) == 3


def test_answers_that_came_late_are_ranked_by_value_under_the_bound_of_the_first_search() -> None:
    query = next(
        q
        for q in (loose_query(seed) for seed in range(300, 400))
        if q.objective is not None and distinct(answers_by_region(q)) and q.objective.maximize
    )
    result = solved(query, 3)
    assert result.ranked is not None
    right = list(result.ranked.answers)
    assert by_value(right, query) == right
    late = by_value(right[::-1], query)
    assert [one.witness for one in late] == [one.witness for one in right]
    worst = right[-1].objective
    assert worst is not None
    assert [one.objective and one.objective.bound for one in late] == [worst.bound] * 3


def test_records_hold_all_answers(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """One stump has two leaves: a point has two regions, and no third."""
    (tmp_path / "model.json").write_text(json.dumps(STUMP))
    (tmp_path / "q.sens").write_text(
        'model m from "model.json"\n'
        "query q: find a such that margin(a) >= -2\n maximize margin(a) top 3\n"
        "query p: find a, b such that a = b except sex; margin(a) - margin(b) >= 1\n top 2 diverse\n"
    )
    with pytest.raises(SystemExit) as ended:
        main(["check", str(tmp_path / "q.sens"), "--json"])
    assert ended.value.code == 0
    ranked, diverse = json.loads(capsys.readouterr().out)["results"]
    assert [one["objective"]["value"] for one in ranked["answers"]] == [1, -1]
    assert ranked["answers"][0]["points"] == ranked["points"]
    assert ranked["ranked"] == {
        "wanted": 3,
        "found": 2,
        "complete": True,
        "reason": "there are only 2",
        "proof": "exact",
    }
    assert (diverse["ranked"]["found"], diverse["ranked"]["complete"]) == (1, True)
    with pytest.raises(SystemExit):
        main(["check", str(tmp_path / "q.sens"), "q"])
    shown = capsys.readouterr().out
    assert "answer 2 of 2" in shown
    assert "only 2 regions (exact proof), 3 were wanted" in shown


def test_regions_of_diverse_answers_need_no_term_of_a_distance() -> None:
    """A point that is the row has a distance of 0 whatever else happens: the row of the program is about nothing."""
    import pandas as pd
    import xgboost

    import treesens as ts

    rng = np.random.default_rng(0)
    x = rng.integers(0, 4, (60, 2)).astype(float)
    model = xgboost.XGBClassifier(n_estimators=4, max_depth=2).fit(x, x.sum(axis=1) > 3)
    text = """model m from "m"
data d from "d"
feature f0: integer in [0, 3]
feature f1: integer in [0, 3]
query q:
  find a, b in m such that
    a = row 11 of d except {f1}
    margin(a) <= 50
    distance(a, row 11 of d, l0) < 1
  maximize changes(a, b)
  top 3 diverse
"""
    frame = pd.DataFrame(x, columns=["f0", "f1"])
    answer = ts.check_text(text, models={"m": model}, data={"d": frame}, time_limit=10)["q"].to_dict()
    assert answer["verdict"] == "found"
    assert answer["points"]["a"] == {"f0": x[11, 0], "f1": x[11, 1]}
    assert answer["objective"]["value"] == 2  # b differs in both
