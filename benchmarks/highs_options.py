"""Which options of HiGHS matter: every variant on the same modules, one after the other, in one run.

    python -m benchmarks.highs_options --limit 20

Modules are those of `independent` for eight instances of `instances/sample30.jsonl`. Variants: presolve and symmetry off, other
amounts of heuristics, the objective left out, and the native engine's bound on the guide (at its root, with its time counted)
as a cut-off, a row `guide <= bound`. The other cut-off, `guide >= 2 delta`, is the Aff row, which `independent` has.
"""

from __future__ import annotations

import tempfile
import time
from dataclasses import replace
from pathlib import Path

import click
import highspy
import numpy as np
from benchmarks.published import FOLDER

import treesens as ts
from treesens.backends.base import get_backend
from treesens.backends.native.adapter import adapt
from treesens.backends.native.solver import Solver
from treesens.binder.file import bind
from treesens.compiler.ir import Module
from treesens.compiler.lower import lower
from treesens.compiler.pipeline import Pipeline
from treesens.extensions.sweeps.instances import Instance, Level
from treesens.grammar.tree import ast
from treesens.report.markdown import markdown_table

CHOSEN = [
    ("diabetes_unrobust", 4, 1.0),
    ("diabetes_unrobust", 6, 1.5),
    ("ijcnn_robust", 10, 0.5),
    ("ijcnn_robust", 18, 0.5),
    ("ijcnn_unrobust", 2, 1.5),
    ("ijcnn_unrobust", 18, 0.5),
    ("churn_t200_d5", 11, 1.0),
    ("churn_t200_d5", 14, 0.5),
]
VARIANTS: dict[str, dict[str, object]] = {
    "as it comes": {},
    "no presolve": {"presolve": "off"},
    "no symmetry": {"mip_detect_symmetry": False},
    "no heuristics": {"mip_heuristic_effort": 0.0},
    "four times the heuristics": {"mip_heuristic_effort": 0.2},
    "a tenth of the pool of cuts": {"mip_pool_soft_limit": 1000},
    "no guide": {"guide": False},
    "cut-off at the engine's bound": {"cut_off": True},
}


def guide_bound(module: Module) -> float | None:
    """The native engine's bound on the guide at its root, in the guide's own units; None where it has none."""
    assert module.objective is not None
    real = replace(module, objective=replace(module.objective, surrogate=False))
    adapted = adapt(real)
    upper = Solver(adapted.problem, mode="objective").run(node_limit=1).upper
    if upper is None:
        return None
    return ((upper << adapted.objective_dropped) + adapted.objective_constant) / 2**adapted.objective_shift


def seconds(module: Module, path: Path, variant: dict[str, object], limit: float) -> float | None:
    """What HiGHS takes, None where it does not end."""
    highs = highspy.Highs()
    highs.setOptionValue("output_flag", False)
    highs.setOptionValue("time_limit", limit)
    highs.setOptionValue("threads", 1)
    highs.setOptionValue("mip_max_improving_sols", 1)
    for name, value in variant.items():
        if name not in {"guide", "cut_off"}:
            assert highs.setOptionValue(name, value) == highspy.HighsStatus.kOk, name
    highs.readModel(str(path))
    goal = module.objective
    if goal is not None and variant.get("guide") is False:
        for i in goal.variables:
            highs.changeColCost(int(i), 0.0)
    started = time.perf_counter()
    if goal is not None and variant.get("cut_off") and (bound := guide_bound(module)) is not None:
        values = np.array([float(c) for c in goal.coefficients]) / 2.0**goal.shift
        most = bound - goal.constant / 2.0**goal.shift
        highs.addRow(-highspy.kHighsInf, most * (1 + 1e-9) + 1e-9, len(values), goal.variables.astype(np.int32), values)
    highs.run()
    taken = time.perf_counter() - started
    ended = highs.getModelStatus() != highspy.HighsModelStatus.kTimeLimit
    return taken if ended else None


@click.command()
@click.option("--bench", type=click.Path(path_type=Path), default=FOLDER, help="Folder of published models.")
@click.option("--limit", type=float, default=20.0, show_default=True, help="Seconds per variant and instance.")
def main(bench: Path, limit: float) -> None:
    """Prints a table: seconds per variant and instance, and PAR2."""
    table: dict[str, dict[str, object]] = {name: {"variant": name} for name in VARIANTS}
    times: dict[str, list[float]] = {name: [] for name in VARIANTS}
    for model, feature, margin in CHOSEN:
        loaded = ts.load(bench / "models" / f"{model}.json")
        question = Instance(model, (feature,), Level("margin", str(margin))).query("q", loaded)
        declared = ast.Model(ast.Name("m"), ast.Text(f"{model}.json"))
        (query,) = bind(ast.File((declared, question)), bench / "models").queries
        module = Pipeline.parse("independent").run(lower(query.query)).module
        artifact = get_backend("highs").emit(module)
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "module.mps"
            path.write_text(artifact.text)
            for name, variant in VARIANTS.items():
                taken = seconds(module, path, variant, limit)
                times[name].append(2 * limit if taken is None else taken)
                table[name][f"{model}, {feature}, {margin}"] = f"> {limit:g}" if taken is None else f"{taken:.2f}"
                click.echo(f"{model} {feature} {margin} {name}: {taken}", err=True)
    for name, row in table.items():
        row["PAR2"] = f"{sum(times[name]) / len(times[name]):.2f}"
    click.echo(markdown_table(list(table.values())))


if __name__ == "__main__":
    main()
