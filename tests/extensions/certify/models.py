"""Tiny models, trained by XGBoost, and questions about them whose answer is `none`."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import xgboost

from tests.corpus import boosted

FEATURES = 3


def train(seed: int, path: Path, *, trees: int = 3, depth: int = 2) -> xgboost.Booster:
    """A binary classifier over three small features, saved as JSON."""
    random = np.random.default_rng(seed)
    x = random.integers(0, 4, (60, FEATURES)).astype(np.float32) / 2
    y = ((x[:, 0] > random.uniform(0, 1.5)) ^ (x[:, 1] + x[:, 2] > random.uniform(0.5, 2))).astype(int)
    y[:2] = 0, 1
    return boosted(x, y, trees, depth, path=path, eta=0.7, base_score=0.5, seed=seed)


QUESTIONS = {
    "pair": "find a, b in m such that a = b except f0; margin(a) >= {g}; margin(b) <= -{g}",
    "two": "find a, b in m such that a = b except {{f0, f1}}; prob(a) >= 0.5 + {p}; prob(b) <= 0.5 - {p}; a.f1 in [-0.75, 1.5]",
    "one": "find a in m such that margin(a) >= {g}; a.f1 <= 1",
    "order": "find a, b in m such that a = b except f0; a.f0 <= b.f0; margin(a) - margin(b) >= {g}",
    "either": "find a in m such that a.f0 in [0, 0.4] or a.f1 >= 1.2; margin(a) >= {g}",
    "likely": "find a, b in m such that a = b except f0; likelihood(a, d) >= 0.05; margin(a) - margin(b) >= {g}",
    "free": "find a, b in m such that margin(a) - margin(b) >= 2 * {g}",
}

DECLARATIONS = {
    "plain": "",
    "whole": "feature f0: integer in [0, 2]\nfeature f1: integer in [-1, 1]",
    "missing": "feature f1: real in [0, 2] or missing\nfeature f2: category {{0, 0.5, 1}}",
}


def file_of(model: Path, question: str, declared: str, gap: str, prob: str) -> str:
    """The text of a file with one question; `d` is a table of twelve rows beside the model."""
    table = model.with_suffix(".csv")
    if not table.exists():
        rows = np.random.default_rng(1).integers(0, 4, (12, FEATURES)) / 2
        table.write_text("f0,f1,f2\n" + "".join(",".join(map(str, row)) + "\n" for row in rows.tolist()))
    head = f'model m from "{model}"\ndata d from "{table}"\n{declared.format()}\n'
    return f"{head}query q: {question.format(g=gap, p=prob)}\n"
