"""The interface of a frontend: converts model files or live objects to an `Ensemble`, and replays answers in the library.

If a model predicts several outputs at once (labels of a row, or targets of a regression), `FORMAT:output=K` selects output K,
counted from 0 in the library's order; likewise, `FORMAT:VARIANT` selects one of several models in a file. The result is a
normal model with one output, which contains only this output's trees, or only its column of vector leaves.
"""

from __future__ import annotations

import html
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from treesens.compiler.model import Ensemble, ModelSource
from treesens.compiler.model.evaluate import LibraryReplay, Predicted
from treesens.errors import ModelError
from treesens.frontends.meaning import Meaning
from treesens.visible import visible

LibraryPredict = Callable[[NDArray[np.float64]], NDArray[Any]]


@dataclass(frozen=True, eq=False)
class LoadedModel:
    """An ensemble with its library's functions.

    For X (float64[rows, features], NaN for missing), `margins(X)` returns the library's raw outputs ([rows, n_outputs] in the
    library's type), and `leaf_ids(X)` returns its leaf ids ([rows, trees]; None if the library has no leaf ids). Both functions
    import the library on first use. `predicts(X)` returns the results of the library's predict and predict_proba (None if the
    library lacks them); `inputs(X)` converts the rows to the input of predict (None if predict takes X). `notes` holds
    sentences for the user, and `meaning` is the user's description of the features and classes.
    """

    ensemble: Ensemble
    frontend: str
    margins: LibraryPredict
    leaf_ids: LibraryPredict | None = None
    notes: tuple[str, ...] = ()
    options: Mapping[str, str] = field(default_factory=dict)
    predicts: Callable[[NDArray[np.float64]], Predicted] | None = None
    inputs: Callable[[NDArray[np.float64]], Any] | None = None
    meaning: Meaning = field(default_factory=Meaning)
    printed: bool = False
    """True if the file is a human-readable table, whose numbers may have fewer digits than the library's."""
    monotone: Mapping[str, int] = field(default_factory=dict)
    """The monotone constraints of training, as declared in the model: 1 (increasing) or -1 (decreasing) by feature."""

    @property
    def replay(self) -> LibraryReplay:
        """The library's functions for the second level of replay."""
        return LibraryReplay(self.margins, self.predicts)

    def __repr__(self) -> str:
        e = self.ensemble
        return f"<model {e.name}: {e.source.format}, {e.n_trees} trees, {e.n_features} features, {e.task.value}>"

    def _repr_html_(self) -> str:
        e = self.ensemble
        facts = (
            f"{e.source.format}, {e.task.value}, link {e.link.name}",
            f"{e.n_trees:,} trees, {e.n_leaves:,} leaves",
            f"{e.n_features} features: {_few(e.feature_names)}",
            *([f"classes {_few([str(c) for c in e.classes])}"] if e.classes else []),
            *self.notes,
        )
        lines = "".join(f"<li>{html.escape(visible(line, lines=True))}</li>" for line in facts)
        return f"<p><b>{html.escape(visible(e.name, lines=True))}</b></p><ul>{lines}</ul>"


def _few(names: Sequence[str]) -> str:
    return ", ".join(names[:12]) + (", …" if len(names) > 12 else "")


@runtime_checkable
class Frontend(Protocol):
    """A model format. An entry point in group `treesens.frontends` is an instance, or a class called without arguments."""

    name: str
    """Short lower-case name of the format, for `--format` and messages."""

    library: str
    """The module imported for replay in the library; messages refer to it when it is not installed. Empty if the format has no
    library: answers are then replayed only in the reader's arithmetic.

    A frontend whose reader needs a package lists this package in `reads_with`, for `treesens doctor`.
    """

    def recognises_bytes(self, head: bytes) -> bool:
        """True if a file may be of this format; `head` is its first bytes, up to 64 KiB."""
        ...

    def recognises_object(self, obj: object) -> bool:
        """True if a live object is a model of this library; the method must not import the library."""
        ...

    def load(self, path: Path, data: bytes) -> LoadedModel:
        """The model in a file with the content `data`; raises ModelError with location and remedy for any other file."""
        ...

    def from_object(self, obj: Any) -> LoadedModel:
        """The model of a live object; raises ModelError for anything that an Ensemble cannot represent."""
        ...


@runtime_checkable
class VariantFrontend(Protocol):
    """A frontend whose files may contain several models, selected by `FORMAT:VARIANT`."""

    variants: tuple[str, ...]

    def load_variant(self, path: Path, data: bytes, variant: str) -> LoadedModel:
        """Like `load`; raises ModelError if the file does not contain the variant."""
        ...


@runtime_checkable
class OutputFrontend(Protocol):
    """A frontend that can read one output of a model with several outputs, selected by `FORMAT:output=K`."""

    def load_output(self, path: Path, data: bytes, output: int) -> LoadedModel:
        """As `load`, for one output. Raises ModelError if the model has only one output, or no output with this number."""
        ...

    def output_of_object(self, obj: Any, output: int) -> LoadedModel:
        """As `from_object`, for one output."""
        ...


@runtime_checkable
class RowsFrontend(Protocol):
    """A frontend whose live models may lack the names of their categories."""

    def with_rows(self, obj: Any, rows: Any) -> LoadedModel:
        """As `from_object`; the data frame `rows` contains the names."""
        ...


@runtime_checkable
class FolderFrontend(Protocol):
    """A frontend whose models are folders of files."""

    def recognises_folder(self, names: Collection[str]) -> bool:
        """True if a folder that contains these files and subfolders may be such a model."""
        ...

    def load_folder(self, path: Path, files: Mapping[str, bytes]) -> LoadedModel:
        """The model in a folder with these files (`compiler.base.folders`); otherwise like `load`."""
        ...


_PREFIX = "output="
_MOST_DIGITS = 6
_OF_NODES = ("node_feature", "threshold", "default_left", "category_set", "zero_missing")


def output_named(variant: str) -> int | None:
    """The number in `output=K`; None for other variants. Raises ModelError unless K is a number."""
    if not variant.startswith(_PREFIX):
        return None
    text = variant[len(_PREFIX) :]
    if not (text.isascii() and text.isdigit() and len(text) <= _MOST_DIGITS):
        raise ModelError(f"`{text[:20]}` is not an output number", remedy="count from 0: `output=0` is the first one")
    return int(text)


def check_output(output: int, count: int, place: str) -> None:
    """Raises ModelError if a model has only one output, or no output with this number."""
    if count < 2:
        raise ModelError("the model has one output", place=place, remedy="leave `output=` out")
    if output >= count:
        raise ModelError(f"the model has no output {output}", place=place, remedy=f"its outputs are 0 to {count - 1}")


def source_of_output(source: ModelSource, output: int) -> ModelSource:
    """The model's source with the output recorded, so that reports and certificates refer to this output, not the file."""
    return replace(source, format=f"output {output} of {source.format}")


def note_of_output(output: int, count: int) -> str:
    """A note for the user, which states that only one output is analysed."""
    return f"this is output {output} of {count} (0 to {count - 1}), and the others are left out"


def choose_output(model: LoadedModel, output: int) -> LoadedModel:
    """One target of a multi-output regression. Raises ModelError for other models, and for an unknown target."""
    e, place = model.ensemble, model.ensemble.source.path
    check_output(output, 1 if e.classes or e.blend is not None else e.n_outputs, place)
    one = of_output(replace(e, source=source_of_output(e.source, output)), output).validate()
    return LoadedModel(
        one,
        model.frontend,
        lambda rows: np.asarray(model.margins(rows))[:, output : output + 1],
        None,
        (note_of_output(output, e.n_outputs), *model.notes),
        options=model.options,
        inputs=model.inputs,
        monotone=model.monotone,
    )


def of_output(e: Ensemble, k: int) -> Ensemble:
    """An ensemble with only output `k`: the trees of this output, or its column of vector leaves."""
    if e.leaf_value.shape[1] > 1:
        one = replace(e, leaf_value=e.leaf_value[:, k : k + 1])
    else:
        one = _of_trees(e, np.flatnonzero(e.tree_output == k))
    return replace(one, tree_output=np.zeros(one.n_trees, np.int32), base=e.base[k : k + 1])


def _of_trees(e: Ensemble, trees: Any) -> Ensemble:
    """A subset of an ensemble's trees, in order."""
    sizes = np.diff(e.tree_offset)[trees]
    mine = np.zeros(e.n_trees, np.bool_)
    mine[trees] = True
    nodes = np.flatnonzero(mine[e.node_tree])
    moved = np.full(len(e.node_feature), -1, np.int64)
    moved[nodes] = np.arange(len(nodes))
    leaves = e.node_leaf[nodes][e.node_leaf[nodes] >= 0]
    number = np.full(e.n_leaves, -1, np.int64)
    number[leaves] = np.arange(len(leaves))
    position = np.full(e.n_trees, -1, np.int64)
    position[trees] = np.arange(len(trees))

    def among(values: Any, places: Any) -> Any:
        return np.where(values >= 0, places[np.maximum(values, 0)], -1).astype(np.int32)

    return replace(
        e,
        tree_offset=np.concatenate([[0], np.cumsum(sizes)]),
        **{name: getattr(e, name)[nodes] for name in _OF_NODES},
        left=among(e.left[nodes], moved),
        right=among(e.right[nodes], moved),
        node_leaf=among(e.node_leaf[nodes], number),
        leaf_value=e.leaf_value[leaves],
        leaf_node=e.leaf_node[leaves],
        leaf_tree=among(e.leaf_tree[leaves], position),
        tree_weight=e.tree_weight[trees],
        tree_output=e.tree_output[trees],
    )
