"""Fetches a public table from OpenML and trains a model of the paper's size on it: python -m benchmarks.fetch_data adult OUT

Writes OUT/NAME.csv (categories as their codes, the label last) and OUT/NAME_tT_dD.json (XGBoost). OpenML names the authors and
the licence of every table; nothing of it is in this repository.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

OPENML = {"adult": 1590, "german_credit": 31, "pimadiabetes": 37, "churn": 40701}
"""Numbers of the tables on openml.org."""


def coded(frame: Any) -> Any:
    """The frame with numbers alone: the code of every category, in the order of its categories; missing values stay."""
    kept = frame.copy()
    for name in frame.select_dtypes(include=["category", "object"]).columns:
        codes = frame[name].astype("category").cat.codes
        kept[name] = codes.where(codes >= 0).astype("Float64")
    kept.columns = [str(name).strip().replace(" ", "_") for name in kept.columns]
    return kept


def write_model(frame: Any, label: Any, folder: Path, name: str, trees: int, depth: int) -> tuple[Path, Path]:
    """Writes the table and a model that is trained on all of it; the paths of both."""
    import xgboost as xgb

    folder.mkdir(parents=True, exist_ok=True)
    table = coded(frame)
    classes = label.astype("category").cat.codes
    model = xgb.XGBClassifier(n_estimators=trees, max_depth=depth, n_jobs=1, random_state=0)
    model.fit(table.astype("float32"), classes)
    paths = folder / f"{name}.csv", folder / f"{name}_t{trees}_d{depth}.json"
    table.assign(label=classes).to_csv(paths[0], index=False)
    model.get_booster().save_model(paths[1])
    return paths


def main() -> None:
    from urllib.error import URLError

    from sklearn.datasets import fetch_openml

    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("name", choices=sorted(OPENML))
    parser.add_argument("folder", type=Path)
    parser.add_argument("--trees", type=int, default=300)
    parser.add_argument("--depth", type=int, default=5)
    asked = parser.parse_args()
    try:
        found = fetch_openml(data_id=OPENML[asked.name], as_frame=True, parser="auto")
    except URLError as error:
        page = f"https://www.openml.org/d/{OPENML[asked.name]}"
        raise SystemExit(f"openml.org cannot be reached ({error.reason}); the table is {page}") from None
    for path in write_model(found.data, found.target, asked.folder, asked.name, asked.trees, asked.depth):
        print(path)


if __name__ == "__main__":
    main()
