"""Small valid files of every format, made by the libraries themselves: what the mutations start from."""

from __future__ import annotations

import json
import random
import sqlite3
import warnings
from collections.abc import Callable
from pathlib import Path

import numpy as np

from tests.corpus import boosted

ROWS, FEATURES = 200, 4
SENS = """model m from "xgboost.json"
data d from "table.csv" label "y" rows 50
feature a: real in [0, 1]
feature b: category {Low = 0, High = 1}
feature c: integer in [0, 9] or missing
query one: find p, q such that p = q except {a, b}; prob(p) >= 0.6; prob(q) <= 0.4
  maximize margin(p) - margin(q)
query two: find p such that p = row 3 of d except a; p.c in {1, 2, 3} or missing(p.c); abs(p.a - 0.25) <= 0.5
decision credit of x in m: approve when prob(x) >= 0.7 and x.a > 0.25 refer when prob(x) >= 0.4 or x.b = High
  else decline
query decided: find p, q such that p = q except b; decision(p) = decline; decision(q, credit) in {approve, refer}
query three: for each f in features: sensitive m to f gap 0.05
query four: count rows of d as p such that margin(p) >= 0.125; p avoid cavities(d, width = 1)
query five: find p, q such that p = q except a; distance(p, row 1 of d, l1) <= 1e-1; p.a + 2 * p.c < 7 top 2 diverse
"""
TOML = """models = ["xgboost.json"]
data = "table.csv"
label = "y"
features = "all"
pairs = [["a", "b"]]
random = {size = 2, count = 3}
margins = [0.5, 1.0]
gaps = [0.05]
time_limit = 5
seed = 3
"""


def write_samples(folder: Path) -> dict[str, bytes]:
    """A file of every format in `folder`, and its bytes by name; without those whose library is not installed."""
    folder.mkdir(parents=True, exist_ok=True)
    made: dict[str, bytes] = {}
    for name, make in MAKERS.items():
        try:
            data = make(folder)
        except ImportError:
            continue
        made[name] = data
        (folder / name).write_bytes(data)
    return made


def _rows() -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(4)
    x = np.column_stack((rng.random(ROWS), rng.integers(0, 2, ROWS), rng.integers(0, 10, ROWS), rng.random(ROWS)))
    return x, (x[:, 0] + 0.3 * x[:, 1] + 0.05 * x[:, 2] + 0.2 * rng.random(ROWS) > 0.9).astype(int)


def _xgboost(form: str, *, categories: bool = False) -> bytes:
    import xgboost

    x, y = _rows()
    kinds = ["float", "c" if categories else "float", "c" if categories else "float", "float"]
    data = xgboost.DMatrix(x, y, feature_names=list("abcd"), feature_types=kinds, enable_categorical=categories)
    options = {"objective": "binary:logistic", "max_depth": 3, "max_cat_to_onehot": 1}
    return bytes(xgboost.train(options, data, 4).save_raw(form))


def _lightgbm(form: str) -> bytes:
    import lightgbm

    x, y = _rows()
    data = lightgbm.Dataset(x, y, feature_name=list("abcd"), categorical_feature=["c"])
    options = {"objective": "binary", "num_leaves": 6, "verbose": -1, "min_data_in_leaf": 5, "min_data_per_group": 2}
    booster = lightgbm.train(options, data, 4)
    return (booster.model_to_string() if form == "text" else json.dumps(booster.dump_model())).encode()


def _catboost(folder: Path, form: str) -> bytes:
    import catboost

    x, y = _rows()
    model = catboost.CatBoostClassifier(
        iterations=4, depth=3, verbose=False, allow_writing_files=False, thread_count=1, random_seed=1
    )
    model.fit(x, y)
    path = folder / "catboost.tmp"
    model.save_model(str(path), format=form)
    return path.read_bytes()


def _catboost_of_categories(folder: Path) -> bytes:
    """One-hot splits, and statistics of one feature and of two together, with the names of the categories."""
    import catboost

    x, y = _rows()
    names = [[float(row[0]), "lh"[int(row[1])], f"c{int(row[2])}", float(row[3])] for row in x]
    pool = catboost.Pool(names, y, cat_features=[1, 2], feature_names=list("abcd"))
    model = catboost.CatBoostClassifier(
        iterations=4,
        depth=3,
        verbose=False,
        allow_writing_files=False,
        thread_count=1,
        random_seed=1,
        max_ctr_complexity=2,
    )
    model.fit(pool)
    path = folder / "catboost-categories.tmp"
    model.save_model(str(path), format="json", pool=pool)
    return path.read_bytes()


def _xgboost_linear() -> bytes:
    """Coefficients of numbers."""

    x, y = _rows()
    return bytes(boosted(x, y, 4, 6, names=list("abcd"), booster="gblinear").save_raw("json"))


NUMBERS_PMML = """<PMML xmlns="http://www.dmg.org/PMML-4_4" version="4.4"><Header/><DataDictionary>
<DataField name="y" optype="categorical" dataType="string"><Value value="no"/><Value value="yes"/></DataField>
<DataField name="a" optype="continuous" dataType="double"/><DataField name="b" optype="continuous" dataType="integer"/>
<DataField name="c" optype="categorical" dataType="string"><Value value="u"/><Value value="v"/></DataField></DataDictionary>
<RegressionModel functionName="classification" normalizationMethod="logit"><MiningSchema>
<MiningField name="y" usageType="target"/><MiningField name="a" missingValueReplacement="0.5"/><MiningField name="b"/>
<MiningField name="c"/></MiningSchema><RegressionTable intercept="-0.25" targetCategory="yes">
<NumericPredictor name="a" coefficient="1.5"/><NumericPredictor name="b" exponent="1" coefficient="-0.125"/>
<CategoricalPredictor name="c" value="u" coefficient="0.75"/></RegressionTable>
<RegressionTable intercept="0" targetCategory="no"/></RegressionModel></PMML>
"""


def _skops_of_numbers() -> bytes:
    """A linear model of three classes over numbers and categories."""
    from sklearn.compose import ColumnTransformer
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import OneHotEncoder, StandardScaler
    from skops import io

    x, y = _rows()
    parts = [("numbers", StandardScaler(), [0, 2, 3]), ("codes", OneHotEncoder(), [1])]
    return bytes(io.dumps(make_pipeline(ColumnTransformer(parts), LogisticRegression()).fit(x, y + (x[:, 3] > 0.5))))


def _skops_of_pipeline() -> bytes:
    """Bins and means of the target before a small forest."""
    from sklearn.compose import ColumnTransformer
    from sklearn.ensemble import RandomForestClassifier
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import KBinsDiscretizer, TargetEncoder
    from skops import io

    x, y = _rows()
    parts = [
        ("bins", KBinsDiscretizer(3, encode="ordinal"), [0, 3]),
        ("means", TargetEncoder(random_state=0, cv=2), [1, 2]),
    ]
    forest = RandomForestClassifier(n_estimators=2, max_depth=3, random_state=1)
    return bytes(io.dumps(make_pipeline(ColumnTransformer(parts), forest).fit(x, y)))


def _skops_of_counted() -> bytes:
    """A vote that counts the classes of a tree, a boosted model and a linear one behind bins."""
    from sklearn.ensemble import GradientBoostingClassifier, VotingClassifier
    from sklearn.linear_model import SGDClassifier
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import KBinsDiscretizer
    from sklearn.tree import DecisionTreeClassifier
    from skops import io

    x, y = _rows()
    inside = [
        ("tree", DecisionTreeClassifier(max_depth=2, random_state=1)),
        ("boosted", GradientBoostingClassifier(n_estimators=2, max_depth=2, random_state=1)),
        ("linear", make_pipeline(KBinsDiscretizer(3, strategy="uniform"), SGDClassifier(random_state=1))),
    ]
    return bytes(io.dumps(VotingClassifier(inside, weights=[2, 1, 1]).fit(x, y)))


def _onnx() -> bytes:
    import skl2onnx
    from sklearn.ensemble import RandomForestClassifier

    x, y = _rows()
    forest = RandomForestClassifier(n_estimators=3, max_depth=3, random_state=1).fit(x, y)
    kinds = [("x", skl2onnx.common.data_types.FloatTensorType([None, FEATURES]))]
    made = skl2onnx.to_onnx(
        forest, initial_types=kinds, target_opset={"": 15, "ai.onnx.ml": 3}, options={"zipmap": False}
    )
    return bytes(made.SerializeToString())


def _treelite() -> bytes:
    import treelite
    from sklearn.ensemble import RandomForestClassifier

    x, y = _rows()
    forest = RandomForestClassifier(n_estimators=3, max_depth=3, random_state=1).fit(x, y)
    return bytes(treelite.sklearn.import_model(forest).serialize_bytes())


def _skops() -> bytes:
    from sklearn.ensemble import RandomForestClassifier
    from skops import io

    x, y = _rows()
    return bytes(io.dumps(RandomForestClassifier(n_estimators=2, max_depth=3, random_state=1).fit(x, y)))


def _skops_of_several() -> bytes:
    """A vote over folds of a calibrated forest, a small forest, and a logistic regression behind bins."""
    from sklearn.calibration import CalibratedClassifierCV
    from sklearn.ensemble import RandomForestClassifier, VotingClassifier
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import KBinsDiscretizer
    from skops import io

    x, y = _rows()
    forest = RandomForestClassifier(n_estimators=2, max_depth=2, random_state=1)
    binned = make_pipeline(KBinsDiscretizer(3, strategy="uniform"), LogisticRegression())
    parts = [("a", CalibratedClassifierCV(forest, method="isotonic", cv=2)), ("b", forest), ("c", binned)]
    return bytes(io.dumps(VotingClassifier(parts, voting="soft").fit(x, y)))


def _interpret() -> bytes:
    from interpret.glassbox import ExplainableBoostingClassifier

    x, y = _rows()
    kinds = ["continuous", "nominal", "continuous", "continuous"]
    made = ExplainableBoostingClassifier(
        list("abcd"), kinds, interactions=1, max_bins=8, outer_bags=1, max_rounds=10, n_jobs=1, random_state=1
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # its JSON may change, says the library
        return json.dumps(made.fit(x, y).to_jsonable("minimal")).encode()


def _csv() -> bytes:
    x, y = _rows()
    names = ("no", "yes")
    lines = ["a,b,c,d,y"]
    lines += [f"{r[0]:.6f},{int(r[1])},{int(r[2])},{r[3]:.3e},{names[label]}" for r, label in zip(x, y, strict=True)]
    return "\n".join([*lines[:60], ""]).encode()


def _parquet(folder: Path) -> bytes:
    import pyarrow
    from pyarrow import parquet

    x, y = _rows()
    path = folder / "parquet.tmp"
    columns = {"a": x[:, 0], "b": [str(int(v)) for v in x[:, 1]], "c": x[:, 2].astype(np.int64), "d": x[:, 3], "y": y}
    parquet.write_table(pyarrow.table(columns), path)
    return path.read_bytes()


def _sir(folder: Path) -> bytes:
    from treesens.binder.file import bind
    from treesens.compiler.ir.text import print_module
    from treesens.compiler.pipeline import compile_query
    from treesens.grammar.parsing.parser import parse

    (folder / "xgboost.json").write_bytes(_xgboost("json"))
    text = 'model m from "xgboost.json"\nquery q: find p, q such that p = q except {a, b}; margin(p) - margin(q) >= 0.1'
    (bound,) = bind(parse(text), folder).queries
    return print_module(compile_query(bound.query, "independent").module, full=True).encode()


def _journal(folder: Path) -> bytes:
    from treesens.records.journal import Entry, Journal

    path = folder / "journal.tmp"
    path.unlink(missing_ok=True)
    with Journal(path) as journal:
        for i in range(60):
            entry = Entry(f"k{i}", "found", f"q{i}", "m", None, None, 1, 0.5, 1 << 20, "here")
            journal.keep(
                entry, 5.0, {"verdict": "found", "points": {"a": {"x": i}}, "varied": ["a"], "reason": "r" * 50}
            )
    with sqlite3.connect(path) as db:
        db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    return path.read_bytes()


def _instances() -> bytes:
    rng = random.Random(1)
    lines = [{"model": "xgboost", "feature": rng.randrange(4), "margin": 0.5, "verdict": "found"} for _ in range(5)]
    return "\n".join(map(json.dumps, [*lines, {"model": "xgboost", "features": [0, 1], "gap": 0.1}])).encode()


SCORECARD = (
    'feature,bin,points\n(base),,3\nx,"(-inf, 2)",5\nx,"[2, inf)",7.5\nx,Missing,1\nc,"[\'a\' \'b\']",2\nc,other,0\n'
)
PMML = Path(__file__).parents[1] / "data" / "pmml"
H2O = Path(__file__).parents[1] / "data" / "h2o"
SPARK = Path(__file__).parents[1] / "data" / "spark"


def _of_spark(name: str) -> bytes:
    """A model of Spark; without pyarrow nothing reads it."""
    import pyarrow  # noqa: F401

    return (SPARK / f"{name}.zip").read_bytes()


MAKERS: dict[str, Callable[[Path], bytes]] = {
    "xgboost.json": lambda _: _xgboost("json"),
    "xgboost.ubj": lambda _: _xgboost("ubj"),
    "xgboost-categories.json": lambda _: _xgboost("json", categories=True),
    "linear.json": lambda _: _xgboost_linear(),
    "lightgbm.txt": lambda _: _lightgbm("text"),
    "lightgbm.json": lambda _: _lightgbm("json"),
    "catboost.json": lambda folder: _catboost(folder, "json"),
    "catboost.cbm": lambda folder: _catboost(folder, "cbm"),
    "catboost-categories.json": _catboost_of_categories,
    "onnx.onnx": lambda _: _onnx(),
    "treelite.tl": lambda _: _treelite(),
    "interpret.json": lambda _: _interpret(),
    "scorecard.csv": lambda _: SCORECARD.encode(),
    "tree.pmml": lambda _: (PMML / "drawn_03.pmml").read_bytes(),
    "chain.pmml": lambda _: (PMML / "xgboost_missing.pmml").read_bytes(),
    "numbers.pmml": lambda _: NUMBERS_PMML.encode(),
    "ballots.pmml": lambda _: (PMML / "vote_weights.pmml").read_bytes(),
    "vote.pmml": lambda _: (PMML / "vote_mixed_three.pmml").read_bytes(),
    "boosting.mojo": lambda _: (H2O / "boosting_two.zip").read_bytes(),
    "forest.spark": lambda _: _of_spark("forest_three"),
    "tree.spark": lambda _: _of_spark("tree_value"),
    "sklearn.skops": lambda _: _skops(),
    "votes.skops": lambda _: _skops_of_several(),
    "pipeline.skops": lambda _: _skops_of_pipeline(),
    "counted.skops": lambda _: _skops_of_counted(),
    "numbers.skops": lambda _: _skops_of_numbers(),
    "table.csv": lambda _: _csv(),
    "table.parquet": _parquet,
    "question.sens": lambda _: SENS.encode(),
    "sweep.toml": lambda _: TOML.encode(),
    "module.sir": _sir,
    "journal.sqlite": _journal,
    "list.jsonl": lambda _: _instances(),
}
