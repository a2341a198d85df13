"""`make demo`: trains a small model on a data set of scikit-learn, and audits every feature on its rows, with a report.

Run it again after changing the model; `demo.sens` is a question of your own about the same model.
"""

from __future__ import annotations

import os
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
    model, table, report = (os.path.relpath(FOLDER / name) for name in ("tumours.json", "tumours.csv", "tumours.html"))
    words = ["audit", model, table, "--report", report, "--force", "-t", "0.3"]
    print(f"$ treesens {' '.join(words)}\n", flush=True)
    # The limit is short so that the demo ends within seconds.
    command = [sys.executable, "-c", "from treesens.cli import main; main()", *words]
    code = subprocess.run(command, check=False).returncode
    print(f"\nthe report: {FOLDER / 'tumours.html'}")
    return 0 if code == 5 else code  # 5: a question is undecided within the short limit


if __name__ == "__main__":
    sys.exit(main())
