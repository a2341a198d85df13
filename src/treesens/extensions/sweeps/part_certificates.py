"""Certificates of a question in parts: one per part, made by a worker, and a manifest of how parts cover the question."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

from treesens.compiler.base.budget import Budget
from treesens.compiler.result import Certified, Result, Verdict
from treesens.extensions.certify.attach import whole_or_nothing, written_packed
from treesens.extensions.certify.statement import set_of_cells
from treesens.extensions.certify.together import Claim, known, write_manifest
from treesens.extensions.sweeps.conquer import Coordinator
from treesens.extensions.sweeps.parts import Part
from treesens.extensions.sweeps.worker import PartTask, Task, part_of


def with_part_certificates(search: Coordinator, result: Result, folder: Path, budget: Budget) -> Result:
    """The result of a search in parts, with the certificates of the parts and a manifest, all made within `budget`."""
    goal = search.query.objective
    closed = result.verdict is Verdict.NONE or (result.objective is not None and result.objective.bound is not None)
    done = set(search.known.leaves()) == set(search.known.closed)
    if not closed or not done:
        return result
    claim = "none" if goal is None or result.verdict is Verdict.NONE else "bound"
    made = whole_or_nothing(claim, folder, search.query, lambda apart: _proved(search, claim, apart, budget))
    return replace(result, certificates=(*result.certificates, *made))


def _proved(search: Coordinator, claim: str, folder: Path, budget: Budget) -> list[Certified]:
    """The certificates of all parts and the manifest, in a folder; or, if a certificate is missing, only the reason."""
    made = _made(search, folder, budget)
    missing = [one for one in made.values() if not one.path]
    if missing or len(made) < len(search.known.closed):
        return [Certified(claim, reason=missing[0].reason if missing else budget.reason)]
    parts = list(made)
    tree = search.known.tree
    queries = [part_of(search.query, PartTask(part, search.limit()))[0] for part in parts]
    certified = [known(query, one) for query, one in zip(queries, made.values(), strict=True)]
    cover = Claim(
        f"{search.query.name}: no part has an answer",
        "cover",
        certified,
        lambda numbers: {"tree": _stated(search, tree, dict(zip(parts, numbers, strict=True)))},
    )
    manifest = write_manifest([cover], folder, search.query.name, budget=lambda: budget)
    if manifest.open:
        return [Certified(claim, reason=manifest.open[0][1])]
    return [replace(one, claim=claim) if one.manifest else one for one in manifest.certified()]


def _made(search: Coordinator, folder: Path, budget: Budget) -> dict[Part, Certified]:
    """The certificates of all parts, made by the workers."""
    waiting: Iterator[Part] = iter(search.known.leaves())
    limit = search.limit()

    def take() -> Task | None:
        part = None if budget.over else next(waiting, None)
        return None if part is None else search.task(part, limit, budget.left(), certify=True)

    found: dict[Part, Certified] = {}
    for outcome in search.executor.run(take, search.shipments(), budget.left(), budget.stop):
        part = Part.of_plain(json.loads(outcome.key))
        packed = outcome.packed
        if packed is None or not packed.content:
            found[part] = Certified("none", reason=outcome.why if packed is None else packed.reason)
            continue
        one = written_packed(packed.content, search.query, folder)
        found[part] = replace(
            one, produced_in=packed.produced_in, checked_in=packed.checked_in, left_out=packed.left_out
        )
    return found


def _stated(search: Coordinator, node: Any, numbers: dict[Part, int]) -> Any:
    """The tree of cuts in the form of the manifest."""
    if isinstance(node, Part):
        return numbers[node]
    point, feature, cell, left, right = node
    grid = search.query.space.grid[feature]
    sides = [set_of_cells(grid, cut.mask(grid.n_cells)) for cut in _cuts(point, feature, cell)]
    return [point, feature, *sides, _stated(search, left, numbers), _stated(search, right, numbers)]


def _cuts(point: int, feature: int, cell: int) -> list[Any]:
    return [part.cuts[-1] for part in Part().halves(point, feature, cell)]
