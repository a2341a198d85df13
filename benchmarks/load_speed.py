"""Loading a 1,000-tree XGBoost model: treesens beside xgboost.Booster.load_model, in one run.

    python -m benchmarks.load_speed [--trees 1000] [--depth 6] [--repeat 5] [--formats]

Trains the model, saves it as JSON and UBJSON, and prints the best of several loads. The column `ready` adds the grid,
the ensemble on its cells and the boxes of its leaves, which is what a compilation starts from. With `--formats` it does the
same with other formats beside their own libraries, those that are installed: LightGBM, CatBoost, ONNX,
and H2O and Spark, which need Java (pip install h2o==3.46.0.6 jpype1 pyspark).
"""

from __future__ import annotations

import argparse
import importlib.util
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from treesens.frontends import load


def best(action: Callable[[], object], repeat: int) -> float:
    times = []
    for _ in range(repeat):
        start = time.perf_counter()
        action()
        times.append(time.perf_counter() - start)
    return min(times)


def ready(path: Path) -> object:
    ensemble = load(path).ensemble
    return ensemble.on(ensemble.grid()).leaf_boxes()


Saved = tuple[str, Path, Callable[[], object]]
"""Name, file, and how the library opens it."""


def others(x: np.ndarray, y: np.ndarray, trees: int, depth: int, folder: Path) -> Iterator[Saved]:
    """Models of other formats, saved."""
    import catboost
    import lightgbm
    import onnxruntime
    import skl2onnx
    from sklearn.ensemble import RandomForestClassifier
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler
    from skops import io as skops_io

    light = lightgbm.LGBMClassifier(n_estimators=trees, num_leaves=2**depth, verbosity=-1, n_jobs=1).fit(x, y)
    path = folder / "model.txt"
    light.booster_.save_model(str(path))
    yield "LightGBM text", path, lambda path=path: lightgbm.Booster(model_file=path)
    settings = {"iterations": trees, "depth": depth, "verbose": False, "allow_writing_files": False, "thread_count": 1}
    path = folder / "model.cat.json"
    catboost.CatBoostClassifier(**settings).fit(x, y).save_model(str(path), format="json")
    yield "CatBoost JSON", path, lambda path=path: catboost.CatBoostClassifier().load_model(str(path), format="json")
    forest = RandomForestClassifier(trees, max_depth=depth, random_state=0).fit(x, y)
    path = folder / "model.onnx"
    path.write_bytes(skl2onnx.to_onnx(forest, x[:1].astype(np.float32)).SerializeToString())
    yield "ONNX", path, lambda path=path: onnxruntime.InferenceSession(str(path))
    linear = make_pipeline(StandardScaler(), LogisticRegression()).fit(x, y)
    for name, model in (("forest", forest), ("logistic regression of numbers", linear)):
        path = folder / f"{name}.skops"
        skops_io.dump(model, path)
        types = skops_io.get_untrusted_types(file=path)
        yield f"skops, {name}", path, lambda path=path, types=types: skops_io.load(path, trusted=types)
    yield from _of_java(x, y, trees, depth, folder)


def _of_java(x: np.ndarray, y: np.ndarray, trees: int, depth: int, folder: Path) -> Iterator[Saved]:
    names = [f"f{number}" for number in range(x.shape[1])]
    if all(importlib.util.find_spec(name) is not None for name in ("h2o", "jpype")):
        import pandas
        from benchmarks.models_in_java import server_of_h2o
        from h2o.estimators import H2OGradientBoostingEstimator
        from tests.extensions.formats.java_h2o import _java

        table = pandas.DataFrame(x, columns=names).assign(target=[f"k{label}" for label in y])
        frame = server_of_h2o().H2OFrame(table, column_types={"target": "enum"})
        model = H2OGradientBoostingEstimator(ntrees=trees, max_depth=depth, seed=1)
        model.train(x=names, y="target", training_frame=frame)
        path = Path(model.save_mojo(path=str(folder), force=True))
        mojo = _java().JClass("hex.genmodel.MojoModel")
        yield "H2O MOJO, boosting", path, lambda path=path: mojo.load(str(path))
    if importlib.util.find_spec("pyspark") is not None:
        from pyspark.ml import Pipeline, PipelineModel, classification, feature
        from pyspark.sql import SparkSession

        session = SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false").getOrCreate()
        session.sparkContext.setLogLevel("OFF")
        rows: list[Any] = [(*row, float(label)) for row, label in zip(x.tolist(), y, strict=True)]
        frame = session.createDataFrame(rows, [*names, "label"])
        vector = feature.VectorAssembler(inputCols=names, outputCol="features")
        model = classification.RandomForestClassifier(numTrees=trees, maxDepth=depth, seed=1)
        path = folder / "spark"
        Pipeline(stages=[vector, model]).fit(frame).save(path.as_uri())
        yield "Spark folder, forest", path, lambda path=path: PipelineModel.load(path.as_uri())


def size_of(path: Path) -> float:
    """Megabytes of a file, or of the files of a folder."""
    return sum(p.stat().st_size for p in ([path] if path.is_file() else path.rglob("*")) if p.is_file()) / 1e6


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--trees", type=int, default=1000)
    parser.add_argument("--depth", type=int, default=6)
    parser.add_argument("--repeat", type=int, default=5)
    parser.add_argument("--formats", action="store_true", help="other formats beside their libraries")
    options = parser.parse_args()

    import xgboost

    rng = np.random.default_rng(0)
    x = rng.normal(size=(4000, 20))
    y = (x[:, 0] * x[:, 1] + np.sin(x[:, 2]) + rng.normal(size=4000) > 0).astype(int)
    parameters = {"objective": "binary:logistic", "max_depth": options.depth, "eta": 0.1, "nthread": 2}
    if options.formats:
        print("| format | MB | trees | leaves | treesens s | library s |\n| --- | ---: | ---: | ---: | ---: | ---: |")
        with tempfile.TemporaryDirectory() as folder:
            for name, path, opened in others(x, y, options.trees, options.depth, Path(folder)):
                e = load(path).ensemble
                ours, theirs = best(lambda p=path: load(p), options.repeat), best(opened, options.repeat)
                counts = f"{e.n_trees:,} | {e.n_leaves:,}"
                print(f"| {name} | {size_of(path):.1f} | {counts} | {ours:.2f} | {theirs:.2f} |", flush=True)
        return
    booster = xgboost.train(parameters, xgboost.DMatrix(x, y), options.trees)
    print(f"xgboost {xgboost.__version__}, {options.trees} trees of depth {options.depth}, best of {options.repeat}")
    print("| file | MB | leaves | treesens s | ready s | xgboost s |")
    print("| --- | --- | --- | --- | --- | --- |")
    with tempfile.TemporaryDirectory() as folder:
        for form in ("json", "ubj"):
            path = Path(folder) / f"model.{form}"
            booster.save_model(path)
            leaves = load(path).ensemble.n_leaves
            ours = best(lambda p=path: load(p), options.repeat)
            prepared = best(lambda p=path: ready(p), options.repeat)
            theirs = best(lambda p=path: xgboost.Booster(model_file=p), options.repeat)
            size = path.stat().st_size / 1e6
            print(f"| {form} | {size:.1f} | {leaves} | {ours:.3f} | {prepared:.3f} | {theirs:.3f} |")


if __name__ == "__main__":
    main()
