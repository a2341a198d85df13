"""Running a command in this process, and a small model to ask about."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest

from tests.corpus import boosted
from treesens.cli import main


@dataclass(frozen=True)
class Ran:
    """What a command did."""

    code: int
    out: str
    err: str

    @property
    def record(self) -> dict:  # type: ignore[type-arg]
        return json.loads(self.out)


@pytest.fixture
def treesens(capsys: pytest.CaptureFixture[str]) -> Callable[..., Ran]:
    def run(*args: str | Path) -> Ran:
        with pytest.raises(SystemExit) as ended:
            main([str(a) for a in args])
        captured = capsys.readouterr()
        return Ran(int(ended.value.code or 0), captured.out, captured.err)

    return run


@pytest.fixture(scope="session")
def model_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Six trees over age, sex and hours; sex matters."""
    rng = np.random.default_rng(5)
    rows = np.column_stack((rng.random(300), rng.integers(0, 2, 300), rng.random(300))).astype(np.float32)
    labels = (rows[:, 0] + 0.6 * rows[:, 1] + 0.2 * rng.random(300) > 0.9).astype(int)
    booster = boosted(rows, labels, 6, names=["age", "sex", "hours"], seed=1)
    path = tmp_path_factory.mktemp("model") / "small.json"
    booster.save_model(path)
    return path


@pytest.fixture
def sens_file(tmp_path: Path, model_file: Path) -> Path:
    path = tmp_path / "small.sens"
    path.write_text(
        f"""model small from "{model_file}"
feature sex: category {{Female = 0, Male = 1}}
feature age: real in [0, 1]

query sex_alone:
  sensitive to sex gap 0.1

query best:
  find a, b such that
    a = b except {{sex, age}}
    prob(a) >= 0.6
    margin(b) < -0.4
    abs(a.age - b.age) <= 0.25
    a.age in [0.5, 1) or b.sex = Male
  maximize margin(a) - margin(b)
  expect some
"""
    )
    return path
