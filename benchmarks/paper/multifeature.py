"""Multi-feature sensitivity (section 6, figure fig:newmultifeature): one to five random features vary together.

The paper draws a set per size; here the sets of one block grow by one feature at a time (the first m of a random order), so
that sizes are compared on the same features. Each set alone is a uniformly random one, as in the paper.
"""

from __future__ import annotations

import json
import random

from benchmarks.paper.experiment import ENGINE, NOTICEABLE, Experiment, Finding, Item, Measured, settings_of
from benchmarks.paper.models import Plan, used_features
from benchmarks.paper.runtime import binary_models

from treesens.extensions.sweeps.instances import Instance, Level

NAME = "multifeature"
SIZES = range(1, 6)
SMALL = [
    "breast_cancer_unrobust",
    "diabetes_unrobust",
    "ijcnn_unrobust",
    "breast_cancer_robust",
    "diabetes_robust",
    "ijcnn_robust",
]
"""All published models of at most 60 trees: of larger ones a short limit ends sets of every size, which compares nothing."""
MARGIN = 1.0
COMPILING = 0.01
"""Seconds. Answers that take no longer take most of it to compile, which says nothing about the search. The process of a
solver adds a few hundredths (`benchmarks/solver_starts.py`)."""


def experiments(plan: Plan) -> list[Experiment]:
    """One experiment; the full size has as many blocks per model as the model has features, as the paper does."""
    rng = random.Random(plan.seed)
    models = SMALL if plan.published and plan.size == "small" else binary_models(plan)
    turns = [_blocks(plan, model, rng) for model in models]
    items = [x for i in range(max(map(len, turns))) for blocks in turns if i < len(blocks) for x in blocks[i]]
    settings = settings_of(["highs", *(["cbc"] if plan.size != "tiny" else []), ENGINE.backend], ["ensense"])
    title = "One to five random features (section 6, figure fig:newmultifeature)"
    return [Experiment(NAME, title, plan.folder, items, settings, _tag(1))]


def _blocks(plan: Plan, model: str, rng: random.Random) -> list[list[Item]]:
    """Growing sets, each block from another first feature; a set that stands in an earlier block is drawn anew."""
    features = used_features(plan.folder / f"{model}.json")
    blocks: list[list[Item]] = []
    seen: set[tuple[int, ...]] = set()
    for first in rng.sample(features, min(len(features), {"tiny": 1, "small": 2, "full": len(features)}[plan.size])):
        for _ in range(100):
            order = [first, *rng.sample([f for f in features if f != first], min(len(features), SIZES[-1]) - 1)]
            sets = [tuple(sorted(order[:m])) for m in SIZES if m <= len(order)]
            if not seen.intersection(sets):
                break
        else:
            continue  # too few features for another block
        seen.update(sets)
        name = json.dumps([model, first])
        blocks.append([Item(Instance(model, s, Level("margin", str(MARGIN))), name, _tag(len(s))) for s in sets])
    return blocks


def _tag(size: int) -> str:
    return f"{size} feature{'s' * (size > 1)}"


def findings(measured: dict[str, Measured]) -> list[Finding]:
    """Is it easier, by PAR2, the more features vary?"""
    result = []
    m = measured[NAME]
    for solver, variant in dict.fromkeys((line[0], line[1]) for line in m.rows()):
        rows = {tag: row for (s, v, tag), row in m.rows().items() if (s, v) == (solver, variant)}
        sizes = [_tag(n) for n in SIZES if _tag(n) in rows]
        times = [rows[tag]["par2"] for tag in sizes]
        if max(times) < COMPILING:
            continue
        ratio = times[0] / times[-1]
        words = ", ".join(f"{rows[tag]['par2']:.3g} s ({rows[tag]['found']} found)" for tag in sizes)
        claim = f"more varied features make it easier for {solver}"
        result.append(
            Finding(claim, ratio > NOTICEABLE, f"PAR2 for {sizes[0]} to {sizes[-1]}: {words} (ratio {ratio:.3g})")
        )
    return result or [Finding("more varied features make it easier", None, "nothing to compare")]
