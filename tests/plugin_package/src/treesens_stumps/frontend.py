"""stumps: a text format of decision stumps, one per line.

    stumps 1
    features age sex
    base 0.25
    age 0.5 -1.0 2.0

The last line is a tree: inputs with age < 0.5 get -1, the others 2. Numbers are float64; missing values go right. A line
`link softsign` replaces the logistic link.
"""

from __future__ import annotations

import hashlib
import math
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from treesens.compiler.base.floats import NumberType
from treesens.compiler.model.ensemble import Ensemble
from treesens.compiler.model.kinds import Accumulation, Feature, ModelSource, Task
from treesens.errors import ModelError
from treesens.frontends.base import LoadedModel
from treesens.links import Link, Logistic
from treesens_stumps.softsign import Softsign

MAGIC = b"stumps 1"


def predict(text: str, rows: NDArray[np.float64]) -> NDArray[np.float64]:
    """The "library": margins as the owner of the format computes them."""
    lines = [line.split() for line in text.splitlines()[1:] if line.strip()]
    columns = {name: i for i, name in enumerate(lines[0][1:])}
    margins = np.full(len(rows), float(lines[1][1]))
    for name, threshold, low, high in (line for line in lines[2:] if line[0] != "link"):
        margins += np.where(rows[:, columns[name]] < float(threshold), float(low), float(high))
    return margins[:, None]


class StumpsFrontend:
    name = "stumps"
    library = "treesens_stumps"

    def recognises_bytes(self, head: bytes) -> bool:
        return head.startswith(MAGIC)

    def recognises_object(self, obj: object) -> bool:
        return False

    def from_object(self, obj: Any) -> LoadedModel:
        raise ModelError("stumps are files only")

    def load(self, path: Path, data: bytes) -> LoadedModel:
        text = data.decode("utf-8", errors="replace")
        names, base, link, stumps = read(text, str(path))
        count = len(stumps)
        # Three nodes per tree: the root and its two leaves.
        root = np.tile(np.array([True, False, False]), count)
        first = np.arange(count) * 3
        feature, threshold = np.full(3 * count, -1), np.full(3 * count, np.nan)
        left, right = np.full(3 * count, -1), np.full(3 * count, -1)
        feature[root] = [names.index(name) for name, _, _, _ in stumps]
        threshold[root] = [cut for _, cut, _, _ in stumps]
        left[root], right[root] = first + 1, first + 2
        leaf = np.full(3 * count, -1)
        leaf[~root] = np.arange(2 * count)
        ensemble = Ensemble(
            name=path.stem,
            features=tuple(Feature(name) for name in names),
            number_type=NumberType.FLOAT64,
            comparison="<",
            tree_offset=np.arange(count + 1) * 3,
            node_feature=feature,
            threshold=threshold,
            left=left,
            right=right,
            default_left=np.zeros(3 * count, bool),
            node_leaf=leaf,
            leaf_value=np.array([[x] for _, _, low, high in stumps for x in (low, high)]),
            leaf_tree=np.repeat(np.arange(count), 2),
            leaf_node=np.tile(np.array([1, 2]), count),
            tree_output=np.zeros(count),
            tree_weight=np.ones(count),
            base=np.array([base]),
            link=link,
            task=Task.BINARY,
            accumulation=Accumulation.FLOAT64_BASE_FIRST,
            source=ModelSource("stumps", "1", hashlib.sha256(data).hexdigest(), str(path)),
            classes=(0, 1),
        ).validate()
        return LoadedModel(ensemble, self.name, lambda rows: predict(text, rows))


LINKS: dict[str, Link] = {"logistic": Logistic(), "softsign": Softsign()}


def read(text: str, place: str) -> tuple[list[str], float, Link, list[tuple[str, float, float, float]]]:
    """Feature names, base margin, link and stumps; ModelError naming the line."""
    names: list[str] = []
    base, link = 0.0, LINKS["logistic"]
    stumps: list[tuple[str, float, float, float]] = []
    for number, line in enumerate(text.splitlines()[1:], 2):
        words = line.split()
        try:
            match words:
                case []:
                    continue
                case ["features", *given]:
                    names = given
                case ["base", value]:
                    base = finite(value)
                case ["link", given] if given in LINKS:
                    link = LINKS[given]
                case [name, cut, low, high] if name in names:
                    stumps.append((name, finite(cut), finite(low), finite(high)))
                case _:
                    raise ValueError("expected `FEATURE THRESHOLD LOW HIGH` with a known feature")
        except ValueError as error:
            remedy = "see the docstring of treesens_stumps.frontend"
            raise ModelError(str(error), place=f"{place}:{number}", remedy=remedy) from None
    if not stumps:
        raise ModelError("the file holds no stump", place=place, remedy="add a line `FEATURE THRESHOLD LOW HIGH`")
    return names, base, link, stumps


def finite(text: str) -> float:
    value = float(text)
    if not math.isfinite(value):
        raise ValueError(f"`{text}` is not finite")
    return value
