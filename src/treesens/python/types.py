"""What the calls take, as a type checker reads it: models and tables of many libraries, none of which is imported here."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Protocol, TypeAlias

import numpy as np

from treesens.data.tables import Table
from treesens.frontends.base import LoadedModel


class Predictor(Protocol):
    """A fitted model of XGBoost, LightGBM, scikit-learn, CatBoost or interpret."""

    def predict(self, *_: Any, **__: Any) -> Any: ...


class ProtoModel(Protocol):
    """A model of ONNX."""

    def SerializeToString(self, *_: Any, **__: Any) -> bytes: ...


class TreeliteModel(Protocol):
    """A model of Treelite."""

    def dump_as_json(self, *_: Any, **__: Any) -> str: ...


class Frame(Protocol):
    """A frame of pandas, polars or pyarrow."""

    @property
    def columns(self) -> Any: ...


Model: TypeAlias = str | Path | LoadedModel | Predictor | ProtoModel | TreeliteModel
"""A model file, a live model, or what `load` has made of either."""

Data: TypeAlias = str | Path | Table | Frame | np.ndarray[Any, Any]
"""A CSV or Parquet file, a frame, or an array [rows, features] in the order of the model's features."""
