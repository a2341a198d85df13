"""LightGBM's text format: a header of `key=value` lines, a block of such lines for each tree, and parameters at the end."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from treesens.compiler.base.floats import whole_of
from treesens.errors import ModelError
from treesens.frontends.columns import MAX_CATEGORIES, bits_of
from treesens.frontends.documents import check_names
from treesens.frontends.lightgbm.known import TABLE
from treesens.frontends.lightgbm.model import LightGBMHeader, LightGBMTree, link_of

_VERSIONS = ("v2", "v3", "v4")
_MAX_WORDS = 1 << 22


@dataclass(frozen=True)
class Block:
    """The `key=value` lines of the header or of one tree, with the number of the first line."""

    values: dict[str, str]
    place: str
    line: int

    def error(
        self, message: str, remedy: str = "the file is damaged; save the model again with LightGBM"
    ) -> ModelError:
        return ModelError(message, place=f"{self.place}:{self.line}", remedy=remedy)

    def text(self, key: str) -> str:
        if key not in self.values:
            raise self.error(f"`{key}=` is missing")
        return self.values[key]

    def integer(self, key: str) -> int:
        whole = whole_of(self.text(key))
        if whole is None:
            raise self.error(f"`{key}` is not a whole number")
        return whole

    def array(self, key: str, dtype: Any, count: int) -> NDArray[Any]:
        """Numbers separated by blanks, exactly `count` of them."""
        words = self.text(key).split() if count else []
        if len(words) != count:
            raise self.error(f"`{key}` has {len(words)} entries, not {count}")
        try:
            return np.array(words, dtype=dtype)
        except (ValueError, OverflowError):
            raise self.error(f"`{key}` contains a value that is not a number") from None


def read_text(data: bytes, place: str) -> tuple[LightGBMHeader, list[LightGBMTree]]:
    """Header and trees of a model file. Raises ModelError with the line if the file is invalid."""
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise ModelError("the file is not UTF-8 text", place=f"{place}: byte {error.start}") from None
    blocks, rest, ended = _blocks(text, place)
    head = blocks[0]
    version = head.values.get("version", "")
    if version not in _VERSIONS:
        raise ModelError(
            f"LightGBM text of version `{version[:20]}` is not known here",
            place=f"{place}:{head.line}",
            remedy=f"known: {', '.join(_VERSIONS)}; load the model with LightGBM 4 and save it again",
        )
    for i, block in enumerate(blocks[1:]):
        if block.integer("Tree") != i:
            raise block.error(f"expected tree {i}")
    sizes = head.values.get("tree_sizes")
    if sizes is not None and len(sizes.split()) != len(blocks) - 1:
        raise head.error(f"the file announces {len(sizes.split())} trees, but contains {len(blocks) - 1}")
    check_names(TABLE, head.values, place, "header")
    for block in blocks[1:]:
        check_names(TABLE, block.values, f"{place}:{block.line}", "tree")
    features = head.integer("max_feature_idx") + 1
    header = _header(head, features, rest)
    if header.average and not ended and not link_of(header, place)[1].is_linear:
        raise head.error(
            f"random forests of LightGBM before 2.2 average predictions of `{header.objective}`, and later versions scores",
            "train it again: current LightGBM predicts other values with this file",
        )
    return header, [_tree(block, features) for block in blocks[1:]]


def _blocks(text: str, place: str) -> tuple[list[Block], list[str], bool]:
    """The header and one block per tree, the lines after the trees, and True unless the version is before 2.2, where the split
    counts of features follow the last tree.
    """
    lines = text.splitlines()
    blocks = [Block({}, place, 1)]
    for number, line in enumerate(lines, 1):
        if line in ("end of trees", "feature importances:"):
            return blocks, lines[number:], line == "end of trees"
        key, equals, value = line.partition("=")
        if key == "Tree" and equals:
            blocks.append(Block({}, place, number))
        if equals:
            if key in blocks[-1].values:
                raise ModelError(f"`{key[:40]}=` appears twice", place=f"{place}:{number}")
            blocks[-1].values[key] = value
        elif line.strip():
            blocks[-1].values[line.strip()] = ""
    raise ModelError(
        "the file ends in the middle of the model", place=f"{place}:{len(lines)}", remedy="copy or save it again"
    )


def _header(head: Block, features: int, rest: list[str]) -> LightGBMHeader:
    names = head.text("feature_names").split()
    infos = head.text("feature_infos").split()
    if not len(names) == len(infos) == features:
        raise head.error(f"expected {features} names and infos, found {len(names)} and {len(infos)}")
    found = [line.removeprefix("pandas_categorical:") for line in rest if line.startswith("pandas_categorical:")]
    try:
        pandas = json.loads(found[-1]) if found else []
    except (ValueError, RecursionError):
        raise head.error("`pandas_categorical` is not JSON") from None
    return LightGBMHeader(
        version=head.values.get("version", ""),
        outputs=head.integer("num_tree_per_iteration"),
        objective=head.values.get("objective", ""),
        average="average_output" in head.values,
        names=names,
        categories=[_known_codes(head, name, info) for name, info in zip(names, infos, strict=True)],
        ranges=[_range(head, info) for info in infos],
        pandas=pandas if isinstance(pandas, list) and all(isinstance(p, list) for p in pandas) else [],
        monotone=head.values.get("monotone_constraints"),
    )


def _known_codes(head: Block, name: str, info: str) -> NDArray[np.int64] | None:
    """The codes of a categorical feature, written `3:1:2`; None for an ordered feature, written `[low:high]` or `none`."""
    if info == "none" or info.startswith("["):
        return None
    try:
        codes = np.array(info.split(":"), dtype=np.int64)
    except (ValueError, OverflowError):
        raise head.error(f"feature info `{info[:40]}` is not understood") from None
    return checked_codes(codes[codes >= 0], head.error, f"the categorical column `{name}`")


def _range(head: Block, info: str) -> tuple[float, float] | None:
    """The least and greatest numbers of an ordered feature; None if training ignored it."""
    if not info.startswith("["):
        return None
    low, _, high = info.strip("[]").partition(":")
    try:
        return float(low), float(high)
    except ValueError:
        raise head.error(f"feature info `{info[:40]}` is not understood") from None


def checked_codes(codes: NDArray[np.int64], error: Any, column: str = "a category") -> NDArray[np.int64]:
    """Category codes within the range of bit sets."""
    if (codes < 0).any():
        raise error("a category code is out of range")
    if (top := int(codes.max(initial=0))) >= MAX_CATEGORIES:
        raise error(
            f"{column} has the code {top}; treesens reads codes below {MAX_CATEGORIES:,}",
            "train with consecutive codes, e.g. pandas' astype('category')",
        )
    return codes


def _tree(block: Block, features: int) -> LightGBMTree:
    leaves = block.integer("num_leaves")
    if not 0 < leaves <= len(block.values.get("leaf_value", "")) + 1:
        raise block.error(f"{leaves} leaves are not possible")
    if block.values.get("is_linear", "0") != "0":
        raise ModelError(
            "linear trees have no constant leaves and are not supported",
            place=f"{block.place}:{block.line}",
            remedy="train with linear_tree=false",
        )
    n = leaves - 1
    kinds = block.array("decision_type", np.int64, n) if n else np.zeros(0, np.int64)
    missing = (kinds >> 2) & 3
    if ((kinds < 0) | (kinds > 15) | (missing == 3)).any():
        raise block.error("an unknown decision_type")
    feature, left, right = (block.array(key, np.int64, n) for key in ("split_feature", "left_child", "right_child"))
    if ((feature < 0) | (feature >= features)).any():
        raise block.error("a split uses a feature that does not exist")
    threshold = block.array("threshold", np.float64, n)
    if np.isnan(threshold).any():
        raise block.error("a threshold is NaN")
    if ((left < -leaves) | (left >= n) | (right < -leaves) | (right >= n)).any():
        raise block.error("a child does not exist")
    return LightGBMTree(
        feature=feature,
        threshold=threshold,
        default_left=(kinds & 2) != 0,
        missing=missing,
        left=left,
        right=right,
        leaf_value=block.array("leaf_value", np.float64, leaves),
        codes=_sets(block, np.flatnonzero(kinds & 1), threshold),
    )


def _sets(block: Block, nodes: NDArray[np.int64], threshold: NDArray[np.float64]) -> dict[int, NDArray[np.int64]]:
    """The codes that go left at each categorical node, whose `threshold` is the index of its bit set."""
    if not nodes.size:
        return {}
    sets = block.integer("num_cat")
    if not 0 < sets <= len(block.text("cat_boundaries")):
        raise block.error("num_cat is out of range")
    bounds = block.array("cat_boundaries", np.int64, sets + 1)
    if bounds[0] != 0 or (np.diff(bounds) < 0).any() or bounds[-1] > _MAX_WORDS:
        raise block.error("cat_boundaries do not increase from 0")
    words = block.array("cat_threshold", np.int64, int(bounds[-1]))
    if ((words < 0) | (words >= 1 << 32)).any():
        raise block.error("a word of cat_threshold is out of range")
    result = {}
    for n in nodes.tolist():
        s = threshold[n]
        if not 0 <= s < sets or s != int(s):
            raise block.error(f"node {n} refers to a category set that does not exist")
        mine = words[bounds[int(s)] : bounds[int(s) + 1]].astype(np.uint32)
        result[n] = np.flatnonzero(bits_of(mine)).astype(np.int64)
    return result
