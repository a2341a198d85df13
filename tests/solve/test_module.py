"""A `.sir` file as a question: the verdicts, values and bounds of small modules are those of brute force."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from fractions import Fraction
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest

import treesens as ts
from tests.command import run_command
from tests.questions import random_query
from treesens.backends.base import Artifact, Backend, Capabilities, Limits, OnIncumbent, Proof, RawOutcome, Termination
from treesens.compiler.ir import Clauses, Module
from treesens.compiler.ir.evaluate import brute_force, objective_value, satisfies
from treesens.compiler.ir.text import decode_integers, digest, parse_module, print_module
from treesens.compiler.lower import lower
from treesens.compiler.passes.base import PassResult, Relation
from treesens.compiler.pipeline import Pipeline
from treesens.compiler.result import Proof as Evidence
from treesens.compiler.result import Result, Verdict
from treesens.errors import IRError
from treesens.solve.conclude import conclude_module
from treesens.solve.module import answer_module
from treesens.solve.options import Options
from treesens.values.verify import Rejected

SMALL = Path(__file__).parents[2] / "examples" / "small.sir"
HEAD = 'sir 1\nmodule "m"\nfeature "age" 3\npoint "a"\nvariables 2\nblock order feature=0 points=0 cells=0..2 variables=0,1\n'
GOAL = "maximize variables=0,1 coefficients=3,-5 constant=1 shift=1 surrogate=0\n"


def answered(module: Module, **options: Any) -> Result:
    made = Options(**{"time_limit": 20.0, **options})
    return answer_module(module, made, made.budget())


def in_units(module: Module, value: float) -> int:
    """A value of the objective as a number of its units; it must be a whole one."""
    assert module.objective is not None
    found = Fraction(value) * 2**module.objective.shift
    assert found.denominator == 1
    return int(found)


# --- the text -------------------------------------------------------------------------------------------------------------


def test_the_version_line_is_the_first_of_both_forms_and_no_part_of_the_digest() -> None:
    module = parse_module(SMALL.read_text())
    assert print_module(module).startswith("sir 1\n")
    assert print_module(module, full=True) == SMALL.read_text()
    # The digest from before the version line.
    assert digest(module) == "5d5a93a9ae9379fccea6e06da79bfe3656ec80ae22178724b2d8ea8e8b60fb0a"


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ('module "m"\n', "`sir 1`"),
        ("", "`sir 1`"),
        ("sir 0\n", "`sir 1`"),
        ("sir one\n", "`sir 1`"),
        ('\nsir 1\nmodule "m"\n', "`sir 1`"),
        ('sir 2\nmodule "m"\n', r"sir 2 is newer than this treesens reads \(1\)"),
        ('sir 1\nsir 1\nmodule "m"\n', "unknown line"),
    ],
)
def test_other_first_lines_are_refused_with_the_line_and_a_remedy(text: str, words: str) -> None:
    with pytest.raises(IRError, match=words) as raised:
        ts.ir.parse(text)
    assert raised.value.place.startswith("line ")
    assert raised.value.remedy or "unknown line" in words


def test_the_python_functions_are_inverses_and_check_the_rules() -> None:
    module = ts.ir.parse(SMALL.read_text())
    assert ts.ir.print(module) == SMALL.read_text()
    assert ts.ir.parse(ts.ir.print(module)) == module
    with pytest.raises(IRError, match="R1"):
        ts.ir.parse(HEAD + "op const literals=4\n")


# --- answers --------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("backend", ["auto", "native", "z3", "cpsat"])
@pytest.mark.parametrize("seed", range(300, 316))
@pytest.mark.sampled
def test_random_modules_have_the_answers_of_brute_force(seed: int, backend: str) -> None:
    module = lower(random_query(np.random.default_rng(seed)))
    truth = brute_force(module)
    result = answered(module, backend=backend)
    assert result.verdict is (Verdict.FOUND if truth.solutions else Verdict.NONE)
    if result.solution is None:
        assert result.proof is Evidence.EXACT
        return
    assert satisfies(module, result.solution.assignment[None, :])[0]
    assert (result.objective is not None) == module.optimises
    if result.objective is not None:
        assert module.objective is not None
        assert in_units(module, result.objective.value) == truth.objective
        assert result.objective.bound is not None
        assert (
            result.objective.value
            <= result.objective.bound
            <= result.objective.value + 1e-5 * abs(result.objective.value)
        )
        assert objective_value(module.objective, result.solution.assignment) == truth.objective


def test_values_and_bounds_include_the_constant_and_the_shift() -> None:
    # Cells 0, 1, 2 set the predicates to 11, 01, 00: values (3 - 5 + 1) / 2, (-5 + 1) / 2 and 1 / 2.
    result = answered(ts.ir.parse(HEAD + GOAL))
    assert result.objective is not None
    assert (result.objective.value, result.objective.bound) == (0.5, 0.5)
    less = answered(ts.ir.parse(HEAD + GOAL + "op const literals=2\n"))
    assert less.objective is not None
    assert (less.objective.value, less.objective.bound) == (-0.5, -0.5)


def test_a_surrogate_has_no_value_and_no_bound() -> None:
    result = answered(ts.ir.parse(HEAD + GOAL.replace("surrogate=0", "surrogate=1")))
    assert result.verdict is Verdict.FOUND
    assert result.objective is None
    assert result.solution is not None
    assert result.solution.value is None


def test_a_value_beyond_doubles_is_left_out() -> None:
    huge = GOAL.replace("3,-5", f"big:{10**400},-5")
    result = answered(ts.ir.parse(HEAD + huge + "op const literals=0\n"), backend="z3", pipeline="kant")
    assert result.verdict is Verdict.FOUND
    assert result.solution is not None
    assert result.solution.value == 10**400 - 5 + 1
    assert result.objective is None
    assert "beyond the range of doubles" in result.notes[0]


# --- facts that prove nothing -----------------------------------------------------------------------------------------------


class Says(Backend):
    """A backend that reports what a test gives it."""

    name: ClassVar[str] = "says"
    capabilities: ClassVar[Capabilities] = Capabilities(proof=Proof.EXACT)

    def available(self) -> str | None:
        return None

    def emit(self, module: Module, *, precision: int = 0) -> Artifact:
        return Artifact("sir", "", module.variables, has_objective=True)

    def solve(self, artifact: Artifact, limits: Limits, on_incumbent: OnIncumbent | None = None) -> RawOutcome:
        raise NotImplementedError


@dataclass(frozen=True)
class Changes:
    """A pass that adds a row, or drops all rows, and declares it."""

    name: ClassVar[str] = "changes"
    relation: Relation

    def run(self, module: Module) -> PassResult:
        if self.relation is Relation.RELAXATION:
            return PassResult(replace(module, ops=()))
        row = Clauses(np.array([0, 1], np.int64), np.array([2], np.int32))  # the cell is at most 1
        return PassResult(module.with_ops(row))


def concluded(module: Module, relation: Relation, outcome: RawOutcome, **artifact: bool) -> Any:
    compiled = Pipeline((Changes(relation),), "changes").run(module)  # type: ignore[arg-type]
    return conclude_module(compiled, Says(), replace(Says().emit(module), **artifact), outcome)


POINT = np.array([False, True])


def test_a_point_that_violates_the_source_module_is_rejected_by_name() -> None:
    module = ts.ir.parse(HEAD + GOAL + "op const literals=0\n")
    found = concluded(module, Relation.EQUIVALENT, RawOutcome(Termination.OPTIMAL, POINT, 1.0))
    assert isinstance(found, Rejected)
    assert "op 0 (Facts)" in found.reason
    broken = concluded(module, Relation.EQUIVALENT, RawOutcome(Termination.OPTIMAL, np.array([True, False]), 1.0))
    assert isinstance(broken, Rejected)
    assert "block 0 (Order)" in broken.reason


def test_a_relaxation_finds_no_point_and_a_restriction_proves_nothing() -> None:
    module = ts.ir.parse(HEAD + GOAL)
    point, nothing = RawOutcome(Termination.OPTIMAL, POINT, -2.0), RawOutcome(Termination.INFEASIBLE)
    assert concluded(module, Relation.RELAXATION, point) is None
    assert concluded(module, Relation.RELAXATION, nothing).verdict is Verdict.NONE
    assert concluded(module, Relation.RESTRICTION, nothing) is None
    assert concluded(module, Relation.EQUIVALENT, nothing, restricted=True) is None
    # The best value is 0.5: the bound -2 of the restricted module is none of the module's.
    for found in (
        concluded(module, Relation.RESTRICTION, point),
        concluded(module, Relation.EQUIVALENT, point, restricted=True),
    ):
        assert found.verdict is Verdict.FOUND
        assert found.objective.value == -2.0
        assert found.objective.bound >= 0.5


# --- the command ----------------------------------------------------------------------------------------------------------


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "m.sir").write_text(HEAD + GOAL + "op const literals=2\n")
    (tmp_path / "none.sir").write_text(HEAD + "op const literals=0,3\n")
    return tmp_path


def test_check_prints_a_record_that_can_be_evaluated(folder: Path) -> None:
    done = run_command(folder, "check", "m.sir", "--json")
    assert done.returncode == 0, done.stderr
    (record,) = json.loads(done.stdout)["results"]
    module = ts.ir.parse((folder / "m.sir").read_text())
    assignment = np.zeros(module.variables, bool)
    assignment[decode_integers(record["assignment"], np.int32)] = True
    assert satisfies(module, assignment[None, :])[0]
    assert record["cells"] == {"a": {"age": 0}}
    assert (record["query"], record["verdict"], record["value"], record["bound"]) == ("m", "found", -0.5, -0.5)
    assert record["objective"]["status"] == "optimal"
    assert record["replay"] is None
    assert "no model" in record["no_replay"]
    assert record["sha256"] == digest(module)
    assert record["command"] == "treesens check m.sir --json"
    assert record["attempts"][0]["backend"] == "native"


def test_check_shows_cells_and_the_missing_model(folder: Path) -> None:
    done = run_command(folder, "check", "m.sir", "none.sir")
    assert done.returncode == 0, done.stderr
    first, second = done.stdout.split("\n\n")[:2]
    assert first.startswith("m: found\n")
    assert "maximize objective: -0.5 (optimal)" in first
    assert "age" in first
    assert second.startswith("m: none\n")
    assert "exact proof by" in second
    assert done.stdout.count("no model: the answer is about the module alone") == 2


def test_an_open_answer_exits_with_5_and_a_damaged_module_with_2(folder: Path) -> None:
    (folder / "rows.sir").write_text(HEAD + "op equal left=0 right=3\n")  # the engine takes merged copies alone
    assert run_command(folder, "check", "rows.sir", "-b", "native", "-p", "kant").returncode == 5
    assert run_command(folder, "check", "rows.sir", "-q").returncode == 0
    (folder / "bad.sir").write_text(HEAD + "op const literals=9\n")
    done = run_command(folder, "check", "bad.sir")
    assert done.returncode == 2
    assert "R1" in done.stderr


def test_a_module_is_recognised_by_its_first_line(folder: Path) -> None:
    (folder / "plain.txt").write_text((folder / "m.sir").read_text())
    assert run_command(folder, "check", "plain.txt", "-q").returncode == 0
    (folder / "empty.sir").write_text("")
    assert "`sir 1`" in run_command(folder, "check", "empty.sir").stderr


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        (("check", "m.sir", "--core"), "`--core`"),
        (("check", "m.sir", "--replay", "library"), "`--replay`"),
        (("check", "m.sir", "--confirm", "z3"), "`--confirm`"),
        (("check", "m.sir", "--certificate", "out"), "`--certificate`"),
        (("check", "m.sir", "-j", "2"), "`--jobs`"),
        (("check", "m.sir", "--trust-pickle"), "`--trust-pickle`"),
        (("check", "m.sir", "m"), "`m`"),
        (("emit", "m.sir", "--to", "lp", "-o", "m.lp", "--legend"), "`--legend`"),
        (("opt", "m.sir", "--trust-pickle"), "`--trust-pickle`"),
    ],
)
def test_options_that_need_a_model_are_refused_by_name(folder: Path, arguments: tuple[str, ...], named: str) -> None:
    done = run_command(folder, *arguments)
    assert done.returncode == 1
    assert named in done.stderr
    assert not (folder / "m.lp").exists()


def test_modules_and_questions_are_not_mixed(folder: Path) -> None:
    (folder / "q.sens").write_text("")
    done = run_command(folder, "check", "m.sir", "q.sens")
    assert done.returncode == 1
    assert "two commands" in done.stderr
