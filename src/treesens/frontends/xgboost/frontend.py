"""XGBoost models: JSON and UBJSON files (read without xgboost), and live Booster, XGBClassifier and XGBRegressor objects.

XGBoost's evaluation (cpu_predictor.cc, predict_fn.h and common/categorical.h of versions 1.3 to 3.2): inputs are cast to
float32; x < threshold goes left, NaN follows default_left; a category goes right iff it is in the node's stored set, so
negative and unknown categories go left; sums are float32, start from the base margin and follow the order of the trees; DART
adds weight * value, which is rounded before the addition.

After early stopping, `Booster.predict` uses all trees of a file, and the scikit-learn wrapper uses the trees up to
`best_iteration`. Accordingly, files and Boosters are read with all trees (and a note), and wrappers with these first trees.
"""

from __future__ import annotations

import hashlib
import json
import math
import re
import sys
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, Protocol

from treesens.builtin import service
from treesens.compiler.model import Ensemble, ModelSource
from treesens.errors import ModelError
from treesens.frontends.base import LoadedModel, note_of_output, source_of_output
from treesens.frontends.columns import directions_of
from treesens.frontends.documents import Field, is_json, is_ubjson, parse_document
from treesens.frontends.xgboost.categories import cut_names
from treesens.frontends.xgboost.model import count_outputs, is_linear, read_ensemble
from treesens.frontends.xgboost.native import NativeXGBoost
from treesens.frontends.xgboost.trees import InexactDecimalError, weights_in_model

_FIRST_KEY = re.compile(rb"""\x07learner|"learner"\s*:|"version"\s*:\s*\[""")

_OLD = re.compile(rb"binf|.{136}[\4-\x40]\0{7}[a-z:]+.{8}(gbtree|dart|gblinear)", re.DOTALL)
"""The old binary format: before 1.3, files begin with the learner's parameters and the names of objective and booster."""


class OldFiles(Protocol):
    """The interface of the service "old xgboost files" (`builtin.SERVICES`)."""

    def convert_file(self, data: bytes, place: str) -> bytes:
        """The JSON document of a binary file. Raises ModelError if the file cannot be converted."""


class XGBoostFrontend:
    """Reads files of XGBoost 1.0 and later, and binary files of XGBoost 0.6 to 2.1."""

    name = "xgboost"
    library = "xgboost"
    variants = ("all", "best")

    def recognises_bytes(self, head: bytes) -> bool:
        # The first key of an XGBoost document is `learner`, or `version` with a list.
        document = is_ubjson(head) or is_json(head)
        return _OLD.match(head) is not None or (document and _FIRST_KEY.search(head) is not None)

    def recognises_object(self, obj: object) -> bool:
        xgboost = sys.modules.get("xgboost")
        return xgboost is not None and isinstance(obj, (xgboost.Booster, getattr(xgboost, "XGBModel", ())))

    def load(self, path: Path, data: bytes) -> LoadedModel:
        return self._read(data, str(path), path.stem)

    def load_variant(self, path: Path, data: bytes, variant: str) -> LoadedModel:
        """A model with all rounds of a file, or with the rounds up to the best round, which the scikit-learn wrapper uses."""
        if variant == "all":
            return replace(self.load(path, data), notes=())
        best = _best_iteration(Field(parse_document(_document(data, str(path)), str(path)), str(path)))
        if best is None:
            raise ModelError(
                "the model was not stopped early, so the file contains no best round",
                place=str(path),
                remedy="leave `:best` out",
            )
        return self._read(data, str(path), path.stem, best + 1)

    def load_output(self, path: Path, data: bytes, output: int) -> LoadedModel:
        """One output (a label or a target) of a multi-output model, with all rounds."""
        return self._read(data, str(path), path.stem, output=output)

    def from_object(self, obj: Any) -> LoadedModel:
        return self._of_object(obj)

    def output_of_object(self, obj: Any, output: int) -> LoadedModel:
        """One output (a label or a target) of a live multi-output model."""
        return self._of_object(obj, output)

    def _of_object(self, obj: Any, output: int | None = None) -> LoadedModel:
        import xgboost

        if isinstance(obj, xgboost.Booster):
            read = self._read(bytes(obj.save_raw("ubj")), "<xgboost.Booster>", "booster", output=output)
            return replace(read, monotone=_declared(obj, read.ensemble))
        absent = getattr(obj, "missing", math.nan)
        if absent is not None and not math.isnan(float(absent)):
            raise ModelError(
                f"the wrapper treats the value {absent} as missing",
                place=f"<{type(obj).__name__}>.missing",
                remedy="replace that value with NaN in the data and set missing=nan",
            )
        if isinstance(obj, xgboost.XGBModel) and not obj.__sklearn_is_fitted__():
            raise ModelError("the model has not been fitted", place=f"<{type(obj).__name__}>", remedy="fit it first")
        booster = obj.get_booster()
        best = booster.attributes().get("best_iteration")
        rounds = int(best) + 1 if best is not None else None
        place = f"<{type(obj).__name__}>"
        read = self._read(bytes(booster.save_raw("ubj")), place, "model", rounds, output)
        return replace(read, monotone=_declared(booster, read.ensemble))

    def _read(
        self, data: bytes, place: str, name: str, rounds: int | None = None, output: int | None = None
    ) -> LoadedModel:
        given, data = data, _document(data, place)
        root = Field(parse_document(data, place), place)
        version = root.get("version") if isinstance(root.value, dict) else None
        if rounds is not None and is_linear(root["learner"]):
            # A linear booster has no rounds, and its wrapper uses the whole booster.
            rounds = None
        source = ModelSource(
            format="xgboost-binary" if data is not given else "xgboost-ubj" if is_ubjson(data[:3]) else "xgboost-json",
            # Binary files contain no patch level.
            version=".".join(str(v) for v in version.integers()[: 3 if data is given else 2]) if version else "",
            sha256=hashlib.sha256(given).hexdigest(),
            path=place,
            options={} if rounds is None else {"rounds": str(rounds)},
        )
        source = source if output is None else source_of_output(source, output)
        try:
            ensemble = read_ensemble(root, name, source, rounds, output)
        except InexactDecimalError:
            root = Field(parse_document(data, place, float32_text=True), place)
            ensemble = read_ensemble(root, name, source, rounds, output)
        count = ensemble.n_outputs if output is None else count_outputs(root["learner"]["learner_model_param"])
        library = NativeXGBoost(data, rounds or 0, count, output, _oldest_library(root["learner"]))
        # The library has no pred_leaf for vector leaves and linear boosters, and pred_leaf crashes without trees.
        no_leaves = bool((ensemble.tree_output < 0).any()) or ensemble.blend is not None
        leaf_ids = None if no_leaves or output is not None or not ensemble.n_trees else library.leaf_ids
        note = () if output is None else (note_of_output(output, count),)
        return LoadedModel(
            ensemble,
            self.name,
            library.margins,
            leaf_ids,
            (*note, *_notes(root, ensemble, rounds)),
            predicts=partial(library.predicts, ensemble=ensemble),
        )


def _document(data: bytes, place: str) -> bytes:
    """The JSON or UBJSON document of a file."""
    if _OLD.match(data) is None:
        return data
    old: OldFiles = service("old xgboost files")
    return old.convert_file(data, place)


def _oldest_library(learner: Field) -> tuple[tuple[int, int], str]:
    """The first version that uses the whole file, and the part that earlier versions silently ignore."""
    if weights_in_model(learner["gradient_booster"]):
        return (3, 4), "the weights of trees"
    if str(learner["learner_model_param"]["base_score"].value).lstrip().startswith("["):
        return (3, 1), "base_score"
    return (0, 0), ""


def _declared(booster: Any, ensemble: Ensemble) -> dict[str, int]:
    """The monotone constraints of a booster in memory; files do not contain them."""
    options = json.loads(booster.save_config())["learner"].get("gradient_booster", {})
    trees = options.get("gbtree", options)
    given = trees.get("tree_train_param", {}).get("monotone_constraints")
    return directions_of(given, ensemble.feature_names, "<Booster.save_config()>")


def _best_iteration(root: Field) -> int | None:
    """The best round of early stopping, counted from 0; None if the file states no best round."""
    attributes = root["learner"].get("attributes")
    best = attributes.get("best_iteration") if attributes else None
    if best is None:
        return None
    text = str(best.value)
    if not text.isascii() or not text.isdigit() or len(text) > 9:
        raise best.error(f"`{text[:20]}` is not a round number")
    return int(text)


def _notes(root: Field, ensemble: Ensemble, rounds: int | None) -> tuple[str, ...]:
    return (*_note_on_rounds(root, ensemble, rounds), *_note_on_names(root, ensemble))


def _note_on_rounds(root: Field, ensemble: Ensemble, rounds: int | None) -> tuple[str, ...]:
    best = _best_iteration(root)
    if rounds is not None or best is None or ensemble.blend is not None:
        return ()
    others = (
        "Pass the live wrapper for these"
        if ensemble.source.format.startswith("output ")
        else "Pass the format `xgboost:best` for these, or `xgboost:all` for all trees without this note"
    )
    return (
        f"training was stopped early: all {ensemble.n_trees} trees of the file are used, as Booster.predict does, but "
        f"XGBClassifier and XGBRegressor predict with rounds 0 to {best} (best_iteration) only. {others}",
    )


def _note_on_names(root: Field, ensemble: Ensemble) -> tuple[str, ...]:
    booster = root["learner"]["gradient_booster"]
    if ensemble.blend is not None:
        return ()
    model = (booster["gbtree"] if booster["name"].text() == "dart" else booster)["model"]
    names = [f"`{ensemble.feature_names[f]}`" for f in cut_names(model) if f < ensemble.n_features]
    if not names:
        return ()
    return (
        f"the categories of {', '.join(names[:8])} have non-ASCII names, which XGBoost truncates when it saves a model, so "
        "they are unknown: declare `feature NAME: category {NAME = code, ..}` with the codes of training",
    )
