"""`--json` of a study is printed with its certificates. Until then the answer lies in their folder."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from tests.corpus import boosted

SECONDS = 120.0
COMMAND = (sys.executable, "-m", "treesens", "gap", "m.json", "-q", "--json")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model of eight features, whose certificates take a while."""
    made = tmp_path_factory.mktemp("kept")
    x = np.random.default_rng(1).random((400, 8)).astype(np.float32)
    y = (x[:, 0] * x[:, 1] + x[:, 2] * x[:, 3] > x[:, 4] * x[:, 5] + 0.2).astype(int)
    boosted(x, y, 20, 4, path=made / "m.json", base_score=0.5)
    return made


def test_a_killed_process_leaves_its_answer(folder: Path) -> None:
    plain = subprocess.run(COMMAND, cwd=folder, capture_output=True, check=False)
    expected = json.loads(plain.stdout)
    out = folder / "out"
    running = subprocess.Popen(
        [*COMMAND, "--certificate", "out"], cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    try:
        end = time.monotonic() + SECONDS
        while not (kept := list(out.glob("*.answer.json"))) and running.poll() is None:
            assert time.monotonic() < end
            time.sleep(0.002)
        running.kill()
        printed, _ = running.communicate()
    finally:
        running.kill()
    assert kept
    assert not printed
    assert set(json.loads(kept[0].read_text())) == set(expected)


def test_nothing_is_left_of_a_process_that_ends(folder: Path, tmp_path: Path) -> None:
    done = subprocess.run(
        [*COMMAND, "--certificate", str(tmp_path / "out")], cwd=folder, capture_output=True, check=False
    )
    assert "manifest" in json.loads(done.stdout)
    assert list((tmp_path / "out").glob("*.answer.json")) == []
    assert list((tmp_path / "out").glob("*.manifest.json"))
