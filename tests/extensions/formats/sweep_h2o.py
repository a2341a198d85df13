"""Random models of H2O for `sweep.py`: `python -m tests.extensions.formats.sweep h2o`; it starts a server, which needs Java.

pip install h2o==3.46.0.6 jpype1
"""

from __future__ import annotations

import csv
from pathlib import Path
from typing import Any

import numpy as np
from benchmarks.models_in_java import server_of_h2o

from tests.extensions.formats.sweep_models import Made, Untrained

ALLOWED = (r"the encoding (LabelEncoder|SortByResponse) ",)
_TARGETS = ("two", "two", "two", "value", "number", "three")
_DISTRIBUTIONS = {"value": ("gaussian", "laplace", "quantile", "huber"), "number": ("poisson", "tweedie", "gaussian")}


def _write(path: Path, rng: np.random.Generator) -> tuple[list[str], dict[str, str], np.ndarray]:
    """A table of random columns with its targets: names of columns, their types, and rows as codes and numbers."""
    n, names, cells, rows, z = int(rng.integers(150, 700)), [], [], [], 0.0
    for j in range(int(rng.integers(1, 9))):
        kind = ("real", "count", "category", "wide")[int(rng.integers(4))]
        if kind == "category":
            codes = rng.integers(0, int(rng.choice([2, 3, 12, 31, 33, 70, 300])), n)
            z = z + rng.normal(size=codes.max() + 1)[codes]
            texts, values = [f"v{code}" for code in codes], codes.astype(float)
        else:
            values = {"real": rng.normal(size=n), "wide": rng.lognormal(5, 3, n)}.get(kind, rng.integers(0, 50, n))
            values = np.asarray(values, np.float64)
            z = z + (np.log(values) * 0.1 if kind == "wide" else values * rng.normal() * 0.2)
            texts = [repr(float(value)) for value in values]
        gone = rng.random(n) < rng.choice([0, 0, 0.1, 0.4])
        z = z + gone * rng.normal()
        names.append(f"c{j} {kind}")
        cells.append(["" if empty else text for empty, text in zip(gone, texts, strict=True)])
        rows.append(np.where(gone, np.nan, values))
    z = z + rng.normal(size=n) * 0.3
    three = np.digitize(z, np.quantile(z, [0.3, 0.6]))
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow([*names, "two", "value", "number", "three"])
        two, number = np.where(z > np.median(z), "yes", "no"), np.maximum(0, np.floor(z) + 1).astype(int)
        writer.writerows(zip(*cells, two, z.tolist(), number.tolist(), [f"k{k}" for k in three], strict=True))
    types = {name: "enum" if name.endswith("category") else "numeric" for name in names}
    return (
        names,
        types | {"two": "enum", "three": "enum", "value": "numeric", "number": "numeric"},
        np.column_stack(rows),
    )


def h2o_model(number: int, rng: np.random.Generator, folder: Path) -> Made:
    """Boosting or a forest over random columns, with random settings; categories of rows are codes by first appearance."""
    h2o = server_of_h2o()
    names, types, rows = _write(folder / "table.csv", rng)
    frame = h2o.import_file(str(folder / "table.csv"), col_types=types)
    target, boosting = _TARGETS[number % len(_TARGETS)], number % 2 == 0
    settings: dict[str, Any] = {
        "seed": 1,
        "ntrees": int(rng.integers(1, 9)),
        "max_depth": int(rng.integers(1, 9)),
        "min_rows": float(rng.choice([1, 5, 10])),
        "nbins_cats": int(rng.choice([2, 16, 1024])),
        "nbins": int(rng.choice([4, 20, 200])),
    }
    if boosting and target in _DISTRIBUTIONS:
        settings["distribution"] = str(rng.choice(_DISTRIBUTIONS[target]))
    if rng.random() < 0.3:
        settings["histogram_type"] = str(rng.choice(["Random", "QuantilesGlobal", "RoundRobin"]))
    if rng.random() < 0.1:
        settings["categorical_encoding"] = str(rng.choice(["OneHotExplicit", "LabelEncoder", "SortByResponse"]))
    if target in ("two", "three") and rng.random() < 0.3:
        settings["balance_classes"] = True
    if target == "two" and not boosting and rng.random() < 0.3:
        settings["binomial_double_trees"] = True
    from h2o.estimators import H2OGradientBoostingEstimator, H2ORandomForestEstimator

    model = (H2OGradientBoostingEstimator if boosting else H2ORandomForestEstimator)(**settings)
    try:
        model.train(x=names, y=target, training_frame=frame)
    except (h2o.exceptions.H2OResponseError, h2o.exceptions.H2OServerError, OSError) as error:
        raise Untrained(str(error).splitlines()[0]) from None
    path = Path(model.save_mojo(path=str(folder), force=True))
    h2o.remove_all()
    return Made(f"{'boosting' if boosting else 'forest'} of {target}", (path,), rows)
