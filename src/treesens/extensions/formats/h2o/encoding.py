"""Categories that H2O has made columns of before its trees see them (`categorical_encoding="OneHotExplicit"`).

A category becomes a column for each of its labels, 1 for this label and 0 for others, and one more, `NAME.missing(NA)`,
for missing values; they stand after the columns of numbers (`OneHotEncoder` of h2o-genmodel 3.46). A label that is not listed
is a missing one, if the library is asked to take it at all. So a threshold on such a column is a set of categories.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

import numpy as np

from treesens.extensions.formats.h2o.archive import Mojo
from treesens.frontends.columns import MAX_CATEGORIES, MAX_FEATURES, Nodes, check_set_bytes

ONE_HOT = "OneHotExplicit"
_NAMES, _LABELS, _COUNT = "_orig_names", "_orig_domain_values", "_m_orig_domain_values_"
_MISSING = "missing(NA)"


@dataclass(frozen=True)
class Encoding:
    """Columns of the table: their names, and their labels (None: a number)."""

    names: tuple[str, ...]
    labels: tuple[tuple[str, ...] | None, ...]

    @property
    def made(self) -> list[tuple[int, int]]:
        """Each column that trees see: the column of the table that it is made of, and which category it is (-1: a number).

        Numbers stand before categories.
        """
        numbers = [(number, -1) for number, labels in enumerate(self.labels) if labels is None]
        return numbers + [
            (number, code)
            for number, labels in enumerate(self.labels)
            if labels is not None
            for code in range(len(labels) + 1)
        ]

    @property
    def ones(self) -> tuple[tuple[int, int, int], ...]:
        """The same, with the number of labels (0: a number)."""
        return tuple((number, code, len(self.labels[number] or ())) for number, code in self.made)

    def before(self, nodes: Nodes, place: str) -> Nodes:
        """The nodes over the columns of the table."""
        made = self.made
        named = [node for node, f in enumerate(nodes.feature.tolist()) if f >= 0 and made[f][1] >= 0]
        check_set_bytes(sum(len(self.labels[made[int(nodes.feature[n])][0]] or ()) + 1 for n in named), place)
        sets, default_left = dict(nodes.left_sets), nodes.default_left.copy()
        for node in named:
            column, code = made[int(nodes.feature[node])]
            value = np.zeros(len(self.labels[column] or ()) + 1)
            value[code] = 1.0
            sets[node] = value < nodes.threshold[node]
            default_left[node] = sets[node][-1]
        columns = np.array([column for column, _ in made])
        feature = np.where(nodes.feature >= 0, columns[np.maximum(nodes.feature, 0)], -1)
        return replace(nodes, feature=feature, left_sets=sets, default_left=default_left)


def encoding_of(mojo: Mojo) -> Encoding | None:
    """The columns of the table, if trees see others; None if they see these. ModelError if the file contradicts itself."""
    if mojo.info.get("_genmodel_encoding", "AUTO") != ONE_HOT:
        return None
    # The target is the last of the columns here, too.
    count = mojo.count(f"_n{_NAMES}", MAX_FEATURES + 1)
    names = _lines(mojo, _NAMES, count)[:-1]
    if mojo.count(f"_n{_LABELS}", MAX_FEATURES + 1) != count or not names:
        raise mojo.error(f"{count} columns before their encoding, and labels of another number")
    labels = []
    for number in range(len(names)):
        size = mojo.count(f"{_COUNT}{number}", MAX_CATEGORIES)
        if not size and f"{_LABELS}_{number}" in mojo.archive.names:
            raise mojo.error(f"the column `{names[number][:60]}` has no categories", "leave it out, and train again")
        labels.append(_lines(mojo, f"{_LABELS}_{number}", size) if size else None)
    found = Encoding(names, tuple(labels))
    encoded, seen = _encoded(found), mojo.columns[: mojo.count("n_features", MAX_FEATURES)]
    if encoded != seen or len(seen) != len(mojo.columns) - 1:
        raise mojo.error(
            "the columns of the trees are not those that the encoders of h2o-genmodel make (numbers, then categories)",
            "train without a column of weights or folds, or with categorical_encoding=Enum",
        )
    return found


def _encoded(encoding: Encoding) -> list[str]:
    """The names of the columns that trees see."""
    result: list[str] = []
    for number, code in encoding.made:
        name, labels = encoding.names[number], encoding.labels[number]
        result.append(name if labels is None else f"{name}.{[*labels, _MISSING][code]}")
    return result


def _lines(mojo: Mojo, name: str, count: int) -> tuple[str, ...]:
    lines = mojo.archive.text(name).split("\n")
    lines = [line.removesuffix("\r") for line in (lines[:-1] if lines[-1] == "" else lines)]
    if len(lines) != count:
        raise mojo.error(f"`{name}` has {len(lines)} lines, and the index says {count}")
    return tuple(lines)


def without_encoding(names: Iterable[str]) -> list[str]:
    """The fields of the index that do not say how many labels a column has."""
    return [name for name in names if not (name.startswith(_COUNT) and name.removeprefix(_COUNT).isdigit())]
