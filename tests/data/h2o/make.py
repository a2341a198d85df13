"""Makes the MOJO files of this folder, and what H2O says of rows on and around their thresholds.

    pip install h2o==3.46.0.6 jpype1 numpy   # and Java; h2o 3.46.0.12 writes no MOJO any more
    python make.py [NAME ...]

`NAME.json` holds rows (null: missing; categories as codes) and, for each, what h2o-genmodel returns: the value, or the
probability of the second class (of all classes, if each has trees of its own), and the class; floats are hexadecimal texts.
What a MOJO says of its training (`experimental/`) is left out. `ties.json` holds probabilities, rows, shares of the classes,
and the class that `GenModel.getPrediction` draws.
"""

from __future__ import annotations

import csv
import json
import math
import sys
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
        writer.writerow([*NAMES, "decision", "value", "number", "grade", "level"])
        for _ in range(600):
            age, income = int(rng.integers(18, 80)), round(float(rng.lognormal(10, 1)), 2)
            region, flag = int(rng.integers(40)), int(rng.integers(2))
            debt = None if rng.random() < 0.2 else round(float(rng.normal()), 3)
            z = 0.03 * (age - 45) + 0.4 * flag + (region % 5 - 2) * 0.6 + (0.5 if debt is None else 0.8 * debt)
            z += float(rng.normal()) * 0.7
            shown = "" if debt is None else debt
            told = ["good" if z > 0 else "bad", round(z, 4), max(0, int(z * 2))]
            told += ["abc"[(z > -0.8) + (z > 0.6)], (z > -1.5) + (z > 0) + (z > 1.5)]
            writer.writerow([age, income, f"r{region}", ("no", "yes")[flag], shown, *told])


def answers(path: Path) -> dict[str, Any]:
    """Rows of the kit of treesens, and what the library returns for them."""
    from treesens.extensions.conformance.probes import probes
    from treesens.frontends import load

    model = load(path)
    rows = np.concatenate([probe.rows for probe in probes(model.ensemble, 100, 1)])
    rows = rows[np.random.default_rng(1).permutation(len(rows))[:ROWS]]
    assert model.predicts is not None
    told = model.predicts(rows)
    several = model.ensemble.ties is not None
    return {
        "rows": [[None if math.isnan(x) else x.hex() for x in row] for row in rows.tolist()],
        "answers": _shares(path, model, rows) if several else [float(p).hex() for p in told.probabilities[:, -1]],
        "classes": None if told.classes is None else told.classes.tolist(),
    }


def _shares(path: Path, model: Any, rows: np.ndarray) -> list[list[str]]:
    """What the library returns for each class."""
    import jpype

    mojo, doubles = jpype.JClass("hex.genmodel.MojoModel").load(str(path)), jpype.JArray(jpype.JDouble)
    count, result = len(model.ensemble.classes), []
    for row in model.predicts.__self__.inputs(rows).tolist():
        scores = mojo.score0(doubles(row), doubles(count + 1))
        result.append([float(scores[place + 1]).hex() for place in range(count)])
    return result


def ties() -> list[dict[str, Any]]:
    """Ties of three to six classes, and what the library makes of them."""
    import jpype

    rng, found = np.random.default_rng(3), []
    predict, doubles = jpype.JClass("hex.genmodel.GenModel").getPrediction, jpype.JArray(jpype.JDouble)
    while len(found) < 300:
        count = int(rng.integers(3, 7))
        scores = rng.integers(0, 3, count) / 4
        if (scores == scores.max()).sum() < 2:
            continue
        row = np.where(rng.random(4) < 0.2, np.nan, rng.normal(size=4) * 10.0 ** rng.integers(-3, 9, 4))
        shares = rng.dirichlet(np.ones(count)) if rng.random() < 0.95 else np.zeros(count)
        told = predict(doubles([0.0, *scores.tolist()]), doubles(shares.tolist()), doubles(row.tolist()), 0.5)
        found.append(
            {
                "scores": scores.tolist(),
                "row": [None if math.isnan(x) else x.hex() for x in row.tolist()],
                "shares": [share.hex() for share in shares.tolist()],
                "class": int(told),
            }
        )
    return found


def main() -> None:
    import h2o
    from h2o.estimators import H2OGradientBoostingEstimator as Boosting
    from h2o.estimators import H2ORandomForestEstimator as Forest

    h2o.init(max_mem_size="1G", nthreads=1, verbose=False)
    try:
        with tempfile.TemporaryDirectory() as folder:
            write_table(Path(folder) / "table.csv")
            frame = h2o.import_file(str(Path(folder) / "table.csv"))
            for name in ("region", "flag", "decision", "grade", "level"):
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
                "boosting_balanced": (Boosting(balance_classes=True, **small), "decision"),
                "forest_balanced": (Forest(balance_classes=True, **small), "decision"),
                "boosting_three": (Boosting(**small), "grade"),
                "forest_three": (Forest(**small), "grade"),
                "forest_ties": (Forest(seed=1, ntrees=2, max_depth=4, min_rows=1, mtries=5), "grade"),
                "boosting_four_balanced": (Boosting(balance_classes=True, **small), "level"),
                "forest_four_balanced": (Forest(balance_classes=True, **small), "level"),
                "forest_one_hot": (Forest(categorical_encoding="OneHotExplicit", **small), "decision"),
                "boosting_one_hot_three": (Boosting(categorical_encoding="OneHotExplicit", **small), "grade"),
                "forest_both": (Forest(binomial_double_trees=True, **small), "decision"),
                "forest_both_balanced": (
                    Forest(binomial_double_trees=True, balance_classes=True, **small),
                    "decision",
                ),
            }
            wanted = sys.argv[1:] or [*models, "ties"]
            for name, (model, target) in models.items():
                if name not in wanted:
                    continue
                model.train(x=NAMES, y=target, training_frame=frame)
                _keep(Path(model.save_mojo(path=folder, force=True)), HERE / f"{name}.zip")
                (HERE / f"{name}.json").write_text(json.dumps(answers(HERE / f"{name}.zip")) + "\n")
            if "ties" in wanted:
                (HERE / "ties.json").write_text(json.dumps(ties()) + "\n")
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
