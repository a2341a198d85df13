"""Predictions of h2o-genmodel, the library that scores MOJO files in production, in a Java machine of this process."""

from __future__ import annotations

import importlib.util
import os
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from treesens.compiler.model import Ensemble
from treesens.compiler.model.predicted import Predicted
from treesens.errors import ModelError

VARIABLE = "TREESENS_H2O_JAR"
"""Names h2o.jar or h2o-genmodel.jar; without it the jar of the package `h2o` is taken."""


class GenModel:
    """A MOJO for h2o-genmodel; Java starts when it is asked first.

    `blobs` are the trees as they are in the file, `signs` what each score takes them times.
    """

    def __init__(self, data: bytes, blobs: Sequence[bytes], ensemble: Ensemble, signs: Sequence[float]) -> None:
        self._data, self._blobs, self._ensemble, self._signs = data, blobs, ensemble, np.array(signs)
        self._model: Any = None

    def margins(self, rows: NDArray[np.float64]) -> NDArray[Any]:
        """Scores before the link float64[rows, n_outputs]: the library's value of every tree, added up in its order."""
        java = _java()
        score = java.JClass("hex.genmodel.algos.tree.SharedTreeMojoModel").scoreTree
        domains = self._opened().getDomainValues()
        total = np.zeros(len(rows))
        given = [java.JArray(java.JDouble)(row) for row in self._inputs(rows).tolist()]
        for blob in self._blobs:
            tree = java.JArray(java.JByte)(np.frombuffer(blob, np.int8))
            total += np.array([float(score(tree, row, False, domains)) for row in given])
        scores: NDArray[np.float64] = self._signs * total[:, None] / self._ensemble.average + self._ensemble.base
        return scores

    def predicts(self, rows: NDArray[np.float64]) -> Predicted:
        """What the library itself predicts: the value, or probabilities as the scores have them, and the class."""
        java, model = _java(), self._opened()
        told = np.empty((len(rows), 3))
        for number, row in enumerate(self._inputs(rows).tolist()):
            scores = model.score0(java.JArray(java.JDouble)(row), java.JArray(java.JDouble)(3))
            told[number] = [float(scores[0]), float(scores[1]), float(scores[2])]
        if not self._ensemble.classes:
            return Predicted(told[:, :1], None)
        return Predicted(told[:, 3 - self._ensemble.n_outputs :], told[:, 0].astype(np.int64))

    def _inputs(self, rows: NDArray[np.float64]) -> NDArray[np.float64]:
        """Rows as the library takes them: what is no code of a column becomes the code after its last one."""
        x = np.array(rows, np.float64)
        for column, feature in enumerate(self._ensemble.features):
            if feature.categories:
                codes = x[:, column]
                listed = (codes >= 0) & (codes < feature.categories)
                x[:, column] = np.where(np.isnan(codes), codes, np.where(listed, np.floor(codes), feature.categories))
        return x

    def _opened(self) -> Any:
        if self._model is None:
            java = _java()
            with tempfile.TemporaryDirectory() as folder:
                path = Path(folder) / "model.zip"
                path.write_bytes(self._data)
                try:
                    self._model = java.JClass("hex.genmodel.MojoModel").load(str(path))
                except java.JException as error:
                    raise ModelError(f"h2o cannot read the file: {str(error).splitlines()[0][:300]}") from None
        return self._model


def _java() -> Any:
    """JPype with the classes of h2o-genmodel. ModelError if it, Java or the jar is not there."""
    jar = _jar()
    try:
        import jpype
    except ImportError:
        jar = None
    if jar is None:
        raise ModelError(
            "replay in H2O needs Java and the packages h2o and jpype1, which are not installed",
            remedy=f"pip install h2o jpype1, or name h2o-genmodel.jar in {VARIABLE}; or replay=emulated",
        )
    jpype.addClassPath(str(jar))
    if not jpype.isJVMStarted():
        try:
            jpype.startJVM(convertStrings=False)
        except (OSError, jpype.JVMNotFoundException) as error:
            raise ModelError(f"Java does not start: {error}", remedy="install Java, or use replay=emulated") from None
    return jpype


def _jar() -> Path | None:
    given = os.environ.get(VARIABLE)
    if given:
        return Path(given) if Path(given).is_file() else None
    found = importlib.util.find_spec("h2o")
    if found is None or found.origin is None:
        return None
    path = Path(found.origin).parent / "backend" / "bin" / "h2o.jar"
    return path if path.is_file() else None
