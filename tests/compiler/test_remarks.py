"""Remarks say what a pass changed: counted again from the sizes of modules, and from the trees in the library's own file."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest

from tests.corpus import boosted
from tests.questions import random_query
from treesens.binder.file import bind
from treesens.compiler.ir import Clauses, ExactlyOne, Linear, Module
from treesens.compiler.ir.rewrite import Substitution
from treesens.compiler.ir.text import parse_module
from treesens.compiler.lower import lower
from treesens.compiler.passes.base import Chain, PassResult, Relation
from treesens.compiler.passes.registry import PASSES
from treesens.compiler.passes.remarks import Remark, passed
from treesens.compiler.pipeline import Pipeline
from treesens.frontends.registry import load
from treesens.grammar.parsing.parser import read

SMALL = Path(__file__).parents[2] / "examples" / "small.sir"
ALL = "native,bounded,default,leaf-rows,kant"


def steps_of(module: Module, text: str) -> list[tuple[str, Module, PassResult]]:
    steps: list[tuple[str, Module, PassResult]] = []
    Pipeline.parse(text).run(module, after=lambda *step: steps.append(step))
    return steps


def counts(remarks: list[Remark], *reasons: str) -> Counter[str]:
    """The count at every place, of remarks with one of the reasons."""
    found: Counter[str] = Counter()
    for one in remarks:
        if one.reason in reasons or any(one.reason.startswith(f"{reason}:") for reason in reasons):
            found[one.place] += one.count
    return found


def content(module: Module) -> Module:
    """A module up to the order of ops of different kinds."""
    ops = tuple(sorted(module.ops, key=lambda op: type(op).__name__))
    return replace(module, ops=ops, provenance=())


FIXED = ("leaves fixed", "predicates fixed", "Booleans fixed")
MERGED = tuple(f"{kind} merged with others" for kind in ("leaves", "predicates", "Booleans"))


@pytest.mark.parametrize("seed", range(20))
def test_each_variable_that_is_gone_is_in_a_remark(seed: int) -> None:
    module = lower(random_query(np.random.default_rng(seed)))
    for name, before, result in steps_of(module, ALL):
        remarks = passed(before, result)
        assert counts(remarks, *FIXED, *MERGED).total() == before.variables - result.module.variables, name
        assert all(one.kind == "passed" and one.count >= 0 for one in remarks)
        if not remarks:
            assert content(result.module) == content(before), name
        missed = list(result.remarks())
        assert all(one.kind == "missed" and one.count > 0 and one.place for one in missed), name


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    rng = np.random.default_rng(5)
    rows = np.column_stack((rng.random(300), rng.integers(0, 2, 300), rng.random(300))).astype(np.float32)
    labels = (rows[:, 0] + 0.6 * rows[:, 1] + 0.2 * rng.random(300) > 0.9).astype(int)
    path = tmp_path_factory.mktemp("model") / "m.json"
    boosted(rows, labels, 6, names=["age", "sex", "hours"], seed=1).save_model(path)
    return path


def question(model: Path, text: str) -> Module:
    file = model.with_name("q.sens")
    file.write_text(f'model m from "{model}"\n{text}')
    (one,) = bind(read(file), file.parent, load_model=lambda place, _: load(place)).queries
    return lower(one.query)


def paths(
    tree: dict[str, Any], node: int = 0, path: tuple[tuple[int, float, bool], ...] = ()
) -> Iterator[tuple[Any, ...]]:
    """The path of each leaf in XGBoost's file: (feature, threshold, value < threshold) from the root on."""
    left, right = tree["left_children"][node], tree["right_children"][node]
    if left == -1:
        yield path
        return
    split = tree["split_indices"][node], tree["split_conditions"][node]
    yield from paths(tree, left, (*path, (*split, True)))
    yield from paths(tree, right, (*path, (*split, False)))


def trees_of(model: Path) -> list[list[tuple[Any, ...]]]:
    trees = json.loads(model.read_text())["learner"]["gradient_booster"]["model"]["trees"]
    return [list(paths(tree)) for tree in trees]


def test_leaves_without_the_varied_feature_are_equated_and_the_others_say_why(model: Path) -> None:
    module = question(model, "query q:\n  sensitive to hours gap 0.1\n")
    ((_, before, result),) = steps_of(module, "unaffected-leaves")
    depends = {
        f"tree {t}": sum(any(f == 2 for f, _, _ in path) for path in leaves) for t, leaves in enumerate(trees_of(model))
    }
    leaves = {f"tree {t}": len(leaves) for t, leaves in enumerate(trees_of(model))}
    assert 0 < sum(depends.values()) < sum(leaves.values())
    missed = [one for one in result.remarks() if "guards on feature hours may differ" in one.reason]
    assert missed == list(result.remarks())
    assert counts(missed, "leaves not equated") == Counter(depends)
    equated = counts(passed(before, result), "leaves equated with others")
    assert equated == Counter({tree: leaves[tree] - depends[tree] for tree in leaves})
    # The next pass merges the equal copies, and names the others.
    (_, (_, before, result)) = steps_of(module, "unaffected-leaves,share-copies")
    remarks = passed(before, result)
    assert counts(remarks, "leaves merged with others") == equated
    assert counts(list(result.remarks()), "leaves not shared") == Counter(depends)
    assert set(counts(list(result.remarks()), "predicates not shared")) == {"feature hours"}


def test_leaves_that_the_domain_excludes_are_named_by_their_tree(model: Path) -> None:
    module = question(model, "feature age: real in [0, 0.5]\nquery q:\n  find a such that margin(a) >= 0\n")
    excluded = {}
    for t, leaves in enumerate(trees_of(model)):
        reached = [path for path in leaves if not any(f == 0 and not below and bound > 0.5 for f, bound, below in path)]
        # The last leaf of a tree is always reached, so it is fixed, too.
        excluded[f"tree {t}"] = len(leaves) - len(reached) + (len(reached) == 1)
    steps = steps_of(module, "merge-guards,drop-dead")
    fixed: Counter[str] = Counter()
    for _, before, result in steps:
        fixed += counts(passed(before, result), "leaves fixed")
    assert sum(excluded.values()) > 0
    assert fixed == Counter(excluded)
    age = counts(passed(*steps[0][1:]), "predicates fixed")["feature age"]
    above = {bound for leaves in trees_of(model) for path in leaves for f, bound, _ in path if f == 0 and bound > 0.5}
    assert age >= len(above) > 0


def test_rows_are_named_with_the_reason() -> None:
    module = parse_module(SMALL.read_text())
    row = next(iter(module.ops_of(Linear)))
    (unit, *_) = module.blocks_of(ExactlyOne)
    order = module.blocks[0]
    module = module.with_ops(
        replace(row, name="conditional", when=int(order.variables[0]) * 2),
        replace(row, name="implied", implied=True),
        replace(
            row, name="predicates", variables=order.variables, coefficients=np.ones(len(order.variables), np.int64)
        ),
        replace(row, name="always", variables=unit.variables[:1], coefficients=np.ones(1, np.int64), bound=0),
        replace(row, name="opposed", variables=_other_copy(module, row), coefficients=-row.coefficients),
    )
    ((_, _, result),) = steps_of(module, "aff-reduce")
    why = {one.place.removeprefix("row "): one.reason.rpartition(": ")[2] for one in result.remarks()}
    assert why.pop("conditional") == "it is conditional"
    assert why.pop("implied") == "other rows imply it"
    assert why.pop("predicates") == "it has terms other than leaves, or none"
    assert row.name not in why
    assert "opposed" not in why
    assert set(why.values()) == {"no row of another point has the opposite coefficients"}
    ((_, before, result),) = steps_of(module, "score-bounds")
    assert counts(passed(before, result), "terms of a dropped row")["row always"] == 1
    undecided = {one.place: one.reason for one in result.remarks()}
    assert "row always" not in undecided
    assert undecided["row conditional"].endswith("because it is conditional")


def _other_copy(module: Module, row: Linear) -> Any:
    """The variables of the row's leaves for the other point."""
    first, second = module.blocks_of(ExactlyOne)
    assert np.array_equal(first.leaf, second.leaf)
    place = {int(v): i for i, v in enumerate(first.variables)}
    return second.variables[[place[int(v)] for v in row.variables]]


def test_a_pass_of_the_engine_says_why_it_declines() -> None:
    module = parse_module(SMALL.read_text())
    ((_, _, declined),) = steps_of(module, "bound-fixing")
    assert declined.statistics == {"declined": 1}
    (remark,) = declined.remarks()
    assert remark.reason.startswith("variables not bounded: the engine declines the module: ")
    started = steps_of(module, "native,warm-start,bound-fixing")[-1][2]
    (remark,) = started.remarks()
    assert remark.reason == "variables not bounded: a start is known, and one solution is enough"


def test_guards_without_order_are_those_of_missing_values(model: Path) -> None:
    asked = "query q:\n  sensitive to sex gap 0.1\n"
    ((_, _, result),) = steps_of(question(model, asked), "leaf-rows")
    assert list(result.remarks()) == []
    document = json.loads(model.read_text())
    for tree in document["learner"]["gradient_booster"]["model"]["trees"]:
        tree["default_left"] = [i % 2 for i in range(len(tree["default_left"]))]
    other = model.with_name("other.json")
    other.write_text(json.dumps(document))
    ((_, _, result),) = steps_of(question(other, f"feature hours: real or missing\n{asked}"), "leaf-rows")
    (remark,) = result.remarks()
    assert remark.place == "feature hours"
    assert remark.reason.startswith("predicates without order: ")
    guards = {bound for leaves in trees_of(model) for path in leaves for f, bound, _ in path if f == 2}
    assert (
        0 < remark.count <= 2 * len(guards)
    )  # a guard of one threshold for each side of missing values, at two points


@dataclass(frozen=True)
class Plain:
    """A pass of a plug-in that knows nothing of remarks."""

    name: ClassVar[str] = "plain"
    relation: ClassVar[Relation] = Relation.RELAXATION

    def run(self, module: Module) -> PassResult:
        return PassResult(replace(module, ops=tuple(op for op in module.ops if not isinstance(op, Clauses))))


@dataclass(frozen=True)
class Expensive(Plain):
    def run(self, module: Module) -> PassResult:
        return replace(super().run(module), remarks=self._never)

    def _never(self) -> list[Remark]:
        raise AssertionError("remarks are made only if they are shown")


def test_a_pass_without_remarks_has_those_of_its_changes() -> None:
    module = parse_module(SMALL.read_text())
    clauses = sum(len(op.indptr) - 1 for op in module.ops_of(Clauses))
    (remark,) = passed(module, Plain().run(module))
    assert remark == Remark("passed", "rows dropped", clauses, "op clause")
    assert list(Plain().run(module).remarks()) == []


def test_a_pass_that_fixes_all_variables_names_them_all() -> None:
    """The first substitution of drop-dead leaves no variable for the second one."""
    module = parse_module(SMALL.read_text())
    target = np.full(module.variables, -2, np.int32)
    gone = replace(module, variables=0, blocks=(), ops=(), objective=None)
    steps = (Substitution(target, 0), Substitution(np.zeros(0, np.int32), 0))
    assert counts(passed(module, PassResult(gone, Chain(steps))), *FIXED).total() == module.variables


def test_runs_that_show_no_remarks_make_none() -> None:
    Pipeline((Expensive(),), "expensive").run(parse_module(SMALL.read_text()))


def test_every_pass_takes_part() -> None:
    assert {name for name, _, _ in steps_of(parse_module(SMALL.read_text()), ALL)} | {"aff-reduce"} == set(
        PASSES.builtin
    )
