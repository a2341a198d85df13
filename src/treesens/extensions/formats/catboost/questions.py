"""The splits of a CatBoost model: on a single feature, or on a table over several features.

How CatBoost splits (version 1.2, catboost/libs/model): a split on a number is `x > border`, and a one-hot split is `category =
value`. A CTR split compares a statistic of a category, or of a combination, with a border. The statistic is in a table whose
keys are hashes: h(a, b) = m (a + m b) modulo 2^64 over the 32-bit hashes of the categories, sign-extended, and then over the
outcomes of the splits in the combination. Missing keys have the statistic of zero observations. All of this is float32
(Prokhorenkova, Gusev, Vorobev, Dorogush and Gulin, NeurIPS 2018).
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from treesens.compiler.base.floats import float32_of_decimals
from treesens.frontends.documents import Field

Bools = NDArray[np.bool_]

MAX_TABLE = 1 << 20
"""The maximum number of combinations in a table."""

_MULTIPLIER = 0x4906BA494954CB65
_WORD = (1 << 64) - 1


@dataclass(frozen=True)
class Above:
    """The split x > border, for the number x in a column."""

    column: int
    border: float

    @property
    def columns(self) -> tuple[int, ...]:
        return (self.column,)


@dataclass(frozen=True, eq=False)
class Among:
    """The split on the categories marked in `yes`, bool[codes + 1]; the last entry is for all other categories."""

    column: int
    yes: Bools

    @property
    def columns(self) -> tuple[int, ...]:
        return (self.column,)


@dataclass(frozen=True, eq=False)
class Table:
    """The outcome `yes` per combination: axes of length codes + 1 for each of `categories`, and 2 for each of `conditions`."""

    categories: tuple[int, ...]
    conditions: tuple[Above | Among, ...]
    yes: Bools

    @property
    def columns(self) -> tuple[int, ...]:
        return self.categories + tuple(c.column for c in self.conditions)


Question = Above | Among | Table


@dataclass(frozen=True, eq=False)
class Categories:
    """The categories of the model: hashes in the order of their codes, per column."""

    hashes: Mapping[int, Sequence[int]]

    def among(self, column: int, value: int) -> Among:
        """The split on the category with this hash."""
        return Among(column, np.array([h == value for h in self.hashes[column]] + [False]))


def signed(value: int) -> int:
    """A 32-bit hash as the signed number that tables and splits contain."""
    return value - (1 << 32) if value >= 1 << 31 else value


def combined(parts: Sequence[int]) -> int:
    """The key of a combination in a table of CTRs."""
    key = 0
    for part in parts:
        key = _MULTIPLIER * ((key + _MULTIPLIER * (part & _WORD)) & _WORD) & _WORD
    return key


def key_of(entry: Field) -> int:
    """A 64-bit key of a table, which the file writes as text."""
    text = entry.value
    if not isinstance(text, str) or not text.isascii() or not text.isdigit() or len(text) > 20:
        raise entry.error("expected a hash")
    return int(text)


def float_question(split: Field, columns: Mapping[int, int]) -> Above:
    """A split on a number."""
    number = split["float_feature_index"].integer()
    if number not in columns:
        raise split["float_feature_index"].error("a split uses a feature that does not exist")
    return Above(columns[number], border_of(split["border"]))


def border_of(border: Field) -> float:
    """A border, which is a float32."""
    narrow, unsure = float32_of_decimals(Field([border.value], border.place, border.path).floats())
    if unsure.any() or np.isnan(narrow).any():
        raise border.error("the border is not a float32")
    return float(narrow[0])


@dataclass(frozen=True, eq=False)
class Statistic:
    """A CTR: its features, and the statistic of every combination, `value`, float32 with the axes of a `Table`."""

    categories: tuple[int, ...]
    conditions: tuple[Above | Among, ...]
    value: NDArray[np.float32]

    def above(self, border: float) -> Question:
        """The split that compares the statistic with a border."""
        yes = self.value > np.float32(border)
        if len(self.categories) == 1 and not self.conditions:
            return Among(self.categories[0], yes)
        return Table(self.categories, self.conditions, yes)


def statistic(
    ctr: Field, tables: Field, floats: Mapping[int, int], coded: Mapping[int, int], known: Categories
) -> Statistic:
    """A CTR with its table. `floats` and `coded` map numeric and categorical features to their columns."""
    categories: list[int] = []
    conditions: list[Above | Among] = []
    for element in ctr["elements"].items():
        kind = element["combination_element"].text()
        if kind == "float_feature":
            conditions.append(float_question(element, floats))
            continue
        number = element["cat_feature_index"].integer()
        if number not in coded or kind not in ("cat_feature_value", "cat_feature_exact_value"):
            raise element.error("unknown element of a combination")
        if kind == "cat_feature_value":
            categories.append(coded[number])
        else:
            conditions.append(known.among(coded[number], element["value"].integer() & 0xFFFFFFFF))
    if not categories or len(set(categories)) < len(categories):
        raise ctr["elements"].error("a combination has no categories, or repeats one")
    sizes = [len(known.hashes[column]) + 1 for column in categories] + [2] * len(conditions)
    if math.prod(sizes) > MAX_TABLE:
        raise ctr["elements"].error(
            f"a combination of features has more than {MAX_TABLE} values", "train with max_ctr_complexity=1"
        )
    table = _Table(ctr, tables[ctr["identifier"].text()])
    value = np.full(sizes, table.empty, dtype=np.float32)
    hashes = [known.hashes[column] for column in categories]
    for place in itertools.product(*(range(len(one)) for one in hashes), *(range(2) for _ in conditions)):
        parts = [signed(one[k]) for one, k in zip(hashes, place, strict=False)]
        row = table.rows.get(combined([*parts, *place[len(hashes) :]]))
        if row is not None:
            value[place] = table.value(row)
    return Statistic(tuple(categories), tuple(conditions), value)


class _Table:
    """The table of a CTR: the counts by key, and the formula of the statistic."""

    def __init__(self, ctr: Field, data: Field) -> None:
        self.kind = ctr["ctr_type"].text()
        if self.kind not in ("Borders", "Buckets", "Counter", "FeatureFreq", "BinarizedTargetMeanValue"):
            raise ctr["ctr_type"].error(f"CTRs of type `{self.kind[:40]}` are not supported", "train without them")
        single = {
            name: np.float32(Field([ctr[name].value], ctr.place, ctr.path).floats()[0])
            for name in ("prior_numerator", "prior_denomerator", "shift", "scale")
        }
        self.prior, self.weight = single["prior_numerator"], single["prior_denomerator"]
        self.shift, self.scale = single["shift"], single["scale"]
        self.border = ctr["target_border_idx"].integer()
        self.total = data["counter_denominator"].integer()
        stride, entries = data["hash_stride"].integer(), list(data["hash_map"].items())
        if stride < 2 or len(entries) % stride:
            raise data["hash_map"].error("the table has no rows of this length")
        self.rows: dict[int, list[float]] = {}
        for start in range(0, len(entries), stride):
            key = key_of(entries[start])
            counts = [
                Field([entry.value], entry.place, entry.path).floats()[0]
                for entry in entries[start + 1 : start + stride]
            ]
            # The key of an empty slot has all bits set.
            if key != _WORD:
                self.rows[key] = [float(count) for count in counts]
        if self.kind in ("Borders", "Buckets") and not 0 <= self.border < stride - 1:
            raise ctr["target_border_idx"].error("the table has no counts of this class")
        if self.kind == "BinarizedTargetMeanValue" and stride != 3:
            raise data["hash_stride"].error("expected a sum and a count")

    @property
    def empty(self) -> np.float32:
        """The statistic of missing keys."""
        return self._of(0.0, float(self.total) if self.kind in ("Counter", "FeatureFreq") else 0.0)

    def value(self, row: Sequence[float]) -> np.float32:
        """The statistic of a row."""
        if self.kind in ("Counter", "FeatureFreq"):
            return self._of(row[0], float(self.total))
        if self.kind == "BinarizedTargetMeanValue":
            return self._of(row[0], row[1])
        good = row[self.border] if self.kind == "Buckets" else sum(row[self.border + 1 :])
        return self._of(good, sum(row))

    def _of(self, good: float, total: float) -> np.float32:
        """The statistic (good + prior) / (total + prior weight), shifted and scaled, each step in float32 (TModelCtr::Calc)."""
        ratio = (np.float32(good) + self.prior) / (np.float32(total) + self.weight)
        return np.float32((ratio + self.shift) * self.scale)
