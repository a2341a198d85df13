"""Lies that parts cannot carry: claims whose parts are all true, and that do not follow from them."""

from __future__ import annotations

import hashlib
import json
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.corpus import boosted
from tests.extensions.certify.models import train
from treesens.extensions import treesens_verify as checker

Document = dict[str, Any]


def trees(test: float | list[int]) -> bytes:
    """A trees file of one tree that asks one feature."""
    return json.dumps(
        {
            "format": "treesens-trees",
            "version": 1,
            "made_from": {"format": "lightgbm", "sha256": "0" * 64},
            "number": "float32",
            "features": ["f0"],
            "base": ["0"],
            "average": 1,
            "trees": [{"outputs": [0], "nodes": [[0, test, False, 1, 2], [[0]], [[1]]]}],
        }
    ).encode()


def stated(data: bytes, *, form: str = "treesens-trees", count: int = 1, base: tuple[str, ...] = ("0",)) -> Document:
    return {"sha256": hashlib.sha256(data).hexdigest(), "format": form, "trees": count, "base": list(base)}


def statement(models: list[Document], points: int, **parts: Any) -> Document:
    named = [{"name": "ab"[p], "model": min(p, len(models) - 1)} for p in range(points)]
    empty: Document = {"same_except": None, "domain": [], "rows": [], "clauses": [], "orders": []}
    return {"models": models, "points": named, **empty, **parts}


def follows(claim: Document, parts: list[tuple[str, Document]], files: list[bytes]) -> list[str]:
    certificates = [{"claim": kind, "statement": said} for kind, said in parts]
    return checker.together(claim, certificates, lambda m: checker.core.model_of(m, files, trees_alone=True))


def cover(low: Document, high: Document, point: int, files: list[bytes]) -> list[str]:
    models = [stated(data) for data in files]
    parts = [("none", statement(models, len(files), domain=[[point, 0, side]])) for side in (low, high)]
    return follows({"kind": "cover", "tree": [point, 0, low, high, 0, 1]}, parts, files)


@pytest.mark.parametrize(("start", "covers"), [(1.0, True), (0.5, True), (1.5, False), (2.0, False)])
def test_a_cut_between_codes_loses_none(start: float, covers: bool) -> None:
    """Up to 0.5 there is the code 0, and from 1.5 on the code 2: 1 is lost."""
    low, high = {"runs": [[None, 0.5]]}, {"runs": [[start, None]]}
    if covers:
        assert cover(low, high, 0, [trees([1])])
    else:
        with pytest.raises(checker.Rejected, match="in the middle"):
            cover(low, high, 0, [trees([1])])


def test_what_is_a_code_to_one_model_is_a_number_to_the_other() -> None:
    low, high = {"runs": [[0, 0.5]]}, {"runs": [[0.5, None]]}
    assert cover(low, high, 0, [trees([1]), trees(0.5)])
    with pytest.raises(checker.Rejected, match="least values"):
        cover(low, high, 1, [trees([1]), trees(0.5)])


def test_scores_that_only_one_model_has_are_not_equal(tmp_path: Path) -> None:
    train(1, tmp_path / "two.json")
    x = np.random.default_rng(1).random((60, 3)).astype(np.float32)
    boosted(x, np.arange(60) % 3, 1, 6, path=tmp_path / "three.json", num_class=3, base_score=0.5)
    files = [(tmp_path / name).read_bytes() for name in ("two.json", "three.json")]
    one = stated(files[0], form="xgboost-json", count=3)
    for second, base in ((files[0], ("0",)), (files[1], ("1/2",) * 3)):
        other = stated(second, form="xgboost-json", count=3, base=base)
        rows = [
            {
                "terms": [["1", p, 0], ["-1", 1 - p, 0]],
                "costs": [],
                "bound": {"rational": "0", "logs": []},
                "strict": True,
            }
            for p in range(2)
        ]
        parts = [("none", statement([one, other], 2, same_except=[], rows=[row])) for row in rows]
        claim = {"kind": "equal", "parts": [0, 1]}
        if second is files[0]:
            assert follows(claim, parts, files)
        else:
            with pytest.raises(checker.Rejected, match="more scores"):
                follows(claim, parts, files)


@pytest.mark.parametrize("end", [0.1, 2**24 + 1, 1e39, 2**-150])
def test_an_end_that_no_input_can_have_is_refused(end: float) -> None:
    """Up to 0.1, and from the float after the nearest float32: the nearest itself, which lies above 0.1, would be lost."""
    with np.errstate(over="ignore"):
        assert float(np.float32(end)) != end
    allowed, file = {"runs": [[None, end]]}, trees(0.5)
    after = {"runs": [[float(np.nextafter(np.float32(min(end, 1e38)), np.float32(np.inf))), None]]}
    with pytest.raises(checker.Rejected, match="no float32"):
        cover(allowed, after, 0, [file])
    models, row = [stated(file)], {"terms": [], "costs": [], "bound": {"rational": "0", "logs": []}, "strict": False}
    places: list[Document] = [
        {"domain": [[0, 0, allowed]]},
        {"domain": [[0, 0, {"values": [end]}]]},
        {"clauses": [[[0, 0, allowed]]]},
        {"rows": [{**row, "costs": [[0, 0, [[None, "0"], [end, "1"]], "0"]]}]},
    ]
    for place in places:
        with pytest.raises(checker.Rejected, match="no float32"):
            checker.Problem(statement(models, 1, **place), [checker.core.model_of(models[0], [file], trees_alone=True)])
    for measure in ([[0, [[allowed, "1"]]]], [[0, [[{"values": [end]}, "1"]]]]):
        whole = {"statement": statement(models, 1), "either": [], "changes": [], "apart": []}
        with pytest.raises(checker.Rejected, match="no float32"):
            follows({"kind": "share", "whole": whole, "measure": measure, "tree": None}, [], [file])
    for cut in ([0, allowed, after, None, None], [0, after, allowed, None, None]):
        whole = {"statement": statement(models, 1), "either": [], "changes": [], "apart": []}
        anything = [[0, [[{"runs": [[None, None]]}, "1"]]]]
        with pytest.raises(checker.Rejected, match="no float32"):
            follows({"kind": "share", "whole": whole, "measure": anything, "tree": cut}, [], [file])


@pytest.mark.parametrize(("number", "most"), [("float32", 2**24), ("float64", 2**53)])
def test_a_code_that_shares_its_number_with_others_is_refused(number: str, most: int) -> None:
    """From 2^53 on a code and the next one are one float: a cell would hold both."""
    kind = {"float32": np.float32, "float64": np.float64}[number]
    for code in (most - 1, most, most + 1):
        file = json.loads(trees([code])) | {"number": number}
        data = json.dumps(file).encode()
        if code < most:
            assert kind(code) != kind(code + 1)
            checker.read_model(data, stated(data))
        else:
            assert kind(most) == kind(most + 1)
            with pytest.raises(checker.Rejected, match="no whole number below"):
                checker.read_model(data, stated(data))


@pytest.mark.parametrize("free", [True, False])
def test_a_missing_value_is_no_value_of_a_feature_without_a_set(free: bool) -> None:
    """The part that refutes leaves f0 free: of a feature without a set this says nothing about missing values."""
    file = trees(0.5)
    row = {
        "terms": [["1", 0, 0]],
        "costs": [],
        "bound": {"rational": str(Fraction(2)), "logs": []},
        "strict": False,
    }
    common = [[0, 0, {"runs": [[None, None]], "missing": True}]] if free else []
    pin = [0, 0, {"runs": [], "missing": True}]
    said = [statement([stated(file)], 1, domain=[*common, *mine], rows=[row]) for mine in ([], [pin])]
    claim = {"kind": "reason", "features": [], "row": [pin[1:]], "kept": [[], [0]], "parts": [0, 1]}
    parts = [("none", said[0]), ("found", said[1])]
    if free:
        assert follows(claim, parts, [file])
    else:
        with pytest.raises(checker.Rejected, match="missing value is pinned"):
            follows(claim, parts, [file])
