"""Deep forests: scikit-learn forests on adult, four features at four gaps, one core, and who proves what.

    python -m benchmarks.forests --depths 8,12 --limit 60
    python -m benchmarks.forests --depths 8,12 --limit 60 --methods auto,messages

Trains `RandomForestClassifier(100, max_depth=d, random_state=0)` (0: unlimited depth). Questions are asked as users ask
them, by `ts.sensitivity` with the default backend: from the loaded model to the answer that scikit-learn has replayed. The
limit is one of the clock, as that of users is; CPU seconds are those of the process and of workers that have ended. With
`--methods` every question is compiled once per gap and given to the engine alone; times are CPU seconds of the search, without
compiling. Without the file it takes scikit-learn's breast cancer data and its first four features.
"""

from __future__ import annotations

import argparse
import resource
import time
from fractions import Fraction
from pathlib import Path
from typing import Any

from benchmarks.published import FOLDER

import treesens as ts
from treesens.backends.native.backend import NativeArtifact, NativeBackend
from treesens.backends.native.solver import Solver
from treesens.binder.file import bind
from treesens.compiler.pipeline import compile_query, decide_at_compile_time
from treesens.extensions.studies.questions import declarations_of, features_node
from treesens.frontends.base import LoadedModel
from treesens.grammar.tree import ast
from treesens.runtime.fork_server import cpu_seconds

FEATURES = ("sex", "age", "fnlwgt", "capital-gain")
GAPS = ("0.4", "0.3", "0.2", "0.1")


def table(path: Path) -> tuple[Any, Any]:
    """The columns and the classes; the last column of a file is the class."""
    import pandas as pd
    from sklearn.datasets import load_breast_cancer

    if not path.is_file():
        data = load_breast_cancer(as_frame=True)
        return data.data, data.target
    frame = pd.read_csv(path)
    return frame.drop(columns=frame.columns[-1]), frame[frame.columns[-1]]


def ask_as_users_do(model: LoadedModel, feature: str, gap: str, limit: float) -> str:
    start = cpu_seconds()
    answer = ts.sensitivity(model, vary=[feature], gap=float(gap), time_limit=limit)
    nodes = sum(attempt.statistics.get("nodes", 0.0) for attempt in answer.result.attempts)
    return f"{answer.verdict} | | {cpu_seconds() - start:.1f} | {nodes:.0f} |"


def ask(model: LoadedModel, feature: str, gap: str, method: str, limit: float) -> str:
    body = ast.Sensitive(ast.Name("m"), features_node([feature]), gap=ast.Number(Fraction(gap)))
    file = ast.File((*declarations_of(model, [], has_table=False), ast.Query(ast.Name("q"), body)))
    question = bind(file, Path(), load_model=lambda _path, _format: model).queries[0]
    start = time.process_time()
    compilation = compile_query(question.query, "native")
    built = time.process_time() - start
    known = decide_at_compile_time(compilation)
    if known is not None:
        return f"{known.verdict} | {built:.2f} | compiler | |"
    artifact = NativeBackend().emit(compilation.module)
    assert isinstance(artifact, NativeArtifact)
    assert artifact.adapted is not None
    start = time.process_time()
    solver = Solver(artifact.adapted.problem, method=method)  # type: ignore[arg-type]
    result = solver.run(0.0)
    while result.status == "open" and result.reason == "time" and time.process_time() - start < limit:
        result = solver.run(0.5)
    status = {"witness": "found", "infeasible": "none"}.get(result.status, f"open ({result.reason})")
    return f"{status} | {built:.2f} | {time.process_time() - start:.2f} | {result.statistics.nodes} |"


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("table", type=Path, nargs="?", default=FOLDER / "data" / "adult" / "train.csv")
    parser.add_argument("--depths", default="8,12,16,0")
    parser.add_argument("--limit", type=float, default=60.0, help="Seconds of one question.")
    parser.add_argument("--methods", default="", help="Ask the engine alone: auto, messages, overlap, both.")
    asked = parser.parse_args()
    from sklearn.ensemble import RandomForestClassifier

    columns, classes = table(asked.table)
    features = [f for f in FEATURES if f in columns] or list(columns)[:4]
    print("| depth | leaves | feature | gap | method | answer | compile s | search s | nodes |\n|" + " --- |" * 9)
    for depth in (int(d) for d in asked.depths.split(",")):
        forest = RandomForestClassifier(100, max_depth=depth or None, random_state=0).fit(columns, classes)
        leaves = sum(tree.get_n_leaves() for tree in forest.estimators_)
        model = ts.load(forest)
        for feature in features:
            for gap in GAPS:
                for method in asked.methods.split(","):
                    if method:
                        said = ask(model, feature, gap, method, asked.limit)
                    else:
                        said = ask_as_users_do(model, feature, gap, asked.limit)
                    named = method or "as users ask"
                    print(f"| {depth or 'unlimited'} | {leaves} | {feature} | {gap} | {named} | {said}", flush=True)
    print(f"\npeak memory {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024:.0f} MB")


if __name__ == "__main__":
    main()
