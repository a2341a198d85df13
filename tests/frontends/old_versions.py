"""Models that old versions of a library have trained and saved, read and compared: `python -m tests.frontends.old_versions`.

Every version is installed from the registry into a folder of its own (`--folder`, kept between runs) and trains `--models`
random models there, each saved by that version with 100 rows and what it predicts for them. Here each file is read without
the old library. Margins are those of the old library up to the proven band of rounding, probabilities up to an exponential,
classes are equal; what the installed library makes of the file is compared, too. Or the file is refused, and the reason is
printed. What scikit-learn saves are pickles, which the installed version opens.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from treesens.compiler.model import Ensemble
from treesens.compiler.query.predicted_classes import sure_classes
from treesens.errors import ModelError
from treesens.frontends import load

VERSIONS = (
    *(f"xgboost=={v}" for v in ("1.3.3", "1.4.2", "1.5.2", "1.6.2", "1.7.6", "2.0.3", "2.1.4")),
    *(f"lightgbm=={v}" for v in ("2.2.1", "2.2.3", "2.3.1", "3.3.5", "4.0.0", "4.5.0")),
    *(f"catboost=={v}" for v in ("1.2", "1.2.5")),
    *(f"scikit-learn=={v}" for v in ("1.2.2", "1.4.2", "1.5.2")),
)
SHARED = ("numpy==1.23.5", "scipy<1.12", "pandas<2", "scikit-learn==1.2.2", "graphviz", "plotly", "six", "matplotlib")
"""Packages that the old libraries import; all of them install on Python 3.11 or earlier."""
ROWS = 100

TRAIN = """
import json, sys, warnings
import numpy as np
warnings.simplefilter("ignore")
library, folder, count, rows = sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4])
module = __import__(library)

def xgboost(number, rng, x, y, path):
    two, many = (y > 0).astype(int), np.digitize(y, [-0.5, 0.5])
    names = ["binary:logistic", "reg:squarederror", "multi:softprob", "count:poisson", "reg:gamma", "reg:tweedie",
             "multi:softmax", "reg:logistic", "rank:pairwise", "binary:hinge"]
    name = names[number % len(names)]
    label = {"b": two, "m": many}.get(name[0], y)
    if name in ("count:poisson", "reg:gamma", "reg:tweedie"):
        label = np.exp(np.clip(y, -3, 2))
    if name == "reg:logistic":
        label = 1 / (1 + np.exp(-y))
    if name == "rank:pairwise":
        label = many
    options = dict(objective=name, max_depth=int(rng.integers(1, 6)), eta=float(rng.uniform(0.05, 0.9)), nthread=1,
                   verbosity=0, seed=number, booster=str(rng.choice(["gbtree", "gbtree", "dart"])),
                   num_parallel_tree=int(rng.choice([1, 1, 3])), subsample=float(rng.uniform(0.5, 1)),
                   tree_method=str(rng.choice(["exact", "hist"])))
    if options["booster"] == "dart":
        options["rate_drop"] = 0.3
    if name.startswith("multi"):
        options["num_class"] = 3
    if rng.random() < 0.3:
        options["base_score"] = float(rng.uniform(0.1, 0.9))
    data = module.DMatrix(x, label)
    if name == "rank:pairwise":
        data.set_group([len(x)])
    model = module.train(options, data, int(rng.integers(1, 9)))
    model.save_model(path + ".json")
    given = module.DMatrix(x[:rows])
    return [path + ".json"], model.predict(given, output_margin=True), model.predict(given)

def lightgbm(number, rng, x, y, path):
    two, many = (y > 0).astype(int), np.digitize(y, [-0.5, 0.5])
    names = ["binary", "regression", "multiclass", "poisson", "gamma", "tweedie", "quantile", "multiclassova", "regression_l1",
             "huber", "fair", "mape", "xentropy"]
    name = names[number % len(names)]
    label = many if name.startswith("multi") else two if name == "binary" else y
    if name in ("poisson", "gamma", "tweedie", "mape"):
        label = np.exp(np.clip(y, -3, 2))
    if name == "xentropy":
        label = 1 / (1 + np.exp(-y))
    options = dict(objective=name, num_leaves=int(rng.integers(2, 20)), learning_rate=float(rng.uniform(0.05, 0.6)), verbose=-1,
                   num_threads=1, min_data_in_leaf=5, seed=number, boosting=str(rng.choice(["gbdt", "gbdt", "dart", "rf"])),
                   zero_as_missing=bool(rng.random() < 0.3), min_data_per_group=5)
    if options["boosting"] == "rf":
        options.update(bagging_freq=1, bagging_fraction=0.6)
    if name.startswith("multi"):
        options["num_class"] = 3
    codes = [3] if rng.random() < 0.5 else "auto"
    model = module.train(options, module.Dataset(x, label, categorical_feature=codes), int(rng.integers(1, 9)))
    model.save_model(path + ".txt")
    with open(path + ".json", "w") as file:
        json.dump(model.dump_model(), file)
    raw = None if options["boosting"] == "rf" else model.predict(x[:rows], raw_score=True)
    return [path + ".txt", path + ".json"], raw, model.predict(x[:rows])

def catboost(number, rng, x, y, path):
    two, many = (y > 0).astype(int), np.digitize(y, [-0.5, 0.5])
    names = ["Logloss", "RMSE", "MultiClass", "Poisson", "MAE", "Quantile", "MultiClassOneVsAll", "CrossEntropy"]
    name = names[number % len(names)]
    label = many if name.startswith("Multi") else two if name == "Logloss" else y
    if name == "Poisson":
        label = np.exp(np.clip(y, -3, 2))
    if name == "CrossEntropy":
        label = 1 / (1 + np.exp(-y))
    policy = str(rng.choice(["SymmetricTree", "Depthwise", "Lossguide"]))
    options = dict(loss_function=name, depth=int(rng.integers(1, 5)), iterations=int(rng.integers(1, 12)), grow_policy=policy,
                   nan_mode=str(rng.choice(["Min", "Max"])), random_seed=number)
    model = module.CatBoost(dict(options, verbose=False, thread_count=1, allow_writing_files=False))
    model.fit(x, label)
    model.save_model(path + ".json", format="json")
    shown = "Probability" if name in ("Logloss", "MultiClass", "CrossEntropy") else "RawFormulaVal"
    shown = model.predict(x[:rows], prediction_type=shown) if shown == "Probability" else None
    return [path + ".json"], model.predict(x[:rows], prediction_type="RawFormulaVal"), shown

def sklearn(number, rng, x, y, path):
    import pickle
    from sklearn import ensemble, tree
    names = ["DecisionTree", "RandomForest", "ExtraTrees", "GradientBoosting", "HistGradientBoosting", "AdaBoost"]
    name, options = names[number % len(names)], dict(random_state=number)
    kind = str(rng.choice(["two", "many"] if name == "AdaBoost" else ["two", "many", "value"]))
    label = {"two": (y > 0).astype(int), "many": np.digitize(y, [-0.5, 0.5]), "value": y}[kind]
    depth = int(rng.integers(1, 6))
    if name == "AdaBoost":
        options.update(algorithm="SAMME", n_estimators=depth)
    else:
        options["max_depth"] = depth
    if name == "HistGradientBoosting":
        options.update(max_iter=int(rng.integers(1, 9)), categorical_features=[3] if rng.random() < 0.5 else None)
    else:
        x[np.isnan(x)] = 0  # here as in the rows that are saved
    made = getattr(tree if name == "DecisionTree" else ensemble, name + ("Regressor" if kind == "value" else "Classifier"))
    model = made(**options).fit(x, label)
    with open(path + ".pkl", "wb") as file:
        pickle.dump(model, file)
    if name == "AdaBoost":
        return [path + ".pkl"], None, model.predict(x[:rows])
    shown = model.predict(x[:rows]) if kind == "value" else model.predict_proba(x[:rows])
    return [path + ".pkl"], model.decision_function(x[:rows]) if hasattr(model, "decision_function") else shown, shown

for number in range(count):
    rng = np.random.default_rng([7, number])
    x = rng.normal(size=(400, 4))
    x[:, 1] = np.round(x[:, 1] * 2) / 2
    x[:, 3] = rng.integers(0, 9, 400)
    y = x[:, 0] + x[:, 1] * (x[:, 3] > 4) + rng.normal(0, 0.3, 400)
    x[rng.random((400, 4)) < 0.1] = np.nan
    try:
        files, margins, shown = globals()[library](number, rng, x, y, folder + "/" + str(number))
    except (ValueError, getattr(module, "CatBoostError", ValueError), getattr(module.basic, "LightGBMError", ValueError)
            if library == "lightgbm" else ValueError):
        continue  # a combination that this version does not train
    np.savez(folder + "/" + str(number) + ".npz", rows=x[:rows], files=np.array(files), **{
        name: value for name, value in (("margins", margins), ("shown", shown)) if value is not None})
"""


def install(folder: Path, version: str) -> dict[str, str]:
    """The environment variables with which the shared interpreter imports that version."""
    python = folder / "base" / "bin" / "python"
    if not python.exists():
        subprocess.run([sys.executable, "-m", "venv", folder / "base"], check=True)
        subprocess.run([python, "-m", "pip", "install", "-q", *SHARED], check=True)
    target = folder / version.replace("==", "-")
    if not target.exists():
        command = [python, "-m", "pip", "install", "-q", "--no-deps", "--target", target, version]
        subprocess.run(command, check=True)
    return {**os.environ, "PYTHONPATH": str(target), "OMP_NUM_THREADS": "1"}


def compare(path: Path, rows: np.ndarray, margins: np.ndarray | None, shown: np.ndarray | None) -> str:
    """The differences, in words, from the numbers of the old or the installed library; ModelError if the file is refused."""
    loaded = load(path, trust_pickle=path.suffix == ".pkl")
    e = loaded.ensemble
    ours = np.asarray(e.margins_emulated(rows), np.float64)
    band = 2 * np.array([float(b) for b in e.bands()])
    if margins is not None and (np.abs(ours - margins.reshape(ours.shape)) > band).any():
        return "margins differ from those of the version that trained it"
    if shown is not None and (words := _predictions(e, ours, shown)):
        return words
    try:
        installed = np.asarray(loaded.margins(rows), np.float64)
    except ModelError:
        return ""  # a dump that no library loads
    return "" if (np.abs(installed - ours) <= band).all() else "margins differ from those of the installed version"


def _predictions(e: Ensemble, ours: np.ndarray, shown: np.ndarray) -> str:
    """Compares probabilities, predicted numbers, or classes where the library returns these alone."""
    flat = len(shown.shape) == 1 or shown.shape[1] == 1
    if e.classes and flat and (e.n_outputs > 1 or e.link.name == "raw"):
        sure = sure_classes(e, ours)
        wrong = any(c is not None and c != int(s) for c, s in zip(sure, shown.ravel(), strict=True))
        return "classes differ" if wrong else ""
    mine = np.asarray(e.probabilities(ours), np.float64).reshape(len(ours), -1)
    theirs = shown.reshape(len(ours), -1)
    theirs = theirs[:, -mine.shape[1] :]  # of two classes the second one alone, maybe
    mine = mine[:, -theirs.shape[1] :]
    return "" if np.allclose(mine, theirs, rtol=2e-5, atol=1e-6) else "predictions differ"


def judge(version: str, folder: Path, count: int) -> int:
    """Trains and compares; prints a line, and returns how many files are misread."""
    environment = install(folder, version)
    outcome, wrong = Counter[str](), []
    with tempfile.TemporaryDirectory() as place:
        command = [
            folder / "base" / "bin" / "python",
            "-c",
            TRAIN,
            version.partition("==")[0].replace("scikit-learn", "sklearn"),
            place,
            str(count),
            str(ROWS),
        ]
        subprocess.run(command, check=True, env=environment, stdout=subprocess.DEVNULL)
        for number in range(count):
            if not (Path(place) / f"{number}.npz").exists():
                outcome["not trained by this version"] += 1
                continue
            with np.load(Path(place) / f"{number}.npz") as known:
                arrays = {name: known[name] for name in known.files}
            for path in map(Path, arrays["files"].tolist()):
                try:
                    words = compare(path, arrays["rows"], arrays.get("margins"), arrays.get("shown"))
                except ModelError as error:
                    outcome[f"refused, {path.suffix}: {error.message[:100]}"] += 1
                    continue
                outcome["wrong" if words else f"equal, {path.suffix}"] += 1
                if words:
                    wrong.append(f"  WRONG {path.name}: {words}")
    print(
        f"{version}: " + "; ".join(f"{n} {what}" for what, n in sorted(outcome.items())),
        *wrong[:10],
        sep="\n",
        flush=True,
    )
    return len(wrong)


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--folder", type=Path, default=Path(tempfile.gettempdir()) / "treesens-old-versions")
    parser.add_argument("--models", type=int, default=200, help="models per version")
    parser.add_argument("versions", nargs="*", default=list(VERSIONS), metavar="LIBRARY==VERSION")
    given = parser.parse_args(arguments)
    return int(sum(judge(version, given.folder, given.models) for version in given.versions) > 0)


if __name__ == "__main__":
    raise SystemExit(main())
