"""`make demo`: trains a small model on a data set of scikit-learn, asks a real question of it, and prints a verified pair.

Run it again after changing the question in `demo.sens`; nothing else has to be installed.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

FOLDER = Path(__file__).resolve().parent / "out"


def train(folder: Path) -> None:
    """A gradient-boosted classifier of the breast cancer data (569 patients, 30 measurements), and the data as CSV."""
    import numpy as np
    import xgboost
    from sklearn.datasets import load_breast_cancer

    data = load_breast_cancer()
    names = [name.replace(" ", "_") for name in data.feature_names]
    folder.mkdir(parents=True, exist_ok=True)
    table = np.column_stack([data.data, data.target])
    header = ",".join([*names, "label"])
    np.savetxt(folder / "tumours.csv", table, delimiter=",", header=header, comments="", fmt="%.9g")
    model = xgboost.XGBClassifier(n_estimators=40, max_depth=3, learning_rate=0.3, random_state=0)
    model.fit(data.data, data.target)
    booster = model.get_booster()
    booster.feature_names = names
    booster.save_model(folder / "tumours.json")


def main() -> int:
    train(FOLDER)
    question = Path(__file__).resolve().parent / "demo.sens"
    print(f"$ treesens check {question.relative_to(Path.cwd()) if question.is_relative_to(Path.cwd()) else question}\n")
    sys.stdout.flush()
    return subprocess.run(
        [sys.executable, "-c", "from treesens.cli import main; main()", "check", str(question), "--replay", "library"],
        check=False,
    ).returncode


if __name__ == "__main__":
    sys.exit(main())
