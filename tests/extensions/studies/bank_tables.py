"""Ten models and tables with names and values as banks write them: `python -m tests.extensions.studies.bank_tables FOLDER`.

Names have spaces, commas, units and umlauts; categories are text and partly missing; labels are text, or 1 for the bad class;
tables have identifiers, semicolons or are compressed. The models are those of XGBoost, LightGBM, CatBoost and scikit-learn.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

ROWS = 240
MOST_WHOLE = 80
"""The greatest width of a range whose whole numbers are all tried; wider ones are tried around thresholds."""


@dataclass(frozen=True)
class Bank:
    """A model, its table, and the library's own predictions.

    `frame` has the inputs as in the table, `predict` the probability of the second class (of a regressor: its value) of such a
    frame, and `thresholds` the cuts of every number in the model. `protected` are the features that a reader would name.
    """

    name: str
    model: Path
    table: Path
    frame: pd.DataFrame
    predict: Callable[[pd.DataFrame], Any]
    thresholds: Mapping[str, Sequence[float]]
    protected: tuple[str, ...]
    size: tuple[int, int]
    """Trees and leaves, as the library counts them."""
    label: str | None = None
    regression: bool = False
    shown: Mapping[str, str] = field(default_factory=dict)
    """The model's names of features, where the library changed those of the table."""

    def values(self, name: str) -> list[Any]:
        """Values of a feature, one of each cell between the cuts of the model at least."""
        column = self.frame[name]
        known = column.dropna()
        if not pd.api.types.is_numeric_dtype(column):
            found = list(dict.fromkeys(known.astype(object)))
        else:
            low, high = float(known.min()), float(known.max())
            whole = bool((known == known.round()).all())
            cuts = [float(cut) for cut in self.thresholds.get(name, ()) if low <= float(cut) <= high]
            if whole:
                near = {step(cut) + more for cut in cuts for step in (np.floor, np.ceil) for more in (-1, 0, 1)}
                every = set(np.arange(low, high + 1)) if high - low <= MOST_WHOLE else near
                found = sorted({low, high, *(float(v) for v in every if low <= v <= high)})
            else:
                near = {
                    float(np.nextafter(np.float32(cut), np.float32(side))) for cut in cuts for side in (-np.inf, np.inf)
                }
                found = sorted({low, high, *cuts, *(v for v in near if low <= v <= high)})
        return [*found, None] if column.isna().any() else found

    def scores(self, name: str) -> np.ndarray:
        """The library's predictions of every row with every value of a feature: float64[rows, values]."""
        values = self.values(name)
        parts = []
        for value in values:
            part = self.frame.copy()
            part[name] = pd.Series([value] * len(part), index=part.index, dtype=self.frame[name].dtype)
            parts.append(np.asarray(self.predict(part), dtype=float))
        return np.stack(parts, axis=1)


def people(seed: int, *, missing: bool = True) -> pd.DataFrame:
    """Applicants for credit, 240 of them: nine inputs, with missing values in two."""
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame(
        {
            "Checking account": rng.choice(["< 100 DM", "100 - 200 DM", "no account", ">= 200 DM"], ROWS),
            "Duration (months)": rng.integers(4, 60, ROWS),
            "Credit amount (DM)": rng.integers(3, 150, ROWS) * 100,
            "Employed since": rng.choice(["unemployed", "< 1 year", "1 - 4 years", ">= 4 years"], ROWS),
            "Personal status and sex": rng.choice(
                ["female, not single", "male, divorced", "male, married", "male, single"], ROWS
            ),
            "Age": rng.integers(19, 70, ROWS),
            "Foreign worker": rng.choice(["yes", "no"], ROWS, p=[0.8, 0.2]),
            "Debt-to-income, %": rng.integers(0, 600, ROWS) / 10,
            "Instalment rate (1-4)": rng.integers(1, 5, ROWS),
        }
    )
    if missing:
        frame.loc[rng.random(ROWS) < 0.05, "Employed since"] = None
        frame.loc[rng.random(ROWS) < 0.05, "Debt-to-income, %"] = np.nan
    return frame


def bad(frame: pd.DataFrame, seed: int) -> np.ndarray:
    """1 for applicants who did not pay, as credit models code it."""
    rng = np.random.default_rng(seed + 1000)
    score = (
        0.04 * frame["Duration (months)"]
        + frame["Credit amount (DM)"] / 6000
        - 0.03 * frame["Age"]
        + 1.2 * (frame["Checking account"] == "< 100 DM")
        - 0.9 * (frame["Checking account"] == "no account")
        + 0.7 * (frame["Personal status and sex"] == "female, not single")
        + 0.03 * frame["Debt-to-income, %"].fillna(30)
        + rng.normal(0, 0.8, ROWS)
    )
    return (score > score.median()).astype(int).to_numpy()


PROTECTED = ("Personal status and sex", "Age", "Foreign worker")
TEXT = ("Checking account", "Employed since", "Personal status and sex", "Foreign worker")


def _categories(frame: pd.DataFrame) -> pd.DataFrame:
    return frame.assign(**{name: pd.Categorical(frame[name], sorted(frame[name].dropna().unique())) for name in TEXT})


def _xgboost_size(booster: Any) -> tuple[int, int]:
    nodes = booster.trees_to_dataframe()
    return nodes["Tree"].nunique(), int((nodes["Feature"] == "Leaf").sum())


def _lightgbm_size(booster: Any) -> tuple[int, int]:
    return booster.num_trees(), int(booster.trees_to_dataframe()["split_feature"].isna().sum())


def _catboost_size(model: Any) -> tuple[int, int]:
    return model.tree_count_, int(sum(model.get_tree_leaf_counts()))


def _xgboost_cuts(booster: Any) -> dict[str, list[float]]:
    nodes = booster.trees_to_dataframe()
    nodes = nodes[(nodes["Feature"] != "Leaf") & nodes["Split"].notna()]
    return {str(name): sorted(set(part["Split"])) for name, part in nodes.groupby("Feature")}


def _lightgbm_cuts(booster: Any, names: Sequence[str]) -> dict[str, list[float]]:
    nodes = booster.trees_to_dataframe()
    nodes = nodes[nodes["split_feature"].notna() & (nodes["decision_type"] == "<=")]
    cuts = {name: sorted({float(t) for t in part["threshold"]}) for name, part in nodes.groupby("split_feature")}
    return {table: cuts.get(model, []) for table, model in zip(names, booster.feature_name(), strict=True)}


def xgboost_text(folder: Path) -> Bank:
    """XGBoost with categories of pandas; the label is text, and class 1 is the bad one."""
    import xgboost as xgb

    frame = people(1)
    label = bad(frame, 1)
    typed = _categories(frame)
    model = xgb.XGBClassifier(n_estimators=30, max_depth=3, enable_categorical=True, n_jobs=1, random_state=0)
    model.fit(typed, label)
    model.get_booster().save_model(folder / "scorecard v2.json")
    table = frame.assign(Decision=np.where(label == 1, "refused", "granted"))
    table.to_csv(folder / "applicants 2024.csv", index=False)
    types = typed.dtypes

    def predict(part: pd.DataFrame) -> Any:
        return model.predict_proba(part.astype(types))[:, 1]

    cuts = _xgboost_cuts(model.get_booster())
    return Bank(
        "xgboost_text",
        folder / "scorecard v2.json",
        folder / "applicants 2024.csv",
        frame,
        predict,
        cuts,
        PROTECTED,
        _xgboost_size(model.get_booster()),
        "Decision",
    )


def xgboost_numbers(folder: Path) -> Bank:
    """XGBoost over numbers alone; a table with semicolons, a customer number and a label of 0 and 1."""
    import xgboost as xgb

    frame = people(2).drop(columns=list(TEXT))
    label = bad(people(2), 2)
    model = xgb.XGBClassifier(n_estimators=40, max_depth=3, n_jobs=1, random_state=0).fit(frame, label)
    model.get_booster().save_model(folder / "pd.ubj")
    table = frame.assign(**{"Customer no.": np.arange(1000, 1000 + ROWS), "default": label})
    table.to_csv(folder / "portfolio.csv", index=False, sep=";")

    def predict(part: pd.DataFrame) -> Any:
        return model.predict_proba(part.astype(float))[:, 1]

    return Bank(
        "xgboost_numbers",
        folder / "pd.ubj",
        folder / "portfolio.csv",
        frame,
        predict,
        _xgboost_cuts(model.get_booster()),
        ("Age",),
        _xgboost_size(model.get_booster()),
        "default",
    )


def xgboost_compressed(folder: Path) -> Bank:
    """XGBoost, codes in place of texts, and a compressed table."""
    import xgboost as xgb

    frame = people(3, missing=False)
    label = bad(frame, 3)
    frame = frame.assign(**{name: frame[name].astype("category").cat.codes.astype(int) for name in TEXT})
    model = xgb.XGBClassifier(n_estimators=30, max_depth=3, n_jobs=1, random_state=0).fit(frame, label)
    model.get_booster().save_model(folder / "champion.json")
    frame.assign(target=label).to_csv(folder / "champion.csv.gz", index=False)

    def predict(part: pd.DataFrame) -> Any:
        return model.predict_proba(part.astype(float))[:, 1]

    return Bank(
        "xgboost_compressed",
        folder / "champion.json",
        folder / "champion.csv.gz",
        frame,
        predict,
        _xgboost_cuts(model.get_booster()),
        PROTECTED,
        _xgboost_size(model.get_booster()),
        "target",
    )


def lightgbm_text(folder: Path) -> Bank:
    """LightGBM, which replaces spaces and signs in names; the label is Y or N."""
    import lightgbm as lgb

    names = {"Debt-to-income, %": "Debt to income %", "Instalment rate (1-4)": "Instalment rate"}
    frame = people(4).rename(columns=names)
    label = bad(people(4), 4)
    typed = _categories(frame)
    model = lgb.LGBMClassifier(n_estimators=30, num_leaves=8, n_jobs=1, verbose=-1, random_state=0).fit(typed, label)
    model.booster_.save_model(folder / "challenger.txt")
    table = frame.assign(Bad=np.where(label == 1, "Y", "N"))
    table.to_csv(folder / "challenger.csv", index=False)
    types = typed.dtypes

    def predict(part: pd.DataFrame) -> Any:
        return model.predict_proba(part.astype(types))[:, 1]

    shown = dict(zip(frame.columns, model.booster_.feature_name(), strict=True))
    return Bank(
        "lightgbm_text",
        folder / "challenger.txt",
        folder / "challenger.csv",
        frame,
        predict,
        _lightgbm_cuts(model.booster_, list(frame.columns)),
        PROTECTED,
        _lightgbm_size(model.booster_),
        "Bad",
        shown=shown,
    )


def lightgbm_umlauts(folder: Path) -> Bank:
    """LightGBM with names in another language, and a label that no list of names has."""
    import lightgbm as lgb

    names = {
        "Duration (months)": "Laufzeit_Monate",
        "Credit amount (DM)": "Kreditbetrag_€",
        "Age": "age",
        "Debt-to-income, %": "Schuldenquote_in_Prozent",
        "Instalment rate (1-4)": "Rückzahlungsrate",
    }
    frame = people(5).drop(columns=list(TEXT)).rename(columns=names)
    label = bad(people(5), 5)
    model = lgb.LGBMClassifier(n_estimators=30, num_leaves=8, n_jobs=1, verbose=-1, random_state=0).fit(frame, label)
    model.booster_.save_model(folder / "modell.txt")
    frame.assign(**{"gekündigt": label}).to_csv(folder / "kunden.csv", index=False)

    def predict(part: pd.DataFrame) -> Any:
        return model.predict_proba(part.astype(float))[:, 1]

    return Bank(
        "lightgbm_umlauts",
        folder / "modell.txt",
        folder / "kunden.csv",
        frame,
        predict,
        _lightgbm_cuts(model.booster_, list(frame.columns)),
        ("age",),
        _lightgbm_size(model.booster_),
        "gekündigt",
    )


def catboost_text(folder: Path) -> Bank:
    """CatBoost with text categories, saved with its pool."""
    from catboost import CatBoostClassifier, Pool

    frame = people(6)
    frame = frame.assign(**{"Employed since": frame["Employed since"].fillna("not stated")})
    label = bad(people(6), 6)
    pool = Pool(frame, label, cat_features=list(TEXT))
    model = CatBoostClassifier(
        iterations=25,
        depth=3,
        one_hot_max_size=10,
        thread_count=1,
        random_seed=0,
        verbose=False,
        allow_writing_files=False,
    )
    model.fit(pool)
    model.save_model(str(folder / "cat.json"), format="json", pool=pool)
    frame.assign(outcome=label).to_csv(folder / "cat.csv", index=False)
    names = [name for name in frame.columns if name not in TEXT]
    cuts = {names[index]: list(borders) for index, borders in enumerate(_float_borders(model, frame, names))}

    def predict(part: pd.DataFrame) -> Any:
        return model.predict_proba(part)[:, 1]

    return Bank(
        "catboost_text",
        folder / "cat.json",
        folder / "cat.csv",
        frame,
        predict,
        cuts,
        PROTECTED,
        _catboost_size(model),
        "outcome",
    )


def _float_borders(model: Any, frame: pd.DataFrame, names: Sequence[str]) -> list[list[float]]:
    borders = model.get_borders()
    return [list(borders.get(list(frame.columns).index(name), ())) for name in names]


def catboost_numbers(folder: Path) -> Bank:
    """CatBoost over numbers, in its own binary format."""
    from catboost import CatBoostClassifier

    frame = people(7).drop(columns=list(TEXT))
    label = bad(people(7), 7)
    model = CatBoostClassifier(
        iterations=30, depth=3, thread_count=1, random_seed=0, verbose=False, allow_writing_files=False
    )
    model.fit(frame, label)
    model.save_model(str(folder / "risk.cbm"))
    frame.assign(Label=label).to_csv(folder / "risk.csv", index=False)
    cuts = dict(zip(frame.columns, _float_borders(model, frame, list(frame.columns)), strict=True))

    def predict(part: pd.DataFrame) -> Any:
        return model.predict_proba(part.astype(float))[:, 1]

    return Bank(
        "catboost_numbers",
        folder / "risk.cbm",
        folder / "risk.csv",
        frame,
        predict,
        cuts,
        ("Age",),
        _catboost_size(model),
        "Label",
    )


def pipeline(folder: Path) -> Bank:
    """A Pipeline of scikit-learn, one-hot columns and a forest; the classes of the model are texts."""
    import skops.io
    from sklearn.compose import ColumnTransformer
    from sklearn.ensemble import RandomForestClassifier
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import OneHotEncoder

    frame = people(8, missing=False)
    label = np.where(bad(frame, 8) == 1, "refused", "granted")
    encode = ColumnTransformer([("text", OneHotEncoder(), list(TEXT))], remainder="passthrough")
    model = make_pipeline(encode, RandomForestClassifier(n_estimators=15, max_depth=5, n_jobs=1, random_state=0))
    model.fit(frame, label)
    skops.io.dump(model, folder / "pipeline.skops")
    frame.assign(Status=label).to_csv(folder / "applications.csv", index=False)
    forest, columns = model[-1], list(encode.get_feature_names_out())
    cuts: dict[str, set[float]] = {}
    for tree in forest.estimators_:
        for at, cut in zip(tree.tree_.feature, tree.tree_.threshold, strict=True):
            if at >= 0:
                cuts.setdefault(columns[at].removeprefix("remainder__"), set()).add(float(cut))

    size = len(forest.estimators_), int(sum(tree.get_n_leaves() for tree in forest.estimators_))

    def predict(part: pd.DataFrame) -> Any:
        return model.predict_proba(part)[:, 1]

    return Bank(
        "pipeline",
        folder / "pipeline.skops",
        folder / "applications.csv",
        frame,
        predict,
        {name: sorted(found) for name, found in cuts.items()},
        PROTECTED,
        size,
        "Status",
    )


def histogram(folder: Path) -> Bank:
    """Histogram boosting of scikit-learn over numbers with missing values."""
    import skops.io
    from sklearn.ensemble import HistGradientBoostingClassifier

    frame = people(9).drop(columns=list(TEXT))
    label = bad(people(9), 9)
    model = HistGradientBoostingClassifier(max_iter=25, max_depth=3, random_state=0).fit(frame, label)
    skops.io.dump(model, folder / "hist.skops")
    frame.assign(y=label).to_csv(folder / "hist.csv", index=False)
    cuts: dict[str, set[float]] = {}
    for (trees,) in model._predictors:
        for node in trees.nodes:
            if not node["is_leaf"]:
                cuts.setdefault(frame.columns[node["feature_idx"]], set()).add(float(node["num_threshold"]))

    size = len(model._predictors), int(sum(trees.nodes["is_leaf"].sum() for (trees,) in model._predictors))

    def predict(part: pd.DataFrame) -> Any:
        return model.predict_proba(part.astype(float))[:, 1]

    return Bank(
        "histogram",
        folder / "hist.skops",
        folder / "hist.csv",
        frame,
        predict,
        {name: sorted(found) for name, found in cuts.items()},
        ("Age",),
        size,
        "y",
    )


def regression(folder: Path) -> Bank:
    """A regressor of losses in per cent: no classes, and no gap that anybody stated."""
    import xgboost as xgb

    frame = people(10).drop(columns=list(TEXT))
    loss = 20 + 40 * bad(people(10), 10) + np.random.default_rng(10).normal(0, 5, ROWS).round(1)
    model = xgb.XGBRegressor(n_estimators=30, max_depth=3, n_jobs=1, random_state=0).fit(frame, loss)
    model.get_booster().save_model(folder / "lgd.json")
    frame.assign(**{"Loss given default (%)": loss}).to_csv(folder / "losses.csv", index=False)

    def predict(part: pd.DataFrame) -> Any:
        return model.predict(part.astype(float))

    return Bank(
        "regression",
        folder / "lgd.json",
        folder / "losses.csv",
        frame,
        predict,
        _xgboost_cuts(model.get_booster()),
        ("Age",),
        _xgboost_size(model.get_booster()),
        regression=True,
    )


BANKS: tuple[Callable[[Path], Bank], ...] = (
    xgboost_text,
    xgboost_numbers,
    xgboost_compressed,
    lightgbm_text,
    lightgbm_umlauts,
    catboost_text,
    catboost_numbers,
    pipeline,
    histogram,
    regression,
)


def main() -> None:
    """Writes a folder for each model and table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    folder = parser.parse_args().folder
    for make in BANKS:
        (folder / make.__name__).mkdir(parents=True, exist_ok=True)
        bank = make(folder / make.__name__)
        print(f"treesens audit '{bank.model}' '{bank.table}'")


if __name__ == "__main__":
    main()
