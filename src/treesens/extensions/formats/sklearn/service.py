"""The service "compositions": reads scikit-learn estimators that consist of more than the trees of one ensemble."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import sklearn

from treesens.compiler.model import ModelSource
from treesens.errors import ModelError
from treesens.extensions.formats.sklearn.blends import is_blend, read_blend
from treesens.extensions.formats.sklearn.calibrated import calibrated
from treesens.extensions.formats.sklearn.linear import is_linear
from treesens.extensions.formats.sklearn.lots import refuse_lots
from treesens.extensions.formats.sklearn.outputs import OneOutput, one_output, read_output
from treesens.extensions.formats.sklearn.pipeline import is_pipeline, read_alone, read_pipeline
from treesens.extensions.formats.sklearn.subclasses import as_parent
from treesens.extensions.formats.sklearn.wrappers import Unwrapped, unwrap
from treesens.frontends.base import LoadedModel, source_of_output
from treesens.frontends.registry import load
from treesens.frontends.sklearn.frontend import SklearnFrontend
from treesens.frontends.sklearn.rows import replayer

__all__ = ["one_output", "read"]


def read(obj: Any, place: str, name: str, form: str) -> LoadedModel | None:
    """The model of a wrapper, a pipeline, a linear model, a single output, or a model of models; None for other estimators."""
    refuse_lots(obj, place)
    if (parent := as_parent(obj, place)) is not None:
        return SklearnFrontend().read(parent, place, name, form)
    outside = unwrap(obj, place)
    if outside.wrappers:
        return _inside(obj, outside, place, name, form)
    if is_pipeline(obj):
        model = read_pipeline(obj, load, place)
        found = replace(model.ensemble.source, format=f"{form}-pipeline")
        if isinstance(last := obj.steps[-1][1], OneOutput):
            found = source_of_output(found, last.output)
        return replace(model, ensemble=replace(model.ensemble, name=name, source=found))
    source = ModelSource(format=form, version=sklearn.__version__, path=place)
    if is_linear(obj):
        model = read_alone(obj, place)
        return replace(model, ensemble=replace(model.ensemble, name=name, source=source))
    if isinstance(obj, OneOutput):
        return read_output(obj, load, source, name)
    return read_blend(obj, load, source, name) if is_blend(obj) else None


def _inside(obj: Any, outside: Unwrapped, place: str, name: str, form: str) -> LoadedModel:
    """A wrapped model of any library, with the cut-off of the wrapper."""
    model = load(outside.model)
    if outside.calibration is not None:
        model = calibrated(model, outside.calibration, place)
    if outside.threshold is not None and len(model.ensemble.classes) != 2:
        raise ModelError("a cut-off needs a model of two classes", place=place, remedy="pass the model inside")
    if outside.threshold is not None and not model.ensemble.link.is_known:
        message = "the cut-off is a probability that is not a function of the scores"
        raise ModelError(message, place=place, remedy="pass the model inside, which decides by its scores")
    source = replace(model.ensemble.source, path=place, format=f"{form}-{outside.wrappers[0]}")
    ensemble = replace(model.ensemble, name=name, source=source, cutoff=outside.threshold)
    # The wrapper makes the predictions, with its cut-off and calibration.
    predicts = replayer(obj, model.inputs or (lambda rows: rows), ensemble)
    return replace(model, ensemble=ensemble, notes=(*outside.notes, *model.notes), predicts=predicts)
