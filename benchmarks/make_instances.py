"""Writes the instance lists of the benchmarks (JSON lines for `treesens bench`); seeds are fixed, so the lists never change."""

from __future__ import annotations

import argparse
import itertools
import json
import random
from pathlib import Path

from benchmarks.published import VERDICTS

HERE = Path(__file__).resolve().parent / "instances"
FEATURES = {
    "adult_t200_d5": range(14),
    "adult_t300_d5": range(14),
    "adult_t500_d5": range(14),
    "churn_t200_d5": range(20),
    "churn_t500_d5": range(20),
    "german_credit_t500_d5": range(20),
    "pimadiabetes_t200_d5": range(8),
    "pimadiabetes_t500_d6": range(8),
    "ijcnn_robust": range(1, 23),
    "diabetes_robust": range(1, 9),
    "breast_cancer_robust": range(1, 11),
}
MULTICLASS = {"iris_t100_d5": (4, 3), "winequality_red_t100_d5": (11, 6)}


def write(path: Path, rows: list[dict[str, object]]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))


def sample(rows: list[dict[str, object]]) -> list[dict[str, object]]:
    """Thirty instances for solvers that need minutes: one of each model of 500 trees, two of 200 or 300, three of the others.

    The first two of a model have different verdicts where it has both. Most solvers answer none of the large models in a
    minute, so fewer of them say as much, and the ratio to the engine errs on the side of the solvers.
    """
    rows = rows.copy()
    random.Random(30).shuffle(rows)
    counts = {
        model: 1 if "t500" in model else 2 if "_t" in model else 3 for model in sorted({str(r["model"]) for r in rows})
    }
    chosen: list[dict[str, object]] = []
    for model, count in counts.items():
        mine = [row for row in rows if row["model"] == model]
        other = [row for row in mine if row["verdict"] != mine[0]["verdict"]][:1]
        chosen += [mine[0], *other, *(row for row in mine[1:] if row not in other)][:count]
    return sorted(
        chosen, key=lambda row: (-counts[str(row["model"])], str(row["model"]), row["feature"], row["margin"])
    )


def different_sets(
    rng: random.Random, models: list[str], sizes: tuple[int, ...], count: int
) -> list[tuple[str, list[int]]]:
    """`count` different sets of features of random models, their sizes in turn."""
    found: dict[tuple[str, tuple[int, ...]], None] = {}
    while len(found) < count:
        model = rng.choice(models)
        found[model, tuple(sorted(rng.sample(list(FEATURES[model]), sizes[len(found) % len(sizes)])))] = None
    return [(model, list(chosen)) for model, chosen in found]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--output", type=Path, default=HERE)
    folder = parser.parse_args().output
    write(
        folder / "multiclass.jsonl",
        [
            {"model": model, "feature": f, "from": a, "to": b, "factor": factor}
            for model, (features, classes) in MULTICLASS.items()
            for factor in (1, 1.5)
            for f in range(features)
            for a, b in itertools.permutations(range(classes), 2)
        ],
    )
    rng = random.Random(7)
    sets = [
        {"model": model, "features": chosen, "margin": margin}
        for model, chosen in different_sets(rng, sorted(FEATURES), (2, 3, 5), 100)
        for margin in (0.5, 1.5)
    ]
    write(folder / "sets.jsonl", sets)
    # Gaps so high that the answer is often none: the provers of several varied features at work.
    models = ["breast_cancer_robust", "diabetes_robust", "ijcnn_robust", "pimadiabetes_t200_d5"]
    high = [
        {"model": model, "features": chosen, "margin": (2.5, 4.0)[i % 2]}
        for i, (model, chosen) in enumerate(different_sets(rng, models, (2, 3), 40))
    ]
    write(folder / "sets_high.jsonl", high)
    write(folder / "sample30.jsonl", sample([json.loads(line) for line in VERDICTS.read_text().splitlines()]))


if __name__ == "__main__":
    main()
