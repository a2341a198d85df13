"""MOJO files of H2O-3: gradient boosting and random forests of two classes, or of a number (h2o 3.22 and later).

How H2O scores (h2o-genmodel 3.46): inputs are float64 and thresholds float32; leaves are float32 and sums float64, from 0, in
the order of the trees. Boosting adds `init_f` at the end, and the link comes after it. A forest divides the sum by the number
of its trees; for two classes that is the probability of the first one, and 1 less it that of the second. The second class is
predicted from `default_threshold` on, which training chose and which is seldom 1/2.

For three classes and more H2O breaks ties by a hash of the row, so that the class of an input at a tie is no fact about its
scores: such models are refused.
"""

from __future__ import annotations

import hashlib
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np

from treesens.compiler.base.floats import NumberType
from treesens.compiler.model import Accumulation, Feature, Link, ModelSource, Task
from treesens.errors import ModelError
from treesens.frontends.archives import zip_of
from treesens.frontends.base import LoadedModel
from treesens.frontends.columns import (
    MAX_FEATURES,
    as_categorical,
    ensemble_of,
    feature_tuple,
    labels_of_texts,
    stack_trees,
)
from treesens.frontends.h2o.archive import Mojo, open_mojo
from treesens.frontends.h2o.known import TABLE
from treesens.frontends.h2o.library import GenModel
from treesens.frontends.h2o.trees import tree_of
from treesens.frontends.known_fields import check_names

_MOST_TREES = 1_000_000
_FAMILIES = {
    "bernoulli": ("logit", Link.LOGISTIC),
    "gaussian": ("identity", Link.IDENTITY),
    "laplace": ("identity", Link.IDENTITY),
    "quantile": ("identity", Link.IDENTITY),
    "huber": ("identity", Link.IDENTITY),
    "poisson": ("log", Link.EXP),
    "gamma": ("log", Link.EXP),
    "tweedie": ("log", Link.EXP),
}
"""The link of every family that is read: its name, and ours."""
_ENCODINGS = ("AUTO", "Enum")
_ANOTHER = "convert it to PMML (jpmml-h2o); PMML is read, and you can compare both on your rows"
_ALGORITHMS = {"gbm": "Gradient Boosting Machine", "drf": "Distributed Random Forest"}
"""What is read, and the name by which the library chooses how it scores."""


class H2OFrontend:
    """Reads what `save_mojo` writes; there is no live object, for a model of h2o lives in its server."""

    name = "h2o"
    library = "h2o"

    def recognises_bytes(self, head: bytes) -> bool:
        return zip_of(head) == "h2o"

    def recognises_object(self, obj: object) -> bool:  # noqa: ARG002 - there are files alone
        return False

    def from_object(self, obj: Any) -> LoadedModel:  # noqa: ARG002 - as above
        raise ModelError(
            "a model of h2o lives in its server", remedy="save it with save_mojo and give the path of the file"
        )

    def load(self, path: Path, data: bytes) -> LoadedModel:
        place = str(path)
        mojo = open_mojo(data, place)
        _refuse(mojo)
        check_names(TABLE, {name: _plain(text) for name, text in mojo.info.items()}, f"{place}: model.ini", "model")
        features, notes = _features(mojo)
        classes = _classes(mojo)
        forest = mojo.text("algo") == "drf"
        trees = mojo.count("n_trees", _MOST_TREES)
        if not trees:
            raise mojo.error("the model has no trees", "train it again")
        categories = [feature.categories for feature in features]
        # The trees of a forest say how probable the first class is; the second has what is left of 1.
        signs = (1.0, -1.0) if forest and classes else (1.0,)
        names = [f"trees/t00_{number:03d}.bin" for number in range(trees)]
        blobs = [mojo.archive.blob(name) for name in names]
        nodes = stack_trees(
            [tree_of(b, categories, f"{place}: {name}", signs) for b, name in zip(blobs, names, strict=True)]
        )
        base = [0.0, 1.0][: len(signs)] if forest else [mojo.number("init_f")]
        link = Link.IDENTITY if forest else _link(mojo)
        ensemble = ensemble_of(
            nodes,
            features,
            place,
            name=path.stem,
            source=ModelSource(
                "h2o-mojo",
                version=mojo.info.get("h2o_version", ""),
                sha256=hashlib.sha256(data).hexdigest(),
                path=place,
            ),
            number_type=NumberType.FLOAT64,
            comparison="<",
            tree_output=np.full(trees, 0 if len(signs) == 1 else -1),
            tree_weight=np.ones(trees),
            base=np.array(base),
            link=link,
            task=Task.BINARY if classes else Task.REGRESSION,
            accumulation=Accumulation.FLOAT64_BASE_LAST,
            average=trees if forest else 1,
            classes=classes,
            cutoff=_cutoff(mojo) if classes else None,
        )
        library = GenModel(data, blobs, ensemble, signs)
        return LoadedModel(ensemble, self.name, library.margins, notes=notes, predicts=library.predicts)


def _plain(text: str) -> object:
    """What says that a field is empty."""
    return None if text in ("null", "[]", "") else text


def _refuse(mojo: Mojo) -> None:
    """Names what the reader does not represent."""
    algorithm = mojo.text("algo")
    if algorithm not in _ALGORITHMS:
        raise mojo.error(f"a MOJO of `{algorithm[:40]}` is not read", f"read are {', '.join(_ALGORITHMS)}; {_ANOTHER}")
    if mojo.text("algorithm") != _ALGORITHMS[algorithm]:
        raise mojo.error(f"`algo` is {algorithm} and `algorithm` {mojo.text('algorithm')[:60]}")
    version = mojo.number("mojo_version")
    if not 1.2 <= version <= 1.4:
        raise mojo.error(f"version {version:g} of MOJO is not known (1.2 to 1.4 are)", "save it with h2o 3.22 to 3.46")
    if mojo.text("endianness") != "LITTLE_ENDIAN":
        raise mojo.error("its numbers have their highest byte first", "save it on a machine of a usual kind")
    if mojo.info.get("_genmodel_encoding", "AUTO") not in _ENCODINGS:
        raise mojo.error(
            f"the encoding {mojo.text('_genmodel_encoding')[:40]} of categories is not read",
            "train with categorical_encoding=Enum",
        )
    if not mojo.flag("supervised"):
        raise mojo.error("a model without a target is not read", _ANOTHER)
    if mojo.count("n_classes", MAX_FEATURES) > 2:
        raise mojo.error(
            "three classes and more are not read: H2O breaks ties between classes by a hash of the row", _ANOTHER
        )
    if mojo.flag("balance_classes"):
        raise mojo.error("probabilities are corrected for balanced classes", "train with balance_classes=False")
    if mojo.flag("binomial_double_trees"):
        raise mojo.error("a forest with trees for both classes is not read", "train with binomial_double_trees=False")
    if mojo.count("n_trees_per_class", MAX_FEATURES) != 1:
        raise mojo.error("several trees of a class where one is expected")


def _link(mojo: Mojo) -> Link:
    """The link of a boosted model, by its family."""
    family = mojo.text("distribution")
    if family not in _FAMILIES:
        raise mojo.error(f"the distribution {family[:40]} is not read", f"train with one of {', '.join(_FAMILIES)}")
    name, link = _FAMILIES[family]
    if mojo.info.get("link_function", name) != name:
        raise mojo.error(
            f"the link {mojo.text('link_function')[:40]} with the distribution {family} is not read", _ANOTHER
        )
    return link


def _features(mojo: Mojo) -> tuple[tuple[Feature, ...], tuple[str, ...]]:
    """The columns that rows have, and what users should know of them."""
    count = mojo.count("n_features", MAX_FEATURES)
    if not 0 < count < len(mojo.columns):  # columns of weights and folds stand before the target, which is the last one
        raise mojo.error(f"{count} features of {len(mojo.columns)} columns, the last of which is the target")
    features, notes = list(feature_tuple(mojo.columns[:count], mojo.place)), []
    for column in range(count):
        if column not in mojo.domains:
            continue
        labels = mojo.labels(column)
        if any('"' in label or "\\" in label for label in labels):
            notes.append(
                f"categories of `{mojo.columns[column]}` have quotes or backslashes: they are known by their codes"
            )
        features[column] = as_categorical(features[column], len(labels), _labels(labels))
    if "calib_method" in mojo.info:
        notes.append("calibrated probabilities (cal_p1), which H2O gives beside the others, are not those of questions")
    return tuple(features), tuple(notes)


def _labels(texts: tuple[str, ...]) -> tuple[str, ...] | tuple[int | float, ...] | None:
    """Categories as a table has them; None if they cannot be told."""
    return None if any('"' in text or "\\" in text for text in texts) else labels_of_texts(texts)


def _classes(mojo: Mojo) -> tuple[str | int, ...]:
    """The two classes, the second of which the score is about; none for a number."""
    category, count = mojo.text("category"), mojo.count("n_classes", MAX_FEATURES)
    if (category, count) == ("Regression", 1):
        return ()
    if (category, count) != ("Binomial", 2) or (
        mojo.text("algo") == "gbm" and mojo.text("distribution") != "bernoulli"
    ):
        kind = mojo.info.get("distribution", "")
        raise mojo.error(f"{count} classes of the category {category[:40]} {kind[:40]} are not read", _ANOTHER)
    target = len(mojo.columns) - 1
    if target not in mojo.domains:
        raise mojo.error("the classes have no names")
    found = _labels(mojo.labels(target))
    if found is None or len(set(found)) != 2:
        raise mojo.error("the names of the two classes cannot be told", "train with other names")
    whole = [label for label in found if isinstance(label, int)]
    return tuple(whole) if len(whole) == 2 else tuple(map(str, found))


def _cutoff(mojo: Mojo) -> Fraction:
    """The probability from which on the second class is predicted."""
    threshold = mojo.number("default_threshold")
    if not 0 < threshold < 1:
        raise mojo.error(f"a threshold of {threshold:g}: the same class is predicted for every row", "train it again")
    return Fraction(repr(threshold))
