"""Errors and notes of calls are in the words of Python, and a call about nothing is refused."""

from __future__ import annotations

import inspect
import re
from typing import Any

import pytest

import treesens as ts
from tests.extensions.studies.grids import two_classes
from treesens.errors import UsageError
from treesens.extensions.studies.python.study import calls, signature_of
from treesens.python.wording import as_arguments


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (
            "pass --gap 0.1 (probability) or --margin 1 (raw score)",
            "pass gap=0.1 (probability) or margin=1 (raw score)",
        ),
        ("add --gap 0.1,0.2", "add gap=[0.1, 0.2]"),
        ("--vary names features", "`vary` names features"),
        ("leave out --shape", "leave out shape=True"),
        ("name one: --vary sex", 'name one: vary="sex"'),
        ("two classes: --classes A,B --margin M", 'two classes: classes=["A", "B"] margin=M'),
        ("write --typical 95%", 'write typical="95%"'),
        ("--measure cells, say", 'measure="cells", say'),
        ("leave it out of --keep-rows", "leave it out of `keep_rows`"),
        ("`treesens audit --decision` asks", "`treesens audit --decision` asks"),
        ("start one: ray start --head", "start one: ray start --head"),
        ("a -- b, x--vary", "a -- b, x--vary"),
    ],
)
def test_options_become_arguments(words: str, expected: str) -> None:
    assert as_arguments(words) == expected


MISTAKES: list[tuple[str, dict[str, Any]]] = [
    ("sets", {}),
    ("audit", {"typical_by": "isolation"}),
    ("audit", {"repair_gap": 0.1}),
    ("diff", {"vary": "p"}),
    ("repair", {}),
    ("count", {"gap": 0.1, "vary": "p", "measure": "no"}),
    ("groups", {"by": "p", "measure": "no"}),
]


@pytest.mark.parametrize(("name", "given"), MISTAKES, ids=[f"{name}-{'-'.join(given)}" for name, given in MISTAKES])
def test_no_message_of_a_call_names_an_option(name: str, given: dict[str, Any]) -> None:
    trained = two_classes("xgboost")
    call = getattr(ts, name)
    models = [trained.estimator] * sum(p in ("old", "new", "model") for p in inspect.signature(call).parameters)
    label = {"label": "q"} if name == "repair" else {}
    with pytest.raises(UsageError) as told:
        call(*models, trained.frame, **label, **given)
    assert not re.search(r"--[a-z]", str(told.value)), str(told.value)
    # What it names instead is an argument that there is.
    known = {p for one in calls() for p in signature_of(one).parameters}
    named = set(re.findall(r"\b([a-z_]+)=", told.value.remedy))
    assert named <= known


@pytest.mark.parametrize("name", ["audit", "gap", "count", "diff", "groups", "repair"])
@pytest.mark.parametrize("nothing", [[], [[]], ["p", []]])
def test_a_call_about_no_feature_is_refused(name: str, nothing: list[Any]) -> None:
    """It would answer no question, which reads as if nothing was found."""
    trained = two_classes("xgboost")
    models = [trained.estimator] * (2 if name == "diff" else 1)
    label = {"label": "q"} if name == "repair" else {}
    word = "by" if name == "groups" else "vary"
    size = {} if name in ("gap", "groups") else {"gap": 0.1}
    with pytest.raises(UsageError, match=f"`{word}` names no feature"):
        getattr(ts, name)(*models, trained.frame, **{word: nothing}, **size, **label)
