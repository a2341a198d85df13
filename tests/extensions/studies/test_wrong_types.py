"""Every option of every study, given what it cannot be: an error that says so, or an answer; no exception of Python's own."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pandas as pd
import pytest

import treesens as ts
from tests.extensions.studies.whole_numbers import xgboost_of_whole_numbers
from treesens.builtin import STUDIES
from treesens.extensions.studies.registry import CALLS, study_of
from treesens.extensions.studies.study import Door, declared

WRONG: dict[str, Any] = {
    "a whole number": 1,
    "a fraction": 0.5,
    "a text": "surely none",
    "bytes": b"f0",
    "nothing in a list": [],
    "a number in a list": [7],
    "lists in a list": [["f0", 3]],
    "a mapping": {"f0": object()},
    "an object": object(),
    "an array": np.array([[1.5, 2.0]]),
    "yes": True,
    "a number of numpy": np.int64(1),
    "no number": float("nan"),
    "an infinite number": float("inf"),
    "ends of which one is infinite": (0, float("inf")),
    "a mapping to infinite ends": {"f0": (0, float("inf"))},
    "a number past every float": 10**400,
}
CALL_OF = {study: call for call, study in CALLS.items()}
OPTIONS = [
    (name, one.field)
    for name in STUDIES.names()
    if hasattr(ts, CALL_OF.get(name, name))
    for one in declared(study_of(name).options, Door.PYTHON)
]


@pytest.fixture(scope="module")
def case() -> tuple[Any, pd.DataFrame]:
    model, frame = xgboost_of_whole_numbers()
    return model, frame.head(30)


def error_of(call: Any, *given: Any, **arguments: Any) -> ts.errors.TreesensError | None:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            call(*given, **arguments)
    except ts.errors.TreesensError as error:
        return error
    return None


@pytest.mark.sampled
@pytest.mark.parametrize(("study", "option"), OPTIONS)
def test_what_an_option_cannot_be_is_an_error_of_its_user(
    study: str, option: str, case: Any, tmp_path: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)  # a text may be the name of a folder for certificates
    model, frame = case
    given = [model, model] if study == "diff" else [] if study == "learn" else [model]
    call = getattr(ts, CALL_OF.get(study, study))
    for words, value in WRONG.items():
        arguments: dict[str, Any] = {} if study == "learn" else {"time_limit": 0.5}
        if study == "repair":
            arguments |= {"out": str(tmp_path / "repaired.json"), "vary": "f0", "gap": 0.1}
        said = error_of(call, *given, frame, **{**arguments, option: value})
        assert said is None or not isinstance(said, ts.errors.InternalError), f"{option} = {words}: {said}"
