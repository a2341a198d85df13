"""The words of a claim are its statement: every change of one that is still accepted changes the output.

A claim is drawn with parts that are assumed to be accepted. Each leaf of the statement is changed in the same way wherever the
claim and its parts contain it; so is each field of the claim. The checker's output, apart from its parts, then differs.
"""

from __future__ import annotations

import copy
import hashlib
import itertools
import json
import re
from collections.abc import Iterator
from typing import Any

import pytest
from treesens.extensions.treesens_verify.words import names_of

from tests.extensions.certify.mutations import spots
from tests.trials import THOROUGH
from treesens.extensions import treesens_verify as checker

Document = dict[str, Any]


def trees_file(name: str, *, outputs: int = 1, origin: str = "0") -> bytes:
    """Two trees over three features, the last one of which has codes."""
    nodes = [[0, 0.5, True, 1, 2], [[0]], [1, 1.5, False, 3, 4], [[1]], [2, [1, 3], False, 5, 6], [[2]], [[3]]]
    trees = [{"outputs": [o], "nodes": nodes} for o in range(outputs) for _ in range(2)]
    document = {
        "format": "treesens-trees",
        "version": 1,
        "made_from": {"format": name, "sha256": origin * 64},
        "number": "float32",
        "features": ["f0", "sum of all", "caf\u00e9"],
        "base": ["0"] * outputs,
        "average": 1,
        "trees": trees,
    }
    return json.dumps(document).encode()


FILES = {
    hashlib.sha256(data).hexdigest(): data
    for data in (trees_file("one"), trees_file("two"), trees_file("one", origin="1"))
}
ONE, TWO, THREE = FILES


def model_of(stated: Document) -> Any:
    return checker.core.model_of(stated, list(FILES.values()), first_trees=True, trees_alone=True)


def stated(sha256: str = ONE) -> Document:
    return {"sha256": sha256, "format": "treesens-trees", "trees": 2, "base": ["0"]}


def row(point: int, bound: str, *, coefficient: str = "1", costs: bool = False) -> Document:
    prices: list[Any] = [[point, 1, [[None, "0"], [0.25, "2"]], "3"]] if costs else []
    logs = [["2", "3/2"]] if costs else []
    return {
        "terms": [[coefficient, point, 0]],
        "costs": prices,
        "bound": {"rational": bound, "logs": logs},
        "strict": False,
    }


def statement(count: int, **parts: Any) -> Document:
    domain: list[Any] = [
        [0, 0, {"runs": [[0, 2.5]], "missing": True}],
        [count - 1, 2, {"runs": [[0, 4]], "whole": True}],
    ]
    default: Document = {
        "models": [stated()],
        "points": [{"name": "ab"[p], "model": 0} for p in range(count)],
        "same_except": [0, 1] if count == 2 else None,
        "domain": domain,
        "rows": [row(0, "1", costs=True)],
        "clauses": [[[0, 0, {"values": [0.5, 2]}], [count - 1, 1, {"runs": [[None, 3]]}]]],
        "orders": [[0, 1, 1]] if count == 2 else [],
    }
    return default | parts


NOTHING: Document = {"rows": [], "clauses": [], "orders": []}

FURTHER: Document = {
    "either": [
        [
            {"domain": [[0, 0, {"runs": [[1, None]]}]], "rows": [], "clauses": [], "orders": [],
             "either": [], "changes": [], "apart": []},
            {"domain": [], "rows": [row(0, "2")], "clauses": [], "orders": [],
             "either": [], "changes": [], "apart": []},
        ]
    ],
    "changes": [{"features": [0, 1], "most": 1}],
    "apart": [{"features": [0, 1], "least": 1}],
    "values": [{"terms": [["1", 0, 1], ["2", 1, 1, {"value": 0.5}, "2", 1]], "most": "7", "strict": False}],
    "chances": [{"terms": [["1", [[[["1", 0, 0]], "1/2"]]]], "least": "1/2", "strict": True}],
}  # fmt: skip

PINS = {0: {"values": [0.25]}, 1: {"runs": [[2, 2]]}, 2: {"values": [1]}}


def about_row(kept: list[int], *, bound: str = "1") -> Document:
    """A statement about one input that keeps some values of a row."""
    whole = statement(1, rows=[row(0, bound)])
    return {**whole, "domain": [*whole["domain"], *([0, f, PINS[f]] for f in kept)]}


def of_row(kind: str, features: list[int], parts: list[tuple[str, list[int]]]) -> tuple[Document, list[Document]]:
    claim = {
        "kind": kind,
        "features": features,
        "row": [[f, pin] for f, pin in PINS.items()],
        "kept": [kept for _, kept in parts],
        "parts": list(range(len(parts))),
    }
    return claim, [{"claim": said, "statement": about_row(kept)} for said, kept in parts]


def side(low: float | None, high: float | None) -> Document:
    return {"runs": [[low, high]]}


def none(statement: Document) -> Document:
    return {"claim": "none", "statement": statement}


def found(statement: Document) -> Document:
    return {"claim": "found", "statement": statement}


def claims() -> dict[str, tuple[Document, list[Document]]]:
    """A claim of every kind with its parts."""
    pair, single = statement(2), statement(1)
    bare = statement(2, models=[stated(), stated(TWO)], points=[{"name": n, "model": i} for i, n in enumerate("ab")])
    bare |= {"same_except": [], "clauses": [], "orders": []}
    compared = [
        {**bare, "rows": [{**row(p, "0"), "terms": [["1", p, 0], ["-1", 1 - p, 0]], "strict": True}]} for p in (0, 1)
    ]
    sets = [[0, f, pin] for f, pin in PINS.items()]
    pinned = {**single, "domain": [*single["domain"], *sets]}
    halves = [{**single, "domain": [*single["domain"], [0, 1, half]]} for half in (side(None, 1), side(1, None))]
    moved = [{**pair, "rows": [row(0, "1", costs=True), row(1, bound)]} for bound in ("1", "2")]
    together = [{**pair, "rows": [row(0, bound), row(1, bound)]} for bound in ("1", "2")]
    whole = {"statement": pair, **FURTHER}
    plain = {"statement": single, "either": [], "changes": [], "apart": []}
    measured = {"statement": statement(1, clauses=[]), "either": [], "changes": [], "apart": []}
    measure = [
        [None, [], None, [["1/2", "1/2"]]],
        [0, [[side(0, 1), "1/3", 0], [side(1.5, 2), "2/3", 0], [side(0, 2), "1", 1]], 0, [["1", "0"], ["1/4", "3/4"]]],
        [1, [[side(0, 1), "1"]]],
        [2, [[{"values": [1]}, "1/2"], [{"values": [2]}, "1/2"]]],
    ]
    return {
        "same": ({"kind": "same", "models": [stated(), stated(THREE)]}, []),
        "equal": ({"kind": "equal", "parts": [0, 1]}, [none(one) for one in compared]),
        "between": ({"kind": "between", "reached": 0, "beyond": 1}, [found(moved[0]), none(moved[1])]),
        "between two": ({"kind": "between", "reached": 0, "beyond": 1}, [found(together[0]), none(together[1])]),
        "reached alone": ({"kind": "between", "reached": 0, "beyond": None}, [found(pair)]),
        "beyond alone": ({"kind": "between", "reached": None, "beyond": 0}, [none(pair)]),
        "border": (
            {"kind": "border", "features": [0, 1], "parts": [0, 1]},
            [found({**pair, "same_except": [0]}), none({**pair, "same_except": [1]})],
        ),
        "reason": of_row("reason", [0], [("none", [0]), ("found", [1, 2])]),
        "smallest": of_row("smallest", [0], [("none", [0]), ("found", [1, 2])]),
        "change": of_row("change", [0], [("found", [1, 2]), ("none", [0, 1, 2])]),
        "rows": ({"kind": "rows", "parts": [0, 0]}, [found(pinned)]),
        "cover": ({"kind": "cover", "tree": [0, 1, side(None, 1), side(1, None), 0, 1]}, [none(h) for h in halves]),
        "cases": ({"kind": "cases", "whole": whole, "parts": [0]}, [none({**pair, **NOTHING})]),
        "answers": ({"kind": "answers", "whole": plain, "rows": [{"values": [1, 0.5, 2]}, {"values": [None, 1, 0]}]}, []),
        "answers by sets": (
            {"kind": "answers", "whole": plain, "rows": [{"sets": sets, "parts": [0]}]},
            [found(pinned)],
        ),
        "share": (
            {"kind": "share", "whole": measured, "measure": measure, "tree": [1, side(None, 0.5), side(1, None), None, None]},
            [],
        ),
    }  # fmt: skip


def said(claim: Document, parts: list[Document]) -> list[str] | None:
    """The lines that the checker prints; None if the claim does not follow."""
    try:
        for part in parts:  # one that is accepted by itself
            assert part["claim"] in ("none", "found")
            checker.Problem(part["statement"], [model_of(one) for one in part["statement"]["models"]])
        checker.check_manifest({"format": "treesens-manifest", "version": 1, "parts": [], "claims": [claim]})
        return list(checker.together(claim, parts, model_of))
    except (AssertionError, checker.Rejected, *checker.core.MALFORMED):
        return None


def others(value: Any) -> list[Any]:
    """Other values that may replace a value."""
    if isinstance(value, bool):
        return [not value]
    if isinstance(value, (int, float)):
        return [value + 1, value - 1, value + 0.5, 0, 1, 2]
    if isinstance(value, str) and value in FILES:
        return [sha256 for sha256 in FILES if sha256 != value]
    if isinstance(value, str):
        return ["0", "1/7", "5", "c", "cc"]
    if value is None:
        return [0.75, 2, [0, 1]]
    if isinstance(value, dict):
        return [{**value, "missing": True}] if "runs" in value or "values" in value else []
    return [value[:-1], value[::-1]] if value else []


def replaced(document: Any, before: Any, after: Any) -> Any:
    """A copy in which a part is replaced wherever it occurs."""
    if type(document) is type(before) and document == before:
        return copy.deepcopy(after)
    if isinstance(document, dict):
        return {key: replaced(value, before, after) for key, value in document.items()}
    return [replaced(value, before, after) for value in document] if isinstance(document, list) else document


def changes(claim: Document, parts: list[Document]) -> Iterator[tuple[Document, list[Document]]]:
    """Claims with a changed statement: one leaf of a part of it is changed, in all places that contain this part."""
    both = [claim, parts]
    shown: set[str] = set()
    for holder, key in spots(both):
        # An item of a list of the statement (a set, a row, a clause ..) is changed as a whole: it occurs in several parts.
        item = holder[key]
        if not isinstance(item, (list, dict)) or json.dumps(item) in shown or item in (claim, parts):
            continue
        shown.add(json.dumps(item))
        large = len(json.dumps(item)) > 450  # what is deep inside it has its turn
        for inner, at in (
            [(item, k) for k in (item if isinstance(item, dict) else range(len(item)))] if large else spots(item)
        ):
            for value in others(inner[at]):
                before = inner[at]
                inner[at] = value
                after = copy.deepcopy(item)
                inner[at] = before
                new_claim, new_parts = replaced(both, item, after)
                yield new_claim, new_parts


PROOF = {"parts", "kept", "tree", "reached", "beyond", "row"}
"""Fields of a claim about its proof: the parts and their places. The values of a row are in the parts."""


def claimed(claim: Document, parts: list[Document]) -> str:
    """The content of a claim about inputs, as a text, without its proof."""
    kind, own = claim["kind"], {key: value for key, value in claim.items() if key not in PROOF}
    if kind == "answers":
        own["rows"] = [{k: v for k, v in one.items() if k != "parts"} for one in claim["rows"]]
    if kind in ("cases", "share", "answers"):
        parts = []
    if kind == "equal":  # a row for each output and direction
        parts = [{**one, "statement": {**one["statement"], "rows": []}} for one in parts]
    if kind == "share":  # a set without a group is of the first one
        own["measure"] = [[f, [[*e, 0][:3] for e in sets], *more] for f, sets, *more in claim["measure"]]
    if kind == "border":  # that the set of f0 has a pair, and no set without it
        parts = [{**one, "statement": {**one["statement"], "same_except": None}} for one in parts]
    if kind in ("reason", "smallest"):  # inputs of the other class show that a feature is needed: any may do it
        parts = [one for one in parts if one["claim"] == "none"]
    if kind == "cover":  # the common part of their statements
        parts = [{**one, "statement": {**one["statement"], "domain": one["statement"]["domain"][:-1]}} for one in parts]
    return json.dumps([plain(own), plain(parts)], sort_keys=True)


def plain(item: Any) -> Any:
    """Numbers as floats, and sets of features, points and a domain in one order."""
    if isinstance(item, dict):
        return {
            k: sorted(map(plain, v), key=json.dumps) if k in ("domain", "features") else plain(v)
            for k, v in item.items()
        }
    if isinstance(item, list):
        return [plain(one) for one in item]
    return float(item) if isinstance(item, int) and not isinstance(item, bool) else item


@pytest.mark.sampled
@pytest.mark.parametrize("kind", claims())
def test_every_change_of_a_claim_changes_its_words(kind: str) -> None:
    claim, parts = claims()[kind]
    words = said(claim, parts)
    assert words is not None
    seen = {"\n".join(words): claimed(claim, parts)}
    count = 0
    for other, its_parts in itertools.islice(changes(claim, parts), 0, None, 1 if THOROUGH else 4):
        lines = said(other, its_parts)
        if lines is None:
            continue
        count += 1
        text, mine = "\n".join(lines), claimed(other, its_parts)
        assert seen.setdefault(text, mine) == mine, (text, mine, seen[text])
    assert count > 5


def test_names_that_look_alike_have_numbers() -> None:
    names = ["x", "x", "age", "age\u3164", "caf\u00e9", "cafe\u0301", "\u0441ap", "cap", "a b", "a\u200bb"]
    shown = names_of(names)
    for f, text in enumerate(shown):
        assert text.endswith(f"#{f}") == (names[f] not in ("age", "cap", "a b")), text
    letters = [re.sub(r"[^ -~]|\"", "", text) for text in shown]
    assert len(set(letters)) == len(letters)
