"""A stranger's first minute: a wheel in an empty environment, a model of their own, a verified answer in three commands.

Run by `make stranger`, with the folder of the wheel. The model is trained, and the answer judged, by a library that the empty
environment does not have.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import time
import venv
from pathlib import Path

import numpy as np
import xgboost
from sklearn.datasets import load_breast_cancer

MOST_SECONDS = 300.0
"""For the three commands, on any machine and network; they take a minute at most where nothing else computes."""


def train(folder: Path) -> xgboost.Booster:
    """A model and its table, as files."""
    bunch = load_breast_cancer()
    names = [name.replace(" ", "_") for name in bunch.feature_names]
    data = xgboost.DMatrix(bunch.data, bunch.target, feature_names=names)
    booster = xgboost.train({"objective": "binary:logistic", "max_depth": 4}, data, 50)
    booster.save_model(folder / "model.json")
    np.savetxt(folder / "rows.csv", bunch.data, delimiter=",", header=",".join(names), comments="")
    (folder / "question.sens").write_text(
        'model m from "model.json"\ndata d from "rows.csv"\ndomain from d\n'
        "query flips: sensitive m to mean_texture gap 0.1 near d\n"
    )
    return booster


def main(wheels: Path) -> None:
    (wheel,) = sorted(wheels.glob("treesens-*.whl"))[-1:]
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        booster = train(folder)
        empty = folder / "empty"
        venv.create(empty, with_pip=True)
        start = time.monotonic()
        run(folder, empty / "bin" / "python", "-m", "pip", "install", "--quiet", wheel.resolve())
        installed = time.monotonic()
        run(folder, empty / "bin" / "treesens", "info", "model.json")
        told = json.loads(run(folder, empty / "bin" / "treesens", "check", "question.sens", "--json"))
        ended = time.monotonic()
        (answer,) = told["results"]
        points = [list(answer["points"][point].values()) for point in ("a", "b")]
        rows = xgboost.DMatrix(np.array(points), feature_names=list(answer["points"]["a"]))
        high, low = booster.predict(rows).tolist()
        slim(folder, wheel)
        if answer["verdict"] != "found" or not (high >= 0.6 and low <= 0.4):
            sys.exit(f"the answer is not what the library predicts: {answer}")
        print(
            f"installed in {installed - start:.0f} s, answered in {ended - installed:.1f} s; predicted {high:.3f} and {low:.3f}"
        )
        if ended - start > MOST_SECONDS:
            sys.exit(f"three commands took {ended - start:.0f} s")


SLIM = ("numpy", "lark", "click", "rich", "narwhals", "joblib")
"""What docs/installation.md names for an image without solvers."""


def slim(folder: Path, wheel: Path) -> None:
    """The same question, answered by an installation without solvers. Exits if it is not."""
    place = folder / "slim"
    venv.create(place, with_pip=True)
    install = (place / "bin" / "python", "-m", "pip", "install", "--quiet")
    run(folder, *install, *SLIM)
    run(folder, *install, "--no-deps", wheel.resolve())
    (answer,) = json.loads(run(folder, place / "bin" / "treesens", "check", "question.sens", "--json"))["results"]
    if answer["verdict"] != "found":
        sys.exit(f"the slim installation says {answer['verdict']}: {answer['reason']}")
    weight = sum(file.stat().st_size for file in place.rglob("*") if file.is_file())
    print(f"slim: {weight / 1e6:.0f} MB, pip included; the same answer")


def run(folder: Path, *command: object) -> str:
    done = subprocess.run([str(c) for c in command], cwd=folder, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        sys.exit(f"{' '.join(map(str, command))}\n{done.stdout}{done.stderr}")
    return done.stdout


if __name__ == "__main__":
    main(Path(sys.argv[1]))
