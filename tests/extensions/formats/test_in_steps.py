"""Questions about linear models of real numbers: the ends of intervals and all categories give the exact answers."""

from __future__ import annotations

import copy
import itertools
import json
import sqlite3
import threading
import time
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import treesens as ts
from tests.command import run_command
from tests.trials import THOROUGH
from treesens.binder.file import bind
from treesens.compiler.base.budget import Budget
from treesens.compiler.model.numbers import LEVELS
from treesens.compiler.query.query import Query
from treesens.compiler.result import Result
from treesens.errors import TreesensError
from treesens.extensions.formats.numbers import in_steps
from treesens.grammar.parsing.parser import parse
from treesens.solve.options import Options
from treesens.solve.question import answer

compose = pytest.importorskip("sklearn.compose")
linear = pytest.importorskip("sklearn.linear_model")
pipeline = pytest.importorskip("sklearn.pipeline")
preprocessing = pytest.importorskip("sklearn.preprocessing")
optimize = pytest.importorskip("scipy.optimize")
ensemble = pytest.importorskip("sklearn.ensemble")
calibration = pytest.importorskip("sklearn.calibration")

NUMBERS, TOWNS = ["income", "debt"], "abc"


@cache
def rows() -> pd.DataFrame:
    random, n = np.random.default_rng(5), 200
    x = pd.DataFrame({"income": random.normal(3e4, 1e4, n), "debt": random.normal(0, 40, n)})
    x["town"] = random.choice(list(TOWNS), n)
    score = (x.income - 3e4) / 1e4 - x.debt / 40 + (x.town == "a") + random.normal(0, 0.5, n)
    return x.assign(y=(score > 0).astype(int))


@cache
def model() -> Any:
    columns = [("n", preprocessing.StandardScaler(), NUMBERS), ("t", preprocessing.OneHotEncoder(), ["town"])]
    made = pipeline.make_pipeline(compose.ColumnTransformer(columns), linear.LogisticRegression())
    return made.fit(rows()[[*NUMBERS, "town"]], rows().y)


def corners() -> pd.DataFrame:
    """All ends of the domain: a score that rises or falls with each number is greatest, and least, at one of them."""
    ends = [(rows()[name].min(), rows()[name].max()) for name in NUMBERS]
    return pd.DataFrame(list(itertools.product(*ends, TOWNS)), columns=[*NUMBERS, "town"])


def by_town() -> np.ndarray:
    """What the town alone adds to a score."""
    return np.asarray(model().decision_function(rows().iloc[[0] * 3].assign(town=list(TOWNS))))


def ask(queries: dict[str, str], domain: str = "domain from d\n", **options: Any) -> Any:
    text = f'model m from "m"\ndata d from "d" label y\n{domain}' + "".join(
        f"query {name}: {query}\n" for name, query in queries.items()
    )
    return ts.check_text(text, models={"m": ts.load(model())}, data={"d": rows()}, **options)


@pytest.mark.parametrize("apart", [1e-3, 1e-9])
def test_verdicts_beside_the_exact_ends(apart: float) -> None:
    margins, towns = model().decision_function(corners()), by_town()
    best, swing = float(margins.max()), float(towns.max() - towns.min())
    pair = "find a, b such that a = b except {town} and "
    middle = f"margin(a) >= {swing / 2 + apart:.15f} and margin(b) <= {-swing / 2 - apart:.15f}"
    ends = rows().income.min(), rows().income.max()
    by_income = np.diff(model().decision_function(rows().iloc[[0, 0]].assign(income=ends)))[0]
    answers = ask(
        {
            "by_income": f"find a, b such that a = b except {{income}} and margin(a) - margin(b) >= {by_income - apart:.15f}",
            "yes": f"find a such that margin(a) >= {best - apart:.15f}",
            "no": f"find a such that margin(a) >= {best + apart:.15f}",
            "less": f"{pair}margin(a) - margin(b) >= {swing - apart:.15f}",
            "more": f"{pair}margin(a) - margin(b) >= {swing + apart:.15f}",
            # Two rows, each of which every number can meet: only together they cannot hold.
            "both": pair + middle,
        }
    )
    verdicts = {name: str(answers[name].verdict) for name in ("yes", "no", "less", "more", "both", "by_income")}
    expected = {"yes": "found", "no": "none", "less": "found", "more": "none", "both": "none", "by_income": "found"}
    assert verdicts == expected


def test_optima_are_those_of_the_exact_ends_and_bounds_hold() -> None:
    margins, towns = model().decision_function(corners()), by_town()
    answers = ask(
        {
            "best": "find a maximize margin(a)",
            "worst": "find a minimize margin(a)",
            "swing": "find a, b such that a = b except {town} maximize margin(a) - margin(b)",
        }
    )
    exact = {"best": margins.max(), "worst": margins.min(), "swing": towns.max() - towns.min()}
    for name, value in exact.items():
        found = answers[name].result.objective
        sign = -1 if name == "worst" else 1
        assert sign * found.value <= sign * value + 1e-9 <= sign * found.bound + 2e-9
        assert found.value == pytest.approx(value, rel=2e-6)
        assert found.bound == pytest.approx(value, rel=2e-6)


def test_an_answer_is_what_the_library_predicts() -> None:
    answers = ask({"q": "find a, b such that a = b except {income} and prob(a) >= 0.9 and prob(b) <= 0.6"})
    pair = answers["q"].pair
    shown = model().predict_proba(pd.DataFrame(pair)[[*NUMBERS, "town"]])[:, 1]
    assert shown[0] >= 0.9
    assert shown[1] <= 0.6
    assert pair["debt"].nunique() == 1


def test_what_steps_cannot_answer_says_so(tmp_path: Path) -> None:
    for query in (
        "find a such that prob(a) >= 0.5 top 3",
        "find a such that prob(a) >= 0.5 maximize likelihood(a, d)",
        "count rows of d as a such that prob(a) >= 0.5",
        "explain row 3 of d",
    ):
        with pytest.raises(TreesensError, match="E314"):
            ask({"q": query})
    with pytest.raises(TreesensError, match=r"(?s)E314.*two ends"):
        ask({"q": "find a such that prob(a) >= 0.5"}, "")
    with pytest.raises(TreesensError, match="E314"):
        ts.audit(ts.load(model()), rows(), label="y", vary=["town"])


def test_an_answer_in_steps_has_no_certificate_and_no_second_opinion() -> None:
    answers = ask({"q": "find a such that margin(a) >= 100"}, confirm="z3")
    assert str(answers["q"].verdict) == "none"
    assert "an answer in steps is not confirmed" in answers["q"].result.notes


@pytest.mark.long
def test_every_door_gives_the_same_answers(tmp_path: Path) -> None:
    """The town moves a score by what it adds; a session, processes and a sweep bind questions in steps by themselves."""
    io = pytest.importorskip("skops.io")
    io.dump(model(), tmp_path / "m.skops")
    rows().to_csv(tmp_path / "d.csv", index=False)
    half = (by_town().max() - by_town().min()) / 2
    margins = {"found": half * 0.99, "none": half * 1.01}
    asked = {name: f"sensitive m to {{town}} margin {margin}" for name, margin in margins.items()}
    head = 'model m from "m.skops"\ndata d from "d.csv" label y\ndomain from d\n'
    (tmp_path / "q.sens").write_text(head + "".join(f"query {name}: {query}\n" for name, query in asked.items()))
    for door in (("--jobs", "2"), ("--workers", "2"))[0 if THOROUGH else 1 :]:
        done = run_command(tmp_path, "check", "q.sens", "--json", "-t", "300", *door, timeout=900)
        results = json.loads(done.stdout)["results"]
        assert {one["query"]: one["verdict"] for one in results} == {name: name for name in asked}, door
    assert all("run in one process: a discretised number" in one["notes"][-1] for one in results)
    backends = ["native", "cpsat"][: 2 if THOROUGH else 1]
    done = run_command(tmp_path, "compare", "q.sens", "--json", "-t", "300", "-b", ",".join(backends), timeout=900)
    results = json.loads(done.stdout)["results"]
    assert sorted((one["query"], one["verdict"]) for one in results) == [
        (name, name) for name in asked for _ in backends
    ]
    with ts.session(model(), rows(), label="y", declarations="domain from d", time_limit=300) as session:
        assert {name: str(session.ask(query).verdict) for name, query in asked.items()} == {
            name: name for name in asked
        }
    (tmp_path / "s.toml").write_text(
        'models = ["m.skops"]\ndata = "d.csv"\nlabel = "y"\nfeatures = ["town"]\ntime_limit = 300\n'
        f"margins = {[*map(float, margins.values())]}\n"
    )
    done = run_command(tmp_path, "sweep", "s.toml", "--jobs", "1", "--json", timeout=900)
    verdicts = [json.loads(line)["verdict"] for line in done.stdout.splitlines() if '"verdict"' in line]
    assert sorted(verdicts) == sorted(asked), done.stdout + done.stderr


def test_a_study_that_knows_no_steps_says_who_does(tmp_path: Path) -> None:
    io = pytest.importorskip("skops.io")
    io.dump(model(), tmp_path / "m.skops")
    rows().to_csv(tmp_path / "d.csv", index=False)
    ends, none = "all real values between two ends", "no end of values"
    for arguments, why in ((("--data", "d.csv"), ends), ((), none)):
        done = run_command(tmp_path, "range", "m.skops", *arguments)
        assert done.returncode == 2
        assert why in done.stderr
        assert ("or use `check`, `compare` or `sweep`" in done.stderr) == (why == ends)


def test_a_journal_keeps_answers_about_real_numbers_and_judges_them_again(tmp_path: Path) -> None:
    """Kept values are so close to the greatest margin, which the library says, that a step around them would not do."""
    io = pytest.importorskip("skops.io")
    io.dump(model(), tmp_path / "m.skops")
    rows().to_csv(tmp_path / "d.csv", index=False)
    greatest = float(model().decision_function(corners()).max())
    (tmp_path / "q.sens").write_text(
        'model m from "m.skops"\ndata d from "d.csv" label y\ndomain from d\n'
        f"query found: find a in m such that margin(a) >= {greatest - 1e-3:.9f}\n"
        f"query none: find a in m such that margin(a) >= {greatest + 1e-3:.9f}\n"
        "query best: find a in m maximize margin(a)\n"
    )

    def asked() -> dict[str, dict[str, Any]]:
        done = run_command(tmp_path, "check", "q.sens", "--json", "-t", "20", "--journal", "kept.sqlite")
        return {one["query"]: one for one in json.loads(done.stdout)["results"]}

    first, second = asked(), asked()
    assert [one["verdict"] for one in first.values()] == ["found", "none", "found"]
    assert not any("journal" in one for one in first.values())
    for name, one in second.items():
        assert "journal" in one, name
        for field in ("verdict", "points", "scores", "objective", "proof", "replay"):
            assert one.get(field) == first[name].get(field), (name, field)
    for name in ("found", "best"):
        shown = model().decision_function(pd.DataFrame([second[name]["points"]["a"]]))[0]
        assert greatest - 1e-3 <= shown <= greatest + 1e-9

    def change(income: float) -> None:
        with sqlite3.connect(tmp_path / "kept.sqlite") as database:
            (text,) = database.execute("SELECT record FROM answers WHERE question = 'found'").fetchone()
            kept = json.loads(text)
            kept["result"]["points"][0][0] += income
            database.execute("UPDATE answers SET record = ? WHERE question = 'found'", (json.dumps(kept),))
        database.close()

    change(-3000.0)  # the margin falls by a third
    again = asked()
    assert {name for name, one in again.items() if "journal" in one} == {"none", "best"}
    assert again["found"]["points"] == first["found"]["points"]
    change(float("inf"))  # no value of any domain
    done = run_command(tmp_path, "check", "q.sens", "--json", "--journal", "kept.sqlite")
    assert done.returncode == 2
    assert "the answer to `found` in the journal is damaged" in done.stderr


@cache
def model_of_classes() -> Any:
    x = rows()
    label = np.digitize((x.income - 3e4) / 1e4 - x.debt / 40 + (x.town == "a"), [-1.0, 1.0])
    columns = [("n", preprocessing.StandardScaler(), NUMBERS), ("t", preprocessing.OneHotEncoder(), ["town"])]
    made = pipeline.make_pipeline(compose.ColumnTransformer(columns), linear.LogisticRegression())
    return made.fit(x[[*NUMBERS, "town"]], label)


def ask_of_classes(model: Any, text: str) -> Any:
    text = f'model m from "m"\ndata d from "d" label y\ndomain from d\n{text}'
    return ts.check_text(text, models={"m": ts.load(model)}, data={"d": rows()})


def can_change(model: Any, one: int, other: int) -> bool:
    """Whether some numbers, and two towns, lead to classes `one` and `other`: linear programs of what classes lead by."""
    x = rows()
    low, high = x[NUMBERS].min().to_numpy(), x[NUMBERS].max().to_numpy()
    for towns in itertools.product(TOWNS, repeat=2):
        limits, sides = [], []
        for town, wanted in zip(towns, (one, other), strict=True):
            # Scores are linear: those of the lowest numbers, and what one whole range of each number adds.
            at = pd.DataFrame([low, [high[0], low[1]], [low[0], high[1]]], columns=NUMBERS).assign(town=town)
            base, *ends = model.decision_function(at)
            for rest in {0, 1, 2} - {wanted}:
                limits.append([end[rest] - base[rest] - end[wanted] + base[wanted] for end in ends])
                sides.append(base[wanted] - base[rest])
        if optimize.linprog([0.0, 0.0], A_ub=limits, b_ub=sides, bounds=[(0, 1), (0, 1)]).status == 0:
            return True
    return False


def test_classes_of_real_numbers_are_those_of_linear_programs() -> None:
    pairs = list(itertools.permutations(range(3), 2))
    text = "".join(f"query c{one}{other}: sensitive m to {{town}} from {one} to {other}\n" for one, other in pairs)
    answers = ask_of_classes(model_of_classes(), text)
    expected = {pair: "found" if can_change(model_of_classes(), *pair) else "none" for pair in pairs}
    assert set(expected.values()) == {"found", "none"}
    assert {(i, j): str(answers[f"c{i}{j}"].verdict) for i, j in pairs} == expected


def test_what_a_number_adds_to_all_classes_alike_cancels() -> None:
    """The last class is behind the second one by a millionth, whatever the income is, which all three classes count alike."""
    made = copy.deepcopy(model_of_classes())
    last = made[-1]
    last.coef_[:, :2] = [1000.0, 0.0]
    last.coef_[2], last.intercept_[2] = last.coef_[1], last.intercept_[1] - 1e-6
    answers = ask_of_classes(made, "query never: find a such that class(a) = 2\n")
    assert str(answers["never"].verdict) == "none"


@pytest.mark.parametrize(("lead", "verdict"), [(1e-8, "found"), (-1e-8, "none")])
def test_a_class_that_wins_at_one_corner_by_little(lead: float, verdict: str) -> None:
    made = copy.deepcopy(model_of_classes())
    made[-1].intercept_[0] = -1e6
    scores = made.decision_function(corners())
    made[-1].intercept_[2] += lead - (scores[:, 2] - scores[:, 1]).max()
    assert str(ask_of_classes(made, "query q: find a such that class(a) = 2\n")["q"].verdict) == verdict


def of_numbers(numbers: list[str], strength: float) -> Any:
    columns = [("n", preprocessing.StandardScaler(), numbers), ("t", preprocessing.OneHotEncoder(), ["town"])]
    return pipeline.make_pipeline(compose.ColumnTransformer(columns), linear.LogisticRegression(C=strength))


AROUND = {
    "averaged": lambda: ensemble.VotingClassifier(
        [("all", of_numbers(NUMBERS, 0.1)), ("one", of_numbers(["income"], 1.0))], voting="soft", weights=[1, 2]
    ),
    "counted": lambda: ensemble.VotingClassifier(
        [("all", of_numbers(NUMBERS, 1.0)), *((name, of_numbers([name], 1.0)) for name in NUMBERS)], voting="hard"
    ),
    "sigmoid": lambda: calibration.CalibratedClassifierCV(of_numbers(NUMBERS, 1.0), cv=2),
    "isotonic": lambda: calibration.CalibratedClassifierCV(of_numbers(NUMBERS, 1.0), cv=2, method="isotonic"),
}


CLOSE = {"most", "gap", "best"}
"""Questions so close to their last value that they are open until the time is up."""


@pytest.mark.parametrize("kind", AROUND)
def test_what_the_library_predicts_on_a_grid_is_never_ruled_out(kind: str) -> None:
    """Models around linear ones are judged by the library: no `none`, and no bound, is beaten by an input of a fine grid."""
    made = AROUND[kind]().fit(rows()[[*NUMBERS, "town"]], rows().y)
    ends = [np.linspace(rows()[name].min(), rows()[name].max(), 81) for name in NUMBERS]
    grid = pd.DataFrame(np.array(np.meshgrid(*ends)).reshape(2, -1).T, columns=NUMBERS)
    of_towns = [grid.assign(town=town) for town in TOWNS]
    classes = np.stack([made.predict(x) for x in of_towns])
    asked, at_least = {}, {}
    for label in (0, 1):
        reached = np.flatnonzero((classes == label).any(axis=0))
        for name, last, sign in ((NUMBERS[0], np.max, ">="), (NUMBERS[1], np.min, "<=")):
            # A decimal is exact, and may lie beside the float that it is written for.
            end = float(last(grid[name].to_numpy()[reached])) + (-1e-6 if sign == ">=" else 1e-6)
            asked[f"class_{label}_{name}"] = f"find a such that class(a) = {label} and a.{name} {sign} {end!r}"
    flips = bool(((classes == 1).any(axis=0) & (classes == 0).any(axis=0)).any())
    asked["flip"] = "find a, b such that a = b except {town} and class(a) = 1 and class(b) = 0"
    if kind != "counted":
        shown = np.stack([made.predict_proba(x)[:, 1] for x in of_towns])
        swing = float((shown.max(axis=0) - shown.min(axis=0)).max())
        asked["most"] = f"find a such that prob(a) >= {float(shown.max()) - 1e-9!r}"
        asked["gap"] = f"find a, b such that a = b except {{town}} and prob(a) - prob(b) >= {swing - 1e-9!r}"
        asked["best"] = "find a, b such that a = b except {town} maximize prob(a) - prob(b)"
        at_least["best"] = swing
    answers = dict[str, ts.Answer]()
    for names, seconds in ((asked.keys() - CLOSE, 20), (asked.keys() & CLOSE, 1)):
        text = 'model m from "m"\ndata d from "d" label y\ndomain from d\n'
        text += "".join(f"query {name}: {asked[name]}\n" for name in sorted(names))
        said = ts.check_text(text, models={"m": ts.load(made)}, data={"d": rows()}, time_limit=seconds)
        assert not said.errors
        answers |= said
    verdicts = {name: str(answer.verdict) for name, answer in answers.items()}
    assert flips
    assert "none" not in verdicts.values(), verdicts
    assert all(verdict == "found" for name, verdict in verdicts.items() if name not in {"most", "gap"}), verdicts
    for name, value in at_least.items():
        objective = answers[name].result.objective
        assert objective.bound >= value - 1e-9
        assert objective.value <= objective.bound


def test_a_search_that_is_stopped_judges_one_candidate_and_makes_no_finer_steps(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    declared = "feature income: real in [0, 60000]\nfeature debt: real in [-90, 90]\n"
    text = f'model m from "m"\n{declared}query q: find a maximize prob(a)\n'
    loaded, stop, judged, verify = ts.load(model()), threading.Event(), list[Query](), in_steps.verify_values
    question = bind(parse(text), Path(), load_model=lambda *_: loaded, steps=LEVELS[0]).queries[0]

    def ask(query: Query, options: Options, budget: Budget) -> Result:
        result = answer(query, options, budget)
        stop.set()
        return result

    def counted(query: Query, *arguments: Any, **options: Any) -> Any:
        judged.append(query)
        return verify(query, *arguments, **options)

    monkeypatch.setattr(in_steps, "verify_values", counted)
    options = Options("native", time_limit=60, tolerance=0.0)
    result = in_steps.answer_in_steps(question, options, ask, Budget.of(60, stop))
    assert len(judged) == 1
    assert result.witness is not None
    assert result.objective is not None
    assert result.objective.bound is not None


@pytest.mark.parametrize("domain", ["domain from d\n", "domain from d\nfeature debt: real\n"])
def test_a_number_of_one_value_beside_one_with_steps(domain: str) -> None:
    """A column that is constant is a table of its own: the income alone moves the score from end to end."""
    table = rows().assign(debt=0.5)
    text = f'model m from "m"\ndata d from "d" label y\n{domain}'
    shown = model().decision_function(corners().assign(debt=0.5))
    for name, move in (("yes", -1e-6), ("no", 1e-6)):
        text += f"query {name}: find a such that margin(a) >= {float(shown.max()) + move:.12f}\n"
    text += "query best: find a maximize margin(a)\n"
    answers = ts.check_text(text, models={"m": ts.load(model())}, data={"d": table})
    assert [str(answers[name].verdict) for name in ("yes", "no")] == ["found", "none"]
    assert answers["best"].result.objective.value == pytest.approx(float(shown.max()), rel=1e-6)


def test_a_question_that_cannot_be_bound_again_says_why() -> None:
    declared = "feature income: real in [0, 60000]\nfeature debt: real in [-90, 90]\n"
    text = f'model m from "m"\n{declared}query q: find a maximize prob(a)\n'
    loaded = ts.load(model())
    question = bind(parse(text), Path(), load_model=lambda *_: loaded, steps=LEVELS[0]).queries[0]
    assert question.in_steps is not None
    with pytest.raises(TreesensError, match="E314") as caught:
        question.in_steps.again(0, {"income": np.zeros(1)})
    assert "`debt` reaches the score as a number" in str(caught.value)


def test_the_best_probability_of_several_models_keeps_its_time() -> None:
    """Half a million combinations of steps, whose sums are long numbers, had taken half a minute of two seconds."""
    random, n = np.random.default_rng(172), 150
    x = pd.DataFrame({"x": random.normal(0, 0.01, n), "z": random.uniform(-5, 5, n), "t": random.integers(0, 3, n)})
    bag = ensemble.BaggingClassifier(linear.LogisticRegression(), n_estimators=3, random_state=0)
    bag.fit(x, (x.z + x.t + random.normal(0, 1, n) > 1).astype(int))
    text = 'model m from "m"\nfeature x: real in [-0.0219283563378, 0.0251174743291]\nfeature z: real in [-4.9, 4.95]\n'
    text += "feature t: integer in [0, 2]\nquery q: find a, b such that\n  a = b except x\n  class(a) = 0\n"
    text += "  class(a) != class(b)\n  maximize prob(a)\n"
    start = time.process_time()
    answers = ts.check_text(text, models={"m": ts.load(bag)}, time_limit=2)
    assert not answers.errors
    assert time.process_time() - start < 20  # of a limit of 2 s; it had used 76 s
