"""Questions about small models that are trained on the spot, as `write.py` writes those about random ones, for `dump.cpp`:
`python -m tests.cpp.modules.trained FILE`.

Models with more trees than a random question has, and one with deep trees, so that searches are long enough to take turns.
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from tests.corpus import boosted
from tests.cpp.modules.write import write
from treesens.backends.native.backend import NativeArtifact, NativeBackend
from treesens.binder.file import bind
from treesens.compiler.pipeline import compile_query, decide_at_compile_time
from treesens.compiler.query.query import Query
from treesens.grammar.parsing.parser import parse

FEATURES = 8
SHAPES = {"few": (12, 3), "many": (60, 4), "deep": (6, 9)}
"""Trees, and their depth."""


def model(name: str, folder: Path) -> Path:
    """Two classes by a sum of products, with noise, so that deep trees have something to grow on."""
    trees, depth = SHAPES[name]
    rng = np.random.default_rng(len(name))
    x = rng.random((3000, FEATURES)).astype(np.float32)
    y = (x[:, 0] * x[:, 1] + np.sin(5 * x[:, 2]) * x[:, 3] + rng.normal(0, 0.2, 3000) > 0.6).astype(int)
    booster = boosted(x, y, trees, depth, min_child_weight=0, seed=1)
    path = folder / f"{name}.json"
    booster.save_model(path)
    return path


def questions(path: Path) -> Iterator[Query]:
    """Decisions at several gaps, largest gaps, and a largest score."""
    asked = [f"sensitive m to {{f{f}}} gap {gap}" for f in range(0, FEATURES, 2) for gap in (0.1, 0.25, 0.45)]
    asked += [
        f"find a, b in m such that\n    a = b except f{f}\n  maximize margin(a) - margin(b)" for f in range(FEATURES)
    ]
    asked.append("find a in m such that\n    a.f0 >= 0.5\n  maximize margin(a)")
    for text in asked:
        source = f'model m from "{path}"\nquery q:\n  {text}\n'
        yield bind(parse(source, "<trained>"), path.parent).queries[0].query


def main(target: str) -> None:
    with tempfile.TemporaryDirectory() as folder, open(target, "w") as out:
        for name in SHAPES:
            for query in questions(model(name, Path(folder))):
                compilation = compile_query(query, "native")
                if decide_at_compile_time(compilation) is None:
                    artifact = NativeBackend().emit(compilation.module)
                    assert isinstance(artifact, NativeArtifact)
                    write(out, query, artifact)


if __name__ == "__main__":
    main(sys.argv[1])
