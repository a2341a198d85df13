"""Third set, P2 to P9 and 16: certificates whose words were false, or said less than what was proved, and were accepted."""

from __future__ import annotations

import hashlib
import io
import json
import struct
from contextlib import redirect_stdout
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import treesens as ts
from tests.corpus import boosted
from treesens.errors import ModelError
from treesens.extensions import treesens_verify as checker

xgboost = pytest.importorskip("xgboost")
pytestmark = pytest.mark.fault
A, B = {"name": "a", "model": 0}, {"name": "b", "model": 0}


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> list[bytes]:
    """Two models, and trees that lie about the first one."""
    folder = tmp_path_factory.mktemp("models")
    rng = np.random.default_rng(0)
    x = rng.integers(0, 4, (200, 3)).astype(np.float32)
    y = (x[:, 0] + x[:, 2] > 3).astype(int)
    x[::7, 1] = np.nan
    options = {"objective": "binary:logistic", "max_depth": 3, "eta": 0.7, "base_score": 0.5, "nthread": 1}
    for name, label in (("old", y), ("new", 1 - y)):
        xgboost.train(options, xgboost.DMatrix(x, label), 6).save_model(folder / f"{name}.json")
    old, new = ((folder / f"{name}.json").read_bytes() for name in ("old", "new"))
    made_from = {"format": "xgboost-json", "sha256": sha(old)}
    trees = [{"outputs": [0], "nodes": [[[0]]]}]
    head = {"format": "treesens-trees", "version": 1, "made_from": made_from, "number": "float32", "average": 1}
    lie = json.dumps({**head, "features": ["f0", "f1", "f2"], "base": ["0"], "trees": trees}).encode()
    return [old, new, lie]


def sha(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def model(data: bytes, trees: int = 6, form: str = "xgboost-json") -> dict[str, Any]:
    return {"sha256": sha(data), "format": form, "trees": trees, "base": ["0"]}


def row(c: int, p: int, bound: str, *, strict: bool = False, logs: tuple[list[str], ...] = ()) -> dict[str, Any]:
    level = {"rational": bound, "logs": list(logs)}
    return {"terms": [[str(c), p, 0]], "costs": [], "bound": level, "strict": strict}


def document(models: list[Any], points: list[Any], same: Any, **parts: Any) -> dict[str, Any]:
    inputs = parts.pop("inputs", None)
    nodes = parts.pop("nodes", [[[1] * len(parts.get("rows", [])), 0, []]])
    rest: dict[str, Any] = {"domain": [], "rows": [], "clauses": [], "orders": []}
    proof = {"apart": [], "nodes": nodes} if inputs is None else {"inputs": inputs}
    statement = {"models": models, "points": points, "same_except": same, **rest, **parts}
    claim = "none" if inputs is None else "found"
    return {"format": "treesens-certificate", "version": 1, "claim": claim, "statement": statement, **proof}


MISSING, SOME = [0, 1, {"missing": True}], [1, 1, {"runs": [[0, 3]]}]
LIES: dict[str, tuple[Any, str]] = {
    "P2 no trees": (lambda o, n, t: document([model(o, 0)], [A], None, rows=[row(1, 0, "1")]), "first 0 of 6 trees"),
    "P3 one model twice": (
        lambda o, n, t: document([model(o), model(n)], [A, B], [], rows=[row(1, 0, "1/2"), row(-1, 1, "1/2")]),
        "a model that no point sees",
    ),
    "P4 a negative feature": (
        lambda o, n, t: document([model(o)], [A, B], [-1], rows=[row(1, 0, "1/2"), row(-1, 1, "1/2")]),
        "no whole number from 0 to 2",
    ),
    "P6 trees that lie": (
        lambda o, n, t: document([model(t, 1, "treesens-trees")], [A], None, rows=[row(1, 0, "1/2")]),
        "which is read here itself",
    ),
    "P7 missing beside a value": (
        lambda o, n, t: document(
            *([model(o)], [A, B], [0, 2]), inputs=[[0.0, None, 0.0], [3.0, 1.0, 3.0]], domain=[MISSING, SOME]
        ),
        "differ in a feature that they agree on",
    ),
    "P8 strict with ln(1)": (
        lambda o, n, t: document(
            *([model(o)], [A], None),
            inputs=[[0.0, 0.0, 0.0]],
            rows=[
                {**row(1, 0, "0", strict=True, logs=(["1", "1"],)), "terms": []},
            ],
        ),
        "a row does not hold",
    ),
    "P9 values beside runs": (
        lambda o, n, t: document(
            *([model(o)], [A], None), inputs=[[3.0, 0.0, 3.0]], domain=[[0, 0, {"runs": [[0, 1]], "values": [3.0]}]]
        ),
        "values beside runs",
    ),
    "a name with a claim in it": (
        lambda o, n, t: document([model(o)], [{"name": "a.f0 <= 9 or a", "model": 0}], None, nodes=[[]]),
        "no identifier",
    ),
}


@pytest.mark.parametrize("name", LIES)
def test_a_lie_is_refused_with_its_reason(name: str, files: list[bytes]) -> None:
    make, reason = LIES[name]
    with pytest.raises(checker.Rejected, match=reason):
        checker.check(make(*files), files)


def said(files: list[bytes], **parts: Any) -> str:
    problem = checker.check(document([model(files[0])], [A], None, **parts), files)
    return "\n".join(checker.in_words(problem, {}))


def test_an_empty_clause_and_set_say_false(files: list[bytes]) -> None:
    """P5."""
    assert said(files, clauses=[[]], nodes=[[]]).splitlines()[-1] == "  false"
    assert said(files, domain=[[0, 0, {}]], nodes=[[]]).splitlines()[-1] == "  a.f0 is in an empty set: false"


def test_the_words_are_no_json(files: list[bytes]) -> None:
    """16."""
    parts: list[list[Any]] = [[0, 0, {"runs": [[0.5, None]]}], [0, 2, {"runs": [[None, 1]], "missing": True}]]
    text = said(files, clauses=[parts], domain=[[0, 0, {"runs": [[0, 0.25]]}], [0, 2, {"runs": [[2, 3]]}]], nodes=[[]])
    assert "a.f0 is from 0.5 on or a.f2 is up to 1 or missing" in text
    assert "runs" not in text
    assert "f1: any finite value, not missing" in text
    assert "all 6 trees, base margin 0" in text


def doubled(plain: bytes) -> dict[str, bytes]:
    """A model of XGBoost in UBJSON with the key `split_conditions` twice, the honest one first and last."""
    key = b"L" + struct.pack(">q", 16) + b"split_conditions"
    at = plain.index(key) + len(key)
    assert plain[at : at + 5] == b"[$d#L"
    (count,) = struct.unpack(">q", plain[at + 5 : at + 13])
    end = at + 13 + 4 * count
    honest, rest = plain[at:end], plain[end:]
    floats = struct.unpack(f">{count}f", honest[13:])
    lie = honest[:13] + struct.pack(f">{count}f", *(-x for x in floats))
    start = plain[: at - len(key)]
    return {
        "honest first": start + key + honest + key + lie + rest,
        "honest last": start + key + lie + key + honest + rest,
    }


@pytest.mark.parametrize("order", ["honest first", "honest last"])
@pytest.mark.parametrize("form", ["ubj", "json"])
def test_a_key_twice_is_refused_by_both_readers(form: str, order: str, tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    x = rng.normal(size=(200, 2)).astype(np.float32)
    booster = boosted(x, (x[:, 0] > 0).astype(int), 1, 1, base_score=0.5)
    plain = bytes(booster.save_raw(form))
    if form == "ubj":
        data = doubled(plain)[order]
    else:
        at = plain.index(b'"split_conditions":')
        end = plain.index(b"]", at) + 1
        one, two = plain[at:end], b'"split_conditions":[9,9,9]'
        both = (one, two) if order == "honest first" else (two, one)
        data = plain[:at] + b",".join(both) + plain[end:]
    stated = {"format": f"xgboost-{form}", "trees": 1, "base": ["0"]}
    checker.read_model(plain, stated)
    with pytest.raises(checker.Rejected, match="key twice"):
        checker.read_model(data, stated)
    (tmp_path / f"m.{form}").write_bytes(data)
    with pytest.raises(ModelError, match="appears twice"):
        ts.load(tmp_path / f"m.{form}")


def test_what_is_accepted_is_said_before_it(files: list[bytes]) -> None:
    """A claim that holds is said in full, with its SHA-256, and nothing is printed by the check itself."""
    out = io.StringIO()
    with redirect_stdout(out):
        text = said(files, rows=[row(1, 0, "1000")])
    assert out.getvalue() == ""
    assert sha(files[0]) in text
    assert text.splitlines()[-1] == "  1 * margin(a, output 0) >= 1000"
