"""One class turned into another by one feature, by treesens and by Veritas on two copies of a model of several classes.

    python -m benchmarks.two_copies_classes --limit 10 --markdown out/two_copies_classes.md

As in the paper's appendix (eq. Veritas-Obj), Veritas (PyPI: dtai-veritas; Devos, Cascioli, Davis, AAAI 2024) gets the trees
twice, the second time with a feature of its own in place of the sensitive one. Its output 0 is the score of class c1 at the
first point plus that of class c2 at the second; another output has c2 and c1 instead, and each further one a class at both. It
maximises output 0 less the largest other. That is never below what the pair of the question has, so that a pair is wanted
whose classes are c1 and c2 by XGBoost's own scores, and a bound below 2 ln(factor) says that there is none.

PAR2 counts an open instance as twice the limit. %V is the largest value of Veritas in per cent of that of our pair, over the
instances that have one, at most 100 for each.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from dataclasses import dataclass
from itertools import permutations
from math import log
from pathlib import Path
from statistics import mean
from typing import Any

import numpy as np
from benchmarks.published import FOLDER
from benchmarks.two_copies import STEPS, pair_of

MODELS = ("iris_t100_d5", "winequality_red_t100_d5", "covtype_unrobust")
FACTORS = ("1", "1.5")
Instance = tuple[int, int, int, str]
"""Feature, class of the first point, class of the second, factor."""


@dataclass
class Answer:
    """Whether an instance is decided, in how many seconds, whether there is a pair, and the largest known value of it."""

    decided: bool
    seconds: float
    found: bool
    value: float | None


def value_of(scores: Any, classes: tuple[int, int]) -> float:
    """What Veritas maximises (eq. Veritas-Obj), of a pair with scores float32[2, classes]."""
    c1, c2 = classes
    others = [scores[0, k] + scores[1, k] for k in range(scores.shape[1]) if k not in classes]
    return float(scores[0, c1] + scores[1, c2] - max(scores[0, c2] + scores[1, c1], *others))


def ours(model: Any, asked: Instance, limit: float) -> tuple[Answer, Any]:
    """The answer of treesens, without domains, as Veritas has none, and its pair float32[2, features]."""
    from treesens.binder.file import bind
    from treesens.grammar.parsing.parser import parse
    from treesens.solve.options import Options
    from treesens.solve.question import answer

    feature, c1, c2, factor = asked
    name, classes = model.ensemble.feature_names[feature], model.ensemble.classes
    text = f'model m from "m"\nquery q: sensitive m to `{name}` from {classes[c1]} to {classes[c2]} factor {factor}'
    query = bind(parse(text), Path(), load_model=lambda *_: model)["q"].query
    started = time.perf_counter()
    result = answer(query, Options(backend="native", time_limit=limit, threads=1))
    seconds = time.perf_counter() - started
    pair = None if result.witness is None else np.asarray(result.witness.values, np.float32)
    return Answer(str(result.verdict) != "unknown", seconds, pair is not None, None), pair


def copies(path: Path, asked: Instance, features: int, classes: int) -> Any:
    """The two copies as one ensemble whose outputs are those of the objective."""
    import veritas

    learner = json.loads(path.read_text(), parse_float=np.float32)["learner"]["gradient_booster"]["model"]
    feature, c1, c2, _ = asked
    rest = [k for k in range(classes) if k not in (c1, c2)]
    output = [{k: 2 + n for n, k in enumerate(rest)} | ends for ends in ({c1: 0, c2: 1}, {c2: 0, c1: 1})]
    ensemble = veritas.AddTree(classes, veritas.AddTreeType.REGR)
    for copy in (0, 1):
        for tree, own in zip(learner["trees"], learner["tree_info"], strict=True):
            made = ensemble.add_tree()
            waiting = [(0, made.root())]
            while waiting:
                node, place = waiting.pop()
                if tree["left_children"][node] < 0:
                    for k in range(classes):
                        made.set_leaf_value(place, k, 0.0)
                    made.set_leaf_value(place, output[copy][int(own)], tree["split_conditions"][node])
                    continue
                split = tree["split_indices"][node]
                made.split(place, features if copy and split == feature else split, tree["split_conditions"][node])
                waiting.append((tree["right_children"][node], made.right(place)))
                waiting.append((tree["left_children"][node], made.left(place)))
    return ensemble


def theirs(path: Path, booster: Any, asked: Instance, classes: int, limit: float) -> Answer:
    """The same by Veritas on two copies."""
    import veritas
    import xgboost as xgb

    feature, c1, c2, factor = asked
    count, least = booster.num_features(), log(float(factor))

    def scores(points: Any) -> Any:
        return booster.predict(xgb.DMatrix(points, feature_names=booster.feature_names), output_margin=True)

    both = copies(path, asked, count, classes)
    rows = np.random.default_rng(1).uniform(-1, 2, (50, count + 1)).astype(np.float32)
    first, second = rows[:, :count], rows[:, :count].copy()
    second[:, feature] = rows[:, count]
    want = [value_of(np.stack(pair), (c1, c2)) for pair in zip(scores(first), scores(second), strict=True)]
    have = both.eval(rows)
    apart = np.abs(have[:, 0] - have[:, 1:].max(axis=1) - np.array(want)).max()
    if apart > 1e-3:
        raise ValueError(f"{path}: the copies have another value by {apart}")
    config = veritas.Config(veritas.HeuristicType.MULTI_MAX_MAX_OUTPUT_DIFF)
    config.stop_when_optimal = True
    started = time.perf_counter()
    search = config.get_search(both)
    value, decided, found, seen = None, None, False, 0
    while True:
        stopped = search.step_for(min(0.1, limit), STEPS)
        elapsed = time.perf_counter() - started
        for number in range(seen, search.num_solutions()):
            pair = scores(pair_of(search.get_solution(number).box(), count, feature))
            value = max(value_of(pair, (c1, c2)), -np.inf if value is None else value)
            ahead = [pair[n, c] - np.delete(pair[n], c).max() for n, c in enumerate((c1, c2))]
            if decided is None and min(ahead) > 0 and min(ahead) >= least:
                decided, found = elapsed, True
        seen = search.num_solutions()
        if decided is None and search.current_bounds().top_of_open < 2 * least:
            decided = elapsed
        over = stopped in (
            veritas.StopReason.NO_MORE_OPEN,
            veritas.StopReason.OPTIMAL,
            veritas.StopReason.OUT_OF_MEMORY,
        )
        if over or elapsed >= limit:
            return Answer(decided is not None, decided or elapsed, found, value)


def instances(model: Any, count: int) -> list[Instance]:
    """So many questions, spread evenly over features, ordered pairs of classes and factors."""
    ensemble = model.ensemble
    features = sorted(set(ensemble.node_feature[ensemble.node_feature >= 0].tolist()))
    pairs = permutations(range(ensemble.n_outputs), 2)
    everything = [(f, a, b, g) for a, b in pairs for f in features for g in FACTORS]
    return everything[:: max(1, len(everything) // count)][:count]


def table(answers: dict[str, list[tuple[Answer, Answer]]], limit: float) -> str:
    """A line per model."""
    lines = [
        "| model | instances | found | decided | PAR2, s | Veritas: found | decided | PAR2, s | %V |",
        "| --- |" + " ---: |" * 8,
    ]
    for model, pairs in answers.items():
        cells: list[str] = []
        for side in (0, 1):
            mine = [pair[side] for pair in pairs]
            par2 = mean(a.seconds if a.decided else 2 * limit for a in mine)
            cells += [str(sum(a.found for a in mine)), str(sum(a.decided for a in mine)), f"{par2:.2f}"]
        shares = [
            min(100.0, max(0.0, 100 * (v.value or 0.0) / o.value))
            for o, v in pairs
            if o.value is not None and o.value > 0
        ]
        lines.append(f"| {model} | {len(pairs)} | {' | '.join(cells)} | {f'{mean(shares):.0f}' if shares else '–'} |")
    return "\n".join(lines)


def main() -> int:
    import xgboost as xgb

    from treesens.frontends.registry import load

    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--bench", type=Path, default=FOLDER)
    parser.add_argument("--models", default=",".join(MODELS), help="published models, comma-separated")
    parser.add_argument("--questions", type=int, default=12, help="per model")
    parser.add_argument("--limit", type=float, default=10.0, help="seconds per question")
    parser.add_argument("--markdown", type=Path)
    given = parser.parse_args()
    answers: dict[str, list[tuple[Answer, Answer]]] = {}
    for name in given.models.split(","):
        path = given.bench / f"models/{name}.json"
        model, booster = load(path), xgb.Booster(model_file=str(path))
        for asked in instances(model, given.questions):
            one, pair = ours(model, asked, given.limit)
            if pair is not None:
                points = xgb.DMatrix(pair, feature_names=booster.feature_names)
                one.value = value_of(booster.predict(points, output_margin=True), asked[1:3])
            other = theirs(path, booster, asked, model.ensemble.n_outputs, given.limit)
            answers.setdefault(name, []).append((one, other))
            print(f"{name} {asked}: {one} {other}", file=sys.stderr)
    text = table(answers, given.limit)
    print(text)
    if given.markdown is not None:
        settings = f"{given.questions} questions of each model, {given.limit:g} s per question, one thread."
        given.markdown.write_text(f"# Veritas on two copies, several classes\n\n{settings}\n\n{text}\n")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
