"""Predictions of the catboost library itself, from the JSON document of a model."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from treesens.compiler.model import Ensemble
from treesens.compiler.model.evaluate import Predicted, positions
from treesens.errors import ModelError
from treesens.extensions.formats.apart import read_apart
from treesens.links import Exp, Identity

_AS_JSON = """
model = catboost.CatBoost().load_model(sys.argv[3], format="cbm")
model.save_model(sys.argv[4], format="json")
"""


def json_of_binary(path: Path, size: int) -> bytes:
    """The JSON document of a `.cbm` file of `size` bytes, which the library converts in a separate process."""
    if find_spec("catboost") is None:
        raise ModelError(
            "reading CatBoost's binary format (.cbm) needs catboost, which is not installed",
            place=str(path),
            remedy="pip install 'treesens[catboost]', or save the model as JSON: model.save_model('m.json', format='json')",
        )
    with tempfile.TemporaryDirectory() as folder:
        made = Path(folder) / "model.json"
        arguments = [str(path.absolute()), str(made)]
        read_apart("import catboost", _AS_JSON, arguments, size, "catboost cannot read the file", str(path))
        return made.read_bytes()


def pool_of(model: Any, rows: Any) -> Any:
    """The pool of the model's columns in a data frame; None without rows, and for a frame that lacks a column."""
    categories = model.get_cat_feature_indices()
    if rows is None or not categories:
        return None
    import catboost
    import narwhals as nw

    frame = nw.from_native(rows, eager_only=True, pass_through=True)
    if not isinstance(frame, nw.DataFrame) or not set(model.feature_names_) <= set(frame.columns):
        return None
    return catboost.Pool(frame.select(model.feature_names_).to_pandas(), cat_features=categories)


class NativeCatBoost:
    """Predictions of the catboost library itself, from the JSON document.

    The library's JSON reader rounds decimals inexactly, so leaf values and bias of a reloaded model may differ in the last bit.
    The file's leaf values `leaves`, [L, outputs] in file order, and `bias` replace those of the reloaded model.
    """

    def __init__(
        self, data: bytes, leaves: NDArray[np.float64], bias: NDArray[np.float64], names: Mapping[int, Sequence[Any]]
    ) -> None:
        self._data, self._leaves, self._bias, self._names = data, leaves, bias, names
        self._model: Any = None

    def _load(self, catboost: Any) -> None:
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "model.json"
            path.write_bytes(self._data)
            model = catboost.CatBoost()
            model.load_model(str(path), format="json")
        rounded = np.asarray(model.get_leaf_values())
        if rounded.shape != self._leaves.ravel().shape or not np.allclose(rounded, self._leaves.ravel(), rtol=1e-12):
            raise ModelError("catboost's leaf values differ from those of the file", remedy="report this model, please")
        model.set_leaf_values(np.ascontiguousarray(self._leaves.ravel()))
        model.set_scale_and_bias(1.0, self._bias.tolist() if len(self._bias) > 1 else float(self._bias[0]))
        self._model = model

    def _call(self, name: str, rows: NDArray[np.float64], **options: Any) -> NDArray[Any]:
        try:
            import catboost
        except ImportError:
            raise ModelError(
                "replay in CatBoost itself needs catboost, which is not installed",
                remedy="pip install 'treesens[catboost]'",
            ) from None
        try:
            if self._model is None:
                self._load(catboost)
            return np.asarray(getattr(self._model, name)(self._inputs(rows), thread_count=1, **options))
        except catboost.CatBoostError as error:
            raise ModelError(f"catboost refused to predict: {str(error).splitlines()[-1]}") from None

    def _inputs(self, rows: NDArray[np.float64]) -> Any:
        """Rows in the library's form, with names instead of codes; unknown codes become an unknown name."""
        x = np.ascontiguousarray(rows, dtype=np.float64)
        if not self._names:
            return x
        mixed = x.astype(object)
        for column, names in self._names.items():
            unseen = "unseen" + "_" * max((len(str(name)) for name in names), default=0)
            known = [*map(str, names), unseen]
            codes = x[:, column]
            if np.isnan(codes).any():
                raise ModelError("catboost accepts no missing categories", remedy="give them a name")
            inside = (codes >= 0) & (codes < len(names))
            mixed[:, column] = [known[int(code)] for code in np.where(inside, codes, len(names))]
        return mixed

    def margins(self, rows: NDArray[np.float64]) -> NDArray[Any]:
        """Raw formula values float64[rows, n_outputs]."""
        return self._call("predict", rows, prediction_type="RawFormulaVal").reshape(len(rows), len(self._bias))

    def predicts(self, rows: NDArray[np.float64], ensemble: Ensemble) -> Predicted:
        """Probabilities, exponentials or raw values, by CatBoost's prediction type, and the class."""
        kind = {Exp(): "Exponent", Identity(): "RawFormulaVal"}.get(ensemble.link, "Probability")
        found = self._call("predict", rows, prediction_type=kind).reshape(len(rows), -1)
        if not ensemble.classes:
            return Predicted(found, None)
        labels = self._call("predict", rows, prediction_type="Class")
        return Predicted(found[:, -len(self._bias) :], positions(labels, ensemble.classes))

    def leaf_ids(self, rows: NDArray[np.float64]) -> NDArray[Any]:
        """Leaf numbers int32[rows, trees]."""
        return self._call("calc_leaf_indexes", rows).reshape(len(rows), -1).astype(np.int32)
