"""Ablation (section 6, figure fig:ablation): UnAff, Aff, the guiding objective and the order of predicates.

Each is a pass, so each step is a choice of pipeline: alone on top of the base encoding, and left out of all four.
"""

from __future__ import annotations

from math import exp, log
from statistics import mean

from benchmarks.paper.experiment import NOTICEABLE, Experiment, Finding, Measured, settings_of
from benchmarks.paper.models import Plan
from benchmarks.paper.runtime import questions

NAME = "ablation"
PARTS = {
    "UnAff": "unaffected-leaves",
    "Aff": "aff-reduce",
    "Obj": "gap-objective",
    "order": "order-predicates{by=gain}",
}


def variants() -> dict[str, str]:
    """Pipelines by their text: the base encoding, each part alone, all but each, all."""
    named = {"kant": "base"}
    named |= {text: f"base+{part}" for part, text in PARTS.items()}
    named |= {",".join(t for p, t in PARTS.items() if p != part): f"all-{part}" for part in PARTS}
    return named | {",".join(PARTS.values()): "all"}


def experiments(plan: Plan) -> list[Experiment]:
    """Binary and multiclass, on the questions of the runtime experiment."""
    one, several = questions(plan)
    settings = settings_of(["highs"] if plan.size == "tiny" else ["highs", "cbc", "cpsat"], list(variants()))
    title = "Ablation, {} (section 6, figure fig:ablation)"
    return [
        Experiment("ablation_binary", title.format("binary"), plan.folder, one, settings, "base", variants()),
        Experiment(
            "ablation_multiclass", title.format("multiclass"), plan.folder, several, settings, "base", variants()
        ),
    ]


def findings(measured: dict[str, Measured]) -> list[Finding]:
    """Which part contributes most: geometric mean, over solvers, of the ratios of PAR2 without and with it.

    A part has two ratios per solver: added to the base encoding, and added last of all four.
    """
    result = []
    for name, m in measured.items():
        kind, solvers = name.partition("_")[2], dict.fromkeys(line[0] for line in m.rows())
        claim = f"{kind}: Aff contributes most"
        gains: dict[str, tuple[float, float]] = {}
        for part in PARTS:
            alone = [m.ratio((s, f"base+{part}", ""), (s, "base", "")) for s in solvers]
            last = [m.ratio((s, "all", ""), (s, f"all-{part}", "")) for s in solvers]
            if solvers and None not in (*alone, *last):
                gains[part] = _mean(alone), _mean(last)
        if not gains:
            result.append(Finding(claim, None, "no complete block"))
            continue
        ranked = sorted(gains, key=lambda part: -_mean(list(gains[part])))
        words = [
            f"{part} {_mean(list(gains[part])):.3g} (alone {gains[part][0]:.3g}, last {gains[part][1]:.3g})"
            for part in ranked
        ]
        result.append(
            Finding(
                claim, ranked[0] == "Aff" and _mean(list(gains["Aff"])) > NOTICEABLE, "PAR2 ratios " + "; ".join(words)
            )
        )
    return result


def _mean(ratios: list[float | None]) -> float:
    return exp(mean(log(r) for r in ratios if r is not None))
