"""Reads LightGBM text files and dump_model JSON (lightgbm is not needed), and live Booster and scikit-learn objects.

LightGBM's evaluation (tree.h, gbdt_prediction.cpp, c_api.cpp of versions 2.3 to 4.7): float64; |x| <= 1e-35 is read as 0; x <=
threshold goes left. A node's missing type determines the treatment of NaN: `None` reads NaN as 0, `Zero` sends NaN and every
zero in the default direction, and `NaN` sends only NaN in this direction. A category goes left iff its code, truncated, is in
the node's bit set; NaN and unseen codes go right. Sums are float64 from 0 in the order of the trees; leaf values already
include shrinkage and DART weights; random forests (`average_output`) divide by the number of rounds before the link.
"""

from __future__ import annotations

import hashlib
import sys
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from treesens.compiler.model import Ensemble, ModelSource
from treesens.compiler.model.evaluate import Predicted
from treesens.errors import ModelError
from treesens.frontends.base import LoadedModel
from treesens.frontends.columns import directions_of
from treesens.frontends.documents import Field, is_json, parse_document


class LightGBMFrontend:
    """Reads text of versions v2 to v4 and the JSON of dump_model."""

    name = "lightgbm"
    library = "lightgbm"

    def recognises_bytes(self, head: bytes) -> bool:
        if is_json(head):
            return b'"num_tree_per_iteration"' in head
        return head.startswith((b"tree\n", b"tree\r\n")) and b"version=" in head

    def recognises_object(self, obj: object) -> bool:
        lightgbm = sys.modules.get("lightgbm")
        return lightgbm is not None and isinstance(obj, (lightgbm.Booster, lightgbm.LGBMModel))

    def load(self, path: Path, data: bytes) -> LoadedModel:
        return self._read(data, str(path), path.stem)

    def from_object(self, obj: Any) -> LoadedModel:
        return self.with_rows(obj, None)

    def with_rows(self, obj: Any, rows: Any) -> LoadedModel:
        """The model of a live object. Like `predict`, the model gives its lists of names to the columns of type `category` of
        `rows`, a pandas frame, in their order.
        """
        import lightgbm

        place = f"<{type(obj).__name__}>"
        if not isinstance(obj, lightgbm.Booster) and not obj.__sklearn_is_fitted__():
            raise ModelError("the model has not been fitted", place=place, remedy="fit it first")
        booster = obj if isinstance(obj, lightgbm.Booster) else obj.booster_
        # By default, save only the rounds that predict uses: up to the best iteration if the model has one.
        text = booster.model_to_string()
        classes = list(obj.classes_) if isinstance(obj, lightgbm.LGBMClassifier) else ()
        frame = rows.select_dtypes("category") if hasattr(rows, "select_dtypes") else ()
        named = [str(column).replace(" ", "_") for column in frame]
        return self._read(text.encode(), place, "model", classes, named)

    def _read(
        self, data: bytes, place: str, name: str, classes: Sequence[Any] = (), named: Sequence[str] = ()
    ) -> LoadedModel:
        # Detecting other formats does not import this format's readers.
        from treesens.frontends.lightgbm.json import read_json
        from treesens.frontends.lightgbm.model import nameless, read_ensemble, with_classes
        from treesens.frontends.lightgbm.text import read_text

        text = not is_json(data[:65536])
        if text:
            header, trees = read_text(data, place)
        else:
            header, trees = read_json(Field(parse_document(data, place), place))
        header = replace(header, named=named)
        source = ModelSource(
            format="lightgbm-text" if text else "lightgbm-json",
            version=header.version,
            sha256=hashlib.sha256(data).hexdigest(),
            path=place,
        )
        ensemble = with_classes(read_ensemble(header, trees, name, source), classes)
        notes = []
        if not ensemble.link.is_known:
            notes.append(f"`{header.objective}` scales its scores before the logistic function: use margins")
        if header.objective in ("", "custom", "none"):
            notes.append("trained with a custom objective: predictions are the raw scores")
        if unnamed := nameless(header, ensemble.features):
            columns = ", ".join(f"`{column}`" for column in unnamed[:8])
            notes.append(
                f"the names of categories in the file may be those of {columns} or of other columns, so they are not used: "
                "declare `feature NAME: category {NAME = code, ..}` with the codes of training"
            )
        library = NativeLightGBM(data if text else None, ensemble.n_outputs, ensemble.average)
        return LoadedModel(
            ensemble,
            self.name,
            library.margins,
            library.leaf_ids if text else None,
            tuple(notes),
            predicts=partial(library.predicts, ensemble=ensemble),
            monotone=directions_of(header.monotone, ensemble.feature_names, place),
        )


class NativeLightGBM:
    """Predictions of the lightgbm library itself. `text` is the model file, or None if lightgbm cannot load the model."""

    def __init__(self, text: bytes | None, outputs: int, average: int) -> None:
        self._text, self._outputs, self._average = text, outputs, average
        self._booster: Any = None

    def _predict(self, rows: NDArray[np.float64], **what: bool) -> NDArray[Any]:
        if self._text is None:
            raise ModelError(
                "LightGBM cannot load the JSON of dump_model, so it cannot replay this model",
                remedy="pass the text file of Booster.save_model",
            )
        try:
            import lightgbm
        except ImportError:
            raise ModelError(
                "replay in LightGBM itself needs lightgbm, which is not installed",
                remedy="pip install 'treesens[lightgbm]'",
            ) from None
        if self._booster is None:
            self._booster = lightgbm.Booster(model_str=self._text.decode())
        try:
            return np.asarray(self._booster.predict(np.asarray(rows, dtype=np.float64), num_threads=1, **what))
        except lightgbm.basic.LightGBMError as error:
            raise ModelError(f"lightgbm refused to predict: {error}") from None

    def margins(self, rows: NDArray[np.float64]) -> NDArray[Any]:
        """Raw scores float64[rows, n_outputs]; for random forests, the average to which the link is applied."""
        raw = self._predict(rows, raw_score=True).reshape(len(rows), self._outputs)
        return raw / self._average if self._average > 1 else raw

    def predicts(self, rows: NDArray[np.float64], ensemble: Ensemble) -> Predicted:
        """The result of Booster.predict, and LGBMClassifier's class: the class with the greatest probability."""
        found = self._predict(rows).reshape(len(rows), self._outputs)
        shown = None if not ensemble.link.is_known else found
        if not ensemble.classes:
            return Predicted(shown, None)
        both = np.column_stack([1.0 - found[:, 0], found[:, 0]]) if self._outputs == 1 else found
        return Predicted(shown, both.argmax(axis=1).astype(np.int64))

    def leaf_ids(self, rows: NDArray[np.float64]) -> NDArray[Any]:
        """Leaf numbers int32[rows, trees], with trees in the model's order."""
        return self._predict(rows, pred_leaf=True).reshape(len(rows), -1).astype(np.int32)
