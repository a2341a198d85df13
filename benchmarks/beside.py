"""Other solvers on the questions of `curves.py`: what they know after so many seconds, for bounds as curves side by side.

HiGHS and CP-SAT get the module of the pipeline `independent`, and begin anew for every point of the curve, for they do not stop
and go on. Veritas (PyPI: dtai-veritas; Devos, Meert, Davis, ICML 2021) searches the sum of the trees, of copies with features
of their own.
"""

from __future__ import annotations

import importlib
import json
import multiprocessing
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from treesens.backends.base import Limits, get_backend
from treesens.compiler.base.arrays import BoolArray
from treesens.compiler.base.tolerance import Tolerance
from treesens.compiler.pipeline import Compilation, compile_query
from treesens.compiler.query.evaluate import inputs_of, objective_form_value
from treesens.compiler.query.query import Query
from treesens.values.verify import Witness, verify_cells

MODULES = {"highs": "highspy", "cpsat": "ortools.sat.python.cp_model"}
CLOSED = 1e-6


@dataclass(frozen=True)
class Known:
    """CPU seconds, how it ended, and value and bound of what is maximised, in the units of the margin."""

    seconds: float
    ended: str
    value: float | None
    bound: float | None


def by_solver(name: str, query: Query, limit: float) -> Known:
    """One solve in a process of its own, within `limit` seconds of the clock; without compiling and emitting."""
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(1, context) as pool:
        return pool.submit(_solved, name, query, limit).result()


def _solved(name: str, query: Query, limit: float) -> Known:
    backend = get_backend(name)
    compilation = compile_query(query, "native" if name == "native" else "independent")
    # Digits enough for 1e-6, as the others have them.
    artifact = backend.emit(compilation.module, precision=1 if name == "cpsat" else 0)
    if name in MODULES:
        importlib.import_module(MODULES[name])
    start = time.process_time()
    outcome = backend.solve(artifact, Limits(limit, tolerance=Tolerance(CLOSED)))
    seconds = time.process_time() - start
    return Known(seconds, outcome.termination.value, value_of(compilation, outcome.assignment), outcome.bound)


def value_of(compilation: Compilation, assignment: BoolArray | None) -> float | None:
    """The objective at a solver's point, replayed exactly; None for one that does not pass."""
    if assignment is None:
        return None
    query, compiled = compilation.query, compilation.compiled
    witness = verify_cells(query, compiled.source.cells(compiled.recover(assignment)))
    if not isinstance(witness, Witness) or query.objective is None:
        return None
    return float(objective_form_value(query.objective, inputs_of(query, witness.values)))


def by_veritas(ensemble: Any, at: Sequence[float]) -> Iterator[Known]:
    """What Veritas knows at CPU seconds; it ends where value and bound are equal."""
    import veritas

    config = veritas.Config(veritas.HeuristicType.MAX_OUTPUT)
    config.stop_when_optimal = True
    search, start = config.get_search(ensemble), time.process_time()
    for seconds in at:
        reason = None
        while time.process_time() - start < seconds and reason not in _ENDS:
            reason = str(search.step_for(min(0.2, seconds / 8), 100)).rpartition(".")[2]
        bounds = search.current_bounds()
        value = float(bounds.best) if search.num_solutions() else None
        bound = value if reason in _ENDS[:2] else float(bounds.top_of_open)
        yield Known(time.process_time() - start, str(reason), value, bound)
        if reason in _ENDS:
            return


_ENDS = ("NO_MORE_OPEN", "OPTIMAL", "OUT_OF_MEMORY")


def veritas_sum(models: Sequence[Path], signs: Sequence[int], own: str | None) -> Any:
    """The signed sum of models, of copies that have the feature `own` for themselves; Veritas gets the splits of the files."""
    import veritas

    total = veritas.AddTree(1, veritas.AddTreeType.REGR)
    for copy, (model, sign) in enumerate(zip(models, signs, strict=True)):
        learner = json.loads(model.read_text(), parse_float=np.float32)["learner"]
        names = learner["feature_names"]
        alone = names.index(own) if own is not None else -1
        for tree in learner["gradient_booster"]["model"]["trees"]:
            made = total.add_tree()
            waiting = [(0, made.root())]
            while waiting:
                node, place = waiting.pop()
                value, feature = tree["split_conditions"][node], tree["split_indices"][node]
                if tree["left_children"][node] < 0:
                    made.set_leaf_value(place, 0, sign * value)
                    continue
                made.split(place, feature + len(names) * copy * (feature == alone), value)
                waiting.append((tree["right_children"][node], made.right(place)))
                waiting.append((tree["left_children"][node], made.left(place)))
    return total
