"""scikit-learn models: live objects and skops files. Pickles are opened elsewhere (pickles.py), and only when trusted."""

from __future__ import annotations

import hashlib
import io
import struct
import sys
import tokenize
import zipfile
import zlib
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from treesens.compiler.model import ModelSource
from treesens.errors import ModelError
from treesens.frontends.archives import zip_of
from treesens.frontends.base import LoadedModel, source_of_output
from treesens.frontends.columns import directions_of

if TYPE_CHECKING:
    from treesens.frontends.sklearn.wrappers import Unwrapped

# Types that skops does not trust by itself: plain data, and the check of the preprocessor of histogram boosting.
_TRUSTED = (
    "functools.partial",
    "numpy.dtype",
    "sklearn.calibration._CalibratedClassifier",
    "sklearn.calibration._SigmoidCalibration",
    "sklearn.ensemble._hist_gradient_boosting.predictor.TreePredictor",
    "sklearn.tree._tree.Tree",
    "sklearn.utils._bunch.Bunch",
    "sklearn.utils.validation.check_array",
)


class SklearnFrontend:
    """Reads fitted estimators of scikit-learn 1.4 and later."""

    name = "sklearn"
    library = "sklearn"
    reads_with = "skops"

    def recognises_bytes(self, head: bytes) -> bool:
        return zip_of(head) == "sklearn"

    def recognises_object(self, obj: object) -> bool:
        base = sys.modules.get("sklearn.base")
        return base is not None and isinstance(obj, base.BaseEstimator)

    def load(self, path: Path, data: bytes) -> LoadedModel:
        return self._of_file(open_skops(data, str(path)), path, data)

    def load_output(self, path: Path, data: bytes, output: int) -> LoadedModel:
        """One output of a model of several."""
        from treesens.frontends.sklearn.outputs import one_output

        return self._of_file(one_output(open_skops(data, str(path)), output, str(path)), path, data)

    def _of_file(self, obj: Any, path: Path, data: bytes) -> LoadedModel:
        model = self._read(obj, str(path), path.stem, "sklearn-skops")
        source = replace(model.ensemble.source, sha256=hashlib.sha256(data).hexdigest())
        return replace(model, ensemble=replace(model.ensemble, source=source))

    def from_object(self, obj: Any) -> LoadedModel:
        return self._read(obj, f"<{type(obj).__name__}>", "model", "sklearn")

    def output_of_object(self, obj: Any, output: int) -> LoadedModel:
        """One output of a live model of several."""
        from treesens.frontends.sklearn.outputs import one_output

        place = f"<{type(obj).__name__}>"
        return self._read(one_output(obj, output, place), place, "model", "sklearn")

    def _read(self, obj: Any, place: str, name: str, form: str) -> LoadedModel:
        import sklearn

        # Files of other formats are sniffed without the readers of this one.
        from treesens.frontends.columns import ensemble_of
        from treesens.frontends.sklearn.blends import is_blend, read_blend
        from treesens.frontends.sklearn.known import unknown_attributes
        from treesens.frontends.sklearn.linear import is_linear
        from treesens.frontends.sklearn.model import read_estimator
        from treesens.frontends.sklearn.pipeline import is_pipeline, read_alone, read_pipeline
        from treesens.frontends.sklearn.rows import RowMaker, predictor, replayer
        from treesens.frontends.sklearn.wrappers import unwrap

        outside = unwrap(obj, place)
        if outside.wrappers:
            return self._inside(obj, outside, place, name, form)
        if is_pipeline(obj):
            # Imported here: the registry knows this module.
            from treesens.frontends.registry import load

            model = read_pipeline(obj, load, place)
            found = replace(model.ensemble.source, format=f"{form}-pipeline")
            if hasattr(obj.steps[-1][1], "whole"):
                found = source_of_output(found, obj.steps[-1][1].output)
            return replace(model, ensemble=replace(model.ensemble, name=name, source=found))
        source = ModelSource(format=form, version=sklearn.__version__, path=place)
        if is_linear(obj):
            model = read_alone(obj, place)
            return replace(model, ensemble=replace(model.ensemble, name=name, source=source))
        if type(obj).__name__ == "OneOutput" and hasattr(obj, "whole"):
            from treesens.frontends.registry import load
            from treesens.frontends.sklearn.outputs import OneOutput, read_output

            if isinstance(obj, OneOutput):
                return read_output(obj, load, source, name)
        if is_blend(obj):
            from treesens.frontends.registry import load

            return read_blend(obj, load, source, name)
        read = read_estimator(obj, place)
        ensemble = ensemble_of(read.nodes, read.features, place, name=name, source=source, **read.facts())
        rows = RowMaker(
            read.categories, list(obj.feature_names_in_) if hasattr(obj, "feature_names_in_") else None, read.marks
        )
        margins = predictor(obj, rows, read.margins, ensemble.n_outputs)
        leaf_ids = predictor(obj, rows, read.leaf_ids, ensemble.n_trees) if read.leaf_ids else None
        predicts = replayer(obj, rows, ensemble)
        unknown = unknown_attributes(obj)
        note = f"attributes that are not known here, and are taken for settings of training: {', '.join(unknown)[:200]}"
        notes = (*read.notes, note) if unknown else read.notes
        monotone = directions_of(getattr(obj, "monotonic_cst", None), ensemble.feature_names, place)
        return LoadedModel(
            ensemble, self.name, margins, leaf_ids, notes, predicts=predicts, inputs=rows, monotone=monotone
        )

    @staticmethod
    def _inside(obj: Any, outside: Unwrapped, place: str, name: str, form: str) -> LoadedModel:
        """A wrapped model, of any library, that decides by the cut-off of its wrapper."""
        from treesens.frontends.registry import load
        from treesens.frontends.sklearn.calibrated import calibrated
        from treesens.frontends.sklearn.rows import replayer

        model = load(outside.model)
        if outside.calibration is not None:
            model = calibrated(model, outside.calibration, place)
        if outside.threshold is not None and len(model.ensemble.classes) != 2:
            raise ModelError("a cut-off needs a model of two classes", place=place, remedy="give the model inside")
        source = replace(model.ensemble.source, path=place, format=f"{form}-{outside.wrappers[0]}")
        ensemble = replace(model.ensemble, name=name, source=source, cutoff=outside.threshold)
        # What predicts is the wrapper itself, with its cut-off and its calibration.
        predicts = replayer(obj, model.inputs or (lambda rows: rows), ensemble)
        return replace(model, ensemble=ensemble, notes=(*outside.notes, *model.notes), predicts=predicts)


def open_skops(data: bytes, place: str) -> Any:
    """The estimator in a skops file; nothing but plain data of known types is made from it."""
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            names = archive.namelist()
            size = sum(entry.file_size for entry in archive.infolist())
    except (zipfile.BadZipFile, ValueError, OSError, NotImplementedError) as error:
        raise ModelError(f"the zip archive is damaged: {error}", place=place, remedy="save the model again") from None
    if "model.ini" in names:  # the index of a MOJO that has no trees
        raise ModelError(
            "this is a MOJO of H2O, and not one of gradient boosting or a random forest",
            place=place,
            remedy="convert it to PMML (jpmml-h2o); PMML is read, and you can compare both on your rows",
        )
    if "schema.json" not in names:
        raise ModelError("this is a zip archive, and not of skops", place=place, remedy="give the model file inside it")
    if size > 100 * len(data) + (1 << 20):
        raise ModelError(f"the archive unpacks to {size} bytes", place=place, remedy="this is not a model")
    try:
        from skops import io as skops_io
        from skops.io.exceptions import UnsupportedTypeException, UntrustedTypesFoundException
    except ImportError:
        raise ModelError(
            "reading a skops file needs skops, which is not installed",
            place=place,
            remedy="pip install 'treesens[skops]'",
        ) from None
    try:
        unknown = sorted(set(skops_io.get_untrusted_types(data=data)) - set(_TRUSTED))
        if unknown:
            raise ModelError(
                f"the file holds types that are not known to be safe: {', '.join(unknown[:5])}",
                place=place,
                remedy="if you trust them, load the file with skops yourself and pass the live object",
            )
        return skops_io.loads(data, trusted=list(_TRUSTED))
    except (UntrustedTypesFoundException, UnsupportedTypeException) as error:
        raise ModelError(str(error).splitlines()[0], place=place, remedy="pass the live object") from None
    except _SKOPS_ERRORS as error:
        raise ModelError(
            f"skops cannot read the file: {type(error).__name__}: {error}", place=place, remedy="save the model again"
        ) from None


# What a damaged archive makes of the loader: it indexes JSON and calls numpy without checks of its own.
_SKOPS_ERRORS = (
    ArithmeticError,
    AssertionError,
    AttributeError,
    EOFError,
    ImportError,
    LookupError,
    OSError,
    RecursionError,
    TypeError,
    ValueError,
    NotImplementedError,
    SyntaxError,
    tokenize.TokenError,
    UnicodeError,
    zipfile.BadZipFile,
    zlib.error,
    struct.error,
)
