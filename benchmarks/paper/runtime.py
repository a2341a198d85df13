"""Runtime of single-feature sensitivity (section 6, figure fig:experiments, tables tab:benchmarks_binary, …_multiclass).

The paper compares its tool with the encoding of Kantchelian et al. on Gurobi; here `kant`, `ensense` and `default` on open
solvers, and the native engine beside them.
"""

from __future__ import annotations

from benchmarks.paper.experiment import ENGINE, Experiment, Finding, Item, Measured, settings_of
from benchmarks.paper.models import Plan, available, class_pairs, has_one_score, single_features, trained

NAME = "runtime"
PIPELINES = {
    "tiny": ["kant", "ensense", "default"],
    "small": ["kant", "ensense", "default"],
    # What comes of other encodings, of the engine's bound, and of its start.
    "full": ["kant", "ensense", "independent", "bounded", "default"],
}
BACKENDS = {
    "tiny": ["highs", "cbc", ENGINE.backend],
    "small": ["highs", "cbc", "cpsat", "z3", "gurobi", ENGINE.backend],
    "full": ["highs", "cbc", "scip", "cpsat", "z3", "gurobi", ENGINE.backend],
}
OPEN_MILP = ("highs", "cbc", "scip")
SMALL = ["diabetes_robust", "churn_t200_d5", "diabetes_unrobust", "ijcnn_robust"]
"""Of few leaves and of many; each has instances of both verdicts."""
MULTICLASS = ["iris_t100_d5", "winequality_red_t100_d5"]


def binary_models(plan: Plan) -> list[str]:
    """The binary models of a size."""
    if not plan.published:
        shape = (3, 2) if plan.size == "tiny" else (20, 4)
        return [
            trained(plan, data, *shape)
            for data in (["diabetes"] if plan.size == "tiny" else ["diabetes", "breast_cancer"])
        ]
    if plan.size == "small":
        return SMALL
    return sorted(p.stem for p in (plan.bench / "models").glob("*.json") if "t2_d2" not in p.stem and has_one_score(p))


def multiclass_models(plan: Plan) -> list[str]:
    """The multiclass models of a size; the wine model (600 trees) says nothing about solvers in seconds."""
    if plan.published:
        return MULTICLASS[:1] if plan.size == "small" else MULTICLASS
    return [trained(plan, data, *((2, 1) if plan.size == "tiny" else (20, 3))) for data in available(plan, "iris")]


def questions(plan: Plan) -> tuple[list[Item], list[Item]]:
    """Binary and multiclass single-feature questions of a size; each is a block of its own."""
    binary, multiclass = {"tiny": (1, 1), "small": (2, 4), "full": (None, None)}[plan.size]
    pairs = [
        single_features(plan, binary_models(plan), binary),
        class_pairs(plan, multiclass_models(plan), multiclass),
    ]
    one, several = ([Item(x, x.key) for x in instances] for instances in pairs)
    return one, several


def experiments(plan: Plan) -> list[Experiment]:
    """Binary and multiclass."""
    one, several = questions(plan)
    backends = BACKENDS[plan.size]
    settings = settings_of(backends, PIPELINES[plan.size])
    title = "Single-feature sensitivity, {} (section 6, figure fig:experiments)"
    return [
        Experiment("runtime_binary", title.format("binary"), plan.folder, one, settings, "kant"),
        Experiment("runtime_multiclass", title.format("multiclass"), plan.folder, several, settings, "kant"),
    ]


def findings(measured: dict[str, Measured]) -> list[Finding]:
    """Does `ensense` solve more than `kant` on each open MILP solver; how far ahead is the engine?"""
    result = []
    for solver in OPEN_MILP:
        more, figures = 0, []
        for name, m in measured.items():
            rows = m.rows()
            new, old = rows.get((solver, "ensense", "")), rows.get((solver, "kant", ""))
            if new is not None and old is not None:
                more += new["solved"] - old["solved"]
                ratio = f"PAR2 {old['par2']:.3g} s / {new['par2']:.3g} s = {old['par2'] / new['par2']:.3g}"
                kind = name.partition("_")[2]
                figures.append(f"{kind} {new['solved']} against {old['solved']} of {old['instances']}, {ratio}")
        if figures:
            result.append(Finding(f"ensense solves more than kant on {solver}", more > 0, "; ".join(figures)))
    for name, m in measured.items():
        rows = m.rows()
        others = {line: row["par2"] for line, row in rows.items() if line[0] not in {ENGINE.backend, "gurobi"}}
        engine = rows.get((ENGINE.backend, "", ""))
        if engine is not None and others:
            best = min(others, key=lambda line: float(others[line]))
            ratio = others[best] / engine["par2"]
            figure = f"PAR2 of {' '.join(best).strip()} {others[best]:.3g} s / {engine['par2']:.3g} s = {ratio:.3g}"
            claim = f"{name.partition('_')[2]}: the native engine is faster than the best open solver"
            result.append(Finding(claim, ratio > 1, figure))
    return result or [Finding("ensense solves more than kant", None, "no complete block")]
