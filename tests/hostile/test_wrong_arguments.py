"""Every argument of the calls that ask, given what it cannot be: an error that says so, or an answer, and no error of ours."""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import treesens as ts
from tests.extensions.studies.test_wrong_types import WRONG
from tests.extensions.studies.whole_numbers import xgboost_of_whole_numbers

TEXT = 'model m from "m"\nquery q: sensitive m to {f0} gap 0.1\n'
OPTIONS = ("regions", "certificates", "near", "hints", "library_predict", "answer")
"""Options that have no argument of their own; most of them are refused by their names."""


@pytest.fixture(autouse=True)
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A text may be the name of a folder, for certificates or reports."""
    monkeypatch.chdir(tmp_path)


@pytest.fixture(scope="module")
def model() -> Any:
    return xgboost_of_whole_numbers()[0]


def told(call: Callable[..., Any], *given: Any, **arguments: Any) -> str:
    """What was said; whatever is no error of treesens is raised, and the places of a call that takes fewer are none."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            call(*given, **arguments)
    except ts.errors.InternalError as error:
        return f"internal: {error}"
    except ts.errors.TreesensError as error:
        return str(error)
    return "answered"


def parameters(call: Callable[..., Any]) -> list[str]:
    known = inspect.signature(call).parameters.values()
    return [one.name for one in known if one.kind in (one.POSITIONAL_OR_KEYWORD, one.KEYWORD_ONLY)]


@pytest.mark.parametrize("words", WRONG)
def test_sensitivity(model: Any, words: str) -> None:
    for name in parameters(ts.sensitivity):
        arguments = {"model": model, "vary": "f0", "gap": 0.1, "time_limit": 1.0, name: WRONG[words]}
        assert "internal" not in told(ts.sensitivity, **arguments), name


@pytest.mark.parametrize("words", WRONG)
def test_questions(model: Any, words: str) -> None:
    for name in (*parameters(ts.check_text), *OPTIONS):
        arguments = {"text": TEXT, "models": {"m": model}, "time_limit": 1.0, name: WRONG[words]}
        assert "internal" not in told(ts.check_text, **arguments), name


@pytest.mark.parametrize("words", WRONG)
def test_files_models_and_sessions(model: Any, words: str) -> None:
    value = WRONG[words]
    for call in (ts.check, ts.load, ts.info, ts.session, ts.explain, ts.query.parse):
        assert "internal" not in told(call, value), call
    assert "internal" not in told(ts.session, model, value)
    assert "internal" not in told(ts.session(model).ask, value)


@pytest.mark.parametrize("words", WRONG)
def test_reports_and_budgets(model: Any, words: str, tmp_path: Path) -> None:
    rows, value = xgboost_of_whole_numbers()[1].head(20), WRONG[words]
    found = ts.audit(model, rows, vary="f0", gap=0.1, time_limit=1.0)
    for name in ("path", "pdf", "purpose", "date"):
        assert "internal" not in told(found.report, **{"path": tmp_path / f"{name}.html", name: value}), name
    for name in parameters(ts.SwingBudget):
        assert "internal" not in told(ts.SwingBudget, **{"vary": "f0", "swing": 0.5, name: value}), name


def test_objects_of_questions() -> None:
    for name, make in inspect.getmembers(ts.query, callable):
        if name.startswith("_") or inspect.isclass(make):
            continue
        known = inspect.signature(make).parameters.values()
        if any(one.kind is one.KEYWORD_ONLY and one.default is one.empty for one in known):
            continue
        least = sum(one.default is one.empty for one in known if one.kind is one.POSITIONAL_OR_KEYWORD)
        most = sum(one.kind is one.POSITIONAL_OR_KEYWORD for one in known)
        for words, value in WRONG.items():
            for count in range(least, most + 1):
                assert "internal" not in told(make, *[value] * count), (name, words)
