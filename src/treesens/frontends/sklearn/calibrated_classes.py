"""`CalibratedClassifierCV` of scikit-learn for more than two classes, each with a calibrator of its own.

A class has a score, its decision function or its share of votes, and a calibrator of its own. Its probability is what that
makes of the score, divided by the sum over all classes, and the class with the greatest one is predicted. The sum is the same
for all, and so the class is a comparison of functions of one score each (`binder/scores.py`). Several folds have a sum each:
they are members of a mean (`blends.py`), whose probabilities are means of quotients (`compiler/query/quotients.py`).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from typing import Any

from treesens.compiler.model import Ensemble, Link, ModelSource, Task
from treesens.compiler.model.blend import Way
from treesens.compiler.model.calibration import Learnt
from treesens.errors import ModelError
from treesens.frontends.base import LoadedModel
from treesens.frontends.blending import blend_of
from treesens.frontends.outputs import of_output
from treesens.frontends.sklearn.calibrated import calibrations_of
from treesens.frontends.sklearn.model import names_of, plain_classes
from treesens.frontends.sklearn.rows import replayer, rows_of_members

_NOTE = (
    "each class has a calibrated score, and the probabilities are these divided by their sum: ask for classes, and for no "
    "probabilities or margins"
)


def read_calibrated_classes(
    obj: Any, load: Callable[[Any], LoadedModel], source: ModelSource, name: str
) -> LoadedModel:
    """The model of a fitted calibration with one fold. ModelError for scores that are no sums of leaves, one for each class."""
    model = read_fold(obj, load, source, name)
    rows = rows_of_members(obj, [model], model.ensemble, source.path)
    kind = f"CalibratedClassifierCV of {len(model.ensemble.classes)} classes: {model.notes[0]}"
    return replace(
        model,
        notes=(kind, _NOTE, *model.notes[1:]),
        predicts=replayer(obj, rows, model.ensemble),
        inputs=rows,
    )


def read_fold(
    obj: Any, load: Callable[[Any], LoadedModel], source: ModelSource, name: str, fold: int = 0
) -> LoadedModel:
    """The model of one fold of such a calibration; its first note is the format of the model inside."""
    place = source.path
    inner, calibrations = calibrations_of(obj, place, fold)
    model, classes = load(inner), plain_classes(obj, place)
    members = [_of_class(model.ensemble, k, calibration, place) for k, calibration in enumerate(calibrations)]
    ensemble = blend_of(
        members,
        [Fraction(1)] * len(members),
        Way.COMPARE,
        names_of(obj),
        place,
        is_sum=False,
        name=name,
        source=source,
        classes=classes,
        link=Link.COUNTED,
        task=Task.MULTICLASS,
    )
    notes = (model.ensemble.source.format, *model.notes)
    return LoadedModel(ensemble, "sklearn", model.margins, None, notes, inputs=model.inputs)


def _of_class(e: Ensemble, k: int, calibration: Learnt, place: str) -> Ensemble:
    """The score of one class alone, calibrated."""
    shares = e.link is Link.IDENTITY
    if e.blend is not None or e.n_outputs != len(e.classes) or calibration.of_probability is not shares:
        raise ModelError(
            "the probabilities that are calibrated depend on the scores of all classes (a softmax)"
            if calibration.of_probability
            else "the scores that are calibrated are no sums of leaves here, one for each class",
            place=place,
            remedy="calibrate a forest, or a model that has a decision function (HistGradientBoostingClassifier, LightGBM); "
            "or give the model inside it",
        )
    whole = replace(e, cutoff=None, ties=None, ranks_scores=False, ranks_sums=False)
    return replace(
        of_output(whole, k),
        classes=(0, 1),
        task=Task.BINARY,
        link=Link.CALIBRATED,
        calibration=replace(calibration, of_probability=False),
        class_at_zero=0,
    ).validate()
