"""Trains the models of the examples into examples/out: a loan model on synthetic applicants, wine on scikit-learn's data.

The applicants are made up by a formula in which sex plays a small part and income a large one; the model is a real XGBoost
model, and so is its successor `loan_v2`, which is constrained to be monotone in income.
"""

from __future__ import annotations

import csv
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

OUT = Path(__file__).resolve().parent / "out"
LOAN = ("age", "income", "debt", "years_employed", "children", "sex", "region")
REGIONS = 4


def applicants(rows: int = 1500, seed: int = 7) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """Feature matrix float64[rows, 7] (some `years_employed` are missing) and whether the loan was repaid."""
    rng = np.random.default_rng(seed)
    age = rng.integers(18, 80, rows)
    income = np.round(rng.gamma(4.0, 9.0, rows), 1)
    debt = np.round(rng.gamma(2.0, 6.0, rows), 1)
    years = np.minimum(age - 18, rng.integers(0, 30, rows)).astype(float)
    children = rng.poisson(1.0, rows).clip(0, 5)
    sex = rng.integers(0, 2, rows)
    region = rng.integers(0, REGIONS, rows)
    score = 0.06 * income - 0.09 * debt + 0.05 * years + 0.01 * (age - 40) + 0.35 * sex - 0.2 * children
    score += np.array([0.0, 0.4, -0.3, 0.1])[region] - 1.2
    repaid = (score + rng.logistic(size=rows) > 0).astype(np.int64)
    years[rng.random(rows) < 0.05] = np.nan
    return np.column_stack([age, income, debt, years, children, sex, region]).astype(np.float64), repaid


def write_csv(path: Path, names: tuple[str, ...], x: NDArray[np.float64], y: NDArray[np.int64]) -> None:
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow([*names, "label"])
        for row, label in zip(x, y, strict=True):
            writer.writerow(["" if np.isnan(v) else f"{v:.9g}" for v in row] + [int(label)])


def main() -> None:
    import xgboost
    from sklearn.datasets import load_wine

    OUT.mkdir(parents=True, exist_ok=True)
    x, y = applicants()
    write_csv(OUT / "applicants.csv", LOAN, x, y)
    versions = {"loan": None, "loan_v2": (0, 1, 0, 0, 0, 0, 0)}
    for name, monotone in versions.items():
        model = xgboost.XGBClassifier(
            n_estimators=60, max_depth=4, learning_rate=0.2, random_state=1, n_jobs=1, monotone_constraints=monotone
        )
        model.fit(x, y)
        booster = model.get_booster()
        booster.feature_names = list(LOAN)
        booster.save_model(OUT / f"{name}.json")
    wine = load_wine()
    names = tuple(name.replace("/", "_") for name in wine.feature_names)
    write_csv(OUT / "wine.csv", names, wine.data, wine.target)
    classifier = xgboost.XGBClassifier(n_estimators=15, max_depth=3, random_state=0, n_jobs=1)
    classifier.fit(wine.data, wine.target)
    booster = classifier.get_booster()
    booster.feature_names = list(names)
    booster.save_model(OUT / "wine.json")


if __name__ == "__main__":
    main()
    print(f"{OUT}: {', '.join(sorted(path.name for path in OUT.iterdir()))}")
