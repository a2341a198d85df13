"""Hostile certificates, one of every kind, made from an honest one: none may be accepted."""

from __future__ import annotations

import copy
import hashlib
import json
import lzma
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import reduce
from pathlib import Path
from typing import Any

from tests.extensions.certify.made import query_of
from tests.extensions.certify.models import train
from treesens.extensions.certify.produce import existence, refutation
from treesens.extensions.certify.statement import NoCertificate
from treesens.solve.options import Options
from treesens.solve.question import answer

Document = dict[str, Any]


@dataclass(frozen=True)
class Hostile:
    """The content of a certificate's file, and those of the model files beside it."""

    kind: str
    packed: bytes
    files: tuple[bytes, ...]


@dataclass(frozen=True)
class Honest:
    """A certificate that is accepted, of two points with a clause, an order and costs."""

    document: Document
    model: bytes
    other: bytes


def honest(folder: Path) -> Honest:
    """Made of a tiny model, at the first gap that is refuted."""
    model, other, table = folder / "m.json", folder / "n.json", folder / "d.csv"
    train(1, model, trees=4, depth=3)
    train(2, other)
    table.write_text("f0,f1,f2\n0,0,0\n1,0.5,1.5\n0.5,1,2\n1,1,0.5\n0,1.5,1\n")
    head = f'model m from "{model}"\ndata d from "{table}"\n' + "".join(
        f"feature f{f}: real in [0, 2]\n" for f in range(3)
    )
    for gap in range(8, 60):
        text = (
            "find a, b in m such that a = b except {f0, f1}; a.f0 <= b.f0; a.f1 <= 1 or a.f2 >= 0.5; "
            f"likelihood(a, d) >= 0.0001; margin(a) - margin(b) >= {gap / 8}"
        )
        try:
            document = refutation(query_of(f"{head}query q: {text}", folder)).document
        except NoCertificate:  # the gap is reached
            continue
        return Honest(json.loads(json.dumps(document)), model.read_bytes(), other.read_bytes())
    raise AssertionError("no gap is refuted")


def pack(document: object) -> bytes:
    """The content of a certificate's file."""
    return lzma.compress(json.dumps(document).encode(), preset=0)


def sha(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def put(*path: Any) -> Callable[[Document], None]:
    """Writes the last item at the place that the others name."""
    *places, last, value = path

    def change(document: Document) -> None:
        reduce(lambda item, key: item[key], places, document)[last] = value

    return change


def drop(*path: Any) -> Callable[[Document], None]:
    *places, last = path

    def change(document: Document) -> None:
        del reduce(lambda item, key: item[key], places, document)[last]

    return change


def add(*path: Any) -> Callable[[Document], None]:
    *places, value = path

    def change(document: Document) -> None:
        reduce(lambda item, key: item[key], places, document).append(value)

    return change


S, M, P, R, D = "statement", "models", "points", "rows", "domain"
CHANGES: dict[str, Callable[[Document], None]] = {
    "no format": drop("format"),
    "another format": put("format", "treesens-trees"),
    "a later version": put("version", 2),
    "a version that is a flag": put("version", True),
    "a version that is a float": put("version", 1.0),
    "an unknown claim": put("claim", "nothing"),
    "a claim that is a list": put("claim", ["none"]),
    "a part too many": put("theorem", "P = NP"),
    "no trees apart": drop("apart"),
    "no proof": drop("nodes"),
    "inputs beside a proof": put("inputs", [[0, 0, 0], [0, 0, 0]]),
    "a statement that is a number": put(S, 5),
    "a statement that is a list": put(S, []),
    "a statement with a part too many": put(S, "unless", []),
    "a statement without clauses": drop(S, "clauses"),
    "no models": put(S, M, []),
    "a model with a part too many": put(S, M, 0, "weights", [1]),
    "a SHA-256 in capitals": put(S, M, 0, "sha256", "A" * 64),
    "a SHA-256 of nothing": put(S, M, 0, "sha256", "0" * 64),
    "a SHA-256 that is a number": put(S, M, 0, "sha256", 0),
    "a file format that nobody knows": put(S, M, 0, "format", "pickle"),
    "the reader of another format": put(S, M, 0, "format", "xgboost-ubj"),
    "no trees": put(S, M, 0, "trees", 0),
    "the first trees": put(S, M, 0, "trees", 2),
    "more trees than there are": put(S, M, 0, "trees", 5),
    "trees below zero": put(S, M, 0, "trees", -1),
    "a number of trees that is a flag": put(S, M, 0, "trees", True),
    "another base margin": put(S, M, 0, "base", ["1/8"]),
    "no base margin": put(S, M, 0, "base", []),
    "two base margins": put(S, M, 0, "base", ["0", "0"]),
    "a base margin that is a number": put(S, M, 0, "base", [0]),
    "a base margin with an exponent": put(S, M, 0, "base", ["0e0"]),
    "no points": put(S, P, []),
    "three points": add(S, P, {"name": "c", "model": 0}),
    "a point of model -1": put(S, P, 0, "model", -1),
    "a point of a model that is not there": put(S, P, 0, "model", 1),
    "a point of a model that is a flag": put(S, P, 0, "model", False),
    "a point without a name": put(S, P, 0, "name", ""),
    "a name with a claim in it": put(S, P, 0, "name", "a.f0 <= 9 or a"),
    "a name of two lines": put(S, P, 0, "name", "a\naccepted"),
    "a name in another script": put(S, P, 0, "name", "\u0430"),
    "one name for both points": put(S, P, 1, "name", "a"),
    "a point with a part too many": put(S, P, 0, "trees", 2),
    "one point that agrees": put(S, P, [{"name": "a", "model": 0}]),
    "feature -1 varies": put(S, "same_except", [-1]),
    "a feature beyond the last varies": put(S, "same_except", [3]),
    "a feature varies twice": put(S, "same_except", [0, 0, 1]),
    "a flag varies": put(S, "same_except", [False]),
    "a float varies": put(S, "same_except", [0.0]),
    "agreement that is a text": put(S, "same_except", "01"),
    "a domain of feature -1": put(S, D, 0, 1, -1),
    "a domain of a feature beyond the last": put(S, D, 0, 1, 3),
    "a domain of a point beyond the last": put(S, D, 0, 0, 2),
    "a domain of two parts": put(S, D, 0, [0, 0]),
    "values beside runs": put(S, D, 0, 2, {"runs": [[0, 1]], "values": [3]}),
    "whole numbers without runs": put(S, D, 0, 2, {"values": [0.5], "whole": True}),
    "a run that ends before it begins": put(S, D, 0, 2, {"runs": [[1, 0]]}),
    "a run of three ends": put(S, D, 0, 2, {"runs": [[0, 1, 2]]}),
    "an infinite end": put(S, D, 0, 2, {"runs": [[0, float("inf")]]}),
    "an end that is no number": put(S, D, 0, 2, {"runs": [[float("nan"), 1]]}),
    "an end that is no float": put(S, D, 0, 2, {"runs": [[0, 2**53 + 1]]}),
    "an end that is a text": put(S, D, 0, 2, {"runs": [["0", 1]]}),
    "an end that is a flag": put(S, D, 0, 2, {"runs": [[False, 1]]}),
    "a flag that is a number": put(S, D, 0, 2, {"runs": [[0, 1]], "missing": 0}),
    "a set with an unknown part": put(S, D, 0, 2, {"run": [[0, 1]]}),
    "a set that is a list": put(S, D, 0, 2, [[0, 1]]),
    "clauses that are an object": put(S, "clauses", {}),
    "a clause that is a part": put(S, "clauses", [[0, 0, {}]]),
    "a clause of feature 9": put(S, "clauses", 0, 0, 1, 9),
    "a clause of point -1": put(S, "clauses", 0, 0, 0, -1),
    "an order of two numbers": put(S, "orders", [[0, 1]]),
    "an order of point -1": put(S, "orders", 0, 0, -1),
    "an order of feature 3": put(S, "orders", 0, 2, 3),
    "a coefficient that is a number": put(S, R, -1, "terms", 0, 0, 1),
    "a coefficient with an exponent": put(S, R, -1, "terms", 0, 0, "1e3"),
    "a coefficient over zero": put(S, R, -1, "terms", 0, 0, "1/0"),
    "a coefficient after a space": put(S, R, -1, "terms", 0, 0, " 1"),
    "a coefficient in digits of another script": put(S, R, -1, "terms", 0, 0, "\u0663"),
    "a score of output 1": put(S, R, -1, "terms", 0, 2, 1),
    "a score of output -1": put(S, R, -1, "terms", 0, 2, -1),
    "a score of point -1": put(S, R, -1, "terms", 0, 1, -1),
    "a row with a part too many": put(S, R, -1, "unless", True),
    "a row that is strict as a number": put(S, R, -1, "strict", 1),
    "a row that says nothing of strict": drop(S, R, -1, "strict"),
    "the logarithm of zero": put(S, R, -1, "bound", "logs", [["1", "0"]]),
    "the logarithm of a negative number": put(S, R, -1, "bound", "logs", [["1", "-2"]]),
    "a logarithm of three numbers": put(S, R, -1, "bound", "logs", [["1", "2", "3"]]),
    "a bound that is a number": put(S, R, -1, "bound", "rational", 3),
    "a bound that inputs reach": put(S, R, -1, "bound", "rational", "-1000"),
    "costs without steps": put(S, R, 0, "costs", 0, 2, []),
    "costs that begin somewhere": put(S, R, 0, "costs", 0, 2, 0, 0, 0.5),
    "costs out of order": put(S, R, 0, "costs", 0, 2, [[None, "0"], [1, "0"], [0.5, "0"]]),
    "costs that begin twice": put(S, R, 0, "costs", 0, 2, [[None, "0"], [None, "0"]]),
    "costs of feature 9": put(S, R, 0, "costs", 0, 1, 9),
    "costs of point 2": put(S, R, 0, "costs", 0, 0, 2),
    "a cost that is a number": put(S, R, 0, "costs", 0, 3, 0),
    "a proof of nothing": put("nodes", []),
    "a node after the last": add("nodes", []),
    "a part that is left out": lambda d: d["nodes"].pop(),
    "clauses that refute nothing": put("nodes", [[]]),
    "a cut of variable -1": put("nodes", [[-1, 1], [], []]),
    "a cut of a variable that is not there": put("nodes", [[99, 1], [], []]),
    "a cut before the first cell": put("nodes", [[0, 0], [], []]),
    "a cut beyond the last cell": put("nodes", [[0, 99], [], []]),
    "a cut that is a float": put("nodes", [[0, 1.0], [], []]),
    "a node of four parts": put("nodes", [[0, 1, 2, 3]]),
    "a node that is a number": put("nodes", [0]),
    "no weights": put("nodes", [[[], 0, []]]),
    "weights of nothing": put("nodes", [[[0, 0], 0, []]]),
    "weights below zero": put("nodes", [[[-1, -1], 0, []]]),
    "weights that are flags": put("nodes", [[[True, True], 0, []]]),
    "weights that are floats": put("nodes", [[[1.0, 1.0], 0, []]]),
    "an exponent below zero": put("nodes", [[[1, 1], -1, []]]),
    "an exponent beyond all memory": put("nodes", [[[1, 1], 1 << 60, [[0, 0, 0, -1]]]]),
    "a message of factor -1": put("nodes", [[[1, 1], 0, [[-1, 0, 0, -(1 << 90)]]]]),
    "a message of a factor that is not there": put("nodes", [[[1, 1], 0, [[999, 0, 0, -(1 << 90)]]]]),
    "a message about a variable that is not there": put("nodes", [[[1, 1], 0, [[0, 99, 0, -(1 << 90)]]]]),
    "runs of a message out of order": put("nodes", [[[1, 1], 0, [[0, 0, 2, -1, 1, -1]]]]),
    "runs of a message twice": put("nodes", [[[1, 1], 0, [[0, 0, 1, -1, 1, -(1 << 90)]]]]),
    "a run before the first cell": put("nodes", [[[1, 1], 0, [[0, 0, -1, -(1 << 90)]]]]),
    "half a run": put("nodes", [[[1, 1], 0, [[0, 0, 1]]]]),
    "a message about nothing": put("nodes", [[[1, 1], 0, [[]]]]),
    "a tree apart that is a float": put("apart", [0.0]),
    "trees apart that are an object": put("apart", {"0": 1}),
}


def of_statement(known: Honest) -> Iterator[Hostile]:
    """Changes of the certificate alone, and of what stands beside it."""
    for kind, change in CHANGES.items():
        document = copy.deepcopy(known.document)
        change(document)
        yield Hostile(kind, pack(document), (known.model,))
    stated = known.document[S][M][0]
    unseen = {**stated, "trees": 3, "sha256": sha(known.other)}
    for kind, second in (("a model twice", stated), ("a model that no point sees", unseen)):
        document = copy.deepcopy(known.document)
        document[S][M].append(second)
        yield Hostile(kind, pack(document), (known.model, known.other))
    yield Hostile("the model is not given", pack(known.document), (known.other,))
    yield Hostile("no model is given", pack(known.document), ())


def of_files(known: Honest) -> Iterator[Hostile]:
    """Files that are no certificate, or two."""
    honest = pack(known.document)
    text = json.dumps(known.document)
    twice = text.replace('"claim": "none"', '"claim": "found", "claim": "none"', 1)
    contents = {
        "an empty file": b"",
        "no xz": text.encode(),
        "a file that ends early": honest[: len(honest) // 2],
        "something after the certificate": honest + b"\0",
        "two certificates in one file": honest + honest,
        "no JSON": lzma.compress(b"{"),
        "no object": lzma.compress(b"[]"),
        "no UTF-8": lzma.compress(b'"\xff"'),
        "two objects": lzma.compress((text + text).encode()),
        "a key twice": lzma.compress(twice.encode()),
        "lists in lists in lists": lzma.compress(b"[" * 200_000),
    }
    for kind, content in contents.items():
        yield Hostile(kind, content, (known.model,))


def of_models(known: Honest) -> Iterator[Hostile]:
    """Model files that lie; the certificate names each by its SHA-256."""
    plain = known.model.decode()
    key = plain.index('"split_conditions":')
    end = plain.index("]", key) + 1
    cut = json.loads(plain)
    cut["learner"]["gradient_booster"]["model"]["trees"][0]["left_children"][0] = 0
    beyond = json.loads(plain)
    beyond["learner"]["gradient_booster"]["model"]["trees"][0]["split_indices"][0] = 7
    short = json.loads(plain)
    short["learner"]["gradient_booster"]["model"]["trees"][0]["default_left"].pop()
    files = {
        "a model with a key twice": plain[:end] + "," + plain[key:end] + plain[end:],
        "a model in a circle": json.dumps(cut),
        "a model that splits by no feature": json.dumps(beyond),
        "a model with columns of two lengths": json.dumps(short),
        "a model that is a list": "[]",
        "a model followed by another": plain + plain,
    }
    for kind, content in files.items():
        yield named(kind, known, content.encode(), "xgboost-json")
    yield from of_trees(known)


def of_trees(known: Honest) -> Iterator[Hostile]:
    """Trees files: those that lie about a model, and those that are no trees."""
    plain: Document = {
        "format": "treesens-trees",
        "version": 1,
        "made_from": {"format": "xgboost-json", "sha256": sha(known.model)},
        "number": "float32",
        "features": ["f0", "f1", "f2"],
        "base": ["0"],
        "average": 1,
        "trees": [{"outputs": [0], "nodes": [[0, 0.5, False, 1, 2], [[0]], [[0]]]}] * 4,
    }

    def nodes(*listed: list[Any]) -> Document:
        return {"trees": [{"outputs": [0], "nodes": list(listed)}] * 4}

    changes: dict[str, Document] = {
        "trees in place of a model that is read": {},
        "trees of a model that is not there": {"made_from": {"format": "lightgbm", "sha256": "0" * 64}},
        "trees of nothing": {"made_from": {}},
        "trees with a shared node": nodes([0, 0.5, False, 1, 1], [[0]]),
        "trees with a circle": nodes([0, 0.5, False, 0, 1], [[0]]),
        "a tree without nodes": nodes(),
        "a tree that splits by feature -1": nodes([-1, 0.5, False, 1, 2], [[0]], [[0]]),
        "a threshold that is none": nodes([0, "nan", False, 1, 2], [[0]], [[0]]),
        "a category below zero": nodes([0, [-1], False, 1, 2], [[0]], [[0]]),
        "a leaf of two values": nodes([0, 0.5, False, 1, 2], [[0, 0]], [[0]]),
        "an average of no trees": {"average": 0},
        "numbers of an unknown type": {"number": "float16"},
        "a tree of output -1": {"trees": [{"outputs": [-1], "nodes": [[[0]]]}] * 4},
    }
    for kind, change in changes.items():
        yield named(kind, known, json.dumps(plain | change).encode(), "treesens-trees")


def named(kind: str, known: Honest, content: bytes, form: str) -> Hostile:
    """The honest certificate about another file, which it names."""
    document = copy.deepcopy(known.document)
    document[S][M][0] |= {"sha256": sha(content), "format": form}
    return Hostile(kind, pack(document), (content, known.model))


F = (S, "further")
VALUES, CHANCES, EITHER = (*F, "values", 0), (*F, "chances", 0), (*F, "either", 0)
ALTERNATIVE: Document = {name: [] for name in ("domain", "rows", "clauses", "orders", "either", "changes", "apart")}
ANYTHING: Document = {"runs": [[None, None]]}
CAVITIES: Document = {"point": 0, "width": 2, "features": [0, 1], "cells": [[ANYTHING], [ANYTHING]], "rows": [[0, 0]]}
CHANGES_OF_ANSWER: dict[str, Callable[[Document], None]] = {
    "inputs of one point": lambda d: d["inputs"].pop(),
    "inputs with a feature less": lambda d: d["inputs"][0].pop(),
    "an input that is a text": put("inputs", 0, 0, "1"),
    "an input that is a flag": put("inputs", 0, 0, True),
    "an infinite input": put("inputs", 0, 0, float("inf")),
    "a proof beside inputs": put("nodes", []),
    "what else is asked is a list": put(*F, []),
    "what else is asked has a part too many": put(*F, "unless", []),
    "what else is asked has no alternatives": drop(*F, "either"),
    "what else is asked has no sums": drop(*F, "values"),
    "sums that are an object": put(*F, "values", {}),
    "a sum that is a list": put(*VALUES, []),
    "a sum with a part too many": put(*VALUES, "least", "0"),
    "a sum that says nothing of strict": drop(*VALUES, "strict"),
    "a sum that is strict as a number": put(*VALUES, "strict", 0),
    "a sum with a limit that is a number": put(*VALUES, "most", 5),
    "a sum with a limit over zero": put(*VALUES, "most", "1/0"),
    "a sum that is not satisfied": put(*VALUES, "most", "-1000"),
    "a sum of four parts": put(*VALUES, "terms", [["1", 0, 0, None]]),
    "a sum of five parts": put(*VALUES, "terms", [["1", 0, 0, {"point": 1}, "1"]]),
    "a sum of a factor that is a number": put(*VALUES, "terms", [[0, 0, 0]]),
    "a sum of point 2": put(*VALUES, "terms", [["0", 2, 0]]),
    "a sum of point -1": put(*VALUES, "terms", [["0", -1, 0]]),
    "a sum of feature 3": put(*VALUES, "terms", [["0", 0, 3]]),
    "a sum of a flag": put(*VALUES, "terms", [["0", False, 0]]),
    "a distance from nothing": put(*VALUES, "terms", [["0", 0, 0, {}, "1", 1]]),
    "a distance from a number": put(*VALUES, "terms", [["0", 0, 0, 1, "1", 1]]),
    "a distance from a point and a value": put(*VALUES, "terms", [["0", 0, 0, {"point": 1, "value": 0}, "1", 1]]),
    "a distance from point 2": put(*VALUES, "terms", [["0", 0, 0, {"point": 2}, "1", 1]]),
    "a distance from a text": put(*VALUES, "terms", [["0", 0, 0, {"value": "0"}, "1", 1]]),
    "a distance from no number": put(*VALUES, "terms", [["0", 0, 0, {"value": float("nan")}, "1", 1]]),
    "a distance from a row": put(*VALUES, "terms", [["0", 0, 0, {"row": 0}, "1", 1]]),
    "a distance in units of 0": put(*VALUES, "terms", [["0", 0, 0, {"point": 1}, "0", 1]]),
    "a distance in units below 0": put(*VALUES, "terms", [["0", 0, 0, {"point": 1}, "-1", 1]]),
    "a distance in units that are a number": put(*VALUES, "terms", [["0", 0, 0, {"point": 1}, 1, 1]]),
    "a distance to the power of 0": put(*VALUES, "terms", [["0", 0, 0, {"point": 1}, "1", 0]]),
    "a distance to the power of 3": put(*VALUES, "terms", [["0", 0, 0, {"point": 1}, "1", 3]]),
    "a distance to a power that is a flag": put(*VALUES, "terms", [["0", 0, 0, {"point": 1}, "1", True]]),
    "probabilities that are not as great": put(*CHANCES, "least", "2"),
    "probabilities with a part too many": put(*CHANCES, "most", "2"),
    "probabilities with a bound that is a number": put(*CHANCES, "least", 0),
    "a probability of three parts": put(*CHANCES, "terms", [["1", [], []]]),
    "a probability of a number": put(*CHANCES, "terms", [["1", 5]]),
    "a probability of output 1": put(*CHANCES, "terms", [["1", [[[["1", 0, 1]], "0"]]]]),
    "a probability of point 2": put(*CHANCES, "terms", [["1", [[[["1", 2, 0]], "0"]]]]),
    "a probability whose constant is a number": put(*CHANCES, "terms", [["1", [[[], 0]]]]),
    "a power of e beyond all memory": put(*CHANCES, "terms", [["1", [[[], "9" * 5000]]]]),
    "a curve that is a number": put(*CHANCES, "terms", [["1", [["1", 0, 0]], 5]]),
    "a curve of nothing": put(*CHANCES, "terms", [["1", [["1", 0, 0]], {"of_probability": True}]]),
    "a curve of output 1": put(*CHANCES, "terms", [["1", [["1", 0, 1]], None]]),
    "a curve without knots": put(*CHANCES, "terms", [["1", [["1", 0, 0]], {"of_probability": True, "knots": []}]]),
    "a curve that falls": put(
        *CHANCES, "terms", [["9", [["1", 0, 0]], {"of_probability": True, "knots": [["0", "1"], ["1", "0"]]}]]
    ),
    "a curve that goes back": put(
        *CHANCES, "terms", [["9", [["1", 0, 0]], {"of_probability": True, "knots": [["1", "0"], ["0", "1"]]}]]
    ),
    "a knot of three numbers": put(
        *CHANCES, "terms", [["9", [["1", 0, 0]], {"of_probability": True, "knots": [["1", "0", "1"]]}]]
    ),
    "a curve that is two": put(
        *CHANCES,
        *(
            "terms",
            [["9", [["1", 0, 0]], {"of_probability": True, "slope": "1", "intercept": "0", "knots": [["0", "1"]]}]],
        ),
    ),
    "a curve whose slope is a number": put(
        *CHANCES, "terms", [["9", [["1", 0, 0]], {"of_probability": True, "slope": 1, "intercept": "0"}]]
    ),
    "a curve of a number": put(
        *CHANCES, "terms", [["9", [["1", 0, 0]], {"of_probability": 1, "slope": "1", "intercept": "0"}]]
    ),
    "an alternative that is a number": put(*EITHER, [5]),
    "an alternative with a part too many": put(*EITHER, [{**ALTERNATIVE, "unless": []}]),
    "an alternative without clauses": put(*EITHER, [{k: v for k, v in ALTERNATIVE.items() if k != "clauses"}]),
    "an alternative of feature 9": put(*EITHER, [{**ALTERNATIVE, "domain": [[0, 9, {"missing": True}]]}]),
    "an alternative of what else is asked": put(*EITHER, [{**ALTERNATIVE, "further": {}}]),
    "alternatives none of which holds": put(*EITHER, []),
    "an alternative that never holds": put(*EITHER, [{**ALTERNATIVE, "clauses": [[]]}]),
    "fewer changes than there are": put(*F, "changes", [{"features": [0, 1, 2], "most": -1}]),
    "more changes than there are": put(*F, "apart", [{"features": [0, 1, 2], "least": 4}]),
    "changes of a feature twice": put(*F, "changes", [{"features": [0, 0], "most": 3}]),
    "changes of feature -1": put(*F, "changes", [{"features": [-1], "most": 3}]),
    "changes that are a flag": put(*F, "changes", [{"features": [0], "most": True}]),
    "cavities of no width": put(*F, "cavities", [{**CAVITIES, "width": 0}]),
    "cavities whose width is a flag": put(*F, "cavities", [{**CAVITIES, "width": True}]),
    "cavities of point 2": put(*F, "cavities", [{**CAVITIES, "point": 2}]),
    "cavities of a feature twice": put(*F, "cavities", [{**CAVITIES, "features": [0, 0]}]),
    "cavities with a row of one cell": put(*F, "cavities", [{**CAVITIES, "rows": [[0, 0], [0]]}]),
    "cavities with a cell that is none": put(*F, "cavities", [{**CAVITIES, "rows": [[0, 0], [0, 1]]}]),
    "cavities with a cell that is a flag": put(*F, "cavities", [{**CAVITIES, "rows": [[0, 0], [0, False]]}]),
    "cavities with a cell of values beside runs": put(
        *F, "cavities", [{**CAVITIES, "cells": [[{"runs": [], "values": []}], [ANYTHING]]}]
    ),
    "cavities without rows": put(*F, "cavities", [{**CAVITIES, "rows": []}]),
    "a cavity that holds the input": put(*F, "cavities", [{**CAVITIES, "rows": [[0, None], [None, None]]}]),
}


def honest_answer(folder: Path) -> Honest:
    """The certificate of an answer whose statement names sums, probabilities, alternatives and changes."""
    known = honest(folder)
    head = f'model m from "{folder / "m.json"}"\n' + "".join(f"feature f{f}: real in [0, 2]\n" for f in range(3))
    text = (
        "find a, b in m such that distance(a, b, l1) <= 1.5; prob(a) + prob(b) >= 0.3; changes(a, b) <= 2; "
        "a.f0 + b.f1 >= 0.5 or margin(a) >= 1"
    )
    query = query_of(f"{head}query q: {text}", folder)
    witness = answer(query, Options(time_limit=20)).witness
    assert witness is not None
    document = existence(query, witness, by_value="alone").document
    return Honest(json.loads(json.dumps(document)), known.model, known.other)


def of_answers(known: Honest) -> Iterator[Hostile]:
    """Changes of a certificate of an answer, and a proof that has what only an answer has."""
    for kind, change in CHANGES_OF_ANSWER.items():
        document = copy.deepcopy(known.document)
        change(document)
        yield Hostile(kind, pack(document), (known.model,))
    proof = copy.deepcopy(known.document) | {"claim": "none", "apart": [], "nodes": [[]]}
    del proof["inputs"]
    before, after = json.dumps({**ALTERNATIVE, "either": [["inside"]]}).split('"inside"')
    text = json.dumps(known.document | {S: {**known.document[S], "further": "inside"}})
    deep = text.replace('"inside"', before * 2_000 + json.dumps(ALTERNATIVE) + after * 2_000)
    yield Hostile("alternatives in alternatives in alternatives", lzma.compress(deep.encode()), (known.model,))
    yield Hostile("a proof with what only inputs are looked at for", pack(proof), (known.model,))


def corpus(folder: Path) -> tuple[Honest, list[Hostile]]:
    """The honest certificate, and one of every kind that is not."""
    known = honest(folder)
    return known, [*of_statement(known), *of_files(known), *of_models(known), *of_answers(honest_answer(folder))]
