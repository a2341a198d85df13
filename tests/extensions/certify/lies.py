"""Certificates of false claims, shaped by hand: every checker has to reject each of them.

    python -m tests.extensions.certify.lies --count 1000 --seed 1

A statement is drawn around inputs that satisfy it: a row is met to the last unit, a set ends at the value, an order is a
tie. So a claim that no such inputs exist is a lie, whatever its proof. A reference in this file judges every case: it
reads the trees file by the documented format and counts in fractions. Each set of lies comes with a true claim, whose first row
needs more than any inputs have, with a proof that cuts every cell apart; lies have this proof, or a damaged copy of it.
A checker that rejects everything fails as well.

The checker in Python judges all of them, its path with the oldest and with the newest numpy that pyproject.toml allows
(each in an environment of its own in `build`), and the program from Coq; without one of these the run fails.
"""

from __future__ import annotations

import argparse
import copy
import hashlib
import importlib.util
import itertools
import json
import random
import re
import shutil
import struct
import subprocess
import sys
import tempfile
import tomllib
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any

from treesens.extensions import treesens_verify as checker

ROOT = Path(__file__).parents[3]
PROGRAM = ROOT / "build" / "coq" / "treesens-verify-coq"
JUDGE = Path(__file__).with_name("judge_with_numpy.py")
ALLOWED = {"trees_alone": True}
Document = dict[str, Any]
Input = list[float | None]


@dataclass(frozen=True)
class Case:
    """A certificate with the content of the file of its model, and whether its claim is true."""

    kind: str
    document: Document
    data: bytes
    true: bool


# --- the reference --------------------------------------------------------------------------------------------------------


def margin(file: Document, x: Input, output: int) -> Fraction:
    """A score by the documented format: x < threshold goes left, and so does a category of the set."""
    total = Fraction(0)
    for tree in file["trees"]:
        at = tree["nodes"][0]
        while len(at) > 1:
            f, test, missing, left, right = at
            value = x[f]
            if value is None:
                goes = missing
            else:
                goes = (
                    Fraction(value) in map(Fraction, test)
                    if isinstance(test, list)
                    else Fraction(value) < Fraction(test)
                )
            at = tree["nodes"][left if goes else right]
        total += sum(Fraction(v) for v, o in zip(at[0], tree["outputs"], strict=True) if o == output)
    return Fraction(file["base"][output]) + total / file["average"]


def inside(allowed: Document, x: float | None) -> bool:
    if x is None:
        return bool(allowed.get("missing"))
    runs = any((a is None or a <= x) and (b is None or x <= b) for a, b in allowed.get("runs", []))
    return x in allowed.get("values", []) or (runs and (not allowed.get("whole") or x == int(x)))


def satisfied(statement: Document, file: Document, inputs: list[Input]) -> bool:
    """True if inputs satisfy a statement, which claims that no inputs do; a feature without a set is never missing."""
    told = {(p, f) for p, f, _ in statement["domain"]}
    free = [(p, f) for p, x in enumerate(inputs) for f in range(len(x)) if (p, f) not in told]
    same = statement["same_except"]
    return (
        all(inputs[p][f] is not None for p, f in free)
        and all(inside(s, inputs[p][f]) for p, f, s in statement["domain"])
        and all(any(inside(s, inputs[p][f]) for p, f, s in clause) for clause in statement["clauses"])
        and all(_ordered(inputs[p][f], inputs[q][f]) for p, q, f in statement["orders"])
        and (same is None or all(f in same or inputs[0][f] == inputs[1][f] for f in range(len(inputs[0]))))
        and all(_holds(row, file, inputs) for row in statement["rows"])
    )


def _ordered(x: float | None, y: float | None) -> bool:
    return x is not None and y is not None and x <= y


def left_of(row: Document, file: Document, inputs: list[Input]) -> Fraction:
    """The sum of a row."""
    total = sum((Fraction(c) * margin(file, inputs[p], o) for c, p, o in row["terms"]), Fraction(0))
    for p, f, steps, other in row["costs"]:
        x = inputs[p][f]
        total += Fraction(other if x is None else [c for start, c in steps if start is None or start <= x][-1])
    return total


def _holds(row: Document, file: Document, inputs: list[Input]) -> bool:
    total, bound = left_of(row, file, inputs), Fraction(row["bound"]["rational"])
    return total > bound if row["strict"] else total >= bound


# --- random cases ---------------------------------------------------------------------------------------------------------


def float32(x: float) -> float:
    return float(struct.unpack("f", struct.pack("f", x))[0])


class Shapes:
    """Models of two or three features with thresholds that decimals do not hit, and statements around inputs."""

    def __init__(self, seed: int) -> None:
        self.dice = random.Random(seed)

    def model(self, codes: bool, number: str) -> Document:
        dice, features = self.dice, 2
        tests = [float32(dice.choice([0.1, 0.3, 0.7, 1.5])) for _ in range(3)]
        trees = []
        for t in range(dice.choice([2, 3])):
            nodes: list[Any] = []
            for depth in range(2):  # a chain of two splits
                test: Any = dice.choice(tests)
                f = dice.randrange(features)
                if codes and f == 1:
                    test = sorted(dice.sample(range(4), 2))
                at = len(nodes)
                nodes += [[f, test, dice.random() < 0.5, at + 1, at + 2], [self.leaf()]]
                if depth:
                    nodes.append([self.leaf()])
            trees.append({"outputs": [t % 2], "nodes": nodes})
        return {
            "format": "treesens-trees",
            "version": 1,
            "made_from": {"format": "other", "sha256": "0" * 64},
            "number": number,
            "features": [f"f{f}" for f in range(features)],
            "base": [str(Fraction(dice.randrange(-4, 5), 8)) for _ in range(2)],
            "average": dice.choice([1, 1, 3]),
            "trees": trees,
        }

    def leaf(self) -> list[float]:
        return [self.dice.randrange(-16, 17) / 16]

    def value(self, file: Document, f: int, codes: bool) -> float | None:
        """A value at a threshold, just below one, or a code."""
        if self.dice.random() < 0.1:
            return None
        if codes and f == 1:
            return float(self.dice.randrange(5))
        cut = float32(self.dice.choice([0.1, 0.3, 0.7, 1.5]))
        return self.dice.choice([cut, checker.step(cut, -1, file["number"]), checker.step(cut, 1, file["number"]), 0.0])

    def around(self, file: Document, x: float | None, code: bool) -> Document | None:
        """A set that a value is just in."""
        above = None if x is None else checker.step(x, 1, file["number"])
        if x is None:
            return {"runs": [[0, 2]], "missing": True, **({"whole": True} if code else {})}
        if code:
            return self.dice.choice(
                [{"runs": [[0, x]], "whole": True}, {"values": [x]}, {"runs": [[x, 7]], "whole": True}]
            )
        return self.dice.choice(
            [None, {"runs": [[None, x]]}, {"runs": [[x, None]]}, {"values": [x, 9]}, {"runs": [[x, above]]}]
        )

    def statement(self, file: Document, codes: bool) -> tuple[Document, list[Input]]:
        dice, points = self.dice, self.dice.choice([1, 2])
        inputs = [[self.value(file, f, codes) for f in range(2)] for _ in range(points)]
        same = None
        if points == 2 and dice.random() < 0.6:
            same = [0]
            inputs[1][1] = inputs[0][1]
        domain = []
        for p, f in itertools.product(range(points), range(2)):
            allowed = self.around(file, inputs[p][f], codes and f == 1)
            if allowed is not None:
                domain.append([p, f, allowed])
        orders = []
        if points == 2 and dice.random() < 0.5 and _ordered(inputs[0][0], inputs[1][0]):
            orders = [[0, 1, 0]]
        clauses = []
        if dice.random() < 0.4:
            x = inputs[0][0]
            met = {"missing": True, "runs": []} if x is None else {"values": [x]}
            clauses = [[[0, 0, met], [points - 1, 1, {"values": [8]}]]]
        rows = []
        for _ in range(dice.choice([1, 2])):
            terms = [[str(dice.choice([-2, -1, 1, 3])), dice.randrange(points), dice.randrange(2)] for _ in range(2)]
            costs: list[Any] = []
            if dice.random() < 0.3:
                start = inputs[0][0] if inputs[0][0] is not None else 0.5
                costs = [[0, 0, [[None, "0"], [start, "1/4"]], "1/8"]]
            row = {
                "terms": terms,
                "costs": costs,
                "bound": {"rational": "0", "logs": []},
                "strict": dice.random() < 0.3,
            }
            reached = left_of(row, file, inputs)
            row["bound"] = {"rational": str(reached - Fraction(1, 2**70) if row["strict"] else reached), "logs": []}
            rows.append(row)
        data = json.dumps(file).encode()
        stated = {
            "sha256": hashlib.sha256(data).hexdigest(),
            "format": "treesens-trees",
            "trees": len(file["trees"]),
            "base": file["base"],
        }
        return {
            "models": [stated],
            "points": [{"name": "ab"[p], "model": 0} for p in range(points)],
            "same_except": same,
            "domain": domain,
            "rows": rows,
            "clauses": clauses,
            "orders": orders,
        }, inputs

    def cases(self) -> Iterator[Case]:
        """A true claim, and lies about the same model."""
        codes, number = self.dice.random() < 0.3, self.dice.choice(["float32", "float32", "float64"])
        file = self.model(codes, number)
        statement, inputs = self.statement(file, codes)
        if not satisfied(statement, file, inputs):
            raise AssertionError("inputs that are drawn do not satisfy their own statement")
        data = json.dumps(file).encode()
        beyond = copy.deepcopy(statement)
        beyond["rows"][0]["bound"]["rational"] = "1000"
        problem = checker.Problem(beyond, [checker.read_model(data, beyond["models"][0])])
        nodes = apart_proof(problem)
        yield Case("true", none(beyond, nodes), data, true=True)
        for kind, damage in PROOFS.items():
            yield Case(f"tie: {kind}", none(statement, damage(copy.deepcopy(nodes), self.dice)), data, true=False)
        for kind, worse in self.unreadable(file, statement, inputs):
            assert satisfied(worse, file, inputs), kind
            yield Case(kind, none(worse, nodes), data, true=False)
        for kind, changed in self.other_models(file, statement):
            other = json.dumps(changed).encode()
            said = copy.deepcopy(statement)
            said["models"][0] |= {"sha256": hashlib.sha256(other).hexdigest(), "base": changed["base"]}
            said["rows"] = self.met(said["rows"], changed, inputs)
            if satisfied(said, changed, inputs):
                yield Case(kind, none(said, nodes), other, true=False)
        for kind, shown in self.shown(file, statement, inputs):
            if not satisfied(shown["statement"], file, shown["inputs"]):
                yield Case(kind, shown, data, true=False)

    def met(self, rows: list[Document], file: Document, inputs: list[Input]) -> list[Document]:
        """Rows with bounds that the inputs reach by another model."""
        less = Fraction(1, 2**70)
        bounds = [left_of(row, file, inputs) - (less if row["strict"] else 0) for row in rows]
        return [{**row, "bound": {"rational": str(b), "logs": []}} for row, b in zip(rows, bounds, strict=True)]

    def unreadable(self, file: Document, statement: Document, inputs: list[Input]) -> Iterator[tuple[str, Document]]:
        """Statements with numbers that no feature can have, or that are left out."""
        x = inputs[0][0]
        if x is not None and file["number"] == "float32":
            end = x + abs(x) * 2.0**-40 + 2.0**-160
            for kind, allowed in (("an end", {"runs": [[None, end]]}), ("a value", {"values": [x, end]})):
                yield f"{kind} that is no float32", {**statement, "domain": [*statement["domain"], [0, 0, allowed]]}
            yield (
                "an end beyond all float32",
                {**statement, "domain": [*statement["domain"], [0, 0, {"runs": [[None, 1e39]]}]]},
            )
            first, *others = statement["rows"]
            costs = [*first["costs"], [0, 0, [[None, "0"], [end, "-5"]], "0"]]
            yield "costs from what is no float32", {**statement, "rows": [{**first, "costs": costs}, *others]}
        if x is not None:
            big = 2**53 + 1
            yield (
                "an end beyond whole floats",
                {**statement, "domain": [*statement["domain"], [0, 0, {"runs": [[None, big]]}]]},
            )

    def other_models(self, file: Document, statement: Document) -> Iterator[tuple[str, Document]]:
        """Proofs that are about another model: one leaf, one threshold, one flag, the base, the average, a code of 2^53."""
        for kind in ("leaf", "threshold", "missing", "base", "average", "code"):
            changed = copy.deepcopy(file)
            node = changed["trees"][0]["nodes"][0]
            if kind == "leaf":
                changed["trees"][0]["nodes"][1] = [[5.0]]
            elif kind == "threshold" and not isinstance(node[1], list):
                node[1] = checker.step(node[1], 1, file["number"])
            elif kind == "missing":
                node[2] = not node[2]
            elif kind == "base":
                changed["base"][0] = str(Fraction(file["base"][0]) + 3)
            elif kind == "average":
                changed["average"] = file["average"] + 1
            elif kind == "code" and file["number"] == "float64" and isinstance(node[1], list):
                node[1] = [*node[1], 2**53 + 1]
            else:
                continue
            yield f"another model: {kind}", changed

    def shown(self, file: Document, statement: Document, inputs: list[Input]) -> Iterator[tuple[str, Document]]:
        """Inputs that miss a statement by the least possible amount."""
        for r, row in enumerate(statement["rows"]):
            more = copy.deepcopy(statement)
            bound = left_of(row, file, inputs) + Fraction(1, 2**70)
            more["rows"][r]["bound"]["rational"] = str(bound)
            yield "inputs that miss a row by 2^-70", found(more, inputs)
        for p, f, _ in statement["domain"]:
            x = inputs[p][f]
            for near in [] if x is None else [checker.step(x, d, file["number"]) for d in (-1, 1)]:
                moved = copy.deepcopy(inputs)
                moved[p][f] = near
                yield "inputs one float away", found(statement, moved)
            lost = copy.deepcopy(inputs)
            lost[p][f] = None if x is not None else 100.0
            yield "inputs with another missing value", found(statement, lost)


def none(statement: Document, nodes: list[Any]) -> Document:
    head = {"format": "treesens-certificate", "version": 1, "claim": "none"}
    return copy.deepcopy({**head, "statement": statement, "apart": [], "nodes": nodes})


def found(statement: Document, inputs: list[Input]) -> Document:
    head = {"format": "treesens-certificate", "version": 1, "claim": "found"}
    return copy.deepcopy({**head, "statement": statement, "inputs": inputs})


def apart_proof(problem: Any) -> list[Any]:
    """Cuts between all cells of all variables, and the weight of the first row at every leaf."""
    leaf = [[1, *([0] * (len(problem.constant) - 1))], 0, []]

    def below(v: int, low: int, high: int) -> list[Any]:
        if v == len(problem.sizes):
            return [leaf]
        if high - low == 1:
            return below(v + 1, 0, problem.sizes[v + 1] if v + 1 < len(problem.sizes) else 0)
        middle = (low + high) // 2
        return [[v, middle], *below(v, low, middle), *below(v, middle, high)]

    return below(0, 0, problem.sizes[0])


def _leaves(nodes: list[Any]) -> list[int]:
    return [i for i, node in enumerate(nodes) if len(node) != 2]


def _each_leaf(change: Callable[[list[Any]], list[Any]]) -> Callable[[list[Any], random.Random], list[Any]]:
    return lambda nodes, _: [change(node) if len(node) == 3 else node for node in nodes]


def _one_leaf(change: Callable[[list[Any]], list[Any]]) -> Callable[[list[Any], random.Random], list[Any]]:
    def damage(nodes: list[Any], dice: random.Random) -> list[Any]:
        at = dice.choice(_leaves(nodes))
        nodes[at] = change(nodes[at])
        return nodes

    return damage


def _cut_moved(nodes: list[Any], dice: random.Random) -> list[Any]:
    at = dice.choice([i for i, node in enumerate(nodes) if len(node) == 2])
    nodes[at][1] += dice.choice([-1, 1])
    return nodes


def _left_out(nodes: list[Any], dice: random.Random) -> list[Any]:
    del nodes[dice.choice(_leaves(nodes))]
    return nodes


PROOFS: dict[str, Callable[[list[Any], random.Random], list[Any]]] = {
    "the proof of more": lambda nodes, _: nodes,
    "one leaf": lambda nodes, _: [nodes[_leaves(nodes)[0]]],
    "no nodes": lambda _nodes, _: [],
    "sums": lambda _nodes, _: [["sums"]],
    "the last leaf is left out": lambda nodes, _: nodes[:-1],
    "a leaf is left out": _left_out,
    "a cut is moved": _cut_moved,
    "leaves of nothing": _each_leaf(lambda _: []),
    "a leaf of nothing": _one_leaf(lambda _: []),
    "weights of 2^80": _each_leaf(lambda node: [[x << 80 for x in node[0]], 0, []]),
    "no weights": _each_leaf(lambda node: [[0 for _ in node[0]], 0, []]),
    "weights below zero": _each_leaf(lambda node: [[-x for x in node[0]], 0, []]),
    "weights of all rows": _each_leaf(lambda node: [[1 for _ in node[0]], 0, []]),
    "messages of one factor alone": _each_leaf(lambda node: [node[0], 0, [[0, 0, 0, -(1 << 60)]]]),
    "messages beyond all cells": _each_leaf(lambda node: [node[0], 40, [[0, 0, 1, -(1 << 90)]]]),
    "leaves twice": lambda nodes, _: [*nodes, *nodes],
}


def cases(count: int, seed: int) -> Iterator[Case]:
    """At least `count` lies that the program from Coq can read, with true claims among them."""
    from tests.extensions.certify.test_boxes import of_many_cells

    lies, number = 0, seed << 20
    while lies < count:
        number += 1
        for case in Shapes(number).cases():
            yield case
            lies += not case.true and case.document["claim"] == "none"
    for _ in range(max(1, count // 1000)):
        lie, _answer, data = of_many_cells()
        yield Case("wrapped cells", lie, data, true=False)


# --- the checkers ---------------------------------------------------------------------------------------------------------


def by_python(case: Case) -> bool:
    try:
        checker.check(case.document, [case.data], **ALLOWED)
    except checker.Rejected:
        return False
    return True


def by_numpy(python: Path, folder: Path, judged: list[Case]) -> list[bool]:
    """The verdicts of the path with numpy, in an environment that holds nothing but numpy."""
    file = folder / "cases.jsonl"
    with file.open("w") as out:
        for case in judged:
            out.write(json.dumps([case.document, case.data.decode()]) + "\n")
    done = subprocess.run(
        [python, "-I", JUDGE, ROOT / "verify" / "src", file], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return [bool(x) for x in json.loads(done.stdout)]


def by_coq(folder: Path, judged: list[Case]) -> list[bool | None]:
    """The verdicts of the program from Coq; None for cases that the converter turns away before it."""
    spec = importlib.util.spec_from_file_location("integers", ROOT / "verify" / "coq" / "integers.py")
    assert spec is not None
    assert spec.loader is not None
    export = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(export)
    said: list[bool | None] = []
    files = []
    for number, case in enumerate(judged):
        file = folder / f"{number}.integers"
        try:
            file.write_text(" ".join(map(str, export.integers_of(case.document, [case.data], **ALLOWED))))
        except (export.verify.Rejected, *export.verify.core.MALFORMED):
            said.append(None)
            continue
        said.append(False)
        files.append((number, file))
    for at in range(0, len(files), 500):
        some = files[at : at + 500]
        done = subprocess.run([PROGRAM, *(f for _, f in some)], capture_output=True, text=True, check=False)
        lines = [line for line in done.stdout.splitlines() if not line.startswith("  ")]
        assert len(lines) == len(some), done.stderr
        for line, (number, file) in zip(lines, some, strict=True):
            said[number] = line.startswith(f"{file}: accepted")
    return said


def environments() -> dict[str, Path]:
    """The oldest and the newest numpy that pyproject.toml allows, each in an environment of its own in `build`."""
    needs = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["dependencies"]
    (oldest,) = (re.sub(r"numpy>=([0-9.]+).*", r"\1", need) for need in needs if need.startswith("numpy"))
    made = {}
    for name, need in (("oldest", f"numpy=={oldest}.*"), ("newest", "numpy")):
        folder = ROOT / "build" / f"numpy-{name}"
        python = folder / "bin" / "python"
        if not python.exists():
            subprocess.run([sys.executable, "-m", "venv", folder], check=True)
        pip = [python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--upgrade", need]
        subprocess.run(pip, check=True)
        version = subprocess.run(
            [python, "-c", "import numpy; print(numpy.__version__)"], capture_output=True, text=True, check=True
        )
        made[f"numpy {version.stdout.strip()}"] = python
    return made


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0] if __doc__ else None)
    parser.add_argument("--count", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=1)
    asked = parser.parse_args()
    if not PROGRAM.exists() or not shutil.which(str(PROGRAM)):
        print(f"{PROGRAM} is missing: make coq (Debian: apt install coq libzarith-ocaml-dev)")
        return 2
    judged = list(cases(asked.count, asked.seed))
    proofs = [case for case in judged if case.document["claim"] == "none"]
    lies = [case for case in judged if not case.true]
    print(f"{len(lies)} lies ({sum(not c.true for c in proofs)} of them proofs), {len(judged) - len(lies)} true claims")
    print(f"{len({case.kind for case in lies})} kinds: {dict(Counter(case.kind for case in lies))}")
    failed = 0
    with tempfile.TemporaryDirectory() as folder:
        verdicts: dict[str, tuple[list[Case], list[bool | None]]] = {"Python": (judged, [by_python(c) for c in judged])}
        for name, python in environments().items():
            verdicts[name] = (judged, [*by_numpy(python, Path(folder), judged)])
        verdicts["Coq"] = (proofs, by_coq(Path(folder), proofs))
        for name, (mine, said) in verdicts.items():
            accepted = [c.kind for c, verdict in zip(mine, said, strict=True) if verdict and not c.true]
            refused = sum(1 for c, verdict in zip(mine, said, strict=True) if not verdict and c.true)
            early = sum(verdict is None for verdict in said)
            wrong = f"; ACCEPTED LIES: {accepted}" if accepted else ""
            print(
                f"{name}: {len(mine)} judged ({early} turned away by their form), {refused} true claims refused{wrong}"
            )
            failed += len(accepted) + refused
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
