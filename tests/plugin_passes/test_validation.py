"""`--check-each` against enumeration: what it proves is right, and every wrong pass is caught where it matters."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import numpy as np
import pytest

from tests.plugin_passes.wrong import RIGHT, WRONG
from tests.questions import random_query
from treesens.compiler.base.arrays import BoolArray
from treesens.compiler.base.budget import Budget
from treesens.compiler.ir import Linear, Module
from treesens.compiler.ir.evaluate import assignments_of, objective_value, satisfies
from treesens.compiler.lower import lower
from treesens.compiler.passes.base import Relation, Rewrite
from treesens.compiler.passes.validation import Outcome
from treesens.compiler.pipeline import Pipeline, reproducers_in
from treesens.errors import PipelineError
from treesens.extensions.conformance.shapes import cases
from treesens.solve.validation import Validation, validate

SEEDS = range(16)
MATTERING = 2
"""Modules per pass on which it is wrong; the search for them ends there."""
MOST = 4_000


@cache
def modules() -> list[Module]:
    """Small modules: the kit's, with every kind of op, and random questions after lowering and after passes."""
    asked = [lower(random_query(np.random.default_rng(seed))) for seed in SEEDS]
    short = [Pipeline.parse("share-copies,drop-dead").run(module).module for module in asked[:8]]
    listed = [case.module for case in cases()] + asked + short
    return [module for module in listed if solutions(module) is not None]


@cache
def solutions(module: Module) -> BoolArray | None:
    """All solutions, bool[N, variables]; None for a module that is too large to enumerate."""
    found = [np.zeros((0, module.variables), bool)]
    try:
        found += [chunk[satisfies(module, chunk)] for chunk in assignments_of(module, MOST)]
    except Exception as error:
        if "combinations" in str(error) or "determined" in str(error):
            return None
        raise
    return np.concatenate(found)


def backends_see(module: Module) -> Module:
    """What a backend may solve: rows that are said to be implied may be left out."""
    kept = tuple(op for op in module.ops if not (isinstance(op, Linear) and op.implied))
    return Module(module.name, module.features, module.points, module.variables, module.blocks, kept, module.objective)


def best(module: Module, points: BoolArray) -> float | None:
    """The best value of the true objective, in its units; 0 without one."""
    if len(points) == 0:
        return None
    if not module.optimises:
        return 0.0
    assert module.objective is not None
    return max(objective_value(module.objective, point) for point in points) / 2**module.objective.shift


def is_wrong(rewrite: Rewrite) -> bool | None:
    """Whether a verdict or an optimal value may become wrong, by enumeration; None if that is not feasible."""
    before, after = rewrite.before, rewrite.result.module
    old, new, loose = solutions(before), solutions(after), solutions(backends_see(after))
    if old is None or new is None or loose is None:
        return None
    relation = rewrite.step.relation
    if relation is not Relation.RELAXATION:
        lifted = [rewrite.result.postsolve.recover(point) for point in loose]
        if not all(len(one) == before.variables and satisfies(before, one[None])[0] for one in lifted):
            return True
        if before.optimises and relation is not Relation.RESTRICTION and lifted:
            assert before.objective is not None
            for point, image in zip(loose, lifted, strict=True):
                mine = objective_value(before.objective, image) / 2**before.objective.shift
                if mine < (best(after, point[None]) or 0.0):
                    return True
    if relation is not Relation.RESTRICTION:
        if len(old) and not len(new):
            return True
        compared = before.optimises and relation is not Relation.RELAXATION
        if compared and len(old) and best(after, new) < best(before, old):  # type: ignore[operator]
            return True
    return False


def loses(rewrite: Rewrite) -> bool:
    """Whether an equivalence lost a solution or changed its value, or the given forward map yields a point that is no solution,
    by enumeration.
    """
    old, new = solutions(rewrite.before), solutions(rewrite.result.module)
    assert old is not None
    assert new is not None
    if (forward := rewrite.result.forward) is not None:
        return not all(satisfies(rewrite.result.module, forward.apply(point)[None])[0] for point in old)
    if rewrite.step.relation is not Relation.EQUIVALENT:
        return False
    kept: dict[bytes, float | None] = {}
    for point in new:
        kept[rewrite.result.postsolve.recover(point).tobytes()] = best(rewrite.result.module, point[None])
    valued = rewrite.before.optimises
    return any(
        point.tobytes() not in kept or (valued and kept[point.tobytes()] != best(rewrite.before, point[None]))
        for point in old
    )


REFUSED: list[str] = []
"""Errors of passes with invalid output, which the pipeline refuses before any verdict."""


def rewrites(text: str, folder: Path) -> list[Rewrite]:
    """The pass on every module that it changes, and on which it yields a valid module."""
    made = []
    REFUSED.clear()
    for module in modules():
        try:
            with reproducers_in(folder):
                (rewrite,) = Pipeline.parse(text).run(module).rewrites
        except PipelineError as error:
            if "the pass `wrong` of treesens-careless failed: the module breaks" not in error.message:
                raise
            REFUSED.append(error.message)
            continue
        if rewrite.result.module != module or rewrite.result.forward is not None or "postsolve" in text:
            made.append(rewrite)
    return made


def validated(rewrite: Rewrite, solver: str) -> Validation:
    return validate(rewrite, solver, Budget.of(60))


@pytest.mark.sampled
@pytest.mark.parametrize("case", WRONG)
def test_a_wrong_pass_is_caught_where_it_matters_and_proved_where_it_does_not(case: str, tmp_path: Path) -> None:
    caught = unharmed = 0
    for rewrite in rewrites(f"wrong{{case={case}}}", tmp_path):
        harm = is_wrong(rewrite)
        if harm is None or (caught >= MATTERING and (harm or unharmed >= MATTERING)):
            continue
        for solver in ("brute", "auto"):
            found = validated(rewrite, solver)
            where = (rewrite.before.name, solver, str(found))
            if harm:
                # A postsolve in code, or a map that must be guessed, may leave it open.
                assert found.outcome is not Outcome.PROVED, where
            if found.outcome is Outcome.COUNTEREXAMPLE:
                assert harm or loses(rewrite), where
                caught += 1
            elif not harm:
                unharmed += 1
    assert caught >= MATTERING or len(REFUSED) >= MATTERING, f"{caught} modules on which it matters"


@pytest.mark.sampled
@pytest.mark.parametrize("solver", ["brute", "cpsat", "z3"])
@pytest.mark.parametrize("case", [case for case in RIGHT if case != "guessed-map"])
def test_a_right_pass_is_proved(case: str, solver: str, tmp_path: Path) -> None:
    made = [one for one in rewrites(f"right{{case={case}}}", tmp_path) if is_wrong(one) is not None]
    made = made or [one for one in map(_kept, modules()) if is_wrong(one) is not None]
    for rewrite in made[:6]:
        assert is_wrong(rewrite) is False
        assert validated(rewrite, solver).outcome is Outcome.PROVED, str(validated(rewrite, solver))


def _kept(module: Module) -> Rewrite:
    (rewrite,) = Pipeline.parse("right{case=nothing}").run(module).rewrites
    return rewrite
