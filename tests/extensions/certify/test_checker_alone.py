"""The checker by itself: it needs Python alone, and its numbers are those of C, numpy and XGBoost."""

from __future__ import annotations

import ast
import ctypes
import hashlib
import json
import lzma
import math
import os
import re
import shutil
import subprocess
import sys
from decimal import Context
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import xgboost

from tests.corpus import margins_of
from tests.extensions.certify.made import query_of
from tests.extensions.certify.models import train
from treesens.extensions import treesens_verify as checker
from treesens.extensions.certify import produce
from treesens.extensions.certify.produce import refutation

SOURCE = Path(checker.__file__).parent


def made(folder: Path) -> tuple[Path, Path]:
    """A tiny model and a certificate about it."""
    model = folder / "m.json"
    train(5, model)
    query = query_of(f'model m from "{model}"\nquery q: find a in m such that margin(a) >= 9', folder)
    file = folder / "q.cert.xz"
    file.write_bytes(refutation(query).packed())
    return model, file


def run(package: Path, *arguments: object) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-S", "-m", package.name, *map(str, arguments)]
    alone = {**os.environ, "PYTHONPATH": str(package.parent)}
    return subprocess.run(command, capture_output=True, text=True, check=False, env=alone)


def test_a_copy_checks_with_the_standard_library_alone(tmp_path: Path) -> None:
    model, file = made(tmp_path)
    copy = tmp_path / "elsewhere"
    shutil.copytree(SOURCE, copy)
    answer = run(copy, file, "--model", model)
    assert answer.returncode == 0, answer.stderr
    assert "No inputs exist, in values as the models store them:" in answer.stdout
    assert "a is an input of model 0" in answer.stdout
    assert "margin(a, output 0) >= 9" in answer.stdout
    assert answer.stdout.endswith("accepted\n")


def test_another_model_is_rejected(tmp_path: Path) -> None:
    model, file = made(tmp_path)
    model.write_bytes(model.read_bytes() + b" ")
    answer = run(SOURCE, file, "--model", model)
    assert answer.returncode == 1
    assert "rejected: no model file has the SHA-256" in answer.stdout


@pytest.mark.parametrize(
    "content", [b"", b"no xz", lzma.compress(b"{"), lzma.compress(b"[]"), lzma.compress(b'{"format": 1}')]
)
def test_files_that_are_no_certificates_are_rejected(content: bytes, tmp_path: Path) -> None:
    model, file = made(tmp_path)
    file.write_bytes(content)
    answer = run(SOURCE, file, "--model", model)
    assert answer.returncode == 1, answer.stderr
    assert "rejected" in answer.stdout
    assert "Traceback" not in answer.stderr


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no pipes with names")
def test_what_is_no_plain_file_is_refused_at_once(tmp_path: Path) -> None:
    """A pipe without a writer, and a device that never ends: as a certificate, a manifest, a part of one, and a model."""
    model, file = made(tmp_path)
    pipe, device, folder = (tmp_path / f"{name}.cert.xz" for name in ("pipe", "device", "folder"))
    listed, named = tmp_path / "listed.manifest.json", tmp_path / "named.manifest.json"
    os.mkfifo(pipe)
    os.mkfifo(listed)
    device.symlink_to("/dev/zero")
    folder.mkdir()
    parts = [{"file": pipe.name, "sha256": "0" * 64}]
    head = {"format": "treesens-manifest", "version": 1}
    named.write_text(json.dumps({**head, "parts": parts, "claims": [{"kind": "each", "parts": [0]}]}))
    answer = run(SOURCE, pipe, device, folder, listed, named, "--model", model)
    lines = [line for line in answer.stdout.splitlines() if "rejected" in line]
    assert answer.returncode == 1
    plain = "it is no plain file: copy what it gives into one"
    assert [line.split("rejected: ")[1] for line in lines] == [
        *(plain, plain, "Is a directory", plain),
        f"part 0, {pipe.name}: {plain}",
    ]
    answer = run(SOURCE, file, "--model", pipe)
    assert (answer.returncode, plain in answer.stdout) == (2, True)


def test_it_imports_the_standard_library_alone() -> None:
    for file in SOURCE.glob("*.py"):
        for node in ast.walk(ast.parse(file.read_text())):
            names = [a.name for a in node.names] if isinstance(node, ast.Import) else []
            names += [node.module or ""] if isinstance(node, ast.ImportFrom) and not node.level else []
            # Nothing imports boxes.py, and bits.py by it, unless --numpy is asked for (tests/extensions/certify/test_boxes.py).
            allowed = {"numpy"} if file.name in ("boxes.py", "bits.py") else set[str]()
            assert all(name in allowed or name in sys.stdlib_module_names for name in names)
            if isinstance(node, ast.ImportFrom) and node.level:
                assert node.level == 1
                assert (SOURCE / f"{node.module}.py").exists()


def lines_of_code(name: str) -> int:
    """The lines of a file of the checker, without docstrings and comments."""
    text = (SOURCE / name).read_text()
    prose = {
        line
        for node in ast.walk(ast.parse(text))
        if isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef)) and ast.get_docstring(node) is not None
        for line in range(node.body[0].lineno, (node.body[0].end_lineno or 0) + 1)
    }
    code = [n for n, line in enumerate(text.splitlines(), 1) if line.strip() and not line.strip().startswith("#")]
    return len(set(code) - prose)


def test_the_core_is_short() -> None:
    """What has to be read to believe a `none`: the statement on cells and the proof."""
    assert lines_of_code("core.py") <= 300


def test_the_readme_says_how_much_there_is_to_read() -> None:
    rows = re.findall(r"^\| (`.*`) \| .* \| (\d+)", (SOURCE.parents[1] / "README.md").read_text(), re.MULTILINE)
    files = {name for names, _ in rows for name in re.findall(r"`(\w+\.py)`", names)}
    assert files == {file.name for file in SOURCE.glob("[!_]*.py")}
    for names, stated in rows:
        count = sum(map(lines_of_code, re.findall(r"`(\w+\.py)`", names)))
        assert -(-count // 10) * 10 == int(stated), names


def test_decimals_are_rounded_as_by_c() -> None:
    strtof = ctypes.CDLL(None).strtof
    strtof.restype, strtof.argtypes = ctypes.c_float, [ctypes.c_char_p, ctypes.c_void_p]
    random = np.random.default_rng(1)
    floats = np.frombuffer(random.bytes(40_000), np.float32)
    texts = [repr(float(x)) for x in floats if np.isfinite(x)]
    for x in floats[:2000]:
        if np.isfinite(x) and np.isfinite(above := np.nextafter(x, np.float32(np.inf))):
            middle = (Fraction(float(x)) + Fraction(float(above))) / 2
            exact = Context(prec=200).divide(middle.numerator, middle.denominator)
            texts += [f"{exact:f}", f"{exact:f}1" if "." in f"{exact:f}" else f"{exact:f}.01"]
    texts += ["0", "-0.0", "1e-46", "1.4e-45", "7e-46", "7.1e-46", "3.4028235e38", "5E-1"]
    for text in texts:
        assert checker.float32(text) == strtof(text.encode(), None), text


def test_steps_are_those_of_numpy() -> None:
    for x in [*np.frombuffer(np.random.default_rng(2).bytes(4000), np.float32), np.float32(0), np.float32(1.4e-45)]:
        if np.isfinite(x) and abs(x) < checker.LARGEST["float32"]:
            assert checker.step(float(x) + 0.0, 1) == float(np.nextafter(x, np.float32(np.inf)))
            assert checker.step(float(x) + 0.0, -1) == float(np.nextafter(x, np.float32(-np.inf)))


@pytest.mark.parametrize(
    "x", ["1", "3/2", "2/3", "4/3", "1/1000000", "99999/7", "1000000007/1000000009", "5/10000000000"]
)
def test_logarithms_lie_between_their_bounds(x: str) -> None:
    argument, context = Fraction(x), Context(prec=70)
    low, high = checker.ln_bounds(argument)
    exact = context.ln(context.divide(argument.numerator, argument.denominator))
    assert low <= Fraction(exact) + Fraction(1, 10**60)
    assert high >= Fraction(exact) - Fraction(1, 10**60)
    assert high - low < Fraction(1, 10**60)


NAMED = {"format": "xgboost-json", "base": ["0"]}


def claim(model: bytes, row: list[float | None], level: float, sign: int) -> dict[str, Any]:
    """The claim that an input has a margin of at least (sign 1) or at most (-1) a level."""
    bound = {"rational": str(Fraction(sign * level)), "logs": []}
    return {
        "format": "treesens-certificate",
        "version": 1,
        "claim": "found",
        "inputs": [row],
        "statement": {
            "models": [
                {"sha256": hashlib.sha256(model).hexdigest(), "format": "xgboost-json", "trees": 3, "base": ["0"]}
            ],
            "points": [{"name": "a", "model": 0}],
            "same_except": None,
            "domain": [[0, f, {"runs": [[None, None]], "missing": True}] for f in range(len(row))],
            "rows": [{"name": "m", "terms": [[str(sign), 0, 0]], "costs": [], "bound": bound, "strict": False}],
            "clauses": [],
            "orders": [],
        },
    }


def test_margins_are_those_of_xgboost(tmp_path: Path) -> None:
    path = tmp_path / "m.json"
    booster = train(7, path, depth=3)
    data, random = path.read_bytes(), np.random.default_rng(3)
    rows = random.choice([np.nan, -1, 0, 0.25, 0.5, 0.75, 1, 1.25, 1.5, 2], (150, 3)).astype(np.float32)
    for row, margin in zip(rows, margins_of(booster, rows), strict=True):
        values = [None if math.isnan(x) else float(x) for x in row]
        for sign in (1, -1):
            checker.check(claim(data, values, float(margin) - sign * 1e-5, sign), [data])
            with pytest.raises(checker.Rejected, match="a row does not hold"):
                checker.check(claim(data, values, float(margin) + sign * 1e-5, sign), [data])


def test_margins_of_two_models_are_those_of_xgboost(tmp_path: Path) -> None:
    """Two models whose leaves are whole numbers of different units: what is added up has one."""
    paths = [tmp_path / "m.json", tmp_path / "n.json"]
    boosters = [train(1, paths[0]), train(2, paths[1], trees=5, depth=3)]
    data, random = [path.read_bytes() for path in paths], np.random.default_rng(4)
    assert len({checker.read_model(d, {**NAMED, "trees": t}).scale for d, t in zip(data, (3, 5), strict=True)}) == 2
    rows = random.choice([-1, 0, 0.25, 0.5, 0.75, 1, 1.5, 2], (60, 3)).astype(np.float32)
    margins = [margins_of(b, rows) for b in boosters]
    models = [{"sha256": hashlib.sha256(d).hexdigest(), **NAMED, "trees": t} for d, t in zip(data, (3, 5), strict=True)]
    for row, one, other in zip(rows, *margins, strict=True):
        for factors in (("1", "0"), ("0", "1"), ("-1", "1"), ("2", "-1/3")):
            margin = sum(float(Fraction(f)) * float(m) for f, m in zip(factors, (one, other), strict=True))
            for shift, holds in ((-1e-5, True), (1e-5, False)):
                document = claim(data[0], [float(x) for x in row], 0, 1)
                terms = [[f, p, 0] for p, f in enumerate(factors)]
                bound = {"rational": str(Fraction(margin + shift)), "logs": []}
                document["statement"] |= {
                    "models": models,
                    "points": [{"name": "a", "model": 0}, {"name": "b", "model": 1}],
                    "same_except": [],
                    "domain": [],
                    "rows": [{"name": "m", "terms": terms, "costs": [], "bound": bound, "strict": False}],
                }
                document["inputs"] *= 2
                if holds:
                    checker.check(document, data)
                else:
                    with pytest.raises(checker.Rejected, match="a row does not hold"):
                        checker.check(document, data)


def test_a_false_claim_about_the_second_of_two_models_is_rejected(tmp_path: Path) -> None:
    """The margin of the second model exceeds 1 somewhere, whatever unit the first one counts in."""
    paths = [tmp_path / "m.json", tmp_path / "n.json"]
    train(1, paths[0])
    booster = train(2, paths[1], trees=5, depth=3)
    grid = np.stack(np.meshgrid(*[np.linspace(-0.25, 2, 10)] * 3), -1).reshape(-1, 3).astype(np.float32)
    assert margins_of(booster, grid).max() > 1.5
    data = [path.read_bytes() for path in paths]
    document = claim(data[0], [0.0] * 3, 1, 1)
    rows = [{"name": "m", "terms": [["1", 1, 0]], "costs": [], "bound": {"rational": "1", "logs": []}, "strict": False}]
    document["statement"] |= {
        "models": [
            {"sha256": hashlib.sha256(d).hexdigest(), **NAMED, "trees": t} for d, t in zip(data, (3, 5), strict=True)
        ],
        "points": [{"name": "a", "model": 0}, {"name": "b", "model": 1}],
        "domain": [],
        "rows": rows,
    }
    del document["inputs"]
    document |= {"claim": "none", "apart": [], "nodes": [[[1], 0, []]]}
    with pytest.raises(checker.Rejected, match="does not refute"):
        checker.check(document, data)


def test_the_schema_describes_what_is_written(tmp_path: Path) -> None:
    jsonschema = pytest.importorskip("jsonschema")
    schema = json.loads((Path(produce.__file__).parent / "schema.json").read_text())
    _, file = made(tmp_path)
    jsonschema.validate(checker.read(file), schema)


def test_no_control_character_of_a_file_reaches_the_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    checker.say("a.`\x1b[31msex\u202e` was rejected")
    assert capsys.readouterr().out == "a.`\\x1b[31msex\\u202e` was rejected\n"


def _stump(number: int, value: float) -> dict[str, Any]:
    """A tree of XGBoost: below 0.5 in f0 the negative value, from there on the value."""
    return {
        "id": number, "tree_param": {"num_nodes": "3", "size_leaf_vector": "1", "num_feature": "1", "num_deleted": "0"},
        "left_children": [1, -1, -1], "right_children": [2, -1, -1], "parents": [2147483647, 0, 0],
        "split_indices": [0, 0, 0], "split_conditions": [0.5, -value, value], "default_left": [0, 0, 0],
        "base_weights": [0.0] * 3, "loss_changes": [0.0] * 3, "sum_hessian": [1.0] * 3, "split_type": [0] * 3,
        "categories": [], "categories_nodes": [], "categories_segments": [], "categories_sizes": [],
    }  # fmt: skip


def _of_xgboost(trees: list[dict[str, Any]], **booster: Any) -> bytes:
    """Three outputs, a tree each."""
    model = {
        "gbtree_model_param": {"num_trees": str(len(trees)), "num_parallel_tree": "1"}, "trees": trees,
        "tree_info": [0, 1, 2], "iteration_indptr": [0, 3],
    }  # fmt: skip
    parameters = {
        "base_score": "0E0",
        "num_class": "3",
        "num_feature": "1",
        "num_target": "1",
        "boost_from_average": "0",
    }
    learner = {
        "attributes": {}, "feature_names": [], "feature_types": [], "learner_model_param": parameters,
        "objective": {"name": "multi:softprob", "softmax_multiclass_param": {"num_class": "3"}},
        "gradient_booster": {"name": "gbtree", "model": model, **booster},
    }  # fmt: skip
    return json.dumps({"learner": learner, "version": [3, 2, 0]}).encode()


STATED = {"format": "xgboost-json", "trees": 3, "base": ["0", "0", "0"]}


def test_a_tree_is_where_xgboost_puts_it() -> None:
    """At its id, wherever the file lists it: the first output has the tree of 4."""
    data = _of_xgboost([_stump(2, 1.0), _stump(1, 2.0), _stump(0, 4.0)])
    booster = xgboost.Booster()
    booster.load_model(bytearray(data))
    (theirs,) = booster.predict(xgboost.DMatrix(np.ones((1, 1)), nthread=1), output_margin=True)
    read = checker.models.read_model(data, STATED)
    assert [tree.leaves[1][0] for tree in read.trees] == theirs.tolist() == [4.0, 2.0, 1.0]


def test_a_split_by_category_has_a_threshold_that_is_none() -> None:
    """XGBoost before 3.1 writes NaN there; of a number it would be an error."""
    tree = _stump(0, 1.0)
    tree["split_conditions"][0] = float("nan")
    with pytest.raises(checker.Rejected, match="a threshold is none"):
        checker.models.read_model(_of_xgboost([tree, _stump(1, 2.0), _stump(2, 4.0)]), STATED)
    sets = {"categories": [1, 3], "categories_nodes": [0], "categories_segments": [0], "categories_sizes": [2]}
    data = _of_xgboost([tree | sets | {"split_type": [1, 0, 0]}, _stump(1, 2.0), _stump(2, 4.0)])
    data = data.replace(b'"feature_types": []', b'"feature_types": ["c"]')
    booster = xgboost.Booster()
    booster.load_model(bytearray(data))
    codes = np.arange(5.0)[:, None]
    matrix = xgboost.DMatrix(codes, feature_types=["c"], enable_categorical=True, nthread=1)
    theirs = booster.predict(matrix, output_margin=True)[:, 0]
    (_, right, *_), *_ = zip(*checker.models.read_model(data, STATED).trees[0].splits, strict=True)
    assert [float(x) for x in theirs] == [1.0 if code in right else -1.0 for code in range(5)]


@pytest.mark.parametrize(
    "data",
    [
        _of_xgboost([_stump(0, 1.0), _stump(0, 2.0), _stump(1, 4.0)]),
        _of_xgboost([_stump(1, 1.0), _stump(2, 2.0), _stump(3, 4.0)]),
        _of_xgboost([_stump(i, 1.0) for i in range(3)], name="gblinear"),
        _of_xgboost([_stump(i, 1.0) for i in range(3)], weight_drop=[0.5, 0.5, 0.5]),
    ],
    ids=["an id twice", "a gap", "a linear booster with trees", "weights beside a booster without any"],
)
def test_what_xgboost_would_not_predict_with_these_trees_is_rejected(data: bytes) -> None:
    with pytest.raises(checker.Rejected):
        checker.models.read_model(data, STATED)
