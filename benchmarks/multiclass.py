"""Models of several classes as large as the paper's: is one class turned into another by a single feature?

    python -m benchmarks.multiclass --published covtype_unrobust --limit 10 --markdown out/covtype.md
    python -m benchmarks.multiclass --train mnist,mnist-moved,digits --questions 538 --markdown out/m.md

A published model is asked about every feature, every ordered pair of classes and three factors (every n-th question with
`--every`). Five of the paper's models are not public. `--train` makes models of their size instead (784 features, 10 classes,
200 rounds); one whose name ends in `-moved` is trained on rows that are moved at random besides, which is not the paper's
robust training.
The tables are `digits` (scikit-learn's own, 8 x 8, drawn larger: no network is needed), `mnist` and `fashion` of
`benchmarks/image_tables.py`, and `covtype` of scikit-learn. The SHA-256 of each table is printed, and compared if it is known.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import random
import sys
import time
from collections.abc import Iterator, Sequence
from itertools import permutations, product
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
from benchmarks.image_tables import images_of
from benchmarks.published import FOLDER

FACTORS = ("1", "1.5", "4.5")
TABLES = ("digits", "mnist", "fashion", "covtype")
DIGESTS = {
    "digits": "1e7c998c3c6264c15a26308e7df76d7dfae0ca0a38099520d65d1bd1ad3bcf74",
    "mnist": "4e58fb0c0b85b6ad09782d2d836314b8ea3baff605a87f81b9eafca02c083e5e",
    "fashion": "846d63706fd4e3109156062030d0f059b74b1555a42d1e5624decd784666de76",
}
MOVED = "-moved"
SEED = 7
Question = tuple[int, int, int, str]
"""Feature, from class, to class, factor."""


def table_of(name: str) -> tuple[Any, Any]:
    """Rows float32[rows, features] in [0, 1] and classes int64[rows], with their digest on standard error."""
    from sklearn import datasets

    if name == "digits":
        bunch = datasets.load_digits()
        small = bunch.images.astype(np.float32) / 16
        x = np.pad(np.kron(small, np.ones((3, 3), np.float32)), ((0, 0), (2, 2), (2, 2))).reshape(len(small), 784)
        y = bunch.target.astype(np.int64)
    elif name == "covtype":
        x, y = datasets.fetch_covtype(return_X_y=True)
        x = ((x - x.min(axis=0)) / np.maximum(x.max(axis=0) - x.min(axis=0), 1)).astype(np.float32)
        y = y.astype(np.int64) - 1
    else:
        x, y = images_of(name)
    x = np.ascontiguousarray(x)
    digest = hashlib.sha256(x.tobytes() + y.tobytes()).hexdigest()
    if DIGESTS.get(name, digest) != digest:
        raise SystemExit(f"the table `{name}` is another one than that of the figures: {digest}")
    print(f"{name}: {len(x)} rows, SHA-256 {digest}", file=sys.stderr)
    return x, y


def trained(name: str, folder: Path, rounds: int, *, moved: bool) -> Path:
    """The file of a model, trained unless it is there."""
    import xgboost as xgb

    path = folder / f"{name}{MOVED * moved}-{rounds}.json"
    if path.is_file():
        return path
    x, y = table_of(name)
    if moved:
        shifted = x + np.random.default_rng(SEED).uniform(-0.1, 0.1, x.shape).astype(np.float32)
        x, y = np.concatenate((x, np.clip(shifted, 0, 1))), np.concatenate((y, y))
    options = {
        "objective": "multi:softprob",
        "num_class": int(y.max()) + 1,
        "max_depth": 8,
        "eta": 0.3,
        "tree_method": "hist",
        "seed": SEED,
        "nthread": 1,
    }
    booster = xgb.train(options, xgb.DMatrix(x, y), rounds)
    folder.mkdir(parents=True, exist_ok=True)
    booster.save_model(path)
    return path


def questions_of(model: Any, count: int | None, every: int) -> list[Question]:
    """All questions about the features that a tree asks for, every n-th of them; or so many at random."""
    ensemble = model.ensemble
    features = sorted(set(ensemble.node_feature[ensemble.node_feature >= 0].tolist()))
    pairs = permutations(range(ensemble.n_outputs), 2)
    if count is None:
        return [(f, a, b, g) for f, (a, b), g in product(features, pairs, FACTORS)][::every]
    draw, classes = random.Random(SEED), list(pairs)
    return [(draw.choice(features), *draw.choice(classes), draw.choice(FACTORS)) for _ in range(count)]


def ask(path: Path, count: int | None, every: int, limit: float) -> Iterator[dict[str, Any]]:
    """One record per question."""
    from treesens.binder.file import bind
    from treesens.frontends.registry import load
    from treesens.grammar.parsing.parser import parse
    from treesens.solve.options import Options
    from treesens.solve.question import answer

    model = load(path)
    names, classes = model.ensemble.feature_names, model.ensemble.classes
    for feature, one, other, factor in questions_of(model, count, every):
        text = f"sensitive m to `{names[feature]}` from {classes[one]} to {classes[other]} factor {factor}"
        bound = bind(parse(f'model m from "m"\nquery q: {text}'), Path(), load_model=lambda *_: model)
        started = time.perf_counter()
        result = answer(bound.queries[0].query, Options(backend="native", time_limit=limit, threads=1))
        yield {
            "model": path.stem,
            "feature": names[feature],
            "from": str(classes[one]),
            "to": str(classes[other]),
            "factor": factor,
            "verdict": str(result.verdict),
            "seconds": round(time.perf_counter() - started, 3),
            "reason": result.reason,
        }


def table(records: Sequence[dict[str, Any]]) -> str:
    """A line per model, and the questions that are open."""
    lines = ["| model | questions | found | none | open | median, s | worst, s | all, s |", "| --- |" + " ---: |" * 7]
    for model in dict.fromkeys(r["model"] for r in records):
        mine = [r for r in records if r["model"] == model]
        seconds = [r["seconds"] for r in mine]
        counts = [sum(r["verdict"] == v for r in mine) for v in ("found", "none", "unknown")]
        lines.append(
            f"| {model} | {len(mine)} | {' | '.join(map(str, counts))} | {median(seconds):.2f} | {max(seconds):.1f} | "
            f"{sum(seconds):.0f} |"
        )
    still = [r for r in records if r["verdict"] == "unknown"]
    lines += ["", "Open:" if still else "None is open.", ""] if records else []
    lines += [f"- {r['model']}: {r['feature']}, {r['from']} to {r['to']}, factor {r['factor']}" for r in still]
    return "\n".join(lines)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--bench", type=Path, default=FOLDER)
    parser.add_argument("--published", default="", help="published models, comma-separated")
    parser.add_argument(
        "--train", default="", help=f"tables, comma-separated, perhaps with {MOVED}: {', '.join(TABLES)}"
    )
    parser.add_argument("--rounds", type=int, default=200)
    parser.add_argument("--questions", type=int, default=538, help="for all trained models together")
    parser.add_argument("--every", type=int, default=1, help="of the questions about published models")
    parser.add_argument("--limit", type=float, default=10.0, help="seconds per question")
    parser.add_argument("--folder", type=Path, default=Path("out/multiclass"), help="of the trained models")
    parser.add_argument("--output", type=Path, default=Path("out/multiclass.jsonl"))
    parser.add_argument("--markdown", type=Path)
    given = parser.parse_args()
    work = [(given.bench / f"models/{n}.json", None) for n in given.published.split(",") if n]
    made = [(name.removesuffix(MOVED), name.endswith(MOVED)) for name in given.train.split(",") if name]
    for number, (name, moved) in enumerate(made):
        share = given.questions // len(made) + (number < given.questions % len(made))
        work.append((trained(name, given.folder, given.rounds, moved=moved), share))
    if not work:
        parser.error("name models with --published, or tables with --train")
    given.output.parent.mkdir(parents=True, exist_ok=True)
    records = []
    with given.output.open("w") as file:
        for path, count in work:
            for record in ask(path, count, given.every, given.limit):
                records.append(record)
                file.write(json.dumps(record) + "\n")
                file.flush()
            print(f"{path.stem}: {len(records)} answers", file=sys.stderr)
    text = table(records)
    print(text)
    if given.markdown is not None:
        given.markdown.write_text(f"# Several classes\n\n{given.limit:g} s per question, one thread.\n\n{text}\n")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
