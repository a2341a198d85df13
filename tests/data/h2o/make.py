"""Makes the MOJO files of this folder, and what H2O says of rows on and around their thresholds.

    pip install h2o==3.46.0.6 jpype1 numpy   # and Java; h2o 3.46.0.12 writes no MOJO any more
    python make.py

`NAME.json` holds rows (null: missing; categories as codes) and, for each, what h2o-genmodel returns: the value, or the
probability of the second class, and the class; floats are hexadecimal texts. What a MOJO says of its training
(`experimental/`) is left out.
"""

from __future__ import annotations

import csv
import json
import math
import tempfile
import zipfile
from pathlib import Path
from typing import Any

import numpy as np

HERE = Path(__file__).parent
ROWS = 80
NAMES = ["age", "income", "region", "flag", "debt"]


def write_table(path: Path) -> None:
    """Numbers, 40 regions, a flag, and a debt that is often missing, with a class, a value and a count."""
    rng = np.random.default_rng(0)
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow([*NAMES, "decision", "value", "number"])
        for _ in range(600):
            age, income = int(rng.integers(18, 80)), round(float(rng.lognormal(10, 1)), 2)
            region, flag = int(rng.integers(40)), int(rng.integers(2))
            debt = None if rng.random() < 0.2 else round(float(rng.normal()), 3)
            z = 0.03 * (age - 45) + 0.4 * flag + (region % 5 - 2) * 0.6 + (0.5 if debt is None else 0.8 * debt)
            z += float(rng.normal()) * 0.7
            shown = "" if debt is None else debt
            told = ["good" if z > 0 else "bad", round(z, 4), max(0, int(z * 2))]
            writer.writerow([age, income, f"r{region}", ("no", "yes")[flag], shown, *told])


def answers(path: Path) -> dict[str, Any]:
    """Rows of the kit of treesens, and what the library returns for them."""
    from treesens.frontends import load
    from treesens.frontends.probes import probes

    model = load(path)
    rows = np.concatenate([probe.rows for probe in probes(model.ensemble, 100, 1)])
    rows = rows[np.random.default_rng(1).permutation(len(rows))[:ROWS]]
    assert model.predicts is not None
    told = model.predicts(rows)
    assert told.probabilities is not None
    return {
        "rows": [[None if math.isnan(x) else x.hex() for x in row] for row in rows.tolist()],
        "answers": [float(p).hex() for p in told.probabilities[:, -1]],
        "classes": None if told.classes is None else told.classes.tolist(),
    }


def main() -> None:
    import h2o
    from h2o.estimators import H2OGradientBoostingEstimator as Boosting
    from h2o.estimators import H2ORandomForestEstimator as Forest

    h2o.init(max_mem_size="1G", nthreads=1, verbose=False)
    try:
        with tempfile.TemporaryDirectory() as folder:
            write_table(Path(folder) / "table.csv")
            frame = h2o.import_file(str(Path(folder) / "table.csv"))
            for name in ("region", "flag", "decision"):
                frame[name] = frame[name].asfactor()
            small = {"seed": 1, "ntrees": 4, "max_depth": 4}
            models = {
                "boosting_two": (Boosting(**small), "decision"),
                "boosting_bins": (Boosting(nbins_cats=8, **small), "decision"),
                "boosting_calibrated": (
                    Boosting(calibrate_model=True, calibration_frame=frame[:200, :], **small),
                    "decision",
                ),
                "boosting_value": (Boosting(distribution="laplace", **small), "value"),
                "boosting_count": (Boosting(distribution="poisson", **small), "number"),
                "forest_two": (Forest(**small), "decision"),
                "forest_single": (Forest(seed=1, ntrees=1, max_depth=3), "decision"),
                "forest_value": (Forest(**small), "value"),
            }
            for name, (model, target) in models.items():
                model.train(x=NAMES, y=target, training_frame=frame)
                _keep(Path(model.save_mojo(path=folder, force=True)), HERE / f"{name}.zip")
                (HERE / f"{name}.json").write_text(json.dumps(answers(HERE / f"{name}.zip")) + "\n")
    finally:
        h2o.cluster().shutdown()


def _keep(source: Path, path: Path) -> None:
    """The archive without what it says of its training, and without a date."""
    with zipfile.ZipFile(source) as old, zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as new:
        for entry in old.infolist():
            if not entry.filename.startswith("experimental/"):
                new.writestr(zipfile.ZipInfo(entry.filename), old.read(entry), zipfile.ZIP_DEFLATED)


if __name__ == "__main__":
    main()
