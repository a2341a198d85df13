"""scikit-learn models: live objects and skops files. Pickles are opened only if trusted (pickles.py)."""

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
from typing import Any, Protocol

from treesens.builtin import has_extensions, service
from treesens.compiler.model import ModelSource
from treesens.errors import ModelError
from treesens.frontends.archives import zip_of
from treesens.frontends.base import LoadedModel
from treesens.frontends.columns import directions_of

# Types not trusted by skops itself: plain data, and the preprocessor check of histogram boosting.
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


class Compositions(Protocol):
    """The interface of the service "compositions" (`builtin.SERVICES`)."""

    def read(self, obj: Any, place: str, name: str, form: str) -> LoadedModel | None:
        """The model of a pipeline, a wrapper or a composition of models; None for any other estimator."""

    def one_output(self, obj: Any, output: int, place: str) -> Any:
        """An estimator of one output. Raises ModelError if `obj` has only one output, or is of an unknown kind."""


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
        """One output of a multi-output model."""
        compositions: Compositions = service("compositions")
        one = compositions.one_output(open_skops(data, str(path)), output, str(path))
        return self._of_file(one, path, data)

    def _of_file(self, obj: Any, path: Path, data: bytes) -> LoadedModel:
        model = self.read(obj, str(path), path.stem, "sklearn-skops")
        source = replace(model.ensemble.source, sha256=hashlib.sha256(data).hexdigest())
        return replace(model, ensemble=replace(model.ensemble, source=source))

    def from_object(self, obj: Any) -> LoadedModel:
        return self.read(obj, f"<{type(obj).__name__}>", "model", "sklearn")

    def output_of_object(self, obj: Any, output: int) -> LoadedModel:
        """One output of a live multi-output model."""
        compositions: Compositions = service("compositions")
        place = f"<{type(obj).__name__}>"
        return self.read(compositions.one_output(obj, output, place), place, "model", "sklearn")

    def read(self, obj: Any, place: str, name: str, form: str) -> LoadedModel:
        """The model of an estimator; `form` is its format. Raises ModelError at `place`."""
        import sklearn

        # Detecting other formats does not import this format's readers.
        from treesens.frontends.columns import ensemble_of
        from treesens.frontends.sklearn.known import unknown_attributes
        from treesens.frontends.sklearn.model import read_estimator
        from treesens.frontends.sklearn.rows import RowMaker, predictor, replayer

        if has_extensions():
            compositions: Compositions = service("compositions")
            if (composed := compositions.read(obj, place, name, form)) is not None:
                return composed
        source = ModelSource(format=form, version=sklearn.__version__, path=place)
        read = read_estimator(obj, place)
        ensemble = ensemble_of(read.nodes, read.features, place, name=name, source=source, **read.facts())
        rows = RowMaker(
            read.categories, list(obj.feature_names_in_) if hasattr(obj, "feature_names_in_") else None, read.marks
        )
        margins = predictor(obj, rows, read.margins, ensemble.n_outputs)
        leaf_ids = predictor(obj, rows, read.leaf_ids, ensemble.n_trees) if read.leaf_ids else None
        predicts = replayer(obj, rows, ensemble)
        unknown = unknown_attributes(obj)
        note = f"unknown attributes, assumed to be training settings: {', '.join(unknown)[:200]}"
        notes = (*read.notes, note) if unknown else read.notes
        monotone = directions_of(getattr(obj, "monotonic_cst", None), ensemble.feature_names, place)
        return LoadedModel(
            ensemble, self.name, margins, leaf_ids, notes, predicts=predicts, inputs=rows, monotone=monotone
        )


def open_skops(data: bytes, place: str) -> Any:
    """The estimator in a skops file, from which only plain data of known types is created."""
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            names = archive.namelist()
            size = sum(entry.file_size for entry in archive.infolist())
    except (zipfile.BadZipFile, ValueError, OSError, NotImplementedError) as error:
        raise ModelError(f"the zip archive is damaged: {error}", place=place, remedy="save the model again") from None
    if "model.ini" in names:  # the index of a MOJO without trees
        raise ModelError(
            "this H2O MOJO is neither gradient boosting nor a random forest",
            place=place,
            remedy="convert it to PMML (jpmml-h2o); PMML is supported; compare both models on your rows",
        )
    if "schema.json" not in names:
        raise ModelError("this zip archive is not a skops file", place=place, remedy="pass the model file inside it")
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
                f"the file contains types that are not known to be safe: {', '.join(unknown[:5])}",
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


# Errors of the skops loader, which indexes JSON and calls numpy without checks, on damaged archives.
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
