"""Writes instances/sets_none.jsonl: sets of two, three and five features, each with a gap just above its largest one.

So every answer is `none`, and none of them is trivial: two per cent less and the answer is `found`, or open within the two
per cent to which the engine closed the gap. Small models, so that other exact backends can confirm the answers.

    python -m benchmarks.make_none
"""

from __future__ import annotations

import argparse
import json
import random
from pathlib import Path

from benchmarks.published import FOLDER

import treesens as ts
from treesens.compiler.result import Verdict
from treesens.extensions.studies.gap import GapOptions
from treesens.extensions.studies.gap_search import ask as largest_gaps
from treesens.extensions.studies.study import Asking

HERE = Path(__file__).resolve().parent / "instances"
MODELS = {
    "breast_cancer_robust": range(1, 11),
    "breast_cancer_unrobust": range(1, 11),
    "diabetes_robust": range(1, 9),
    "diabetes_unrobust": range(1, 9),
}
SIZES = (2, 3, 5)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bench", type=Path, default=FOLDER, help="the folder of published models")
    parser.add_argument("--output", type=Path, default=HERE / "sets_none.jsonl")
    asked = parser.parse_args()
    models = asked.bench / "models"
    rng = random.Random(22)
    rows: list[dict[str, object]] = []
    for name, features in MODELS.items():
        if not (models / f"{name}.json").is_file():
            continue
        loaded = ts.load(models / f"{name}.json")
        names = loaded.ensemble.feature_names
        sets = [sorted(rng.sample(list(features), SIZES[i % 3])) for i in range(9)]
        unique = sorted({tuple(s) for s in sets})
        varied = [[names[f] for f in group] for group in unique]
        for group, result in zip(
            unique, largest_gaps(Asking((loaded,), None, GapOptions(vary=varied, time_limit=20))).result, strict=True
        ):
            if result.verdict is not Verdict.FOUND or result.bound is None or result.value is None:
                continue
            # Three digits, rounded upwards: the bound is a proof that nothing lies above it.
            margin = (int(result.bound * 1000) + 2) / 1000
            rows.append({"model": name, "features": list(group), "margin": margin})
    asked.output.write_text("".join(json.dumps(row) + "\n" for row in rows))
    print(f"{len(rows)} instances")


if __name__ == "__main__":
    main()
