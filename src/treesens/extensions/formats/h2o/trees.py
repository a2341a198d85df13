"""Reads the trees of a MOJO from bytes; each node is followed by its left subtree and then by its right subtree.

A node consists of its type (one byte: bits 0, 1 and 4 to 7 give the kinds of its children, bits 2 and 3 the kind of split), the
column (two bytes; 65535: a leaf) and the direction of missing values (one byte). The split (a float32 or a set of categories)
follows, and then, unless the left child is a leaf, the length of the left subtree. A number goes right if it is not below the
float. A category goes right if it is in the set. A category beyond the range of the set, or not listed by the column, goes to
the branch of missing values (`SharedTreeMojoModel.scoreTree` of h2o-genmodel 3.46).

H2O may encode categories before the trees use them (`categorical_encoding="OneHotExplicit"`). A categorical column becomes one
column per label, which is 1 for this label and 0 for all other labels, and a column `NAME.missing(NA)` for missing values;
these columns follow the numeric columns (`OneHotEncoder` of h2o-genmodel 3.46). An unlisted label counts as missing, if the
library accepts such labels. A threshold on such a column is therefore a set of categories.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from treesens.errors import ModelError
from treesens.extensions.formats.h2o.archive import Mojo
from treesens.frontends.columns import MAX_CATEGORIES, MAX_FEATURES, Growing, Nodes, check_set_bytes

_LEAF = 65535
_NA_VS_REST, _NA_LEFT, _LEFT = 1, 2, 4
_DIRECTIONS = range(6)
_DAMAGED = "the file is damaged; save the model again"


@dataclass(frozen=True)
class _Set:
    """The categories that go right: `members`, bool[n], has an entry for each code from `first` on."""

    first: int
    members: NDArray[np.bool_]

    def goes_left(self, categories: int, missing_left: bool) -> NDArray[np.bool_]:
        """Flags for codes that go left, bool[categories + 1]; the last entry is for unlisted categories."""
        left = np.full(categories + 1, missing_left)
        end = min(self.first + len(self.members), categories)
        if self.first < end:
            left[self.first : end] = ~self.members[: end - self.first]
        return left


@dataclass
class _Open:
    """A node whose left subtree has been read."""

    node: int
    start: int
    leaf: bool
    swapped: bool
    seen: _Set | None


class _Bytes:
    """The bytes of a tree, read from the start. Raises ModelError if the bytes end too early."""

    def __init__(self, data: bytes, place: str) -> None:
        self.data, self.place, self.at = data, place, 0

    def number(self, size: int) -> int:
        """A little-endian unsigned integer of `size` bytes."""
        return int.from_bytes(self.take(size), "little")

    def real(self) -> float:
        """A float32."""
        return float(struct.unpack("<f", self.take(4))[0])

    def take(self, size: int) -> bytes:
        if size > len(self.data) - self.at:
            raise self.error("the tree ends in the middle of a node")
        self.at += size
        return self.data[self.at - size : self.at]

    def error(self, message: str) -> ModelError:
        return ModelError(message, place=f"{self.place}, byte {self.at}", remedy=_DAMAGED)


def tree_of(data: bytes, categories: Sequence[int], place: str, signs: Sequence[float] = (1.0,)) -> Nodes:
    """The tree of a file; `categories` holds counts by column (0: number). A leaf adds `signs[k]` * its value to output k."""
    source, growing = _Bytes(data, place), Growing(len(signs))
    waiting: list[_Open] = []
    below: list[tuple[_Open, bool]] = []  # the parent and the side of the next node

    def attach(number: int) -> None:
        if not below:
            return
        parent, right = below.pop()
        side = growing.right if right != parent.swapped else growing.left
        side[parent.node] = number

    seen: _Set | None = None
    leaf = False
    while True:
        if leaf:
            attach(growing.leaf(_values(source, signs)))
        else:
            kind, column = source.number(1), source.number(2)
            if column == _LEAF:
                attach(growing.leaf(_values(source, signs)))
            else:
                opened, leaf, seen = _node(source, growing, kind, column, categories, seen)
                attach(opened.node)
                waiting.append(opened)
                below.append((opened, False))
                continue
        # A side has ended, so the right side of the last open node must begin here.
        if not waiting:
            break
        last = waiting.pop()
        if last.start >= 0 and source.at != last.start:
            raise source.error("the left subtree of a node does not end where its right subtree begins")
        below.append((last, True))
        leaf, seen = last.leaf, last.seen
    if source.at != len(data):
        raise source.error("further bytes follow the tree")
    return growing.nodes()


def _node(
    source: _Bytes, growing: Growing, kind: int, column: int, categories: Sequence[int], seen: _Set | None
) -> tuple[_Open, bool, _Set | None]:
    """The node that starts here, whether its left child is a leaf, and the last set on the path to the node."""
    if column >= len(categories):
        raise source.error(f"a node splits on column {column} of {len(categories)}")
    direction = source.number(1)
    if direction not in _DIRECTIONS:
        raise source.error(f"unknown direction {direction} of missing values")
    missing_left = direction in (_NA_LEFT, _LEFT)
    asked = kind & 12
    if asked == 4 or (asked and not categories[column]):
        raise source.error("a node has an unknown kind of split")
    swapped = direction == _NA_VS_REST and not categories[column]
    if direction == _NA_VS_REST:
        # If this node's type is a set, h2o-genmodel uses the range of the last set on the path.
        old = seen if asked else None
        node = growing.inner(column, -math.inf if swapped else 0.0, missing_left=swapped)
        if not swapped:
            everything = np.ones(categories[column] + 1, np.bool_)
            everything[-1] = False
            if old is not None:
                everything[: old.first] = False
                everything[old.first + len(old.members) :] = False
            growing.sets[node] = everything
    elif asked:
        seen = _set(source, short=asked == 8)
        node = growing.inner(column, 0.0, missing_left=missing_left)
        growing.sets[node] = seen.goes_left(categories[column], missing_left)
    else:
        threshold = source.real()
        if math.isnan(threshold):
            raise source.error("a threshold is NaN")
        node = growing.inner(column, 0.0 if categories[column] else threshold, missing_left=missing_left)
        if categories[column]:
            codes = np.arange(categories[column] + 1)
            growing.sets[node] = np.where(codes < categories[column], codes < threshold, missing_left)
    left = kind & 51
    start = -1
    if left <= 3:
        size = source.number(left + 1)
        start = source.at + size
    elif left != 48:
        raise source.error("a child of a node has an unknown kind")
    right = (kind & 0xC0) >> 2
    return _Open(node, start, bool(right & 16), swapped, seen), left == 48, seen


def _values(source: _Bytes, signs: Sequence[float]) -> list[float]:
    """The values of a leaf."""
    value = source.real()
    return [sign * value for sign in signs]


def _set(source: _Bytes, *, short: bool) -> _Set:
    """Reads categories as bits: 32 bits from the first category, or a given number of bits from a given category."""
    first, bits = (0, 32) if short else (source.number(2), source.number(4))
    if bits > 8 * len(source.data):
        raise source.error(f"a set of {bits} categories is longer than the tree")
    packed = np.frombuffer(source.take((bits + 7) // 8), np.uint8)
    return _Set(first, np.unpackbits(packed, bitorder="little")[:bits].astype(np.bool_))


ONE_HOT = "OneHotExplicit"
_NAMES, _LABELS, _COUNT = "_orig_names", "_orig_domain_values", "_m_orig_domain_values_"
_MISSING = "missing(NA)"


@dataclass(frozen=True)
class Encoding:
    """The columns of the table before encoding: their names, and their labels (None for a numeric column)."""

    names: tuple[str, ...]
    labels: tuple[tuple[str, ...] | None, ...]

    @property
    def made(self) -> list[tuple[int, int]]:
        """For each column that trees use, the column of the table that it encodes, and the category (-1 for a number).

        Numbers come before categories.
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
        """The entries of `made`, each with the number of labels of its column (0 for a number)."""
        return tuple((number, code, len(self.labels[number] or ())) for number, code in self.made)

    def before(self, nodes: Nodes, place: str) -> Nodes:
        """Converts splits of the trees to splits on the columns of the table."""
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
    """The table's columns if trees use encoded columns; otherwise None. Raises ModelError if parts of the file disagree."""
    if mojo.info.get("_genmodel_encoding", "AUTO") != ONE_HOT:
        return None
    # As in the table, the last of these columns is the target.
    count = mojo.count(f"_n{_NAMES}", MAX_FEATURES + 1)
    names = _lines(mojo, _NAMES, count)[:-1]
    if mojo.count(f"_n{_LABELS}", MAX_FEATURES + 1) != count or not names:
        raise mojo.error(f"there are {count} columns before encoding, but labels for a different number of columns")
    labels = []
    for number in range(len(names)):
        size = mojo.count(f"{_COUNT}{number}", MAX_CATEGORIES)
        if not size and f"{_LABELS}_{number}" in mojo.archive.names:
            raise mojo.error(f"the column `{names[number][:60]}` has no categories", "train without the column")
        labels.append(_lines(mojo, f"{_LABELS}_{number}", size) if size else None)
    found = Encoding(names, tuple(labels))
    encoded, seen = _encoded(found), mojo.columns[: mojo.count("n_features", MAX_FEATURES)]
    if encoded != seen or len(seen) != len(mojo.columns) - 1:
        raise mojo.error(
            "the columns of the trees differ from the columns of h2o-genmodel's encoders (numbers, then categories)",
            "train without a column of weights or folds, or with categorical_encoding=Enum",
        )
    return found


def _encoded(encoding: Encoding) -> list[str]:
    """The names of the columns that trees use."""
    result: list[str] = []
    for number, code in encoding.made:
        name, labels = encoding.names[number], encoding.labels[number]
        result.append(name if labels is None else f"{name}.{[*labels, _MISSING][code]}")
    return result


def _lines(mojo: Mojo, name: str, count: int) -> tuple[str, ...]:
    lines = mojo.archive.text(name).split("\n")
    lines = [line.removesuffix("\r") for line in (lines[:-1] if lines[-1] == "" else lines)]
    if len(lines) != count:
        raise mojo.error(f"`{name}` has {len(lines)} lines, but the index says {count}")
    return tuple(lines)


def without_encoding(names: Iterable[str]) -> list[str]:
    """The names of the index fields, without the fields that hold numbers of labels."""
    return [name for name in names if not (name.startswith(_COUNT) and name.removeprefix(_COUNT).isdigit())]
