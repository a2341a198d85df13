"""Pictures of studies show the numbers of their records; the notebook of the examples runs from its first cell to its last."""

from __future__ import annotations

import ast
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import treesens as ts
from tests.extensions.studies.grids import two_classes
from treesens.errors import UsageError

matplotlib = pytest.importorskip("matplotlib")
matplotlib.use("Agg")
NOTEBOOK = Path(__file__).parents[2] / "examples" / "first_hour.ipynb"


@pytest.fixture(scope="module")
def audit() -> ts.Audit:
    trained = two_classes("xgboost")
    return ts.audit(trained.estimator, trained.frame, vary=["p", ["q", "r"]], margin=[0.0, 0.1], time_limit=30)


def bars(axes: Any) -> dict[str, float]:
    names = [text.get_text() for text in axes.get_yticklabels()]
    return dict(zip(names, (patch.get_width() for patch in axes.patches), strict=True))


def test_swings_are_bars_as_long_as_the_records_say(audit: ts.Audit) -> None:
    axes = audit.plot()
    told = dict(zip(audit["varied"], audit["max_swing"], strict=True))
    assert bars(axes) == pytest.approx(told)
    assert list(bars(axes).values()) == sorted(told.values())
    bounds = dict(zip(audit["varied"], audit["max_swing_bound"], strict=True))
    for line in axes.lines:
        name = list(bars(axes))[int(line.get_ydata()[0])]
        assert line.get_xdata()[1] == pytest.approx(bounds[name])


def test_flips_are_curves_over_the_gaps(audit: ts.Audit) -> None:
    axes = audit.plot("flips")
    told = {
        name: [
            (m, flipped / rows)
            for v, m, flipped, rows in zip(
                *(audit[c] for c in ("varied", "margin", "rows_flipped", "rows")), strict=True
            )
            if v == name
        ]
        for name in dict.fromkeys(audit["varied"])
    }
    for line in axes.lines:
        points = sorted((float(x), float(y)) for x, y in told[line.get_label()])
        assert list(line.get_xdata()) == pytest.approx([x for x, _ in points])
        assert list(line.get_ydata()) == pytest.approx([y for _, y in points])
    assert len(axes.lines) == len(told)


def test_gaps_are_drawn_into_given_axes(audit: ts.Audit) -> None:
    from matplotlib import pyplot

    trained = two_classes("xgboost")
    gap = ts.gap(trained.estimator, trained.frame, vary=["p", "q"], time_limit=30)
    axes = pyplot.subplots()[1]
    assert gap.plot(axes=axes) is axes
    assert bars(axes) == pytest.approx(dict(zip(gap["varied"], gap["largest_gap"], strict=True)))


def test_names_are_text_and_no_mathematics() -> None:
    from treesens.extensions.studies.report.plots import curves_plot, values_plot

    axes = values_plot({"$x^2$": (1.0, 2.0), "_y": (None, None), "a\x1bb": (0.5, None)}, "unit")
    axes.figure.canvas.draw()
    assert not any(tick.label1.get_parse_math() for tick in axes.yaxis.get_major_ticks())
    assert not any("\x1b" in text.get_text() for text in axes.get_yticklabels())
    legend = curves_plot({"$x_": [(0.0, 1.0)], "_y": [(0.0, 1.0)]}, "gap", "share").get_legend()
    assert [text.get_text().strip() for text in legend.get_texts()] == ["$x_", "_y"]


def test_a_picture_that_there_is_not(audit: ts.Audit) -> None:
    with pytest.raises(UsageError, match="what"):
        audit.plot("pie")  # type: ignore[arg-type]


def test_without_matplotlib_the_message_says_what_to_install() -> None:
    code = """
import sys
sys.modules["matplotlib"] = None
from treesens.extensions.studies.report.plots import values_plot
values_plot({}, "")
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert "treesens[plot]" in done.stderr


def test_the_notebook_runs_and_the_library_agrees(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every cell; the counts that its texts name are those of the library."""
    monkeypatch.chdir(tmp_path)
    space: dict[str, Any] = {}
    shown = []
    for cell in json.loads(NOTEBOOK.read_text("utf-8"))["cells"]:
        if cell["cell_type"] != "code":
            continue
        assert cell["outputs"] == []
        tree = ast.parse("".join(cell["source"]))
        last = tree.body.pop() if isinstance(tree.body[-1], ast.Expr) else None
        exec(compile(tree, str(NOTEBOOK), "exec"), space)
        if isinstance(last, ast.Expr):
            shown.append(eval(compile(ast.Expression(last.value), str(NOTEBOOK), "eval"), space))
    assert len(shown) >= 9
    predict, rows = space["pipeline"].predict_proba, space["train"]
    chances = [predict(rows.assign(Sex=sex))[:, 1] for sex in ("female", "male")]
    flips = (np.max(chances, axis=0) >= 0.6) & (np.min(chances, axis=0) <= 0.4)
    assert space["audit"].records[0]["rows_flipped"] == flips.sum() == 38
    pair = predict(space["pair"])[:, 1]
    assert max(pair) >= 0.6
    assert min(pair) <= 0.4
    assert (space["far"].verdict, space["far"].result.confirmed_by) == ("none", "library")
    assert space["repaired"].records[0]["proved"]
    assert space["difference"].sensitivities[0]["change"] == "goes"
    assert (tmp_path / "audit.html").exists()


def test_sets_are_rows_of_dots() -> None:
    trained = two_classes("xgboost")
    found = ts.sets(trained.estimator, trained.frame, margin=0.05, time_limit=30)
    axes = found.plot()
    names = [text.get_text() for text in axes.get_xticklabels()]
    drawn = [{names[int(x)] for x in line.get_xdata()} for line in axes.lines]
    assert drawn == [set(one) for one in [*found.flip, *found.hold]]
    labels = axes.get_legend_handles_labels()[1]
    assert labels == ["flips"] * bool(found.flip) + ["never flips"] * bool(found.hold)
    colours = [line.get_color() for line in axes.lines]
    assert colours == ["#d62728"] * len(found.flip) + ["#2ca02c"] * len(found.hold)
