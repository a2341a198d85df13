"""`treesens info`: a model file described without its library, and checked against it."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.commands.conftest import Ran
from tests.corpus import regressed
from tests.counted import calls_of
from treesens.frontends.registry import load
from treesens.records.model import leaf_depths, model_record

Command = Callable[..., Ran]


def test_the_facts_of_a_model(treesens: Command, model_file: Path) -> None:
    record = treesens("info", model_file, "--json").record
    assert record["format"] == "xgboost-json"
    assert record["trees"] == 6
    assert record["depth"] == {"max": 3, "mean": 3.0}
    assert record["link"] == "logistic"
    assert record["number_type"] == "float32"
    assert record["comparison"] == "<"
    assert len(record["sha256"]) == 64
    by_name = {f["name"]: f for f in record["features"]}
    assert by_name["sex"]["guards"] == 1
    assert by_name["age"]["guards"] > 1
    assert sum(f["splits"] for f in record["features"]) == record["nodes"] - record["leaves"]
    assert record["missing"]["nodes_left"] + record["missing"]["nodes_right"] == record["nodes"] - record["leaves"]


def test_depths_by_walking_the_trees(model_file: Path) -> None:
    e = load(model_file).ensemble

    def walk(node: int, depth: int) -> dict[int, int]:
        if e.node_feature[node] < 0:
            return {int(e.node_leaf[node]): depth}
        return walk(int(e.left[node]), depth + 1) | walk(int(e.right[node]), depth + 1)

    expected: dict[int, int] = {}
    for root in e.tree_offset[:-1]:
        expected |= walk(int(root), 0)
    assert leaf_depths(e).tolist() == [expected[i] for i in range(e.n_leaves)]


def test_the_check_agrees_with_the_library(treesens: Command, model_file: Path) -> None:
    ran = treesens("info", model_file, "--check", "--rows", "50")
    assert ran.code == 0
    assert "library: equal on" in ran.out


def test_a_library_that_contradicts_is_an_error(
    treesens: Command, model_file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from treesens.frontends.xgboost.native import NativeXGBoost

    honest = NativeXGBoost.margins
    monkeypatch.setattr(NativeXGBoost, "margins", lambda self, rows: honest(self, rows) + 1)
    ran = treesens("info", model_file, "--check", "--json", "--rows", "50")
    assert ran.code == 10
    assert ran.record["check"]["ok"] is False


def test_a_library_that_is_not_here_is_inconclusive(
    treesens: Command, model_file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from treesens.commands import info

    monkeypatch.setattr(info, "find_spec", lambda name: None)
    ran = treesens("info", model_file, "--check", "--json")
    assert ran.code == 5
    assert "pip install" in ran.record["check"]["summary"]


def test_no_model(treesens: Command, tmp_path: Path) -> None:
    path = tmp_path / "zeros.json"
    path.write_bytes(bytes(1000))
    ran = treesens("info", path)
    assert ran.code == 2
    assert "all bytes at the start of the file are zero" in ran.err
    assert treesens("info", tmp_path / "absent.json").code == 2


def test_nothing_heavy_is_imported(model_file: Path) -> None:
    code = (
        "import sys, json; from treesens.cli import main\n"
        "try: main(['info', sys.argv[1]])\n"
        "except SystemExit: pass\n"
        "heavy = {'xgboost', 'sklearn', 'pandas', 'ortools', 'lark', 'z3'} & set(sys.modules)\n"
        "print(json.dumps(sorted(heavy)), file=sys.stderr)"
    )
    ran = subprocess.run([sys.executable, "-c", code, str(model_file)], capture_output=True, text=True, check=True)
    assert json.loads(ran.stderr.splitlines()[-1]) == []


def test_the_record_of_many_trees_takes_few_calls_for_each_node(tmp_path: Path) -> None:
    import numpy as np

    rng = np.random.default_rng(0)
    path = tmp_path / "large.json"
    regressed(rng.random((2000, 10)), rng.random(2000), 500, 5, path=path)
    records = []
    calls = calls_of(lambda: records.append(model_record(load(path))))
    assert records[0]["trees"] == 500
    assert calls < 20 * records[0]["nodes"]
