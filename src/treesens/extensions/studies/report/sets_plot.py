"""Sets of features that flip a decision, and those that do not, as a picture with matplotlib: a dot per feature of a set.

The layout is that of UpSet (Lex et al., IEEE TVCG 2014): a row per set, a column per feature.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any

from treesens.extensions.studies.report.plots import name_ticks, new_picture

_KINDS = (("flip", "flips", "#d62728"), ("hold", "never flips", "#2ca02c"), ("open", "not known", "#7f7f7f"))
MOST_SETS = 60
"""Sets that are drawn: more are no picture."""


def sets_plot(record: Mapping[str, Any], axes: Any = None) -> Any:
    """The sets of one decision; the features that most sets hold come first. Returns the axes, new ones if none are given."""
    lines = [(one["features"], words, colour) for kind, words, colour in _KINDS for one in record[kind]]
    drawn = lines[:MOST_SETS]
    counts = Counter(name for names, _, _ in lines for name in names)
    order = sorted(counts, key=lambda name: (-counts[name], name))
    axes = new_picture(axes, 1.5 + 0.2 * max(4, len(drawn)))
    for row, (names, words, colour) in enumerate(drawn):
        places = sorted(order.index(name) for name in names)
        first = words not in axes.get_legend_handles_labels()[1]
        axes.plot(places, [row] * len(places), marker="o", color=colour, label=words if first else None)
    name_ticks(axes.set_xticks, range(len(order)), order)
    axes.tick_params(axis="x", labelrotation=90)
    axes.set_yticks(range(len(drawn)), labels=[str(row + 1) for row in range(len(drawn))])
    axes.set_ylim(len(drawn) - 0.5, -0.5)
    axes.set_ylabel("set" if len(drawn) == len(lines) else f"set (the first {len(drawn)} of {len(lines)})")
    if drawn:
        axes.legend()
    return axes
