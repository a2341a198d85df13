"""Makes the PMML files of this folder, and what JPMML-Evaluator says of inputs on and around their constants.

    pip install sklearn2pmml nyoka jpmml-evaluator jpype1 'scikit-learn<1.8' xgboost-cpu lightgbm pandas   # and Java
    python make.py

The packages are in no extra of treesens: some are under the AGPL, and only this script needs them. `NAME.json` holds rows
(null: missing; categories as texts) and, for each, the label or the value as JPMML returns it, and probabilities; floats are
hexadecimal texts. `scorecard.pmml` and `weights_of_evidence.pmml` are written by hand.
"""

from __future__ import annotations

import json
import re
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

HERE = Path(__file__).parent
ROWS = 60
warnings.simplefilter("ignore")


# --- models of libraries --------------------------------------------------------------------------------------------------


def table(rng: np.random.Generator, n: int = 400) -> tuple[pd.DataFrame, pd.Series, pd.Series, pd.Series]:
    """Numbers and one category, with a label of two classes, one of three, and a value."""
    x = pd.DataFrame(
        {
            "age": rng.integers(18, 80, n).astype(float),
            "income": rng.normal(50, 20, n),
            "debt": rng.exponential(1, n),
            "job": rng.choice(["a", "b", "c d"], n),
        }
    )
    two = ((x.age / 80 + x.debt / 3 - (x.job == "b") * 0.5 + rng.normal(0, 0.3, n)) > 0.6).astype(int).rename("target")
    three = pd.Series(np.clip((x.age // 25).astype(int) - 1, 0, 2).to_numpy(), name="target")
    value = (x.income * 2 + x.age * x.debt).rename("target")
    return x, two, three, value


def export_jpmml() -> None:
    """Pipelines through sklearn2pmml, which is JPMML's own converter."""
    import lightgbm as lgb
    import xgboost as xgb
    from sklearn.compose import ColumnTransformer
    from sklearn.ensemble import (
        ExtraTreesClassifier,
        GradientBoostingClassifier,
        HistGradientBoostingClassifier,
        RandomForestClassifier,
        RandomForestRegressor,
        VotingClassifier,
    )
    from sklearn.preprocessing import OneHotEncoder, OrdinalEncoder
    from sklearn.tree import DecisionTreeClassifier
    from sklearn2pmml import sklearn2pmml
    from sklearn2pmml.pipeline import PMMLPipeline

    rng = np.random.default_rng(0)
    x, two, three, value = table(rng)
    numbers = ["age", "income", "debt"]
    holes = x.copy()
    holes.loc[rng.random(len(x)) < 0.1, "income"] = np.nan

    def save(name: str, model: Any, rows: pd.DataFrame, label: pd.Series, encoder: Any = None) -> None:
        steps: list[Any] = [("numbers", "passthrough", numbers)]
        if encoder is not None:
            steps.append(("categories", encoder, ["job"]))
        pipeline = PMMLPipeline([("columns", ColumnTransformer(steps)), ("model", model)])
        sklearn2pmml(pipeline.fit(rows, label), str(HERE / f"{name}.pmml"))

    small: dict[str, Any] = {"n_estimators": 4, "max_depth": 3}
    save("xgboost_two", xgb.XGBClassifier(**small), x, two, OneHotEncoder())
    save("xgboost_missing", xgb.XGBClassifier(**small), holes, two)
    save("xgboost_three", xgb.XGBClassifier(n_estimators=3, max_depth=2), x, three, OneHotEncoder())
    save("xgboost_value", xgb.XGBRegressor(**small), x, value)
    leaves: dict[str, Any] = {"n_estimators": 4, "num_leaves": 6, "verbose": -1}
    save("lightgbm_two", lgb.LGBMClassifier(**leaves), x, two, OneHotEncoder())
    save("lightgbm_categories", lgb.LGBMClassifier(**leaves, categorical_feature=[3]), x, two, OrdinalEncoder())
    save("forest_two", RandomForestClassifier(5, max_depth=3, random_state=0), x, two, OneHotEncoder())
    save("extra_three", ExtraTreesClassifier(5, max_depth=3, random_state=0), x, three, OneHotEncoder())
    save("forest_value", RandomForestRegressor(5, max_depth=3, random_state=0), x, value, OneHotEncoder())
    save("boosting_two", GradientBoostingClassifier(n_estimators=4, max_depth=2), x, two, OneHotEncoder())
    save("boosting_three", GradientBoostingClassifier(n_estimators=2, max_depth=2), x, three, OneHotEncoder())
    save(
        "histogram_two",
        HistGradientBoostingClassifier(max_iter=3, max_depth=2),
        x,
        two,
        OneHotEncoder(sparse_output=False),
    )
    save("tree_two", DecisionTreeClassifier(max_depth=3), x, two, OneHotEncoder())
    inside = [
        ("forest", RandomForestClassifier(3, max_depth=2, random_state=0)),
        ("boosting", GradientBoostingClassifier(n_estimators=3, max_depth=2)),
        ("tree", DecisionTreeClassifier(max_depth=2)),
        ("extra", ExtraTreesClassifier(3, max_depth=2, random_state=0)),
    ]
    save("vote_mixed", VotingClassifier(inside, weights=[2, 1, 1, 2]), x, two, OneHotEncoder())
    save("vote_mixed_three", VotingClassifier(inside), x, three, OneHotEncoder())


def export_pair() -> None:
    """One booster as its library saves it, by JPMML's converter, and by nyoka."""
    import xgboost as xgb
    from nyoka import xgboost_to_pmml
    from sklearn.pipeline import Pipeline
    from sklearn2pmml import sklearn2pmml
    from sklearn2pmml.pipeline import PMMLPipeline

    x, two, _, _ = table(np.random.default_rng(2))
    numbers = ["age", "income", "debt"]
    model = xgb.XGBClassifier(n_estimators=5, max_depth=3)
    sklearn2pmml(PMMLPipeline([("model", model)]).fit(x[numbers], two), str(HERE / "pair.pmml"))
    model.get_booster().save_model(HERE / "pair.ubj")
    path = HERE / "pair_nyoka.pmml"
    xgboost_to_pmml(Pipeline([("model", model)]), numbers, "target", str(path))
    path.write_text(re.sub("<Output>.*?</Output>", "", path.read_text(), count=1, flags=re.DOTALL))


def export_nyoka() -> None:
    """Other dialects: sums in float64 that are rounded in the end, trees that are scaled by an expression."""
    import lightgbm as lgb
    import xgboost as xgb
    from nyoka import lgb_to_pmml, skl_to_pmml, xgboost_to_pmml
    from sklearn.ensemble import GradientBoostingClassifier, RandomForestClassifier
    from sklearn.pipeline import Pipeline

    x, two, _, value = table(np.random.default_rng(1))
    numbers = ["age", "income", "debt"]
    small: dict[str, Any] = {"n_estimators": 3, "max_depth": 2}
    for name, write, model, label in (
        ("nyoka_forest", skl_to_pmml, RandomForestClassifier(4, max_depth=3, random_state=0), two),
        ("nyoka_boosting", skl_to_pmml, GradientBoostingClassifier(**small), two),
        ("nyoka_xgboost", xgboost_to_pmml, xgb.XGBClassifier(**small), two),
        ("nyoka_lightgbm", lgb_to_pmml, lgb.LGBMRegressor(**small, verbose=-1), value),
    ):
        path = HERE / f"{name}.pmml"
        write(Pipeline([("model", model)]).fit(x[numbers], label), numbers, "target", str(path))
        if name in ("nyoka_boosting", "nyoka_xgboost"):
            # They name each probability at two places, which JPMML refuses; the second is that of the last model.
            path.write_text(re.sub("<Output>.*?</Output>", "", path.read_text(), count=1, flags=re.DOTALL))


# --- trees of every predicate ---------------------------------------------------------------------------------------------

FIELDS = {"n": "double", "f": "float", "i": "integer", "c": "string", "m": "string"}
WORDS = ("a", 'b "x"', "c d", "é")


class Drawn:
    """A random tree with compound and surrogate predicates under a strategy."""

    strategies = ("none", "lastPrediction", "nullPrediction", "defaultChild")
    source = 5

    def __init__(self, seed: int) -> None:
        self.rng = np.random.default_rng([self.source, seed])
        self.ids = 0
        self.strategy = str(self.rng.choice(list(self.strategies)))

    def document(self) -> str:
        return self.around(self.tree("regression"))

    def tree(self, function: str) -> str:
        body = self.node(0)
        return (
            f'<TreeModel functionName="{function}" missingValueStrategy="{self.strategy}" '
            f'noTrueChildStrategy="returnLastPrediction">{self.schema}{body}</TreeModel>'
        )

    def score(self) -> str:
        return f"{self.rng.normal():.3g}"

    def around(self, model: str) -> str:
        fields = "".join(self.field(name, kind) for name, kind in FIELDS.items())
        start = '<PMML version="4.4" xmlns="http://www.dmg.org/PMML-4_4"><Header/>'
        return f"{start}<DataDictionary>{fields}</DataDictionary>{model}</PMML>"

    # A field that is not missing, one that is replaced, one that is cut off, and one whose other values are missing.
    schema = (
        '<MiningSchema><MiningField name="n"/><MiningField name="f" missingValueReplacement="0.1"/>'
        '<MiningField name="i" outliers="asExtremeValues" lowValue="-3" highValue="9"/>'
        '<MiningField name="c" invalidValueTreatment="asMissing"/><MiningField name="m"/></MiningSchema>'
    )

    @staticmethod
    def field(name: str, kind: str) -> str:
        if kind != "string":
            return f'<DataField name="{name}" optype="continuous" dataType="{kind}"/>'
        values = "".join(f"<Value value={_quoted(word)}/>" for word in WORDS)
        return f'<DataField name="{name}" optype="categorical" dataType="string">{values}</DataField>'

    def node(self, depth: int) -> str:
        mine, self.ids = self.ids, self.ids + 1
        score = f'score="{self.score()}"'
        predicate = "<True/>" if depth == 0 else self.predicate(0)
        children = [] if depth == 3 or (depth and self.rng.random() < 0.3) else [self.node(depth + 1) for _ in range(2)]
        if children and self.rng.random() < 0.4:
            children.append(self.node(depth + 1))
        ids = re.findall(r'^<Node id="(\d+)"', "\n".join(children), re.MULTILINE)
        default = f' defaultChild="{self.rng.choice(ids)}"' if children else ""
        return f'<Node id="{mine}" {score}{default}>{predicate}{"".join(children)}</Node>'

    def predicate(self, depth: int) -> str:
        if depth < 2 and self.rng.random() < 0.35:
            joint = self.rng.choice(["and", "or", "xor", "surrogate"])
            parts = "".join(self.predicate(depth + 1) for _ in range(self.rng.integers(2, 4)))
            return f'<CompoundPredicate booleanOperator="{joint}">{parts}</CompoundPredicate>'
        if self.rng.random() < 0.05:
            return str(self.rng.choice(["<True/>", "<False/>"]))
        name = str(self.rng.choice(list(FIELDS)))
        if self.rng.random() < 0.12:
            return f'<SimplePredicate field="{name}" operator="{self.rng.choice(["isMissing", "isNotMissing"])}"/>'
        if FIELDS[name] == "string":
            return self.of_words(name)
        value = {"double": "{:.2g}", "float": "{:.3g}", "integer": "{:.0f}"}[FIELDS[name]]
        text = value.format(self.rng.normal() * 5 if FIELDS[name] == "integer" else self.rng.normal() / 2)
        if self.rng.random() < 0.15:
            other = self.rng.choice(["isIn", "isNotIn"])
            array = f'<Array n="2" type="real">{text} {value.format(1)}</Array>'
            return f'<SimpleSetPredicate field="{name}" booleanOperator="{other}">{array}</SimpleSetPredicate>'
        orders = ["lessThan", "lessOrEqual", "greaterThan", "greaterOrEqual", "equal", "notEqual"]
        return f'<SimplePredicate field="{name}" operator="{self.rng.choice(orders)}" value="{text}"/>'

    def of_words(self, name: str) -> str:
        if self.rng.random() < 0.5:
            word, operator = self.rng.choice(WORDS), self.rng.choice(["equal", "notEqual"])
            return f'<SimplePredicate field="{name}" operator="{operator}" value={_quoted(word)}/>'
        some = [word for word in WORDS if self.rng.random() < 0.5] or ["a"]
        escaped = " ".join('"' + word.replace('"', '\\"') + '"' for word in some)
        operator = self.rng.choice(["isIn", "isNotIn"])
        array = f'<Array n="{len(some)}" type="string">{escaped}</Array>'
        return f'<SimpleSetPredicate field="{name}" booleanOperator="{operator}">{array}</SimpleSetPredicate>'


def _quoted(word: str) -> str:
    from xml.sax.saxutils import quoteattr

    return quoteattr(word)


def draw_trees() -> None:
    for seed in range(24):
        (HERE / f"drawn_{seed:02d}.pmml").write_text(Drawn(seed).document() + "\n", encoding="utf-8")


class Vote(Drawn):
    """Random trees that vote for classes."""

    # Without a prediction a tree has no vote, and JPMML counts the others.
    strategies = ("none", "lastPrediction", "defaultChild")
    source = 6

    def __init__(self, seed: int, classes: str, method: str, weights: list[float]) -> None:
        super().__init__(seed)
        self.classes, self.method, self.weights = classes, method, weights

    def score(self) -> str:
        return str(self.rng.choice(list(self.classes)))

    def document(self) -> str:
        segments = "".join(
            f'<Segment weight="{weight}"><True/>{self.tree("classification")}</Segment>' for weight in self.weights
        )
        return self.around(
            f'<MiningModel functionName="classification">{self.schema}'
            f'<Segmentation multipleModelMethod="{self.method}">{segments}</Segmentation></MiningModel>'
        )


VOTES: dict[str, tuple[str, str, list[float]]] = {
    "vote_one": ("pq", "majorityVote", [1]),
    "vote_odd": ("pq", "majorityVote", [1, 2, 1]),
    "vote_even": ("qp", "majorityVote", [1, 1, 1, 1]),
    "vote_three": ("pqr", "majorityVote", [1] * 6),
    "vote_weights": ("pqr", "weightedMajorityVote", [0.5, 1, 0, 1.5, 1]),
    # 0.1 + 0.2 is not 0.3, and 0.2 + 0.1 is that sum.
    "vote_decimals": ("pqr", "weightedMajorityVote", [0.1, 0.2, 0.3, 0.2, 0.1]),
}


def draw_votes() -> None:
    for seed, (name, given) in enumerate(VOTES.items(), 3):
        (HERE / f"{name}.pmml").write_text(Vote(seed, *given).document() + "\n", encoding="utf-8")


# --- answers of JPMML -----------------------------------------------------------------------------------------------------


def ask(path: Path) -> dict[str, Any]:
    """Rows on and around the constants of a file, and what JPMML says of them."""
    from jpmml_evaluator import make_evaluator
    from jpmml_evaluator.jpype import JPypeBackend

    evaluator = make_evaluator(str(path), backend=JPypeBackend())
    text = path.read_text(encoding="utf-8")
    constants = sorted({float(v) for v in re.findall(r'(?:value|Margin)="(-?[0-9.eE+-]+)"', text)})
    rng = np.random.default_rng([9, len(text)])
    inputs = {f.getName(): f.getDataType() for f in evaluator.getInputFields()}
    words = {
        name: re.findall(r'<Value value=("[^"]*"|\'[^\']*\')', re.search(_field(name), text, re.DOTALL).group(0))  # type: ignore[union-attr]
        for name, kind in inputs.items()
        if kind == "string"
    }
    rows, answers = [], []
    for _ in range(4 * ROWS):
        row = {name: draw(rng, kind, constants, words.get(name, [])) for name, kind in inputs.items()}
        try:
            answer = dict(evaluator.evaluate(row))
        except Exception:  # noqa: BLE001 - an input that JPMML refuses is none
            continue
        first = next(iter(answer.values()), None)
        if first is None or len(rows) == ROWS:
            continue
        shown = {str(k): v.hex() for k, v in list(answer.items())[1:] if isinstance(v, float)}
        rows.append(list(row.values()))
        answers.append([first.hex() if isinstance(first, float) else str(first), shown])
    return {"columns": list(inputs), "rows": rows, "answers": answers}


def _field(name: str) -> str:
    return rf'<DataField name="{name}".*?</DataField>'


def draw(rng: np.random.Generator, kind: str, constants: list[float], words: list[str]) -> Any:
    import html

    if rng.random() < 0.15:
        return None
    if kind == "string":
        return html.unescape(str(rng.choice(words))[1:-1])
    x = float(rng.choice(constants)) if rng.random() < 0.8 else float(rng.normal() * 50)
    if kind == "integer":
        return int(np.clip(round(x) + rng.integers(-1, 2), -1000, 1000))
    step = rng.choice(["same", "float32", "float64"])
    towards = float(rng.choice([-np.inf, np.inf]))
    if step == "float32":
        return float(np.nextafter(np.float32(x), np.float32(towards)))
    return float(np.nextafter(x, towards)) if step == "float64" else x


def main() -> None:
    export_jpmml()
    export_nyoka()
    export_pair()
    draw_trees()
    draw_votes()
    for path in sorted(HERE.glob("*.pmml")):
        asked = ask(path)
        text = json.dumps(asked, separators=(",", ":"), ensure_ascii=False)
        path.with_suffix(".json").write_text(text + "\n", encoding="utf-8")
        print(f"{path.name}: {len(asked['rows'])} rows")


if __name__ == "__main__":
    main()
