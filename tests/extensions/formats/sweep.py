"""Random models of every library, compared with the library's own predictions: `python -m tests.extensions.formats.sweep`.

Every model has random data, hyper-parameters, labels and an objective of its library, all in turn. On 100 rows, many of them
on thresholds and one float beside, margins are equal bit for bit, labels are those of the library's own `predict`, and
probabilities differ by rounding alone; or the model is refused, for a reason that the library's list here names.
"""

from __future__ import annotations

import argparse
import re
import tempfile
import warnings
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from tests.extensions.formats import sweep_h2o, sweep_models, sweep_spark
from tests.extensions.formats.java import in_java
from treesens.errors import ModelError
from treesens.extensions.conformance import formats as conformance
from treesens.frontends import load

ROWS = 100
IN_JAVA = {
    "h2o": (sweep_h2o.h2o_model, sweep_h2o.ALLOWED),
    "spark": (sweep_spark.spark_model, sweep_spark.ALLOWED),
}
"""Libraries that no plain run asks."""


@dataclass
class Tally:
    """What became of the models of one library; `wrong` names each by its number."""

    equal: int = 0
    refused: Counter[str] = field(default_factory=Counter)
    untrained: Counter[str] = field(default_factory=Counter)
    wrong: list[str] = field(default_factory=list)

    def __str__(self) -> str:
        lines = [f"{self.equal} equal, {self.refused.total()} refused, {len(self.wrong)} wrong"]
        lines += [f"  refused {count}: {reason}" for reason, count in self.refused.most_common()]
        lines += [f"  the library did not train {count}: {reason}" for reason, count in self.untrained.most_common()]
        return "\n".join([*lines, *(f"  WRONG {line}" for line in self.wrong)])


def rows_for(ensemble: Any, rng: np.random.Generator, plain: np.ndarray) -> np.ndarray:
    """Rows of the training kind, half of them with a value on a threshold or one float beside it."""
    rows = plain[rng.integers(len(plain), size=ROWS)].copy()
    nodes = np.flatnonzero((ensemble.node_feature >= 0) & (ensemble.category_set < 0) & np.isfinite(ensemble.threshold))
    for row in rows[: ROWS // 2] if len(nodes) else ():
        for node in rng.choice(nodes, 2):
            at = np.float32(ensemble.threshold[node]) if rng.random() < 0.5 else ensemble.threshold[node]
            row[ensemble.node_feature[node]] = rng.choice([at, np.nextafter(at, -np.inf), np.nextafter(at, np.inf)])
    return rows


def compare(made: sweep_models.Made, source: object, rng: np.random.Generator) -> str:
    """What is wrong with a model that was read, in words; nothing if all is equal."""
    loaded = load(source)
    e = loaded.ensemble
    rows = rows_for(e, rng, made.rows)
    ours = e.margins_emulated(rows)
    said = made.library(rows) if made.library is not None else None
    if said is not None:
        if said.margins is not None and not (np.asarray(said.margins).reshape(ours.shape) == ours).all():
            return "margins differ from those of the trained object"
        if said.labels is not None:
            positions = np.array(
                [[str(c) for c in e.classes].index(str(label)) for label in np.ravel(said.labels).tolist()]
            )
            sure = sweep_models.sure_classes(e, np.asarray(ours, np.float64))
            bad = [i for i, c in enumerate(sure) if c is not None and c != positions[i]]
            if bad:
                return f"label {said.labels[bad[0]]} and not {e.classes[sure[bad[0]] or 0]} at {rows[bad[0]].tolist()}"
    report = conformance.check(in_java(loaded), rows=20, seed=int(rng.integers(1 << 30)))
    return "" if report.ok else str(report).splitlines()[0] + " " + str(report.mismatches[:1])


def judge(library: str, count: int, seed: int = 0, show: Callable[[str], None] = lambda _: None) -> Tally:
    """Makes and compares `count` models of one library."""
    tally = Tally()
    make, allowed = (IN_JAVA | sweep_models.LIBRARIES)[library]
    for number in range(2 * count):  # some that the library does not train come on top
        if tally.equal + tally.refused.total() + len(tally.wrong) == count:
            break
        rng = np.random.default_rng([seed, number])
        with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                made = make(number, rng, Path(folder))
            except sweep_models.Untrained as error:
                tally.untrained[str(error)[:120]] += 1
                continue
            for source in made.sources:
                try:
                    words = compare(made, source, rng)
                except ModelError as error:
                    reason = re.sub(r"[0-9.]+", "N", error.message)[:90]
                    right = any(re.search(pattern, error.message) for pattern in allowed)
                    words = "" if right else f"refused: {error}"
                    if right:
                        tally.refused[reason] += 1
                        break
                if words:
                    tally.wrong.append(f"{library} {number} ({made.name}): {words}")
                    show(tally.wrong[-1])
                    break
            else:
                tally.equal += 1
    return tally


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=200, help="models per library")
    parser.add_argument("--graphs", type=int, default=1000, help="graphs of ONNX")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument(
        "libraries",
        nargs="*",
        default=list(sweep_models.LIBRARIES),
        help="all but h2o and spark, which need Java, without",
    )
    given = parser.parse_args(arguments)
    wrong = 0
    for library in given.libraries:
        count = given.graphs if library == "onnx" else given.count
        tally = judge(library, count, given.seed, lambda line: print(line, flush=True))
        print(f"{library}: {tally}", flush=True)
        wrong += len(tally.wrong)
    return int(wrong > 0)


if __name__ == "__main__":
    raise SystemExit(main())
