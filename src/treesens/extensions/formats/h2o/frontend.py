"""MOJO files of H2O-3: gradient boosting and random forests, classifiers and regressors (h2o 3.22 and later).

How H2O scores (h2o-genmodel 3.46): inputs are float64 and thresholds float32; leaves are float32, and are added to 0 in
float64, in the order of the trees. Boosting adds `init_f` at the end, and then applies the link. A forest divides the sum by
the number of trees. For two classes, the quotient is the probability of the first class. The second class is predicted if its
probability is at least `default_threshold`, a value chosen in training and seldom 1/2.

With three or more classes, each class has its own trees. Boosting applies a softmax to the classes' sums, without `init_f`. A
forest divides the sums by their total, which depends on the input; here the scores are the sums divided by the number of trees,
not probabilities. Ties are broken by a hash of the row (`HashedTies`).

A model with balanced classes multiplies each probability by the ratio of the class's share in the data to its share in
training, and divides the products by their sum. For two classes this multiplies the odds (`Odds`). For more classes, the sums
of boosting begin at the logarithm of the quotient, rounded to float64, and the sums of a forest are multiplied by the quotient.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path

import numpy as np

from treesens.compiler.base.floats import NumberType
from treesens.compiler.model import Accumulation, Feature, ModelSource, Task
from treesens.extensions.formats.h2o.archive import Mojo, open_mojo
from treesens.extensions.formats.h2o.known import TABLE
from treesens.extensions.formats.h2o.ties import CutShares, HashedTies
from treesens.extensions.formats.h2o.trees import ONE_HOT, Encoding, encoding_of, tree_of, without_encoding
from treesens.extensions.formats.links.calibrated import Calibrated
from treesens.extensions.formats.links.calibration import Odds
from treesens.extensions.formats.of_files import OfFiles, in_java
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
from treesens.frontends.documents import check_names
from treesens.links import Exp, Identity, Link, Logistic, Raw, Softmax

_MOST_TREES = 1_000_000
_MOST_CLASSES = 10_000
_LEAST = 2.0**-40
"""The least ratio of class shares; above this ratio, the error of the logarithm is far below the precision of probabilities."""
_DAMAGED = "save the model again with h2o"
_SHARES = (
    "H2O divides the scores of the classes by their sum, which varies: use margins (the means over the trees) and "
    "classes instead of probabilities"
)
_TIES = (
    "at a tie, H2O picks a class by a hash of the row, perhaps a class that is not among the best: `found` "
    "excludes such ties, and `none` covers them"
)
_BOTH = (
    "the second class is predicted if its share of the sum of both scores reaches the cut-off; where only the last "
    "digits of the share decide, the class is open"
)
_BALANCED = "prob(P) is corrected for balanced classes; margin(P) is the score before the correction"
_FAMILIES = {
    "bernoulli": ("logit", Logistic()),
    "gaussian": ("identity", Identity()),
    "laplace": ("identity", Identity()),
    "quantile": ("identity", Identity()),
    "huber": ("identity", Identity()),
    "poisson": ("log", Exp()),
    "gamma": ("log", Exp()),
    "tweedie": ("log", Exp()),
}
"""The links of supported families: H2O's name of the link, and the link here."""
_ENCODINGS = ("AUTO", "Enum", ONE_HOT)
_ANOTHER = "convert it to PMML (jpmml-h2o); PMML is supported; compare the scores of both models on your rows"
_ALGORITHMS = {"gbm": "Gradient Boosting Machine", "drf": "Distributed Random Forest"}
"""Supported algorithms, with the names by which the library selects the scoring method."""


class H2OFrontend(OfFiles):
    """Reads MOJO files of `save_mojo`; h2o keeps models in its server, so there are no live objects."""

    name = "h2o"

    def recognises_bytes(self, head: bytes) -> bool:
        return zip_of(head) == "h2o"

    def load(self, path: Path, data: bytes) -> LoadedModel:
        place = str(path)
        mojo = open_mojo(data, place)
        _refuse(mojo)
        encoding = encoding_of(mojo)
        kept = mojo.info if encoding is None else without_encoding(mojo.info)
        kind = "model" if encoding is None else "encoded"
        check_names(TABLE, {name: _plain(mojo.info[name]) for name in kept}, f"{place}: model.ini", kind)
        features, notes = _features(mojo, encoding)
        classes = _classes(mojo)
        forest = mojo.text("algo") == "drf"
        trees = mojo.count("n_trees", _MOST_TREES)
        if not trees:
            raise mojo.error("the model has no trees", "train it again")
        # The columns that an encoding makes are numbers.
        categories = [0] * len(encoding.made) if encoding is not None else [feature.categories for feature in features]
        several = len(classes) > 2 or _doubled(mojo, len(classes))
        scoring = _many_classes(mojo, len(classes), encoding) if several else _one_score(mojo, classes)
        names = scoring.names
        blobs = [mojo.archive.blob(name) for name in names]
        grown = [
            tree_of(b, categories, f"{place}: {name}", scoring.signs) for b, name in zip(blobs, names, strict=True)
        ]
        nodes = stack_trees(grown) if encoding is None else encoding.before(stack_trees(grown), place)
        between = (nodes.leaf_value >= 0) & (nodes.leaf_value <= 1)
        if isinstance(scoring.ties, CutShares) and not between.all():
            raise mojo.error("a leaf of a forest must be a share of rows (0 to 1)", _DAMAGED)
        if scoring.shares_only and not ((nodes.leaf_value >= -1) & (nodes.leaf_value <= 0)).all():
            raise mojo.error("a leaf of a forest must be a share of rows (0 to 1)", _DAMAGED)
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
            tree_output=np.array(scoring.outputs),
            tree_weight=np.array(scoring.weights),
            base=np.array(scoring.base),
            link=scoring.link,
            task={0: Task.REGRESSION, 2: Task.BINARY}.get(len(classes), Task.MULTICLASS),
            accumulation=Accumulation.FLOAT64_SCALED_BASE_LAST if scoring.weighted else Accumulation.FLOAT64_BASE_LAST,
            average=trees if forest and not scoring.weighted else 1,
            classes=classes,
            cutoff=None if several or not classes else _cutoff(mojo),
            ties=scoring.ties,
        )
        notes += scoring.notes
        return LoadedModel(ensemble, self.name, in_java, notes=notes)


@dataclass(frozen=True)
class _Scoring:
    """How trees are summed: their files, the score each tree adds to (-1: every score, times `signs`), and the final step.

    If `weighted`, finished sums are multiplied by `weights`. If `shares_only`, leaves must be from 0 to 1, and are negated.
    """

    names: list[str]
    outputs: list[int]
    weights: list[float]
    base: list[float]
    link: Link
    signs: tuple[float, ...] = (1.0,)
    ties: HashedTies | CutShares | None = None
    weighted: bool = False
    shares_only: bool = False
    notes: tuple[str, ...] = ()


def _one_score(mojo: Mojo, classes: Sequence[str | int]) -> _Scoring:
    """The scoring of a regressor, or of the second of two classes; a forest without balanced classes has a score per class."""
    forest, trees = mojo.text("algo") == "drf", mojo.count("n_trees", _MOST_TREES)
    names, ones = [f"trees/t00_{number:03d}.bin" for number in range(trees)], [1.0] * trees
    if classes and mojo.flag("balance_classes"):
        one, two = _corrections(mojo, 2)
        odds = Odds(one, two, of_probability=not forest)
        if not forest:
            _link(mojo)
        start, sign = (1.0, -1.0) if forest else (mojo.number("init_f"), 1.0)
        return _Scoring(
            names, [0] * trees, ones, [start], Calibrated(odds), (sign,), shares_only=forest, notes=(_BALANCED,)
        )
    if forest and classes:
        # The trees of a forest sum to the first class's probability; the second class gets 1 minus it.
        return _Scoring(names, [-1] * trees, ones, [0.0, 1.0], Identity(), (1.0, -1.0))
    base = [0.0] if forest else [mojo.number("init_f")]
    return _Scoring(names, [0] * trees, ones, base, Identity() if forest else _link(mojo))


def _doubled(mojo: Mojo, classes: int) -> bool:
    """True if a forest of two classes has separate trees for each class."""
    return classes == 2 and mojo.text("algo") == "drf" and mojo.flag("binomial_double_trees")


def _many_classes(mojo: Mojo, classes: int, encoding: Encoding | None) -> _Scoring:
    """The scoring of three or more classes, or of both of two classes. If a round lacks a class's tree, its file is missing."""
    forest, rounds = mojo.text("algo") == "drf", mojo.count("n_trees", _MOST_TREES)
    if rounds * classes > _MOST_TREES:
        raise mojo.error(f"{rounds} rounds of {classes} trees are more than {_MOST_TREES}")
    named = [(f"trees/t{c:02d}_{r:03d}.bin", c) for c in range(classes) for r in range(rounds)]
    there = set(mojo.archive.names)
    kept = [(name, c) for name, c in named if name in there]
    if not kept:
        raise mojo.error("the model has no trees", "train it again")
    balanced = mojo.flag("balance_classes")
    factors = _corrections(mojo, classes) if balanced else [1.0] * classes
    outputs = [c for _, c in kept]
    if classes == 2:
        one, two = (Fraction(factor) for factor in factors)
        ties: HashedTies | CutShares = CutShares(_cutoff(mojo), (one, two))
        factors = [1.0, 1.0]
    else:
        ties = HashedTies(tuple(_shares(mojo, classes)), () if encoding is None else encoding.ones)
    return _Scoring(
        [name for name, _ in kept],
        outputs,
        [factors[c] if forest else 1.0 for c in outputs],
        [0.0] * classes if forest else [math.log(factor) for factor in factors],
        Raw() if forest else Softmax(),
        ties=ties,
        weighted=forest and balanced and classes > 2,
        notes=(*([_SHARES] if forest else []), _BOTH if classes == 2 else _TIES),
    )


def _shares(mojo: Mojo, classes: int) -> list[float]:
    """The shares of the classes in the data."""
    shares = mojo.numbers("prior_class_distrib", classes)
    if min(shares) < 0:
        raise mojo.error("`prior_class_distrib` has a share below 0")
    return shares


def _corrections(mojo: Mojo, classes: int) -> list[float]:
    """The factor for each class's probability; H2O leaves a probability unchanged if one of the shares is 0."""
    data, trained = _shares(mojo, classes), mojo.numbers("model_class_distrib", classes)
    found = [one / other if one and other else 1.0 for one, other in zip(data, trained, strict=True)]
    if not all(_LEAST <= factor <= 1 / _LEAST for factor in found):
        raise mojo.error("the shares of classes in the data and in training are too far apart, or below 0")
    return found


def _plain(text: str) -> object:
    """The text, or None if the text marks an empty field."""
    return None if text in ("null", "[]", "") else text


def _refuse(mojo: Mojo) -> None:
    """Refuses unsupported features by name."""
    algorithm = mojo.text("algo")
    if algorithm not in _ALGORITHMS:
        if algorithm == "xgboost":
            raise mojo.error(
                "a MOJO of `xgboost` contains a model in XGBoost's old binary format, over columns that H2O has encoded",
                f"train H2O's own gradient boosting, or XGBoost by itself; or {_ANOTHER}",
            )
        raise mojo.error(
            f"a MOJO of `{algorithm[:40]}` is not read", f"supported: {', '.join(_ALGORITHMS)}; {_ANOTHER}"
        )
    if mojo.text("algorithm") != _ALGORITHMS[algorithm]:
        raise mojo.error(f"`algo` is {algorithm} and `algorithm` {mojo.text('algorithm')[:60]}")
    version = mojo.number("mojo_version")
    if not 1.2 <= version <= 1.4:
        raise mojo.error(f"MOJO version {version:g} is not supported (1.2 to 1.4 are)", "save it with h2o 3.22 to 3.46")
    if mojo.text("endianness") != "LITTLE_ENDIAN":
        raise mojo.error("its numbers are big-endian", "save it on a little-endian machine")
    if mojo.info.get("_genmodel_encoding", "AUTO") not in (_ENCODINGS if version >= 1.4 else _ENCODINGS[:2]):
        raise mojo.error(
            f"the encoding {mojo.text('_genmodel_encoding')[:40]} of categories is not read in version {version:g} of MOJO",
            "train with categorical_encoding=Enum, or OneHotExplicit (from version 1.4 on)",
        )
    if not mojo.flag("supervised"):
        raise mojo.error("a model without a target is not supported", _ANOTHER)
    classes = mojo.count("n_classes", _MOST_CLASSES)
    several = classes if classes > 2 or _doubled(mojo, classes) else 1
    per_class = mojo.info.get("n_trees_per_class", str(several))
    if per_class != str(several):
        raise mojo.error(f"each round has {per_class[:40]} trees for {classes} classes")


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


def _features(mojo: Mojo, encoding: Encoding | None) -> tuple[tuple[Feature, ...], tuple[str, ...]]:
    """The columns of rows, and notes for users."""
    count = mojo.count("n_features", MAX_FEATURES)
    if not 0 < count < len(mojo.columns):  # the columns of weights and folds precede the target, the last column
        raise mojo.error(f"there are {count} features, but {len(mojo.columns)} columns with the target")
    names = mojo.columns[:count] if encoding is None else encoding.names
    features, notes = list(feature_tuple(names, mojo.place)), []
    for column in range(len(names)):
        listed = encoding is None and column in mojo.domains
        labels = mojo.labels(column) if listed else None if encoding is None else encoding.labels[column]
        if labels is None:
            continue
        if any('"' in label or "\\" in label for label in labels):
            notes.append(f"categories of `{names[column]}` have quotes or backslashes: use their codes")
        features[column] = as_categorical(features[column], len(labels), _labels(labels))
    if "calib_method" in mojo.info:
        notes.append("questions use H2O's uncalibrated probabilities, not the calibrated probabilities (cal_p1)")
    return tuple(features), tuple(notes)


def _labels(texts: tuple[str, ...]) -> tuple[str, ...] | tuple[int | float, ...] | None:
    """The categories as they appear in tables; None if they are unknown."""
    return None if any('"' in text or "\\" in text for text in texts) else labels_of_texts(texts)


def _classes(mojo: Mojo) -> tuple[str | int, ...]:
    """The classes; empty for a regressor. For two classes, the score belongs to the second class."""
    category, count = mojo.text("category"), mojo.count("n_classes", _MOST_CLASSES)
    if (category, count) == ("Regression", 1):
        return ()
    told, family = ("Binomial", "bernoulli") if count == 2 else ("Multinomial", "multinomial")
    if category != told or count < 2 or (mojo.text("algo") == "gbm" and mojo.text("distribution") != family):
        kind = mojo.info.get("distribution", "")
        raise mojo.error(f"{count} classes of a {category[:40]} {kind[:40]} model are not read", _ANOTHER)
    target = len(mojo.columns) - 1
    if target not in mojo.domains:
        raise mojo.error("the classes have no names")
    found = _labels(mojo.labels(target))
    if found is None or len(set(found)) != count or len(found) != count:
        raise mojo.error(f"the names of the {count} classes cannot be represented", "train with other names")
    whole = [label for label in found if isinstance(label, int)]
    return tuple(whole) if len(whole) == count else tuple(map(str, found))


def _cutoff(mojo: Mojo) -> Fraction:
    """The least probability at which the second class is predicted."""
    threshold = mojo.number("default_threshold")
    if not 0 < threshold < 1:
        raise mojo.error(f"a threshold of {threshold:g}: every row gets the same class", "train it again")
    return Fraction(repr(threshold))
