"""What questions about one model share changes no answer: verdicts, values and bounds are those of processes of their own."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import treesens as ts
from tests.corpus import boosted
from tests.trials import THOROUGH

NAMES = ("f0", "f1", "f2", "f3")
DECLARED = """
feature f0: real in [0, 1]
feature f1: real in [0, 4]
feature f2: integer in [0, 9]
feature f3: real in [-1, 1] or missing
"""
QUESTIONS = (
    "find a such that class(a) = 1 and a.f0 >= 0.3 and a.f2 in [2, 5]",
    "find a such that class(a) = 0 and a = row 3 of d except f1",
    "find a such that class(a) = 1 and a = row 3 of d except {f0, f2}",
    "find a such that class(a) = 1 and a = row 4 of d except {f0, f2}",
    "find a such that class(a) = 0 and distance(a, row 5 of d, linf) <= 0.1",
    "find a such that class(a) = 1 and missing(a.f3) and a.f1 <= 1.7",
    "find a such that class(a) = 0 and missing(a.f3) and a.f1 <= 1.7",
    "find a such that class(a) = 0  minimize distance(a, row 0 of d, linf)",
    "find a such that class(a) = 1  minimize distance(a, row 1 of d, linf)",
    "find a such that class(a) = 0  minimize distance(a, row 2 of d, l1)",
    "find a such that class(a) = 1  minimize distance(a, row 2 of d, l1)",
    "find a such that class(a) = 1  minimize distance(a, row 3 of d, l2)",
    "find a such that class(a) = 0  minimize distance(a, row 4 of d, l0)",
    "find a such that class(a) = 1  minimize distance(a, row 4 of d, l0)",
    "find a, b such that a = b except f1 and class(a) = 0 and class(b) = 1 and a.f0 <= 0.5",
    "find a, b such that a = b except f1 and class(a) = 0 and class(b) = 1 and a.f0 <= 0.4",
    "find a, b such that a = b except {f2, f3} and class(a) = 0 and class(b) = 1 and a.f0 in [0.2, 0.21]",
    "find a, b such that a = b except f0 and abs(a.f0 - b.f0) <= 0.01 and class(a) = 0 and class(b) = 1",
    "find a such that a.f0 + a.f1 >= 4.5 and class(a) = 1",
    "find a, b such that a = b except f3 and margin(a) >= 6 and margin(b) <= -6",
    "find a such that margin(a) <= -0.5 and a = row 3 of d except f3 and margin(a) >= 0.5",
    "find a such that a.f1 >= 3  maximize margin(a)",
    "find a such that class(a) = 1 and a.f2 >= 7  top 2",
    "count rows of d as a such that class(a) = 1 and a.f0 >= 0.5",
    "count rows of d as a, b such that a = b except f1 and class(a) = 0 and class(b) = 1",
)
_ALONE = """
import json, os, sys
import catboost, lightgbm
import treesens as ts
from tests.command import load_all
from tests.solve.test_shared import facts, file_of
load_all()
table, models, questions = sys.argv[1], json.loads(sys.argv[2]), json.loads(sys.argv[3])
for model in models:
    for question in questions:
        sys.stdout.flush()
        if os.fork() == 0:
            text = file_of({"q": question})
            answer = ts.check_text(text, models={"m": model}, data={"d": table}, time_limit=30)["q"]
            print(json.dumps(facts(answer)), flush=True)
            os._exit(0)
        assert os.wait()[1] == 0
"""


def file_of(questions: dict[str, str]) -> str:
    asked = "\n".join(f"query {name}:\n  {question}" for name, question in questions.items())
    return f'model m from "m"\ndata d from "d"\n{DECLARED}\n{asked}\n'


def facts(answer: ts.Answer) -> list[Any]:
    """What no way of asking may change."""
    objective, count, ranked = answer.result.objective, answer.count, answer.ranked
    return [
        str(answer.verdict),
        str(answer.proof),
        None if objective is None else [objective.value, objective.bound],
        None if count is None else [list(count.rows), count.at_least, count.at_most],
        None if ranked is None else [len(ranked.answers), ranked.complete],
    ]


def training_set() -> tuple[Any, Any]:
    rng = np.random.default_rng(8)
    x = np.column_stack([rng.random(240), 4 * rng.random(240), rng.integers(0, 10, 240), 2 * rng.random(240) - 1])
    x = x.astype(np.float32)
    return x, (np.sin(5 * x[:, 0]) + 0.4 * x[:, 1] - 0.2 * x[:, 2] + 0.3 * x[:, 3] > 0.3).astype(np.int64)


def xgboost_model(path: Path) -> Path:
    x, y = training_set()
    boosted(x, y, 12, 4, names=NAMES, path=path / "m.json", eta=0.5)
    return path / "m.json"


def lightgbm_model(path: Path) -> Path:
    import lightgbm as lgb

    x, y = training_set()
    options = {"objective": "binary", "num_leaves": 9, "verbose": -1, "num_threads": 1, "min_data_in_leaf": 5}
    lgb.train(options, lgb.Dataset(x, y, feature_name=list(NAMES)), 12).save_model(path / "m.txt")
    return path / "m.txt"


def catboost_model(path: Path) -> Path:
    from catboost import CatBoostClassifier

    x, y = training_set()
    model = CatBoostClassifier(iterations=12, depth=4, thread_count=1, verbose=0, allow_writing_files=False)
    model.fit(x, y)
    model.set_feature_names(list(NAMES))
    model.save_model(str(path / "m.json"), format="json")
    return path / "m.json"


TRAINERS = (xgboost_model, lightgbm_model, catboost_model)


def said_alone(models: Sequence[Path], table: Path) -> list[list[list[Any]]]:
    """What processes of their own say of every question about every model: forks of one, which has loaded all libraries."""
    done = subprocess.run(
        [sys.executable, "-c", _ALONE, str(table), json.dumps([*map(str, models)]), json.dumps(QUESTIONS)],
        capture_output=True,
        check=False,
        text=True,
        cwd=Path(__file__).parents[2],
    )
    assert done.returncode == 0, done.stderr
    said, size = [json.loads(line) for line in done.stdout.splitlines()], len(QUESTIONS)
    assert len(said) == len(models) * size
    return [said[start : start + size] for start in range(0, len(said), size)]


@pytest.mark.long
def test_answers_are_those_of_processes_of_their_own(tmp_path: Path) -> None:
    table = tmp_path / "rows.csv"
    x, _ = training_set()
    lines = [",".join(NAMES), *(",".join(repr(float(v)) for v in row) for row in x[:20])]
    table.write_text("\n".join(lines) + "\n")
    models = []
    for train in TRAINERS if THOROUGH else TRAINERS[:1]:
        (tmp_path / train.__name__).mkdir()
        models.append(train(tmp_path / train.__name__))
    for model, expected in zip(models, said_alone(models, table), strict=True):
        compare(model, table, expected)


def compare(model: Path, table: Path, expected: list[list[Any]]) -> None:
    """Questions in a session, in the other order, and of one file are answered as they are alone."""
    assert {found[0] for found in expected} == {"found", "none"}
    with ts.session(model, table, declarations=DECLARED, time_limit=30) as session:
        asked = [facts(session.ask(question)) for question in QUESTIONS]
        again = [facts(session.ask(question)) for question in reversed(QUESTIONS)][::-1]
    names = [f"q{number}" for number in range(len(QUESTIONS))]
    text = file_of(dict(zip(names, QUESTIONS, strict=True)))
    answers = ts.check_text(text, models={"m": model}, data={"d": table}, time_limit=30)
    in_a_file = [facts(answers[name]) for name in names]
    for number, question in enumerate(QUESTIONS):
        for answers_here in (asked, again, in_a_file):
            assert answers_here[number] == expected[number], f"{model}: {question}"
