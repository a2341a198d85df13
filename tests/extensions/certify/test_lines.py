"""Sums of probabilities by what follows from them for scores: every input of a sum satisfies it, and proofs rest on it."""

from __future__ import annotations

import itertools
import json
from pathlib import Path

import numpy as np
import pytest
import xgboost

from tests.corpus import boosted
from tests.extensions.certify.made import query_of
from treesens.binder.file import bind
from treesens.compiler.base.budget import Budget
from treesens.compiler.query.evaluate import holds, inputs_of
from treesens.compiler.query.probabilities import sums_in
from treesens.compiler.query.query import AllOf, AnyOf, Constraint, ProbabilitySum, Query
from treesens.compiler.result import Verdict
from treesens.extensions.certify.answers import certified_none
from treesens.extensions.certify.cases import with_lines
from treesens.extensions.certify.command import run_checker
from treesens.grammar.parsing.parser import parse
from treesens.solve.methods.probability_rows import lines_of
from treesens.solve.options import Options
from treesens.solve.question import answer, answer_question

HEAD = 'model m from "m.json"\nfeature f0: real in [0, 2]\nfeature f1: real in [0, 2]\nquery q: find a in m such that '


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model of three classes."""
    made = tmp_path_factory.mktemp("lines")
    x = np.random.default_rng(3).integers(0, 5, (80, 2)).astype(np.float32) / 2
    y = (x.sum(axis=1) > 1.5).astype(int) + (x[:, 0] > x[:, 1])
    boosted(x, y, 3, 2, path=made / "m.json", num_class=3, eta=0.6)
    return made


def inputs() -> np.ndarray:
    return np.array(list(itertools.product([i / 4 for i in range(9)], repeat=2)), np.float32)


def probabilities(folder: Path) -> np.ndarray:
    return xgboost.Booster(model_file=folder / "m.json").predict(xgboost.DMatrix(inputs()))


def lines_in(query: Query) -> list[tuple[ProbabilitySum, Constraint]]:
    return lines_of(answer, query, Options(), Budget.of(20))


def without_sums(constraint: Constraint) -> Constraint:
    if isinstance(constraint, AllOf | AnyOf):
        return type(constraint)(tuple(without_sums(part) for part in constraint.parts))
    return AllOf(()) if isinstance(constraint, ProbabilitySum) else constraint


def texts(folder: Path) -> dict[str, str]:
    """About a probability of class 0 that no input has: in the narrowest gap between two that inputs have, or in the widest."""
    seen = np.unique(probabilities(folder)[:, 0].astype(float))
    gaps = np.diff(seen)
    near, far = (
        round(float(seen[at : at + 2].mean()), 6) for at in (np.where(gaps > 1e-3, gaps, 1).argmin(), gaps.argmax())
    )
    return {
        "an equality": f"prob(a, 0) = {near}",
        "a sum": f"prob(a, 1) + prob(a, 2) = {1 - far:.6f}",
        "alternatives": f"(prob(a, 0) = {far} or prob(a, 1) + prob(a, 2) = {1 - far:.6f})",
    }


@pytest.mark.parametrize("name", ["an equality", "a sum", "alternatives"])
def test_a_probability_that_no_input_has_is_proved_in_cases(name: str, folder: Path, tmp_path: Path) -> None:
    (asked,) = bind(parse(f"{HEAD}{texts(folder)[name]}\n", "<test>"), folder).queries
    assert [one.reason for one in certified_none(asked.query, tmp_path / "without", budget=Budget.of(20))] != [""]
    result = answer_question(asked, Options(certificates=tmp_path / "out", require_certificate=True))
    assert result.verdict is Verdict.NONE, result
    (path,) = (tmp_path / "out").glob("*.manifest.json")
    assert run_checker([path], [folder / "m.json"], {}) == 0
    (claim,) = json.loads(path.read_text())["claims"]
    assert claim["kind"] == "cases"


@pytest.mark.parametrize("name", ["an equality", "a sum", "alternatives"])
def test_every_input_of_a_sum_satisfies_its_lines(name: str, folder: Path) -> None:
    """By the probabilities of XGBoost: of bounds near each input's own, on the side that it satisfies."""
    query = query_of(f"{HEAD}{texts(folder)[name]}\n", folder)
    given, found = inputs(), lines_in(query)
    known, checked = probabilities(folder).astype(float), 0
    for row, line in found:
        assert row in list(sums_in(query.constraints))
        for x, p in zip(given, known, strict=True):
            share = by_library(row, p)
            if share > 1e-6:
                checked += 1
                assert holds(line, inputs_of(query, (tuple(map(float, x)),)))
    assert checked
    more = with_lines(query, found)
    assert len(list(sums_in(more.constraints))) == len(list(sums_in(query.constraints)))
    for text, wanted in {
        "prob(a, 0) >= 0.4": known[:, 0] > 0.4 + 1e-6,
        "prob(a, 0) + prob(a, 1) <= 0.6": known[:, 2] > 0.4 + 1e-6,
    }.items():
        one = query_of(f"{HEAD}{text}\n", folder)
        rows = [without_sums(c) for c in with_lines(one, ()).constraints]
        assert wanted.any()
        for x in given[wanted]:
            assert all(holds(c, inputs_of(one, (tuple(map(float, x)),))) for c in rows)


def by_library(row: ProbabilitySum, p: np.ndarray) -> float:
    """By how much an input with these probabilities of classes reaches the bound."""
    total = 0.0
    for term in row.terms:
        (own,) = {t.output for e in term.exponents for t in e.terms if t.coefficient < 0}
        total += float(term.factor) * float(p[own])
    return total - float(row.bound)


def test_lines_of_another_sum_are_not_used(folder: Path) -> None:
    query = query_of(f"{HEAD}{texts(folder)['an equality']}\n", folder)
    found = lines_in(query)
    other = query_of(f"{HEAD}prob(a, 0) >= 0.4\n", folder)
    assert with_lines(other, found).constraints == with_lines(other, ()).constraints
    assert with_lines(query, found).constraints != with_lines(query, ()).constraints
