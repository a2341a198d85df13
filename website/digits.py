"""A picture for the gallery: an image of a 3 that a few pixels turn into an 8 for a model, beside the images that it was near.

The images are those of scikit-learn (8 x 8, from the UCI repository). The model is trained, and asked, while the page is built.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

SIDE, LEVELS = 8, 16
PIXELS = 4
"""How many may change: those that the model asks for most often."""
GAP = 0.3
_CELL = 12


@dataclass(frozen=True)
class Turned:
    """`pair` float[2, 64] with its `probabilities` of an 8 by the library, the pixels that may differ, and rows beside it."""

    pair: Any
    probabilities: tuple[float, float]
    varied: tuple[int, ...]
    nearest: Any
    distance: float
    proved: bool
    eights: Any


def turned(folder: Path) -> Turned:
    """Trains, asks, and looks up rows beside the answer."""
    import pandas as pd
    import xgboost as xgb
    from sklearn.datasets import load_digits

    import treesens as ts

    bunch = load_digits()
    mine = np.isin(bunch.target, (3, 8))
    rows, label = bunch.data[mine].astype(np.float32), (bunch.target[mine] == 8).astype(int)
    names = [f"p{i // SIDE}{i % SIDE}" for i in range(SIDE * SIDE)]
    options = {"objective": "binary:logistic", "max_depth": 4, "eta": 0.3, "nthread": 1, "seed": 7}
    booster = xgb.train(options, xgb.DMatrix(rows, label, feature_names=names), 60)
    path = folder / "digits.json"
    booster.save_model(path)
    gain = booster.get_score(importance_type="total_gain")
    varied = sorted(sorted(gain, key=lambda name: -gain[name])[:PIXELS])
    frame = pd.DataFrame(rows, columns=names)
    found = ts.sensitivity(ts.load(path), vary=varied, gap=GAP, data=frame, near="distance", time_limit=30)
    assert found.pair is not None
    pair = found.pair[names].to_numpy(np.float32)
    margins = booster.predict(xgb.DMatrix(pair, feature_names=names))
    places = tuple(names.index(name) for name in varied)
    kept = [i for i in range(SIDE * SIDE) if i not in places]
    apart = np.sqrt((((rows[:, kept] - pair[0, kept]) / LEVELS) ** 2).sum(axis=1))
    near = int(apart.argmin())
    eights = np.flatnonzero(label == 1)
    goal = found.result.objective
    return Turned(
        pair,
        (float(margins[0]), float(margins[1])),
        places,
        rows[near],
        float(apart[near]),
        goal is not None and goal.bound is not None and goal.value - goal.bound <= 1e-4,
        rows[eights[apart[eights].argmin()]],
    )


def picture(found: Turned) -> str:
    """Four images side by side as SVG; a pixel that may differ has a frame."""
    images = (
        (found.pair[0], f"8 with {found.probabilities[0]:.1%}"),
        (found.pair[1], f"8 with {found.probabilities[1]:.1%}"),
        (found.nearest, f"nearest row, at {found.distance:.2f}"),
        (found.eights, "nearest 8 of the data"),
    )
    width, height = _CELL * SIDE, _CELL * SIDE + 24
    parts = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {len(images) * (width + 24)} {height}" role="img">']
    parts.append(f"<title>Two images that differ in {len(found.varied)} pixels, and rows beside them</title>")
    for number, (values, words) in enumerate(images):
        left = number * (width + 24) + 12
        for place, value in enumerate(values):
            grey = round(255 - 255 * float(value) / LEVELS)
            at = f'x="{left + place % SIDE * _CELL}" y="{place // SIDE * _CELL}" width="{_CELL}" height="{_CELL}"'
            frame = ' stroke="#c2410c" stroke-width="1.5"' if place in found.varied and number < 2 else ""
            parts.append(f'<rect {at} fill="rgb({grey},{grey},{grey})"{frame}/>')
        parts.append(f'<text x="{left}" y="{height - 6}" font-size="10" font-family="sans-serif">{words}</text>')
    return "\n".join([*parts, "</svg>"])


def section(found: Turned) -> str:
    """What the gallery says beside the picture."""
    change = "; ".join(
        f"pixel {place // SIDE}, {place % SIDE}: {found.pair[0][place]:g} and {found.pair[1][place]:g}"
        for place in found.varied
    )
    proved = ", which is proved to be the least" if found.proved else ""
    return (
        "\n## An image turned by a few pixels\n\n"
        f"A model of 60 trees tells 3 from 8 on scikit-learn's digits. Can {len(found.varied)} pixels alone take it from one "
        f"class to the other, each with a probability of at least {0.5 + GAP:.0%}, on an image near the data? The two images "
        f"on the left differ in these pixels (framed) alone. Their distance from the data, in the other pixels, is "
        f"{found.distance:.2f}{proved}.\n\n"
        "![Two images that differ in a few pixels, and rows beside them](gallery/digits.svg)\n\n"
        f"Row and column from 0, values from 0 to {LEVELS}: {change}.\n"
    )


def main() -> None:
    folder = Path(sys.argv[1])
    found = turned(folder)
    (folder / "digits.svg").write_text(picture(found), "utf-8")
    (folder / "digits.md").write_text(section(found), "utf-8")


if __name__ == "__main__":
    main()
