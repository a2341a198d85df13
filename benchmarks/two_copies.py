"""The largest gap that one feature can make, by treesens and by Veritas on two copies of the model, in one run on one core.

Veritas (PyPI: dtai-veritas) searches for the largest output of one ensemble. As in the paper's appendix it gets two copies of
the trees, the second one negated and with a feature of its own in place of the sensitive one, and maximises their sum.

    python -m benchmarks.two_copies --every 20 --limit 10 --markdown out/two_copies.md

An instance asks for margin(a) >= m and margin(b) <= -m. Veritas answers it where a pair that it has generated does both by
XGBoost's own margins, and refutes it where its bound is below 2 m. PAR2 counts an open instance as twice the limit. %V is the
gap of Veritas in per cent of ours.
"""

from __future__ import annotations

import argparse
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from statistics import mean
from typing import Any

import numpy as np
from benchmarks.data_aware import instances
from benchmarks.local import as_veritas
from benchmarks.published import FOLDER

STEPS = 100
"""Of the search between two looks at the clock."""
CLOSED = 1e-4


@dataclass
class Answer:
    """Of one instance: whether it is decided, in how many seconds, and the largest gap with whether it is proved."""

    decided: bool
    seconds: float
    gap: float
    proved: bool


def ours(model: Any, feature: int, margin: str, limit: float) -> Answer:
    """The verdict of treesens, and the largest gap in a second question, without domains, as Veritas has none."""
    from treesens.binder.file import bind
    from treesens.grammar.parsing.parser import parse
    from treesens.solve.options import Options
    from treesens.solve.question import answer

    name = model.ensemble.feature_names[feature]
    text = f'model m from "m"\nquery q: sensitive m to `{name}` margin {margin}\n'
    text += f"query s: find a, b in m such that a = b except `{name}` maximize margin(a) - margin(b)"
    bound = bind(parse(text), Path(), load_model=lambda *_: model)
    options = Options(backend="native", time_limit=limit, threads=1)
    started = time.perf_counter()
    asked = answer(bound["q"].query, options)
    seconds = time.perf_counter() - started
    best = answer(bound["s"].query, options).objective
    gap = 0.0 if best is None else best.value
    proved = best is not None and best.bound is not None and best.bound - best.value <= CLOSED * max(1.0, gap)
    return Answer(str(asked.verdict) != "unknown", seconds, gap, proved)


def theirs(path: Path, booster: Any, feature: int, margin: float, limit: float) -> Answer:
    """The same by Veritas on two copies."""
    import veritas
    import xgboost as xgb

    count = booster.num_features()
    rows = np.random.default_rng(1).uniform(-1, 2, (50, count)).astype(np.float32)

    def margins(points: Any) -> Any:
        return booster.predict(xgb.DMatrix(points, feature_names=booster.feature_names), output_margin=True)

    copy = as_veritas(path, np.column_stack((rows, rows[:, feature])), margins(rows), {feature: count})
    both = as_veritas(path, rows, margins(rows)).concat_negated(copy)
    config = veritas.Config(veritas.HeuristicType.MAX_OUTPUT)
    config.stop_when_optimal = True
    started = time.perf_counter()
    search = config.get_search(both)
    gap, decided, seen = 0.0, None, 0
    while True:
        stopped = search.step_for(min(0.1, limit), STEPS)
        elapsed = time.perf_counter() - started
        for number in range(seen, search.num_solutions()):
            pair = pair_of(search.get_solution(number).box(), count, feature)
            high, low = (float(x) for x in margins(pair))
            gap = max(gap, high - low)
            if decided is None and high >= margin and low <= -margin:
                decided = elapsed
        seen = search.num_solutions()
        top = search.current_bounds().top_of_open
        if decided is None and top < 2 * margin:
            decided = elapsed
        over = stopped in (
            veritas.StopReason.NO_MORE_OPEN,
            veritas.StopReason.OPTIMAL,
            veritas.StopReason.OUT_OF_MEMORY,
        )
        if over or elapsed >= limit:
            return Answer(decided is not None, decided or elapsed, gap, bool(search.is_optimal()))


def pair_of(box: dict[int, Any], count: int, feature: int) -> Any:
    """Two points of a box of the two copies, float32[2, features]."""
    pair = np.zeros((2, count), np.float32)
    for place, interval in box.items():
        below = np.nextafter(np.float32(interval.hi), np.float32(-np.inf))
        value = np.float32(interval.lo) if np.isfinite(interval.lo) else below
        if place == count:
            pair[1, feature] = value
        elif place == feature:
            pair[0, feature] = value
        else:
            pair[:, place] = value
    return pair


def table(answers: dict[str, list[tuple[Answer, Answer]]], limit: float) -> str:
    """A line per model."""
    lines = [
        "| model | instances | decided | PAR2, s | gap proved | Veritas: decided | PAR2, s | gap proved | %V |",
        "| --- |" + " ---: |" * 8,
    ]
    for model, pairs in answers.items():
        cells: list[str] = []
        for side in (0, 1):
            mine = [pair[side] for pair in pairs]
            par2 = mean(a.seconds if a.decided else 2 * limit for a in mine)
            cells += [str(sum(a.decided for a in mine)), f"{par2:.2f}", str(sum(a.proved for a in mine))]
        share = mean(100 * v.gap / o.gap for o, v in pairs if o.gap > 0) if any(o.gap > 0 for o, _ in pairs) else 100.0
        lines.append(f"| {model} | {len(pairs)} | {' | '.join(cells)} | {share:.0f} |")
    return "\n".join(lines)


def main() -> int:
    import xgboost as xgb

    from treesens.frontends.registry import load

    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--bench", type=Path, default=FOLDER)
    parser.add_argument("--every", type=int, default=20)
    parser.add_argument("--limit", type=float, default=10.0, help="seconds per question")
    parser.add_argument("--markdown", type=Path)
    given = parser.parse_args()
    answers: dict[str, list[tuple[Answer, Answer]]] = {}
    for name, _, picked in instances(given.bench, given.every):
        path = given.bench / f"models/{name}.json"
        model, booster = load(path), xgb.Booster(model_file=str(path))
        for feature, margin in picked:
            one = ours(model, feature, margin, given.limit)
            other = theirs(path, booster, feature, float(margin), given.limit)
            answers.setdefault(name, []).append((one, other))
            print(f"{name} {feature} {margin}: {one} {other}", file=sys.stderr)
    text = table(answers, given.limit)
    print(text)
    if given.markdown is not None:
        settings = f"Every {given.every}th instance that has a pair, {given.limit:g} s per question, one thread."
        given.markdown.write_text(f"# Veritas on two copies\n\n{settings}\n\n{text}\n")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
