"""Pictures of studies with matplotlib, an extra: `pip install 'treesens[plot]'`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Any

from treesens.compiler.base.files import check_writable, will_write
from treesens.compiler.base.packages import PURPOSES, imported
from treesens.errors import UsageError
from treesens.visible import visible

_BAR = 0.32
"""Height of a bar in inches."""


def values_plot(values: Mapping[str, tuple[float | None, float | None]], unit: str, axes: Any = None) -> Any:
    """Draws, for each name, a bar up to the value of a verified pair, and a line up to the bound; the greatest value is on top.

    Missing values and bounds are None. Returns the matplotlib axes; by default, new axes are created.
    """
    ordered = sorted(values, key=lambda name: (values[name][0] or 0.0, values[name][1] or 0.0))
    axes = new_picture(axes, 1 + _BAR * max(3, len(ordered)))
    reached = [values[name][0] or 0.0 for name in ordered]
    axes.barh(range(len(ordered)), reached, color="#1f77b4", label="reached by a verified pair")
    label: str | None = "proved bound"
    for place, name in enumerate(ordered):
        bound = values[name][1]
        if bound is not None and bound > reached[place]:
            axes.plot([reached[place], bound], [place, place], color="#d62728", marker="|", label=label)
            label = None
    name_ticks(axes.set_yticks, range(len(ordered)), ordered)
    axes.set_xlabel(unit)
    axes.legend(loc="lower center", bbox_to_anchor=(0.5, 1.0), ncols=2, frameon=False)
    return axes


def parts_plot(
    parts: Mapping[str, float],
    unit: str,
    axes: Any = None,
    *,
    words: Mapping[str, str] | None = None,
    first: Collection[str] = (),
) -> Any:
    """For each name, draws a bar whose length is the name's share of a whole, and writes `words`, if given, at the ends of the
    bars. Names in `first` are on top, then the greatest shares. Returns the axes; by default, new axes are created.
    """
    ordered = sorted(parts, key=lambda name: (name in first, parts[name]))
    axes = new_picture(axes, 1 + _BAR * max(3, len(ordered)))
    axes.barh(range(len(ordered)), [parts[name] for name in ordered], color="#1f77b4")
    for place, name in enumerate(ordered):
        if words is not None:
            text = axes.text(parts[name] + 0.01, place, words[name], va="center", fontsize=8)
            text.set_parse_math(False)
    name_ticks(axes.set_yticks, range(len(ordered)), ordered)
    axes.set_xlim(0, 1)
    axes.set_xlabel(unit)
    return axes


def reasons_plot(records: Sequence[Mapping[str, Any]], result: Any, axes: Any = None) -> Any:
    """Draws, for each feature, the share of the rows whose reason needs the feature, from the records of `treesens why`."""
    del result
    known = [record["sufficient"] for record in records if record["sufficient"] is not None]
    counts = Counter(name for one in known for name in one)
    parts = {name: count / len(known) for name, count in counts.items()}
    return parts_plot(parts, "share of the rows whose reason needs the feature", axes)


def certified_plot(records: Sequence[Mapping[str, Any]], result: Any, axes: Any = None) -> Any:
    """Plots the certified share of rows against the radius, from `treesens robust`; no wrongly predicted row is certified."""
    del records
    unit = "certified accuracy" if result.labelled else "share of the rows that is certified"
    return curves_plot({"proved": result.curve()}, "radius", unit, axes, steps=True)


def prices_plot(records: Sequence[Mapping[str, Any]], result: Any, axes: Any = None) -> Any:
    """Plots the growth of the loss against the promised size, from records of `treesens repair`: a curve per table of rows."""
    del result
    proved = [record for record in records if record["proved"]]
    axes = new_picture(axes, 4.5)
    axes.axhline(0, color="#7f7f7f", linewidth=1)
    for name in dict.fromkeys(name for record in proved for name in record["prices"]):
        prices = sorted((r["size"], r["prices"][name]["loss_after"] - r["prices"][name]["loss_before"]) for r in proved)
        axes.plot(
            *zip(*prices, strict=True), marker="o", label={"train": "training rows", "test": "held out rows"}[name]
        )
    axes.set_xlabel(next((promise["kind"] for record in proved for promise in record["proofs"]), "size"))
    axes.set_ylabel(f"{proved[0]['prices']['train']['loss']}, more than before" if proved else "price")
    if proved:
        axes.legend()
    return axes


def new_axes(path: Path) -> Any:
    """Axes for a picture in a file. Raises UsageError if the file cannot be written, or if matplotlib is missing."""
    check_writable(path)
    import_pyplot().switch_backend("agg")
    axes = new_picture(None, 4.5)
    kinds = axes.figure.canvas.get_supported_filetypes()
    if path.suffix.lstrip(".") not in kinds:
        raise UsageError(f"`{path}` does not end in a known picture format", remedy="write e.g. curve.svg or curve.png")
    return axes


def save_plot(axes: Any, path: Path) -> None:
    """Writes the picture of the axes, with the same bytes for the same numbers; the file extension determines the format."""
    from matplotlib import rc_context

    dated = {".svg": {"Date": None}, ".pdf": {"CreationDate": None}}
    will_write(path)
    with rc_context({"svg.hashsalt": "treesens"}):
        axes.figure.savefig(path, metadata=dated.get(path.suffix, {}))


def curves_plot(
    curves: Mapping[str, Sequence[tuple[float, float]]],
    across: str,
    unit: str,
    axes: Any = None,
    *,
    steps: bool = False,
) -> Any:
    """Draws a curve through the points of each name, as steps with `steps` (each value is then kept up to the next point);
    returns the matplotlib axes; by default, new axes are created.
    """
    axes = new_picture(axes, max(4.5, _LINE * len(curves)))
    ends = {}
    for number, (name, points) in enumerate(curves.items()):
        ordered = sorted(points)
        style = "steps-post" if steps else "default"
        across_points, values = [x for x, _ in ordered], [y for _, y in ordered]
        dash = ("-", "--", ":")[number // _COLOURS % 3]
        (line,) = axes.plot(across_points, values, dash, marker="o", markersize=3, drawstyle=style, label=_plain(name))
        ends[_plain(name)] = across_points[-1], values[-1], line.get_color()
    axes.set_xlabel(across)
    axes.set_ylabel(unit)
    axes.set_ylim(bottom=0)
    if len(curves) > _LEGEND:
        _name_ends(axes, ends)
        return axes
    for text in axes.legend().get_texts():
        text.set_parse_math(False)
    return axes


_LEGEND = 5
"""Maximum number of curves with a legend, which would cover more curves; with more, names are drawn at the curves' ends."""
_COLOURS = 10
_LINE = 0.24
"""Height in inches of a name next to the picture."""


def _name_ends(axes: Any, ends: Mapping[str, tuple[float, float, str]]) -> None:
    """Writes the name of every curve to the right of its end, so that no two names overlap."""
    top = axes.get_ylim()[1]
    step, room = 1.0 / max(12, len(ends)), -1.0
    for name, (_, y, colour) in sorted(ends.items(), key=lambda item: item[1][1]):
        place = max(y / top if top else 0.0, room + step)
        room = place
        text = axes.text(1.02, place, name, color=colour, transform=axes.transAxes, va="center", fontsize=8)
        text.set_parse_math(False)


def new_picture(axes: Any, height: float) -> Any:
    """The given axes, or new axes with a height in inches."""
    if axes is not None:
        return axes
    return import_pyplot().subplots(figsize=(7, height), layout="constrained")[1]


def import_pyplot() -> Any:
    """The module pyplot of matplotlib. Raises UsageError without matplotlib."""
    return imported("matplotlib.pyplot", PURPOSES["matplotlib"])


def name_ticks(set_ticks: Any, places: range, names: Sequence[str]) -> None:
    """Sets tick labels to feature names. The labels are text, not mathematics, so that `$` is an ordinary character."""
    for text in set_ticks(places, labels=[_plain(name) for name in names]):
        text.label1.set_parse_math(False)


def _plain(name: str) -> str:
    """A name without control characters; a leading `_` gets a space, because matplotlib leaves such names out of legends."""
    shown = visible(name)
    return f" {shown}" if shown.startswith("_") else shown


_KINDS = (("flip", "flips", "#d62728"), ("hold", "never flips", "#2ca02c"), ("open", "not known", "#7f7f7f"))
MOST_SETS = 60
"""Maximum number of sets in a picture."""


def sets_plot(records: Sequence[Mapping[str, Any]], result: Any, axes: Any = None) -> Any:
    """Draws the sets of the first decision; features in many sets come first. Returns the axes (new ones by default)."""
    del result
    record = records[0]
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
