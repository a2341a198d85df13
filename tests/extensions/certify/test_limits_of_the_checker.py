"""Third set, P12 and P13: small certificates that took all time or memory, and files that are not there."""

from __future__ import annotations

import hashlib
import json
import lzma
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.corpus import boosted
from treesens.extensions import treesens_verify as checker

pytestmark = pytest.mark.fault

SOURCE = Path(checker.__file__).parent


def run(*arguments: object) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", SOURCE.name, *map(str, arguments)]
    alone = {**os.environ, "PYTHONPATH": str(SOURCE.parent)}
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=alone, timeout=120)
    assert "Traceback" not in done.stderr
    return done


@pytest.fixture(scope="module")
def large(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """A model with many leaves, and a short certificate that asks for all pairs of them."""
    folder = tmp_path_factory.mktemp("large")
    rng = np.random.default_rng(0)
    x = rng.normal(size=(3000, 20)).astype(np.float32)
    label = (x[:, :10].sum(1) + rng.normal(size=3000) > 0).astype(int)
    boosted(x, label, 60, 8, path=folder / "m.json", min_child_weight=0, base_score=0.5)
    bound = {"rational": "1", "logs": []}
    rows = [{"terms": [[c, p, 0]], "costs": [], "bound": bound, "strict": False} for p, c in enumerate(("1", "-1"))]
    model = {"sha256": sha(folder / "m.json"), "format": "xgboost-json", "trees": 60, "base": ["0"]}
    points = [{"name": name, "model": 0} for name in "ab"]
    asked = statement([model], points, same_except=list(range(20)), rows=rows)
    return folder / "m.json", written(folder / "pairs.cert.xz", asked, [[[1, 1], 0, []]])


def sha(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def statement(models: list[Any], points: list[Any], **parts: Any) -> dict[str, Any]:
    rest: dict[str, Any] = {"same_except": None, "domain": [], "rows": [], "clauses": [], "orders": []}
    return {"models": models, "points": points, **rest, **parts}


def written(path: Path, asked: dict[str, Any], nodes: list[Any]) -> Path:
    head = {"format": "treesens-certificate", "version": 1, "claim": "none", "apart": []}
    path.write_bytes(lzma.compress(json.dumps({**head, "statement": asked, "nodes": nodes}).encode()))
    return path


@pytest.mark.parametrize(
    ("option", "value", "words"),
    [
        ("--seconds", "0.5", "it is not decided after 0.5 s (--seconds allows more)"),
        ("--entries", "1000", "more combinations of leaves than are allowed (--entries allows more)"),
    ],
)
def test_a_limit_ends_it_with_its_option(option: str, value: str, words: str, large: tuple[Path, Path]) -> None:
    model, certificate = large
    assert certificate.stat().st_size < 600
    done = run(certificate, "--model", model, option, value)
    assert done.returncode == 1
    assert words in done.stdout


def test_a_bomb_takes_no_memory(large: tuple[Path, Path], tmp_path: Path) -> None:
    bomb = tmp_path / "bomb.cert.xz"
    bomb.write_bytes(lzma.compress(b"[" + b"0," * 20_000_000 + b"0]", preset=0))
    done = run(bomb, "--model", large[0], "--megabytes", 64)
    assert done.returncode == 1
    assert "rejected: the certificate has more than 4194304 bytes when it is unpacked" in done.stdout


@pytest.mark.parametrize("option", [("--seconds", "0"), ("--megabytes", "10"), ("--entries", "0")])
def test_limits_that_are_none_are_refused(option: tuple[str, str], large: tuple[Path, Path]) -> None:
    done = run(large[1], "--model", large[0], *option)
    assert done.returncode == 2
    assert "--megabytes is at least 64" in done.stderr


def test_shared_nodes_are_refused(tmp_path: Path) -> None:
    count, path = 40, tmp_path / "dag.trees.json"
    nodes = [[i, 0.5, False, i + 1, i + 1] for i in range(count)] + [[[1]]]
    made_from = {"format": "xgboost-json", "sha256": "0" * 64}
    head = {"format": "treesens-trees", "version": 1, "made_from": made_from, "number": "float32", "average": 1}
    trees = {"features": [f"f{i}" for i in range(count)], "base": ["0"], "trees": [{"outputs": [0], "nodes": nodes}]}
    path.write_text(json.dumps(head | trees))
    model = {"sha256": sha(path), "format": "treesens-trees", "trees": 1, "base": ["0"]}
    certificate = written(tmp_path / "q.cert.xz", statement([model], [{"name": "a", "model": 0}]), [[]])
    done = run(certificate, "--model", path, "--trees-alone", "--seconds", 20)
    assert done.returncode == 1
    assert "a node has two parents" in done.stdout


def test_what_is_not_there_or_too_deep_is_said(large: tuple[Path, Path], tmp_path: Path) -> None:
    done = run(tmp_path / "none.cert.xz", "--model", large[0])
    assert (done.returncode, done.stdout.strip()) == (
        1,
        f"{tmp_path}/none.cert.xz: rejected: No such file or directory",
    )
    done = run(large[1], "--model", tmp_path / "none.json")
    assert (done.returncode, done.stdout.strip()) == (
        2,
        f"{tmp_path}/none.json: the model cannot be read: No such file or directory",
    )
    for content in (
        b"[" * 200_000,
        b'{"statement": 5}',
        b'{"format": "treesens-certificate", "version": 1, "claim": []}',
    ):
        (tmp_path / "bad.cert.xz").write_bytes(lzma.compress(content))
        done = run(tmp_path / "bad.cert.xz", "--model", large[0])
        assert done.returncode == 1
        assert "rejected: " in done.stdout
