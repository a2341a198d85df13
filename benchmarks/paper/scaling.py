"""Scaling in the number of trees and in depth (section 6, table tab:benchmarks_binary: 4 to 800 trees, depth 4 to 8).

The paper varies both across its benchmarks; here models are trained on the same data with nothing else changed.
"""

from __future__ import annotations

import json
import random

from benchmarks.paper.experiment import ENGINE, Experiment, Finding, Item, Measured, settings_of
from benchmarks.paper.models import Plan, available, dataset, trained

from treesens.extensions.sweeps.instances import Instance, Level

NAME = "scaling"
TREES = {"tiny": (2, 4), "small": (10, 25, 50, 100, 200), "full": (50, 100, 200, 300, 500, 800)}
DEPTHS = {"tiny": (1, 2), "small": (2, 3, 4, 5, 6), "full": (3, 4, 5, 6, 7, 8)}
FIXED = {"tiny": (2, 2), "small": (50, 4), "full": (200, 5)}
"""Trees where depth grows, depth where trees do."""
MARGIN = 1.0


def experiments(plan: Plan) -> list[Experiment]:
    """Trees at a fixed depth, depths at a fixed number of trees; the same varied features throughout."""
    trees, depth = FIXED[plan.size]
    settings = settings_of(["highs", *(["cbc"] if plan.size != "tiny" else []), ENGINE.backend], ["ensense"])
    grown = {
        "trees": [(n, depth, f"{n} trees") for n in TREES[plan.size]],
        "depth": [(trees, d, f"depth {d}") for d in DEPTHS[plan.size]],
    }
    found = []
    for what, shapes in grown.items():
        items = []
        for data, feature in _varied(plan):
            for n, d, tag in shapes:
                instance = Instance(trained(plan, data, n, d), (feature,), Level("margin", str(MARGIN)))
                items.append(Item(instance, json.dumps([data, feature]), tag))
        title = f"Scaling in {what} (models trained on {', '.join(dict.fromkeys(d for d, _ in _varied(plan)))})"
        found.append(Experiment(f"scaling_{what}", title, plan.out / "models", items, settings, shapes[0][2]))
    return found


def _varied(plan: Plan) -> list[tuple[str, int]]:
    """Data sets and, of each, the varied features: random ones, one of each data set at a time."""
    names = {
        "tiny": available(plan, "diabetes"),
        "small": available(plan, "pimadiabetes") or ["breast_cancer"],
        "full": available(plan, "adult", "churn", "pimadiabetes", "breast_cancer"),
    }[plan.size]
    rng = random.Random(plan.seed)
    count = {"tiny": 1, "small": 2, "full": 5}[plan.size]
    drawn = {name: rng.sample(range(dataset(plan, name)[0].shape[1]), count) for name in names}
    return [(name, drawn[name][i]) for i in range(count) for name in names]


def findings(measured: dict[str, Measured]) -> list[Finding]:
    """Is every size solved within the limit, and how does PAR2 grow from the smallest to the largest model?"""
    result = []
    for name, m in measured.items():
        for solver, variant in dict.fromkeys((line[0], line[1]) for line in m.rows()):
            rows = {tag: row for (s, v, tag), row in m.rows().items() if (s, v) == (solver, variant)}
            tags = [tag for tag in dict.fromkeys(i.tag for i in m.experiment.items) if tag in rows]
            words = ", ".join(f"{tag} {rows[tag]['par2']:.3g} s ({rows[tag]['solved']} solved)" for tag in tags)
            everything = all(rows[tag]["solved"] == rows[tag]["instances"] for tag in tags)
            claim = f"{name.partition('_')[2]}: {solver} solves every model up to {tags[-1]}"
            result.append(Finding(claim, everything, f"PAR2 {words}"))
    return result or [Finding("every size is solved", None, "no complete block")]
