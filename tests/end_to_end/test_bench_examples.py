"""The properties of examples/bench on published models: each is answered as its comment says, and compiles at once."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.counted import calls_of
from tests.data.settings import BENCH, needs_bench
from treesens.binder.file import ResolvedFile, bind, load_model_file, load_table_file
from treesens.compiler.pipeline import compile_query
from treesens.compiler.result import Verdict
from treesens.grammar.parsing.parser import parse, read
from treesens.solve.options import Options
from treesens.solve.question import answer_question

EXAMPLES = Path(__file__).resolve().parents[2] / "examples" / "bench"

FOUND = {
    "disagreement": {"disagree": None},
    "fairness": {"alike": None},
    "monotonicity": {"glucose": None},
    "recourse": {"recourse": 0.2074892},
    "relations": {"mixed": None},
    "robustness": {"one_value": None, "in_total": None, "as_the_crow_flies": None},
    "swing": {"swing": 3.6900704},
    "targeted": {"second_to_third": 0.3055556, "second_to_first": 0.0, "closest_pair": 0.0},
}
"""Questions that have an answer, with the best value of the objective."""
NONE = {"robustness": {"in_every_value"}}

TEN = """
  find a, b in income such that
    a = b except {sex, race, hours-per-week}
    prob(a) >= 0.6
    prob(b) <= 0.4
    a.age >= 0.25 or a.`capital-gain` >= 0.1
    abs(a.`hours-per-week` - b.`hours-per-week`) <= 0.2
    a.age + a.`education-num` + b.`hours-per-week` <= 2
    distance(a, row 17 of people, l1) <= 1.5
    distance(b, row 17 of people, linf) <= 0.6
    a.sex = 1 implies a.race in [0.2, 1]
    a, b avoid cavities(people, width = 2, limit = 100)
""".replace("hours-per-week}", "`hours-per-week`}")


def example(name: str) -> ResolvedFile:
    path = EXAMPLES / f"{name}.sens"

    def moved(place: Path) -> Path:
        return BENCH / place.resolve().relative_to(EXAMPLES.parents[1] / "build" / "bench")

    return bind(
        read(path),
        path.parent,
        load_model=lambda place, form: load_model_file(moved(place), form),
        load_table=lambda place, label, rows: load_table_file(moved(place), label, rows),
    )


@needs_bench
def test_every_example_is_expected_here() -> None:
    assert {path.stem for path in EXAMPLES.glob("*.sens")} == set(FOUND)


@needs_bench
@pytest.mark.parametrize("name", sorted(FOUND))
def test_a_property_of_a_published_model(name: str) -> None:
    asked = 0
    for query in example(name).queries:
        asked += 1
        result = answer_question(query, Options(time_limit=60))
        wanted = Verdict.NONE if query.name in NONE.get(name, set()) else Verdict.FOUND
        assert result.verdict is wanted, result.reason
        if wanted is Verdict.NONE:
            assert result.proof == "exact"
            continue
        assert result.witness is not None, "a witness has passed exact replay and the library's arithmetic"
        best = FOUND[name][query.name]
        if best is not None:
            assert result.objective is not None
            assert result.objective.bound is not None
            assert result.objective.value == pytest.approx(best, abs=1e-4)
            assert result.objective.bound == pytest.approx(best, abs=2e-4)
    assert asked == len(FOUND[name]) + len(NONE.get(name, ()))


@needs_bench
def test_ten_mixed_constraints_compile_with_few_calls() -> None:
    """Lowering and passes; models, tables and what is learnt from them are read once per file (a first question reads them)."""
    text = (
        f'model income from "{BENCH}/models/adult_t300_d5.json"\n'
        f'data people from "{BENCH}/data/adult/train.csv" label "label"\n'
        f"domain from people\nquery first:{TEN}query again:{TEN}"
    )
    file = parse(text, "ten.sens")
    found = bind(file, Path())
    assert len(found.queries[1].query.constraints) >= 10
    assert calls_of(lambda: compile_query(found.queries[1].query, "default")) < 1_000_000
