"""A bounded, deterministic slice of the oracle; `make fuzz` draws other seeds."""

from __future__ import annotations

import json

import numpy as np
import pytest

from tests.oracle.adding import main as add_tables
from tests.oracle.asking import draw_options, run_case
from tests.oracle.cases import draw_case
from tests.oracle.language import text_of
from tests.oracle.run import ELSEWHERE, main
from tests.oracle.worker import asked_of

SEEDS = range(60)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.sampled
def test_answers_are_those_of_brute_force(seed: int) -> None:
    case = draw_case(seed)
    options = draw_options(np.random.default_rng([7, seed]), 0.12)
    questions = case.questions[: asked_of(options, len(case.questions))]
    found = [f for judged in run_case(case, options, questions) for f in judged.findings if f.kind not in ELSEWHERE]
    again = f"python -m tests.oracle --seed {seed} --cases 1"
    assert not found, (
        f"{found[0].kind}: {found[0].detail}\n{options}\n{case.header()}{text_of(found[0].question)}\n{again}"
    )


def test_the_runner_counts_adds_and_ends_in_0(tmp_path, capsys) -> None:
    assert main(["--seed", str(SEEDS[0]), "--cases", "1", "--output", str(tmp_path)]) == 0
    assert "1 cases" in capsys.readouterr().out
    assert "| construct |" in (tmp_path / "coverage.md").read_text()
    # Tables of several runs are added.
    one, two = tmp_path / "coverage.json", tmp_path / "sum.json"
    add_tables([str(one), str(one), "-o", str(two)])
    seen = [json.loads(p.read_text())["compared"] for p in (one, two)]
    assert seen[0]
    assert seen[1] == [[*key, 2 * n] for *key, n in seen[0]]
    assert "questions and" in capsys.readouterr().out
