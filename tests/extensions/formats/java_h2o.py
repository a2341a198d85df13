"""Predictions of h2o-genmodel, the library that scores MOJO files in production, in a Java machine of this process."""

from __future__ import annotations

import contextlib
import importlib.util
import os
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tests.extensions.formats.java import java_with
from treesens.compiler.model import Ensemble
from treesens.compiler.model.evaluate import Predicted
from treesens.errors import ModelError
from treesens.extensions.formats.h2o.archive import open_mojo
from treesens.extensions.formats.h2o.frontend import _doubled, _many_classes, _one_score
from treesens.extensions.formats.h2o.trees import Encoding, encoding_of

VARIABLE = "TREESENS_H2O_JAR"
"""Path of h2o.jar or h2o-genmodel.jar; by default the jar of the package `h2o`."""


def library_of(ensemble: Ensemble) -> GenModel:
    """The library's model of the file from which an ensemble was read."""
    place = ensemble.source.path
    data, classes = Path(place).read_bytes(), ensemble.classes
    mojo = open_mojo(data, place)
    encoding, several = encoding_of(mojo), len(classes) > 2 or _doubled(mojo, len(classes))
    scoring = _many_classes(mojo, len(classes), encoding) if several else _one_score(mojo, classes)
    return GenModel(data, [mojo.archive.blob(name) for name in scoring.names], ensemble, scoring.signs, encoding)


class GenModel:
    """A MOJO for h2o-genmodel; Java starts on first use.

    `blobs` are the file's trees, in the order of the ensemble; `signs` are the factors per score for trees that feed all
    scores.
    """

    def __init__(
        self,
        data: bytes,
        blobs: Sequence[bytes],
        ensemble: Ensemble,
        signs: Sequence[float],
        encoding: Encoding | None = None,
    ) -> None:
        self._data, self._blobs, self._ensemble, self._signs = data, blobs, ensemble, np.array(signs)
        self._encoding = encoding
        self._model: Any = None

    def margins(self, rows: NDArray[np.float64]) -> NDArray[Any]:
        """Scores before the link float64[rows, n_outputs]: the library's value of every tree, added up in its order."""
        java = _java()
        score = java.JClass("hex.genmodel.algos.tree.SharedTreeMojoModel").scoreTree
        domains = self._opened().getDomainValues()
        e = self._ensemble
        total = np.zeros((len(rows), e.n_outputs))
        given = [java.JArray(java.JDouble)(row) for row in self.inputs(rows).tolist()]
        for blob, output in zip(self._blobs, e.tree_output.tolist(), strict=True):
            tree = java.JArray(java.JByte)(np.frombuffer(blob, np.int8))
            values = np.array([float(score(tree, row, False, domains)) for row in given])
            if e.n_outputs == len(self._signs):
                total += self._signs * values[:, None]
            else:
                total[:, output] += values
        weights = np.ones(e.n_outputs)
        weights[e.tree_output] = e.tree_weight
        scores: NDArray[np.float64] = weights * total / e.average + e.base
        return scores

    def predicts(self, rows: NDArray[np.float64]) -> Predicted:
        """The library's own prediction: the value, or probabilities in score order, and the class."""
        java, model = _java(), self._opened()
        width = max(len(self._ensemble.classes), 2) + 1
        told = np.empty((len(rows), width))
        for number, row in enumerate(self.inputs(rows).tolist()):
            scores = model.score0(java.JArray(java.JDouble)(row), java.JArray(java.JDouble)(width))
            told[number] = [float(scores[place]) for place in range(width)]
        if not self._ensemble.classes:
            return Predicted(told[:, :1], None)
        shown = None if not self._ensemble.link.is_known else told[:, width - self._ensemble.n_outputs :]
        return Predicted(shown, told[:, 0].astype(np.int64))

    def inputs(self, rows: NDArray[np.float64]) -> NDArray[np.float64]:
        """Rows in the library's form: unlisted codes become the code after the column's last one."""
        x = np.array(rows, np.float64)
        for column, feature in enumerate(self._ensemble.features):
            if feature.categories:
                codes = x[:, column]
                listed = (codes >= 0) & (codes < feature.categories)
                x[:, column] = np.where(np.isnan(codes), codes, np.where(listed, np.floor(codes), feature.categories))
        return x if self._encoding is None else self._encoded(x, self._encoding)

    def _encoded(self, rows: NDArray[np.float64], encoding: Encoding) -> NDArray[np.float64]:
        """Rows as encoded by the library, float64[rows, columns that trees see]."""
        java, model = _java(), self._opened()
        easy = "hex.genmodel.easy.OneHotEncoder"
        places = java.JClass(f"{easy}ColumnMapper")(model).create()
        encoders = java.JClass(f"{easy}DomainMapConstructor")(model, places).create()
        names, labels = model.getOrigNames(), model.getOrigDomainValues()
        made = np.empty((len(rows), len(encoding.made)))
        for number, row in enumerate(rows.tolist()):
            given = java.JArray(java.JDouble)(len(encoding.made))
            for column, x in enumerate(row):
                place = places.get(names[column])
                encoder = encoders.get(place)
                if encoder is None:
                    given[int(place)] = x
                elif not (0 <= x < len(labels[column]) and encoder.encodeCatValue(labels[column][int(x)], given)):
                    encoder.encodeNA(given)
            made[number] = np.array(given)
        return made

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
    """JPype with the classes of h2o-genmodel. ModelError if it, Java or the jar is missing."""
    with contextlib.suppress(ImportError):
        if jar := _jar():
            return java_with([jar])
    raise ModelError(f"H2O needs Java and the packages h2o and jpype1; {VARIABLE} may name h2o-genmodel.jar")


def _jar() -> Path | None:
    given = os.environ.get(VARIABLE)
    if given:
        return Path(given) if Path(given).is_file() else None
    found = importlib.util.find_spec("h2o")
    if found is None or found.origin is None:
        return None
    path = Path(found.origin).parent / "backend" / "bin" / "h2o.jar"
    return path if path.is_file() else None
