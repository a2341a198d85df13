"""Third set, fault 5: an error of treesens itself in one question or step of a study never costs another answer."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner

import treesens as ts
from tests.corpus import boosted
from treesens.cli import group
from treesens.errors import InternalError

pytestmark = pytest.mark.fault

DATA = ("--data", "d.csv", "--label", "label")


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("lost")
    rng = np.random.default_rng(0)
    table = rng.integers(0, 3, (60, 3)).astype(np.float32)
    label = (table[:, 0] + table[:, 1] > 1).astype(int)
    for name, rounds in (("m", 5), ("n", 4)):
        boosted(table, label, rounds, 2, names=["f0", "f1", "f2"], path=folder / f"{name}.json")
    rows = np.column_stack([table, label])
    np.savetxt(folder / "d.csv", rows, fmt="%d", delimiter=",", header="f0,f1,f2,label", comments="")
    return folder


def every_second(real: Callable[..., Any]) -> Callable[..., Any]:
    """The real step, but for the first, the third, .. call of it."""
    calls = [0]

    def planted(*args: Any, **named: Any) -> Any:
        calls[0] += 1
        if calls[0] % 2:
            raise IndexError("planted")
        return real(*args, **named)

    return planted


CASES = [
    ("audit", ("m.json", *DATA, "--gap", "0.1"), "treesens.extensions.studies.audit_search.SetAudit.run"),
    ("audit", ("m.json", *DATA, "--gap", "0.1,0.2"), "treesens.extensions.studies.audit_search.SetAudit._answer"),
    ("audit", ("m.json", *DATA, "--gap", "0.1"), "treesens.extensions.studies.audit_search.SetAudit._swing"),
    (
        "audit",
        ("m.json", *DATA, "--gap", "0.1", "--measure", "cells"),
        "treesens.extensions.studies.count_search.ShareSearch",
    ),
    ("gap", ("m.json",), "treesens.extensions.studies.optima.compile_query"),
    ("range", ("m.json",), "treesens.extensions.studies.optima.answer"),
    ("count", ("m.json", "--gap", "0.1", "--measure", "cells"), "treesens.extensions.studies.count_search.ShareSearch"),
    ("robust", ("m.json", *DATA, "--rows", "0,1,2"), "treesens.extensions.studies.robust_search.nearest_input"),
    ("why", ("m.json", *DATA, "--row", "0,1,2"), "treesens.extensions.studies.why_search.reason_of"),
    ("sets", ("m.json", "--gap", "0.1"), "treesens.extensions.studies.sets_search.answer"),
    ("diff", ("m.json", "n.json", *DATA), "treesens.extensions.studies.optima.answer"),
]


def answers_of(record: dict[str, Any]) -> list[dict[str, Any]]:
    """The answers in a record of any of these commands."""
    if "scores" in record:
        return list(record["scores"])
    found = record["results"] if "results" in record else record["rows"]
    return [part for one in found for part in (one["open"] + one["flip"] if "open" in one else [one])]


@pytest.mark.parametrize(
    ("command", "arguments", "step"), CASES, ids=[f"{c} {s.rpartition('.')[2]}" for c, _, s in CASES]
)
def test_a_failing_question_costs_no_other(
    command: str, arguments: tuple[str, ...], step: str, made: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(made)
    place, _, name = step.rpartition(".")
    from pkgutil import resolve_name

    owner = resolve_name(place if "SetAudit" not in place else "treesens.extensions.studies.audit_search:SetAudit")
    monkeypatch.setattr(owner, name, every_second(getattr(owner, name)))
    outcome = CliRunner().invoke(group, [command, *arguments, "--json"], standalone_mode=False)
    assert outcome.exception is None
    assert outcome.return_value == 6, "an internal error, although the other answers stand"
    shown = outcome.stdout[outcome.stdout.index("{") :]
    told = [json.dumps(one) for one in answers_of(json.loads(shown))]
    lost = [text for text in told if "error[X001]" in text]
    assert lost
    assert all("IndexError: planted" in text for text in lost)
    assert len(lost) < len(told), "the others have their answers"


def test_an_unforeseen_error_of_a_call_is_typed(made: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    planted = every_second(ts.load)
    monkeypatch.setattr("treesens.extensions.studies.gap_search.align_table", planted)
    import pandas as pd

    with pytest.raises(InternalError, match="IndexError: planted") as raised:
        ts.gap(made / "m.json", pd.read_csv(made / "d.csv"), label="label")
    assert isinstance(raised.value.__cause__, IndexError)
    with pytest.raises(TypeError, match="no argument `nonsense`"):
        ts.gap(made / "m.json", nonsense=3)  # type: ignore[call-arg]
