"""The depths of a model's trees, with a picture."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from treesens.compiler.base.option_kinds import Whole
from treesens.extensions.studies.shared_options import PLOT
from treesens.extensions.studies.study import Asking, Found, Option, Study, given


@dataclass(frozen=True, kw_only=True)
class DepthOptions:
    at_least: int = given(Option(Whole(0, 99), "Trees of this depth and more."), 0)
    plot: Path | None = given(PLOT, None, "The depths as a picture (.svg, .png, .pdf), by matplotlib.")


@dataclass(frozen=True, kw_only=True)
class DepthRecord:
    tree: int
    depth: int


def ask(asked: Asking[DepthOptions]) -> Found[DepthRecord]:
    from treesens.records.model import leaf_depths

    ensemble, records = asked.model.ensemble, []
    depths = leaf_depths(ensemble)
    for tree in range(ensemble.n_trees):
        deepest = int(depths[ensemble.leaf_tree == tree].max())
        if deepest >= asked.options.at_least:
            records.append(DepthRecord(tree=tree, depth=deepest))
            asked.advance(records[-1])
    return Found(records, (), asked.stop.is_set(), True)


def draw(records: Sequence[dict[str, Any]], result: Any, axes: Any) -> Any:
    from treesens.extensions.studies.report.plots import new_picture

    axes = new_picture(axes, 3)
    axes.bar([record["tree"] for record in records], [record["depth"] for record in records])
    axes.set_xlabel("tree")
    axes.set_ylabel("depth")
    return axes


STUDY = Study(
    name="depth",
    title="depths of trees: treesens depth --json",
    text="How deep the trees of MODEL are.",
    call="How deep the trees of a model are.",
    options=DepthOptions,
    ask=ask,
    record=DepthRecord,
    picture=draw,
)
